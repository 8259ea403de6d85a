//===- SubjectArguments.h - A kernel's arguments and facts from its tensors by name ---===//
#ifndef KILN_TESTS_BARRIERS_SUBJECTARGUMENTS_H
#define KILN_TESTS_BARRIERS_SUBJECTARGUMENTS_H

#include "compiler/language/Language.h"
#include "tests/emulator/PtxHarness.h"

#include <map>

namespace kiln::test {

/// Dense, aligned tensors: all pointers, and (`aligned`) the strides of those that are there but the last.
std::vector<std::string> divisibleFacts(const language::Kernel &kernel, bool aligned);
/// The strides of the last dimensions.
std::vector<std::string> unitFacts(const language::Kernel &kernel);

struct Whole {
  Argument address;
  std::vector<std::int64_t> extents, strides;
};
/// In the kernel's order; tensors that are not given are not there.
std::vector<Argument> argumentsOf(const language::Kernel &kernel, const std::map<std::string, Whole> &tensors,
                                  const std::map<std::string, Argument> &numbers);

} // namespace kiln::test

#endif // KILN_TESTS_BARRIERS_SUBJECTARGUMENTS_H
