//===- FileLayer.h - The system calls that the cache makes ----------------===//
//
// All of them, so that tests can make each one fail.  A call returns what the system call returns, or -errno; it never
// returns -EINTR.  The default layer is the system; implementations are safe to call from several threads.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_FILELAYER_H
#define KILN_RUNTIME_CACHE_FILELAYER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <vector>

namespace kiln::cache {

class FileLayer {
public:
  virtual ~FileLayer() = default;

  virtual int openAt(int directory, const char *name, int flags, mode_t mode) = 0;
  virtual int close(int file) = 0;
  virtual ssize_t read(int file, void *into, std::size_t bytes) = 0;
  /// Where the file stands does not matter, and stays.
  virtual ssize_t readAt(int file, void *into, std::size_t bytes, std::int64_t offset);
  virtual ssize_t write(int file, const void *from, std::size_t bytes) = 0;
  virtual int status(int file, struct stat &out) = 0;
  /// Of the name itself: a symbolic link is not followed.
  virtual int statusAt(int directory, const char *name, struct stat &out) = 0;
  virtual int readLinkAt(int directory, const char *name, std::string &out) = 0;
  virtual int makeDirectoryAt(int directory, const char *name, mode_t mode) = 0;
  virtual int renameAt(int fromDirectory, const char *from, int toDirectory, const char *to) = 0;
  virtual int unlinkAt(int directory, const char *name) = 0;
  /// When the file was made, nanoseconds since 1970; a file system that does not know it says -ENOTSUP.
  virtual int bornAt(int directory, const char *name, std::int64_t &nanoseconds);
  /// Sets access and modification time to now.
  virtual int touch(int file) = 0;
  /// flock(2).
  virtual int lock(int file, int operation) = 0;
  /// The names in a directory but "." and "..".
  virtual int list(int directory, std::vector<std::string> &out) = 0;
};

/// The system's own calls.
FileLayer &systemFileLayer();

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_FILELAYER_H
