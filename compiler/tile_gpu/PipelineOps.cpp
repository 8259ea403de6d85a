#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

namespace kiln::tile_gpu {

LogicalResult PipelineType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t stages,
                                   llvm::ArrayRef<BufferType> buffers) {
  // As many groups as a wait can leave in flight, and one: more tiles than that are never ahead.
  constexpr int64_t mostStages = 64;
  if (stages < 1 || stages > mostStages)
    return emitError() << "a pipeline of " << stages << " slots: 1 to " << mostStages;
  if (buffers.empty())
    return emitError() << "a pipeline through which nothing flows: name a slot's buffers";
  for (BufferType buffer : buffers)
    if (buffer.getCount() != 1 || buffer.getSpace() != Space::Shared)
      return emitError() << buffer << " in a pipeline's slot: one buffer in shared memory each";
  return success();
}

Type PipelineType::parse(AsmParser &parser) {
  int64_t stages = 0;
  llvm::SmallVector<BufferType> buffers;
  const auto buffer = [&]() -> ParseResult { return parser.parseType(buffers.emplace_back()); };
  if (parser.parseLess() || parser.parseInteger(stages) || parser.parseComma() ||
      parser.parseCommaSeparatedList(buffer) || parser.parseGreater())
    return {};
  return parser.getChecked<PipelineType>(parser.getContext(), stages, llvm::ArrayRef<BufferType>(buffers));
}

void PipelineType::print(AsmPrinter &printer) const {
  printer << '<' << getStages();
  for (BufferType buffer : getBuffers())
    printer << ", " << buffer;
  printer << '>';
}

namespace {

LogicalResult inferSlot(std::optional<Location> loc, ValueRange operands, llvm::SmallVectorImpl<Type> &types,
                        bool withState) {
  const auto pipeline = operands.empty() ? PipelineType() : dyn_cast<PipelineType>(operands.front().getType());
  if (!pipeline)
    return emitOptionalError(loc, "takes a pipeline");
  if (withState)
    types.push_back(pipeline);
  types.append(pipeline.getBuffers().begin(), pipeline.getBuffers().end());
  return success();
}

} // namespace

LogicalResult PipelineOp::verify() {
  if (static_cast<int64_t>(getHolding()) >= getType().getStages())
    return emitOpError() << "holds " << static_cast<int32_t>(getHolding()) << " of " << getType().getStages()
                         << " slots: 0 to " << getType().getStages() - 1;
  return success();
}

LogicalResult AcquireOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, ValueRange operands,
                                          DictionaryAttr, OpaqueProperties, RegionRange,
                                          llvm::SmallVectorImpl<Type> &types) {
  return inferSlot(loc, operands, types, /*withState=*/true);
}

LogicalResult WaitOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, ValueRange operands, DictionaryAttr,
                                       OpaqueProperties, RegionRange, llvm::SmallVectorImpl<Type> &types) {
  return inferSlot(loc, operands, types, /*withState=*/true);
}

LogicalResult SlotsOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, ValueRange operands, DictionaryAttr,
                                        OpaqueProperties, RegionRange, llvm::SmallVectorImpl<Type> &types) {
  return inferSlot(loc, operands, types, /*withState=*/false);
}

} // namespace kiln::tile_gpu
