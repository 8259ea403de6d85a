#include "kernels/matmul/Epilogue.h"

namespace kiln::kernels {

using namespace language;

Tile<i64> EpilogueTile::rowIndices() const {
  return expandDims(row + range<i64>(0, rows), 1);
}
Tile<i64> EpilogueTile::columnIndices() const {
  return expandDims(column + range<i64>(0, columns), 0);
}

Epilogue scaled() {
  return [](const Tile<f32> &x, const EpilogueTile &at) { return x * at.scale; };
}

Epilogue biased() {
  return [](const Tile<f32> &x, const EpilogueTile &at) { return x + at.bias(); };
}

/// The kernel's grade is precise: one function an element of the result, next to all products of a row and a column.
Epilogue activated(Activation activation) {
  switch (activation) {
  case Activation::None:
    return {};
  case Activation::Relu:
    return [](const Tile<f32> &x, const EpilogueTile &) { return max(x, 0.0f); };
  case Activation::Gelu: // x times the normal distribution's share below x
    return [](const Tile<f32> &x, const EpilogueTile &) { return x * 0.5f * (1.0f + erf(x * 0.70710678118654752f)); };
  case Activation::Silu:
    return [](const Tile<f32> &x, const EpilogueTile &) { return x / (1.0f + exp(-x)); };
  }
  return {};
}

Epilogue inOrder(std::vector<Epilogue> steps) {
  std::erase_if(steps, [](const Epilogue &step) { return !step; });
  if (steps.empty())
    return {};
  return [steps = std::move(steps)](const Tile<f32> &x, const EpilogueTile &at) {
    Tile<f32> value = x;
    for (const Epilogue &step : steps)
      value = step(value, at);
    return value;
  };
}

} // namespace kiln::kernels
