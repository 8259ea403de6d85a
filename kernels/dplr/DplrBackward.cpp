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

template <Element T, Element G, Element I> Kernel mapsBackwardOf(const DplrConfig &c) {
  return kernel("dplr_maps_backward", optionsOfChunks(c),
                [&](TensorArg<T, 4, "q", vectors> q, TensorArg<T, 4, "k", vectors> k, TensorArg<T, 4, "v", vectors> v, TensorArg<T, 4, "a", vectors> a,
                    TensorArg<T, 4, "b", vectors> b, TensorArg<G, 4, "g", vectors> g, TensorArg<T, 4, "do", vectors> dO,
                    TensorArg<I, 1, "cu_seqlens", maybe> cu, TensorArg<T, 4, "f", vectors> f, TensorArg<T, 4, "rt", vectors> rt,
                    TensorArg<T, 4, "rht", vectors> rht, TensorArg<f32, 3, "decay", vectors> decays, Arg<i32, "sequences"> sequences,
                    Arg<f32, "scale"> scale) {
                  const auto here = ChunkProgram::of(q, offsetsOf<I>(cu), sequences, c.packed, c.chunk);
                  when(here.exists(), [&] {
                    const ChunkSource source = here.source(q, a, k, b, g, scale, c.dim);
                    const ChunkRows rows = source.rows();
                    const auto values = here.read(v, c.dimV);
                    const Decay decay(source, c.bounded);
                    const auto m = matricesOf<T>(rows, decay);
                    const auto map = mapOf(m, values);
                    here.writeSlot(f, dot(transpose(m.bg), map.w));
                    here.writeSlot(rt, dot(transpose(map.u), m.bg, dot(transpose(values), m.kg)));
                    const auto qh = cast<T>(dot(m.products.qb, map.w, cast<f32>(m.qg)));
                    here.writeSlot(rht, dot(transpose(here.read(dO, c.dimV)), qh));
                    storeView(decays.at(here.head, here.slot, all).tiles({c.dim}), {0}, decay.ofChunk());
                  });
                });
}

template <Element T, Element H, Element D, Element I> Kernel chainsOf(const DplrConfig &c) {
  return kernel(
      "dplr_chains", optionsOfChain(c),
      [&](TensorArg<H, 4, "h0", maybeVectors> h0, TensorArg<D, 4, "dht", maybeVectors> dht, TensorArg<T, 3, "f", vectors> f,
          TensorArg<T, 3, "rt", vectors> rt, TensorArg<T, 3, "rht", vectors> rht, TensorArg<f32, 3, "decay", vectors> decay,
          TensorArg<I, 1, "cu_seqlens", maybe> cu, TensorArg<T, 3, "h", vectors> h, TensorArg<T, 3, "dh", vectors> dh,
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
          return dot(operand, turned(loadView(fs, {slot * c.dim, 0})),
                     x * loadView(decays, {slot, 0}) + cast<f32>(loadView(partOf(more), {rowOfV, 0})));
        };
        when(
            direction == 0,
            [&] {
              loop(over(0, chunks), stateOf(h0, c.initial, n, head, column, c), [&](auto i, auto x) {
                return step(here.slot + i, x, h, rt, [](const auto &y) { return transpose(y); });
              });
            },
            [&] {
              const auto last =
                  loop(over(0, chunks), stateOf(dht, c.final, n, head, column, c), [&](auto i, auto x) {
                    return step(here.slot + (chunks - 1 - i), x, dh, rht, [](const auto &y) { return y; });
                  });
              if (c.wantsFirst)
                storeView(dh0.at(n, head, all, all).tiles({c.dim, c.blockV}), {0, column}, transpose(last));
            });
      });
}

