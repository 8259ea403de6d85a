// `softmax` for commands and tests: parameters, reference, tolerance.
#include "kernels/softmax/SoftmaxOperation.h"
#include "kernels/support/Rounding.h"
#include "kernels/support/RowFamily.h"

namespace kiln::kernels {
namespace {

class SoftmaxCallable : public RowCallable {
public:
  std::string_view name() const override { return "softmax"; }

  std::string_view summary() const override { return "out[r, :] = exp(x[r, :] - max) / sum, row by row"; }

  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<SoftmaxOperation>(jit)](const Call &call, Plan &plan) -> Status {
      return operation->describe({call.tensors.at("x"), call.tensors.at("out")}, plan);
    };
  }

  std::vector<FieldInfo> settings() const override { return fieldsOf<SoftmaxConfig>(); }

  language::Kernel record(DType element, const Settings &settings) const override {
    return recordWith(settings, SoftmaxConfig(), [&](const SoftmaxConfig &c) { return softmax(element, c); });
  }
};

class SoftmaxReference : public Reference {
public:
  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &) const override {
    HostTensor out = inputs.at("x");
    const HostRows r(out);
    for (std::size_t i = 0; i < r.rows; ++i) {
      double *row = out.values.data() + i * r.columns;
      double most = -INFINITY, sum = 0;
      for (std::size_t j = 0; j < r.columns; ++j)
        if (std::isnan(row[j]) || row[j] > most) // a NaN stays: nothing is larger than it
          most = row[j];
      for (std::size_t j = 0; j < r.columns; ++j)
        sum += row[j] = std::exp(row[j] - most);
      for (std::size_t j = 0; j < r.columns; ++j)
        row[j] /= sum;
    }
    return HostTensors{{"out", std::move(out)}};
  }

  /// 2 ulp of the type plus 1e-6.
  std::vector<double> allowed(std::string_view, DType dtype, const HostTensors &, const HostTensors &reference,
                              const OptionValues &) const override {
    const HostTensor &out = reference.at("out");
    std::vector<double> limits(out.values.size());
    for (std::size_t i = 0; i < limits.size(); ++i)
      limits[i] = 2 * ulp(out.values[i], dtype) + 1e-6;
    return limits;
  }

  /// Once for the maximum and the sum, once again for the result if a row does not fit a tile.  Two meetings: maximum,
  /// sum.
  std::vector<Traffic> traffic(const TensorTypes &inputs) const override {
    const TensorType &x = inputs.at("x");
    const RowTile tile = rowTile(static_cast<std::int64_t>(x.shape.back()));
    return {rowTraffic("softmax", x, tile, tile.looping ? 2 : 1, 2)};
  }
};

} // namespace

Family makeSoftmax() {
  return {std::make_unique<SoftmaxCallable>(), std::make_unique<SoftmaxReference>(), std::make_unique<RowSamples>()};
}

} // namespace kiln::kernels
