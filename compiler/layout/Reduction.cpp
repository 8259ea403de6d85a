#include "compiler/layout/Reduction.h"

#include "compiler/layout/Checks.h"
#include "compiler/layout/ConversionProblem.h"
#include "compiler/layout/CostModel.h"
#include "compiler/layout/Subspace.h"
#include "support/Text.h"

namespace kiln::layout {

namespace {

Mask asMask(BitVector v) {
  return static_cast<Mask>(v);
}

std::vector<Mask> masksOf(std::span<const BitVector> vectors) {
  std::vector<Mask> out;
  for (BitVector v : vectors)
    out.push_back(asMask(v));
  return out;
}

Status checkAxis(const LinearLayout &layout, unsigned axis, unsigned elementBits) {
  if (axis >= layout.dims())
    return Status::invalid(format("L10: axis %u of a tensor of rank %u", axis, layout.dims()),
                           "axes count from 0; use one below the rank");
  KILN_TRY(checkElementBits(elementBits));
  return checkDistributedSide("reduced", layout);
}

/// Flat index without the coordinate of one dimension, as slice() numbers the rest.
BitVector dropDim(const LinearLayout &layout, BitVector flat, unsigned d) {
  unsigned at = layout.bitPosition(d), bits = layout.log2Shape(d);
  return (flat & lowMask(at)) | flat >> (at + bits) << at;
}

/// The shape without dimension d, plus a last dimension of 2^numberBits.
Coords exchangeShape(const LinearLayout &layout, unsigned d, unsigned numberBits) {
  Coords shape;
  for (unsigned e = 0; e < layout.dims(); ++e)
    if (e != d)
      shape.push_back(layout.shape(e));
  shape.push_back(1u << numberBits);
  return shape;
}

struct HardwareColumns {
  Columns of[4];
  Result<LinearLayout> layout(const Coords &shape) const {
    return LinearLayout::create(shape, {of[0], of[1], of[2], of[3]});
  }
};

} // namespace

Result<ReductionPlan> planReduction(const LinearLayout &layout, unsigned axis, unsigned elementBits,
                                    const Target &target, std::uint64_t scratchBytes, unsigned repetitions) {
  KILN_TRY(checkAxis(layout, axis, elementBits));
  if (layout.dims() >= maxDims)
    return Status::invalid(format("L18: a reduction needs a rank below %u", maxDims), "reshape to fewer dimensions");
  ReductionPlan plan;
  plan.axis = axis;
  plan.elementBits = elementBits;
  KILN_ASSIGN(plan.result, layout.slice(axis));

  // K = kernel of the projection: what may be combined; Z = kernel of the layout: copies, never combined.
  std::span<const BitVector> columns = layout.allColumns();
  Columns projected;
  for (BitVector c : columns)
    projected.push_back(dropDim(layout, c, axis));
  unsigned registers = layout.bits(InDim::Register), lanes = registers + laneBits, all = layout.hardwareBits();
  Columns steps[3], done;
  unsigned ends[3] = {registers, lanes, all};
  for (unsigned level = 0; level < 3; ++level) {
    Subspace used(kernel(columns.first(ends[level])));
    used.add(done);
    for (BitVector k : kernel(std::span(projected.data(), ends[level])))
      if (used.add(k))
        steps[level].push_back(k);
    done.append(steps[level]);
  }
  plan.registerSteps = masksOf(steps[0]);
  plan.crossSteps = masksOf(steps[2]);

  // Held registers: one a coset of (register steps + copies); `held` maps a register to the one of its coset.
  Columns merged = kernel(columns.first(registers));
  merged.append(steps[0]);
  merged = basis(merged);
  Span cosets(merged);
  BitVector heldBits = 0;
  for (unsigned i = 0; i < registers; ++i)
    if (cosets.add(unitVector(i)))
      heldBits |= unitVector(i);
  auto held = [&](BitVector r) {
    BitVector made = cosets.reduce(r).second >> merged.size(); // unit i is generator merged.size() + i
    return made & heldBits;
  };
  plan.heldRegisters = asMask(heldBits);
  Subspace combinedLanes;
  plan.wholeWarp = true;
  for (BitVector q : steps[1]) {
    LaneStep step{asMask(held(q & lowMask(registers))), asMask(q >> registers)};
    plan.wholeWarp &= step.registerXor == 0;
    combinedLanes.add(step.laneXor);
    plan.laneSteps.push_back(step);
  }
  plan.wholeWarp &= combinedLanes.dim() == laneBits;
  unsigned words = elementBits > 32 ? 2 : 1;
  plan.shuffles = (steps[1].size() * words) << std::popcount(heldBits);

  if (steps[2].empty()) {
    for (unsigned i = 0; i < registers; ++i)
      if (projected[i])
        plan.resultRegister.push_back(asMask(held(unitVector(i))));
    return plan;
  }

  // Number the partial results along the cross steps; moves between equal partial results do not count.
  Columns quiet = kernel(columns);
  quiet.append(steps[0]);
  quiet.append(steps[1]);
  Columns full = quiet;
  full.append(steps[2]);
  Subspace covered(full);
  for (unsigned i = 0; i < all; ++i)
    if (covered.add(unitVector(i)))
      full.push_back(unitVector(i));
  Span solver(full);
  unsigned numberBits = steps[2].size();
  Columns tags;
  for (unsigned i = 0; i < all; ++i)
    tags.push_back(projected[i] << numberBits |
                   (solver.reduce(unitVector(i)).second >> quiet.size() & lowMask(numberBits)));
  plan.tags = masksOf(tags);
  HardwareColumns src, dst;
  Subspace distinct;
  for (unsigned i = 0; i < registers; ++i)
    if (distinct.add(tags[i])) {
      src.of[0].push_back(tags[i]);
      plan.partialRegister.push_back(asMask(held(unitVector(i))));
    }
  for (unsigned j = 0; j < numberBits; ++j)
    dst.of[0].push_back(unitVector(j));
  for (InDim d : hardwareDims)
    for (unsigned i = layout.hardwareStart(d); i < layout.hardwareStart(d) + layout.bits(d); ++i) {
      if (d != InDim::Register)
        src.of[index(d)].push_back(tags[i]);
      if (d != InDim::Register || projected[i])
        dst.of[index(d)].push_back(projected[i] << numberBits);
    }
  Coords shape = exchangeShape(layout, axis, numberBits);
  PartialExchange exchange;
  exchange.numberBits = numberBits;
  KILN_ASSIGN(exchange.source, src.layout(shape));
  KILN_ASSIGN(exchange.destination, dst.layout(shape));
  KILN_ASSIGN(exchange.plan, planConversion(exchange.source, exchange.destination, elementBits, target,
                                            PlanOptions{.scratchBytes = scratchBytes, .repetitions = repetitions}));
  plan.exchange = std::move(exchange);
  return plan;
}

namespace {

/// How many of the number's bits the lanes of TotalsTrip::scanning hold.
unsigned numberLanes(unsigned numberBits, unsigned restBits, unsigned warpBits) {
  const unsigned lanes = std::min(laneBits, restBits - std::min(warpBits, restBits));
  return std::min(numberBits, laneBits - lanes);
}

/// The other elements between warps, lanes and, last, registers; the number in registers and the lanes that are left.
Result<LinearLayout> scanningLayout(const PartialExchange &totals, unsigned warpBits) {
  const unsigned numberBits = totals.numberBits, restBits = totals.source.totalBits() - numberBits;
  const unsigned warps = std::min(warpBits, restBits), lanes = std::min(laneBits, restBits - warps),
                 across = numberLanes(numberBits, restBits, warpBits);
  HardwareColumns out;
  Columns *of = out.of;
  for (unsigned j = 0; j < numberBits - across; ++j)
    of[0].push_back(unitVector(j));
  for (unsigned j = lanes; j < restBits - warps; ++j)
    of[0].push_back(unitVector(numberBits + j));
  for (unsigned j = 0; j < lanes; ++j)
    of[1].push_back(unitVector(numberBits + j));
  for (unsigned j = numberBits - across; j < numberBits; ++j)
    of[1].push_back(unitVector(j));
  of[1].resize(laneBits, 0);
  for (unsigned j = restBits - warps; j < restBits; ++j)
    of[2].push_back(unitVector(numberBits + j));
  of[2].resize(warpBits, 0);
  Coords shape;
  for (unsigned d = 0; d < totals.source.dims(); ++d)
    shape.push_back(totals.source.shape(d));
  return out.layout(shape);
}

/// Fills in plan.trip if it is cheaper than that every thread reads all totals before its own, and plan.totalsCost.
Status chooseTrip(ScanPlan &plan, const LinearLayout &layout, unsigned elementBits, const Target &target,
                  std::uint64_t scratchBytes) {
  const PartialExchange &totals = *plan.totals;
  const unsigned warpBits = layout.bits(InDim::Warp);
  const double warps = 1u << warpBits, kept = 1u << totals.source.bits(InDim::Register);
  unsigned own = 0; // bits of the number that the thread decides
  for (InDim d : {InDim::Lane, InDim::Warp})
    for (Mask column : plan.number[index(d)])
      own += column != 0;
  plan.totalsCost =
      totals.plan.cost + costs::alu * warps * (double(totals.destination.size(InDim::Register)) + kept * (1u << own));
  // A thread has the registers for so many totals; the barrier of the way back costs more than they do.
  constexpr unsigned few = 32;
  if (layout.bits(InDim::Block) || totals.destination.size(InDim::Register) <= few)
    return {};
  TotalsTrip trip;
  KILN_ASSIGN(trip.scanning, scanningLayout(totals, warpBits));
  KILN_ASSIGN(trip.there, planConversion(totals.source, trip.scanning, elementBits, target, scratchBytes));
  KILN_ASSIGN(trip.back, planConversion(trip.scanning, totals.source, elementBits, target, scratchBytes));
  const unsigned lanes = numberLanes(totals.numberBits, totals.source.totalBits() - totals.numberBits, warpBits),
                 inThread = totals.numberBits - lanes, registers = trip.scanning.size(InDim::Register);
  const double sums = double(registers) * (inThread + (lanes ? 1 : 0)) / 2,
               shuffles = double(lanes ? lanes + 1 : 0) * (registers >> inThread);
  const double cost = trip.there.cost + trip.back.cost + warps * (costs::alu * (sums + 2 * shuffles + kept)) +
                      warps * costs::shuffle * shuffles;
  if (cost < plan.totalsCost) {
    plan.totalsCost = cost;
    plan.trip = std::move(trip);
  }
  return {};
}

} // namespace

Result<std::optional<ScanPlan>> planScan(const LinearLayout &layout, unsigned axis, unsigned elementBits,
                                         const Target &target, std::uint64_t scratchBytes, unsigned repetitions) {
  KILN_TRY(checkAxis(layout, axis, elementBits));
  if (layout.dims() >= maxDims)
    return Status::invalid(format("L18: a scan needs a rank below %u", maxDims), "reshape to fewer dimensions");
  if (!layout.isPermutation())
    return std::optional<ScanPlan>();
  ScanPlan plan;
  plan.axis = axis;
  unsigned axisBits = layout.log2Shape(axis), finished = 0;
  for (; finished < axisBits; ++finished) {
    BitVector unit = layout.unit(axis, finished);
    ScanStep step;
    bool found = false;
    for (InDim d : hardwareDims)
      for (unsigned i = 0; i < layout.bits(d) && !found; ++i)
        if (layout.column(d, i) == unit) {
          step.dim = d;
          step.bit = i;
          found = true;
        }
    if (step.dim == InDim::Warp || step.dim == InDim::Block)
      break;
    step.lowRegisters = plan.lowRegisters;
    step.lowLanes = plan.lowLanes;
    (step.dim == InDim::Register ? plan.lowRegisters : plan.lowLanes) |= Mask(1) << step.bit;
    step.kind = plan.lowLanes ? ScanKind::Shuffle : ScanKind::Register;
    plan.steps.push_back(step);
  }
  if (finished == axisBits)
    return std::optional(std::move(plan));

  // Totals: the finished axis bits are gone; the others are the number, in the low bits of the exchanged tensor.
  unsigned numberBits = axisBits - finished;
  HardwareColumns src, dst;
  for (unsigned j = 0; j < numberBits; ++j)
    dst.of[0].push_back(unitVector(j));
  for (InDim d : hardwareDims)
    for (unsigned i = 0; i < layout.bits(d); ++i) {
      BitVector c = layout.column(d, i), number = layout.coord(c, axis) >> finished;
      BitVector rest = dropDim(layout, c, axis) << numberBits, tag = rest | number;
      plan.number[index(d)].push_back(asMask(number));
      if (d != InDim::Register) {
        src.of[index(d)].push_back(tag);
        dst.of[index(d)].push_back(rest);
        continue;
      }
      if (tag) {
        src.of[0].push_back(tag);
        plan.totalRegister.push_back(Mask(1) << i);
      }
      plan.totalsOf.push_back(rest ? Mask(1) << dst.of[0].size() : 0);
      if (rest)
        dst.of[0].push_back(rest);
    }
  Coords shape = exchangeShape(layout, axis, numberBits);
  PartialExchange totals;
  totals.numberBits = numberBits;
  KILN_ASSIGN(totals.source, src.layout(shape));
  KILN_ASSIGN(totals.destination, dst.layout(shape));
  KILN_ASSIGN(totals.plan, planConversion(totals.source, totals.destination, elementBits, target,
                                          PlanOptions{.scratchBytes = scratchBytes, .repetitions = repetitions}));
  plan.totals = std::move(totals);
  KILN_TRY(chooseTrip(plan, layout, elementBits, target, scratchBytes));
  return std::optional(std::move(plan));
}

} // namespace kiln::layout
