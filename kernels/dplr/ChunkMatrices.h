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
inline constexpr language::TensorTraits vectors{.wholeRows = true},
    maybeVectors{.wholeRows = true, .optional = true};

/// The chunk that a program of a grid [slots * H] works on; none if its row is not below the sequence's rows.
struct ChunkProgram {
  language::Scalar<language::i32> slot, head;
  SequenceOfTokens sequence;
  language::Scalar<language::i32> row; ///< the chunk's first, counted from the sequence's start
  int chunk;

  /// `like`: any tensor [B, T, H, columns] of the call.
  template <language::Element T>
  static ChunkProgram of(const language::TensorView<T, 4> &like, const Offsets &offsets,
                         const language::Scalar<language::i32> &sequences, bool packed, int chunk) {
    using namespace language;
    const auto heads = cast<i32>(like.extent(2));
    const auto tokens = like.extent(1);
    const auto slot = programId() / heads, head = programId() % heads;
    const auto n = sequenceOfSlot(slot, tokens, sequences, offsets, packed, chunk);
    const SequenceOfTokens sequence = sequenceAt(n, tokens, offsets, packed, chunk);
    return {slot, head, sequence, (slot - sequence.slot) * chunk, chunk};
  }

  language::Scalar<language::i1> exists() const { return row < sequence.rows; }

  /// The chunk's rows of a tensor, [C, columns], in its type and in f32.
  template <language::Element T>
  language::Tile<T> read(const language::TensorView<T, 4> &tensor, int columns) const {
    return loadView(sequence.of(tensor, head).tiles({chunk, columns}), {row, 0});
  }
  template <language::Element T> ChunkTile wide(const language::TensorView<T, 4> &tensor, int columns) const {
    if constexpr (std::same_as<T, language::f32>)
      return read(tensor, columns);
    else
      return language::cast<language::f32>(read(tensor, columns));
  }
  /// How the chunk's rows are read; q times `scale`.
  template <language::Element T, language::Element G>
  ChunkSource source(const language::TensorView<T, 4> &q, const language::TensorView<T, 4> &a,
                     const language::TensorView<T, 4> &k, const language::TensorView<T, 4> &b,
                     const language::TensorView<G, 4> &g, const language::Scalar<language::f32> &scale,
                     int columns) const {
    return {[=, here = *this] {
              // All loads in flight before anything waits for one.
              const auto x = here.read(q, columns), y = here.read(a, columns), z = here.read(k, columns),
                         w = here.read(b, columns);
              return ChunkRows{cast<language::f32>(x) * scale, cast<language::f32>(y), cast<language::f32>(z),
                               cast<language::f32>(w)};
            },
            [=, here = *this] { return here.wide(g, columns); }};
  }
  template <language::Element T> void write(const language::TensorView<T, 4> &tensor, const ChunkTile &x) const {
    const auto to = sequence.of(tensor, head).tiles(x.shape());
    if constexpr (std::same_as<T, language::f32>)
      storeView(to, {row, 0}, x);
    else
      storeView(to, {row, 0}, language::cast<T>(x));
  }

  /// The slot's part of a workspace [H, slots, rows, columns], in its type; whole, so that no element is out of bounds.
  template <language::Element T>
  language::View<T> slotOf(const language::TensorView<T, 4> &workspace, int rows, int columns) const {
    using namespace language;
    return workspace.at(head, slot, all, all)
        .withExtents(constant<i64>(rows), constant<i64>(columns))
        .tiles({rows, columns});
  }
  template <language::Element T>
  language::Tile<T> readSlot(const language::TensorView<T, 4> &from, int rows, int columns) const {
    return loadView(slotOf(from, rows, columns), {0, 0});
  }
  template <language::Element T> void writeSlot(const language::TensorView<T, 4> &to, const ChunkTile &x) const {
    storeView(slotOf(to, static_cast<int>(x.extent(0)), static_cast<int>(x.extent(1))), {0, 0}, language::cast<T>(x));
  }
};

template <language::Element T> struct ChunkMatrices {
  ChunkProducts<T> products;        ///< [C, C]
  language::Tile<T> inverse;        ///< (I - A_ab)^-1
  language::Tile<T> qg, ag, kg, bg; ///< [C, K]
};

/// `rows`: the source's.
template <language::Element T> ChunkMatrices<T> matricesOf(const ChunkRows &rows, const Decay &decay) {
  using namespace language;
  // First what is kept in 16 bits: the rows are not needed any more after the products.
  const ChunkRows gated = rows * decay.fromStartToEnd();
  const Tile<T> qg = cast<T>(gated.q), ag = cast<T>(gated.a), kg = cast<T>(gated.k), bg = cast<T>(gated.b);
  const auto a = decay.products<T>(rows);
  // The inverse's products have operands of 11 bits, as fp16 has; its elements are far from fp16's ends wherever the
  // recurrence itself does not grow without bound.
  return {a, cast<T>(inverseUnitLower<f16>(cast<f32>(a.ab))), qg, ag, kg, bg};
}

/// W and U (S2.1): what a chunk's rows add to the state through what they read of it, and of each other.
template <language::Element T> struct ChunkMap {
  language::Tile<T> w, u; ///< [C, K], [C, V]
};

template <language::Element T>
ChunkMap<T> mapOf(const ChunkMatrices<T> &m, const language::Tile<T> &values) {
  using namespace language;
  return {cast<T>(dot(m.inverse, m.ag)), cast<T>(dot(m.inverse, cast<T>(dot(m.products.ak, values))))};
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

/// How a kernel that works on one chunk, and one that walks along chunks, are launched.
inline language::KernelOptions optionsOfChunks(const DplrConfig &c) {
  return {.warps = c.warps,
          // Decays: far below the rounding of what they scale to 11 bits.
          .grade = language::approx,
          .config = {{"chunk", c.chunk}, {"dim", c.dim}, {"dimV", c.dimV}, {"bounded", c.bounded}, {"packed", c.packed}}};
}
inline language::KernelOptions optionsOfChain(const DplrConfig &c) {
  return {.warps = c.chainWarps,
          .stages = c.stages,
          .config = {{"chunk", c.chunk},
                     {"dim", c.dim},
                     {"dimV", c.dimV},
                     {"blockV", c.blockV},
                     {"packed", c.packed},
                     {"initial", c.initial},
                     {"final", c.final}}};
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_CHUNKMATRICES_H
