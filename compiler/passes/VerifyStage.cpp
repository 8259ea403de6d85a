// The rules of a stage, operation by operation.  Each message says what is wrong and what to write instead.
#include "compiler/passes/Pass.h"

#include "compiler/numbers/Numbers.h"
#include "compiler/passes/layouts/CarriedTiles.h"
#include "compiler/passes/TargetRules.h"
#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TensorMaps.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/VerifyStage.inc"

namespace {

using tile_gpu::isTile;
using tile_gpu::LayoutAttr;

enum class Stage : unsigned char { Tile, TileGpu };

/// Attributes of other dialects mean something to the lowering's own stages only, LLVM's translation above all.
LogicalResult checkAttributes(Operation *op, llvm::ArrayRef<NamedAttribute> attributes) {
  for (const NamedAttribute &a : attributes) {
    const auto [dialect, rest] = a.getName().getValue().split('.');
    if (!rest.empty() && dialect != "tile" && dialect != "tile_gpu")
      return op->emitError() << "the attribute '" << a.getName().getValue()
                             << "' has no place in a kernel: attributes are those of tile and tile_gpu";
  }
  return success();
}

/// Checks one function; goes on after an error, so that one run shows all.
class Verifier {
public:
  Verifier(Stage stage, const Target *target) : stage(stage), target(target) {}

  LogicalResult run(func::FuncOp f) {
    warps = tile_gpu::warpsOf(f).count;
    for (Type t : llvm::concat<const Type>(f.getArgumentTypes(), f.getResultTypes()))
      if (stage == Stage::TileGpu && isTile(t))
        fail(f) << "function '" << f.getName() << "' takes or returns the tile " << t << ": inline it into its kernel";
    for (unsigned i = 0; i < f.getNumArguments(); ++i) {
      attributes(f, f.getArgAttrDict(i));
      if (tile::isHidden(f.getArgumentTypes()[i]) && !(tile::isKernel(f) && tile_gpu::recipeOf(f, i)))
        fail(f) << tile::argumentName(f, i) << " of type " << f.getArgumentTypes()[i] << " has no recipe: only kernels "
                << "have such arguments, each with " << tile_gpu::tensorMapAttr << " = #tile_gpu.tensor_map<..>";
    }
    for (unsigned i = 0; i < f.getNumResults(); ++i)
      attributes(f, f.getResultAttrDict(i));
    if (target)
      if (const Status status = checkLaunch(f, *target); !status.ok()) {
        (void)tile_gpu::report(f, status);
        good = false;
      }
    f.walk([&](Operation *op) {
      attributes(op, op->getDiscardableAttrDictionary());
      if (op == f)
        return;
      if (!allowed(op)) {
        fail(op) << op->getName() << " has no place in a kernel: operations are those of tile, tile_gpu, arith, math, "
                 << "ub.poison, func.call and func.return, and scf.for, scf.if, scf.while with their terminators";
        return;
      }
      types(op);
      loops(op);
      spreads(op);
      if (failed(verifyNumbers(op))) // what no stage can compile is refused here, at its line
        good = false;
      if (stage == Stage::TileGpu)
        layouts(op);
      copies(op);
      if (target)
        if (const Status status = checkTarget(op, *target); !status.ok()) {
          (void)tile_gpu::report(op, status);
          good = false;
        }
    });
    return success(good);
  }

private:
  InFlightDiagnostic fail(Operation *op) {
    good = false;
    return op->emitError();
  }

  void attributes(Operation *op, DictionaryAttr list) {
    if (list && failed(checkAttributes(op, list.getValue())))
      good = false;
  }

  /// The allow-list.
  bool allowed(Operation *op) {
    if (isa<tile::TileDialect, arith::ArithDialect, math::MathDialect>(op->getDialect()))
      return true;
    if (isa<tile_gpu::TileGpuDialect>(op->getDialect()))
      return true;
    return isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::YieldOp, scf::ConditionOp, func::CallOp, func::ReturnOp,
               ub::PoisonOp>(op);
  }

  void types(Operation *op) {
    auto check = [&](Type t) {
      const Type element = tile::elementTypeOf(t);
      if (element.isIndex()) {
        fail(op) << "the type " << t << " has no place in a kernel: use i32 or i64";
        return false;
      }
      if (isa<TensorType>(t) && !isa<RankedTensorType>(t)) {
        fail(op) << "the type " << t << " is no tile: tiles have a static shape";
        return false;
      }
      if (auto tile = dyn_cast<RankedTensorType>(t)) {
        if (!tile.hasStaticShape()) {
          fail(op) << "the tile " << t << " has an unknown extent: extents are constants, what is longer is read in a "
                   << "loop or through a view";
          return false;
        }
        if (tile.getRank() == 0) {
          fail(op) << "the tile " << t << " has rank 0: use the scalar " << tile.getElementType();
          return false;
        }
        const Result<layout::TileShape> shape =
            layout::splitExtents(std::span<const int64_t>(tile.getShape().data(), tile.getShape().size()));
        if (!shape) {
          (void)tile_gpu::report(op, shape.status());
          good = false;
          return false;
        }
      }
      return true;
    };
    for (Type t : op->getResultTypes())
      if (!check(t))
        return; // one message an operation
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type t : block.getArgumentTypes())
          if (!check(t))
            return;
  }

