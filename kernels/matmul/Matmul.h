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
#include "kernels/matmul/Epilogue.h"
#include "kernels/support/Configuration.h"

namespace kiln::kernels {

/// What a program does with its sums.
enum class Sums : std::uint8_t {
  Finish, ///< epilogue, then out
  Part,   ///< stored to part batch * splits + split of `out`, which is dense
  Atomic, ///< added to part batch of `out`
};

template <> inline constexpr std::array<std::string_view, 3> words<Sums> = {"finish", "part", "atomic"};
template <> inline constexpr std::array<std::string_view, 4> words<Activation> = {"none", "relu", "gelu", "silu"};
template <> inline constexpr std::array<std::string_view, 3> words<language::Precision> = {"ieee", "tf32", "tf32x3"};

/// matmul(a, b, out, bias, other, scale, splits): a [batch, m, k], b [batch, k, n], out and other [batch, m, n] (of
/// parts: batch * splits), bias [n]; bias and other may be left out.  Grid [ceil(m / blockM) * ceil(n / blockN) *
/// splits * batch], or of persistent programs any number.
struct MatmulConfig {
  int blockM = 128, blockN = 128, blockK = 32;
  int warps = 4, stages = 3;
  int groupM = 8;
  bool persistent = false;
  int aUnit = 1, bUnit = 1, outUnit = 1, otherUnit = 1;
  Sums sums = Sums::Finish;
  bool bias = false, other = false, scaled = false;
  Activation activation = Activation::None;
  language::Precision precision = language::Precision::Ieee;
  std::shared_ptr<const Epilogue> epilogue = {};
  bool operator==(const MatmulConfig &) const = default;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("blockM", &MatmulConfig::blockM, powersOfTwo(16, 256).tuned(), "rows of a program");
    v("blockN", &MatmulConfig::blockN, powersOfTwo(16, 256).tuned(), "columns of a program");
    v("blockK", &MatmulConfig::blockK, powersOfTwo(16, 256).tuned(), "what it adds at a time");
    v("warps", &MatmulConfig::warps, powersOfTwo(1, 32).tuned().ofLaunch(),
      "each reads its rows of a and its columns of b from shared memory: the fewer, the less is read twice");
    v("stages", &MatmulConfig::stages, between(1, 8).tuned().ofLaunch(), "tiles of a and b that are in flight");
    v("groupM", &MatmulConfig::groupM, between(1, 1 << 10).tuned(),
      "rows of tiles that are visited column by column, so that programs next to each other share what they read in "
      "the L2 cache");
    v("persistent", &MatmulConfig::persistent, anyValue,
      "a program takes tile after tile, as many apart as there are programs; of sums that it finishes");
    v("aUnit", &MatmulConfig::aUnit, between(-1, 1),
      "the dimension of a whose stride is 1, of the last two: 0 rows, 1 columns, -1 neither");
    v("bUnit", &MatmulConfig::bUnit, between(-1, 1), "the same of b");
    v("outUnit", &MatmulConfig::outUnit, between(-1, 1), "the same of out");
    v("otherUnit", &MatmulConfig::otherUnit, between(-1, 1), "the same of other");
    v("sums", &MatmulConfig::sums, anyValue, "what a program does with its sums");
    v("bias", &MatmulConfig::bias, anyValue, "bias[column] is added; else it is not read");
    v("other", &MatmulConfig::other, anyValue, "`other` may be read");
    v("scaled", &MatmulConfig::scaled, anyValue, "products are multiplied by scale");
    v("activation", &MatmulConfig::activation, anyValue, "after scale and bias");
    v("precision", &MatmulConfig::precision, anyValue, "of products of f32");
    v("epilogue", &MatmulConfig::epilogue, anyValue, "after scale, bias and activation");
  }
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
