#include "compiler/passes/layouts/LayoutCosts.h"

#include "compiler/layout/MemoryAccess.h"
#include "compiler/layout/Reduction.h"
#include "compiler/layout/TilePlanner.h"
#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln {

using layout::InDim;
using tile_gpu::isTile;
using tile_gpu::LayoutAttr;

namespace {

constexpr llvm::StringLiteral factsAttr = "kiln.facts";

/// Half cycles a register word: one instruction, or a sequence of them.
double unitsOf(Operation *op) {
  if (isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::RemFOp,
          arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op))
    return 16;
  if (isa<math::MathDialect>(op->getDialect()) && !isa<math::FmaOp, math::AbsFOp, math::AbsIOp>(op))
    return 16;
  return 1;
}

} // namespace

LayoutAttr workLayoutOf(Operation *op) {
  if (isa<tile::ReduceOp>(op))
    return tile_gpu::layoutAttrOf(op->getOperand(0).getType());
  for (Value v : op->getResults())
    if (isTile(v))
      return tile_gpu::layoutAttrOf(v.getType());
  for (OpOperand &operand : op->getOpOperands())
    if (tile_gpu::isTied(operand))
      return tile_gpu::layoutAttrOf(operand.get().getType());
  return {};
}

LayoutCosts::LayoutCosts(func::FuncOp f, const Target &target) : target(target), warps(tile_gpu::warpsOf(f).count) {
  const analysis::AxisAnalysis axes(f);
  Builder b(f.getContext());
  f.walk([&](Operation *op) {
    if (std::optional<analysis::AccessFacts> known = axes.usualAccess(op)) {
      op->setAttr(factsAttr, b.getI32IntegerAttr(static_cast<int32_t>(facts.size())));
      facts.push_back(*known);
    }
  });
}

void LayoutCosts::forget(func::FuncOp f) {
  f.walk([](Operation *op) { op->removeAttr(factsAttr); });
}

const layout::TileLayout *LayoutCosts::lowered(Type tile, LayoutAttr attr) {
  if (!attr)
    return nullptr;
  auto [it, isNew] = layouts.try_emplace(Key{attr.getAsOpaquePointer(), 0, tile.getAsOpaquePointer()});
  if (isNew)
    if (Result<layout::TileLayout> layout = tile_gpu::layoutOf(tile_gpu::withLayout(tile, attr)))
      it->second = *layout;
  return it->second ? &*it->second : nullptr;
}

LayoutCosts::Conversion LayoutCosts::plan(Type tile, LayoutAttr from, LayoutAttr to) {
  if (from == to)
    return {.cost = 0};
  auto [it, isNew] = plans.try_emplace(Key{
      from.getAsOpaquePointer(), reinterpret_cast<std::uintptr_t>(to.getAsOpaquePointer()), tile.getAsOpaquePointer()});
  if (isNew) {
    const layout::TileLayout *a = lowered(tile, from), *b = lowered(tile, to);
    if (a && b)
      if (Result<layout::TileConversionPlan> plan =
              layout::planTileConversion(*a, *b, tile_gpu::planBits(tile), target, tile_gpu::planOptions(to)))
        it->second = {plan->core.cost, plan->barriers > 0 && plan->core.barrier >= layout::Barrier::Cta};
  }
  return it->second;
}

bool LayoutCosts::isAmongTurns(Operation *op) const {
  auto loop = op->getParentOfType<scf::ForOp>();
  if (!loop || warps < 2 * tile_gpu::warpsOfGroup)
    return false;
  return llvm::count_if(loop.getBody()->getOps<tile::DotOp>(), [](tile::DotOp dot) {
           return tile_gpu::isOfWarpgroups(tile_gpu::layoutAttrOf(dot.getType()));
         }) > 1;
}

double LayoutCosts::convert(Operation *at, Type tile, LayoutAttr from, LayoutAttr to) {
  constexpr double turns = 2048; // two products of 128 x 128 x 128
  const auto [cost, joinsBlock] = plan(tile, from, to);
  return cost + (joinsBlock && isAmongTurns(at) ? turns : 0);
}

bool LayoutCosts::losesTurns(tile_gpu::ConvertLayoutOp conversion) {
  const LayoutAttr from = tile_gpu::layoutAttrOf(conversion.getSource().getType()),
                   to = tile_gpu::layoutAttrOf(conversion.getType());
  return isAmongTurns(conversion) && plan(conversion.getType(), from, to).joinsBlock;
}

double LayoutCosts::memory(Operation *op, Type tile, LayoutAttr work) {
  // The number stands for the operation: each that accesses memory has its own.
  auto number = op->getAttrOfType<IntegerAttr>(factsAttr);
  if (!number)
    return memoryNow(op, tile, work, -1);
  auto [it, isNew] = accesses.try_emplace(
      Key{work.getAsOpaquePointer(), static_cast<std::uintptr_t>(number.getInt()), tile.getAsOpaquePointer()}, 0);
  if (isNew)
    it->second = memoryNow(op, tile, work, number.getInt());
  return it->second;
}

