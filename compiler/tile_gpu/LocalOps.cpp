// Verifiers, assembly and accesses of LocalOps.td and BarrierOps.td.
#include "compiler/tile_gpu/SharedAccesses.h"
#include "compiler/tile_gpu/TileGpu.h"

using namespace mlir;

namespace kiln::tile_gpu {
namespace {

using Operand = OpAsmParser::UnresolvedOperand;

LogicalResult verifyMove(Operation *op, Type tile, BufferType buffer) {
  auto t = cast<RankedTensorType>(tile);
  if (t.getShape() != buffer.getShape() || t.getElementType() != buffer.getElementType())
    return op->emitOpError() << "moves " << t << " through " << buffer << ": shapes and element types must be equal";
  if (buffer.getCount() != 1)
    return op->emitOpError() << "needs one buffer of the " << buffer.getCount() << ": take a tile_gpu.local_subview";
  if (!layoutAttrOf(t))
    return op->emitOpError() << "needs a layout on " << t;
  return success();
}

LogicalResult verifyLayoutAttr(Operation *op, Attribute attr) {
  if (isa<LayoutAttr>(attr))
    return success();
  return op->emitOpError() << attr << " is no layout of tiles";
}

LogicalResult verifyNamed(Operation *op, int64_t id, int64_t threads) {
  if (id < 1 || id > 15)
    return op->emitOpError() << "barrier " << id << ": named barriers are 1 to 15";
  if (threads < 32 || threads > 1024 || threads % 32)
    return op->emitOpError() << threads << " threads: a multiple of 32 from 32 to 1024";
  return success();
}

LogicalResult verifyCounter(Operation *op, Type counter) {
  const Type i32 = IntegerType::get(op->getContext(), 32);
  return counter == tile::PtrType::get(op->getContext(), i32)
             ? success()
             : op->emitOpError() << "counts by " << counter << ": it takes !tile.ptr<i32>";
}
tile::MemoryAccess countAccess(Value counter) {
  tile::MemoryAccess out = tile::detail::throughPointer(counter, {}, /*reads=*/true, /*writes=*/true);
  out.atomic = true;
  return out;
}
/// Of any element by any thread.
tile::MemoryAccess anyAccess(Value pointer) {
  tile::MemoryAccess out = tile::detail::throughPointer(pointer, {}, /*reads=*/true, /*writes=*/true);
  out.tile = {};
  return out;
}

} // namespace

LogicalResult AwaitOp::verify() {
  return verifyCounter(*this, getCounter().getType());
}
tile::MemoryAccesses AwaitOp::accesses() {
  return {countAccess(getCounter()), anyAccess(getPointer())};
}
LogicalResult CountOp::verify() {
  if (!getNext() != !getBefore())
    return emitOpError() << "waits for a counter or for a number, and not for both";
  if (failed(verifyCounter(*this, getCounter().getType())))
    return failure();
  return getNext() ? verifyCounter(*this, getNext().getType()) : success();
}
tile::MemoryAccesses CountOp::accesses() {
  tile::MemoryAccesses out = {countAccess(getCounter()), anyAccess(getPointer())};
  out.back().releases = true;
  if (getNext())
    out.push_back(countAccess(getNext()));
  return out;
}

LogicalResult LocalStoreOp::verify() {
  return verifyMove(*this, getValue().getType(), getBuffer().getType());
}
tile::MemoryAccesses LocalStoreOp::accesses() {
  return {sharedWrite(getBuffer(), getValue().getType())};
}

LogicalResult LocalLoadOp::verify() {
  return verifyMove(*this, getType(), getBuffer().getType());
}
tile::MemoryAccesses LocalLoadOp::accesses() {
  return {sharedRead(getBuffer(), getType())};
}

LogicalResult LocalScalarOp::verify() {
  const auto type = cast<BufferType>(getBuffer().getType());
  if (type.getCount() == 1 && type.getShape() == ArrayRef<int64_t>{1} && type.getElementType() == getType())
    return success();
  return emitOpError() << "reads " << getType() << " from " << type << ": it takes a buffer of one such number";
}
tile::MemoryAccesses LocalScalarOp::accesses() {
  return {sharedRead(getBuffer())};
}

ParseResult LocalSubviewOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand buffer, index;
  BufferType type;
  if (parser.parseOperand(buffer) || parser.parseLSquare() || parser.parseOperand(index) || parser.parseRSquare() ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(type) ||
      parser.resolveOperand(buffer, type, result.operands) ||
      parser.resolveOperand(index, parser.getBuilder().getI32Type(), result.operands))
    return failure();
  result.addTypes(type.withCount(1));
  return success();
}

void LocalSubviewOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getBuffer() << '[' << getIndex() << ']';
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getBuffer().getType();
}

LogicalResult LocalSubviewOp::verify() {
  const BufferType from = getBuffer().getType();
  if (getType() == from.withCount(1))
    return success();
  return emitOpError() << "of " << from << " cannot be " << getType();
}

LogicalResult LocalTransposeOp::verify() {
  const BufferType from = getBuffer().getType(), to = getType();
  const ArrayRef<int64_t> perm = getPerm();
  const size_t rank = from.getShape().size();
  llvm::SmallVector<bool> seen(rank, false);
  bool good = perm.size() == rank && to.getShape().size() == rank && from.getElementType() == to.getElementType() &&
              from.getCount() == to.getCount() && from.getName() == to.getName();
  for (size_t i = 0; good && i < rank; ++i) {
    const int64_t p = perm[i];
    good = p >= 0 && p < static_cast<int64_t>(rank) && !seen[p] && to.getShape()[i] == from.getShape()[p];
    if (good)
      seen[p] = true;
  }
  if (!good)
    return emitOpError() << "[" << perm << "] does not turn " << from << " into " << to;
  // The bytes stay: every element must lie where it lay.
  const Result<layout::SharedTile> a = from.lowered(), b = to.lowered();
  if (!a || !b)
    return emitOpError() << (a ? b.status() : a.status()).toString();
  const llvm::ArrayRef<int64_t> shape = to.getShape();
  layout::Coords x, y;
  for (size_t i = 0; i < rank; ++i) {
    x.push_back(0);
    y.push_back(0);
  }
  // Offsets are linear over GF(2) in a core and in the repetitions: the powers of two decide, if offsets become bytes
  // in one way.
  for (size_t i = 0; i < rank; ++i)
    for (int64_t step = 1; step < shape[i]; step *= 2) {
      x[perm[i]] = y[i] = static_cast<std::uint32_t>(step);
      if (a->byteOffset(x) != b->byteOffset(y))
        return emitOpError() << "the element at step " << step << " of dimension " << i << " lies at byte "
                             << b->byteOffset(y) << " of the result and at byte " << a->byteOffset(x)
                             << " of the operand";
      x[perm[i]] = y[i] = 0;
    }
  if (!(a->fields() == b->fields()))
    return emitOpError() << "[" << perm << "]: " << from << " and " << to << " place their elements differently";
  return success();
}

//===----------------------------------------------------------------------===//
// exchange_store, exchange_load
//===----------------------------------------------------------------------===//

ParseResult ExchangeStoreOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand value, scratch;
  Type valueType, scratchType;
  Attribute destination;
  if (parser.parseOperand(value) || parser.parseComma() || parser.parseOperand(scratch) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(valueType) ||
      parser.parseKeyword("to") || parser.parseAttribute(destination) || parser.parseComma() ||
      parser.parseType(scratchType) || parser.resolveOperand(value, valueType, result.operands) ||
      parser.resolveOperand(scratch, scratchType, result.operands))
    return failure();
  result.addAttribute("destination", destination);
  return success();
}

void ExchangeStoreOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getValue() << ", " << getScratch();
  printer.printOptionalAttrDict((*this)->getAttrs(), {"destination"});
  printer << " : " << getValue().getType() << " to " << getDestination() << ", " << getScratch().getType();
}

LogicalResult ExchangeStoreOp::verify() {
  if (!layoutAttrOf(getValue().getType()))
    return emitOpError() << "needs a layout on " << getValue().getType();
  return verifyLayoutAttr(*this, getDestination());
}

