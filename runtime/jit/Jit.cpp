#include "kiln/Jit.h"

#include "runtime/jit/HiddenParameters.h"
#include "runtime/jit/Service.h"
#include "support/Text.h"

#include <cstdio>

namespace kiln {

namespace {

/// The value that guard `g` is about, zero extended for divisibility, which its low bits decide.
std::int64_t guardedValue(const Guard &g, const std::byte *data) {
  std::int64_t v64 = 0;
  std::int32_t v32 = 0;
  std::int16_t v16 = 0;
  switch (g.bytes) {
  case 8:
    std::memcpy(&v64, data + g.offset, 8);
    return v64;
  case 4:
    std::memcpy(&v32, data + g.offset, 4);
    return v32;
  case 2:
    std::memcpy(&v16, data + g.offset, 2);
    return v16;
  default:
    return static_cast<std::int8_t>(data[g.offset]);
  }
}

bool holds(const Guard &g, const std::byte *data) {
  const std::int64_t v = guardedValue(g, data);
  return g.kind == Guard::Kind::Equals ? v == g.value : (v & (g.value - 1)) == 0;
}

bool guardsHold(const LoadedKernel &kernel, const std::byte *data) {
  for (const Guard &g : kernel.guards())
    if (!holds(g, data)) [[unlikely]]
      return false;
  return true;
}

Status guardFailed(const LoadedKernel &kernel, const ArgumentLayout &layout, const std::byte *data) {
  for (const Guard &g : kernel.guards())
    if (!holds(g, data))
      return {StatusCode::InvalidArgument,
              "kernel '" + kernel.name() + "' [" + kernel.variant() + "]: argument " + std::to_string(g.argument) +
                  " '" + layout.name(g.argument) + "' is " + std::to_string(guardedValue(g, data)) +
                  ", the compiled code relies on " +
                  (g.kind == Guard::Kind::Equals ? "the value " + std::to_string(g.value)
                                                 : "a multiple of " + std::to_string(g.value)),
              "declare in the kernel how the argument is specialised"};
  return {};
}

} // namespace

Result<JitOptions> JitOptions::fromEnvironment() {
  JitOptions out;
  KILN_ASSIGN(out.knobs, Knobs::fromEnvironment());
  return out;
}

std::string FirstCallReport::toString() const {
  std::string out;
  switch (source) {
  case Source::Memory:
    out = "memory";
    break;
  case Source::Disk:
    out = "disk hit";
    break;
  case Source::Shared:
    out = "shared hit";
    break;
  case Source::Compiled:
    out = "compiled (" + reason + ")";
    break;
  }
  out += format(", %.2f ms:", milliseconds);
  for (const Stage &s : stages)
    out += format(" %s %.2f", s.name.c_str(), s.milliseconds) + (&s == &stages.back() ? "" : ",");
  return out;
}

Jit::Jit(std::shared_ptr<JitService> service) : service(std::move(service)) {}
Jit::~Jit() = default;

Result<std::unique_ptr<Jit>> Jit::create(Device &device) {
  KILN_ASSIGN(JitOptions options, JitOptions::fromEnvironment());
  return create(device, std::move(options));
}

Result<std::unique_ptr<Jit>> Jit::create(Device &device, JitOptions options) {
  KILN_ASSIGN(std::shared_ptr<JitService> service, JitService::create(device, std::move(options)));
  return std::unique_ptr<Jit>(new Jit(std::move(service)));
}

Device &Jit::device() const {
  return service->device;
}
const std::string &Jit::codeTarget() const {
  return service->codeTarget;
}
Result<JitKernel *> Jit::kernel(const KernelSource &source) {
  return service->kernel(source);
}
Result<const LoadedKernel *> Jit::compile(const KernelSource &source, std::span<const ArgumentFact> facts) {
  return service->compile(source, facts);
}
CompileFuture Jit::compileAsync(const KernelSource &source, std::span<const ArgumentFact> facts) {
  return service->compileAsync(source, facts);
}
JitCounters Jit::counters() const {
  return service->counters();
}

Result<DeviceAddress> Jit::workspace(std::size_t bytes, Stream *stream) {
  if (service->forkGuard.forked())
    return service->afterFork();
  if (bytes == 0)
    return DeviceAddress(0);
  return service->workspaces.get(bytes, service->streamOf(stream));
}

JitKernel::JitKernel(std::unique_ptr<Implementation> implementation) : self(std::move(implementation)) {}
JitKernel::~JitKernel() = default;
const KernelSource &JitKernel::source() const {
  return self->source;
}

Result<const LoadedKernel *> JitKernel::Implementation::known(ArgumentView arguments, ClassKey &key) {
  if (!layout.accepts(arguments)) [[unlikely]]
    if (Status s = layout.checkTypes(arguments); !s.ok())
      return std::move(s).withContext("kernel '" + source.name + "'");
  if (service.forkGuard.forked()) [[unlikely]]
    return service.afterFork();
  if (!layout.classify(arguments.data, key)) [[unlikely]]
    return layout.checkPointers(arguments.data, source.name);
  const LoadedKernel *loaded = variants.find(key);
  if (!loaded || !loaded->mapsByPasses || loaded->hidden->fits(layout, arguments.data)) [[likely]]
    return loaded;
  ClassKey other = key;
  other.withoutMaps = true;
  return variants.find(other);
}

Result<const LoadedKernel *> JitKernel::Implementation::prepare(ArgumentView arguments, Requester by) {
  ClassKey key;
  KILN_ASSIGN(const LoadedKernel *const there, known(arguments, key));
  if (there)
    return there;
  if (const LoadedKernel *const with = variants.find(key)) // its maps do not fit
    return withoutMaps(*with, key, arguments.data, by, nullptr);
  KILN_ASSIGN(const LoadedKernel *const loaded, service.firstCall(*this, key, by));
  if (loaded->mapsByPasses && !loaded->hidden->fits(layout, arguments.data))
    return withoutMaps(*loaded, key, arguments.data, by, nullptr);
  return loaded;
}

Result<const LoadedKernel *> JitKernel::prepare(ArgumentView arguments, Stream *stream) {
  return self->prepare(arguments, {.stream = stream});
}

CompileFuture JitKernel::prepareAsync(ArgumentView arguments, Stream *stream) {
  Implementation &k = *self;
  ClassKey key;
  const Result<const LoadedKernel *> there = k.known(arguments, key);
  if (!there || *there)
    return CompileFuture(there.status());
  ClassKey wanted = key;
  wanted.withoutMaps = k.variants.find(key) != nullptr; // maps that do not fit
  if (Status s = k.service.checkFirstCall(k, wanted, stream); !s.ok())
    return CompileFuture(std::move(s));
  struct Packed {
    alignas(16) std::byte data[LaunchArguments::maxBytes];
    std::vector<ArgumentType> types;
    std::vector<std::uint8_t> elements;
  };
  auto packed = std::make_shared<Packed>();
  std::memcpy(packed->data, arguments.data, arguments.bytes);
  packed->types.assign(arguments.types, arguments.types + arguments.count);
  if (arguments.elements)
    packed->elements.assign(arguments.elements, arguments.elements + arguments.count);
  return k.service.background().add(
      "kernel '" + k.source.name + "'", [&k, packed, bytes = arguments.bytes, count = arguments.count] {
        const ArgumentView view{packed->data, packed->types.data(), bytes, count,
                                packed->elements.empty() ? nullptr : packed->elements.data()};
        return k.prepare(view, {.background = true}).status();
      });
}

Result<const LoadedKernel *> JitKernel::Implementation::withoutMaps(const LoadedKernel &with, ClassKey key,
                                                                    const std::byte *arguments, Requester by,
                                                                    MissHandler *onMiss) {
  if (service.log.wants(LogTopic::Launch, LogLevel::Info) && !saidWithoutMaps.exchange(true))
    service.log.write(LogTopic::Launch, LogLevel::Info,
                      source.name + " [" + with.variant() +
                          "] runs without tensor maps where they cannot be made, as " +
                          "here (said once): " + with.hidden->brokenRule(layout, arguments).message());
  key.withoutMaps = true;
  if (const LoadedKernel *known = variants.find(key)) [[likely]]
    return known;
  if (onMiss)
    onMiss->missed();
  return service.firstCall(*this, key, by);
}

/// Calls `use` with the packed arguments.
template <typename Implementation, typename Use>
static auto withPacked(Implementation &k, const GivenArguments &given, Use use) -> decltype(use(ArgumentView())) {
  const NamedBinding *binding = k.bindings.find(given.names.data());
  if (!binding) [[unlikely]] {
    Result<NamedBinding> made = NamedBinding::create(k.source, k.layout, given);
    if (!made)
      return made.status();
    binding = k.bindings.insert(given.names.data(), std::move(*made));
  }
  alignas(16) std::byte data[LaunchArguments::maxBytes];
  std::uint8_t elements[LaunchArguments::maxCount];
  std::memset(data, 0, k.layout.bytes());
  std::memset(elements, 0, k.layout.count());
  if (Status s = binding->pack(given.values, data, elements); !s.ok()) [[unlikely]]
    return s;
  return use(ArgumentView{data, binding->argumentTypes().data(), k.layout.bytes(), k.layout.count(), elements});
}

Status JitKernel::launch(Dim3 grid, Stream *stream, const GivenArguments &arguments, MissHandler *onMiss) {
  return withPacked(*self, arguments, [&](ArgumentView view) { return launch(grid, stream, view, onMiss); });
}
Result<const LoadedKernel *> JitKernel::prepare(const GivenArguments &arguments, Stream *stream) {
  return withPacked(*self, arguments, [&](ArgumentView view) { return prepare(view, stream); });
}
CompileFuture JitKernel::prepareAsync(const GivenArguments &arguments, Stream *stream) {
  const Result<CompileFuture> out = withPacked(
      *self, arguments, [&](ArgumentView view) -> Result<CompileFuture> { return prepareAsync(view, stream); });
  return out.ok() ? *out : CompileFuture(out.status());
}

/// KILN_CHECKS=fail: the device's findings so far are this launch's.
static Status statusOfFindings(Device &device, Status launched) {
  unsigned defects = 0;
  std::string first;
  for (const Finding &f : groupFindings(device.takeFindings())) {
    const std::string text = f.toString();
    std::fprintf(stderr, "%s\n", text.c_str());
    if (!f.note && ++defects == 1)
      first = text;
  }
  if (!defects || !launched.ok())
    return launched;
  return Status(StatusCode::Findings,
                first + (defects > 1 ? " (and " + std::to_string(defects - 1) + " more)" : "") + " (KILN_CHECKS=fail)");
}

Status JitKernel::launch(Dim3 grid, Stream *stream, ArgumentView arguments, MissHandler *onMiss) {
  Implementation &k = *self;
  if (!k.layout.accepts(arguments)) [[unlikely]]
    if (Status s = k.layout.checkTypes(arguments); !s.ok())
      return std::move(s).withContext("kernel '" + k.source.name + "'");
  if (k.service.forkGuard.forked()) [[unlikely]]
    return k.service.afterFork();
  ClassKey key;
  if (!k.layout.classify(arguments.data, key)) [[unlikely]]
    return k.layout.checkPointers(arguments.data, k.source.name);
  const LoadedKernel *loaded = k.variants.find(key);
  if (!loaded) [[unlikely]] {
    if (onMiss)
      onMiss->missed();
    KILN_ASSIGN(loaded, k.service.firstCall(k, key, {.stream = stream}));
  }
  if (!guardsHold(*loaded, arguments.data)) [[unlikely]]
    return guardFailed(*loaded, k.layout, arguments.data);
  std::span<const std::byte> packed(arguments.data, k.layout.bytes());
  alignas(TensorMap::alignment) std::byte parameters[LaunchArguments::maxBytes];
  if (loaded->hidden) {
    using enum HiddenParameters::Outcome;
    Status failure;
    HiddenParameters::Outcome written =
        loaded->hidden->write(k.service.device, k.layout, arguments.data, parameters, failure);
    if (written == RuleBroken && loaded->mapsByPasses) {
      KILN_ASSIGN(loaded, k.withoutMaps(*loaded, key, arguments.data, {.stream = stream}, onMiss));
      if (!guardsHold(*loaded, arguments.data))
        return guardFailed(*loaded, k.layout, arguments.data);
      written = Written;
      if (loaded->hidden) // maps of the author's
        written = loaded->hidden->write(k.service.device, k.layout, arguments.data, parameters, failure);
    }
    if (written != Written) [[unlikely]] {
      if (written == RuleBroken)
        failure = loaded->hidden->brokenRule(k.layout, arguments.data);
      return std::move(failure).withContext("kernel '" + k.source.name + "' [" + loaded->variant() + "]");
    }
    if (loaded->hidden)
      packed = {parameters, loaded->hidden->bytes()};
  }

  LaunchConfig config;
  config.grid = grid;
  config.block = {loaded->blockThreads, 1, 1};
  config.cluster = loaded->blocksOfCluster;
  config.dynamicSharedBytes = loaded->dynamicShared;
  config.stream = stream;
  if (k.service.tracing) [[unlikely]]
    k.service.log.write(LogTopic::Launch, LogLevel::Debug,
                        k.source.name + " [" + loaded->variant() + "] " +
                            format("grid (%u, %u, %u) block %u shared %u ", grid.x, grid.y, grid.z,
                                   loaded->blockThreads, loaded->dynamicShared) +
                            k.layout.valuesText(arguments.data));
  Status launched = loaded->entry->launch(config, packed);
  if (k.service.failing) [[unlikely]]
    return statusOfFindings(k.service.device, std::move(launched));
  if (k.service.blocking && launched.ok()) [[unlikely]] {
    Stream &on = k.service.streamOf(stream);
    if (!on.isCapturing())
      if (Status s = on.synchronize(); !s.ok())
        return std::move(s).withContext("kernel '" + k.source.name + "' [" + loaded->variant() +
                                        "] failed (KILN_LAUNCH_BLOCKING)");
  }
  return launched;
}

} // namespace kiln
