// `kiln cache`: what it lists, what it removes, and what it leaves alone.
#include "runtime/cache/KernelCache.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class CacheCliTest : public CliTest {
protected:
  void SetUp() override { setenv("KILN_CACHE_DIR", cache.c_str(), 1); }
  void TearDown() override { unsetenv("KILN_CACHE_DIR"); }

  /// An entry of `kernel`; the first call makes the folder.
  void store(const std::string &kernel, const std::string &target, std::size_t bytes) const {
    cache::CacheOptions options;
    options.directory = cache;
    auto opened = cache::KernelCache::open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().toString();
    cache::KeyText key;
    key.set("kernel", kernel).set("code target", target).set("program", "func.func @" + kernel);
    const Status s = (*opened)->store(key, {cache::EntryKind::Ptx, std::string(bytes, 'p'), "{}"});
    ASSERT_TRUE(s.ok()) << s.toString();
  }
  void storeThree() const {
    store("add", "sm_80", 1000);
    store("add", "sm_90a", 2000);
    store("softmax", "sm_90a", 3000);
  }
  std::vector<std::string> entries() const {
    std::vector<std::string> out;
    for (const auto &e : fs::directory_iterator(cache))
      if (e.path().extension() == ".kernel")
        out.push_back(e.path());
    return out;
  }
  static Json json(const std::vector<std::string> &words, int status = 0) {
    std::vector<std::string> line = words;
    line.insert(line.begin(), "cache");
    line.emplace_back("--json");
    const Outcome o = kiln(line);
    EXPECT_EQ(o.status, status) << o.out << o.err;
    return Json::parse(o.out, nullptr, false);
  }

  const std::string cache = file("cache");
};

