//===- Device.h - One interface for GPUs and emulated GPUs ----------------===//
//
// A Device owns memory, streams, modules and launches.  Two kinds exist: "cuda:N" (a GPU through its driver, found at
// run time) and "emulator:TARGET" (PTX text executed on the CPU, with checks).  `openDevice` makes either from its
// name.
//
// Rules that hold for both:
//  - Nothing throws.  Objects must not outlive the Device that made them.
//  - Kernel arguments are one packed buffer: each parameter at its natural offset, as in `KernelInfo::parameters`.
//  - A launch that breaks a limit (grid, block, shared memory, argument bytes) is refused before anything runs.
//  - Work on one stream runs in order.  The emulator runs a launch before `launch` returns.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_DEVICE_H
#define KILN_DEVICE_H

#include "compiler/target/Target.h"
#include "compiler/target/TensorMap.h"
#include "kiln/Counters.h"
#include "kiln/Timeline.h"
#include "support/Status.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

using DeviceAddress = std::uint64_t;

class OwnedTensor; // kiln/OwnedTensor.h
enum class DType : std::uint8_t;

/// Extents of a tensor, not owned: a list in braces, a vector, or a span.
class Extents {
public:
  Extents(std::initializer_list<std::int64_t> list) : values(list.begin(), list.size()) {}
  Extents(const std::vector<std::int64_t> &list) : values(list) {}
  Extents(std::span<const std::int64_t> list) : values(list) {}
  std::span<const std::int64_t> list() const { return values; }

private:
  std::span<const std::int64_t> values;
};

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t(x) * y * z; }
  bool operator==(const Dim3 &) const = default;
};

enum class DeviceKind : unsigned char { Cuda, Emulator };

/// How the emulator sums the products of matrix instructions.
enum class MatrixMode : std::uint8_t {
  Exact, ///< as the target's hardware is known to: the same bits
  Fast,  ///< f32 fused multiply-adds with k ascending
};
/// "exact", "fast".
std::string_view matrixModeName(MatrixMode mode);
Result<MatrixMode> parseMatrixMode(std::string_view name);

struct DeviceInfo {
  DeviceKind kind;
  std::string name;        ///< what `openDevice` takes: "cuda:0", "emulator:sm_90a"
  std::string description; ///< "NVIDIA H200", "PTX emulator"
  const Target *target;    ///< nullptr if the GPU is none of Kiln's targets
  unsigned sm = 0;         ///< 90 for compute capability 9.0
  unsigned multiprocessors = 0;
  std::uint64_t memoryBytes = 0;
  std::string driver;       ///< driver version, or the CPU level that the emulator chose
  unsigned hostThreads = 0; ///< emulator: workers
  MatrixMode mma{};         ///< emulator: how it sums matrix products
};

class Stream {
public:
  virtual ~Stream() = default;
  /// Waits for the work given so far; the first failure since the last call.
  virtual Status synchronize() = 0;
  /// The native handle (CUstream), nullptr on the emulator.
  virtual void *native() const = 0;
  /// Whether work given now is recorded into a graph and not run.
  virtual bool isCapturing() const { return false; }
  /// Unlike the address or the handle, never given to a second stream.
  std::uint64_t id() const { return number; }

private:
  inline static std::atomic<std::uint64_t> streams{0};
  const std::uint64_t number = ++streams;
};

class Event {
public:
  virtual ~Event() = default;
  virtual Status record(Stream &stream) = 0;
  virtual Status synchronize() = 0;
  /// Milliseconds from `earlier` to this event; both must have completed.
  virtual Result<double> millisecondsSince(const Event &earlier) const = 0;
};

