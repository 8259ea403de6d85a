#include "compiler/passes/Pass.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/CountGroups.inc"

using namespace tile_gpu;

namespace {

/// No wait leaves more in flight, and none needs a larger count.
constexpr unsigned mostGroups = 63;

/// Of a group: whose it is, and how many of the same series it has after it at least.
struct Group {
  tile::Agent series;
  unsigned after;
  bool operator==(const Group &) const = default;
};
/// Each token's group.  A token that is not here may be the last group.
using Groups = llvm::MapVector<Value, Group>;

unsigned groupsAfter(const Groups &state, Value token, tile::Agent series) {
  auto it = state.find(token);
  return it == state.end() || it->second.series != series ? 0 : it->second.after;
}

/// Both paths: the smaller count.
void join(Groups &into, const Groups &other) {
  Groups both;
  for (const auto &[token, group] : into)
    if (auto it = other.find(token); it != other.end() && it->second.series == group.series)
      both.insert_or_assign(token, Group{group.series, std::min(group.after, it->second.after)});
  into = std::move(both);
}

bool same(const Groups &a, const Groups &b) {
  return a.size() == b.size() && llvm::all_of(a, [&](const auto &entry) {
           auto it = b.find(entry.first);
           return it != b.end() && it->second == entry.second;
         });
}

/// A forward data flow over the structured control flow.  Counts only fall from one round of a fixpoint to the next, so
/// it ends, and the last visit of a wait sees what holds on every path.
class Counter {
public:
  void run(Block &block, Groups &state) {
    for (Operation &op : block)
      step(&op, state);
  }
  llvm::DenseMap<Operation *, unsigned> groups; ///< of each wait that was reached

private:
  void step(Operation *op, Groups &state) {
    if (const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(op)) {
      if (ordering->awaits) {
        unsigned least = ordering->tokens.empty() ? 0 : mostGroups;
        for (Value token : ordering->tokens)
          least = std::min(least, groupsAfter(state, token, *ordering->awaits));
        groups[op] = least;
      }
      if (ordering->closes) {
        for (auto &[token, group] : state)
          if (group.series == *ordering->closes)
            group.after = std::min(group.after + 1, mostGroups);
        if (ordering->token)
          state.insert_or_assign(ordering->token, Group{*ordering->closes, 0});
      }
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      Groups other = state;
      arm(branch, branch.getThenRegion(), state);
      arm(branch, branch.getElseRegion(), other);
      join(state, other);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      pass(loop.getInitArgs(), loop.getRegionIterArgs(), state);
      repeat(state, [&](Groups &round) {
        run(*loop.getBody(), round);
        pass(loop.getYieldedValues(), loop.getRegionIterArgs(), round);
      });
      pass(loop.getRegionIterArgs(), loop.getResults(), state);
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      pass(loop.getInits(), loop.getBeforeArguments(), state);
      Groups left;
      repeat(state, [&](Groups &round) {
        run(*loop.getBeforeBody(), round);
        left = round; // the loop is left from here
        pass(loop.getConditionOp().getArgs(), loop.getAfterArguments(), round);
        run(*loop.getAfterBody(), round);
        pass(loop.getYieldOp().getResults(), loop.getBeforeArguments(), round);
      });
      state = std::move(left);
      pass(loop.getConditionOp().getArgs(), loop.getResults(), state);
    }
  }

  void arm(scf::IfOp op, Region &region, Groups &state) {
    if (region.empty())
      return;
    run(region.front(), state);
    pass(region.front().getTerminator()->getOperands(), op.getResults(), state);
  }

  /// Each of `to` becomes what stands at its place in `from`, all at once.
  static void pass(ValueRange from, ValueRange to, Groups &state) {
    llvm::SmallVector<std::pair<Value, std::optional<Group>>> counts;
    for (auto [source, target] : llvm::zip_equal(from, to))
      if (isa<TokenType>(source.getType())) {
        auto it = state.find(source);
        counts.push_back({target, it == state.end() ? std::nullopt : std::optional(it->second)});
      }
    for (const auto &[target, count] : counts) {
      if (count)
        state.insert_or_assign(target, *count);
      else
        state.erase(target);
    }
  }

  /// Until the state before a round is also the state after it.
  static void repeat(Groups &state, llvm::function_ref<void(Groups &)> body) {
    for (;;) {
      Groups after = state, joined = state;
      body(after);
      join(joined, after);
      if (same(joined, state))
        return;
      state = std::move(joined);
    }
  }
};

struct CountGroups : impl::CountGroupsBase<CountGroups> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(count(function)))
        return signalPassFailure();
  }

  static LogicalResult count(func::FuncOp function) {
    if (failed(checkControlFlow(function)))
      return failure();
    Counter counter;
    Groups state;
    counter.run(function.getBody().front(), state);
    function.walk([&](tile::OrderOpInterface wait) {
      if (const tile::MemoryOrdering ordering = wait.ordering(); ordering.awaits && !ordering.inFlight)
        wait.leaveInFlight(counter.groups.lookup(wait));
    });
    return success();
  }

  /// Commits and waits only where the data flow follows them.
  static LogicalResult checkControlFlow(func::FuncOp function) {
    const WalkResult walked = function.walk([&](Operation *op) {
      if (const auto ordering = tile::orderingOf(op); !ordering || !ordering->ordersGroups())
        return WalkResult::advance();
      for (Region *region = op->getParentRegion(); region; region = region->getParentRegion()) {
        Operation *parent = region->getParentOp();
        const bool known = isa<func::FuncOp, scf::IfOp, scf::ForOp, scf::WhileOp>(parent) && region->hasOneBlock();
        if (!known) {
          parent->emitError("'") << parent->getName()
                                 << "' holds groups of asynchronous copies: they are counted in scf.for, scf.if and "
                                    "scf.while";
          return WalkResult::interrupt();
        }
        if (parent == function)
          break;
      }
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }
};

} // namespace
} // namespace kiln
