//===- PipelineCases.cpp - Rings, handshakes, persistent blocks, attention -===//
#include "tests/nvcc/MatrixReference.h"

#include <algorithm>
#include <tuple>

namespace kiln::test {

namespace {

namespace sf = softfloat;

void ring(Bench &bench) {
  constexpr int row = 128;
  for (auto [rows, tail, blocks] : {std::tuple{13, 0, 1}, {11, 5, 2}, {1, 127, 1}}) {
    std::vector<int> in = randomInts(bench, std::size_t(rows * row - tail)), want;
    for (int r = 0; r < rows; ++r)
      for (int i = 0; i < row; ++i) {
        auto at = [&, tail = tail](int x) { return x < row - tail ? unsigned(in[std::size_t(r * row + x)]) : 0u; };
        want.push_back(int(2 * at(i) + at((i + 1) % row)));
      }
    auto a = bench.upload(in), out = bench.output<int>(want.size());
    bench.launch("ring", {unsigned(blocks)}, {96}, 0, a, out, rows, tail);
    bench.expectEqual("out", bench.read(out), want);
  }
}

void handshake(Bench &bench) {
  int rounds = 5;
  std::vector<int> in = randomInts(bench, std::size_t(2 * rounds * 128)), want;
  for (int i = 0; i < 2 * rounds; ++i)
    for (int t = 0; t < 128; ++t)
      want.push_back(int(unsigned(in[std::size_t(i * 128 + 127 - t)]) + unsigned(i % rounds)));
  auto a = bench.upload(in), out = bench.output<int>(want.size());
  bench.launch("handshake", {1}, {128}, 0, a, out, rounds);
  bench.expectEqual("out", bench.read(out), want);
}

void persistent(Bench &bench) {
  auto counters = bench.upload(std::vector<unsigned>{0, 0});
  for (auto [rows, cols, blocks] : {std::tuple{64, 96, 2}, {33, 50, 3}, {1, 1, 4}}) {
    auto inSize = std::size_t(rows * cols);
    std::vector<float> in = randomFloats(bench, inSize, -8, 8);
    int tilesX = int(blocksFor(cols, 32)), tiles = tilesX * int(blocksFor(rows, 32));
    std::vector<double> want(inSize), bound(inSize), sums(std::size_t(tiles), 0), sumBound(std::size_t(tiles), 0);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c) {
        float largest = -INFINITY, x = in[std::size_t(r * cols + c)];
        for (int i = c / 32 * 32; i < std::min(c / 32 * 32 + 32, cols); ++i)
          largest = std::max(largest, in[std::size_t(r * cols + i)]);
        auto place = std::size_t(c * rows + r);
        want[place] = double(x) - double(largest);
        bound[place] = std::abs(want[place]) * 0x1p-24; // one rounding
        auto tile = std::size_t(r / 32 * tilesX + c / 32);
        sums[tile] += double(x);
        sumBound[tile] += std::abs(double(x)) * 17 * 0x1p-24; // 4 + 5 + 8 additions on the way
      }
    auto a = bench.upload(in), out = bench.output<float>(inSize), tileSums = bench.output<float>(sums.size());
    bench.launch("persistentTranspose", {unsigned(blocks)}, {256}, 0, a, out, tileSums, rows, cols, counters);
    bench.expectNear("out", bench.read(out), want, bound);
    bench.expectNear("sums", bench.read(tileSums), sums, sumBound);
    bench.expectEqual("counters", bench.read(counters), {0, 0});
  }
}

/// Scores have the error of a product; weights that of exp2f (2 ulp, CUDA's guide) at an argument with the scores'
/// error, once more for every later tile that rescales; then bf16 weights times values, divided, rounded to bf16.
void varlenAttention(Bench &bench) {
  constexpr int depth = 64;
  const std::vector<int> lengths = {70, 1, 0, 33, 64};
  std::vector<int> starts = {0};
  for (int length : lengths)
    starts.push_back(starts.back() + length);
  std::size_t elements = std::size_t(starts.back()) * depth;
  auto q = randomHalves(bench, sf::bfloat, elements, 2), k = randomHalves(bench, sf::bfloat, elements, 2);
  auto v = randomHalves(bench, sf::bfloat, elements, 2);
  const float scaleLog2 = 0.125f * 1.44269504f;
  auto dq = bench.upload(q.bits), dk = bench.upload(k.bits), dv = bench.upload(v.bits);
  auto dStarts = bench.upload(starts);
  auto out = bench.output<std::uint16_t>(elements);
  bench.launch("varlenAttention", {2, unsigned(lengths.size())}, {128}, 0, dq, dk, dv, out, dStarts, scaleLog2);

  std::vector<double> want(elements), bound(elements);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    std::size_t first = std::size_t(starts[s]) * depth, count = std::size_t(lengths[s]) * depth;
    auto part = [&](const std::vector<double> &all) {
      return std::vector<double>(all.begin() + long(first), all.begin() + long(first + count));
    };
    int length = lengths[s], tiles = (length + 31) / 32;
    Product scores = multiply(part(q.values), part(k.values), length, length, depth, true, f32Accumulation);
    for (int r = 0; r < length; ++r) {
      std::vector<double> x(static_cast<std::size_t>(length));
      double top = -INFINITY, argumentError = 0;
      for (int j = 0; j < length; ++j) {
        auto i = std::size_t(r * length + j);
        x[std::size_t(j)] = scores.want[i] * double(scaleLog2);
        top = std::max(top, x[std::size_t(j)]);
        argumentError = std::max(argumentError, scores.bound[i] * double(scaleLog2) +
                                                    std::abs(scores.want[i] * double(scaleLog2)) * 0x1p-23);
      }
      double weightError = std::log(2.0) * 4 * argumentError + (2 * tiles + 4) * 0x1p-22;
      double sum = 0;
      for (double &w : x)
        sum += w = std::exp2(w - top);
      for (int d = 0; d < depth; ++d) {
        double value = 0, magnitude = 0;
        for (int j = 0; j < length; ++j) {
          double term = x[std::size_t(j)] / sum * v.values[first + std::size_t(j * depth + d)];
          value += term;
          magnitude += std::abs(term);
        }
        double adding = (tiles * 8 * (5 * 0x1p-24 + 0x1p-23) + length * 0x1p-24); // products by fours; the divisor
        double relative = 0x1p-8 + 2 * weightError + adding;
        auto i = first + std::size_t(r * depth + d);
        want[i] = value;
        bound[i] = 1.01 * (magnitude * relative + std::abs(value) * 0x1p-8);
      }
    }
  }
  bench.expectNear("out", toFloats(sf::bfloat, bench.read(out)), want, bound);
}

constexpr NvccCase cases[] = {
    {"ring", "ring", ring},
    {"handshake", "ring", handshake},
    {"persistent", "persistent", persistent},
    {"varlenAttention", "varlen", varlenAttention},
};

} // namespace

std::span<const NvccCase> pipelineCases() {
  return cases;
}

} // namespace kiln::test
