//===- ChunkMatrices.h - What a chunk's map and its gradients are made of ------===//
//
// Specification "DPLR delta rule and RWKV7", S2.1, of one chunk of one head.  Rows after the sequence's end are zero in
// every tensor, and nothing here needs to know: their decays are 1, their rows of A zero, those of the inverse a unit
// matrix's.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_CHUNKMATRICES_H
#define KILN_KERNELS_DPLR_CHUNKMATRICES_H

#include "kernels/dplr/Chunks.h"
#include "kernels/dplr/Decay.h"
#include "kernels/dplr/Dplr.h"

namespace kiln::kernels {

/// Rows of tensors are read and written in vectors if they are whole ones.
inline constexpr language::TensorTraits vectors{.wholeRows = true}, maybeVectors{.wholeRows = true, .optional = true};

/// What a token has, as a rule has it (Rule.h): the others are left out of a launch.
template <language::Element T, language::Element G, language::Element B> struct RuleTensors {
  language::TensorView<T, 4> q, k, a, b;
  language::TensorView<G, 4> g;
  language::TensorView<G, 3> gateOfHead;
  language::TensorView<B, 3> beta;
};

/// The policy of rows that are read again, for the last time.  Not the first reading's, so that no compiler takes the
/// two for one and keeps rows in registers; but for wide rows registers are spilled either way (H200, K = 128: 2.90 ms
/// for 2.74).
inline language::Cache lastReading(const DplrConfig &c) {
  return c.dim > 64 ? language::Cache::Default : language::Cache::Streaming;
}

/// The chunk that a program of a grid [slots * H * slices] works on, and which columns of K; none if its row is not
/// below the sequence's rows.
struct ChunkProgram {
  language::Scalar<language::i32> slot, head;
  SequenceOfTokens sequence;
  language::Scalar<language::i32> row;   ///< the chunk's first, counted from the sequence's start
  language::Scalar<language::i32> first; ///< the first of the slice's columns of K
  int chunk, width;                      ///< rows of the chunk, columns of the slice
  /// Of all tensors [B, T, H, ..]: one value of each serves them all.
  language::Scalar<language::i64> batches, tokens, heads;
  std::optional<int> columnsOfK, columnsOfV; ///< where they fill the tiles

  /// `like`: any tensor [B, T, H, columns] of the call; `width`: a slice's columns.
  template <language::Element T>
  static ChunkProgram of(const language::TensorView<T, 4> &like, const Offsets &offsets,
                         const language::Scalar<language::i32> &sequences, const DplrConfig &c, int width) {
    using namespace language;
    const int slices = c.dim / width, chunk = c.chunk;
    const bool packed = c.packed;
    const auto heads = cast<i32>(like.extent(2));
    const auto tokens = like.extent(1);
    const auto program = slices > 1 ? programId() / slices : programId();
    const auto first = slices > 1 ? programId() % slices * width : constant<i32>(0);
    const auto slot = program / heads, head = program % heads;
    const auto n = sequenceOfSlot(slot, tokens, sequences, offsets, packed, chunk);
    const SequenceOfTokens sequence = sequenceAt(n, tokens, offsets, packed, chunk);
    return {slot,
            head,
            sequence,
            (slot - sequence.slot) * chunk,
            first,
            chunk,
            width,
            like.extent(0),
            tokens,
            like.extent(2),
            c.exact ? std::optional(c.dim) : std::nullopt,
            c.exact ? std::optional(c.dimV) : std::nullopt};
  }

  language::Scalar<language::i1> exists() const { return row < sequence.rows; }

  /// What reads the rows so many tokens later (earlier: negative); those outside the sequence are zero.
  ChunkProgram later(int tokens) const {
    ChunkProgram out = *this;
    out.row = row + tokens;
    return out;
  }

  ChunkProgram withSlice(const language::Scalar<language::i32> &from, int columns) const {
    ChunkProgram out = *this;
    out.first = from, out.width = columns;
    return out;
  }

