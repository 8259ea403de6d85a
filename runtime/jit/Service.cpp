#include "runtime/jit/Service.h"

#include "runtime/cache/Pack.h"
#include "runtime/cache/remote/RedisLayer.h"
#include "runtime/cache/SharedFolder.h"
#include "runtime/jit/CompileRequest.h"
#include "runtime/jit/FirstCall.h"
#include "support/Text.h"

namespace kiln {

Result<std::shared_ptr<JitService>> JitService::create(Device &device, JitOptions options) {
  KILN_ASSIGN(Log log, Log::parse(options.knobs.log, options.log));
  KILN_ASSIGN(std::string codeTarget, chooseCodeTarget(device.info(), options.codeTarget));
  options.explainMisses |= log.wants(LogTopic::Cache, LogLevel::Info);
  std::string folder;
  if (options.diskCache) {
    Result<std::string> found = cacheDirectory(options.knobs);
    if (found)
      folder = *found;
    else
      log.write(LogTopic::Cache, LogLevel::Error, "no cache on disk: " + found.status().toString());
  }
  return std::shared_ptr<JitService>(
      new JitService(device, std::move(options), std::move(log), std::move(codeTarget), folder));
}

/// Null, with a line in the log that begins with `without`, where there can be none.
static std::shared_ptr<cache::KernelCache> openCache(const std::string &folder, std::uint64_t maxBytes, const Log &log,
                                                     const char *without = "no cache on disk") {
  if (folder.empty())
    return nullptr;
  cache::CacheOptions how;
  how.directory = folder;
  how.maxBytes = maxBytes;
  Result<std::unique_ptr<cache::KernelCache>> made = cache::KernelCache::open(std::move(how));
  if (made)
    return std::shared_ptr<cache::KernelCache>(std::move(*made));
  log.write(LogTopic::Cache, LogLevel::Error, std::string(without) + ": " + made.status().toString());
  return nullptr;
}

/// What files hold, by their stamps: small entries in a folder of their own.
static std::shared_ptr<cache::KernelCache> openMemo(const std::shared_ptr<cache::KernelCache> &disk, const Log &log) {
  constexpr std::uint64_t memoBytes = std::uint64_t(1) << 20;
  return disk ? openCache(disk->directory() + "/identities", memoBytes, log,
                          "the cache on disk is used, but hashes of files are not remembered in it")
              : nullptr;
}

/// A server that cannot be used for want of a secret, say, is left out with a line in the log.
static Status openServer(const Knobs &knobs, const Log &log, std::vector<std::unique_ptr<cache::Layer>> &out) {
  cache::RedisOptions how;
  KILN_ASSIGN(how.address, cache::RedisAddress::parse(knobs.cacheServer));
  KILN_ASSIGN(how.secret, cache::readSecret(knobs.cacheSecret));
  KILN_ASSIGN(how.library, cache::openRedisLibrary());
  how.say = [log](const std::string &line) { log.write(LogTopic::Cache, LogLevel::Error, line); };
  KILN_ASSIGN(std::unique_ptr<cache::RedisLayer> made, cache::redisLayer(std::move(how)));
  out.push_back(std::move(made));
  return {};
}

static std::vector<std::unique_ptr<cache::Layer>> openLayers(const Knobs &knobs, const Log &log) {
  std::vector<std::unique_ptr<cache::Layer>> out;
  for (const std::string &path : knobs.cacheShared)
    out.push_back(path.ends_with(cache::packSuffix) ? cache::packLayer(path) : cache::sharedFolder(path));
  if (!knobs.cacheServer.empty())
    if (const Status s = openServer(knobs, log, out); !s.ok())
      log.write(LogTopic::Cache, LogLevel::Error, "the cache's server is not used: " + s.toString());
  return out;
}

JitService::JitService(Device &device, JitOptions given, Log logValue, std::string target,
                       const std::string &cacheFolder)
    : device(device), options(std::move(given)), log(std::move(logValue)), codeTarget(std::move(target)),
      tracing(log.wants(LogTopic::Launch, LogLevel::Debug)), blocking(options.knobs.launchBlocking),
      failing(options.knobs.checks == knob::Checks::Fail && device.info().kind == DeviceKind::Emulator),
      workspaces(device), arch(assemblyArch(device.info())),
      lineInfo(options.knobs.lineInfo == knob::Switch::On ||
               (options.knobs.lineInfo == knob::Switch::Auto && device.info().kind == DeviceKind::Emulator)),
      disk(openCache(cacheFolder, options.knobs.cacheMaxBytes, log)), layers(openLayers(options.knobs, log)),
      hashes(openMemo(disk, log)),
      assembler(device.info(), AssemblerSearch{options.knobs.nvJitLink, options.knobs.ptxas}),
      compiler(options.compiler),
      generation(options.knobs.tuned && disk && options.knobs.tuneBackground != knob::Number() ? 1 : 0),
      queue(std::make_unique<CompileQueue>(options.backgroundThreads)), tuner(generation ? makeTuner() : nullptr) {}

Status JitService::afterFork() const {
  return {StatusCode::Unsupported,
          "this process was forked from the one that made the Jit for " + device.info().name +
              "; neither its threads nor a GPU context exist here",
          "open the device and make the Jit in the child, or start the child with exec"};
}

JitCounters JitService::counters() const {
  return {compiles, diskHits, sharedHits, diskMisses, loads, failures};
}

Result<JitKernel *> JitService::kernel(const KernelSource &source) {
  if (forkGuard.forked()) // a thread that does not exist here may have held the mutex
    return afterFork();
  const std::lock_guard lock(mutex);
  const auto [first, last] = kernels.equal_range(source.name);
  for (auto i = first; i != last; ++i)
    if (i->second->source() == source)
      return i->second.get();
  KILN_ASSIGN(ArgumentLayout layout, ArgumentLayout::create(source));
  std::unique_ptr<JitKernel::Implementation> made(
      new JitKernel::Implementation{*this, source, std::move(layout), {}, {}});
  std::unique_ptr<JitKernel> kernel(new JitKernel(std::move(made)));
  return kernels.emplace(source.name, std::move(kernel))->second.get();
}

Result<std::shared_ptr<CompilerLibrary>> JitService::compilerLibrary() {
  const std::lock_guard lock(mutex);
  if (!compiler) {
    KILN_ASSIGN(compiler, CompilerLibrary::find(options.knobs.compiler));
  }
  return compiler;
}

Result<KeyParts> JitService::keyParts(const KernelSource &source, std::string classes) {
  KeyParts parts;
  parts.source = &source;
  parts.classes = std::move(classes);
  parts.codeTarget = codeTarget;
  parts.assemblyArch = arch;
  parts.assembler = assembler.identity(hashes);
  parts.lineInfo = lineInfo;
  KILN_ASSIGN(const std::shared_ptr<CompilerLibrary> library, compilerLibrary());
  KILN_ASSIGN(parts.compiler, library->identity(hashes));
  KILN_ASSIGN(const PluginState plugins, pluginState());
  parts.plugins = plugins.hashes;
  parts.passes = options.knobs.passes;
  parts.stress = options.knobs.stress;
  KILN_ASSIGN(parts.overrides, readOverrides(options.knobs, source.name, codeTarget));
  return parts;
}

Result<JitService::PluginState> JitService::pluginState() const {
  PluginState out;
  KILN_ASSIGN(const std::vector<std::string> files, pluginFiles(options.knobs));
  for (const std::string &plugin : files) {
    Result<FileHashes::Hashed> hashed = hashes.hash(plugin);
    if (!hashed)
      return Status(hashed.status().code(), "pass plugin: " + hashed.status().message(),
                    "KILN_PLUGINS names files that kiln_add_pass_plugin builds");
    out.hashes += (out.hashes.empty() ? "" : ", ") + hashed->hash;
    out.stamps += hashed->stamp.text + "; ";
  }
  return out;
}

Status JitService::checkFirstCall(const JitKernel::Implementation &kernel, const ClassKey &classKey,
                                  Stream *stream) const {
  if (!streamOf(stream).isCapturing())
    return {};
  return {StatusCode::NotReady,
          "kernel '" + kernel.source.name + "' [" + kernel.layout.variantText(classKey) +
              "] was not called before, and it cannot be loaded inside a graph capture",
          "call it once, or prepare() it, before the capture begins"};
}

Result<const LoadedKernel *> JitService::firstCall(JitKernel::Implementation &kernel, const ClassKey &classKey,
                                                   Requester by) {
  if (forkGuard.forked())
    return afterFork();
  if (!by.background)
    KILN_TRY(checkFirstCall(kernel, classKey, by.stream));
  const std::string name = "kernel '" + kernel.source.name + "'";
  const std::string classes = specializationText(kernel.layout.facts(classKey), classKey.withoutMaps);
  constexpr unsigned attempts = 4;
  for (unsigned attempt = 0; attempt < attempts; ++attempt) {
    const auto start = FirstCall::Clock::now();
    Result<KeyParts> parts = keyParts(kernel.source, classes);
    if (!parts) {
      ++failures;
      return parts.takeStatus().withContext(name);
    }
    const cache::KeyText key = kernelKey(*parts);
    const std::string text = key.serialise();
    std::shared_ptr<Flight> flight;
    {
      std::unique_lock lock(mutex);
      if (const auto found = loaded.find(text); found != loaded.end()) {
        kernel.variants.insert(classKey, found->second.get());
        return found->second.get();
      }
      if (const auto found = flights.find(text); found != flights.end()) {
        flight = found->second;
        flight->done.wait(lock, [&] { return flight->finished; });
        if (!flight->status.ok())
          return flight->status;
        if (!flight->loaded)
          continue; // the key was outdated
        kernel.variants.insert(classKey, flight->loaded);
        return flight->loaded;
      }
      flight = std::make_shared<Flight>();
      flights.emplace(text, flight);
    }
    // Whatever happens, those that wait for the flight go on: callbacks of the caller's may throw, and so may memory.
    Result<std::optional<std::unique_ptr<LoadedKernel>>> made = [&]() -> decltype(made) {
      try {
        decltype(made) out = FirstCall(*this, kernel, classKey, key, *parts, start).run();
        if (out && *out && options.onFirstCall)
          options.onFirstCall(***out);
        return out;
      } catch (const std::exception &e) {
        return Status(StatusCode::Internal, name + ": its first call threw: " + e.what());
      } catch (...) {
        return Status(StatusCode::Internal, name + ": its first call threw");
      }
    }();
    const std::lock_guard lock(mutex);
    flights.erase(text);
    flight->finished = true;
    flight->done.notify_all();
    if (!made) {
      ++failures;
      flight->status = made.status();
      return made.takeStatus();
    }
    if (!*made)
      continue;
    flight->loaded = (**made).get();
    loaded.emplace(text, std::move(**made));
    kernel.variants.insert(classKey, flight->loaded);
    return flight->loaded;
  }
  return Status(StatusCode::Internal,
                name + ": the compiler, a plugin or the assembler changed at each of " + std::to_string(attempts) +
                    " attempts to compile it",
                "wait until they are installed");
}

Result<const LoadedKernel *> JitService::compile(const KernelSource &source, std::span<const ArgumentFact> facts) {
  KILN_ASSIGN(JitKernel * kernel, this->kernel(source));
  JitKernel::Implementation &self = *kernel->self;
  KILN_ASSIGN(const ClassKey key, self.layout.keyOf(facts, source.name));
  if (forkGuard.forked())
    return afterFork();
  if (const LoadedKernel *known = self.variants.find(key))
    return known;
  return firstCall(self, key, {});
}

CompileFuture JitService::compileAsync(const KernelSource &source, std::span<const ArgumentFact> facts) {
  const Result<JitKernel *> kernel = this->kernel(source);
  if (!kernel)
    return CompileFuture(kernel.status());
  JitKernel::Implementation &self = *(*kernel)->self;
  const Result<ClassKey> key = self.layout.keyOf(facts, source.name);
  if (!key)
    return CompileFuture(key.status());
  if (forkGuard.forked())
    return CompileFuture(afterFork());
  if (self.variants.find(*key))
    return {};
  if (Status s = checkFirstCall(self, *key, nullptr); !s.ok())
    return CompileFuture(std::move(s));
  return queue->add("kernel '" + source.name + "'",
                    [this, &self, key = *key] { return firstCall(self, key, {.background = true}).status(); });
}

JitService::~JitService() {
  if (forkGuard.forked()) { // their threads are not here
    (void)queue.release();
    (void)tuner.release();
  }
}

} // namespace kiln
