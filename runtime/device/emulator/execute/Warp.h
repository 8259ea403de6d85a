//===- Warp.h - What a handler sees of a warp -----------------------------===//
//
// The register file and the lanes that execute.  Arithmetic handlers need nothing else; memory and control handlers
// reach the block and the launch through `block`.  Everything that only the executor touches lives in the classes
// that it leads to.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_WARP_H
#define KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_WARP_H

#include "runtime/device/emulator/decode/Op.h"

#include <cstddef>
#include <string>

namespace kiln::emulator {

class BlockState;

/// The allocation that a memory op met last, one a worker and op.
struct AccessCache {
  std::uint64_t begin = 1, end = 0; ///< device addresses; the empty range at first
  bool defined = false;             ///< every byte has a value: nothing to check or to mark
  bool writable = false;
};

struct Warp {
  std::byte *registers = nullptr; ///< 64-byte aligned; slots are offsets into it
  std::uint32_t exec = 0;         ///< lanes that execute the current op: the split's lanes whose guard holds
  std::uint32_t mask = 0;         ///< lanes of the current split
  std::uint32_t pc = 0;           ///< index of the current op
  std::uint32_t alive = 0;        ///< lanes that have not exited
  BlockState *block = nullptr;
  std::uint32_t index = 0;             ///< warp number in the block
  const std::uint32_t *pool = nullptr; ///< operand lists: Program::pool
  AccessCache *caches = nullptr;       ///< of this worker, by Op::cache
};

/// Reports a finding at `op` for `lanes` of the warp; `fatal` findings end the launch (return Next::Fault after it).
/// Equal (id, op) pairs are counted.  Defined in Findings.cpp; never called on a fast path.
void reportFinding(Warp &warp, const Op &op, const char *id, std::uint32_t lanes, std::string message, bool fatal);
/// For non-fatal findings that may come a million times: counts this one if it is known, so that its text need not be
/// made; false if it must be reported.
bool countFinding(Warp &warp, const Op &op, const char *id);
/// Like reportFinding, for what is worth knowing but no defect.
void reportNote(Warp &warp, const Op &op, const char *id, std::uint32_t lanes, std::string message);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_EXECUTE_WARP_H
