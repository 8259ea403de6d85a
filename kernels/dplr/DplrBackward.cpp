#include "kernels/dplr/Walk.h"

namespace kiln::kernels {

using namespace language;

namespace {

/// [C, 1] and [1, C].
Tile<i32> rowsOf(int n) {
  return expandDims(range(0, n), 1);
}
Tile<i32> columnsOf(int n) {
  return expandDims(range(0, n), 0);
}

template <Element T, Element G, Element B, Element I> Kernel mapsBackwardOf(const DplrConfig &c) {
  return kernel("dplr_maps_backward", optionsOfChunks(c),
                [&](TensorArg<T, 4, "q", vectors> q, TensorArg<T, 4, "k", vectors> k, TensorArg<T, 4, "v", vectors> v,
                    TensorArg<T, 4, "a", maybeVectors> a, TensorArg<T, 4, "b", maybeVectors> b,
                    TensorArg<G, 4, "g", maybeVectors> g, TensorArg<G, 3, "gate_of_head", maybe> gateOfHead,
                    TensorArg<B, 3, "beta", maybe> beta, TensorArg<T, 4, "do", vectors> dO,
                    TensorArg<I, 1, "cu_seqlens", maybe> cu, TensorArg<T, 4, "f", maybeVectors> f,
                    TensorArg<T, 4, "rt", vectors> rt, TensorArg<T, 4, "rht", vectors> rht,
                    TensorArg<f32, 3, "decay", maybeVectors> decays, TensorArg<T, 4, "matrices", vectors> matrices,
                    Arg<i32, "sequences"> sequences, Arg<f32, "scale"> scale) {
                  const auto here = ChunkProgram::of(q, offsetsOf<I>(cu), sequences, c, c.dim, c.dimV);
                  when(here.exists(), [&] {
                    MapSource<T, G, B> source(here, {q, k, a, b, g, gateOfHead, beta}, v, scale, c);
                    KeptMatrices<T>(here, matrices, c.rule).write(source.matrices);
                    writeMap(c, source, f, rt, decays, [&](const GatedRows<T> &slice, const ChunkTile &qh) {
                      for (const ChunkProgram &part : partsOf(slice.here, c))
                        part.writeState(rht, dot(transpose(part.read(dO)), cast<T>(qh)));
                    });
                  });
                });
}

/// X: the type of what a step adds, and of states in memory.
template <Element T, Element X, Element H, Element D, Element I> Kernel chainsOf(const DplrConfig &c) {
  return kernel(c.ofSegments ? "dplr_segment_chains" : "dplr_chains", optionsOfChain(c),
                [&](TensorArg<H, 4, "h0", maybeVectors> h0, TensorArg<D, 4, "dht", maybeVectors> dht,
                    TensorArg<T, 3, "f", maybeVectors> f, TensorArg<X, 3, "rt", maybeVectors> rt,
                    TensorArg<X, 3, "rht", maybeVectors> rht, TensorArg<T, 3, "qh", maybeVectors> qh,
                    TensorArg<T, 4, "do", maybeVectors> dO, TensorArg<f32, 3, "decay", maybeVectors> decay,
                    TensorArg<I, 1, "cu_seqlens", maybe> cu, TensorArg<f32, 3, "starts", maybeVectors> starts,
                    TensorArg<f32, 3, "ends", maybeVectors> ends, TensorArg<X, 3, "h", maybeVectors> h,
                    TensorArg<X, 3, "dh", maybeVectors> dh, TensorArg<f32, 4, "ht", maybeVectors> ht,
                    TensorArg<f32, 4, "dh0", maybeVectors> dh0, Arg<i64, "tokens"> tokens, Arg<i32, "heads"> heads,
                    Arg<i32, "sequences"> sequences) {
                  const auto parts = c.dimV / c.blockV;
                  const auto part = programId() / directionsOf(c);
                  const auto column = part % parts * c.blockV;
                  const Walk here = Walk::of(part / parts, heads, tokens, sequences, offsetsOf<I>(cu), c);
                  const auto head = here.head;
                  const auto decays = decay.at(head, all, all).tiles({1, c.dim});
                  const auto partOf = [&](const auto &x) { return x.at(head, all, all).tiles({c.blockV, c.dim}); };
                  // A state x, transposed: written before it passes a chunk, whose map adds `more`.
                  const auto step = [&](const auto &slot, const ChunkTile &x, const TensorView<X, 3> &to,
                                        const TensorView<X, 3> &more, bool back) {
                    const auto rowOfV = slot * c.dimV + column;
                    const auto operand = cast<T>(x);
                    if constexpr (std::same_as<X, T>)
                      storeView(partOf(to), {rowOfV, 0}, operand);
                    else
                      storeView(partOf(to), {rowOfV, 0}, x);
                    const auto kept = c.gate == GateKind::None ? x : x * loadView(decays, {slot, 0});
                    const auto next = back && makesRht(c) ? here.withRht(qh, dO, slot, column, kept, c)
                                                          : kept + asF32(loadView(partOf(more), {rowOfV, 0}));
                    return passed<T>(c, f.at(head, all, all), slot, operand, next, back);
                  };
                  const auto ofSegment = [&](const TensorView<f32, 3> &x) {
                    return loadView(partOf(x), {here.segment * c.dimV + column, 0});
                  };
                  const auto writeState = [&](const TensorView<f32, 4> &to, const ChunkTile &x) {
                    storeView(to.at(here.n, head, all, all).tiles({c.dim, c.blockV}), {0, column}, transpose(x));
                  };
                  const auto walk = [&] {
                    const auto last = here.forward(
                        c.segment ? ofSegment(starts) : stateOf(h0, c.initial, here.n, head, column, c),
                        [&](const auto &slot, const auto &x) { return step(slot, x, h, rt, /*back=*/false); });
                    if (c.ofSegments && !c.gradients && c.final)
                      writeState(ht, last);
                  };
                  const auto walkBack = [&] {
                    const auto last = here.backward(
                        c.segment ? ofSegment(ends) : stateOf(dht, c.final, here.n, head, column, c),
                        [&](const auto &slot, const auto &x) { return step(slot, x, dh, rht, /*back=*/true); });
                    if (c.wantsFirst)
                      writeState(dh0, last);
                  };
                  if (!c.gradients)
                    walk();
                  else if (!walksForward(c))
                    walkBack();
                  else
                    when(programId() % 2 == 0, walk, walkBack);
                });
}

template <Element T, Element G, Element B, Element I> Kernel valueGradsOf(const DplrConfig &c) {
  return kernel("dplr_value_grads", optionsOfChunks(c),
                [&](TensorArg<T, 4, "q", vectors> q, TensorArg<T, 4, "k", vectors> k, TensorArg<T, 4, "v", vectors> v,
                    TensorArg<T, 4, "a", maybeVectors> a, TensorArg<T, 4, "b", maybeVectors> b,
                    TensorArg<G, 4, "g", maybeVectors> g, TensorArg<G, 3, "gate_of_head", maybe> gateOfHead,
                    TensorArg<B, 3, "beta", maybe> beta, TensorArg<T, 4, "do", vectors> dO,
                    TensorArg<I, 1, "cu_seqlens", maybe> cu, TensorArg<T, 4, "h", vectors> hs,
                    TensorArg<T, 4, "dh", vectors> dhs, TensorArg<T, 4, "matrices", vectors> matrices,
                    TensorArg<T, 4, "dv", vectors> dv, TensorArg<T, 4, "y", maybeVectors> ys,
                    TensorArg<T, 4, "written", maybeVectors> writtens, Arg<i32, "sequences"> sequences,
                    Arg<f32, "scale"> scale) {
                  const auto here = ChunkProgram::of(q, offsetsOf<I>(cu), sequences, c, c.dim, partOfV(c.dimV));
                  when(here.exists(), [&] {
                    const ChunkReading<T, G, B> reading(here, {q, k, a, b, g, gateOfHead, beta}, scale, c,
                                                        /*forMatrices=*/false);
                    const auto values = here.read(v), out = here.read(dO);
                    const auto m = KeptMatrices<T>(here, matrices, c.rule).read();
                    // Sums over K, slice by slice: of dv, of what a reads (where b is k: v and that, Rule.h), of the
                    // gradient of what b writes.
                    std::vector<ChunkTile> sums{dot(transpose(m.products.qk), out)};
                    if (reads(c.rule))
                      sums.push_back(hasOwnB(c.rule) ? dot(m.products.ak, values) : cast<f32>(values));
                    if (hasOwnB(c.rule))
                      sums.push_back(dot(transpose(m.products.qb), out));
                    sums = reading.sumOfSlices(sums, [&](const GatedRows<T> &rows, std::vector<ChunkTile> x) {
                      // States are transposed: that before the chunk, and the gradient of that after it.
                      const auto dh = rows.here.stateOfSlot(dhs);
                      x[0] = dot(rows.kg, transpose(dh), x[0]);
                      if (reads(c.rule))
                        x[1] = dot(rows.ag, transpose(rows.here.stateOfSlot(hs)), x[1]);
                      if (hasOwnB(c.rule))
                        x[2] = dot(rows.bg, transpose(dh), x[2]);
                      return x;
                    });
                    const ChunkTile &dV = sums.front();
                    if (!reads(c.rule)) {
                      here.write(dv, dV);
                      return;
                    }
                    const auto wasRead = cast<T>(sums[1]);
                    const auto y = dot(transpose(m.inverse), cast<T>(hasOwnB(c.rule) ? sums[2] : dV));
                    here.writePart(ys, y);
                    here.write(dv, hasOwnB(c.rule) ? dot(transpose(m.products.ak), cast<T>(y), dV) : y);
                    here.writePart(writtens, dot(m.inverse, wasRead));
                  });
                });
}

template <Element T, Element G, Element B, Element I> Kernel gradsOf(const DplrConfig &c) {
  return kernel(
      "dplr_grads", optionsOfChunks(c, /*gradients=*/true),
      [&](TensorArg<T, 4, "q", vectors> q, TensorArg<T, 4, "k", vectors> k, TensorArg<T, 4, "v", vectors> v,
          TensorArg<T, 4, "a", maybeVectors> a, TensorArg<T, 4, "b", maybeVectors> b,
          TensorArg<G, 4, "g", maybeVectors> g, TensorArg<G, 3, "gate_of_head", maybe> gateOfHead,
          TensorArg<B, 3, "beta", maybe> beta, TensorArg<T, 4, "do", vectors> dO,
          TensorArg<I, 1, "cu_seqlens", maybe> cu, TensorArg<T, 4, "h", vectors> hs, TensorArg<T, 4, "dh", vectors> dhs,
          TensorArg<T, 4, "y", maybeVectors> ys, TensorArg<T, 4, "written", maybeVectors> writtens,
          TensorArg<T, 4, "dq", vectors> dq, TensorArg<T, 4, "dk", vectors> dk, TensorArg<T, 4, "da", maybeVectors> da,
          TensorArg<T, 4, "db", maybeVectors> db, TensorArg<G, 4, "dg", maybeVectors> dg,
          TensorArg<G, 3, "dgate_of_head", maybe> dGateOfHead, TensorArg<B, 3, "dbeta", maybe> dBeta,
          Arg<i32, "sequences"> sequences, Arg<f32, "scale"> scale) {
        const bool withA = reads(c.rule), withB = hasOwnB(c.rule);
        // RWKV7's decays are mild, and DPLR's registers hold no tile more.
        const bool gatesByPairs = c.gate == GateKind::Channel && c.rule != ChunkRule::Dplr;
        const RuleTensors<T, G, B> in{q, k, a, b, g, gateOfHead, beta};
        // Gradients of one slice of K; and what it has of those that are sums over K, one number a token: of the gates
        // of a head, of beta.
        const auto ofSlice = [&](const ChunkProgram &here) {
          std::tuple<ChunkTile, ChunkTile> sums{zeros<f32>({c.chunk}), zeros<f32>({c.chunk})};
          const ChunkSource source = here.source(in, scale, c);
          const ChunkRows rows = source.read(Cache::Default);
          using Part = std::function<Tile<T>(const ChunkProgram &)>;
          // What is read of a part of V; where there is only one, read once.
          const bool onePart = partOfV(c.dimV) == c.dimV;
          const auto part = [&](const Part &read) {
            return onePart ? Part([x = read(here)](const ChunkProgram &) { return x; }) : read;
          };
          // dO; what k and b wrote, and the gradient of what a read (S3.3).
          const bool kIsWritten = withA && !withB;
          const Part out = part([&](const ChunkProgram &p) { return p.read(dO); }),
                     byK = part([&](const ChunkProgram &p) { return kIsWritten ? p.partOfSlot(writtens) : p.read(v); }),
                     byB = withB ? part([&](const ChunkProgram &p) { return p.partOfSlot(writtens); }) : byK,
                     y = withA ? part([&](const ChunkProgram &p) { return p.partOfSlot(ys); }) : byK;
          const Decay decay(source, c.bounded);

          // Gradients of the matrices.  Pairs that nothing decays between, one token and a reader with the token before
          // it, go their own way and not into dg, where they would cancel (S3.4): one number a row, times a row.
          const auto i = rowsOf(c.chunk), j = columnsOf(c.chunk);
          const auto product = [&](const Part &l, const Part &r) {
            return here.sumOfParts([&](const ChunkProgram &p) { return dot(l(p), transpose(r(p))); });
          };
          const ChunkTile qk = product(out, byK), qb = withB ? product(out, byB) : qk,
                          ak = withA ? product(y, byK) : qk, ab = withB ? product(y, byB) : ak;
          const auto far = [&](const ChunkTile &d) { return select(i > j + 1, d, 0.0f); };
          const auto again = [&](const ChunkTile &d, const Part &l, const Part &r) {
            return c.bounded ? d : product(l, r);
          };
          const auto numbers = [&](const ChunkTile &d, int apart, int dim) {
            return expandDims(sum(select(i == j + apart, d, 0.0f), along(dim)), 1);
          };
          // Of what is next to each other: one number a row.
          struct NearPairs {
            ChunkTile sameK, sameB, akOfReader, akOfWriter, abOfReader, abOfWriter;
          };
          const auto nearPairs = [&] {
            NearPairs n;
            n.sameK = numbers(qk, 0, 1), n.sameB = withB ? numbers(qb, 0, 1) : n.sameK;
            if (withA)
              n.akOfReader = numbers(ak, 1, 1), n.akOfWriter = numbers(ak, 1, 0);
            if (withB)
              n.abOfReader = numbers(ab, 1, 1), n.abOfWriter = numbers(ab, 1, 0);
            return n;
          };
          // Before the rows' gradients, after which the matrices need not be kept.  Where chunks are looked at, the
          // rows' are in a conditional: what is computed before it takes registers of both its arms.
          NearPairs near;
          if (c.bounded)
            near = nearPairs();
          const RowGradients intra =
              decay.gradients(rows,
                              {[&] { return again(qk, out, byK); }, [&] { return again(qb, out, byB); },
                               [&] { return far(again(ak, y, byK)); }, [&] { return far(again(ab, y, byB)); }},
                              gatesByPairs);
          if (!c.bounded)
            near = nearPairs();
          // The neighbours' rows are read; those outside the chunk have zeros for numbers.
          const ChunkSource before = here.later(-1).source(in, scale, c), after = here.later(1).source(in, scale, c);
          // One row after the other: each is read where it is needed, and its gradient written before the next.
          // `later`: what dg gains at a token and all before it; `toEnd`: on the way to the chunk's end.
          const auto factors = decay.fromMiddleToEnds();
          // Transposed: the state before the chunk, and the gradient of that after it.
          const Part h = part([&](const ChunkProgram &p) { return p.stateOfSlot(hs); }),
                     dh = part([&](const ChunkProgram &p) { return p.stateOfSlot(dhs); });
          const auto byState = [&](const Part &l, const Part &r) {
            return here.sumOfParts([&](const ChunkProgram &p) { return dot(l(p), r(p)); });
          };
          const ChunkTile qFar = intra.q() + byState(out, h) * factors.q;
          auto dQ = qFar + near.sameK * source.k();
          if (withB)
            dQ = dQ + near.sameB * source.b();
          here.writeSlice(dq, dQ * scale);
          auto later = source.q() * qFar;
          if (intra.ofGates)
            later = later + intra.ofGates();

          const auto kIntra = intra.k(), kEnd = byState(byK, dh) * factors.kb;
          auto toEnd = source.k() * kEnd;
          later = later - source.k() * kIntra;
          auto dK = kIntra + kEnd + near.sameK * source.q();
          ChunkTile dA, read, ofOwnGate;
          if (withA) {
            dK = dK + near.akOfWriter * after.a();
            const auto aFar = intra.a() + byState(y, h) * factors.a;
            read = source.a() * aFar, later = later + read;
            const auto ofRowBefore = near.akOfReader * before.k();
            dA = aFar + ofRowBefore;
            if (c.rule == ChunkRule::Delta)
              ofOwnGate = source.a() * ofRowBefore;
          }
          if (c.rule == ChunkRule::Delta) {
            // k as given: in beta k and in a = -k e^g.
            std::get<1>(sums) = sum(here.wide(k) * dK, along(1));
            const auto decayed = c.gate == GateKind::None ? dA : dA * exp(source.gates());
            here.writeSlice(dk, dK * here.column(beta) - decayed);
          } else {
            here.writeSlice(dk, dK);
          }
          if (withB) {
            const auto bIntra = intra.b(), bEnd = byState(byB, dh) * factors.kb;
            here.writeSlice(da, dA + near.abOfReader * before.b());
            later = later - source.b() * bIntra, toEnd = toEnd + source.b() * bEnd;
            here.writeSlice(db, bIntra + bEnd + near.sameB * source.q() + near.abOfWriter * after.a());
          }
          if (c.gate == GateKind::None)
            return sums;
          const ChunkTile ofState = here.sumOfParts(
              [&](const ChunkProgram &p) { return expandDims(sum(cast<f32>(h(p)) * cast<f32>(dh(p)), along(0)), 0); });
          const auto state = *decay.ofChunk().tile * ofState;
          auto dG = cumsum(later, along(0), Direction::Reverse) + state + cumsum(toEnd, along(0)) - toEnd;
          // A row of a is not decayed by its own gate.  That of the delta rule, -k e^g, is: what it reads from far away
          // stays, and what it reads of the row before it is added.
          if (c.rule == ChunkRule::Delta)
            dG = dG + ofOwnGate;
          else if (withA)
            dG = dG - read;
          if (c.gate == GateKind::Head)
            std::get<0>(sums) = sum(dG, along(1));
          else
            here.writeSlice(dg, dG);
          return sums;
        };
        const auto writeSums = [&](const ChunkProgram &here, const std::tuple<ChunkTile, ChunkTile> &sums) {
          if (c.gate == GateKind::Head)
            here.writeColumn(dGateOfHead, std::get<0>(sums));
          if (c.rule == ChunkRule::Delta)
            here.writeColumn(dBeta, std::get<1>(sums));
        };
        // Sums over K by one program, anything else by as many as there are slices.
        const int width = sliceOfK(c);
        const bool one = sumsOverK(c);
        const auto here = ChunkProgram::of(q, offsetsOf<I>(cu), sequences, c, one ? c.dim : width, c.dimV);
        when(here.exists(), [&] {
          if (!one || width == c.dim)
            return writeSums(here, ofSlice(here));
          const auto none = zeros<f32>({c.chunk});
          writeSums(here, loop(over(0, c.dim / width), none, none, [&](auto i, auto gate, auto ofBeta) {
                      const auto [moreGate, moreBeta] = ofSlice(here.withSlice(i * width, width));
                      return std::tuple{gate + moreGate, ofBeta + moreBeta};
                    }));
        });
      });
}

} // namespace

Kernel dplrMapsBackward(DType element, const DplrConfig &c) {
  return withTypesOfChunks(element, c, "dplr_maps_backward",
                           [&]<Element T, Element G, Element B, Element I>() { return mapsBackwardOf<T, G, B, I>(c); });
}

Kernel dplrChains(DType element, const DplrConfig &c) {
  return withElement<f16, bf16>(element, "dplr_chains", [&]<Element T>() {
    return withElement<i32, i64>(c.offsets, "dplr_chains", [&]<Element I>() {
      return withElement<f32, f16, bf16>(c.state, "dplr_chains", [&]<Element H>() {
        return withElement<f32, T>(c.lastState, "dplr_chains", [&]<Element D>() {
          return c.ofSegments ? chainsOf<T, f32, H, D, I>(c) : chainsOf<T, T, H, D, I>(c);
        });
      });
    });
  });
}

Kernel dplrValueGrads(DType element, const DplrConfig &c) {
  return withTypesOfChunks(element, c, "dplr_value_grads",
                           [&]<Element T, Element G, Element B, Element I>() { return valueGradsOf<T, G, B, I>(c); });
}

Kernel dplrGrads(DType element, const DplrConfig &c) {
  return withTypesOfChunks(element, c, "dplr_grads",
                           [&]<Element T, Element G, Element B, Element I>() { return gradsOf<T, G, B, I>(c); });
}

} // namespace kiln::kernels
