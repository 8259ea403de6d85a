#include "compiler/passes/barriers/SlotNumber.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln {
namespace {

std::optional<int64_t> constantOf(Value v) {
  APInt value;
  if (!matchPattern(v, m_ConstantInt(&value)))
    return std::nullopt;
  return value.getSExtValue();
}

/// value = base + added
struct Sum {
  Value base;
  int64_t added = 0;
};

Sum sumOf(Value v) {
  auto add = v.getDefiningOp<arith::AddIOp>();
  if (!add)
    return {v, 0};
  if (const std::optional<int64_t> c = constantOf(add.getRhs()))
    return {add.getLhs(), *c};
  if (const std::optional<int64_t> c = constantOf(add.getLhs()))
    return {add.getRhs(), *c};
  return {v, 0};
}

/// (base + added) mod count, for a base in 0 .. count - 1.
struct Wrapped {
  Value base;
  int64_t added = 0, count = 0;
};

/// Of base + 1 that becomes 0 where it would be `count`: a select on a comparison with the last number.
std::optional<Wrapped> stepOf(arith::SelectOp select) {
  auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  const std::optional<int64_t> bound = constantOf(compare.getRhs());
  if (!bound)
    return std::nullopt;
  const Sum tested = sumOf(compare.getLhs());
  int64_t last = *bound - tested.added; // of the base, where the comparison changes
  bool wrapsIfTrue = true;
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::eq:
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    break;
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    ++last;
    break;
  case arith::CmpIPredicate::ne:
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    wrapsIfTrue = false;
    break;
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    wrapsIfTrue = false;
    ++last;
    break;
  }
  const Value wraps = wrapsIfTrue ? select.getTrueValue() : select.getFalseValue();
  const Sum counts = sumOf(wrapsIfTrue ? select.getFalseValue() : select.getTrueValue());
  if (counts.base != tested.base || last < 0)
    return std::nullopt;
  if (constantOf(wraps) == 0 && counts.added == 1)
    return Wrapped{counts.base, 1, last + 1};
  // base + added, less the count from count - added on.
  const Sum wrapped = sumOf(wraps);
  const int64_t count = counts.added - wrapped.added;
  const bool orders =
      compare.getPredicate() != arith::CmpIPredicate::eq && compare.getPredicate() != arith::CmpIPredicate::ne;
  if (!orders || wrapped.base != counts.base || counts.added < 1 || count <= counts.added ||
      last != count - counts.added)
    return std::nullopt;
  return Wrapped{counts.base, counts.added, count};
}

/// The steps of `v` down to what is no step.  A count of 0: there was none.
std::optional<Wrapped> follow(Value v) {
  Wrapped out{v, 0, 0};
  for (;;) {
    std::optional<Wrapped> one;
    if (auto select = out.base.getDefiningOp<arith::SelectOp>()) {
      one = stepOf(select);
    } else if (Operation *op = out.base.getDefiningOp(); op && isa<arith::RemUIOp, arith::RemSIOp>(op)) {
      const Sum sum = sumOf(op->getOperand(0));
      constexpr int64_t most = 1 << 16; // no sum overflows
      const std::optional<int64_t> count = constantOf(op->getOperand(1));
      if (count && *count > 0 && *count < most && sum.added >= 0 && sum.added < most)
        one = Wrapped{sum.base, sum.added, *count};
    } else {
      return out;
    }
    if (!one || (out.count && out.count != one->count))
      return std::nullopt;
    out = Wrapped{one->base, (out.added + one->added) % one->count, one->count};
  }
}

} // namespace

std::optional<SlotNumber> SlotNumber::of(Value number) {
  const std::optional<Wrapped> now = follow(number);
  auto carried = now ? dyn_cast<BlockArgument>(now->base) : BlockArgument();
  auto loop = carried ? dyn_cast<scf::ForOp>(carried.getOwner()->getParentOp()) : scf::ForOp();
  if (!loop || carried == loop.getInductionVar())
    return std::nullopt;
  const std::optional<Wrapped> next = follow(loop.getTiedLoopYieldedValue(carried)->get());
  const Value init = loop.getTiedLoopInit(carried)->get();
  const std::optional<int64_t> start = constantOf(init);
  if (!next || next->base != carried || next->count < 1 || (now->count && now->count != next->count) ||
      (start && (*start < 0 || *start >= next->count)))
    return std::nullopt;
  return SlotNumber{loop, (start.value_or(0) + now->added) % next->count, next->added, next->count,
                    start ? Value() : init};
}

} // namespace kiln
