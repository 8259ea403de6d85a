#include "kernels/dplr/Dplr.h"

#include "kernels/dplr/Chunks.h"
#include "kernels/dplr/Decay.h"

namespace kiln::kernels {

using namespace language;

namespace {

/// The tile's elements of a chunk of a tensor in f32.
using ChunkReader = std::function<ChunkTile(const SequenceOfTokens &, const Scalar<i32> &, const Scalar<i32> &)>;

template <Element G> ChunkReader readerOf(const TensorView<G, 4> &g, int chunk, int dim) {
  return [=](const SequenceOfTokens &sequence, const Scalar<i32> &head, const Scalar<i32> &row) {
    const auto tile = loadView(sequence.of(g, head).tiles({chunk, dim}), {row, 0});
    if constexpr (std::same_as<G, f32>)
      return tile;
    else
      return cast<f32>(tile);
  };
}

/// What a chunk's map is made of, in the activations' type where products take it so.
template <Element T> struct ChunkMatrices {
  ChunkTile qk, qb, ak, inverse; ///< [C, C]: A_qk and A_qb with their diagonals, A_ak, (I - A_ab)^-1
  Tile<T> qg, ag, kg, bg;        ///< [C, K]
  ChunkTile decay;               ///< e^L, [K]
};

template <Element T> ChunkMatrices<T> matricesOf(const ChunkRows &rows, const ChunkTile &g, bool bounded) {
  const Decay decay(g, bounded);
  const Shape shape = rows.q.shape();
  const Decay::Products below = decay.products(rows);
  const auto i = expandDims(range(0, shape[0]), 1), j = expandDims(range(0, shape[0]), 0);
  // Nothing decays between a token and itself: in f32, exact.
  const auto diagonal = [&](const ChunkTile &x, const ChunkTile &y, const ChunkTile &lower) {
    return select(i == j, expandDims(sum(x * y, along(1)), 1), lower);
  };
  const ChunkRows gated = decay.fromStartToEnd(rows);
  const auto flat = [&](const ChunkTile &x) { return cast<T>(reshape(x, shape)); };
  return {diagonal(rows.q, rows.k, below.qk),
          diagonal(rows.q, rows.b, below.qb),
          below.ak,
          inverseUnitLower(below.ab, Precision::Tf32),
          flat(gated.q),
          flat(gated.a),
          flat(gated.k),
          flat(gated.b),
          decay.ofChunk()};
}

template <Element T, Element G, Element I> Kernel mapsOf(const DplrConfig &c) {
  return kernel(
      "dplr_maps",
      {.warps = c.warps,
       // Decays: far below the rounding of what they scale to 11 bits.
       .grade = approx,
       .config = {{"chunk", c.chunk}, {"dim", c.dim}, {"dimV", c.dimV}, {"bounded", c.bounded}, {"packed", c.packed}}},
      [&](TensorArg<T, 4, "q"> q, TensorArg<T, 4, "k"> k, TensorArg<T, 4, "v"> v, TensorArg<T, 4, "a"> a,
          TensorArg<T, 4, "b"> b, TensorArg<G, 4, "g"> g, TensorArg<I, 1, "cu_seqlens", maybe> cu,
          TensorArg<T, 3, "f"> f, TensorArg<T, 3, "rt"> rt, TensorArg<T, 3, "qh"> qh, TensorArg<T, 3, "oht"> oht,
          TensorArg<f32, 3, "decay"> decay, Arg<i32, "sequences"> sequences, Arg<f32, "scale"> scale) {
        const auto heads = cast<i32>(q.extent(2));
        const auto slot = programId() / heads, head = programId() % heads;
        const Offsets offsets = offsetsOf<I>(cu);
        const auto n = sequenceOfSlot(slot, q.extent(1), sequences, offsets, c.packed, c.chunk);
        const SequenceOfTokens here = sequenceAt(n, q.extent(1), offsets, c.packed, c.chunk);
        const auto row = (slot - here.slot) * c.chunk;
        when(row < here.rows, [&] {
          const auto read = [&](const TensorView<T, 4> &x) {
            return cast<f32>(loadView(here.of(x, head).tiles({c.chunk, c.dim}), {row, 0}));
          };
          const ChunkRows rows{read(q) * scale, read(a), read(k), read(b)};
          const ChunkMatrices<T> m =
              matricesOf<T>(rows, readerOf<G>(g, c.chunk, c.dim)(here, head, row), c.bounded);
          const auto values = loadView(here.of(v, head).tiles({c.chunk, c.dimV}), {row, 0});
          const auto inverse = cast<T>(m.inverse), qb = cast<T>(m.qb);
          const auto w = cast<T>(dot(inverse, m.ag));
          const auto u = cast<T>(dot(inverse, cast<T>(dot(m.ak, cast<f32>(values), Precision::Tf32))));
          const auto store = [&](const TensorView<T, 3> &to, int height, const ChunkTile &x) {
            storeView(to.at(head, all, all).tiles(x.shape()), {slot * height, 0}, cast<T>(x));
          };
          store(f, c.dim, dot(transpose(m.bg), w));
          store(rt, c.dimV, dot(transpose(u), m.bg, dot(transpose(values), m.kg)));
          store(qh, c.chunk, dot(qb, w, cast<f32>(m.qg)));
          store(oht, c.dimV, dot(transpose(u), transpose(qb), dot(transpose(values), transpose(cast<T>(m.qk)))));
          storeView(decay.at(head, slot, all).tiles({c.dim}), {0}, m.decay);
        });
      });
}

template <Element T, Element H, Element I> Kernel outOf(const DplrConfig &c) {
  return kernel("dplr_out",
                {.warps = c.chainWarps,
                 .stages = c.stages,
                 .config = {{"chunk", c.chunk},
                            {"dim", c.dim},
                            {"dimV", c.dimV},
                            {"blockV", c.blockV},
                            {"packed", c.packed},
                            {"initial", c.initial},
                            {"final", c.final}}},
                [&](TensorArg<H, 4, "h0", maybe> h0, TensorArg<T, 3, "f"> f, TensorArg<T, 3, "rt"> rt,
                    TensorArg<T, 3, "qh"> qh, TensorArg<T, 3, "oht"> oht, TensorArg<f32, 3, "decay"> decay,
                    TensorArg<I, 1, "cu_seqlens", maybe> cu, TensorArg<T, 4, "o"> o,
                    TensorArg<f32, 4, "ht", maybe> ht) {
                  const auto heads = cast<i32>(o.extent(2)), parts = ceilDiv(cast<i32>(o.extent(3)), c.blockV);
                  const auto column = programId() % parts * c.blockV, rest = programId() / parts;
                  const auto head = rest % heads, n = rest / heads;
                  const SequenceOfTokens here = sequenceAt(n, o.extent(1), offsetsOf<I>(cu), c.packed, c.chunk);
                  // The state is kept transposed: an accumulator is the next product's first operand as it lies.
                  ChunkTile first = zeros<f32>({c.blockV, c.dim});
                  if (c.initial) {
                    const auto given = loadView(h0.at(n, head, all, all).tiles({c.dim, c.blockV}), {0, column});
                    if constexpr (std::same_as<H, f32>)
                      first = transpose(given);
                    else
                      first = transpose(cast<f32>(given));
                  }
                  const auto fs = f.at(head, all, all).tiles({c.dim, c.dim});
                  const auto rts = rt.at(head, all, all).tiles({c.blockV, c.dim});
                  const auto qhs = qh.at(head, all, all).tiles({c.chunk, c.dim});
                  const auto ohts = oht.at(head, all, all).tiles({c.blockV, c.chunk});
                  const auto decays = decay.at(head, all, all).tiles({1, c.dim});
                  const auto out = here.of(o, head).tiles({c.chunk, c.blockV});
                  const auto last = loop(over(0, ceilDiv(here.rows, c.chunk)), first, [&](auto i, auto state) {
                    const auto slot = here.slot + i;
                    const auto operand = cast<T>(state);
                    const auto rowOfV = slot * c.dimV + column;
                    const auto result = dot(operand, transpose(loadView(qhs, {slot * c.chunk, 0})),
                                            cast<f32>(loadView(ohts, {rowOfV, 0})));
                    storeView(out, {i * c.chunk, column}, cast<T>(transpose(result)));
                    return dot(operand, transpose(loadView(fs, {slot * c.dim, 0})),
                               state * loadView(decays, {slot, 0}) + cast<f32>(loadView(rts, {rowOfV, 0})));
                  });
                  if (c.final)
                    storeView(ht.at(n, head, all, all).tiles({c.dim, c.blockV}), {0, column}, transpose(last));
                });
}


} // namespace

DplrConfig ofMaps(DplrConfig c) {
  const DplrConfig none;
  c.initial = c.final = false;
  c.blockV = none.blockV, c.chainWarps = none.chainWarps, c.stages = none.stages;
  c.state = none.state;
  return c;
}

DplrConfig ofOut(DplrConfig c) {
  const DplrConfig none;
  c.warps = none.warps, c.bounded = false;
  c.gates = none.gates;
  return c;
}

Kernel dplrMaps(ElementType element, const DplrConfig &c) {
  return withElement<f16, bf16>(element, "dplr_maps", [&]<Element T>() {
    return withElement<i32, i64>(c.offsets, "dplr_maps", [&]<Element I>() {
      return withElement<f32, T>(c.gates, "dplr_maps", [&]<Element G>() { return mapsOf<T, G, I>(c); });
    });
  });
}

Kernel dplrOut(ElementType element, const DplrConfig &c) {
  return withElement<f16, bf16>(element, "dplr_out", [&]<Element T>() {
    return withElement<i32, i64>(c.offsets, "dplr_out", [&]<Element I>() {
      return withElement<f32, f16, bf16>(c.state, "dplr_out", [&]<Element H>() { return outOf<T, H, I>(c); });
    });
  });
}

} // namespace kiln::kernels
