//===- DplrOperation.h - The chunked DPLR delta rule and RWKV7, as users call them --===//
#ifndef KILN_KERNELS_DPLR_DPLROPERATION_H
#define KILN_KERNELS_DPLR_DPLROPERATION_H

#include "kernels/dplr/Dplr.h"
#include "kernels/support/KernelTable.h"

#include <optional>

namespace kiln::kernels {

/// For each sequence and head, with the state S [K, V] and token by token
///
///   S_t = diag(e^{g_t}) S_{t-1} + b_t (S_{t-1}^T a_t)^T + k_t v_t^T      o_t = scale * S_t^T q_t
///
/// q, k, a, b: [B, T, H, K], v and o: [B, T, H, V], f16 or bf16; g: [B, T, H, K], natural log decays <= 0, f32 or of q's
/// type.  Any strides but 1 along the last dimension.  K and V up to 128, T from 0.  Sums and the state are fp32.
/// Specification "DPLR delta rule and RWKV7", S1.
struct DplrArguments {
  Tensor q, k, v, a, b, g, o;
  std::optional<Tensor> initialState = {}; ///< [N, H, K, V], f32, f16, bf16; none: zeros
  std::optional<Tensor> finalState = {};   ///< out: [N, H, K, V], f32
  /// Packed sequences: [N + 1], i32 or i64, where each starts in T; B is 1 then.  Read on the device only.
  std::optional<Tensor> cuSeqlens = {};
  std::optional<float> scale = {}; ///< none: 1 / sqrt(K)
  bool safeGate = false;           ///< promises g >= -5
  std::optional<float> lowerBound = {}; ///< promises g >= this, below 0
  std::int64_t chunkSize = 0;           ///< 16, 32, 64; 0: chosen.  Results differ by rounding only
};

/// As DplrArguments, with RWKV7's names: q = r, g = w (log decays), scale 1 if none is given.
struct Rwkv7Arguments {
  Tensor r, w, k, v, a, b, o;
  std::optional<Tensor> initialState = {}, finalState = {}, cuSeqlens = {};
  std::optional<float> scale = {};
  bool safeGate = false;
  std::optional<float> lowerBound = {};
  std::int64_t chunkSize = 0;
};

/// What both operations share; `names`: what their callers call q and g.
class DplrPlanner {
public:
  struct Names {
    const char *operation, *q, *g;
  };
  DplrPlanner(Jit &jit, Names names) : jit(jit), names(names) {}
  Status check(const DplrArguments &arguments) const;
  Status plan(const DplrArguments &arguments, Plan &plan) const;

private:
  DplrConfig configOf(const DplrArguments &arguments) const;
  Jit &jit;
  Names names;
  mutable KernelTable<std::pair<DType, DplrConfig>> maps, outs;
};

class DplrOperation : public Operation<DplrArguments> {
public:
  explicit DplrOperation(Jit &jit) : Operation(jit), shared(jit, {"dplr", "q", "g"}) {}
  std::string_view name() const override { return "dplr"; }
  Status check(const DplrArguments &arguments) const override { return shared.check(arguments); }

protected:
  Status plan(const DplrArguments &arguments, Plan &plan) const override { return shared.plan(arguments, plan); }

private:
  DplrPlanner shared;
};

class Rwkv7Operation : public Operation<Rwkv7Arguments> {
public:
  explicit Rwkv7Operation(Jit &jit) : Operation(jit), shared(jit, {"rwkv7", "r", "w"}) {}
  std::string_view name() const override { return "rwkv7"; }
  Status check(const Rwkv7Arguments &arguments) const override { return shared.check(asDplr(arguments)); }
  static DplrArguments asDplr(const Rwkv7Arguments &arguments);

protected:
  Status plan(const Rwkv7Arguments &arguments, Plan &plan) const override {
    return shared.plan(asDplr(arguments), plan);
  }

private:
  DplrPlanner shared;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLROPERATION_H
