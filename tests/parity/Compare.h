//===- Compare.h - Results against oracle, other device, stored bits -------===//
//
// Exact forms: bits, NaN as a class unless the specification claims the canonical one.  Approximate forms: within the
// documented distance of the true value, or of each other.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_PARITY_COMPARE_H
#define KILN_TESTS_PARITY_COMPARE_H

#include "tests/parity/Cases.h"
#include "tests/parity/Oracle.h"

namespace kiln::parity {

/// Bits of output `output` with every NaN replaced by the canonical one, unless its bits are claimed.
std::uint64_t normalised(const Form &form, std::size_t output, std::uint64_t bits);
bool claimsCanonicalNan(const Form &form);

struct Difference {
  std::size_t cases = 0; ///< that differ
  std::size_t compared = 0;
  std::size_t undefined = 0; ///< approximate forms: outside the documented domain, not compared
  double worstUlp = 0;       ///< approximate forms: distance from the true value, where the result is a normal number
  std::string first;         ///< the first case that differs, with inputs and both results
};

/// Exact forms.  `count` cases from `begin`.
Difference compareExact(const Form &form, const Cases &cases, const Columns &got, const Columns &want,
                        std::size_t begin, std::size_t count, const char *wantName);

/// Whether the bits of one element are within the documented distance of the true value.
bool withinBound(const Form &form, const Approximation &approximation, std::uint64_t bits);

/// Approximate forms against the true value.
Difference compareApproximate(const Form &form, const Cases &cases, const Columns &got);

/// Approximate forms on two devices: within the bound plus half an ulp of each other.
Difference compareApproximate(const Form &form, const Cases &cases, const Columns &got, const Columns &want,
                              std::size_t count, const char *wantName);

/// "add.rn.f32(0x3f800000 = 1, ...)".
std::string describeCase(const Form &form, const Cases &cases, std::size_t index);

} // namespace kiln::parity

#endif // KILN_TESTS_PARITY_COMPARE_H
