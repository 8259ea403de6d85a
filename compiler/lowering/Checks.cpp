// Facts, checks and output: tile.assume, tile.assert, tile.print.
#include "compiler/lowering/GlobalAccess.h"
#include "compiler/tile/PrintSlice.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

/// A generic pointer to a text that ends in a zero; equal texts are one object.
Value textPointer(const Emit &e, Operation *op, llvm::StringRef text) {
  auto module = op->getParentOfType<ModuleOp>();
  std::string data = text.str();
  data.push_back('\0');
  LLVM::GlobalOp global;
  unsigned n = 0;
  for (auto g : module.getOps<LLVM::GlobalOp>())
    if (g.getSymName().starts_with("kiln_text_")) {
      ++n;
      if (auto value = dyn_cast_or_null<StringAttr>(g.getValueOrNull()); value && value.getValue() == data)
        global = g;
    }
  if (!global) {
    OpBuilder outside(module.getBodyRegion());
    auto type = LLVM::LLVMArrayType::get(e.i(8), data.size());
    global = LLVM::GlobalOp::create(outside, op->getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                    "kiln_text_" + std::to_string(n), outside.getStringAttr(data), /*alignment=*/1,
                                    globalSpace);
  }
  Value address = LLVM::AddressOfOp::create(e.b, e.loc, e.ptr(globalSpace), global.getSymName());
  return LLVM::AddrSpaceCastOp::create(e.b, e.loc, e.ptr(0), address);
}

/// Declares a function of CUDA's device runtime.
LLVM::LLVMFuncOp deviceFunction(Operation *op, llvm::StringRef name, Type result, ArrayRef<Type> arguments) {
  auto module = op->getParentOfType<ModuleOp>();
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder outside(module.getBodyRegion());
  return LLVM::LLVMFuncOp::create(outside, module.getLoc(), name, LLVM::LLVMFunctionType::get(result, arguments));
}

struct LowerAssume : Lowering<tile::AssumeOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::AssumeOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    LLVM::AssumeOp::create(rewriter, op.getLoc(), adaptor.getCondition().front());
    rewriter.eraseOp(op);
    return success();
  }
};

/// Facts about a value: the value.
template <typename Op> struct LowerFact : Lowering<Op> {
  using Lowering<Op>::Lowering;
  LogicalResult matchAndRewrite(Op op, typename Lowering<Op>::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    replace(rewriter, op, Scalars(adaptor.getSource()));
    return success();
  }
};

