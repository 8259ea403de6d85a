#include "kiln/Plan.h"

#include <system_error>
#include <thread>

namespace kiln {

std::size_t Plan::bytesOf(std::span<const WorkspacePart> parts) {
  std::size_t out = 0;
  for (const WorkspacePart &part : parts)
    out = rounded(out) + part.bytes;
  return out;
}

static thread_local RunPlan *innermost = nullptr;

Status RunPlan::run(Jit &jit, std::string_view operation, const RunOptions &options, const PlanFunction &call,
                    const CallText &text) {
  {
    RunPlan plan(jit, operation, options, call, text);
    Status s = call(plan);
    if (!plan.isTooLarge) [[likely]]
      return s;
  }
  RunPlan plan(jit, operation, options, call, text, /*takesLater=*/false);
  return call(plan);
}

RunPlan::RunPlan(Jit &jit, std::string_view operation, const RunOptions &options, const PlanFunction &call,
                 const CallText &text, bool takesLater)
    : jit(jit), operation(operation), options(options), call(call), text(text), outer(innermost) {
  if (!takesLater)
    generation = 0;
  innermost = this;
}
RunPlan::~RunPlan() {
  innermost = outer;
}

RunPlan *RunPlan::running(const Jit &jit) {
  return innermost && &innermost->jit == &jit ? innermost : nullptr;
}

std::uint64_t RunPlan::tunedGeneration() {
  if (!generation) {
    const std::uint64_t now = jit.tunedGeneration();
    Stream &stream = options.stream ? *options.stream : jit.device().defaultStream();
    generation = now && !stream.isCapturing() ? now : 0;
  }
  return *generation;
}

Result<DeviceAddress> RunPlan::reserve(std::span<const WorkspacePart> parts) {
  const std::size_t needed = bytesOf(parts);
  if (needed == 0)
    return DeviceAddress(0);
  isTooLarge = options.workspace && options.workspaceBytes < needed && tunedGeneration() > 0;
  return chooseWorkspace(jit, operation, needed, options);
}

Status RunPlan::add(JitKernel &kernel, Dim3 grid, const GivenArguments &arguments) {
  MissHandler *const onMiss = prepared ? nullptr : this;
  return kernel.launch(grid, options.stream, arguments, onMiss);
}

/// A failure shows again where the kernel that it is about is launched.
void RunPlan::missed() {
  prepared = true;
  if (jit.recordsCalls())
    if (const std::optional<std::string> line = words())
      jit.recordCall(*line);
  PlanListing list;
  if (call(list).ok() && list.launches.size() > 1)
    (void)prepareAll(call, options.stream);
}

Result<DeviceAddress> WorkspacePlan::reserve(std::span<const WorkspacePart> parts) {
  bytes += bytesOf(parts);
  return DeviceAddress(alignment);
}
Status WorkspacePlan::add(JitKernel &, Dim3, const GivenArguments &) {
  return {};
}

Result<DeviceAddress> PlanListing::reserve(std::span<const WorkspacePart> asked) {
  for (const WorkspacePart &part : asked)
    parts.push_back({part.name, part.bytes});
  return DeviceAddress(alignment); // nobody reads it; aligned as the real one
}

Status PlanListing::add(JitKernel &kernel, Dim3 grid, const GivenArguments &arguments) {
  Launch &launch = launches.emplace_back();
  launch.kernel = &kernel;
  launch.grid = grid;
  launch.names.assign(arguments.names.begin(), arguments.names.end());
  launch.nameList = arguments.names.data();
  for (std::size_t i = 0; i < arguments.names.size(); ++i) {
    GivenArgument value = arguments.values[i];
    if (value.tensor) {
      launch.tensors.push_back(std::make_unique<Tensor>(*value.tensor));
      value.tensor = launch.tensors.back().get();
    }
    launch.values.push_back(value);
  }
  return {};
}

Result<std::vector<const LoadedKernel *>> prepareAll(const PlanFunction &call, Stream *stream) {
  PlanListing list;
  KILN_TRY(call(list));
  std::vector<Result<const LoadedKernel *>> prepared(list.launches.size(),
                                                     Status(StatusCode::Internal, "not prepared"));
  const auto prepare = [&](std::size_t i) {
    prepared[i] = list.launches[i].kernel->prepare(list.launches[i].arguments(), stream);
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < prepared.size(); ++i) {
    try {
      threads.emplace_back(prepare, i);
    } catch (const std::system_error &) { // no thread to be had: one after the other
      prepare(i);
    }
  }
  if (!prepared.empty())
    prepare(0);
  for (std::thread &t : threads)
    t.join();
  std::vector<const LoadedKernel *> out;
  for (Result<const LoadedKernel *> &p : prepared) {
    KILN_ASSIGN(const LoadedKernel *loaded, std::move(p));
    out.push_back(loaded);
  }
  return out;
}

CompileFuture prepareAllAsync(const PlanFunction &call, Stream *stream) {
  PlanListing list;
  if (Status s = call(list); !s.ok())
    return CompileFuture(std::move(s));
  std::vector<CompileFuture> all;
  for (const PlanListing::Launch &launch : list.launches)
    all.push_back(launch.kernel->prepareAsync(launch.arguments(), stream));
  return CompileFuture::all(std::move(all));
}

} // namespace kiln
