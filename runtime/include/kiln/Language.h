//===- Language.h - Kernels written in C++, for the JIT ---------------------===//
//
// The whole front end, and the step from a recorded kernel to what a Jit compiles.
//
//   kiln::Result<kiln::KernelSource> source = kiln::sourceOf(scale<f32>({.block = 1024}));
//   auto kernel = jit.kernel(*source);
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_H
#define KILN_LANGUAGE_H

#include "compiler/language/Language.h"
#include "kiln/KernelSource.h"

namespace kiln {

/// What `kernel(..)` recorded, for Jit::kernel.  A failed recording is the failure.
Result<KernelSource> sourceOf(const language::Kernel &kernel);

} // namespace kiln

#endif // KILN_LANGUAGE_H
