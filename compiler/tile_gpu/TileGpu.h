//===- TileGpu.h - What a GPU block does ------------------------------------===//
//
// Types, layout attributes and operations of `tile_gpu`, generated from the .td files next to this one.
//
// Invariants: at this stage every tile carries a layout (a LayoutAttr as the encoding of its type), every buffer a
// shared layout; layouts are compared by what they map, never by how they are written (sameLayout in Layouts.h).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_TILEGPU_H
#define KILN_TILE_GPU_TILEGPU_H

#include "compiler/target/MatrixUnits.h"
#include "compiler/target/TensorMap.h"
#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/Layouts.h"
#include "compiler/tile_gpu/Needs.h"

#include "mlir/IR/AffineMap.h"

namespace kiln::tile_gpu {

/// Shared memory as ordinary loads and stores see it, in memory effects.
struct SharedMemory : mlir::SideEffects::Resource::Base<SharedMemory> {
  llvm::StringRef getName() final { return "shared memory"; }
};

/// The groups of each thread's asynchronous copies.
struct AsyncGroups : mlir::SideEffects::Resource::Base<AsyncGroups> {
  llvm::StringRef getName() final { return "groups of asynchronous copies"; }
};

/// The groups of each thread's sums by the copy engine.
struct BulkGroups : mlir::SideEffects::Resource::Base<BulkGroups> {
  llvm::StringRef getName() final { return "groups of sums by the copy engine"; }
};

/// The groups of each warpgroup's products.
struct ProductGroups : mlir::SideEffects::Resource::Base<ProductGroups> {
  llvm::StringRef getName() final { return "groups of products"; }
};

/// How far each mbarrier is.
struct MbarrierPhases : mlir::SideEffects::Resource::Base<MbarrierPhases> {
  llvm::StringRef getName() final { return "phases of mbarriers"; }
};

/// Whose turn each slot of a pipeline is.
struct PipelineState : mlir::SideEffects::Resource::Base<PipelineState> {
  llvm::StringRef getName() final { return "pipelines"; }
};

/// When warps arrive somewhere: what `delay` changes.
struct Time : mlir::SideEffects::Resource::Base<Time> {
  llvm::StringRef getName() final { return "time"; }
};

/// Where a buffer lies: in shared memory, or in the tensor memory of tcgen05.
enum class Space : unsigned char { Shared, Tensor };

/// Warps of a block that do something together.
struct Warps {
  unsigned first = 0, count = 0;
};
/// Warps of a warpgroup, and threads of it: what multiplies by wgmma together.
constexpr unsigned warpsOfGroup = 4, threadsOfGroup = 32 * warpsOfGroup;
/// The warps that execute an operation: those of its kernel that compute; where others copy, the one of these that the
/// elected thread is in, or all of them in the region of a `roles`.
/// None execute what stands in no function.
Warps warpsOf(mlir::Operation *op);

/// Threads of a block: of the warps that compute and of those that copy.
unsigned threadsOf(mlir::func::FuncOp kernel);

/// What a thread has of them where some warps of the block only copy; none: all have the same.
std::optional<RoleRegisters> registersOfRoles(mlir::func::FuncOp kernel, const Target &target);

/// One thread of the block executes it (`elected`).
bool isElected(mlir::Operation *op);

/// The tile of sums that products may still add to (`pending`), or that is a tile already.
mlir::RankedTensorType tileOf(mlir::Type sums);
/// The other way round; another type stays what it is.
mlir::Type pendingOf(mlir::Type sums);

constexpr llvm::StringLiteral targetAttr = "tile_gpu.target";
/// Of a tile.dot: its operands have the bits of tf32 already (accelerate-dot).
constexpr llvm::StringLiteral roundedOperands = "tile_gpu.rounded_operands";
/// Of a tile.dot of warpgroups in a loop: it may be in flight until the next round has begun its own (pipeline-loops).
constexpr llvm::StringLiteral overlappedProduct = "tile_gpu.overlapped_product";
/// Of a kernel: a pass chose tile.copy_warps, and may take it back (specialize-warps).
constexpr llvm::StringLiteral chosenCopyWarps = "tile_gpu.chosen_copy_warps";
/// On a local_load from a pipeline's slot: it is given back once the threads have read it.  On what gives it back: they
/// have, and a fence of the copy engine's proxy is needed after their reads.  Without one an arrival overtakes loads
/// that wait in the memory unit's queue, and the next copy comes before them (seen on an H100).
constexpr llvm::StringLiteral readByThreads = "tile_gpu.read_by_threads";
constexpr llvm::StringLiteral sharedBytesAttr = "tile_gpu.shared_bytes";
/// Of a kernel's argument: the recipe of the tensor map that the launcher passes there (TensorMaps.h).
constexpr llvm::StringLiteral tensorMapAttr = "tile_gpu.tensor_map";
/// Of a kernel: passes make no tensor maps for it (the launcher could not make one of a call's arguments).
constexpr llvm::StringLiteral noTensorMapsAttr = "tile_gpu.no_tensor_maps";

} // namespace kiln::tile_gpu

#include "compiler/tile_gpu/TileGpuDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/tile_gpu/TileGpuTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/tile_gpu/TileGpuAttributes.h.inc"

#define GET_OP_CLASSES
#include "compiler/tile_gpu/TileGpuOps.h.inc"

namespace kiln::tile_gpu {
/// The hardware may read a buffer of this type by itself: operands of wgmma, what the copy engine takes.
bool isReadByHardware(BufferType buffer);
} // namespace kiln::tile_gpu

#endif // KILN_TILE_GPU_TILEGPU_H
