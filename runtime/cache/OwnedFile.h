//===- OwnedFile.h - An open descriptor that closes itself ----------------===//
//
// Reads and writes of whole spans over a FileLayer, and the texts of its errors.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_OWNEDFILE_H
#define KILN_RUNTIME_CACHE_OWNEDFILE_H

#include "runtime/cache/FileLayer.h"
#include "support/Status.h"

#include <string>
#include <string_view>
#include <utility>

namespace kiln::cache {

class OwnedFile {
public:
  OwnedFile() = default;
  OwnedFile(FileLayer &files, int descriptor) : files(&files), descriptor(descriptor) {}
  OwnedFile(OwnedFile &&other) noexcept : files(other.files), descriptor(std::exchange(other.descriptor, -1)) {}
  OwnedFile &operator=(OwnedFile &&other) noexcept {
    std::swap(files, other.files);
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~OwnedFile() { close(); }

  int get() const { return descriptor; }
  explicit operator bool() const { return descriptor >= 0; }
  /// 0 or -errno; the descriptor is gone either way.
  int close() { return descriptor >= 0 ? files->close(std::exchange(descriptor, -1)) : 0; }

  /// Fills `out` up to its size or the end of the file, and gives the bytes read or -errno.
  ssize_t readAll(char *out, std::size_t bytes);
  /// 0 or -errno.
  int writeAll(std::string_view bytes);

private:
  FileLayer *files = nullptr;
  int descriptor = -1;
};

/// "cannot <what> '<path>': <reason of -error>".  NotFound for ENOENT, else IoError.
Status systemError(const std::string &what, const std::string &path, int negativeErrno, std::string remedy = {});

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_OWNEDFILE_H
