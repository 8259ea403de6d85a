#include "compiler/lowering/Emit.h"

#include "compiler/analysis/ContiguousRuns.h"

using namespace mlir;

namespace kiln::lowering {

using layout::BitVector;
using layout::InDim;
using layout::LinearLayout;
using layout::Mask;
using layout::TileLayout;

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

std::unique_ptr<LoweringContext> LoweringContext::create(func::FuncOp function) {
  Result<const Target *> target = tile_gpu::targetOf(function);
  if (!target) {
    (void)tile_gpu::report(function, target.status());
    return nullptr;
  }
  std::unique_ptr<LoweringContext> out(new LoweringContext);
  out->function = function;
  out->theTarget = *target;
  out->warps = tile_gpu::warpsOf(function).count;
  out->copies = tile::numCopyWarps(function);
  if (out->numThreads() > out->theTarget->threadsPerBlock) {
    function.emitError() << "kernel '" << function.getName() << "' has " << out->warps + out->copies
                         << " warps; a block of " << llvm::StringRef(out->theTarget->name) << " has at most "
                         << out->theTarget->threadsPerBlock / layout::warpSize;
    return nullptr;
  }
  auto walk = function.walk([&](Operation *op) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      InFlightDiagnostic d = call.emitError() << "the call of '" << call.getCallee() << "' is not inlined";
      d.attachNote() << "run -inline before kiln-lower-tiles";
      return WalkResult::interrupt();
    }
    for (Type t : op->getResultTypes())
      if (isa<RankedTensorType>(t) && !out->checkedLayout(op, t))
        return WalkResult::interrupt();
    for (const tile::MemoryAccess &access : tile::accessesOf(op)) // a copy's tile is no value
      if (access.tile && tile_gpu::layoutAttrOf(access.tile) && !out->checkedLayout(op, access.tile))
        return WalkResult::interrupt();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument a : block.getArguments())
          if (isa<RankedTensorType>(a.getType()) && !out->checkedLayout(op, a.getType()))
            return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return nullptr;

  out->findAccesses();

  OpBuilder b(function.getContext());
  b.setInsertionPointToStart(&function.getBody().front());
  Emit e(b, function.getLoc());
  out->threadId = NVVM::ThreadIdXOp::create(b, e.loc, e.i(32));
  out->laneId = e.and_(out->threadId, e.i32(layout::warpSize - 1));
  out->warpId = e.shr(out->threadId, layout::laneBits);
  out->last = out->warpId.getDefiningOp();
  return out;
}

void LoweringContext::findAccesses() {
  // Facts are of the IR before it is rewritten.
  const analysis::AxisAnalysis facts(function);
  function.walk([&](Operation *op) {
    if (auto copy = dyn_cast<tile_gpu::TensorCopyOp>(op))
      if (const Result<TensorMapRecipe> form = copy.recipe().form()) // verified
        recipes[op] = *form;
    if (auto sum = dyn_cast<tile_gpu::BulkAddOp>(op))
      runs[op] = analysis::contiguousRun(facts, sum.getPointer(), sum.getMask(), sum.runDim(), ~0u,
                                         tile_gpu::BulkAddOp::leastBytes);
    if (tile_gpu::isElected(op))
      electedOps.insert(op);
    const std::optional<tile::MemoryAccess> global = tile::globalAccessOf(op);
    if (!global || global->agent == tile::Agent::BulkCopy || global->agent == tile::Agent::BulkStore)
      return;
    const analysis::VectorAccess vector = facts.vectorAccess(op);
    Accesses found{vector, vector};
    if (global->inFlight && isa<tile::ViewType>(global->memory.getType()))
      found.beginsAtZero = analysis::beginsAtZero(global->memory);
    if (std::optional<analysis::AccessFacts> access = facts.access(op))
      found.unmasked = analysis::unmaskedAccess(op, *access, layout(global->tile));
    accesses[op] = found;
  });
}

