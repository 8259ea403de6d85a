#include "runtime/cache/OwnedFile.h"

#include <cerrno>
#include <cstring>

namespace kiln::cache {

ssize_t OwnedFile::readAll(char *out, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = files->read(descriptor, out + done, bytes - done);
    if (n < 0)
      return n;
    if (n == 0)
      break;
    done += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

int OwnedFile::writeAll(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = files->write(descriptor, bytes.data(), bytes.size());
    if (n < 0)
      return static_cast<int>(n);
    if (n == 0) // again might be for ever
      return -ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

Status systemError(const std::string &what, const std::string &path, int negativeErrno, std::string remedy) {
  return {negativeErrno == -ENOENT ? StatusCode::NotFound : StatusCode::IoError,
          "cannot " + what + " '" + path + "': " + std::strerror(-negativeErrno), std::move(remedy)};
}

} // namespace kiln::cache
