// Writes the layouts of LayoutChoice into the types of all tiles, with conversions where two meet.
#include "compiler/passes/Pass.h"

#include "compiler/analysis/NarrowAccess.h"
#include "compiler/passes/layouts/LayoutChoice.h"
#include "compiler/tile_gpu/TileGpu.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/AssignLayouts.inc"

namespace {

using tile_gpu::isTile;
using tile_gpu::LayoutAttr;

class Assigner {
public:
  explicit Assigner(func::FuncOp f) : f(f), choice(f) {}

  LogicalResult run() {
    if (failed(choice.run()))
      return failure();
    if (tile::isKernel(f))
      analysis::remarkNarrowAccesses(f, choice.axisFacts());
    llvm::SmallVector<Operation *> ops;
    f.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != f)
        ops.push_back(op);
    });
    for (Operation *op : ops)
      writeTypes(op);
    for (Operation *op : ops)
      if (failed(fitOperands(op)))
        return failure();
    return success();
  }

private:
  void setLayout(Value v, LayoutAttr layout) {
    if (isTile(v))
      v.setType(tile_gpu::withLayout(v.getType(), layout));
  }

  static void retypeConstant(Operation *op) {
    auto constant = dyn_cast<arith::ConstantOp>(op);
    auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
    if (elements && isTile(constant.getType()))
      constant.setValueAttr(cast<TypedAttr>(elements.reshape(cast<ShapedType>(constant.getType()))));
  }

  void writeTypes(Operation *op) {
    for (Value v : op->getResults())
      if (isTile(v))
        setLayout(v, choice.of(v));
    retypeConstant(op);
    for (const CarriedTile &tile : carriedTiles(op))
      for (Value v : tile.values)
        setLayout(v, choice.of(v));
  }

  /// The operand's tile in this layout: a generator made again, or a conversion, once for all who ask.
  void require(OpOperand &operand, LayoutAttr layout) {
    const Value v = operand.get();
    layout = choice.canonical(v.getType(), layout);
    if (tile_gpu::layoutAttrOf(v.getType()) == layout)
      return;
    Value &other = converted[{v, layout}];
    if (!other) {
      OpBuilder b(f.getContext());
      b.setInsertionPointAfterValue(v);
      Operation *def = v.getDefiningOp();
      if (isGenerator(def)) {
        Operation *clone = b.clone(*def);
        setLayout(clone->getResult(0), layout);
        retypeConstant(clone);
        other = clone->getResult(0);
      } else {
        other = tile_gpu::ConvertLayoutOp::create(b, operand.getOwner()->getLoc(),
                                                  tile_gpu::withLayout(v.getType(), layout), v);
      }
    }
    operand.set(other);
  }

  LayoutAttr layoutNow(OpOperand &operand) { return tile_gpu::layoutAttrOf(operand.get().getType()); }

  LogicalResult fitOperands(Operation *op) {
    for (const CarriedTile &tile : carriedTiles(op))
      for (OpOperand *feed : tile.feeds)
        require(*feed, choice.of(tile.values.front()));
    llvm::SmallVector<OpOperand *> tied;
    for (OpOperand &operand : op->getOpOperands())
      if (tile_gpu::isTied(operand))
        tied.push_back(&operand);
    if (tied.empty())
      return success();
    if (auto reduce = dyn_cast<tile::ReduceOp>(op); reduce && !isTile(reduce.getResult(0))) {
      for (OpOperand *operand : tied)
        require(*operand, layoutNow(*tied.front()));
      return success();
    }
    LayoutAttr desired = choice.demand(op);
    if (!desired)
      desired = op->getNumResults() ? tile_gpu::layoutAttrOf(op->getResult(0).getType()) : layoutNow(*tied.front());
    if (succeeded(workIn(op, tied, desired)))
      return success();
    // Not possible in the layout that its users want: work where the operands are and convert the results.
    for (OpOperand *operand : tied) {
      const std::optional<LayoutAttr> work = tile_gpu::workLayout(*operand, layoutNow(*operand));
      if (!work || failed(workIn(op, tied, *work)))
        continue;
      convertResults(op, *work);
      return success();
    }
    return op->emitError() << "no layout of " << tied.front()->get().getType() << " becomes one of "
                           << op->getResult(0).getType()
                           << ": a factor of an extent that is no power of two must stay in one dimension";
  }

  /// Gives each tied operand the layout that it needs for the operation to work in `work`.
  LogicalResult workIn(Operation *op, llvm::ArrayRef<OpOperand *> tied, LayoutAttr work) {
    llvm::SmallVector<LayoutAttr> needed;
    for (OpOperand *operand : tied) {
      const LayoutAttr now = layoutNow(*operand);
      // Several layouts may serve (a reduction of any layout with this slice): the present one, if it does.
      const std::optional<LayoutAttr> gives = tile_gpu::workLayout(*operand, now);
      // Of an elementwise operation the types must agree, not only the layouts: an operand's name is not a result's.
      const bool serves = gives && (op->hasTrait<OpTrait::Elementwise>()
                                        ? *gives == work
                                        : tile_gpu::sameLayout(resultTile(op, *operand), *gives, work));
      const std::optional<LayoutAttr> need = serves ? std::optional(now) : tile_gpu::operandLayout(*operand, work);
      if (!need)
        return failure();
      // Many layouts have one slice: the tiles of a reduction take that of the first.
      needed.push_back(isa<tile::ReduceOp>(op) && !needed.empty() ? needed.front() : *need);
    }
    for (auto [operand, layout] : llvm::zip_equal(tied, needed))
      require(*operand, layout);
    return success();
  }

  static Type resultTile(Operation *op, OpOperand &operand) {
    return op->getNumResults() ? op->getResult(0).getType() : operand.get().getType();
  }

  void convertResults(Operation *op, LayoutAttr work) {
    OpBuilder b(f.getContext());
    b.setInsertionPointAfter(op);
    for (Value v : op->getResults()) {
      const Type wanted = v.getType();
      setLayout(v, choice.canonical(wanted, work));
      if (v.getType() == wanted)
        continue;
      auto convert = tile_gpu::ConvertLayoutOp::create(b, op->getLoc(), wanted, v);
      v.replaceAllUsesExcept(convert, convert);
    }
  }

  func::FuncOp f;
  LayoutChoice choice;
  llvm::DenseMap<std::pair<Value, LayoutAttr>, Value> converted;
};

struct AssignLayouts : impl::AssignLayoutsBase<AssignLayouts> {
  void runOnOperation() override {
    llvm::SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp f : functions)
      if (!f.isDeclaration() && failed(Assigner(f).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace kiln
