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

/// `products`: of all columns (Decay::products).
template <language::Element T> ChunkMatrices<T> matricesOf(ChunkRule rule, const std::vector<ChunkTile> &products) {
  using namespace language;
  ChunkMatrices<T> out;
  out.products = chunkProducts<T>(rule, products);
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

/// A chunk's rows, as a program reads them: for its matrices, and gated, slice by slice.
template <language::Element T, language::Element G, language::Element B> class ChunkReading {
public:
  /// What is read first is in flight from here on: whole rows for the matrices, whose slices are the last reading, or
  /// the slices.
  ChunkReading(const ChunkProgram &here, const RuleTensors<T, G, B> &in, const language::Scalar<language::f32> &scale,
               const DplrConfig &c, bool forMatrices)
      : here(here), in(in), scale(scale), c(c), cache(forMatrices ? lastReading : language::Cache::Default) {
    if (isWhole() && forMatrices)
      rows = here.source(in, scale, c).read(language::Cache::Default);
    else if (isWhole())
      early = whole();
  }

  ChunkMatrices<T> matrices() {
    using namespace language;
    if (isWhole()) {
      decay = Decay(here.source(in, scale, c), c.bounded);
      return matricesOf<T>(c.rule, decay->products(*rows));
    }
    const std::size_t size = hasOwnB(c.rule) ? 4 : reads(c.rule) ? 2 : 1;
    const std::vector<ChunkTile> none(size, zeros<f32>({c.chunk, c.chunk}));
    return matricesOf<T>(c.rule, loopOfTiles(slices(), none, [&](auto i, std::vector<ChunkTile> sums) {
                           const ChunkSource source = slice(i).source(in, scale, c);
                           const ChunkRows rows = source.read(Cache::Default);
                           const std::vector<ChunkTile> more = Decay(source, c.bounded).products(rows);
                           for (std::size_t n = 0; n < size; ++n)
                             sums[n] = sums[n] + more[n];
                           return sums;
                         }));
  }

  /// All slices, of heads of up to `widestWhole` columns.
  std::vector<GatedRows<T>> whole() const {
    std::vector<GatedRows<T>> out;
    for (int n = 0; n < slices(); ++n)
      out.push_back(gated(slices() == 1 ? here : slice(language::constant<language::i32>(n))));
    return out;
  }
  /// `use` takes the gated rows of each slice.
  template <typename Use> void eachSlice(const Use &use) const {
    using namespace language;
    if (!isWhole()) {
      loop(over(0, slices()), [&](auto i) { use(gated(slice(i))); });
      return;
    }
    for (const GatedRows<T> &rows : whole())
      use(rows);
  }
  /// `sums`, to which each slice adds: `add` takes its gated rows and what there is.  Not for matrices.
  template <typename Add> std::vector<ChunkTile> sumOfSlices(std::vector<ChunkTile> sums, const Add &add) const {
    if (!isWhole())
      return loopOfTiles(slices(), sums,
                         [&](auto i, const std::vector<ChunkTile> &x) { return add(gated(slice(i)), x); });
    for (const GatedRows<T> &rows : early)
      sums = add(rows, sums);
    return sums;
  }

private:
  bool isWhole() const { return c.dim <= widestWhole; }
  int slices() const { return c.dim / sliceOfK(c); }
  ChunkProgram slice(const language::Scalar<language::i32> &i) const {
    return here.withSlice(i * sliceOfK(c), sliceOfK(c));
  }
  GatedRows<T> gated(const ChunkProgram &mine) const {
    const ChunkSource source = mine.source(in, scale, c, cache);
    const ChunkRows rows = source.read(cache);
    // Kept only where no loop in between (the slow way of gates) needs all registers.
    return {mine, c.rule, decay && slices() == 1 && c.bounded ? *decay : Decay(source, c.bounded), rows};
  }

  ChunkProgram here;
  RuleTensors<T, G, B> in;
  language::Scalar<language::f32> scale;
  DplrConfig c;
  language::Cache cache;
  std::optional<ChunkRows> rows;   ///< whole
  std::vector<GatedRows<T>> early; ///< all slices, if they are read first
  std::optional<Decay> decay;      ///< of all of K
};

/// The parts of V, one after the other.
inline std::vector<ChunkProgram> partsOf(const ChunkProgram &here, const DplrConfig &c) {
  const int width = partOfV(c.dimV);
  std::vector<ChunkProgram> out;
  for (int first = 0; first < c.dimV; first += width)
    out.push_back(width == c.dimV ? here : here.withPart(language::constant<language::i32>(first), width));
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
      put(1, m.inverse);
    if (hasOwnB(rule))
      put(2, m.products.ak), put(3, m.products.qb);
  }
  /// Without those that only the inverse needs.
  ChunkMatrices<T> read() const {
    ChunkMatrices<T> out;
    out.products.qk = out.products.qb = get(0);
    if (reads(rule))
      out.inverse = get(1);
    if (hasOwnB(rule))
      out.products.ak = get(2), out.products.qb = get(3);
    return out;
  }

private:
  void put(int n, const language::Tile<T> &x) const { storeView(view, {n * size, 0}, x); }
  language::Tile<T> get(int n) const { return loadView(view, {n * size, 0}); }

  language::View<T> view;
  int size;
  ChunkRule rule;
};

