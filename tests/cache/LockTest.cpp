#include "tests/cache/CacheTestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace kiln;
using namespace kiln::cache;
using namespace kiln::cache::test;
using std::chrono::milliseconds;

namespace {

/// A process that holds the lock of a key until it is killed.
class Holder {
public:
  Holder(const std::string &directory, const KeyText &key) {
    int ends[2];
    if (::pipe(ends) != 0)
      return;
    process = ::fork();
    if (process == 0) {
      const auto cache = openCache(directory);
      const auto lock = cache->lockForCompile(key, milliseconds(1000));
      const char state = lock.ok() ? 'y' : 'n';
      if (::write(ends[1], &state, 1) != 1)
        ::_exit(1);
      for (;;)
        ::pause();
    }
    char state = 'n';
    holds = ::read(ends[0], &state, 1) == 1 && state == 'y';
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Holder() { kill(); }
  void kill() {
    if (process > 0) {
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
      process = -1;
    }
  }
  bool holds = false;

private:
  pid_t process = -1;
};

} // namespace

TEST(Lock, IsExclusiveAndLeavesNoFile) {
  kiln::test::TemporaryDirectory folder;
  const auto cache = openCache(folder.path()), second = openCache(folder.path());
  {
    auto lock = cache->lockForCompile(sampleKey(1), milliseconds(0));
    ASSERT_TRUE(lock.ok());
    EXPECT_FALSE(lock->waited());
    EXPECT_EQ(namesIn(folder.path() + "/pending").size(), 1u);
    const auto refused = second->lockForCompile(sampleKey(1), milliseconds(20));
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.status().message().find("20 ms"), std::string::npos);
    EXPECT_TRUE(second->lockForCompile(sampleKey(2), milliseconds(0)).ok());
    lock->release();
    EXPECT_TRUE(second->lockForCompile(sampleKey(1), milliseconds(0)).ok());
  }
  EXPECT_TRUE(namesIn(folder.path() + "/pending").empty());
}

TEST(Lock, WaitsAtMostAsLongAsItMay) {
  kiln::test::TemporaryDirectory folder;
  Holder holder(folder.path(), sampleKey(1));
  ASSERT_TRUE(holder.holds);
  const auto cache = openCache(folder.path());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(cache->lockForCompile(sampleKey(1), milliseconds(150)).ok());
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, milliseconds(150));
  EXPECT_LT(took, milliseconds(2000));
}

TEST(Lock, OfAKilledHolderIsFree) {
  kiln::test::TemporaryDirectory folder;
  Holder holder(folder.path(), sampleKey(1));
  ASSERT_TRUE(holder.holds);
  const auto cache = openCache(folder.path());
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(30));
    holder.kill();
  });
  const auto lock = cache->lockForCompile(sampleKey(1), std::chrono::seconds(30));
  killer.join();
  ASSERT_TRUE(lock.ok()) << lock.status().toString();
  EXPECT_TRUE(lock->waited());
}

TEST(Lock, FilesOfKilledHoldersAreRemovedAndOthersAreNot) {
  kiln::test::TemporaryDirectory folder;
  const std::string pending = folder.path() + "/pending";
  Holder alive(folder.path(), sampleKey(0));
  for (int i = 1; i <= 5; ++i)
    Holder(folder.path(), sampleKey(i)).kill();
  ASSERT_TRUE(alive.holds);
  // Each open cleans up, so only the last is left.
  EXPECT_EQ(namesIn(pending).size(), 2u);
  const auto cache = openCache(folder.path());
  EXPECT_EQ(namesIn(pending).size(), 1u);
  EXPECT_FALSE(cache->lockForCompile(sampleKey(0), milliseconds(0)).ok());
  alive.kill();
  const auto pruned = cache->prune({});
  ASSERT_TRUE(pruned.ok());
  EXPECT_EQ(pruned->leftovers, 1u);
  EXPECT_TRUE(namesIn(pending).empty());
}

