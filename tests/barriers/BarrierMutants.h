//===- BarrierMutants.h - A kernel with one barrier changed -------------------===//
//
// | what | harmful |
// |---|---|
// | deleted; moved into an arm of a conditional that need not be taken | always, or the barrier has no use |
// | weakened to one of the warp; moved past the next or the last access, copy or wait; out of its loop | it depends |
// | doubled; moved over what touches no shared memory | never |
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_BARRIERS_BARRIERMUTANTS_H
#define KILN_TESTS_BARRIERS_BARRIERMUTANTS_H

#include "tests/barriers/BarrierHarness.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

#include <functional>

namespace kiln::test {

struct BarrierMutant {
  std::size_t barrier; ///< number in the module
  std::string what;
  bool mustHarm;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Makes the condition, an i1, of the arm that a barrier is moved into.
using Condition = std::function<mlir::Value(mlir::OpBuilder &, mlir::func::FuncOp)>;

/// `module`: buffers have places, barriers stand.
void forEachBarrierMutant(mlir::ModuleOp module, const Condition &condition,
                          const std::function<void(BarrierMutant &)> &use);

} // namespace kiln::test

#endif // KILN_TESTS_BARRIERS_BARRIERMUTANTS_H
