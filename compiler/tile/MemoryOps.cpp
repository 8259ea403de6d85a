// Verifiers, assembly and canonicalisations of MemoryOps.td.
#include "compiler/tile/CacheHint.h"
#include "compiler/tile/Tile.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace kiln::tile {
namespace {

/// What a pointer, or each pointer of a tile, points to, in the same shape.
Type pointeeOf(Type pointer) {
  if (auto ptr = dyn_cast<PtrType>(elementTypeOf(pointer)))
    return withElementType(pointer, ptr.getPointee());
  return {};
}

Type maskOf(Type pointer) {
  return withElementType(pointer, IntegerType::get(pointer.getContext(), 1));
}

LogicalResult expectType(Operation *op, llvm::StringRef what, Type found, Type expected) {
  if (found == expected)
    return success();
  return op->emitOpError() << what << " has the type " << found << ", expected " << expected;
}

LogicalResult verifyAccess(Operation *op, Value pointer, Value value, Value mask) {
  if (failed(expectType(op, "the value", value.getType(), pointeeOf(pointer.getType()))))
    return failure();
  return mask ? expectType(op, "the mask", mask.getType(), maskOf(pointer.getType())) : success();
}

using Operand = OpAsmParser::UnresolvedOperand;

ParseResult parseAfter(OpAsmParser &parser, llvm::StringRef keyword, std::optional<Operand> &operand) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  operand.emplace();
  return parser.parseOperand(*operand);
}

/// The pointer's type after ':'; checked here because every other type follows from it.
ParseResult parsePointerType(OpAsmParser &parser, Type &type) {
  llvm::SMLoc loc;
  if (parser.parseColon() || parser.getCurrentLocation(&loc) || parser.parseType(type))
    return failure();
  if (!pointeeOf(type))
    return parser.emitError(loc) << type << " is no pointer and no tile of pointers";
  return success();
}

MemoryAccess atomicAccess(Value pointer, Value mask, Order order) {
  MemoryAccess out = detail::throughPointer(pointer, mask, /*reads=*/true, /*writes=*/true);
  out.atomic = true;
  out.acquires = order == Order::Acquire || order == Order::AcqRel;
  out.releases = order == Order::Release || order == Order::AcqRel;
  return out;
}

bool isAll(Value mask, bool value) {
  llvm::APInt splat;
  return mask && matchPattern(mask, m_ConstantInt(&splat)) && splat.isOne() == value;
}

} // namespace

//===----------------------------------------------------------------------===//
// addptr
//===----------------------------------------------------------------------===//

LogicalResult AddPtrOp::verify() {
  const Type offset = elementTypeOf(getOffset().getType());
  return expectType(*this, "the offset", getOffset().getType(), withElementType(getPointer().getType(), offset));
}

OpFoldResult AddPtrOp::fold(FoldAdaptor) {
  return matchPattern(getOffset(), m_Zero()) ? OpFoldResult(getPointer()) : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// load
//===----------------------------------------------------------------------===//

void LoadOp::build(OpBuilder &builder, OperationState &state, Value pointer, Value mask, Value other) {
  build(builder, state, pointeeOf(pointer.getType()), pointer, mask, other, Cache::Default);
}

ParseResult LoadOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand pointer;
  std::optional<Operand> mask, other;
  Type type;
  if (parser.parseOperand(pointer) || parseAfter(parser, "mask", mask) || parseAfter(parser, "other", other) ||
      parseCache(parser, result.attributes) || parser.parseOptionalAttrDict(result.attributes) ||
      parsePointerType(parser, type) || parser.resolveOperand(pointer, type, result.operands))
    return failure();
  if (mask && parser.resolveOperand(*mask, maskOf(type), result.operands))
    return failure();
  if (other && parser.resolveOperand(*other, pointeeOf(type), result.operands))
    return failure();
  result.getOrAddProperties<Properties>().operandSegmentSizes = {1, mask.has_value(), other.has_value()};
  result.addTypes(pointeeOf(type));
  return success();
}

void LoadOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getPointer();
  if (getMask())
    printer << " mask " << getMask();
  if (getOther())
    printer << " other " << getOther();
  printCache(printer, getCache());
  printer.printOptionalAttrDict((*this)->getAttrs(), {"operandSegmentSizes", "cache"});
  printer << " : " << getPointer().getType();
}

LogicalResult LoadOp::verify() {
  if (getOther() && !getMask())
    return emitOpError() << "has a value for masked elements and no mask";
  if (getOther() && failed(expectType(*this, "the other value", getOther().getType(), getType())))
    return failure();
  return verifyAccess(*this, getPointer(), getResult(), getMask());
}

void LoadOp::getEffects(llvm::SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getPointerMutable(), GlobalMemory::get());
  if (getCache() == Cache::Volatile) // nothing passes it
    effects.emplace_back(MemoryEffects::Write::get(), GlobalMemory::get());
}

MemoryAccesses LoadOp::accesses() {
  return {detail::throughPointer(getPointer(), getMask(), /*reads=*/true, /*writes=*/false)};
}

namespace {
struct LoadWithConstantMask : OpRewritePattern<LoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LoadOp op, PatternRewriter &rewriter) const override {
    if (isAll(op.getMask(), true)) {
      rewriter.replaceOpWithNewOp<LoadOp>(op, op.getType(), op.getPointer(), Value(), Value(), op.getCache());
      return success();
    }
    if (isAll(op.getMask(), false) && op.getOther()) {
      rewriter.replaceOp(op, op.getOther());
      return success();
    }
    return failure();
  }
};
struct StoreWithConstantMask : OpRewritePattern<StoreOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(StoreOp op, PatternRewriter &rewriter) const override {
    if (isAll(op.getMask(), true)) {
      rewriter.replaceOpWithNewOp<StoreOp>(op, op.getPointer(), op.getValue(), Value(), op.getCache());
      return success();
    }
    if (isAll(op.getMask(), false)) {
      rewriter.eraseOp(op);
      return success();
    }
    return failure();
  }
};
} // namespace

void LoadOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<LoadWithConstantMask>(context);
}

//===----------------------------------------------------------------------===//
// store
//===----------------------------------------------------------------------===//

ParseResult StoreOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand pointer, value;
  std::optional<Operand> mask;
  Type type;
  if (parser.parseOperand(pointer) || parser.parseComma() || parser.parseOperand(value) ||
      parseAfter(parser, "mask", mask) || parseCache(parser, result.attributes) ||
      parser.parseOptionalAttrDict(result.attributes) || parsePointerType(parser, type) ||
      parser.resolveOperand(pointer, type, result.operands) ||
      parser.resolveOperand(value, pointeeOf(type), result.operands))
    return failure();
  return mask ? parser.resolveOperand(*mask, maskOf(type), result.operands) : success();
}

void StoreOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getPointer() << ", " << getValue();
  if (getMask())
    printer << " mask " << getMask();
  printCache(printer, getCache());
  printer.printOptionalAttrDict((*this)->getAttrs(), {"cache"});
  printer << " : " << getPointer().getType();
}

LogicalResult StoreOp::verify() {
  return verifyAccess(*this, getPointer(), getValue(), getMask());
}

MemoryAccesses StoreOp::accesses() {
  return {detail::throughPointer(getPointer(), getMask(), /*reads=*/false, /*writes=*/true)};
}

void StoreOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<StoreWithConstantMask>(context);
}

//===----------------------------------------------------------------------===//
// atomics
//===----------------------------------------------------------------------===//

