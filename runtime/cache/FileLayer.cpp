#include "runtime/cache/FileLayer.h"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace kiln::cache {
namespace {

/// -errno for -1, again after a signal.
template <typename Call> auto retried(Call call) -> decltype(call()) {
  for (;;) {
    const auto result = call();
    if (result != -1)
      return result;
    if (errno != EINTR)
      return -errno;
  }
}

class SystemFileLayer final : public FileLayer {
public:
  int openAt(int directory, const char *name, int flags, mode_t mode) override {
    return retried([&] { return ::openat(directory, name, flags, mode); });
  }
  // Linux closes the descriptor even when a signal comes: again would close someone else's.
  int close(int file) override { return ::close(file) == 0 || errno == EINTR ? 0 : -errno; }
  ssize_t read(int file, void *into, std::size_t bytes) override {
    return retried([&] { return ::read(file, into, bytes); });
  }
  ssize_t write(int file, const void *from, std::size_t bytes) override {
    return retried([&] { return ::write(file, from, bytes); });
  }
  int status(int file, struct stat &out) override {
    return retried([&] { return ::fstat(file, &out); });
  }
  int statusAt(int directory, const char *name, struct stat &out) override {
    return retried([&] { return ::fstatat(directory, name, &out, AT_SYMLINK_NOFOLLOW); });
  }
  int readLinkAt(int directory, const char *name, std::string &out) override {
    out.assign(4096, '\0');
    const ssize_t n = retried([&] { return ::readlinkat(directory, name, out.data(), out.size()); });
    out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return n == 4096 ? -ENAMETOOLONG : static_cast<int>(n);
  }
  int makeDirectoryAt(int directory, const char *name, mode_t mode) override {
    return retried([&] { return ::mkdirat(directory, name, mode); });
  }
  int renameAt(int fromDirectory, const char *from, int toDirectory, const char *to) override {
    return retried([&] { return ::renameat(fromDirectory, from, toDirectory, to); });
  }
  int unlinkAt(int directory, const char *name) override {
    return retried([&] { return ::unlinkat(directory, name, 0); });
  }
  int bornAt(int directory, const char *name, std::int64_t &nanoseconds) override {
    struct statx info{};
    const int result = retried([&] { return ::statx(directory, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &info); });
    if (result < 0)
      return result;
    if (!(info.stx_mask & STATX_BTIME))
      return -ENOTSUP;
    nanoseconds = info.stx_btime.tv_sec * 1'000'000'000 + info.stx_btime.tv_nsec;
    return 0;
  }
  int touch(int file) override {
    return retried([&] { return ::futimens(file, nullptr); });
  }
  int lock(int file, int operation) override {
    return retried([&] { return ::flock(file, operation); });
  }
  int list(int directory, std::vector<std::string> &out) override {
    // A description of its own: the position of a shared one would be every thread's.
    const int own = retried([&] { return ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (own < 0)
      return own;
    DIR *stream = ::fdopendir(own);
    if (!stream) {
      const int error = errno;
      ::close(own);
      return -error;
    }
    errno = 0;
    while (const dirent *entry = ::readdir(stream)) {
      if (const std::string_view name = entry->d_name; name != "." && name != "..")
        out.emplace_back(name);
      errno = 0;
    }
    const int error = errno;
    ::closedir(stream);
    return -error;
  }
};

} // namespace

ssize_t FileLayer::readAt(int file, void *into, std::size_t bytes, std::int64_t offset) {
  return retried([&] { return ::pread(file, into, bytes, offset); });
}

int FileLayer::bornAt(int, const char *, std::int64_t &) {
  return -ENOTSUP;
}

FileLayer &systemFileLayer() {
  static SystemFileLayer layer; // has no state
  return layer;
}

} // namespace kiln::cache
