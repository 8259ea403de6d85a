//===- Emit.h - Scalar operations of the lowering, briefly ------------------===//
//
// A builder at one place and location, with the operations on scalars that lowering patterns use.  Integers are i32
// unless said otherwise.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LOWERING_EMIT_H
#define KILN_LOWERING_EMIT_H

#include "compiler/lowering/Lowering.h"

namespace kiln::lowering {

struct Emit {
  mlir::OpBuilder &b;
  mlir::Location loc;

  Emit(mlir::OpBuilder &builder, mlir::Location loc) : b(builder), loc(loc) {}

  mlir::Type i(unsigned bits) const { return b.getIntegerType(bits); }
  mlir::Type ptr(unsigned space) const { return mlir::LLVM::LLVMPointerType::get(b.getContext(), space); }

  mlir::Value integer(mlir::Type type, int64_t v) const;
  mlir::Value i32(int64_t v) const { return integer(b.getI32Type(), v); }
  mlir::Value i64(int64_t v) const { return integer(b.getI64Type(), v); }
  mlir::Value i1(bool v) const { return integer(b.getI1Type(), v); }
  /// 0 of any scalar type, the null pointer for pointers.
  mlir::Value zero(mlir::Type type) const;

  mlir::Value add(mlir::Value x, mlir::Value y) const;
  /// An addition that cannot overflow.
  mlir::Value addNoWrap(mlir::Value x, mlir::Value y) const;
  mlir::Value sub(mlir::Value x, mlir::Value y) const;
  mlir::Value mul(mlir::Value x, mlir::Value y) const;
  mlir::Value and_(mlir::Value x, mlir::Value y) const;
  mlir::Value or_(mlir::Value x, mlir::Value y) const;
  mlir::Value xor_(mlir::Value x, mlir::Value y) const;
  mlir::Value shl(mlir::Value x, unsigned by) const;
  mlir::Value shr(mlir::Value x, unsigned by) const;
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value x, mlir::Value y) const;
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) const;
  /// Sign extended to i64; i64 stays.
  mlir::Value to64(mlir::Value x) const;
  /// Zero extended to i64; i64 stays.
  mlir::Value widen(mlir::Value x) const;
  /// x & y where either may be null, meaning true.
  mlir::Value both(mlir::Value x, mlir::Value y) const;

  /// base + `elements` * size of `type`; null elements: base.
  mlir::Value gep(mlir::Value base, mlir::Type type, mlir::Value elements) const;
  mlir::Value gep(mlir::Value base, mlir::Type type, int64_t elements) const;

  /// The bits of a scalar as an integer of its storage width: i1 becomes i8, a pointer i64.
  mlir::Value toBits(mlir::Value v) const;
  /// The inverse, for a scalar of that type.
  mlir::Value fromBits(mlir::Value bits, mlir::Type type) const;
  /// The scalar as it lies in memory (memoryType), and back.
  mlir::Value toMemory(mlir::Value v) const;
  mlir::Value fromMemory(mlir::Value v, mlir::Type type) const;
  mlir::Value bitcast(mlir::Value v, mlir::Type type) const;
  /// Up to 4 bytes of integers of equal width as one i32, the first in the low bits, the rest 0; and all 32 bits as
  /// `count` integers.
  mlir::Value joinWord(llvm::ArrayRef<mlir::Value> parts) const;
  Scalars splitWord(mlir::Value word, unsigned count) const;

  /// All lanes take part.  `word` is i32; bfly: lane ^ offset, idx: lane `offset`.
  mlir::Value shuffleWord(mlir::NVVM::ShflKind kind, mlir::Value word, mlir::Value offset) const;
  /// A scalar of any type, by one shuffle or (64 bits) two.
  mlir::Value shuffle(mlir::NVVM::ShflKind kind, mlir::Value v, mlir::Value offset) const;
  /// prmt.b32 of one word: nibble i of the selector names the byte that becomes byte i.
  mlir::Value permuteBytes(mlir::Value word, mlir::Value selector) const;

  /// Runs `body` where `condition` holds (null: always).
  void guarded(mlir::Value condition, llvm::function_ref<void(Emit &)> body) const;
  /// `body`'s values where the condition holds, else `other`; without a condition the body stands alone.
  Scalars guarded(mlir::Value condition, llvm::ArrayRef<mlir::Value> other,
                  llvm::function_ref<Scalars(Emit &)> body) const;
};

} // namespace kiln::lowering

#endif // KILN_LOWERING_EMIT_H
