// Prints of tiles come out in order, dumped ones as files; other text is printed as it comes.
#include "runtime/io/Npy.h"
#include "tests/emulator/PtxHarness.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <fstream>

using namespace kiln;
using namespace kiln::test;

namespace {

/// A kernel whose thread t prints `format` with (block, 0, 0, 31 - t, value) `rounds` times; value is t + 100 * round.
std::string printing(const std::string &format, int rounds = 1) {
  std::string bytes;
  for (const char c : format + '\n')
    bytes += std::to_string(static_cast<int>(c)) + ", ";
  return kernelText("",
                    R"(
    .local .align 8 .b8 record[32];
    .reg .b32 %round, %value, %at, %result;
    .reg .b64 %text, %place, %where, %wide;
    .reg .pred %more;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    sub.u32 %at, 31, %r1;
    mov.u32 %round, 0;
  AGAIN:
    mad.lo.u32 %value, %round, 100, %r1;
    cvt.u64.u32 %wide, %value;
    mov.u64 %where, record;
    st.local.u32 [%where], %r2;
    st.local.u32 [%where+4], 0;
    st.local.u32 [%where+8], 0;
    st.local.u32 [%where+12], %at;
    st.local.u64 [%where+16], %wide;
    cvta.local.u64 %place, %where;
    mov.u64 %text, message;
    cvta.global.u64 %text, %text;
    {
      .param .b64 first;
      .param .b64 second;
      .param .b32 back;
      st.param.b64 [first], %text;
      st.param.b64 [second], %place;
      call.uni (back), vprintf, (first, second);
      ld.param.b32 %result, [back];
    }
    add.u32 %round, %round, 1;
    setp.lt.u32 %more, %round, )" +
                        std::to_string(rounds) + R"(;
    @%more bra AGAIN;
  )",
                    "sm_80",
                    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.global .b8 message[" +
                        std::to_string(format.size() + 2) + "] = {" + bytes + "0};\n");
}

std::string outputOf(const std::string &text, unsigned blocks = 1, EmulatorOptions options = {}) {
  Emulator gpu("sm_80", std::move(options));
  testing::internal::CaptureStdout();
  const Launched r = gpu.run(text, {blocks}, {32}, {});
  std::fflush(stdout);
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(r.clean()) << r.text();
  return out;
}

TEST(DevicePrints, LinesOfOnePrintAreSortedByCoordinates) {
  std::string wanted;
  for (int round = 0; round < 2; ++round)
    for (int at = 0; at < 32; ++at)
      wanted += "program 0,0,0 [" + std::to_string(at) + "] x " + std::to_string(31 - at + 100 * round) + "\n";
  EXPECT_EQ(outputOf(printing("program %u,%u,%u [%u] x %lld", 2)), wanted);
}

TEST(DevicePrints, OtherTextComesInTheOrderOfLanes) {
  const std::string out = outputOf(printing("block %u (%u,%u) %u: %lld"));
  EXPECT_TRUE(out.starts_with("block 0 (0,0) 31: 0\nblock 0 (0,0) 30: 1\n")) << out;
}

EmulatorOptions into(const std::string &directory) {
  EmulatorOptions options;
  options.tileDirectory = directory;
  return options;
}

TEST(DevicePrints, DumpedTilesAreFiles) {
  const TemporaryDirectory folder;
  EXPECT_EQ(outputOf(printing("program %u,%u,%u [%u] kiln.tile scores i32 32 %lld", 2), 2, into(folder.path())), "");
  for (const char *name :
       {"k.scores.0_0_0.npy", "k.scores.0_0_0.2.npy", "k.scores.1_0_0.npy", "k.scores.1_0_0.2.npy"}) {
    const auto read = readNpy(folder.path() + "/" + name);
    ASSERT_TRUE(read.ok()) << read.status().toString();
    EXPECT_EQ(read->type, DType::I32);
    EXPECT_EQ(read->shape, Shape{32});
    const int round = std::string(name).find(".2.") != std::string::npos;
    for (int i = 0; i < 32; ++i)
      EXPECT_EQ(loadElement(&read->data[4 * static_cast<std::size_t>(i)], DType::I32), 31 - i + 100 * round);
  }
  // Without a directory they are text.
  EXPECT_TRUE(outputOf(printing("program %u,%u,%u [%u] kiln.tile scores i32 32 %lld"))
                  .starts_with("program 0,0,0 [0] kiln.tile scores i32 32 31\n"));
}

TEST(DevicePrints, ATileThatCannotBeWrittenFailsTheLaunch) {
  const auto failure = [](const std::string &format, const std::string &directory) {
    Emulator gpu("sm_80", into(directory));
    return gpu.run(printing(format), {1}, {32}, {}).status;
  };
  const TemporaryDirectory folder;
  const Status missing =
      failure("program %u,%u,%u [%u] kiln.tile scores i32 32 %lld", folder.path() + "/there/is/none");
  EXPECT_EQ(missing.code(), StatusCode::IoError) << missing.toString();
  const Status part = failure("program %u,%u,%u [%u] kiln.tile scores i32 64 %lld", folder.path());
  EXPECT_NE(part.message().find("k.scores.0_0_0.npy: 32 of 64 elements were dumped"), std::string::npos)
      << part.message();
}

} // namespace