namespace {

template <typename Enum>
ParseResult parseWord(OpAsmParser &parser, OperationState &result, llvm::StringRef attribute,
                      std::optional<Enum> (*symbolize)(llvm::StringRef), llvm::StringRef choices) {
  llvm::StringRef word;
  const llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  const std::optional<Enum> value = symbolize(word);
  if (!value)
    return parser.emitError(loc) << "'" << word << "' is none of " << choices;
  result.addAttribute(attribute, parser.getBuilder().getI32IntegerAttr(static_cast<int32_t>(*value)));
  return success();
}

ParseResult parseOrderAndScope(OpAsmParser &parser, OperationState &result) {
  if (parseWord<Order>(parser, result, "order", symbolizeOrder, "relaxed, acquire, release, acq_rel") ||
      parseWord<Scope>(parser, result, "scope", symbolizeScope, "cta, gpu, sys"))
    return failure();
  return success();
}

bool isFloat(Type t) {
  return t.isF16() || t.isBF16() || t.isF32() || t.isF64();
}

} // namespace

ParseResult AtomicRmwOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand pointer, value;
  std::optional<Operand> mask, before, counter;
  Type type;
  if (parseWord<Rmw>(parser, result, "kind", symbolizeRmw, "add, min, max, umin, umax, and, or, xor, xchg") ||
      parseOrderAndScope(parser, result) || parser.parseOperand(pointer) || parser.parseComma() ||
      parser.parseOperand(value) || parseAfter(parser, "mask", mask) || parseAfter(parser, "after", before))
    return failure();
  if (before && (parser.parseKeyword("of") || parser.parseOperand(counter.emplace())))
    return failure();
  if (parser.parseOptionalAttrDict(result.attributes) || parsePointerType(parser, type) ||
      parser.resolveOperand(pointer, type, result.operands) ||
      parser.resolveOperand(value, pointeeOf(type), result.operands))
    return failure();
  if (mask && parser.resolveOperand(*mask, maskOf(type), result.operands))
    return failure();
  const Type i32 = parser.getBuilder().getI32Type();
  if (before && (parser.resolveOperand(*counter, PtrType::get(i32.getContext(), i32), result.operands) ||
                 parser.resolveOperand(*before, i32, result.operands)))
    return failure();
  const int32_t inOrder = before.has_value();
  result.getOrAddProperties<Properties>().operandSegmentSizes = {1, 1, mask.has_value(), inOrder, inOrder};
  result.addTypes(pointeeOf(type));
  return success();
}

void AtomicRmwOp::print(OpAsmPrinter &printer) {
  printer << ' ' << stringifyRmw(getKind()) << ' ' << stringifyOrder(getOrder()) << ' ' << stringifyScope(getScope())
          << ' ' << getPointer() << ", " << getValue();
  if (getMask())
    printer << " mask " << getMask();
  if (getCounter())
    printer << " after " << getBefore() << " of " << getCounter();
  printer.printOptionalAttrDict((*this)->getAttrs(), {"operandSegmentSizes", "kind", "order", "scope"});
  printer << " : " << getPointer().getType();
}

LogicalResult AtomicRmwOp::verify() {
  if (failed(verifyAccess(*this, getPointer(), getValue(), getMask())) ||
      failed(expectType(*this, "the result", getType(), getValue().getType())))
    return failure();
  const Type t = elementTypeOf(getValue().getType());
  const Rmw kind = getKind();
  const bool word = t.isInteger(32) || t.isInteger(64);
  const bool good = kind == Rmw::Add                       ? word || isFloat(t)
                    : kind == Rmw::Exchange                ? word || t.isF32() || t.isF64()
                    : kind == Rmw::Min || kind == Rmw::Max ? word || isFloat(t)
                                                           : word;
  if (!good)
    return emitOpError() << stringifyRmw(kind) << " of " << t << ": it takes i32 and i64"
                         << (kind == Rmw::Add || kind == Rmw::Min || kind == Rmw::Max ? ", f16, bf16, f32 and f64"
                             : kind == Rmw::Exchange                                  ? ", f32 and f64"
                                                                                      : "");
  if (!getCounter() != !getBefore())
    return emitOpError() << "has a counter or a number of programs before it, and not both";
  if (!getCounter())
    return success();
  if (getCounter().getType() != PtrType::get(getContext(), IntegerType::get(getContext(), 32)))
    return emitOpError() << "counts programs by " << getCounter().getType() << ": it takes !tile.ptr<i32>";
  if (getOrder() != Order::Relaxed || getScope() != Scope::Gpu || !getResult().use_empty())
    return emitOpError() << "after other programs is relaxed, of the gpu, and its result has no uses";
  return success();
}

