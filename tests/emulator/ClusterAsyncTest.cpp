// mbarriers of other blocks, st.async and red.async.  References are written out here.
#include "tests/emulator/ClusterKernels.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

const ClusterShape pair{{2}, {2}, {64}};

std::string says(const ClusterOutcome &o, const char *id) {
  const Finding *f = o.launched.find(id);
  return f ? f->message : o.launched.text();
}
#define EXPECT_TEXT(outcome, id, part) EXPECT_NE(says(outcome, id).find(part), std::string::npos) << says(outcome, id)

/// One thread of each block makes `bar` with `count` arrivals, and all blocks know.  %r40 = bar, %r41 = the next rank,
/// %r42 = its bar.
std::string withBarrier(unsigned count, const std::string &body) {
  return "mov.u32 %r40, bar; setp.ne.u32 %p10, %r2, 0; @!%p10 mbarrier.init.shared.b64 [%r40], " +
         std::to_string(count) + R"(;
    fence.mbarrier_init.release.cluster; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    add.u32 %r41, %r10, 1; rem.u32 %r41, %r41, %r11; mapa.shared::cluster.u32 %r42, %r40, %r41;
)" + body +
         "\nbarrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n";
}

const std::string waitOwn =
    "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r40], 0; @!%p1 bra WAIT;\n";

} // namespace

TEST(ClusterMbarrier, RemoteArrivalsCarryData) {
  // Each block writes into the next one and arrives there; everybody waits for its own.
  const auto body = [](const std::string &arrive) {
    return withBarrier(64, R"(
    mapa.shared::cluster.u32 %r20, %r4, %r41; mad.lo.u32 %r21, %r10, 100, %r2; st.shared::cluster.u32 [%r20], %r21;
    )" + arrive + waitOwn +
                               "xor.b32 %r22, %r5, 252; mov.u32 %r23, tile; add.u32 %r22, %r22, %r23; ld.shared.u32 "
                               "%r24, [%r22]; st.global.u32 [%rd2], %r24;");
  };
  const std::string generic = "cvt.u64.u32 %rd10, %r42; cvta.shared::cluster.u64 %rd10, %rd10; ";
  for (const std::string &arrive : std::vector<std::string>{
           "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r42];\n",
           "mbarrier.arrive.shared::cluster.b64 _, [%r42];\n",
           "fence.acq_rel.cluster; mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r42];\n",
           generic + "mbarrier.arrive.release.cluster.b64 _, [%rd10];\n",
           "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r42], 4; "
           "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r42], 4;\n"})
    for (const ClusterShape &s : {pair, ClusterShape{{8}, {4}, {64}}})
      for (const ClusterSetting &setting : clusterSettings(4)) {
        const ClusterOutcome o = runCluster(body(arrive), s, setting);
        ASSERT_TRUE(o.launched.clean()) << setting.text() << arrive << o.launched.text();
        const std::uint32_t n = s.cluster.x;
        for (std::uint32_t b = 0; b < s.grid.x; ++b)
          for (std::uint32_t t = 0; t < 64; ++t)
            ASSERT_EQ(o.values[b * 64 + t], (b % n + n - 1) % n * 100 + (t ^ 63)) << setting.text() << arrive;
      }
}

TEST(ClusterMbarrier, RelaxedArrivalCarriesNothing) {
  const std::string body = withBarrier(64, R"(
    mapa.shared::cluster.u32 %r20, %r4, %r41; st.shared::cluster.u32 [%r20], %r2;
    mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r42];
    )" + waitOwn + "ld.shared.u32 %r24, [%r4];");
  for (const ClusterSetting &setting : clusterSettings(6))
    EXPECT_TRUE(runCluster(body, pair, setting).launched.has("race.shared")) << setting.text();
}

