//===- Passes.h - Every pass of Kiln ------------------------------------------===//
//
// Generated from Passes.td, which says what each pass does.  A pass is one record there and one .cpp; nothing else
// lists passes, but the stages (pipeline/Stages.h) put them in order.  A pass includes its own header (Pass.h).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PASSES_PASSES_H
#define KILN_PASSES_PASSES_H

#include "compiler/passes/Pass.h"

namespace kiln {

#define GEN_PASS_DECL
#include "compiler/passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/Passes.h.inc"

} // namespace kiln

#endif // KILN_PASSES_PASSES_H
