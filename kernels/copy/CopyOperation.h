//===- CopyOperation.h - out = x, as users call it -----------------------------===//
#ifndef KILN_KERNELS_COPY_COPYOPERATION_H
#define KILN_KERNELS_COPY_COPYOPERATION_H

#include "kernels/copy/Copy.h"
#include "kernels/support/KernelTable.h"

namespace kiln::kernels {

/// Equal shapes and types, up to four dimensions, any type and strides; x may repeat elements through strides of 0.
struct CopyArguments {
  Tensor x, out;
};

class CopyOperation : public Operation<CopyArguments> {
public:
  explicit CopyOperation(Jit &jit, CopyConfig config = {}) : Operation(jit), config(config) {}
  std::string_view name() const override { return "copy"; }
  Status check(const CopyArguments &arguments) const override;

protected:
  Status plan(const CopyArguments &arguments, Plan &plan) const override;

private:
  CopyConfig config;
  mutable KernelTable<CopyConfig> variants;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_COPY_COPYOPERATION_H
