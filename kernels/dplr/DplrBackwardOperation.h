//===- DplrBackwardOperation.h - Gradients of the DPLR delta rule and of RWKV7 ----===//
#ifndef KILN_KERNELS_DPLR_DPLRBACKWARDOPERATION_H
#define KILN_KERNELS_DPLR_DPLRBACKWARDOPERATION_H

#include "kernels/dplr/DplrOperation.h"

namespace kiln::kernels {

/// Gradients of a loss whose gradient by o is dO, and by the last state dFinal; inputs as of DplrArguments.  Everything
/// else is computed again.  dq, dk, da, db have q's shape and type, dv v's, dg g's.  Sums and states are fp32.
/// Specification "DPLR delta rule and RWKV7", S3.3 and S3.4.
struct DplrBackwardArguments {
  Tensor q, k, v, a, b, g;
  Tensor dO; ///< [B, T, H, V], of v's type
  Tensor dq, dk, dv, da, db, dg; ///< out
  std::optional<Tensor> initialState = {};
  std::optional<Tensor> dFinal = {}; ///< [N, H, K, V], f32 or of q's type; none: zeros
  std::optional<Tensor> dInitial = {}; ///< out: [N, H, K, V], f32
  std::optional<Tensor> cuSeqlens = {};
  std::optional<float> scale = {}; ///< none: 1 / sqrt(K); of RWKV7: 1
  bool safeGate = false;
  std::optional<float> lowerBound = {};
  std::int64_t chunkSize = 0;
};

class DplrBackwardOperation : public Operation<DplrBackwardArguments> {
public:
  /// `rwkv7`: messages call q `r`, g `w`, and scale is 1 if none is given.
  explicit DplrBackwardOperation(Jit &jit, bool rwkv7 = false)
      : Operation(jit), words(rwkv7 ? DplrWords{"rwkv7_backward", "r", "w"} : DplrWords{"dplr_backward", "q", "g"}),
        rwkv7(rwkv7) {}
  std::string_view name() const override { return words.operation; }
  Status check(const DplrBackwardArguments &arguments) const override;

protected:
  Status plan(const DplrBackwardArguments &arguments, Plan &plan) const override;

private:
  DplrInputs inputsOf(const DplrBackwardArguments &arguments) const;
  DplrWords words;
  bool rwkv7;
  mutable KernelTable<std::pair<DType, DplrConfig>> maps, chains, grads;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRBACKWARDOPERATION_H
