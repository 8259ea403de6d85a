//===- StagedLoads.h - Which loads of a loop can be copied rounds ahead -----===//
//
// For pipeline-loops.  A load may be staged if its value goes into a product or a layout conversion, if global memory
// gives it in runs that cp.async can move, and if its address in a later round can be computed before that round: from
// the loop's counter, from values from outside, and from carried values whose next one follows from such.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_STAGEDLOADS_H
#define KILN_PASSES_STAGEDLOADS_H

#include "compiler/analysis/AxisAnalysis.h"
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
  analysis::VectorAccess run;      ///< what one copy may move

  mlir::RankedTensorType tile() const { return mlir::cast<mlir::RankedTensorType>(load->getResult(0).getType()); }
};

/// The layout in which this use would have a tile that comes from shared memory: that of the product or the conversion
/// at the end of a chain of operations of one tile each; nothing for other uses.
std::optional<tile_gpu::LayoutAttr> wantedLayout(mlir::OpOperand &use);

/// What is known of a loop that is to be pipelined.
class StagedLoop {
public:
  StagedLoop(mlir::scf::ForOp loop, const Target &target, const analysis::AxisAnalysis &facts)
      : loop(loop), target(target), facts(facts) {}

  /// Finds the loads; says why not if some ask for it and none can be staged, or if the loop cannot be pipelined.
  /// `nothing` if no load asks for it.
  enum class Answer { Yes, No, Nothing };
  Answer examine();

  llvm::SmallVector<StagedLoad> loads;
  LoopSlice addresses; ///< of all loads
  LoopSlice updates;   ///< of all carried arguments that addresses or updates start from
  /// Why a load, or the whole loop, is not staged.
  llvm::SmallVector<std::pair<mlir::Operation *, std::string>> refused;

private:
  bool collect(mlir::Value v, LoopSlice &slice, bool mayRead, std::string &why);
  bool collectUpdates(std::string &why);
  std::string examineLoad(mlir::Operation *load);
  std::string examineLoop();

  mlir::scf::ForOp loop;
  const Target &target;
  const analysis::AxisAnalysis &facts;
};

} // namespace kiln

#endif // KILN_PASSES_STAGEDLOADS_H
