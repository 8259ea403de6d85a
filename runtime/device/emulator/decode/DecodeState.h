//===- DecodeState.h - What the decoder keeps of the function at hand -----===//
//
// Private to the Decode*.cpp files.
//
// Slots of registers declared in a nested scope are used again by later sibling scopes: inline assembly declares the
// same few registers hundreds of times.  A scope uses the slots of scopes that were closed before it, never of those
// that close later: a register of the scope may be live across them.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_DECODE_DECODESTATE_H
#define KILN_RUNTIME_DEVICE_EMULATOR_DECODE_DECODESTATE_H

#include "runtime/device/emulator/decode/Decoder.h"

#include <unordered_set>

namespace kiln::emulator {

constexpr std::uint32_t unplaced = ~0u;

/// 0, 1, 2 for slots of 128, 256, 512 bytes.
inline unsigned slotClass(unsigned bytes) {
  return bytes > 8 ? 2 : bytes > 4 ? 1 : 0;
}
inline unsigned slotUnits(unsigned bytes) {
  return 1u << slotClass(bytes);
}

struct DecodeContext::ScopeNames {
  struct Range {
    std::string_view prefix;
    std::uint32_t count;
    ptx::Type type;
  };
  std::unordered_map<std::string_view, Symbol> names;
  std::vector<Range> ranges;
  std::vector<Slot> available[3]; ///< of earlier siblings, free again
  std::vector<Slot> childFree[3]; ///< of closed children, free again
  std::vector<std::pair<Slot, unsigned>> own;
  std::uint32_t frameMark = 0;
};

struct DecodeContext::FunctionState {
  const ptx::Function *function = nullptr;
  std::uint32_t index = 0; ///< in Program::functions
  std::vector<ScopeNames> scopes;
  std::uint32_t frame = 0, frameMax = 0;
  std::vector<std::uint32_t> labelOps; ///< by label index
  std::vector<std::string_view> labelNames;
  std::vector<Slot> temporaries[3];
  std::size_t temporariesUsed[3] = {0, 0, 0};
  std::unordered_set<Slot> kept;                    ///< registers of nested scopes that no later scope may use
  std::vector<std::pair<Slot, unsigned>> registers; ///< FunctionInfo::registers
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_DECODE_DECODESTATE_H
