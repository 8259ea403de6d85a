//===- Service.h - First calls: memory, disk, compile, load ---------------===//
//
// What a Jit and its kernels share.  `firstCall` serves a class that a kernel's VariantTable does not hold: one thread
// a key does the work (disk, else compile under the cache's lock, else assemble, load), the others wait for its result.
// A failure goes to everyone who waits, and is forgotten: the next call tries again.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_SERVICE_H
#define KILN_RUNTIME_JIT_SERVICE_H

#include "kiln/Jit.h"
#include "runtime/cache/KernelCache.h"
#include "runtime/cache/Layer.h"
#include "runtime/jit/AssemblerChoice.h"
#include "runtime/jit/BackgroundTuner.h"
#include "runtime/jit/CompileQueue.h"
#include "runtime/jit/CompilerLibrary.h"
#include "runtime/jit/ForkGuard.h"
#include "runtime/jit/KernelKey.h"
#include "runtime/jit/Log.h"
#include "runtime/jit/Metadata.h"
#include "runtime/jit/NamedBinding.h"
#include "runtime/jit/VariantTable.h"
#include "runtime/jit/WorkspacePool.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <unordered_map>

namespace kiln {

/// Who asks for code: a call on a stream, which is refused while that captures, or work in the background, which began
/// before and may go on.
struct Requester {
  Stream *stream = nullptr; ///< nullptr: the default stream
  bool background = false;
};

/// A LaunchConfig's worth of constants and checks, read by every launch.
struct JitKernel::Implementation {
  JitService &service;
  KernelSource source;
  ArgumentLayout layout;
  VariantTable variants;
  BindingTable bindings;
  std::atomic<bool> saidWithoutMaps = false;

  Result<const LoadedKernel *> prepare(ArgumentView arguments, Requester by);
  /// What `prepare` would give without making anything; nullptr: something has to be made, for the class `key`.
  Result<const LoadedKernel *> known(ArgumentView arguments, ClassKey &key);
  /// In the place of `with`, of class `key`, whose maps cannot be made of these arguments.
  Result<const LoadedKernel *> withoutMaps(const LoadedKernel &with, ClassKey key, const std::byte *arguments,
                                           Requester by, MissHandler *onMiss);
};

class JitService {
public:
  ~JitService();
  static Result<std::shared_ptr<JitService>> create(Device &device, JitOptions options);

  Result<JitKernel *> kernel(const KernelSource &source);

  /// Registers the variant with the kernel.
  Result<const LoadedKernel *> firstCall(JitKernel::Implementation &kernel, const ClassKey &classKey, Requester by);
  /// NotReady if the stream captures.
  Status checkFirstCall(const JitKernel::Implementation &kernel, const ClassKey &classKey, Stream *stream) const;

  Result<const LoadedKernel *> compile(const KernelSource &source, std::span<const ArgumentFact> facts);
  CompileFuture compileAsync(const KernelSource &source, std::span<const ArgumentFact> facts);
  CompileQueue &background() { return *queue; }

  std::optional<TunedValues> tuned(const TunedQuestion &question);
  Status keepTuned(const TunedQuestion &question, const TunedValues &values, const TunedOrigin &origin);

  /// In use only while something is tuned in the background.
  std::uint64_t tunedGeneration() const { return generation.load(std::memory_order_acquire); }
  void tuneInBackground(const TunedQuestion &question, std::string words);
  void recordCall(const std::string &words);

  Status afterFork() const;
  Stream &streamOf(Stream *stream) const { return stream ? *stream : device.defaultStream(); }
  JitCounters counters() const;

  Device &device;
  const JitOptions options;
  const Log log;
  const std::string codeTarget;
  const ForkGuard forkGuard;
  const bool tracing;  ///< launches are logged
  const bool blocking; ///< KILN_LAUNCH_BLOCKING
  const bool failing;  ///< KILN_CHECKS=fail, on an emulator
  WorkspacePool workspaces;

private:
  friend class FirstCall;
  JitService(Device &device, JitOptions options, Log log, std::string codeTarget, const std::string &cacheFolder);

  /// One first call that is in flight.
  struct Flight {
    std::condition_variable done;
    bool finished = false;
    Status status;
    const LoadedKernel *loaded = nullptr;
  };

  /// The plugins' files as they are now.
  struct PluginState {
    std::string hashes, stamps;
    bool operator==(const PluginState &) const = default;
  };

  std::optional<TunedValues> answerTo(const TunedQuestion &question);
  Result<cache::KeyText> tunedKey(const TunedQuestion &question);
  void tuneNow(const BackgroundTuner::Job &job, const std::function<Status()> &sweep,
               const std::atomic<bool> &isEnding);
  /// `kiln`, where the compiler is, and settings with which it answers this Jit's questions.
  Result<BackgroundTuner::Program> tuningProgram();
  std::unique_ptr<BackgroundTuner> makeTuner();
  Result<KeyParts> keyParts(const KernelSource &source, std::string classes);
  Result<PluginState> pluginState() const;
  Result<std::shared_ptr<CompilerLibrary>> compilerLibrary();

  const std::string arch;
  const bool lineInfo;
  std::shared_ptr<cache::KernelCache> disk;                ///< null: none
  const std::vector<std::unique_ptr<cache::Layer>> layers; ///< asked after `disk`, in this order
  FileHashes hashes;
  AssemblerChoice assembler;

  mutable std::mutex mutex; ///< everything below
  std::shared_ptr<CompilerLibrary> compiler;
  std::unordered_multimap<std::string, std::unique_ptr<JitKernel>> kernels;    ///< by name
  std::unordered_map<std::string, std::unique_ptr<const LoadedKernel>> loaded; ///< by whole key
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights;            ///< by whole key
  std::atomic<std::uint64_t> compiles{0}, diskHits{0}, sharedHits{0}, diskMisses{0}, loads{0}, failures{0};
  std::atomic<std::uint64_t> generation; ///< 0: nothing is tuned in the background
  // Last: they end before the rest goes.
  std::unique_ptr<CompileQueue> queue;
  std::unique_ptr<BackgroundTuner> tuner; ///< null: nothing is tuned in the background
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_SERVICE_H
