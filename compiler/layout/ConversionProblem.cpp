#include "compiler/layout/ConversionProblem.h"

#include "compiler/layout/Checks.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::layout {

namespace {

void classify(ConversionProblem &p) {
  const LinearLayout &src = *p.source, &dst = *p.destination;
  Span inner;
  unsigned offered = 0;
  auto inPlace = [&](unsigned level) {
    for (InDim d : hardwareDims) {
      bool outer = index(d) >= level;
      auto want = dst.columns(d), own = src.columns(d);
      for (unsigned i = 0; i < want.size(); ++i)
        if (!inner.contains(want[i] ^ (outer ? own[i] : 0)))
          return false;
    }
    return true;
  };
  for (p.level = 1; p.level < 4; ++p.level) {
    auto columns = src.innerColumns(p.level);
    for (; offered < columns.size(); ++offered)
      inner.add(columns[offered]);
    if (inPlace(p.level))
      break;
  }
  if (p.level > 1) {
    constexpr ConversionClass classes[] = {ConversionClass::Lane, ConversionClass::Warp, ConversionClass::Block};
    p.cls = classes[p.level - 2];
    return;
  }
  // One thread has it all; is it always the same register?
  bool identity = dst.bits(InDim::Register) == src.bits(InDim::Register), uniform = true;
  for (unsigned i = 0; i < dst.bits(InDim::Register); ++i) {
    p.registerSource.push_back(*inner.solve(dst.column(InDim::Register, i)));
    identity &= p.registerSource.back() == unitVector(i);
  }
  for (InDim d : {InDim::Lane, InDim::Warp, InDim::Block})
    for (unsigned i = 0; i < dst.bits(d); ++i)
      uniform &= dst.column(d, i) == src.column(d, i);
  p.cls = !uniform ? ConversionClass::Thread : identity ? ConversionClass::None : ConversionClass::Register;
}

} // namespace

Status checkDistributedSide(const char *name, const LinearLayout &layout) {
  if (Status covered = layout.checkDistributed(); !covered.ok())
    return std::move(covered).withContext(std::string("the ") + name + " layout");
  if (layout.bits(InDim::Lane) != laneBits)
    return Status::invalid(
        format("L04: the %s layout has %u lanes, a warp has %u", name, layout.size(InDim::Lane), warpSize),
        "give the lane input five bases; 0 replicates");
  return {};
}

Result<ConversionProblem> ConversionProblem::create(const LinearLayout &source, const LinearLayout &destination,
                                                    unsigned elementBits, const Target &target, unsigned repetitions) {
  if (!(source.shape() == destination.shape()))
    return Status::invalid("L12: a conversion cannot change the shape; the source has " + shapeText(source.shape()) +
                               ", the destination " + shapeText(destination.shape()),
                           "reshape first, or give both layouts the tensor's shape");
  KILN_TRY(checkDistributedSide("source", source));
  KILN_TRY(checkDistributedSide("destination", destination));
  for (InDim d : {InDim::Warp, InDim::Block})
    if (source.bits(d) != destination.bits(d)) {
      std::string name(inDimName(d));
      return Status::invalid(
          format("L13: the source has %u %ss, the destination %u", source.size(d), name.c_str(), destination.size(d)),
          "give both layouts the same number; bases of 0 replicate over the rest");
    }
  constexpr unsigned maxWarpBits = 5, maxBlockBits = 4; // 1024 threads a block, 16 blocks a cluster
  if (source.bits(InDim::Warp) > maxWarpBits || source.bits(InDim::Block) > maxBlockBits)
    return Status::invalid(format("L18: the layouts use %u warps and %u blocks; the limits are %u and %u",
                                  source.size(InDim::Warp), source.size(InDim::Block), 1u << maxWarpBits,
                                  1u << maxBlockBits),
                           "use fewer warps and more registers a thread");
  KILN_TRY(checkTarget(source, target));
  KILN_TRY(checkElementBits(elementBits));
  ConversionProblem p;
  p.source = &source;
  p.destination = &destination;
  p.target = &target;
  p.elementBits = elementBits;
  p.storageBytes = layout::storageBytes(elementBits);
  p.logBytes = static_cast<unsigned>(std::countr_zero(p.storageBytes));
  p.warps = source.size(InDim::Warp);
  p.blocks = source.size(InDim::Block);
  p.repetitions = std::max(1u, repetitions);
  classify(p);
  return p;
}

ConversionPlan ConversionProblem::emptyPlan(Strategy strategy) const {
  ConversionPlan plan;
  plan.cls = cls;
  plan.strategy = strategy;
  plan.target = target->name;
  plan.elementBits = elementBits;
  plan.storageBytes = storageBytes;
  plan.tensorBits = source->totalBits();
  plan.sourceRegisterBits = source->bits(InDim::Register);
  plan.destinationRegisterBits = destination->bits(InDim::Register);
  plan.warpBits = source->bits(InDim::Warp);
  plan.blockBits = source->bits(InDim::Block);
  plan.repetitions = plan.perRound = repetitions;
  return plan;
}

} // namespace kiln::layout
