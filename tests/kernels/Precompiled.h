// What the tests of the library include, compiled once.
// Files still include what they use; this header is only the build's.
#pragma once
#include "tests/support/Precompiled.h"

#include "tests/kernels/Bench.h"
