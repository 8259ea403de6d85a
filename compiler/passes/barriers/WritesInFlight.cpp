#include "compiler/passes/barriers/WritesInFlight.h"

#include "compiler/passes/barriers/MemoryOrigin.h"

using namespace mlir;

namespace kiln::proof {

namespace {

struct Written {
  Operation *op;
  MemoryOrigin to;
  bool atomic;
};

bool inFlight(const tile::MemoryAccess &access) {
  return access.inFlight && access.writes;
}

/// Accesses of an operation that may not meet what is written so.  Of two stores either may stay.  A count accesses
/// nothing: that it comes after a wait is for who searches the paths.
std::optional<MemoryOrigin> disturbs(Operation *op, bool atomic) {
  return originOf(
      op, [&](const tile::MemoryAccess &access) { return atomic ? !access.atomic && !access.releases : access.reads; });
}

bool isStore(Operation *op) {
  return llvm::any_of(tile::accessesOf(op), [](const tile::MemoryAccess &access) {
    return access.inFlight && access.agent == tile::Agent::BulkStore;
  });
}

bool awaitsStores(Operation *op) {
  const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(op);
  return ordering && ordering->awaits == tile::Agent::BulkStore && ordering->tokens.empty() &&
         ordering->inFlight.value_or(0) == 0;
}

/// Of those that a block of the function ends with, after all waits: the last one; null if there is none.
Operation *lastStore(Block &block) {
  for (Operation &op : llvm::reverse(block)) {
    if (awaitsStores(&op))
      return nullptr;
    Operation *last = nullptr;
    op.walk([&](Operation *inner) { last = isStore(inner) ? inner : last; });
    if (last)
      return last;
  }
  return nullptr;
}

} // namespace

bool checkWritesInFlight(func::FuncOp function) {
  llvm::SmallVector<Written> all;
  function.walk([&](Operation *op) {
    for (const bool atomic : {false, true})
      if (std::optional<MemoryOrigin> to = originOf(
              op, [&](const tile::MemoryAccess &access) { return inFlight(access) && access.atomic == atomic; }))
        all.push_back({op, std::move(*to), atomic});
  });
  if (all.empty())
    return true;
  bool good = true;
  if (Operation *last = lastStore(function.getBody().back())) {
    good = false;
    InFlightDiagnostic d = last->emitError("the kernel may end while the copy engine reads shared memory here");
    d.attachNote(function.getBody().back().getTerminator()->getLoc()) << "wait for all before this";
  }
  function.walk([&](Operation *op) {
    for (const Written &written : all) {
      const std::optional<MemoryOrigin> other = disturbs(op, written.atomic);
      if (!other || !mayMeet(*other, written.to))
        continue;
      good = false;
      InFlightDiagnostic d = op->emitError("accesses memory that the copy engine may still write");
      d.attachNote(written.op->getLoc()) << "here";
      d.attachNote() << "other accesses than atomic ones to memory that it adds to are for another launch";
      return;
    }
  });
  return good;
}

} // namespace kiln::proof
