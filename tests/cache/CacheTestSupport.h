//===- CacheTestSupport.h - Keys, entries, processes and faulty file layers -===//
//
// Checks that run in a forked child give their failure as a text: what a child expects, its parent cannot see.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_CACHE_CACHETESTSUPPORT_H
#define KILN_TESTS_CACHE_CACHETESTSUPPORT_H

#include "runtime/cache/KernelCache.h"
#include "tests/support/TestTier.h"

#include <atomic>
#include <functional>
#include <string>

namespace kiln::cache::test {

/// Different for every number; like a real one, with a program of several lines.
KeyText sampleKey(int number);
/// `generation` changes the content, never the size.  The payload names its number all over.
Entry sampleEntry(int number, std::size_t payloadBytes = 300, int generation = 0);

/// Opens it, or ends the test program with the reason.
std::unique_ptr<KernelCache> openCache(CacheOptions options);
std::unique_ptr<KernelCache> openCache(const std::string &directory);

/// The path of the only entry in the directory.
std::string entryPathOf(const KeyText &key, const std::string &directory);
std::string readBytes(const std::string &path);
void writeBytes(const std::string &path, std::string_view bytes);
/// Modification time in seconds before now.
void setAge(const std::string &path, int seconds);
int ageOf(const std::string &path);
/// Names in a directory, sorted; none if there is no such directory.
std::vector<std::string> namesIn(const std::string &directory);

/// What a process finds that opens the directory: "exact", "miss", or what is wrong.
std::string readAgain(const std::string &directory, const KeyText &key, const std::vector<Entry> &accepted);
/// The same in another process.
std::string readInAnotherProcess(const std::string &directory, const KeyText &key, const std::vector<Entry> &accepted);

/// Runs `body` in a forked child; gives its text, or "killed by signal N".
std::string inChild(const std::function<std::string()> &body);
/// As user and group `user`; the caller is root.
std::string inChildAs(unsigned user, const std::function<std::string()> &body);
bool isRoot();

/// A fresh directory in /dev/shm, or where temporary ones are: ext4 waits for the disk when a rename replaces a file,
/// thousands of times in the tests of faults.
class MemoryDirectory {
public:
  MemoryDirectory();
  ~MemoryDirectory();
  MemoryDirectory(const MemoryDirectory &) = delete;
  MemoryDirectory &operator=(const MemoryDirectory &) = delete;
  const std::string &path() const { return where; }

private:
  std::string where;
};

/// Forwards every call to the system; `before` sees the number of the call, from 0, and its name.  A negative result
/// is what the call then gives, without being made (but `close`, which closes: a descriptor is gone after an error).
class HookedLayer : public FileLayer {
public:
  std::function<int(int number, const std::string &name)> before;
  std::function<void(int number, const std::string &name)> after;
  /// At most this many bytes a write or read; 0 = no limit.
  std::size_t pieceBytes = 0;
  std::atomic<int> calls = 0;

  int openAt(int directory, const char *name, int flags, mode_t mode) override;
  int close(int file) override;
  ssize_t read(int file, void *into, std::size_t bytes) override;
  ssize_t write(int file, const void *from, std::size_t bytes) override;
  int status(int file, struct stat &out) override;
  int statusAt(int directory, const char *name, struct stat &out) override;
  int readLinkAt(int directory, const char *name, std::string &out) override;
  int makeDirectoryAt(int directory, const char *name, mode_t mode) override;
  int renameAt(int fromDirectory, const char *from, int toDirectory, const char *to) override;
  int unlinkAt(int directory, const char *name) override;
  int touch(int file) override;
  int lock(int file, int operation) override;
  int list(int directory, std::vector<std::string> &out) override;

private:
  template <typename Call> auto hooked(const char *name, Call call) -> decltype(call());
};

} // namespace kiln::cache::test

#endif // KILN_TESTS_CACHE_CACHETESTSUPPORT_H
