#include "tests/cache/CacheTestSupport.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

using namespace kiln;
using namespace kiln::cache;
using namespace kiln::cache::test;

TEST(Hit, GivesWhatWasStored) {
  kiln::test::TemporaryDirectory folder;
  for (int i = 0; i < 20; ++i) {
    const auto cache = openCache(folder.path());
    EXPECT_TRUE(cache->store(sampleKey(i), sampleEntry(i, 100 + 37 * i)).ok());
  }
  const auto cache = openCache(folder.path());
  for (int i = 0; i < 20; ++i) {
    MissReason why = MissReason::Failed;
    const auto found = cache->lookup(sampleKey(i), &why);
    ASSERT_TRUE(found.ok() && found->has_value()) << i;
    EXPECT_EQ(**found, sampleEntry(i, 100 + 37 * i));
    EXPECT_EQ(why, MissReason::None);
  }
  EXPECT_EQ(cache->counters().hits, 20u);
  EXPECT_EQ(cache->counters().misses, 0u);
}

TEST(Hit, BytesOfEveryValueAndEmptyPartsComeBack) {
  kiln::test::TemporaryDirectory folder;
  const auto cache = openCache(folder.path());
  Entry all{EntryKind::Cubin, "", ""};
  for (int i = 0; i < 256; ++i)
    all.payload += static_cast<char>(i);
  ASSERT_TRUE(cache->store(KeyText().set("all", all.payload), all).ok());
  ASSERT_TRUE(cache->store(KeyText(), {}).ok());
  const auto found = cache->lookup(KeyText().set("all", all.payload)), empty = cache->lookup(KeyText());
  ASSERT_TRUE(found.ok() && found->has_value() && empty.ok() && empty->has_value());
  EXPECT_EQ(**found, all);
  EXPECT_EQ(**empty, Entry());
}

TEST(Hit, StoreReplaces) {
  kiln::test::TemporaryDirectory folder;
  const auto cache = openCache(folder.path());
  ASSERT_TRUE(cache->store(sampleKey(1), sampleEntry(1)).ok());
  ASSERT_TRUE(cache->store(sampleKey(1), sampleEntry(1, 500, 7)).ok());
  const auto found = cache->lookup(sampleKey(1));
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ(**found, sampleEntry(1, 500, 7));
  EXPECT_EQ(namesIn(folder.path()).size(), 2u); // the entry and pending/
  EXPECT_TRUE(namesIn(folder.path() + "/pending").empty());
}

TEST(Hit, EveryFieldIsPartOfTheKey) {
  kiln::test::TemporaryDirectory folder;
  const auto cache = openCache(folder.path());
  const KeyText key = sampleKey(1);
  ASSERT_TRUE(cache->store(key, sampleEntry(1)).ok());
  for (const KeyText::Field &f : key.fields()) {
    MissReason why = MissReason::None;
    const auto found = cache->lookup(KeyText(key).set(f.name, f.text + " "), &why);
    ASSERT_TRUE(found.ok());
    EXPECT_FALSE(found->has_value()) << f.name;
    EXPECT_EQ(why, MissReason::Absent);
  }
  EXPECT_EQ(cache->counters().misses, key.fields().size());
}

static Hash128 constantHash(std::string_view) {
  return {1, 2};
}

TEST(Hit, KeysOfOneHashNeverGetEachOthersEntry) {
  kiln::test::TemporaryDirectory folder;
  CacheOptions options;
  options.directory = folder.path();
  options.hash = constantHash;
  const auto cache = openCache(options);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(cache->store(sampleKey(i), sampleEntry(i)).ok());
    for (int k = 0; k < 5; ++k) {
      MissReason why = MissReason::None;
      const auto found = cache->lookup(sampleKey(k), &why);
      ASSERT_TRUE(found.ok());
      ASSERT_EQ(found->has_value(), k == i);
      if (*found)
        EXPECT_EQ(**found, sampleEntry(i));
      else
        EXPECT_EQ(why, MissReason::OtherKey);
    }
  }
  EXPECT_EQ(cache->counters().collisions, 20u);
  EXPECT_EQ(namesIn(folder.path()).size(), 2u);
}

