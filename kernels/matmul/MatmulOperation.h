//===- MatmulOperation.h - Matrix products, as users call them ----------------===//
#ifndef KILN_KERNELS_MATMUL_MATMULOPERATION_H
#define KILN_KERNELS_MATMUL_MATMULOPERATION_H

#include "kernels/matmul/Matmul.h"
#include "kernels/support/CallOptions.h"
#include "kernels/support/KernelTable.h"
#include "kernels/support/Tiling.h"
#include "kernels/support/TunedTable.h"

#include <optional>
#include <span>

namespace kiln::kernels {

/// out = epilogue(activation(scale * a x b + bias)).  a: [M, K], b: [K, N], out: [M, N], each with a batch in front or
/// not (one without serves every batch); any strides, those of out without repetition.
///
/// | a and b | out |
/// |---|---|
/// | f16, bf16, f32 | the same type, or f32 |
/// | e4m3, e5m2 | f32, f16, bf16 |
/// | i8 | i32; no bias, scale, activation or epilogue |
///
/// Splitting K occupies a GPU that few tiles of out do not: `splits` programs sum a part of K each, and a second launch
/// adds the parts and runs the epilogue.  The workspace holds the parts in fp32 (i8: i32): splits x batch x M x N,
/// added in order, so that every run gives the same bits; or, if `deterministic` is false, one batch x M x N, to which
/// the parts are added atomically in whatever order they come.
struct MatmulArguments {
  Tensor a, b, out;
  std::optional<Tensor> bias = {}; ///< [N], of out's type
  float scale = 1;
  Activation activation = Activation::None;
  language::Precision precision = language::Precision::Ieee; ///< of f32
  std::int64_t splits = 1;                                   ///< 1 to 256; 0: as many as keep every multiprocessor busy
  bool deterministic = true;                                 ///< of split products; the others always are
  std::optional<Tensor> other = {};                          ///< what the caller's epilogue reads: as out, any strides
  Tiling tiling = {};                                        ///< of the product
  std::int64_t programs =
      0; ///< at most so many, each of which takes tile after tile; 0: chosen.  Not of split products

  template <typename Self, typename Visitor> static void options(Self &a, Visitor &&v) {
    v(CallOption{"scale", "of the product"}, a.scale);
    v(CallOption{"activation", "after scale and bias"}, a.activation);
    v(CallOption{"precision", "of f32"}, a.precision);
    v(CallOption{"splits", "programs that share K; 0: as many as keep the GPU busy"}, a.splits);
    v(CallOption{"programs", "at most so many, each of which takes tile after tile; 0: chosen"}, a.programs);
    Tiling::options(a.tiling, v);
  }
};

/// Of tiles of a and b that a program has in flight.
inline std::uint64_t bytesOfStage(DType operands, const Tiling &tiles) {
  return dtypeBytes(operands) * static_cast<std::uint64_t>(tiles.blockM + tiles.blockN) *
         static_cast<std::uint64_t>(tiles.blockK);
}

/// The types of out for operands of a type; the first is what it has if nobody chooses.
std::span<const DType> matmulOutTypes(DType operands);
/// Ok if `out` is one of them.
Status checkMatmulOutType(DType operands, DType out);

class MatmulOperation : public Operation<MatmulArguments> {
public:
  /// The epilogue (Epilogue.h) runs after scale, bias and activation.
  explicit MatmulOperation(Jit &jit, Epilogue epilogue = {}) : Operation(jit) {
    if (epilogue)
      this->epilogue = std::make_shared<const Epilogue>(std::move(epilogue));
  }
  std::string_view name() const override { return "matmul"; }
  /// Names what is wrong: type, rank, an extent that does not belong to the others, overlap, an option that the types
  /// do not have.
  Status check(const MatmulArguments &arguments) const override;

protected:
  Status plan(const MatmulArguments &arguments, Plan &plan) const override;
  std::optional<std::string> callText(const MatmulArguments &arguments) const override;

private:
  Result<MatmulConfig> configOf(const MatmulArguments &arguments) const;
  /// `config` with what `tiling` leaves open chosen.
  Result<MatmulConfig> withTiling(const MatmulArguments &arguments, const Tiling &tiling, MatmulConfig config) const;
  /// Of a tiling that somebody gave.
  Status checkTiles(const MatmulArguments &arguments, const MatmulConfig &config) const;
  std::int64_t splitsOf(const MatmulArguments &arguments, const MatmulConfig &config) const;
  /// The second launch of a split product.
  Status finish(const MatmulArguments &arguments, const MatmulConfig &config, std::int64_t parts, DeviceAddress sums,
                Plan &plan) const;

  std::shared_ptr<const Epilogue> epilogue;
  mutable KernelTable<MatmulConfig> variants, finishers;
  mutable TunedTable<MatmulConfig> tuned;
  mutable KernelTable<NoConfig> zeros;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_MATMUL_MATMULOPERATION_H
