// `add` for commands and tests: parameters, reference, tolerance.
#include "kernels/add/AddOperation.h"
#include "kernels/support/Family.h"
#include "kernels/support/Rounding.h"

namespace kiln::kernels {
namespace {

class AddCallable : public Callable {
public:
  std::string_view name() const override { return "add"; }

  std::string_view summary() const override { return "out = x + y, element by element"; }

  std::vector<TensorParameter> tensors() const override {
    return {{"x", false, false, "up to four dimensions, f32, f16 or bf16"},
            {"y", false, false, "of x's shape and type"},
            {"out", true, false, "of x's shape and type"}};
  }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &) const override {
    return TensorTypes{{"out", inputs.at("x")}};
  }

  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<AddOperation>(jit)](const Call &call, Plan &plan) -> Status {
      return operation->describe({call.tensors.at("x"), call.tensors.at("y"), call.tensors.at("out")}, plan);
    };
  }

  std::vector<FieldInfo> settings() const override { return fieldsOf<AddConfig>(); }

  language::Kernel record(DType element, const Settings &settings) const override {
    return recordWith(settings, AddConfig(), [&](const AddConfig &c) { return add(element, c); });
  }
};

class AddReference : public Reference {
public:
  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &) const override {
    const HostTensor &x = inputs.at("x"), &y = inputs.at("y");
    HostTensor out = x;
    for (std::size_t i = 0; i < out.values.size(); ++i)
      out.values[i] = x.values[i] + y.values[i];
    return HostTensors{{"out", std::move(out)}};
  }

  /// Correctly rounded: the reference rounded to the type is the only right answer, up to the reference's own rounding
  /// (a sum of two f32 values has up to 277 bits; where float64 rounds it, half a unit of float64 decides).
  std::vector<double> allowed(std::string_view, DType dtype, const HostTensors &, const HostTensors &reference,
                              const OptionValues &) const override {
    const HostTensor &out = reference.at("out");
    std::vector<double> limits(out.values.size());
    for (std::size_t i = 0; i < limits.size(); ++i)
      limits[i] = halfUlp(out.values[i], dtype);
    return limits;
  }

  std::vector<Traffic> traffic(const TensorTypes &inputs) const override {
    const TensorType &x = inputs.at("x");
    const std::uint64_t n = x.elements(), size = dtypeBytes(x.dtype);
    const std::uint64_t sectors = sectorsOfBlocks(n, static_cast<unsigned>(AddConfig().block), size);
    return {{"add", 2 * sectors, sectors, 2 * n * size, n * size, 0, 0}};
  }
};

class AddSamples : public Samples {
public:
  TensorTypes example(DType dtype, bool large) const override {
    const Shape shape = large ? Shape{1u << 27} : Shape{(1u << 18) + 3};
    return {{"x", {dtype, shape}}, {"y", {dtype, shape}}};
  }
};

} // namespace

Family makeAdd() {
  return {std::make_unique<AddCallable>(), std::make_unique<AddReference>(), std::make_unique<AddSamples>()};
}

} // namespace kiln::kernels
