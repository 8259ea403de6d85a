// Order: sort, sortWithIndex, topK and histogram against the standard library, on tiles of any shape that a block
// holds, with equal elements, NaN, infinities and both zeros.
#include "compiler/language/Language.h"
#include "runtime/io/Numbers.h"
#include "tests/lowering/Text.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace kiln::test {
namespace {

namespace lang = kiln::language;
using lang::along, lang::Arg, lang::Pointer, lang::SortOrder;

using Extents = std::vector<std::int64_t>;

lang::Shape shapeOf(const Extents &extents) {
  lang::Shape out;
  for (const std::int64_t e : extents)
    out.append(e);
  return out;
}
/// Row-major numbers of a tile's elements.
lang::Tile<lang::i32> numbers(const Extents &extents) {
  lang::Tile<lang::i32> out = lang::zeros<lang::i32>(shapeOf(extents));
  int stride = 1;
  for (std::size_t d = extents.size(); d-- > 0; stride *= static_cast<int>(extents[d])) {
    auto i = lang::range(0, extents[d]) * stride;
    for (std::size_t e = 0; e < extents.size(); ++e)
      if (e != d)
        i = lang::expandDims(i, static_cast<int>(e));
    out += i;
  }
  return out;
}

/// sort, sortWithIndex and topK along `dim`; results one after the other.
template <lang::Element T>
lang::Kernel sorts(const Extents &extents, int dim, SortOrder order, std::int64_t k, int warps) {
  return lang::kernel(
      "k", {.warps = warps},
      [&](Arg<Pointer<T>, "x"> x, Arg<Pointer<T>, "out"> out, Arg<Pointer<lang::i32>, "places"> places) {
        const auto at = numbers(extents);
        const int n = static_cast<int>(at.shape().elements());
        const auto tile = lang::load(x + at);
        lang::store(out + at, lang::sort(tile, along(dim), order));
        const auto [value, place] = lang::sortWithIndex(tile, along(dim), order);
        lang::store(out + (at + n), value);
        lang::store(places + at, place);
        Extents fewer = extents;
        fewer[static_cast<std::size_t>(dim)] = k;
        const auto [best, where] = lang::topK(tile, k, along(dim));
        lang::store(out + (numbers(fewer) + 2 * n), best);
        lang::store(places + (numbers(fewer) + n), where);
      });
}

/// How the elements of one type are compared: values as float64, and the bits.
template <typename Bits> struct Format {
  std::function<double(Bits)> value;
  std::function<Bits(std::mt19937_64 &)> draw;
};

template <lang::Element T, typename Bits>
void check(const Format<Bits> &format, const char *target, const Extents &extents, int dim, SortOrder order,
           std::int64_t k, int warps, std::mt19937_64 &random) {
  SCOPED_TRACE(std::string(target) + ", " + shapeOf(extents).toString() + " along " + std::to_string(dim) +
               ", k = " + std::to_string(k) + ", " + std::to_string(warps) + " warps" +
               (order == SortOrder::Descending ? ", descending" : ""));
  const lang::Kernel kernel = sorts<T>(extents, dim, order, k, warps);
  ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
  std::size_t outer = 1, inner = 1;
  const auto d = static_cast<std::size_t>(dim), extent = static_cast<std::size_t>(extents[d]);
  for (std::size_t i = 0; i < extents.size(); ++i)
    (i < d ? outer : inner) *= i == d ? 1 : static_cast<std::size_t>(extents[i]);
  const std::size_t n = outer * extent * inner, few = outer * static_cast<std::size_t>(k) * inner;
  std::vector<Bits> x(n);
  for (Bits &v : x)
    v = format.draw(random);
  Emulator gpu(target);
  Buffer &in = gpu.upload(x), &out = gpu.allocate((2 * n + few) * sizeof(Bits)), &places = gpu.allocate((n + few) * 4);
  (void)out.poison(std::byte(0xCD));
  (void)places.poison(std::byte(0xCD));
  const KernelRun run =
      runKernel(gpu, target, kernel.text(), static_cast<unsigned>(warps), {in, out, places}, {}, From::Tile);
  ASSERT_EQ(run.error, "");
  const auto got = gpu.download<Bits>(out);
  const auto place = gpu.download<std::int32_t>(places);

  const auto same = [&](Bits a, Bits b) {
    return a == b || (std::isnan(format.value(a)) && std::isnan(format.value(b)));
  };
  // NaN last, -0 before 0.
  const auto before = [&](Bits a, Bits b, bool descending) {
    const double u = format.value(a), v = format.value(b);
    if (std::isnan(u) || std::isnan(v))
      return !std::isnan(u) && std::isnan(v);
    if (u == v && std::signbit(u) != std::signbit(v))
      return std::signbit(u) != descending;
    return descending ? u > v : u < v;
  };
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t i = 0; i < inner; ++i) {
      const auto at = [&](std::size_t j, std::size_t length) { return (o * length + j) * inner + i; };
      const auto sorted = [&](bool descending) {
        std::vector<std::size_t> list(extent);
        std::iota(list.begin(), list.end(), std::size_t(0));
        std::stable_sort(list.begin(), list.end(), [&](std::size_t a, std::size_t b) {
          return before(x[at(a, extent)], x[at(b, extent)], descending);
        });
        return list;
      };
      const auto list = sorted(order == SortOrder::Descending), best = sorted(true);
      for (std::size_t j = 0; j < extent; ++j) {
        const Bits wanted = x[at(list[j], extent)];
        ASSERT_TRUE(same(got[at(j, extent)], wanted)) << "sort, " << j << " of line " << o << ", " << i;
        ASSERT_TRUE(same(got[n + at(j, extent)], wanted)) << "sortWithIndex, " << j << " of line " << o << ", " << i;
        ASSERT_EQ(place[at(j, extent)], static_cast<int>(list[j])) << j << " of line " << o << ", " << i;
      }
      const auto length = static_cast<std::size_t>(k);
      for (std::size_t j = 0; j < length; ++j) {
        ASSERT_TRUE(same(got[2 * n + at(j, length)], x[at(best[j], extent)])) << "topK, " << j;
        ASSERT_EQ(place[n + at(j, length)], static_cast<int>(best[j])) << "topK, " << j;
      }
    }
}

