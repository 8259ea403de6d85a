#include "kiln/Device.h"
#include "support/Names.h"
#include "support/Text.h"

#include <map>
#include <tuple>

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
    out += " [" + std::to_string(count) + " times" +
           (places > 1 ? " by " + std::to_string(places) + (other ? " pairs of instructions" : " instructions") : "") +
           "]";
  if (fatal)
    out += " [the launch ended here]";
  return out;
}

std::vector<Finding> groupFindings(std::vector<Finding> findings) {
  auto line = [](const std::string &location, unsigned ptxLine) {
    return location.empty() ? "ptx " + std::to_string(ptxLine) : location;
  };
  // A fatal finding stays apart: it says where the launch ended.
  std::map<std::tuple<std::string, std::string, std::string, std::string, bool, bool>, std::size_t> known;
  std::vector<Finding> out;
  for (Finding &f : findings) {
    const auto [entry, isNew] =
        known.try_emplace({f.id, f.kernel, line(f.location, f.ptxLine),
                           f.other ? line(f.other->location, f.other->ptxLine) : std::string(), f.fatal, f.note},
                          out.size());
    if (isNew) {
      out.push_back(std::move(f));
      continue;
    }
    out[entry->second].count += f.count;
    out[entry->second].places += f.places;
  }
  return out;
}

} // namespace kiln
