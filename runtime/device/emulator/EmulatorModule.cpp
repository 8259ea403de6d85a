// Modules and kernels: loading, placing variables, and the checks before a launch.
#include "runtime/device/emulator/EmulatorModule.h"

#include "runtime/device/emulator/execute/Cluster.h"
#include "runtime/ptx/Parser.h"
#include "support/Names.h"
#include "support/Text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace kiln::emulator {

namespace {

class EmulatorKernel final : public Kernel {
public:
  EmulatorKernel(EmulatorDevice &device, std::unique_ptr<Program> program)
      : device(device), program(std::move(program)) {}
  const KernelInfo &info() const override { return program->info; }
  Status launch(const LaunchConfig &config, std::span<const std::byte> arguments) override;

private:
  Status resolveCluster(LaunchConfig &config) const;

  EmulatorDevice &device;
  std::unique_ptr<Program> program;
};

constexpr std::uint32_t mostBlocksX = 0x7FFFFFFF, mostBlocksYZ = 65535;

std::string dimText(Dim3 d) {
  return format("%u,%u,%u", d.x, d.y, d.z);
}

Status EmulatorKernel::launch(const LaunchConfig &config, std::span<const std::byte> arguments) {
  const KernelInfo &k = program->info;
  const Target &target = device.target;
  auto refuse = [&](const std::string &message, std::string remedy = {}) {
    return Status::invalid("kernel " + shortName(k.name) + ": " + message, std::move(remedy));
  };
  const Dim3 g = config.grid, b = config.block;
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > mostBlocksX || g.y > mostBlocksYZ || g.z > mostBlocksYZ)
    return refuse("the grid is " + dimText(g),
                  "every extent is at least 1; x at most 2147483647, y and z at most 65535");
  if (b.x == 0 || b.y == 0 || b.z == 0 || b.x > 1024 || b.y > 1024 || b.z > 64)
    return refuse("the block is " + dimText(b), "every extent is at least 1; x and y at most 1024, z at most 64");
  if (b.count() > target.threadsPerBlock)
    return refuse("a block of " + dimText(b) + " has " + std::to_string(b.count()) + " threads, " +
                  std::string(target.name) + " allows " + std::to_string(target.threadsPerBlock));
  if (k.requiredBlock.x && !(b == k.requiredBlock))
    return refuse("the block is " + dimText(b) + ", the kernel requires " + dimText(k.requiredBlock) + " (.reqntid)");
  if (b.count() > k.maxThreadsPerBlock)
    return refuse("a block of " + dimText(b) + " has " + std::to_string(b.count()) + " threads, the kernel allows " +
                  std::to_string(k.maxThreadsPerBlock) + " (.maxntid)");
  const std::uint64_t shared = std::uint64_t(k.staticSharedBytes) + config.dynamicSharedBytes;
  if (shared > target.sharedOptIn)
    return refuse(std::to_string(k.staticSharedBytes) + " bytes of static and " +
                  std::to_string(config.dynamicSharedBytes) + " bytes of dynamic shared memory are " +
                  std::to_string(shared) + ", " + std::string(target.name) + " allows " +
                  std::to_string(target.sharedOptIn) + " a block");
  if (arguments.size() != k.parameterBytes)
    return refuse("the arguments have " + std::to_string(arguments.size()) + " bytes, the kernel's parameters " +
                  std::to_string(k.parameterBytes));
  if (config.stream && !device.takes(*config.stream))
    return refuse("the stream belongs to another device", "give it one that createStream() of this device made");
  LaunchConfig complete = config;
  KILN_TRY(resolveCluster(complete));
  return device.run(*program, complete, arguments);
}

