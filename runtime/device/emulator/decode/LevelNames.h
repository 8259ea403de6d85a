//===- LevelNames.h - CPU levels by their names --------------------------===//
//
// Known without a call of a level's code, which the CPU at hand may not run.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_DECODE_LEVELNAMES_H
#define KILN_RUNTIME_DEVICE_EMULATOR_DECODE_LEVELNAMES_H

#define KILN_LEVEL_NAME_v2 "x86-64-v2"
#define KILN_LEVEL_NAME_v3 "x86-64-v3"
#define KILN_LEVEL_NAME_v4 "x86-64-v4"
#define KILN_LEVEL_NAME_baseline "baseline"
#define KILN_LEVEL_NAME_OF(level) KILN_LEVEL_NAME_##level
#define KILN_LEVEL_NAME(level) KILN_LEVEL_NAME_OF(level)

#endif // KILN_RUNTIME_DEVICE_EMULATOR_DECODE_LEVELNAMES_H
