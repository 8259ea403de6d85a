// The process of `kiln tune` that measures: many configurations by one, timed by the host's clock on the emulator.
#include "compiler/codegen/Conversation.h"
#include "tests/cli/Program.h"

#include <filesystem>
#include <nlohmann/json.hpp>

namespace kiln::test {
namespace {

using Json = nlohmann::json;

class TuneAnswerCliTest : public CachedCliTest {
protected:
  static std::unique_ptr<Conversation> measurer(const std::string &how, std::vector<std::string> more = {}) {
    ProcessSpec spec;
    spec.program = KILN_BINARY_DIR "/bin/kiln";
    spec.arguments = {"tune",   "matmul",   "--dtype",  "bf16", "--with",   "a=64x128",
                      "--with", "b=128x64", "--answer", how,    "--device", "emulator:sm_90a"};
    spec.arguments.insert(spec.arguments.end(), more.begin(), more.end());
    spec.maxResponseBytes = 1 << 20;
    auto out = Conversation::start(std::move(spec));
    EXPECT_TRUE(out.ok());
    return std::move(*out);
  }
  static Json words(int stages, int warps = 4) {
    return {"block_m=64", "block_n=64", "block_k=64", "warps=" + std::to_string(warps),
            "stages=" + std::to_string(stages)};
  }
  static Json ask(Conversation &process, const Json &configuration) {
    const auto answer = process.ask(configuration.dump(), 100);
    EXPECT_TRUE(answer) << process.end().output;
    return answer ? Json::parse(*answer, nullptr, false) : Json();
  }
};

TEST_F(TuneAnswerCliTest, OneProcessTimesAndComparesOneAfterTheOther) {
  const auto process = measurer("timed");
  for (const int stages : {2, 3, 2}) {
    const Json row = ask(*process, words(stages));
    EXPECT_EQ(row.value("check", ""), "good") << row.dump();
    EXPECT_GT(row.value("medianMs", 0.0), 0);
    EXPECT_LE(row.value("minMs", 9e9), row.value("medianMs", 0.0));
    EXPECT_GE(row.value("samples", 0), 5);
    EXPECT_GE(row.value("halfIntervalMs", -1.0), 0);
  }
}

TEST_F(TuneAnswerCliTest, PredictsAsOftenAsItIsAsked) {
  const auto process = measurer("predicted");
  const double two = ask(*process, words(2)).value("predictedMs", 0.0);
  const double three = ask(*process, words(3)).value("predictedMs", 0.0);
  EXPECT_GT(two, 0);
  EXPECT_NE(two, three);
  EXPECT_EQ(ask(*process, words(2)).value("predictedMs", 0.0), two);
}

/// What is not good is answered, and the process ends.
TEST_F(TuneAnswerCliTest, AFailureEndsIt) {
  const auto process = measurer("timed");
  EXPECT_EQ(ask(*process, words(2)).value("check", ""), "good");
  Json refused = words(2);
  refused[0] = "block_m=63";
  const Json row = ask(*process, refused);
  EXPECT_EQ(row.value("outcome", ""), "refused") << row.dump();
  EXPECT_NE(row.value("message", "").find("63"), std::string::npos) << row.dump();
  EXPECT_EQ(process->ask(words(2).dump(), 100), std::nullopt);
  EXPECT_EQ(process->end().exitStatus, 0);
}

/// Sums that begin at 1 are wrong by any clock.
TEST_F(TuneAnswerCliTest, ComparesWhatItTimed) {
  std::filesystem::create_directory(file("dumps"));
  {
    const auto process = measurer("timed", {"--dump-dir", file("dumps")});
    EXPECT_EQ(ask(*process, words(2)).value("check", ""), "good");
  }
  ASSERT_GE(makeSumsWrong("dumps", "edits"), 1u);
  const auto process = measurer("timed", {"--override-dir", file("edits")});
  const Json row = ask(*process, words(2));
  EXPECT_EQ(row.value("outcome", ""), "wrong") << row.dump();
  EXPECT_NE(row.value("message", "").find("are wrong"), std::string::npos) << row.dump();
}

} // namespace
} // namespace kiln::test
