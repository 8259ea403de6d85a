#include "compiler/passes/barriers/KnownNumbers.h"

#include "compiler/passes/barriers/SharedAccess.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using llvm::APInt;

namespace kiln::proof {
namespace {

using Number = std::optional<APInt>;

/// An operation on two known numbers; nothing where it has no one result.
Number compute(Operation *op, const APInt &a, const APInt &b) {
  return llvm::TypeSwitch<Operation *, Number>(op)
      .Case([&](arith::AddIOp) { return a + b; })
      .Case([&](arith::SubIOp) { return a - b; })
      .Case([&](arith::MulIOp) { return a * b; })
      .Case([&](arith::AndIOp) { return a & b; })
      .Case([&](arith::OrIOp) { return a | b; })
      .Case([&](arith::XOrIOp) { return a ^ b; })
      .Case([&](arith::MaxSIOp) { return llvm::APIntOps::smax(a, b); })
      .Case([&](arith::MinSIOp) { return llvm::APIntOps::smin(a, b); })
      .Case([&](arith::DivUIOp) { return b.isZero() ? Number() : a.udiv(b); })
      .Case([&](arith::RemUIOp) { return b.isZero() ? Number() : a.urem(b); })
      .Case([&](arith::RemSIOp) { return b.isStrictlyPositive() ? Number(a.srem(b)) : Number(); })
      .Case([&](arith::CmpIOp compare) { return APInt(1, arith::applyCmpPredicate(compare.getPredicate(), a, b)); })
      .Default([](Operation *) { return Number(); });
}

/// The numbers that a loop carries and that `roots`, in its body, depend on.
llvm::SetVector<BlockArgument> carriedFor(scf::ForOp loop, llvm::ArrayRef<Value> roots) {
  llvm::SetVector<BlockArgument> out;
  llvm::SetVector<Value> seen(roots.begin(), roots.end());
  for (size_t i = 0; i < seen.size(); ++i) {
    const Value v = seen[i];
    if (auto argument = dyn_cast<BlockArgument>(v)) {
      auto of = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!of || !loop->isAncestor(of) || argument == of.getInductionVar())
        continue;
      seen.insert(of.getTiedLoopInit(argument)->get());
      seen.insert(of.getTiedLoopYieldedValue(argument)->get());
      if (of == loop)
        out.insert(argument);
    } else if (Operation *op = v.getDefiningOp(); loop->isProperAncestor(op)) {
      seen.insert(op->operand_begin(), op->operand_end());
      if (auto branch = dyn_cast<scf::IfOp>(op))
        for (Region *arm : {&branch.getThenRegion(), &branch.getElseRegion()})
          if (!arm->empty())
            seen.insert(arm->front().getTerminator()->operand_begin(), arm->front().getTerminator()->operand_end());
    }
  }
  return out;
}

/// What `v` is computed from, one step back.
void addSources(Value v, llvm::SetVector<Value> &to) {
  auto argument = dyn_cast<BlockArgument>(v);
  Operation *op = argument ? argument.getOwner()->getParentOp() : v.getDefiningOp();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (argument == loop.getInductionVar())
      return;
    const unsigned i = argument ? argument.getArgNumber() - 1 : cast<OpResult>(v).getResultNumber();
    to.insert(loop.getInitArgs()[i]);
    to.insert(loop.getYieldedValues()[i]);
    return;
  }
  if (argument)
    return;
  to.insert(op->operand_begin(), op->operand_end());
  if (auto branch = dyn_cast<scf::IfOp>(op))
    for (Region *arm : {&branch.getThenRegion(), &branch.getElseRegion()})
      if (!arm->empty())
        to.insert(arm->front().getTerminator()->operand_begin(), arm->front().getTerminator()->operand_end());
}

} // namespace

llvm::SmallVector<Value, 2> numbersOf(Operation *op) {
  if (auto view = dyn_cast<tile_gpu::LocalSubviewOp>(op))
    return {view.getIndex()};
  if (auto copy = dyn_cast<tile_gpu::TensorCopyOp>(op); copy && copy.getNumber())
    return {copy.getNumber()};
  if (const auto ordering = tile::orderingOf(op); ordering && ordering->handoff)
    return {ordering->handoff->number, ordering->handoff->phase};
  return {};
}

