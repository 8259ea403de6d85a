#include "compiler/passes/pipelines/SlotBuffers.h"

#include "compiler/layout/LocalAccess.h"
#include "compiler/layout/StagingBuffer.h"
#include "compiler/tile_gpu/LayoutInference.h"

using namespace mlir;

namespace kiln {

using namespace tile_gpu;

/// What all readers cost.
static double readCost(BufferType buffer, llvm::ArrayRef<layout::TileLayout> readers, unsigned bits,
                       const Target &target) {
  const Result<layout::SharedTile> shared = buffer.lowered();
  double cost = shared ? 0 : std::numeric_limits<double>::infinity();
  for (const layout::TileLayout &reader : readers) {
    if (!shared)
      break;
    const auto plan = layout::planLocalAccess(reader.core(), shared->core(), bits, target, /*store=*/false);
    cost += plan ? plan->cost : std::numeric_limits<double>::infinity();
  }
  return cost;
}

/// Rows along `inner` in the widest swizzle, a tile of one dimension as it is; if threads read them from there as
/// cheaply as from `staging`.
static BufferType mappedBuffer(RankedTensorType tile, unsigned inner, BufferType staging,
                               llvm::ArrayRef<layout::TileLayout> readers, const Target &target) {
  const unsigned bits = planBits(tile);
  const int64_t rank = tile.getRank(), row = tile.getDimSize(inner) * bits / 8;
  layout::Tma tma{0, {0}};
  if (rank == 2)
    tma = {std::min<int64_t>(128, row & -row), {inner, 1 - inner}};
  const llvm::ArrayRef<int64_t> shape = tile.getShape();
  if (rank > 2 || (rank == 2 && tma.swizzle < 32) ||
      !layout::SharedTile::create(tma, std::span(shape.data(), shape.size()), bits))
    return {};
  const auto out = BufferType::get(tile.getContext(), 1, shape, tile.getElementType(),
                                   SharedLayoutAttr::get(tile.getContext(), tma), staging.getName());
  return readCost(out, readers, bits, target) <= readCost(staging, readers, bits, target) ? out : BufferType();
}

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
  if (!staged.elementwise && target.has(Capability::Tma))
    stage.mapped = mappedBuffer(tile, staged.copy.run.dim, stage.type, readers, target);
  for (const BufferType type : {stage.type, stage.mapped})
    if (const Result<layout::SharedTile> buffer = type ? type.lowered() : Status::invalid(""))
      stage.bytes = std::max<uint64_t>(stage.bytes, llvm::alignTo(buffer->bytes(), buffer->alignment()));
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

/// Either may be null.
static Operation *earlier(Operation *a, Operation *b) {
  return !b || (a && a->isBeforeInBlock(b)) ? a : b;
}

/// The operations of the block of `op` that use its results.
static llvm::SmallVector<Operation *> usersIn(Block *block, Operation *op) {
  llvm::SmallVector<Operation *> out;
  for (Operation *user : op->getUsers())
    if (Operation *at = block->findAncestorOpInBlock(*user))
      out.push_back(at);
  return out;
}

Operation *Stage::firstReader() const {
  Operation *first = nullptr;
  for (Operation *at : usersIn(staged.load->getBlock(), staged.load))
    first = earlier(first, at);
  return first;
}

Operation *Stage::firstProduct() const {
  Block *block = staged.load->getBlock();
  Operation *first = nullptr;
  if (inPlace) {
    for (const WarpgroupOperand &operand : products())
      first = earlier(first, block->findAncestorOpInBlock(*operand.dot));
    return first;
  }
  llvm::SetVector<Operation *> after;
  after.insert_range(usersIn(block, staged.load));
  for (size_t i = 0; i < after.size(); ++i)
    if (isa<tile::DotOp>(after[i]))
      first = earlier(first, after[i]);
    else
      after.insert_range(usersIn(block, after[i]));
  return first ? first : firstReader();
}

Operation *SlotBuffers::sharing(const Stage &stage) const {
  Operation *reader = stage.firstReader(), *product = nullptr;
  if (stage.inPlace || !reader || feedsProduct(stage.staged.load->getResult(0)))
    return stage.firstProduct();
  for (const Stage &other : stages)
    if (Operation *at = other.inPlace ? other.firstProduct() : nullptr; at && at->isBeforeInBlock(reader))
      product = product && at->isBeforeInBlock(product) ? product : at;
  return product ? product : stage.firstProduct();
}

} // namespace kiln
