#include "compiler/codegen/CompileMessage.h"

#include <gtest/gtest.h>

using namespace kiln;

namespace {
KilnText text(std::string_view s) {
  return {s.data(), s.size()};
}
std::string_view view(const KilnText &t) {
  return {t.data, t.size};
}

KilnCompileRequest request() {
  using namespace std::string_view_literals;
  return {text("module {}"), text("a.mlir"), text(""), text("sm_80"), text("[]\0x"sv), text("{\"emit\": \"ptx\"}")};
}
} // namespace

TEST(CompileMessage, RequestsRoundTrip) {
  const std::string bytes = encodeRequest(request());
  Result<KilnCompileRequest> back = decodeRequest(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(view(back->program), "module {}");
  EXPECT_EQ(view(back->fileName), "a.mlir");
  EXPECT_EQ(back->kernel.size, 0u);
  EXPECT_EQ(view(back->codeTarget), "sm_80");
  EXPECT_EQ(back->specialization.size, 4u);
  EXPECT_EQ(view(back->options), "{\"emit\": \"ptx\"}");
}

TEST(CompileMessage, ResultsRoundTrip) {
  KilnCompileResult result{KILN_COMPILE_REFUSED, text("ptx"), text("{}"), text("[1]"), &result};
  const std::string bytes = encodeResult(result);
  Result<KilnCompileResult> back = decodeResult(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->status, KILN_COMPILE_REFUSED);
  EXPECT_EQ(view(back->output), "ptx");
  EXPECT_EQ(view(back->metadata), "{}");
  EXPECT_EQ(view(back->diagnostics), "[1]");
  EXPECT_EQ(back->owner, nullptr);
}

TEST(CompileMessage, EveryTruncationAndEveryFlippedByteIsSafe) {
  const std::string bytes = encodeRequest(request());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decodeRequest(std::string_view(bytes).substr(0, size)).ok()) << size;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x81);
    if (Result<KilnCompileRequest> back = decodeRequest(damaged); back.ok())
      EXPECT_EQ(back->program.size + back->fileName.size + back->kernel.size + back->codeTarget.size +
                    back->specialization.size + back->options.size + 8 + 6 * 8,
                bytes.size());
    (void)decodeResult(damaged).ok();
  }
  EXPECT_FALSE(decodeRequest(bytes + "x").ok());
}
