#include "compiler/passes/pipelines/SlotBuffers.h"

#include "compiler/layout/StagingBuffer.h"
#include "compiler/tile_gpu/LayoutInference.h"

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

static bool bufferFor(Stage &stage, const Target &target, std::string &why) {
  const StagedLoad &staged = stage.staged;
  const RankedTensorType tile = staged.tile();
  const llvm::StringRef name = tile::memoryName(staged.load->getOperand(0));
  if (const auto operands = warpgroupOperands(staged.load->getResult(0))) {
    // Copies move runs along the innermost dimension.
    if (const BufferType type = warpgroupBuffer(tile, *operands, staged.copy.run.dim, name))
      if (const Result<layout::SharedTile> buffer = type.lowered()) {
        stage.type = type;
        stage.bytes = llvm::alignTo(buffer->bytes(), buffer->alignment());
        stage.inPlace = true;
        return true;
      }
  }
  std::vector<layout::TileLayout> readers;
  for (OpOperand &use : staged.load->getResult(0).getUses()) {
    const LayoutAttr layout = wantedLayout(use).value_or(layoutAttrOf(tile));
    if (Result<layout::TileLayout> reader = layoutOf(withLayout(tile, layout)))
      readers.push_back(std::move(*reader));
  }
  const unsigned bits = planBits(tile);
  const llvm::ArrayRef<int64_t> shape = tile.getShape();
  Result<layout::Swizzled> how = layout::stagingEncoding(std::span(shape.data(), shape.size()), staged.copy.run.dim,
                                                         staged.copy.run.elements, bits, readers, target);
  if (!how) {
    why = how.status().toString();
    return false;
  }
  stage.type = BufferType::get(tile.getContext(), 1, shape, tile.getElementType(),
                               SharedLayoutAttr::get(tile.getContext(), *how), name);
  const Result<layout::SharedTile> buffer = stage.type.lowered();
  stage.bytes = llvm::alignTo(buffer->bytes(), buffer->alignment());
  return true;
}

bool SlotBuffers::choose(llvm::ArrayRef<StagedLoad> loads, unsigned wanted, const Target &target, std::string &why) {
  uint64_t bytes = 0; // of one slot of each
  for (const StagedLoad &staged : loads) {
    Stage stage;
    stage.staged = staged;
    if (staged.elementwise) {
      if (bytes && count < 2)
        break;
      // Conversions and reductions need scratch, too.
      const uint64_t room = target.sharedOptIn - target.sharedOptIn / 4;
      std::string its;
      if (!bufferFor(stage, target, its)) {
        dropped.push_back({staged.load, its});
        continue;
      }
      const uint64_t fit = std::min<uint64_t>(bytes ? count : wanted, room / (bytes + stage.bytes));
      if (fit < (bytes ? count : 2)) {
        dropped.push_back({staged.load, "there is no room for its buffers of " + std::to_string(stage.bytes) +
                                            " bytes in shared memory"});
        continue;
      }
      count = static_cast<unsigned>(fit);
      bytes += stage.bytes;
    } else {
      if (!bufferFor(stage, target, why))
        return false;
      bytes += stage.bytes;
      count = static_cast<unsigned>(std::min<uint64_t>(wanted, target.sharedOptIn / bytes));
    }
    stages.push_back(stage);
  }
  if (stages.empty() || count >= 2)
    return !stages.empty();
  why = "two buffers of each tile take " + std::to_string(2 * bytes) + " bytes of shared memory; " +
        std::string(target.name) + " has " + std::to_string(target.sharedOptIn);
  return false;
}

} // namespace kiln
