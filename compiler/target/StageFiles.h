//===- StageFiles.h - Names of the files of a compile's stages ----------------===//
//
// A dump of what a stage leaves is KERNEL.TARGET.HASH.<one of these>; a file of that name in KILN_OVERRIDE_DIR takes its
// place.  The compiler writes the ones and reads the others, the runtime collects them for the key.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TARGET_STAGEFILES_H
#define KILN_TARGET_STAGEFILES_H

#include <string_view>

namespace kiln::stage_files {

inline constexpr std::string_view tile = "tile.mlir", tileGpu = "tile_gpu.mlir", lowering = "lowering.mlir",
                                  llvmIr = "ll", ptx = "ptx";
inline constexpr std::string_view all[] = {tile, tileGpu, lowering, llvmIr, ptx};

} // namespace kiln::stage_files

#endif // KILN_TARGET_STAGEFILES_H
