#include "kernels/dplr/ChunkMatrices.h"

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
                  const auto here = ChunkProgram::of(q, offsetsOf<I>(cu), sequences, c, c.dim);
                  when(here.exists(), [&] {
                    const RuleTensors<T, G, B> in{q, k, a, b, g, gateOfHead, beta};
                    const ChunkSource source = here.source(in, scale, c);
                    const ChunkRows rows = source.read(Cache::Default);
                    const auto values = here.read(v, c.dimV);
                    const Decay decay(source, c.bounded);
                    const auto m = matricesOf<T>(c.rule, rows, decay);
                    KeptMatrices<T>(here, matrices, c.rule).write(m);
                    writeMap(c, m, values, gatedRows<T>(here, in, scale, c, lastReading, decay), f, rt, decays,
                             [&](const GatedRows<T> &slice, const ChunkTile &qh) {
                               slice.here.writeSliceOfSlot(rht, c.dim,
                                                           dot(transpose(here.read(dO, c.dimV)), cast<T>(qh)));
                             });
                  });
                });
}

template <Element T, Element H, Element D, Element I> Kernel chainsOf(const DplrConfig &c) {
  return kernel(
      "dplr_chains", optionsOfChain(c),
      [&](TensorArg<H, 4, "h0", maybeVectors> h0, TensorArg<D, 4, "dht", maybeVectors> dht,
          TensorArg<T, 3, "f", maybeVectors> f, TensorArg<T, 3, "rt", vectors> rt, TensorArg<T, 3, "rht", vectors> rht,
          TensorArg<f32, 3, "decay", maybeVectors> decay, TensorArg<I, 1, "cu_seqlens", maybe> cu,
          TensorArg<T, 3, "h", vectors> h, TensorArg<T, 3, "dh", vectors> dh,
          TensorArg<f32, 4, "dh0", maybeVectors> dh0, Arg<i64, "tokens"> tokens, Arg<i32, "heads"> heads) {
        const auto parts = c.dimV / c.blockV;
        const auto direction = programId() % 2, part = programId() / 2;
        const auto column = part % parts * c.blockV, rest = part / parts;
        const auto head = rest % heads, n = rest / heads;
        const SequenceOfTokens here = sequenceAt(n, tokens, offsetsOf<I>(cu), c.packed, c.chunk);
        const auto chunks = ceilDiv(here.rows, c.chunk);
        const auto fs = f.at(head, all, all).tiles({c.dim, c.dim});
        const auto decays = decay.at(head, all, all).tiles({1, c.dim});
        const auto partOf = [&](const TensorView<T, 3> &x) { return x.at(head, all, all).tiles({c.blockV, c.dim}); };
        // A state x, transposed: written before it passes a chunk, whose map adds `more`.
        const auto step = [&](const auto &slot, const ChunkTile &x, const TensorView<T, 3> &to,
                              const TensorView<T, 3> &more, const auto &turned) {
          const auto rowOfV = slot * c.dimV + column;
          const auto operand = cast<T>(x);
          storeView(partOf(to), {rowOfV, 0}, operand);
          const auto kept = c.gate == GateKind::None ? x : x * loadView(decays, {slot, 0});
          const auto next = kept + cast<f32>(loadView(partOf(more), {rowOfV, 0}));
          return reads(c.rule) ? dot(operand, turned(loadView(fs, {slot * c.dim, 0})), next) : next;
        };
        when(
            direction == 0,
            [&] {
              loop(over(0, chunks), stateOf(h0, c.initial, n, head, column, c), [&](auto i, auto x) {
                return step(here.slot + i, x, h, rt, [](const auto &y) { return transpose(y); });
              });
            },
            [&] {
              const auto last = loop(over(0, chunks), stateOf(dht, c.final, n, head, column, c), [&](auto i, auto x) {
                return step(here.slot + (chunks - 1 - i), x, dh, rht, [](const auto &y) { return y; });
              });
              if (c.wantsFirst)
                storeView(dh0.at(n, head, all, all).tiles({c.dim, c.blockV}), {0, column}, transpose(last));
            });
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
                  const auto here = ChunkProgram::of(q, offsetsOf<I>(cu), sequences, c, c.dim);
                  when(here.exists(), [&] {
                    const RuleTensors<T, G, B> in{q, k, a, b, g, gateOfHead, beta};
                    const std::vector<GatedRows<T>> slices = gatedRows<T>(here, in, scale, c, Cache::Default);
                    const auto values = here.read(v, c.dimV), out = here.read(dO, c.dimV);
                    const auto m = KeptMatrices<T>(here, matrices, c.rule).read();
                    // Sums over K, slice by slice: of dv, of what a reads, of the gradient of what b writes.
                    auto dV = dot(transpose(m.products.qk), out);
                    ChunkTile read, dP;
                    if (reads(c.rule))
                      read = dot(m.products.ak, values);
                    if (hasOwnB(c.rule))
                      dP = dot(transpose(m.products.qb), out);
                    for (const GatedRows<T> &rows : slices) {
                      // States are transposed: that before the chunk, and the gradient of that after it.
                      const auto dh = rows.here.sliceOfSlot(dhs, c.dimV, c.dim);
                      dV = dot(rows.kg, transpose(dh), dV);
                      if (reads(c.rule))
                        read = dot(rows.ag, transpose(rows.here.sliceOfSlot(hs, c.dimV, c.dim)), read);
                      if (hasOwnB(c.rule))
                        dP = dot(rows.bg, transpose(dh), dP);
                    }
                    if (!reads(c.rule)) {
                      here.write(dv, dV);
                      return;
                    }
                    const auto wasRead = cast<T>(read);
                    const auto y = dot(transpose(m.inverse), cast<T>(hasOwnB(c.rule) ? dP : dV));
                    here.writeSlot(ys, y);
                    here.write(dv, dot(transpose(m.products.ak), cast<T>(y), dV));
                    here.writeSlot(writtens, hasOwnB(c.rule) ? dot(m.inverse, wasRead)
                                                             : dot(m.inverse, wasRead, cast<f32>(values)));
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
        const RuleTensors<T, G, B> in{q, k, a, b, g, gateOfHead, beta};
        // Gradients of one slice of K; and what it has of those that are sums over K, one number a token: of the gates
        // of a head, of beta.
        const auto ofSlice = [&](const ChunkProgram &here) {
          std::tuple<ChunkTile, ChunkTile> sums{zeros<f32>({c.chunk}), zeros<f32>({c.chunk})};
          const ChunkSource source = here.source(in, scale, c);
          // dO; what k and b wrote, and the gradient of what a read (S3.3).
          const bool kIsWritten = withA && !withB;
          const ChunkRows rows = source.read(Cache::Default);
          const auto out = here.read(dO, c.dimV);
          const auto byK = kIsWritten ? here.readSlot(writtens, c.chunk, c.dimV) : here.read(v, c.dimV);
          const auto byB = withB ? here.readSlot(writtens, c.chunk, c.dimV) : byK;
          const auto y = withA ? here.readSlot(ys, c.chunk, c.dimV) : byK;
          const Decay decay(source, c.bounded);

          // Gradients of the matrices.  Pairs that nothing decays between, one token and a reader with the token before
          // it, go their own way and not into dg, where they would cancel (S3.4): one number a row, times a row.
          const auto i = rowsOf(c.chunk), j = columnsOf(c.chunk);
          const auto product = [](const auto &l, const auto &r) { return dot(l, transpose(r)); };
          const ChunkTile qk = product(out, byK), qb = withB ? product(out, byB) : qk,
                          ak = withA ? product(y, byK) : qk, ab = withB ? product(y, byB) : ak;
          const auto far = [&](const ChunkTile &d) { return select(i > j + 1, d, 0.0f); };
          const auto again = [&](const ChunkTile &d, const auto &l, const auto &r) {
            return c.bounded ? d : product(l, r);
          };
          const RowGradients intra =
              decay.gradients(rows, {[&] { return again(qk, out, byK); }, [&] { return again(qb, out, byB); },
                                     [&] { return far(again(ak, y, byK)); }, [&] { return far(again(ab, y, byB)); }});
          const auto numbers = [&](const ChunkTile &d, int apart, int dim) {
            return expandDims(sum(select(i == j + apart, d, 0.0f), along(dim)), 1);
          };
          const auto same = [&](const ChunkTile &d) { return numbers(d, 0, 1); };
          const auto ofReader = [&](const ChunkTile &d) { return numbers(d, 1, 1); };
          const auto ofWriter = [&](const ChunkTile &d) { return numbers(d, 1, 0); };
          // The neighbours' rows are read; those outside the chunk have zeros for numbers.
          const ChunkSource before = here.later(-1).source(in, scale, c), after = here.later(1).source(in, scale, c);
          // One row after the other: each is read where it is needed, and its gradient written before the next.
          // `later`: what dg gains at a token and all before it; `toEnd`: on the way to the chunk's end.
          const auto factors = decay.fromMiddleToEnds();
          const auto sameK = same(qk), sameB = withB ? same(qb) : sameK;
          // Transposed: the state before the chunk, and the gradient of that after it.
          const auto h = here.sliceOfSlot(hs, c.dimV, c.dim), dh = here.sliceOfSlot(dhs, c.dimV, c.dim);
          const auto qFar = intra.q() + dot(out, h) * factors.q;
          auto dQ = qFar + sameK * source.k();
          if (withB)
            dQ = dQ + sameB * source.b();
          here.writeSlice(dq, dQ * scale);
          auto later = source.q() * qFar;

          const auto kIntra = intra.k(), kEnd = dot(byK, dh) * factors.kb;
          auto toEnd = source.k() * kEnd;
          later = later - source.k() * kIntra;
          auto dK = kIntra + kEnd + sameK * source.q();
          ChunkTile dA, read;
          if (withA) {
            dK = dK + ofWriter(ak) * after.a();
            const auto aFar = intra.a() + dot(y, h) * factors.a;
            read = source.a() * aFar, later = later + read;
            dA = aFar + ofReader(ak) * before.k();
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
            const auto bIntra = intra.b(), bEnd = dot(byB, dh) * factors.kb;
            here.writeSlice(da, dA + ofReader(ab) * before.b());
            later = later - source.b() * bIntra, toEnd = toEnd + source.b() * bEnd;
            here.writeSlice(db, bIntra + bEnd + sameB * source.q() + ofWriter(ab) * after.a());
          }
          if (c.gate == GateKind::None)
            return sums;
          const auto state = *decay.ofChunk().tile * expandDims(sum(cast<f32>(h) * cast<f32>(dh), along(0)), 0);
          auto dG = cumsum(later, along(0), Direction::Reverse) + state + cumsum(toEnd, along(0)) - toEnd;
          if (withA)
            dG = dG - read;
          if (c.rule == ChunkRule::Delta)
            dG = dG + source.a() * dA; // a's own gate
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
        const int width = sliceOfGradients(c);
        const bool one = sumsOverK(c);
        const auto here = ChunkProgram::of(q, offsetsOf<I>(cu), sequences, c, one ? c.dim : width);
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

Kernel dplrMapsBackward(ElementType element, const DplrConfig &c) {
  return withTypesOfChunks(element, c, "dplr_maps_backward",
                           [&]<Element T, Element G, Element B, Element I>() { return mapsBackwardOf<T, G, B, I>(c); });
}

Kernel dplrChains(ElementType element, const DplrConfig &c) {
  return withElement<f16, bf16>(element, "dplr_chains", [&]<Element T>() {
    return withElement<i32, i64>(c.offsets, "dplr_chains", [&]<Element I>() {
      return withElement<f32, f16, bf16>(c.state, "dplr_chains", [&]<Element H>() {
        return withElement<f32, T>(c.lastState, "dplr_chains", [&]<Element D>() { return chainsOf<T, H, D, I>(c); });
      });
    });
  });
}

Kernel dplrValueGrads(ElementType element, const DplrConfig &c) {
  return withTypesOfChunks(element, c, "dplr_value_grads",
                           [&]<Element T, Element G, Element B, Element I>() { return valueGradsOf<T, G, B, I>(c); });
}

Kernel dplrGrads(ElementType element, const DplrConfig &c) {
  return withTypesOfChunks(element, c, "dplr_grads",
                           [&]<Element T, Element G, Element B, Element I>() { return gradsOf<T, G, B, I>(c); });
}

} // namespace kiln::kernels
