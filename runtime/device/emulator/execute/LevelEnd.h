// Closes LevelBegin.h.
#if KILN_LEVEL_NUMBER != 4
#pragma clang attribute pop
#endif
