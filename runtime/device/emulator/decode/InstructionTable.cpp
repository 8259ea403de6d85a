// Picks the rows of a CPU level.  KILN_LEVELS lists the levels built in, worst first: KILN_LEVEL(v2)KILN_LEVEL(v3)...
#include "runtime/device/emulator/decode/InstructionTable.h"

#include <array>
#include <iterator>

namespace kiln::emulator {

#define KILN_LEVEL(level)                                                                                              \
  namespace level {                                                                                                    \
  const InstructionTable &levelTable();                                                                                \
  }
KILN_LEVELS
#undef KILN_LEVEL

namespace {

using Table = const InstructionTable &(*)();
constexpr Table tables[] = {
#define KILN_LEVEL(level) level::levelTable,
    KILN_LEVELS
#undef KILN_LEVEL
};

bool cpuRuns(std::string_view level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (level == "x86-64-v2")
    return __builtin_cpu_supports("x86-64-v2");
  if (level == "x86-64-v3")
    return __builtin_cpu_supports("x86-64-v3");
  if (level == "x86-64-v4")
    return __builtin_cpu_supports("x86-64-v4");
#endif
  return level == "baseline";
}

} // namespace

const InstructionTable *instructionTable(std::string_view level) {
  for (auto table = std::rbegin(tables); table != std::rend(tables); ++table) {
    const InstructionTable &candidate = (*table)();
    if ((level.empty() || level == candidate.level) && cpuRuns(candidate.level))
      return &candidate;
  }
  return nullptr;
}

std::span<const std::string_view> builtLevels() {
  static const auto names = [] {
    std::array<std::string_view, std::size(tables)> list;
    for (std::size_t i = 0; i < list.size(); ++i)
      list[i] = tables[i]().level;
    return list;
  }();
  return names;
}

} // namespace kiln::emulator
