//===- LlvmCounts.h - Barriers and shared objects of an LLVM module -------===//
//
// The lint of the barrier rule: after expand-shared no lowering pattern makes shared memory or a barrier, so the counts
// of the LLVM IR before O3 equal those of the tile_gpu IR.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_LLVMCOUNTS_H
#define KILN_CODEGEN_LLVMCOUNTS_H

namespace llvm {
class Module;
}

namespace kiln {

struct LlvmCounts {
  unsigned blockBarriers = 0;   ///< calls of CTA barriers (bar.sync, bar.red, bar.arrive), inline asm ones too
  unsigned warpBarriers = 0;    ///< bar.warp.sync
  unsigned clusterBarriers = 0; ///< barrier.cluster.arrive and .wait
  unsigned sharedObjects = 0;   ///< globals in shared memory
  bool operator==(const LlvmCounts &) const = default;
};

LlvmCounts countLlvm(const llvm::Module &module);

} // namespace kiln

#endif // KILN_CODEGEN_LLVMCOUNTS_H
