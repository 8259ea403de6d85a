// Every setting that the compiler is told reaches every compile.
#include "runtime/jit/CompileRequest.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace kiln;
using kiln::test::TemporaryDirectory;

namespace {

nlohmann::json request(const Knobs &knobs, const CompilePurpose &purpose = {}) {
  const Result<CompileOptions> out = compileOptions(knobs, purpose);
  EXPECT_TRUE(out.ok()) << out.status().toString();
  return out ? nlohmann::json::parse(out->json) : nlohmann::json();
}

/// The files of one kernel and target; those that others could have written are refused.
TEST(CompileRequest, OverridesAreOfTheKernelAndNobodyElses) {
  const TemporaryDirectory folder;
  Knobs knobs;
  knobs.overrideDir = std::filesystem::canonical(folder.path()).string() + "/o";
  EXPECT_EQ(readOverrides(knobs, "add", "sm_80").status().code(), StatusCode::NotFound);
  std::filesystem::create_directory(knobs.overrideDir);
  std::filesystem::permissions(knobs.overrideDir, std::filesystem::perms::owner_all);
  for (const char *name : {"add.sm_80.1.ptx", "add.sm_90a.1.ptx", "add2.sm_80.1.ptx", "add.sm_80.1.source.mlir"})
    std::ofstream(knobs.overrideDir + "/" + name) << name;
  const Result<Overrides> found = readOverrides(knobs, "add", "sm_80");
  ASSERT_TRUE(found.ok()) << found.status().toString();
  ASSERT_EQ(found->files.size(), 1u);
  EXPECT_EQ(found->files[0].first, "add.sm_80.1.ptx");
  const std::string before = found->identity();
  std::ofstream(knobs.overrideDir + "/add.sm_80.1.ptx") << "other";
  EXPECT_NE(readOverrides(knobs, "add", "sm_80")->identity(), before);
  ASSERT_EQ(::chmod((knobs.overrideDir + "/add.sm_80.1.ptx").c_str(), 0666), 0);
  EXPECT_NE(readOverrides(knobs, "add", "sm_80").status().message().find("others can write to it"), std::string::npos);
}

TEST(CompileRequest, EverySettingForTheCompilerIsInIt) {
  const TemporaryDirectory folder;
  const std::string plugin = std::filesystem::canonical(folder.path()).string() + "/p.so";
  std::ofstream(plugin) << "code";
  unsigned settings = 0;
  for (const KnobInfo &knob : allKnobs()) {
    const std::string name(knob.request);
    if (name.empty())
      continue;
    ++settings;
    Knobs knobs;
    EXPECT_EQ(request(knobs).contains(name), name == "isolation") << name;
    nlohmann::json expected;
    std::string value = "7";
    if (knob.type == KnobType::Isolation)
      expected = value = "none";
    else if (knob.type == KnobType::Bool) {
      value = "1";
      expected = true;
    } else if (name == "overrides") {
      value = std::filesystem::canonical(folder.path()).string() + "/overrides";
      std::filesystem::create_directory(value);
      std::filesystem::permissions(value, std::filesystem::perms::owner_all);
      std::ofstream(value + "/add.sm_80.01234567.tile.mlir") << "module {}";
      std::ofstream(value + "/add.sm_80.01234567.01-tile-cse.mlir") << "a pass's, which replaces nothing";
      expected["add.sm_80.01234567.tile.mlir"] = "module {}";
    } else if (knob.type == KnobType::Path)
      expected = value = folder.path() + "/dumps";
    else if (knob.type == KnobType::Paths) {
      value = plugin;
      expected = nlohmann::json::array({plugin});
    } else
      expected = value;
    ASSERT_TRUE(knobs.set(knob.variable, value).ok()) << name;
    EXPECT_EQ(request(knobs)[name], expected) << name;
  }
  EXPECT_GE(settings, 5u);
}

TEST(CompileRequest, AFilesTextIsCompiledInAProcessUnlessAnotherPlaceIsAskedFor) {
  Knobs knobs;
  EXPECT_EQ(request(knobs)["isolation"], "thread");
  EXPECT_EQ(request(knobs, {.fromFile = true})["isolation"], "child");
  ASSERT_TRUE(knobs.set("--isolation", "thread").ok());
  EXPECT_EQ(request(knobs, {.fromFile = true})["isolation"], "thread");
}

TEST(CompileRequest, SaysWhatTheCallerWants) {
  const nlohmann::json r = request({}, {.emit = "tile", .lineInfo = true, .explain = true});
  EXPECT_EQ(r["emit"], "tile");
  EXPECT_EQ(r["line_info"], true);
  EXPECT_EQ(r["explain"], true);
  Knobs knobs;
  knobs.passes = "tile=cse";
  knobs.stress = "7";
  const nlohmann::json plain = request(knobs, {.plain = true});
  EXPECT_FALSE(plain.contains("passes") || plain.contains("stress")) << plain.dump();
}

TEST(CompileRequest, PluginsThatOthersCanWriteAreRefused) {
  const TemporaryDirectory folder;
  Knobs knobs;
  knobs.plugins = {folder.path() + "/p.so"};
  const Status missing = compileOptions(knobs, {}).status();
  EXPECT_EQ(missing.code(), StatusCode::NotFound);
  EXPECT_NE(missing.message().find(knobs.plugins[0]), std::string::npos) << missing.message();
  std::ofstream(knobs.plugins[0]) << "code";
  ASSERT_EQ(::chmod(knobs.plugins[0].c_str(), 0777), 0);
  const Status open = compileOptions(knobs, {}).status();
  EXPECT_EQ(open.code(), StatusCode::InvalidArgument);
  EXPECT_NE(open.message().find("can be written to by others"), std::string::npos) << open.message();
  EXPECT_NE(open.remedy().find("chmod go-w"), std::string::npos) << open.remedy();
}

} // namespace
