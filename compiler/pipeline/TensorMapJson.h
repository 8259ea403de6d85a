//===- TensorMapJson.h - A tensor map's recipe in the metadata ----------------===//
//
// Expressions become numbers, {"argument": N}, and lists of an operator and two of the like: ["*", {"argument": 3}, 2].
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_TENSORMAPJSON_H
#define KILN_PIPELINE_TENSORMAPJSON_H

#include "compiler/tile_gpu/TileGpu.h"

#include "llvm/Support/JSON.h"

namespace kiln {

/// `offset`: where its bytes lie in the packed parameters.
void writeTensorMap(llvm::json::OStream &json, tile_gpu::TensorMapRecipeAttr recipe, unsigned offset);

} // namespace kiln

#endif // KILN_PIPELINE_TENSORMAPJSON_H
