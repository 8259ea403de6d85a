#include "kernels/layer_norm/LayerNormOperation.h"

namespace kiln::kernels {

Status LayerNormOperation::check(const LayerNormArguments &a) const {
  const Device &device = jit().device();
  KILN_TRY(checkRows(device, a.x, a.out));
  if (!(a.eps >= 0))
    return Status::invalid(format("eps is %g", a.eps), "give a number that is not negative");
  if (!a.affine())
    return {};
  const std::int64_t columns = Rows(a.x).columns;
  for (const auto &[name, tensor] : {std::pair("weight", &a.weight), std::pair("bias", &a.bias)})
    KILN_TRY(checkTensor(name, *tensor)
                 .on(device)
                 .dtypeOf("x", a.x)
                 .rank(1)
                 .extent(0, columns, "the columns of x")
                 .dense()
                 .status());
  return checkTensor("out", a.out).notOverlapping("weight", a.weight).notOverlapping("bias", a.bias).status();
}

Status LayerNormOperation::plan(const LayerNormArguments &a, Plan &plan) const {
  const Rows x(a.x), out(a.out);
  if (x.rows == 0 || x.columns == 0)
    return {};
  const RowTile tile = rowTile(x.columns);
  const auto element = kernelElement(a.x.dtype);
  const LayerNormConfig c{tile.block, tile.rowsPerProgram, tile.warps, tile.looping, x.adjacent() && out.adjacent(),
                          a.affine()};
  KILN_ASSIGN(JitKernel * kernel, variants.get(jit(), {element}, c, [&] { return layerNorm(element, c); }));
  KILN_ASSIGN(const Dim3 grid, gridOf(name(), ceilDiv(x.rows, tile.rowsPerProgram)));
  const Tensor matrix = asMatrix(a.x), result = asMatrix(a.out);
  if (!a.affine())
    return plan.launch(*kernel, grid, named<"x">(matrix), named<"out">(result), named<"eps">(a.eps));
  return plan.launch(*kernel, grid, named<"x">(matrix), named<"weight">(a.weight), named<"bias">(a.bias),
                     named<"out">(result), named<"eps">(a.eps));
}

} // namespace kiln::kernels
