// tile.reduce and tile.scan.
#include "compiler/lowering/Emit.h"

using namespace mlir;

namespace kiln::lowering {

void populateReducePatterns(RewritePatternSet &, const TileTypeConverter &, const LoweringContext &) {}

} // namespace kiln::lowering
