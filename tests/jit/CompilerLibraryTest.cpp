#include "runtime/jit/CompilerLibrary.h"
#include "runtime/cache/Ownership.h"
#include "tests/jit/JitFixture.h"

#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
    for (const std::string &folder : cache::programFolders())
      EXPECT_NE(found.status().message().find(folder), std::string::npos) << found.status().message();
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

/// A copy of the fake compiler in a folder of its own.
class CopiedCompiler : public testing::Test {
protected:
  void SetUp() override {
    std::filesystem::copy_file(fakeCompiler, file);
    ASSERT_EQ(::chmod(file.c_str(), 0755), 0);
  }
  const TemporaryDirectory folder;
  const std::string file = std::filesystem::canonical(folder.path()).string() + "/libkiln-compiler.so";
};

/// A name without a slash is a file of this folder, for the hash and for the loader, which would look elsewhere.
TEST_F(CopiedCompiler, WhatIsHashedIsLoaded) {
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  auto library = CompilerLibrary::find("libkiln-compiler.so");
  ASSERT_TRUE(library.ok()) << library.status().toString();
  EXPECT_EQ((*library)->path(), file);
  const Status opened = (*library)->open(noMemo);
  std::filesystem::current_path(here);
  EXPECT_TRUE(opened.ok()) << opened.toString();
  EXPECT_EQ(*(*library)->identity(noMemo), noMemo.hash(file)->hash);
  // The loader keeps what it has loaded: another object of the same path runs that code, whatever the file holds now.
  std::filesystem::rename(file, file + ".old");
  std::filesystem::copy_file(file + ".old", file);
  std::ofstream(file, std::ios::app) << '\n';
  ASSERT_EQ(::chmod(file.c_str(), 0755), 0);
  const std::string before = *(*library)->identity(noMemo);
  EXPECT_NE(noMemo.hash(file)->hash, before);
  auto second = CompilerLibrary::find(file);
  ASSERT_TRUE(second.ok());
  ASSERT_TRUE((*second)->open(noMemo).ok());
  EXPECT_EQ(*(*second)->identity(noMemo), before);
}

TEST_F(CopiedCompiler, AFileThatOthersCanWriteIsNotLoaded) {
  ASSERT_EQ(::chmod(file.c_str(), 0777), 0);
  const Status s = CompilerLibrary::find(file).status();
  EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
  EXPECT_NE(s.message().find("the compiler '" + file + "' is not loaded: it can be written to by others (mode 0777)"),
            std::string::npos)
      << s.message();
  ASSERT_EQ(::chmod(file.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  EXPECT_NE(CompilerLibrary::find(file).status().message().find("the folder '"), std::string::npos);
}

TEST_F(CopiedCompiler, AFileThatChangesWhileItIsLoadedIsNotUsed) {
  ASSERT_EQ(::setenv("KILN_TEST_TOUCH_WHEN_LOADED", file.c_str(), 1), 0);
  auto library = CompilerLibrary::find(file);
  ASSERT_TRUE(library.ok());
  const Status first = (*library)->open(noMemo);
  ::unsetenv("KILN_TEST_TOUCH_WHEN_LOADED");
  EXPECT_EQ(first.code(), StatusCode::IoError);
  EXPECT_NE(first.message().find("changed while it was loaded"), std::string::npos) << first.message();
  // To load it again would give the same code under the hash of whatever is there now.
  EXPECT_EQ((*CompilerLibrary::find(file))->open(noMemo).code(), StatusCode::IoError);
}

/// In a process of its own: the limit holds for all of it.
TEST_F(CopiedCompiler, TooLittleMemoryIsNamed) {
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) // they reserve terabytes
  std::ofstream(file) << "not a library";                                 // whatever the loader says of it
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    rlimit limit{};
    limit.rlim_cur = limit.rlim_max = std::size_t(512) << 20;
    ::setrlimit(RLIMIT_AS, &limit);
    const Status s = (*CompilerLibrary::find(file))->open(noMemo);
    const bool named = s.code() == StatusCode::OutOfMemory && s.message().find("512 MiB") != std::string::npos &&
                       s.remedy().find("ulimit -v") != std::string::npos;
    if (!named)
      std::fprintf(stderr, "%s\n", s.toString().c_str());
    ::_exit(named ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#endif
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
