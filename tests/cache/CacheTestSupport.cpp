#include "tests/cache/CacheTestSupport.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::cache::test {

[[noreturn]] static void give(const std::string &why) {
  std::fprintf(stderr, "cache test: %s\n", why.c_str());
  std::exit(3);
}

KeyText sampleKey(int number) {
  KeyText key;
  key.set("program", "module {\n  tile.kernel @k" + std::to_string(number) + " {\n    tile.return\n  }\n}\n");
  key.set("configuration", "block = 128");
  key.set("code target", number % 2 ? "sm_90a" : "sm_80");
  key.set("assembler", "none");
  return key;
}

Entry sampleEntry(int number, std::size_t payloadBytes, int generation) {
  Entry entry;
  entry.kind = number % 2 ? EntryKind::Cubin : EntryKind::Ptx;
  entry.metadata = "{\"kernel\": " + std::to_string(number) + "}";
  char mark[32];
  std::snprintf(mark, sizeof mark, "<%08d/%08d>", number, generation);
  while (entry.payload.size() < payloadBytes)
    entry.payload += mark;
  entry.payload.resize(payloadBytes);
  return entry;
}

std::unique_ptr<KernelCache> openCache(CacheOptions options) {
  Result<std::unique_ptr<KernelCache>> cache = KernelCache::open(std::move(options));
  if (!cache)
    give(cache.status().toString());
  return std::move(*cache);
}

std::unique_ptr<KernelCache> openCache(const std::string &directory) {
  CacheOptions options;
  options.directory = directory;
  return openCache(std::move(options));
}

std::string entryPathOf(const KeyText &key, const std::string &directory) {
  return directory + "/" + hexText(hash128(key.serialise())) + ".kernel";
}

