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

/// Accesses of an operation that may not meet what is written so.  Of two stores either may stay.
std::optional<MemoryOrigin> disturbs(Operation *op, bool atomic) {
  return originOf(op, [&](const tile::MemoryAccess &access) { return atomic ? !access.atomic : access.reads; });
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
