//===- ForeignDialect.h - Operations that stand in no list of Kiln's --------===//
//
// A dialect of the tests.  Its operations implement the interfaces of compiler/tile/MemoryInterfaces.h; no file of the
// compiler names one.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_BARRIERS_FOREIGNDIALECT_H
#define KILN_TESTS_BARRIERS_FOREIGNDIALECT_H

#include "compiler/tile_gpu/SharedAccesses.h"

namespace kiln::test::foreign {

using Effects = llvm::SmallVectorImpl<mlir::MemoryEffects::EffectInstance>;

/// What TableGen would write: an operation of any operands and results, without a region.
template <typename Concrete, template <typename> class... Traits>
class Operation : public mlir::Op<Concrete, mlir::OpTrait::ZeroRegions, mlir::OpTrait::ZeroSuccessors,
                                  mlir::OpTrait::VariadicOperands, mlir::OpTrait::VariadicResults,
                                  mlir::MemoryEffectOpInterface::Trait, Traits...> {
public:
  using mlir::Op<Concrete, mlir::OpTrait::ZeroRegions, mlir::OpTrait::ZeroSuccessors, mlir::OpTrait::VariadicOperands,
                 mlir::OpTrait::VariadicResults, mlir::MemoryEffectOpInterface::Trait, Traits...>::Op;
  static llvm::ArrayRef<llvm::StringRef> getAttributeNames() { return {}; }

protected:
  template <typename Effect, typename Memory> void effect(Effects &effects, unsigned operand) {
    effects.emplace_back(Effect::get(), &(*this)->getOpOperand(operand), Memory::get());
  }
};

/// What the copy engine does, in flight.
inline tile::MemoryAccesses byBulkCopy(tile::MemoryAccesses accesses) {
  for (tile::MemoryAccess &access : accesses) {
    access.agent = tile::Agent::BulkCopy;
    access.inFlight = true;
  }
  return accesses;
}

/// "foreign.put"(%tile, %buffer): each thread writes its elements.
class PutOp : public Operation<PutOp, tile::AccessOpInterface::Trait> {
public:
  using Operation::Operation;
  static constexpr llvm::StringLiteral getOperationName() { return "foreign.put"; }
  void getEffects(Effects &effects) { effect<mlir::MemoryEffects::Write, tile_gpu::SharedMemory>(effects, 1); }
  tile::MemoryAccesses accesses() { return {tile_gpu::sharedWrite(getOperand(1), getOperand(0).getType())}; }
};

/// "foreign.sum"(%buffer): any thread may read anything.  States nothing but its effect.
class SumOp : public Operation<SumOp> {
public:
  using Operation::Operation;
  static constexpr llvm::StringLiteral getOperationName() { return "foreign.sum"; }
  void getEffects(Effects &effects) { effect<mlir::MemoryEffects::Read, tile_gpu::SharedMemory>(effects, 0); }
};

/// "foreign.bulk_fill"(%pointer, %buffer): the copy engine fills the buffer, until a wait for its group.
class BulkFillOp
    : public Operation<BulkFillOp, tile::AccessOpInterface::Trait, tile_gpu::Needs<Capability::Tma>::Impl> {
public:
  using Operation::Operation;
  static constexpr llvm::StringLiteral getOperationName() { return "foreign.bulk_fill"; }
  void getEffects(Effects &effects) {
    effect<mlir::MemoryEffects::Read, tile::GlobalMemory>(effects, 0);
    effect<mlir::MemoryEffects::Write, tile_gpu::SharedMemory>(effects, 1);
  }
  tile::MemoryAccesses accesses() {
    return byBulkCopy({tile::detail::throughPointer(getOperand(0), {}, /*reads=*/true, /*writes=*/false),
                       tile_gpu::sharedWrite(getOperand(1))});
  }
};

/// "foreign.bulk_drain"(%buffer, %pointer): the copy engine reads the buffer, until a wait for its group.
class BulkDrainOp : public Operation<BulkDrainOp, tile::AccessOpInterface::Trait> {
public:
  using Operation::Operation;
  static constexpr llvm::StringLiteral getOperationName() { return "foreign.bulk_drain"; }
  void getEffects(Effects &effects) {
    effect<mlir::MemoryEffects::Read, tile_gpu::SharedMemory>(effects, 0);
    effect<mlir::MemoryEffects::Write, tile::GlobalMemory>(effects, 1);
  }
  tile::MemoryAccesses accesses() {
    return byBulkCopy({tile_gpu::sharedRead(getOperand(0)),
                       tile::detail::throughPointer(getOperand(1), {}, /*reads=*/false, /*writes=*/true)});
  }
};

/// %token = "foreign.bulk_commit"()
class BulkCommitOp : public Operation<BulkCommitOp, tile::OrderOpInterface::Trait> {
public:
  using Operation::Operation;
  static constexpr llvm::StringLiteral getOperationName() { return "foreign.bulk_commit"; }
  void getEffects(Effects &effects) {
    effects.emplace_back(mlir::MemoryEffects::Write::get(), tile_gpu::AsyncGroups::get());
  }
  tile::MemoryOrdering ordering() {
    tile::MemoryOrdering out;
    out.closes = tile::Agent::BulkCopy;
    out.token = getOperation()->getResult(0);
    return out;
  }
};

/// "foreign.bulk_wait"(%token) {groups}
class BulkWaitOp : public Operation<BulkWaitOp, tile::OrderOpInterface::Trait> {
public:
  using Operation::Operation;
  static constexpr llvm::StringLiteral getOperationName() { return "foreign.bulk_wait"; }
  static llvm::ArrayRef<llvm::StringRef> getAttributeNames() {
    static const llvm::StringRef names[] = {"groups"};
    return names;
  }
  void getEffects(Effects &effects) {
    effects.emplace_back(mlir::MemoryEffects::Write::get(), tile_gpu::SharedMemory::get());
  }
  tile::MemoryOrdering ordering() {
    tile::MemoryOrdering out;
    out.awaits = tile::Agent::BulkCopy;
    out.tokens = getOperation()->getOperands();
    if (auto groups = (*this)->getAttrOfType<mlir::IntegerAttr>("groups"))
      out.inFlight = static_cast<unsigned>(groups.getInt());
    return out;
  }
  void leaveInFlight(unsigned groups) {
    (*this)->setAttr("groups", mlir::Builder(getContext()).getI32IntegerAttr(static_cast<std::int32_t>(groups)));
  }
};

/// "foreign.half"(%a, %b): has effects on both buffers and states an access of the first.
class HalfOp : public Operation<HalfOp, tile::AccessOpInterface::Trait> {
public:
  using Operation::Operation;
  static constexpr llvm::StringLiteral getOperationName() { return "foreign.half"; }
  void getEffects(Effects &effects) {
    effect<mlir::MemoryEffects::Read, tile_gpu::SharedMemory>(effects, 0);
    effect<mlir::MemoryEffects::Write, tile_gpu::SharedMemory>(effects, 1);
  }
  tile::MemoryAccesses accesses() { return {tile_gpu::sharedRead(getOperand(0))}; }
};

/// "foreign.hidden"(%a): states a write, of which its effects say nothing.
class HiddenOp : public Operation<HiddenOp, tile::AccessOpInterface::Trait> {
public:
  using Operation::Operation;
  static constexpr llvm::StringLiteral getOperationName() { return "foreign.hidden"; }
  void getEffects(Effects &effects) { effect<mlir::MemoryEffects::Read, tile_gpu::SharedMemory>(effects, 0); }
  tile::MemoryAccesses accesses() {
    return {tile_gpu::sharedRead(getOperand(0)), tile_gpu::sharedWrite(getOperand(0))};
  }
};

class ForeignDialect : public mlir::Dialect {
public:
  explicit ForeignDialect(mlir::MLIRContext *context)
      : Dialect(getDialectNamespace(), context, mlir::TypeID::get<ForeignDialect>()) {
    addOperations<PutOp, SumOp, BulkFillOp, BulkDrainOp, BulkCommitOp, BulkWaitOp, HalfOp, HiddenOp>();
  }
  static constexpr llvm::StringLiteral getDialectNamespace() { return "foreign"; }
};

} // namespace kiln::test::foreign

#endif // KILN_TESTS_BARRIERS_FOREIGNDIALECT_H
