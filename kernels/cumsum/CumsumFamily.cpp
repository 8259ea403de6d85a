// `cumsum` for commands and tests: parameters, reference, tolerance.
#include "kernels/cumsum/CumsumOperation.h"
#include "kernels/support/Rounding.h"
#include "kernels/support/RowFamily.h"

namespace kiln::kernels {
namespace {

class CumsumCallable : public RowCallable {
public:
  std::string_view name() const override { return "cumsum"; }

  std::string_view summary() const override { return "out[r, j] = x[r, 0] + .. + x[r, j], row by row"; }

  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<CumsumOperation>(jit)](const Call &call, Plan &plan) -> Status {
      return operation->describe({call.tensors.at("x"), call.tensors.at("out")}, plan);
    };
  }

  std::vector<FieldInfo> settings() const override { return fieldsOf<CumsumConfig>(); }

  language::Kernel record(DType element, const Settings &settings) const override {
    return recordWith(settings, CumsumConfig(), [&](const CumsumConfig &c) { return cumsum(element, c); });
  }
};

class CumsumReference : public Reference {
public:
  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &) const override {
    HostTensor out = inputs.at("x");
    const HostRows r(out);
    for (std::size_t i = 0; i < r.rows; ++i)
      for (std::size_t j = 1; j < r.columns; ++j)
        out.values[i * r.columns + j] += out.values[i * r.columns + j - 1];
    return HostTensors{{"out", std::move(out)}};
  }

  /// (n - 1) u sum |x| of the n elements summed so far (u = 2^-24: fp32 in any order), and half an ulp of the type.
  std::vector<double> allowed(std::string_view, DType dtype, const HostTensors &inputs, const HostTensors &reference,
                              const OptionValues &) const override {
    const HostTensor &x = inputs.at("x"), &out = reference.at("out");
    const HostRows r(x);
    std::vector<double> limits(out.values.size());
    for (std::size_t i = 0; i < r.rows; ++i) {
      double absolute = 0;
      for (std::size_t j = 0; j < r.columns; ++j) {
        const std::size_t at = i * r.columns + j;
        absolute += std::abs(x.values[at]);
        const double summed = static_cast<double>(j) * 0x1p-24 * absolute;
        limits[at] = summed + halfUlp(std::abs(out.values[at]) + summed, dtype);
      }
    }
    return limits;
  }

  /// Tiles are full up to the last one of a row, whose mask cuts vectors; it is there also if nothing is left for it.
  /// Between two tiles the warps meet twice, for the sums inside the tile and for its total; after the last one nobody
  /// needs the total.
  std::vector<Traffic> traffic(const TensorTypes &inputs) const override {
    const TensorType &x = inputs.at("x");
    const std::uint64_t columns = x.shape.back(), rows = x.shape.size() == 2 ? x.shape[0] : 1;
    const RowTile tile = rowTile(static_cast<std::int64_t>(columns), 2048, 2048);
    const std::uint64_t block = static_cast<unsigned>(tile.block), size = dtypeBytes(x.dtype);
    Traffic t = rowTraffic("cumsum", x, tile, 1, 2 * (columns / block + 1) - 1);
    if (columns * size % 16 == 0)
      t.loadSectors = t.storeSectors =
          columns < block ? sectorsOfCutRows(rows, columns, size) : rows * sectorsOfBlocks(columns, block, size);
    return {t};
  }
};

} // namespace

Family makeCumsum() {
  return {std::make_unique<CumsumCallable>(), std::make_unique<CumsumReference>(), std::make_unique<RowSamples>()};
}

} // namespace kiln::kernels
