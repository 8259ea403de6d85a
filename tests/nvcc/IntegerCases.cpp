//===- IntegerCases.cpp - Shuffles, bits, votes, 64-bit integers, tables ---===//
//
// Every reference here is exact.
//
//===----------------------------------------------------------------------===//
#include "tests/nvcc/Bench.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kiln::test {

namespace {

using U128 = unsigned __int128;

void warpReduce(Bench &bench) {
  for (int n : sizes) {
    unsigned blocks = blocksFor(n, 128);
    std::vector<int> in = randomInts(bench, std::size_t(n));
    auto a = bench.upload(in);
    auto sum = bench.output<int>(blocks * 4), low = bench.output<int>(blocks * 4);
    auto high = bench.output<unsigned>(blocks * 4);
    bench.launch("warpReduce", {blocks}, {128}, 0, a, sum, low, high, n);
    std::vector<int> wantSum(blocks * 4), wantLow(blocks * 4);
    std::vector<unsigned> wantHigh(blocks * 4);
    in.resize(blocks * 128, 0);
    for (std::size_t w = 0; w < blocks * 4; ++w) {
      auto begin = in.begin() + std::ptrdiff_t(w * 32);
      unsigned s = 0, top = 0;
      for (auto v = begin; v != begin + 32; ++v) {
        s += unsigned(*v);
        top = std::max(top, unsigned(*v));
      }
      wantSum[w] = int(s);
      wantLow[w] = *std::min_element(begin, begin + 32);
      wantHigh[w] = top;
    }
    bench.expectEqual("sum", bench.read(sum), wantSum);
    bench.expectEqual("smallest", bench.read(low), wantLow);
    bench.expectEqual("largest", bench.read(high), wantHigh);
  }
}

void blockScan(Bench &bench) {
  for (int n : sizes) {
    unsigned blocks = blocksFor(n, 256);
    std::vector<unsigned> in = randomBits(bench, std::size_t(n)), want(in.size()), wantTotal(blocks, 0);
    auto a = bench.upload(in);
    auto out = bench.output<unsigned>(in.size()), total = bench.output<unsigned>(blocks);
    bench.launch("blockScan", {blocks}, {256}, 0, a, out, total, n);
    for (std::size_t i = 0; i < in.size(); ++i)
      want[i] = wantTotal[i / 256] += in[i];
    bench.expectEqual("out", bench.read(out), want);
    bench.expectEqual("blockTotal", bench.read(total), wantTotal);
  }
}

void bitCounts(Bench &bench) {
  for (int n : sizes) {
    std::vector<unsigned> x = randomBits(bench, std::size_t(n));
    std::vector<std::uint64_t> y = randomWide(bench, std::size_t(n));
    auto a = bench.upload(x);
    auto b = bench.upload(y);
    auto out = bench.output<int>(x.size() * 8);
    bench.launch("bitCounts", {blocksFor(n, 96)}, {96}, 0, a, b, out, n);
    auto reverse = [](std::uint64_t v, int bits) {
      std::uint64_t r = 0;
      for (int i = 0; i < bits; ++i)
        r |= ((v >> i) & 1) << (bits - 1 - i);
      return r;
    };
    std::vector<int> want;
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::uint64_t r = reverse(y[i], 64);
      want.insert(want.end(), {std::popcount(x[i]), std::countl_zero(x[i]), x[i] ? std::countr_zero(x[i]) + 1 : 0,
                               int(reverse(x[i], 32)), std::popcount(y[i]), std::countl_zero(y[i]),
                               y[i] ? std::countr_zero(y[i]) + 1 : 0, int(r >> 32) ^ int(r)});
    }
    bench.expectEqual("out", bench.read(out), want);
  }
}

unsigned bytePermute(unsigned x, unsigned y, unsigned selector) {
  unsigned r = 0;
  std::uint64_t bytes = std::uint64_t(y) << 32 | x;
  for (int i = 0; i < 4; ++i)
    r |= (unsigned(bytes >> (8 * ((selector >> (4 * i)) & 7))) & 255) << (8 * i);
  return r;
}

template <typename T> unsigned dot4(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i)
    c += unsigned(int(T(a >> (8 * i))) * int(T(b >> (8 * i))));
  return c;
}