template <typename Bits, typename F> Format<Bits> floats(F decode, unsigned special) {
  return {decode, [special](std::mt19937_64 &random) {
            const Bits top = Bits(1) << (sizeof(Bits) * 8 - 1);
            const Bits infinity = static_cast<Bits>(Bits(special) << (sizeof(Bits) * 8 - 16));
            switch (random() % 16) {
            case 0: // NaN of either sign
              return static_cast<Bits>(infinity | 1 | (random() % 2 ? top : 0));
            case 1:
              return static_cast<Bits>(infinity | (random() % 2 ? top : 0));
            case 2:
              return static_cast<Bits>(random() % 2 ? top : 0); // zero
            case 3:
              return static_cast<Bits>((random() % 2 ? top : 0) | random() % 4); // subnormal
            case 4:
            case 5:
              return static_cast<Bits>(infinity / 2 + random() % 3); // equal ones
            default:
              return static_cast<Bits>(random() % infinity | (random() % 2 ? top : 0));
            }
          }};
}
template <typename N> Format<N> integers(std::uint64_t range) {
  return {[](N v) { return static_cast<double>(v); },
          [range](std::mt19937_64 &random) { // some at the ends, others equal
            if (random() % 8 == 0)
              return random() % 2 ? std::numeric_limits<N>::min() : std::numeric_limits<N>::max();
            return static_cast<N>(range ? random() % range : random());
          }};
}
const auto float32 = floats<std::uint32_t>([](std::uint32_t v) { return double(std::bit_cast<float>(v)); }, 0x7f80);

TEST(Sort, ShapesAndWarps) {
  std::mt19937_64 random(43);
  for (const char *target : loweringTargets)
    for (const SortOrder order : {SortOrder::Ascending, SortOrder::Descending}) {
      check<lang::f32>(float32, target, {256}, 0, order, 8, 4, random);
      check<lang::f32>(float32, target, {8, 32}, 1, order, 1, 2, random);
      check<lang::f32>(float32, target, {32, 8}, 0, order, 32, 1, random);
    }
  check<lang::f32>(float32, "sm_80", {1}, 0, SortOrder::Descending, 1, 1, random);
  check<lang::f32>(float32, "sm_80", {12, 16}, 1, SortOrder::Ascending, 4, 2, random);
  check<lang::f32>(float32, "sm_80", {4, 16, 5}, 1, SortOrder::Descending, 2, 4, random);
  check<lang::f32>(float32, "sm_80", {2, 3, 16}, 2, SortOrder::Descending, 8, 2, random);
  check<lang::f32>(float32, "sm_90a", {2, 2, 8, 2, 2}, 2, SortOrder::Ascending, 4, 2, random);
  check<lang::f32>(float32, "sm_90a", {2048}, 0, SortOrder::Ascending, 64, 8, random);
}

