//===- Epilogue.h - What happens to a matrix product before it is stored --------===//
//
// An epilogue is a C++ function over the tile of sums, called when the kernel is recorded: what it computes becomes
// part of the kernel.  `MatmulOperation` runs scale, bias and activation as its arguments ask, and then the caller's:
//
//   MatmulOperation gated(jit, [](const Tile<f32> &x, const EpilogueTile &at) { return x * at.other(); });
//
// Everything is fp32; the result is rounded once, when it is stored.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_MATMUL_EPILOGUE_H
#define KILN_KERNELS_MATMUL_EPILOGUE_H

#include "compiler/language/Language.h"

#include <functional>

namespace kiln::kernels {

enum class Activation : std::uint8_t { None, Relu, Gelu, Silu };

/// Where a tile of out lies, and what else an epilogue may use.  Columns and rows beyond out hold any value and are not
/// stored.
struct EpilogueTile {
  /// Of the tile's first element.
  language::Scalar<language::i64> batch, row, column;
  int rows = 0, columns = 0;             ///< of the tile
  language::Scalar<language::f32> scale; ///< MatmulArguments::scale
  /// [1, columns]: MatmulArguments::bias.  Recorded where it is called, as `other` is.
  std::function<language::Tile<language::f32>()> bias;
  /// [rows, columns]: this tile of MatmulArguments::other.
  std::function<language::Tile<language::f32>()> other;

  /// [rows, 1] and [1, columns]: each element's row and column in out.
  language::Tile<language::i64> rowIndices() const;
  language::Tile<language::i64> columnIndices() const;
};

/// [rows, columns] to [rows, columns].
using Epilogue =
    std::function<language::Tile<language::f32>(const language::Tile<language::f32> &, const EpilogueTile &)>;

/// x * scale, x + bias, an activation of x.
Epilogue scaled();
Epilogue biased();
Epilogue activated(Activation activation);
/// One after the other; empty ones are left out.
Epilogue inOrder(std::vector<Epilogue> steps);

} // namespace kiln::kernels

#endif // KILN_KERNELS_MATMUL_EPILOGUE_H
