//===- ClusterCases.cpp - Distributed shared memory -----------------------===//
#include "tests/nvcc/Bench.h"

namespace kiln::test {

namespace {

void clusterSums(Bench &bench) {
  for (unsigned ranks : {2u, 3u, 8u})
    for (int row : {300, 1}) {
      unsigned blocks = 2 * ranks;
      auto words = std::size_t(row);
      std::vector<int> in = randomInts(bench, blocks * words), want(2 * words, 0);
      for (std::size_t i = 0; i < in.size(); ++i) {
        int &sum = want[i / words / ranks * words + i % words];
        sum = int(unsigned(sum) + unsigned(in[i]));
      }
      auto a = bench.upload(in), out = bench.output<int>(want.size());
      bench.launchInClusters("clusterSums", {ranks, 1, 1}, {blocks}, {128}, unsigned(row) * 4, a, out, row);
      bench.expectEqual("out", bench.read(out), want);
    }
}

void clusterRing(Bench &bench) {
  for (int rounds : {1, 7}) {
    constexpr int blocks = 8;
    std::vector<int> values = randomInts(bench, blocks * 64);
    auto a = bench.upload(values), out = bench.output<int>(values.size());
    for (int r = 0; r < rounds; ++r) {
      std::vector<int> moved(values.size());
      for (int b = 0; b < blocks; ++b)
        for (int t = 0; t < 64; ++t) {
          int to = b / 4 * 4 + (b + 1) % 4;
          moved[std::size_t(to * 64 + (t ^ 1))] = int(unsigned(values[std::size_t(b * 64 + t)]) + unsigned(b % 4));
        }
      values = moved;
    }
    bench.launch("clusterRing", {blocks}, {64}, 0, a, out, rounds);
    bench.expectEqual("out", bench.read(out), values);
  }
}

void clusterExchange(Bench &bench) {
  std::vector<int> in = randomInts(bench, 4 * 256), want;
  for (unsigned b = 0; b < 4; ++b)
    for (unsigned i = 0; i < 256; ++i)
      want.push_back(int(unsigned(in[(b ^ 1) * 256 + 255 - i]) + 255 - i));
  auto a = bench.upload(in), out = bench.output<int>(in.size());
  bench.launch("clusterExchange", {4}, {128}, 0, a, out);
  bench.expectEqual("out", bench.read(out), want);
}

void clusterHistogram(Bench &bench) {
  for (int n : sizes) {
    std::vector<unsigned char> in(static_cast<std::size_t>(n));
    std::vector<unsigned> want(256, 0);
    for (auto &v : in)
      want[v = (unsigned char)(bench.rng()() >> 16)]++;
    auto a = bench.upload(in);
    auto bins = bench.upload(std::vector<unsigned>(256, 0));
    bench.launch("clusterHistogram", {8}, {128}, 0, a, bins, n);
    bench.expectEqual("bins", bench.read(bins), want);
  }
}

constexpr NvccCase cases[] = {
    {"clusterSums", "distributed", clusterSums, Builds::Hopper},
    {"clusterRing", "distributed", clusterRing, Builds::Hopper},
    {"clusterExchange", "distributed", clusterExchange, Builds::Hopper},
    {"clusterHistogram", "distributed", clusterHistogram, Builds::Hopper},
};

} // namespace

std::span<const NvccCase> clusterCases() {
  return cases;
}

} // namespace kiln::test