TEST_F(CacheCliTest, ACacheThatIsNotThereYetIsEmptyAndStaysAway) {
  const Outcome o = kiln({"cache"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.out, cache + ": no kernel was cached yet\n");
  for (const char *action : {"stats", "verify", "clear", "prune"})
    EXPECT_EQ(json({action})["exists"], false) << action;
  EXPECT_FALSE(fs::exists(cache));
  const Outcome named = kiln({"cache", "--cache-dir", file("nowhere")});
  EXPECT_EQ(named.status, 2);
  EXPECT_NE(named.err.find("there is no folder '" + file("nowhere") + "'"), std::string::npos) << named.err;
}

TEST_F(CacheCliTest, WhyAnEntryWasCompiled) {
  storeThree();
  const Json all = json({"list"});
  const std::string add90 = [&] {
    for (const Json &e : all["entries"])
      if (e["key"]["kernel"] == "add" && e["key"]["code target"] == "sm_90a")
        return e["file"].get<std::string>();
    return std::string();
  }();
  ASSERT_FALSE(add90.empty()) << all.dump(1);
  const Json why = json({"why", add90});
  EXPECT_EQ(why["entry"], add90);
  EXPECT_EQ(why["equalFields"], 2);
  EXPECT_EQ(why["totalFields"], 3);
  ASSERT_EQ(why["differences"].size(), 1u) << why.dump(1);
  EXPECT_EQ(why["differences"][0]["text"], "'sm_90a', the entry has 'sm_80'");
  const Outcome text = kiln({"cache", "why", add90.substr(0, 8)});
  EXPECT_EQ(text.out, "nearest: " + why["nearest"].get<std::string>() +
                          ", 2 of 3 fields equal\n  code target: 'sm_90a', the entry has 'sm_80'\n");
  expectRefused({"cache", "why"}, "needs the name of an entry");
}

/// A kernel that was really compiled, taken out of the cache: its first line makes the same code again.
TEST_F(CacheCliTest, AnEntryIsShownAndTakenApart) {
  const std::string x = floats("x.npy", 64);
  ASSERT_EQ(kiln({"run", "add", "--x", x, "--y", x, "--target", "sm_80"}).status, 0);
  ASSERT_EQ(entries().size(), 1u);
  const std::string name = fs::path(entries()[0]).filename();
  const Outcome shown = kiln({"cache", "show", name.substr(0, 6)});
  ASSERT_EQ(shown.status, 0) << shown.err;
  for (const char *part :
       {"kernel: add", "configuration: ", "code target: sm_80", "num_warps: ", "milliseconds", "tile.kernel"})
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << "\n" << shown.out;
  EXPECT_EQ(json({"show", name})["entry"]["metadata"]["kernel"], "add");
  ASSERT_EQ(kiln({"cache", "extract", name, "-o", file("out")}).status, 0);
  std::ifstream program(file("out/add.mlir")), ptx(file("out/add.ptx"));
  std::string first;
  std::getline(program, first);
  ASSERT_TRUE(first.starts_with("// kiln compile 'add.mlir' ")) << first;
  const std::string again =
      "cd '" + file("out") + "' && PATH=" KILN_BINARY_DIR "/bin:$PATH && " + first.substr(3) + " -o again.ptx";
  ASSERT_EQ(std::system(again.c_str()), 0) << again;
  std::ifstream made(file("out/again.ptx"));
  const std::string stored(std::istreambuf_iterator<char>(ptx), {}), compiled(std::istreambuf_iterator<char>(made), {});
  EXPECT_FALSE(stored.empty());
  EXPECT_TRUE(compiled == stored);
  EXPECT_TRUE(fs::exists(file("out/add.json")));
  expectRefused({"cache", "show", "zz"}, "the cache has no entry 'zz'");
  expectRefused({"cache", "show"}, "needs the name of an entry");
  expectRefused({"cache", "list", name}, "takes no entry");
}

TEST_F(CacheCliTest, ListNamesKernelTargetSizeAndAges) {
  storeThree();
  const Outcome o = kiln({"cache", "list"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("softmax  sm_90a  no (PTX)   3."), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("3 entries, 6."), std::string::npos) << o.out;
  const Json j = json({});
  ASSERT_EQ(j["entries"].size(), 3u);
  for (const Json &e : j["entries"]) {
    EXPECT_LT(e["idleSeconds"], 60);
    if (e.contains("ageSeconds")) { // where the file system knows
      EXPECT_LT(e["ageSeconds"], 60);
    }
    EXPECT_EQ(e["kind"], "ptx");
    EXPECT_TRUE(e["key"].contains("code target"));
    EXPECT_FALSE(e["key"].contains("program"));
  }
  EXPECT_EQ(kiln({"cache", "--cache-dir", cache}).out, o.out);
}

TEST_F(CacheCliTest, StatsSumByKernelAndTarget) {
  storeThree();
  const Json j = json({"stats"});
  EXPECT_EQ(j["entries"], 3);
  EXPECT_EQ(j["kernels"]["add"]["entries"], 2);
  EXPECT_EQ(j["targets"]["sm_90a"]["entries"], 2);
  EXPECT_EQ(j["maxBytes"], 1u << 30);
  std::uint64_t bytes = 0;
  for (const std::string &path : entries())
    bytes += fs::file_size(path);
  EXPECT_EQ(j["bytes"], bytes);
}

TEST_F(CacheCliTest, VerifyNamesDamagedEntriesAndPruneRemovesThem) {
  storeThree();
  EXPECT_EQ(json({"verify"})["damaged"].size(), 0u);
  const std::string victim = entries()[1];
  {
    std::fstream f(victim, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(-100, std::ios::end);
    f.put('q');
  }
  const Outcome o = kiln({"cache", "verify"});
  EXPECT_EQ(o.status, 1) << o.out << o.err;
  EXPECT_NE(o.out.find(victim + ": "), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("2 of 3 entries are good"), std::string::npos) << o.out;
  const Json j = json({"verify"}, 1);
  ASSERT_EQ(j["damaged"].size(), 1u);
  EXPECT_EQ(j["damaged"][0]["file"], fs::path(victim).filename().string());
  EXPECT_EQ(entries().size(), 3u); // verify only looks
  EXPECT_EQ(json({"prune", "--damaged"})["removed"], 1);
  EXPECT_FALSE(fs::exists(victim));
  EXPECT_EQ(entries().size(), 2u);
}

TEST_F(CacheCliTest, PruneKeepsWhatWasUsedLast) {
  storeThree();
  std::string oldest;
  for (const std::string &path : entries()) // the largest is the one that was not used for longest
    if (oldest.empty() || fs::file_size(path) > fs::file_size(oldest))
      oldest = path;
  fs::last_write_time(oldest, fs::file_time_type::clock::now() - std::chrono::hours(72));
  EXPECT_EQ(json({"prune"})["removed"], 0); // far below the setting
  EXPECT_EQ(json({"prune", "--max-idle", "4d"})["removed"], 0);
  EXPECT_EQ(json({"prune", "--max-size", "4K"})["removed"], 1);
  EXPECT_FALSE(fs::exists(oldest));
  fs::last_write_time(entries()[0], fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_EQ(json({"prune", "--max-idle", "90m"})["removed"], 1);
  EXPECT_EQ(json({"prune", "--max-size", "0"})["removed"], 1);
  EXPECT_TRUE(entries().empty());
}

TEST_F(CacheCliTest, ClearRemovesWhatTheCacheWroteAndNothingElse) {
  storeThree();
  for (const char *name : {"notes.txt", "mine.kernel", "identities/readme"}) {
    fs::create_directories(fs::path(cache + "/" + name).parent_path());
    fs::permissions(fs::path(cache + "/" + name).parent_path(), fs::perms::owner_all);
    std::ofstream(cache + "/" + name) << "mine";
  }
  const Outcome o = kiln({"cache", "clear"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("3 entries removed"), std::string::npos) << o.out;
  for (const char *name : {"notes.txt", "mine.kernel", "identities/readme"})
    EXPECT_TRUE(fs::exists(cache + "/" + name)) << name;
  EXPECT_EQ(entries(), std::vector<std::string>{cache + "/mine.kernel"});
}

TEST_F(CacheCliTest, TheCacheOfARunIsListedAndClearedWhole) {
  const std::string x = floats("x.npy", 64);
  ASSERT_EQ(kiln({"run", KILN_SOURCE_DIR "/docs/examples/scale.mlir", "--grid", "1", "--arg", x, "--arg", "out:f32:64",
                  "--arg", "f32:1", "--arg", "i32:64", "--target", "sm_80"})
                .status,
            0);
  const Json j = json({});
  ASSERT_EQ(j["entries"].size(), 1u);
  EXPECT_EQ(j["entries"][0]["key"]["kernel"], "scale");
  EXPECT_FALSE(fs::is_empty(cache + "/descriptions"));
  EXPECT_EQ(json({"clear"})["removed"], 1);
  for (const auto &e : fs::recursive_directory_iterator(cache))
    EXPECT_TRUE(e.is_directory()) << e.path();
}

TEST_F(CacheCliTest, HostileFoldersAreRefused) {
  storeThree();
  fs::permissions(cache, fs::perms::others_write, fs::perm_options::add);
  for (const char *action : {"list", "stats", "verify", "clear", "prune"}) {
    const Outcome o = kiln({"cache", action});
    EXPECT_EQ(o.status, 2) << action << o.out;
    EXPECT_EQ(o.out, "");
    EXPECT_NE(o.err.find(cache), std::string::npos) << o.err;
  }
  EXPECT_EQ(entries().size(), 3u);
  fs::permissions(cache, fs::perms::others_write, fs::perm_options::remove);
  EXPECT_EQ(json({})["entries"].size(), 3u);
  // A link in place of the folder, a file in place of the folder.
  fs::create_directory_symlink(cache, file("link"));
  EXPECT_EQ(kiln({"cache", "clear", "--cache-dir", file("link")}).status, 2);
  EXPECT_EQ(kiln({"cache", "clear", "--cache-dir", write("file", "x")}).status, 2);
  EXPECT_EQ(entries().size(), 3u);
  // A link in place of an entry is removed, what it points to is not.
  write("victim", "mine");
  const std::string entry = entries()[0];
  fs::remove(entry);
  fs::create_symlink(file("victim"), entry);
  EXPECT_EQ(json({"verify"}, 1)["damaged"].size() + json({"verify"}, 1).value("unreadable", Json::array()).size(), 1u);
  EXPECT_EQ(json({"clear"})["removed"], 3);
  EXPECT_TRUE(fs::exists(file("victim")));
}

TEST_F(CacheCliTest, AFolderOfAnotherUserIsRefused) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can make a folder of another user";
  storeThree();
  ASSERT_EQ(::chown(cache.c_str(), 65534, 65534), 0);
  const Outcome o = kiln({"cache", "clear"});
  EXPECT_EQ(o.status, 2) << o.out;
  EXPECT_NE(o.err.find(cache), std::string::npos) << o.err;
  EXPECT_EQ(entries().size(), 3u);
}

TEST_F(CacheCliTest, WrongUsesAreNamed) {
  const auto refused = [](std::vector<std::string> words, const std::string &part) {
    words.insert(words.begin(), "cache");
    const Outcome o = kiln(words);
    EXPECT_EQ(o.status, 2) << o.out;
    EXPECT_NE(o.err.find(part), std::string::npos) << part << "\n" << o.err;
  };
  refused({"empty"}, "empty");
  refused({"clear", "--max-size", "1M"}, "options of kiln cache prune");
  refused({"prune", "--max-size", "lots"}, "--max-size 'lots' is no number of bytes");
  storeThree();
  refused({"prune", "--max-idle", "soon"}, "--max-idle soon: expected a time");
  refused({"prune", "--max-idle", "-1d"}, "expected a time");
  EXPECT_EQ(entries().size(), 3u);
  setenv("KILN_CACHE_DIR", "off", 1);
  refused({}, "switched off");
}

} // namespace
} // namespace kiln::test
