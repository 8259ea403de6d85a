#include "compiler/analysis/PointerRoots.h"

#include "compiler/tile/Tile.h"

#include "mlir/Analysis/DataFlow/SparseAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kiln::analysis {

void Roots::add(const Roots &other) {
  known &= other.known;
  for (Value v : other.arguments)
    if (!llvm::is_contained(arguments, v))
      arguments.push_back(v);
  llvm::sort(arguments, [](Value a, Value b) { return a.getAsOpaquePointer() < b.getAsOpaquePointer(); });
}

bool mayOverlap(const Roots &a, const Roots &b) {
  return !a.known || !b.known || llvm::any_of(a.arguments, [&](Value v) { return llvm::is_contained(b.arguments, v); });
}

namespace {

bool isAddress(Value v) {
  return isa<tile::ViewType>(v.getType()) || isa<tile::PtrType>(tile::elementTypeOf(v.getType()));
}

struct RootState {
  Roots roots;
  static RootState join(const RootState &a, const RootState &b) {
    RootState out = a;
    out.roots.add(b.roots);
    return out;
  }
  bool operator==(const RootState &) const = default;
  void print(llvm::raw_ostream &os) const {
    os << (roots.known ? "" : "unknown and ") << roots.arguments.size() << " arguments";
  }
};
using RootLattice = dataflow::Lattice<RootState>;

class RootDataFlow : public dataflow::SparseForwardDataFlowAnalysis<RootLattice> {
public:
  using SparseForwardDataFlowAnalysis::SparseForwardDataFlowAnalysis;

  /// What computes an address from addresses keeps their roots; memory and integers hold any address.
  LogicalResult visitOperation(Operation *op, ArrayRef<const RootLattice *> operands,
                               ArrayRef<RootLattice *> results) override {
    RootState all;
    all.roots.known = isPure(op) && llvm::any_of(op->getOperands(), isAddress);
    for (const RootLattice *operand : operands)
      if (isAddress(operand->getAnchor()))
        all.roots.add(operand->getValue().roots);
    for (RootLattice *result : results)
      if (isAddress(result->getAnchor()))
        propagateIfChanged(result, result->join(all));
    return success();
  }

  void setToEntryState(RootLattice *lattice) override {
    RootState entry;
    auto argument = dyn_cast<BlockArgument>(lattice->getAnchor());
    entry.roots.known = argument && isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
    if (entry.roots.known)
      entry.roots.arguments.push_back(argument);
    propagateIfChanged(lattice, lattice->join(entry));
  }
};

} // namespace

PointerRoots::PointerRoots(Operation *root) {
  DataFlowConfig config;
  config.setInterprocedural(false);
  DataFlowSolver solver(config);
  dataflow::loadBaselineAnalyses(solver);
  solver.load<RootDataFlow>();
  if (failed(solver.initializeAndRun(root)))
    return;
  auto record = [&](Value value) {
    if (!isAddress(value))
      return;
    if (const auto *lattice = solver.lookupState<RootLattice>(value))
      table.try_emplace(value, lattice->getValue().roots);
  };
  root->walk([&](Operation *op) {
    llvm::for_each(op->getResults(), record);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), record);
  });
}

Roots PointerRoots::of(Value address) const {
  auto it = table.find(address);
  return it == table.end() ? Roots{false, {}} : it->second;
}

bool mayBeWritten(Operation *load) {
  Operation *function = load->getParentOfType<FunctionOpInterface>();
  if (!function)
    return true;
  const PointerRoots roots(function);
  Roots read{true, {}};
  for (const tile::MemoryAccess &access : tile::accessesOf(load))
    if (access.in<tile::GlobalMemory>() && access.reads)
      read.add(access.memory ? roots.of(access.memory) : Roots{false, {}});
  return function
      ->walk([&](Operation *op) {
        for (const tile::MemoryAccess &access : tile::accessesOf(op))
          if (access.in<tile::GlobalMemory>() && (access.writes || access.acquires) &&
              (access.acquires || !access.memory || mayOverlap(read, roots.of(access.memory))))
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace kiln::analysis
