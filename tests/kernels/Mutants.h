//===- Mutants.h - PTX with one deliberate mistake ----------------------------===//
//
// Kinds: a barrier dropped; a guard dropped (a predicate of a memory instruction, a branch around some); a store
// shifted by one element, up or down; a store widened by one element.  Works on the text as the compiler prints it: one
// instruction a line.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_KERNELS_MUTANTS_H
#define KILN_TESTS_KERNELS_MUTANTS_H

#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

struct Mutant {
  std::string kind;        ///< "drop-barrier", "drop-guard", "shift-store", "widen-store"
  std::string instruction; ///< as it was
  std::string location;    ///< "File.cpp:12" of .loc, empty without
  unsigned line = 0;       ///< of the PTX
  std::string text;        ///< the whole module
  /// The module with a trap where the mutant differs: in the place of the instruction, of a dropped guard's branch, or
  /// for the lanes that the guard kept out.  If nobody notices this one, the place is not reached.
  std::string trap;
};

std::vector<Mutant> mutantsOf(std::string_view ptx);

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_MUTANTS_H