std::string readBytes(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    give("cannot read " + path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Not truncated first: ext4 then waits for the disk at `close`, some milliseconds a file.
void writeBytes(const std::string &path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      ::ftruncate(file, static_cast<off_t>(bytes.size())) != 0)
    give("cannot write " + path);
  ::close(file);
}

void setAge(const std::string &path, int seconds) {
  timespec times[2];
  ::clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= seconds;
  times[1] = times[0];
  if (::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0)
    give("cannot set the time of " + path);
}

int ageOf(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    give("cannot find " + path);
  return static_cast<int>(std::time(nullptr) - info.st_mtim.tv_sec);
}

std::vector<std::string> namesIn(const std::string &directory) {
  std::vector<std::string> out;
  std::error_code missing;
  for (const auto &entry : std::filesystem::directory_iterator(directory, missing))
    out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::string inChild(const std::function<std::string()> &body) {
  int ends[2];
  if (::pipe(ends) != 0)
    give("no pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0)
    give("cannot fork");
  if (child == 0) {
    ::close(ends[0]);
    const std::string text = body();
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t n = ::write(ends[1], text.data() + done, text.size() - done);
      if (n <= 0)
        ::_exit(4);
      done += static_cast<std::size_t>(n);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string out;
  char piece[4096];
  for (ssize_t n; (n = ::read(ends[0], piece, sizeof piece)) > 0;)
    out.append(piece, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    return "killed by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? out : out + " exit status " + std::to_string(WEXITSTATUS(status));
}

std::string inChildAs(unsigned user, const std::function<std::string()> &body) {
  return inChild([&]() -> std::string {
    if (::setgroups(0, nullptr) != 0 || ::setgid(user) != 0 || ::setuid(user) != 0 || ::geteuid() != user)
      return "cannot become user " + std::to_string(user);
    return body();
  });
}

bool isRoot() {
  return ::geteuid() == 0;
}

std::string readAgain(const std::string &directory, const KeyText &key, const std::vector<Entry> &accepted) {
  CacheOptions options;
  options.directory = directory;
  options.create = false;
  Result<std::unique_ptr<KernelCache>> cache = KernelCache::open(options);
  if (!cache)
    return cache.status().code() == StatusCode::NotFound ? "miss" : "open: " + cache.status().toString();
  Result<std::optional<Entry>> found = (*cache)->lookup(key);
  if (!found)
    return "lookup: " + found.status().toString();
  if (!*found)
    return (*cache)->counters().damaged ? "damaged" : "miss";
  for (const Entry &entry : accepted)
    if (**found == entry)
      return "exact";
  return "another kernel";
}

std::string readInAnotherProcess(const std::string &directory, const KeyText &key, const std::vector<Entry> &accepted) {
  return inChild([&] { return readAgain(directory, key, accepted); });
}

MemoryDirectory::MemoryDirectory() {
  where = "/dev/shm/kiln-test-XXXXXX";
  if (::mkdtemp(where.data()))
    return;
  where = (std::filesystem::temp_directory_path() / "kiln-test-XXXXXX").string();
  if (!::mkdtemp(where.data()))
    give("cannot make a temporary directory at " + where);
}

MemoryDirectory::~MemoryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(where, ignored);
}

//===----------------------------------------------------------------------===//
// HookedLayer
//===----------------------------------------------------------------------===//

template <typename Call> auto HookedLayer::hooked(const char *name, Call call) -> decltype(call()) {
  const int number = calls++;
  if (before)
    if (const int result = before(number, name); result < 0)
      return result;
  const auto result = call();
  if (after)
    after(number, name);
  return result;
}

static std::size_t piece(std::size_t bytes, std::size_t limit) {
  return limit ? std::min(bytes, limit) : bytes;
}

int HookedLayer::openAt(int directory, const char *name, int flags, mode_t mode) {
  return hooked("open", [&] { return systemFileLayer().openAt(directory, name, flags, mode); });
}
int HookedLayer::close(int file) {
  bool closed = false;
  const int result = hooked("close", [&] {
    closed = true;
    return systemFileLayer().close(file);
  });
  if (!closed)
    ::close(file);
  return result;
}
ssize_t HookedLayer::read(int file, void *into, std::size_t bytes) {
  return hooked("read", [&] { return systemFileLayer().read(file, into, piece(bytes, pieceBytes)); });
}
ssize_t HookedLayer::write(int file, const void *from, std::size_t bytes) {
  return hooked("write", [&] { return systemFileLayer().write(file, from, piece(bytes, pieceBytes)); });
}
int HookedLayer::status(int file, struct stat &out) {
  return hooked("status", [&] { return systemFileLayer().status(file, out); });
}
int HookedLayer::statusAt(int directory, const char *name, struct stat &out) {
  return hooked("statusAt", [&] { return systemFileLayer().statusAt(directory, name, out); });
}
int HookedLayer::readLinkAt(int directory, const char *name, std::string &out) {
  return hooked("readLink", [&] { return systemFileLayer().readLinkAt(directory, name, out); });
}
int HookedLayer::makeDirectoryAt(int directory, const char *name, mode_t mode) {
  return hooked("makeDirectory", [&] { return systemFileLayer().makeDirectoryAt(directory, name, mode); });
}
int HookedLayer::renameAt(int fromDirectory, const char *from, int toDirectory, const char *to) {
  return hooked("rename", [&] { return systemFileLayer().renameAt(fromDirectory, from, toDirectory, to); });
}
int HookedLayer::unlinkAt(int directory, const char *name) {
  return hooked("unlink", [&] { return systemFileLayer().unlinkAt(directory, name); });
}
int HookedLayer::touch(int file) {
  return hooked("touch", [&] { return systemFileLayer().touch(file); });
}
int HookedLayer::lock(int file, int operation) {
  return hooked("lock", [&] { return systemFileLayer().lock(file, operation); });
}
int HookedLayer::list(int directory, std::vector<std::string> &out) {
  return hooked("list", [&] { return systemFileLayer().list(directory, out); });
}

} // namespace kiln::cache::test
