//===- Constructs.h - PTX constructs, and what becomes of each ------------===//
//
// One row a construct: the text, and the exact error or nothing if it is accepted.  The rows serve the parser's tests,
// the round trip, the comparison with ptxas and the fuzzer's seeds.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_PTX_CONSTRUCTS_H
#define KILN_TESTS_PTX_CONSTRUCTS_H

#include <span>
#include <string>
#include <string_view>

namespace kiln::ptx::test {

struct Construct {
  enum class Where { Module, Body } where;
  std::string_view text;
  std::string_view error = {}; ///< of the parser, without "t.ptx:"; empty: accepted
  /// What ptxas 13.0 says where it disagrees, and why we differ; empty: the same verdict.
  std::string_view difference = {};
};

std::span<const Construct> constructs();
/// Accepted bodies that call the functions of moduleOfCalls.
std::span<const std::string_view> callConstructs();

/// The construct in a module for sm_90a.  Its text starts on line 4 (Module) or 7 (Body).
std::string moduleOf(const Construct &c);
std::string moduleOfCalls(std::string_view body);
std::string moduleWith(std::string_view moduleText, std::string_view bodyText);

} // namespace kiln::ptx::test

#endif // KILN_TESTS_PTX_CONSTRUCTS_H
