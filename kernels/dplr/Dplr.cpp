#include "kernels/dplr/Dplr.h"

#include "kernels/dplr/Walk.h"

namespace kiln::kernels {

using namespace language;

namespace {

template <Element T, Element G, Element B, Element I> Kernel mapsOf(const DplrConfig &c) {
  return kernel("dplr_maps", optionsOfChunks(c),
                [&](TensorArg<T, 4, "q", vectors> q, TensorArg<T, 4, "k", vectors> k, TensorArg<T, 4, "v", vectors> v,
                    TensorArg<T, 4, "a", maybeVectors> a, TensorArg<T, 4, "b", maybeVectors> b,
                    TensorArg<G, 4, "g", maybeVectors> g, TensorArg<G, 3, "gate_of_head", maybe> gateOfHead,
                    TensorArg<B, 3, "beta", maybe> beta, TensorArg<I, 1, "cu_seqlens", maybe> cu,
                    TensorArg<T, 4, "f", maybeVectors> f, TensorArg<T, 4, "rt", vectors> rt,
                    TensorArg<T, 4, "qh", vectors> qh, TensorArg<T, 4, "oht", vectors> oht,
                    TensorArg<f32, 3, "decay", maybeVectors> decays, TensorArg<T, 4, "matrices", maybeVectors> kept,
                    Arg<i32, "sequences"> sequences, Arg<f32, "scale"> scale) {
                  const auto here = ChunkProgram::of(q, offsetsOf<I>(cu), sequences, c, c.dim, c.dimV);
                  when(here.exists(), [&] {
                    MapSource<T, G, B> source(here, {q, k, a, b, g, gateOfHead, beta}, v, scale, c);
                    if (c.saved)
                      KeptMatrices<T>(here, kept, c.rule).write(source.matrices);
                    writeMap(c, source, f, rt, decays, [&](const GatedRows<T> &slice, const ChunkTile &x) {
                      slice.here.writeBlock(qh, c.chunk, c.dim, {0, slice.here.first}, cast<T>(x));
                    });
                    const ChunkProducts<T> &products = source.matrices.products;
                    for (const ChunkMap<T> &part : source.parts) {
                      const auto ofK = dot(transpose(part.written), transpose(products.qk));
                      const auto out = hasOwnB(c.rule) ? dot(transpose(part.u), transpose(products.qb), ofK) : ofK;
                      part.here.writeBlock(oht, c.dimV, c.chunk, {part.here.firstV, 0}, cast<T>(out));
                    }
                  });
                });
}

template <Element T, Element H, Element I> Kernel outOf(const DplrConfig &c) {
  return kernel("dplr_out", optionsOfChain(c),
                [&](TensorArg<H, 4, "h0", maybeVectors> h0, TensorArg<T, 3, "f", maybeVectors> f,
                    TensorArg<T, 3, "rt", vectors> rt, TensorArg<T, 3, "qh", vectors> qh,
                    TensorArg<T, 3, "oht", vectors> oht, TensorArg<f32, 3, "decay", maybeVectors> decay,
                    TensorArg<I, 1, "cu_seqlens", maybe> cu, TensorArg<f32, 3, "starts", maybeVectors> starts,
                    TensorArg<T, 4, "o", vectors> o, TensorArg<f32, 4, "ht", maybeVectors> ht,
                    TensorArg<T, 3, "h", maybeVectors> h, Arg<i32, "sequences"> sequences) {
                  const auto heads = cast<i32>(o.extent(2)), parts = ceilDiv(cast<i32>(o.extent(3)), c.blockV);
                  const auto column = programId() % parts * c.blockV;
                  const Walk here = Walk::of(programId() / parts, heads, o.extent(1), sequences, offsetsOf<I>(cu), c);
                  const auto head = here.head;
                  const auto rts = rt.at(head, all, all).tiles({c.blockV, c.dim});
                  const auto qhs = qh.at(head, all, all).tiles({c.chunk, c.dim});
                  const auto ohts = oht.at(head, all, all).tiles({c.blockV, c.chunk});
                  const auto decays = decay.at(head, all, all).tiles({1, c.dim});
                  const auto out = here.sequence.of(o, head).tiles({c.chunk, c.blockV});
                  const auto first = c.segment ? loadView(starts.at(head, all, all).tiles({c.blockV, c.dim}),
                                                          {here.segment * c.dimV + column, 0})
                                               : stateOf(h0, c.initial, here.n, head, column, c);
                  const auto last = loop(over(here.first, here.end), first, [&](auto i, auto state) {
                    const auto slot = here.sequence.slot + i;
                    const auto operand = cast<T>(state);
                    const auto rowOfV = slot * c.dimV + column;
                    if (c.saved)
                      storeView(h.at(head, all, all).tiles({c.blockV, c.dim}), {rowOfV, 0}, operand);
                    const auto result = dot(operand, transpose(loadView(qhs, {slot * c.chunk, 0})),
                                            cast<f32>(loadView(ohts, {rowOfV, 0})));
                    storeView(out, {i * c.chunk, column}, cast<T>(transpose(result)));
                    const auto kept = c.gate == GateKind::None ? state : state * loadView(decays, {slot, 0});
                    const auto next = kept + cast<f32>(loadView(rts, {rowOfV, 0}));
                    return passed<T>(c, f.at(head, all, all), slot, operand, next, /*back=*/false);
                  });
                  if (c.final)
                    storeView(ht.at(here.n, head, all, all).tiles({c.dim, c.blockV}), {0, column}, transpose(last));
                });
}

} // namespace

DplrConfig ofChunks(DplrConfig c) {
  const DplrConfig none;
  c.initial = c.final = c.wantsFirst = false;
  c.blockV = none.blockV, c.chainWarps = none.chainWarps, c.stages = none.stages;
  // Forward they keep what gradients take; those of gradients are the same whoever made it.
  c.saved = c.saved && !c.gradients;
  c.segment = none.segment, c.gradients = none.gradients;
  c.state = none.state, c.lastState = none.lastState;
  return c;
}

DplrConfig ofChain(DplrConfig c) {
  const DplrConfig none;
  c.warps = none.warps, c.bounded = c.exact = false;
  c.gates = none.gates, c.beta = none.beta;
  // What is left of a rule is F, of a gate e^L.
  c.rule = reads(c.rule) ? none.rule : c.rule;
  c.gate = c.gate == GateKind::Head ? none.gate : c.gate;
  // The first and the last state are for those that walk along segments.
  if (c.segment) {
    c.initial = c.final = c.wantsFirst = false;
    c.state = none.state, c.lastState = none.lastState;
  }
  return c;
}

namespace {
/// Halves of halves, of at most so many columns.
int halved(int columns, int atMost) {
  while (columns > atMost)
    columns /= 2;
  return columns;
}
} // namespace

int sliceOfK(const DplrConfig &c) {
  return halved(c.dim, 64);
}
int partOfV(int dimV) {
  return halved(dimV, 128);
}

Kernel dplrMaps(DType element, const DplrConfig &c) {
  return withTypesOfChunks(element, c, "dplr_maps",
                           [&]<Element T, Element G, Element B, Element I>() { return mapsOf<T, G, B, I>(c); });
}

Kernel dplrOut(DType element, const DplrConfig &c) {
  return withElement<f16, bf16>(element, "dplr_out", [&]<Element T>() {
    return withElement<i32, i64>(c.offsets, "dplr_out", [&]<Element I>() {
      return withElement<f32, f16, bf16>(c.state, "dplr_out", [&]<Element H>() { return outOf<T, H, I>(c); });
    });
  });
}

} // namespace kiln::kernels
