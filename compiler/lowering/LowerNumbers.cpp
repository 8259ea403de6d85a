// kiln-lower-numbers: rewrites the scalar operations that LLVM's NVPTX back end lacks, gets wrong or leaves undefined.
// Floats by the table of numbers, integers and conversions by NumbersInteger.cpp and NumbersConvert.cpp.
#include "compiler/lowering/PairConversions.h"
#include "compiler/passes/Pass.h"

#include "compiler/numbers/Numbers.h"
#include "compiler/numbers/NumbersImplementations.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

namespace kiln {
#include "compiler/passes/LowerNumbers.inc"

namespace {

using namespace mlir;
using namespace kiln::numbers;

Grade gradeOf(Operation *op) {
  auto fast = dyn_cast<arith::ArithFastMathInterface>(op);
  return fast && bitEnumContainsAll(fast.getFastMathFlagsAttr().getValue(), arith::FastMathFlags::afn) ? Grade::Approx
                                                                                                       : Grade::Precise;
}

Num applyRow(Code &code, const NumberRow &row, Type result, llvm::ArrayRef<Num> operands) {
  switch (row.placement) {
  case Placement::Keep:
    break;
  case Placement::InPlace:
    return row.implementation(code, operands);
  case Placement::Helper: {
    std::string name = "__kiln_" + row.helper.str();
    if (row.op == NumberOp::PowI)
      name += "_i" + std::to_string(operands[1].bits());
    return code.call(name, row.implementation, result, operands);
  }
  case Placement::ViaF32: {
    llvm::SmallVector<Num> wide;
    for (const Num &n : operands)
      wide.push_back(n.isFloat() ? extendFloat(n, code.f32()) : n);
    const NumberRow &row32 = *findRow(row.op, NumberType::F32, row.grade);
    const Num value = row32.placement == Placement::Keep ? Num{} : applyRow(code, row32, code.f32(), wide);
    return truncateFloat(value, result);
  }
  }
  return {};
}

class Lowering {
public:
  explicit Lowering(Helpers &helpers) : helpers(helpers) {}

  /// Replaces `op` where that is needed.
  LogicalResult lower(Operation *op) {
    if (failed(verifyNumbers(op)))
      return failure();
    for (const Type t : op->getOperandTypes())
      if (isa<ShapedType>(t))
        return success(); // constants and the like; scalars are what this pass is for
    OpBuilder builder(op);
    Code code(builder, op->getLoc(), helpers);
    llvm::SmallVector<Num> operands;
    for (const Value v : op->getOperands())
      operands.push_back(code.wrap(v));
    const Value result = replacement(op, code, operands);
    if (!result)
      return success();
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
    return success();
  }

private:
  /// The value that replaces the result of `op`; null: it stays.
  Value replacement(Operation *op, Code &code, llvm::ArrayRef<Num> operands) {
    if (const std::optional<NumberOp> number = numberOpOf(op)) {
      const NumberRow *row = findRow(*number, *numberTypeOf(op->getOperand(0).getType()), gradeOf(op));
      if (row->placement == Placement::Keep)
        return {};
      return applyRow(code, *row, op->getResult(0).getType(), operands).value;
    }
    const Type to = op->getNumResults() == 1 ? op->getResult(0).getType() : Type();
    auto integer = [&](IntegerOp kind) -> Value {
      if (isa<IndexType>(to))
        return {};
      return totalInteger(kind, operands[0], operands[1]).value;
    };
    auto intrinsic = [&](auto make) { return make().getResult(); };
    return llvm::TypeSwitch<Operation *, Value>(op)
        .Case([&](arith::DivSIOp) { return integer(IntegerOp::DivS); })
        .Case([&](arith::DivUIOp) { return integer(IntegerOp::DivU); })
        .Case([&](arith::RemSIOp) { return integer(IntegerOp::RemS); })
        .Case([&](arith::RemUIOp) { return integer(IntegerOp::RemU); })
        .Case([&](arith::CeilDivSIOp) { return integer(IntegerOp::CeilDivS); })
        .Case([&](arith::CeilDivUIOp) { return integer(IntegerOp::CeilDivU); })
        .Case([&](arith::FloorDivSIOp) { return integer(IntegerOp::FloorDivS); })
        .Case([&](arith::ShLIOp) { return integer(IntegerOp::Shl); })
        .Case([&](arith::ShRSIOp) { return integer(IntegerOp::ShrS); })
        .Case([&](arith::ShRUIOp) { return integer(IntegerOp::ShrU); })
        .Case([&](math::AbsIOp) { return abs(operands[0]).value; })
        .Case([&](math::CountLeadingZerosOp) { return leadingZeros(operands[0]).value; })
        .Case([&](math::CountTrailingZerosOp) {
          return intrinsic(
              [&] { return LLVM::CountTrailingZerosOp::create(code.builder, code.loc, to, operands[0].value, false); });
        })
        .Case([&](math::CtPopOp) {
          return intrinsic([&] { return LLVM::CtPopOp::create(code.builder, code.loc, to, operands[0].value); });
        })
        .Case([&](arith::FPToSIOp) { return saturatingToInteger(operands[0], to, true).value; })
        .Case([&](arith::FPToUIOp) { return saturatingToInteger(operands[0], to, false).value; })
        .Case([&](arith::SIToFPOp) { return to.isBF16() ? integerToBf16(operands[0], true).value : Value(); })
        .Case([&](arith::UIToFPOp) { return to.isBF16() ? integerToBf16(operands[0], false).value : Value(); })
        .Case([&](arith::ExtFOp) { return extension(code, operands[0], to); })
        .Case([&](arith::TruncFOp op) { return truncation(op, code, operands[0], to); })
        .Default([](Operation *) { return Value(); });
  }

