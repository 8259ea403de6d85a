//===- MemoryCases.cpp - Shared memory, atomics, vectors, indices ----------===//
#include "tests/nvcc/Bench.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kiln::test {

namespace {

void histogram(Bench &bench) {
  for (int n : sizes)
    for (unsigned blocks : {1u, 5u}) {
      std::vector<unsigned char> in(static_cast<std::size_t>(n));
      std::vector<unsigned> want(256, 0);
      for (auto &v : in) {
        std::uint64_t r = bench.rng()();
        v = r & 0x300 ? (unsigned char)(r & 7) : (unsigned char)(r >> 16); // many on few bins: contention
        want[v]++;
      }
      auto a = bench.upload(in);
      auto bins = bench.upload(std::vector<unsigned>(256, 0));
      bench.launch("histogram", {blocks}, {128}, 0, a, bins, n);
      bench.expectEqual("bins", bench.read(bins), want);
    }
}

template <typename T> void transposeOf(Bench &bench, const char *kernel) {
  for (auto [rows, cols] : {std::pair{1, 1}, {31, 33}, {1, 100}, {97, 64}}) {
    std::vector<T> in(std::size_t(rows * cols)), want(in.size());
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c)
        want[std::size_t(c * rows + r)] = in[std::size_t(r * cols + c)] = T(bench.rng()() % 251);
    auto a = bench.upload(in), out = bench.output<T>(in.size());
    bench.launch(kernel, {blocksFor(cols, 32), blocksFor(rows, 32)}, {32, 8}, 0, a, out, rows, cols);
    bench.expectEqual(kernel, bench.read(out), want);
  }
}

void transpose(Bench &bench) {
  transposeOf<float>(bench, "transposeFloat");
  transposeOf<unsigned char>(bench, "transposeBytes");
  transposeOf<double>(bench, "transposeDouble");
}

void dynamicShared(Bench &bench) {
  for (auto [blocks, threads] : {std::pair{1u, 1u}, {2u, 31u}, {3u, 256u}}) {
    std::vector<int> in = randomInts(bench, blocks * threads), want(in.size());
    std::vector<unsigned char> wantTags(in.size());
    auto a = bench.upload(in), out = bench.output<int>(in.size());
    auto tags = bench.output<unsigned char>(in.size());
    bench.launch("reverseBlock", {blocks}, {threads}, threads * 5, a, out, tags);
    for (unsigned b = 0; b < blocks; ++b)
      for (unsigned t = 0; t < threads; ++t) {
        want[b * threads + t] = in[b * threads + threads - 1 - t];
        wantTags[b * threads + t] = (unsigned char)(in[b * threads + (t * 5) % threads] >> 3);
      }
    bench.expectEqual("out", bench.read(out), want);
    bench.expectEqual("tags", bench.read(tags), wantTags);
  }
  for (unsigned bytes : {0u, 16u, 49152u}) {
    auto size = bench.output<unsigned>(1);
    bench.launch("dynamicSize", {1}, {1}, bytes, size);
    bench.expectEqual("size", bench.read(size), {bytes});
  }
}

void bitonicSort(Bench &bench) {
  for (unsigned threads : {1u, 2u, 64u, 512u}) {
    std::vector<unsigned> keys = randomBits(bench, threads * 2);
    auto a = bench.upload(keys);
    bench.launch("bitonicSort", {2}, {threads}, threads * 4, a);
    std::sort(keys.begin(), keys.begin() + threads);
    std::sort(keys.begin() + threads, keys.end());
    bench.expectEqual("keys", bench.read(a), keys);
  }
}

