#include "compiler/layout/Checks.h"

#include "support/Text.h"

#include <algorithm>

namespace kiln::layout {

std::string listText(std::span<const std::int64_t> list) {
  // Lists in messages stay short whatever the user wrote.
  constexpr std::size_t shown = 16;
  std::string out = "[";
  for (std::size_t i = 0; i < list.size() && i < shown; ++i)
    out += (i ? ", " : "") + std::to_string(list[i]);
  if (list.size() > shown)
    out += format(", .. %zu more", list.size() - shown);
  return out + "]";
}

std::string shapeText(std::span<const std::int64_t> shape) {
  if (shape.empty())
    return "scalar";
  std::string out;
  for (std::int64_t extent : shape)
    out += (out.empty() ? "" : "x") + std::to_string(extent);
  return out;
}

Result<unsigned> log2Of(const char *code, std::string_view name, std::int64_t value) {
  if (isPowerOfTwo(value))
    return static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(value)));
  std::string message =
      format("%s: %.*s = %lld is no power of two", code, int(name.size()), name.data(), static_cast<long long>(value));
  if (value <= 0)
    return Status::invalid(message, "use 1 or a larger power of two");
  std::uint64_t below = std::bit_floor(static_cast<std::uint64_t>(value));
  return Status::invalid(message, below >> 62 ? format("use %llu", static_cast<unsigned long long>(below))
                                              : format("use %llu or %llu", static_cast<unsigned long long>(below),
                                                       static_cast<unsigned long long>(below * 2)));
}

Status checkLength(std::string_view name, std::span<const std::int64_t> list, std::size_t rank) {
  if (list.size() == rank)
    return {};
  return Status::invalid(format("L02: %.*s = %s has %zu entries, the tensor has rank %zu", int(name.size()),
                                name.data(), listText(list).c_str(), list.size(), rank),
                         format("give %zu entries", rank));
}

Sizes lastDimFirst(std::size_t rank) {
  Sizes out;
  for (std::size_t d = rank; d-- > 0;)
    out.push_back(static_cast<std::int64_t>(d));
  return out;
}

Result<Sizes> permutationOf(std::string_view name, std::span<const std::int64_t> list, const Sizes &standard,
                            std::size_t rank) {
  if (list.empty())
    return standard;
  Sizes sorted(list.begin(), list.end());
  std::sort(sorted.begin(), sorted.end());
  bool good = sorted.size() == rank;
  for (std::size_t i = 0; good && i < rank; ++i)
    good = sorted[i] == static_cast<std::int64_t>(i);
  if (good)
    return Sizes(list.begin(), list.end());
  return Status::invalid(format("L06: %.*s = %s is no permutation of 0 .. %d", int(name.size()), name.data(),
                                listText(list).c_str(), int(rank) - 1),
                         "name each dimension once, for example " + listText(standard));
}

Result<Coords> checkExtents(std::span<const std::int64_t> shape) {
  if (shape.size() > maxDims)
    return Status::invalid(
        format("L18: a tensor of rank %zu exceeds the limit of %u dimensions", shape.size(), maxDims),
        "merge dimensions with a reshape");
  Coords out;
  unsigned total = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t extent = shape[d];
    if (!isPowerOfTwo(extent)) {
      std::string remedy = "give it a positive extent";
      if (extent > 0 && extent <= std::int64_t(1) << maxTensorBits)
        remedy = format("pad dimension %zu through the view to %llu", d,
                        static_cast<unsigned long long>(std::bit_ceil(static_cast<std::uint64_t>(extent))));
      else if (extent > 0)
        remedy = "use a smaller tile";
      return Status::invalid(
          format("L01: extent %lld of dimension %zu is no power of two", static_cast<long long>(extent), d), remedy);
    }
    total += static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(extent)));
    if (total > maxTensorBits)
      return Status::invalid(
          format("L18: a tile of %s has more than 2^%u elements", shapeText(shape).c_str(), maxTensorBits),
          "use a smaller tile");
    out.push_back(static_cast<std::uint32_t>(extent));
  }
  return out;
}

Status checkElementBits(std::int64_t bits) {
  for (std::int64_t legal : {1, 4, 8, 16, 32, 64})
    if (bits == legal)
      return {};
  return Status::invalid(
      format("L12: element width %lld is not 1, 4, 8, 16, 32 or 64 bits", static_cast<long long>(bits)),
      "pack or widen the element to one of these widths");
}

