#include "compiler/pipeline/GivenStage.h"

#include "compiler/pipeline/LoweredKernel.h"
#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/TileGpu.h"

using namespace mlir;

namespace kiln {

llvm::StringRef stageName(Stage stage) {
  return stage == Stage::Tile ? "tile" : stage == Stage::TileGpu ? "tile_gpu" : "llvm";
}

llvm::StringRef passesName(Stage stage) {
  return stage == Stage::Llvm ? "lowering" : stageName(stage);
}

Stage stageOf(ModuleOp module) {
  if (isLowered(module))
    return Stage::Llvm;
  for (auto f : module.getOps<func::FuncOp>())
    if (tile::isKernel(f) && f->hasAttr(tile_gpu::sharedBytesAttr))
      return Stage::TileGpu;
  return Stage::Tile;
}

LogicalResult checkTargetName(ModuleOp module, const Target &target) {
  auto written = module->getAttrOfType<StringAttr>(tile_gpu::targetAttr);
  if (written && written.getValue() != llvm::StringRef(target.name))
    return module.emitError() << "the program is written for " << written.getValue() << ", not for "
                              << llvm::StringRef(target.name);
  return success();
}

FailureOr<func::FuncOp> pickFinishedKernel(ModuleOp module, llvm::StringRef name, const Target &target) {
  if (failed(checkTargetName(module, target)))
    return failure();
  if (!module->hasAttr(tile_gpu::targetAttr))
    return module.emitError() << "the program is at stage tile_gpu (its kernel has " << tile_gpu::sharedBytesAttr
                              << ") and does not say for which target: give the module " << tile_gpu::targetAttr
                              << " = \"" << llvm::StringRef(target.name) << "\"",
           failure();
  func::FuncOp chosen;
  std::string names;
  llvm::SmallVector<func::FuncOp> kernels;
  for (auto f : module.getOps<func::FuncOp>())
    if (tile::isKernel(f))
      kernels.push_back(f);
  for (func::FuncOp f : kernels) {
    names += (names.empty() ? "" : ", ") + f.getName().str();
    if (name.empty() ? kernels.size() == 1 : f.getName() == name)
      chosen = f;
  }
  if (!chosen && name.empty())
    return module.emitError() << "the program has several kernels: " << names << "; name one", failure();
  if (!chosen)
    return module.emitError() << "the program has no kernel '" << name << "'; it has " << names, failure();
  if (chosen.isDeclaration())
    return chosen.emitError() << "kernel '" << chosen.getName() << "' has no body", failure();
  if (!chosen->hasAttr(tile_gpu::sharedBytesAttr))
    return chosen.emitError() << "another kernel of the program is at stage tile_gpu, and kernel '" << chosen.getName()
                              << "' is not: put each into a file of its own",
           failure();
  for (func::FuncOp f : kernels)
    if (f != chosen)
      f.erase();
  return chosen;
}

} // namespace kiln