/// Completes the grid and the cluster of a launch by what the kernel declares.
Status EmulatorKernel::resolveCluster(LaunchConfig &config) const {
  const Target &target = device.target;
  const Dim3 required = program->requiredCluster, asked = config.cluster;
  auto refuse = [&](const std::string &message, std::string remedy = {}) {
    return Status::invalid("kernel " + shortName(program->info.name) + ": " + message, std::move(remedy));
  };
  if (!asked.count() && (asked.x || asked.y || asked.z))
    return refuse("the cluster is " + dimText(asked),
                  "every extent is at least 1, or all are 0: as the kernel declares");
  if (required.count() && asked.count() && !(asked == required))
    return refuse("the cluster is " + dimText(asked) + ", the kernel requires " + dimText(required) +
                  " (.reqnctapercluster)");
  if (!asked.count() && !required.count()) {
    if (program->needsCluster)
      return refuse("the kernel needs a cluster size (.explicitcluster), the launch gives none",
                    "launch it with a cluster");
    return {};
  }
  const Dim3 cluster = config.cluster = asked.count() ? asked : required;
  if (!target.has(Capability::Clusters))
    return refuse("clusters need sm_90 or newer, the device is " + std::string(target.name));
  if (cluster.x > maxClusterBlocks || cluster.y > maxClusterBlocks || cluster.z > maxClusterBlocks ||
      cluster.count() > maxClusterBlocks)
    return refuse("a cluster of " + dimText(cluster) + " has more than " + std::to_string(maxClusterBlocks) + " blocks",
                  "use at most " + std::to_string(portableClusterBlocks) +
                      ", which every GPU with clusters allows, or " + std::to_string(maxClusterBlocks) +
                      ", which some do");
  if (program->maxClusterBlocks && cluster.count() > program->maxClusterBlocks)
    return refuse("a cluster of " + dimText(cluster) + " has " + std::to_string(cluster.count()) +
                  " blocks, the kernel allows " + std::to_string(program->maxClusterBlocks) + " (.maxclusterrank)");
  Dim3 &grid = config.grid;
  if (program->blocksAreClusters) {
    if (std::uint64_t(grid.x) * cluster.x > mostBlocksX || std::uint64_t(grid.y) * cluster.y > mostBlocksYZ ||
        std::uint64_t(grid.z) * cluster.z > mostBlocksYZ)
      return refuse("a grid of " + dimText(grid) + " clusters of " + dimText(cluster) + " blocks is too large",
                    "at most 2147483647 blocks in x, 65535 in y and z");
    grid = {grid.x * cluster.x, grid.y * cluster.y, grid.z * cluster.z};
  } else if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z) {
    return refuse("the grid " + dimText(grid) + " is no multiple of the cluster " + dimText(cluster),
                  "round the grid up");
  }
  return {};
}

class EmulatorModule final : public Module {
public:
  explicit EmulatorModule(EmulatorDevice &device) : device(device) {}
  ~EmulatorModule() override {
    std::lock_guard lock(device.mutex);
    for (std::uint64_t address : owned)
      device.memory->release(address);
  }
  Result<Kernel *> kernel(std::string_view name) override {
    for (const Entry &e : entries)
      if (e.name == name) {
        if (!e.kernel)
          return e.refused;
        return static_cast<Kernel *>(e.kernel.get());
      }
    const std::vector<std::string> names = kernelNames();
    const std::vector<std::string> close = nearest(name, names);
    return Status(StatusCode::NotFound, syntax->fileName + " has no kernel '" + shortName(name) + "'",
                  names.empty() ? "the module has no .entry"
                                : (close.empty() ? "" : "did you mean " + join(shortNames(close)) + "? ") +
                                      "kernels: " + join(shortNames(names)));
  }
  std::vector<std::string> kernelNames() const override {
    std::vector<std::string> names;
    for (const Entry &e : entries)
      names.push_back(e.name);
    return names;
  }

  Status load(std::string_view text, std::string_view fileName);

private:
  Status checkTarget() const;
  Status placeVariables();
  Status initialise(const ptx::Variable &variable, std::byte *memory) const;

  EmulatorDevice &device;
  std::unique_ptr<ptx::Module> syntax;
  PlacedVariables variables;
  std::vector<std::uint64_t> owned;
  /// One that the device cannot run says so when it is asked for: the module's other kernels may be what is wanted.
  struct Entry {
    std::string name;
    std::unique_ptr<EmulatorKernel> kernel;
    Status refused;
  };
  std::vector<Entry> entries;
};

Status EmulatorModule::checkTarget() const {
  const Target &target = device.target;
  for (std::string_view name : syntax->targets) {
    if (!name.starts_with("sm_"))
      continue;
    unsigned sm = 0;
    const auto [end, problem] = std::from_chars(name.data() + 3, name.data() + name.size(), sm);
    const std::string_view suffix = name.substr(static_cast<std::size_t>(end - name.data()));
    if (problem != std::errc())
      continue;
    bool fits = sm <= target.sm;
    if (suffix == "a")
      fits = name == target.name;
    else if (suffix == "f") // a family: the same generation, this member or a later one
      fits = sm <= target.sm && sm / 10 == target.sm / 10;
    if (!fits)
      return Status(
          StatusCode::CompileError,
          syntax->fileName + ": the module is for " + std::string(name) + ", the device is " + std::string(target.name),
          findTarget(name).ok() ? "use emulator:" + std::string(name) : "compile it for " + std::string(target.name));
  }
  if (syntax->addressSize != 64)
    return Status(StatusCode::Unsupported, syntax->fileName + ": .address_size " + std::to_string(syntax->addressSize),
                  "use 64");
  return {};
}

