//===- Families.h - The instruction families of one CPU level -------------===//
//
// Included first by each family file.  It defines one function that returns its rows, fooBarRows() in FooBar.cpp, and
// is named in Families.def; LevelTable.cpp, the only one to know all of them, declares and calls it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_INSN_FAMILIES_H
#define KILN_RUNTIME_DEVICE_EMULATOR_INSN_FAMILIES_H

#include "runtime/device/emulator/decode/InstructionTable.h"
#include "runtime/device/emulator/execute/Warp.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#endif // KILN_RUNTIME_DEVICE_EMULATOR_INSN_FAMILIES_H
