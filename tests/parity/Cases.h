//===- Cases.h - Inputs of a form: edge values, then seeded random ones ----===//
//
// The cases of a form depend on the form alone.  Order: edge cases (all values, all pairs or 4096 sampled tuples, in a
// fixed shuffled order), padded with random cases to a multiple of 128; then random cases, of which a smaller count is
// always a prefix of a larger one.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_PARITY_CASES_H
#define KILN_TESTS_PARITY_CASES_H

#include "tests/parity/Form.h"

namespace kiln::parity {

inline constexpr std::size_t blockThreads = 128; ///< threads a block, and the unit of case counts

/// [operand][case]
using Columns = std::vector<std::vector<std::uint64_t>>;

struct Cases {
  Columns inputs;
  std::size_t edges = 0;       ///< a multiple of 128
  std::uint64_t inputHash = 0; ///< of all edges and the first 1024 random cases: they decide all others
  std::size_t count() const { return inputs.front().size(); }
};

/// `randomCount` must be a multiple of 128.  With more than `maxEdges` edge cases only that many are kept, and no
/// random ones; `edges` and `inputHash` stay those of the whole.
Cases makeCases(const Form &form, std::size_t randomCount, std::size_t maxEdges = std::size_t(-1));

/// The edge values of a type (the emulator specification, 6.1); every value of types of 16 bits if `exhaustive`.
std::vector<std::uint64_t> edgeValues(Type type, bool exhaustive);

/// A 64-bit hash for little-endian machines (FNV-1a, eight bytes at a time).
std::uint64_t hashBytes(const void *data, std::size_t size, std::uint64_t seed = 0xcbf29ce484222325);

} // namespace kiln::parity

#endif // KILN_TESTS_PARITY_CASES_H
