//===- SharedMoves.h - Movements through shared memory, as planned ----------===//
//
// Emits one side of a movement (layout::Access): the same instructions that ConversionPlan.h describes and the tests'
// oracle executes, with addresses as `base xor thread part` plus an immediate.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LOWERING_SHAREDMOVES_H
#define KILN_LOWERING_SHAREDMOVES_H

#include "compiler/lowering/Emit.h"

#include "compiler/layout/ConversionPlan.h"
#include "compiler/layout/TileLayout.h"

namespace kiln::lowering {

/// The byte at which an offset lies (layout::byteOf) whose bits the program computes; it never sets others than `bits`.
mlir::Value byteOf(const Emit &e, const layout::OffsetFields &fields, mlir::Value offset, layout::BitVector bits);

/// It reads past the threads' own accesses (the async proxy) until a fence of each writer and the barrier that follows.
void fenceForHardware(mlir::OpBuilder &b, mlir::Location loc, const LoweringContext &context);

/// What surrounds an access: a conversion's region or a repetition of a buffer's core.
struct MoveFrame {
  unsigned storageBytes = 1;
  unsigned placeBits = 0;        ///< offset bits of one pass
  bool predicatedPasses = false; ///< each access compares its offset's pass bits with the pass
  unsigned pass = 0;
  layout::OffsetFields fields; ///< from places to bytes
};

class SharedMove {
public:
  /// `base` (!llvm.ptr<3>): start of the region that this thread uses.
  SharedMove(const LoweringContext &context, const Emit &e, const layout::Access &access, const MoveFrame &frame,
             mlir::Value base);

  /// Writes the registers of one core.
  void store(llvm::ArrayRef<mlir::Value> registers);
  /// Fills those registers of a core that this pass carries, as scalars of that type; leaves the others.
  void load(llvm::MutableArrayRef<mlir::Value> registers, mlir::Type type);

private:
  struct Place {
    mlir::Value address;
    mlir::Value inPass; ///< null: always
  };
  /// Where instruction `number` goes; nothing if it belongs to another pass.
  std::optional<Place> place(const Emit &at, unsigned number);
  llvm::SmallVector<unsigned> registersOf(unsigned number) const;
  void storeOne(const Emit &at, unsigned number, mlir::Value address, llvm::ArrayRef<mlir::Value> registers) const;
  Scalars loadOne(const Emit &at, unsigned number, mlir::Value address, mlir::Type type) const;

  const LoweringContext &context;
  const Emit &e;
  const layout::Access &access;
  const MoveFrame frame;
  mlir::Value base, threadPart;
  std::map<unsigned, mlir::Value> bases; ///< by xor constant
};

} // namespace kiln::lowering

#endif // KILN_LOWERING_SHAREDMOVES_H
