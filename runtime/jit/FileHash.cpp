#include "runtime/jit/FileHash.h"

#include "support/Text.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

namespace {

Status cannot(const char *what, const std::string &path) {
  const int error = errno;
  return {error == ENOENT ? StatusCode::NotFound : StatusCode::IoError,
          std::string("cannot ") + what + " '" + path + "': " + std::strerror(error)};
}

FileStamp stampOf(const struct stat &s) {
  FileStamp out;
  out.text = format("device %llu inode %llu size %llu modified %lld.%09ld changed %lld.%09ld",
                    static_cast<unsigned long long>(s.st_dev), static_cast<unsigned long long>(s.st_ino),
                    static_cast<unsigned long long>(s.st_size), static_cast<long long>(s.st_mtim.tv_sec),
                    s.st_mtim.tv_nsec, static_cast<long long>(s.st_ctim.tv_sec), s.st_ctim.tv_nsec);
  out.changedSeconds = std::max<std::int64_t>(s.st_mtim.tv_sec, s.st_ctim.tv_sec);
  return out;
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
};

Result<std::string> contentHash(int fd, const std::string &path) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  std::string block(std::size_t(1) << 20, '\0');
  for (;;) {
    const ssize_t n = ::read(fd, block.data(), block.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return cannot("read", path);
    if (n == 0)
      break;
    XXH3_128bits_update(&state, block.data(), static_cast<std::size_t>(n));
  }
  const XXH128_hash_t h = XXH3_128bits_digest(&state);
  return cache::hexText({h.high64, h.low64});
}

cache::KeyText memoKey(std::string_view what, const std::string &path) {
  cache::KeyText key;
  key.set("remembered", what).set("file", path);
  return key;
}

} // namespace

Result<FileStamp> FileStamp::of(const std::string &path) {
  struct stat s{};
  if (::stat(path.c_str(), &s) != 0)
    return cannot("read", path);
  return stampOf(s);
}

std::string FileHashes::recall(std::string_view what, const std::string &path, const FileStamp &stamp) const {
  if (!memo)
    return {};
  Result<std::optional<cache::Entry>> found = memo->lookup(memoKey(what, path));
  if (!found || !*found || (*found)->metadata != stamp.text)
    return {};
  return (*found)->payload;
}

void FileHashes::remember(std::string_view what, const std::string &path, const FileStamp &stamp,
                          const std::string &text) const {
  const std::int64_t time = now ? now() : static_cast<std::int64_t>(std::time(nullptr));
  if (!memo || time - stamp.changedSeconds < settleSeconds)
    return;
  cache::Entry entry;
  entry.payload = text;
  entry.metadata = stamp.text;
  (void)memo->store(memoKey(what, path), entry); // not remembered: hashed again next time
}

Result<FileHashes::Hashed> FileHashes::hash(const std::string &path) const {
  constexpr unsigned attempts = 3;
  for (unsigned i = 0; i < attempts; ++i) {
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.fd < 0)
      return cannot("open", path);
    struct stat before{}, after{};
    if (::fstat(file.fd, &before) != 0)
      return cannot("read", path);
    Hashed out;
    out.stamp = stampOf(before);
    out.hash = recall("content hash", path, out.stamp);
    if (!out.hash.empty())
      return out;
    out.read = true;
    KILN_ASSIGN(out.hash, contentHash(file.fd, path));
    if (::fstat(file.fd, &after) != 0)
      return cannot("read", path);
    if (stampOf(after) == out.stamp) {
      remember("content hash", path, out.stamp, out.hash);
      return out;
    }
  }
  return Status(StatusCode::IoError, "'" + path + "' changes while it is read", "wait until it is written");
}

} // namespace kiln
