#include "tests/emulator/PtxHarness.h"

#include "runtime/device/emulator/decode/InstructionTable.h"
#include "runtime/device/emulator/EmulatorDevice.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace kiln::test {

[[noreturn]] static void giveUp(const Status &status) {
  std::fprintf(stderr, "harness: %s\n", status.toString().c_str());
  std::exit(1);
}

std::vector<std::string> usableLevels() {
  std::vector<std::string> out;
  for (std::string_view level : emulator::builtLevels())
    if (emulator::instructionTable(level))
      out.emplace_back(level);
  return out;
}

std::string Launched::text() const {
  std::string out = status.ok() ? "launch: ok\n" : "launch: " + status.toString() + "\n";
  for (const Finding &f : findings)
    out += f.id + (f.note ? " (note)" : "") + " block " + std::to_string(f.block.x) + " warp " +
           std::to_string(f.warp) + " ptx line " + std::to_string(f.ptxLine) + " " + f.opcode + ": " + f.message +
           " [" + std::to_string(f.count) + "]\n";
  return out;
}

const Finding *Launched::find(std::string_view id) const {
  for (const Finding &f : findings)
    if (f.id == id)
      return &f;
  return nullptr;
}

bool Launched::has(std::string_view id) const {
  return find(id) != nullptr;
}

std::string Launched::ids() const {
  std::vector<std::string> list;
  for (const Finding &f : findings)
    if (!f.note)
      list.push_back(f.id);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  std::string out;
  for (const std::string &id : list)
    out += (out.empty() ? "" : " ") + id;
  return out;
}

Emulator::Emulator(std::string_view target, EmulatorOptions options) {
  auto row = findTarget(target);
  if (!row)
    giveUp(row.status());
  auto device = createEmulatorDevice(**row, options);
  if (!device)
    giveUp(device.status());
  gpu = std::move(*device);
}

Buffer &Emulator::allocate(std::size_t bytes, std::string_view label) {
  auto b = gpu->allocate(bytes, label);
  if (!b)
    giveUp(b.status());
  buffers.push_back(std::move(*b));
  return *buffers.back();
}

void Emulator::release(Buffer &b) {
  std::erase_if(buffers, [&](const auto &held) { return held.get() == &b; });
}

void Emulator::write(Buffer &b, const void *data, std::size_t bytes) {
  if (Status s = b.copyFromHost(0, {static_cast<const std::byte *>(data), bytes}); !s.ok())
    giveUp(s);
}

void Emulator::read(const Buffer &b, void *data, std::size_t bytes) {
  if (Status s = b.copyToHost(0, {static_cast<std::byte *>(data), bytes}); !s.ok())
    giveUp(s);
}

TensorMap Emulator::encode(const TensorMapRecipe &recipe) {
  auto map = gpu->encodeTensorMap(recipe);
  if (!map)
    giveUp(map.status());
  return *map;
}

Result<Module *> Emulator::load(std::string_view text) {
  auto module = gpu->loadPtx(text, "test.ptx");
  if (!module)
    return module.takeStatus();
  modules.push_back(std::move(*module));
  return modules.back().get();
}

Launched Emulator::run(std::string_view text, Dim3 grid, Dim3 block, const std::vector<Argument> &arguments,
                       std::uint32_t dynamicShared, std::string_view entry, Dim3 cluster) {
  Launched out;
  auto module = load(text);
  if (!module) {
    out.status = module.takeStatus();
    return out;
  }
  const std::vector<std::string> names = (*module)->kernelNames();
  auto kernel = (*module)->kernel(entry.empty() && !names.empty() ? std::string_view(names[0]) : entry);
  if (!kernel) {
    out.status = kernel.takeStatus();
    return out;
  }
  std::vector<std::byte> packed;
  for (const Argument &a : arguments) {
    const std::size_t align = a.map ? alignof(TensorMap) : a.bytes;
    packed.resize((packed.size() + align - 1) / align * align);
    const auto *bytes = a.map ? a.map->bytes.data() : reinterpret_cast<const std::byte *>(&a.bits);
    packed.insert(packed.end(), bytes, bytes + a.bytes);
  }
  LaunchConfig config;
  config.grid = grid;
  config.block = block;
  config.cluster = cluster;
  config.dynamicSharedBytes = dynamicShared;
  out.status = (*kernel)->launch(config, packed);
  out.findings = gpu->takeFindings();
  out.statistics = gpu->takeStatistics();
  return out;
}

TensorMapRecipe denseTensor(TensorMapType type, std::uint64_t address, const std::vector<std::uint64_t> &dims,
                            const std::vector<std::uint32_t> &box) {
  TensorMapRecipe r;
  r.type = type;
  r.rank = static_cast<unsigned>(dims.size());
  r.address = address;
  std::copy(dims.begin(), dims.end(), r.dims.begin());
  std::copy(box.begin(), box.end(), r.box.begin());
  r.setDenseStrides();
  return r;
}

std::string kernelText(std::string_view parameters, std::string_view body, std::string_view target,
                       std::string_view outside, std::string_view directives) {
  std::string text = ".version 8.7\n.target " + std::string(target) + "\n.address_size 64\n";
  text += outside;
  text += "\n.visible .entry k(" + std::string(parameters) + ")\n" + std::string(directives) + "{\n";
  text += ".reg .b32 %r<64>; .reg .b64 %rd<64>; .reg .f32 %f<64>; .reg .f64 %fd<64>; .reg .b16 %h<64>; .reg .pred "
          "%p<32>;\n";
  text += body;
  text += "\nret;\n}\n";
  return text;
}

} // namespace kiln::test
