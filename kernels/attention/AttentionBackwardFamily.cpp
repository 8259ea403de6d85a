#include "kernels/attention/AttentionBackward.h"
#include "kernels/support/Family.h"
namespace kiln::kernels {
namespace {
struct BackwardLaunchSetting {
  AttentionBackwardLaunch launch = AttentionBackwardLaunch::Keys;
  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("launch", &BackwardLaunchSetting::launch, anyValue, "which kernel of the call");
  }
};
class C : public Callable {
public:
  std::string_view name() const override { return "attention_backward"; }
  std::string_view summary() const override { return "x"; }
  std::vector<TensorParameter> tensors() const override { return {}; }
  std::vector<DType> dtypes() const override { return {DType::BF16, DType::F16}; }
  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &options) const override {
    return TensorTypes();
  }
  Planner bind(Jit &jit) const override { return {}; }
  std::vector<FieldInfo> settings() const override {
    return fieldsOf(BackwardLaunchSetting(), AttentionBackwardConfig());
  }
  language::Kernel record(DType element, const Settings &settings) const override {
    AttentionBackwardConfig c;
    BackwardLaunchSetting which;
    if (Status s = applySettings(settings, which, c); !s.ok())
      return language::Kernel::failed(std::move(s));
    return attentionBackward(which.launch, element, ofLaunch(which.launch, c));
  }
};
} // namespace
Family makeAttentionBackward() {
  return {std::make_unique<C>()};
}
} // namespace kiln::kernels
