#include "compiler/lowering/Emit.h"
namespace kiln::lowering {
void populateConvertPatterns(mlir::RewritePatternSet &, const TileTypeConverter &, const LoweringContext &) {}
}
