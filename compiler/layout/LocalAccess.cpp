#include "compiler/layout/LocalAccess.h"

#include "compiler/layout/AccessForms.h"
#include "compiler/layout/Checks.h"
#include "compiler/layout/ConversionProblem.h"
#include "compiler/layout/CostModel.h"
#include "support/Text.h"

#include <optional>

namespace kiln::layout {

namespace {

Status checkAccess(const LinearLayout &distributed, const LinearLayout &shared) {
  if (!(distributed.shape() == shared.shape()))
    return Status::invalid("L12: the tensor has shape " + shapeText(distributed.shape()) + ", the buffer " +
                               shapeText(shared.shape()),
                           "give the buffer the tensor's shape, or take a view of it");
  KILN_TRY(checkDistributedSide("distributed", distributed));
  for (BitVector c : distributed.columns(InDim::Block))
    if (c)
      return Status::invalid(format("L13: the layout spreads the tensor over %u blocks, a shared buffer belongs to one",
                                    distributed.size(InDim::Block)),
                             "ask with the part of one block");
  return {};
}

} // namespace

Result<LocalAccessPlan> planLocalAccess(const LinearLayout &distributed, const LinearLayout &shared,
                                        unsigned elementBits, const Target &target, bool store) {
  KILN_TRY(checkAccess(distributed, shared));
  KILN_TRY(checkElementBits(elementBits));
  unsigned bytes = storageBytes(elementBits);
  KILN_ASSIGN(Columns rows, inverseRows(shared.columns(InDim::Offset), distributed.totalBits()));
  unsigned logBytes = static_cast<unsigned>(std::countr_zero(bytes));

  SideVectors side;
  LocalAccessPlan plan;
  Span registers;
  auto columns = distributed.columns(InDim::Register);
  for (unsigned i = 0; i < columns.size(); ++i) {
    if (registers.contains(columns[i])) // a copy
      continue;
    registers.add(columns[i]);
    side.registerBits.push_back(i);
    side.registers.push_back(columns[i]);
  }
  for (BitVector c : columns) {
    Mask copy = 0;
    for (unsigned k : bitsOf(registers.reduce(c).second))
      copy |= Mask(1) << side.registerBits[k];
    plan.registerCopy.push_back(copy);
  }
  if (store) {
    side.lanePredicate = distributed.freeMask(InDim::Lane);
    side.warpPredicate = distributed.freeMask(InDim::Warp);
  }
  auto owned = [](std::span<const BitVector> vectors, BitVector free) {
    Columns out;
    for (unsigned i = 0; i < vectors.size(); ++i)
      out.push_back(free >> i & 1 ? 0 : vectors[i]);
    return out;
  };
  side.lanes = owned(distributed.columns(InDim::Lane), side.lanePredicate);
  side.warps = owned(distributed.columns(InDim::Warp), side.warpPredicate);

  std::optional<BoundAccess> best;
  struct Tried {
    AccessForm form;
    unsigned bytes;
    double cost; ///< negative: not legal
  };
  std::vector<Tried> tried;
  BoundAccess bound;
  for (Form form :
       formsFor(store, side.registers.size(), logBytes, side.lanePredicate != 0, /*matrices=*/true, target)) {
    if (!bindAccess(form, side, logBytes, rows, 0, bound)) {
      tried.push_back({form.form, isMatrix(form.form) ? 0 : bytes << form.k, -1});
      continue;
    }
    double instructions = static_cast<double>(std::uint64_t(1) << bound.log2Instructions());
    double cost = instructions * (bound.wavefronts * costs::wavefront + costs::issue) + bound.constants * costs::alu;
    tried.push_back({form.form, bound.bytes, cost});
    if (!best || cost < plan.cost) {
      best = bound;
      plan.cost = cost;
    }
  }
  if (!best)
    return Status(StatusCode::Internal, "no access form serves the buffer, not even single elements");

  plan.store = store;
  plan.target = target.name;
  plan.elementBits = elementBits;
  plan.storageBytes = bytes;
  plan.access =
      emitAccess(*best, side, distributed.bits(InDim::Register), std::uint64_t(1) << best->log2Instructions());
  std::uint64_t warps = distributed.size(InDim::Warp) >> std::popcount(side.warpPredicate);
  plan.wavefronts = warps * plan.access.instructions * plan.access.wavefronts;
  plan.conflicts = plan.wavefronts - warps * plan.access.instructions * plan.access.ideal;
  for (const Tried &t : tried) {
    if (t.cost >= 0 && t.form == plan.access.form && t.bytes == plan.access.bytes)
      continue;
    std::string name(accessFormName(t.form));
    if (t.bytes)
      name += format(".%u", t.bytes);
    plan.rejected.push_back({name, t.cost < 0 ? "the layouts do not allow it"
                                              : format("cost %.1f against %.1f a warp", t.cost, plan.cost)});
  }
  return plan;
}

} // namespace kiln::layout
