//===- ChunkMatrices.h - What a chunk's map and its gradients are made of ------===//
//
// Specification "DPLR delta rule and RWKV7", S2.1, of one chunk of one head.  Rows after the sequence's end are zero in
// every tensor, and nothing here needs to know: their decays are 1, their rows of A zero, those of the inverse a unit
// matrix's.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_CHUNKMATRICES_H
#define KILN_KERNELS_DPLR_CHUNKMATRICES_H

#include "kernels/dplr/ChunkProgram.h"

namespace kiln::kernels {

/// [C, C].
template <language::Element T> struct ChunkMatrices {
  ChunkProducts<T> products;
  language::Tile<T> inverse; ///< (I - A_ab)^-1; none without a
};

/// `rows`: the source's.
template <language::Element T> ChunkMatrices<T> matricesOf(ChunkRule rule, const ChunkRows &rows, const Decay &decay) {
  using namespace language;
  ChunkMatrices<T> out;
  out.products = decay.products<T>(rows);
  // The inverse's products have operands of 11 bits, as fp16 has; its elements are far from fp16's ends wherever the
  // recurrence itself does not grow without bound.
  if (reads(rule))
    out.inverse = cast<T>(inverseUnitLower<f16>(cast<f32>(out.products.ab)));
  return out;
}

/// Rows between a chunk's ends and its tokens, of one slice of K: [C, width]; no ag without a, bg is kg where b is k.
template <language::Element T> struct GatedRows {
  ChunkProgram here; ///< of the slice
  Decay decay;
  language::Tile<T> qg, ag, kg, bg;

  GatedRows(const ChunkProgram &here, ChunkRule rule, const Decay &decay, const ChunkRows &rows)
      : here(here), decay(decay) {
    using namespace language;
    const ChunkRows gated = decay.scaled(rows, decay.fromStartToEnd());
    qg = cast<T>(gated.q), kg = cast<T>(gated.k);
    if (reads(rule))
      ag = cast<T>(gated.a);
    bg = hasOwnB(rule) ? cast<T>(gated.b) : kg;
  }
};

/// Columns of K that a program takes at a time once it has the chunk's matrices: products of wider tiles are not for
/// warpgroups (accelerate-dot).  Chunks of heads of more than 128 columns are too short for them anyway.
inline int sliceOfMaps(const DplrConfig &c) {
  return c.dim > 128 ? c.dim : sliceOfGradients(c);
}

/// The gated rows of all slices.  `whole`: the decay of all of K, if it is at hand.
template <language::Element T, language::Element G, language::Element B>
std::vector<GatedRows<T>> gatedRows(const ChunkProgram &here, const RuleTensors<T, G, B> &in,
                                    const language::Scalar<language::f32> &scale, const DplrConfig &c,
                                    language::Cache cache, const std::optional<Decay> &whole = {}) {
  using namespace language;
  const int width = sliceOfMaps(c);
  std::vector<GatedRows<T>> out;
  for (int first = 0; first < c.dim; first += width) {
    const ChunkProgram slice = width == c.dim ? here : here.withSlice(constant<i32>(first), width);
    const ChunkSource source = slice.source(in, scale, c);
    const ChunkRows rows = source.read(cache);
    const Decay decay = whole && width == c.dim ? *whole : Decay(source, c.bounded);
    out.push_back(GatedRows<T>(slice, c.rule, decay, rows));
  }
  return out;
}

/// The matrices of a slot in a workspace [H, slots, keptMatrices * C, C], one after the other.
template <language::Element T> class KeptMatrices {
public:
  KeptMatrices(const ChunkProgram &here, const language::TensorView<T, 4> &workspace, ChunkRule rule)
      : view(here.slotOf(workspace, keptMatrices(rule) * here.chunk, here.chunk, here.chunk, here.chunk)),
        size(here.chunk), rule(rule) {}

  void write(const ChunkMatrices<T> &m) const {
    put(0, m.products.qk);
    if (reads(rule))
      put(1, m.inverse), put(2, m.products.ak);
    if (hasOwnB(rule))
      put(3, m.products.qb);
  }
  /// Without the matrix that only the inverse needs.
  ChunkMatrices<T> read() const {
    ChunkMatrices<T> out;
    out.products.qk = out.products.qb = get(0);
    if (reads(rule))
      out.inverse = get(1), out.products.ak = get(2);
    if (hasOwnB(rule))
      out.products.qb = get(3);
    return out;
  }

private:
  void put(int n, const language::Tile<T> &x) const { storeView(view, {n * size, 0}, x); }
  language::Tile<T> get(int n) const { return loadView(view, {n * size, 0}); }

  language::View<T> view;
  int size;
  ChunkRule rule;
};

/// What a chunk adds to the state, [C, V].
template <language::Element T> struct ChunkMap {
  language::Tile<T> written; ///< what k adds, whatever the state was: v; where b is k, v + u
  language::Tile<T> u;       ///< what b adds; none where b is k
};
/// A chunk as a map of the state (Dplr.h), as far as all kernels need it: F and R^T are written, e^L too; `useQh` takes
/// a slice of Qh, [C, width], with its rows.
template <language::Element T, typename UseQh>
ChunkMap<T> writeMap(const DplrConfig &c, const ChunkMatrices<T> &m, const language::Tile<T> &values,
                     const std::vector<GatedRows<T>> &slices, const language::TensorView<T, 4> &f,
                     const language::TensorView<T, 4> &rt, const language::TensorView<language::f32, 3> &decays,
                     UseQh useQh) {
  using namespace language;
  ChunkMap<T> out;
  out.written = values;
  // W and U (S2.1): what a chunk's rows add to the state through what they read of it, and of each other.
  std::vector<Tile<T>> w;
  if (reads(c.rule)) {
    for (const GatedRows<T> &slice : slices)
      w.push_back(cast<T>(dot(m.inverse, slice.ag)));
    const auto read = cast<T>(dot(m.products.ak, values));
    for (std::size_t i = 0; i < slices.size(); ++i)
      for (std::size_t j = 0; j < slices.size(); ++j)
        slices[i].here.writeBlock(f, c.dim, c.dim, {slices[i].here.first, slices[j].here.first},
                                  dot(transpose(slices[i].bg), w[j]));
    if (hasOwnB(c.rule))
      out.u = cast<T>(dot(m.inverse, read));
    else
      out.written = cast<T>(dot(m.inverse, read, cast<f32>(values)));
  }
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const GatedRows<T> &slice = slices[i];
    const auto ofK = dot(transpose(out.written), slice.kg);
    slice.here.writeSliceOfSlot(rt, c.dim, hasOwnB(c.rule) ? dot(transpose(out.u), slice.bg, ofK) : ofK);
    const auto qg = cast<f32>(slice.qg);
    useQh(slice, reads(c.rule) ? dot(m.products.qb, w[i], qg) : qg);
    slice.here.writeDecay(decays, slice.decay);
  }
  return out;
}

