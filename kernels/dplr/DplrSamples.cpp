#include "kernels/dplr/DplrSamples.h"

#include "kernels/support/Runner.h"

#include <cmath>

namespace kiln::kernels {

TensorTypes DplrSamples::inputTypes(DType dtype, std::uint64_t batch, std::uint64_t tokens, std::uint64_t heads,
                                    std::uint64_t dim, std::uint64_t dimV) const {
  TensorTypes out;
  const Shape keys{batch, tokens, heads, dim}, head{batch, tokens, heads};
  out[std::string(names.q)] = out["k"] = {dtype, keys};
  out["v"] = {dtype, {batch, tokens, heads, dimV}};
  if (names.rule == ChunkRule::Dplr)
    out["a"] = out["b"] = {dtype, keys};
  if (names.gate != GateKind::None)
    out[std::string(names.g)] = {DType::F32, names.gate == GateKind::Head ? head : keys};
  if (names.rule == ChunkRule::Delta)
    out["beta"] = {DType::F32, head};
  return out;
}

OptionValues DplrSamples::safeOptions() const {
  return names.isRwkv() ? OptionValues{{"lower_bound", -0.60653067}} : OptionValues{};
}

/// As the specification's tests: q, k, v, dO and states normal; a of length 1, b its opposite; g = logsigmoid of normal
/// numbers, of rwkv7 -exp(-1/2) sigmoid.  Of the delta rule k of length 1, beta = sigmoid of normal numbers.
std::optional<Array> DplrSamples::input(std::string_view name, const TensorType &type, std::uint64_t seed) const {
  if (name == "cu_seqlens")
    return {};
  const std::uint64_t own = seed * 31 + (name == "a" || name == "b" ? 1 : std::hash<std::string_view>()(name));
  std::vector<float> values(type.elements());
  const bool isGate = name == names.g, isPositive = name == "a" || name == "b",
             isVector = isPositive || (name == "k" && names.rule == ChunkRule::Delta);
  drawInPieces(values.size(), own, [&](std::mt19937_64 &random, std::size_t begin, std::size_t end) {
    std::normal_distribution<double> normal(0, 1);
    std::uniform_real_distribution<double> uniform(0, 1);
    for (std::size_t i = begin; i < end; ++i) {
      const double z = isPositive ? uniform(random) : normal(random);
      values[i] = static_cast<float>(name == "beta"   ? 1 / (1 + std::exp(-z))
                                     : !isGate        ? z
                                     : names.isRwkv() ? -std::exp(-0.5) / (1 + std::exp(-z))
                                                      : -std::log1p(std::exp(-z)));
    }
  });
  const std::uint64_t columns = type.shape.empty() ? 1 : type.shape.back();
  inPieces(isVector && columns ? values.size() / columns : 0, 1 << 14, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      double squares = 1e-30;
      for (std::uint64_t j = 0; j < columns; ++j)
        squares += static_cast<double>(values[row * columns + j]) * static_cast<double>(values[row * columns + j]);
      for (std::uint64_t j = 0; j < columns; ++j)
        values[row * columns + j] *= static_cast<float>((name == "b" ? -1 : 1) / std::sqrt(squares));
    }
  });
  return arrayOf(type, values);
}

} // namespace kiln::kernels
