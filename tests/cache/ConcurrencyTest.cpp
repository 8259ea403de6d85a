#include "tests/cache/CacheTestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fcntl.h>
#include <mutex>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace kiln;
using namespace kiln::cache;
using namespace kiln::cache::test;

namespace {

constexpr int processes = 2, threads = 8;

/// Runs `body(process, thread, say)` in 2 processes of 8 threads at once; gives what they said.
std::string everywhere(const std::function<std::string(int, int)> &body) {
  // One child starts the others, so that all of them are forked from a process of one thread.
  return inChild([&]() -> std::string {
    std::string said;
    std::vector<pid_t> children;
    int ends[2];
    if (::pipe(ends) != 0)
      return "no pipe";
    for (int p = 0; p < processes; ++p) {
      const pid_t child = ::fork();
      if (child == 0) {
        std::mutex mutex;
        std::string text;
        std::vector<std::thread> workers;
        for (int t = 0; t < threads; ++t)
          workers.emplace_back([&, t] {
            const std::string one = body(p, t);
            std::lock_guard guard(mutex);
            text += one;
          });
        for (std::thread &w : workers)
          w.join();
        text = text.substr(0, 2000);
        const bool written = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
        ::_exit(written ? 0 : 1);
      }
      children.push_back(child);
    }
    ::close(ends[1]);
    char piece[4096];
    for (ssize_t n; (n = ::read(ends[0], piece, sizeof piece)) > 0;)
      said.append(piece, static_cast<std::size_t>(n));
    for (const pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      if (status != 0)
        said += "a process ended with status " + std::to_string(status);
    }
    return said;
  });
}

/// One cache object a process, made by its first thread to come.
KernelCache &sharedCache(const CacheOptions &options) {
  static std::once_flag once;
  static std::unique_ptr<KernelCache> cache;
  std::call_once(once, [&] { cache = openCache(options); });
  return *cache;
}

/// Whether it is an entry of that key of any generation, whole and unmixed.
bool isWhole(const Entry &entry, int number) {
  int named = 0, generation = 0;
  return std::sscanf(entry.payload.c_str(), "<%d/%d>", &named, &generation) == 2 &&
         entry == sampleEntry(number, 3000, generation);
}

/// Random lookups, stores and prunes of few keys, with a cap that only holds half of them.
std::string useAtRandom(const CacheOptions &options, int process, int thread) {
  constexpr int keys = 12;
  KernelCache &cache = sharedCache(options);
  std::mt19937 random(static_cast<unsigned>(100 * process + thread));
  int hits = 0;
  for (int i = 0; i < kiln::test::pick(300, 2000); ++i) {
    const int number = static_cast<int>(random() % keys);
    const unsigned action = random() % 100;
    if (action < 60) {
      const auto found = cache.lookup(sampleKey(number));
      if (!found.ok())
        return "lookup: " + found.status().toString();
      if (*found && !isWhole(**found, number))
        return "another kernel";
      hits += found->has_value();
    } else if (action < 97) {
      const Status stored =
          cache.store(sampleKey(number), sampleEntry(number, 3000, static_cast<int>(random() % 1000)));
      if (!stored.ok())
        return "store: " + stored.toString();
    } else if (action == 97) {
      if (!cache.prune({}).ok() || !openCache(options)->list().ok())
        return "prune or list";
    } else {
      const auto all = cache.verify();
      if (!all.ok())
        return "verify";
      for (const EntryInfo &info : *all)
        if (!info.damage.empty())
          return info.damage;
    }
  }
  const CacheCounters c = cache.counters();
  return hits == 0 ? "never a hit" : c.damaged ? "damaged entries" : "";
}

} // namespace

TEST(Concurrency, StoresLookupsAndEvictionsOfTheSameKeys) {
  kiln::test::TemporaryDirectory folder;
  CacheOptions options;
  options.directory = folder.path() + "/kiln"; // made by all at once
  options.maxBytes = 6 * 3500;
  options.touchInterval = std::chrono::seconds(0);
  EXPECT_EQ(everywhere([&](int p, int t) { return useAtRandom(options, p, t); }), "");
  EXPECT_TRUE(namesIn(options.directory + "/pending").empty());
  const auto all = openCache(options)->verify();
  ASSERT_TRUE(all.ok());
  EXPECT_FALSE(all->empty());
  for (const EntryInfo &info : *all)
    EXPECT_EQ(info.damage, "");
}

/// As the compile service does it: one compile a key over all threads and processes.
TEST(Concurrency, OneCompileAKey) {
  constexpr int keys = 6;
  kiln::test::TemporaryDirectory folder;
  CacheOptions options;
  options.directory = folder.path() + "/kiln";
  const std::string compiles = folder.path() + "/compiles";
  const auto body = [&](int process, int thread) -> std::string {
    KernelCache &cache = sharedCache(options);
    for (int i = 0; i < keys; ++i) {
      const int number = (i + thread) % keys;
      const auto first = cache.lookup(sampleKey(number));
      if (!first.ok())
        return first.status().toString();
      if (*first)
        continue;
      const auto lock = cache.lockForCompile(sampleKey(number), std::chrono::seconds(60));
      if (!lock.ok())
        return lock.status().toString();
      const auto again = cache.lookup(sampleKey(number));
      if (!again.ok())
        return again.status().toString();
      if (*again)
        continue;
      const int log = ::open(compiles.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      const char name = static_cast<char>('a' + number);
      if (::write(log, &name, 1) != 1)
        return "cannot count";
      ::close(log);
      std::this_thread::sleep_for(std::chrono::milliseconds(5)); // the compile
      if (!cache.store(sampleKey(number), sampleEntry(number)).ok())
        return "cannot store";
    }
    return "";
  };
  EXPECT_EQ(everywhere(body), "");
  std::string log = readBytes(compiles);
  std::sort(log.begin(), log.end());
  EXPECT_EQ(log, "abcdef");
  EXPECT_TRUE(namesIn(options.directory + "/pending").empty());
}
