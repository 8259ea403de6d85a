// Included by each family file of insn/ after all other headers, with KILN_EMULATOR_LEVEL set by the build to v2, v3,
// v4 or baseline.  What follows, up to LevelEnd.h, is compiled for that CPU level inside namespace
// kiln::emulator::LEVEL. Only code between the two may use the level's instructions: inline functions of other headers
// stay at the baseline, so the linker can share them.  No include guard: it is meant to be included once a family file.
#define KILN_LEVEL_IS_v2 1
#define KILN_LEVEL_IS_v3 2
#define KILN_LEVEL_IS_v4 3
#define KILN_LEVEL_IS_baseline 4
#define KILN_LEVEL_CAT_(a, b) a##b
#define KILN_LEVEL_CAT(a, b) KILN_LEVEL_CAT_(a, b)
#define KILN_LEVEL_NUMBER KILN_LEVEL_CAT(KILN_LEVEL_IS_, KILN_EMULATOR_LEVEL)
#if KILN_LEVEL_NUMBER == 1
#pragma clang attribute push(__attribute__((target("arch=x86-64-v2"))), apply_to = function)
#elif KILN_LEVEL_NUMBER == 2
#pragma clang attribute push(__attribute__((target("arch=x86-64-v3"))), apply_to = function)
#elif KILN_LEVEL_NUMBER == 3
#pragma clang attribute push(__attribute__((target("arch=x86-64-v4,no-prefer-256-bit"))), apply_to = function)
#endif
