//===- SplitCombine.h - The parts of rows whose keys several programs share -----===//
//
// Split s of a row left o_s, its weighted values, and lse_s, the logarithm of its sum:
//
//   lse = ln(sum over s of e^lse_s [+ e^sink]),  o = sum over s of e^(lse_s - lse) o_s
//
// A split that met no key has lse_s of minus infinity and any o_s, which is not read.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_DECODE_SPLITCOMBINE_H
#define KILN_KERNELS_ATTENTION_DECODE_SPLITCOMBINE_H

#include "kernels/support/Configuration.h"

namespace kiln::kernels {

/// Grid [ceil(rows of a key head / rows) * key heads * batch].
struct SplitCombineConfig {
  int dimV = 128, group = 1;
  int splits = 256, step = 16, rows = 1, warps = 4;
  bool sink = false, lse = false;
  bool operator==(const SplitCombineConfig &) const = default;

  static constexpr int mostSplits = 256;

  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    using C = SplitCombineConfig;
    v("dimV", &C::dimV, multiplesOf(8, 256), "tile width of o");
    v("group", &C::group, between(1, 1 << 16), "query heads of a key head");
    v("splits", &C::splits, powersOfTwo(1, mostSplits), "at most; how many there are is an argument");
    v("step", &C::step, powersOfTwo(1, mostSplits).tuned(), "splits that are added at once");
    v("rows", &C::rows, powersOfTwo(1, 64).tuned(), "of a program");
    v("warps", &C::warps, powersOfTwo(1, 32).tuned().ofLaunch(), "of a program");
    v("sink", &C::sink, anyValue, "one more logit of each head, without a value");
    v("lse", &C::lse, anyValue, "lse is an output");
  }
};

/// f16 or bf16, of o.  Arguments as of attentionDecode.
language::Kernel splitCombine(DType element, const SplitCombineConfig &config = {});

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DECODE_SPLITCOMBINE_H
