//===- Jit.h - Kernels compiled at their first call -----------------------===//
//
// A Jit belongs to one device.  `kernel` registers a program and gives a JitKernel; its `launch` computes the class of
// the arguments, finds the function compiled for that class and launches it.  A class seen for the first time is looked
// up on disk and else compiled: once a key, whatever the number of threads and processes that ask.
//
//   auto jit = kiln::Jit::create(*device);
//   auto add = (*jit)->kernel(source);
//   kiln::Status s = (*add)->launch({blocks}, stream, x, y, out, n);
//
// Rules:
//  - Nothing throws.  Any thread may call anything.  JitKernels and LoadedKernels live as long as their Jit.
//  - A launch of a known class takes no lock, allocates nothing and does not synchronise.
//  - The first call of a class inside a graph capture is refused with StatusCode::NotReady; the capture stays valid.
//  - In a child process after fork every call is refused: threads and GPU contexts do not survive it.
//  - Facts that the code relies on are checked at each launch: a kernel never runs on arguments that it was not
//    compiled for.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_JIT_H
#define KILN_JIT_H

#include "kiln/Device.h"
#include "kiln/Future.h"
#include "kiln/KernelSource.h"
#include "kiln/Knobs.h"
#include "kiln/LaunchArguments.h"
#include "kiln/NamedArguments.h"
#include "kiln/Tuned.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace kiln {

class CompilerLibrary;
class FirstCall;
class HiddenParameters;
class JitKernel;
class JitService;
class LoadedKernel;

struct JitOptions {
  Knobs knobs;            ///< `fromEnvironment` reads the environment; a JitOptions made by hand does not
  std::string codeTarget; ///< what the code may use, "sm_80"; empty: the device's own target
  bool diskCache = true;
  unsigned backgroundThreads = 0; ///< of prepareAsync, at most; 0: the cores, at most 16
  bool explainMisses =
      false; ///< reports say how a missing key differs from the nearest entry; always with KILN_LOG=cache=info
  std::function<void(std::string_view line)> log; ///< where log lines go; empty: standard error
  /// Told of every kernel that this Jit loads, by the thread that served its first call.
  std::function<void(const LoadedKernel &loaded)> onFirstCall;
  /// Told of what operations ask for before they choose, whether or not anything is kept.
  std::function<void(const TunedQuestion &question)> onTunedQuestion;
  std::shared_ptr<CompilerLibrary> compiler; ///< empty: found by the knobs, opened at the first miss

  static Result<JitOptions> fromEnvironment();
};

/// What is known of one argument's value: its class.
struct ArgumentFact {
  enum class Kind : std::uint8_t { Nothing, Divisible, Equals } kind = Kind::Nothing;
  /// Equals: this.  Divisible: by this, in bytes of a pointer, in elements of a stride.
  std::int64_t value = 0;
  bool operator==(const ArgumentFact &) const = default;

  static ArgumentFact divisible(std::int64_t by) { return {Kind::Divisible, by}; }
  static ArgumentFact equals(std::int64_t to) { return {Kind::Equals, to}; }
};

/// Where the code of a first call came from, and what that cost.
struct FirstCallReport {
  /// Shared: a folder or a server that others fill, too.
  enum class Source : std::uint8_t { Memory, Disk, Shared, Compiled } source = Source::Compiled;
  std::string reason; ///< of a compile, in a line: "no entry", or which fields of the key differ from the nearest entry
  std::string explanation; ///< the same with the texts that differ, a line a field; empty if no entry is near
  struct Stage {
    std::string name; ///< "key", "disk lookup", "compile: llvm", "assemble", "load", ...
    double milliseconds = 0;
  };
  std::vector<Stage> stages; ///< in the order in which they ran; "compile: X" are parts of "compile"
  double milliseconds = 0;   ///< everything
  std::string toString() const;
};

/// A fact that the compiled code relies on.
struct Guard {
  std::uint32_t argument = 0, offset = 0, bytes = 0; ///< where the value lies in the packed arguments
  enum class Kind : std::uint8_t { Divisibility, Equals } kind = Kind::Divisibility; ///< by a power of two
  std::int64_t value = 0;
};

/// One kernel compiled for one class of arguments, loaded on the device.  Immutable.
class LoadedKernel {
public:
  const std::string &name() const { return kernelName; }
  /// "x/16 y/16 stride=1": the class.
  const std::string &variant() const { return variantText; }
  Kernel &function() const { return *entry; }
  unsigned threads() const { return blockThreads; }
  std::uint32_t dynamicSharedBytes() const { return dynamicShared; }
  /// Blocks of a cluster, of which a grid must be a multiple; zeros: the kernel has no clusters.
  Dim3 cluster() const { return blocksOfCluster; }
  std::span<const Guard> guards() const { return guardList; }
  bool reproducible() const { return isReproducible; }
  /// The compiler's JSON metadata.
  const std::string &metadata() const { return metadataText; }
  const FirstCallReport &report() const { return firstCall; }
  /// The whole key, as on disk.
  const std::string &key() const { return keyText; }

private:
  friend class FirstCall;
  friend class JitKernel;
  std::string kernelName, variantText, metadataText, keyText;
  std::unique_ptr<Module> module;
  Kernel *entry = nullptr;
  unsigned blockThreads = 0;
  std::uint32_t dynamicShared = 0;
  Dim3 blocksOfCluster{0, 0, 0};
  std::shared_ptr<const HiddenParameters> hidden; ///< null: it has no parameters but its arguments
  bool mapsByPasses = false; ///< for arguments that these cannot be made of there is another variant
  std::vector<Guard> guardList;
  bool isReproducible = true;
  FirstCallReport firstCall;
};