struct LowerAssert : Lowering<tile::AssertOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::AssertOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    // One branch for all elements of a thread.
    Value holds;
    for (Value c : adaptor.getCondition())
      holds = e.both(holds, c);
    const Type pointer = e.ptr(0), i32 = e.i(32), i64 = e.i(64);
    auto fail = deviceFunction(op, "__assertfail", LLVM::LLVMVoidType::get(rewriter.getContext()),
                               {pointer, pointer, i32, pointer, i64});
    e.guarded(e.xor_(holds, e.i1(true)), [&](Emit &inside) {
      // No file and line: code must not depend on where the kernel's text lies.
      const Value name = textPointer(inside, op, context.kernel().getName());
      LLVM::CallOp::create(
          inside.b, inside.loc, fail,
          ValueRange{textPointer(inside, op, op.getMessage()), name, inside.i32(0), name, inside.i64(1)});
      LLVM::Trap::create(inside.b, inside.loc);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// printf's conversion of a scalar, and the value as printf takes it.
std::pair<llvm::StringRef, Value> printable(const Emit &e, Value v) {
  const Type t = v.getType();
  if (isa<LLVM::LLVMPointerType>(t))
    return {"%p", LLVM::PtrToIntOp::create(e.b, e.loc, e.i(64), v)};
  if (isa<FloatType>(t)) {
    if (t.getIntOrFloatBitWidth() < 32)
      v = arith::ExtFOp::create(e.b, e.loc, e.b.getF32Type(), v);
    return {"%.9g", t.isF64() ? v : Value(arith::ExtFOp::create(e.b, e.loc, e.b.getF64Type(), v))};
  }
  if (t.isInteger(1))
    return {"%lld", arith::ExtUIOp::create(e.b, e.loc, e.i(64), v)};
  return {"%lld", e.to64(v)};
}

struct LowerPrint : Lowering<tile::PrintOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::PrintOp op, Adaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    llvm::ArrayRef<std::int64_t> slice; // of each dimension: begin, end
    if (auto given = op->getAttrOfType<DenseI64ArrayAttr>(tile::printSliceAttr))
      slice = given.asArrayRef();
    if (op.getValues().empty())
      e.guarded(context.firstThread(), [&](Emit &inside) { printLine(inside, op, {}, {}); });
    for (auto [value, registers] : llvm::zip_equal(op.getValues(), adaptor.getValues())) {
      auto tile = dyn_cast<RankedTensorType>(value.getType());
      if (!tile) {
        e.guarded(context.firstThread(), [&](Emit &inside) { printLine(inside, op, {}, registers.front()); });
        continue;
      }
      const layout::TileLayout &layout = context.layout(tile);
      e.guarded(context.owns(layout.core()), [&](Emit &inside) {
        for (const AccessGroup &group : groupRegisters(layout, 0, 1)) {
          Scalars at;
          for (unsigned d = 0; d < layout.dims(); ++d)
            at.push_back(context.coordinate(inside.b, inside.loc, layout, d, group.front()));
          Value chosen;
          for (unsigned d = 0; 2 * d < slice.size(); ++d) {
            const auto bound = [&](arith::CmpIPredicate how, std::int64_t limit) {
              return inside.compare(how, at[d], inside.i32(static_cast<int>(limit)));
            };
            chosen = inside.both(chosen, inside.both(bound(arith::CmpIPredicate::sge, slice[2 * d]),
                                                     bound(arith::CmpIPredicate::slt, slice[2 * d + 1])));
          }
          inside.guarded(chosen, [&](Emit &one) { printLine(one, op, at, registers[group.front()]); });
        }
      });
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// "program 1,0,0 [2,3]: prefix value"
  void printLine(const Emit &e, tile::PrintOp op, ArrayRef<Value> at, Value value) const {
    Scalars arguments = {NVVM::BlockIdXOp::create(e.b, e.loc, e.i(32)), NVVM::BlockIdYOp::create(e.b, e.loc, e.i(32)),
                         NVVM::BlockIdZOp::create(e.b, e.loc, e.i(32))};
    std::string format = "program %u,%u,%u ";
    for (auto [i, c] : llvm::enumerate(at)) {
      format += (i ? "," : "[") + std::string("%u");
      arguments.push_back(c);
    }
    format += at.empty() ? "" : "] ";
    for (char c : op.getPrefix())
      format += c == '%' ? "%%" : std::string(1, c);
    if (value) {
      auto [conversion, v] = printable(e, value);
      format += conversion;
      arguments.push_back(v);
    }
    format += '\n';
    // Arguments lie in a structure in local memory, each at its natural alignment.
    llvm::SmallVector<Type> types;
    for (Value v : arguments)
      types.push_back(v.getType());
    auto record = LLVM::LLVMStructType::getLiteral(e.b.getContext(), types);
    const Value place = context.localPlace(record);
    for (auto [i, v] : llvm::enumerate(arguments)) {
      Value field =
          LLVM::GEPOp::create(e.b, e.loc, e.ptr(0), record, place, ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(i)});
      LLVM::StoreOp::create(e.b, e.loc, v, field);
    }
    auto print = deviceFunction(op, "vprintf", e.i(32), {e.ptr(0), e.ptr(0)});
    LLVM::CallOp::create(e.b, e.loc, print, ValueRange{textPointer(e, op, format), place});
  }
};

} // namespace

void populateCheckPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                           const LoweringContext &context) {
  patterns.add<LowerAssume, LowerAssert, LowerPrint, LowerFact<tile::MultipleOfOp>, LowerFact<tile::MaxContiguousOp>>(
      converter, context);
}

} // namespace kiln::lowering
