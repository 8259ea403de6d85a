#include "tests/support/TestTier.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace kiln::test {

bool isFullTier() {
  const char *v = std::getenv("KILN_TEST_FULL");
  return v && *v && *v != '0';
}

TemporaryDirectory::TemporaryDirectory() {
  where = (std::filesystem::temp_directory_path() / "kiln-test-XXXXXX").string();
  if (!mkdtemp(where.data()))
    throw std::runtime_error("cannot make a temporary directory at " + where);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(where, ignored);
}

} // namespace kiln::test
