//===- AxisOracle.h - Facts of the axis analysis against computed values -----===//
//
// A random program of integer tiles, in text; what each of its values is, computed element by element for random
// arguments and a random place in the grid; and every fact that the analysis claims, checked against that.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_ANALYSIS_AXISORACLE_H
#define KILN_TESTS_ANALYSIS_AXISORACLE_H

#include <cstdint>
#include <string>

namespace kiln::test {

struct AxisCheck {
  std::string error; ///< empty: all facts hold
  unsigned values = 0;
  unsigned strong = 0; ///< facts above 1
};

/// Claims of the analysis made stronger before the check: the check must notice.
enum class AxisFault : unsigned char { None, Contiguity, Divisibility, Constancy };

AxisCheck checkAxisFacts(std::uint64_t seed, AxisFault fault = AxisFault::None);

} // namespace kiln::test

#endif // KILN_TESTS_ANALYSIS_AXISORACLE_H
