//===- Needs.h - The capability that an operation needs of its target -------===//
//
// A trait of operations (`TileGpu_Needs<"CpAsync">` in TableGen).  verify-stage refuses an operation on a target that
// lacks what it needs, before LLVM sees it, which would abort.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_NEEDS_H
#define KILN_TILE_GPU_NEEDS_H

#include "compiler/target/Target.h"

#include "mlir/IR/OpDefinition.h"

namespace kiln::tile_gpu {

template <Capability C> struct Needs {
  template <typename ConcreteOp> class Impl : public mlir::OpTrait::TraitBase<ConcreteOp, Impl> {};
};

/// By the traits of the operation; what depends on its types or attributes is not among them.
CapabilitySet needsOf(mlir::Operation *op);

} // namespace kiln::tile_gpu

#endif // KILN_TILE_GPU_NEEDS_H
