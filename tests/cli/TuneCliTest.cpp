// `kiln tune`: spaces and their errors, sweeps on the emulator, journals, replays.
#include "tests/cli/Program.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class TuneCliTest : public CachedCliTest {
protected:
  /// A product of 64 x 64 x 64 with the parameters that a test names; the others stay.
  static Words product(Words more) {
    Words out = {"tune",   "matmul",  "--dtype", "bf16",       "--target", "sm_90a",     "--with", "a=64x64",
                 "--with", "b=64x64", "--set",   "block_m=64", "--set",    "block_n=64", "--set",  "block_k=64"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  static Json json(Words words, int status = 0) {
    words.emplace_back("--json");
    const Outcome o = kiln(words);
    EXPECT_EQ(o.status, status) << o.out << o.err;
    return Json::parse(o.out, nullptr, false);
  }
  std::string read(const std::string &name) const {
    std::ifstream in(file(name), std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
};

TEST_F(TuneCliTest, DryRunCountsEveryConfigurationOnce) {
  const Words words = {"tune", "attention", "--target", "sm_90a", "--with", "q=1x512x4x128", "--with", "k=1x512x4x128",
                       "--with", "v=1x512x4x128", "--dry-run", "--keep", "10"};
  const Json j = json(words);
  const Json &space = j["space"];
  EXPECT_EQ(space["size"], 5 * 5 * 6 * 8);
  EXPECT_EQ(space["kept"], 10);
  std::size_t all = space["kept"];
  std::set<std::string> rules;
  for (const Json &r : space["rejected"]) {
    all += r["count"].get<std::size_t>();
    rules.insert(r["rule"]);
  }
  EXPECT_EQ(all, space["size"]);
  EXPECT_EQ(rules, (std::set<std::string>{"rank", "registers", "shared memory"}));
  double slowest = space["slowestRejectionMs"]; // of the processor; other tests take caches from it
  for (int more = 0; more < 4 && slowest >= 1; ++more)
    slowest = std::min<double>(slowest, json(words)["space"]["slowestRejectionMs"]);
  EXPECT_LT(slowest, 1);
  EXPECT_EQ(space["best"].size(), 5u);
  EXPECT_EQ(space["default"], "block_m=64, block_n=64, warps=4, stages=2");
  const Outcome text = kiln({"tune", "matmul", "--dtype", "bf16", "--target", "sm_90a", "--set", "block_k=256", "--set",
                             "stages=4", "--dry-run"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("rejected: shared memory"), std::string::npos) << text.out;
}

/// At 64 columns the call limits registers, which no parameter does: the default is a configuration of its own.
TEST_F(TuneCliTest, ADefaultThatIsNoCombinationIsTriedToo) {
  Words words = {"tune", "attention", "--dtype", "bf16", "--target", "sm_90a"};
  for (const char *name : {"q", "k", "v"})
    words.insert(words.end(), {"--with", std::string(name) + "=2x8192x32x64"});
  Words dry = words;
  dry.emplace_back("--dry-run");
  const Json space = json(dry)["space"];
  EXPECT_EQ(space["size"], 1201);
  EXPECT_EQ(space["kept"], 64);
  EXPECT_EQ(space["default"], "block_m=0, block_n=0, warps=0, stages=0");
  words.insert(words.end(), {"--budget", "1", "--journal", file("j")});
  for (const char *name : {"q", "k", "v"})
    words.insert(words.end(), {"--check-with", std::string(name) + "=1x80x2x64"});
  const Json tuned = json(words), &sweep = tuned["sweep"];
  ASSERT_EQ(tuned["kept"].size(), 1u) << tuned.dump(); // now it is known to be good
  EXPECT_EQ(tuned["kept"][0]["values"]["block_m"], 0);
  EXPECT_EQ(sweep["best"][0]["configuration"]["block_m"], 0) << sweep.dump();
  EXPECT_EQ(sweep["default"], sweep["best"][0]) << sweep.dump();
  // Only what --set names.
  dry.insert(dry.end(), {"--set", "block_m=128", "--set", "block_n=64", "--set", "warps=4", "--set", "stages=2,3"});
  EXPECT_EQ(json(dry)["space"]["size"], 2);
}

/// One configuration is the whole space, and not the call's default.
TEST_F(TuneCliTest, WinnersAreKeptForLaterCalls) {
  const Words one = product({"--set", "warps=4", "--set", "stages=2", "--confirm", "0"});
  EXPECT_FALSE(json(one).contains("kept")); // the default was not among what was tried
  const Words call = {"bench",  "matmul",  "--dtype", "bf16",    "--target", "sm_90a",
                      "--with", "a=60x64", "--with",  "b=64x56", "--log",    "cache=info"};
  const std::string taken = "matmul: tuned values of the cache: block_m=64, block_n=64, block_k=64, warps=4, stages=2";
  EXPECT_EQ(kiln(call).err.find("tuned values"), std::string::npos);
  Words saved = one;
  saved.emplace_back("--save");
  const Json kept = json(saved)["kept"];
  ASSERT_EQ(kept.size(), 1u) << kept.dump();
  EXPECT_EQ(kept[0]["operation"], "matmul");
  EXPECT_EQ(kept[0]["values"]["stages"], 2);
  EXPECT_EQ(kept[0]["sizes"].get<std::string>().find("rows 64, columns 64, depth 64"), 0u) << kept.dump();
  const Outcome later = kiln(call);
  EXPECT_EQ(later.status, 0) << later.err;
  EXPECT_NE(later.err.find(taken), std::string::npos) << later.err;
  Words off = call;
  off.insert(off.end(), {"--tuned", "0"});
  EXPECT_EQ(kiln(off).err.find("tuned values"), std::string::npos);
  Words larger = call;
  larger[7] = "a=65x64";
  EXPECT_EQ(kiln(larger).err.find("tuned values"), std::string::npos);
  const Outcome list = kiln({"cache", "list"});
  EXPECT_NE(list.out.find("matmul (tuned)"), std::string::npos) << list.out;
  // What no call can ask for is measured and not kept.
  Words split = one;
  split.insert(split.end(), {"--set", "splits=2", "--save"});
  const Outcome refused = kiln(split);
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("the winner has splits = 2, which no call takes from the cache"), std::string::npos)
      << refused.err;
}

/// In one pass the backward has no launch over queries, whose options are in the space all the same.
TEST_F(TuneCliTest, OptionsOfALaunchThatIsNotMadeAreNotKept) {
  Words words = {"tune",   "attention_backward", "--dtype", "bf16",         "--target", "sm_90a", "--save",
                 "--with", "o=attention",        "--with",  "lse=attention"};
  for (const char *name : {"q", "k", "v", "do"})
    words.insert(words.end(), {"--with", std::string(name) + "=1x128x1x64"});
  for (const char *set : {"keys_block_m=64", "keys_block_n=128", "keys_warps=8", "keys_stages=2", "queries_block_m=64",
                          "queries_block_n=64", "queries_warps=4", "queries_stages=1"})
    words.insert(words.end(), {"--set", set});
  const Json kept = json(words)["kept"];
  ASSERT_EQ(kept.size(), 1u) << kept.dump();
  EXPECT_EQ(kept[0]["part"], "keys");
  EXPECT_EQ(kept[0]["values"]["keys_block_n"], 128);
  EXPECT_EQ(kept[0]["values"].size(), 4u);
}

TEST_F(TuneCliTest, TheEmulatorHasNoCachesToFlush) {
  expectRefused(product({"--flush-l2", "--dry-run"}), "--flush-l2: emulator:sm_90a has no caches");
  EXPECT_EQ(kiln(product({"--no-flush-l2", "--dry-run"})).status, 0);
  expectRefused({"bench", "add", "--target", "sm_80", "--flush-l2"}, "--flush-l2: emulator:sm_80 has no caches");
  expectRefused({"bench", "add", "--target", "sm_90a", "--flush-l2", "--predict"}, "--flush-l2 goes with times");
}

TEST_F(TuneCliTest, WhatTheKernelRefusesIsRejectedWithItsWords) {
  const Json j = json(product({"--set", "warps=3,4", "--set", "stages=2", "--dry-run"}));
  ASSERT_EQ(j["space"]["rejected"].size(), 1u) << j.dump();
  EXPECT_EQ(j["space"]["rejected"][0]["rule"], "kernel");
  const std::string example = j["space"]["rejected"][0]["example"];
  EXPECT_NE(example.find("warps = 3: a power of two from 1 to 32"), std::string::npos) << example;
  EXPECT_EQ(j["space"]["kept"], 1);
}

TEST_F(TuneCliTest, BadSpacesAreRefused) {
  const auto refused = [&](Words words, const std::string &part) {
    words.insert(words.begin(), {"tune", "matmul", "--target", "sm_90a"});
    expectRefused(words, part);
  };
  refused({"--set", "wraps=4"}, "did you mean warps?");
  refused({"--set", "warps="}, "the space is empty");
  refused({"--set", "warps=4,many"}, "--set warps=many: expected a whole number");
  refused({"--set", "warps=4,4"}, "the value 4 twice");
  refused({"--set", "warps=4", "--set", "warps=8"}, "contradicts another --set warps");
  refused({"--with", "warps=4", "--set", "warps=8"}, "contradicts the call, in which warps is 4");
  refused({"--with", "a=64x64", "--with", "b=64x64", "--set", "stages=8", "--set", "block_m=256", "--set",
           "block_n=256", "--set", "block_k=256"},
          "shared memory rejects 6");
  refused({"--keep", "0"}, "--keep 0");
  refused({"--with", "a=64x64", "--with", "b=64x64", "--set", "block_k=64", "--set", "stages=2", "--search",
           "annealing", "--journal", file("j")},
          "the searches are exhaustive, random, model");
  for (const auto &[devices, part] : {std::pair("1-0", "'1-0' names no GPUs"),
                                      {"0,x", "'x' names no GPUs"},
                                      {"0,", "'' names no GPUs"},
                                      {"0-2,1", "names cuda:1 twice"},
                                      {"0-99999", "names no GPUs"},
                                      {"-1", "names no GPUs"}})
    expectRefused({"tune", "matmul", std::string("--devices=") + devices}, part);
  expectRefused({"tune", "matmul", "--devices", "0-1", "--target", "sm_90a"}, "goes with no --device or --target");
  expectRefused({"tune", "softmax", "--target", "sm_90a"}, "no parameter left that a tuner may choose");
  expectRefused({"tune", "attention", "--target", "sm_90a"}, "one call is tuned");
  expectRefused({"tune", "matmul", "softmax", "--target", "sm_90a"}, "one kernel is tuned at a time");
  expectRefused({"tune", "matmull", "--target", "sm_90a"}, "did you mean matmul?");
}

TEST_F(TuneCliTest, ASweepIsContinuedMergedExportedAndReplayed) {
  const Words space = {"--set", "warps=4", "--set", "stages=2,3", "--journal", file("j")};
  Words first = product(space);
  first.insert(first.end(), {"--budget", "1"});
  Json j = json(first);
  EXPECT_EQ(j["sweep"]["measured"], 1) << j.dump();
  EXPECT_EQ(j["sweep"]["end"], "budget");
  const std::string before = read("j");
  j = json(product(space));
  EXPECT_EQ(j["sweep"]["measured"], 1);
  EXPECT_EQ(j["sweep"]["known"], 1);
  EXPECT_EQ(j["sweep"]["end"], "complete");
  EXPECT_EQ(j["objective"], "predicted");
  ASSERT_EQ(j["sweep"]["best"].size(), 2u);
  EXPECT_LE(j["sweep"]["best"][0]["ms"], j["sweep"]["best"][1]["ms"]);
  EXPECT_TRUE(read("j").starts_with(before)); // appended only
  // Another space of the same call: only what is new is measured.
  j = json(product({"--set", "warps=4", "--set", "stages=3,4", "--journal", file("j")}));
  EXPECT_EQ(j["sweep"]["measured"], 1);
  EXPECT_EQ(j["sweep"]["known"], 1);

  j = json({"tune", "--replay", file("j"), "--search", "random", "--seed", "2"});
  EXPECT_EQ(j["sweep"]["measured"], 3);
  EXPECT_EQ(j["sweep"]["best"][0]["configuration"], j["trueBest"]["configuration"]);

  const Outcome t4 = kiln({"tune", file("j"), "--export", "t4"});
  EXPECT_EQ(t4.status, 0) << t4.err;
  EXPECT_EQ(Json::parse(t4.out)["results"].size(), 3u);
  EXPECT_EQ(kiln({"tune", file("j"), "--export", "csv", "-o", file("j.csv")}).status, 0);
  EXPECT_TRUE(read("j.csv").starts_with("block_m,block_n,block_k,warps,stages,outcome,ms,"));
  const Outcome page = kiln({"tune", file("j"), "--export", "html", "--compare", file("j")});
  EXPECT_EQ(page.status, 0) << page.err;
  // 2 x 64 x 64 x 64 FLOP over three tensors of 16 bits.
  EXPECT_NE(page.out.find("The call has 5.243e+05 FLOP and moves at least 2.458e+04 bytes: 21.33 FLOP a byte. By the "
                          "rates of NVIDIA H200 it is limited by memory"),
            std::string::npos);
  EXPECT_NE(page.out.find("3 configurations were measured in both; the other sweep's times are 1.000 times"),
            std::string::npos);
  expectRefused({"tune", file("j"), "--export", "csv", "--compare", file("j")}, "--compare goes with --export html");
  expectRefused({"tune", "matmul", "--compare", file("j")}, "--compare goes with --export html");
  expectRefused({"tune", file("j"), "--export", "html", "--compare", file("none")}, "none");
  std::string larger = read("j");
  larger.replace(larger.find("a=64x64"), 7, "a=96x64");
  std::ofstream(file("larger")) << larger;
  expectRefused({"tune", file("j"), "--export", "html", "--compare", file("larger")}, "its call is");
  // Measured journals compare with the model's, and with each other where they were timed alike.
  std::string measured = read("j");
  const std::string objective = "\"predicted\"";
  measured.replace(measured.find(objective), objective.size(), "\"measured\"");
  write("warm", measured);
  write("cold", measured.insert(measured.find("}\n"), ",\"timing\":\"cold\""));
  EXPECT_EQ(kiln({"tune", file("j"), "--export", "html", "--compare", file("cold")}).status, 0);
  EXPECT_EQ(kiln({"tune", file("warm"), "--export", "html", "--compare", file("warm")}).status, 0);
  expectRefused({"tune", file("cold"), "--export", "html", "--compare", file("warm")}, "its timing is \"warm\"");
  std::ofstream(file("copy")) << before;
  EXPECT_EQ(json({"tune", "merge", file("all"), file("copy"), file("j")})["entries"], 3);

  const std::string whole = read("j");
  Words other = product({"--journal", file("j")});
  other[7] = "a=128x64";
  expectRefused(other, "is of another sweep: its call is");
  expectRefused({"tune", "merge", file("j"), file("copy"), file("all")}, "never overwritten");
  EXPECT_EQ(read("j"), whole);
}

/// What a configuration is judged by before its compile is a lower bound of what its code has.
TEST_F(TuneCliTest, CodeHasAtLeastWhatItsTilesNeed) {
  const Json j = json({"bench",      "matmul",  "--dtype",    "bf16",    "--target", "sm_90a",     "--resources",
                       "--with",     "a=64x64", "--with",     "b=64x64", "--with",   "block_m=64", "--with",
                       "block_n=64", "--with",  "block_k=64", "--with",  "warps=4",  "--with",     "stages=2"});
  ASSERT_EQ(j["results"].size(), 1u) << j.dump();
  const Json &code = j["results"][0]["kernels"][0];
  EXPECT_EQ(code["threads"], 128);
  EXPECT_GE(code["sharedBytes"], 2 * (64 + 64) * 64 * 2);
  if (code.contains("unknown"))
    GTEST_SKIP() << code["unknown"];
  EXPECT_GE(code["registers"], 64 * 64 / 128);
  EXPECT_LE(code["registers"], 255);
  EXPECT_EQ(code["spillBytes"], 0);
  // Sums and scores of 128 rows in four warps: they fit by the bound, and the code spills.
  const Json spilled =
      json({"tune", "attention", "--target", "sm_90a", "--with", "q=1x128x1x128", "--with", "k=1x128x1x128", "--with",
            "v=1x128x1x128", "--set", "block_m=128", "--set", "block_n=64", "--set", "warps=4", "--set", "stages=2"},
           1);
  EXPECT_EQ(spilled["sweep"]["failures"], Json({{"refused", 1}})) << spilled.dump();
  EXPECT_NE(spilled["error"]["message"].get<std::string>().find("spills: attention: "), std::string::npos);
}

/// The code of one configuration is replaced by one whose sums begin at 1.
TEST_F(TuneCliTest, WrongResultsDoNotCount) {
  ASSERT_EQ(::mkdir(file("dumps").c_str(), 0700), 0);
  const Words call = {"--with", "a=64x64",    "--with", "b=64x64", "--with", "block_m=64", "--with",     "block_n=64",
                      "--with", "block_k=64", "--with", "warps=4", "--with", "stages=2",   "--dump-dir", file("dumps")};
  Words check = {"check", "matmul", "--dtype", "bf16", "--target", "sm_90a", "--schedule", "in-order"};
  check.insert(check.end(), call.begin(), call.end());
  ASSERT_EQ(kiln(check).status, 0);
  ASSERT_EQ(makeSumsWrong("dumps", "edits"), 1u);
  const Json j = json(product({"--set", "warps=4", "--set", "stages=2,3", "--override-dir", file("edits")}));
  EXPECT_EQ(j["sweep"]["failures"], Json({{"wrong", 1}})) << j.dump();
  ASSERT_EQ(j["sweep"]["best"].size(), 1u);
  EXPECT_EQ(j["sweep"]["best"][0]["configuration"]["stages"], 3);
}

/// The fake GPU loads no code but its own: each configuration fails with the driver's words, and the sweep goes on.
TEST_F(TuneCliTest, OnAGpuCodeThatDoesNotLoadCostsItselfOnly) {
  const Words call = {"tune",    "matmul",     "--dtype", "bf16",    "--device",   "cuda:0",     "--with",
                      "a=64x64", "--with",     "b=64x64", "--set",   "block_m=64", "--set",      "block_n=64",
                      "--set",   "block_k=64", "--set",   "warps=4", "--set",      "stages=2,3", "--json"};
  Words words = call;
  words.insert(words.end(), {"--journal", file("j")});
  const std::string driver = fakeDriver();
  Outcome o = kiln(words, driver);
  EXPECT_EQ(o.status, 1) << o.out << o.err;
  const Json j = Json::parse(o.out, nullptr, false);
  EXPECT_EQ(j["objective"], "measured") << o.out;
  EXPECT_EQ(j["device"], "Fake GPU");
  EXPECT_EQ(j["sweep"]["measured"], 2) << o.out;
  EXPECT_NE(read("j").find("has no kernel 'matmul'"), std::string::npos) << read("j");
  EXPECT_NE(read("j").find("\"timing\":\"cold\""), std::string::npos) << read("j");
  words = call;
  words.insert(words.end(), {"--journal", file("j"), "--no-flush-l2"});
  o = kiln(words, driver);
  EXPECT_EQ(o.status, 2);
  EXPECT_NE(o.err.find("its timing is \"cold\", not \"warm\""), std::string::npos) << o.err;
  words = call;
  words.insert(words.end(), {"--jobs", "257"});
  o = kiln(words, driver);
  EXPECT_EQ(o.status, 2);
  EXPECT_NE(o.err.find("--jobs 257: 1 to 256"), std::string::npos) << o.err;
}

TEST_F(TuneCliTest, WhatTakesTooLongCostsItselfOnly) {
  const Json j =
      json(product({"--set", "warps=4", "--set", "stages=2", "--timeout", "0.001", "--journal", file("j")}), 1);
  EXPECT_EQ(j["sweep"]["failures"]["timeout"], 1) << j.dump();
  EXPECT_NE(j["error"]["message"].get<std::string>().find("1 timeout"), std::string::npos) << j.dump();
  EXPECT_NE(read("j").find("\"outcome\":\"timeout\""), std::string::npos);
}

/// One process measures all; another takes its place if it is killed, or stopped for longer than a step may take.
TEST_F(TuneCliTest, AMeasurerThatIsKilledOrHangsCostsItselfOnly) {
  const auto textOf = [](const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const Words words = product({"--set", "warps=4,8", "--set", "stages=2,3,4"});
  ASSERT_EQ(kiln(words).status, 0); // a step does not compile from here on
  for (const auto &[signal, outcome, message] : {std::tuple(SIGKILL, "crashed", "ended by SIGKILL"),
                                                 std::tuple(SIGSTOP, "timeout", "it took longer than 20 seconds")}) {
    unsigned hit = 0;
    // One that is killed between two requests costs nothing at all: the next try.
    for (unsigned tried = 0; !hit && tried < 20; ++tried) {
      const std::string journal = outcome + std::to_string(tried);
      Words with = words;
      with.insert(with.end(), {"--timeout", "20", "--journal", file(journal)});
      const pid_t sweep = startKiln(with);
      pid_t measurer = 0;
      for (int waited = 0; !measurer && waited < 24000; ++waited, ::usleep(5000))
        for (const auto &process : std::filesystem::directory_iterator("/proc")) {
          const std::string path = process.path().string();
          if (textOf(path + "/cmdline").find("--answer") != std::string::npos &&
              textOf(path + "/status").find("PPid:\t" + std::to_string(sweep) + "\n") != std::string::npos) {
            measurer = std::stoi(process.path().filename().string());
            ::kill(measurer, signal); // at its first request, if this process comes to it in time
            break;
          }
        }
      int status = 0;
      ASSERT_EQ(::waitpid(sweep, &status, 0), sweep);
      ASSERT_GT(measurer, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
      const Json j = json({"tune", "--replay", file(journal)});
      EXPECT_EQ(j["sweep"]["measured"], 6);
      EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(measurer)));
      if (j["sweep"]["failures"].empty())
        continue;
      ++hit;
      EXPECT_EQ(j["sweep"]["failures"], Json({{outcome, 1}})) << read(journal);
      EXPECT_NE(read(journal).find(message), std::string::npos) << read(journal);
    }
    EXPECT_EQ(hit, 1u) << outcome;
  }
}

/// A call a line; what is done already is not done again, wherever it stands in the list.
TEST_F(TuneCliTest, AListOfCallsIsTunedOneAfterTheOther) {
  const auto tuned = [&](const std::string &list, int status = 0) {
    std::ofstream(file("list")) << list;
    return json({"tune",       "matmul",     "--dtype",    "bf16",       "--target",   "sm_90a",        "--set",
                 "block_m=64", "--set",      "block_n=64", "--set",      "block_k=64", "--set",         "warps=4",
                 "--set",      "stages=2,3", "--shapes",   file("list"), "--journal",  file("journals")},
                status)["sweeps"];
  };
  const Json first = tuned("# sizes of a model\n\n a=64x64  b=64x64 # the smallest\n");
  ASSERT_EQ(first.size(), 1u) << first.dump();
  EXPECT_EQ(first[0]["line"], 3);
  EXPECT_EQ(first[0]["call"], "a=64x64, b=64x64");
  EXPECT_EQ(first[0]["sweep"]["measured"], 2);
  const Json both = tuned("a=64x128 b=128x64\r\na=64x64 b=64x64\n");
  ASSERT_EQ(both.size(), 2u) << both.dump();
  EXPECT_EQ(both[0]["sweep"]["measured"], 2);
  EXPECT_EQ(both[1]["sweep"]["measured"], 0);
  EXPECT_EQ(both[1]["sweep"]["known"], 2);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file("journals")), {}), 2);
  // A wrong line is the answer of the command, and the others are tuned.
  const Json wrong = tuned("a=64x64\na=128x64 b=64x64\n", 2);
  ASSERT_EQ(wrong.size(), 2u) << wrong.dump();
  EXPECT_NE(wrong[0]["error"]["message"].get<std::string>().find("line 1"), std::string::npos) << wrong.dump();
  EXPECT_EQ(wrong[1]["sweep"]["measured"], 2);
  EXPECT_TRUE(tuned("# nothing\n", 2).empty());
}

