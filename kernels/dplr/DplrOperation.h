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

/// What every operation of the rule reads, under the names of DplrArguments.
struct DplrInputs {
  Tensor q, k, v, a, b, g;
  std::optional<Tensor> initialState = {}, cuSeqlens = {};
  std::optional<float> scale = {};
  bool safeGate = false;
  std::optional<float> lowerBound = {};
  std::int64_t chunkSize = 0;

  std::int64_t batch() const { return q.shape[0]; }
  std::int64_t tokens() const { return q.shape[1]; }
  std::int64_t heads() const { return q.shape[2]; }
  std::int64_t dim() const { return q.shape[3]; }
  std::int64_t dimV() const { return v.shape[3]; }
  std::int64_t sequences() const { return cuSeqlens ? cuSeqlens->shape[0] - 1 : batch(); }
};

/// What operations call themselves, q and g.
struct DplrWords {
  const char *operation, *q, *g;
};

Status checkInputs(const Device &device, const DplrWords &words, const DplrInputs &inputs);
/// An output that has the shape of an input, and of no input the memory.
Status checkOutput(const Device &device, const DplrWords &words, const DplrInputs &inputs, const char *name,
                   const Tensor &tensor, const char *like, const Tensor &likeTensor);
/// A state [N, H, K, V] that is read (of `types`) or written (f32).
Status checkState(const Device &device, const DplrWords &words, const DplrInputs &inputs, const char *name,
                  const Tensor &state, std::initializer_list<DType> types, bool isOutput);
/// The tiles, by extents and the device; never by the number of tokens.
DplrConfig configOf(const Device &device, const DplrInputs &inputs);
/// Slots of chunks (Chunks.h).
std::int64_t slotsOf(const DplrInputs &inputs, int chunk);
/// A part of a workspace: [heads, rows, columns], dense.
Tensor workspaceTensor(DeviceAddress address, DType dtype, std::int64_t heads, std::int64_t rows, std::int64_t columns);
/// The same as [heads, slots, rows of a slot, columns].
Tensor bySlot(const Tensor &part, std::int64_t slots);
float scaleOf(const DplrInputs &inputs);

/// What both forward operations share.
class DplrPlanner {
public:
  DplrPlanner(Jit &jit, DplrWords words) : jit(jit), words(words) {}
  Status check(const DplrArguments &arguments) const;
  Status plan(const DplrArguments &arguments, Plan &plan) const;

private:
  static DplrInputs inputsOf(const DplrArguments &arguments);
  Jit &jit;
  DplrWords words;
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
