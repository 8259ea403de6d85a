//===- StagedLoads.h - Which loads of a loop can be copied rounds ahead -----===//
//
// For pipeline-loops.  A load may be staged if something can copy it asynchronously (AsyncTransport.h), if its address
// in a later round can be computed before that round (from the loop's counter, from values from outside, and from
// carried values whose next one follows from such), and if nothing that the loop does comes between: a store or an
// atomic operation through another argument is to other memory, that is the language's rule; one through the load's own
// argument, or through a pointer of which nobody knows where it comes from, keeps the load where it is.  An atomic
// operation that acquires comes before every load after it, so its loop stays whole.
//
// Loads whose value goes into a product or a layout conversion pass through shared memory anyway and come first.  Of
// the others (elementwise work) every one is staged for which shared memory is left: the author asked for stages, and a
// shared-memory round trip of some 30 cycles takes the place of one to global memory of some 500.  Each is copied in
// the widest runs that its addresses allow, in a layout of its own.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_PIPELINES_STAGEDLOADS_H
#define KILN_PASSES_PIPELINES_STAGEDLOADS_H

#include "compiler/analysis/AxisAnalysis.h"
#include "compiler/analysis/PointerRoots.h"
#include "compiler/passes/pipelines/AsyncTransport.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace kiln {

/// Operations of a loop's body that some values follow from, and the carried arguments that they start from.
struct LoopSlice {
  llvm::SetVector<mlir::Operation *> ops; ///< not ordered
  llvm::SetVector<mlir::BlockArgument> carried;
  bool reads = false; ///< global memory: only in rounds that exist

  /// The operations in program order.
  llvm::SmallVector<mlir::Operation *> ordered() const;
};

struct StagedLoad {
  mlir::Operation *load = nullptr; ///< tile.load or tile.load_view
  AsyncCopy copy;
  bool elementwise = false; ///< no product and no conversion takes it

  mlir::RankedTensorType tile() const { return mlir::cast<mlir::RankedTensorType>(load->getResult(0).getType()); }
};

/// The pointers or the view that a store or an atomic operation writes to; null for other operations.
mlir::Value writtenBy(mlir::Operation *op);
/// An atomic operation that acquires: nothing after it may be read before it.
bool acquires(mlir::Operation *op);

/// The layout in which this use would have a tile that comes from shared memory: that of the product or the conversion
/// at the end of a chain of operations of one tile each; nothing for other uses.
std::optional<tile_gpu::LayoutAttr> wantedLayout(mlir::OpOperand &use);

/// Whether a product multiplies the tile, or what operations of one tile each make of it.
bool feedsProduct(mlir::Value tile);

/// What is known of a loop that is to be pipelined.
class StagedLoop {
public:
  StagedLoop(mlir::scf::ForOp loop, const Target &target, const analysis::AxisAnalysis &facts)
      : loop(loop), target(target), facts(facts) {}

  /// Finds the loads; says why not for each that cannot be staged, or why the loop cannot be pipelined.  `nothing` if
  /// it loads no tile.
  enum class Answer { Yes, No, Nothing };
  Answer examine();

  llvm::SmallVector<StagedLoad> loads; ///< elementwise ones last
  LoopSlice addresses;                 ///< of all loads
  LoopSlice updates;                   ///< of all carried arguments that addresses or updates start from
  /// Why a load, or the whole loop, is not staged.
  llvm::SmallVector<std::pair<mlir::Operation *, std::string>> refused;

private:
  bool collect(mlir::Value v, LoopSlice &slice, bool mayRead, std::string &why);
  /// Of the arguments that `of` starts from, and those that they follow from.
  bool collectUpdates(const LoopSlice &of, LoopSlice &slice, std::string &why);
  std::string examineLoad(mlir::Operation *load, bool elementwise);
  std::string examineLoop();
  /// Which of the loop's writes may meet what this load reads; empty if none.
  std::string writtenHere(mlir::Operation *load) const;

  mlir::scf::ForOp loop;
  const Target &target;
  const analysis::AxisAnalysis &facts;
  std::optional<analysis::PointerRoots> roots; ///< if the loop writes
  llvm::SmallVector<std::pair<mlir::Operation *, analysis::Roots>> writes;
};

} // namespace kiln

#endif // KILN_PASSES_PIPELINES_STAGEDLOADS_H