TEST(ClusterMbarrier, Misuse) {
  const auto ids = [](const std::string &body) { return runCluster(withBarrier(64, body), pair).launched.ids(); };
  EXPECT_EQ(ids("mbarrier.test_wait.parity.shared.b64 %p1, [%r42], 0;"), "mbarrier.remote_wait");
  EXPECT_EQ(ids("mapa.shared::cluster.u32 %r20, %r40, 5; mbarrier.arrive.shared::cluster.b64 _, [%r20];"),
            "oob.remote");
  EXPECT_EQ(ids("add.u32 %r20, %r42, 8; mbarrier.arrive.shared::cluster.b64 _, [%r20];"), "oob.shared");
  EXPECT_EQ(ids("mov.u32 %r20, tile; mapa.shared::cluster.u32 %r20, %r20, %r41; mbarrier.arrive.shared::cluster.b64 _, "
                "[%r20];"),
            "mbarrier.uninit");
  EXPECT_EQ(ids("ld.shared::cluster.u64 %rd10, [%r42];"), "mbarrier.raw_access");
}

TEST(StoreAsync, EveryWidthArrives) {
  struct Form {
    std::string text, value;
    unsigned words;
  };
  const Form forms[] = {{"b32", "%r30", 1},
                        {"u32", "%r30", 1},
                        {"f32", "%f1", 1},
                        {"b64", "%rd30", 2},
                        {"s64", "%rd30", 2},
                        {"v2.b32", "{%r30, %r31}", 2},
                        {"v2.u64", "{%rd30, %rd31}", 4},
                        {"v4.u32", "{%r30, %r31, %r32, %r33}", 4}};
  for (const Form &f : forms)
    for (const char *weak : {"", ".weak"})
      for (const ClusterSetting &setting : clusterSettings(3)) {
        const std::string bytes = std::to_string(f.words * 4);
        // Thread t writes `words` words from t * words on; what it reads back is the last of them.
        const std::string body =
            withBarrier(1, "@!%p10 mbarrier.arrive.expect_tx.shared.b64 _, [%r40], " +
                               std::to_string(f.words * 4 * 64) + R"(;
    mad.lo.u32 %r30, %r10, 1000, %r2; add.u32 %r31, %r30, 10000; add.u32 %r32, %r30, 20000; add.u32 %r33, %r30, 30000;
    mov.b32 %f1, %r30; mov.b64 %rd30, {%r30, %r31}; mov.b64 %rd31, {%r32, %r33};
    mov.u32 %r20, tile; mad.lo.u32 %r21, %r2, )" +
                               bytes + R"(, %r20; mapa.shared::cluster.u32 %r22, %r21, %r41;
    st.async)" + weak + ".shared::cluster.mbarrier::complete_tx::bytes." +
                               f.text + " [%r22], " + f.value + ", [%r42];\n" + waitOwn + "ld.shared.u32 %r24, [%r21+" +
                               std::to_string(f.words * 4 - 4) + "]; st.global.u32 [%rd2], %r24;");
        const ClusterOutcome o = runCluster(body, pair, setting);
        ASSERT_TRUE(o.launched.clean()) << setting.text() << f.text << o.launched.text();
        for (std::uint32_t b = 0; b < 2; ++b)
          for (std::uint32_t t = 0; t < 64; ++t)
            ASSERT_EQ(o.values[b * 64 + t], (1 - b) * 1000 + t + (f.words - 1) * 10000) << setting.text() << f.text;
      }
}

TEST(StoreAsync, LanesToSeveralBlocksGenericAddresses) {
  // Lane l of each block writes into rank l % 4; 16 lanes of each of 4 blocks and 4 bytes: 256 bytes a block.
  const std::string body = withBarrier(1, R"(@!%p10 mbarrier.arrive.expect_tx.shared.b64 _, [%r40], 256;
    and.b32 %r20, %r2, 3; mov.u32 %r21, tile; shl.b32 %r22, %r10, 6; add.u32 %r21, %r21, %r22; shr.u32 %r22, %r2, 2; shl.b32 %r22, %r22, 2; add.u32 %r21, %r21, %r22;
    cvt.u64.u32 %rd10, %r21; cvta.shared.u64 %rd10, %rd10; mapa.u64 %rd10, %rd10, %r20; cvt.u64.u32 %rd11, %r40; cvta.shared.u64 %rd11, %rd11; mapa.u64 %rd11, %rd11, %r20;
    mad.lo.u32 %r23, %r10, 100, %r2; st.async.mbarrier::complete_tx::bytes.u32 [%rd10+0], %r23, [%rd11];
    )" + waitOwn + "ld.shared.u32 %r24, [%r4]; st.global.u32 [%rd2], %r24;");
  for (const ClusterSetting &setting : clusterSettings(10)) {
    const ClusterOutcome o = runCluster(body, {{4}, {4}, {64}}, setting);
    ASSERT_TRUE(o.launched.clean()) << setting.text() << o.launched.text();
    for (std::uint32_t b = 0; b < 4; ++b)
      for (std::uint32_t w = 0; w < 64; ++w) // word w came from block w / 16
        ASSERT_EQ(o.values[b * 64 + w], w / 16 * 100 + w % 16 * 4 + b) << setting.text();
  }
}