TEST_F(TuneCliTest, TheBestAreMeasuredAgainInTurn) {
  const Json sweep = json(product({"--set", "warps=4", "--set", "stages=2,3,4", "--confirm", "2"}))["sweep"];
  EXPECT_EQ(sweep["measured"], 3);
  ASSERT_EQ(sweep["confirmed"].size(), 2u) << sweep.dump();
  EXPECT_EQ(sweep["confirmed"][0]["rounds"].size(), 6u);
  // The model's time is always the same.
  EXPECT_EQ(sweep["confirmed"][0]["rounds"][5], sweep["best"][0]["ms"]);
  EXPECT_NEAR(sweep["confirmed"][0]["ms"].get<double>(), sweep["best"][0]["ms"].get<double>(), 1e-12);
  EXPECT_TRUE(sweep["confirmed"][1].contains("tied"));
  EXPECT_FALSE(json(product({"--set", "warps=4", "--set", "stages=2,3"}))["sweep"].contains("confirmed"));
}

/// Wherever the sweep is killed, the journal holds each result that was reported, once; the same command ends it.
TEST_F(TuneCliTest, KilledAtAnyPointItGoesOn) {
  const Words command =
      product({"--set", "warps=4,8", "--set", "stages=2,3,4", "--check-with", "a=64x64", "--check-with", "b=64x64"});
  ASSERT_EQ(kiln(command).status, 0); // the kernels are in the cache from here on
  std::mt19937 random(7);
  std::size_t killed = 0, torn = 0;
  for (unsigned sweep = 0; killed < pick(6u, 200u); ++sweep) {
    Words words = command;
    words.insert(words.end(), {"--journal", file("j" + std::to_string(sweep))});
    std::set<std::string> seen; // lines that were whole
    unsigned longer = 0;        // a slow build comes to its end, too
    for (bool isDone = false; !isDone; longer += 200) {
      const pid_t child = startKiln(words);
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(random() % (1000 + longer));
      int status = 0;
      pid_t ended = 0;
      while (ended == 0 && std::chrono::steady_clock::now() < end) {
        ::usleep(1000);
        ended = ::waitpid(child, &status, WNOHANG);
      }
      if (ended == 0) {
        ::kill(child, SIGKILL);
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ++killed;
      } else {
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
        isDone = true;
      }
      std::istringstream text(read("j" + std::to_string(sweep)));
      std::multiset<std::string> now;
      for (std::string line; std::getline(text, line);)
        if (!text.eof()) // else it has no newline: torn, and cut by the next
          now.insert(line);
        else
          ++torn;
      for (const std::string &line : seen)
        EXPECT_EQ(now.count(line), 1u) << line;
      seen = {now.begin(), now.end()};
      EXPECT_EQ(seen.size(), now.size());
    }
    const Json whole = json({"tune", "--replay", file("j" + std::to_string(sweep))});
    EXPECT_EQ(whole["sweep"]["measured"], 6);
    EXPECT_EQ(seen.size(), 7u) << "a header and each configuration once";
    EXPECT_EQ(whole["sweep"]["failures"], Json::object());
  }
  RecordProperty("killed", static_cast<int>(killed));
  RecordProperty("torn", static_cast<int>(torn));
}

TEST_F(TuneCliTest, AnInterruptLeavesAGoodJournal) {
  const pid_t child = startKiln(product({"--set", "warps=4,8", "--set", "stages=2,3,4", "--journal", file("j")}));
  const auto linesOf = [](const std::string &text) { return std::count(text.begin(), text.end(), '\n'); };
  for (int waited = 0; linesOf(read("j")) < 2 && waited < 6000; ++waited)
    ::usleep(20000);
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 4) << status;
  const std::string text = read("j");
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(text.find("crashed"), std::string::npos) << text;
  const Json j = json({"tune", "--replay", file("j")});
  EXPECT_EQ(j["sweep"]["measured"], linesOf(text) - 1);
}

} // namespace
} // namespace kiln::test
