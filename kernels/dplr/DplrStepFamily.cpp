// `dplr_step` and `rwkv7_step` for commands and tests.  The reference is DplrReference.cpp.
#include "kernels/dplr/DplrCall.h"
#include "kernels/dplr/DplrHeads.h"
#include "kernels/dplr/DplrSamples.h"
#include "kernels/dplr/DplrStepOperation.h"
#include "kernels/support/Family.h"

#include <cmath>

namespace kiln::kernels {
namespace {

class StepCallable : public DplrForwardCallable {
public:
  using DplrForwardCallable::DplrForwardCallable;

  std::vector<DType> dtypes() const override { return {DType::BF16, DType::F16, DType::F32}; }

  std::vector<OptionInfo> options() const override {
    return optionsListedBy([&](auto &&visit) {
      const DplrStepArguments standard;
      DplrStepArguments::options(standard, visit, names.isRwkv() ? scaleTextOfRwkv7 : scaleText);
    });
  }

  std::vector<TensorParameter> tensors() const override {
    std::vector<TensorParameter> out = DplrForwardCallable::tensors();
    out.front().description = "B x T x H x K, f32, f16 or bf16";
    return out;
  }

  Planner bind(Jit &jit) const override {
    if (names.isRwkv())
      return [this, operation = std::make_shared<Rwkv7StepOperation>(jit)](const Call &call, Plan &plan) -> Status {
        KILN_ASSIGN(const DplrStepArguments a, argumentsOf(call));
        return operation->describe(
            {a.q, a.g, a.k, a.v, a.a, a.b, a.o, a.initialState, a.finalState, a.cuSeqlens, a.scale}, plan);
      };
    return [this, operation = std::make_shared<DplrStepOperation>(jit)](const Call &call, Plan &plan) -> Status {
      KILN_ASSIGN(const DplrStepArguments a, argumentsOf(call));
      return operation->describe(a, plan);
    };
  }

  std::vector<FieldInfo> settings() const override { return fieldsOf<DplrStepConfig>(); }
  language::Kernel record(DType element, const Settings &settings) const override {
    return recordWith(settings, DplrStepConfig(), [&](const DplrStepConfig &c) { return dplrStep(element, c); });
  }

private:
  Result<DplrStepArguments> argumentsOf(const Call &call) const {
    const auto at = [&](std::string_view name) { return call.tensors.find(name)->second; };
    DplrStepArguments a{at(names.q), at("k"), at("v"), at("a"), at("b"), at(names.g), at("o")};
    a.initialState = optionalTensor(call, "initial_state"), a.finalState = optionalTensor(call, "final_state");
    a.cuSeqlens = optionalTensor(call, "cu_seqlens");
    KILN_TRY(readOptions(names.operation, call.options, a));
    return a;
  }
};

class StepReference : public DplrForwardReference {
public:
  using DplrForwardReference::DplrForwardReference;

  /// Of f32 throughout the specification's limit is 0.002 (S5).  Here each element keeps it, and so does their root
  /// mean square; allowedRatio's, which knows no types, is that of 16 bits.
  std::vector<double> allowed(std::string_view name, DType dtype, const HostTensors &inputs,
                              const HostTensors &reference, const OptionValues &options) const override {
    if (dtype != DType::F32 || inputs.find(names.q)->second.dtype != DType::F32)
      return DplrHeads::allowed(name, dtype, inputs, reference, options);
    const std::vector<double> &wanted = reference.find(name)->second.values;
    double squares = 0;
    for (const double x : wanted)
      squares += x * x;
    const double mean = wanted.empty() ? 0 : std::sqrt(squares / static_cast<double>(wanted.size()));
    return std::vector<double>(wanted.size(), 0.002 * mean + 1e-6);
  }
};

class StepSamples : public DplrSamples {
public:
  using DplrSamples::DplrSamples;

  std::vector<Sample> calls(DType dtype, SampleUse use, bool gpu) const override {
    // A decoder's call: states come and go.  They are most of its bytes, which is what its speed is measured in.
    const auto call = [&](std::uint64_t batch, std::uint64_t tokens, std::uint64_t heads, std::uint64_t dim,
                          std::uint64_t dimV) {
      Sample out{inputTypes(dtype, batch, tokens, heads, dim, dimV), {{"final_state", true}}};
      out.inputs["initial_state"] = {DType::F32, {batch, heads, dim, dimV}};
      return out;
    };
    if (use == SampleUse::Demo)
      return {gpu ? call(32, 1, 32, 64, 64) : call(4, 1, 4, 64, 64)};
    if (use == SampleUse::Bench) {
      if (!gpu)
        return {call(2, 1, 4, 64, 64), call(1, 16, 2, 64, 64)};
      return {call(1, 1, 32, 64, 64), call(32, 1, 32, 64, 64), call(128, 1, 32, 64, 64), call(32, 16, 32, 64, 64)};
    }
    Sample without{inputTypes(dtype, 2, 3, 1, 16, 16), {}};
    return {call(1, 1, 1, 16, 16), call(3, 1, 2, 64, 64), call(2, 7, 2, 40, 24), call(1, 5, 1, 128, 100), without};
  }
};

Family stepFamily(const DplrNames &names) {
  return {std::make_unique<StepCallable>(names), std::make_unique<StepReference>(names),
          std::make_unique<StepSamples>(names)};
}

} // namespace

Family makeDplrStep() {
  return stepFamily({"dplr_step", "q", "g", "the DPLR delta rule token by token, for decoding"});
}
Family makeRwkv7Step() {
  return stepFamily({"rwkv7_step", "r", "w", "RWKV7 token by token, for decoding"});
}

} // namespace kiln::kernels
