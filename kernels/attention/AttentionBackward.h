//===- AttentionBackward.h - Gradients of flash attention ----------------------===//
//
// Specification "Attention kernels", section 7.  Nothing but lse is kept from the forward direction: scores are
// computed again, block by block.  Up to six launches:
//
//   rows      what a row needs in every block: lse to base 2, delta = sum(do * o) - dlse; and its part of its sink's
//             gradient
//   keys      dk and dv: a program takes blockN keys of a key head and walks over the rows that see them, of every
//             query head that the key head serves; sums stay in registers and are rounded once.  In one pass
//             (`onePass`) each block's part of dq is added to fp32 sums in memory, by atomics; `ordered`: one program
//             after the other (SumOrder.h)
//   sums      one pass: dq of these sums.  Else
//   queries   dq: a program takes blockM rows of a head and walks over the keys that they see
//   sink      the sum of the rows' parts of a head's sink
//   bias, bias_sums   the bias's gradient (AttentionBiasGradient.h)
//
// Gradients are the same bit for bit from run to run, but for dq with `onePass` and not `ordered`, whose parts come in
// any order.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONBACKWARD_H
#define KILN_KERNELS_ATTENTION_ATTENTIONBACKWARD_H

#include "kernels/attention/AttentionFunctions.h"
#include "kernels/attention/BiasType.h"

namespace kiln::kernels {

/// Of one launch.  What its kernel does not depend on is as here (`ofLaunch`), so that calls share kernels.
struct AttentionBackwardConfig {
  int blockM = 64, blockN = 64;
  int warps = 4, stages = 2;
  int dim = 64, dimV = 64;
  bool left = false, right = false, bottomRight = true;
  bool softcap = false, alibi = false, sink = false, dlse = false;
  BiasType bias = BiasType::None;
  bool biasOfRows = false, biasOfKeys = false, biasParts = false;
  bool dropout = false;
  bool packedQ = false, packedK = false;
  bool usedQ = false, usedK = false;
  bool onePass = false, ordered = false, vectorSums = true;
  AttentionHooks hooks = {};
  bool operator==(const AttentionBackwardConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    using C = AttentionBackwardConfig;
    v("blockM", &C::blockM, powersOfTwo(16, 1024).tuned(), "rows of a program, or of a step; sink: numbers of a step");
    v("blockN", &C::blockN, powersOfTwo(16, 256).tuned(), "keys of a program, or of a step");
    v("warps", &C::warps, powersOfTwo(1, 32).tuned().ofLaunch(), "of a program");
    v("stages", &C::stages, between(1, 8).tuned().ofLaunch(), "tiles that a loop reads that are in flight");
    v("dim", &C::dim, multiplesOf(8, 256), "tile width of q and k: at least their head dim, which is an argument");
    v("dimV", &C::dimV, multiplesOf(8, 256), "tile width of v, o and do");
    v("left", &C::left, anyValue, "keys before p - window_left are hidden");
    v("right", &C::right, anyValue, "keys after p + window_right are hidden");
    v("bottomRight", &C::bottomRight, anyValue, "row i stands at p = i + (keys - queries), else at p = i");
    v("softcap", &C::softcap, anyValue, "logits are capped");
    v("alibi", &C::alibi, anyValue, "logits lose a slope times |p - j|");
    v("bias", &C::bias, anyValue, "the type of what is added to logits");
    v("biasOfRows", &C::biasOfRows, anyValue, "the bias is not the same for all rows");
    v("biasOfKeys", &C::biasOfKeys, anyValue, "the bias is not the same for all keys");
    v("biasParts", &C::biasParts, anyValue, "the bias's gradient is written in parts, one of each head");
    v("dropout", &C::dropout, anyValue, "some probabilities were left out, others grew");
    v("sink", &C::sink, anyValue, "one more logit of each head has a gradient");
    v("dlse", &C::dlse, anyValue, "lse has a gradient");
    v("packedQ", &C::packedQ, anyValue, "cu_q says where each sequence starts in q and what is of its rows");
    v("packedK", &C::packedK, anyValue, "cu_k: the same of k and v");
    v("usedQ", &C::usedQ, anyValue, "used_q: rows of each sequence that count");
    v("usedK", &C::usedK, anyValue, "used_k: keys that count");
    v("onePass", &C::onePass, anyValue, "programs of keys add dq to sums in fp32, by atomics");
    v("ordered", &C::ordered, anyValue, "onePass: one after the other, in the order of the keys");
    v("vectorSums", &C::vectorSums, anyValue, "onePass: a thread adds its four neighbours of dq_sums at once");
    v("hooks", &C::hooks, anyValue, "functions of the caller, and lists of blocks");
  }
};

/// The kernels of a call, in the order of their launches.
enum class AttentionBackwardLaunch : std::uint8_t { Rows, Keys, Queries, Sums, Sink, Bias, BiasSums };
template <>
inline constexpr std::array<std::string_view, 7> words<AttentionBackwardLaunch> = {"rows", "keys", "queries",  "sums",
                                                                                   "sink", "bias", "bias_sums"};

/// The configuration of a launch of a call: `call` without what this kernel does not depend on.
AttentionBackwardConfig ofLaunch(AttentionBackwardLaunch launch, const AttentionBackwardConfig &call);

/// f16 or bf16.  Arguments by name:
///
///   rows      o and do [batch, row, key head, member of its group, dim], lse and dlse [batch, head, row], sink [head];
///             out: lse2 and delta [batch, head, row], dsinks [batch, head, block of rows], dq_sums (QuerySums.h):
///             zeros; cu_q, used_q, queries
///   keys      those of `attention` (Attention.h) without outputs, sinks and descales; do as q, lse2, delta; dk and dv
///             as k and v; a bias with its last dimensions exchanged; dq_sums; `keys` in place of `queries`: the
///             longest sequence's
///   queries   the same, with dq as q, the bias as in `attention`, and `queries`
///   sums      dq_sums, dq as q; cu_q, used_q, queries, scale
///   sink      dsinks, dsink [head]
///   bias      those of `queries` without dq and `queries`; dbias as the bias, or its parts, [batch, head, row or 1,
///             key or 1], fp32; `sequences` and `heads_of_bias` are summed by a program of a bias of rows and keys
///   bias_sums parts [batch, head, row or key], dbias [batch or 1, head or 1, row or key or 1], and these numbers
///
/// keys, queries and bias have what hooks have besides (AttentionHooks::tensors): keys the lists of blocks of keys,
/// bias no lists.  rows and keys have dq_counts and dq_ticket of an ordered pass (SumOrder.h): rows clears them.
///
/// Grids: [ceil(longest q / blockM) * query heads * batch], of keys [ceil(longest k / blockN) * key heads * batch], of
/// the sink [query heads], of the bias [blocks of rows * blocks of keys * heads * batch] of what it writes.
language::Kernel attentionBackward(AttentionBackwardLaunch launch, DType element,
                                   const AttentionBackwardConfig &config);

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONBACKWARD_H
