#include "runtime/jit/FileHash.h"

#include "support/Parallel.h"
#include "support/Text.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

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

/// Segments are hashed by several threads: a compiler of a hundred megabytes is read at the first call of every process
/// that finds no cache.
constexpr std::size_t segmentBytes = std::size_t(4) << 20;
/// What is remembered; another definition of the hash has another name.
constexpr std::string_view contentHashName = "content hash of segments";

/// One segment, the last one to the end of the file; 0 on success, else errno.  A file that became shorter gives what
/// is there.
int hashSegment(int fd, std::size_t segment, bool last, XXH128_canonical_t &out) try {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  std::string block(std::size_t(256) << 10, '\0'); // stays in a core's cache
  for (std::size_t at = 0; last || at < segmentBytes;) {
    const ssize_t n = ::pread(fd, block.data(), last ? block.size() : std::min(block.size(), segmentBytes - at),
                              static_cast<off_t>(segment * segmentBytes + at));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno;
    if (n == 0)
      break;
    XXH3_128bits_update(&state, block.data(), static_cast<std::size_t>(n));
    at += static_cast<std::size_t>(n);
  }
  XXH128_canonicalFromHash(&out, XXH3_128bits_digest(&state));
  return 0;
} catch (const std::bad_alloc &) {
  return ENOMEM;
}

Result<std::string> contentHash(int fd, std::size_t bytes, const std::string &path) {
  const std::size_t segments = bytes / segmentBytes + 1;
  std::vector<XXH128_canonical_t> hashes(segments);
  std::atomic<int> failure{0};
  constexpr std::size_t mostThreads = 8;
  inParallel(
      segments,
      [&](std::size_t s) {
        if (failure)
          return;
        if (const int error = hashSegment(fd, s, s + 1 == segments, hashes[s]))
          failure = error;
      },
      mostThreads);
  if (failure) {
    errno = failure;
    return cannot("read", path);
  }
  const XXH128_hash_t h = XXH3_128bits(hashes.data(), hashes.size() * sizeof hashes[0]);
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
    out.hash = recall(contentHashName, path, out.stamp);
    if (!out.hash.empty())
      return out;
    out.read = true;
    KILN_ASSIGN(out.hash, contentHash(file.fd, static_cast<std::size_t>(before.st_size), path));
    if (::fstat(file.fd, &after) != 0)
      return cannot("read", path);
    if (stampOf(after) == out.stamp) {
      remember(contentHashName, path, out.stamp, out.hash);
      return out;
    }
  }
  return Status(StatusCode::IoError, "'" + path + "' changes while it is read", "wait until it is written");
}

} // namespace kiln