void integerAtomics(Bench &bench) {
  for (int n : sizes)
    for (unsigned blocks : {1u, 4u}) {
      std::vector<int> in = randomInts(bench, std::size_t(n));
      std::vector<int> cells{0, 0, INT32_MAX, INT32_MIN};
      std::vector<unsigned> ucells{~0u, 0, 0x1234, 7, 1000, 0};
      std::vector<std::uint64_t> wide{1ull << 40, 0, 99};
      auto a = bench.upload(in), c = bench.upload(cells);
      auto u = bench.upload(ucells);
      auto w = bench.upload(wide);
      bench.launch("integerAtomics", {blocks}, {128}, 0, a, c, u, w, n);
      for (int v : in) {
        unsigned b = unsigned(v);
        cells[0] = int(unsigned(cells[0]) + b);
        cells[1] = int(unsigned(cells[1]) - b);
        cells[2] = std::min(cells[2], v);
        cells[3] = std::max(cells[3], v);
        ucells[0] &= b | 0xf0u;
        ucells[1] |= b & 0xff00ffu;
        ucells[2] ^= b;
        ucells[3] = ucells[3] >= 99 ? 0 : ucells[3] + 1;
        ucells[4] = ucells[4] == 0 || ucells[4] > 41 ? 41 : ucells[4] - 1;
        ucells[5] = std::max(ucells[5], b);
        wide[0] += std::uint64_t(b) << 16;
        wide[1] = std::max(wide[1], std::uint64_t(b) * 3);
        wide[2] ^= std::uint64_t(b) << 20;
      }
      bench.expectEqual("cells", bench.read(c), cells);
      bench.expectEqual("ucells", bench.read(u), ucells);
      bench.expectEqual("wide", bench.read(w), wide);
    }
}

void floatAtomics(Bench &bench) {
  for (int n : sizes) {
    std::vector<int> in(static_cast<std::size_t>(n));
    std::vector<float> f(4, 0.0f);
    std::vector<double> d(2, 0.0);
    auto cells = bench.upload(f);
    auto wide = bench.upload(d);
    for (int i = 0; i < n; ++i) {
      int v = in[std::size_t(i)] = int(bench.rng()() % 2001) - 1000;
      f[std::size_t(i & 3)] += float(v & 15);
      d[std::size_t(i & 1)] += v * 0.5;
    }
    auto a = bench.upload(in);
    bench.launch("floatAtomics", {blocksFor(n, 128)}, {128}, 0, a, cells, wide, n);
    bench.expectEqual("f", bench.read(cells), f);
    bench.expectEqual("d", bench.read(wide), d);
  }
}

void casLoops(Bench &bench) {
  for (int n : sizes) {
    std::vector<float> in = randomFloats(bench, std::size_t(n), 0.0f, 100.0f);
    std::vector<float> top{-1.0f};
    std::vector<unsigned> product{1};
    auto a = bench.upload(in), t = bench.upload(top);
    auto p = bench.upload(product);
    bench.launch("casLoops", {blocksFor(n, 64)}, {64}, 0, a, t, p, n);
    for (float v : in) {
      top[0] = std::max(top[0], v);
      product[0] *= std::bit_cast<unsigned>(v) | 1u;
    }
    bench.expectEqual("top", bench.read(t), top);
    bench.expectEqual("product", bench.read(p), product);
  }
}

void lastBlock(Bench &bench) {
  for (int n : sizes)
    for (unsigned blocks : {1u, 7u}) {
      std::vector<unsigned> in = randomBits(bench, std::size_t(n)), total{0};
      for (unsigned v : in)
        total[0] += v;
      auto a = bench.upload(in), partial = bench.output<unsigned>(blocks), result = bench.output<unsigned>(1);
      auto ticket = bench.upload(std::vector<unsigned>{0});
      bench.launch("lastBlock", {blocks}, {64}, 0, a, partial, ticket, result, n);
      bench.expectEqual("total", bench.read(result), total);
      bench.expectEqual("ticket", bench.read(ticket), {blocks});
    }
}

struct Float4 {
  float v[4];
  explicit operator double() const { return double(v[0]); }
};
struct Float2 {
  float v[2];
  explicit operator double() const { return double(v[0]); }
};

