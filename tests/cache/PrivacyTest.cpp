#include "tests/cache/CacheTestSupport.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

using namespace kiln;
using namespace kiln::cache;
using namespace kiln::cache::test;

namespace {

constexpr unsigned nobody = 65534, stranger = 65533;

/// "opened", or why not.
std::string opening(const std::string &directory) {
  CacheOptions options;
  options.directory = directory;
  const auto cache = KernelCache::open(options);
  if (cache.ok())
    return "opened";
  return cache.status().remedy().empty() ? "without a remedy: " + cache.status().message() : cache.status().toString();
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

class Privacy : public testing::Test {
protected:
  Privacy() { ::chmod(folder.path().c_str(), 0755); } // other users get through
  std::string make(const std::string &name, mode_t mode, int owner = -1) {
    const std::string path = folder.path() + "/" + name;
    EXPECT_EQ(::mkdir(path.c_str(), 0700), 0) << path;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    if (owner >= 0) {
      EXPECT_EQ(::chown(path.c_str(), static_cast<uid_t>(owner), static_cast<gid_t>(owner)), 0);
    }
    return path;
  }
  std::string link(const std::string &name, const std::string &target, int owner = -1) {
    const std::string path = folder.path() + "/" + name;
    EXPECT_EQ(::symlink(target.c_str(), path.c_str()), 0);
    if (owner >= 0) {
      EXPECT_EQ(::lchown(path.c_str(), static_cast<uid_t>(owner), static_cast<gid_t>(owner)), 0);
    }
    return path;
  }
  kiln::test::TemporaryDirectory folder;
};

/// The cases need files of other users; they run as user nobody.
class PrivacyAsNobody : public Privacy {
protected:
  void SetUp() override {
    if (!isRoot())
      GTEST_SKIP() << "only root can make files of other users";
  }
  std::string openingAsNobody(const std::string &directory) {
    return inChildAs(nobody, [&] { return opening(directory); });
  }
};

} // namespace

TEST_F(Privacy, OwnPrivateDirectoriesAreFine) {
  EXPECT_EQ(opening(make("a", 0700)), "opened");
  EXPECT_EQ(opening(make("b", 0755)), "opened"); // others may read
  EXPECT_EQ(opening(make("c", 0500)), "opened"); // lookups work
}

TEST_F(Privacy, ADirectoryThatOthersCanWriteToIsRefused) {
  for (mode_t mode : {0770, 0707, 0777, 01777, 0720, 0702}) {
    const std::string text = opening(make("m" + std::to_string(mode), mode));
    EXPECT_TRUE(contains(text, "can be written to by others")) << text;
  }
}

TEST_F(Privacy, ASymbolicLinkIsRefused) {
  make("real", 0700);
  const std::string text = opening(link("link", folder.path() + "/real"));
  EXPECT_TRUE(contains(text, "is a symbolic link")) << text;
  EXPECT_TRUE(contains(opening(folder.path() + "/link/"), "is a symbolic link"));
  EXPECT_TRUE(contains(opening(link("dangling", folder.path() + "/none")), "is a symbolic link"));
  EXPECT_TRUE(namesIn(folder.path() + "/real").empty());
}

TEST_F(Privacy, AFileIsRefused) {
  writeBytes(folder.path() + "/file", "x");
  EXPECT_TRUE(contains(opening(folder.path() + "/file"), "is not a directory"));
  EXPECT_TRUE(contains(opening(folder.path() + "/file/kiln"), "'file' on the way to it is a file"));
  ASSERT_EQ(::mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(contains(opening(folder.path() + "/pipe"), "is not a directory"));
}

TEST_F(Privacy, OddNamesAreRefused) {
  EXPECT_TRUE(contains(opening(""), "no name"));
  EXPECT_TRUE(contains(opening("/"), "root of all files"));
  EXPECT_TRUE(contains(opening("//.//"), "root of all files"));
  EXPECT_TRUE(contains(opening(folder.path() + "/" + std::string(300, 'n')), "File name too long"));
  EXPECT_TRUE(contains(opening(folder.path() + std::string("/a\0b", 4)), "is not an absolute path"));
  EXPECT_TRUE(contains(opening(folder.path() + "/" + std::string(300, 'n') + "/kiln"), "File name too long"));
}

TEST_F(Privacy, OwnLinksOnTheWayAreFollowed) {
  make("real", 0700);
  link("absolute", folder.path() + "/real");
  link("relative", "real");
  link("twice", "./absolute");
  link("up", "real/../relative");
  for (const char *name : {"absolute", "relative", "twice", "up"}) {
    EXPECT_EQ(opening(folder.path() + "/" + name + "/" + name), "opened");
    EXPECT_EQ(::access((folder.path() + "/real/" + name).c_str(), F_OK), 0);
  }
  link("round", "round");
  EXPECT_TRUE(contains(opening(folder.path() + "/round/kiln"), "more than 40 symbolic links"));
}

TEST_F(Privacy, ALinkInADirectoryThatAnyoneCanWriteToIsRefused) {
  const std::string open = make("open", 0777);
  make("real", 0700);
  link("open/link", folder.path() + "/real");
  EXPECT_TRUE(contains(opening(open + "/link/kiln"), "could be replaced by others: 'open' on the way to it can be"));
  ASSERT_EQ(::chmod(open.c_str(), 01777), 0); // like /tmp: only its owner renames it
  EXPECT_EQ(opening(open + "/link/kiln"), "opened");
}

TEST_F(Privacy, AFolderOnTheWayThatOthersCanWriteToIsRefused) {
  for (mode_t mode : {0777, 0757, 0733}) {
    const std::string name = "m" + std::to_string(mode);
    make(name, mode);
    make(name + "/kiln", 0700);
    const std::string text = opening(folder.path() + "/" + name + "/kiln");
    EXPECT_TRUE(contains(text, "could be replaced by others: '" + name + "' on the way to it can be written to by"))
        << text;
    EXPECT_TRUE(contains(text, "set KILN_CACHE_DIR to a directory below folders that only you, or root, may change"));
    EXPECT_TRUE(namesIn(folder.path() + "/" + name + "/kiln").empty());
  }
}

/// A directory in a place that anyone can write to is fine: it is opened once, and what was opened is checked.
TEST_F(Privacy, ADirectoryInAPublicPlaceIsFine) {
  make("tmp", 01777);
  EXPECT_EQ(opening(folder.path() + "/tmp/kiln"), "opened");
}

TEST_F(Privacy, LosingItsPrivacyEndsHits) {
  const std::string where = make("kiln", 0700);
  const auto cache = openCache(where);
  ASSERT_TRUE(cache->store(sampleKey(1), sampleEntry(1)).ok());
  ASSERT_EQ(::chmod(where.c_str(), 0777), 0);
  MissReason why = MissReason::None;
  const auto found = cache->lookup(sampleKey(1), &why);
  ASSERT_FALSE(found.ok());
  EXPECT_TRUE(contains(found.status().message(), "can be written to by others"));
  EXPECT_EQ(why, MissReason::Failed);
  EXPECT_FALSE(cache->store(sampleKey(2), sampleEntry(2)).ok());
  EXPECT_FALSE(cache->lockForCompile(sampleKey(2), std::chrono::milliseconds(0)).ok());
  EXPECT_FALSE(cache->list().ok());
  EXPECT_EQ(cache->counters().lookupFailures, 1u);
  ASSERT_EQ(::chmod(where.c_str(), 0700), 0);
  ASSERT_TRUE(cache->lookup(sampleKey(1)).ok());
}

TEST_F(Privacy, AnEntryThatOthersCanWriteToIsAMiss) {
  const std::string where = make("kiln", 0700);
  const auto cache = openCache(where);
  ASSERT_TRUE(cache->store(sampleKey(1), sampleEntry(1)).ok());
  const std::string path = entryPathOf(sampleKey(1), where);
  for (mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    MissReason why = MissReason::None;
    ASSERT_TRUE(cache->lookup(sampleKey(1), &why).ok());
    EXPECT_EQ(why, MissReason::Damaged);
  }
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  const auto found = cache->lookup(sampleKey(1));
  EXPECT_TRUE(found.ok() && found->has_value());
}

TEST_F(Privacy, AHostilePendingFolderFailsStoresAndNotLookups) {
  const std::string where = make("kiln", 0700);
  const auto cache = openCache(where);
  ASSERT_TRUE(cache->store(sampleKey(1), sampleEntry(1)).ok());
  ASSERT_EQ(::chmod((where + "/pending").c_str(), 0777), 0);
  const Status stored = cache->store(sampleKey(2), sampleEntry(2));
  EXPECT_TRUE(contains(stored.toString(), "is not private")) << stored.toString();
  EXPECT_TRUE(cache->lookup(sampleKey(1))->has_value());
  ASSERT_EQ(::rmdir((where + "/pending").c_str()), 0);
  link("kiln/pending", folder.path());
  EXPECT_FALSE(cache->store(sampleKey(2), sampleEntry(2)).ok());
  EXPECT_FALSE(cache->lockForCompile(sampleKey(2), std::chrono::milliseconds(0)).ok());
  EXPECT_EQ(namesIn(folder.path()), std::vector<std::string>{"kiln"});
}

TEST_F(PrivacyAsNobody, WorksInADirectoryOfItsOwn) {
  const std::string where = make("kiln", 0700, nobody);
  EXPECT_EQ(inChildAs(nobody,
                      [&]() -> std::string {
                        const auto cache = openCache(where);
                        const Status stored = cache->store(sampleKey(1), sampleEntry(1));
                        const auto found = cache->lookup(sampleKey(1));
                        return stored.ok() && found.ok() && *found && **found == sampleEntry(1) ? "hit" : "no hit";
                      }),
            "hit");
}

TEST_F(PrivacyAsNobody, ADirectoryOfAnotherUserIsRefused) {
  for (mode_t mode : {0755, 0777, 01777, 0700}) {
    const std::string name = std::to_string(mode);
    const std::string ofRoot = openingAsNobody(make("r" + name, mode));
    const std::string ofStranger = openingAsNobody(make("s" + name, mode, stranger));
    if (mode == 0700) {
      EXPECT_TRUE(contains(ofRoot, "Permission denied")) << ofRoot;
      EXPECT_TRUE(contains(ofStranger, "Permission denied")) << ofStranger;
      continue;
    }
    EXPECT_TRUE(contains(ofRoot, "belongs to user 0, this process runs as user 65534")) << ofRoot;
    EXPECT_TRUE(contains(ofStranger, "belongs to user 65533, this process runs as user 65534")) << ofStranger;
  }
  // Root may write everywhere, which makes it no more its own.
  const std::string text = opening(make("n", 0700, nobody));
  EXPECT_TRUE(contains(text, "belongs to user 65534, this process runs as user 0")) << text;
}

TEST_F(PrivacyAsNobody, ADirectoryThatCannotBeMadeIsRefused) {
  const std::string text = openingAsNobody(folder.path() + "/new");
  EXPECT_TRUE(contains(text, "Permission denied")) << text;
  EXPECT_EQ(::access((folder.path() + "/new").c_str(), F_OK), -1);
}

TEST_F(PrivacyAsNobody, LinksOfStrangersAreRefused) {
  make("tmp", 01777);
  make("mine", 0700, nobody);
  make("theirs", 0755, stranger);
  link("tmp/ours", folder.path() + "/mine", nobody);
  link("tmp/theirs", folder.path() + "/mine", stranger);
  link("tmp/roots", folder.path() + "/mine");
  link("theirs/ours", folder.path() + "/mine", nobody); // its directory's owner could replace it
  EXPECT_EQ(openingAsNobody(folder.path() + "/tmp/ours/a"), "opened");
  EXPECT_EQ(openingAsNobody(folder.path() + "/tmp/roots/b"), "opened");
  const std::string link = openingAsNobody(folder.path() + "/tmp/theirs/c");
  EXPECT_TRUE(contains(link, "which another user could replace")) << link;
  const std::string parent = openingAsNobody(folder.path() + "/theirs/ours/d");
  EXPECT_TRUE(contains(parent, "'theirs' on the way to it belongs to user 65533")) << parent;
}

/// A directory of our own that a stranger moves to where the cache is expected (an archive that we unpacked) would be
/// trusted: so no stranger may be able to.
TEST_F(PrivacyAsNobody, FoldersOfStrangersOnTheWayAreRefused) {
  make("theirs", 0755, stranger);
  make("theirs/kiln", 0700, nobody);
  make("roots", 0755);
  make("roots/kiln", 0700, nobody);
  const std::string text = openingAsNobody(folder.path() + "/theirs/kiln");
  EXPECT_TRUE(contains(text, "could be replaced by others: 'theirs' on the way to it belongs to user 65533")) << text;
  EXPECT_EQ(openingAsNobody(folder.path() + "/roots/kiln"), "opened");
}

TEST_F(PrivacyAsNobody, AnEntryOfAnotherUserIsAMiss) {
  const std::string where = make("kiln", 0700);
  const auto cache = openCache(where);
  ASSERT_TRUE(cache->store(sampleKey(1), sampleEntry(1)).ok());
  ASSERT_EQ(::chown(entryPathOf(sampleKey(1), where).c_str(), nobody, nobody), 0);
  MissReason why = MissReason::None;
  ASSERT_TRUE(cache->lookup(sampleKey(1), &why).ok());
  EXPECT_EQ(why, MissReason::Damaged);
}

TEST_F(PrivacyAsNobody, AReadOnlyCacheGivesHitsAndFailsStores) {
  const std::string where = make("kiln", 0700, nobody);
  EXPECT_EQ(inChildAs(nobody,
                      [&]() -> std::string {
                        if (!openCache(where)->store(sampleKey(1), sampleEntry(1)).ok())
                          return "cannot store";
                        ::chmod((where + "/pending").c_str(), 0500);
                        ::chmod(where.c_str(), 0500);
                        const auto cache = openCache(where);
                        const auto found = cache->lookup(sampleKey(1));
                        if (!found.ok() || !*found)
                          return "no hit";
                        if (cache->lockForCompile(sampleKey(2), std::chrono::milliseconds(0)).ok())
                          return "locked";
                        return cache->store(sampleKey(2), sampleEntry(2)).message();
                      }),
            "cannot create a file in '" + where + "/pending': Permission denied");
}

/// An unreadable entry is a miss with a reason, and the caller goes on.
TEST_F(PrivacyAsNobody, AnUnreadableEntryIsAMiss) {
  const std::string where = make("kiln", 0700, nobody);
  EXPECT_EQ(inChildAs(nobody,
                      [&]() -> std::string {
                        const auto cache = openCache(where);
                        if (!cache->store(sampleKey(1), sampleEntry(1)).ok())
                          return "cannot store";
                        ::chmod(entryPathOf(sampleKey(1), where).c_str(), 0);
                        MissReason why = MissReason::None;
                        const auto found = cache->lookup(sampleKey(1), &why);
                        if (found.ok() || why != MissReason::Failed)
                          return "no failure";
                        if (!cache->store(sampleKey(1), sampleEntry(1)).ok())
                          return "cannot store again";
                        return cache->lookup(sampleKey(1))->has_value() ? "" : "no hit";
                      }),
            "");
}