  /// At stage tile already: what follows chooses layouts.
  void spreads(Operation *op) {
    if (stage != Stage::Tile || llvm::none_of(op->getResults(), [](Value v) { return isTile(v); }))
      return;
    if (const Status status = tile_gpu::checkWarps(warps); !status.ok() && !std::exchange(spreadReported, true)) {
      (void)tile_gpu::report(op, status);
      good = false;
    }
  }

  void loops(Operation *op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (loop && !loop.getInductionVar().getType().isInteger(32) && !loop.getInductionVar().getType().isInteger(64) &&
        !loop.getInductionVar().getType().isIndex())
      fail(op) << "the loop runs on " << loop.getInductionVar().getType() << ": use i32 or i64";
  }

  /// What is copied into a buffer comes from the argument that its type names.
  void copies(Operation *op) {
    const tile::MemoryAccesses accesses = tile::accessesOf(op);
    for (const tile::MemoryAccess &to : accesses) {
      const auto buffer = to.memory ? dyn_cast<tile_gpu::BufferType>(to.memory.getType()) : tile_gpu::BufferType();
      for (const tile::MemoryAccess &from : accesses)
        if (buffer && to.writes && from.in<tile::GlobalMemory>() && from.reads && from.memory)
          copied(op, from.memory, buffer);
    }
  }
  void copied(Operation *op, Value memory, tile_gpu::BufferType to) {
    const llvm::StringRef from = tile::memoryName(memory);
    if (!to.getName().empty() && !from.empty() && to.getName() != from)
      fail(op) << "copies '" << from << "' into " << to << ": only '" << to.getName() << "' flows through this buffer";
  }

  void layouts(Operation *op) {
    for (Type t : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
      if (isTile(t) && !tile_gpu::layoutAttrOf(t)) {
        fail(op) << "the tile " << t << " has no layout at this stage: run kiln-assign-layouts";
        return;
      }
    for (Value v : op->getResults())
      if (isTile(v))
        if (const Status status = tile_gpu::checkPlaces(v.getType(), warps); !status.ok()) {
          (void)tile_gpu::report(op, status);
          good = false;
          return;
        }
    if (tile_gpu::hasOneLayout(op))
      return oneLayout(op);
    for (OpOperand &operand : op->getOpOperands())
      if (tile_gpu::isTied(operand) && !tied(op, operand))
        return;
  }

  /// Upstream checks the encodings of arith's operations, not of all of math's.
  void oneLayout(Operation *op) {
    Type first;
    for (Type t : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes())) {
      if (!isTile(t))
        continue;
      first = first ? first : t;
      if (!tile_gpu::sameLayout(first, t)) {
        fail(op) << "works in two layouts, " << tile_gpu::layoutAttrOf(first).text() << " and "
                 << tile_gpu::layoutAttrOf(t).text() << ": put a tile_gpu.convert_layout before one operand";
        return;
      }
    }
  }

  bool tied(Operation *op, OpOperand &operand) {
    const Type result = op->getNumResults() ? op->getResult(0).getType() : Type();
    if (!result || !isTile(result))
      return true;
    const LayoutAttr have = tile_gpu::layoutAttrOf(operand.get().getType()), work = tile_gpu::layoutAttrOf(result);
    const std::optional<LayoutAttr> gives = tile_gpu::workLayout(operand, have);
    if (gives && tile_gpu::sameLayout(result, *gives, work))
      return true;
    const std::optional<LayoutAttr> need = tile_gpu::operandLayout(operand, work);
    if (need && tile_gpu::sameLayout(operand.get().getType(), *need, have))
      return true;
    InFlightDiagnostic d = fail(op);
    d << "cannot make " << result << " of " << operand.get().getType() << ": the layouts do not belong together";
    if (need)
      d.attachNote() << "convert the operand to #tile_gpu." << need->text() << " first";
    else if (gives)
      d.attachNote() << "the result has the layout #tile_gpu." << gives->text() << "; convert it after";
    return false;
  }

  Stage stage;
  const Target *target;
  unsigned warps = tile::defaultNumWarps;
  bool good = true, spreadReported = false;
};

struct VerifyStage : impl::VerifyStageBase<VerifyStage> {
  using impl::VerifyStageBase<VerifyStage>::VerifyStageBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (stage != "tile" && stage != "tile_gpu") {
      module.emitError() << "no stage is called '" << stage << "': tile, tile_gpu";
      return signalPassFailure();
    }
    const Target *target = nullptr;
    if (module->hasAttr(tile_gpu::targetAttr) || stage == "tile_gpu") {
      Result<const Target *> found = tile_gpu::targetOf(module);
      if (!found) {
        (void)tile_gpu::report(module, found.takeStatus());
        return signalPassFailure();
      }
      target = *found;
    }
    bool good = succeeded(checkAttributes(module, module->getDiscardableAttrDictionary().getValue()));
    for (Operation &op : *module.getBody()) {
      auto f = dyn_cast<func::FuncOp>(op);
      if (f) {
        good &= succeeded(Verifier(stage == "tile" ? Stage::Tile : Stage::TileGpu, target).run(f));
      } else {
        op.emitError() << op.getName() << " has no place in a module of kernels: only func.func has";
        good = false;
      }
    }
    if (!good)
      signalPassFailure();
  }
};

} // namespace
} // namespace kiln