const TileLayout *LoweringContext::checkedLayout(Operation *op, Type tile) const {
  std::unique_ptr<TileLayout> &known = layouts[tile];
  if (known)
    return known.get();
  Result<TileLayout> lowered = tile_gpu::layoutOf(tile);
  if (!lowered) {
    (void)tile_gpu::report(op, lowered.status());
    return nullptr;
  }
  const LinearLayout &core = lowered->core();
  if (core.size(InDim::Lane) != layout::warpSize || core.size(InDim::Warp) != warps || core.size(InDim::Block) != 1) {
    InFlightDiagnostic d = op->emitError()
                           << "the layout of " << tile << " is for " << core.size(InDim::Warp) << " warps of "
                           << core.size(InDim::Lane) << " lanes and " << core.size(InDim::Block)
                           << " blocks, the kernel has " << warps << " warps of 32 lanes and 1 block";
    d.attachNote() << "give the kernel " << tile::numWarpsAttr << " = " << core.size(InDim::Warp)
                   << ", or the tile a layout for " << warps << " warps";
    return nullptr;
  }
  known = std::make_unique<TileLayout>(std::move(*lowered));
  return known.get();
}

const TileLayout &LoweringContext::layout(Type tile) const {
  return *layouts.at(tile);
}

//===----------------------------------------------------------------------===//
// Values at the entry
//===----------------------------------------------------------------------===//

OpBuilder LoweringContext::atEntry() const {
  OpBuilder b(last->getContext());
  b.setInsertionPointAfter(last);
  return b;
}

Value LoweringContext::sharedBase() const {
  if (!shared) {
    OpBuilder b = atEntry();
    shared = LLVM::AddressOfOp::create(b, function.getLoc(), LLVM::LLVMPointerType::get(b.getContext(), sharedSpace),
                                       sharedSymbol);
    last = shared.getDefiningOp();
  }
  return shared;
}

Value LoweringContext::elected() const {
  if (!electedThread) {
    OpBuilder b = atEntry();
    Emit e(b, function.getLoc());
    // By elect.sync, of which assemblers know that it is one thread: no loop over lanes round a copy.
    const Value one = NVVM::ElectSyncOp::create(b, e.loc, e.i(1), Value());
    electedThread = e.and_(e.compare(arith::CmpIPredicate::eq, warpId, e.i32(copies ? warps : 0)), one);
    last = electedThread.getDefiningOp();
  }
  return electedThread;
}

Value LoweringContext::localPlace(Type type) const {
  Value &known = places[type];
  if (!known) {
    // At the entry: LLVM gives it a fixed place in the frame only there.
    OpBuilder b = atEntry();
    Emit e(b, function.getLoc());
    known = LLVM::AllocaOp::create(b, e.loc, e.ptr(0), type, e.i32(1), /*alignment=*/8);
    last = known.getDefiningOp();
  }
  return known;
}

namespace {

/// One term of a linear map: (source & mask) shifted left by `shift` (right if negative).
struct Term {
  Value source;
  int shift;
  BitVector mask;
};

void addTerms(llvm::SmallVectorImpl<Term> &terms, Value source, ArrayRef<BitVector> columns) {
  for (auto [i, column] : llvm::enumerate(columns))
    for (unsigned p : layout::bitsOf(column)) {
      const int shift = static_cast<int>(p) - static_cast<int>(i);
      auto *same = llvm::find_if(terms, [&](const Term &t) { return t.source == source && t.shift == shift; });
      if (same == terms.end())
        terms.push_back({source, shift, BitVector(1) << i});
      else
        same->mask |= BitVector(1) << i;
    }
}

} // namespace

