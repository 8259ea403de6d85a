//===- AttentionLayouts.h - Named layouts of q, k and v in memory ---------------===//
//
// A layout says by name how q, k and v lie in one, two or three tensors.  `attentionViews` cuts them out: addresses,
// extents and strides, nothing else; the operation sees no names.  Axes that pack several of them are found by their
// position in the name, never by an extent.
//
// A name is the tensors' axes, outermost first, with _ between tensors: b batch, s row, t row of a packed batch (which
// takes cu_q, or cu_k), h head, d column, 2 and 3 the packed ones.
//
// | tensors | names |
// |---|---|
// | q, k, v | bshd_bshd_bshd sbhd_sbhd_sbhd bhsd_bhsd_bhsd thd_thd_thd |
// | q, k, v, mixed | sbhd_bshd_bshd bshd_sbhd_sbhd thd_bshd_bshd thd_sbhd_sbhd |
// | q, kv | bshd_bs2hd sbhd_sb2hd thd_t2hd bshd_bsh2d sbhd_sbh2d thd_th2d |
// | qkv | bs3hd sb3hd t3hd bsh3d sbh3d th3d |
// | qkv [s, b, H + 2 Hk, d]: heads of q, then of k, then of v | flat_gqa bs_flat_gqa t_flat_gqa |
// | qkv [s, b, Hk, H / Hk + 2, d]: each key head's queries, key, value | grouped_gqa bs_grouped_gqa t_grouped_gqa |
//
// The last two rows give the shape of names without a prefix; bs_ and t_ have their rows as these letters say.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONLAYOUTS_H
#define KILN_KERNELS_ATTENTION_ATTENTIONLAYOUTS_H

#include "kiln/Tensor.h"

#include <span>
#include <string>
#include <vector>

namespace kiln::kernels {

struct AttentionLayout {
  std::string name;
  /// Axes of each tensor; besides those above: f the heads of q, k and v one after the other, g key heads, m the
  /// members of a group.
  std::vector<std::string> tensors;
  /// Axes of o: those of the first tensor without the packed one.
  std::string output() const;
  bool packedQ() const { return tensors.front().find('t') != std::string::npos; }
  bool packedK() const { return tensors.back().find('t') != std::string::npos; }
};

/// All of them, in the order of the table.
const std::vector<AttentionLayout> &attentionLayouts();
/// Their names.
std::span<const std::string_view> attentionLayoutNames();
/// One of attentionLayouts().  The failure names what exists.
Result<const AttentionLayout *> attentionLayout(std::string_view name);

struct AttentionViews {
  Tensor q, k, v; ///< as AttentionArguments takes them; q of a grouped layout with its heads split
};

/// The views of `tensors`, in the layout's order.  heads and keyHeads: of q and of k, which only a flat layout needs;
/// of others they are checked where they are not 0.  The failure names the tensor, its shape and what the layout asks.
Result<AttentionViews> attentionViews(const AttentionLayout &layout, std::span<const Tensor> tensors,
                                      std::int64_t heads = 0, std::int64_t keyHeads = 0);

/// o, with axes layout.output(), as AttentionArguments takes it in addition to `views`; or its gradient, by `name`.
Result<Tensor> attentionOutputView(const AttentionLayout &layout, const Tensor &o, const AttentionViews &views,
                                   std::string_view name = "o");

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONLAYOUTS_H
