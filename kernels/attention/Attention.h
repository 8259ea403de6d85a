//===- Attention.h - Flash attention, forward -----------------------------------===//
//
// o = softmax(mask(softcap(scale * q k^T) + alibi + bias)) v for every query head, without the matrix of scores: a
// program takes blockM rows of one head and walks over the keys blockN at a time, with a running maximum and sum
// (specification "Attention kernels", sections 2 to 5).
//
// Only what the configuration asks for is in the code: no mask, cap, slope, bias or sink that is not there.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTION_H
#define KILN_KERNELS_ATTENTION_ATTENTION_H

#include "kernels/attention/AttentionFunctions.h"
#include "kernels/attention/BiasType.h"

namespace kiln::kernels {

/// Grid [ceil(longest q / blockM) * query heads * batch].
struct AttentionConfig {
  int blockM = 128, blockN = 64;
  int warps = 8, stages = 2, maxRegisters = 0;
  int dim = 128, dimV = 128;
  bool left = false, right = false, bottomRight = true;
  bool softcap = false, alibi = false, sink = false;
  BiasType bias = BiasType::None;
  bool biasOfRows = false, biasOfKeys = false;
  bool dropout = false;
  bool packedQ = false, packedK = false;
  bool usedQ = false, usedK = false;
  bool descaleQ = false, descaleK = false, descaleV = false;
  bool lse = false;
  bool persistent = false;
  AttentionHooks hooks = {};
  bool operator==(const AttentionConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("blockM", &AttentionConfig::blockM, powersOfTwo(16, 256).tuned(), "query rows of a program");
    v("blockN", &AttentionConfig::blockN, powersOfTwo(16, 256).tuned(), "keys of a step");
    v("warps", &AttentionConfig::warps, powersOfTwo(1, 32).tuned().ofLaunch(), "of a program");
    v("stages", &AttentionConfig::stages, between(1, 8).tuned().ofLaunch(), "tiles of k and v that are in flight");
    v("maxRegisters", &AttentionConfig::maxRegisters, between(0, 255).ofLaunch(),
      "of a thread, so that more programs fit a multiprocessor; 0: the assembler decides");
    v("dim", &AttentionConfig::dim, multiplesOf(8, 256),
      "tile width of q and k: at least their head dim, which is an argument");
    v("dimV", &AttentionConfig::dimV, multiplesOf(8, 256), "tile width of v and o");
    v("left", &AttentionConfig::left, anyValue, "keys before p - window_left are hidden");
    v("right", &AttentionConfig::right, anyValue, "keys after p + window_right are hidden");
    v("bottomRight", &AttentionConfig::bottomRight, anyValue,
      "row i stands at p = i + (keys - queries), else at p = i");
    v("softcap", &AttentionConfig::softcap, anyValue, "logits are capped");
    v("alibi", &AttentionConfig::alibi, anyValue, "logits lose a slope times |p - j|");
    v("sink", &AttentionConfig::sink, anyValue, "one more logit of each head, without a value");
    v("bias", &AttentionConfig::bias, anyValue, "the type of what is added to logits");
    v("biasOfRows", &AttentionConfig::biasOfRows, anyValue, "the bias is not the same for all rows");
    v("biasOfKeys", &AttentionConfig::biasOfKeys, anyValue, "the bias is not the same for all keys");
    v("dropout", &AttentionConfig::dropout, anyValue, "some probabilities are left out, others grow");
    v("packedQ", &AttentionConfig::packedQ, anyValue,
      "cu_q says where each sequence starts in q and o, [T, heads, dim]");
    v("packedK", &AttentionConfig::packedK, anyValue, "cu_k: the same of k and v");
    v("usedQ", &AttentionConfig::usedQ, anyValue, "used_q: rows of each sequence that count");
    v("usedK", &AttentionConfig::usedK, anyValue, "used_k: keys that count");
    v("descaleQ", &AttentionConfig::descaleQ, anyValue, "q_descale: what q is to be multiplied by");
    v("descaleK", &AttentionConfig::descaleK, anyValue, "k_descale: the same of k");
    v("descaleV", &AttentionConfig::descaleV, anyValue, "v_descale: the same of v");
    v("lse", &AttentionConfig::lse, anyValue, "lse is an output");
    v("persistent", &AttentionConfig::persistent, anyValue,
      "programs take tile after tile, as far apart as there are programs");
    v("hooks", &AttentionConfig::hooks, anyValue, "functions of the caller, and lists of blocks");
  }
};

/// How hard the assembler is to optimise: 1 where that was measured to be as fast (H200), 3 elsewhere.  These take the
/// longest of all; level 1 saves a third of it.
int assemblerLevel(const AttentionConfig &config);

/// What head dims are multiples of, so that 16 bytes of a row are wholly inside it or wholly outside: 8, of 8-bit
/// floats 16.
constexpr std::int64_t headDimUnit(DType element) {
  return element == DType::F8E4M3 ? 16 : 8;
}

/// The type of o.
constexpr DType outputOf(DType element) {
  return element == DType::F8E4M3 ? DType::BF16 : element;
}

/// f16, bf16 or f8e4m3 (o is bf16 then).  Arguments by name: q and o [batch, row, key head, member of its group, dim],
/// k and v [batch, row, key head, dim], lse [batch, head, row], sink [head], alibi [batch, head], cu_q, cu_k [batch +
/// 1], used_q, used_k [batch], q_descale, k_descale, v_descale [batch, key head] (the last ten may be left out); and
/// the numbers of the call; with a bias or dropout (PairOptions.h) the bias, [batch, head, row, key] (extents of 1
/// where it is the same for all rows or keys), and dropout's numbers; and what hooks have (AttentionHooks::tensors).
/// Packed tensors have one batch.
language::Kernel attention(DType element, const AttentionConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTION_H
