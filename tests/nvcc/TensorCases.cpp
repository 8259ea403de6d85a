//===- TensorCases.cpp - Tensor and bulk copies, their reductions, their rings --------===//
#include "tests/nvcc/MatrixReference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <tuple>

namespace kiln::test {

namespace {

namespace sf = softfloat;

/// An element of a narrow float type that holds `value`, a small integer.
template <typename T> T element(int value) {
  if constexpr (sizeof(T) == 2)
    return T(sf::pack(sf::half, sf::fromUnsigned(unsigned(std::abs(value)), value < 0), sf::Rounding::NearestEven));
  else
    return T(value);
}

/// x to `plain`, 2 x + 1 to `out`, and `sum` grows by it.  Small integers are exact in every type.
template <typename T> void tilesOf(Bench &bench, const char *kernel, TensorMapType type, unsigned swizzle) {
  unsigned tileWidth = (swizzle ? swizzle : 48) / sizeof(T);
  for (auto [width, height] : {std::pair{40, 70}, {16, 16}, {8, 3}}) {
    std::vector<T> in, start, wantOut, wantSum;
    for (int i = 0; i < width * height; ++i) {
      int x = int(bench.rng()() % 200) - 100, y = int(bench.rng()() % 200) - 100;
      in.push_back(element<T>(x));
      start.push_back(element<T>(y));
      wantOut.push_back(element<T>(2 * x + 1));
      wantSum.push_back(element<T>(2 * x + 1 + y));
    }
    auto a = bench.upload(in), sum = bench.upload(start), out = bench.output<T>(in.size());
    auto plain = bench.output<T>(in.size());
    auto map = [&](const Array<T> &array) {
      return bench.tensorMap(array, type, {std::uint64_t(width), std::uint64_t(height)}, {tileWidth, 16}, swizzle);
    };
    bench.launch(kernel, {blocksFor(width, tileWidth)}, {64}, 0, map(a), map(out), map(sum), plain, width, height);
    bench.expectEqual(kernel, bench.read(plain), in);
    bench.expectEqual(kernel, bench.read(out), wantOut);
    bench.expectEqual(kernel, bench.read(sum), wantSum);
  }
}

void tmaTiles(Bench &bench) {
  tilesOf<float>(bench, "tmaNone", TensorMapType::F32, 0);
  tilesOf<std::uint16_t>(bench, "tma32", TensorMapType::F16, 32);
  tilesOf<float>(bench, "tma64", TensorMapType::F32, 64);
  tilesOf<int>(bench, "tma128", TensorMapType::S32, 128);
}

void tmaReductions(Bench &bench) {
  constexpr std::uint64_t width = 44, height = 21; // the boxes at the ends are clipped
  std::vector<int> in = randomInts(bench, width * height);
  auto a = bench.upload(in);
  std::vector<TensorMap> maps = {bench.tensorMap(a, TensorMapType::S32, {width, height}, {32, 8})};
  std::vector<Array<int>> outs;
  std::vector<std::vector<int>> wants;
  using Fold = int (*)(int, int);
  for (Fold fold : {Fold([](int x, int y) { return int(unsigned(x) + unsigned(y)); }),
                    Fold([](int x, int y) { return std::min(x, y); }),
                    Fold([](int x, int y) { return std::max(x, y); }), Fold([](int x, int y) { return x & y; }),
                    Fold([](int x, int y) { return x | y; }), Fold([](int x, int y) { return x ^ y; })}) {
    std::vector<int> start = randomInts(bench, in.size()), want;
    for (std::size_t i = 0; i < in.size(); ++i)
      want.push_back(fold(start[i], in[i]));
    outs.push_back(bench.upload(start));
    maps.push_back(bench.tensorMap(outs.back(), TensorMapType::S32, {width, height}, {32, 8}));
    wants.push_back(std::move(want));
  }
  auto deviceMaps = bench.upload(maps);
  bench.launch("tmaReductions", {blocksFor(width, 32), blocksFor(height, 8)}, {32}, 0, deviceMaps);
  for (std::size_t i = 0; i < outs.size(); ++i)
    bench.expectEqual("reduction", bench.read(outs[i]), wants[i]);
}

/// dims, box and `at` have `rank` entries that count; elements outside the tensor read as zeros.
void boxOf(Bench &bench, const char *kernel, unsigned rank, std::array<int, 5> dims, std::array<int, 5> box,
           std::array<int, 5> at) {
  std::size_t size = 1, count = 1;
  for (unsigned d = 0; d < 5; ++d) {
    if (d >= rank)
      dims[d] = box[d] = 1, at[d] = 0;
    size *= std::size_t(dims[d]);
    count *= std::size_t(box[d]);
  }
  std::vector<int> in = randomInts(bench, size), want(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t rest = i, place = 0, stride = 1;
    bool inside = true;
    for (unsigned d = 0; d < rank; ++d) {
      int x = at[d] + int(rest % std::size_t(box[d]));
      rest /= std::size_t(box[d]);
      inside &= x >= 0 && x < dims[d];
      place += std::size_t(x) * stride;
      stride *= std::size_t(dims[d]);
    }
    want[i] = inside ? in[place] : 0;
  }
  auto a = bench.upload(in), out = bench.output<int>(count);
  auto atDevice = bench.upload(std::vector<int>(at.begin(), at.end()));
  auto dim = [&](unsigned d) { return std::uint64_t(dims[d]); };
  auto side = [&](unsigned d) { return std::uint32_t(box[d]); };
  TensorMap map = rank == 1 ? bench.tensorMap(a, TensorMapType::S32, {dim(0)}, {side(0)})
                  : rank == 3
                      ? bench.tensorMap(a, TensorMapType::S32, {dim(0), dim(1), dim(2)}, {side(0), side(1), side(2)})
                      : bench.tensorMap(a, TensorMapType::S32, {dim(0), dim(1), dim(2), dim(3), dim(4)},
                                        {side(0), side(1), side(2), side(3), side(4)});
  bench.launch(kernel, {1}, {32}, 0, map, out, int(count), atDevice);
  bench.expectEqual(kernel, bench.read(out), want);
}

void tmaBoxes(Bench &bench) {
  boxOf(bench, "tmaBox1", 1, {100}, {48}, {-8}); // multiples of 16 bytes, or a GPU faults
  boxOf(bench, "tmaBox1", 1, {100}, {48}, {88});
  boxOf(bench, "tmaBox3", 3, {20, 7, 5}, {8, 4, 3}, {16, -1, 3});
  boxOf(bench, "tmaBox5", 5, {12, 3, 4, 2, 3}, {8, 2, 3, 2, 2}, {-4, 1, 2, -1, 2});
}

void tmaColumnSums(Bench &bench) {
  for (auto [rows, cols] : {std::pair{75, 68}, {8, 32}, {3, 4}}) {
    std::vector<int> in = randomInts(bench, std::size_t(rows * cols)), want;
    for (int c = 0; c < cols; ++c) {
      unsigned sum = 0;
      for (int r = 0; r < rows; ++r)
        sum += unsigned(in[std::size_t(r * cols + c)]);
      want.push_back(int(sum));
    }
    auto a = bench.upload(in), sums = bench.output<int>(want.size());
    auto map = bench.tensorMap(a, TensorMapType::S32, {std::uint64_t(cols), std::uint64_t(rows)}, {32, 8});
    bench.launch("tmaColumnSums", {blocksFor(cols, 32)}, {128}, 0, map, sums, rows, cols);
    bench.expectEqual("sums", bench.read(sums), want);
  }
}

void bulkScale(Bench &bench) {
  constexpr int chunk = 512;
  for (auto [n, blocks] : {std::pair{7 * chunk + 4, 2}, {2 * chunk + 100, 1}, {4, 1}}) {
    std::vector<int> in = randomInts(bench, std::size_t(n)), want, total(chunk, 0), largest(chunk, INT_MIN);
    for (int i = 0; i < n; ++i) {
      int value = int(3u * unsigned(in[std::size_t(i)]) + unsigned(i / chunk));
      auto place = std::size_t(i % chunk);
      want.push_back(value);
      total[place] = int(unsigned(total[place]) + unsigned(value));
      largest[place] = std::max(largest[place], value);
    }
    auto a = bench.upload(in), out = bench.output<int>(in.size());
    auto sums = bench.upload(std::vector<int>(chunk, 0)), tops = bench.upload(std::vector<int>(chunk, INT_MIN));
    bench.launch("bulkScale", {unsigned(blocks)}, {128}, 0, a, out, sums, tops, n);
    bench.expectEqual("out", bench.read(out), want);
    bench.expectEqual("total", bench.read(sums), total);
    bench.expectEqual("largest", bench.read(tops), largest);
  }
}

void bulkReadBack(Bench &bench) {
  auto out = bench.output<int>(32), copy = bench.output<int>(32);
  bench.launch("bulkReadBack", {1}, {32}, 0, out, copy);
  std::vector<int> want;
  for (int i = 0; i < 32; ++i)
    want.push_back((31 - i) * (31 - i));
  bench.expectEqual("copy", bench.read(copy), want);
}

constexpr NvccCase cases[] = {
    {"tmaTiles", "tmatiles", tmaTiles, Builds::Hopper},
    {"tmaReductions", "tmatiles", tmaReductions, Builds::Hopper},
    {"tmaBoxes", "tmatiles", tmaBoxes, Builds::Hopper},
    {"tmaColumnSums", "tmapipeline", tmaColumnSums, Builds::Hopper},
    {"bulkScale", "bulkcopy", bulkScale, Builds::Hopper},
    {"bulkReadBack", "bulkcopy", bulkReadBack, Builds::Hopper},
};

} // namespace

std::span<const NvccCase> tensorCases() {
  return cases;
}

} // namespace kiln::test
