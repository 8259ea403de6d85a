#include "kernels/cumsum/CumsumOperation.h"

namespace kiln::kernels {

Status CumsumOperation::plan(const CumsumArguments &a, Plan &plan) const {
  const Rows x(a.x), out(a.out);
  if (x.rows == 0 || x.columns == 0)
    return {};
  // The kernel always walks along its rows, so any length serves; short rows share a program.
  const RowTile tile = rowTile(x.columns, 2048, 2048);
  const auto element = kernelElement(a.x.dtype);
  const CumsumConfig c{tile.block, tile.rowsPerProgram, tile.warps, x.adjacent() && out.adjacent()};
  KILN_ASSIGN(JitKernel * kernel, variants.get(jit(), {element}, c, [&] { return cumsum(element, c); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), ceilDiv(x.rows, tile.rowsPerProgram)));
  return plan.launch(*kernel, grid, named<"x">(asMatrix(a.x)), named<"out">(asMatrix(a.out)));
}

} // namespace kiln::kernels
