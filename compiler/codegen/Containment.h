//===- Containment.h - The user's process survives the compiler -----------===//
//
// `runContained` runs a compile on a thread of its own from which LLVM's fatal errors, signals (null pointers, aborts)
// and stack overflows come back as a failed Status.  Rules:
//  - Everything the function uses (MLIRContext, LLVMContext, modules) is made inside it: a crash leaves by longjmp, no
//    destructor runs, its memory is leaked.  MLIR contexts must be single threaded: other threads are not contained.
//  - Signal handlers are installed while any compile runs (from any thread, counted) and the application's own are back
//    afterwards.  A signal on a thread that is not a compile goes to the application's handler even meanwhile.
//  - After a contained crash LLVM's state is suspect (`processIsSuspect`): later compiles of the process must be made
//  in a
//    child (Child.h).  `effectiveIsolation` says so.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_CODEGEN_CONTAINMENT_H
#define KILN_CODEGEN_CONTAINMENT_H

#include "support/Status.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstddef>
#include <string_view>

namespace kiln {

enum class Isolation : unsigned char {
  None,   ///< in the calling thread; a crash is the process's
  Thread, ///< runContained
  Child,  ///< a helper process with a deadline: Child.h
};

/// "none", "thread", "child".
Result<Isolation> parseIsolation(std::string_view text);

/// True once a compile of this process crashed and was contained.
bool processIsSuspect();

/// What to use where `requested` was asked for: Thread becomes Child in a suspect process.
Isolation effectiveIsolation(Isolation requested);

struct ContainmentOptions {
  /// Bytes; only touched pages cost memory.
  std::size_t stackBytes = std::size_t(64) << 20;
};

/// Runs `fn`.  Ok: it returned.  Internal: it crashed; the message holds LLVM's reason or the signal's name.
/// OutOfMemory: `fn` did not run, because the system gave no thread with such a stack (too little address space, or too
/// many tasks): compile in a child.
Status runContained(llvm::function_ref<void()> fn, const ContainmentOptions &options = {});

} // namespace kiln

#endif // KILN_CODEGEN_CONTAINMENT_H
