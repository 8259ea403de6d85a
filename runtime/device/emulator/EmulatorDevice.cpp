#include "runtime/device/emulator/EmulatorDevice.h"

#include "runtime/device/emulator/async/TensorMap.h"
#include "runtime/device/emulator/checks/FloatBirths.h"
#include "runtime/device/emulator/EmulatorModule.h"
#include "runtime/device/emulator/execute/Executor.h"
#include "runtime/device/emulator/observe/OpTraits.h"
#include "runtime/device/emulator/observe/TimelineRecorder.h"
#include "runtime/device/Multiprocessors.h"
#include "support/Names.h"
#include "support/Text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <unistd.h>

namespace kiln::emulator {

namespace {

/// Which of a grid's clusters run so that about `blocks` blocks do; empty: all.  They spread evenly (multiples of the
/// golden ratio modulo 1), and each comes with its mirror image, up to an odd last one: where work grows with a
/// coordinate (the rows of a triangle), the mean over a pair is that of the grid, however blocks are numbered.
std::vector<std::uint64_t> sampleOf(std::uint64_t clusters, std::uint64_t blocks, std::uint64_t clusterBlocks) {
  const std::uint64_t wanted = (blocks + clusterBlocks - 1) / clusterBlocks;
  std::vector<std::uint64_t> out;
  if (wanted == 0 || wanted >= clusters)
    return out;
  constexpr double ratio = 0.6180339887498949;
  const auto add = [&](std::uint64_t number) {
    if (out.size() < wanted && std::find(out.begin(), out.end(), number) == out.end())
      out.push_back(number);
  };
  for (std::uint64_t i = 0; out.size() < wanted && i < 4 * wanted; ++i) {
    const double at = (static_cast<double>(i) + 0.5) * ratio;
    const std::uint64_t number =
        std::min(clusters - 1, static_cast<std::uint64_t>((at - std::floor(at)) * static_cast<double>(clusters)));
    add(number);
    add(clusters - 1 - number);
  }
  std::sort(out.begin(), out.end());
  return out;
}

class EmulatorStream final : public Stream {
public:
  explicit EmulatorStream(const EmulatorDevice &owner) : owner(owner) {}
  Status synchronize() override { return {}; }
  void *native() const override { return nullptr; }
  const EmulatorDevice &owner; ///< compared, never read: the device may be gone
};

class EmulatorEvent final : public Event {
public:
  Status record(Stream &) override {
    when = std::chrono::steady_clock::now();
    recorded = true;
    return {};
  }
  Status synchronize() override { return {}; }
  Result<double> millisecondsSince(const Event &earlier) const override {
    const auto *other = dynamic_cast<const EmulatorEvent *>(&earlier);
    if (!recorded || !other || !other->recorded)
      return Status::invalid("the time between two events needs both to be recorded on this device");
    return std::chrono::duration<double, std::milli>(when - other->when).count();
  }

private:
  std::chrono::steady_clock::time_point when;
  bool recorded = false;
};

class EmulatorBuffer final : public Buffer {
public:
  EmulatorBuffer(EmulatorDevice &device, DeviceAddress address, std::size_t bytes)
      : device(device), at(address), bytes(bytes) {}
  ~EmulatorBuffer() override {
    std::lock_guard lock(device.mutex);
    device.memory->release(at);
  }
  DeviceAddress address() const override { return at; }
  std::size_t size() const override { return bytes; }
  Status copyFromHost(std::size_t offset, std::span<const std::byte> data) override {
    KILN_TRY(check("copyFromHost", offset, data.size()));
    std::lock_guard lock(device.mutex);
    if (!data.empty())
      std::memcpy(reinterpret_cast<std::byte *>(at) + offset, data.data(), data.size());
    device.memory->hostWrote(at + offset, data.size());
    return {};
  }
  Status copyToHost(std::size_t offset, std::span<std::byte> data) const override {
    KILN_TRY(check("copyToHost", offset, data.size()));
    std::lock_guard lock(device.mutex);
    if (!data.empty())
      std::memcpy(data.data(), reinterpret_cast<const std::byte *>(at) + offset, data.size());
    return {};
  }
  Status fill(std::byte value) override {
    std::lock_guard lock(device.mutex);
    if (bytes)
      std::memset(reinterpret_cast<std::byte *>(at), static_cast<int>(value), bytes);
    device.memory->hostWrote(at, bytes);
    return {};
  }
  Status poison(std::byte value) override {
    std::lock_guard lock(device.mutex);
    if (bytes)
      std::memset(reinterpret_cast<std::byte *>(at), static_cast<int>(value), bytes);
    return {};
  }

private:
  Status check(const char *what, std::size_t offset, std::size_t n) const {
    if (offset > bytes || n > bytes - offset)
      return Status::invalid(std::string(what) + ": " + std::to_string(n) + " bytes at offset " +
                             std::to_string(offset) + " do not lie inside the buffer of " + std::to_string(bytes) +
                             " bytes");
    return {};
  }
  EmulatorDevice &device;
  DeviceAddress at;
  std::size_t bytes;
};

std::uint64_t hostMemory() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size)
                               : std::uint64_t(8) << 30;
}