void bitMixes(Bench &bench) {
  for (int n : sizes) {
    std::vector<unsigned> xs = randomBits(bench, std::size_t(n)), ys = randomBits(bench, xs.size()),
                          zs = randomBits(bench, xs.size()), want;
    auto a = bench.upload(xs), b = bench.upload(ys), c = bench.upload(zs);
    auto out = bench.output<unsigned>(xs.size() * 12);
    bench.launch("bitMixes", {blocksFor(n, 128)}, {128}, 0, a, b, c, out, n);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      unsigned x = xs[i], y = ys[i], z = zs[i];
      std::uint64_t pair = std::uint64_t(y) << 32 | x;
      unsigned clamp = std::min(z & 63, 32u);
      // Bit field of x: position z & 31, y & 31 bits, the missing ones copies of the sign at the field's end.
      unsigned position = z & 31, length = y & 31, field = 0;
      unsigned sign = length == 0 ? 0 : (x >> std::min(position + length - 1, 31u)) & 1;
      for (unsigned k = 0; k < 32; ++k)
        field |= (k < length && position + k < 32 ? (x >> (position + k)) & 1 : sign) << k;
      unsigned insert = y, count = (z >> 8) & 15;
      for (unsigned k = 0; k < count && position + k < 32; ++k)
        insert = (insert & ~(1u << (position + k))) | ((x >> k) & 1) << (position + k);
      std::int64_t difference = std::int64_t(int(x)) - int(y);
      unsigned highs = unsigned((std::uint64_t(x) * y) >> 32) + unsigned((std::int64_t(int(x)) * int(z)) >> 32) +
                       unsigned(std::uint64_t(y & 0xffffff) * (z & 0xffffff));
      want.insert(want.end(), {bytePermute(x, y, z), unsigned((pair << (z & 31)) >> 32), unsigned(pair >> (z & 31)),
                               unsigned((pair << clamp) >> 32), unsigned(pair >> clamp), field, insert,
                               dot4<std::int8_t>(x, y, z), dot4<std::uint8_t>(x, y, z),
                               unsigned(difference < 0 ? -difference : difference) + z, (x & y) | (~x & z), highs});
    }
    bench.expectEqual("out", bench.read(out), want);
  }
}

void divisions(Bench &bench) {
  for (int n : sizes) {
    std::vector<int> xs = randomInts(bench, std::size_t(n)), ys = randomInts(bench, xs.size()), want;
    auto a = bench.upload(xs), b = bench.upload(ys);
    auto out = bench.output<int>(xs.size() * 6);
    bench.launch("divisions", {blocksFor(n, 64)}, {64}, 0, a, b, out, n);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      int x = xs[i], y = ys[i] ? ys[i] : 1;
      bool overflow = x == INT32_MIN && y == -1;
      want.insert(want.end(),
                  {overflow ? 0 : x / y, overflow ? 0 : x % y, int(unsigned(x) / unsigned(y)),
                   int(unsigned(x) % unsigned(y)), x / 7 + x % 1000, int(std::int16_t(x)) / int(std::int16_t(y | 1))});
    }
    bench.expectEqual("out", bench.read(out), want);
  }
}

void wideIntegers(Bench &bench) {
  for (int n : sizes) {
    std::vector<std::uint64_t> xs = randomWide(bench, std::size_t(n)), ys = randomWide(bench, xs.size()), want;
    auto a = bench.upload(xs), b = bench.upload(ys);
    auto out = bench.output<std::uint64_t>(xs.size() * 8);
    bench.launch("wideIntegers", {blocksFor(n, 128)}, {128}, 0, a, b, out, n);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      std::uint64_t x = xs[i], y = ys[i], d = y | 1;
      std::int64_t sx = std::int64_t(x), sy = std::int64_t(y);
      want.insert(want.end(),
                  {x + y * 3, x * y, std::uint64_t((U128(x) * y) >> 64), std::uint64_t((__int128(sx) * sy) >> 64),
                   x / d, x % d, std::uint64_t(sx >> (y & 63)) ^ (x << (y & 63)),
                   std::uint64_t(sx < sy ? (x > y ? 3 : 2) : (x > y ? 1 : 0))});
    }
    bench.expectEqual("out", bench.read(out), want);
  }
}

void carries(Bench &bench) {
  for (int n : sizes) {
    std::vector<std::uint64_t> xs = randomWide(bench, std::size_t(n)), ys = randomWide(bench, xs.size()), want;
    auto a = bench.upload(xs), b = bench.upload(ys);
    auto out = bench.output<std::uint64_t>(xs.size() * 2);
    bench.launch("carries", {blocksFor(n, 128)}, {128}, 0, a, b, out, n);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      U128 q = U128(xs[i]) * ys[i] + xs[i] - (U128(ys[i]) << 17);
      want.insert(want.end(), {std::uint64_t(q), std::uint64_t(q >> 64)});
    }
    bench.expectEqual("out", bench.read(out), want);
  }
}

