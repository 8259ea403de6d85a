#include "kernels/support/Comparison.h"

#include "kernels/support/Rounding.h"
#include "support/Parallel.h"
#include "support/Text.h"

#include <algorithm>
#include <cmath>

namespace kiln::kernels {
namespace {

/// Fewer elements are not worth a thread.  Sums are of whole pieces, so that they do not depend on threads.
constexpr std::size_t pieceElements = std::size_t(1) << 18;

/// What the comparison of some elements of an output says.
struct Part {
  std::uint64_t wrong = 0;
  double total = 0, squares = 0, referenceSquares = 0; ///< of the differences and of the reference
  double worstDifference = 0, worstExcess = 0;
  std::uint64_t worstIndex = 0;
  double got = 0, wanted = 0; ///< at worstIndex
};

Part partOf(const HostTensor &expected, const Array &is, const std::vector<double> &allowed, std::size_t begin,
            std::size_t end) {
  Part out;
  const DType type = is.type;
  const std::size_t bytes = dtypeBytes(type);
  for (std::size_t i = begin; i < end; ++i) {
    const std::uint64_t at = expected.sample.empty() ? i : expected.sample[i];
    const double g = loadElement(is.data.data() + at * bytes, type), w = expected.values[i];
    // Infinity is the rounded result where the value before rounding may lie beyond the type's largest.
    const bool overflows = std::isinf(g) && std::signbit(g) == std::signbit(w) &&
                           std::abs(w) + std::max(0.0, allowed[i] - halfUlp(w, type)) >= overflowThreshold(type);
    const bool same = g == w || (std::isnan(g) && std::isnan(w)) || overflows;
    const double difference = same ? 0 : std::abs(g - w);
    const double excess = same ? 0 : allowed[i] > 0 ? difference / allowed[i] : INFINITY;
    const bool wrong = !(excess <= 1); // a NaN on one side is wrong
    out.wrong += wrong;
    out.total += difference;
    out.squares += difference * difference;
    out.referenceSquares += w * w;
    if (difference > out.worstDifference)
      out.worstDifference = difference;
    if (excess > out.worstExcess || (wrong && out.wrong == 1)) {
      out.worstExcess = std::isnan(excess) ? INFINITY : excess;
      out.worstIndex = at;
      out.got = g;
      out.wanted = w;
    }
  }
  return out;
}

} // namespace

std::string Comparison::toString() const {
  const std::string sampled =
      elements < all ? format(", a sample of %llu", static_cast<unsigned long long>(all)) : std::string();
  if (wrong == 0 && !(meanExcess <= 1))
    return format("the mean difference of '%s' is %.3g times what is allowed, though each of %llu elements%s is within "
                  "tolerance",
                  output.c_str(), meanExcess, static_cast<unsigned long long>(elements), sampled.c_str());
  if (wrong == 0 && ratioExcess > 1)
    return format("the root mean square of the differences of '%s' is %.3g times what is allowed, though each of %llu "
                  "elements%s is within tolerance",
                  output.c_str(), ratioExcess, static_cast<unsigned long long>(elements), sampled.c_str());
  if (good() && ratioExcess > 0)
    return format("%llu elements%s within tolerance (root mean square %.2g of it, largest difference %.3g)",
                  static_cast<unsigned long long>(elements), sampled.c_str(), ratioExcess, worstDifference);
  if (good())
    return format("%llu elements%s within tolerance (worst %.2g of it, largest difference %.3g)",
                  static_cast<unsigned long long>(elements), sampled.c_str(), worstExcess, worstDifference);
  return format("%llu of %llu elements%s of '%s' are wrong; the worst is element %llu: %.9g, expected %.9g",
                static_cast<unsigned long long>(wrong), static_cast<unsigned long long>(elements), sampled.c_str(),
                output.c_str(), static_cast<unsigned long long>(worstIndex), got, wanted);
}

Result<Comparison> compareWithReference(const Family &family, const Arrays &inputs, const OptionValues &options,
                                        const Arrays &outputs) {
  KILN_ASSIGN(const Reference *reference, referenceOf(family));
  const HostTensors host = toHost(inputs);
  KILN_ASSIGN(const HostTensors wanted, reference->compute(host, options));
  return compareWith(wanted, *reference, host, options, outputs);
}

Result<Comparison> compareWith(const HostTensors &wanted, const Reference &reference, const HostTensors &inputs,
                               const OptionValues &options, const Arrays &outputs, Limits *known) {
  Comparison out;
  Limits own;
  Limits &limits = known ? *known : own;
  for (const auto &[name, expected] : wanted) {
    const auto found = outputs.find(name);
    if (found == outputs.end() || found->second.shape != expected.shape)
      return Status(StatusCode::Internal, "the reference of '" + name + "' does not have the output's shape");
    auto limit = limits.find(name);
    if (limit == limits.end())
      limit = limits.emplace(name, reference.allowed(name, found->second.type, inputs, wanted, options)).first;
    const std::vector<double> &allowed = limit->second;
    const std::uint64_t compared = expected.sample.empty() ? found->second.elements() : expected.sample.size();
    if (allowed.size() != compared || expected.values.size() != compared)
      return Status(StatusCode::Internal, "'" + name + "' has no tolerance for each element");
    out.elements += compared;
    out.all += found->second.elements();
    const DType type = found->second.type;
    std::vector<Part> parts((compared + pieceElements - 1) / pieceElements);
    inPieces(compared, pieceElements, [&](std::size_t begin, std::size_t end) {
      parts[begin / pieceElements] = partOf(expected, found->second, allowed, begin, end);
    });
    double total = 0, squares = 0, referenceSquares = 0;
    for (const Part &part : parts) {
      total += part.total, squares += part.squares, referenceSquares += part.referenceSquares;
      out.worstDifference = std::max(out.worstDifference, part.worstDifference);
      if (part.worstExcess > out.worstExcess || (part.wrong && !out.wrong)) {
        out.output = name;
        out.worstExcess = part.worstExcess, out.worstIndex = part.worstIndex;
        out.got = part.got, out.wanted = part.wanted;
      }
      out.wrong += part.wrong;
    }
    if (const std::optional<double> mean = reference.allowedMean(name, type, inputs, expected); mean && compared) {
      const double excess = total / static_cast<double>(compared) / *mean;
      out.meanExcess = std::isnan(excess) ? INFINITY : std::max(out.meanExcess, excess);
      if (excess > 1 && out.wrong == 0)
        out.output = name;
    }
    if (const std::optional<double> ratio = reference.allowedRatio(name); ratio && compared) {
      const double n = static_cast<double>(compared);
      const double excess = std::sqrt(squares / n) / (std::sqrt(referenceSquares / n) + 1e-8) / *ratio;
      out.ratioExcess = std::isnan(excess) ? INFINITY : std::max(out.ratioExcess, excess);
      if (excess > 1 && out.wrong == 0)
        out.output = name;
    }
  }
  return out;
}

} // namespace kiln::kernels
