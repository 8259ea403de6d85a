//===- BiasType.h - The types that a bias may have ------------------------------===//
//
// Fields of configurations: what of a bias the code depends on.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_ATTENTION_BIASTYPE_H
#define KILN_KERNELS_ATTENTION_BIASTYPE_H

#include "kernels/support/Configuration.h"

namespace kiln::kernels {

enum class BiasType : std::uint8_t { None, F32, F16, BF16 };
template <> inline constexpr std::array<std::string_view, 4> words<BiasType> = {"none", "f32", "f16", "bf16"};

constexpr BiasType biasTypeOf(DType element) {
  return element == DType::F32 ? BiasType::F32 : element == DType::F16 ? BiasType::F16 : BiasType::BF16;
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_ATTENTION_BIASTYPE_H
