// Operations that work element by element: the same operation on each register.  Constants.
#include "compiler/lowering/Emit.h"

#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

/// Any operation of one result that upstream marks Elementwise (arith, math): cloned once a register, attributes and
/// flags kept.  A scalar operand (the condition of a select) serves every register.
class LowerElementwise : public ConversionPattern {
public:
  LowerElementwise(const TileTypeConverter &converter, const LoweringContext &context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), 1, context.context()), context(context) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1 || op->getNumRegions() != 0)
      return failure();
    const Type result = op->getResult(0).getType();
    if (!isa<RankedTensorType>(result))
      return failure();
    const unsigned registers = context.layout(result).registers();
    for (auto [operand, values] : llvm::zip_equal(op->getOperands(), operands))
      if (values.size() != 1 && values.size() != registers)
        return op->emitOpError() << "has a result of " << registers << " registers a thread and an operand of "
                                 << values.size() << ": " << operand.getType() << " and " << result
                                 << " differ in layout";
    const Type scalar = scalarType(cast<RankedTensorType>(result).getElementType());
    Scalars out;
    out.reserve(registers);
    for (unsigned r = 0; r < registers; ++r) {
      Operation *one = op->cloneWithoutRegions();
      for (auto [i, values] : llvm::enumerate(operands))
        one->setOperand(i, values.size() == 1 ? values.front() : values[r]);
      one->getResult(0).setType(scalar);
      rewriter.insert(one);
      out.push_back(one->getResult(0));
    }
    replace(rewriter, op, std::move(out));
    return success();
  }

private:
  const LoweringContext &context;
};

/// One piece of inline assembly for each register.  16-bit floats lie in registers as integers.
class LowerInlinePtx : public OpConversionPattern<tile::InlinePtxOp> {
public:
  LowerInlinePtx(const TileTypeConverter &converter, const LoweringContext &context)
      // Before LowerElementwise, which would take one of one result.
      : OpConversionPattern(converter, context.context(), /*benefit=*/2), context(context) {}

  LogicalResult matchAndRewrite(tile::InlinePtxOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    std::string constraints;
    llvm::SmallVector<Type> results;
    size_t registers = 1;
    const auto add = [&](const char *kind, Type of) {
      const Type element = tile::elementTypeOf(of), type = inRegister(e, element);
      constraints += (constraints.empty() ? "" : ",") + std::string(kind) + letter(type);
      if (auto tile = dyn_cast<RankedTensorType>(of))
        registers = context.layout(tile).registers();
      return type;
    };
    // Written before all operands are read, where there are several statements.
    for (Type t : op.getResultTypes())
      results.push_back(add("=&", t));
    for (Type t : op.getOperandTypes())
      add("", t);
    const Type made = results.empty()       ? Type()
                      : results.size() == 1 ? results.front()
                                            : LLVM::LLVMStructType::getLiteral(rewriter.getContext(), results);
    llvm::SmallVector<Scalars> out(results.size());
    for (size_t r = 0; r < registers; ++r) {
      Scalars operands;
      for (ValueRange values : adaptor.getInputs()) {
        const Value v = values.size() == 1 ? values.front() : values[r];
        operands.push_back(e.bitcast(v, inRegister(e, v.getType())));
      }
      auto one = LLVM::InlineAsmOp::create(rewriter, op.getLoc(), made ? TypeRange(made) : TypeRange(), operands,
                                           ("{ " + op.getText() + " }").str(), constraints, op.getEffects(),
                                           /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(),
                                           ArrayAttr());
      for (size_t i = 0; i < results.size(); ++i) {
        const Value v =
            results.size() == 1
                ? one.getResult(0)
                : Value(LLVM::ExtractValueOp::create(rewriter, op.getLoc(), one.getResult(0), static_cast<int64_t>(i)));
        out[i].push_back(e.bitcast(v, tile::elementTypeOf(op.getResult(static_cast<unsigned>(i)).getType())));
      }
    }
    rewriter.replaceOpWithMultiple(op, std::move(out));
    return success();
  }

private:
  static Type inRegister(const Emit &e, Type t) { return t.isF16() || t.isBF16() ? e.i(16) : t; }
  static char letter(Type t) {
    if (t.isF32())
      return 'f';
    if (t.isF64())
      return 'd';
    return t.isInteger(16) ? 'h' : t.isInteger(32) ? 'r' : 'l';
  }
  const LoweringContext &context;
};