Operation *lastGoingBy(Operation *of, ValueRange ends) {
  llvm::SetVector<Value> seen(ends.begin(), ends.end());
  size_t next = 0;
  for (Operation *op = &of->getBlock()->back(); op != of; op = op->getPrevNode()) {
    op->walk([&](Operation *inner) {
      seen.insert_range(numbersOf(inner));
      for (const Value number : chosenBy(inner))
        if (number)
          seen.insert(number);
    });
    for (; next < seen.size(); ++next) {
      if (seen[next].getDefiningOp() == of)
        return op;
      addSources(seen[next], seen);
    }
  }
  return nullptr;
}

KnownNumbers KnownNumbers::operator&(const KnownNumbers &o) const {
  KnownNumbers out;
  for (const auto &[v, number] : carried)
    if (auto it = o.carried.find(v); it != o.carried.end() && it->second == number)
      out.carried[v] = number;
  return out;
}

Number KnownNumbers::of(Value v) const {
  llvm::DenseMap<Value, Number> worked;
  return work(v, worked);
}

Number KnownNumbers::work(Value v, llvm::DenseMap<Value, Number> &worked) const {
  if (auto it = carried.find(v); it != carried.end())
    return it->second;
  APInt constant;
  if (matchPattern(v, m_ConstantInt(&constant)))
    return constant;
  Operation *op = v.getDefiningOp();
  if (!op || !v.getType().isIntOrIndex())
    return std::nullopt;
  if (auto [it, fresh] = worked.insert({v, std::nullopt}); !fresh)
    return it->second;
  Number out;
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    if (const Number condition = work(select.getCondition(), worked))
      out = work(condition->isZero() ? select.getFalseValue() : select.getTrueValue(), worked);
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (const Number condition = work(branch.getCondition(), worked)) {
      Region &arm = condition->isZero() ? branch.getElseRegion() : branch.getThenRegion();
      out = work(arm.front().getTerminator()->getOperand(cast<OpResult>(v).getResultNumber()), worked);
    }
  } else if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op)) {
    const unsigned width = v.getType().getIntOrFloatBitWidth();
    if (const Number a = work(op->getOperand(0), worked))
      out = isa<arith::ExtUIOp>(op) ? a->zext(width) : isa<arith::ExtSIOp>(op) ? a->sext(width) : a->trunc(width);
  } else if (op->getNumOperands() == 2) {
    const Number a = work(op->getOperand(0), worked), b = work(op->getOperand(1), worked);
    if (a && b)
      out = compute(op, *a, *b);
  }
  return worked[v] = out;
}

Rounds roundsOf(scf::ForOp loop, const KnownNumbers &around, size_t most) {
  llvm::SmallVector<Value> indices;
  loop.walk([&](Operation *op) { llvm::append_range(indices, numbersOf(op)); });
  llvm::SetVector<BlockArgument> numbers = carriedFor(loop, indices);
  llvm::SmallVector<BlockArgument> wanted;
  for (BlockArgument a : numbers)
    if (around.of(loop.getTiedLoopInit(a)->get()))
      wanted.push_back(a);
  while (!numbers.empty()) {
    Rounds out;
    out.wanted = wanted;
    out.whole = numbers.size() == wanted.size();
    std::vector<llvm::SmallVector<Number>> rows; // a round's numbers, in the order of `numbers`
    llvm::SmallVector<Number> row = llvm::map_to_vector(
        numbers, [&](BlockArgument a) -> Number { return around.of(loop.getTiedLoopInit(a)->get()); });
    const auto unknown = [&] { return llvm::is_contained(row, std::nullopt); };
    while (!unknown() && !llvm::is_contained(rows, row) && rows.size() < most) {
      KnownNumbers &now = out.states.emplace_back(around);
      for (auto [argument, number] : llvm::zip_equal(numbers, row))
        now.set(argument, *number);
      rows.push_back(row);
      row = llvm::map_to_vector(
          numbers, [&](BlockArgument a) -> Number { return now.of(loop.getTiedLoopYieldedValue(a)->get()); });
    }
    if (auto again = llvm::find(rows, row); again != rows.end()) {
      out.back = static_cast<size_t>(again - rows.begin());
      return out;
    }
    // Leave out what is not known, else what never comes back, else all.
    llvm::SmallVector<BlockArgument> keep;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const bool comesBack = llvm::any_of(rows, [&](const auto &other) { return other[i] == row[i]; });
      if (unknown() ? row[i].has_value() : comesBack)
        keep.push_back(numbers[i]);
    }
    if (keep.size() == numbers.size())
      break;
    numbers = llvm::SetVector<BlockArgument>(keep.begin(), keep.end());
  }
  Rounds one;
  one.states.push_back(around);
  one.whole = wanted.empty();
  one.wanted = std::move(wanted);
  return one;
}

} // namespace kiln::proof
