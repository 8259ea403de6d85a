//===- TestTier.h - Which tier of the tests runs --------------------------===//
//
// `scripts/test.sh` runs fixed-seed samples of the large matrices; `scripts/test.sh --full` sets KILN_TEST_FULL=1 and
// runs every one.  A test asks `pick(sample, full)` for its sizes; it never skips because of the tier.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_SUPPORT_TESTTIER_H
#define KILN_TESTS_SUPPORT_TESTTIER_H

#include <string>

namespace kiln::test {

bool isFullTier();

template <typename T> T pick(T sample, T full) { return isFullTier() ? full : sample; }

/// A fresh private directory, removed when the object goes.
class TemporaryDirectory {
public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;
  const std::string &path() const { return where; }

private:
  std::string where;
};

} // namespace kiln::test

#endif // KILN_TESTS_SUPPORT_TESTTIER_H