/// What a chunk adds to the state, of a part of V: [C, widthV].
template <language::Element T> struct ChunkMap {
  ChunkProgram here;         ///< of the part
  language::Tile<T> written; ///< what k adds, whatever the state was: v; where b is k, v + u
  language::Tile<T> u;       ///< what b adds; none where b is k

  ChunkMap(const ChunkProgram &here, const language::TensorView<T, 4> &v) : here(here), written(here.read(v)) {}
  void addReads(ChunkRule rule, const ChunkMatrices<T> &m) {
    using namespace language;
    if (hasOwnB(rule))
      u = cast<T>(dot(m.inverse, cast<T>(dot(m.products.ak, written))));
    else if (reads(rule)) // v + M A v = M v (Rule.h)
      written = cast<T>(dot(m.inverse, written));
  }
};
/// What the map of a chunk is made of: everything is in flight before the matrices are made.
template <language::Element T, language::Element G, language::Element B> struct MapSource {
  ChunkProgram here;
  ChunkReading<T, G, B> reading;
  std::vector<ChunkMap<T>> parts; ///< without what is read, until the map is written
  ChunkMatrices<T> matrices;

  MapSource(const ChunkProgram &here, const RuleTensors<T, G, B> &in, const language::TensorView<T, 4> &v,
            const language::Scalar<language::f32> &scale, const DplrConfig &c)
      : here(here), reading(here, in, scale, c, /*forMatrices=*/true) {
    for (const ChunkProgram &part : partsOf(here, c))
      parts.emplace_back(part, v);
    matrices = reading.matrices();
  }
};

/// A chunk as a map of the state (Dplr.h), as far as all kernels need it: F and R^T are written, e^L too; `useQh` takes
/// a slice of Qh, [C, width], with its rows.
template <language::Element T, language::Element G, language::Element B, typename UseQh>
void writeMap(const DplrConfig &c, MapSource<T, G, B> &source, const language::TensorView<T, 4> &f,
              const language::TensorView<T, 4> &rt, const language::TensorView<language::f32, 3> &decays, UseQh useQh) {
  using namespace language;
  auto &[here, reading, parts, m] = source;
  const auto makeParts = [&] {
    for (ChunkMap<T> &part : parts)
      part.addReads(c.rule, m);
  };
  // W and U (S2.1): what a chunk's rows add to the state through what they read of it, and of each other.
  const auto wOf = [&](const GatedRows<T> &slice) { return cast<T>(dot(m.inverse, slice.ag)); };
  const auto finish = [&](const GatedRows<T> &slice, const Tile<T> &w) {
    for (const ChunkMap<T> &part : parts) {
      const auto ofK = dot(transpose(part.written), slice.kg);
      slice.here.withPart(part.here.firstV, part.here.widthV)
          .writeState(rt, hasOwnB(c.rule) ? dot(transpose(part.u), slice.bg, ofK) : ofK);
    }
    const auto qg = cast<f32>(slice.qg);
    useQh(slice, reads(c.rule) ? dot(m.products.qb, w, qg) : qg);
    slice.here.writeDecay(decays, slice.decay);
  };
  if (isThin(c) || !reads(c.rule)) {
    makeParts();
    reading.eachSlice([&](const GatedRows<T> &slice) {
      if (!reads(c.rule))
        return finish(slice, {});
      const auto w = wOf(slice);
      slice.here.writeBlock(f, rowsOfF(c), c.dim, {0, slice.here.first}, w);
      slice.here.writeBlock(f, rowsOfF(c), c.dim, {c.chunk, slice.here.first}, slice.bg);
      finish(slice, w);
    });
    return;
  }
  const std::vector<GatedRows<T>> slices = reading.whole();
  std::vector<Tile<T>> w;
  for (const GatedRows<T> &slice : slices)
    w.push_back(wOf(slice));
  for (std::size_t i = 0; i < slices.size(); ++i)
    for (std::size_t j = 0; j < slices.size(); ++j)
      here.writeBlock(f, c.dim, c.dim, {slices[i].here.first, slices[j].here.first},
                      cast<T>(dot(transpose(slices[i].bg), w[j])));
  makeParts();
  for (std::size_t i = 0; i < slices.size(); ++i)
    finish(slices[i], w[i]);
}

