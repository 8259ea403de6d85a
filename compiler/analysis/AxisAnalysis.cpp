#include "compiler/analysis/AxisAnalysis.h"

#include "compiler/analysis/AxisTransfer.h"
#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Analysis/DataFlow/SparseAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace kiln::analysis {
namespace {

using layout::AxisInfo;

/// Not yet reached, facts, or a value that has none.
struct AxisState {
  enum class Kind : unsigned char { Unreached, Facts, None };
  Kind kind = Kind::Unreached;
  AxisInfo info;

  static AxisState none() { return {Kind::None, {}}; }
  static AxisState of(const AxisInfo &info) { return {Kind::Facts, info}; }

  static AxisState join(const AxisState &a, const AxisState &b) {
    if (a.kind == Kind::Unreached)
      return b;
    if (b.kind == Kind::Unreached)
      return a;
    if (a.kind == Kind::None || b.kind == Kind::None)
      return none();
    return of(meet(a.info, b.info));
  }
  bool operator==(const AxisState &other) const {
    return kind == other.kind && (kind != Kind::Facts || info == other.info);
  }
  void print(llvm::raw_ostream &os) const { os << (kind == Kind::Facts ? info.text() : std::string("-")); }
};

/// A value's facts, those that the kernel assumes among them: they hold on every path that control flow joins.
class AxisLattice : public dataflow::Lattice<AxisState> {
public:
  using Lattice::Lattice;

  ChangeResult join(const dataflow::AbstractSparseLattice &other) override {
    return join(static_cast<const AxisLattice &>(other).getValue());
  }
  ChangeResult join(const AxisState &state) {
    if (state.kind != AxisState::Kind::Facts || state.info.dims() != 1 || state.info.shape(0) != 1)
      return Lattice::join(state);
    if (!assumed)
      assumed = assumptionsOf(getAnchor()).divisor;
    if (*assumed <= state.info.divisibility(0))
      return Lattice::join(state);
    return Lattice::join(AxisState::of(AxisInfo::splat(*assumed, layout::Coords{1u})));
  }

private:
  std::optional<std::uint32_t> assumed;
};

class AxisDataFlow : public dataflow::SparseForwardDataFlowAnalysis<AxisLattice> {
public:
  AxisDataFlow(DataFlowSolver &solver, ArrayRef<Value> multiples)
      : SparseForwardDataFlowAnalysis(solver), multiples(multiples) {}

  LogicalResult visitOperation(Operation *op, ArrayRef<const AxisLattice *> operands,
                               ArrayRef<AxisLattice *> results) override {
    if (auto load = dyn_cast<tile_gpu::ExchangeLoadOp>(op))
      return visitExchange(load, results.front());
    llvm::SmallVector<const AxisInfo *> facts;
    for (const AxisLattice *operand : operands) {
      const AxisState &state = operand->getValue();
      if (state.kind == AxisState::Kind::Unreached)
        return success(); // visited again once it is known
      facts.push_back(state.kind == AxisState::Kind::Facts ? &state.info : nullptr);
    }
    for (auto [i, result] : llvm::enumerate(results)) {
      const bool some = factShape(result->getAnchor().getType()).has_value();
      const AxisState next = some ? AxisState::of(transfer(op, facts, static_cast<unsigned>(i))) : AxisState::none();
      propagateIfChanged(result, result->join(next));
    }
    return success();
  }

  /// A conversion in two halves is what it was as one: the tile that was stored.
  LogicalResult visitExchange(tile_gpu::ExchangeLoadOp load, AxisLattice *result) {
    for (Operation *user : load.getScratch().getUsers())
      if (auto store = dyn_cast<tile_gpu::ExchangeStoreOp>(user)) {
        const AxisLattice *from = getLatticeElementFor(getProgramPointAfter(load), store.getValue());
        propagateIfChanged(result, result->join(from->getValue()));
      }
    return success();
  }

  void setToEntryState(AxisLattice *lattice) override {
    const Value value = lattice->getAnchor();
    const std::optional<layout::Coords> shape = factShape(value.getType());
    const std::uint64_t known = llvm::is_contained(multiples, value) ? 16 : 1;
    propagateIfChanged(lattice,
                       lattice->join(shape ? AxisState::of(entryFacts(value, *shape, known)) : AxisState::none()));
  }

  /// A loop's induction variable: a multiple of what divides both its start and its step.
  void visitNonControlFlowArguments(Operation *op, const RegionSuccessor &successor, ArrayRef<AxisLattice *> arguments,
                                    unsigned firstIndex) override {
    auto loop = dyn_cast<LoopLikeOpInterface>(op);
    std::optional<Value> variable = loop ? loop.getSingleInductionVar() : std::nullopt;
    std::optional<OpFoldResult> lower = loop ? loop.getSingleLowerBound() : std::nullopt;
    std::optional<OpFoldResult> step = loop ? loop.getSingleStep() : std::nullopt;
    if (!variable || !lower || !step)
      return SparseForwardDataFlowAnalysis::visitNonControlFlowArguments(op, successor, arguments, firstIndex);
    for (AxisLattice *argument : arguments) {
      if (argument->getAnchor() != *variable)
        continue;
      const std::optional<std::uint32_t> a = multipleOf(*lower, *variable), b = multipleOf(*step, *variable);
      if (a && b)
        propagateIfChanged(argument,
                           argument->join(AxisState::of(AxisInfo::splat(std::min(*a, *b), layout::Coords{1u}))));
    }
  }

private:
  /// Nothing while the bound's facts are not there yet.
  std::optional<std::uint32_t> multipleOf(OpFoldResult bound, Value variable) {
    if (auto attr = dyn_cast<Attribute>(bound)) {
      const std::int64_t n = cast<IntegerAttr>(attr).getInt();
      return AxisInfo::splat(static_cast<std::uint64_t>(n), layout::Coords{1u}).divisibility(0);
    }
    Block *block = cast<BlockArgument>(variable).getOwner();
    const AxisState &state = getLatticeElementFor(getProgramPointBefore(block), cast<Value>(bound))->getValue();
    if (state.kind == AxisState::Kind::Unreached)
      return std::nullopt;
    return state.kind == AxisState::Kind::Facts ? state.info.divisibility(0) : 1;
  }

  ArrayRef<Value> multiples;
};

} // namespace

AxisAnalysis::AxisAnalysis(Operation *root) : AxisAnalysis(root, {}) {}

AxisAnalysis::AxisAnalysis(Operation *root, ArrayRef<Value> multiples) {
  DataFlowConfig config;
  config.setInterprocedural(false);
  DataFlowSolver solver(config);
  dataflow::loadBaselineAnalyses(solver);
  solver.load<AxisDataFlow>(multiples);
  if (failed(solver.initializeAndRun(root)))
    return;
  auto record = [&](Value value) {
    const auto *lattice = solver.lookupState<AxisLattice>(value);
    if (lattice && lattice->getValue().kind == AxisState::Kind::Facts)
      table.try_emplace(value, lattice->getValue().info);
  };
  root->walk([&](Operation *op) {
    llvm::for_each(op->getResults(), record);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), record);
  });
}

std::optional<AxisInfo> AxisAnalysis::facts(Value value) const {
  const std::optional<layout::Coords> shape = factShape(value.getType());
  if (!shape)
    return std::nullopt;
  auto it = table.find(value);
  return it == table.end() ? AxisInfo::unknown(*shape) : it->second;
}

std::uint32_t AxisAnalysis::divisibility(Value scalar) const {
  const std::optional<AxisInfo> info = facts(scalar);
  return info && info->dims() > 0 ? info->divisibility(0) : 1;
}

} // namespace kiln::analysis