  static std::optional<Fp8> fp8Of(Type t) {
    if (isa<Float8E4M3FNType>(t))
      return Fp8::E4M3;
    if (isa<Float8E5M2Type>(t))
      return Fp8::E5M2;
    return std::nullopt;
  }

  Value extension(Code &code, const Num &x, Type to) {
    const std::optional<Fp8> format = fp8Of(x.type());
    if (!format)
      return {};
    const Num bits = code.wrap(arith::BitcastOp::create(code.builder, code.loc, code.i(8), x.value));
    const Num half = fp8ToHalf(bits, *format);
    if (to.isBF16())
      return truncateFloat(extendFloat(half, code.f32()), to).value;
    return extendFloat(half, to).value;
  }

  Value truncation(arith::TruncFOp op, Code &code, const Num &x, Type to) {
    op.removeRoundingmodeAttr(); // it is nearest even, the default
    const std::optional<Fp8> format = fp8Of(to);
    if (!format && !(x.type().isF64() && to.isBF16()))
      return {};
    // fp32 on the way: exact from 16 bits, rounded to odd from fp64.
    const Num wide = x.bits() == 64 ? roundToOdd32(x) : extendFloat(x, code.f32());
    if (!format)
      return truncateFloat(wide, to).value;
    return arith::BitcastOp::create(code.builder, code.loc, to, fp8FromFloat(wide, *format).value);
  }

  Helpers &helpers;
};

struct LowerNumbers : impl::LowerNumbersBase<LowerNumbers> {
  using impl::LowerNumbersBase<LowerNumbers>::LowerNumbersBase;

  void runOnOperation() override {
    if (printTable) {
      llvm::outs() << numbersMarkdown();
      return;
    }
    llvm::SmallVector<Operation *> work;
    getOperation().walk([&](Operation *op) {
      if (isa_and_present<math::MathDialect, arith::ArithDialect>(op->getDialect()) && op->getNumOperands() > 0)
        work.push_back(op);
    });
    if (work.empty())
      return;
    const Result<const Target *> target = tile_gpu::targetOf(getOperation());
    if (!target.ok()) {
      getOperation().emitError(target.status().message());
      return signalPassFailure();
    }
    Helpers helpers(getOperation(), **target);
    Lowering lowering(helpers);
    bool good = true;
    for (Operation *op : work)
      good &= succeeded(lowering.lower(op));
    if (!good)
      return signalPassFailure();
    pairConversions(getOperation());
  }
};

} // namespace
} // namespace kiln