class Buffer {
public:
  virtual ~Buffer() = default;
  virtual DeviceAddress address() const = 0;
  virtual std::size_t size() const = 0;
  /// Copies are checked against the size and complete before they return.
  virtual Status copyFromHost(std::size_t offset, std::span<const std::byte> data) = 0;
  virtual Status copyToHost(std::size_t offset, std::span<std::byte> data) const = 0;
  /// Copies in the stream's order, checked against the size.  `data` is left alone until the stream has come so far
  /// (Stream::synchronize, an Event).  On a GPU they return at once where `data` is HostMemory of the device; with any
  /// other memory the driver may make the caller wait, for as long as the work given to the stream before takes, and
  /// inside a graph capture it fails.  The emulator has copied when they return.
  virtual Status copyFromHostAsync(std::size_t offset, std::span<const std::byte> data, Stream &stream) {
    KILN_TRY(stream.synchronize());
    return copyFromHost(offset, data);
  }
  virtual Status copyToHostAsync(std::size_t offset, std::span<std::byte> data, Stream &stream) const {
    KILN_TRY(stream.synchronize());
    return copyToHost(offset, data);
  }
  virtual Status fill(std::byte value) = 0;
  /// As fill, but the bytes do not become written: the emulator still reports reads of those that nobody wrote.
  virtual Status poison(std::byte value) { return fill(value); }
  /// The first size() bytes of `source`, another buffer of the device, in the stream's order (nullptr: the default
  /// stream); a GPU copies by itself, and the host does not wait.
  virtual Status copyFrom(const Buffer &source, Stream *stream = nullptr) {
    if (source.size() < size())
      return Status::invalid("a copy of " + std::to_string(size()) + " bytes from a buffer of " +
                             std::to_string(source.size()) + " bytes");
    if (stream)
      KILN_TRY(stream->synchronize());
    std::vector<std::byte> bytes(size());
    KILN_TRY(source.copyToHost(0, bytes));
    return copyFromHost(0, bytes);
  }
};

/// Memory of the host that a device copies from and to by itself: page-locked on a GPU, ordinary on the emulator.
class HostMemory {
public:
  virtual ~HostMemory() = default;
  virtual std::span<std::byte> bytes() = 0;
};

struct ParameterInfo {
  std::uint32_t offset = 0, size = 0, align = 1; ///< bytes in the packed argument buffer
  std::string type;                              ///< PTX type, "u64", "f32", "b8[128]"
  std::string name;
  bool isPointer = false; ///< declared .ptr (compilers may leave it out)
};

struct KernelInfo {
  std::string name;
  std::vector<ParameterInfo> parameters;
  std::uint32_t parameterBytes = 0;
  std::uint32_t staticSharedBytes = 0;
  std::uint32_t localBytesPerThread = 0;
  std::uint32_t registersPerThread = 0; ///< 0 if unknown
  std::uint32_t maxThreadsPerBlock = 1024;
  Dim3 requiredBlock{0, 0, 0}; ///< .reqntid, zeros if absent
};

struct LaunchConfig {
  Dim3 grid, block;
  /// Blocks of a cluster, of which the grid must be a multiple: up to 8, or 16 where the GPU allows it.  Zeros: as the
  /// kernel declares.
  Dim3 cluster{0, 0, 0};
  std::uint32_t dynamicSharedBytes = 0;
  Stream *stream = nullptr; ///< nullptr: the device's default stream
  /// All blocks are resident at the same time, so that they may wait for each other (grid.sync() of cooperative
  /// groups); a grid that does not fit is refused.
  bool cooperative = false;
};

class Kernel {
public:
  virtual ~Kernel() = default;
  virtual const KernelInfo &info() const = 0;
  virtual Status launch(const LaunchConfig &config, std::span<const std::byte> arguments) = 0;
};

class Module {
public:
  virtual ~Module() = default;
  /// The entry called `name`; a failure lists the entries of the module.
  virtual Result<Kernel *> kernel(std::string_view name) = 0;
  virtual std::vector<std::string> kernelNames() const = 0;
};

/// The access that a finding's own one collides with: who made it, where, and as far as it is known which lanes.
struct OtherAccess {
  Dim3 block{0, 0, 0};
  unsigned warp = 0;
  std::uint32_t lanes = 0; ///< mask
  std::string location;    ///< "file:line" from .loc, empty without line information
  unsigned ptxLine = 0;
  std::string opcode;
};