/// Temporary files go by three signs: locked, empty and young, or neither.
TEST(Lock, TemporaryFilesOfLivingWritersStay) {
  kiln::test::TemporaryDirectory folder;
  const std::string pending = folder.path() + "/pending";
  ASSERT_EQ(::mkdir(pending.c_str(), 0700), 0);
  for (const char *name : {"/locked.tmp", "/half.tmp"})
    writeBytes(pending + name, "half");
  for (const char *name : {"/young.tmp", "/old.tmp"})
    writeBytes(pending + name, "");
  setAge(pending + "/locked.tmp", 100'000);
  setAge(pending + "/old.tmp", 100);
  const int locked = ::open((pending + "/locked.tmp").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(locked, LOCK_EX | LOCK_NB), 0);
  openCache(folder.path());
  EXPECT_EQ(namesIn(pending), (std::vector<std::string>{"locked.tmp", "young.tmp"}));
  ::close(locked);
  openCache(folder.path());
  EXPECT_EQ(namesIn(pending), std::vector<std::string>{"young.tmp"});
}

/// On a file system without locks only age tells.
TEST(Lock, WithoutLocksAgeDecides) {
  kiln::test::TemporaryDirectory folder;
  HookedLayer layer;
  layer.before = [](int, const std::string &name) { return name == "lock" ? -ENOLCK : 0; };
  CacheOptions options;
  options.directory = folder.path();
  options.files = &layer;
  const auto cache = openCache(options);
  EXPECT_FALSE(cache->lockForCompile(sampleKey(1), milliseconds(0)).ok());
  ASSERT_TRUE(cache->store(sampleKey(1), sampleEntry(1)).ok());
  const std::string pending = folder.path() + "/pending";
  for (const char *name : {"/a.tmp", "/b.tmp", "/c.lock", "/d.lock"})
    writeBytes(pending + name, "half");
  setAge(pending + "/b.tmp", 4000);
  setAge(pending + "/d.lock", 4000);
  ASSERT_TRUE(cache->prune({}).ok());
  const std::vector<std::string> left = namesIn(pending);
  EXPECT_EQ(std::count(left.begin(), left.end(), "a.tmp") + std::count(left.begin(), left.end(), "c.lock"), 2);
  EXPECT_EQ(std::count(left.begin(), left.end(), "b.tmp") + std::count(left.begin(), left.end(), "d.lock"), 0);
}

/// A file that a writer of another program version or a user put there stays.
TEST(Lock, OnlyFilesOfTheCacheAreCleanedUp) {
  kiln::test::TemporaryDirectory folder;
  {
    openCache(folder.path())->lockForCompile(sampleKey(1), milliseconds(0)).ok();
  }
  writeBytes(folder.path() + "/pending/notes.txt", "mine");
  writeBytes(folder.path() + "/notes.txt", "mine");
  PruneOptions all;
  all.all = true;
  EXPECT_TRUE(openCache(folder.path())->prune(all).ok());
  EXPECT_EQ(readBytes(folder.path() + "/pending/notes.txt"), "mine");
  EXPECT_EQ(readBytes(folder.path() + "/notes.txt"), "mine");
}

TEST(Lock, OfTheParentOutlivesAChildThatDropsIt) {
  kiln::test::TemporaryDirectory folder;
  const auto cache = openCache(folder.path());
  auto lock = cache->lockForCompile(sampleKey(1), milliseconds(0));
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(inChild([&]() -> std::string {
              lock->release();
              return "";
            }),
            "");
  EXPECT_EQ(namesIn(folder.path() + "/pending").size(), 1u);
  EXPECT_FALSE(openCache(folder.path())->lockForCompile(sampleKey(1), milliseconds(0)).ok());
}

/// A child that was forked during a compile and lives on does not keep the lock, not even from those who wait already.
TEST(Lock, IsFreeOnceReleasedAlthoughAChildHasTheDescriptor) {
  kiln::test::TemporaryDirectory folder;
  const auto cache = openCache(folder.path());
  auto lock = cache->lockForCompile(sampleKey(1), milliseconds(0));
  ASSERT_TRUE(lock.ok());
  const pid_t child = ::fork();
  if (child == 0)
    for (;;)
      ::pause();
  bool free = false;
  std::thread waiter([&] {
    const auto next = openCache(folder.path())->lockForCompile(sampleKey(1), milliseconds(3000));
    free = next.ok() && next->waited();
  });
  std::this_thread::sleep_for(milliseconds(50));
  lock->release();
  waiter.join();
  EXPECT_TRUE(free);
  EXPECT_TRUE(openCache(folder.path())->lockForCompile(sampleKey(1), milliseconds(0)).ok());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

/// Many holders in turn, each removing the file that the others wait for: never two at once, never a lost one.
TEST(Lock, PassesThroughManyThreads) {
  kiln::test::TemporaryDirectory folder;
  constexpr int workers = 8;
  const int rounds = kiln::test::pick(25, 400);
  int unguarded = 0; // a race is what ThreadSanitizer and the sum would show
  std::atomic<int> inside = 0, failures = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < workers; ++t)
    all.emplace_back([&] {
      const auto cache = openCache(folder.path()); // cleans up while others wait
      for (int i = 0; i < rounds; ++i) {
        const auto lock = cache->lockForCompile(sampleKey(1), std::chrono::seconds(60));
        if (!lock.ok() || inside.fetch_add(1) != 0)
          ++failures;
        const int before = unguarded;
        std::this_thread::yield();
        unguarded = before + 1;
        --inside;
      }
    });
  for (std::thread &t : all)
    t.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(unguarded, workers * rounds);
  EXPECT_TRUE(namesIn(folder.path() + "/pending").empty());
}
