//===- AttentionOperation.h - Flash attention, forward, as users call it --------===//
#ifndef KILN_KERNELS_ATTENTION_ATTENTIONOPERATION_H
#define KILN_KERNELS_ATTENTION_ATTENTIONOPERATION_H

#include "kernels/attention/Attention.h"
#include "kernels/attention/BlockMask.h"
#include "kernels/support/CallOptions.h"
#include "kernels/support/KernelTable.h"
#include "kernels/support/Tiling.h"
#include "kernels/support/TunedTable.h"

#include <optional>

namespace kiln::kernels {

/// Where the diagonal of a mask starts if q and k differ in length: so that the last query sees the last key, or that
/// the first sees the first.
enum class Alignment : std::uint8_t { BottomRight, TopLeft };
template <> inline constexpr std::array<std::string_view, 2> words<Alignment> = {"bottom_right", "top_left"};

/// q: [B, Sq, H, D], or packed [T, H, D]; k: [B, Sk, Hk, D]; v: [B, Sk, Hk, Dv]; o: [B, Sq, H, Dv]; f16, bf16 or
/// f8e4m3 (o is bf16 then), any strides but 1 along the last dimension; H a multiple of Hk.  q and o may split the
/// heads: [.., Hk, H / Hk, D]. D and Dv are multiples of 8 up to 256, of f8e4m3 of 16.  Packed q with a dense k and v,
/// or the other way round, is possible. Tensors that lie in memory otherwise: AttentionLayouts.h.
struct AttentionArguments {
  Tensor q, k, v, o;
  std::optional<Tensor> lse = {};  ///< out: f32 [B, H, Sq], packed [H, T]; natural logarithm, with the sink
  std::optional<float> scale = {}; ///< of the scores; none: 1 / sqrt(D)
  bool causal = false;             ///< a right window of 0
  std::int64_t windowLeft = -1, windowRight = -1; ///< keys on each side that a query sees; -1: all
  Alignment alignment = Alignment::BottomRight;
  /// Where the first row of q stands among the keys, as of a chunk of a prompt whose keys lie in a longer cache: row i
  /// at i + positionOffset, 0 to 2^28, in every sequence.  None: as `alignment` says.
  std::optional<std::int64_t> positionOffset = {};
  float softcap = 0;                ///< scores become softcap * tanh(score / softcap); 0: they stay
  std::optional<Tensor> sink = {};  ///< f32 [H]: a logit of each head that has no value
  std::optional<Tensor> alibi = {}; ///< f32 [H] or [B, H]: slopes
  /// f32, f16 or bf16, of any strides: added to the scores after softcap and slopes.  [B, H, Sq, Sk], each extent may
  /// be 1 instead: the same for all.  Of packed q and k rows and keys count from their sequence's first, to the longest
  /// sequence's last.  Minus infinity hides a key.
  std::optional<Tensor> bias = {};
  /// Of the probabilities a share of dropoutP, in [0, 1), becomes 0, and the others grow by 1 / (1 - dropoutP); lse is
  /// as without.  Which ones follows from the two numbers and the pair alone (Dropout.h).
  float dropoutP = 0;
  std::uint64_t seed = 0, offset = 0;
  /// Packed q and o; k and v: i32 [B + 1], where each sequence starts.  And an upper bound of the queries of one.
  std::optional<Tensor> cuQ = {}, cuK = {};
  std::int64_t maxQueries = 0;
  std::optional<Tensor> usedQ = {}, usedK = {}; ///< i32 [B]: rows of each sequence that count
  /// f8e4m3: f32 [B, Hk], what the numbers of q, k and v are to be multiplied by; none: 1.  q's times k's must not be
  /// below 0: such a head's o is NaN.
  std::optional<Tensor> descaleQ = {}, descaleK = {}, descaleV = {};
  /// Of the caller, over scores and pairs (AttentionFunctions.h); a score function is in place of softcap.
  AttentionFunctions functions = {};
  std::vector<Tensor> aux = {};            ///< what functions read: up to 8, of 1 to 4 dimensions, any strides
  std::optional<BlockMask> blockMask = {}; ///< blocks that are visited; none: all that the built-in mask leaves
  /// What functions read outside of aux, and entries of lists that name no block, stop the kernel with a message in
  /// place of being read as 0 and left out.  None: on emulator devices.
  std::optional<bool> checked = {};
  /// As many programs as run at the same time take tile after tile; of dense sequences.  What is computed is the same.
  /// Of up to 1,024 keys without a mask that is chosen where it is faster.
  bool persistent = false;
  Tiling tiling = {}; ///< blockN: keys of a step

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) {
    definition(a, v);
    v(CallOption{"persistent", "as many programs as run at the same time take tile after tile"}, a.persistent);
    Tiling::options(a.tiling, v, /*depth=*/false);
  }
  /// Those that say what is computed.
  template <typename Self, typename Visitor> static void definition(Self &a, Visitor &&v) {
    v(CallOption{"causal", "a query sees no key after its own"}, a.causal);
    v(CallOption{"align", "where the diagonal starts if q and k differ in length"}, a.alignment);
    v(CallOption{"window_left", "L,R: keys on each side that a query sees; -1: all", {}, "window"}, a.windowLeft);
    v(CallOption{"window_right", "", {}, "window"}, a.windowRight);
    v(CallOption{"position_offset", "where the first row of q stands among the keys, in place of --align", 45},
      a.positionOffset);
    v(CallOption{"softcap", "scores become X tanh(score / X); 0: they stay"}, a.softcap);
    v(CallOption{"scale", "of the scores; default 1 / sqrt(D)"}, a.scale);
    v(CallOption{"checked", "what functions read outside of aux stops the kernel; default: on the emulator"},
      a.checked);
    v(CallOption{"dropout_p", "share of the probabilities that become 0; the others grow by 1 / (1 - P)", 0.17},
      a.dropoutP);
    v(CallOption{"dropout_seed", "with --dropout-offset: which ones become 0"}, a.seed);
    v(CallOption{"dropout_offset", "with --dropout-seed: which ones become 0"}, a.offset);
  }
};

class AttentionOperation : public Operation<AttentionArguments> {
public:
  using Operation::Operation;
  std::string_view name() const override { return "attention"; }
  Status check(const AttentionArguments &arguments) const override;

protected:
  Status plan(const AttentionArguments &arguments, Plan &plan) const override;
  std::optional<std::string> callText(const AttentionArguments &arguments) const override;

private:
  Result<AttentionConfig> configOf(const AttentionArguments &arguments) const;
  /// Of a tiling that somebody gave.
  Status checkTiles(const AttentionArguments &arguments, const AttentionConfig &config) const;

  mutable KernelTable<AttentionConfig> variants;
  mutable TunedTable<AttentionConfig> tuned;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_ATTENTIONOPERATION_H