  /// The sequence's rows of a tensor, [tokens, columns]; `columns`: if known.
  template <language::Element T>
  language::TensorView<T, 2> rowsOf(const language::TensorView<T, 4> &tensor, const std::optional<int> &columns) const {
    using namespace language;
    const auto extent = columns ? constant<i64>(*columns) : tensor.extent(3);
    return sequence.of(tensor.withExtents(batches, tokens, heads, extent), head);
  }
  template <language::Element T> language::View<T> columnOf(const language::TensorView<T, 3> &tensor) const {
    using namespace language;
    return sequence.of(tensor.withExtents(batches, tokens, heads), head).tiles({chunk}, Unit::None);
  }
  /// The chunk's rows of a tensor of V, [C, columns].
  template <language::Element T> language::Tile<T> read(const language::TensorView<T, 4> &tensor, int columns) const {
    return loadView(rowsOf(tensor, columnsOfV).tiles({chunk, columns}), {row, 0});
  }
  /// The slice of a tensor of K, [C, width], in its type and in f32.
  template <language::Element T>
  language::Tile<T> slice(const language::TensorView<T, 4> &tensor,
                          language::Cache cache = language::Cache::Default) const {
    return loadView(rowsOf(tensor, columnsOfK).tiles({chunk, width}), {row, first}, cache);
  }
  template <language::Element T>
  ChunkTile wide(const language::TensorView<T, 4> &tensor, language::Cache cache = language::Cache::Default) const {
    if constexpr (std::same_as<T, language::f32>)
      return slice(tensor, cache);
    else
      return language::cast<language::f32>(slice(tensor, cache));
  }
  /// The chunk's numbers of a tensor [B, T, H], one a token: [C, 1].
  template <language::Element T> ChunkTile column(const language::TensorView<T, 3> &tensor) const {
    using namespace language;
    const auto x = expandDims(loadView(columnOf(tensor), {row}), 1);
    if constexpr (std::same_as<T, f32>)
      return x;
    else
      return cast<f32>(x);
  }
  /// One number a token, [C].
  template <language::Element T> void writeColumn(const language::TensorView<T, 3> &tensor, const ChunkTile &x) const {
    using namespace language;
    const auto to = columnOf(tensor);
    if constexpr (std::same_as<T, f32>)
      storeView(to, {row}, x);
    else
      storeView(to, {row}, cast<T>(x));
  }

  /// How the chunk's rows are read; q times `scale`.
  template <language::Element T, language::Element G, language::Element B>
  ChunkSource source(const RuleTensors<T, G, B> &in, const language::Scalar<language::f32> &scale,
                     const DplrConfig &c) const {
    using namespace language;
    const ChunkProgram here = *this;
    const Cache last = lastReading(c);
    ChunkSource out{c.rule, c.chunk, width, last, {}, {}, {}, {}, {}, {}};
    if (c.gate == GateKind::Channel)
      out.gates = [=] { return here.wide(in.g); };
    else if (c.gate == GateKind::Head)
      out.gates = [=] { return here.column(in.gateOfHead); };
    const auto gates = out.gates;
    out.q = [=] { return here.wide(in.q, last) * scale; };
    out.a = [=] { return here.wide(in.a, last); };
    out.k = [=] { return here.wide(in.k, last); };
    out.b = [=] { return here.wide(in.b, last); };
    switch (c.rule) {
    case ChunkRule::Dplr:
      out.read = [=](Cache cache) {
        // All loads in flight before anything waits for one.
        const auto x = here.slice(in.q, cache), y = here.slice(in.a, cache), z = here.slice(in.k, cache),
                   w = here.slice(in.b, cache);
        return ChunkRows{cast<f32>(x) * scale, cast<f32>(y), cast<f32>(z), cast<f32>(w)};
      };
      break;
    case ChunkRule::Delta:
      out.a = [=] {
        const auto k = here.wide(in.k, last);
        return gates ? -k * exp(gates()) : -k;
      };
      out.k = out.b = [=] { return here.wide(in.k, last) * here.column(in.beta); };
      out.read = [=](Cache cache) {
        const auto x = here.slice(in.q, cache), y = here.slice(in.k, cache);
        const auto k = cast<f32>(y), written = k * here.column(in.beta);
        return ChunkRows{cast<f32>(x) * scale, gates ? -k * exp(gates()) : -k, written, written};
      };
      break;
    case ChunkRule::Linear:
      out.read = [=](Cache cache) {
        const auto x = here.slice(in.q, cache), y = here.slice(in.k, cache);
        const auto k = cast<f32>(y);
        return ChunkRows{cast<f32>(x) * scale, {}, k, k};
      };
      break;
    }
    return out;
  }
  template <language::Element T> void write(const language::TensorView<T, 4> &tensor, const ChunkTile &x) const {
    put(rowsOf(tensor, columnsOfV).tiles(x.shape()), language::constant<language::i32>(0), x);
  }
  template <language::Element T> void writeSlice(const language::TensorView<T, 4> &tensor, const ChunkTile &x) const {
    put(rowsOf(tensor, columnsOfK).tiles(x.shape()), first, x);
  }
  template <language::Element T>
  void put(const language::View<T> &to, const language::Scalar<language::i32> &from, const ChunkTile &x) const {
    if constexpr (std::same_as<T, language::f32>)
      storeView(to, {row, from}, x);
    else
      storeView(to, {row, from}, language::cast<T>(x));
  }