struct JitCounters {
  std::uint64_t compiles = 0;   ///< calls of the compiler
  std::uint64_t diskHits = 0;   ///< entries used
  std::uint64_t sharedHits = 0; ///< entries used of shared folders and of the cache's server
  std::uint64_t diskMisses = 0; ///< lookups without an entry; damaged ones too
  std::uint64_t loads = 0;      ///< modules loaded
  std::uint64_t failures = 0;   ///< first calls that failed
};

class Jit {
public:
  /// With the knobs of the environment.
  static Result<std::unique_ptr<Jit>> create(Device &device);
  static Result<std::unique_ptr<Jit>> create(Device &device, JitOptions options);
  ~Jit();

  Device &device() const;
  const std::string &codeTarget() const;

  /// Registers a kernel; compiles nothing.  Equal sources give the same object.
  Result<JitKernel *> kernel(const KernelSource &source);

  /// The function for a class, compiled if need be: one fact an argument, or none for "nothing is known".
  Result<const LoadedKernel *> compile(const KernelSource &source, std::span<const ArgumentFact> facts = {});
  /// The same without waiting (Future.h).
  CompileFuture compileAsync(const KernelSource &source, std::span<const ArgumentFact> facts = {});

  /// A workspace for work on `stream`, kept and reused from call to call: see Operation.h.
  Result<DeviceAddress> workspace(std::size_t bytes, Stream *stream);

  /// Whether operations are to ask for tuned values at all (KILN_TUNED).
  bool asksForTuned() const;
  /// What a sweep kept; reads the cache, so operations remember the answer.
  std::optional<TunedValues> tuned(const TunedQuestion &question);
  /// For later calls and processes, in the place of what was kept before.  Operations of this Jit that have asked
  /// already do not see it.
  Status keepTuned(const TunedQuestion &question, const TunedValues &values, const TunedOrigin &origin);

  /// 0: nothing is tuned in the background (KILN_TUNE_BACKGROUND).  Else from 1 on, one more after each sweep: what
  /// had no answer may have one.
  std::uint64_t tunedGeneration() const;
  /// Has a sweep of the call begun, once a question, unless another process keeps an answer first.  Does not wait.
  /// `words`: the call, as after `kiln bench`.
  void tuneInBackground(const TunedQuestion &question, std::string words);

  /// Whether calls are written to a list (KILN_RECORD_CALLS).
  bool recordsCalls() const;
  /// Adds a call, in the words after `kiln bench`, unless the list has it.
  void recordCall(const std::string &words);

  JitCounters counters() const;

private:
  friend class JitKernel;
  explicit Jit(std::shared_ptr<JitService> service);
  std::shared_ptr<JitService> service;
};

/// Told by a launch that finds no code for its class of arguments, before it has the code made.
class MissHandler {
public:
  virtual void missed() = 0;

protected:
  ~MissHandler() = default;
};

class JitKernel {
public:
  ~JitKernel();
  JitKernel(const JitKernel &) = delete;
  JitKernel &operator=(const JitKernel &) = delete;

  const KernelSource &source() const;

  /// nullptr as stream: the device's default stream.  Arguments: integers, floats, Buffers, Tensors, device addresses.
  template <typename... Args> Status launch(Dim3 grid, Stream *stream, const Args &...args) {
    const ArgumentPack<Args...> pack(args...);
    return launch(grid, stream, pack.view());
  }
  /// By name: `named<"x">(x)`; tensors whole (NamedArguments.h).
  template <ArgumentName... names, typename... Args>
    requires(sizeof...(names) > 0)
  Status launch(Dim3 grid, Stream *stream, const NamedArgument<names, Args> &...arguments) {
    const GivenArgument values[] = {detail::given(arguments.value)...};
    return launch(grid, stream, GivenArguments{detail::NamesOf<names...>::template list<Args...>, values});
  }
  Status launch(Dim3 grid, Stream *stream, const GivenArguments &arguments, MissHandler *onMiss = nullptr);
  Status launch(Dim3 grid, Stream *stream, const LaunchArguments &arguments) {
    return launch(grid, stream, arguments.view());
  }
  Status launch(Dim3 grid, Stream *stream, ArgumentView arguments, MissHandler *onMiss = nullptr);

  /// What `launch` would run, compiled if need be, not launched.
  template <ArgumentName... names, typename... Args>
    requires(sizeof...(names) > 0)
  Result<const LoadedKernel *> prepare(Stream *stream, const NamedArgument<names, Args> &...arguments) {
    const GivenArgument values[] = {detail::given(arguments.value)...};
    return prepare(GivenArguments{detail::NamesOf<names...>::template list<Args...>, values}, stream);
  }
  Result<const LoadedKernel *> prepare(const GivenArguments &arguments, Stream *stream = nullptr);
  Result<const LoadedKernel *> prepare(ArgumentView arguments, Stream *stream = nullptr);

  /// `prepare` without waiting (Future.h).  Ready at once if the code is there, or the arguments are refused; these are
  /// copied, the tensors' memory is not read.
  template <ArgumentName... names, typename... Args>
    requires(sizeof...(names) > 0)
  CompileFuture prepareAsync(Stream *stream, const NamedArgument<names, Args> &...arguments) {
    const GivenArgument values[] = {detail::given(arguments.value)...};
    return prepareAsync(GivenArguments{detail::NamesOf<names...>::template list<Args...>, values}, stream);
  }
  CompileFuture prepareAsync(const GivenArguments &arguments, Stream *stream = nullptr);
  CompileFuture prepareAsync(ArgumentView arguments, Stream *stream = nullptr);

private:
  friend class FirstCall;
  friend class JitService;
  struct Implementation;
  explicit JitKernel(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> self;
};

} // namespace kiln

#endif // KILN_JIT_H
