//===- Chunks.h - Where a chunk's tokens lie ---------------------------------===//
//
// Every chunk of every sequence has a slot.  Dense: slot = sequence * ceil(T / C) + chunk.  Packed: slot =
// floor(cu[n] / C) + n + chunk.  Such slots are distinct and in order, at most floor(T / C) + N of them, and no sum
// over sequences is needed to find them (ceil(len / C) <= floor(cu[n + 1] / C) - floor(cu[n] / C) + 1).  Some slots of
// a packed batch belong to no chunk.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_CHUNKS_H
#define KILN_KERNELS_DPLR_CHUNKS_H

#include "compiler/language/Language.h"

#include <functional>

namespace kiln::kernels {

/// cu_seqlens[n] as i64, of whatever type.
using Offsets = std::function<language::Scalar<language::i64>(const language::Scalar<language::i32> &)>;

template <language::Element I> Offsets offsetsOf(const language::TensorView<I, 1> &cu) {
  return [cu](const language::Scalar<language::i32> &n) {
    return language::cast<language::i64>(language::load(cu.at(n).pointer()));
  };
}

/// The tokens of one sequence.
struct SequenceOfTokens {
  language::Scalar<language::i64> batch, start; ///< where it begins in the tensors
  language::Scalar<language::i32> rows, slot;   ///< its tokens; the slot of its first chunk
  bool packed;

  /// [tokens, columns] of a tensor [batch, token, head, column] for one head.
  template <language::Element T>
  language::TensorView<T, 2> of(const language::TensorView<T, 4> &tensor,
                                const language::Scalar<language::i32> &head) const {
    using namespace language;
    const auto tokens = tensor.at(batch, all, head, all);
    return packed ? tokens.narrow(along(0), start, rows) : tokens;
  }
  /// [tokens] of a tensor [batch, token, head].
  template <language::Element T>
  language::TensorView<T, 1> of(const language::TensorView<T, 3> &tensor,
                                const language::Scalar<language::i32> &head) const {
    using namespace language;
    const auto tokens = tensor.at(batch, all, head);
    return packed ? tokens.narrow(along(0), start, rows) : tokens;
  }
};

inline int log2Of(int powerOfTwo) {
  return std::countr_zero(static_cast<unsigned>(powerOfTwo));
}

/// Sequence n; `tokens`: T.
inline SequenceOfTokens sequenceAt(const language::Scalar<language::i32> &n,
                                   const language::Scalar<language::i64> &tokens, const Offsets &offsets, bool packed,
                                   int chunk) {
  using namespace language;
  if (!packed) {
    const auto rows = cast<i32>(tokens);
    return {cast<i64>(n), constant<i64>(0), rows, n * ceilDiv(rows, chunk), false};
  }
  const auto start = offsets(n);
  return {constant<i64>(0), start, cast<i32>(offsets(n + 1) - start), cast<i32>(start >> log2Of(chunk)) + n, true};
}

/// The sequence that has a slot: the last n whose first slot is not after it.
inline language::Scalar<language::i32> sequenceOfSlot(const language::Scalar<language::i32> &slot,
                                                      const language::Scalar<language::i64> &tokens,
                                                      const language::Scalar<language::i32> &sequences,
                                                      const Offsets &offsets, bool packed, int chunk) {
  using namespace language;
  if (!packed)
    return slot / ceilDiv(cast<i32>(tokens), chunk);
  // Halving; what is left after as many rounds as 2^31 sequences take is one.
  const auto [first, end] = loop(over(0, 31), sequences * 0, sequences + 0, [&](auto, auto low, auto high) {
    const auto middle = low + (high - low) / 2;
    const auto before = cast<i32>(offsets(middle) >> log2Of(chunk)) + middle <= slot;
    return std::tuple{select(before, middle, low), select(before, high, middle)};
  });
  return first;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_CHUNKS_H