/// Few values, so that lanes agree often.
std::vector<int> smallInts(Bench &bench, std::size_t count) {
  std::vector<int> values(count);
  for (int &v : values)
    v = int(bench.rng()() % 41) - 20;
  return values;
}

void votes(Bench &bench) {
  for (int n : sizes) {
    std::vector<int> in = smallInts(bench, std::size_t(n));
    auto a = bench.upload(in);
    auto out = bench.output<unsigned>(in.size() * 2);
    unsigned blocks = blocksFor(n, 128);
    bench.launch("votes", {blocks}, {128}, 0, a, out, n);
    std::vector<int> padded = in;
    padded.resize(blocks * 128, 0);
    std::vector<unsigned> want;
    for (std::size_t i = 0; i < in.size(); ++i) {
      unsigned ballot = 0, any = 0, all = 1;
      for (std::size_t lane = 0; lane < 32; ++lane) {
        int v = padded[i / 32 * 32 + lane];
        ballot |= unsigned(v > 0) << lane;
        any |= v == 7;
        all &= v > -1000;
      }
      want.insert(want.end(), {ballot, any | all << 1});
    }
    bench.expectEqual("out", bench.read(out), want);
  }
}

void matches(Bench &bench) {
  for (int n : sizes) {
    std::vector<int> in = smallInts(bench, std::size_t(n));
    std::vector<std::uint64_t> wide(in.size());
    for (std::size_t i = 0; i < wide.size(); ++i)
      wide[i] = (std::uint64_t(bench.rng()() & 1) << 32) | (bench.rng()() & 1);
    for (std::size_t i = 0; i < std::min<std::size_t>(in.size(), 64); ++i)
      in[i] = i < 32 ? 5 : int(i); // one warp where all agree, one where in >> 5 agrees
    auto a = bench.upload(in);
    auto b = bench.upload(wide);
    auto out = bench.output<unsigned>(in.size() * 4);
    bench.launch("matches", {blocksFor(n, 64)}, {64}, 0, a, b, out, n);
    std::vector<unsigned> want;
    for (std::size_t i = 0; i < in.size(); ++i) {
      unsigned any = 0, anyWide = 0, mask = 0, equal = 1;
      for (std::size_t lane = 0; lane < 32 && i / 32 * 32 + lane < in.size(); ++lane) {
        std::size_t j = i / 32 * 32 + lane;
        mask |= 1u << lane;
        any |= unsigned(in[j] == in[i]) << lane;
        anyWide |= unsigned(wide[j] == wide[i]) << lane;
        equal &= (in[j] >> 5) == (in[i] >> 5);
      }
      want.insert(want.end(), {any, anyWide, equal ? mask : 0, equal});
    }
    bench.expectEqual("out", bench.read(out), want);
  }
}

void compact(Bench &bench) {
  for (int n : sizes) {
    std::vector<int> in = randomInts(bench, std::size_t(n)), want;
    std::copy_if(in.begin(), in.end(), std::back_inserter(want), [](int v) { return v > 0; });
    auto a = bench.upload(in);
    auto out = bench.output<int>(in.size());
    auto count = bench.upload(std::vector<unsigned>{0});
    bench.launch("compact", {blocksFor(n, 128)}, {128}, 0, a, out, count, n);
    bench.expectEqual("count", bench.read(count), std::vector<unsigned>{unsigned(want.size())});
    std::vector<int> got = bench.readUnordered(out);
    std::vector<int> rest(got.begin() + std::ptrdiff_t(want.size()), got.end());
    got.resize(want.size());
    std::sort(got.begin(), got.end());
    std::sort(want.begin(), want.end());
    bench.note(got);
    bench.expectEqual("kept values", got, want);
    bench.expectEqual("untouched rest", rest, std::vector<int>(rest.size(), int(0xcdcdcdcd)));
  }
}

