#include "kernels/dplr/Decay.h"

#include <limits>

namespace kiln::kernels {

using namespace language;

namespace {

/// As products round their operands; what is not finite stays as it is.
ChunkTile roundedToTf32(const ChunkTile &x) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  return select(abs(x) < infinity, bitcast<f32>((bitcast<u32>(x) + 0x1000u) & 0xffffe000u), x);
}

/// From `x`, decayed as the pairs are: those of q, and those of a (none: all that are not zero).
RowGradients gradientsOf(ChunkRule rule, const ChunkRows &x, const Tile<i1> &pairs,
                         const std::optional<Tile<i1>> &pairsOfA, const ProductGradients &of) {
  const auto product = [](const ChunkTile &l, const ChunkTile &r) { return dot(l, r, Precision::Tf32); };
  const auto more = [](const ChunkTile &l, const ChunkTile &r, const ChunkTile &to) {
    return dot(l, r, to, Precision::Tf32);
  };
  const auto at = [&](const std::function<ChunkTile()> &d) { return select(pairs, d(), 0.0f); };
  const auto ofA = [&](const std::function<ChunkTile()> &d) { return pairsOfA ? select(*pairsOfA, d(), 0.0f) : d(); };
  const bool withA = reads(rule), withB = hasOwnB(rule);
  const ChunkTile qk = at(of.qk), qb = withB ? at(of.qb) : qk, ak = withA ? ofA(of.ak) : qk,
                  ab = withB ? ofA(of.ab) : qk;
  RowGradients out;
  out.q = [=] {
    const auto byK = product(qk, x.k);
    return withB ? more(qb, x.b, byK) : byK;
  };
  out.k = [=] {
    const auto ofQ = product(transpose(qk), x.q);
    return withA ? more(transpose(ak), x.a, ofQ) : ofQ;
  };
  out.a = [=] {
    const auto byK = product(ak, x.k);
    return withB ? more(ab, x.b, byK) : byK;
  };
  out.b = [=] { return more(transpose(ab), x.a, product(transpose(qb), x.q)); };
  return out;
}

} // namespace

Decay::Decay(ChunkSource from, bool bounded) : source(std::move(from)), bounded(bounded || !source.gates) {
  if (!decays())
    return;
  gate = gates();
  width = static_cast<int>(gate.extent(1));
  const auto halves = reshape(gate, {2, source.rows / 2, width});
  within = cumsum(halves, along(1));
  // The last rows.  Another sum would exchange as much between warps as the running sum does.
  half = reshape(gather(within, full<i32>({2, 1, width}, source.rows / 2 - 1), along(1)), {2, width});
}

ChunkTile Decay::gates() const {
  return bounded ? source.gates() : max(source.gates(), lowestGate);
}

Factor Decay::ofChunk() const {
  return decays() ? Factor{exp(expandDims(sum(half, along(0)), 0))} : Factor{};
}

ChunkRows Decay::scaled(const ChunkRows &x, const Factors &by) const {
  ChunkRows out;
  out.q = x.q * by.q, out.k = x.k * by.kb;
  if (reads(source.rule))
    out.a = x.a * by.a;
  out.b = hasOwnB(source.rule) ? x.b * by.kb : out.k;
  return out;
}

Decay::Factors Decay::aroundMiddle() const {
  if (!decays())
    return {};
  const auto isFirst = expandDims(range(0, 2) == 0, 1);
  const auto fromMiddle = reshape(within - expandDims(select(isFirst, half, 0.0f), 1), {source.rows, width});
  return {{exp(fromMiddle)}, {exp(fromMiddle - gate)}, {exp(-fromMiddle)}};
}

Decay::Factors Decay::fromStartToEnd() const {
  if (!decays())
    return {};
  const auto isFirst = expandDims(range(0, 2) == 0, 1);
  const auto all = expandDims(sum(half, along(0)), 0);
  // What lies before each half.
  const auto before = expandDims(select(isFirst, 0.0f, all - half), 1);
  const auto fromStart = reshape(within + before, {source.rows, width});
  return {{exp(fromStart)}, {exp(fromStart - gate)}, {exp(all - fromStart)}};
}

