//===- DplrOperation.h - Chunked linear attention with a state, as users call it --===//
//
// Three kinds of rules of one family (Rule.h), forward: Dplr (with RWKV7 under its own names, IPLR without gates),
// DeltaRule (gated delta rule, KDA), LinearAttention (GLA, simple GLA).  Backward: DplrBackwardOperation.h; token by
// token: DplrStepOperation.h.  Specification "DPLR delta rule and RWKV7", S1 and S7.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DPLROPERATION_H
#define KILN_KERNELS_DPLR_DPLROPERATION_H

#include "kernels/dplr/ChunkOptions.h"
#include "kernels/dplr/KeptChunks.h"
#include "kernels/dplr/Segments.h"
#include "kernels/support/CallWords.h"

namespace kiln::kernels {

/// For each sequence and head, with the state S [K, V] and token by token
///
///   S_t = diag(e^{g_t}) S_{t-1} + b_t (S_{t-1}^T a_t)^T + k_t v_t^T      o_t = scale * S_t^T q_t
///
/// q, k, a, b: [B, T, H, K], v and o: [B, T, H, V], f16 or bf16; g: [B, T, H, K], natural log decays <= 0, f32 or of
/// q's type.  Any strides but 1 along the last dimension.  K and V up to 256, T from 0.  Sums and the state are fp32.
struct DplrArguments {
  Tensor q, k, v, a, b;
  std::optional<Tensor> g; ///< none: nothing decays (IPLR)
  Tensor o;
  std::optional<Tensor> initialState = {}; ///< [N, H, K, V], f32, f16, bf16; none: zeros
  std::optional<Tensor> finalState = {};   ///< out: [N, H, K, V], f32
  /// Packed sequences: [N + 1], i32 or i64, where each starts in T; B is 1 then.  Read on the device only: others give
  /// wrong results, but no access out of bounds.
  std::optional<Tensor> cuSeqlens = {};
  std::optional<float> scale = {};      ///< none: 1 / sqrt(K)
  bool safeGate = false;                ///< promises g >= -5
  std::optional<float> lowerBound = {}; ///< promises g >= this, below 0
  std::int64_t chunkSize = 0;           ///< 16, 32, 64; 0: chosen.  Rounding is all that differs
  ChunkTiling tiling = {};
  /// Chunks of a segment, a power of two: longer sequences are walked along in segments side by side (Dplr.h; up to
  /// 128 columns).  0: chosen.  Rounding is all that differs.
  std::int64_t segmentSize = 0;
  /// Out: what the backward call with the same inputs and options takes in place of making it again, in [savedBytes] of
  /// u8 (KeptChunks.h).
  std::optional<Tensor> saved = {};

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) { chunkOptions(a, v); }
};

/// As DplrArguments, with RWKV7's names: q = r, g = w (log decays), scale 1 if none is given.
struct Rwkv7Arguments {
  Tensor r, w, k, v, a, b, o;
  std::optional<Tensor> initialState = {}, finalState = {}, cuSeqlens = {};
  std::optional<float> scale = {};
  bool safeGate = false;
  std::optional<float> lowerBound = {};
  std::int64_t chunkSize = 0;
  ChunkTiling tiling = {};
  std::int64_t segmentSize = 0;
  std::optional<Tensor> saved = {};

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) { chunkOptions(a, v); }
};

/// With the decayed state D_t = diag(e^{g_t}) S_{t-1}
///
///   S_t = D_t + beta_t k_t (v_t - D_t^T k_t)^T      o_t = scale * S_t^T q_t
///
/// g: [B, T, H, K] (KDA), [B, T, H] (gated delta rule), none (delta rule); beta: [B, T, H], f32 or of q's type.  The
/// rest as of DplrArguments.  k is taken as it is: the rule is stable where beta |k|^2 is at most 2.
struct DeltaRuleArguments {
  Tensor q, k, v, beta;
  std::optional<Tensor> g;
  Tensor o;
  std::optional<Tensor> initialState = {}, finalState = {}, cuSeqlens = {};
  std::optional<float> scale = {};
  bool safeGate = false;
  std::optional<float> lowerBound = {};
  std::int64_t chunkSize = 0;
  ChunkTiling tiling = {};
  std::int64_t segmentSize = 0;
  std::optional<Tensor> saved = {};

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) { chunkOptions(a, v); }
};

