// `reduce_sum` for commands and tests: parameters, reference, tolerance.
#include "kernels/reduce_sum/ReduceSumOperation.h"
#include "kernels/support/Family.h"
#include "kernels/support/Rounding.h"

namespace kiln::kernels {
namespace {

class ReduceSumCallable : public Callable {
public:
  std::string_view name() const override { return "reduce_sum"; }

  std::string_view summary() const override { return "out = the sum of all elements of x, in two launches"; }

  std::vector<TensorParameter> tensors() const override {
    return {{"x", false, false, "any shape, f32, f16 or bf16"}, {"out", true, false, "one element of x's type"}};
  }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &) const override {
    return TensorTypes{{"out", {inputs.at("x").dtype, {1}}}};
  }

  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<ReduceSumOperation>(jit)](const Call &call, Plan &plan) -> Status {
      return operation->describe({call.tensors.at("x"), call.tensors.at("out")}, plan);
    };
  }

  double bytes(const Call &call) const override {
    const Tensor &x = call.tensors.at("x");
    return static_cast<double>(x.elements()) * dtypeBytes(x.dtype);
  }

  /// The first of the two launches.
  std::vector<FieldInfo> settings() const override { return fieldsOf<ReduceSumConfig>(); }

  language::Kernel record(DType element, const Settings &settings) const override {
    return recordWith(settings, ReduceSumConfig(),
                      [&](const ReduceSumConfig &c) { return reduceSumPartial(element, c); });
  }
};

class ReduceSumReference : public Reference {
public:
  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &) const override {
    double sum = 0;
    for (double v : inputs.at("x").values)
      sum += v;
    return HostTensors{{"out", {{1}, {sum}}}};
  }

  /// (n - 1) u sum |x| with u = 2^-24: fp32 in any order; and half an ulp of the type.
  std::vector<double> allowed(std::string_view, DType dtype, const HostTensors &inputs, const HostTensors &reference,
                              const OptionValues &) const override {
    const HostTensor &x = inputs.at("x");
    double absolute = 0;
    for (double v : x.values)
      absolute += std::abs(v);
    const double summed = std::max(0.0, static_cast<double>(x.values.size()) - 1) * 0x1p-24 * absolute;
    return {summed + halfUlp(std::abs(reference.at("out").values[0]) + summed, dtype)};
  }

  /// Each program's warps leave a number each in shared memory, one of them reads them all: a wavefront each.
  std::vector<Traffic> traffic(const TensorTypes &inputs) const override {
    const TensorType &x = inputs.at("x");
    const ReduceSumConfig c;
    const std::uint64_t n = x.elements(), size = dtypeBytes(x.dtype);
    const std::uint64_t block = static_cast<unsigned>(c.block), warps = static_cast<unsigned>(c.warps);
    const std::uint64_t programs = std::clamp<std::uint64_t>((n + block - 1) / block, 1, 1024);
    return {{"reduce_sum_partial", sectorsOfBlocks(n, block, size), programs, n * size, programs * 4, programs * warps,
             programs * (warps + 1)},
            {"reduce_sum_final", sectorsOnce(programs, 4), 1, programs * 4, size, warps, warps + 1}};
  }
};

class ReduceSumSamples : public Samples {
public:
  TensorTypes example(DType dtype, bool large) const override {
    return {{"x", {dtype, large ? Shape{1u << 27} : Shape{(1u << 18) + 3}}}};
  }
};

} // namespace

Family makeReduceSum() {
  return {std::make_unique<ReduceSumCallable>(), std::make_unique<ReduceSumReference>(),
          std::make_unique<ReduceSumSamples>()};
}

} // namespace kiln::kernels
