//===- Tile.h - The portable dialect ----------------------------------------===//
//
// Types and operations of `tile`, generated from the .td files next to this one, which document each.
//
// Invariants that the verifiers keep: tiles have static shapes with extents m * 2^k (m odd, at most 15 all together);
// a kernel's arguments are numbers and pointers to global memory; strides are values, never inferred.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_TILE_H
#define KILN_TILE_TILE_H

#include "compiler/tile/MemoryInterfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include <array>

namespace kiln::tile {

/// Global memory, in memory effects.
struct GlobalMemory : mlir::SideEffects::Resource::Base<GlobalMemory> {
  llvm::StringRef getName() final { return "global memory"; }
};
/// What `print`, `assert`, `assume` and `inline_ptx effects` write: keeps them in order and alive.
struct Console : mlir::SideEffects::Resource::Base<Console> {
  llvm::StringRef getName() final { return "console"; }
};

// Attributes of kernels and their arguments.
constexpr llvm::StringLiteral kernelAttr = "tile.kernel";
constexpr llvm::StringLiteral numWarpsAttr = "tile.num_warps";
constexpr llvm::StringLiteral numStagesAttr = "tile.num_stages";
constexpr llvm::StringLiteral unrollAttr = "tile.unroll";
constexpr llvm::StringLiteral maxRegistersAttr = "tile.max_registers";
constexpr llvm::StringLiteral copyWarpsAttr = "tile.copy_warps";
constexpr llvm::StringLiteral assemblerLevelAttr = "tile.assembler_level";
constexpr llvm::StringLiteral clusterAttr = "tile.cluster";
constexpr llvm::StringLiteral divisibilityAttr = "tile.divisibility";
constexpr llvm::StringLiteral equalsAttr = "tile.equals"; ///< the value that the code is for
constexpr llvm::StringLiteral nameAttr = "tile.name";
constexpr llvm::StringLiteral noaliasAttr = "tile.noalias";
constexpr llvm::StringLiteral specializeAttr = "tile.specialize";
constexpr llvm::StringLiteral elementAttr = "tile.element"; ///< that the argument counts

constexpr unsigned defaultNumWarps = 4, maxNumStages = 8, maxUnroll = 64, maxAssemblerLevel = 3;

/// Of types of arguments that no caller passes: the launcher makes them, as their attributes say.  A kernel has them
/// last.
template <typename ConcreteType> struct HiddenArgument : mlir::TypeTrait::TraitBase<ConcreteType, HiddenArgument> {};
inline bool isHidden(mlir::Type type) {
  return type.hasTrait<HiddenArgument>();
}
/// The arguments that a caller passes.
unsigned numVisibleArguments(mlir::func::FuncOp kernel);

inline bool isKernel(mlir::func::FuncOp f) {
  return f->hasAttr(kernelAttr);
}
/// Warps of a block of the kernel.
unsigned numWarps(mlir::func::FuncOp kernel);
/// Warps of the block that only copy, after those; 0 where nobody has decided.
unsigned numCopyWarps(mlir::func::FuncOp kernel);
/// Blocks of a cluster of the kernel along x, y and z: ones where it asks for none.
std::array<int32_t, 3> clusterOf(mlir::func::FuncOp kernel);
/// Stages of a loop: its own, else its kernel's, else 1.  A loop around it does not say.
unsigned numStages(mlir::Operation *loop);
/// The kernel's argument as messages call it: its tile.name, or "argument N".
std::string argumentName(mlir::func::FuncOp kernel, unsigned index);

/// The tile.name of the argument that a view, a pointer or a tile of pointers is made of; empty if it has none or
/// several could be meant.
llvm::StringRef memoryName(mlir::Value memory);

/// The type itself, or a tile's element type.
mlir::Type elementTypeOf(mlir::Type type);
/// `like`'s shape and encoding with another element type; the element type itself if `like` is a scalar.
mlir::Type withElementType(mlir::Type like, mlir::Type element);
/// Bits of one element in memory: i1 takes 8, a pointer 64.
unsigned storageBits(mlir::Type element);

} // namespace kiln::tile

#include "compiler/tile/TileDialect.h.inc"

#include "compiler/tile/TileEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/tile/TileTypes.h.inc"

#define GET_OP_CLASSES
#include "compiler/tile/TileOps.h.inc"

#endif // KILN_TILE_TILE_H
