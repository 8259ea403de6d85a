//===- AttentionDecode.h - Attention over a cache of keys and values ------------===//
//
// The kernel of a decoder's step: few queries of each sequence, many keys that lie in a cache, contiguous or in pages.
// The query heads of a group are rows of one tile, so that keys and values are read once for all of them:
//
//   row r of a key head's tile = token r / group, member r % group of its heads
//
// The keys of a sequence are its cached ones, 0 .. n - 1, and then the new ones of this call.  A program computes the
// new keys that it needs itself, from k_new, and each new row is written to the cache by one program: nothing that a
// launch writes is read in it.  Where the copy engine fetches the cache a launch of its own writes them before
// (AttentionAppend.h), and they are cached keys.
//
// With `split` programs share the keys of a row: each leaves what it has as fp32, and SplitCombine.h puts it together.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODE_H
#define KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODE_H

#include "kernels/support/Configuration.h"

namespace kiln::kernels {

/// Where the rows of a sequence lie in the cache: one after the other; in pages, a tile of keys wholly in one of them;
/// in pages, each row looked up by itself.
enum class CachePlace : std::uint8_t { Rows, Pages, Gathered };
template <> inline constexpr std::array<std::string_view, 3> words<CachePlace> = {"rows", "pages", "gathered"};

/// Columns that are rotated together: t and t + half of them, or 2 t and 2 t + 1.
enum class RotaryPairs : std::uint8_t { Halves, Neighbours };
template <> inline constexpr std::array<std::string_view, 2> words<RotaryPairs> = {"halves", "neighbours"};

/// Grid [ceil(queries * group / blockM) * splits * key heads * batch].
struct AttentionDecodeConfig {
  int blockM = 16, blockN = 64, blockNew = 0;
  int warps = 4, stages = 3;
  int dim = 128, dimV = 128, group = 1;
  CachePlace place = CachePlace::Rows;
  int pageSize = 0;
  bool lengths = false, batchIndex = false, leftPad = false;
  int rotary = 0;
  RotaryPairs pairs = RotaryPairs::Halves;
  DType angles = DType::F32;
  bool left = false, right = false;
  bool softcap = false, alibi = false, sink = false;
  bool descaleQ = false, descaleK = false, descaleV = false;
  bool lse = false, split = false, fromEnd = false, appended = false, checked = false;
  bool operator==(const AttentionDecodeConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    using C = AttentionDecodeConfig;
    v("blockM", &C::blockM, powersOfTwo(16, 256).tuned(), "rows of a program: tokens of all heads of a group");
    v("blockN", &C::blockN, powersOfTwo(16, 256).tuned(), "cached keys of a step");
    v("blockNew", &C::blockNew, powersOfTwo(16, 256).orChosen(), "new keys of a step; 0: a call has none");
    v("warps", &C::warps, powersOfTwo(1, 32).tuned().ofLaunch(), "of a program");
    v("stages", &C::stages, between(1, 8).tuned().ofLaunch(), "tiles of k and v that are in flight");
    v("dim", &C::dim, multiplesOf(8, 256), "tile width of q and k: at least their head dim, which is an argument");
    v("dimV", &C::dimV, multiplesOf(8, 256), "tile width of v and o");
    v("group", &C::group, between(1, 1 << 16), "query heads of a key head");
    v("place", &C::place, anyValue, "where rows lie in the cache");
    v("pageSize", &C::pageSize, between(0, 1 << 29), "rows of a page, of gathered ones; an argument otherwise");
    v("lengths", &C::lengths, anyValue, "cache_seqlens: cached keys of each sequence; else all that there is room for");
    v("batchIndex", &C::batchIndex, anyValue, "cache_batch_idx: where each sequence lies in the cache");
    v("leftPad", &C::leftPad, anyValue, "leftpad_k: rows of the cache before each sequence's first key");
    v("rotary", &C::rotary, multiplesOf(16, 256).orChosen(), "columns of q and k_new that are rotated");
    v("pairs", &C::pairs, anyValue, "which columns are rotated together");
    v("angles", &C::angles, anyValue, "type of the cosines and sines: f32 or q's");
    v("left", &C::left, anyValue, "keys before p - window_left are hidden");
    v("right", &C::right, anyValue, "keys after p + window_right are hidden");
    v("softcap", &C::softcap, anyValue, "logits are capped");
    v("alibi", &C::alibi, anyValue, "logits lose a slope times |p - j|");
    v("sink", &C::sink, anyValue, "one more logit of each head, without a value");
    v("descaleQ", &C::descaleQ, anyValue, "q_descale: what q is to be multiplied by");
    v("descaleK", &C::descaleK, anyValue, "k_descale: the same of the cache's keys and of k_new");
    v("descaleV", &C::descaleV, anyValue, "v_descale: the same of values");
    v("lse", &C::lse, anyValue, "lse is an output");
    v("split", &C::split, anyValue, "programs share the keys of a row");
    v("fromEnd", &C::fromEnd, anyValue, "blocks of cached rows are counted back from the last key, not on from row 0");
    v("appended", &C::appended, anyValue, "the rows of k_new are in the cache: a launch before this one wrote them");
    v("checked", &C::checked, anyValue, "entries of tables that cannot be stop the kernel");
  }
};

/// f16, bf16 or f8e4m3 (o is bf16 then, and nothing is rotated).  Arguments by name: q and o [batch, token, key head,
/// member of its group, dim]; k and v, the cache: [batch, row, key head, dim], or [page, row, key head, dim] with
/// page_table [batch, pages of a sequence]; k_new and v_new [batch, token, key head, dim]; rotary_cos and rotary_sin
/// [position, rotary / 2]; lse [batch, head, token], sink [head], alibi [batch, head], q_descale, k_descale, v_descale
/// [batch, key head], cache_seqlens, cache_batch_idx, leftpad_k [batch]; with `split` partial_o [batch * key heads,
/// split, row, dim] and partial_lse [batch * key heads, split, row].
language::Kernel attentionDecode(DType element, const AttentionDecodeConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODE_H
