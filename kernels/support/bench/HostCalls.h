//===- HostCalls.h - A call of every operation, for its host's part ------------===//
//
// What a call costs in addition to its launches: small samples on a device that does nothing.  Of most families the
// call is the family's own (its checks, its plan); attention's and matmul's read words of the command line at each
// call, so that theirs are the operations' with arguments as a user writes them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_BENCH_HOSTCALLS_H
#define KILN_KERNELS_SUPPORT_BENCH_HOSTCALLS_H

#include "kernels/attention/AttentionBackwardOperation.h"
#include "kernels/matmul/MatmulOperation.h"
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
    if (name == "attention") {
      KILN_TRY(makeAttention());
    } else if (name == "attention_backward") {
      KILN_TRY(makeAttentionBackward());
    } else if (name == "matmul") {
      KILN_TRY(makeMatmul());
    } else {
      const Callable &callable = *family.callable;
      const DType type = callable.takes(DType::BF16) ? DType::BF16 : callable.dtypes().front();
      KILN_ASSIGN(const Samples *all, samplesOf(family));
      const Sample sample = all->calls(type, SampleUse::Demo, false).front();
      KILN_ASSIGN(const Arrays inputs, sampleInputs(*jit, family, sample, 1));
      KILN_ASSIGN(PlacedCall made, PlacedCall::create(device, callable, inputs, sample.options));
      placed = std::make_unique<PlacedCall>(std::move(made));
      describe = [this, planner = callable.bind(*jit)](Plan &plan) { return planner(placed->call(), plan); };
    }
    PlanListing list;
    KILN_TRY(describe(list));
    launches = list.launches.size();
    WorkspacePlan size;
    KILN_TRY(describe(size));
    bytes = size.bytes;
    workspace = std::make_unique<NullBuffer>(bytes + 1);
    return {};
  }
  Status makeAttention() {
    KILN_ASSIGN(const Tensor t, Tensor::dense(device, data, DType::BF16, {1, 128, 2, 64}));
    KILN_ASSIGN(const Tensor o, Tensor::dense(device, results, DType::BF16, {1, 128, 2, 64}));
    describe = [operation = std::make_shared<AttentionOperation>(*jit),
                arguments = AttentionArguments{.q = t, .k = t, .v = t, .o = o, .causal = true}](Plan &plan) {
      return operation->describe(arguments, plan);
    };
    return {};
  }
  Status makeAttentionBackward() {
    constexpr std::size_t bytes = 128 * 2 * 64 * 2;
    KILN_ASSIGN(const Tensor t, Tensor::dense(device, data, DType::BF16, {1, 128, 2, 64}));
    KILN_ASSIGN(const Tensor lse, Tensor::dense(device, data, DType::F32, {1, 2, 128}));
    AttentionBackwardArguments a{
        .of = {.q = t, .k = t, .v = t, .o = t, .lse = lse, .causal = true}, .dO = t, .dq = {}, .dk = {}, .dv = {}};
    std::size_t at = 0;
    for (Tensor *out : {&a.dq, &a.dk, &a.dv}) {
      KILN_ASSIGN(*out, Tensor::dense(device, results, DType::BF16, {1, 128, 2, 64}, at));
      at += bytes;
    }
    describe = [operation = std::make_shared<AttentionBackwardOperation>(*jit), arguments = a](Plan &plan) {
      return operation->describe(arguments, plan);
    };
    return {};
  }
  Status makeMatmul() {
    KILN_ASSIGN(const Tensor t, Tensor::dense(device, data, DType::BF16, {128, 128}));
    KILN_ASSIGN(const Tensor out, Tensor::dense(device, results, DType::BF16, {128, 128}));
    describe = [operation = std::make_shared<MatmulOperation>(*jit),
                arguments = MatmulArguments{.a = t, .b = t, .out = out}](Plan &plan) {
      return operation->describe(arguments, plan);
    };
    return {};
  }

  NullDevice device;
  NullBuffer data{1 << 16}, results{1 << 17};
  std::unique_ptr<Jit> jit;
  std::unique_ptr<PlacedCall> placed;
  std::unique_ptr<NullBuffer> workspace;
  std::size_t bytes = 0;
  PlanFunction describe;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_BENCH_HOSTCALLS_H
