#include "compiler/lowering/SharedMoves.h"

using namespace mlir;

namespace kiln::lowering {

using layout::applyColumns;
using layout::Mask;

namespace {
unsigned logOf(unsigned powerOfTwo) {
  return static_cast<unsigned>(std::countr_zero(powerOfTwo));
}
} // namespace

Value byteOf(const Emit &e, const layout::OffsetFields &fields, Value offset, layout::BitVector bits) {
  auto times = [&](Value v, uint64_t bytes) {
    return std::has_single_bit(bytes) ? e.shl(v, static_cast<unsigned>(std::countr_zero(bytes)))
                                      : e.mul(v, e.i32(static_cast<int64_t>(bytes)));
  };
  Value out;
  for (const layout::OffsetField &f : fields) {
    const layout::BitVector own = (layout::BitVector(1) << f.bits) - 1;
    if (!(bits >> f.bit & own))
      continue;
    Value part = f.bit ? e.shr(offset, f.bit) : offset;
    if (bits >> f.bit & ~own)
      part = e.and_(part, e.i32(static_cast<int64_t>(own)));
    part = times(part, f.bytes);
    out = out ? e.add(out, part) : part;
  }
  return out ? out : e.i32(0);
}

void fenceForHardware(OpBuilder &b, Location loc, const LoweringContext &context) {
  if (context.target().has(Capability::Wgmma) || context.target().has(Capability::Tma))
    NVVM::FenceProxyOp::create(b, loc, NVVM::ProxyKind::async_shared,
                               NVVM::SharedSpaceAttr::get(b.getContext(), NVVM::SharedSpace::shared_cta));
}

SharedMove::SharedMove(const LoweringContext &context, const Emit &e, const layout::Access &access,
                       const MoveFrame &frame, Value base)
    : context(context), e(e), access(access), frame(frame), base(base),
      threadPart(context.linear(isMatrix(access.form) ? access.rowOffset : access.lane, access.warp)) {}

std::optional<SharedMove::Place> SharedMove::place(const Emit &at, unsigned number) {
  const Mask offset = applyColumns(access.registerOffset, applyColumns(access.instruction, number));
  const Mask inside = (Mask(1) << frame.placeBits) - 1;
  const unsigned log = logOf(frame.storageBytes);
  if (frame.predicatedPasses) {
    // Lanes of one instruction may belong to different passes.
    Value o = threadPart ? threadPart : at.i32(0);
    if (offset & access.addressSpan)
      o = at.xor_(o, at.i32(offset & access.addressSpan));
    if (offset & ~access.addressSpan)
      o = at.addNoWrap(o, at.i32(offset & ~access.addressSpan));
    const Value mine = at.compare(arith::CmpIPredicate::eq, at.shr(o, frame.placeBits), at.i32(frame.pass));
    return Place{at.gep(base, at.i(8), at.shl(at.and_(o, at.i32(inside)), log)), mine};
  }
  if (offset >> frame.placeBits != frame.pass)
    return std::nullopt;
  const unsigned exclusive = offset & inside & access.addressSpan, added = offset & inside & ~access.addressSpan;
  Value &start = bases[exclusive];
  if (!start) {
    Value o = threadPart;
    if (exclusive)
      o = o ? e.xor_(o, e.i32(exclusive)) : e.i32(exclusive);
    start = o ? e.gep(base, e.i(8), byteOf(e, frame.fields, o, access.addressSpan)) : base;
  }
  return Place{at.gep(start, at.i(8), static_cast<int64_t>(layout::byteOf(frame.fields, added))), Value()};
}

/// Registers that instruction `number` moves, in the order of the bytes (of a lane, for matrices: word by word).
llvm::SmallVector<unsigned> SharedMove::registersOf(unsigned number) const {
  const Mask first = applyColumns(access.instruction, number);
  const unsigned perVector = 1u << access.vector.size();
  llvm::SmallVector<unsigned> out;
  for (unsigned j = 0; j < 1u << access.matrices.size(); ++j)
    for (unsigned h = 0; h < (access.halves ? 2u : 1u); ++h)
      for (unsigned s = 0; s < perVector; ++s)
        out.push_back(first ^ applyColumns(access.matrices, j) ^ (h ? access.halves : 0) ^
                      applyColumns(access.vector, s));
  return out;
}

void SharedMove::storeOne(const Emit &at, unsigned number, Value address, ArrayRef<Value> registers) const {
  Scalars bits;
  for (unsigned r : registersOf(number))
    bits.push_back(at.toBits(registers[r]));
  if (!isMatrix(access.form)) {
    Value v = bits.front();
    if (bits.size() > 1) {
      v = LLVM::UndefOp::create(at.b, at.loc, VectorType::get(bits.size(), v.getType()));
      for (auto [i, x] : llvm::enumerate(bits))
        v = LLVM::InsertElementOp::create(at.b, at.loc, v, x, at.i32(i));
    }
    LLVM::StoreOp::create(at.b, at.loc, v, address, access.bytes);
    return;
  }
  const unsigned words = 1u << access.matrices.size(), perWord = bits.size() / words;
  Scalars list;
  for (unsigned j = 0; j < words; ++j)
    list.push_back(at.joinWord(ArrayRef<Value>(bits).slice(j * perWord, perWord)));
  MLIRContext *c = at.b.getContext();
  NVVM::StMatrixOp::create(at.b, at.loc, address, list,
                           isTrans(access.form) ? NVVM::MMALayout::col : NVVM::MMALayout::row,
                           NVVM::LdStMatrixShapeAttr::get(c, 8, 8), NVVM::LdStMatrixEltType::B16);
}

Scalars SharedMove::loadOne(const Emit &at, unsigned number, Value address, Type type) const {
  const unsigned count = registersOf(number).size();
  Scalars bits;
  if (!isMatrix(access.form)) {
    const Type one = at.i(8 * frame.storageBytes);
    const Type all = count == 1 ? one : Type(VectorType::get(count, one));
    const Value v = LLVM::LoadOp::create(at.b, at.loc, all, address, access.bytes);
    for (unsigned i = 0; i < count; ++i)
      bits.push_back(count == 1 ? v : Value(LLVM::ExtractElementOp::create(at.b, at.loc, v, at.i32(i))));
  } else {
    const unsigned words = 1u << access.matrices.size();
    MLIRContext *c = at.b.getContext();
    Type result = at.i(32);
    if (words > 1)
      result = LLVM::LLVMStructType::getLiteral(c, llvm::SmallVector<Type>(words, at.i(32)));
    const Value v = NVVM::LdMatrixOp::create(at.b, at.loc, result, address, words,
                                             isTrans(access.form) ? NVVM::MMALayout::col : NVVM::MMALayout::row,
                                             NVVM::LdStMatrixShapeAttr::get(c, 8, 8), NVVM::LdStMatrixEltType::B16);
    for (unsigned j = 0; j < words; ++j)
      bits.append(
          at.splitWord(words == 1 ? v : Value(LLVM::ExtractValueOp::create(at.b, at.loc, v, j)), count / words));
  }
  for (Value &v : bits)
    v = at.fromBits(v, type);
  return bits;
}

void SharedMove::store(ArrayRef<Value> registers) {
  e.guarded(context.noneSet(access.lanePredicate, access.warpPredicate), [&](Emit &owner) {
    for (unsigned i = 0; i < 1u << access.instruction.size(); ++i)
      if (std::optional<Place> p = place(owner, i))
        owner.guarded(p->inPass, [&](Emit &inside) { storeOne(inside, i, p->address, registers); });
  });
}

void SharedMove::load(llvm::MutableArrayRef<Value> registers, Type type) {
  const Value owner = context.noneSet(access.lanePredicate, access.warpPredicate);
  for (unsigned i = 0; i < 1u << access.instruction.size(); ++i) {
    const std::optional<Place> p = place(e, i);
    if (!p)
      continue;
    const llvm::SmallVector<unsigned> into = registersOf(i);
    Scalars before;
    for (unsigned r : into)
      before.push_back(registers[r]);
    const Scalars values =
        e.guarded(e.both(owner, p->inPass), before, [&](Emit &inside) { return loadOne(inside, i, p->address, type); });
    for (auto [r, v] : llvm::zip_equal(into, values))
      registers[r] = v;
  }
}

} // namespace kiln::lowering
