// `softmax` for commands and tests: parameters, reference, tolerance.
#include "kernels/softmax/SoftmaxOperation.h"
#include "kernels/support/Rounding.h"
#include "kernels/support/RowFamily.h"

namespace kiln::kernels {
namespace {

class SoftmaxFamily : public RowFamily {
public:
  std::string_view name() const override { return "softmax"; }
  std::string_view summary() const override { return "out[r, :] = exp(x[r, :] - max) / sum, row by row"; }
  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<SoftmaxOperation>(jit)](const Call &call, Plan &plan) -> Status {
      return operation->describe({call.tensors.at("x"), call.tensors.at("out")}, plan);
    };
  }

  Result<HostTensors> reference(const HostTensors &inputs, const Numbers &) const override {
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
                              const Numbers &) const override {
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

  std::vector<FieldInfo> settings() const override { return fieldsOf<SoftmaxConfig>(); }
  language::Kernel record(DType element, const Settings &settings) const override {
    SoftmaxConfig c;
    if (Status s = applySettings(settings, c); !s.ok())
      return language::Kernel::failed(std::move(s));
    return softmax(element, c);
  }
};

} // namespace

std::unique_ptr<Family> makeSoftmax() {
  return std::make_unique<SoftmaxFamily>();
}

} // namespace kiln::kernels
