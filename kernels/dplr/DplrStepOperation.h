//===- DplrStepOperation.h - The DPLR delta rule and RWKV7 token by token, as users call them --===//
//
// Forward only, one launch without a workspace: for decoding, where a call has one or a few tokens.  Long prompts are
// for DplrOperation.h, whose last state is a first state here.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DPLRSTEPOPERATION_H
#define KILN_KERNELS_DPLR_DPLRSTEPOPERATION_H

#include "kernels/dplr/DplrOperation.h"
#include "kernels/dplr/DplrStep.h"

namespace kiln::kernels {

/// The recurrence and the shapes of DplrArguments, with activations of f32, too, and any number of columns of v.  K up
/// to 256.  Sums and the state are fp32.  o has memory of its own.
struct DplrStepArguments {
  Tensor q, k, v, a, b, g, o;
  std::optional<Tensor> initialState = {}; ///< [N, H, K, V], f32, f16, bf16; none: zeros
  /// Out: [N, H, K, V], f32, or 16 bits wide: then of the type of the first state, if that is given.  It may be the
  /// first state itself, so that a decoder keeps its state in place; of 16 bits, the state is rounded after every call.
  std::optional<Tensor> finalState = {};
  std::optional<Tensor> cuSeqlens = {}; ///< as of DplrArguments
  std::optional<float> scale = {};      ///< none: 1 / sqrt(K)

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v, const char *scale = scaleText) {
    v(CallOption{"scale", scale}, a.scale);
  }
};

/// As DplrStepArguments, with RWKV7's names: q = r, g = w (log decays).  Scale is 1 if none is given, as of the chunked
/// form; FLA's fused_recurrent_rwkv7 takes 1 / sqrt(K) there.
struct Rwkv7StepArguments {
  Tensor r, w, k, v, a, b, o;
  std::optional<Tensor> initialState = {}, finalState = {}, cuSeqlens = {};
  std::optional<float> scale = {};
};

/// What both operations share.
class DplrStepPlanner {
public:
  DplrStepPlanner(Jit &jit, DplrWords words) : jit(jit), words(words) {}
  Status check(const DplrStepArguments &arguments) const;
  Status plan(const DplrStepArguments &arguments, Plan &plan) const;

private:
  Jit &jit;
  DplrWords words;
  mutable KernelTable<DplrStepConfig> kernels;
};

class DplrStepOperation : public Operation<DplrStepArguments> {
public:
  explicit DplrStepOperation(Jit &jit) : Operation(jit), shared(jit, {"dplr_step", "q", "g"}) {}
  std::string_view name() const override { return "dplr_step"; }
  Status check(const DplrStepArguments &arguments) const override { return shared.check(arguments); }

protected:
  Status plan(const DplrStepArguments &arguments, Plan &plan) const override { return shared.plan(arguments, plan); }

private:
  DplrStepPlanner shared;
};

class Rwkv7StepOperation : public Operation<Rwkv7StepArguments> {
public:
  explicit Rwkv7StepOperation(Jit &jit) : Operation(jit), shared(jit, {"rwkv7_step", "r", "w"}) {}
  std::string_view name() const override { return "rwkv7_step"; }
  Status check(const Rwkv7StepArguments &arguments) const override { return shared.check(asDplr(arguments)); }
  static DplrStepArguments asDplr(const Rwkv7StepArguments &arguments);

protected:
  Status plan(const Rwkv7StepArguments &arguments, Plan &plan) const override {
    return shared.plan(asDplr(arguments), plan);
  }

private:
  DplrStepPlanner shared;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRSTEPOPERATION_H
