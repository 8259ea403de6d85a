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
    else if (knob.type == KnobType::Path)
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
