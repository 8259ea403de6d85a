#include "tests/layout/LayoutTestSupport.h"

#include <algorithm>
#include <fstream>

namespace kiln::layout::test {

const nlohmann::json &golden() {
  static const nlohmann::json file = [] {
    std::ifstream in(KILN_SOURCE_DIR "/tests/layout/data/layouts_golden.json");
    return nlohmann::json::parse(in);
  }();
  return file;
}

namespace {

Sizes sizes(const nlohmann::json &e, const char *key) {
  return e.contains(key) ? e.at(key).get<Sizes>() : Sizes();
}

std::optional<CtaSplit> ctaOf(const nlohmann::json &e) {
  if (!e.contains("cta"))
    return std::nullopt;
  return CtaSplit{sizes(e["cta"], "ctas"), sizes(e["cta"], "split"), sizes(e["cta"], "order")};
}

} // namespace

Encoding encodingFromJson(const nlohmann::json &e) {
  std::string kind = e.at("kind");
  if (kind == "blocked")
    return Blocked{sizes(e, "sizePerThread"), sizes(e, "threadsPerWarp"), sizes(e, "warpsPerCTA"), sizes(e, "order"),
                   ctaOf(e)};
  if (kind == "mma")
    return Mma{e.at("version"), sizes(e, "warpsPerCTA"), e.value("instrN", std::int64_t(8)), sizes(e, "warpOrder"),
               ctaOf(e)};
  if (kind == "dot")
    return DotOperand{e.at("op"), e.at("kWidth"), encodingFromJson(e.at("parent")), ctaOf(e)};
  if (kind == "slice")
    return Slice{e.at("dim"), encodingFromJson(e.at("parent"))};
  if (kind == "transposed")
    return Transposed{sizes(e, "perm"), encodingFromJson(e.at("parent"))};
  ADD_FAILURE() << "the golden file has an encoding of kind " << kind;
  return Linear{};
}

SharedEncoding sharedFromJson(const nlohmann::json &e) {
  std::string kind = e.at("kind");
  if (kind == "tma")
    return Tma{e.at("swizzle"), sizes(e, "order")};
  if (kind == "swizzled")
    return Swizzled{e.value("vec", std::int64_t(1)), e.value("perPhase", std::int64_t(1)),
                    e.value("maxPhase", std::int64_t(1)), sizes(e, "order")};
  ADD_FAILURE() << "the golden file has a shared encoding of kind " << kind;
  return Swizzled{};
}

LinearLayout goldenLayout(std::size_t i) {
  const auto &entry = golden().at("layouts").at(i);
  auto shape = entry.at("shape").get<std::vector<std::uint32_t>>();
  std::array<std::vector<BitVector>, numHardwareDims> columns;
  for (unsigned d = 0; d < numHardwareDims; ++d)
    columns[d] = entry.at("bases").at(d).get<std::vector<BitVector>>();
  return unwrap(LinearLayout::create(shape, {columns[0], columns[1], columns[2], columns[3], {}}));
}

Sizes Random::split(int total, int parts) {
  std::vector<int> cuts = {0};
  for (int i = 1; i < parts; ++i)
    cuts.push_back(in(0, total));
  cuts.push_back(total);
  std::sort(cuts.begin(), cuts.end());
  Sizes out;
  for (int i = 0; i < parts; ++i)
    out.push_back(std::int64_t(1) << (cuts[i + 1] - cuts[i]));
  return out;
}

Sizes Random::permutation(int rank) {
  Sizes out;
  for (int d = 0; d < rank; ++d)
    out.push_back(d);
  shuffle(out);
  return out;
}

Blocked randomBlocked(Random &random, int rank, int warpBits) {
  Blocked out;
  for (int d = 0; d < rank; ++d)
    out.sizePerThread.push_back(std::int64_t(1) << random.in(0, 3));
  out.threadsPerWarp = random.split(5, rank);
  out.warpsPerCTA = random.split(warpBits, rank);
  out.order = random.permutation(rank);
  return out;
}

Encoding randomEncoding(Random &random, int warpBits) {
  Sizes warps = random.split(warpBits, 2);
  int kind = random.in(0, 7);
  if (kind == 7)
    return Transposed{{1, 0}, randomEncoding(random, warpBits)};
  if (kind <= 1)
    return randomBlocked(random, 2, warpBits);
  if (kind == 2)
    return Slice{random.in(0, 2), Encoding(randomBlocked(random, 3, warpBits))};
  if (kind == 3 && warpBits >= 2) {
    int m = random.in(2, warpBits);
    return Mma{3, {std::int64_t(1) << m, std::int64_t(1) << (warpBits - m)}, std::int64_t(8) << random.in(0, 5)};
  }
  Mma mma{2, warps, std::int64_t(8) << random.in(0, 1), random.permutation(2)};
  if (kind <= 4)
    return mma;
  return DotOperand{kind - 5, std::int64_t(1) << random.in(0, 3), Encoding(mma)};
}

LinearLayout RawLayout::build() const {
  return unwrap(LinearLayout::create(shape, {columns[0], columns[1], columns[2], columns[3], {}}));
}

namespace {

RawLayout randomPermutation(Random &random, int bits, int warpBits, int blockBits,
                            const std::vector<std::uint32_t> &shape) {
  RawLayout out{shape, {}};
  out.columns[1].assign(laneBits, 0);
  out.columns[2].assign(static_cast<std::size_t>(warpBits), 0);
  out.columns[3].assign(static_cast<std::size_t>(blockBits), 0);
  std::vector<BitVector> units;
  for (int i = 0; i < bits; ++i)
    units.push_back(unitVector(static_cast<unsigned>(i)));
  random.shuffle(units);
  std::vector<std::pair<unsigned, unsigned>> slots;
  for (unsigned d = 1; d < numHardwareDims; ++d)
    for (unsigned i = 0; i < out.columns[d].size(); ++i)
      slots.emplace_back(d, i);
  random.shuffle(slots);
  double keep = random.in(0, 100) / 100.0;
  for (BitVector u : units) {
    if (!slots.empty() && random.chance(keep)) {
      out.columns[slots.back().first][slots.back().second] = u;
      slots.pop_back();
    } else {
      out.columns[0].push_back(u);
    }
  }
  return out;
}

RawLayout rawOf(const LinearLayout &layout) {
  RawLayout out;
  for (std::uint32_t extent : layout.shape())
    out.shape.push_back(extent);
  for (InDim d : hardwareDims)
    out.columns[index(d)].assign(layout.columns(d).begin(), layout.columns(d).end());
  return out;
}

} // namespace

std::pair<LinearLayout, LinearLayout> randomPair(Random &random, int maxBits) {
  int bits = random.in(0, maxBits), warpBits = random.in(0, 4), blockBits = random.chance(0.7) ? 0 : random.in(1, 2);
  int first = random.in(0, bits);
  std::vector<std::uint32_t> shape = {1u << first, 1u << (bits - first)};
  RawLayout raw[2];
  if (random.chance(0.35)) {
    for (RawLayout &r : raw)
      r = rawOf(unwrap(lower(randomEncoding(random, warpBits), {shape[0], shape[1]})));
  } else {
    for (RawLayout &r : raw)
      r = randomPermutation(random, bits, warpBits, blockBits, shape);
  }
  for (RawLayout &r : raw) {
    if (bits >= 2 && random.chance(0.3)) { // an invertible map of the tensor's bits
      for (int n = random.in(1, 6); n > 0; --n) {
        int i = random.in(0, bits - 1), j = random.in(0, bits - 1);
        if (i == j)
          continue;
        for (auto &list : r.columns)
          for (BitVector &c : list)
            c ^= (c >> i & 1) << j;
      }
    }
    if (random.chance(0.25)) { // hardware bits that overlap
      std::vector<BitVector *> all;
      for (auto &list : r.columns)
        for (BitVector &c : list)
          all.push_back(&c);
      for (int n = random.in(1, 4); n > 0; --n) {
        int i = random.in(0, int(all.size()) - 1), j = random.in(0, int(all.size()) - 1);
        if (i != j)
          *all[static_cast<std::size_t>(i)] ^= *all[static_cast<std::size_t>(j)];
      }
    }
  }
  return {raw[0].build(), raw[1].build()};
}

} // namespace kiln::layout::test
