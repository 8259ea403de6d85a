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
  return kernel(
      "dplr_maps_backward", optionsOfChunks(c),
      [&](TensorArg<T, 4, "q", vectors> q, TensorArg<T, 4, "k", vectors> k, TensorArg<T, 4, "v", vectors> v,
          TensorArg<T, 4, "a", maybeVectors> a, TensorArg<T, 4, "b", maybeVectors> b,
          TensorArg<G, 4, "g", maybeVectors> g, TensorArg<G, 3, "gate_of_head", maybe> gateOfHead,
          TensorArg<B, 3, "beta", maybe> beta, TensorArg<T, 4, "do", vectors> dO,
          TensorArg<I, 1, "cu_seqlens", maybe> cu, TensorArg<T, 4, "f", maybeVectors> f,
          TensorArg<T, 4, "rt", vectors> rt, TensorArg<T, 4, "rht", vectors> rht,
          TensorArg<f32, 3, "decay", maybeVectors> decays, Arg<i32, "sequences"> sequences, Arg<f32, "scale"> scale) {
        const auto here = ChunkProgram::of(q, offsetsOf<I>(cu), sequences, c.packed, c.chunk);
        when(here.exists(), [&] {
          const ChunkSource source = here.source(RuleTensors<T, G, B>{q, k, a, b, g, gateOfHead, beta}, scale, c);
          const ChunkRows rows = source.read(Cache::Default);
          const auto values = here.read(v, c.dimV);
          const Decay decay(source, c.bounded);
          const auto map = mapOf(c.rule, matricesOf<T>(c.rule, rows, decay), values);
          if (map.f)
            here.writeSlot(f, *map.f);
          here.writeSlot(rt, map.rt);
          here.writeSlot(rht, dot(transpose(here.read(dO, c.dimV)), cast<T>(map.qh)));
          here.writeDecay(decays, decay, c.dim);
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
  return kernel(
      "dplr_value_grads", optionsOfChunks(c),
      [&](TensorArg<T, 4, "q", vectors> q, TensorArg<T, 4, "k", vectors> k, TensorArg<T, 4, "v", vectors> v,
          TensorArg<T, 4, "a", maybeVectors> a, TensorArg<T, 4, "b", maybeVectors> b,
          TensorArg<G, 4, "g", maybeVectors> g, TensorArg<G, 3, "gate_of_head", maybe> gateOfHead,
          TensorArg<B, 3, "beta", maybe> beta, TensorArg<T, 4, "do", vectors> dO,
          TensorArg<I, 1, "cu_seqlens", maybe> cu, TensorArg<T, 4, "h", vectors> hs, TensorArg<T, 4, "dh", vectors> dhs,
          TensorArg<T, 4, "dv", vectors> dv, TensorArg<T, 4, "y", maybeVectors> ys,
          TensorArg<T, 4, "written", maybeVectors> writtens, Arg<i32, "sequences"> sequences, Arg<f32, "scale"> scale) {
        const auto here = ChunkProgram::of(q, offsetsOf<I>(cu), sequences, c.packed, c.chunk);
        when(here.exists(), [&] {
          const ChunkSource source = here.source(RuleTensors<T, G, B>{q, k, a, b, g, gateOfHead, beta}, scale, c);
          const ChunkRows rows = source.read(Cache::Default);
          const auto values = here.read(v, c.dimV), out = here.read(dO, c.dimV);
          const auto m = matricesOf<T>(c.rule, rows, Decay(source, c.bounded));
          // States are transposed: that before the chunk, and the gradient of that after it.
          const auto dh = here.readSlot(dhs, c.dimV, c.dim);
          const auto dV = dot(transpose(m.products.qk), out, dot(m.kg, transpose(dh)));
          if (!reads(c.rule)) {
            here.write(dv, dV);
            return;
          }
          const auto h = here.readSlot(hs, c.dimV, c.dim);
          const auto read = cast<T>(dot(m.ag, transpose(h), dot(m.products.ak, values)));
          const auto dP = hasOwnB(c.rule) ? dot(transpose(m.products.qb), out, dot(m.bg, transpose(dh))) : dV;
          const auto y = dot(transpose(m.inverse), cast<T>(dP));
          here.writeSlot(ys, y);
          here.write(dv, dot(transpose(m.products.ak), cast<T>(y), dV));
          here.writeSlot(writtens, hasOwnB(c.rule) ? dot(m.inverse, read) : dot(m.inverse, read, cast<f32>(values)));
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
        const auto here = ChunkProgram::of(q, offsetsOf<I>(cu), sequences, c.packed, c.chunk);
        when(here.exists(), [&] {
          const ChunkSource source = here.source(RuleTensors<T, G, B>{q, k, a, b, g, gateOfHead, beta}, scale, c);
          const auto out = here.read(dO, c.dimV);
          // What k and b wrote, and the gradient of what a read (S3.3).
          const auto byK = !withA || withB ? here.read(v, c.dimV) : here.readSlot(writtens, c.chunk, c.dimV);
          const auto byB = withB ? here.readSlot(writtens, c.chunk, c.dimV) : byK;
          const auto y = withA ? here.readSlot(ys, c.chunk, c.dimV) : byK;
          const Decay decay(source, c.bounded);
          // Transposed: the state before the chunk, and the gradient of that after it.
          const auto h = here.readSlot(hs, c.dimV, c.dim), dh = here.readSlot(dhs, c.dimV, c.dim);

          // Gradients of the matrices; pairs that nothing decays between (one token, or a reader and the token before
          // it) go their own way and not into dg, where they would cancel (S3.4).
          const auto i = rowsOf(c.chunk), j = columnsOf(c.chunk);
          const auto product = [](const auto &l, const auto &r) { return dot(l, transpose(r)); };
          const auto far = [&](const ChunkTile &d) { return select(i > j + 1, d, 0.0f); };
          const auto same = [&](const auto &l, const auto &r) {
            return expandDims(sum(cast<f32>(l) * cast<f32>(r), along(1)), 1);
          };
          // A reader and the token before it: one number a row, times a row of a neighbour, which is read for that.
          const ChunkProgram previous = here.later(-1), following = here.later(1);
          const ChunkSource before = previous.source(RuleTensors<T, G, B>{q, k, a, b, g, gateOfHead, beta}, scale, c),
                            after = following.source(RuleTensors<T, G, B>{q, k, a, b, g, gateOfHead, beta}, scale, c);
          const auto toReader = [&](const auto &by, const ChunkTile &row) { // `by`: what the token before wrote
            return select(i == 0, 0.0f, same(y, by) * row);
          };
          const auto toWriter = [&](const auto &by, const ChunkTile &row) {
            const auto reader = here.readSlot(ys, c.chunk, c.dimV, 1);
            return select(i == c.chunk - 1, 0.0f, same(reader, by) * row);
          };
          const RowGradients intra =
              decay.gradients({[&] { return product(out, byK); }, [&] { return product(out, byB); },
                               [&] { return far(product(y, byK)); }, [&] { return far(product(y, byB)); }});
          // One row after the other: each is read where it is needed, and its gradient written before the next.
          // `later`: what dg gains at a token and all before it; `toEnd`: on the way to the chunk's end.
          const auto factors = decay.fromMiddleToEnds();
          const auto sameK = same(out, byK), sameB = withB ? same(out, byB) : sameK;
          const auto qFar = intra.q() + dot(out, h) * factors.q;
          auto dQ = qFar + sameK * source.k();
          if (withB)
            dQ = dQ + sameB * source.b();
          here.write(dq, dQ * scale);
          auto later = source.q() * qFar;

          const auto kIntra = intra.k(), kEnd = dot(byK, dh) * factors.kb;
          auto toEnd = source.k() * kEnd;
          later = later - source.k() * kIntra;
          auto dK = kIntra + kEnd + sameK * source.q();
          ChunkTile dA, read;
          if (withA) {
            dK = dK + toWriter(byK, after.a());
            const auto aFar = intra.a() + dot(y, h) * factors.a;
            read = source.a() * aFar, later = later + read;
            dA = aFar +
                 toReader(withB ? previous.read(v, c.dimV) : here.readSlot(writtens, c.chunk, c.dimV, -1), before.k());
          }
          if (c.rule == ChunkRule::Delta) {
            // k as given: in beta k and in a = -k e^g.
            here.writeColumn(dBeta, here.wide(k, c.dim) * dK);
            const auto decayed = c.gate == GateKind::None ? dA : dA * exp(source.gates());
            here.write(dk, dK * here.column(beta) - decayed);
          } else {
            here.write(dk, dK);
          }
          if (withB) {
            const auto bIntra = intra.b(), bEnd = dot(byB, dh) * factors.kb;
            here.write(da, dA + toReader(here.readSlot(writtens, c.chunk, c.dimV, -1), before.b()));
            later = later - source.b() * bIntra, toEnd = toEnd + source.b() * bEnd;
            here.write(db, bIntra + bEnd + sameB * source.q() + toWriter(byB, after.a()));
          }
          if (c.gate == GateKind::None)
            return;
          const auto state = *decay.ofChunk().tile * expandDims(sum(cast<f32>(h) * cast<f32>(dh), along(0)), 0);
          auto dG = cumsum(later, along(0), Direction::Reverse) + state + cumsum(toEnd, along(0)) - toEnd;
          if (withA)
            dG = dG - read;
          if (c.rule == ChunkRule::Delta)
            dG = dG + source.a() * dA; // a's own gate
          if (c.gate == GateKind::Head)
            here.writeColumn(dGateOfHead, dG);
          else
            here.write(dg, dG);
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
