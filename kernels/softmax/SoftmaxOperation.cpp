#include "kernels/softmax/SoftmaxOperation.h"

namespace kiln::kernels {

Status SoftmaxOperation::plan(const SoftmaxArguments &a, Plan &plan) const {
  const Rows x(a.x), out(a.out);
  if (x.rows == 0 || x.columns == 0)
    return {};
  const RowTile tile = rowTile(x.columns);
  const bool adjacent = x.adjacent() && out.adjacent();
  KILN_ASSIGN(JitKernel * kernel, slots.get(jit(), rowSlot(floatIndex(a.x.dtype), tile, adjacent), [&] {
    return softmax(a.x.dtype, {tile.block, tile.rowsPerProgram, tile.warps, tile.looping, adjacent});
  }));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), ceilDiv(x.rows, tile.rowsPerProgram)));
  return plan.launch(*kernel, grid, named<"x">(asMatrix(a.x)), named<"out">(asMatrix(a.out)));
}

} // namespace kiln::kernels
