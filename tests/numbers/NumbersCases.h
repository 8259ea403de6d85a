//===- NumbersCases.h - What each operation on numbers must compute ---------===//
//
// One case an (operation, types, grade): the operation's text, operands to try, and a check of each result against
// independent references: softfloat (integer arithmetic) where the result is exact or rounded, the host's libm in a
// wider format with the bound of the table elsewhere.  No MLIR here, so that a machine with only a GPU can run the
// cases.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_NUMBERS_NUMBERSCASES_H
#define KILN_TESTS_NUMBERS_NUMBERSCASES_H

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

/// A type of MLIR: "f32", "bf16", "f8E4M3FN", "i24".
struct DType {
  std::string name;
  bool isFloat() const { return name[0] != 'i'; }
  unsigned bits() const;
  /// Of an element in memory: a power of two of at least one.
  unsigned bytes() const;
};

using Bits = std::uint64_t;

/// What a check says: whether the result is right, and its error in ulp where that is measured.
struct Verdict {
  bool right = true;
  double ulps = 0;
  std::string expected; ///< where it is wrong
};

struct NumbersCase {
  std::string name;  ///< an identifier: the kernel's name
  std::string group; ///< cases of a group share a module
  std::string body;  ///< computes %r from %a, %b, %c
  std::vector<DType> inputs;
  DType output;
  std::function<Verdict(std::span<const Bits> operands, Bits result)> check;
};

/// Cases of the table of numbers, group "f32.precise" and so on.
void addFloatCases(std::vector<NumbersCase> &cases);
/// Conversions, group "convert".
void addConversionCases(std::vector<NumbersCase> &cases);
/// Integer operations at every width, group "i32" and so on.
void addIntegerCases(std::vector<NumbersCase> &cases);
std::vector<NumbersCase> allNumbersCases();

/// Operand lists to try, one vector an operand, all of one length: every value where there are at most 2^16; else edges
/// with each other, an even stride over all bit patterns, and numbers of usual size.  The same in every run.  Of all
/// these, every `thin`-th.
std::vector<std::vector<Bits>> operandsOf(const NumbersCase &c, std::size_t count, unsigned thin = 1);

/// The module's text: one kernel a case, (pointers of operands, pointer of results, i32 count).
std::string moduleText(std::span<const NumbersCase *const> cases, std::string_view target);

} // namespace kiln::test

#endif // KILN_TESTS_NUMBERS_NUMBERSCASES_H
