#include "compiler/lowering/Emit.h"
namespace kiln::lowering {
void populateLocalPatterns(mlir::RewritePatternSet &, const TileTypeConverter &, const LoweringContext &) {}
}