TEST(Sort, Types) {
  std::mt19937_64 random(47);
  for (const SortOrder order : {SortOrder::Ascending, SortOrder::Descending}) {
    check<lang::f16>(floats<std::uint16_t>([](std::uint16_t v) { return double(decodeFloat(v, formatF16)); }, 0x7c00),
                     "sm_80", {4, 64}, 1, order, 4, 2, random);
    check<lang::bf16>(floats<std::uint16_t>([](std::uint16_t v) { return double(decodeFloat(v, formatBf16)); }, 0x7f80),
                      "sm_90a", {4, 64}, 1, order, 4, 2, random);
    check<lang::f64>(floats<std::uint64_t>([](std::uint64_t v) { return std::bit_cast<double>(v); }, 0x7ff0), "sm_75",
                     {64, 2}, 0, order, 4, 2, random);
    check<lang::i8>(integers<std::int8_t>(0), "sm_80", {128}, 0, order, 16, 2, random);
    check<lang::u8>(integers<std::uint8_t>(0), "sm_80", {128}, 0, order, 16, 2, random);
    check<lang::i16>(integers<std::int16_t>(0), "sm_80", {128}, 0, order, 16, 2, random);
    check<lang::i32>(integers<std::int32_t>(0), "sm_80", {128}, 0, order, 16, 2, random);
    check<lang::u32>(integers<std::uint32_t>(0), "sm_80", {128}, 0, order, 16, 2, random);
    check<lang::i32>(integers<std::int32_t>(7), "sm_80", {128}, 0, order, 16, 2, random); // many equal ones
    check<lang::i64>(integers<std::int64_t>(std::uint64_t(1) << 50), "sm_80", {64}, 0, order, 2, 2, random);
    check<lang::u64>(integers<std::uint64_t>(std::uint64_t(1) << 50), "sm_120a", {64}, 0, order, 2, 2, random);
  }
}

void checkHistogram(const char *target, const Extents &extents, std::int64_t bins, int warps, std::mt19937_64 &random) {
  SCOPED_TRACE(std::string(target) + ", " + shapeOf(extents).toString() + ", " + std::to_string(bins) + " bins");
  const lang::Kernel k =
      lang::kernel("k", {.warps = warps}, [&](Arg<Pointer<lang::i32>, "x"> x, Arg<Pointer<lang::i32>, "out"> out) {
        lang::store(out + lang::range(0, bins), lang::histogram(lang::load(x + numbers(extents)), bins));
      });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  const auto n = static_cast<std::size_t>(shapeOf(extents).elements());
  for (const int kind : {0, 1, 2, 3}) {
    std::vector<std::int32_t> x(n);
    for (std::int32_t &v : x) // around the bins; all in one; none; anywhere
      v = kind == 0   ? static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(bins + 4)) - 2
          : kind == 1 ? static_cast<std::int32_t>(bins - 1)
          : kind == 2 ? static_cast<std::int32_t>(random() % 2 ? -1 : bins)
                      : static_cast<std::int32_t>(random());
    Emulator gpu(target);
    Buffer &in = gpu.upload(x), &out = gpu.allocate(static_cast<std::size_t>(bins) * 4);
    (void)out.poison(std::byte(0xCD));
    ASSERT_EQ(runKernel(gpu, target, k.text(), static_cast<unsigned>(warps), {in, out}, {}, From::Tile).error, "");
    std::vector<std::int32_t> wanted(static_cast<std::size_t>(bins));
    for (const std::int32_t v : x)
      if (v >= 0 && v < bins)
        ++wanted[static_cast<std::size_t>(v)];
    ASSERT_EQ(gpu.download<std::int32_t>(out), wanted);
  }
}

TEST(Sort, Histogram) {
  std::mt19937_64 random(53);
  for (const char *target : loweringTargets) {
    checkHistogram(target, {256}, 16, 4, random);
    checkHistogram(target, {8, 16}, 12, 2, random);
  }
  checkHistogram("sm_80", {1}, 1, 1, random);
  checkHistogram("sm_80", {32}, 256, 2, random);
  checkHistogram("sm_90a", {1024}, 96, 4, random);
}

} // namespace
} // namespace kiln::test
