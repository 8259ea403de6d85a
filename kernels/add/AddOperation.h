//===- AddOperation.h - out = x + y, as users call it -------------------------===//
#ifndef KILN_KERNELS_ADD_ADDOPERATION_H
#define KILN_KERNELS_ADD_ADDOPERATION_H

#include "kernels/add/Add.h"
#include "kernels/support/KernelTable.h"

namespace kiln::kernels {

/// Equal shapes, up to four dimensions, f32, f16 or bf16, any strides; x and y may repeat elements through strides of
/// 0.  `out` may be x or y itself, but may not overlap them otherwise.
struct AddArguments {
  Tensor x, y, out;
};

class AddOperation : public Operation<AddArguments> {
public:
  explicit AddOperation(Jit &jit, AddConfig config = {}) : Operation(jit), config(config) {}
  std::string_view name() const override { return "add"; }
  Status check(const AddArguments &arguments) const override;

protected:
  Status plan(const AddArguments &arguments, Plan &plan) const override;

private:
  AddConfig config;
  mutable KernelTable<AddConfig> variants;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_ADD_ADDOPERATION_H
