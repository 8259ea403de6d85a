// Kernels that others have compiled: of a folder that is only read, and of a server.
#include "tests/cache/remote/FakeServer.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <sys/stat.h>

namespace kiln::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class SharedCacheCliTest : public CliTest {
protected:
  void TearDown() override {
    for (const char *name : {"KILN_CACHE_DIR", "KILN_CACHE_SHARED", "KILN_CACHE_SERVER", "KILN_CACHE_SECRET"})
      unsetenv(name);
  }

  struct Ran {
    Json report;
    std::string err;
    /// "compiled", "from disk", "shared" counts.
    std::vector<int> counts() const {
      return {report.value("compiles", -1), report.value("diskHits", -1), report.value("sharedHits", -1)};
    }
  };
  /// A kernel, with the cache in folder `cache` of the test's.
  Ran run(const std::string &cache) {
    setenv("KILN_CACHE_DIR", file(cache).c_str(), 1);
    const Outcome o = kiln({"run", "copy", "--input", floats("x.npy", 100), "--output", file("y.npy"), "--device",
                            "emulator:sm_80", "--json"});
    EXPECT_EQ(o.status, 0) << o.err;
    return {Json::parse(o.out, nullptr, false), o.err};
  }
  unsigned entriesIn(const std::string &cache) const {
    unsigned n = 0;
    for (const std::string &name : cache::test::namesIn(file(cache)))
      n += name.ends_with(".kernel");
    return n;
  }
};

using Counts = std::vector<int>;

TEST_F(SharedCacheCliTest, AFolderThatIsReadOnly) {
  EXPECT_EQ(run("image").counts(), (Counts{1, 0, 0}));
  setenv("KILN_CACHE_SHARED", (file("none") + ":" + file("image")).c_str(), 1);
  const Ran second = run("mine");
  EXPECT_EQ(second.counts(), (Counts{0, 0, 1}));
  EXPECT_EQ(second.report["firstCalls"][0]["source"], "shared");
  EXPECT_EQ(entriesIn("mine"), 0u) << "it lies on this disk already";
  EXPECT_EQ(run("mine").counts(), (Counts{0, 0, 1}));
  // Whoever can write there could give this program code.
  for (const auto &entry : fs::directory_iterator(file("image")))
    if (entry.path().extension() == ".kernel")
      fs::permissions(entry.path(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(run("mine").counts(), (Counts{1, 0, 0}));
  EXPECT_EQ(run("mine").counts(), (Counts{0, 1, 0}));
}

TEST_F(SharedCacheCliTest, AServer) {
  if (!cache::test::redisLibrary())
    GTEST_SKIP() << "libkiln-redis.so was not built: hiredis or libsodium is missing";
  const auto server = cache::test::RealServer::start();
  if (!server)
    GTEST_SKIP() << "redis-server is not installed";
  setenv("KILN_CACHE_SERVER", server->address().text().c_str(), 1);
  const Ran without = run("first");
  EXPECT_EQ(without.counts(), (Counts{1, 0, 0}));
  EXPECT_NE(without.err.find("the cache's server is not used: a server is named, and no secret"),
            std::string::npos)
      << without.err;
  const std::string secret = write("secret", "a secret that machines share\n");
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  setenv("KILN_CACHE_SECRET", secret.c_str(), 1);
  EXPECT_EQ(run("second").counts(), (Counts{1, 0, 0})) << "the first one sent nothing";
  const Ran third = run("third");
  EXPECT_EQ(third.counts(), (Counts{0, 0, 1})) << third.err;
  EXPECT_EQ(third.err, "");
  EXPECT_EQ(entriesIn("third"), 1u);
  EXPECT_EQ(run("third").counts(), (Counts{0, 1, 0})) << "copied";
  // Another secret: a line, and a compile.
  ASSERT_EQ(write("secret", "another secret, as long as that one\n"), secret);
  const Ran stranger = run("fourth");
  EXPECT_EQ(stranger.counts(), (Counts{1, 0, 0}));
  EXPECT_NE(stranger.err.find("is not signed with this secret"), std::string::npos) << stranger.err;
}

TEST_F(SharedCacheCliTest, AServerThatHangs) {
  if (!cache::test::redisLibrary())
    GTEST_SKIP() << "libkiln-redis.so was not built: hiredis or libsodium is missing";
  const cache::test::FakeServer silent(cache::test::answering(""));
  const std::string secret = write("secret", "a secret that machines share\n");
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  setenv("KILN_CACHE_SECRET", secret.c_str(), 1);
  setenv("KILN_CACHE_SERVER", silent.address().text().c_str(), 1);
  const Ran ran = run("mine");
  EXPECT_EQ(ran.counts(), (Counts{1, 0, 0}));
  EXPECT_NE(ran.err.find("is not asked any more"), std::string::npos) << ran.err;
  for (const Json &stage : ran.report["firstCalls"][0]["stages"])
    if (stage["name"].get<std::string>().starts_with("lookup in redis://")) {
      EXPECT_LT(stage["milliseconds"].get<double>(), 1500) << "of 200, on a busy machine";
    }
}

} // namespace
} // namespace kiln::test