/// Columns of a state that was given, transposed: [blockV, K].  Zeros if none was.
template <language::Element H>
ChunkTile stateOf(const language::TensorView<H, 4> &given, bool isGiven, const language::Scalar<language::i32> &n,
                  const language::Scalar<language::i32> &head, const language::Scalar<language::i32> &column,
                  const DplrConfig &c) {
  using namespace language;
  if (!isGiven)
    return zeros<f32>({c.blockV, c.dim});
  const auto x = loadView(given.at(n, head, all, all).tiles({c.dim, c.blockV}), {0, column});
  if constexpr (std::same_as<H, f32>)
    return transpose(x);
  else
    return transpose(cast<f32>(x));
}

/// `record.template operator()<T, G, B, I>()` for the types of activations, gates, beta and offsets.
template <typename Record>
language::Kernel withTypesOfChunks(language::ElementType element, const DplrConfig &c, const char *name,
                                   const Record &record) {
  using namespace language;
  return withElement<f16, bf16>(element, name, [&]<Element T>() {
    return withElement<i32, i64>(c.offsets, name, [&]<Element I>() {
      return withElement<f32, T>(c.gates, name, [&]<Element G>() {
        return withElement<f32, T>(c.beta, name, [&]<Element B>() { return record.template operator()<T, G, B, I>(); });
      });
    });
  });
}

/// Of a program that works on one chunk.  Narrow heads by few warps: addresses and the inverse take each of them as
/// many instructions, whatever it has of the rows; gradients have more tiles at once than these have registers.
inline int warpsOfChunks(const DplrConfig &c, bool gradients) {
  const int widest = std::max(c.dim, c.dimV);
  return c.warps ? c.warps : widest > 128 ? 16 : widest > 64 || gradients ? 8 : 4;
}

/// How a kernel that works on one chunk, and one that walks along chunks, are launched.
inline language::KernelOptions optionsOfChunks(const DplrConfig &c, bool gradients = false) {
  return {.warps = warpsOfChunks(c, gradients),
          // Decays: far below the rounding of what they scale to 11 bits.
          .grade = language::approx,
          .config = {{"chunk", c.chunk},
                     {"dim", c.dim},
                     {"dimV", c.dimV},
                     {"rule", static_cast<int>(c.rule)},
                     {"gate", static_cast<int>(c.gate)},
                     {"bounded", c.bounded},
                     {"exact", c.exact},
                     {"packed", c.packed}}};
}
inline language::KernelOptions optionsOfChain(const DplrConfig &c) {
  return {.warps = c.chainWarps,
          .stages = c.stages,
          .config = {{"chunk", c.chunk},
                     {"dim", c.dim},
                     {"dimV", c.dimV},
                     {"blockV", c.blockV},
                     {"rule", static_cast<int>(c.rule)},
                     {"gate", static_cast<int>(c.gate)},
                     {"packed", c.packed},
                     {"initial", c.initial},
                     {"final", c.final}}};
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_CHUNKMATRICES_H
