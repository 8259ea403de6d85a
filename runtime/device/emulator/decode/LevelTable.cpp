// The table of one CPU level: the rows of every family in Families.def.
#include "runtime/device/emulator/decode/LevelNames.h"
#include "runtime/device/emulator/insn/Families.h"
#include "runtime/device/emulator/insn/MatrixTile.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {

#define KILN_FAMILY(name) std::span<const Row> name##Rows();
KILN_FAMILIES // KILN_FAMILY(a)KILN_FAMILY(b)..., from Families.def
#undef KILN_FAMILY

    Next runSplit(WarpState &w); // Dispatch.cpp
Next runSplitSeeded(WarpState &w);
Next runSplitTraced(WarpState &w);
Next runSplitSeededTraced(WarpState &w);

const InstructionTable &levelTable() {
#define KILN_FAMILY(name) name##Rows(),
  static const std::span<const Row> families[] = {KILN_FAMILIES};
#undef KILN_FAMILY
  static const InstructionTable table{
      KILN_LEVEL_NAME(KILN_EMULATOR_LEVEL), families, runSplit, runSplitSeeded, runSplitTraced, runSplitSeededTraced,
      {decodeElements, multiplyTile}};
  return table;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL
