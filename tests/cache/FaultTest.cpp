#include "tests/cache/CacheTestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <unistd.h>
#include <utility>

using namespace kiln;
using namespace kiln::cache;
using namespace kiln::cache::test;

namespace {

const KeyText key = sampleKey(1), otherKey = sampleKey(2);
const Entry oldEntry = sampleEntry(1, 300, 1), newEntry = sampleEntry(1, 300, 2), otherEntry = sampleEntry(2);

/// What a fault may do to a use of the cache, and what it may not.
struct Outcome {
  bool opened = false, stored = false;
  std::string wrong; ///< empty: every answer was right
};

/// Every operation, as a caller uses the cache: no failure keeps it from going on.
Outcome useCache(const std::string &directory, FileLayer &layer) {
  Outcome out;
  CacheOptions options;
  options.directory = directory;
  options.files = &layer;
  options.touchInterval = std::chrono::seconds(0);
  options.maxBytes = 100'000; // small: every store measures the directory
  Result<std::unique_ptr<KernelCache>> opened = KernelCache::open(options);
  if (!opened) {
    if (opened.status().message().empty())
      out.wrong = "open failed without a message";
    return out;
  }
  out.opened = true;
  KernelCache &cache = **opened;
  const auto look = [&](const KeyText &k, const std::vector<Entry> &accepted) {
    const auto found = cache.lookup(k);
    if (!found.ok() ? found.status().message().empty()
                    : found->has_value() && std::find(accepted.begin(), accepted.end(), **found) == accepted.end())
      out.wrong = "lookup gave another kernel, or failed without a message";
  };
  look(key, {oldEntry});
  {
    const auto lock = cache.lockForCompile(key, std::chrono::milliseconds(0));
    look(key, {oldEntry});
    out.stored = cache.store(key, newEntry).ok();
  }
  look(key, out.stored ? std::vector{newEntry} : std::vector{oldEntry, newEntry});
  look(otherKey, {otherEntry});
  for (const auto &listed : {cache.list(), cache.verify()})
    if (listed.ok())
      for (const EntryInfo &info : *listed)
        if (!info.damage.empty() && !info.unreadable)
          out.wrong = "good entry reported as damaged: " + info.damage;
  (void)cache.explain(key);
  PruneOptions prune;
  prune.damaged = true;
  (void)cache.prune(prune);
  const CacheCounters c = cache.counters();
  if (c.hits + c.misses != 4 || c.stores + c.storeFailures != 1 || c.damaged || c.collisions)
    out.wrong = "counters: " + std::to_string(c.hits) + " hits, " + std::to_string(c.misses) + " misses, " +
                std::to_string(c.damaged) + " damaged";
  return out;
}

/// A directory with an entry of both keys, or none at all.
struct Scene {
  explicit Scene(bool filled) : directory(folder.path() + "/kiln") {
    if (!filled)
      return;
    const auto cache = openCache(directory);
    if (!cache->store(key, oldEntry).ok() || !cache->store(otherKey, otherEntry).ok())
      ADD_FAILURE() << "cannot set the scene";
  }
  MemoryDirectory folder;
  std::string directory;
};

std::size_t openDescriptors() {
  return namesIn("/proc/self/fd").size();
}

/// Another process finds what may be there; then no file is left over, and the cache works.
void expectSound(const std::string &directory, const std::vector<Entry> &accepted, bool mustHit,
                 const std::string &what) {
  const std::string wrong = inChild([&]() -> std::string {
    const std::string found = readAgain(directory, key, accepted);
    if (found != "exact" && (found != "miss" || mustHit))
      return found;
    const std::string other = readAgain(directory, otherKey, {otherEntry});
    if (other != "exact" && other != "miss")
      return "other key: " + other;
    for (const std::string &name : namesIn(directory + "/pending"))
      setAge(directory + "/pending/" + name, 100); // an empty file is left alone for a minute
    const auto cache = openCache(directory);       // removes what dead processes left
    if (const auto left = namesIn(directory + "/pending"); !left.empty())
      return "left over: " + left[0];
    if (const Status stored = cache->store(key, newEntry); !stored.ok())
      return stored.toString();
    return readAgain(directory, key, {newEntry}) == "exact" ? "" : "the next store is not found";
  });
  ASSERT_EQ(wrong, "") << what;
}

int callsOf(bool filled) {
  Scene scene(filled);
  HookedLayer layer;
  const Outcome good = useCache(scene.directory, layer);
  EXPECT_TRUE(good.opened && good.stored && good.wrong.empty()) << good.wrong;
  return layer.calls;
}

constexpr int errors[] = {ENOSPC, EACCES, EROFS, EMFILE, EBUSY, ESTALE, EIO, ENOENT};

/// `forGood`: from that call on all of that kind fail, as on a full disk; else only that one.
void failEachCall(bool forGood) {
  for (bool filled : {false, true}) {
    const int calls = callsOf(filled);
    ASSERT_GT(calls, 40);
    for (int e = 0; e < std::ssize(errors); ++e)
      for (int failing = 0; failing < calls; ++failing) {
        const int error = errors[e];
        if (!kiln::test::isFullTier() && (failing + e) % std::ssize(errors) != 0)
          continue; // every call with one of the errors
        Scene scene(filled);
        HookedLayer layer;
        std::string failed;
        layer.before = [&](int number, const std::string &name) {
          if (number == failing)
            failed = name;
          return number == failing || (forGood && number > failing && name == failed) ? -error : 0;
        };
        const std::size_t descriptors = openDescriptors();
        const Outcome outcome = useCache(scene.directory, layer);
        const std::string what = std::string(filled ? "filled" : "fresh") + ", call " + std::to_string(failing) + " (" +
                                 failed + ") " + std::strerror(error);
        ASSERT_EQ(outcome.wrong, "") << what;
        ASSERT_EQ(openDescriptors(), descriptors) << what;
        std::vector<Entry> accepted{newEntry};
        if (!outcome.stored && filled)
          accepted.push_back(oldEntry);
        ASSERT_NO_FATAL_FAILURE(expectSound(scene.directory, accepted, outcome.stored, what));
      }
  }
}

} // namespace

TEST(Fault, EachCallInTurnFailsOnce) {
  failEachCall(false);
}

TEST(Fault, EachKindOfCallFailsFromSomeCallOn) {
  failEachCall(true);
}

TEST(Fault, ShortReadsAndWritesAreContinued) {
  for (std::size_t piece : {1, 7, 64, 4096}) {
    Scene scene(true);
    HookedLayer layer;
    layer.pieceBytes = piece;
    const Outcome outcome = useCache(scene.directory, layer);
    EXPECT_TRUE(outcome.stored) << piece;
    EXPECT_EQ(outcome.wrong, "");
    expectSound(scene.directory, {newEntry}, true, "pieces of " + std::to_string(piece));
  }
}

/// A disk that fills up in the middle of an entry.
TEST(Fault, AShortWriteAndThenAFullDiskStoreNothing) {
  for (int error : {ENOSPC, EDQUOT, EIO})
    for (int writes = 0; writes < 12; ++writes) {
      Scene scene(true);
      HookedLayer layer;
      layer.pieceBytes = 40;
      int seen = 0;
      layer.before = [&](int, const std::string &name) { return name == "write" && seen++ >= writes ? -error : 0; };
      const Outcome outcome = useCache(scene.directory, layer);
      EXPECT_FALSE(outcome.stored);
      EXPECT_EQ(outcome.wrong, "");
      EXPECT_TRUE(namesIn(scene.directory + "/pending").empty()); // a full disk is not filled further
      expectSound(scene.directory, {oldEntry}, true, std::to_string(writes) + " writes");
    }
}

