//===- Matmul.h - out = epilogue(a x b) -----------------------------------------===//
//
// One kernel does a product.  A product whose K is split takes more: every program sums a part of K, into a workspace
// of parts that `matmulFinish` adds in order (the same bits in every run), or by atomic additions into one part that
// `matmulZero` cleared.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_MATMUL_MATMUL_H
#define KILN_KERNELS_MATMUL_MATMUL_H

#include "compiler/language/Dot.h"
#include "compiler/language/Kernel.h"
#include "kernels/matmul/Epilogue.h"

namespace kiln::kernels {

/// What a program does with its sums.
enum class Sums : std::uint8_t {
  Finish, ///< epilogue, then out
  Part,   ///< stored to part batch * splits + split of `out`, which is dense
  Atomic, ///< added to part batch of `out`
};

/// matmul(a, b, out, bias, other, scale, splits): a [batch, m, k], b [batch, k, n], out and other [batch, m, n] (of
/// parts: batch * splits), bias [n]; bias and other may be left out.  Grid [ceil(m / blockM) * ceil(n / blockN) *
/// splits
/// * batch].
struct MatmulConfig {
  int blockM = 128, blockN = 128, blockK = 32; ///< the tile of a program, and what it adds at a time
  int warps =
      4; ///< each reads its rows of a and its columns of b from shared memory: the fewer, the less is read twice
  int stages = 3; ///< tiles of a and b that are in flight
  /// Tiles of so many rows of tiles are visited column by column, so that programs beside each other share what they
  /// read in the L2 cache.
  int groupM = 8;
  /// The dimension whose stride is 1, of the last two: 0 rows, 1 columns, -1 neither.
  int aUnit = 1, bUnit = 1, outUnit = 1, otherUnit = 1;
  Sums sums = Sums::Finish;
  bool bias = false;  ///< adds bias[column]; else `bias` is not read
  bool other = false; ///< whether `other` may be read
  bool scaled = false;
  Activation activation = Activation::None;
  language::Precision precision = language::Precision::Ieee; ///< of f32
  std::shared_ptr<const Epilogue> epilogue = {};             ///< after scale, bias and activation
  bool operator==(const MatmulConfig &) const = default;
};

/// a and b: f16, bf16, f8e4m3, f8e5m2, i8, f32; out: `out`, one of f32, f16, bf16 (i8: i32, without an epilogue); of a
/// split product: the sums' type, f32 or i32.  Everything after the product is computed in fp32 and rounded once.  bias
/// and other have out's type.
language::Kernel matmul(DType element, DType out, const MatmulConfig &config = {});

/// matmul_finish(parts, out, bias, other, scale), parts [batch, splits, m, n]: out = epilogue(part 0 + part 1 + ..),
/// for parts of the type `sums` as `Sums::Part` stores them.  Of the configuration it takes blockM and blockN (its own
/// tile), warps, the units of out and other, and the epilogue; grid [ceil(m / blockM) * ceil(n / blockN) * batch].
language::Kernel matmulFinish(DType sums, DType out, const MatmulConfig &config);

/// matmul_zero(out): zeros of f32 or i32; grid [ceil(n / 1024)].
language::Kernel matmulZero(DType element);

} // namespace kiln::kernels

#endif // KILN_KERNELS_MATMUL_MATMUL_H
