#include "compiler/lowering/PairConversions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"

#include <array>

using namespace mlir;

namespace kiln {
namespace {

/// The conversion whose lower byte this is, of one number with a zero; null: it comes from something else.
NVVM::ConvertF32x2ToF8x2Op conversionOf(Value byte) {
  while (isa_and_present<arith::BitcastOp, LLVM::BitcastOp>(byte.getDefiningOp()))
    byte = byte.getDefiningOp()->getOperand(0);
  auto lower = byte.getDefiningOp<LLVM::TruncOp>();
  auto convert = lower ? lower.getArg().getDefiningOp<NVVM::ConvertF32x2ToF8x2Op>() : NVVM::ConvertF32x2ToF8x2Op();
  return convert && convert.getType().isInteger(16) && matchPattern(convert.getA(), m_PosZeroFloat()) ? convert
                                                                                                      : nullptr;
}

/// The bytes of a word that is put together one by one; empty: it is not.
std::array<Value, 4> bytesOf(LLVM::BitcastOp word) {
  std::array<Value, 4> out = {};
  const auto type = dyn_cast<VectorType>(word.getArg().getType());
  if (!type || !word.getType().isInteger(32) || type.getNumElements() != 4)
    return out;
  for (auto insert = word.getArg().getDefiningOp<LLVM::InsertElementOp>(); insert;
       insert = insert.getVector().getDefiningOp<LLVM::InsertElementOp>()) {
    APInt at;
    if (!matchPattern(insert.getPosition(), m_ConstantInt(&at)) || at.uge(out.size()))
      return {};
    Value &byte = out[at.getZExtValue()];
    byte = byte ? byte : insert.getValue(); // a later one counts
  }
  return out;
}

} // namespace

void pairConversions(Operation *root) {
  llvm::SmallVector<LLVM::BitcastOp> words;
  root->walk([&](LLVM::BitcastOp word) { words.push_back(word); });
  for (LLVM::BitcastOp word : words) {
    std::array<NVVM::ConvertF32x2ToF8x2Op, 4> each;
    for (auto [byte, convert] : llvm::zip_equal(bytesOf(word), each))
      convert = byte ? conversionOf(byte) : nullptr;
    if (!llvm::all_of(each, [&](auto convert) { return convert && convert.getDstTy() == each[0].getDstTy(); }))
      continue;
    OpBuilder b(word);
    const Location loc = word.getLoc();
    const Type half = b.getI16Type();
    Value both = LLVM::UndefOp::create(b, loc, VectorType::get(2, half));
    for (unsigned i = 0; i < 2; ++i) {
      const Value pair =
          NVVM::ConvertF32x2ToF8x2Op::create(b, loc, half, each[2 * i + 1].getB(), each[2 * i].getB(), each[0].getRnd(),
                                             each[0].getSat(), each[0].getRelu(), each[0].getDstTy());
      both = LLVM::InsertElementOp::create(b, loc, both, pair,
                                           LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(i)));
    }
    word.getArgMutable().set(both);
  }
}

} // namespace kiln
