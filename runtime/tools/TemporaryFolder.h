//===- TemporaryFolder.h - A folder of a command's own ------------------------===//
#ifndef KILN_RUNTIME_TOOLS_TEMPORARYFOLDER_H
#define KILN_RUNTIME_TOOLS_TEMPORARYFOLDER_H

#include "support/Status.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

namespace kiln::tools {

/// Only this user can look into it, and it goes with the object.
class TemporaryFolder {
public:
  static Result<TemporaryFolder> create() {
    std::error_code error;
    std::string path = (std::filesystem::temp_directory_path(error) / "kiln-XXXXXX").string();
    if (error || !::mkdtemp(path.data()))
      return Status(StatusCode::IoError, "no temporary folder can be made: '" + path + "'",
                    "name another place with TMPDIR");
    return TemporaryFolder(std::move(path));
  }
  TemporaryFolder(TemporaryFolder &&other) noexcept : path(std::exchange(other.path, {})) {}
  TemporaryFolder &operator=(TemporaryFolder &&other) noexcept {
    std::swap(path, other.path);
    return *this;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path.empty())
      std::filesystem::remove_all(path, error);
  }
  const std::string &name() const { return path; }

private:
  explicit TemporaryFolder(std::string path) : path(std::move(path)) {}
  std::string path;
};

} // namespace kiln::tools

#endif // KILN_RUNTIME_TOOLS_TEMPORARYFOLDER_H