/// `next` and what F adds to a state that passes the slot's chunk, forward or, its gradient, `back`: [V, K], transposed
/// as states are.  `fs`: the rows of F of all slots.
template <language::Element T>
ChunkTile passed(const DplrConfig &c, const language::TensorView<T, 2> &fs, const language::Scalar<language::i32> &slot,
                 const language::Tile<T> &state, const ChunkTile &next, bool back) {
  using namespace language;
  if (!reads(c.rule))
    return next;
  const auto row = slot * rowsOfF(c);
  if (!isThin(c)) {
    const auto f = loadView(fs.tiles({c.dim, c.dim}), {row, 0});
    return dot(state, back ? f : transpose(f), next);
  }
  // F = BG^T W.
  const auto factors = fs.tiles({c.chunk, c.dim});
  const auto w = loadView(factors, {row, 0}), bg = loadView(factors, {row + c.chunk, 0});
  const auto read = cast<T>(dot(state, transpose(back ? bg : w)));
  return dot(read, back ? w : bg, next);
}

template <language::Element T> ChunkTile asF32(const language::Tile<T> &x) {
  if constexpr (std::same_as<T, language::f32>)
    return x;
  else
    return language::cast<language::f32>(x);
}

/// Columns of a state that was given, transposed: [blockV, K].  Zeros if none was.
template <language::Element H>
ChunkTile stateOf(const language::TensorView<H, 4> &given, bool isGiven, const language::Scalar<language::i32> &n,
                  const language::Scalar<language::i32> &head, const language::Scalar<language::i32> &column,
                  const DplrConfig &c) {
  using namespace language;
  if (!isGiven)
    return zeros<f32>({c.blockV, c.dim});
  return transpose(asF32(loadView(given.at(n, head, all, all).tiles({c.dim, c.blockV}), {0, column})));
}

/// `record.template operator()<T, G, B, I>()` for the types of activations, gates, beta and offsets.
template <typename Record>
language::Kernel withTypesOfChunks(DType element, const DplrConfig &c, const char *name, const Record &record) {
  using namespace language;
  return withElement<f16, bf16>(element, name, [&]<Element T>() {
    return withElement<i32, i64>(c.offsets, name, [&]<Element I>() {
      return withElement<f32, T>(c.gates, name, [&]<Element G>() {
        return withElement<f32, T>(c.beta, name, [&]<Element B>() { return record.template operator()<T, G, B, I>(); });
      });
    });
  });
}

/// How a kernel that works on one chunk, and one that walks along chunks, are launched.
inline language::KernelOptions optionsOfChunks(const DplrConfig &c, bool gradients = false) {
  return {.warps = warpsOfChunks(c, gradients),
          // Decays: far below the rounding of what they scale to 11 bits.
          .grade = language::approx,
          .config = entriesOf(c)};
}
inline language::KernelOptions optionsOfChain(const DplrConfig &c) {
  return {.warps = c.chainWarps, .stages = c.stages, .config = entriesOf(c)};
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_CHUNKMATRICES_H
