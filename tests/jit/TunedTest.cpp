// What sweeps kept: found by later Jits of the same cache under exactly its question, by nobody else; damage is nothing.
#include "runtime/cache/KernelCache.h"
#include "tests/jit/JitFixture.h"

namespace kiln::test {
namespace {

class TunedTest : public JitTest {
protected:
  static TunedQuestion question() {
    TunedQuestion out;
    out.operation = "attention", out.part = "keys", out.types = "bf16", out.configuration = "dim=128, causal=true";
    out.sizes = "queries 8192, heads 64";
    out.options = {"keys_block_m", "keys_stages"};
    return out;
  }
  static TunedOrigin origin() { return {"q=2x8192x32x128", 1.5, 2.0, 64, "2026-11-28T04:00:00Z"}; }
  void keep(Jit &of, const TunedValues &values) {
    const Status s = of.keepTuned(question(), values, origin());
    ASSERT_TRUE(s.ok()) << s.toString();
  }
  /// Writes another entry under the key of the one that is there.
  void replace(cache::EntryKind kind, const std::string &payload) {
    cache::CacheOptions how;
    how.directory = folder.path() + "/cache";
    auto cache = cache::KernelCache::open(how);
    ASSERT_TRUE(cache.ok());
    auto all = (*cache)->list();
    ASSERT_TRUE(all.ok());
    ASSERT_EQ(all->size(), 1u);
    ASSERT_TRUE((*cache)->store(all->front().key, {kind, payload, "{}"}).ok());
  }
};

TEST_F(TunedTest, IsFoundByLaterJits) {
  EXPECT_FALSE(jit->tuned(question()));
  keep(*jit, {64, 3});
  EXPECT_EQ(jit->tuned(question()), TunedValues({64, 3}));
  EXPECT_EQ(makeJit()->tuned(question()), TunedValues({64, 3}));
  keep(*makeJit(), {128, 0});
  EXPECT_EQ(makeJit()->tuned(question()), TunedValues({128, 0}));
  EXPECT_EQ(jit->counters().diskHits, 0u); // those of kernels
}

TEST_F(TunedTest, EveryPartOfTheQuestionCounts) {
  keep(*jit, {64, 3});
  for (std::string TunedQuestion::*field : {&TunedQuestion::operation, &TunedQuestion::part, &TunedQuestion::types,
                                            &TunedQuestion::configuration, &TunedQuestion::sizes}) {
    TunedQuestion other = question();
    other.*field += "x";
    EXPECT_FALSE(jit->tuned(other));
  }
  TunedQuestion other = question();
  other.options = {"keys_stages", "keys_block_m"};
  EXPECT_FALSE(jit->tuned(other));
  JitOptions options = jitOptions();
  options.codeTarget = "sm_75";
  EXPECT_FALSE(makeJit(std::move(options))->tuned(question()));
  options = jitOptions();
  options.knobs.passes = "tile=cse";
  EXPECT_FALSE(makeJit(std::move(options))->tuned(question()));
  auto device90 = openDevice("emulator:sm_90a");
  ASSERT_TRUE(device90.ok());
  options = jitOptions();
  options.codeTarget = "sm_80"; // the same code on another device
  auto elsewhere = Jit::create(**device90, std::move(options));
  ASSERT_TRUE(elsewhere.ok());
  EXPECT_FALSE((*elsewhere)->tuned(question()));
}

TEST_F(TunedTest, TheKnobTurnsItOff) {
  keep(*jit, {64, 3});
  EXPECT_TRUE(jit->asksForTuned());
  JitOptions options = jitOptions();
  options.knobs.tuned = false;
  EXPECT_FALSE(makeJit(options)->asksForTuned());
  unsigned told = 0;
  options.onTunedQuestion = [&](const TunedQuestion &q) { told += q.operation == "attention"; };
  const auto listening = makeJit(options);
  EXPECT_TRUE(listening->asksForTuned());
  EXPECT_FALSE(listening->tuned(question()));
  EXPECT_EQ(told, 1u);
}

TEST_F(TunedTest, DamagedValuesAreNone) {
  keep(*jit, {64, 3});
  using enum cache::EntryKind;
  for (const char *payload : {"", "64", "[64,3]", "{\"keys_block_m\":64}", "{\"keys_block_m\":64,\"keys_stages\":\"3\"}",
                              "{\"keys_block_m\":64,\"keys_stages\":3,\"more\":1}", "{\"keys_block_m\":64.5,\"keys_stages\":3}",
                              "{\"keys_block_m\":64,\"warps\":3}", "{\"keys_block_m\":64,"}) {
    replace(Tuned, payload);
    EXPECT_FALSE(jit->tuned(question())) << payload;
  }
  const char *good = "{\"keys_stages\":3,\"keys_block_m\":64}";
  replace(Ptx, good);
  EXPECT_FALSE(jit->tuned(question()));
  replace(Tuned, good);
  EXPECT_EQ(jit->tuned(question()), TunedValues({64, 3}));
}

TEST_F(TunedTest, SharedFoldersHaveThemToo) {
  keep(*jit, {64, 3});
  JitOptions options = jitOptions();
  options.knobs.cacheDir = folder.path() + "/own";
  EXPECT_FALSE(makeJit(options)->tuned(question()));
  options.knobs.cacheShared = {folder.path() + "/cache"};
  const auto other = makeJit(options);
  EXPECT_EQ(other->tuned(question()), TunedValues({64, 3}));
  keep(*other, {32, 1}); // one's own come first
  EXPECT_EQ(makeJit(options)->tuned(question()), TunedValues({32, 1}));
  EXPECT_EQ(jit->tuned(question()), TunedValues({64, 3}));
}

TEST_F(TunedTest, WhatCannotBeKeptIsRefused) {
  const Status few = jit->keepTuned(question(), {64}, origin());
  EXPECT_NE(few.toString().find("attention (keys): 1 values for 2 options"), std::string::npos) << few.toString();
  JitOptions options = jitOptions();
  options.diskCache = false;
  const auto without = makeJit(std::move(options));
  const Status none = without->keepTuned(question(), {64, 3}, origin());
  EXPECT_NE(none.toString().find("no cache on disk"), std::string::npos) << none.toString();
  EXPECT_FALSE(without->tuned(question()));
}

} // namespace
} // namespace kiln::test
