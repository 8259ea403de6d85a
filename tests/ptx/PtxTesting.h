//===- PtxTesting.h - Helpers of the parser's tests -----------------------===//
#ifndef KILN_TESTS_PTX_PTXTESTING_H
#define KILN_TESTS_PTX_PTXTESTING_H

#include "runtime/ptx/Ast.h"

#include <memory>
#include <string>
#include <vector>

namespace kiln::ptx::test {

/// Parses a text that must be accepted; null and a test failure if it is not.
std::unique_ptr<Module> accepted(std::string text);
/// The error of a text that must be refused, with its remedy as Status::toString gives it.
std::string refused(std::string text);

/// The first difference between two modules, or "" if they are equal but for lines, text and file name.
std::string difference(const Module &a, const Module &b);

/// The instructions of a function, nested scopes included, in order.
std::vector<const Instruction *> instructions(const Function &f);

struct Sample {
  std::string name, text;
};
/// The committed .ptx files, by name.
const std::vector<Sample> &samples();

} // namespace kiln::ptx::test

#endif // KILN_TESTS_PTX_PTXTESTING_H
