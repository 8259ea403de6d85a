// The dispatch loop, once for each CPU level.
#include "runtime/device/emulator/execute/Executor.h"
#include "runtime/device/emulator/observe/Counting.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

/// The lanes whose predicate is set, as a mask.
inline std::uint32_t lanesSet(const std::byte *registers, Slot slot) {
  const auto *p = static_cast<const std::uint32_t *>(__builtin_assume_aligned(registers + slot, 64));
  std::uint32_t mask = 0;
#if KILN_LEVEL_NUMBER == 4
  for (unsigned l = 0; l < warpSize; ++l)
    mask |= (p[l] & 1) << l;
#else
  // movmskps: the sign bits of four lanes.
  using Four = float __attribute__((vector_size(16)));
  for (unsigned l = 0; l < warpSize; l += 4) {
    Four four;
    __builtin_memcpy(&four, p + l, sizeof four);
    mask |= static_cast<std::uint32_t>(__builtin_ia32_movmskps(four)) << l;
  }
#endif
  return mask;
}

/// Whether every lane's member mask is the same and names exactly the lanes that execute.
inline bool maskIsExec(const Warp &w, const Op &op) {
  const auto *m = static_cast<const std::uint32_t *>(__builtin_assume_aligned(w.registers + op.s[3], 64));
  const std::uint32_t first = m[__builtin_ctz(w.exec)];
  if ((first & w.alive) != w.exec)
    return false;
  std::uint32_t different = 0;
  for (unsigned l = 0; l < warpSize; ++l)
    different |= (m[l] ^ first) & (0u - (w.exec >> l & 1));
  return different == 0;
}

} // namespace

/// Seeded: the warp has a number of observable ops (WarpState::observations); its turn ends before the next one.
/// Traced: the launch counts.
template <bool Seeded, bool Traced> static Next runOps(WarpState &w) {
  const Op *const ops = w.program->ops.data();
  const std::uint32_t *const order = w.program->order.data();
  const bool diverged = w.numSplits > 1;
  const std::uint32_t stop = w.stopOrder;
  std::int64_t left = w.slice;
  const std::int64_t begin = left;
  std::uint64_t threads = 0;
  Next next = Next::Jump;
  bool turnOver = false;
  for (;;) {
    if (left <= 0) {
      storeSplit(w);
      w.splits[w.current].forced = w.forced;
      break;
    }
    if constexpr (Seeded)
      if (w.program->observable[w.pc] && w.observations-- == 0) {
        storeSplit(w);
        w.splits[w.current].forced = w.forced;
        turnOver = true;
        break;
      }
    const Op &op = ops[w.pc];
    --left;
    std::uint32_t exec = w.mask;
    bool skip = false;
    if (op.guard != noSlot) {
      const std::uint32_t set = lanesSet(w.registers, op.guard);
      exec &= op.guardNegated ? ~set : set;
      skip = exec == 0;
    }
    if (skip) {
      if constexpr (Traced)
        traceSkipped(w, op);
      ++w.pc;
    } else {
      w.exec = exec;
      threads += static_cast<unsigned>(__builtin_popcount(exec));
      if constexpr (Traced)
        traceBefore(w, op);
      if (op.kind == Plain) {
        next = op.run(w, op);
      } else if (op.kind == MemberMask && maskIsExec(w, op)) {
        ++w.syncs;
        next = op.run(w, op);
      } else {
        next = runGathered(w, op);
      }
      if constexpr (Traced)
        traceAfter(w, op, exec);
      if (next == Next::Advance) {
        ++w.pc;
      } else if (next != Next::Jump) {
        if (w.uncounted) {
          threads -= static_cast<unsigned>(__builtin_popcount(w.uncounted));
          left += w.uncounted == exec;
          w.uncounted = 0;
        }
        break;
      }
    }
    if (diverged && order[w.pc] >= stop) {
      storeSplit(w);
      next = Next::Switch;
      break;
    }
  }
  w.executed += static_cast<std::uint64_t>(begin - left);
  w.threadsExecuted += threads;
  w.slice = turnOver ? 0 : left;
  return next;
}

Next runSplit(WarpState &w) {
  return runOps<false, false>(w);
}
Next runSplitSeeded(WarpState &w) {
  return runOps<true, false>(w);
}
Next runSplitTraced(WarpState &w) {
  return runOps<false, true>(w);
}
Next runSplitSeededTraced(WarpState &w) {
  return runOps<true, true>(w);
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
