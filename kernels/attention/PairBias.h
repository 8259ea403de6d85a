//===- PairBias.h - What a bias adds to the logits of pairs ---------------------===//
//
// A program has rows (or keys) of its own and walks over the others step by step: a block of pairs is [own, step].  A
// bias that is the same for all of one of them has an extent of 1 there, in memory and in registers; one that is the
// same in every step is read once.
//
// Entries outside of the bias's extents read as 0.  Blocks are as large as those of keys and values: they take no
// shared memory from these, and go to registers.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_PAIRBIAS_H
#define KILN_KERNELS_ATTENTION_PAIRBIAS_H

#include "compiler/language/Language.h"

#include <functional>
#include <optional>

namespace kiln::kernels {

class PairBias {
public:
  using Number = language::Scalar<language::i32>;
  using Numbers = language::Tile<language::f32>;

  struct Block {
    int own, step;      ///< rows and keys of a block, or keys and rows
    bool ofOwn, ofStep; ///< whether the bias differs along them
  };

  /// None.
  PairBias() = default;

  /// Of `tensor`, [batch, head, own, step].
  template <language::Element B>
  PairBias(const language::TensorView<B, 4> &tensor, const Block &block, const Number &batch, const Number &head,
           const Number &own0) {
    using namespace language;
    if (!block.ofStep) {
      const Numbers fixed =
          block.ofOwn
              ? expandDims(cast<f32>(loadView(tensor.at(batch, head, all, 0).tiles({block.own}, Unit::None), {own0})),
                           1)
              : full<f32>({1, 1}, cast<f32>(load(tensor.at(batch, head, 0, 0).pointer())));
      read = [fixed](const Number &) { return fixed; };
    } else if (!block.ofOwn) {
      const View<B> view = tensor.at(batch, head, 0, all).tiles({block.step}, Unit::None);
      read = [view](const Number &step0) { return expandDims(cast<f32>(loadViewUnstaged(view, {step0})), 0); };
    } else {
      const View<B> view = tensor.at(batch, head, all, all).tiles({block.own, block.step}, Unit::None);
      read = [view, own0](const Number &step0) { return cast<f32>(loadViewUnstaged(view, {own0, step0})); };
    }
  }

  /// Of the step that begins at `step0`, broadcast to [own, step]; nothing if there is no bias.
  std::optional<Numbers> at(const Number &step0) const { return read ? std::optional(read(step0)) : std::nullopt; }

private:
  std::function<Numbers(const Number &)> read;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_PAIRBIAS_H
