//===- Mutants.h - PTX with one deliberate mistake ----------------------------===//
//
// | kind | what is wrong |
// |---|---|
// | drop-barrier, drop-wait, drop-commit, drop-fence, drop-arrive | the instruction is missing |
// | move-barrier, move-wait, move-commit, move-fence | it stands after the next, or before the last, memory access |
// | weaken-wait | one more group may be pending; for bulk groups: only the reads are waited for |
// | flip-parity | a wait on an mbarrier asks for the other phase |
// | change-expect | 16 bytes more or less are expected |
// | shift-store, widen-store | a store goes one element further or back, or is one element wider |
// | shift-stage | an index into a ring, or the step from one row or stage to the next, is off by one |
// | drop-guard | a predicate of an access, a branch around some, or a size that depends on a bound is gone |
//
// Works on the text as nvcc and Kiln print it: one instruction a line.  A mutant is a few replaced lines, so that
// thousands of them cost nothing until they are made.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_MUTANTS_MUTANTS_H
#define KILN_TESTS_MUTANTS_MUTANTS_H

#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

/// A line of the module becomes `text`, which may be several lines or none.
struct Edit {
  std::size_t line; ///< from 0
  std::string text;
};

struct Mutant {
  std::string kind;
  std::string entry;       ///< the function it is in
  unsigned number = 0;     ///< among those of the kind in the function, from 1
  std::string instruction; ///< as it was
  std::string location;    ///< "File.cpp:12" of .loc, empty without
  unsigned line = 0;       ///< of the PTX, from 1
  std::vector<Edit> change;
  /// A trap where the mutant differs: in the place of the instruction, of a dropped guard's branch, or for the lanes
  /// that the guard kept out.  If nobody notices this one, the place is not reached.
  std::vector<Edit> trap;
};

std::vector<Mutant> mutantsOf(std::string_view ptx);

std::string edited(std::string_view ptx, const std::vector<Edit> &edits);

} // namespace kiln::test

#endif // KILN_TESTS_MUTANTS_MUTANTS_H