unsigned workersFor(const EmulatorOptions &options) {
  return options.hostThreads ? std::min(options.hostThreads, 1024u) : std::max(1u, std::thread::hardware_concurrency());
}

} // namespace

EmulatorDevice::EmulatorDevice(const Target &target, const EmulatorOptions &options, const InstructionTable &table,
                               std::unique_ptr<GlobalMemory> memory)
    : target(target), options(options), table(table), rows(table), memory(std::move(memory)),
      about(emulatorInfo(target, options)), pool(workersFor(options)),
      standardStream(std::make_unique<EmulatorStream>(*this)) {}

bool EmulatorDevice::takes(const Stream &stream) const {
  const auto *own = dynamic_cast<const EmulatorStream *>(&stream);
  return own ? &own->owner == this : !stream.native();
}

Result<std::unique_ptr<Buffer>> EmulatorDevice::allocate(std::size_t bytes, std::string_view label) {
  std::lock_guard lock(mutex);
  KILN_ASSIGN(const std::uint64_t address, memory->allocate(bytes, label));
  return std::unique_ptr<Buffer>(std::make_unique<EmulatorBuffer>(*this, address, bytes));
}

Result<std::unique_ptr<Stream>> EmulatorDevice::createStream() {
  return std::unique_ptr<Stream>(std::make_unique<EmulatorStream>(*this));
}
Result<std::unique_ptr<Stream>> EmulatorDevice::streamOf(void *native) {
  if (native)
    return Status::invalid(format("%s: 0x%llx cannot be one of its streams: it has no native ones", about.name.c_str(),
                                  static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(native))),
                           "give nullptr, which is the default stream everywhere, or use createStream()");
  return createStream();
}
Result<std::unique_ptr<Event>> EmulatorDevice::createEvent() {
  return std::unique_ptr<Event>(std::make_unique<EmulatorEvent>());
}

Result<std::unique_ptr<Module>> EmulatorDevice::loadPtx(std::string_view text, std::string_view fileName) {
  return loadModule(*this, text, fileName);
}

Result<std::unique_ptr<Module>> EmulatorDevice::loadCubin(std::span<const std::byte>) {
  return Status(StatusCode::Unsupported, "the emulator cannot run a cubin", "give it the PTX text");
}

Result<TensorMap> EmulatorDevice::encodeTensorMap(const TensorMapRecipe &recipe) {
  KILN_TRY(checkTensorMap(recipe));
  if (!target.has(Capability::Tma))
    return Status(StatusCode::Unsupported, about.name + " has no tensor copies", "they exist from sm_90 on");
  if (recipe.interleave != TensorMapInterleave::None)
    return Status(StatusCode::Unsupported, "the emulator has no interleaved tensor maps", "use interleave none");
  // An H200's driver refuses them.
  if (recipe.swizzle > TensorMapSwizzle::B128 && target.sm < 100)
    return Status(StatusCode::Unsupported,
                  about.name + " has no swizzle " + std::string(tensorMapSwizzleName(recipe.swizzle)),
                  "it exists from sm_100 on; use 128B");
  return encodeMap(recipe);
}

std::vector<Finding> EmulatorDevice::takeFindings() {
  std::lock_guard lock(mutex);
  return std::exchange(findings, {});
}

LaunchStatistics EmulatorDevice::takeStatistics() {
  std::lock_guard lock(mutex);
  return std::exchange(statistics, {});
}

Status EmulatorDevice::record(const Recording &what) {
  std::lock_guard lock(mutex);
  recording = what;
  return {};
}

std::vector<LaunchCounters> EmulatorDevice::takeCounters() {
  std::lock_guard lock(mutex);
  return std::exchange(counters, {});
}

std::vector<Timeline> EmulatorDevice::takeTimelines() {
  std::lock_guard lock(mutex);
  return std::exchange(timelines, {});
}