/// One defect that the emulator's checker saw.  Equal findings (same id and program points) are counted, not repeated.
struct Finding {
  std::string id; ///< "oob.global", "barrier.count", ...: docs/emulator.md lists them
  std::string kernel;
  Dim3 block{0, 0, 0};
  unsigned warp = 0;
  std::uint32_t lanes = 0; ///< mask
  std::string location;    ///< "file:line" from .loc, empty without line information
  unsigned ptxLine = 0;
  std::string opcode;
  std::string message; ///< what happened, with the values
  bool fatal = false;  ///< the launch ended here
  bool note = false;   ///< worth knowing, not a defect
  std::uint64_t count = 1;
  std::uint64_t places = 1;         ///< instructions, or pairs of them, that it stands for (groupFindings)
  std::optional<OtherAccess> other; ///< of races
  std::string toString() const;     ///< one paragraph for a terminal
};

/// For a report, one finding for each defect of the source: those of one id, kernel and pair of source lines (lines of
/// the PTX where it has no others) are counted together, and the first of them stands for all.
std::vector<Finding> groupFindings(std::vector<Finding> findings);

/// What the last launches cost; the emulator fills all of it, a GPU nothing.
struct LaunchStatistics {
  std::uint64_t warpInstructions = 0;
  std::uint64_t threadInstructions = 0;
  double seconds = 0;
};

/// What launches record of their work.
struct Recording {
  bool counters = false;       ///< Device::takeCounters
  bool timeline = false;       ///< Device::takeTimelines: of one block
  Dim3 timelineBlock{0, 0, 0}; ///< which one
  /// Not 0: launches run about so many blocks, spread over the grid, and count those: outputs stay incomplete.  Kernels
  /// whose blocks may see what others did, cooperative launches and schedules with a seed run whole.
  std::uint64_t sampledBlocks = 0;
};

class Device {
public:
  virtual ~Device() = default;
  virtual const DeviceInfo &info() const = 0;
  /// `label` names the buffer in messages.  A size of 0 is allowed.
  virtual Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes, std::string_view label = {}) = 0;
  /// For copies that do not make the host wait (Buffer::copyFromHostAsync).  It is scarce: the system cannot swap it.
  virtual Result<std::unique_ptr<HostMemory>> allocateHost(std::size_t bytes);
  /// A dense tensor with memory of its own, the last dimension fastest: `data` is a vector, array or span of as many
  /// elements, of a C++ type whose element type it gets; with `dtype` floats are rounded to that float.  Definitions
  /// are in kiln/OwnedTensor.h; `label` names the memory in messages.
  template <typename Range> Result<OwnedTensor> tensor(Extents shape, const Range &data, std::string_view label = {});
  template <typename Range>
  Result<OwnedTensor> tensor(Extents shape, DType dtype, const Range &data, std::string_view label = {});
  /// The same without contents (the emulator reports reads of them), and with zeros.
  Result<OwnedTensor> empty(Extents shape, DType dtype, std::string_view label = {});
  Result<OwnedTensor> zeros(Extents shape, DType dtype, std::string_view label = {});

  virtual Result<std::unique_ptr<Stream>> createStream() = 0;
  /// A stream that somebody else made and keeps (a CUstream: of PyTorch, of a CUDA program), not destroyed with the
  /// result; it must outlive it.  A stream of another GPU is refused.  nullptr is the default stream, CUDA's as well as
  /// the emulator's, which has no native streams and refuses all others.
  virtual Result<std::unique_ptr<Stream>> streamOf(void *native) {
    return Status(StatusCode::Unsupported, info().name + " takes no streams of others", "use createStream()");
  }
  /// The native context (CUcontext) that everything here lives in, nullptr on the emulator.
  virtual void *native() const { return nullptr; }
  virtual Result<std::unique_ptr<Event>> createEvent() = 0;
  virtual Stream &defaultStream() = 0;
  /// PTX text; `fileName` names it in messages.
  virtual Result<std::unique_ptr<Module>> loadPtx(std::string_view text, std::string_view fileName = "<ptx>") = 0;
  /// A cubin.  The emulator refuses it: it runs PTX.
  virtual Result<std::unique_ptr<Module>> loadCubin(std::span<const std::byte> image) = 0;
  /// The bytes of a tensor map of this device, for a kernel's 128-byte parameter.  Refuses recipes that break a rule
  /// (checkTensorMap) and targets without tensor copies; whether the box stays inside a buffer is seen when it is used.
  virtual Result<TensorMap> encodeTensorMap(const TensorMapRecipe &) {
    return Status(StatusCode::Unsupported, info().name + " makes no tensor maps");
  }
  virtual std::vector<Finding> takeFindings() { return {}; }
  virtual LaunchStatistics takeStatistics() { return {}; }
  /// What the launches from now on record.  Only the emulator can; a launch that records nothing costs nothing.
  virtual Status record(const Recording &what) {
    if (!what.counters && !what.timeline && !what.sampledBlocks)
      return {};
    return Status(StatusCode::Unsupported, info().name + " cannot count or draw what a kernel does",
                  "the emulator can: use a device emulator:TARGET");
  }
  /// Of the launches since the last call that counted and came to their end.
  virtual std::vector<LaunchCounters> takeCounters() { return {}; }
  /// Of the launches since the last call that drew a block; also of one that ended early, up to there.
  virtual std::vector<Timeline> takeTimelines() { return {}; }
};

