//===- Program.h - The built programs, run as a user runs them ------------===//
#ifndef KILN_TESTS_CLI_PROGRAM_H
#define KILN_TESTS_CLI_PROGRAM_H

#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace kiln::test {

struct Outcome {
  int status = -1; ///< exit status, or 128 + the signal
  std::string out, err;
};

/// `kiln` with these arguments.  `libraries` is searched first for shared objects (LD_LIBRARY_PATH).
Outcome kiln(const std::vector<std::string> &arguments, const std::string &libraries = {});

/// The same with standard output into this file, which exists; of an empty name closed.
Outcome kilnInto(const std::string &standardOutput, const std::vector<std::string> &arguments);

/// Starts `kiln`, its standard streams those of the test but output, which goes to nothing.
int startKiln(const std::vector<std::string> &arguments);

/// The subcommands of `kiln`, as it lists them itself.
std::vector<std::string> kilnCommands();

/// A folder of its own for each test, with helpers that make files in it.
class CliTest : public testing::Test {
protected:
  std::string file(const std::string &name) const { return folder.path() + "/" + name; }
  std::string write(const std::string &name, const std::string &text) const;
  /// A .npy file of fp32 0, 1, 2, ...
  std::string floats(const std::string &name, unsigned count) const;
  /// Files in the folder, sorted.
  std::vector<std::string> files() const;
  /// A folder in which the driver library is the fake one: `kiln` sees one GPU, on which kernels do nothing.
  std::string fakeDriver() const;
  /// Status 2, `part` in the message, nothing on standard output, no file made (but in the folder "cache").
  void expectRefused(const std::vector<std::string> &arguments, const std::string &part) const;

  /// Makes the folder `to` with the dumps of `from` whose sums of 64 x 64 begin at 0; there they begin at 1, so what
  /// they compute is wrong.  How many.
  unsigned makeSumsWrong(const std::string &from, const std::string &to) const;

  test::TemporaryDirectory folder;
};
/// With a kernel cache of its own.
class CachedCliTest : public CliTest {
protected:
  void SetUp() override { setenv("KILN_CACHE_DIR", file("cache").c_str(), 1); }
  void TearDown() override { unsetenv("KILN_CACHE_DIR"); }
};

/// add(u64 x, u64 y, u32 n): y[i] = 2 x[i].
extern const char *const addPtx;

} // namespace kiln::test

#endif // KILN_TESTS_CLI_PROGRAM_H
