//===- AttentionHooks.h - Functions and block masks of a call --------------------===//
//
// What both directions check of them, what of them the code depends on, and their tensors in a launch.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONHOOKS_H
#define KILN_KERNELS_ATTENTION_ATTENTIONHOOKS_H

#include "kernels/attention/AttentionShape.h"

namespace kiln::kernels {

/// For the rest of arguments that is right.  `isWritten`: the call writes o and lse.
Status checkHooks(const Device &device, std::string_view operation, const AttentionArguments &arguments,
                  bool isWritten);
/// What the backward direction needs besides: the score's derivative, the lists of blocks of keys.  `keys`: of the
/// longest sequence.
Status checkBackwardHooks(const Device &device, std::string_view operation, const AttentionArguments &arguments,
                          std::int64_t keys);
/// That no output of a call, by name, meets what hooks read.
Status checkApart(std::string_view name, const Tensor &output, const AttentionArguments &arguments);
/// Tiles that the caller chose: they must divide the blocks of lists.
Status checkTilesOfBlocks(std::string_view operation, const AttentionHooks &hooks, int rows, int keys);

/// For arguments that are accepted.
AttentionHooks hooksOf(const Device &device, const AttentionArguments &arguments);

/// Calls `launch` with the named tensors of the hooks; empty ones for what the call has not.  `ofKeys`: the lists of
/// blocks of keys.
template <typename Launch> Status withHookTensors(const AttentionArguments &a, bool ofKeys, const Launch &launch) {
  const std::int64_t batch = batchOf(a), heads = Heads(a.q, a.cuQ.has_value()).heads;
  const auto list = [&](std::optional<BlockLists> BlockMask::*rows, std::optional<BlockLists> BlockMask::*keys,
                        Tensor BlockLists::*part) {
    const std::optional<BlockLists> *const of = a.blockMask ? &((*a.blockMask).*(ofKeys ? keys : rows)) : nullptr;
    return of && *of ? ofEveryHead((**of).*part, batch, heads) : Tensor();
  };
  const auto partial = [&](Tensor BlockLists::*part) {
    return list(&BlockMask::partial, &BlockMask::partialOfKeys, part);
  };
  const auto full = [&](Tensor BlockLists::*part) { return list(&BlockMask::full, &BlockMask::fullOfKeys, part); };
  const auto aux = [&](std::size_t i) { return i < a.aux.size() ? a.aux[i] : Tensor(); };
  return launch(named<"partial_counts">(partial(&BlockLists::counts)),
                named<"partial_blocks">(partial(&BlockLists::blocks)), named<"full_counts">(full(&BlockLists::counts)),
                named<"full_blocks">(full(&BlockLists::blocks)), named<"aux0">(aux(0)), named<"aux1">(aux(1)),
                named<"aux2">(aux(2)), named<"aux3">(aux(3)), named<"aux4">(aux(4)), named<"aux5">(aux(5)),
                named<"aux6">(aux(6)), named<"aux7">(aux(7)));
}

/// Calls `launch` with these and the arguments of PairOptions.h; `bias`: as the kernel takes it.
template <typename Launch>
Status withOptionArguments(const AttentionArguments &a, const Tensor &bias, bool ofKeys, const Launch &launch) {
  return withHookTensors(a, ofKeys, [&](const auto &...hooks) {
    return withPairArguments(a, bias, [&](const auto &...options) { return launch(options..., hooks...); });
  });
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONHOOKS_H
