//===- BarrierHarness.h - Kernels whose barriers are changed ----------------===//
#ifndef KILN_TESTS_BARRIERS_BARRIERHARNESS_H
#define KILN_TESTS_BARRIERS_BARRIERHARNESS_H

#include "compiler/pipeline/Stages.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

class BarrierHarness {
public:
  BarrierHarness();

  /// A module, or nothing with `errors` set.
  mlir::OwningOpRef<mlir::ModuleOp> parse(std::string_view text);
  /// The stages tile and tile_gpu: from a kernel's text to where its barriers stand and are verified.
  bool stage(mlir::ModuleOp module, const SpecializeFacts &facts);
  /// expand-shared, allocate-shared, count-groups and insert-barriers.
  bool prepare(mlir::ModuleOp module, std::int64_t scratchBytes = 49152);
  bool verifies(mlir::ModuleOp module);
  /// insert-barriers on a copy adds something, or fails.
  bool insertAdds(mlir::ModuleOp module);

  /// To load dialects of a test's own.
  mlir::MLIRContext &mlirContext() { return context; }

  static std::vector<mlir::Operation *> barriers(mlir::ModuleOp module);
  static bool isAccess(mlir::Operation *op);
  static std::string text(mlir::ModuleOp module);

  std::string errors; ///< diagnostics since the last call

private:
  mlir::MLIRContext context;
};

} // namespace kiln::test

#endif // KILN_TESTS_BARRIERS_BARRIERHARNESS_H
