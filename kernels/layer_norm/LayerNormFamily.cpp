// `layer_norm` for commands and tests: parameters, reference, tolerance.
#include "kernels/layer_norm/LayerNormOperation.h"
#include "kernels/support/Family.h"
#include "kernels/support/Rounding.h"

namespace kiln::kernels {
namespace {

/// Mean and 1 / sqrt(variance + eps) of each row.
struct RowMoments {
  std::vector<double> mean, scale, largest; ///< largest |x - mean|
  RowMoments(const HostTensor &x, double eps) {
    const HostRows r(x);
    for (std::size_t i = 0; i < r.rows; ++i) {
      const double *row = x.values.data() + i * r.columns;
      double sum = 0, squares = 0, most = 0;
      for (std::size_t j = 0; j < r.columns; ++j)
        sum += row[j];
      const double m = sum / static_cast<double>(r.columns);
      for (std::size_t j = 0; j < r.columns; ++j) {
        squares += (row[j] - m) * (row[j] - m);
        most = std::max(most, std::abs(row[j] - m));
      }
      mean.push_back(m);
      scale.push_back(1 / std::sqrt(squares / static_cast<double>(r.columns) + eps));
      largest.push_back(most);
    }
  }
};

class LayerNormCallable : public Callable {
public:
  std::string_view name() const override { return "layer_norm"; }

  std::string_view summary() const override {
    return "out = (x - mean) / sqrt(variance + eps) * weight + bias, row by row";
  }

  std::vector<TensorParameter> tensors() const override {
    return {{"x", false, false, "columns, or rows x columns; f32, f16 or bf16"},
            {"weight", false, true, "columns; with bias", {}, "bias"},
            {"bias", false, true, "columns; with weight", {}, "weight"},
            {"out", true, false, "of x's shape and type"}};
  }

  std::vector<OptionInfo> options() const override { return optionsOf<LayerNormArguments>(); }

  Result<TensorTypes> outputs(const TensorTypes &inputs, const OptionValues &) const override {
    if (inputs.count("weight") != inputs.count("bias"))
      return Status::invalid("weight and bias belong together", "give both or neither");
    return TensorTypes{{"out", inputs.at("x")}};
  }

  Planner bind(Jit &jit) const override {
    return [operation = std::make_shared<LayerNormOperation>(jit)](const Call &call, Plan &plan) -> Status {
      LayerNormArguments a;
      a.x = call.tensors.at("x");
      a.out = call.tensors.at("out");
      if (auto weight = call.tensors.find("weight"); weight != call.tensors.end())
        a.weight = weight->second;
      if (auto bias = call.tensors.find("bias"); bias != call.tensors.end())
        a.bias = bias->second;
      KILN_TRY(readOptions(operation->name(), call.options, a));
      return operation->describe(a, plan);
    };
  }

  double bytes(const Call &call) const override {
    const Tensor &x = call.tensors.at("x");
    return 2.0 * static_cast<double>(x.elements()) * dtypeBytes(x.dtype);
  }

  std::vector<FieldInfo> settings() const override { return fieldsOf<LayerNormConfig>(); }

  language::Kernel record(DType element, const Settings &settings) const override {
    return recordWith(settings, LayerNormConfig(), [&](const LayerNormConfig &c) { return layerNorm(element, c); });
  }
};

class LayerNormReference : public Reference {
public:
  Result<HostTensors> compute(const HostTensors &inputs, const OptionValues &options) const override {
    KILN_ASSIGN(const LayerNormArguments arguments, readOptions<LayerNormArguments>("layer_norm", options));
    HostTensor out = inputs.at("x");
    const HostRows r(out);
    const RowMoments moments(out, static_cast<double>(arguments.eps));
    const HostTensor *weight = inputs.count("weight") ? &inputs.at("weight") : nullptr;
    const HostTensor *bias = inputs.count("bias") ? &inputs.at("bias") : nullptr;
    for (std::size_t i = 0; i < r.rows; ++i)
      for (std::size_t j = 0; j < r.columns; ++j) {
        double &v = out.values[i * r.columns + j];
        v = (v - moments.mean[i]) * moments.scale[i];
        if (weight && bias)
          v = v * weight->values[j] + bias->values[j];
      }
    return HostTensors{{"out", std::move(out)}};
  }

