#include "kernels/dplr/Dplr.h"

#include "kernels/dplr/Walk.h"

namespace kiln::kernels {

using namespace language;

namespace {

template <Element T, Element I> Kernel composeOf(const DplrConfig &c) {
  return kernel(
      "dplr_compose", optionsOfChain(c),
      [&](TensorArg<T, 3, "f", maybeVectors> f, TensorArg<T, 3, "rt", maybeVectors> rt,
          TensorArg<T, 3, "rht", maybeVectors> rht, TensorArg<T, 3, "qh", maybeVectors> qh,
          TensorArg<T, 4, "do", maybeVectors> dO, TensorArg<f32, 3, "decay", maybeVectors> decay,
          TensorArg<I, 1, "cu_seqlens", maybe> cu, TensorArg<T, 3, "fs", maybeVectors> fs,
          TensorArg<f32, 3, "rts", maybeVectors> rts, TensorArg<f32, 3, "rhts", maybeVectors> rhts,
          TensorArg<f32, 3, "decays", maybeVectors> composedDecay, Arg<i64, "tokens"> tokens, Arg<i32, "heads"> heads,
          Arg<i32, "sequences"> sequences) {
        const bool withF = reads(c.rule), decaying = c.gate != GateKind::None;
        const int ofV = c.dimV / c.blockV, parts = programsOfComposition(c), before = directionsOf(c) * ofV;
        const auto part = programId() % parts;
        const Walk here = Walk::of(programId() / parts, heads, tokens, sequences, offsetsOf<I>(cu), c);
        const auto fOfHead = f.at(here.head, all, all);
        const auto decays = decay.at(here.head, all, all).tiles({1, c.dim});
        const auto ofSlot = [&](const auto &slot) { return loadView(decays, {slot, 0}); };
        const auto partOf = [&](const auto &x) { return x.at(here.head, all, all).tiles({c.blockV, c.dim}); };
        const auto writeDecay = [&](const ChunkTile &x) {
          storeView(composedDecay.at(here.head, all, all).tiles({1, c.dim}), {here.segment, 0}, x);
        };
        const auto none = zeros<f32>({c.blockV, c.dim}), noDecay = full<f32>({1, c.dim}, 1.0f);
        // What a segment adds to a state of zeros.
        const auto added = [&](const TensorView<T, 3> &more, const TensorView<f32, 3> &to, const auto &n, bool back) {
          const auto column = n * c.blockV;
          const auto step = [&](const auto &slot, const ChunkTile &x) {
            const auto moved = decaying ? x * ofSlot(slot) : x;
            return passed<T>(c, fOfHead, slot, cast<T>(x),
                             back && makesRht(c)
                                 ? here.withRht(qh, dO, slot, column, moved, c)
                                 : moved + cast<f32>(loadView(partOf(more), {slot * c.dimV + column, 0})),
                             back);
          };
          storeView(partOf(to), {here.segment * c.dimV + column, 0},
                    back ? here.backward(none, step) : here.forward(none, step));
        };
        when(here.exists(), [&] {
          if (walksForward(c))
            when(part < ofV, [&] { added(rt, rts, part, /*back=*/false); });
          if (c.gradients)
            when((part >= before - ofV) & (part < before),
                 [&] { added(rht, rhts, part - (before - ofV), /*back=*/true); });
          // F by its rows: what becomes of unit vectors that pass the chunks backward, without what decays of them.
          if (withF)
            when(part >= before, [&] {
              const auto column = (part - before) * c.blockV;
              const auto unit = expandDims(range(0, c.blockV), 1) + column == expandDims(range(0, c.dim), 0);
              const auto start = select(unit, full<f32>({c.blockV, c.dim}, 1.0f), 0.0f);
              const auto write = [&](const ChunkTile &x, const ChunkTile &ofUnit) {
                storeView(partOf(fs), {here.segment * c.dim + column, 0}, cast<T>(x - select(unit, ofUnit, 0.0f)));
              };
              if (!decaying)
                return write(here.backward(start,
                                           [&](const auto &slot, const auto &x) {
                                             return passed<T>(c, fOfHead, slot, cast<T>(x), x, /*back=*/true);
                                           }),
                             start);
              const auto [x,
                          kept] = loop(over(0, here.end - here.first), start, noDecay, [&](auto i, auto x, auto kept) {
                const auto slot = here.sequence.slot + (here.end - 1 - i);
                const auto decayed = ofSlot(slot);
                return std::tuple{passed<T>(c, fOfHead, slot, cast<T>(x), x * decayed, /*back=*/true), kept * decayed};
              });
              write(x, broadcastTo(kept, {c.blockV, c.dim}));
              when(column == 0, [&] { writeDecay(kept); });
            });
          else if (decaying)
            when(part == 0, [&] {
              writeDecay(here.forward(noDecay, [&](const auto &slot, const auto &x) { return x * ofSlot(slot); }));
            });
        });
      });
}

} // namespace

DplrConfig ofComposition(DplrConfig c) {
  c.saved = c.saved && c.gradients;
  return ofChain(c);
}

DplrConfig ofWalkOfSegments(DplrConfig c) {
  c.chunk *= c.segment;
  c.segment = 0, c.ofSegments = true;
  c.saved = c.saved && c.gradients;
  return ofChain(c);
}

int programsOfComposition(const DplrConfig &c) {
  return directionsOf(c) * (c.dimV / c.blockV) + (reads(c.rule) ? c.dim / c.blockV : 0);
}

Kernel dplrCompose(DType element, const DplrConfig &c) {
  return withElement<f16, bf16>(element, "dplr_compose", [&]<Element T>() {
    return withElement<i32, i64>(c.offsets, "dplr_compose", [&]<Element I>() { return composeOf<T, I>(c); });
  });
}

} // namespace kiln::kernels
