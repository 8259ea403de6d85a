#include "runtime/device/emulator/execute/RegisterPool.h"

#include "compiler/target/Target.h"

#include <algorithm>

namespace kiln::emulator {

namespace {

constexpr unsigned warpsOfGroup = 4;

/// What a thread has: as declared, or what lets the block have its share of the register file.  Registers are given out
/// in steps: a thread that may name 255 of them has 256.
std::uint32_t registersAtLaunch(const BlockState &block) {
  const Program &program = *block.worker.launch.program;
  const Target &target = *block.worker.launch.target;
  const auto threads = static_cast<std::uint32_t>(block.warps.size()) * warpSize;
  const std::uint32_t share = target.registersPerSm / (threads * std::max(1u, program.blocksPerMultiprocessor));
  const auto inSteps = [](std::uint32_t n) { return (n + registerStep - 1) / registerStep * registerStep; };
  const std::uint32_t most = std::min(share / registerStep * registerStep, inSteps(target.registersPerThread));
  return std::max(fewestRegisters, program.maxRegisters ? std::min(inSteps(program.maxRegisters), most) : most);
}

/// Registers may be free: whoever waits for some looks again.
void wakeWaiting(BlockState &block) {
  for (WarpState &w : block.warps)
    for (std::uint32_t i = 0; i < w.numSplits; ++i)
      if (w.splits[i].state == SplitState::Registers)
        w.splits[i].state = SplitState::Ready;
}

/// Counts the warp's setmaxnreg; every warp of a warpgroup must execute the same ones.
void checkGroup(WarpState &w, const Op &op, RegisterPool &pool) {
  std::vector<std::uint32_t> &history = pool.history[w.index / warpsOfGroup];
  const std::uint32_t n = pool.changes[w.index]++;
  if (n == history.size())
    history.push_back(w.pc);
  else if (history[n] != w.pc && !countFinding(w, op, "setmaxnreg.mismatch"))
    reportFinding(w, op, "setmaxnreg.mismatch", w.exec,
                  "another warp of the warpgroup executed the one at " + w.program->point(history[n]) +
                      " here: all four warps must execute the same setmaxnreg",
                  false);
}

} // namespace

void startRegisterPool(BlockState &block) {
  RegisterPool &pool = *block.registerPool;
  pool = {};
  pool.perThread = registersAtLaunch(block);
  pool.total = pool.perThread * static_cast<std::uint32_t>(block.warps.size()) * warpSize;
  std::fill(std::begin(pool.count), std::end(pool.count), pool.perThread);
}

Next setRegisters(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  RegisterPool &pool = *w.block->registerPool;
  const auto wanted = static_cast<std::uint32_t>(op.imm);
  std::uint32_t &has = pool.count[w.index];
  const bool more = op.flags;
  if (more ? wanted < has : wanted > has) {
    if (!countFinding(w, op, "setmaxnreg.count"))
      reportFinding(w, op, "setmaxnreg.count", w.exec,
                    std::string(more ? ".inc to " : ".dec to ") + std::to_string(wanted) +
                        " registers a thread, but the warp has " + std::to_string(has) + (more ? " already" : " only") +
                        " (" + std::to_string(pool.perThread) + " at launch)",
                    false);
    checkGroup(w, op, pool);
    return Next::Advance;
  }
  if (!more) {
    pool.free += (has - wanted) * warpSize;
    wakeWaiting(*w.block);
  } else if (const std::uint32_t needs = (wanted - has) * warpSize; needs > pool.free) {
    w.uncounted = w.exec;
    Split &s = detach(w, w.pc);
    s.state = SplitState::Registers;
    s.waitsFor = wanted;
    return Next::Switch;
  } else {
    pool.free -= needs;
  }
  has = wanted;
  ++w.block->worker.progress;
  checkGroup(w, op, pool);
  return Next::Advance;
}

void checkRegistersAtExit(BlockState &block) {
  const RegisterPool &pool = *block.registerPool;
  for (WarpState &w : block.warps) {
    const auto &history = pool.history[w.index / warpsOfGroup];
    if (pool.changes[w.index] >= history.size())
      continue;
    const Op &op = w.program->ops[history[pool.changes[w.index]]];
    if (!countFinding(w, op, "setmaxnreg.mismatch"))
      reportFinding(w, op, "setmaxnreg.mismatch", 0,
                    "warp " + std::to_string(w.index) +
                        " exited without executing it, another warp of its warpgroup did: all four must",
                    false);
  }
}

std::string describeRegisterWait(const BlockState &block, const WarpState &w, const Split &s) {
  const RegisterPool &pool = *block.registerPool;
  return " waits for registers (from " + std::to_string(pool.count[w.index]) + " to " + std::to_string(s.waitsFor) +
         " a thread takes " + std::to_string((s.waitsFor - pool.count[w.index]) * warpSize) +
         ", the block's pool has " + std::to_string(pool.free) + " of " + std::to_string(pool.total) + ")";
}

} // namespace kiln::emulator
