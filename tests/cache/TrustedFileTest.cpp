// Libraries are loaded by the name that was checked, and never one that others could have written.
#include "runtime/cache/TrustedFile.h"
#include "runtime/cache/Ownership.h"
#include "tests/cache/CacheTestSupport.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace kiln;
using namespace kiln::cache;
using namespace kiln::cache::test;

namespace {

constexpr uid_t stranger = 65533;

class TrustedFile : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(::mkdir((folder.path() + "/lib").c_str(), 0700), 0);
    writeBytes(file, "code");
    ASSERT_EQ(::chmod(file.c_str(), 0755), 0);
  }
  /// The path, or why not.
  static std::string opening(const std::string &path) {
    const Result<std::string> trusted = trustedFile(path, "the plugin");
    return trusted ? *trusted : trusted.status().toString();
  }
  kiln::test::TemporaryDirectory folder;
  const std::string file = folder.path() + "/lib/p.so";
};

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST_F(TrustedFile, GivesTheOnePathOfTheFile) {
  const std::string real = std::filesystem::canonical(file);
  EXPECT_EQ(opening(file), real);
  EXPECT_EQ(opening(folder.path() + "/./lib/../lib/p.so"), real);
  ASSERT_EQ(::symlink("lib/p.so", (folder.path() + "/link.so").c_str()), 0);
  EXPECT_EQ(opening(folder.path() + "/link.so"), real);
  // A name without a slash is one of this folder: the loader would look elsewhere.
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path() + "/lib");
  EXPECT_EQ(opening("p.so"), real);
  std::filesystem::current_path(here);
  EXPECT_TRUE(contains(opening(file + "x"), "the plugin '" + file + "x' cannot be read: No such file"));
}

TEST_F(TrustedFile, AFileThatOthersCanWriteIsRefused) {
  for (const mode_t mode : {0777, 0757, 0702}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    const std::string text = opening(file);
    EXPECT_TRUE(contains(text, "the plugin '" + file + "' is not loaded: it can be written to by others (mode " +
                                   modeText(mode)))
        << text;
    EXPECT_TRUE(contains(text, "'chmod go-w ")) << text;
  }
  EXPECT_TRUE(contains(opening(folder.path() + "/lib"), "is not a regular file"));
}

TEST_F(TrustedFile, AFolderThatOthersCanWriteIsRefused) {
  for (const std::string &at : {folder.path() + "/lib", folder.path()}) {
    ASSERT_EQ(::chmod(at.c_str(), 0777), 0);
    const std::string text = opening(file);
    EXPECT_TRUE(contains(text, "the folder '" + at + "' can be written to by others (mode 0777)")) << text;
    ASSERT_EQ(::chmod(at.c_str(), 01777), 0); // like /tmp: only its owner replaces the file
    EXPECT_TRUE(opening(file).starts_with("/")) << opening(file);
    ASSERT_EQ(::chmod(at.c_str(), 0755), 0);
  }
}

TEST_F(TrustedFile, AStrangersFileIsRefused) {
  if (!isRoot())
    GTEST_SKIP() << "only root can make files of other users";
  ASSERT_EQ(::chown(file.c_str(), stranger, stranger), 0);
  std::string text = opening(file);
  EXPECT_TRUE(contains(text, "is not loaded: it belongs to user 65533, this process runs as user 0")) << text;
  ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown((folder.path() + "/lib").c_str(), stranger, stranger), 0);
  text = opening(file);
  EXPECT_TRUE(contains(text, "/lib' belongs to user 65533")) << text;
}

/// The private group that many systems give each user makes files of mode 0664; a group with members is others.
TEST_F(TrustedFile, AGroupIsTheOwnersAloneOnlyByItsName) {
  if (!isRoot())
    GTEST_SKIP() << "only root can give a file to a group";
  ASSERT_EQ(::chmod(file.c_str(), 0664), 0); // group 0 is root's
  EXPECT_TRUE(opening(file).starts_with("/")) << opening(file);
  ASSERT_EQ(::chown(file.c_str(), 0, stranger), 0);
  EXPECT_TRUE(contains(opening(file), "it can be written to by others (mode 0664)")) << opening(file);
}

/// Whoever can change what lies with the program can change the program.
TEST_F(TrustedFile, WhatLiesWithTheProgramIsTrustedAsTheProgramIs) {
  const std::string own = programFolders().front() + "/kiln-trusted-file-test.so";
  writeBytes(own, "code");
  ASSERT_EQ(::chmod(own.c_str(), 0777), 0);
  EXPECT_EQ(opening(own), own);
  ::unlink(own.c_str());
}

} // namespace