TEST(Hit, DirectoryAndEntriesAreMadePrivate) {
  kiln::test::TemporaryDirectory folder;
  const mode_t old = ::umask(0);
  const std::string where = folder.path() + "/a/b/kiln";
  const auto cache = openCache(where);
  const bool stored = cache->store(sampleKey(1), sampleEntry(1)).ok();
  ::umask(old);
  ASSERT_TRUE(stored);
  struct stat info;
  for (const std::string &path : {folder.path() + "/a", folder.path() + "/a/b", where, where + "/pending"}) {
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u) << path;
  }
  ASSERT_EQ(::stat(entryPathOf(sampleKey(1), where).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST(Hit, WithoutCreateNothingIsMade) {
  kiln::test::TemporaryDirectory folder;
  CacheOptions options;
  options.directory = folder.path() + "/none/kiln";
  options.create = false;
  const auto cache = KernelCache::open(options);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), StatusCode::NotFound);
  EXPECT_TRUE(namesIn(folder.path()).empty());
}

TEST(Hit, ADeletedDirectoryIsMadeAgainByTheNextStore) {
  kiln::test::TemporaryDirectory folder;
  const std::string where = folder.path() + "/kiln";
  const auto cache = openCache(where);
  ASSERT_TRUE(cache->store(sampleKey(1), sampleEntry(1)).ok());
  std::filesystem::remove_all(where);
  const auto gone = cache->lookup(sampleKey(1));
  ASSERT_TRUE(gone.ok());
  EXPECT_FALSE(gone->has_value());
  ASSERT_TRUE(cache->lockForCompile(sampleKey(1), std::chrono::seconds(5)).ok());
  const Status stored = cache->store(sampleKey(1), sampleEntry(1));
  ASSERT_TRUE(stored.ok()) << stored.toString();
  const auto again = cache->lookup(sampleKey(1));
  ASSERT_TRUE(again.ok() && again->has_value());
  EXPECT_EQ(readInAnotherProcess(where, sampleKey(1), {sampleEntry(1)}), "exact");
}

TEST(Hit, ARelativeDirectoryIsOfTheFolderWhereItWasOpened) {
  kiln::test::TemporaryDirectory folder;
  const std::string failure = inChild([&]() -> std::string {
    if (::chdir(folder.path().c_str()) != 0)
      return "cannot change the directory";
    const auto cache = openCache("sub/./kiln/");
    if (::chdir("/") != 0 || !cache->store(sampleKey(1), sampleEntry(1)).ok())
      return "cannot store";
    return cache->directory();
  });
  EXPECT_EQ(failure, folder.path() + "/sub/./kiln/");
  EXPECT_EQ(readInAnotherProcess(folder.path() + "/sub/kiln", sampleKey(1), {sampleEntry(1)}), "exact");
}

TEST(DefaultDirectory, FollowsTheEnvironment) {
  std::map<std::string, std::string> set;
  const auto where = [&] {
    const auto found = defaultCacheDirectory([&](const char *name) -> const char * {
      const auto at = set.find(name);
      return at == set.end() ? nullptr : at->second.c_str();
    });
    return found.ok() ? *found : "failed: " + found.status().toString();
  };
  EXPECT_NE(where().find("set KILN_CACHE_DIR"), std::string::npos);
  set["HOME"] = "/home/me";
  EXPECT_EQ(where(), "/home/me/.cache/kiln");
  set["XDG_CACHE_HOME"] = "relative";
  EXPECT_EQ(where(), "/home/me/.cache/kiln");
  set["XDG_CACHE_HOME"] = "/var/me";
  EXPECT_EQ(where(), "/var/me/kiln");
  set["KILN_CACHE_DIR"] = "";
  EXPECT_EQ(where(), "/var/me/kiln");
  set["KILN_CACHE_DIR"] = "/fast/kernels";
  EXPECT_EQ(where(), "/fast/kernels");
}

/// "A new process with a disk hit is ready in 5 ms" rests on this; `kiln bench` times such a process.
TEST(Hit, MakesAFewSystemCallsHoweverLargeTheEntryAndReadsItOnce) {
  for (const std::size_t payload : {100u, 100'000u, 3'000'000u}) {
    kiln::test::TemporaryDirectory folder;
    const KeyText key = sampleKey(1).set("program", std::string(20'000, 'p'));
    ASSERT_TRUE(openCache(folder.path())->store(key, sampleEntry(1, payload)).ok());
    HookedLayer layer;
    std::map<std::string, int> calls;
    layer.before = [&](int, const std::string &name) {
      ++calls[name];
      return 0;
    };
    CacheOptions options;
    options.directory = folder.path();
    options.files = &layer;
    const auto cache = openCache(options);
    EXPECT_EQ(calls.count("read"), 0u) << "an open reads no entry";
    EXPECT_LE(layer.calls, 12);
    calls.clear();
    const auto found = cache->lookup(key);
    ASSERT_TRUE(found.ok() && found->has_value());
    EXPECT_EQ(calls, (std::map<std::string, int>{{"open", 1}, {"status", 2}, {"read", 1}, {"close", 1}})) << payload;
  }
}
