// tile_gpu.gather_shared: elements of a buffer at run-time coordinates.
#include "compiler/lowering/Combine.h"
#include "compiler/lowering/SharedMoves.h"

#include <bit>

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::BitVector;

/// The xor of columns[i] over the set bits i of v; columns that are single bits, shifted alike, are done together.
Value applyAt(const Emit &e, Value v, ArrayRef<BitVector> columns) {
  llvm::MapVector<int, BitVector> shifted; // by how far to the left: which bits of v
  Value out;
  auto add = [&](Value term) { out = out ? e.xor_(out, term) : term; };
  for (unsigned i = 0; i < columns.size(); ++i) {
    if (std::has_single_bit(columns[i])) {
      shifted[std::countr_zero(columns[i]) - static_cast<int>(i)] |= BitVector(1) << i;
    } else if (columns[i]) {
      Value bit = e.and_(e.shr(v, i), e.i32(1));
      add(e.mul(bit, e.i32(static_cast<int64_t>(columns[i]))));
    }
  }
  for (auto [by, bits] : shifted) {
    Value part = e.and_(v, e.i32(static_cast<int64_t>(bits)));
    add(by < 0 ? e.shr(part, static_cast<unsigned>(-by)) : e.shl(part, static_cast<unsigned>(by)));
  }
  return out ? out : e.i32(0);
}

/// An index as a coordinate of the buffer: i32, inside the extent.
Value clamped(const Emit &e, Value index, unsigned extent) {
  Value last = e.integer(index.getType(), extent - 1);
  index = std::has_single_bit(extent) ? e.and_(index, last) : Value(arith::MinUIOp::create(e.b, e.loc, index, last));
  return index.getType().isInteger(32) ? index : Value(arith::TruncIOp::create(e.b, e.loc, e.i(32), index));
}

/// The byte at which the element with these coordinates lies.
Value byteAt(const Emit &e, const layout::SharedTile &buffer, ArrayRef<Value> coords) {
  const layout::LinearLayout &core = buffer.core();
  const layout::TileShape &shape = buffer.tile();
  Value offset, repetition;
  for (unsigned d = 0; d < coords.size(); ++d) {
    llvm::SmallVector<BitVector> columns;
    for (unsigned bit = 0; bit < core.log2Shape(d); ++bit)
      columns.push_back(layout::coordsOf(buffer.inverse(), core.unit(d, bit)));
    Value part = applyAt(e, coords[d], columns);
    offset = offset ? e.xor_(offset, part) : part;
    if (shape.counts[d] > 1) {
      Value begin = e.mul(e.shr(coords[d], core.log2Shape(d)), e.i32(static_cast<int64_t>(buffer.repetitionStride(d))));
      repetition = repetition ? e.add(repetition, begin) : begin;
    }
  }
  if (!offset)
    offset = e.i32(0);
  Value byte = byteOf(e, buffer.fields(), offset, core.numElements() - 1);
  return repetition ? e.add(byte, repetition) : byte;
}

struct GatherLowering : Lowering<tile_gpu::GatherSharedOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::GatherSharedOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const tile_gpu::BufferType type = op.getBuffer().getType();
    Result<layout::SharedTile> buffer = type.lowered();
    if (!buffer)
      return tile_gpu::report(op, buffer.status());
    const layout::TileLayout &tile = context.layout(op.getType());
    const unsigned axis = op.getAxis(), extent = static_cast<unsigned>(type.getShape()[axis]);
    const Type memory = memoryType(type.getElementType());
    Emit e(rewriter, op.getLoc());
    Value base = adaptor.getBuffer().front();
    Scalars out;
    for (unsigned reg = 0; reg < tile.registers(); ++reg) {
      llvm::SmallVector<Value> coords;
      for (unsigned d = 0; d < tile.dims(); ++d)
        coords.push_back(d == axis ? clamped(e, adaptor.getIndices()[reg], extent)
                                   : context.coordinate(rewriter, op.getLoc(), tile, d, reg));
      Value pointer = e.gep(base, e.i(8), byteAt(e, *buffer, coords));
      Value loaded = LLVM::LoadOp::create(rewriter, op.getLoc(), memory, pointer, buffer->bits() / 8);
      out.push_back(e.fromMemory(loaded, type.getElementType()));
    }
    replace(rewriter, op, std::move(out));
    return success();
  }
};

} // namespace

void populateGatherPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                            const LoweringContext &context) {
  patterns.add<GatherLowering>(converter, context);
}

} // namespace kiln::lowering