double LayoutCosts::memoryNow(Operation *op, Type tile, LayoutAttr work, int64_t number) {
  const layout::TileLayout *layout = lowered(tile, work);
  if (!layout)
    return 0;
  const layout::LinearLayout &core = layout->core();
  const layout::Owners owners(core);
  double instructions = static_cast<double>(layout->registers() >> std::popcount(owners.registers));
  const bool ownersOnly = !isa<tile::LoadOp, tile::LoadViewOp>(op);
  instructions *= ownersOnly ? warps / static_cast<double>(1u << std::popcount(owners.warps)) : warps;
  double sectors = layout::warpSize, lines = layout::warpSize;
  if (number >= 0) {
    const analysis::AccessFacts &known = facts[static_cast<std::size_t>(number)];
    unsigned fastest = 0;
    for (unsigned d = 0; d < core.dims(); ++d)
      if (known.address.contiguity(d) >= known.address.contiguity(fastest))
        fastest = d;
    const analysis::VectorAccess access = analysis::vectorAccess(op, known, *layout);
    const unsigned dim = access.elements > 1 ? access.dim : fastest;
    Type element = tile::elementTypeOf(tile);
    if (auto pointer = dyn_cast<tile::PtrType>(element))
      element = pointer.getPointee();
    // sectors() wants the dimension of stride 1 last.
    llvm::SmallVector<unsigned> perm;
    for (unsigned d = 0; d < core.dims(); ++d)
      if (d != dim)
        perm.push_back(d);
    perm.push_back(dim);
    const Result<layout::LinearLayout> rows = core.transpose(perm);
    if (rows && known.address.contiguity(dim) > 1) {
      const unsigned last = core.dims() - 1, log = llvm::Log2_32(access.elements), bits = tile::storageBits(element);
      sectors = layout::sectors(*rows, last, log, bits), lines = layout::lines(*rows, last, log, bits);
    }
    instructions /= access.elements;
  }
  return instructions * (1 + 0.5 * sectors + lines);
}

double LayoutCosts::reduction(Operation *op, LayoutAttr work) {
  const Type tile = op->getOperand(0).getType();
  const auto axis = static_cast<unsigned>(op->getAttrOfType<IntegerAttr>("axis").getInt());
  auto [it, isNew] = reductions.try_emplace(
      {Key{work.getAsOpaquePointer(), axis, tile.getAsOpaquePointer()}, op->getName().getAsOpaquePointer()}, 0);
  if (isNew)
    it->second = reductionNow(op, tile, work, axis);
  return it->second * op->getNumOperands();
}

double LayoutCosts::reductionNow(Operation *op, Type tile, LayoutAttr work, unsigned axis) {
  const layout::TileLayout *layout = lowered(tile, work);
  if (!layout)
    return unreachable;
  const unsigned bits = tile_gpu::planBits(tile);
  double out = 0.5 * warps * layout->registers();
  if (isa<tile::ReduceOp>(op)) {
    const unsigned results = layout->repetitions() / layout->tile().counts[axis];
    const Result<layout::ReductionPlan> plan =
        layout::planReduction(layout->core(), axis, bits, target, layout::defaultScratchBytes, results);
    if (!plan)
      return unreachable;
    out += warps * plan->shuffles * results + (plan->exchange ? plan->exchange->plan.cost : 0);
  } else {
    const Result<std::optional<layout::ScanPlan>> plan =
        layout::planScan(layout->core(), axis, bits, target, layout::defaultScratchBytes, layout->repetitions());
    if (!plan || !*plan)
      return unreachable;
    for (const layout::ScanStep &step : (*plan)->steps)
      out += (step.kind == layout::ScanKind::Shuffle ? 1.5 : 0.5) * warps * layout->registers();
    out += (*plan)->totalsCost;
  }
  return out;
}

double LayoutCosts::op(Operation *op, LayoutAttr work) {
  for (Value v : op->getResults()) {
    const layout::TileLayout *now = isTile(v) ? lowered(v.getType(), tile_gpu::layoutAttrOf(v.getType())) : nullptr;
    if (now && (now->registers() * std::uint64_t(tile_gpu::planBits(v.getType())) + 31) / 32 > tile_gpu::maxThreadWords)
      return unreachable;
  }
  if (auto conversion = dyn_cast<tile_gpu::ConvertLayoutOp>(op))
    return convert(op, conversion.getType(), tile_gpu::layoutAttrOf(conversion.getSource().getType()), work);
  if (isa<tile::ReduceOp, tile::ScanOp>(op))
    return reduction(op, work);
  if (const Type tile = analysis::accessedTile(op))
    return memory(op, tile, work);
  const Type result = op->getNumResults() == 1 ? op->getResult(0).getType() : Type();
  if (!result || !isTile(result))
    return 0;
  const bool elementwise = op->hasTrait<OpTrait::Elementwise>();
  if (!elementwise && !isa<tile::RangeOp>(op))
    return 0;
  const layout::TileLayout *layout = lowered(result, work);
  if (!layout)
    return unreachable;
  // The wider of operands and result: comparing 64 bits costs twice, whatever comes out.
  unsigned bits = tile_gpu::planBits(result);
  for (Type t : op->getOperandTypes())
    bits = isTile(t) ? std::max(bits, tile_gpu::planBits(t)) : bits;
  return 0.5 * unitsOf(op) * ((bits + 31) / 32) * warps * layout->registers();
}

double LayoutCosts::weight(Operation *op) const {
  double out = 1;
  for (Operation *p = op->getParentOp(); p && !isa<func::FuncOp>(p); p = p->getParentOp()) {
    if (auto loop = dyn_cast<scf::ForOp>(p)) {
      const std::optional<llvm::APInt> trips = loop.getStaticTripCount();
      out *= trips && trips->ult(1024) ? static_cast<double>(trips->getZExtValue()) : 8;
    } else if (isa<scf::WhileOp>(p)) {
      out *= 8;
    }
  }
  return out;
}

double LayoutCosts::total(func::FuncOp f) {
  double out = 0;
  f.walk([&](Operation *inner) {
    if (inner != f)
      out += weight(inner) * op(inner, workLayoutOf(inner));
  });
  return out;
}

} // namespace kiln
