#include "kernels/attention/AttentionFunctions.h"

namespace kiln::kernels {

std::vector<language::TensorDeclaration> AttentionHooks::tensors() const {
  // No output overlaps them (checkApart), so that warps which only copy may read them, too.
  std::vector<language::TensorDeclaration> out;
  for (const auto &[given, counts, blocks] : {std::tuple(hasPartialBlocks, "partial_counts", "partial_blocks"),
                                              std::tuple(hasFullBlocks, "full_counts", "full_blocks")})
    if (given) {
      out.push_back({counts, DType::I32, 3, /*noalias=*/true});
      out.push_back({blocks, DType::I32, 4, /*noalias=*/true});
    }
  for (unsigned i = 0; i < maxAux; ++i)
    if (aux[i].rank)
      out.push_back({std::string(auxNames[i]), aux[i].element, aux[i].rank, /*noalias=*/true});
  return out;
}

std::size_t AttentionHooks::hash() const {
  std::size_t out = functions.hash();
  const auto mix = [&](std::size_t value) { out = (out ^ value) * 0x9E3779B97F4A7C15u; };
  for (const AuxType &type : aux)
    mix(static_cast<std::size_t>(type.element) * 8 + type.rank);
  mix(static_cast<std::size_t>(blockRows));
  mix(static_cast<std::size_t>(blockKeys));
  mix(static_cast<std::size_t>(hasPartialBlocks) * 4 + hasFullBlocks * 2 + isChecked);
  return out;
}

} // namespace kiln::kernels