  /// The slot's part of a workspace [H, slots, rows, all columns], in its type; whole, so that no element is out of
  /// bounds.  In tiles of `rows` x `columns`.
  template <language::Element T>
  language::View<T> slotOf(const language::TensorView<T, 4> &workspace, int allRows, int allColumns, int rows,
                           int columns) const {
    using namespace language;
    return workspace.at(head, slot, all, all)
        .withExtents(constant<i64>(allRows), constant<i64>(allColumns))
        .tiles({rows, columns});
  }
  /// From row `first` on; rows outside the slot are zero.
  template <language::Element T>
  language::Tile<T> readSlot(const language::TensorView<T, 4> &from, int rows, int columns, int first = 0) const {
    return loadView(slotOf(from, rows, columns, rows, columns), {first, 0});
  }
  /// The slice of a workspace of K columns.
  template <language::Element T>
  language::Tile<T> sliceOfSlot(const language::TensorView<T, 4> &from, int rows, int allColumns) const {
    return loadView(slotOf(from, rows, allColumns, rows, width), {0, first});
  }
  /// e^L of the slice, of [H, slots, K]; nothing where nothing decays.
  void writeDecay(const language::TensorView<language::f32, 3> &to, const Decay &decay) const {
    using namespace language;
    if (const Factor whole = decay.ofChunk(); whole.tile)
      storeView(to.at(head, slot, all).tiles({width}), {first}, reshape(broadcastTo(*whole.tile, {1, width}), {width}));
  }
  template <language::Element T> void writeSlot(const language::TensorView<T, 4> &to, const ChunkTile &x) const {
    writeBlock(to, static_cast<int>(x.extent(0)), static_cast<int>(x.extent(1)), {0, 0}, x);
  }
  /// The slice of a workspace of K columns.
  template <language::Element T>
  void writeSliceOfSlot(const language::TensorView<T, 4> &to, int allColumns, const ChunkTile &x) const {
    writeBlock(to, static_cast<int>(x.extent(0)), allColumns, {0, first}, x);
  }
  template <language::Element T>
  void writeBlock(const language::TensorView<T, 4> &to, int allRows, int allColumns, const language::Indices &at,
                  const ChunkTile &x) const {
    const int rows = static_cast<int>(x.extent(0)), columns = static_cast<int>(x.extent(1));
    storeView(slotOf(to, allRows, allColumns, rows, columns), at, language::cast<T>(x));
  }
};

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

/// The gated rows of all slices.  `decay`: of all of K.  The rows are read again: kept, or gated before the products,
/// they cost registers or shared memory during these.
template <language::Element T, language::Element G, language::Element B>
std::vector<GatedRows<T>> gatedRows(const ChunkProgram &here, const RuleTensors<T, G, B> &in,
                                    const language::Scalar<language::f32> &scale, const DplrConfig &c,
                                    const Decay &decay) {
  using namespace language;
  const int width = sliceOfMaps(c);
  std::vector<GatedRows<T>> out;
  if (width == c.dim)
    return {GatedRows<T>(here, c.rule, decay, decay.readAgain())};
  for (int first = 0; first < c.dim; first += width) {
    const ChunkProgram slice = here.withSlice(constant<i32>(first), width);
    const ChunkSource source = slice.source(in, scale, c);
    out.push_back(GatedRows<T>(slice, c.rule, Decay(source, c.bounded), source.read(source.last)));
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

/// A chunk as a map of the state (Dplr.h), as far as all kernels need it: F and R^T are written, e^L too; `useQh` takes
/// a slice of Qh, [C, width], with its rows.
template <language::Element T> struct ChunkMap {
  language::Tile<T> written; ///< what k adds to the state, whatever that was, [C, V]: v; where b is k, v + u
  language::Tile<T> u;       ///< what b adds, [C, V]; none where b is k
};
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
