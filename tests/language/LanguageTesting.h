//===- LanguageTesting.h - Helpers for tests of the front end ---------------===//
#ifndef KILN_TESTS_LANGUAGE_LANGUAGETESTING_H
#define KILN_TESTS_LANGUAGE_LANGUAGETESTING_H

#include "compiler/language/Language.h"

#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

/// The text without its locations.
std::string withoutLocations(const std::string &text);
/// The function's body without locations and indentation of the first level, `return` left out.
std::string bodyOf(const language::Kernel &kernel);

std::vector<std::string> linesOf(const std::string &text);

/// kiln-opt, if it was built; else empty.
std::string kilnOpt();
/// Runs kiln-opt on several modules at once; gives what it complains about, or nothing.
std::string complaintsOfKilnOpt(const std::vector<std::string> &modules);

} // namespace kiln::test

#endif // KILN_TESTS_LANGUAGE_LANGUAGETESTING_H
