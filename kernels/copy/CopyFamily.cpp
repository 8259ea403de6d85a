// `copy` for commands and tests.
#include "kernels/copy/CopyOperation.h"
#include "kernels/support/Family.h"
#include "kernels/support/MoveReference.h"

namespace kiln::kernels {
namespace {

class CopyCallable : public Callable {
public:
  std::string_view name() const override { return "copy"; }

  std::string_view summary() const override { return "out = x, for any strides"; }

  std::vector<TensorParameter> tensors() const override {
    return {{"x", false, false, "up to four dimensions, any type"}, {"out", true, false, "of x's shape and type"}};
  }

  bool takes(DType) const override { return true; }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &) const override {
    return TensorTypes{{"out", inputs.at("x")}};
  }

  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<CopyOperation>(jit)](const Call &call, Plan &plan) -> Status {
      return operation->describe({call.tensors.at("x"), call.tensors.at("out")}, plan);
    };
  }

  std::vector<FieldInfo> settings() const override { return fieldsOf<CopyConfig>(); }

  language::Kernel record(DType element, const Settings &settings) const override {
    return recordWith(settings, CopyConfig(), [&](const CopyConfig &c) { return copy(element, c); });
  }
};

class CopyReference : public MoveReference {
public:
  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &) const override {
    return HostTensors{{"out", inputs.at("x")}};
  }

  std::vector<Traffic> traffic(const TensorTypes &inputs) const override {
    const TensorType &x = inputs.at("x");
    const std::uint64_t n = x.elements(), size = dtypeBytes(x.dtype);
    const std::uint64_t sectors =
        sectorsOfBlocks(n, static_cast<unsigned>(CopyConfig().blockFor(static_cast<unsigned>(size))), size);
    return {{"copy", sectors, sectors, n * size, n * size, 0, 0}};
  }
};

class CopySamples : public Samples {
public:
  TensorTypes example(DType dtype, bool large) const override {
    return {{"x", {dtype, large ? Shape{1u << 27} : Shape{(1u << 18) + 3}}}};
  }
};

} // namespace

Family makeCopy() {
  return {std::make_unique<CopyCallable>(), std::make_unique<CopyReference>(), std::make_unique<CopySamples>()};
}

} // namespace kiln::kernels
