#include "tests/kernels/AttentionHookCases.h"

#include "tests/kernels/Operand.h"

#include <cmath>

namespace kiln::test {

using namespace kernels;
using namespace language;

namespace {

constexpr float cap = 15;

std::int64_t longest(const Problem &p) {
  std::int64_t out = std::max(p.queries, p.keys);
  for (const auto *lengths : {&p.lengthsQ, &p.lengthsK})
    for (const std::int64_t n : *lengths)
      out = std::max(out, n);
  return out;
}

double at(const Hooks::Aux &aux, std::int64_t i) {
  return aux.values[static_cast<std::size_t>(i)];
}

} // namespace

Hooks documents(const Problem &p, std::mt19937_64 &random) {
  static const AttentionFunctions functions({.mask = [](const AttentionPairs &pairs) {
    return pairs.load<i32>(0, pairs.batch, pairs.query) == pairs.load<i32>(0, pairs.batch, pairs.key);
  }});
  const std::int64_t n = longest(p);
  Hooks out{functions};
  Hooks::Aux &ids = out.aux.emplace_back(DType::I32, std::vector<std::int64_t>{p.sequences(), n});
  for (std::int64_t b = 0; b < p.sequences(); ++b)
    for (std::int64_t i = 0, id = 0; i < n; ++i)
      ids.values.push_back(static_cast<double>(id += random() % 10 == 0));
  out.mask = [ids, n](const test::Pair &x) { return at(ids, x.batch * n + x.i) == at(ids, x.batch * n + x.j); };
  return out;
}

Hooks prefixes(const Problem &p) {
  static const AttentionFunctions functions({.mask = [](const AttentionPairs &pairs) {
    return (pairs.key <= pairs.query) | (cast<i64>(pairs.key) < pairs.load<i64>(0, pairs.batch));
  }});
  Hooks out{functions};
  Hooks::Aux &lengths = out.aux.emplace_back(DType::I64, std::vector<std::int64_t>{p.sequences()});
  for (std::int64_t b = 0; b < p.sequences(); ++b)
    lengths.values.push_back(static_cast<double>(20 * b + 7));
  out.mask = [lengths](const test::Pair &x) { return x.j <= x.i || static_cast<double>(x.j) < at(lengths, x.batch); };
  return out;
}

Hooks windowWithSinks(std::int64_t window, std::int64_t sinks) {
  Hooks out{AttentionFunctions({.mask = [window, sinks](const AttentionPairs &pairs) {
    return (pairs.key <= pairs.query) &
           ((pairs.key >= pairs.query - static_cast<int>(window)) | (pairs.key < static_cast<int>(sinks)));
  }})};
  out.mask = [window, sinks](const test::Pair &x) { return x.j <= x.i && (x.j >= x.i - window || x.j < sinks); };
  return out;
}

Hooks byHead() {
  static const AttentionFunctions functions({.mask = [](const AttentionPairs &pairs) {
    return (pairs.query + pairs.key * 3 + pairs.head * 5 + pairs.batch) % 7 > 2;
  }});
  Hooks out{functions};
  out.mask = [](const test::Pair &x) { return (x.i + x.j * 3 + x.head * 5 + x.batch) % 7 > 2; };
  return out;
}

Hooks capped() {
  static const AttentionFunctions functions(
      {.score = [](const auto &x, const AttentionPairs &) { return cap * tanh(x / cap); }});
  Hooks out{functions};
  out.cap = cap;
  out.score = [](double x, const test::Pair &) { return cap * std::tanh(x / cap); };
  out.slope = [](double x, const test::Pair &) { return 1 - std::pow(std::tanh(x / cap), 2); };
  return out;
}

Hooks distances(const Problem &p) {
  static const AttentionFunctions functions({.score = [](const auto &x, const AttentionPairs &pairs) {
    return x - pairs.load<f32>(0, pairs.head) * cast<f32>(abs(pairs.query - pairs.key));
  }});
  Hooks out{functions};
  Hooks::Aux &slopes = out.aux.emplace_back(DType::F32, std::vector<std::int64_t>{p.heads});
  for (std::int64_t h = 0; h < p.heads; ++h)
    slopes.values.push_back(std::ldexp(1, -static_cast<int>(h) - 1));
  out.score = [slopes](double x, const test::Pair &pair) {
    return x - at(slopes, pair.head) * static_cast<double>(std::abs(pair.i - pair.j));
  };
  return out;
}

Hooks relativeBias(const Problem &p, std::mt19937_64 &random) {
  Hooks out;
  const std::int64_t n = longest(p), width = 2 * n + 1;
  out.functions = AttentionFunctions({.score =
                                          [](const auto &x, const AttentionPairs &pairs) {
                                            const auto most = pairs.load<i32>(1, 0);
                                            const auto bias =
                                                pairs.load<bf16>(0, pairs.head, pairs.query - pairs.key + most);
                                            return cap * tanh((x + cast<f32>(bias)) / cap);
                                          },
                                      .mask = [](const AttentionPairs &pairs) { return pairs.key <= pairs.query; }});
  out.aux.push_back({DType::BF16, {p.heads, width}, {}});
  out.aux.push_back({DType::I32, {1}, {static_cast<double>(n)}});
  std::normal_distribution<double> normal(0, 2);
  for (std::int64_t i = 0; i < p.heads * width; ++i)
    out.aux[0].values.push_back(rounded(normal(random), DType::BF16));
  const auto inner = [table = out.aux[0], n, width](double x, const test::Pair &pair) {
    return std::tanh((x + at(table, pair.head * width + pair.i - pair.j + n)) / cap);
  };
  out.cap = cap;
  out.score = [inner](double x, const test::Pair &pair) { return cap * inner(x, pair); };
  out.slope = [inner](double x, const test::Pair &pair) { return 1 - std::pow(inner(x, pair), 2); };
  out.mask = [](const test::Pair &pair) { return pair.j <= pair.i; };
  return out;
}

Hooks cubic() {
  static const AttentionFunctions functions(
      {.score = [](const Tile<f32> &x, const AttentionPairs &) { return x * x * x * 0.125f + x; },
       .scoreGradient = [](const Tile<f32> &x, const AttentionPairs &) { return x * x * 0.375f + 1.0f; }});
  Hooks out{functions};
  out.score = [](double x, const test::Pair &) { return x * x * x / 8 + x; };
  out.slope = [](double x, const test::Pair &) { return 3 * x * x / 8 + 1; };
  return out;
}

} // namespace kiln::test
