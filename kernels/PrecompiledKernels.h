// What the library's kernels include, compiled once: the front end.
// Files still include what they use; this header is only the build's.
#pragma once
#include "support/Precompiled.h"

#include "compiler/language/Language.h"
#include "kernels/support/Configuration.h"
