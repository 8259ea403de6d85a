//===- ChunkProgram.h - The chunk that a program works on, and its tensors ----===//
//
// Which chunk and which columns of K, how its rows are read as a rule has them, and what lies in a slot of a workspace.
// Rows after the sequence's end are zero in every tensor.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_CHUNKPROGRAM_H
#define KILN_KERNELS_DPLR_CHUNKPROGRAM_H

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

/// The policy of rows that are read again, for the last time: kept, or gated before a chunk's matrices are made, they
/// cost registers or shared memory meanwhile.  Not the first reading's policy, so that no compiler takes the two for
/// one.
inline constexpr language::Cache lastReading = language::Cache::Streaming;

/// The chunk that a program of a grid [slots * H * slices * parts] works on, which columns of K (a slice) and of V (a
/// part); none if its row is not below the sequence's rows.
struct ChunkProgram {
  language::Scalar<language::i32> slot, head;
  SequenceOfTokens sequence;
  language::Scalar<language::i32> row;    ///< the chunk's first, counted from the sequence's start
  language::Scalar<language::i32> first;  ///< the first of the slice's columns of K
  language::Scalar<language::i32> firstV; ///< the first of the part's columns of V
  int chunk, width, widthV;               ///< rows of the chunk, columns of the slice and of the part
  int dim, dimV;                          ///< columns of all slices, of all parts
  /// Of all tensors [B, T, H, ..]: one value of each serves them all.
  language::Scalar<language::i64> batches, tokens, heads;
  std::optional<int> columnsOfK, columnsOfV; ///< where they fill the tiles

  /// `like`: any tensor [B, T, H, columns] of the call; `width`: a slice's columns, `widthV`: a part's.
  template <language::Element T>
  static ChunkProgram of(const language::TensorView<T, 4> &like, const Offsets &offsets,
                         const language::Scalar<language::i32> &sequences, const DplrConfig &c, int width, int widthV) {
    using namespace language;
    const int slices = c.dim / width, parts = c.dimV / widthV, chunk = c.chunk;
    const bool packed = c.packed;
    const auto heads = cast<i32>(like.extent(2));
    const auto tokens = like.extent(1);
    const auto ofParts = slices > 1 ? programId() / slices : programId();
    const auto first = slices > 1 ? programId() % slices * width : constant<i32>(0);
    const auto program = parts > 1 ? ofParts / parts : ofParts;
    const auto firstV = parts > 1 ? ofParts % parts * widthV : constant<i32>(0);
    const auto slot = program / heads, head = program % heads;
    const auto n = sequenceOfSlot(slot, tokens, sequences, offsets, packed, chunk);
    const SequenceOfTokens sequence = sequenceAt(n, tokens, offsets, packed, chunk);
    return {slot,
            head,
            sequence,
            (slot - sequence.slot) * chunk,
            first,
            firstV,
            chunk,
            width,
            widthV,
            c.dim,
            c.dimV,
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

  ChunkProgram withPart(const language::Scalar<language::i32> &from, int columns) const {
    ChunkProgram out = *this;
    out.firstV = from, out.widthV = columns;
    return out;
  }

  /// The sum over all parts of what `make` has of each.
  template <typename Make> ChunkTile sumOfParts(const Make &make) const {
    using namespace language;
    const int size = partOfV(dimV);
    if (size == dimV)
      return make(*this);
    // Its shape is that of the first part's.
    return loop(over(1, dimV / size), ChunkTile(make(withPart(constant<i32>(0), size))),
                [&](auto i, auto sum) { return sum + make(withPart(i * size, size)); });
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
  /// The part of a tensor of V, [C, widthV].
  template <language::Element T> language::Tile<T> read(const language::TensorView<T, 4> &tensor) const {
    return loadView(rowsOf(tensor, columnsOfV).tiles({chunk, widthV}), {row, firstV});
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

  /// How the chunk's rows are read; q times `scale`.  `ofGates`: the policy of gates of channels.
  template <language::Element T, language::Element G, language::Element B>
  ChunkSource source(const RuleTensors<T, G, B> &in, const language::Scalar<language::f32> &scale, const DplrConfig &c,
                     language::Cache ofGates = language::Cache::Default) const {
    using namespace language;
    const ChunkProgram here = *this;
    ChunkSource out{c.rule, c.chunk, width, {}, {}, {}, {}, {}, {}};
    if (c.gate == GateKind::Channel)
      out.gates = [=] { return here.wide(in.g, ofGates); };
    else if (c.gate == GateKind::Head)
      out.gates = [=] { return here.column(in.gateOfHead); };
    const auto gates = out.gates;
    out.q = [=] { return here.wide(in.q, lastReading) * scale; };
    out.a = [=] { return here.wide(in.a, lastReading); };
    out.k = [=] { return here.wide(in.k, lastReading); };
    out.b = [=] { return here.wide(in.b, lastReading); };
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
        const auto k = here.wide(in.k, lastReading);
        return gates ? -k * exp(gates()) : -k;
      };
      out.k = out.b = [=] { return here.wide(in.k, lastReading) * here.column(in.beta); };
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
    put(rowsOf(tensor, columnsOfV).tiles(x.shape()), firstV, x);
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
  /// The part of a workspace [H, slots, C, V].
  template <language::Element T> language::Tile<T> partOfSlot(const language::TensorView<T, 4> &from) const {
    return loadView(slotOf(from, chunk, dimV, chunk, widthV), {0, firstV});
  }
  /// The part and slice of a state, [H, slots, V, K].
  template <language::Element T> language::Tile<T> stateOfSlot(const language::TensorView<T, 4> &from) const {
    return loadView(slotOf(from, dimV, dim, widthV, width), {firstV, first});
  }
  /// e^L of the slice, of [H, slots, K]; nothing where nothing decays.
  void writeDecay(const language::TensorView<language::f32, 3> &to, const Decay &decay) const {
    using namespace language;
    if (const Factor whole = decay.ofChunk(); whole.tile)
      storeView(to.at(head, slot, all).tiles({width}), {first}, reshape(broadcastTo(*whole.tile, {1, width}), {width}));
  }
  template <language::Element T> void writePart(const language::TensorView<T, 4> &to, const ChunkTile &x) const {
    writeBlock(to, chunk, dimV, {0, firstV}, language::cast<T>(x));
  }
  template <language::Element T> void writeState(const language::TensorView<T, 4> &to, const ChunkTile &x) const {
    writeBlock(to, dimV, dim, {firstV, first}, language::cast<T>(x));
  }
  template <language::Element T>
  void writeBlock(const language::TensorView<T, 4> &to, int allRows, int allColumns, const language::Indices &at,
                  const language::Tile<T> &x) const {
    const int rows = static_cast<int>(x.extent(0)), columns = static_cast<int>(x.extent(1));
    storeView(slotOf(to, allRows, allColumns, rows, columns), at, x);
  }
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_CHUNKPROGRAM_H
