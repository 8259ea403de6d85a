// Commands as a user types them.
#ifndef KILN_TESTS_PACKAGE_SHELL_H
#define KILN_TESTS_PACKAGE_SHELL_H

#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <sys/wait.h>

namespace kiln::test {

struct Outcome {
  int status = -1; ///< exit status, or 128 + the signal
  std::string out; ///< standard output and error together
};

inline Outcome shell(const std::string &command) {
  Outcome outcome;
  FILE *pipe = ::popen(("exec 2>&1; " + command).c_str(), "r");
  if (!pipe)
    return outcome;
  char block[4096];
  for (std::size_t n; (n = std::fread(block, 1, sizeof block, pipe)) > 0;)
    outcome.out.append(block, n);
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

/// The command must succeed; its output.
inline std::string run(const std::string &command) {
  const Outcome outcome = shell(command);
  EXPECT_EQ(outcome.status, 0) << command << "\n" << outcome.out;
  return outcome.out;
}

} // namespace kiln::test

#endif // KILN_TESTS_PACKAGE_SHELL_H