Value LoweringContext::linear(ArrayRef<BitVector> laneColumns, ArrayRef<BitVector> warpColumns) const {
  auto used = [](ArrayRef<BitVector> columns) {
    while (!columns.empty() && !columns.back())
      columns = columns.drop_back();
    return columns;
  };
  laneColumns = used(laneColumns);
  warpColumns = used(warpColumns);
  if (laneColumns.empty() && warpColumns.empty())
    return {};
  std::vector<BitVector> key(laneColumns.begin(), laneColumns.end());
  key.push_back(~BitVector(0));
  key.insert(key.end(), warpColumns.begin(), warpColumns.end());
  Value &known = linearValues[key];
  if (known)
    return known;

  llvm::SmallVector<Term> terms;
  addTerms(terms, laneId, laneColumns);
  addTerms(terms, warpId, warpColumns);
  OpBuilder b = atEntry();
  Emit e(b, function.getLoc());
  BitVector made = 0; // bits that the sum so far may set
  Value sum;
  for (const Term &t : terms) {
    const BitVector all = (t.source == laneId ? layout::warpSize : std::bit_ceil(warps)) - 1;
    Value v = t.mask == all ? t.source : e.and_(t.source, e.i32(static_cast<int64_t>(t.mask)));
    v = t.shift >= 0 ? e.shl(v, static_cast<unsigned>(t.shift)) : e.shr(v, static_cast<unsigned>(-t.shift));
    const BitVector bits = t.shift >= 0 ? t.mask << t.shift : t.mask >> -t.shift;
    if (!sum)
      sum = v;
    else
      sum = made & bits ? e.xor_(sum, v) : e.or_(sum, v);
    made |= bits;
  }
  last = &*std::prev(b.getInsertionPoint());
  return known = sum;
}

Value LoweringContext::linear(ArrayRef<Mask> laneColumns, ArrayRef<Mask> warpColumns) const {
  return linear(llvm::SmallVector<BitVector>(laneColumns.begin(), laneColumns.end()),
                llvm::SmallVector<BitVector>(warpColumns.begin(), warpColumns.end()));
}

Value LoweringContext::noneSet(unsigned laneMask, unsigned warpMask) const {
  if (!laneMask && !warpMask)
    return {};
  Value &known = noneSets[{laneMask, warpMask}];
  if (known)
    return known;
  // Lane and warp are the two parts of the thread's number.
  OpBuilder b = atEntry();
  Emit e(b, function.getLoc());
  Value bits = e.and_(threadId, e.i32(warpMask << layout::laneBits | laneMask));
  known = e.compare(arith::CmpIPredicate::eq, bits, e.i32(0));
  last = known.getDefiningOp();
  return known;
}

Value LoweringContext::parity(unsigned laneMask, unsigned warpMask) const {
  Value &known = parities[{laneMask, warpMask}];
  if (known)
    return known;
  OpBuilder b = atEntry();
  Emit e(b, function.getLoc());
  const unsigned mask = warpMask << layout::laneBits | laneMask;
  Value bits = e.and_(threadId, e.i32(mask));
  if (mask & (mask - 1))
    bits = e.and_(LLVM::CtPopOp::create(b, e.loc, e.i(32), bits), e.i32(1));
  known = e.compare(arith::CmpIPredicate::ne, bits, e.i32(0));
  last = known.getDefiningOp();
  return known;
}

