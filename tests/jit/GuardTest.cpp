// A wrong class can never launch a wrong kernel: guards are checked at launch, and metadata that cannot be trusted is
// refused at load.
#include "runtime/jit/Metadata.h"
#include "tests/jit/JitFixture.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class GuardTest : public NullJitTest {
protected:
  Status launch(const KernelSource &source, std::uint64_t x, int n) {
    return kernelOf(*nullJit, source)->launch({1}, nullptr, x, std::uint64_t(256), std::uint64_t(256), n);
  }
};

TEST_F(GuardTest, GuardsOfTheClassHold) {
  EXPECT_TRUE(launch(addSource(), 256, 5).ok());
  EXPECT_TRUE(launch(addSource(), 4, 5).ok());
  auto general = nullJit->compile(addSource());
  ASSERT_TRUE(general.ok());
  EXPECT_TRUE((*general)->guards().empty());
}

TEST_F(GuardTest, AFactThatTheClassDoesNotImplyIsCheckedAtEachLaunch) {
  const KernelSource source = addSource("guard {\"argument\": 3, \"divisibility\": 8}\n");
  EXPECT_TRUE(launch(source, 256, 16).ok());
  const Status s = launch(source, 256, 20);
  EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(s.message(),
            "kernel 'add' [x/16 y/16 out/16]: argument 3 'n' is 20, the compiled code relies on a multiple "
            "of 8");
  EXPECT_TRUE(launch(source, 256, -8).ok());
  const KernelSource equals = addSource("guard {\"argument\": 3, \"equals\": -5}\n");
  EXPECT_TRUE(launch(equals, 256, -5).ok());
  EXPECT_EQ(launch(equals, 256, 5).code(), StatusCode::InvalidArgument);
}

TEST_F(GuardTest, GuardsThatThisRuntimeDoesNotKnowAreRefused) {
  for (const char *guard :
       {R"({"argument": 3, "below": 8})", R"({"argument": 4, "divisibility": 8})", R"({"argument": -1, "equals": 8})",
        R"({"argument": 3, "divisibility": 0})", R"({"argument": 3, "divisibility": 12})", R"({"argument": 3})", "7",
        R"({"argument": 3, "equals": 8, "unless": 1})", R"({"argument": 3, "equals": "8"})", "[]", "null"}) {
    const Status s = launch(addSource(std::string("guard ") + guard + "\n"), 256, 8);
    EXPECT_EQ(s.code(), StatusCode::Internal) << guard << ": " << s.toString();
    EXPECT_NE(s.message().find("relies on a fact that this runtime does not know"), std::string::npos) << s.message();
  }
}

TEST(Metadata, AssemblerLevel) {
  for (const auto &[text, level] : {std::pair(R"({"assembler_level": 1})", 1u),
                                    {R"({"assembler_level": 0})", 0u},
                                    {R"({"assembler_level": 3})", 3u},
                                    {R"({"assembler_level": 4})", 3u},
                                    {R"({"assembler_level": -1})", 3u},
                                    {R"({"assembler_level": "1"})", 3u},
                                    {"{}", 3u},
                                    {"{", 3u},
                                    {"7", 3u},
                                    {"", 3u}})
    EXPECT_EQ(assemblerLevelOf(text), level) << text;
}

TEST_F(GuardTest, MetadataThatIsIncompleteOrDisagreesIsRefused) {
  for (const char *metadata :
       {"{", "[]", "7", "{}", R"({"entry": "add"})", R"({"entry": 5, "target": "sm_80"})",
        R"({"entry":"add","target":"sm_80","num_warps":0,"shared_bytes":0,"arguments":[],"guards":[]})",
        R"({"entry":"add","target":"sm_80","num_warps":33,"shared_bytes":0,"arguments":[],"guards":[]})",
        R"({"entry":"add","target":"sm_80","num_warps":4,"shared_bytes":-1,"arguments":[],"guards":[]})",
        R"({"entry":"add","target":"sm_80","num_warps":4,"shared_bytes":0,"arguments":[],"guards":[]})",
        R"({"entry":"add","target":"sm_80","num_warps":4,"shared_bytes":0,"arguments":[1,2,3,4],"guards":[]})"}) {
    const Status s = launch(addSource(std::string("metadata ") + metadata + "\n"), 256, 8);
    EXPECT_FALSE(s.ok()) << metadata;
  }
  KernelSource wide = addSource();
  wide.arguments[3].type = "i64";
  LaunchArguments arguments;
  arguments.add(std::uint64_t(256)).add(std::uint64_t(256)).add(std::uint64_t(256)).add(std::int64_t(8));
  const Status s = kernelOf(*nullJit, wide)->launch({1}, nullptr, arguments);
  EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
  EXPECT_NE(s.message().find("argument 3 'n' is i64 in the source and i32 of 4 bytes at offset 24 in the program"),
            std::string::npos)
      << s.message();
}

/// The code itself must declare what the metadata says.
TEST_F(GuardTest, CodeThatDisagreesWithItsMetadataIsRefused) {
  std::string ptx = addPtx;
  ptx.replace(ptx.find(".param .u32 n"), 13, ".param .u64 n");
  KernelSource source = addSource();
  source.programText = "argument x ptr<f32>\nargument y ptr<f32>\nargument out ptr<f32>\nargument n i32\nptx\n" + ptx;
  auto made = jit->compile(source); // the emulator reads the parameters
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::Internal);
  EXPECT_NE(made.status().message().find("disagree on the block or the parameters"), std::string::npos);
}

TEST_F(GuardTest, WrongArgumentsNameTheArgument) {
  JitKernel *add = kernelOf(*nullJit, addSource());
  const Status type = add->launch({1}, nullptr, std::uint64_t(256), 1.0f, std::uint64_t(256), 5);
  EXPECT_EQ(type.code(), StatusCode::InvalidArgument);
  EXPECT_NE(type.message().find("kernel 'add': argument 1 'y' has type ptr, a value of type f32 was given"),
            std::string::npos)
      << type.message();
  const Status count = add->launch({1}, nullptr, std::uint64_t(256));
  EXPECT_NE(count.message().find("it has 4 arguments (x, y, out, n), 1 were given"), std::string::npos);
  const Status misaligned = add->launch({1}, nullptr, std::uint64_t(256), std::uint64_t(258), std::uint64_t(256), 5);
  EXPECT_NE(misaligned.message().find("argument 1 'y' is 0x102, which is no multiple of the 4 bytes of f32"),
            std::string::npos);
}

} // namespace
