// `kiln warm`: the calls of a list in the cache, each reported, whatever becomes of the others.
#include "tests/cli/Program.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace kiln::test {
namespace {

using Json = nlohmann::json;

class WarmCliTest : public CachedCliTest {
protected:
  Outcome warm(const std::string &calls, std::vector<std::string> words) {
    std::ofstream(file("calls")) << calls;
    words.insert(words.begin(), {"warm", file("calls"), "--cache-dir", file("cache")});
    return kiln(words);
  }
};

TEST_F(WarmCliTest, WhatIsWarmIsNotCompiledAgain) {
  const std::string calls =
      "# two calls, and one with the first's kernel\n\nadd --dtype f32 --with x=4096 --with y=4096\n"
      "softmax --dtype f32 --with x=8x100 # small\nadd --dtype f32 --with x=77 --with y=77\n";
  const Outcome first = warm(calls, {"--target", "sm_80", "--jobs", "2", "--json"});
  ASSERT_EQ(first.status, 0) << first.err;
  const Json made = Json::parse(first.out);
  EXPECT_EQ(made["compiled"], 2) << first.out;
  EXPECT_EQ(made["found"], 0) << first.out;
  EXPECT_EQ(made["calls"].size(), 3u);
  EXPECT_NE(first.err.find("3/3"), std::string::npos) << first.err;
  const Outcome again = warm(calls, {"--target", "sm_80"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, "3 calls for sm_80: 0 kernels compiled, 2 found, 0 calls failed\n");
  const Outcome call = kiln({"bench", "softmax", "--dtype", "f32", "--with", "x=8x100", "--device", "offline:sm_80",
                             "--resources", "--cache-dir", file("cache"), "--log", "cache=info"});
  EXPECT_EQ(call.status, 0) << call.err;
  EXPECT_NE(call.err.find("hit"), std::string::npos) << call.err;
  EXPECT_EQ(call.err.find("miss"), std::string::npos) << call.err;
}

TEST_F(WarmCliTest, AFailureDoesNotEndTheOthers) {
  const Outcome o = warm("add --dtype f99\nadd --dtype f32 --resources\nsub\nadd --with x=3\n--dtype f32\n"
                         "add --dtype f32 --with x=64 --with y=64\n",
                         {"--target", "sm_80", "--json"});
  EXPECT_EQ(o.status, 2) << o.err;
  const Json report = Json::parse(o.out);
  EXPECT_EQ(report["compiled"], 1) << o.out;
  EXPECT_EQ(report["failed"], 5) << o.out;
  for (const char *part : {"line 1: ", "f99", "line 2: ", "--resources", "line 3: ", "line 4: ", "line 5: "})
    EXPECT_NE(o.err.find(part), std::string::npos) << part << "\n" << o.err;
}

TEST_F(WarmCliTest, WhatCannotBeStoredFails) {
  const Outcome o = warm("add --dtype f32 --with x=64 --with y=64\n", {"--target", "sm_80", "--cache-max-bytes", "1K"});
  EXPECT_NE(o.status, 0) << o.out;
  EXPECT_NE(o.err.find("could not be stored"), std::string::npos) << o.err;
}

TEST_F(WarmCliTest, WrongWordsAreRefused) {
  const auto refused = [&](const Outcome &o, const std::string &part) {
    EXPECT_EQ(o.status, 2) << o.out << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  };
  refused(warm("# nothing\n", {}), "names no call");
  refused(warm("add\n", {"--target", "sm_1"}), "sm_1");
  refused(warm("add\n", {"--target", "sm_80", "--device", "emulator:sm_80"}), "exclude each other");
  refused(warm("add\n", {"--target", "sm_80", "--jobs", "1000"}), "--jobs 1000");
  refused(warm("add\n", {"--target", "sm_80", "--dump-dir", file("dump")}), "nothing is stored");
  refused(kiln({"warm", file("absent")}), "absent");
  refused(kiln({"warm"}), "calls");
}

} // namespace
} // namespace kiln::test