Value LoweringContext::owns(const LinearLayout &layout) const {
  const layout::Owners owners(layout);
  return noneSet(static_cast<unsigned>(owners.lanes), static_cast<unsigned>(owners.warps));
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

namespace {
llvm::SmallVector<BitVector> columnsAlong(const LinearLayout &core, InDim in, unsigned d) {
  llvm::SmallVector<BitVector> out;
  for (BitVector c : core.columns(in))
    out.push_back(core.coord(c, d));
  return out;
}
} // namespace

Value LoweringContext::threadCoordinate(const TileLayout &layout, unsigned d) const {
  return linear(columnsAlong(layout.core(), InDim::Lane, d), columnsAlong(layout.core(), InDim::Warp, d));
}

BitVector LoweringContext::threadCoordinateBits(const TileLayout &layout, unsigned d) {
  BitVector bits = 0;
  for (InDim in : {InDim::Lane, InDim::Warp})
    for (BitVector c : layout.core().columns(in))
      bits |= layout.core().coord(c, d);
  return bits;
}

LoweringContext::RegisterPart LoweringContext::registerCoordinate(const TileLayout &layout, unsigned d, unsigned reg) {
  const LinearLayout &core = layout.core();
  const unsigned coreRegisters = core.size(InDim::Register);
  const unsigned at = core.coord(core.apply(reg % coreRegisters, 0, 0, 0), d);
  const unsigned rep = layout.tile().repCoords(reg / coreRegisters)[d] * layout.tile().core[d];
  const unsigned overlap = at & static_cast<unsigned>(threadCoordinateBits(layout, d));
  return {overlap, (at & ~overlap) + rep};
}

Value LoweringContext::coordinate(OpBuilder &builder, Location loc, const TileLayout &layout, unsigned d,
                                  unsigned reg) const {
  Emit e(builder, loc);
  const RegisterPart part = registerCoordinate(layout, d, reg);
  Value at = threadCoordinate(layout, d);
  if (!at)
    return e.i32(part.added);
  if (part.exclusive)
    at = e.xor_(at, e.i32(part.exclusive));
  return part.added ? e.addNoWrap(at, e.i32(part.added)) : at;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Type scalarType(Type element) {
  return isa<tile::PtrType>(element) ? LLVM::LLVMPointerType::get(element.getContext(), globalSpace) : element;
}

Type memoryType(Type element) {
  if (element.isInteger(1) || isa<Float8E4M3FNType, Float8E5M2Type>(element))
    return IntegerType::get(element.getContext(), 8);
  return scalarType(element);
}

TileTypeConverter::TileTypeConverter(const LoweringContext &context) {
  addConversion([](Type t) -> std::optional<Type> {
    if (isa<RankedTensorType, tile::PtrType, tile::ViewType, tile_gpu::BufferType, tile_gpu::ScratchType,
            tile_gpu::TokenType, tile_gpu::TensorMapType, tile_gpu::PendingType, tile_gpu::MbarriersType>(t))
      return std::nullopt;
    return t;
  });
  addConversion([](tile::PtrType t) -> std::optional<Type> { return scalarType(t); });
  const auto registers = [&context](RankedTensorType t, llvm::SmallVectorImpl<Type> &out) -> LogicalResult {
    const TileLayout *layout = context.checkedLayout(context.kernel(), t);
    if (!layout)
      return failure();
    out.append(layout->registers(), scalarType(t.getElementType()));
    return success();
  };
  addConversion([registers](RankedTensorType t, llvm::SmallVectorImpl<Type> &out) -> std::optional<LogicalResult> {
    return registers(t, out);
  });
  addConversion([registers](tile_gpu::PendingType t, llvm::SmallVectorImpl<Type> &out) -> std::optional<LogicalResult> {
    return registers(t.getTile(), out);
  });
  // Base, then first and one past the last valid coordinate of each dimension, then the strides (Views.cpp).
  addConversion([](tile::ViewType t, llvm::SmallVectorImpl<Type> &out) -> std::optional<LogicalResult> {
    out.push_back(LLVM::LLVMPointerType::get(t.getContext(), globalSpace));
    out.append(3 * t.getRank(), IntegerType::get(t.getContext(), 64));
    return success();
  });
  addConversion([](tile_gpu::BufferType t) -> std::optional<Type> {
    return LLVM::LLVMPointerType::get(t.getContext(),
                                      t.getSpace() == tile_gpu::Space::Tensor ? tensorSpace : sharedSpace);
  });
  addConversion([](tile_gpu::MbarriersType t) -> std::optional<Type> {
    return LLVM::LLVMPointerType::get(t.getContext(), sharedSpace);
  });
  // The parameter itself, in generic address space.
  addConversion(
      [](tile_gpu::TensorMapType t) -> std::optional<Type> { return LLVM::LLVMPointerType::get(t.getContext()); });
  // Says in the text which copies a wait is for; at run time there is nothing of it.
  addConversion(
      [](tile_gpu::TokenType, llvm::SmallVectorImpl<Type> &) -> std::optional<LogicalResult> { return success(); });
  addConversion([](tile_gpu::ScratchType t) -> std::optional<Type> {
    return LLVM::LLVMPointerType::get(t.getContext(), sharedSpace);
  });
  auto cast = [](OpBuilder &b, Type type, ValueRange inputs, Location loc) -> Value {
    return UnrealizedConversionCastOp::create(b, loc, type, inputs).getResult(0);
  };
  addSourceMaterialization(cast);
  addTargetMaterialization(cast);
  addTargetMaterialization([](OpBuilder &b, TypeRange types, ValueRange inputs, Location loc) -> SmallVector<Value> {
    return llvm::to_vector_of<Value>(UnrealizedConversionCastOp::create(b, loc, types, inputs).getResults());
  });
}

} // namespace kiln::lowering
