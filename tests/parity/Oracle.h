//===- Oracle.h - Expected results computed on the host --------------------===//
//
// Independent of the emulator: integers on the host, floating point through SoftFloat, approximations in double.
// An oracle that says nothing about a case (outside the documented domain) leaves it out.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_PARITY_ORACLE_H
#define KILN_TESTS_PARITY_ORACLE_H

#include "tests/parity/Cases.h"

namespace kiln::parity {

/// Bits of the outputs of one case; false if this oracle does not know the form.
bool integerOracle(const Form &form, const std::uint64_t *in, std::uint64_t *out);
bool compareOracle(const Form &form, const std::uint64_t *in, std::uint64_t *out);
bool floatOracle(const Form &form, const std::uint64_t *in, std::uint64_t *out);
bool convertOracle(const Form &form, const std::uint64_t *in, std::uint64_t *out);
/// Outputs of the 128 cases from `first`, for warp and block operations and atomics.
bool groupOracle(const Form &form, const Columns &in, std::size_t first, Columns &out);

/// All of them.  Empty if no oracle knows the form.
Columns expected(const Form &form, const Cases &cases);

/// What an approximate form should give for one element, and how far from it the documents allow a result to be.
struct Approximation {
  double value = 0;
  double slack = 0;          ///< absolute; includes half an ulp for the rounding to the type
  bool defined = true;       ///< false: outside the documented domain
  bool signedZero = false;   ///< the value is a zero whose sign is documented
  bool mayOverflow = false;  ///< infinity is within the slack
  bool mustOverflow = false; ///< nothing else is
};
Approximation approximation(const Form &form, const std::uint64_t *in);

// Shared by the oracles.
struct Modes {
  softfloat::Rounding rounding = softfloat::Rounding::NearestEven;
  bool ftz, sat, relu, nan, xorsign;
  explicit Modes(const Form &form);
};
bool isSubnormal(const softfloat::Format &f, std::uint64_t bits);
/// Subnormal to zero of its sign.
std::uint64_t flush(const softfloat::Format &f, std::uint64_t bits);
/// Saturation and relu of a rounded result.
std::uint64_t finish(const softfloat::Format &f, const Modes &modes, std::uint64_t bits);
/// Rounds, flushes, and finishes.  A result is flushed if it is below the smallest normal number after rounding with an
/// unbounded exponent: 2^-126 (1 - 2^-24) becomes zero, 2^-126 (1 - 2^-46) becomes 2^-126.  (ptxas folds so.)
std::uint64_t roundAndFinish(const softfloat::Format &f, const Modes &modes, const softfloat::Value &value,
                             bool saturateFinite = false);
std::int64_t signExtend(std::uint64_t value, unsigned bits);
std::uint64_t lowBits(unsigned bits);

} // namespace kiln::parity

#endif // KILN_TESTS_PARITY_ORACLE_H
