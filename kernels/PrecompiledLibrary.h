// What the library's operations include, compiled once: calls, tables of kernels, references.
// Files still include what they use; this header is only the build's.
#pragma once
#include "support/Precompiled.h"

#include "kernels/support/Family.h"
#include "kernels/support/KernelTable.h"