struct LowerAddPtr : Lowering<tile::AddPtrOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::AddPtrOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    const Type element = memoryType(cast<tile::PtrType>(tile::elementTypeOf(op.getType())).getPointee());
    Scalars out;
    for (auto [pointer, offset] : llvm::zip_equal(adaptor.getPointer(), adaptor.getOffset()))
      out.push_back(e.gep(pointer, element, offset));
    replace(rewriter, op, std::move(out));
    return success();
  }
};

/// A splat is one scalar.  Another constant is a table in global memory, read by coordinates.
struct LowerConstant : Lowering<arith::ConstantOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(arith::ConstantOp op, Adaptor, ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type)
      return failure();
    const layout::TileLayout &layout = context.layout(type);
    const Emit e(rewriter, op.getLoc());
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!dense)
      return op.emitOpError() << "holds " << op.getValue() << ": a tile's constant must be a dense attribute";
    if (dense.isSplat()) {
      Value v = arith::ConstantOp::create(rewriter, op.getLoc(), cast<TypedAttr>(dense.getSplatValue<Attribute>()));
      replace(rewriter, op, Scalars(layout.registers(), v));
      return success();
    }
    const Type element = type.getElementType(), stored = memoryType(element);
    const Value table = makeTable(op, dense, e);
    Scalars out;
    for (unsigned r = 0; r < layout.registers(); ++r) {
      Value at;
      for (unsigned d = 0; d < layout.dims(); ++d) {
        Value c = context.coordinate(rewriter, op.getLoc(), layout, d, r);
        at = at ? e.addNoWrap(e.mul(at, e.i32(layout.shape(d))), c) : c;
      }
      Value address = e.gep(table, stored, at ? at : e.i32(0));
      out.push_back(e.fromMemory(LLVM::LoadOp::create(rewriter, op.getLoc(), stored, address, /*alignment=*/0,
                                                      /*isVolatile=*/false,
                                                      /*isNonTemporal=*/false, /*isInvariant=*/true),
                                 element));
    }
    replace(rewriter, op, std::move(out));
    return success();
  }

private:
  Value makeTable(arith::ConstantOp op, DenseElementsAttr dense, const Emit &e) const {
    auto module = op->getParentOfType<ModuleOp>();
    const Type element = dense.getElementType(), stored = memoryType(element);
    // i1 and 8-bit floats lie as bytes.
    DenseElementsAttr values = dense;
    if (stored != element)
      values = dense.mapValues(stored, [&](const APInt &v) { return v.zext(8); });
    auto array = LLVM::LLVMArrayType::get(stored, dense.getNumElements());
    auto flat = DenseElementsAttr::getFromRawBuffer(RankedTensorType::get({dense.getNumElements()}, stored),
                                                    values.getRawData());
    std::string name;
    for (unsigned n = 0; name.empty() || module.lookupSymbol(name); ++n)
      name = "kiln_table_" + std::to_string(n);
    OpBuilder outside(module.getBodyRegion());
    LLVM::GlobalOp::create(outside, op.getLoc(), array, /*isConstant=*/true, LLVM::Linkage::Internal, name, flat,
                           /*alignment=*/16, globalSpace);
    return LLVM::AddressOfOp::create(e.b, e.loc, e.ptr(globalSpace), name);
  }
};

/// What nobody reads: the start of a conversion through shared memory.
struct LowerPoison : Lowering<ub::PoisonOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(ub::PoisonOp op, Adaptor, ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type)
      return failure();
    const Type scalar = scalarType(type.getElementType());
    Value v = isa<LLVM::LLVMPointerType>(scalar) ? Value(LLVM::PoisonOp::create(rewriter, op.getLoc(), scalar))
                                                 : Value(ub::PoisonOp::create(rewriter, op.getLoc(), scalar));
    replace(rewriter, op, Scalars(context.layout(type).registers(), v));
    return success();
  }
};

} // namespace

void populateElementwisePatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                                 const LoweringContext &context) {
  patterns.add<LowerElementwise, LowerInlinePtx, LowerAddPtr, LowerConstant, LowerPoison>(converter, context);
}

} // namespace kiln::lowering
