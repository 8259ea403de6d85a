#include "kernels/support/Samples.h"

#include <set>

namespace kiln::kernels {

std::vector<Sample> Samples::calls(DType dtype, SampleUse use, bool gpu) const {
  if (use != SampleUse::Check)
    return {{example(dtype, use == SampleUse::Bench && gpu)}};
  // Extents of the innermost dimensions, and of all others: one that fills nothing, odd ones, more than one tile.
  // Extents that are equal stay equal.
  struct Size {
    std::uint64_t inner, outer;
  };
  std::vector<Sample> out;
  for (const Size &size : {Size{1, 1}, {31, 3}, {1000, 5}, {4097, 2}}) {
    TensorTypes types = example(dtype, false);
    std::set<std::uint64_t> inner;
    for (const auto &[name, type] : types)
      if (!type.shape.empty())
        inner.insert(type.shape.back());
    for (auto &[name, type] : types)
      for (std::uint64_t &extent : type.shape)
        extent = inner.count(extent) ? size.inner : size.outer;
    out.push_back({std::move(types)});
  }
  return out;
}

} // namespace kiln::kernels