/// In which order the emulator runs what a GPU runs at the same time.
enum class Schedule : std::uint8_t {
  InOrder,     ///< warps and blocks in their order, each as far as it gets; blocks over all host threads
  Random,      ///< any warp of any resident block may be next at every instruction that others could notice
  Adversarial, ///< one warp starved or favoured, reversed order, a switch at every such instruction, ...
};
/// "in-order", "random", "adversarial".
std::string_view scheduleName(Schedule schedule);
Result<Schedule> parseSchedule(std::string_view name);

/// Options of the emulator; a GPU ignores them.
struct EmulatorOptions {
  bool checks = true;       ///< uninitialised reads and everything else that costs time; bounds are always checked
  bool strictProxy = false; ///< also fences that compilers leave out: proxy.copy_async, proxy.overwrite
  unsigned hostThreads = 0; ///< 0: one a core.  Results do not depend on it unless blocks race with plain accesses
  std::uint64_t instructionBudget = 0; ///< warp instructions of one launch; 0: 2^40
  double secondsBudget = 0;            ///< wall-clock seconds of one launch; 0: none
  Schedule schedule = Schedule::InOrder;
  std::uint64_t seed =
      0; ///< of the schedules that are not in order: they are a function of it (and of the launches before)
  MatrixMode mma = MatrixMode::Exact;
  bool firstNan = false;          ///< report where NaN and infinities are born (finding nan.born); slow
  std::string tileDirectory = {}; ///< where tiles go that a kernel dumps; empty: they are printed
  std::string cpuLevel = {};      ///< "x86-64-v2", "x86-64-v3", "x86-64-v4", "baseline"; empty: the best of this CPU
};

/// "cuda", "cuda:N", "emulator:TARGET", "emulator" (sm_90a), or "" / "auto": the first GPU, else the emulator.
Result<std::unique_ptr<Device>> openDevice(std::string_view name, const EmulatorOptions &options = {});

/// A device over a CUDA context that somebody else made and keeps (a CUcontext; nullptr: the one that is current on the
/// calling thread).  It is not destroyed with the device, and must outlive it.  The device's name is that of the
/// context's GPU.
Result<std::unique_ptr<Device>> deviceOf(void *nativeContext);

/// What this machine offers: every GPU that the driver lists and every emulator target.  `notes` says why there is no
/// GPU, in one line each.
std::vector<DeviceInfo> listDevices(std::vector<std::string> &notes, const EmulatorOptions &emulator = {});

} // namespace kiln

#endif // KILN_DEVICE_H
