#include "runtime/door/DoorCall.h"

#include "kernels/support/Runner.h"
#include "runtime/door/DoorTensor.h"
#include "runtime/door/OperationCall.h"
#include "runtime/io/DType.h"

#include <nlohmann/json.hpp>

namespace kiln::door {
namespace {

using namespace kernels;

std::string typeText(const TensorType &type) {
  return std::string(dtypeName(type.dtype)) + "[" + shapeText(type.shape) + "]";
}

const Tensor &tensorOf(const OperationCall &call, const TensorParameter &p) {
  return call.call.tensors.find(p.name)->second;
}

Result<TensorTypes> outputsOf(const OperationCall &call) {
  TensorTypes inputs;
  for (std::size_t i = 0; i < call.given.size(); ++i)
    if (const TensorParameter &p = call.operation.table.tensors[i]; call.given[i] && !p.output)
      inputs[p.name] = typeOf(tensorOf(call, p));
  KILN_TRY(checkOptions(call.operation.table, call.call.options));
  return call.operation.callable->outputs(inputs, call.call.options);
}

/// The outputs are what the operation gives.
Status checkTypes(const OperationCall &call) {
  KILN_ASSIGN(const TensorTypes wanted, outputsOf(call));
  for (std::size_t i = 0; i < call.given.size(); ++i) {
    const TensorParameter &p = call.operation.table.tensors[i];
    if (!p.output || !call.given[i])
      continue;
    const TensorType is = typeOf(tensorOf(call, p));
    const auto must = wanted.find(p.name);
    if (must == wanted.end() || is.shape != must->second.shape || is.dtype != must->second.dtype)
      return Status::invalid(argumentText(call.operation.table.name, p.name) + " is " + typeText(is) +
                                 (must == wanted.end() ? "" : ": it must be " + typeText(must->second)),
                             "give it that type and shape");
  }
  return {};
}

/// Outputs lie apart from each other and from what is read.  On a GPU the operations look at that.
Status checkApart(const OperationCall &call) {
  const std::vector<TensorParameter> &all = call.operation.table.tensors;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < all.size(); ++j)
      if (i != j && all[i].output && call.given[i] && call.given[j] && all[j].name != all[i].inPlaceOf)
        KILN_TRY(checkApart(argumentText(call.operation.table.name, all[i].name), *call.given[i], all[j].name,
                            *call.given[j]));
  return {};
}

/// Finds the device and the operation bound to it.
Status bindCall(OperationCall &call) {
  if (!call.device || call.place != call.devicePlace) {
    call.device = nullptr, call.stream = nullptr;
    KILN_ASSIGN(DoorDevice *const on, DoorDevice::of(call.place));
    call.planner = &on->plannerOf(*call.operation.callable);
    call.device = on, call.devicePlace = call.place;
  }
  for (auto &[name, tensor] : call.call.tensors)
    tensor.device = &call.device->device();
  return {};
}

/// Of a call in the host's memory.
Arrays inputsOf(const OperationCall &call) {
  const std::vector<TensorParameter> &all = call.operation.table.tensors;
  Arrays inputs;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (call.given[i] && !all[i].output)
      inputs[all[i].name] = copyIn(*call.given[i], typeOf(tensorOf(call, all[i])));
  return inputs;
}

Status runOnHost(OperationCall &call) {
  const std::vector<TensorParameter> &all = call.operation.table.tensors;
  const Callable &callable = *call.operation.callable;
  DoorDevice &on = *call.device;
  const Arrays inputs = inputsOf(call);
  const std::lock_guard lock(on.calls);
  KILN_ASSIGN(const PlacedCall placed, PlacedCall::create(on.device(), callable, inputs, call.call.options));
  KILN_TRY(on.finish(callable.run(on.jit(), *call.planner, placed.call(), {})));
  KILN_ASSIGN(const Arrays results, placed.readOutputs());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (call.given[i] && all[i].output)
      copyOut(results.find(all[i].name)->second, *call.given[i]);
  return {};
}

/// On the caller's stream; of callers by tvm-ffi on the one that it says.  Tables of lengths are not read: upper bounds
/// that follow from them on the host are the shapes'.
Status runOnGpu(OperationCall &call, const Surroundings *where) {
  void *const native = where ? where->stream : streamSaid(call.place.type, call.place.number);
  if (!call.stream || native != call.native) {
    call.stream = nullptr;
    KILN_ASSIGN(call.stream, call.device->streamOf(native));
    call.native = native;
  }
  RunOptions options{call.stream};
  if (where)
    options.workspace = where->workspace, options.workspaceBytes = where->workspaceBytes;
  if (call.workspace.address)
    options.workspace = call.workspace.address,
    options.workspaceBytes = static_cast<std::size_t>(call.workspace.elements()) * dtypeBytes(call.workspace.dtype);
  return call.operation.callable->run(call.device->jit(), *call.planner, call.call, options);
}

/// What arguments say, and that it is right.
Failure readWhole(OperationCall &call, std::span<const FfiValue> arguments) {
  if (Failure f = call.read(arguments, false); !f.kind.empty())
    return f;
  Status s;
  if (call.hasChanged)
    s = checkTypes(call);
  if (s.ok())
    call.accept();
  if (s.ok() && call.place.isHost())
    s = checkApart(call);
  if (s.ok())
    s = bindCall(call);
  return s.ok() ? Failure() : failureOf(call.operation.table.name, s);
}

} // namespace

