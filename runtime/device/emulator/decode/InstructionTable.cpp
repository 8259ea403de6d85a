// Picks the rows of a CPU level.  KILN_LEVELS lists the levels built in, worst first: KILN_LEVEL(v2)KILN_LEVEL(v3)...
#include "runtime/device/emulator/decode/InstructionTable.h"

#include "runtime/device/emulator/decode/LevelNames.h"

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

struct Level {
  std::string_view name;
  const InstructionTable &(*table)(); ///< code of the level: only for a CPU that runs it
};
constexpr Level levels[] = {
#define KILN_LEVEL(level) {KILN_LEVEL_NAME(level), level::levelTable},
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

const InstructionTable *instructionTable(std::string_view name) {
  for (auto level = std::rbegin(levels); level != std::rend(levels); ++level)
    if ((name.empty() || name == level->name) && cpuRuns(level->name))
      return &level->table();
  return nullptr;
}

std::span<const std::string_view> builtLevels() {
  static const auto names = [] {
    std::array<std::string_view, std::size(levels)> list;
    for (std::size_t i = 0; i < list.size(); ++i)
      list[i] = levels[i].name;
    return list;
  }();
  return names;
}

} // namespace kiln::emulator