Status EmulatorDevice::run(const Program &program, const LaunchConfig &config, std::span<const std::byte> arguments) {
  std::lock_guard lock(mutex);
  Launch launch;
  launch.program = &program;
  launch.target = &target;
  launch.memory = memory.get();
  launch.grid = config.grid;
  launch.block = config.block;
  launch.cluster = config.cluster.count() ? config.cluster : Dim3{1, 1, 1};
  launch.explicitCluster = config.cluster.count() != 0;
  launch.dynamicShared = config.dynamicSharedBytes;
  launch.parameters = arguments;
  launch.checks = options.checks;
  launch.strictProxy = options.strictProxy;
  if (options.checks) {
    races.cells = memory->raceCells();
    races.base = memory->base();
    races.bytesOfMemory = memory->arenaBytes();
    races.memory = memory.get();
    launch.races = &races;
  }
  std::vector<OpTraits> traits;
  std::vector<FloatForm> floats;
  if (recording.counters || recording.timeline || options.firstNan) {
    traits = traitsOf(program);
    launch.traits = &traits;
  }
  if (options.firstNan) {
    floats = floatForms(program);
    launch.floats = &floats;
  }
  launch.tileDirectory = options.tileDirectory;
  const Dim3 drawn = recording.timelineBlock;
  if (recording.timeline && (drawn.x >= config.grid.x || drawn.y >= config.grid.y || drawn.z >= config.grid.z))
    return Status::invalid(format("kernel %s: block %u,%u,%u is to be drawn, the grid is %u,%u,%u",
                                  shortName(program.info.name).c_str(), drawn.x, drawn.y, drawn.z, config.grid.x,
                                  config.grid.y, config.grid.z),
                           "blocks count from 0");
  TimelineRecorder recorder(drawn, options.schedule == Schedule::InOrder);
  if (recording.timeline)
    launch.timeline = &recorder;
  launch.schedule = options.schedule;
  launch.countsBlocks = recording.sampledBlocks != 0;
  if (!program.seesOthers && !config.cooperative && !launch.seeded())
    launch.sample = sampleOf(launch.clusters(), recording.sampledBlocks, launch.cluster.count());
  launch.mma = options.mma;
  launch.seed = options.seed;
  launch.gridId = ++launches;
  launch.multiprocessors = about.multiprocessors;
  launch.instructionBudget = options.instructionBudget ? options.instructionBudget : std::uint64_t(1) << 40;
  launch.secondsBudget = options.secondsBudget;
  if (config.cooperative && residentLimit(launch) < launch.clusters())
    return Status::invalid(format("kernel %s: a cooperative launch of %llu blocks, of which %s holds %llu at a time",
                                  shortName(program.info.name).c_str(),
                                  static_cast<unsigned long long>(launch.clusters() * launch.cluster.count()),
                                  about.name.c_str(),
                                  static_cast<unsigned long long>(residentLimit(launch) * launch.cluster.count())),
                           "all blocks of a cooperative launch run at the same time: make the grid smaller");
  if (config.cooperative) {
    // Its size, and the barrier that the blocks count on.
    const std::uint32_t workspace[2] = {sizeof workspace, 0};
    KILN_ASSIGN(launch.gridWorkspace, memory->allocate(sizeof workspace, "grid workspace"));
    std::memcpy(reinterpret_cast<void *>(launch.gridWorkspace), workspace, sizeof workspace);
    memory->before(launch.gridWorkspace)->defined = true;
  }
  LaunchResult result = runLaunch(launch, pool);
  if (launch.gridWorkspace)
    memory->release(launch.gridWorkspace);
  for (Finding &f : result.findings)
    findings.push_back(std::move(f));
  if (result.timeline)
    timelines.push_back(std::move(*result.timeline));
  if (result.counters && recording.counters)
    counters.push_back(std::move(*result.counters));
  statistics.warpInstructions += result.statistics.warpInstructions;
  statistics.threadInstructions += result.statistics.threadInstructions;
  statistics.seconds += result.statistics.seconds;
  return result.status;
}

} // namespace kiln::emulator

namespace kiln {

DeviceInfo emulatorInfo(const Target &target, const EmulatorOptions &options) {
  DeviceInfo info{};
  info.kind = DeviceKind::Emulator;
  info.name = "emulator:" + std::string(target.name);
  info.description = "PTX emulator";
  info.mma = options.mma;
  info.target = &target;
  info.sm = target.sm;
  info.multiprocessors = multiprocessorsOf(target);
  info.memoryBytes = emulator::hostMemory();
  if (const auto *table = emulator::instructionTable(options.cpuLevel))
    info.driver = std::string(table->level);
  info.hostThreads = emulator::workersFor(options);
  return info;
}

Result<std::unique_ptr<Device>> createEmulatorDevice(const Target &target, const EmulatorOptions &options) {
  const emulator::InstructionTable *table = emulator::instructionTable(options.cpuLevel);
  if (!table) {
    std::vector<std::string> levels;
    for (std::string_view level : emulator::builtLevels())
      if (emulator::instructionTable(level))
        levels.emplace_back(level);
    return Status::invalid("CPU level '" + options.cpuLevel + "' is not one that this CPU can run",
                           "levels here: " + join(levels));
  }
  KILN_ASSIGN(auto memory, emulator::GlobalMemory::create(options.checks, emulator::hostMemory()));
  return std::unique_ptr<Device>(
      std::make_unique<emulator::EmulatorDevice>(target, options, *table, std::move(memory)));
}

RaceMemory raceMemory(const Device &emulator) {
  return static_cast<const emulator::EmulatorDevice &>(emulator).raceMemory();
}

} // namespace kiln