Decay::Factors Decay::fromMiddleToEnds() const {
  if (!bounded || !decays())
    return fromStartToEnd();
  const Factors middle = aroundMiddle();
  // e^{G at the middle} and e^{L - that}: [1, columns].
  const auto ofHalf = [&](int n) {
    return exp(expandDims(sum(select(expandDims(range(0, 2) == n, 1), half, 0.0f), along(0)), 0));
  };
  const ChunkTile first = ofHalf(0), second = ofHalf(1);
  return {{*middle.q.tile * first}, {*middle.a.tile * first}, {*middle.kb.tile * second}};
}

Decay::Level Decay::ofHalves(const Scalar<i32> &log) const {
  const int size = source.rows;
  const auto i = expandDims(range(0, size), 1), j = expandDims(range(0, size), 0);
  const auto isSecond = ((i >> log) & 1) == 1;
  const auto reference = (((i >> (log + 1)) << (log + 1)) + (1 << log)) - 1; // the first half's last row
  // From the reference to a row of the second half, from a row of the first to the reference.
  const auto counted = select(isSecond, (j > reference) & (j <= i), (j > i) & (j <= reference));
  const auto here = gates();
  const auto sums = width == 1 ? expandDims(sum(select(counted, transpose(here), 0.0f), along(1)), 1)
                               : dot(select(counted, full<f32>({size, size}, 1.0f), 0.0f), here, Precision::Tf32x3);
  const auto second = [&](const ChunkTile &x) { return select(isSecond, x, 0.0f); };
  return {{{second(exp(sums))}, {second(exp(min(sums - here, 0.0f)))}, {select(isSecond, 0.0f, exp(sums))}},
          ((i >> (log + 1)) == (j >> (log + 1))) & ((i >> log) > (j >> log))};
}

std::vector<ChunkTile> Decay::products(const ChunkRows &rows) const {
  const int size = source.rows;
  const bool withA = reads(source.rule), withB = hasOwnB(source.rule);
  const auto i = expandDims(range(0, size), 1), j = expandDims(range(0, size), 0);
  // Operands of 11 bits and float32's range, as the specification asks of these (S4).
  const auto product = [](const ChunkTile &x, const ChunkTile &y) { return dot(x, transpose(y), Precision::Tf32); };
  // Matrices that the rule has not stand for others', and are not used.
  const auto middle = [&] {
    const ChunkRows x = scaled(rows, aroundMiddle());
    const auto qk = select(j <= i, product(x.q, x.k), 0.0f);
    const auto qb = withB ? select(j <= i, product(x.q, x.b), 0.0f) : qk;
    const auto ak = withA ? select(j < i, product(x.a, x.k), 0.0f) : qk;
    const auto ab = withB ? select(j < i, product(x.a, x.b), 0.0f) : ak;
    return std::tuple{qk, qb, ak, ab};
  };
  // Two matrices at a time: four are more than registers hold.
  const auto twoByHalves = [&](const ChunkTile ChunkRows::*left, const Factor Factors::*factor, const ChunkTile &k,
                               const ChunkTile &b) {
    return loop(over(0, levels()), k, b, [&](auto log, auto byK, auto byB) {
      const Level level = ofHalves(log);
      const ChunkRows x = source.read(Cache::Default);
      const auto row = x.*left * level.factors.*factor;
      const auto put = [&](const ChunkTile &p, const ChunkTile &to) { return select(level.pairs, p, to); };
      const auto nextK = put(product(row, x.k * level.factors.kb), byK);
      return std::tuple{nextK, withB ? put(product(row, x.b * level.factors.kb), byB) : byB};
    });
  };
  const auto halves = [&] {
    // Nothing decays between a token and itself.
    const auto diagonal = [&](const ChunkTile &x, const ChunkTile &y) {
      return select(i == j, expandDims(sum(x * y, along(1)), 1), 0.0f);
    };
    const ChunkRows own = source.read(Cache::Default);
    const auto none = zeros<f32>({size, size});
    const auto ofQ =
        twoByHalves(&ChunkRows::q, &Factors::q, diagonal(own.q, own.k), withB ? diagonal(own.q, own.b) : none);
    const auto ofA = withA ? twoByHalves(&ChunkRows::a, &Factors::a, none, none) : std::tuple{none, none};
    return std::tuple_cat(ofQ, ofA);
  };
  const auto [qk, qb, ak, ab] = choose(middle, halves);
  if (withB)
    return {qk, qb, ak, ab};
  if (withA)
    return {qk, ak};
  return {qk};
}