Failure failureOf(std::string_view operation, const Status &status) {
  constexpr const char *kinds[] = {"",
                                   "Finding",
                                   "ValueError",
                                   "FileNotFoundError",
                                   "OSError",
                                   "CompileError",
                                   "NotImplementedError",
                                   "DeviceError",
                                   "MemoryError",
                                   "NotReady",
                                   "InternalError"};
  static_assert(std::size(kinds) == static_cast<std::size_t>(StatusCode::Internal) + 1);
  const std::string &text = status.message();
  const bool named = text.starts_with(operation);
  return {kinds[static_cast<std::size_t>(status.code())], named ? text : std::string(operation) + ": " + text,
          status.remedy(), status.code()};
}

Failure run(const Family &family, std::span<const FfiValue> arguments, const Surroundings *where) {
  OperationCall &call = OperationCall::of(family);
  if (Failure f = readWhole(call, arguments); !f.kind.empty())
    return f;
  const Status s = call.place.isGpu() ? runOnGpu(call, where) : runOnHost(call);
  return s.ok() ? Failure() : failureOf(call.operation.table.name, s);
}

Failure workspaceOf(const Family &family, std::span<const FfiValue> arguments, std::size_t &bytes) {
  OperationCall &call = OperationCall::of(family);
  if (Failure f = readWhole(call, arguments); !f.kind.empty())
    return f;
  WorkspacePlan plan;
  if (call.place.isGpu())
    if (const Status s = (*call.planner)(call.call, plan); !s.ok())
      return failureOf(call.operation.table.name, s);
  bytes = plan.bytes;
  return {};
}

/// f(what describes the call to a plan, its stream); nothing is launched.
template <typename F> static Failure withPlan(const Family &family, std::span<const FfiValue> arguments, F f) {
  OperationCall &call = OperationCall::of(family);
  if (Failure wrong = readWhole(call, arguments); !wrong.kind.empty())
    return wrong;
  const auto planned = [&]() -> Status {
    DoorDevice &on = *call.device;
    if (call.place.isGpu()) {
      KILN_ASSIGN(Stream *const stream, on.streamOf(streamSaid(call.place.type, call.place.number)));
      return f(call, [&](Plan &plan) { return (*call.planner)(call.call, plan); }, stream);
    }
    const Arrays inputs = inputsOf(call);
    const std::lock_guard lock(on.calls);
    KILN_ASSIGN(const PlacedCall placed,
                PlacedCall::createForPlans(on.device(), *call.operation.callable, inputs, call.call.options));
    return f(call, [&](Plan &plan) { return (*call.planner)(placed.call(), plan); }, nullptr);
  };
  const Status s = planned();
  return s.ok() ? Failure() : failureOf(call.operation.table.name, s);
}

Failure prepare(const Family &family, std::span<const FfiValue> arguments, bool waits, bool &isReady) {
  return withPlan(family, arguments,
                  [&](const OperationCall &, const PlanFunction &described, Stream *stream) -> Status {
                    const CompileFuture code = prepareAllAsync(described, stream);
                    isReady = waits || code.isReady();
                    return isReady ? code.wait() : Status();
                  });
}

Failure explain(const Family &family, std::span<const FfiValue> arguments, std::string &out) {
  using nlohmann::json;
  constexpr const char *sources[] = {"memory", "disk", "shared", "compiled"};
  return withPlan(family, arguments,
                  [&](const OperationCall &call, const PlanFunction &described, Stream *stream) -> Status {
                    PlanListing list;
                    KILN_TRY(described(list));
                    KILN_ASSIGN(const std::vector<const LoadedKernel *> code, prepareAll(described, stream));
                    json parts = json::array(), launches = json::array();
                    for (const PlanListing::Part &part : list.parts)
                      parts.push_back({{"name", part.name}, {"bytes", part.bytes}});
                    for (std::size_t i = 0; i < code.size(); ++i) {
                      const PlanListing::Launch &launch = list.launches[i];
                      const FirstCallReport &report = code[i]->report();
                      launches.push_back({{"kernel", code[i]->name()},
                                          {"configuration", launch.kernel->source().configuration},
                                          {"arguments", code[i]->variant()},
                                          {"grid", {launch.grid.x, launch.grid.y, launch.grid.z}},
                                          {"threads", code[i]->threads()},
                                          {"shared_bytes", code[i]->dynamicSharedBytes()},
                                          {"code", sources[static_cast<std::size_t>(report.source)]},
                                          {"milliseconds", report.milliseconds}});
                    }
                    out = json{{"operation", call.operation.table.name},
                               {"device", call.device->device().info().name},
                               {"target", call.device->jit().codeTarget()},
                               {"workspace", parts},
                               {"launches", launches}}
                              .dump();
                    return Status();
                  });
}

Failure outputsOf(const Family &family, std::span<const FfiValue> arguments, TensorTypes &types) {
  OperationCall &call = OperationCall::of(family);
  if (Failure f = call.read(arguments, true); !f.kind.empty())
    return f;
  Result<TensorTypes> found = outputsOf(call);
  if (!found)
    return failureOf(call.operation.table.name, found.status());
  types = std::move(*found);
  return {};
}

Failure outputsOf(const Family &family, std::span<const FfiValue> arguments, std::string &out) {
  TensorTypes types;
  if (Failure f = outputsOf(family, arguments, types); !f.kind.empty())
    return f;
  nlohmann::json rows = nlohmann::json::array();
  for (const auto &[name, type] : types)
    rows.push_back({{"name", name}, {"shape", type.shape}, {"dtype", dtypeName(type.dtype)}});
  out = rows.dump();
  return {};
}

} // namespace kiln::door
