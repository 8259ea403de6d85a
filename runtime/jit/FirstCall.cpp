#include "runtime/jit/FirstCall.h"

#include "runtime/jit/CompileRequest.h"
#include "support/Text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <future>
#include <system_error>

namespace kiln {

/// How long one process waits for another that compiles the same key; then it compiles as well.
static constexpr std::chrono::minutes compilePatience{5};

static double millisecondsSince(FirstCall::Clock::time_point then) {
  return std::chrono::duration<double, std::milli>(FirstCall::Clock::now() - then).count();
}

FirstCall::FirstCall(JitService &service, const JitKernel::Implementation &kernel, const ClassKey &classKey,
                     const cache::KeyText &key, const KeyParts &parts, Clock::time_point start)
    : service(service), kernel(kernel), key(key), parts(parts), start(start),
      variant(kernel.layout.variantText(classKey)) {
  stage("key", start);
}

void FirstCall::stage(std::string name, Clock::time_point since) {
  report.stages.push_back({std::move(name), millisecondsSince(since)});
}

void FirstCall::say(LogTopic topic, LogLevel level, const std::string &text) const {
  if (service.log.wants(topic, level))
    service.log.write(topic, level, kernel.source.name + " [" + variant + "] " + text);
}

void FirstCall::explainMiss(cache::MissReason why) {
  report.reason = std::string(cache::missReasonText(why));
  if (why != cache::MissReason::Absent || !service.options.explainMisses)
    return;
  const auto since = Clock::now();
  if (const Result<cache::Explanation> e = service.disk->explain(key); e && !e->nearest.empty()) {
    std::vector<std::string> fields;
    for (const cache::FieldDifference &d : e->differences) {
      fields.push_back(d.field.empty() ? "the order of its fields" : d.field);
      report.explanation += (report.explanation.empty() ? "" : "\n") + (d.field.empty() ? "" : d.field + ": ") + d.text;
    }
    if (std::find(fields.begin(), fields.end(), "kernel") != fields.end())
      report.reason += "; none of the " + std::to_string(e->entries) + " in the cache is of this kernel";
    else
      report.reason += "; the nearest of " + std::to_string(e->entries) + " differs in " + join(fields);
  }
  stage("explain", since);
}

Result<std::unique_ptr<LoadedKernel>> FirstCall::fromDisk(bool first, bool &present) {
  const auto since = Clock::now();
  cache::MissReason why = cache::MissReason::None;
  Result<std::optional<cache::Entry>> entry = service.disk->lookup(key, &why);
  stage(first ? "disk lookup" : "second disk lookup", since);
  present = entry && *entry;
  if (!present) {
    if (!first)
      return std::unique_ptr<LoadedKernel>();
    ++service.diskMisses;
    if (!entry)
      say(LogTopic::Cache, LogLevel::Info, "lookup failed: " + entry.status().toString());
    explainMiss(why);
    say(LogTopic::Cache, LogLevel::Info, "miss: " + report.reason);
    if (!report.explanation.empty())
      say(LogTopic::Cache, LogLevel::Debug, "nearest entry:\n" + report.explanation);
    return std::unique_ptr<LoadedKernel>();
  }
  Result<std::unique_ptr<LoadedKernel>> out = load(**entry, FirstCallReport::Source::Disk);
  if (out) {
    ++service.diskHits;
    say(LogTopic::Cache, LogLevel::Info, "hit");
  } else {
    // The entry is whole, but it does not load here and now: made anew, and replaced, if that helps.
    ++service.diskMisses;
    report.reason = "the entry does not load: " + out.status().message();
    say(LogTopic::Cache, LogLevel::Info, report.reason);
  }
  return out;
}

std::unique_ptr<LoadedKernel> FirstCall::fromLayers(bool store) {
  for (const std::unique_ptr<cache::Layer> &layer : service.layers) {
    const auto since = Clock::now();
    Result<std::optional<cache::Entry>> entry = layer->lookup(key);
    stage("lookup in " + layer->name(), since);
    if (!entry)
      say(LogTopic::Cache, LogLevel::Info, "not taken from " + layer->name() + ": " + entry.status().toString());
    if (!entry || !*entry)
      continue;
    Result<std::unique_ptr<LoadedKernel>> out = load(**entry, FirstCallReport::Source::Shared);
    if (!out) {
      say(LogTopic::Cache, LogLevel::Info,
          "the entry of " + layer->name() + " does not load: " + out.status().message());
      continue;
    }
    ++service.sharedHits;
    say(LogTopic::Cache, LogLevel::Info, "hit in " + layer->name());
    if (store && layer->isRemote())
      this->store(**entry);
    return std::move(*out);
  }
  return nullptr;
}

bool FirstCall::store(const cache::Entry &entry) {
  Status s = service.disk->store(key, entry);
  if (!s.ok())
    notStored(s);
  return s.ok();
}

Result<std::optional<std::unique_ptr<LoadedKernel>>> FirstCall::run() {
  using Out = std::optional<std::unique_ptr<LoadedKernel>>;
  const Knobs &knobs = service.options.knobs;
  const bool useDisk = service.disk && knobs.dumpDir.empty();
  std::optional<cache::CompileLock> lock;
  if (!useDisk)
    report.reason = service.disk ? "stages are dumped, the cache is not asked" : "there is no cache on disk";
  bool present = false;
  if (useDisk) {
    Result<std::unique_ptr<LoadedKernel>> hit = fromDisk(true, present);
    if (hit && *hit)
      return Out(std::move(*hit));
    const auto since = Clock::now();
    Result<cache::CompileLock> held = service.disk->lockForCompile(key, compilePatience);
    stage("lock", since);
    if (held)
      lock = std::move(*held);
    else
      say(LogTopic::Cache, LogLevel::Info, "compiling without a lock: " + held.status().toString());
    if (!present) { // another process may have stored it since
      hit = fromDisk(false, present);
      if (hit && *hit)
        return Out(std::move(*hit));
    }
  }
  const bool useLayers = knobs.dumpDir.empty();
  if (std::unique_ptr<LoadedKernel> hit = useLayers ? fromLayers(useDisk) : nullptr)
    return Out(std::move(hit));
  KILN_ASSIGN(std::optional<cache::Entry> entry, compile());
  if (!entry)
    return Out();
  KILN_ASSIGN(std::unique_ptr<LoadedKernel> made, load(*entry, FirstCallReport::Source::Compiled));
  if (useDisk) {
    const auto since = Clock::now();
    if (store(*entry))
      made->firstCall.stages.push_back({"store", millisecondsSince(since)});
    made->firstCall.milliseconds = millisecondsSince(start);
  }
  for (const std::unique_ptr<cache::Layer> &layer : service.layers)
    if (useLayers)
      layer->offer(key, *entry);
  return Out(std::move(made));
}

/// A cache that takes nothing costs every process a compile for ever: that is said without being asked for, once.
void FirstCall::notStored(const Status &why) const {
  const std::string &folder = service.disk->directory();
  const bool ofThisKernel = why.code() == StatusCode::InvalidArgument; // too large for the cap
  if (!ofThisKernel && isFirst("not stored in " + folder))
    service.log.write(
        LogTopic::Cache, LogLevel::Error,
        "'" + folder + "' keeps no kernels, so each process compiles them: " + why.message() + " (" +
            (why.remedy().empty() ? "make room there, or set KILN_CACHE_DIR to another directory" : why.remedy()) +
            ")");
  else
    say(LogTopic::Cache, LogLevel::Info, "not stored: " + why.toString());
}

/// The assembler's first steps, while the compiler runs.
static std::future<void> warmUp(const std::shared_ptr<const Assembler> &assembler, const std::string &arch) {
  if (!assembler)
    return {};
  try {
    return std::async(std::launch::async, [assembler, arch] { assembler->warmUp(arch); });
  } catch (const std::system_error &) {
    return {}; // no thread: the first assembly takes these steps
  }
}

/// The compiler's metadata with what the assembler says of the code: "registers" and "spill_bytes" of a thread.
static void addResources(std::string &metadata, const AssembledModule &module) {
  nlohmann::ordered_json all = nlohmann::ordered_json::parse(metadata, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object() || module.resources.kernels.size() != 1)
    return;
  const KernelResources &of = module.resources.kernels.front();
  all["registers"] = of.registers;
  if (of.spillStoreBytes && of.spillLoadBytes)
    all["spill_bytes"] = *of.spillStoreBytes + *of.spillLoadBytes;
  metadata = all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Nothing: what was opened is not what the key says.
Result<std::optional<cache::Entry>> FirstCall::compile() {
  using Out = std::optional<cache::Entry>;
  KILN_ASSIGN(const std::shared_ptr<CompilerLibrary> compiler, service.compilerLibrary());
  auto since = Clock::now();
  KILN_TRY(compiler->open(service.hashes));
  stage("open compiler", since);
  KILN_ASSIGN(const std::string identity, compiler->identity(service.hashes));
  since = Clock::now();
  const std::shared_ptr<const Assembler> assembler = service.assembler.assembler(service.hashes);
  stage("open assembler", since);
  const std::future<void> warm = warmUp(assembler, parts.assemblyArch); // ends before `assembler` does
  KILN_ASSIGN(const JitService::PluginState plugins, service.pluginState());
  if (identity != parts.compiler || service.assembler.identity(service.hashes) != parts.assembler ||
      plugins.hashes != parts.plugins)
    return Out();

  KILN_ASSIGN(const CompileOptions asked,
              compileOptions(service.options.knobs, {.lineInfo = parts.lineInfo, .overrides = &parts.overrides}));
  if (!asked.note.empty() && isFirst(asked.note))
    service.log.write(LogTopic::Compile, LogLevel::Error, asked.note);
  CompileInput input;
  input.program = kernel.source.programText;
  input.fileName = kernel.source.fileName;
  input.kernel = kernel.source.name;
  input.codeTarget = service.codeTarget;
  input.specialization = parts.classes;
  input.options = asked.json;
  since = Clock::now();
  ++service.compiles;
  KILN_ASSIGN(CompileOutput out, compiler->compile(input, service.hashes));
  stage("compile", since);
  // What was loaded is what the key says, unless a file changed in between.
  if (const Result<JitService::PluginState> now = service.pluginState(); !now || *now != plugins)
    return Out();
  KILN_TRY(compileStatus(out, kernel.source.name));
  if (const std::string notes = diagnosticsText(out.diagnostics); !notes.empty())
    say(LogTopic::Compile, LogLevel::Info, notes);

  cache::Entry entry;
  entry.metadata = std::move(out.metadata);
  if (assembler) {
    since = Clock::now();
    AssembleOptions how;
    how.lineInfo = parts.lineInfo;
    how.optimisation = assemblerLevelOf(entry.metadata);
    Result<AssembledModule> made =
        assembleToRun(*assembler, out.output, parts.assemblyArch, how, kernel.source.name + ".ptx");
    if (!made)
      return made.takeStatus().withContext("kernel '" + kernel.source.name + "' for " + service.codeTarget);
    stage("assemble", since);
    addResources(entry.metadata, *made); // of code that is not run, too: about what the driver's takes, for sweeps
    if (made->isTrusted()) {
      entry.kind = cache::EntryKind::Cubin;
      entry.payload.assign(reinterpret_cast<const char *>(made->cubin.data()), made->cubin.size());
      return Out(std::move(entry));
    }
    say(LogTopic::Compile, LogLevel::Info, "the driver assembles it: " + made->doubt);
  }
  entry.payload = std::move(out.output);
  return Out(std::move(entry));
}

/// Whether the code's parameters are the arguments and then those that the launcher makes.  Not every device tells.
static bool sameParameters(const KernelInfo &info, const ArgumentLayout &layout, HiddenParameters *hidden) {
  const std::span<const ParameterInfo> all(info.parameters);
  const unsigned visible = layout.count();
  if (all.empty())
    return true;
  bool same = all.size() >= visible;
  for (unsigned i = 0; same && i < visible; ++i)
    same = all[i].offset == layout.offset(i) && all[i].size == argumentBytes(layout.type(i).type);
  return same && (hidden ? hidden->place(all.subspan(visible), layout) : all.size() == visible);
}

Result<std::unique_ptr<LoadedKernel>> FirstCall::load(const cache::Entry &entry, FirstCallReport::Source source) {
  const auto since = Clock::now();
  const std::string &name = kernel.source.name;
  const auto fail = [&](Status s) { return std::move(s).withContext("kernel '" + name + "'"); };
  Result<KernelMetadata> metadata = parseMetadata(entry.metadata, kernel.source, kernel.layout);
  if (!metadata)
    return fail(metadata.takeStatus());
  auto out = std::make_unique<LoadedKernel>();
  Device &device = service.device;
  Result<std::unique_ptr<Module>> module =
      entry.kind == cache::EntryKind::Cubin
          ? device.loadCubin(std::as_bytes(std::span(entry.payload.data(), entry.payload.size())))
          : device.loadPtx(entry.payload, name + ".ptx");
  if (!module)
    return fail(module.takeStatus());
  out->module = std::move(*module);
  Result<Kernel *> function = out->module->kernel(metadata->entry);
  if (!function)
    return fail(function.takeStatus());
  out->entry = *function;
  ++service.loads;

  const KernelInfo &info = out->entry->info();
  const unsigned threads = 32 * metadata->warps;
  const bool sameBlock = info.requiredBlock.x == 0 || info.requiredBlock == Dim3{threads, 1, 1};
  const bool isOffline = device.info().driver.empty();
  if (metadata->hidden && info.parameters.empty() && device.info().kind == DeviceKind::Cuda && !isOffline)
    return fail(Status(StatusCode::Unsupported,
                       "it has tensor maps for parameters, and this driver does not say where parameters lie",
                       "install a driver of CUDA 12.4 or newer"));
  if (!sameBlock || !sameParameters(info, kernel.layout, metadata->hidden.get()))
    return fail(Status(StatusCode::Internal,
                       "the compiled code and its metadata disagree on the block or the parameters",
                       "report it with the kernel's source"));

  out->kernelName = name;
  out->variantText = variant;
  out->metadataText = entry.metadata;
  out->keyText = key.serialise();
  out->blockThreads = threads;
  // The metadata counts all shared memory of a block; what the code declares itself is not asked for again.
  out->dynamicShared =
      metadata->sharedBytes > info.staticSharedBytes ? metadata->sharedBytes - info.staticSharedBytes : 0;
  out->blocksOfCluster = metadata->cluster;
  out->hidden = std::move(metadata->hidden);
  out->mapsByPasses = metadata->mapsByPasses;
  out->guardList = std::move(metadata->guards);
  out->isReproducible = metadata->reproducible;
  if (source == FirstCallReport::Source::Compiled)
    if (const auto at = std::find_if(report.stages.begin(), report.stages.end(),
                                     [](const FirstCallReport::Stage &s) { return s.name == "compile"; });
        at != report.stages.end())
      report.stages.insert(at + 1, metadata->stages.begin(), metadata->stages.end());
  stage("load", since);
  report.source = source;
  out->firstCall = report;
  out->firstCall.milliseconds = millisecondsSince(start);
  return out;
}

} // namespace kiln
