#include "compiler/lowering/Emit.h"

using namespace mlir;

namespace kiln::lowering {

Value Emit::integer(Type type, int64_t v) const {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, APInt(type.getIntOrFloatBitWidth(), v, true, true)));
}

Value Emit::zero(Type type) const {
  if (isa<LLVM::LLVMPointerType>(type))
    return LLVM::ZeroOp::create(b, loc, type);
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

Value Emit::add(Value x, Value y) const {
  return arith::AddIOp::create(b, loc, x, y);
}
Value Emit::addNoWrap(Value x, Value y) const {
  return arith::AddIOp::create(b, loc, x, y, arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw);
}
Value Emit::sub(Value x, Value y) const {
  return arith::SubIOp::create(b, loc, x, y);
}
Value Emit::mul(Value x, Value y) const {
  return arith::MulIOp::create(b, loc, x, y);
}
Value Emit::and_(Value x, Value y) const {
  return arith::AndIOp::create(b, loc, x, y);
}
Value Emit::or_(Value x, Value y) const {
  return arith::OrIOp::create(b, loc, x, y);
}
Value Emit::xor_(Value x, Value y) const {
  return arith::XOrIOp::create(b, loc, x, y);
}
Value Emit::shl(Value x, unsigned by) const {
  return by ? Value(arith::ShLIOp::create(b, loc, x, integer(x.getType(), by))) : x;
}
Value Emit::shr(Value x, unsigned by) const {
  return by ? Value(arith::ShRUIOp::create(b, loc, x, integer(x.getType(), by))) : x;
}
Value Emit::compare(arith::CmpIPredicate predicate, Value x, Value y) const {
  return arith::CmpIOp::create(b, loc, predicate, x, y);
}
Value Emit::select(Value condition, Value x, Value y) const {
  return x == y ? x : Value(arith::SelectOp::create(b, loc, condition, x, y));
}
Value Emit::to64(Value x) const {
  return x.getType().isInteger(64) ? x : Value(arith::ExtSIOp::create(b, loc, b.getI64Type(), x));
}
Value Emit::widen(Value x) const {
  return x.getType().isInteger(64) ? x : Value(arith::ExtUIOp::create(b, loc, b.getI64Type(), x));
}
Value Emit::both(Value x, Value y) const {
  if (!x || !y)
    return x ? x : y;
  return and_(x, y);
}

Value Emit::gep(Value base, Type type, Value elements) const {
  if (!elements)
    return base;
  return LLVM::GEPOp::create(b, loc, base.getType(), type, base, LLVM::GEPArg(elements));
}
Value Emit::gep(Value base, Type type, int64_t elements) const {
  if (elements == 0)
    return base;
  if (elements == static_cast<int32_t>(elements))
    return LLVM::GEPOp::create(b, loc, base.getType(), type, base, LLVM::GEPArg(static_cast<int32_t>(elements)));
  return gep(base, type, i64(elements));
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

Value Emit::bitcast(Value v, Type type) const {
  if (v.getType() == type)
    return v;
  return isa<VectorType>(type) || isa<VectorType>(v.getType()) ? Value(LLVM::BitcastOp::create(b, loc, type, v))
                                                               : Value(arith::BitcastOp::create(b, loc, type, v));
}

Value Emit::toBits(Value v) const {
  const Type t = v.getType();
  if (t.isInteger(1))
    return arith::ExtUIOp::create(b, loc, i(8), v);
  if (isa<LLVM::LLVMPointerType>(t))
    return LLVM::PtrToIntOp::create(b, loc, i(64), v);
  return bitcast(v, i(t.getIntOrFloatBitWidth()));
}

Value Emit::fromBits(Value bits, Type type) const {
  if (type.isInteger(1))
    return compare(arith::CmpIPredicate::ne, bits, zero(bits.getType()));
  if (isa<LLVM::LLVMPointerType>(type))
    return LLVM::IntToPtrOp::create(b, loc, type, bits);
  return bitcast(bits, type);
}

Value Emit::toMemory(Value v) const {
  const Type t = v.getType();
  if (t.isInteger(1))
    return arith::ExtUIOp::create(b, loc, i(8), v);
  return isa<LLVM::LLVMPointerType>(t) ? v : bitcast(v, memoryType(t));
}

Value Emit::fromMemory(Value v, Type type) const {
  if (type.isInteger(1))
    return compare(arith::CmpIPredicate::ne, v, zero(v.getType()));
  return isa<LLVM::LLVMPointerType>(type) ? v : bitcast(v, type);
}

Value Emit::joinWord(ArrayRef<Value> parts) const {
  const unsigned width = parts.front().getType().getIntOrFloatBitWidth();
  if (width == 32)
    return parts.front();
  const Value none = integer(i(width), 0);
  auto type = VectorType::get(32 / width, i(width));
  Value v = LLVM::UndefOp::create(b, loc, type);
  for (unsigned k = 0; k < 32 / width; ++k)
    v = LLVM::InsertElementOp::create(b, loc, v, k < parts.size() ? parts[k] : none, i32(k));
  return bitcast(v, i(32));
}

Scalars Emit::splitWord(Value word, unsigned count) const {
  if (count == 1)
    return {word};
  const Value v = bitcast(word, VectorType::get(count, i(32 / count)));
  Scalars out;
  for (unsigned k = 0; k < count; ++k)
    out.push_back(LLVM::ExtractElementOp::create(b, loc, v, i32(k)));
  return out;
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

Value Emit::shuffleWord(NVVM::ShflKind kind, Value word, Value offset) const {
  return NVVM::ShflOp::create(b, loc, word.getType(), i32(-1), word, offset, i32(31), kind, UnitAttr());
}

Value Emit::shuffle(NVVM::ShflKind kind, Value v, Value offset) const {
  const Type type = v.getType();
  Value bits = toBits(v);
  const unsigned width = bits.getType().getIntOrFloatBitWidth();
  if (width == 64) {
    Value low = arith::TruncIOp::create(b, loc, i(32), bits);
    Value high = arith::TruncIOp::create(b, loc, i(32), shr(bits, 32));
    low = shuffleWord(kind, low, offset);
    high = shuffleWord(kind, high, offset);
    return fromBits(or_(widen(low), shl(widen(high), 32)), type);
  }
  if (width < 32)
    bits = arith::ExtUIOp::create(b, loc, i(32), bits);
  bits = shuffleWord(kind, bits, offset);
  if (width < 32)
    bits = arith::TruncIOp::create(b, loc, i(width), bits);
  return fromBits(bits, type);
}

Value Emit::permuteBytes(Value word, Value selector) const {
  return NVVM::PermuteOp::create(b, loc, i(32), word, word, selector, NVVM::PermuteMode::DEFAULT);
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

void Emit::guarded(Value condition, llvm::function_ref<void(Emit &)> body) const {
  if (!condition) {
    Emit here(b, loc);
    return body(here);
  }
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Emit inside(b, loc);
  body(inside);
}

Scalars Emit::guarded(Value condition, ArrayRef<Value> other, llvm::function_ref<Scalars(Emit &)> body) const {
  if (!condition) {
    Emit here(b, loc);
    return body(here);
  }
  llvm::SmallVector<Type> types;
  for (Value v : other)
    types.push_back(v.getType());
  auto branch = scf::IfOp::create(b, loc, types, condition, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Emit inside(b, loc);
    scf::YieldOp::create(b, loc, body(inside));
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, other);
  }
  return Scalars(branch.getResults());
}

} // namespace kiln::lowering
