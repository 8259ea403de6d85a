#include "compiler/lowering/Emit.h"
namespace kiln::lowering {
void populateAtomicPatterns(mlir::RewritePatternSet &, const TileTypeConverter &, const LoweringContext &) {}
}
