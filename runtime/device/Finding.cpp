#include "kiln/Device.h"
#include "support/Names.h"
#include "support/Text.h"

namespace kiln {

std::string Finding::toString() const {
  std::string out = note ? "note " : "finding ";
  out += id + ": kernel " + shortName(kernel) +
         format(" block (%u,%u,%u) warp %u lanes 0x%08x", block.x, block.y, block.z, warp, lanes);
  if (!location.empty())
    out += " at " + location;
  if (ptxLine || !opcode.empty())
    out += " (ptx line " + std::to_string(ptxLine) + (opcode.empty() ? "" : ", " + opcode) + ")";
  out += ": " + message;
  if (count > 1)
    out += " [" + std::to_string(count) + " times]";
  if (fatal)
    out += " [the launch ended here]";
  return out;
}

} // namespace kiln
