//===- TensorMapJson.h - A tensor map's recipe in the metadata ----------------===//
//
// The JSON object of CompilerTable.h; expressions as ArgumentExpression.h says.
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
