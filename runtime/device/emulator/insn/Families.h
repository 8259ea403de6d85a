//===- Families.h - The instruction families of one CPU level -------------===//
//
// Each family file defines one function that returns its rows.  Adding a family: name it in Families.def.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_INSN_FAMILIES_H
#define KILN_RUNTIME_DEVICE_EMULATOR_INSN_FAMILIES_H

#include "runtime/device/emulator/InstructionTable.h"
#include "runtime/device/emulator/Warp.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#define KILN_FAMILY(name) std::span<const Row> name##Rows();
namespace kiln::emulator {
namespace KILN_EMULATOR_LEVEL {
#include "runtime/device/emulator/insn/Families.def"
} // namespace KILN_EMULATOR_LEVEL
} // namespace kiln::emulator
#undef KILN_FAMILY

#endif // KILN_RUNTIME_DEVICE_EMULATOR_INSN_FAMILIES_H