Status EmulatorModule::initialise(const ptx::Variable &v, std::byte *memory) const {
  const unsigned bytes = ptx::typeBytes(v.type);
  std::size_t at = 0;
  for (const ptx::Variable::Init &init : v.init) {
    if (at + bytes > variableBytes(v))
      return Status(StatusCode::CompileError, syntax->fileName + ":" + std::to_string(v.line) +
                                                  ": too many initialisers for '" + std::string(v.name) + "'");
    std::uint64_t value = init.bits;
    if (init.kind == ptx::Variable::Init::Kind::Float) {
      const bool single = init.floatBits == 32;
      const double d = single ? std::bit_cast<float>(static_cast<std::uint32_t>(value)) : std::bit_cast<double>(value);
      if (bytes == 4)
        value = single ? value : std::bit_cast<std::uint32_t>(static_cast<float>(d));
      else if (bytes == 8)
        value = std::bit_cast<std::uint64_t>(d);
    } else if (init.kind == ptx::Variable::Init::Kind::Symbol) {
      std::uint64_t address = 0;
      bool found = false;
      if (const auto placed = variables.find(init.symbol); placed != variables.end()) {
        address = placed->second.address;
        found = true;
      }
      for (std::size_t f = 0; f < syntax->functions.size() && !found; ++f)
        if (syntax->functions[f].name == init.symbol && (syntax->functions[f].hasBody || !found)) {
          address = codeAddress(f);
          found = syntax->functions[f].hasBody;
        }
      if (!found)
        return Status(StatusCode::CompileError, syntax->fileName + ":" + std::to_string(v.line) + ": '" +
                                                    std::string(init.symbol) + "' in the initialiser of '" +
                                                    std::string(v.name) + "' is not defined");
      value = address + init.bits;
      if (init.byteMask)
        value = (value & init.byteMask) >> __builtin_ctzll(init.byteMask);
    }
    std::memcpy(memory + at, &value, std::min<std::size_t>(bytes, 8));
    at += bytes;
  }
  return {};
}

Status EmulatorModule::placeVariables() {
  std::lock_guard lock(device.mutex);
  for (const ptx::Variable &v : syntax->variables) {
    if (v.space != ptx::Space::Global && v.space != ptx::Space::Const)
      continue;
    if (v.external) {
      const bool defined = std::any_of(syntax->variables.begin(), syntax->variables.end(),
                                       [&](const ptx::Variable &o) { return o.name == v.name && !o.external; });
      if (!defined)
        return Status(StatusCode::CompileError, syntax->fileName + ":" + std::to_string(v.line) + ": '" +
                                                    std::string(v.name) +
                                                    "' is .extern and not defined in this module");
      continue;
    }
    const std::uint64_t bytes = variableBytes(v);
    const std::uint64_t align = std::clamp<std::uint64_t>(variableAlign(v), 256, 1 << 20);
    KILN_ASSIGN(std::uint64_t address,
                device.memory->allocate(bytes + (align - 256), v.name, v.space != ptx::Space::Const));
    owned.push_back(address);
    address = (address + align - 1) / align * align;
    variables[v.name] = {address, bytes, v.space == ptx::Space::Const};
  }
  for (const ptx::Variable &v : syntax->variables) {
    const auto placed = variables.find(v.name);
    if (placed == variables.end() || v.external)
      continue;
    // Without an initialiser variables are zero, as fresh memory is.
    auto *memory = reinterpret_cast<std::byte *>(placed->second.address);
    KILN_TRY(initialise(v, memory));
    if (Allocation *a = device.memory->before(placed->second.address))
      a->defined = true;
  }
  return {};
}

Status EmulatorModule::load(std::string_view text, std::string_view fileName) {
  KILN_ASSIGN(syntax, ptx::parse(std::string(text), std::string(fileName)));
  KILN_TRY(checkTarget());
  KILN_TRY(placeVariables());
  DecodeOptions options;
  options.target = &device.target;
  options.table = &device.table;
  options.rows = &device.rows;
  options.variables = &variables;
  for (std::size_t i = 0; i < syntax->functions.size(); ++i) {
    if (!syntax->functions[i].isEntry || !syntax->functions[i].hasBody)
      continue;
    auto program = decodeEntry(*syntax, i, options);
    Entry entry{std::string(syntax->functions[i].name), nullptr, program.status()};
    if (program.ok())
      entry.kernel = std::make_unique<EmulatorKernel>(device, std::move(*program));
    entries.push_back(std::move(entry));
  }
  // A module of which nothing can run is refused at once.
  if (!entries.empty() &&
      std::none_of(entries.begin(), entries.end(), [](const Entry &e) { return e.kernel != nullptr; }))
    return entries[0].refused;
  return {};
}

} // namespace

Result<std::unique_ptr<Module>> loadModule(EmulatorDevice &device, std::string_view text, std::string_view fileName) {
  auto module = std::make_unique<EmulatorModule>(device);
  KILN_TRY(module->load(text, fileName));
  return std::unique_ptr<Module>(std::move(module));
}

} // namespace kiln::emulator
