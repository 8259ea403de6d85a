// Verifier and effects of PtxOps.td.
#include "compiler/tile/Tile.h"
#include "support/InlinePtx.h"

using namespace mlir;

namespace kiln::tile {

LogicalResult InlinePtxOp::verify() {
  if (getNumResults() == 0 && !getEffects())
    return emitOpError() << "has neither results nor effects: nothing would come of it (write `effects`)";
  const llvm::StringRef text = getText();
  if (const Status status = checkInlinePtx({text.data(), text.size()}, getNumResults(), getNumOperands()); !status.ok())
    return emitOpError() << status.toString();
  return success();
}

void InlinePtxOp::getEffects(llvm::SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (getEffects())
    effects.emplace_back(MemoryEffects::Write::get(), Console::get());
}

Speculation::Speculatability InlinePtxOp::getSpeculatability() {
  return getEffects() ? Speculation::NotSpeculatable : Speculation::Speculatable;
}

} // namespace kiln::tile
