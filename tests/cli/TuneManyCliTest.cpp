// `kiln tune` on many machines: workers of a queue and ranks of an MPI job, which come, go and are killed.  Whatever
// happens to them, the result is the one of a sweep on this machine.
#include "runtime/io/File.h"
#include "support/Text.h"
#include "tests/cache/remote/FakeServer.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class TuneManyCliTest : public CachedCliTest {
protected:
  /// Six configurations.
  static Words sweep(const Words &more) {
    Words out = {"tune",   "matmul",    "--dtype", "bf16",         "--target", "sm_90a",     "--with", "a=64x64",
                 "--with", "b=64x64",   "--set",   "block_m=64",   "--set",    "block_n=64", "--set",  "block_k=64",
                 "--set",  "warps=4,8", "--set",   "stages=2,3,4", "--search", "exhaustive", "--json"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::string read(const std::string &name) const {
    const auto text = readTextFile(file(name));
    return text ? *text : "";
  }
  std::size_t linesOf(const std::string &name) const {
    const std::string text = read(name);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  /// What a journal says of each configuration, but when and how long it took to find out; and its header.
  std::map<std::string, Json> resultsOf(const std::string &journal) const {
    std::map<std::string, Json> out;
    const std::string text = read(journal);
    for (std::string_view line : split(text, '\n')) {
      Json entry = Json::parse(line, nullptr, false);
      if (!entry.is_object())
        continue;
      entry.erase("seconds");
      entry.erase("time");
      const std::string key = entry.value("configuration", Json()).dump();
      EXPECT_TRUE(out.emplace(key, std::move(entry)).second) << key << " stands in " << journal << " twice";
    }
    return out;
  }
  /// The part of a report that does not depend on the order of the measurements.
  static Json bestOf(const std::string &report) {
    Json best = Json::parse(report, nullptr, false).value("sweep", Json::object()).value("best", Json::array());
    for (Json &entry : best) {
      entry.erase("seconds");
      entry.erase("time");
    }
    return best;
  }
  void expectSame(const std::string &journal, const std::string &report) {
    if (alone.empty()) {
      const Outcome o = kiln(sweep({"--journal", file("alone")}));
      ASSERT_EQ(o.status, 0) << o.err;
      alone = resultsOf("alone");
      best = bestOf(o.out);
    }
    ASSERT_EQ(alone.size(), 7u);
    EXPECT_EQ(resultsOf(journal), alone);
    EXPECT_EQ(bestOf(report), best);
  }
  std::map<std::string, Json> alone;
  Json best;
};

/// As the tasks of an array sweep it, each a part of the space.
TEST_F(TuneManyCliTest, PartsThatAreMergedGiveTheSame) {
  for (const char *warps : {"4", "8"}) {
    Words part = sweep({"--journal", file(std::string("part") + warps)});
    *std::find(part.begin(), part.end(), "warps=4,8") = std::string("warps=") + warps;
    const Outcome o = kiln(part);
    ASSERT_EQ(o.status, 0) << o.err;
  }
  ASSERT_EQ(kiln({"tune", "merge", file("whole"), file("part4"), file("part8")}).status, 0);
  const std::string before = read("whole");
  const Outcome o = kiln(sweep({"--journal", file("whole")}));
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(read("whole"), before) << "something was measured again";
  expectSame("whole", o.out);
}

class TuneQueueCliTest : public TuneManyCliTest {
protected:
  void SetUp() override {
    TuneManyCliTest::SetUp();
    if (!cache::test::redisLibrary())
      GTEST_SKIP() << "libkiln-redis.so was not built: hiredis or libsodium is missing";
    const std::string secret = write("secret", "a secret that machines share\n");
    ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
    setenv("KILN_CACHE_SECRET", secret.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("KILN_CACHE_SECRET");
    TuneManyCliTest::TearDown();
  }
};

TEST_F(TuneQueueCliTest, WorkersComeAndGoAndTheResultIsTheSame) {
  const auto server = cache::test::RealServer::start();
  if (!server)
    GTEST_SKIP() << "redis-server is not installed";
  const std::string queue = server->address().text() + "#test";
  // Another kind of device: it refuses, and the others do the work.
  const auto other = std::async(std::launch::async, [&] {
    return kiln({"tune", "--work", queue, "--target", "sm_80", "--idle", "4", "--json"});
  });
  const auto ask = [&](const std::string &journal) {
    return std::async(std::launch::async, [&, journal] {
      return kiln(sweep({"--queue", queue, "--patience", "1.5", "--journal", file(journal)}));
    });
  };
  auto asked = ask("many");
  const pid_t doomed = startKiln({"tune", "--work", queue, "--patience", "1.5"});
  for (unsigned waited = 0; linesOf("many") < 2 && waited < 60000; waited += 10)
    ::usleep(10'000);
  ::kill(doomed, SIGKILL);
  ASSERT_EQ(::waitpid(doomed, nullptr, 0), doomed);
  ASSERT_GE(linesOf("many"), 2u);
  ASSERT_LT(linesOf("many"), 7u);
  const pid_t next = startKiln({"tune", "--work", queue});
  const Outcome many = asked.get();
  EXPECT_EQ(many.status, 0) << many.err;
  expectSame("many", many.out);
  // A worker that is asked to end does so by itself.
  ::kill(next, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(next, &status, 0), next);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(TuneQueueCliTest, AWorkerOfAnotherKindSaysSoOnBothSides) {
  const auto server = cache::test::RealServer::start();
  if (!server)
    GTEST_SKIP() << "redis-server is not installed";
  const std::string queue = server->address().text();
  auto other = std::async(std::launch::async, [&] {
    return kiln({"tune", "--work", queue, "--target", "sm_80", "--idle", "3", "--json"});
  });
  const Outcome asked = kiln(sweep({"--queue", queue, "--time", "2", "--journal", file("j")}));
  EXPECT_EQ(asked.status, 1) << asked.out << asked.err; // nothing was measured
  const std::string part = "the sweep is not one of this worker: its target is \"sm_80\", not \"sm_90a\"";
  EXPECT_NE(asked.err.find("takes no part: " + part), std::string::npos) << asked.err;
  const Outcome refused = other.get();
  EXPECT_EQ(refused.status, 0) << refused.err;
  EXPECT_EQ(Json::parse(refused.out, nullptr, false).value("measured", 1), 0) << refused.out;
  EXPECT_NE(refused.err.find("is refused: " + part), std::string::npos) << refused.err;
  EXPECT_EQ(linesOf("j"), 1u);
}

TEST_F(TuneQueueCliTest, QueuesThatAreNone) {
  const auto refused = [&](const Words &more, const std::string &part) {
    Words words = sweep(more);
    words.erase(std::find(words.begin(), words.end(), "--json"));
    const Outcome o = kiln(words);
    EXPECT_EQ(o.status, 2) << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
    EXPECT_NE(o.err.find('('), std::string::npos) << "no remedy: " << o.err;
  };
  write("journal", "not a journal\n");
  refused({"--queue", "host:port"}, "has 'port' for a port");
  refused({"--queue", "host#a b"}, "the queue's name, after #, is not 1 to 64 letters");
  refused({"--queue", "unix://" + file("none") + "#a", "--journal", file("journal")},
          "the queue's server cannot be used: unix://" + file("none") + ": No such file or directory");
  refused({"--queue", "host", "--mpi"}, "--queue and --mpi: one of them");
  refused({"--queue", "host", "--patience", "0"}, "--patience is 0.1 to 3600 seconds");
  const cache::test::FakeServer silent(cache::test::answering(""));
  refused({"--queue", silent.address().text(), "--patience", "0.3"}, "no answer in time");
  expectRefused({"tune", "--work", "host#a", "matmul"}, "--work takes kernels and calls from the queue");
  expectRefused({"tune", "--work", silent.address().text(), "--patience", "0.3"}, "no answer in time");
  expectRefused({"tune", "matmul", "--queue", "host", "--devices", "0-1"},
                "with --queue and --mpi the workers measure");
  unsetenv("KILN_CACHE_SECRET");
  refused({"--queue", silent.address().text()}, "a server is named, and no secret");
  EXPECT_EQ(read("journal"), "not a journal\n");
}

class TuneMpiCliTest : public TuneManyCliTest {
protected:
  void SetUp() override {
    TuneManyCliTest::SetUp();
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    GTEST_SKIP() << "Open MPI is not built for sanitizers";
#endif
    if (!std::filesystem::exists(KILN_BINARY_DIR "/bin/libkiln-mpi.so") ||
        std::system("mpirun --version >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "libkiln-mpi.so was not built, or mpirun is not installed";
  }
  /// Four ranks; their output is in files of this name.
  pid_t start(const std::string &name, const Words &words) const {
    Words all = {"timeout", "-k", "5", "60", "mpirun", "--oversubscribe", "-n", "4"};
    if (::geteuid() == 0)
      all.emplace_back("--allow-run-as-root");
    all.emplace_back(KILN_BINARY_DIR "/bin/kiln");
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char *> arguments;
    for (std::string &word : all)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::string out = file(name + ".out"), err = file(name + ".err");
    const pid_t child = ::fork();
    if (child != 0)
      return child;
    ::dup2(::open(out.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), 1);
    ::dup2(::open(err.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), 2);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  Outcome finish(pid_t job, const std::string &name) const {
    int status = 0;
    EXPECT_EQ(::waitpid(job, &status, 0), job);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(name + ".out"), read(name + ".err")};
  }
  /// Sends the signal to rank 2 of the job that has this journal, as soon as that has a result.
  void signalRank(const std::string &journal, int signal) const {
    for (unsigned waited = 0; linesOf(journal) < 2 && waited < 60000; waited += 5)
      ::usleep(5'000);
    for (const auto &process : std::filesystem::directory_iterator("/proc")) {
      const auto about = [&](const char *what) {
        std::ifstream in(process.path() / what, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
      };
      // Neither mpirun, nor what the rank has started.
      const std::string words = about("cmdline");
      if (words.starts_with(KILN_BINARY_DIR "/bin/kiln") && words.find(file(journal) + '\0') != words.npos &&
          about("environ").find("OMPI_COMM_WORLD_RANK=2") != std::string::npos)
        ::kill(std::stoi(process.path().filename().string()), signal);
    }
  }
};

TEST_F(TuneMpiCliTest, RanksGiveTheSameAsOneMachine) {
  const Outcome o = finish(start("job", sweep({"--mpi", "--journal", file("ranks")})), "job");
  EXPECT_EQ(o.status, 0) << o.err;
  expectSame("ranks", o.out);
}

/// Open MPI ends the whole job; the journal has what was done, and the same command does the rest.
TEST_F(TuneMpiCliTest, AJobThatLostARankGoesOnFromItsJournal) {
  for (unsigned tried = 0; tried < 5; ++tried) { // a rank may be lost too late to matter
    const std::string journal = "j" + std::to_string(tried);
    const pid_t job = start(journal, sweep({"--mpi", "--journal", file(journal)}));
    signalRank(journal, SIGKILL);
    if (finish(job, journal).status == 0 || linesOf(journal) == 7)
      continue;
    const std::string before = read(journal);
    const Outcome again = finish(start("again", sweep({"--mpi", "--journal", file(journal)})), "again");
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_TRUE(read(journal).starts_with(before));
    expectSame(journal, again.out);
    return;
  }
  ADD_FAILURE() << "five sweeps were done before a rank was lost";
}

/// Others measure what it did not, and rank 0 reports.  How the job ends then is no matter of Kiln's: mpirun of Open
/// MPI 4.1 may crash or never end after a rank that hangs.
TEST_F(TuneMpiCliTest, ARankThatHangsIsDoneWithout) {
  bool isLost = false;
  for (unsigned tried = 0; !isLost && tried < 5; ++tried) { // one that is stopped too late had nothing to do
    const std::string name = "hung" + std::to_string(tried);
    const pid_t job = start(name, sweep({"--mpi", "--patience", "1.5", "--journal", file(name)}));
    signalRank(name, SIGSTOP);
    const auto hasReport = [&] { return Json::accept(read(name + ".out")); };
    for (unsigned waited = 0; !hasReport() && waited < 45000; waited += 50)
      ::usleep(50'000);
    ::kill(-job, SIGKILL); // a group of its own, which `timeout` makes
    signalRank(name, SIGKILL);
    finish(job, name);
    ASSERT_TRUE(hasReport()) << read(name + ".err");
    expectSame(name, read(name + ".out"));
    isLost = read(name + ".err").find("worker rank 2 was lost while it measured") != std::string::npos;
  }
  EXPECT_TRUE(isLost);
}

TEST_F(TuneMpiCliTest, JobsThatAreNone) {
  Words words = sweep({"--mpi"});
  words.erase(std::find(words.begin(), words.end(), "--json"));
  const Outcome one = kiln(words);
  EXPECT_EQ(one.status, 2);
  EXPECT_NE(one.err.find("this is the only rank of its job"), std::string::npos) << one.err;
  const Outcome wrong = finish(start("wrong", {"tune", "matmull", "--target", "sm_90a", "--mpi"}), "wrong");
  EXPECT_EQ(wrong.status, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("did you mean matmul?"), std::string::npos) << wrong.err;
}

} // namespace
} // namespace kiln::test