void floatVectors(Bench &bench) {
  for (int n : sizes) {
    std::vector<float> values = randomFloats(bench, std::size_t(n) * 4, -8.0f, 8.0f);
    std::vector<Float4> in(static_cast<std::size_t>(n)), want;
    std::vector<Float2> wantHalves;
    std::memcpy(in.data(), values.data(), values.size() * 4);
    auto a = bench.upload(in), out = bench.output<Float4>(in.size());
    auto halves = bench.output<Float2>(in.size());
    bench.launch("floatVectors", {blocksFor(n, 128)}, {128}, 0, a, out, halves, n);
    for (const Float4 &f : in) {
      want.push_back({{f.v[3], f.v[2] * 2.0f, f.v[1] - 1.0f, -f.v[0]}});
      wantHalves.push_back({{f.v[0], f.v[3]}});
    }
    bench.expectEqual("out", bench.read(out), want);
    bench.expectEqual("halves", bench.read(halves), wantHalves);
  }
}

void integerVectors(Bench &bench) {
  for (int n : sizes) {
    std::size_t count = std::size_t(n);
    std::vector<unsigned> v = randomBits(bench, count * 4), want;
    std::vector<unsigned char> u(count * 4), wantBytes;
    std::vector<short> s(count * 2);
    std::vector<std::uint64_t> wantWide;
    for (auto &x : u)
      x = (unsigned char)(bench.rng()() >> 20);
    for (auto &x : s)
      x = short(bench.rng()() >> 20);
    auto a = bench.upload(v), out = bench.output<unsigned>(count * 4);
    auto b = bench.upload(u), bytes = bench.output<unsigned char>(count * 4);
    auto c = bench.upload(s);
    auto wide = bench.output<std::uint64_t>(count * 2);
    bench.launch("integerVectors", {blocksFor(n, 128)}, {128}, 0, a, b, c, out, bytes, wide, n);
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned *x = &v[i * 4];
      const unsigned char *y = &u[i * 4];
      want.insert(want.end(), {x[0] + unsigned(s[i * 2]), x[1] ^ unsigned(s[i * 2 + 1]), x[2] * y[0], x[3] - y[3]});
      for (unsigned byte : {unsigned(y[0]) + y[1], unsigned(y[3]), ~unsigned(y[2]), x[0]})
        wantBytes.push_back((unsigned char)byte);
      wantWide.insert(wantWide.end(), {std::uint64_t(std::int64_t(int(x[0]))) * 5, std::uint64_t(x[1]) << 9});
    }
    bench.expectEqual("out", bench.read(out), want);
    bench.expectEqual("bytes", bench.read(bytes), wantBytes);
    bench.expectEqual("wide", bench.read(wide), wantWide);
  }
}

void indices(Bench &bench) {
  for (auto [grid, block] : {std::pair{Dim3{1, 1, 1}, Dim3{1, 1, 1}}, {Dim3{3, 2, 2}, Dim3{5, 7, 3}}}) {
    std::uint64_t threads = block.count();
    auto out = bench.output<unsigned>(grid.count() * threads * 4);
    bench.launch("indices", grid, block, 0, out);
    std::vector<unsigned> want;
    for (unsigned b = 0; b < grid.count(); ++b)
      for (unsigned t = 0; t < threads; ++t)
        want.insert(want.end(), {t, b, t % 32, (1u << (t % 32)) - 1});
    bench.expectEqual("out", bench.read(out), want);
  }
}

constexpr NvccCase cases[] = {
    {"histogram", "histogram", histogram},
    {"transpose", "transpose", transpose},
    {"dynamicShared", "dynamic", dynamicShared},
    {"bitonicSort", "dynamic", bitonicSort},
    {"integerAtomics", "atomics", integerAtomics},
    {"floatAtomics", "atomics", floatAtomics},
    {"casLoops", "atomics", casLoops},
    {"lastBlock", "atomics", lastBlock},
    {"floatVectors", "vectors", floatVectors},
    {"integerVectors", "vectors", integerVectors},
    {"indices", "vectors", indices},
};

} // namespace

std::span<const NvccCase> memoryCases() {
  return cases;
}

} // namespace kiln::test
