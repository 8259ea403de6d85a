// Each thing that decides code is in the key; what does not is not.
#include "runtime/cache/Pack.h"
#include "runtime/jit/KernelKey.h"
#include "tests/jit/JitFixture.h"

#include <functional>

using namespace kiln;
using namespace kiln::test;

namespace {

TEST(KernelKey, EveryPartChangesIt) {
  const KernelSource source = addSource();
  KeyParts parts{&source, "[]", "sm_80", "sm_90a", "nvJitLink 13.0", "abc", "", false};
  const std::string base = kernelKey(parts).serialise();
  EXPECT_EQ(kernelKey(parts).serialise(), base);
  const auto changed = [&](const std::function<void(KernelSource &, KeyParts &)> &change) {
    KernelSource otherSource = source;
    KeyParts other = parts;
    other.source = &otherSource;
    change(otherSource, other);
    return kernelKey(other).serialise() != base;
  };
  EXPECT_TRUE(changed([](KernelSource &s, KeyParts &) { s.name = "sub"; }));
  EXPECT_TRUE(changed([](KernelSource &s, KeyParts &) { s.programText += " "; }));
  EXPECT_TRUE(changed([](KernelSource &s, KeyParts &) { s.configuration = "block = 256"; }));
  EXPECT_TRUE(changed([](KernelSource &s, KeyParts &) { s.warps = 8; }));
  EXPECT_TRUE(changed([](KernelSource &s, KeyParts &) { s.arguments[0].name = "z"; }));
  EXPECT_TRUE(changed([](KernelSource &s, KeyParts &) { s.arguments[0].type = "ptr<f16>"; }));
  EXPECT_TRUE(changed([](KernelSource &s, KeyParts &) { s.arguments[0].specialise = Specialise::None; }));
  EXPECT_TRUE(changed([](KernelSource &s, KeyParts &) { s.arguments.pop_back(); }));
  EXPECT_TRUE(changed([](KernelSource &, KeyParts &p) { p.classes = "[{}]"; }));
  EXPECT_TRUE(changed([](KernelSource &, KeyParts &p) { p.codeTarget = "sm_90"; }));
  EXPECT_TRUE(changed([](KernelSource &, KeyParts &p) { p.assemblyArch = "sm_90"; }));
  EXPECT_TRUE(changed([](KernelSource &, KeyParts &p) { p.assembler = "nvJitLink 13.1"; }));
  EXPECT_TRUE(changed([](KernelSource &, KeyParts &p) { p.compiler = "abd"; }));
  EXPECT_TRUE(changed([](KernelSource &, KeyParts &p) { p.plugins = "abc"; }));
  EXPECT_TRUE(changed([](KernelSource &, KeyParts &p) { p.passes = "tile=cse"; }));
  EXPECT_TRUE(changed([](KernelSource &, KeyParts &p) { p.lineInfo = true; }));
  EXPECT_FALSE(changed([](KernelSource &s, KeyParts &) { s.fileName = "other.cpp"; })); // no lines, no file
}

/// What an older Kiln kept of the same assembler is not found, in packs neither.
TEST(KernelKey, SaysWhichCodeOfAnAssemblerIsKept) {
  const KernelSource source = addSource();
  const cache::KeyText key = kernelKey({&source, "[]", "sm_80", "none", "none", "abc", "", false});
  for (const cache::KeyText &each : {key, cache::packKey(key)})
    EXPECT_NE(each.serialise().find("assembly\n2"), std::string::npos) << each.serialise();
}

TEST(KernelKey, WithLineInfoLocationsCount) {
  KernelSource a = addSource(), b = a;
  a.programText = "x loc(\"f\":1:2)";
  b.programText = "x loc(\"f\":2:2)";
  KeyParts pa{&a, "[]", "sm_80", "none", "none", "abc", "", false}, pb = pa;
  pb.source = &b;
  EXPECT_EQ(kernelKey(pa).serialise(), kernelKey(pb).serialise());
  pa.lineInfo = pb.lineInfo = true;
  EXPECT_NE(kernelKey(pa).serialise(), kernelKey(pb).serialise());
  b = a;
  EXPECT_EQ(kernelKey(pa).serialise(), kernelKey(pb).serialise());
  b.fileName = "other.cpp";
  EXPECT_NE(kernelKey(pa).serialise(), kernelKey(pb).serialise());
}

TEST(KernelKey, LocationsAreCutOutOfTheTextAndNothingElse) {
  const struct {
    const char *text, *expected;
  } rows[] = {
      {"%0 = arith.addi %a, %b : i32 loc(#loc3)\nreturn loc(unknown)\n", "%0 = arith.addi %a, %b : i32\nreturn\n"},
      {"func.func @f(%x: i32 loc(\"a.cpp\":3:4), %y: i32 loc(\"b)\\\"(\":1:1)) {\n",
       "func.func @f(%x: i32, %y: i32) {\n"},
      {"#loc = loc(\"a.cpp\":0:0)\nmodule {\n} loc(#loc)\n#loc1 = loc(\"a.cpp\":1:1)\n", "module {\n}\n"},
      {"x loc(callsite(\"f\"(\"a\":1:1) at fused[\"p\":2:2, #loc7]))", "x"},
      {"tile.assert %c, \"loc(\\\"a\\\":1:1) stays\" loc(\"a\":1:1)", "tile.assert %c, \"loc(\\\"a\\\":1:1) stays\""},
      {"// loc(\"comments\" stay loc(\nx loc(#loc)", "// loc(\"comments\" stay loc(\nx"},
      {"call @loc(%x) : (i32) -> i32", "call @loc(%x) : (i32) -> i32"},
      {"alloc(%x) my.loc(%y) _loc(%z)", "alloc(%x) my.loc(%y) _loc(%z)"},
      {"x loc(\"never closed\":1", "x loc(\"never closed\":1"},
      {"x \"never closed loc(#a)", "x \"never closed loc(#a)"},
      {"#map = loc(1)", "#map ="},
      {"", ""},
  };
  for (const auto &row : rows)
    EXPECT_EQ(withoutLocations(row.text), row.expected) << row.text;
}

class KeyTest : public JitTest {
protected:
  /// Compiles after one change to the options or the source; true if it was found in the cache.
  bool hits(const std::function<void(JitOptions &, KernelSource &)> &change) {
    JitOptions options = jitOptions();
    KernelSource source = addSource();
    change(options, source);
    const std::unique_ptr<Jit> own = makeJit(options);
    auto made = own->compile(source);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    reason = made.ok() ? (*made)->report().reason : "";
    return made.ok() && (*made)->report().source == FirstCallReport::Source::Disk;
  }
  std::string reason;
};

TEST_F(KeyTest, KnobsThatChangeCodeMissAndOthersHit) {
  EXPECT_FALSE(hits([](JitOptions &, KernelSource &) {}));
  EXPECT_TRUE(hits([](JitOptions &, KernelSource &) {}));
  EXPECT_TRUE(hits([](JitOptions &o, KernelSource &) { o.knobs.isolation = knob::Isolation::Child; }));
  EXPECT_TRUE(hits([](JitOptions &o, KernelSource &) { o.knobs.log = "cache=off"; }));
  EXPECT_TRUE(hits([](JitOptions &o, KernelSource &) { o.knobs.launchBlocking = true; }));
  EXPECT_TRUE(hits([](JitOptions &o, KernelSource &) { o.knobs.cacheMaxBytes = 0; }));
  const auto missesBy = [&](const char *field, const std::function<void(JitOptions &, KernelSource &)> &change) {
    const bool hit = hits([&](JitOptions &o, KernelSource &s) {
      o.explainMisses = true;
      change(o, s);
    });
    EXPECT_FALSE(hit) << field;
    EXPECT_NE(reason.find(std::string("differs in ") + field), std::string::npos) << reason;
  };
  missesBy("line info", [](JitOptions &o, KernelSource &) { o.knobs.lineInfo = knob::Switch::Off; });
  missesBy("code target", [](JitOptions &o, KernelSource &) { o.codeTarget = "sm_75"; });
  missesBy("plugins", [](JitOptions &o, KernelSource &) { o.knobs.plugins = {fakeCompiler}; });
  missesBy("configuration", [](JitOptions &, KernelSource &s) { s.configuration = "block = 64"; });
  missesBy("program", [](JitOptions &, KernelSource &s) { s.programText += "// x\n"; });
}

TEST_F(KeyTest, AMissingPluginIsNamed) {
  JitOptions options = jitOptions();
  options.knobs.plugins = {"/nowhere/plugin.so"};
  const Status s = makeJit(options)->compile(addSource()).status();
  EXPECT_EQ(s.code(), StatusCode::NotFound);
  EXPECT_NE(s.message().find("the pass plugin '/nowhere/plugin.so' cannot be read"), std::string::npos) << s.message();
}

TEST_F(KeyTest, ClassesAreDifferentEntries) {
  ASSERT_TRUE(jit->compile(addSource()).ok());
  auto aligned = jit->compile(addSource(), std::vector<ArgumentFact>{ArgumentFact::divisible(16), {}, {}, {}});
  ASSERT_TRUE(aligned.ok());
  EXPECT_EQ(compiles(), 2u);
  EXPECT_EQ((*aligned)->guards().size(), 1u);
}

} // namespace
