//===- ControlCases.cpp - Divergence, calls, local arrays, warp roles ------===//
#include "tests/nvcc/Bench.h"

#include <algorithm>
#include <cstdint>

namespace kiln::test {

namespace {

void collatz(Bench &bench) {
  for (int n : sizes) {
    std::vector<unsigned> in(static_cast<std::size_t>(n)), steps, peaks;
    for (unsigned &v : in)
      v = 1 + unsigned(bench.rng()() % 5000);
    auto a = bench.upload(in);
    auto s = bench.output<unsigned>(in.size()), p = bench.output<unsigned>(in.size());
    bench.launch("collatz", {blocksFor(n, 128)}, {128}, 0, a, s, p, n);
    for (unsigned v : in) {
      unsigned count = 0, top = v;
      for (; v != 1; ++count) {
        v = v & 1 ? 3 * v + 1 : v / 2;
        top = std::max(top, v);
      }
      steps.push_back(count);
      peaks.push_back(top);
    }
    bench.expectEqual("steps", bench.read(s), steps);
    bench.expectEqual("peak", bench.read(p), peaks);
  }
}

/// The kernel's arithmetic with wrapping integers.
int nestedReference(int v) {
  unsigned acc = 0;
  if (v == 0)
    return -1;
  for (int a = 0; a < (v & 7); a++) {
    if (((v >> a) & 3) == 1)
      continue;
    bool skip = false;
    for (int b = a; !skip; b++) {
      if (b > 12 || ((v >> b) & 5) == 5)
        break;
      acc = acc * 3 + unsigned(b);
      if ((acc & 0xff) == 0x77)
        return int(acc);
      unsigned selector = acc & 3;
      if (selector == 0)
        acc += unsigned(v);
      else if (selector == 1)
        acc = (acc ^ unsigned(v >> 2)) - 7;
      else if (selector == 2)
        acc -= 7;
      else
        skip = true;
    }
    if (!skip)
      acc ^= unsigned(a) << 8;
    acc += 1;
  }
  do
    acc = acc * 1103515245u + 12345u;
  while ((acc & 0x3000) != 0);
  return int(acc);
}

void nested(Bench &bench) {
  for (int n : sizes) {
    std::vector<int> in = randomInts(bench, std::size_t(n)), want;
    auto a = bench.upload(in);
    auto out = bench.output<int>(in.size());
    bench.launch("nested", {blocksFor(n, 64)}, {64}, 0, a, out, n);
    for (int v : in)
      want.push_back(nestedReference(v));
    bench.expectEqual("out", bench.read(out), want);
  }
}

void laneLock(Bench &bench) {
  for (auto [blocks, threads] : {std::pair{1u, 32u}, {1u, 1u}, {3u, 64u}}) {
    auto lock = bench.upload(std::vector<int>{0}), counter = bench.upload(std::vector<int>{0}),
         squares = bench.upload(std::vector<int>{0});
    bench.launch("laneLock", {blocks}, {threads}, 0, lock, counter, squares);
    int count = int(blocks * threads), sum = 0;
    for (int i = 0; i < count; ++i)
      sum += i * i;
    bench.expectEqual("lock", bench.read(lock), {0});
    bench.expectEqual("counter", bench.read(counter), {count});
    bench.expectEqual("squares", bench.read(squares), {sum});
  }
}

void tokenRing(Bench &bench) {
  for (auto [blocks, threads] : {std::pair{1u, 32u}, {2u, 64u}, {3u, 17u}}) {
    auto out = bench.output<int>(blocks * threads);
    bench.launch("tokenRing", {blocks}, {threads}, 0, out);
    std::vector<int> want;
    for (unsigned b = 0; b < blocks; ++b)
      for (unsigned t = 0; t < threads; ++t)
        want.push_back(int(t * 3 + b));
    bench.expectEqual("out", bench.read(out), want);
  }
}

int mix(int x, int y) {
  return int(unsigned(x) * 31u + unsigned(y ^ (x >> 3)));
}
int add(int x, int y) {
  return int(unsigned(x) + unsigned(y));
}

void plainCalls(Bench &bench) {
  for (int n : sizes) {
    std::vector<int> in = randomInts(bench, std::size_t(n)), want, wantPointers;
    auto a = bench.upload(in);
    auto out = bench.output<int>(in.size()), outPointers = bench.output<int>(in.size());
    bench.launch("plainCalls", {blocksFor(n, 128)}, {128}, 0, a, out, n);
    bench.launch("pointers", {blocksFor(n, 128)}, {128}, 0, a, outPointers, n);
    for (int i = 0; i < n; ++i) {
      int v = in[std::size_t(i)];
      want.push_back(add(mix(v, i), mix(i, v)));
      unsigned which = (unsigned(v) >> 4) % 3, x = unsigned(v), y = unsigned(i);
      wantPointers.push_back(int(which == 0 ? x + y : which == 1 ? x - y : x * y));
    }
    bench.expectEqual("out", bench.read(out), want);
    bench.expectEqual("through pointers", bench.read(outPointers), wantPointers);
  }
}

void recursion(Bench &bench) {
  for (int n : sizes) {
    std::vector<unsigned> in = randomBits(bench, std::size_t(n)), want;
    auto a = bench.upload(in);
    auto out = bench.output<unsigned>(in.size());
    bench.launch("recursion", {blocksFor(n, 64)}, {64}, 0, a, out, n);
    for (unsigned v : in) {
      unsigned rows = v & 7, k = (v >> 8) % (rows + 1), c = 1;
      for (unsigned j = 0; j < k; ++j)
        c = c * (rows - j) / (j + 1);
      want.push_back(c);
    }
    bench.expectEqual("out", bench.read(out), want);
  }
}

struct Pair {
  int a;
  short b;
  double c;
};

void structures(Bench &bench) {
  for (int n : sizes) {
    std::vector<int> in = randomInts(bench, std::size_t(n)), wantA;
    std::vector<short> wantB;
    std::vector<double> wantC;
    auto x = bench.upload(in), a = bench.output<int>(in.size());
    auto b = bench.output<short>(in.size());
    auto c = bench.output<double>(in.size());
    bench.launch("structures", {blocksFor(n, 128)}, {128}, 0, x, a, b, c, n);
    for (int i = 0; i < n; ++i) {
      int v = in[std::size_t(i)];
      wantA.push_back(short(v >> 7));
      wantB.push_back(short(v));
      wantC.push_back(i * 0.75);
    }
    bench.expectEqual("a", bench.read(a), wantA);
    bench.expectEqual("b", bench.read(b), wantB);
    bench.expectEqual("c", bench.read(c), wantC);
  }
  std::vector<int> wantA;
  std::vector<double> wantC;
  Pair p{};
  p.a = -77;
  p.b = 1234;
  p.c = 2.5;
  auto a = bench.output<int>(48);
  auto c = bench.output<double>(48);
  bench.launch("structureParameter", {1}, {48}, 0, p, a, c);
  for (int t = 0; t < 48; ++t) {
    wantA.push_back(-77 + 1234 * t);
    wantC.push_back(2.5 * t);
  }
  bench.expectEqual("parameter a", bench.read(a), wantA);
  bench.expectEqual("parameter c", bench.read(c), wantC);
}

void insertionSort(Bench &bench) {
  for (int n : sizes) {
    std::vector<int> in = randomInts(bench, std::size_t(n)), want;
    auto a = bench.upload(in);
    auto out = bench.output<int>(in.size() * 12);
    bench.launch("insertionSort", {blocksFor(n, 128)}, {128}, 0, a, out, n);
    for (int i = 0; i < n; ++i) {
      int v[12];
      for (int j = 0; j < 12; ++j)
        v[j] = in[std::size_t((i * 7 + j * 13) % n)];
      std::sort(v, v + 12);
      want.insert(want.end(), v, v + 12);
    }
    bench.expectEqual("out", bench.read(out), want);
  }
}

double stackReference(unsigned p) {
  std::vector<double> stack{1.0, 2.0};
  int visits[4] = {0, 0, 0, 0};
  for (int s = 0; s < 12; s++, p >>= 2) {
    visits[p & 3]++;
    if ((p & 3) == 0 && stack.size() < 10)
      stack.push_back(s + 0.5);
    else if ((p & 3) == 1 && stack.size() > 2) {
      double top = stack.back();
      stack.pop_back();
      stack.back() += top;
    } else if ((p & 3) == 2)
      stack.back() = -stack.back();
    else
      stack[0] = stack.back() + stack[0];
  }
  return stack.back() + stack[0] * 16.0 + visits[p & 1] * 4096.0;
}

void stackMachine(Bench &bench) {
  for (int n : sizes) {
    std::vector<unsigned> in = randomBits(bench, std::size_t(n));
    std::vector<double> want;
    auto a = bench.upload(in);
    auto out = bench.output<double>(in.size());
    bench.launch("stackMachine", {blocksFor(n, 128)}, {128}, 0, a, out, n);
    for (unsigned p : in)
      want.push_back(stackReference(p)); // multiples of 1/2 far below 2^52: exact in any order
    bench.expectEqual("out", bench.read(out), want);
  }
}

void producerConsumer(Bench &bench) {
  for (int rounds : {1, 2, 7, 32}) {
    std::vector<int> in(std::size_t(rounds) * 64), want;
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = int(bench.rng()() % 100000);
    auto a = bench.upload(in), out = bench.output<int>(in.size());
    bench.launch("producerConsumer", {1}, {128}, 0, a, out, rounds);
    for (int r = 0; r < rounds; ++r)
      for (int t = 0; t < 64; ++t)
        want.push_back(in[std::size_t(r * 64 + 63 - t)] * 2 + r);
    bench.expectEqual("out", bench.read(out), want);
  }
}

constexpr NvccCase cases[] = {
    {"collatz", "divergence", collatz},      {"nested", "divergence", nested},
    {"laneLock", "divergence", laneLock},    {"tokenRing", "divergence", tokenRing},
    {"calls", "calls", plainCalls},          {"recursion", "calls", recursion},
    {"structures", "calls", structures},     {"insertionSort", "local", insertionSort},
    {"stackMachine", "local", stackMachine}, {"producerConsumer", "roles", producerConsumer},
};

} // namespace

std::span<const NvccCase> controlCases() {
  return cases;
}

} // namespace kiln::test