TEST(ReduceAsync, EveryOperation) {
  struct Case {
    std::string op;
    std::uint64_t initial, operand; ///< every lane's operand is this plus its number
    std::uint64_t (*apply)(std::uint64_t, std::uint64_t);
    bool wide = false;
  };
  using U = std::uint64_t;
  const Case cases[] = {
      {"add.u32", 0xFFFFFFF0u, 5, [](U a, U b) { return U(std::uint32_t(a + b)); }},
      {"add.s32", 7, 0xFFFFFF00u, [](U a, U b) { return U(std::uint32_t(a + b)); }},
      {"add.u64", 0xFFFFFFFFull, 0xFFFFFFFFull, [](U a, U b) { return a + b; }, true},
      {"min.u32", 0x80000000u, 3, [](U a, U b) { return std::min(a, b); }},
      {"max.u32", 2, 0x90000000u, [](U a, U b) { return std::max(a, b); }},
      {"min.s32", 5, 0xFFFFFF00u,
       [](U a, U b) { return U(std::uint32_t(std::min(std::int32_t(a), std::int32_t(b)))); }},
      {"max.s32", 0xFFFFFF00u, 3,
       [](U a, U b) { return U(std::uint32_t(std::max(std::int32_t(a), std::int32_t(b)))); }},
      {"and.b32", 0xFFFFFFFFu, 0xFFFF0000u, [](U a, U b) { return a & b; }},
      {"or.b32", 0, 0xF00, [](U a, U b) { return a | b; }},
      {"xor.b32", 0xABCD, 0xF0F0, [](U a, U b) { return a ^ b; }},
      // The same operand for all: the order of lanes does not matter then.
      {"inc.u32", 3, 40, [](U a, U) { return a >= 40 ? 0 : a + 1; }},
      {"dec.u32", 3, 40, [](U a, U) { return a == 0 || a > 40 ? 40 : a - 1; }},
  };
  for (const Case &c : cases)
    for (const ClusterSetting &setting : clusterSettings(3)) {
      const bool same = c.op.starts_with("inc") || c.op.starts_with("dec");
      const std::string reg = c.wide ? "%rd20" : "%r20", type = c.wide ? "u64" : "u32", bytes = c.wide ? "8" : "4";
      const std::string body =
          "mov.u32 %r21, tile; mov.u64 %rd20, " + std::to_string(c.initial) + "; cvt.u32.u64 %r20, %rd20;\n" +
          "setp.ne.u32 %p11, %r2, 0; @!%p11 st.shared." + type + " [%r21], " + reg + ";\n" +
          withBarrier(1, "@!%p10 mbarrier.arrive.expect_tx.shared.b64 _, [%r40], " +
                             std::to_string(c.wide ? 512 : 256) + ";\nmov.u64 %rd20, " + std::to_string(c.operand) +
                             "; cvt.u64.u32 %rd21, %r2; " + (same ? "" : "add.u64 %rd20, %rd20, %rd21; ") +
                             "cvt.u32.u64 %r20, %rd20; mapa.shared::cluster.u32 %r22, %r21, %r41;\n" +
                             "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." + c.op +
                             " [%r22], " + reg + ", [%r42];\n" + waitOwn + "ld.shared.u32 %r24, [%r21+" +
                             (c.wide ? "4" : "0") + "]; st.global.u32 [%rd2], %r24;");
      const ClusterOutcome o = runCluster(body, pair, setting);
      ASSERT_TRUE(o.launched.clean()) << setting.text() << c.op << o.launched.text();
      U expected = c.initial;
      for (U t = 0; t < 64; ++t)
        expected = c.apply(expected, c.operand + (same ? 0 : t));
      EXPECT_EQ(o.values[0], std::uint32_t(c.wide ? expected >> 32 : expected)) << setting.text() << c.op;
      EXPECT_EQ(o.values[127], o.values[0]);
    }
}