MemoryAccesses AtomicRmwOp::accesses() {
  MemoryAccesses out = {atomicAccess(getPointer(), getMask(), getOrder())};
  if (getCounter())
    out.push_back(atomicAccess(getCounter(), {}, Order::Relaxed));
  return out;
}

ParseResult AtomicCasOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand pointer, expected, desired;
  Type type;
  if (parseOrderAndScope(parser, result) || parser.parseOperand(pointer) || parser.parseComma() ||
      parser.parseOperand(expected) || parser.parseComma() || parser.parseOperand(desired) ||
      parser.parseOptionalAttrDict(result.attributes) || parsePointerType(parser, type) ||
      parser.resolveOperand(pointer, type, result.operands) ||
      parser.resolveOperand(expected, pointeeOf(type), result.operands) ||
      parser.resolveOperand(desired, pointeeOf(type), result.operands))
    return failure();
  result.addTypes(pointeeOf(type));
  return success();
}

void AtomicCasOp::print(OpAsmPrinter &printer) {
  printer << ' ' << stringifyOrder(getOrder()) << ' ' << stringifyScope(getScope()) << ' ' << getPointer() << ", "
          << getExpected() << ", " << getDesired();
  printer.printOptionalAttrDict((*this)->getAttrs(), {"order", "scope"});
  printer << " : " << getPointer().getType();
}

LogicalResult AtomicCasOp::verify() {
  if (failed(verifyAccess(*this, getPointer(), getExpected(), {})) ||
      failed(expectType(*this, "the desired value", getDesired().getType(), getExpected().getType())) ||
      failed(expectType(*this, "the result", getType(), getExpected().getType())))
    return failure();
  const unsigned bits = storageBits(elementTypeOf(getType()));
  if (bits != 16 && bits != 32 && bits != 64)
    return emitOpError() << "of " << elementTypeOf(getType()) << ": it takes types of 16, 32 or 64 bits";
  return success();
}

MemoryAccesses AtomicCasOp::accesses() {
  return {atomicAccess(getPointer(), {}, getOrder())};
}

//===----------------------------------------------------------------------===//
// gather
//===----------------------------------------------------------------------===//

ParseResult GatherOp::parse(OpAsmParser &parser, OperationState &result) {
  Operand source, indices;
  RankedTensorType sourceType, indexType;
  if (parser.parseOperand(source) || parser.parseLSquare() || parser.parseOperand(indices) || parser.parseRSquare() ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(sourceType) || parser.parseComma() ||
      parser.parseType(indexType) || parser.resolveOperand(source, sourceType, result.operands) ||
      parser.resolveOperand(indices, indexType, result.operands))
    return failure();
  result.addTypes(withElementType(indexType, sourceType.getElementType()));
  return success();
}

void GatherOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getSource() << '[' << getIndices() << ']';
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getSource().getType() << ", " << getIndices().getType();
}

LogicalResult GatherOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType()), index = cast<RankedTensorType>(getIndices().getType());
  const int64_t axis = static_cast<int32_t>(getAxis());
  if (axis < 0 || axis >= source.getRank() || index.getRank() != source.getRank())
    return emitOpError() << "of a tile of rank " << source.getRank() << " with indices of rank " << index.getRank()
                         << " along axis " << axis << ": ranks must be equal and the axis one of them";
  for (int64_t d = 0; d < source.getRank(); ++d)
    if (d != axis && source.getDimSize(d) != index.getDimSize(d))
      return emitOpError() << "dimension " << d << " has extent " << source.getDimSize(d) << " in the tile and "
                           << index.getDimSize(d) << " in the indices";
  return expectType(*this, "the result", getType(), withElementType(index, source.getElementType()));
}

} // namespace kiln::tile
