#include "runtime/jit/CompilerLibrary.h"
#include "tests/jit/JitFixture.h"

using namespace kiln;
using namespace kiln::test;

namespace {

const FileHashes noMemo(nullptr);

TEST(CompilerLibrary, IsOpenedByTheFirstCompileAndNotBefore) {
  auto library = CompilerLibrary::find(fakeCompiler);
  ASSERT_TRUE(library.ok());
  auto identity = (*library)->identity(noMemo);
  ASSERT_TRUE(identity.ok());
  EXPECT_EQ(identity->size(), 32u);
  EXPECT_FALSE((*library)->opened());
  EXPECT_EQ((*library)->version(), "");
  CompileInput input;
  const std::string program = addProgram();
  input.program = program;
  input.kernel = "add";
  input.codeTarget = "sm_80";
  auto out = (*library)->compile(input, noMemo);
  ASSERT_TRUE(out.ok()) << out.status().toString();
  EXPECT_EQ(out->status, KILN_COMPILE_OK);
  EXPECT_EQ(out->output, addPtx);
  EXPECT_TRUE((*library)->opened());
  EXPECT_EQ((*library)->version(), "fake 1, no LLVM");
  EXPECT_EQ(*(*library)->identity(noMemo), *identity);
}

TEST(CompilerLibrary, WhatIsMissingIsNamedWithWhereWasLooked) {
  const Status given = CompilerLibrary::find("/nowhere/libkiln-compiler.so").status();
  EXPECT_EQ(given.code(), StatusCode::NotFound);
  EXPECT_NE(given.message().find("/nowhere/libkiln-compiler.so"), std::string::npos);
  EXPECT_NE(given.remedy().find("KILN_COMPILER"), std::string::npos);
  auto found = CompilerLibrary::find();
  if (!found)
    EXPECT_NE(found.status().message().find("/../lib"), std::string::npos) << found.status().message();
}

TEST(CompilerLibrary, OtherInterfacesAndOtherFilesAreRefused) {
  auto abi = CompilerLibrary::find(KILN_BINARY_DIR "/tests/libkiln-jit-fake-compiler-abi.so");
  ASSERT_TRUE(abi.ok());
  const Status version = (*abi)->open(noMemo);
  EXPECT_EQ(version.code(), StatusCode::Unsupported);
  EXPECT_NE(version.message().find("has version 999 of the compiler's interface, this program 1"), std::string::npos);

  const TemporaryDirectory folder;
  const std::string text = folder.path() + "/libkiln-compiler.so";
  std::ofstream(text) << "not a library";
  auto noLibrary = CompilerLibrary::find(text);
  ASSERT_TRUE(noLibrary.ok());
  EXPECT_EQ((*noLibrary)->open(noMemo).code(), StatusCode::NotFound);
}

TEST(CompilerLibrary, DiagnosticsBecomeLines) {
  EXPECT_EQ(diagnosticsText(""), "");
  EXPECT_EQ(diagnosticsText("[]"), "");
  EXPECT_EQ(diagnosticsText(R"([{"severity":"remark","file":"a.mlir","line":3,"column":4,"message":"m","remedy":"r"},
                                {"severity":"error","message":"n"}, 7])"),
            "a.mlir:3:4: remark: m (r)\nerror: n");
  EXPECT_EQ(diagnosticsText("not json"), "not json");
}

} // namespace
