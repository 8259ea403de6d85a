#include "tests/layout/RandomLayouts.h"

#include <algorithm>
#include <array>

namespace kiln::test {

using namespace kiln::layout;

namespace {

std::int64_t power(unsigned log) {
  return std::int64_t(1) << log;
}

Mma randomMma(Random &random, unsigned warpBits) {
  unsigned rows = random.between(0, warpBits);
  Mma m{.version = 2, .warpsPerCTA = {power(rows), power(warpBits - rows)}};
  m.warpOrder = random.chance(50) ? Sizes{0, 1} : Sizes{1, 0};
  if (random.chance(30))
    m.instrN = power(random.between(3, 6));
  return m;
}

/// Columns of the four inputs, free to change.
struct Columns4 {
  std::vector<BitVector> in[4];
  Columns4() = default;
  explicit Columns4(const LinearLayout &layout) {
    for (InDim d : hardwareDims)
      in[index(d)].assign(layout.columns(d).begin(), layout.columns(d).end());
  }
  LinearLayout on(std::span<const std::uint32_t> shape) const {
    auto made = LinearLayout::create(
        shape, {.registers = in[0], .lanes = in[1], .warps = in[2], .blocks = in[3], .offsets = {}});
    return *made; // the generators keep within the limits
  }
};

/// The same layout of a sheared tensor, and with hardware bits that overlap.  Both keep the rank of the bases.
LinearLayout disturb(Random &random, const LinearLayout &layout, std::span<const std::uint32_t> shape) {
  Columns4 columns(layout);
  const unsigned n = layout.totalBits();
  if (n >= 2 && random.chance(30)) {
    for (unsigned count = random.between(1, 6); count > 0; --count) {
      unsigned i = random.below(n), j = (i + random.between(1, n - 1)) % n;
      for (auto &list : columns.in)
        for (BitVector &c : list)
          c ^= (c >> i & 1) << j;
    }
  }
  if (random.chance(25)) {
    std::vector<BitVector *> every;
    for (auto &list : columns.in)
      for (BitVector &c : list)
        every.push_back(&c);
    for (unsigned count = random.between(1, 4); count > 0; --count) {
      auto many = static_cast<unsigned>(every.size());
      unsigned i = random.below(many), j = (i + random.between(1, many - 1)) % many;
      *every[i] ^= *every[j];
    }
  }
  return columns.on(shape);
}

} // namespace

Encoding randomFragment(Random &random, unsigned warpBits) {
  Mma m = randomMma(random, warpBits);
  switch (random.below(4)) {
  case 0:
    return m;
  case 1:
    return Transposed{.perm = {1, 0}, .parent = Encoding(m)};
  default:
    return DotOperand{.op = random.below(2), .kWidth = power(random.between(0, 3)), .parent = Encoding(m)};
  }
}

Encoding randomEncoding(Random &random, unsigned warpBits) {
  auto size = [&](unsigned most) { return power(random.between(0, most)); };
  unsigned rows = random.between(0, warpBits);
  switch (random.below(8)) {
  case 0:
  case 1: {
    unsigned lanes = random.between(0, 5);
    return Blocked{.sizePerThread = {size(3), size(3)},
                   .threadsPerWarp = {power(lanes), power(5 - lanes)},
                   .warpsPerCTA = {power(rows), power(warpBits - rows)},
                   .order = random.chance(50) ? Sizes{0, 1} : Sizes{1, 0}};
  }
  case 2:
    if (warpBits >= 2) {
      rows = random.between(2, warpBits);
      return Mma{
          .version = 3, .warpsPerCTA = {power(rows), power(warpBits - rows)}, .instrN = power(random.between(3, 8))};
    }
    return randomMma(random, warpBits);
  case 3:
    return randomMma(random, warpBits);
  case 4:
  case 5:
    return DotOperand{.op = random.below(2), .kWidth = size(3), .parent = Encoding(randomMma(random, warpBits))};
  case 6:
    return Transposed{.perm = {1, 0}, .parent = randomEncoding(random, warpBits)};
  default:
    break;
  }
  unsigned l0 = random.between(0, 5), l1 = random.between(0, 5 - l0);
  unsigned w1 = random.between(0, warpBits - rows);
  std::vector<std::int64_t> order = {0, 1, 2};
  random.shuffle(order);
  Blocked parent{.sizePerThread = {size(2), size(2), size(2)},
                 .threadsPerWarp = {power(l0), power(l1), power(5 - l0 - l1)},
                 .warpsPerCTA = {power(rows), power(w1), power(warpBits - rows - w1)},
                 .order = order};
  return Slice{.dim = random.below(3), .parent = Encoding(parent)};
}

LinearLayout randomPermutation(Random &random, unsigned tensorBits, unsigned warpBits, unsigned blockBits,
                               std::span<const std::uint32_t> shape) {
  std::vector<BitVector> units;
  for (unsigned i = 0; i < tensorBits; ++i)
    units.push_back(unitVector(i));
  random.shuffle(units);
  Columns4 columns;
  columns.in[1].assign(5, 0);
  columns.in[2].assign(warpBits, 0);
  columns.in[3].assign(blockBits, 0);
  std::vector<BitVector *> slots;
  for (unsigned d = 1; d < 4; ++d)
    for (BitVector &c : columns.in[d])
      slots.push_back(&c);
  random.shuffle(slots);
  unsigned percent = random.below(101);
  for (BitVector unit : units) {
    if (!slots.empty() && random.chance(percent)) {
      *slots.back() = unit;
      slots.pop_back();
    } else {
      columns.in[0].push_back(unit);
    }
  }
  return columns.on(shape);
}

LayoutPair randomPair(Random &random, PairKind kind, unsigned maxTensorBits) {
  const unsigned n = random.between(0, maxTensorBits), rows = random.between(0, n);
  const unsigned warpBits = random.between(0, 4);
  const std::array<std::uint32_t, 2> shape = {1u << rows, 1u << (n - rows)};
  const Sizes extents = {shape[0], shape[1]};
  unsigned blockBits = std::array{0u, 0u, 0u, 0u, 0u, 1u, 2u}[random.below(7)];
  if (kind == PairKind::Any) {
    unsigned p = random.below(100);
    kind = p < 3    ? PairKind::Same
           : p < 6  ? PairKind::Renamed
           : p < 32 ? PairKind::InWarp
           : p < 40 ? PairKind::Fragment
                    : PairKind::Free;
  }
  auto encoded = [&](auto make) {
    auto made = lower(make(random, warpBits), extents);
    return made.ok() ? *made : randomPermutation(random, n, warpBits, 0, shape);
  };
  LayoutPair pair;
  switch (kind) {
  case PairKind::Fragment: {
    pair.kind = "fragments";
    pair.source = encoded(randomFragment);
    // Fragments of one mma exchange lanes only; two random ones mostly cross warps.
    Mma m = randomMma(random, warpBits);
    unsigned widths[2] = {random.between(0, 2), random.between(0, 3)};
    if (random.chance(80)) {
      Encoding a = m, b = DotOperand{.op = 0, .kWidth = power(widths[0]), .parent = Encoding(m)};
      if (random.chance(50)) {
        std::int64_t op = random.below(2);
        a = DotOperand{.op = op, .kWidth = power(widths[1]), .parent = Encoding(m)};
        b = DotOperand{.op = op, .kWidth = power(widths[0]), .parent = Encoding(m)};
      }
      if (random.chance(30))
        std::swap(a, b);
      pair.source = *lower(a, extents);
      pair.destination = *lower(b, extents);
    } else {
      pair.destination = encoded(randomFragment);
    }
    return pair; // undisturbed: a shear would make it something else
  }
  case PairKind::Same:
  case PairKind::Renamed: {
    pair.source =
        random.chance(50) ? encoded(randomEncoding) : randomPermutation(random, n, warpBits, blockBits, shape);
    pair.source = disturb(random, pair.source, shape);
    pair.destination = pair.source;
    pair.kind = "same";
    if (kind == PairKind::Renamed) {
      Columns4 columns(pair.source);
      random.shuffle(columns.in[0]);
      pair.destination = columns.on(shape);
      pair.kind = "renamed";
    }
    return pair;
  }
  case PairKind::InWarp: {
    pair.kind = "in warp";
    pair.source = randomPermutation(random, n, warpBits, blockBits, shape);
    Columns4 columns(pair.source);
    std::vector<BitVector> pool = columns.in[0];
    pool.insert(pool.end(), columns.in[1].begin(), columns.in[1].end());
    random.shuffle(pool);
    columns.in[1].assign(pool.begin(), pool.begin() + 5);
    columns.in[0].assign(pool.begin() + 5, pool.end());
    pair.destination = columns.on(shape);
    break;
  }
  case PairKind::Any:
  case PairKind::Free:
    if (random.chance(45)) {
      pair.kind = "encodings";
      pair.source = encoded(randomEncoding);
      pair.destination = encoded(randomEncoding);
    } else {
      pair.kind = "permutations";
      pair.source = randomPermutation(random, n, warpBits, blockBits, shape);
      pair.destination = randomPermutation(random, n, warpBits, blockBits, shape);
    }
    break;
  }
  pair.source = disturb(random, pair.source, shape);
  pair.destination = disturb(random, pair.destination, shape);
  return pair;
}

unsigned randomWidth(Random &random) {
  return std::array{1u, 8u, 16u, 32u, 64u, 8u, 16u, 32u, 4u}[random.below(9)];
}

const Target &randomTarget(Random &random, bool clusters) {
  auto targets = allTargets();
  for (;;) {
    const Target &t = targets[random.below(static_cast<unsigned>(targets.size()))];
    if (!clusters || t.has(Capability::Clusters))
      return t;
  }
}

std::uint64_t randomScratch(Random &random) {
  return random.chance(50) ? 48 << 10 : std::uint64_t(1024) << random.below(6);
}

SharedEncoding randomSharedEncoding(Random &random, std::uint32_t rows, std::uint32_t columns, unsigned bits) {
  const Sizes order = random.chance(50) ? Sizes{1, 0} : Sizes{0, 1};
  const std::uint32_t inner = order[0] == 1 ? columns : rows;
  const unsigned bytes = std::max(8u, bits) / 8;
  if (random.chance(50)) {
    std::vector<std::int64_t> legal = {0};
    for (std::int64_t s : {32, 64, 128})
      if (s <= std::int64_t(inner) * bytes)
        legal.push_back(s);
    return Tma{.swizzle = random.pick(legal), .order = order};
  }
  std::int64_t vec = power(random.between(0, 3)), most = power(random.between(0, 3));
  vec = std::min<std::int64_t>(vec, inner);
  return Swizzled{.vec = vec,
                  .perPhase = power(random.between(0, 2)),
                  .maxPhase = std::min<std::int64_t>(most, inner / vec),
                  .order = order};
}

} // namespace kiln::test
