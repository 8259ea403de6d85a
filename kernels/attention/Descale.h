//===- Descale.h - Operands of 8 bits and what their numbers stand for ----------===//
//
// q, k and v of e4m3 have a factor for each sequence and key head, or none.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_DESCALE_H
#define KILN_KERNELS_ATTENTION_DESCALE_H

#include "compiler/language/Language.h"

#include <limits>
#include <optional>
#include <type_traits>

namespace kiln::kernels {

/// As outputOf (Attention.h): of 8-bit floats o has the 16 bits of a bfloat.
template <language::Element T>
using OutputOf = std::conditional_t<std::same_as<T, language::f8e4m3>, language::bf16, T>;

/// Of products of q and k: `scale`, and the factors that there are.
inline language::Scalar<language::f32> scaleOfProducts(const language::Scalar<language::f32> &scale,
                                                       const std::optional<language::Scalar<language::f32>> &descaleQ,
                                                       const std::optional<language::Scalar<language::f32>> &descaleK) {
  using namespace language;
  Scalar<f32> out = scale;
  if (descaleQ)
    out = out * *descaleQ;
  if (descaleK)
    out = out * *descaleK;
  // Logits stand on a factor above 0 (Logits.h).  So small a one gives what 0 would, but for hidden keys, which stay at
  // minus infinity.
  if (descaleQ || descaleK)
    out = select(out >= 0.0f, max(out, 0x1p-100f), std::numeric_limits<float>::quiet_NaN());
  return out;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_DESCALE_H
