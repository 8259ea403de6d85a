//===- PointerRoots.h - The arguments that addresses come from --------------===//
//
// For each pointer, tile of pointers and view of a function: the arguments of the function that it is computed from, by
// sparse forward data flow; or that this is not known (a pointer that was loaded or made from an integer).
//
// The analysis describes the IR as it was when it ran.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_ANALYSIS_POINTERROOTS_H
#define KILN_ANALYSIS_POINTERROOTS_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace kiln::analysis {

struct Roots {
  bool known = true;
  llvm::SmallVector<mlir::Value, 1> arguments; ///< sorted; none in code that is never reached

  void add(const Roots &other);
  bool operator==(const Roots &) const = default;
};

class PointerRoots {
public:
  /// Of every function below `root`, or of `root` itself.
  explicit PointerRoots(mlir::Operation *root);

  /// Of a pointer, a tile of pointers or a view.
  Roots of(mlir::Value address) const;

private:
  llvm::DenseMap<mlir::Value, Roots> table;
};

/// Whether the two may name the same memory.  Different arguments do not: a tensor that is given for two of them may be
/// used in place only.
bool mayOverlap(const Roots &a, const Roots &b);

/// Whether its kernel may write where an operation reads global memory, or acquires what others have written while it
/// runs.
bool mayBeWritten(mlir::Operation *load);

} // namespace kiln::analysis

#endif // KILN_ANALYSIS_POINTERROOTS_H