///   S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T      o_t = scale * S_t^T q_t
///
/// g: [B, T, H, K] (GLA), [B, T, H] (simple GLA, the SSD of Mamba 2), none (linear attention).  The rest as of
/// DplrArguments.
struct LinearAttentionArguments {
  Tensor q, k, v;
  std::optional<Tensor> g;
  Tensor o;
  std::optional<Tensor> initialState = {}, finalState = {}, cuSeqlens = {};
  std::optional<float> scale = {};
  bool safeGate = false;
  std::optional<float> lowerBound = {};
  std::int64_t chunkSize = 0;
  ChunkTiling tiling = {};
  std::int64_t segmentSize = 0;
  std::optional<Tensor> saved = {};

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) { chunkOptions(a, v); }
};

/// What all of them come down to.
struct ChunkForwardCall {
  DplrInputs in;
  Tensor o;
  std::optional<Tensor> finalState, saved;
};
ChunkForwardCall forwardCallOf(const DplrArguments &arguments);
ChunkForwardCall forwardCallOf(const Rwkv7Arguments &arguments);
ChunkForwardCall forwardCallOf(const DeltaRuleArguments &arguments);
ChunkForwardCall forwardCallOf(const LinearAttentionArguments &arguments);

class ChunkForward {
public:
  ChunkForward(Jit &jit, DplrWords words) : words(words), jit(jit) {}
  Status check(const ChunkForwardCall &call) const;
  Status plan(const ChunkForwardCall &call, Plan &plan) const;
  /// In words (CallWords.h).
  std::optional<std::string> callText(const ChunkForwardCall &call, OptionValues options) const;

  const DplrWords words;

private:
  Jit &jit;
  mutable KernelTable<DplrConfig> maps, outs;
  mutable TunedTable<DplrConfig, ChunkTiling> tuned;
  mutable SegmentKernels segmentKernels;
};

template <typename Arguments> class ChunkOperation : public Operation<Arguments> {
public:
  ChunkOperation(Jit &jit, DplrWords words) : Operation<Arguments>(jit), forward(jit, words) {}
  std::string_view name() const override { return forward.words.operation; }
  /// Of `saved`, for arguments that `check` accepts without it.
  std::int64_t savedBytes(const Arguments &arguments) const { return kernels::savedBytes(forwardCallOf(arguments).in); }
  Status check(const Arguments &arguments) const override { return forward.check(forwardCallOf(arguments)); }

protected:
  Status plan(const Arguments &arguments, Plan &plan) const override {
    return forward.plan(forwardCallOf(arguments), plan);
  }
  std::optional<std::string> callText(const Arguments &arguments) const override {
    return forward.callText(forwardCallOf(arguments), optionValuesOf(arguments));
  }

private:
  ChunkForward forward;
};

/// `words`: what messages say.
struct DplrOperation : ChunkOperation<DplrArguments> {
  explicit DplrOperation(Jit &jit, DplrWords words = {"dplr"}) : ChunkOperation(jit, words) {}
};
struct Rwkv7Operation : ChunkOperation<Rwkv7Arguments> {
  explicit Rwkv7Operation(Jit &jit) : ChunkOperation(jit, {"rwkv7", "r", "w"}) {}
};
struct DeltaRuleOperation : ChunkOperation<DeltaRuleArguments> {
  explicit DeltaRuleOperation(Jit &jit, DplrWords words = {"delta_rule"}) : ChunkOperation(jit, words) {}
};
struct LinearAttentionOperation : ChunkOperation<LinearAttentionArguments> {
  explicit LinearAttentionOperation(Jit &jit, DplrWords words = {"linear_attention"}) : ChunkOperation(jit, words) {}
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLROPERATION_H