TEST(StoreAsync, ReadBeforeTheWait) {
  const auto text = [](const std::string &before, const std::string &after) {
    return withBarrier(1, R"(@!%p10 mbarrier.arrive.expect_tx.shared.b64 _, [%r40], 256;
    mapa.shared::cluster.u32 %r22, %r4, %r41; st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r22], %r2, [%r42];
    )" + before + "ld.shared.u32 %r24, [%r4]; st.global.u32 [%rd2], %r24;\n" +
                              after);
  };
  const std::string good = text(waitOwn, ""), bad = text("bar.sync 0;", waitOwn);
  for (const ClusterSetting &setting : clusterSettings()) {
    const ClusterOutcome twin = runCluster(good, pair, setting);
    ASSERT_TRUE(twin.launched.clean()) << setting.text() << twin.launched.text();
    const ClusterOutcome o = runCluster(bad, pair, setting);
    EXPECT_TRUE(o.launched.has("async.missing_wait") || o.launched.has("race.shared"))
        << setting.text() << o.launched.text();
  }
}

TEST(StoreAsync, Misuse) {
  const auto run = [](const std::string &body) { return runCluster(withBarrier(1, body), pair); };
  const std::string store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.";
  const ClusterOutcome other = run("mapa.shared::cluster.u32 %r22, %r4, %r41; " + store + "u32 [%r22], %r2, [%r40];");
  EXPECT_EQ(other.launched.ids(), "async.other_block") << other.launched.text();
  EXPECT_TEXT(other, "async.other_block", ",0,0) but completes an mbarrier of block (");
  EXPECT_EQ(
      run("mapa.shared::cluster.u32 %r22, %r4, %r41; add.u32 %r22, %r22, 2; " + store + "u32 [%r22], %r2, [%r42];")
          .launched.ids(),
      "misaligned");
  EXPECT_EQ(run("mapa.shared::cluster.u32 %r22, %r4, 3; " + store + "u32 [%r22], %r2, [%r42];").launched.ids(),
            "oob.remote");
  EXPECT_EQ(run("mapa.shared::cluster.u32 %r22, %r4, %r41; " + store + "u32 [%r22+8192], %r2, [%r42];").launched.ids(),
            "oob.shared");
  EXPECT_EQ(
      run("mapa.shared::cluster.u32 %r22, %r4, %r41; mov.u32 %r23, tile; mapa.shared::cluster.u32 %r23, %r23, %r41; " +
          store + "u32 [%r22], %r2, [%r23+2048];")
          .launched.ids(),
      "mbarrier.uninit");
}

TEST(StoreAsync, RefusedWhenLoaded) {
  const auto says = [](const std::string &instruction, std::string_view part, std::string_view target = "sm_90a") {
    const ClusterOutcome o = runCluster(instruction, {{2}, {0, 0, 0}, {32}}, {}, "", target);
    EXPECT_NE(o.launched.status.toString().find(part), std::string::npos) << instruction << o.launched.text();
  };
  const std::string store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.";
  says(store + "u32 [%r22], %r2;", "takes a destination, a value and an mbarrier");
  says(store + "v4.u64 [%r22], {%rd1, %rd1, %rd1, %rd1}, [%r42];", "a vector of 4 times 8 bytes does not exist");
  says(store + "v2.u32 [%r22], %r2, [%r42];", "has 1 values where 2 are needed");
  says(store + "u32 [%r22], {%r2, %r3}, [%r42];", "has 2 values where 1 is needed");
  says(store + "u16 [%r22], %h1, [%r42];", "st.async");
  says("st.async.shared::cluster.u32 [%r22], %r2, [%r42];", "st.async");
  says("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.f32 [%r22], %f1, [%r42];",
       "red.async");
  says("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.s32 [%r22], %r1, [%r42];",
       "red.async");
  says(store + "u32 [%r22], %r2, [%r42];", "sm_90", "sm_89");
  says(store + "u32 [%f1], %r2, [%r42];", "");
}
