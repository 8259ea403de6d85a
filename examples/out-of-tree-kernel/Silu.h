// out = x / (1 + exp(-beta * x)), element by element.
#pragma once

#include "kiln/Language.h"

struct SiluConfig {
  int block = 1024; // elements of a program
  int warps = 4;
};

// silu(x, out, n) on f32; grid [ceil(n / block)].
kiln::language::Kernel silu(const SiluConfig &config = {});

// What one element should be.
double siluOnHost(double x);