Status checkWarps(const LinearLayout &layout, std::int64_t roleWarps) {
  if (layout.size(InDim::Warp) == roleWarps)
    return {};
  return Status::invalid(format("L05: the layout runs on %u warps, the role that executes it has %lld",
                                layout.size(InDim::Warp), static_cast<long long>(roleWarps)),
                         format("make the product of warpsPerCTA %lld", static_cast<long long>(roleWarps)));
}

Status checkTarget(const LinearLayout &layout, const Target &target) {
  if (layout.bits(InDim::Block) == 0 || target.has(Capability::Clusters))
    return {};
  return Status(StatusCode::Unsupported,
                format("L16: the layout spans %u blocks, and %s has no clusters (limit 1 block)",
                       layout.size(InDim::Block), std::string(target.name).c_str()),
                "use a layout of one block, or a target with the capability 'clusters' (sm_90 and later)");
}

Status checkThreadWords(const LinearLayout &layout, unsigned bits, unsigned repetitions) {
  constexpr std::uint64_t limit = 512; // 2^9 words: twice the registers a thread can have
  std::uint64_t elements = std::uint64_t(layout.size(InDim::Register)) * repetitions;
  std::uint64_t words = (elements * storageBytes(bits) + 3) / 4;
  if (words <= limit)
    return {};
  return Status::invalid(format("L18: a thread would hold %llu words of one value, the limit is %llu",
                                static_cast<unsigned long long>(words), static_cast<unsigned long long>(limit)),
                         "use more warps or a smaller tile");
}

Status checkDot(const DotOperand &a, std::span<const std::int64_t> shapeA, const DotOperand &b,
                std::span<const std::int64_t> shapeB, unsigned bits) {
  if (a.op != 0 || b.op != 1)
    return Status::invalid(format("L09: operands with op = %lld and %lld; the first must be 0 (A), the second 1 (B)",
                                  static_cast<long long>(a.op), static_cast<long long>(b.op)),
                           "exchange the operands");
  if (shapeA.size() < 2 || shapeB.size() != shapeA.size())
    return Status::invalid(format("L02: dot operands of ranks %zu and %zu", shapeA.size(), shapeB.size()),
                           "give both operands the same rank, at least 2");
  if (a.kWidth != b.kWidth)
    return Status::invalid(format("L09: kWidth is %lld on operand A and %lld on operand B; they must be equal",
                                  static_cast<long long>(a.kWidth), static_cast<long long>(b.kWidth)),
                           format("use kWidth = %lld on both", static_cast<long long>(std::max(a.kWidth, b.kWidth))));
  KILN_ASSIGN(unsigned logWidth, log2Of("L09", "kWidth", a.kWidth));
  (void)logWidth;
  std::size_t M = shapeA.size() - 2, N = M + 1;
  if (shapeA[N] != shapeB[M])
    return Status::invalid(format("L12: K is %lld in operand A and %lld in operand B",
                                  static_cast<long long>(shapeA[N]), static_cast<long long>(shapeB[M])),
                           "give both operands the same K");
  if (!a.parent.get() || !std::holds_alternative<Mma>(a.parent.get()->kind))
    return {}; // multiply-adds take any size
  // Minimum tile of the instruction; half a K tile is the short-K instruction.
  std::int64_t native = bits >= 32 ? 1 : 32 / std::max(1u, bits);
  std::int64_t unit = std::max(a.kWidth, native);
  if (unit > (std::int64_t(1) << maxTensorBits) || shapeA[N] < 4 * unit)
    return Status::invalid(format("L09: K = %lld is below 4 * max(kWidth, %lld) = %lld",
                                  static_cast<long long>(shapeA[N]), static_cast<long long>(native),
                                  static_cast<long long>(std::min(unit, std::int64_t(1) << 40) * 4)),
                           format("use K >= %lld, or a smaller kWidth",
                                  static_cast<long long>(std::min(unit, std::int64_t(1) << 40) * 4)));
  if (shapeA[M] < 16 || shapeB[N] < 8)
    return Status::invalid(format("L09: a dot of M = %lld and N = %lld is below the instruction's 16 and 8",
                                  static_cast<long long>(shapeA[M]), static_cast<long long>(shapeB[N])),
                           "pad M to 16 and N to 8 through the view");
  return {};
}

} // namespace kiln::layout
