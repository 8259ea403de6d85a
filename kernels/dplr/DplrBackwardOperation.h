//===- DplrBackwardOperation.h - Gradients of chunked linear attention with a state --===//
//
// Of a loss whose gradient by o is dO, and by the last state dFinal, for every rule of DplrOperation.h.  What
// the forward call knew is computed again, or taken from where that call saved it.  Gradients have the shape and type
// of what they are of; sums and states are fp32. Specification "DPLR delta rule and RWKV7", S3.3 and S3.4.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DPLRBACKWARDOPERATION_H
#define KILN_KERNELS_DPLR_DPLRBACKWARDOPERATION_H

#include "kernels/dplr/ChunkOptions.h"
#include "kernels/dplr/KeptChunks.h"
#include "kernels/dplr/Segments.h"
#include "kernels/support/CallWords.h"

namespace kiln::kernels {

/// Inputs as of DplrArguments.
struct DplrBackwardArguments {
  Tensor q, k, v, a, b;
  std::optional<Tensor> g;
  Tensor dO;                 ///< [B, T, H, V], of v's type
  Tensor dq, dk, dv, da, db; ///< out
  std::optional<Tensor> dg;  ///< out; with g
  std::optional<Tensor> initialState = {};
  std::optional<Tensor> dFinal = {};   ///< [N, H, K, V], f32 or of q's type; none: zeros
  std::optional<Tensor> dInitial = {}; ///< out: [N, H, K, V], f32
  std::optional<Tensor> cuSeqlens = {};
  std::optional<float> scale = {}; ///< none: 1 / sqrt(K); of RWKV7: 1
  bool safeGate = false;
  std::optional<float> lowerBound = {};
  std::int64_t chunkSize = 0;
  ChunkTiling tiling = {};
  /// Chunks of a segment, a power of two: longer sequences are walked along in segments side by side (Dplr.h; up to
  /// 128 columns).  0: chosen.  Rounding is all that differs.
  std::int64_t segmentSize = 0;
  /// What the forward call with the same inputs and options saved (DplrArguments); none: it is made again.
  std::optional<Tensor> saved = {};

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) { chunkOptions(a, v); }
};

/// Inputs as of DeltaRuleArguments, the rest as of DplrBackwardArguments.
struct DeltaRuleBackwardArguments {
  Tensor q, k, v, beta;
  std::optional<Tensor> g;
  Tensor dO;
  Tensor dq, dk, dv, dBeta; ///< out
  std::optional<Tensor> dg; ///< out; with g
  std::optional<Tensor> initialState = {}, dFinal = {}, dInitial = {}, cuSeqlens = {};
  std::optional<float> scale = {};
  bool safeGate = false;
  std::optional<float> lowerBound = {};
  std::int64_t chunkSize = 0;
  ChunkTiling tiling = {};
  std::int64_t segmentSize = 0;
  std::optional<Tensor> saved = {};

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) { chunkOptions(a, v); }
};

/// Inputs as of LinearAttentionArguments, the rest as of DplrBackwardArguments.
struct LinearAttentionBackwardArguments {
  Tensor q, k, v;
  std::optional<Tensor> g;
  Tensor dO;
  Tensor dq, dk, dv;        ///< out
  std::optional<Tensor> dg; ///< out; with g
  std::optional<Tensor> initialState = {}, dFinal = {}, dInitial = {}, cuSeqlens = {};
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
struct ChunkBackwardCall {
  DplrInputs in;
  Tensor dO, dq, dk, dv, da, db, dBeta;
  std::optional<Tensor> dg, dFinal, dInitial, saved;
};
ChunkBackwardCall backwardCallOf(const DplrBackwardArguments &arguments);
ChunkBackwardCall backwardCallOf(const DeltaRuleBackwardArguments &arguments);
ChunkBackwardCall backwardCallOf(const LinearAttentionBackwardArguments &arguments);

class ChunkBackward {
public:
  /// `scale`: if a call gives none; none: 1 / sqrt(K).
  ChunkBackward(Jit &jit, DplrWords words, std::optional<float> scale) : words(words), jit(jit), scale(scale) {}
  Status check(ChunkBackwardCall call) const;
  Status plan(ChunkBackwardCall call, Plan &plan) const;
  /// In words (CallWords.h).
  std::optional<std::string> callText(const ChunkBackwardCall &call, OptionValues options) const;

  const DplrWords words;

private:
  Jit &jit;
  const std::optional<float> scale;
  mutable TunedTable<DplrConfig, ChunkTiling> tuned;
  mutable KernelTable<DplrConfig> maps, chains, valueGrads, grads;
  mutable SegmentKernels segmentKernels;
};

template <typename Arguments> class ChunkBackwardOperation : public Operation<Arguments> {
public:
  ChunkBackwardOperation(Jit &jit, DplrWords words, std::optional<float> scale = {})
      : Operation<Arguments>(jit), backward(jit, words, scale) {}
  std::string_view name() const override { return backward.words.operation; }
  Status check(const Arguments &arguments) const override { return backward.check(backwardCallOf(arguments)); }

protected:
  Status plan(const Arguments &arguments, Plan &plan) const override {
    return backward.plan(backwardCallOf(arguments), plan);
  }
  std::optional<std::string> callText(const Arguments &arguments) const override {
    return backward.callText(backwardCallOf(arguments), optionValuesOf(arguments));
  }

private:
  ChunkBackward backward;
};

/// `words`: what messages say.
struct DplrBackwardOperation : ChunkBackwardOperation<DplrBackwardArguments> {
  explicit DplrBackwardOperation(Jit &jit, DplrWords words = {"dplr_backward"}) : ChunkBackwardOperation(jit, words) {}
};
/// Of RWKV7: q is r, g is w, scale 1 if none is given.
struct Rwkv7BackwardOperation : ChunkBackwardOperation<DplrBackwardArguments> {
  explicit Rwkv7BackwardOperation(Jit &jit) : ChunkBackwardOperation(jit, {"rwkv7_backward", "r", "w"}, 1.0f) {}
  Status check(const DplrBackwardArguments &arguments) const override {
    if (!arguments.g)
      return Status::invalid("rwkv7_backward: argument 'w' is missing", "give the log decays");
    return ChunkBackwardOperation::check(arguments);
  }
};
struct DeltaRuleBackwardOperation : ChunkBackwardOperation<DeltaRuleBackwardArguments> {
  explicit DeltaRuleBackwardOperation(Jit &jit, DplrWords words = {"delta_rule_backward"})
      : ChunkBackwardOperation(jit, words) {}
};
struct LinearAttentionBackwardOperation : ChunkBackwardOperation<LinearAttentionBackwardArguments> {
  explicit LinearAttentionBackwardOperation(Jit &jit, DplrWords words = {"linear_attention_backward"})
      : ChunkBackwardOperation(jit, words) {}
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRBACKWARDOPERATION_H
