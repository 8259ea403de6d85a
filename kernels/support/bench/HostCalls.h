//===- HostCalls.h - A call of every operation, for its host's part ------------===//
//
// What a call costs in addition to its launches: the family's own, its options and checks and its plan, of small
// samples on a device that does nothing.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_BENCH_HOSTCALLS_H
#define KILN_KERNELS_SUPPORT_BENCH_HOSTCALLS_H

#include "kernels/support/Runner.h"
#include "runtime/jit/bench/NullDevice.h"

#include <memory>
#include <string>
#include <vector>

namespace kiln::kernels {

/// One call.  Not movable: what it describes points into it.
class HostCall {
public:
  static Result<std::unique_ptr<HostCall>> create(const Family &family, JitOptions options) {
    std::unique_ptr<HostCall> out(new HostCall);
    KILN_TRY(out->make(family, std::move(options)));
    return out;
  }

  /// Checks and launches.
  Status run() const {
    const RunOptions with{.workspace = bytes ? workspace->address() : 0, .workspaceBytes = bytes};
    const CallText text;
    return RunPlan::run(*jit, name, with, describe, text);
  }

  std::string name;
  std::size_t launches = 0;

private:
  HostCall() = default;

  Status make(const Family &family, JitOptions options) {
    name = std::string(family.name());
    KILN_ASSIGN(jit, Jit::create(device, std::move(options)));
    const Callable &callable = *family.callable;
    const DType type = callable.takes(DType::BF16) ? DType::BF16 : callable.dtypes().front();
    KILN_ASSIGN(const Samples *all, samplesOf(family));
    const Sample sample = all->calls(type, SampleUse::Demo, false).front();
    KILN_ASSIGN(const Arrays inputs, sampleInputs(*jit, family, sample, 1));
    KILN_ASSIGN(PlacedCall made, PlacedCall::create(device, callable, inputs, sample.options));
    placed = std::make_unique<PlacedCall>(std::move(made));
    describe = [this, planner = callable.bind(*jit)](Plan &plan) { return planner(placed->call(), plan); };
    PlanListing list;
    KILN_TRY(describe(list));
    launches = list.launches.size();
    WorkspacePlan size;
    KILN_TRY(describe(size));
    bytes = size.bytes;
    workspace = std::make_unique<NullBuffer>(bytes + 1);
    return {};
  }
  NullDevice device;
  std::unique_ptr<Jit> jit;
  std::unique_ptr<PlacedCall> placed;
  std::unique_ptr<NullBuffer> workspace;
  std::size_t bytes = 0;
  PlanFunction describe;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_BENCH_HOSTCALLS_H