RowGradients Decay::gradients(const ChunkRows &rows, const ProductGradients &of, bool withGates) const {
  const bool withA = reads(source.rule), withB = hasOwnB(source.rule);
  const auto at = [&](const ChunkRows &decayed, const Factors &factors, const Tile<i1> &pairs,
                      const std::optional<Tile<i1>> &pairsOfA) {
    const RowGradients raw = gradientsOf(source.rule, decayed, pairs, pairsOfA, of);
    return RowGradients{[=] { return raw.q() * factors.q; }, [=] { return raw.a() * factors.a; },
                        [=] { return raw.k() * factors.kb; }, [=] { return raw.b() * factors.kb; }};
  };
  const auto middle = [&] {
    const Factors factors = aroundMiddle();
    return at(scaled(rows, factors), factors,
              expandDims(range(0, source.rows), 0) < expandDims(range(0, source.rows), 1), std::nullopt);
  };
  if (bounded)
    return middle();
  const auto none = zeros<f32>({source.rows, source.columns});
  const auto sum = [&](const RowGradients &x, const ChunkTile &q, const ChunkTile &a, const ChunkTile &k,
                       const ChunkTile &b) {
    const ChunkTile nextQ = q + x.q(), nextK = k + x.k();
    return std::tuple{nextQ, withA ? a + x.a() : a, nextK, withB ? b + x.b() : b};
  };
  // Rows as products take them, times what they get: of a pair both shares are the same numbers' products.
  const auto sharesOf = [&](const ChunkRows &x, const ChunkTile &q, const ChunkTile &a, const ChunkTile &k) {
    const ChunkTile ofQ = x.q * q;
    return (withA ? ofQ + x.a * a : ofQ) - x.k * k;
  };
  const auto halves = [&] {
    return loop(
        over(0, levels()), none, none, none, none, none, [&](auto log, auto q, auto a, auto k, auto b, auto shares) {
          const Level level = ofHalves(log);
          ChunkRows x = scaled(source.read(Cache::Default), level.factors);
          if (!withGates)
            return std::tuple_cat(sum(at(x, level.factors, level.pairs, level.pairs), q, a, k, b), std::tuple{shares});
          x.q = roundedToTf32(x.q), x.k = roundedToTf32(x.k);
          if (withA)
            x.a = roundedToTf32(x.a);
          const RowGradients raw = gradientsOf(source.rule, x, level.pairs, level.pairs, of);
          const ChunkTile byQ = raw.q(), byK = raw.k(), byA = withA ? raw.a() : none;
          return std::tuple{q + byQ * level.factors.q, withA ? a + byA * level.factors.a : a,
                            k + byK * level.factors.kb, b, shares + sharesOf(x, byQ, byA, byK)};
        });
  };
  const auto [q, a, k, b, ofGates] = when(
      min(half) >= lowestSum, [&] { return std::tuple_cat(sum(middle(), none, none, none, none), std::tuple{none}); },
      [&] {
        const auto [byQ, byA, byK, byB, shares] = halves();
        return std::tuple{byQ, byA, byK, byB,
                          withGates ? shares - sharesOf(source.read(Cache::Default), byQ, byA, byK) : shares};
      });
  return {[q = q] { return q; }, [a = a] { return a; }, [k = k] { return k; }, [b = b] { return b; },
          withGates ? std::function([ofGates = ofGates] { return ofGates; }) : std::function<ChunkTile()>()};
}

} // namespace kiln::kernels
