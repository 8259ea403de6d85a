//===- RegisterPool.h - Registers that warps give up and take -------------===//
//
// setmaxnreg: section 3.5 of the emulator specification.  A block has a share of the register file, all of which its
// warps own at first.  .dec puts a warp's registers into the block's pool, .inc takes some and waits until there are
// enough.  Registers of warps that exit do not come back.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_REGISTERPOOL_H
#define KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_REGISTERPOOL_H

#include "runtime/device/emulator/execute/Executor.h"

#include <string>

namespace kiln::emulator {

struct RegisterPool {
  std::uint32_t perThread = 0;                      ///< at launch
  std::uint32_t total = 0, free = 0;                ///< registers of the block; of them, in the pool
  std::uint32_t count[warpSize] = {};               ///< by warp: registers of a thread
  std::uint32_t changes[warpSize] = {};             ///< by warp: setmaxnreg executed
  std::vector<std::uint32_t> history[warpSize / 4]; ///< by warpgroup: which ones, as its first warp to come has it
};

constexpr unsigned fewestRegisters = 24, mostRegisters = 256, registerStep = 8;

/// For a block that starts.
void startRegisterPool(BlockState &block);
/// Op::imm registers a thread; flags: more, not fewer.
Next setRegisters(Warp &w, const Op &op);
/// Warps of one warpgroup must have executed the same ones.
void checkRegistersAtExit(BlockState &block);
/// " waits for registers (...)".
std::string describeRegisterWait(const BlockState &block, const WarpState &w, const Split &s);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_REGISTERPOOL_H
