#include "runtime/door/DoorPlans.h"

#include "kernels/support/Runner.h"

#include <nlohmann/json.hpp>

namespace kiln::door {
namespace {

using namespace kernels;

/// f(what describes the call to a plan).
template <typename F> Failure withPlan(const Family &family, std::span<const FfiValue> arguments, F f) {
  OperationCall &call = OperationCall::of(family);
  if (Failure failure = readWhole(call, arguments); !failure.kind.empty())
    return failure;
  const auto planned = [&](const Call &of) {
    return f(*call.device, PlanFunction([&](Plan &plan) { return (*call.planner)(of, plan); }));
  };
  const auto onHost = [&]() -> Status {
    const std::lock_guard lock(call.device->calls);
    KILN_ASSIGN(const PlacedCall placed, PlacedCall::createForPlans(call.device->device(), *call.operation.callable,
                                                                    inputsOf(call), call.call.options));
    return planned(placed.call());
  };
  const Status s = call.place.isGpu() ? planned(call.call) : onHost();
  return s.ok() ? Failure() : failureOf(call.operation.table.name, s);
}

nlohmann::json launchOf(const PlanListing::Launch &launch, const LoadedKernel &loaded) {
  constexpr const char *sources[] = {"memory", "disk", "shared", "compiled"};
  return {{"kernel", loaded.name()},
          {"configuration", launch.kernel->source().configuration},
          {"variant", loaded.variant()},
          {"grid", {launch.grid.x, launch.grid.y, launch.grid.z}},
          {"threads", loaded.threads()},
          {"shared_bytes", loaded.dynamicSharedBytes()},
          {"source", sources[static_cast<std::size_t>(loaded.report().source)]},
          {"milliseconds", loaded.report().milliseconds}};
}

} // namespace

Failure prepare(const Family &family, std::span<const FfiValue> arguments, bool wait) {
  return withPlan(family, arguments, [&](DoorDevice &, const PlanFunction &call) {
    const CompileFuture code = prepareAllAsync(call);
    return wait || code.isReady() ? code.wait() : Status();
  });
}

Failure explain(const Family &family, std::span<const FfiValue> arguments, std::string &out) {
  return withPlan(family, arguments, [&](DoorDevice &on, const PlanFunction &call) -> Status {
    PlanListing list;
    KILN_TRY(call(list));
    KILN_ASSIGN(const std::vector<const LoadedKernel *> loaded, prepareAll(call));
    nlohmann::json parts = nlohmann::json::array(), launches = nlohmann::json::array();
    for (const PlanListing::Part &part : list.parts)
      parts.push_back({{"name", part.name}, {"bytes", part.bytes}});
    for (std::size_t i = 0; i < loaded.size(); ++i)
      launches.push_back(launchOf(list.launches[i], *loaded[i]));
    out = nlohmann::json{{"operation", family.callable->name()},
                         {"device", on.device().info().name},
                         {"workspace", parts},
                         {"launches", launches}}
              .dump();
    return {};
  });
}

} // namespace kiln::door
