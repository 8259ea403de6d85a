#include "compiler/codegen/Child.h"
#include "compiler/codegen/CompileMessage.h"

#include <gtest/gtest.h>

using namespace kiln;

namespace {

Result<std::string> compileInHelper(std::string_view program, const std::string &library, double deadline = 30) {
  auto text = [](std::string_view s) { return KilnText{s.data(), s.size()}; };
  ChildOptions options;
  options.program = KILN_BINARY_DIR "/bin/kiln-compile-helper";
  options.arguments = {library};
  options.deadlineSeconds = deadline;
  return runInChild(encodeRequest({text(program), {}, {}, text("sm_80"), {}, text("{}")}), options);
}

const std::string fakeCompiler = KILN_BINARY_DIR "/tests/libkiln-fake-compiler.so";

} // namespace

TEST(CompileHelper, CarriesARequestToTheLibraryAndItsResultBack) {
  Result<std::string> bytes = compileInHelper("module {}", fakeCompiler);
  ASSERT_TRUE(bytes.ok()) << bytes.status().toString();
  Result<KilnCompileResult> result = decodeResult(*bytes);
  ASSERT_TRUE(result.ok()) << result.status().toString();
  EXPECT_EQ(result->status, KILN_COMPILE_REFUSED);
  EXPECT_EQ(std::string(result->output.data, result->output.size), "sm_80 module {} {}");
  EXPECT_EQ(std::string(result->metadata.data, result->metadata.size), "{}");
}

TEST(CompileHelper, ACrashOfTheLibraryIsAStatus) {
  Result<std::string> bytes = compileInHelper("crash", fakeCompiler);
  ASSERT_FALSE(bytes.ok());
  EXPECT_NE(bytes.status().message().find("SIGABRT"), std::string::npos) << bytes.status().toString();
}

TEST(CompileHelper, ACompileThatEatsMemoryIsStopped) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer reserves more address space than any limit allows";
#endif
  Result<std::string> bytes = compileInHelper("eat", fakeCompiler);
  ASSERT_FALSE(bytes.ok());
  EXPECT_NE(bytes.status().message().find("out of memory: the compile needs more than 8 GiB"), std::string::npos)
      << bytes.status().toString();
}

TEST(CompileHelper, ACompileThatHangsIsStoppedAtTheDeadline) {
  Result<std::string> bytes = compileInHelper("hang", fakeCompiler, 0.5);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().code(), StatusCode::CompileError) << bytes.status().toString();
  EXPECT_NE(bytes.status().message().find("0.5 s"), std::string::npos) << bytes.status().toString();
}

TEST(CompileHelper, MissingLibraryIsNamed) {
  Result<std::string> bytes = compileInHelper("module {}", "/no/such/libkiln-compiler.so");
  ASSERT_FALSE(bytes.ok());
  EXPECT_NE(bytes.status().message().find("/no/such/libkiln-compiler.so"), std::string::npos)
      << bytes.status().toString();
}
