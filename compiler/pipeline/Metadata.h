//===- Metadata.h - What a launcher must know of a compiled kernel -----------===//
//
// The JSON of CompilerTable.h, gathered stage by stage, or from a kernel at stage llvm.  Arguments lie at their natural
// offsets, as the PTX declares them.  Guards are what the program says of its arguments (tile.divisibility,
// tile.equals), the request's facts among it since kiln-specialize wrote them there: the code may rely on each.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_METADATA_H
#define KILN_PIPELINE_METADATA_H

#include "compiler/pipeline/Compile.h"
#include "compiler/target/KernelOptions.h"
#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/TensorMaps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kiln {

struct Metadata {
  struct Argument {
    std::string name, type; ///< "x", "ptr<f32>"
    unsigned offset, bytes;
    std::string specialize = {}; ///< tile.specialize; empty: as the type says
    unsigned elementBytes = 0;   ///< of its tile.element; 0: it has none
  };
  std::string kernel, target, ptxIsa;
  KernelOptionValues options;
  unsigned sharedBytes = 0;
  bool reproducible = true; ///< no floating-point sums by atomics, but for those in order
  std::vector<Argument> arguments;
  struct Hidden {
    tile_gpu::TensorMapRecipeAttr recipe;
    unsigned offset;
  };
  std::vector<Hidden> hidden; ///< parameters that the launcher makes, after the arguments
  bool mapsByPasses = false;  ///< some of them only because a pass found it good
  std::vector<std::pair<unsigned, long long>> divisible, equals; ///< guards
  std::vector<std::pair<std::string, double>> milliseconds;
  struct PassTime {
    std::string stage, pass;
    double milliseconds = 0;
  };
  std::vector<PassTime> passTimes; ///< in order; empty unless asked for
  std::string explanation;         ///< a JSON object, or empty
};

/// After the tile stage.
Metadata describeKernel(mlir::func::FuncOp kernel);
/// Of a kernel given at stage llvm, instead.  Fails with an error at the function that lacks something.
mlir::FailureOr<Metadata> describeLowered(mlir::LLVM::LLVMFuncOp kernel);
/// Of the lowered kernel, before PTX is made of it: what the launcher passes in addition to the arguments.
void describeHidden(mlir::LLVM::LLVMFuncOp kernel, Metadata &metadata);
/// After the tile_gpu stage.
void describeResources(mlir::func::FuncOp kernel, Metadata &metadata);

std::string toJson(const Metadata &metadata);

} // namespace kiln

#endif // KILN_PIPELINE_METADATA_H
