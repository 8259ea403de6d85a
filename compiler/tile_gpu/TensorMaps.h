//===- TensorMaps.h - Arguments of a kernel that are tensor maps -------------===//
//
// How a pass asks for a tensor map, and how later stages find it: an argument after all others, of type
// `!tile_gpu.tensor_map` and with its recipe as the attribute `tile_gpu.tensor_map`.  Lowered, its type is a pointer;
// the attribute stays, and the kernel's metadata is made from it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TILE_GPU_TENSORMAPS_H
#define KILN_TILE_GPU_TENSORMAPS_H

#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace kiln::tile_gpu {

/// The recipe of a kernel's argument, at any stage; null if it is none that the launcher makes.
TensorMapRecipeAttr recipeOf(mlir::FunctionOpInterface kernel, unsigned argument);

/// The argument with that recipe, added if the kernel has none.
mlir::BlockArgument tensorMapArgument(mlir::func::FuncOp kernel, TensorMapRecipeAttr recipe);

/// What the recipe says of the function's arguments: that they exist, point, and are integers.
mlir::LogicalResult verifyTensorMapArgument(mlir::Operation *function, unsigned argument, mlir::Attribute recipe);

} // namespace kiln::tile_gpu

#endif // KILN_TILE_GPU_TENSORMAPS_H