tile::MemoryAccesses ExchangeStoreOp::accesses() {
  tile::MemoryAccess out = sharedWrite(getScratch(), getValue().getType());
  out.exchange = {out.tile.getEncoding(), getDestination(), getPass()};
  return {out};
}

ParseResult ExchangeLoadOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand scratch, previous;
  Attribute origin;
  Type scratchType, resultType;
  if (parser.parseOperand(scratch) || parser.parseComma() || parser.parseOperand(previous) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() || parser.parseAttribute(origin) ||
      parser.parseComma() || parser.parseType(scratchType) || parser.parseKeyword("to") ||
      parser.parseType(resultType) || parser.resolveOperand(scratch, scratchType, result.operands) ||
      parser.resolveOperand(previous, resultType, result.operands))
    return failure();
  result.addAttribute("origin", origin);
  result.addTypes(resultType);
  return success();
}

void ExchangeLoadOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getScratch() << ", " << getPrevious();
  printer.printOptionalAttrDict((*this)->getAttrs(), {"origin"});
  printer << " : " << getOrigin() << ", " << getScratch().getType() << " to " << getType();
}

LogicalResult ExchangeLoadOp::verify() {
  if (!layoutAttrOf(getType()))
    return emitOpError() << "needs a layout on " << getType();
  return verifyLayoutAttr(*this, getOrigin());
}

tile::MemoryAccesses ExchangeLoadOp::accesses() {
  tile::MemoryAccess out = sharedRead(getScratch(), getType());
  out.exchange = {getOrigin(), out.tile.getEncoding(), getPass()};
  return {out};
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

namespace {
tile::MemoryOrdering meeting(tile::MemoryOrdering::Among among, unsigned threads, bool waits) {
  tile::MemoryOrdering out;
  out.among = among;
  out.threads = threads;
  out.arrives = true;
  out.waits = waits;
  return out;
}
} // namespace

tile::MemoryOrdering BarrierOp::ordering() {
  return meeting(tile::MemoryOrdering::Among::Block, 0, true);
}
tile::MemoryOrdering WarpBarrierOp::ordering() {
  return meeting(tile::MemoryOrdering::Among::Warp, 0, true);
}
tile::MemoryOrdering NamedBarrierOp::ordering() {
  return meeting(tile::MemoryOrdering::Among::Block, getThreads(), true);
}
tile::MemoryOrdering NamedArriveOp::ordering() {
  return meeting(tile::MemoryOrdering::Among::Block, getThreads(), false);
}

static LogicalResult verifyTurn(Operation *op) {
  const unsigned warps = warpsOf(op).count;
  if (warps % warpsOfGroup == 0 && warps >= 2 * warpsOfGroup)
    return success();
  return op->emitOpError() << "in a kernel of " << warps << " warps: two warpgroups or more take turns";
}

LogicalResult TurnsBeginOp::verify() {
  return verifyTurn(*this);
}
LogicalResult TurnTakeOp::verify() {
  return verifyTurn(*this);
}
LogicalResult TurnPassOp::verify() {
  return verifyTurn(*this);
}
LogicalResult TurnsEndOp::verify() {
  return verifyTurn(*this);
}

/// More threads than come here are waited for in vain.
static LogicalResult verifyThreads(Operation *op, unsigned threads) {
  const unsigned warps = warpsOf(op).count;
  if (!warps || threads <= warps * layout::warpSize)
    return success();
  return op->emitOpError() << "of " << threads << " threads: " << warps * layout::warpSize << " of the block come here";
}

LogicalResult NamedBarrierOp::verify() {
  if (failed(verifyThreads(*this, getThreads())))
    return failure();
  return verifyNamed(*this, static_cast<int32_t>(getId()), static_cast<int32_t>(getThreads()));
}
LogicalResult NamedArriveOp::verify() {
  return verifyNamed(*this, static_cast<int32_t>(getId()), static_cast<int32_t>(getThreads()));
}
LogicalResult DelayOp::verify() {
  if (getSeed().has_value() == getWarp().has_value())
    return emitOpError("takes either a seed or a warp");
  return success();
}

} // namespace kiln::tile_gpu
