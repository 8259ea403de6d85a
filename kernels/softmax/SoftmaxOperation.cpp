#include "kernels/softmax/SoftmaxOperation.h"

namespace kiln::kernels {

Status SoftmaxOperation::plan(const SoftmaxArguments &a, Plan &plan) const {
  const Rows x(a.x), out(a.out);
  if (x.rows == 0 || x.columns == 0)
    return {};
  const RowTile tile = rowTile(x.columns);
  const auto element = kernelElement(a.x.dtype);
  const SoftmaxConfig c{tile.block, tile.rowsPerProgram, tile.warps, tile.looping, x.adjacent() && out.adjacent()};
  KILN_ASSIGN(JitKernel * kernel, variants.get(jit(), {element}, c, [&] { return softmax(element, c); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), ceilDiv(x.rows, tile.rowsPerProgram)));
  return plan.launch(*kernel, grid, named<"x">(asMatrix(a.x)), named<"out">(asMatrix(a.out)));
}

} // namespace kiln::kernels