namespace {

class ZeroWrites final : public HookedLayer {
  ssize_t write(int, const void *, std::size_t) override { return 0; }
};

} // namespace

TEST(Fault, AWriteOfNothingEndsTheStore) {
  Scene scene(true);
  ZeroWrites layer;
  const Outcome outcome = useCache(scene.directory, layer);
  EXPECT_FALSE(outcome.stored);
  EXPECT_EQ(outcome.wrong, "");
  expectSound(scene.directory, {oldEntry}, true, "writes of nothing");
}

/// Someone empties the cache directory while an entry is being written: the second attempt stores it.
TEST(Fault, AStoreSurvivesTheRemovalOfItsTemporaryFile) {
  for (const char *call : {"write", "rename"}) {
    Scene scene(true);
    HookedLayer layer;
    bool done = false;
    layer.before = [&](int, const std::string &name) {
      if (name == call && !std::exchange(done, true))
        std::filesystem::remove_all(scene.directory);
      return 0;
    };
    CacheOptions options;
    options.directory = scene.directory;
    options.files = &layer;
    const Status stored = openCache(options)->store(key, newEntry);
    EXPECT_TRUE(stored.ok()) << call << ": " << stored.toString();
    EXPECT_TRUE(done);
    expectSound(scene.directory, {newEntry}, true, call);
  }
}

/// The file shrinks between the call for its size and the read.
TEST(Fault, AFileThatShrinksWhileItIsReadIsAMiss) {
  Scene scene(true);
  HookedLayer layer;
  layer.before = [&](int, const std::string &name) {
    if (name == "read")
      EXPECT_EQ(::truncate(entryPathOf(key, scene.directory).c_str(), 100), 0);
    return 0;
  };
  CacheOptions options;
  options.directory = scene.directory;
  options.files = &layer;
  const auto found = openCache(options)->lookup(key);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
}

/// A process killed before or after any of its calls leaves the old entry, the new one, or none.
TEST(Kill, BeforeAndAfterEachCallOfAWriter) {
  for (bool filled : {false, true}) {
    const int calls = callsOf(filled);
    for (bool after : {false, true})
      for (int last = 0; last < calls; ++last) {
        Scene scene(filled);
        const std::string end = inChild([&]() -> std::string {
          HookedLayer layer;
          const auto die = [&](int number) {
            if (number == last)
              ::kill(::getpid(), SIGKILL);
          };
          if (after)
            layer.after = [&](int number, const std::string &) { die(number); };
          else
            layer.before = [&](int number, const std::string &) {
              die(number);
              return 0;
            };
          useCache(scene.directory, layer);
          return "survived";
        });
        const std::string what = std::string(filled ? "filled" : "fresh") + ", killed " + (after ? "after" : "before") +
                                 " call " + std::to_string(last);
        ASSERT_EQ(end, "killed by signal 9") << what;
        std::vector<Entry> accepted{newEntry};
        if (filled)
          accepted.push_back(oldEntry);
        ASSERT_NO_FATAL_FAILURE(expectSound(scene.directory, accepted, filled, what));
      }
  }
}

/// In the middle of the payload.
TEST(Kill, BetweenTheWritesOfAnEntry) {
  for (int writes = 1; writes < 10; ++writes) {
    Scene scene(true);
    const std::string end = inChild([&]() -> std::string {
      HookedLayer layer;
      layer.pieceBytes = 50;
      int seen = 0;
      layer.after = [&](int, const std::string &name) {
        if (name == "write" && ++seen == writes)
          ::kill(::getpid(), SIGKILL);
      };
      useCache(scene.directory, layer);
      return "survived";
    });
    ASSERT_EQ(end, "killed by signal 9");
    EXPECT_EQ(namesIn(scene.directory + "/pending").size(), 2u); // the half entry and the lock
    expectSound(scene.directory, {oldEntry}, true, std::to_string(writes) + " writes");
  }
}
