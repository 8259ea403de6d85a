//===- AttentionDecodeOperation.h - Attention over a cache, as users call it ----===//
//
// A decoder's step, or a chunk of a prompt: the queries are the last tokens of their sequences, whose keys and values
// lie in a cache.  One launch; one more where programs share the keys of a row, and one before where the copy engine
// fetches the cache and new rows go into it.  Lengths are read on the device, and nothing
// of a launch depends on them: a call can be captured in a graph.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODEOPERATION_H
#define KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODEOPERATION_H

#include "kernels/attention/AttentionOperation.h"
#include "kernels/attention_decode/AttentionDecode.h"
#include "kernels/attention_decode/SplitCombine.h"

namespace kiln::kernels {

/// q: [B, Sq, H, D], or with split heads [B, Sq, Hk, H / Hk, D]; o as q with Dv columns; f16, bf16 or f8e4m3 (o is bf16
/// then), any strides but 1 along the last dimension.  D and Dv are multiples of 8 up to 256, of f8e4m3 of 16.
struct AttentionDecodeArguments {
  Tensor q;
  /// The cache: [B or more, capacity, Hk, D] and [.., Dv]; or with a page table [pages, page size, Hk, D].
  Tensor kCache, vCache;
  Tensor o;                       ///< out
  std::optional<Tensor> lse = {}; ///< out: f32 [B, H, Sq]; natural logarithm, with the sink
  /// i32 [B]: keys that lie in the cache.  None: as many as there is room for.
  std::optional<Tensor> cacheSeqlens = {};
  /// [B, Snew, Hk, D] and [.., Dv]: keys and values of new tokens, which come after the cached ones.  They are attended
  /// to, and written to the cache, which has room for them.  Together with cacheSeqlens, which stays as it is.
  std::optional<Tensor> kNew = {}, vNew = {};
  /// [n, r / 2], f32 or q's type: token t of k_new is rotated by row cacheSeqlens + t, and so is token t of q; without
  /// a mask by row cacheSeqlens.  r is a multiple of 16 up to D; n is at least the largest number
  /// of keys, and with a mask and more queries than new tokens so many more.
  std::optional<Tensor> rotaryCos = {}, rotarySin = {};
  bool rotaryInterleaved = false; ///< columns 2 t and 2 t + 1 are rotated together; else t and t + r / 2
  /// i32 [B, pages of a sequence]: the page of its rows t page size, ..  Entries of pages without a row that counts are
  /// not looked at.  Of others a wrong one reads other memory, if the call is not `checked`.
  std::optional<Tensor> pageTable = {};
  std::optional<Tensor> cacheBatchIdx = {}; ///< i32 [B]: where each sequence lies in the cache; without pages
  /// i32 [B]: rows of each sequence's part of the cache before its first key.  Lengths and positions do not count them.
  std::optional<Tensor> leftPadK = {};
  std::optional<float> scale = {};                ///< of the scores; none: 1 / sqrt(D)
  bool causal = false;                            ///< a right window of 0; the last query stands at the last key
  std::int64_t windowLeft = -1, windowRight = -1; ///< keys on each side that a query sees; -1: all
  float softcap = 0;                              ///< scores become softcap * tanh(score / softcap); 0: they stay
  std::optional<Tensor> sink = {};                ///< f32 [H]: a logit of each head that has no value
  std::optional<Tensor> alibi = {};               ///< f32 [H] or [B, H]: slopes
  /// f8e4m3: f32 [B, Hk], what the numbers of q, of the keys and of the values are to be multiplied by, new ones
  /// included; none: 1.  q's times k's must not be below 0: then the results are NaN.
  std::optional<Tensor> descaleQ = {}, descaleK = {}, descaleV = {};
  /// An upper bound of a sequence's keys, new ones included, from which the number of splits is chosen; 0: the room.
  std::int64_t maxKeys = 0;
  std::int64_t splits = 0; ///< programs that share the keys of a row, 1 to 256; 0: chosen
  /// Entries of tables that cannot be stop the kernel with a message, in place of being cut or reading other memory.
  bool checked = false;
  Tiling tiling = {}; ///< blockM: rows, tokens of all heads of a group; blockN: cached keys of a step

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) {
    v(CallOption{"causal", "a query sees no key after its own; the last one stands at the last key"}, a.causal);
    v(CallOption{"window_left", "L,R: keys on each side that a query sees; -1: all", {}, "window"}, a.windowLeft);
    v(CallOption{"window_right", "", {}, "window"}, a.windowRight);
    v(CallOption{"softcap", "scores become X tanh(score / X); 0: they stay"}, a.softcap);
    v(CallOption{"scale", "of the scores; default 1 / sqrt(D)"}, a.scale);
    v(CallOption{"rotary_interleaved", "columns 2 t and 2 t + 1 are rotated together, not t and t + r / 2"},
      a.rotaryInterleaved);
    v(CallOption{"max_keys", "an upper bound of a sequence's keys, for the choice of splits; 0: the room"}, a.maxKeys);
    v(CallOption{"splits", "programs that share the keys of a row, 1 to 256; 0: chosen", 3}, a.splits);
    v(CallOption{"checked", "entries of tables that cannot be stop the kernel with a message"}, a.checked);
    Tiling::options(a.tiling, v, /*depth=*/false);
  }
};

class AttentionDecodeOperation : public Operation<AttentionDecodeArguments> {
public:
  using Operation::Operation;
  std::string_view name() const override { return "attention_decode"; }
  Status check(const AttentionDecodeArguments &arguments) const override;
  /// Programs that share the keys of a row, for arguments that `check` accepts.
  Result<std::int64_t> splitsOf(const AttentionDecodeArguments &arguments) const;

protected:
  Status plan(const AttentionDecodeArguments &arguments, Plan &plan) const override;
  std::optional<std::string> callText(const AttentionDecodeArguments &arguments) const override;

private:
  /// The code for a call, with what the caller leaves open chosen, but for `split`.
  Result<AttentionDecodeConfig> configOf(const AttentionDecodeArguments &arguments) const;
  /// Of a tiling that somebody gave.
  Status checkTiles(const AttentionDecodeArguments &arguments, const AttentionDecodeConfig &config) const;
  Status planAppend(const AttentionDecodeArguments &arguments, const AttentionDecodeConfig &call, Plan &plan) const;

  mutable KernelTable<AttentionDecodeConfig> variants, appends;
  mutable KernelTable<SplitCombineConfig> combines;
  mutable TunedTable<AttentionDecodeConfig> tuned;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DECODE_ATTENTIONDECODEOPERATION_H
