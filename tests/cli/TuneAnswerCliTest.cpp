// The process of `kiln tune` that measures: many configurations by one, timed by the host's clock on the emulator.
#include "compiler/codegen/Conversation.h"
#include "tests/cli/Arrays.h"
#include "tests/cli/Program.h"

#include <filesystem>
#include <fstream>
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
  /// Makes the folder `to` with the PTX of `from`, in which one thread first stores four bytes of ones at this distance
  /// from a parameter's address.
  void addStore(const std::string &from, const std::string &to, unsigned parameter, int distance) const {
    std::filesystem::create_directory(file(to));
    std::filesystem::permissions(file(to), std::filesystem::perms::owner_all);
    unsigned edited = 0;
    for (const auto &dump : std::filesystem::directory_iterator(file(from))) {
      const std::string name = dump.path().filename().string();
      if (!name.ends_with(".ptx"))
        continue;
      std::ifstream in(dump.path(), std::ios::binary);
      std::string text(std::istreambuf_iterator<char>(in), {});
      const std::size_t body = text.find("\n{");
      ASSERT_NE(body, std::string::npos);
      text.insert(body + 2, "\n.reg .b64 %strayed; .reg .b32 %one; .reg .pred %first;\n"
                            "mov.u32 %one, %tid.x; setp.eq.u32 %first, %one, 0; mov.u32 %one, 0xffffffff;\n"
                            "ld.param.u64 %strayed, [matmul_param_" +
                                std::to_string(parameter) + "];\n@%first st.global.u32 [%strayed+" +
                                std::to_string(distance) + "], %one;\n");
      write(to + "/" + name, text);
      ++edited;
    }
    ASSERT_GE(edited, 1u);
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

/// New rows are written to the cache, which is an input whether its new state is asked for or not; the next
/// configuration finds it as the first one did.
TEST_F(TuneAnswerCliTest, WhatACallWritesInPlaceIsItsToWrite) {
  ProcessSpec spec;
  spec.program = KILN_BINARY_DIR "/bin/kiln";
  spec.arguments = {"tune", "attention_decode", "--dtype", "bf16", "--answer", "timed", "--device", "emulator:sm_90a"};
  const std::string lengths = saveArray(file("lengths.npy"), DType::I32, {1}, {20});
  for (const std::string &with :
       std::vector<std::string>{"q=1x1x2x16", "k_cache=1x32x1x16", "v_cache=1x32x1x16", "k_new=1x1x1x16",
                                "v_new=1x1x1x16", "cache_seqlens=" + lengths})
    spec.arguments.insert(spec.arguments.end(), {"--with", with});
  auto process = Conversation::start(std::move(spec));
  ASSERT_TRUE(process.ok());
  for (const char *block : {"block_n=16", "block_n=32"}) {
    const Json row = ask(**process, {block});
    EXPECT_EQ(row.value("check", ""), "good") << row.dump();
  }
}

/// A GPU has nothing against a store next to a tensor, in memory that the process has; results are right all the same.
TEST_F(TuneAnswerCliTest, WritingWhereNobodyMayIsWrong) {
  std::filesystem::create_directory(file("dumps"));
  {
    const auto process = measurer("timed", {"--dump-dir", file("dumps")});
    EXPECT_EQ(ask(*process, words(2)).value("check", ""), "good");
  }
  constexpr unsigned a = 0, out = 14; // parameters
  constexpr int bytes = 2 * 64 * 64;
  for (const auto &[parameter, distance, message] :
       {std::tuple(out, -16, "it wrote outside of 'out': 4 bytes before it, the nearest 13 bytes before its first"),
        std::tuple(out, bytes + 100,
                   "it wrote outside of 'out': 4 bytes after it, the nearest 101 bytes after its last"),
        std::tuple(out, bytes + (1 << 20) - 4, "4 bytes after it, the nearest 1048573 bytes after its last"),
        std::tuple(a, 2 * 64 * 128, "it wrote outside of 'a': 4 bytes after it, the nearest 1 byte after its last"),
        std::tuple(a, 2 * 128, "it changed its input 'a': 4 bytes, the first at byte 256 of it")}) {
    const std::string edits = "edits" + std::to_string(parameter) + "_" + std::to_string(distance);
    ASSERT_NO_FATAL_FAILURE(addStore("dumps", edits, parameter, distance));
    const auto process = measurer("timed", {"--override-dir", file(edits)});
    const Json row = ask(*process, words(2));
    EXPECT_EQ(row.value("outcome", ""), "wrong") << row.dump();
    EXPECT_NE(row.value("message", "").find(message), std::string::npos) << row.dump();
  }
}

} // namespace
} // namespace kiln::test