template <Element T, Element G, Element I> Kernel gradsOf(const DplrConfig &c) {
  return kernel(
      "dplr_grads", optionsOfChunks(c),
      [&](TensorArg<T, 4, "q", vectors> q, TensorArg<T, 4, "k", vectors> k, TensorArg<T, 4, "v", vectors> v, TensorArg<T, 4, "a", vectors> a,
          TensorArg<T, 4, "b", vectors> b, TensorArg<G, 4, "g", vectors> g, TensorArg<T, 4, "do", vectors> dO,
          TensorArg<I, 1, "cu_seqlens", maybe> cu, TensorArg<T, 4, "h", vectors> hs, TensorArg<T, 4, "dh", vectors> dhs,
          TensorArg<T, 4, "dq", vectors> dq, TensorArg<T, 4, "dk", vectors> dk, TensorArg<T, 4, "dv", vectors> dv, TensorArg<T, 4, "da", vectors> da,
          TensorArg<T, 4, "db", vectors> db, TensorArg<G, 4, "dg", vectors> dg, Arg<i32, "sequences"> sequences,
          Arg<f32, "scale"> scale) {
        const auto here = ChunkProgram::of(q, offsetsOf<I>(cu), sequences, c.packed, c.chunk);
        when(here.exists(), [&] {
          const ChunkSource source = here.source(q, a, k, b, g, scale, c.dim);
          // What each token read of the state, and the gradient of what it wrote there (S3.3).  States are transposed:
          // that before the chunk, and the gradient of that after it.
          const auto values = here.read(v, c.dimV), out = here.read(dO, c.dimV);
          const auto [p, y] = [&] {
            const ChunkRows rows = source.rows();
            const auto m = matricesOf<T>(rows, Decay(source, c.bounded));
            const auto h = here.readSlot(hs, c.dimV, c.dim), dh = here.readSlot(dhs, c.dimV, c.dim);
            const auto read = cast<T>(dot(m.ag, transpose(h), dot(m.products.ak, values)));
            const auto wrote = cast<T>(dot(transpose(m.products.qb), out, dot(m.bg, transpose(dh))));
            const auto y = cast<T>(dot(transpose(m.inverse), wrote));
            const auto dV = dot(transpose(m.products.qk), out, dot(m.kg, transpose(dh)));
            here.write(dv, dot(transpose(m.products.ak), y, dV));
            return std::pair{cast<T>(dot(m.inverse, read)), y};
          }();

          // Read again rather than kept: registers are what this kernel is short of.
          const ChunkRows x = source.rows();
          const Decay decay(source, c.bounded);
          const auto h = here.readSlot(hs, c.dimV, c.dim), dh = here.readSlot(dhs, c.dimV, c.dim);

          // Gradients of the four matrices; pairs that nothing decays between (one token, or a reader and the token
          // before it) go their own way and not into dg, where they would cancel (S3.4).
          const auto i = rowsOf(c.chunk), j = columnsOf(c.chunk);
          const auto product = [](const auto &l, const auto &r) { return dot(l, transpose(r)); };
          const auto far = [&](const ChunkTile &d) { return select(i > j + 1, d, 0.0f); };
          const auto next = [&](const ChunkTile &d) { return select(i == j + 1, d, 0.0f); };
          const auto same = [&](const auto &l, const auto &r) {
            return expandDims(sum(cast<f32>(l) * cast<f32>(r), along(1)), 1);
          };
          const auto sameK = same(out, values), sameB = same(out, p);

          const ChunkRows intra = decay.gradients(x, {[&] { return product(out, values); }, [&] { return product(out, p); },
                                                      [&] { return far(product(y, values)); },
                                                      [&] { return far(product(y, p)); }});
          const auto factors = decay.fromStartToEnd();
          const auto aFar = intra.a + dot(y, h) * factors.a, qFar = intra.q + dot(out, h) * factors.q;
          const auto kEnd = dot(values, dh) * factors.kb, bEnd = dot(p, dh) * factors.kb;
          const auto nextK = next(product(y, values)), nextB = next(product(y, p));
          const auto tf32 = [](const ChunkTile &l, const ChunkTile &r, const ChunkTile &more) {
            return dot(l, r, more, Precision::Tf32);
          };
          here.write(dq, (qFar + sameK * x.k + sameB * x.b) * scale);
          here.write(dk, tf32(transpose(nextK), x.a, intra.k + kEnd + sameK * x.q));
          here.write(da, tf32(nextK, x.k, tf32(nextB, x.b, aFar)));
          here.write(db, tf32(transpose(nextB), x.a, intra.b + bEnd + sameB * x.q));

          const auto toEnd = x.k * kEnd + x.b * bEnd, read = x.a * aFar;
          const auto later = cumsum(x.q * qFar + read - x.k * intra.k - x.b * intra.b, along(0), Direction::Reverse);
          const auto state = decay.ofChunk() * sum(cast<f32>(h) * cast<f32>(dh), along(0));
          here.write(dg, later - read + expandDims(state, 0) + cumsum(toEnd, along(0)) - toEnd);
        });
      });
}

} // namespace

Kernel dplrMapsBackward(ElementType element, const DplrConfig &c) {
  return withElement<f16, bf16>(element, "dplr_maps_backward", [&]<Element T>() {
    return withElement<i32, i64>(c.offsets, "dplr_maps_backward", [&]<Element I>() {
      return withElement<f32, T>(c.gates, "dplr_maps_backward", [&]<Element G>() { return mapsBackwardOf<T, G, I>(c); });
    });
  });
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

Kernel dplrGrads(ElementType element, const DplrConfig &c) {
  return withElement<f16, bf16>(element, "dplr_grads", [&]<Element T>() {
    return withElement<i32, i64>(c.offsets, "dplr_grads", [&]<Element I>() {
      return withElement<f32, T>(c.gates, "dplr_grads", [&]<Element G>() { return gradsOf<T, G, I>(c); });
    });
  });
}

} // namespace kiln::kernels
