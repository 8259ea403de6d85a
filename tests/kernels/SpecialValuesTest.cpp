#include "tests/kernels/Bench.h"