  /// With u = 2^-24 and n columns: the mean is off by at most (n + 3) u mean|x|, which every x - mean shares (n - 1
  /// additions, and 2 ulp of the division); the variance by a relative (n + 7) u, its root by half of that; each later
  /// operation by u.  Then half an ulp of the type.
  std::vector<double> allowed(std::string_view, DType dtype, const HostTensors &inputs, const HostTensors &reference,
                              const OptionValues &options) const override {
    const auto arguments = readOptions<LayerNormArguments>("layer_norm", options);
    if (!arguments.ok())
      return {};
    const HostTensor &x = inputs.at("x"), &out = reference.at("out");
    const HostRows r(x);
    const RowMoments moments(x, static_cast<double>(arguments->eps));
    const double u = 0x1p-24, n = static_cast<double>(r.columns);
    std::vector<double> limits(out.values.size());
    for (std::size_t i = 0; i < r.rows; ++i) {
      double absolute = 0;
      for (std::size_t j = 0; j < r.columns; ++j)
        absolute += std::abs(x.values[i * r.columns + j]);
      const double meanError = (n + 3) * u * absolute / n;
      // A shifted mean adds meanError^2 to the variance.
      const double relativeScale = (n + 7) * u / 2 + 0.5 * std::pow(meanError * moments.scale[i], 2);
      for (std::size_t j = 0; j < r.columns; ++j) {
        const std::size_t at = i * r.columns + j;
        const double weight = inputs.count("weight") ? std::abs(inputs.at("weight").values[j]) : 1;
        const double bias = inputs.count("bias") ? std::abs(inputs.at("bias").values[j]) : 0;
        const double normal = std::abs(x.values[at] - moments.mean[i]) * moments.scale[i];
        const double error = weight * (meanError * moments.scale[i] + normal * (relativeScale + 4 * u)) +
                             (weight * normal + bias) * 2 * u;
        limits[at] = error + halfUlp(std::abs(out.values[at]) + error, dtype);
      }
    }
    return limits;
  }

  /// Meetings: mean and variance; of rows that do not fit a tile also the shift that the tiles' means are combined
  /// with.
  std::vector<Traffic> traffic(const TensorTypes &inputs) const override {
    const TensorType &x = inputs.at("x");
    const RowTile tile = rowTile(static_cast<std::int64_t>(x.shape.back()));
    Traffic t = rowTraffic("layer_norm", x, tile, tile.looping ? 2 : 1, tile.looping ? 3 : 2);
    if (inputs.count("weight") && !addWeightAndBias(t, x, tile))
      return {};
    return {t};
  }

  /// Each program reads weight and bias, and so do warps that have other rows than each other: a warp's lanes spread
  /// over 1 / `lanesOfRow` rows, which costs bytes, but no sectors.  Their columns start aligned.  So a program of one
  /// row takes them, and with them the row, in vectors even if rows do not start aligned, which cuts the vectors.
  ///
  /// Nothing is stated (false) for 16-bit rows that fill their part of a tile of several rows: there it is up to LLVM
  /// whether threads without a row read them.
  static bool addWeightAndBias(Traffic &t, const TensorType &x, const RowTile &tile) {
    const std::uint64_t columns = x.shape.back(), rows = x.shape.size() == 2 ? x.shape[0] : 1;
    const std::uint64_t size = dtypeBytes(x.dtype), block = static_cast<unsigned>(tile.block);
    const bool severalRows = tile.rowsPerProgram > 1, cut = columns * size % 16 != 0 && !severalRows;
    if (severalRows && size == 2 && columns == block)
      return false;
    const std::uint64_t programs = ceilDiv(rows, static_cast<std::uint64_t>(tile.rowsPerProgram));
    const std::uint64_t ofLane = elementsOfLane(columns, size);
    const std::uint64_t lanesOfRow = severalRows ? std::min<std::uint64_t>(32, block / ofLane) : 32;
    const auto warps = static_cast<unsigned>(tile.warps);
    const std::uint64_t readers = severalRows ? warps / std::clamp<std::uint64_t>(block / (32 * ofLane), 1, warps) : 1;
    const std::uint64_t sectors = !cut           ? sectorsOnce(columns, size)
                                  : tile.looping ? sectorsOfBlocks(columns, block, size)
                                                 : sectorsOfCutVectors(columns, size);
    if (cut) {
      t.storeSectors = sectorsOfCutRows(rows, columns, size);
      t.loadSectors = (tile.looping ? 2 : 1) * t.storeSectors;
    }
    t.loadSectors += 2 * programs * readers * sectors;
    t.loadBytes += 2 * programs * readers * (32 / lanesOfRow) * columns * size;
    return true;
  }
};

class LayerNormSamples : public Samples {
public:
  TensorTypes example(DType dtype, bool large) const override {
    const std::uint64_t rows = large ? 8192 : 64, columns = large ? 8192 : 1000;
    return {{"x", {dtype, {rows, columns}}}, {"weight", {dtype, {columns}}}, {"bias", {dtype, {columns}}}};
  }
};

} // namespace

Family makeLayerNorm() {
  return {std::make_unique<LayerNormCallable>(), std::make_unique<LayerNormReference>(),
          std::make_unique<LayerNormSamples>()};
}

} // namespace kiln::kernels