void warpRedux(Bench &bench) {
  for (int n : sizes) {
    constexpr unsigned threads = 128;
    unsigned blocks = blocksFor(n, threads);
    std::vector<unsigned> in = randomBits(bench, std::size_t(n));
    if (in.size() > 200)
      std::fill(in.begin() + 128, in.begin() + 160, 3u); // a block with the values that the block votes ask for
    auto a = bench.upload(in);
    auto out = bench.output<unsigned>(in.size() * 8);
    bench.launch("warpRedux", {blocks}, {threads}, 0, a, out, n);
    std::vector<unsigned> padded = in, want;
    padded.resize(blocks * threads, 0);
    for (std::size_t i = 0; i < in.size(); ++i) {
      unsigned sum = 0, top = 0, all = ~0u, odd = 0, bars = 0, andAll = 1, orAny = 0;
      int low = INT32_MAX;
      for (std::size_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j) {
        sum += padded[j];
        top = std::max(top, padded[j]);
        low = std::min(low, int(padded[j]));
        all &= padded[j];
        odd ^= padded[j];
      }
      for (std::size_t j = i / threads * threads; j < i / threads * threads + threads; ++j) {
        bars += padded[j] & 1;
        andAll &= padded[j] != 3;
        orAny |= padded[j] == 5;
      }
      want.insert(want.end(), {sum, top, unsigned(low), all, odd, bars, andAll, orAny});
    }
    bench.expectEqual("out", bench.read(out), want);
  }
}

constexpr int primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};

void lookups(Bench &bench) {
  constexpr float scales[4] = {0.5f, -1.25f, 3.0f, 1e-3f};
  constexpr int weights[5] = {1, 10, 100, 1000, 10000};
  for (int n : sizes) {
    std::vector<unsigned> in = randomBits(bench, std::size_t(n));
    auto a = bench.upload(in);
    auto out = bench.output<int>(in.size());
    auto f = bench.output<float>(in.size());
    bench.launch("lookups", {blocksFor(n, 128)}, {128}, 0, a, out, f, n);
    std::vector<int> want;
    std::vector<float> wantFloat;
    for (unsigned v : in) {
      want.push_back(primes[v & 15] * "abcdefg"[(v >> 4) & 7] + weights[v % 5]);
      wantFloat.push_back(scales[(v >> 2) & 3] * float(v & 255));
    }
    bench.expectEqual("out", bench.read(out), want);
    bench.expectEqual("f", bench.read(f), wantFloat);
    auto out2 = bench.output<int>(in.size());
    bench.launch("tablePointers", {blocksFor(n, 128)}, {128}, 0, a, out2, n);
    for (std::size_t i = 0; i < in.size(); ++i)
      want[i] = primes[(in[i] & 1 ? 8 : 1) + ((in[i] >> 1) & 7)] + 5;
    bench.expectEqual("pointers", bench.read(out2), want);
  }
}

void jumpTable(Bench &bench) {
  auto reference = [](unsigned v) {
    unsigned r = v >> 8, reversed = 0;
    switch (v % 13) {
    case 0:
      return r * 3 + 1;
    case 1:
      return r ^ 0x5a5a;
    case 2:
      return r / 7;
    case 3:
      for (int i = 0; i < 32; ++i)
        reversed |= ((r >> i) & 1) << (31 - i);
      return reversed;
    case 4:
      return unsigned(std::popcount(r));
    case 5:
      return r - v;
    case 6:
      return r << (v & 7);
    case 7:
      return ~r;
    case 8:
      return r * r;
    case 9:
      return r % 1001;
    case 10:
      return std::max(r, 77u);
    default:
      return 0xdeadu;
    }
  };
  for (int n : sizes) {
    std::vector<unsigned> in = randomBits(bench, std::size_t(n)), want;
    auto a = bench.upload(in);
    auto out = bench.output<unsigned>(in.size());
    bench.launch("jumpTable", {blocksFor(n, 128)}, {128}, 0, a, out, n);
    for (unsigned v : in)
      want.push_back(reference(v));
    bench.expectEqual("out", bench.read(out), want);
  }
}

constexpr NvccCase cases[] = {
    {"warpReduce", "scan", warpReduce}, {"blockScan", "scan", blockScan},  {"bitCounts", "bits", bitCounts},
    {"bitMixes", "bits", bitMixes},     {"divisions", "bits", divisions},  {"wideIntegers", "wide", wideIntegers},
    {"carries", "wide", carries},       {"votes", "votes", votes},         {"matches", "votes", matches},
    {"compact", "votes", compact},      {"warpRedux", "votes", warpRedux}, {"tables", "tables", lookups},
    {"jumpTable", "tables", jumpTable},
};

} // namespace

std::span<const NvccCase> integerCases() {
  return cases;
}

} // namespace kiln::test
