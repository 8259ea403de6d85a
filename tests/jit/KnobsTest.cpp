#include "kiln/Knobs.h"
#include "kiln/Device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

using namespace kiln;

namespace {

struct Variable {
  Variable(const char *name, const char *value) : name(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name); }
  const char *name;
};

TEST(Knobs, EveryRowHasItsDefaultAndUniqueNames) {
  const Knobs knobs;
  std::set<std::string_view> names;
  for (const KnobInfo &k : allKnobs()) {
    auto value = knobs.get(k.variable);
    ASSERT_TRUE(value.ok()) << k.variable;
    EXPECT_EQ(*value, k.standard) << k.variable;
    EXPECT_TRUE(names.insert(k.variable).second && names.insert(k.flag).second && names.insert(k.field).second);
    EXPECT_TRUE(k.variable.starts_with("KILN_") && k.flag.starts_with("--") && k.text.ends_with(".")) << k.variable;
  }
}

TEST(Knobs, ValuesAreReadBackAsWritten) {
  Knobs knobs;
  EXPECT_TRUE(knobs.set("--log", "launch=debug").ok());
  EXPECT_EQ(knobs.log, "launch=debug");
  EXPECT_TRUE(knobs.set("KILN_CACHE_MAX_BYTES", "12M").ok());
  EXPECT_EQ(knobs.cacheMaxBytes, 12u << 20);
  EXPECT_EQ(*knobs.get("--cache-max-bytes"), "12M");
  EXPECT_TRUE(knobs.set("--isolation", "child").ok());
  EXPECT_EQ(knobs.isolation, knob::Isolation::Child);
  EXPECT_TRUE(knobs.set("--line-info", "off").ok());
  EXPECT_EQ(knobs.lineInfo, knob::Switch::Off);
  EXPECT_TRUE(knobs.set("--plugins", "/a.so:/b.so").ok());
  EXPECT_EQ(knobs.plugins, (std::vector<std::string>{"/a.so", "/b.so"}));
  EXPECT_TRUE(knobs.set("--schedule", "adversarial").ok() && knobs.set("--seed", "4096").ok());
  EXPECT_EQ(*knobs.get("KILN_SCHEDULE") + " " + *knobs.get("KILN_SEED"), "adversarial 4096");
  EXPECT_EQ(emulatorOptions(knobs).schedule, Schedule::Adversarial);
  EXPECT_EQ(emulatorOptions(knobs).seed, 4096u);
  EXPECT_EQ(emulatorOptions(knobs).mma, MatrixMode::Exact);
  EXPECT_TRUE(knobs.set("--mma", "fast").ok());
  EXPECT_EQ(*knobs.get("KILN_MMA"), "fast");
  EXPECT_EQ(emulatorOptions(knobs).mma, MatrixMode::Fast);
  EXPECT_TRUE(emulatorOptions(knobs).checks);
  EXPECT_TRUE(knobs.set("--checks", "fail").ok());
  EXPECT_EQ(*knobs.get("KILN_CHECKS"), "fail");
  EXPECT_TRUE(emulatorOptions(knobs).checks);
  EXPECT_TRUE(knobs.set("--checks", "off").ok());
  EXPECT_FALSE(emulatorOptions(knobs).checks);
}

TEST(Knobs, EnvironmentIsRead) {
  const Variable blocking("KILN_LAUNCH_BLOCKING", "yes"), cache("KILN_CACHE_DIR", "/somewhere");
  auto knobs = Knobs::fromEnvironment();
  ASSERT_TRUE(knobs.ok());
  EXPECT_TRUE(knobs->launchBlocking);
  EXPECT_EQ(knobs->cacheDir, "/somewhere");
  EXPECT_EQ(*cacheDirectory(*knobs), "/somewhere");
}

TEST(Knobs, WrongValuesNameTheVariableAndWhatIsAllowed) {
  const struct {
    const char *name, *value, *message;
  } rows[] = {
      {"KILN_LAUNCH_BLOCKING", "perhaps", "KILN_LAUNCH_BLOCKING: 'perhaps' is neither on nor off"},
      {"KILN_CACHE_MAX_BYTES", "1T", "KILN_CACHE_MAX_BYTES: '1T' is no number of bytes"},
      {"KILN_CACHE_MAX_BYTES", "99999999999999999999", "is no number of bytes"},
      {"KILN_CACHE_MAX_BYTES", "99999999999G", "is no number of bytes"},
      {"KILN_CACHE_MAX_BYTES", "-1", "is no number of bytes"},
      {"KILN_CACHE_MAX_BYTES", "", "is no number of bytes"},
      {"KILN_ISOLATION", "jail", "KILN_ISOLATION: 'jail' is none of auto, thread, none, child"},
      {"KILN_LINE_INFO", "", "is none of on, off, auto"},
      {"KILN_SCHEDULE", "sideways", "KILN_SCHEDULE: 'sideways' is none of in-order, random, adversarial"},
      {"KILN_MMA", "good", "KILN_MMA: 'good' is none of exact, fast"},
      {"KILN_CHECKS", "maybe", "KILN_CHECKS: 'maybe' is none of on, off, fail"},
      {"KILN_SEED", "-1", "KILN_SEED: '-1' is no number"},
      {"KILN_SEED", "18446744073709551616", "is no number"},
  };
  for (const auto &row : rows) {
    const Variable set(row.name, row.value);
    auto knobs = Knobs::fromEnvironment();
    ASSERT_FALSE(knobs.ok()) << row.name << "=" << row.value;
    EXPECT_NE(knobs.status().message().find(row.message), std::string::npos) << knobs.status().message();
    EXPECT_FALSE(knobs.status().remedy().empty());
  }
}

TEST(Knobs, UnknownNamesAreFound) {
  const Variable typo("KILN_CACHEDIR", "/x");
  const std::vector<std::string> found = unknownKnobVariables();
  EXPECT_NE(std::find(found.begin(), found.end(), "KILN_CACHEDIR"), found.end());
  Knobs knobs;
  const Status s = knobs.set("--cache-dirr", "/x");
  EXPECT_EQ(s.code(), StatusCode::NotFound);
  EXPECT_NE(s.remedy().find("--cache-dir"), std::string::npos);
}

TEST(Knobs, CacheOffIsNoDirectory) {
  Knobs knobs;
  knobs.cacheDir = "off";
  auto folder = cacheDirectory(knobs);
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(*folder, "");
}

/// KILN_TEST_UPDATE=1 writes the page.
TEST(Knobs, ThePageIsTheTable) {
  const std::string path = KILN_SOURCE_DIR "/docs/knobs.md";
  if (std::getenv("KILN_TEST_UPDATE"))
    std::ofstream(path) << knobsPage();
  std::ifstream in(path);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(page, knobsPage()) << "run this test with KILN_TEST_UPDATE=1";
}

/// The runtime reads the environment in one place.
TEST(Knobs, NoOtherGetenv) {
  const std::string command = "grep -rlE '\\b(secure_)?getenv *\\(' --include=*.cpp --include=*.h " KILN_SOURCE_DIR
                              "/runtime " KILN_SOURCE_DIR "/support";
  FILE *pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string found;
  for (char line[512]; std::fgets(line, sizeof line, pipe);)
    found += line;
  ::pclose(pipe);
  EXPECT_EQ(found, KILN_SOURCE_DIR "/runtime/jit/Knobs.cpp\n");
}

} // namespace
