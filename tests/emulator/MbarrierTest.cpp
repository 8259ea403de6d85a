// mbarrier: the counting against a model written here, what waits see, findings, refusals.
#include "tests/emulator/PtxHarness.h"

#include <gtest/gtest.h>

#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

/// One thread executes `body`: %rd1 is `out`, `bar` 64 bytes of shared memory.
Launched run(Emulator &gpu, const std::string &body, Buffer &out, unsigned threads = 1,
             const std::string &target = "sm_90a") {
  return gpu.run(kernelText(".param .u64 out",
                            ".shared .align 16 .b8 bar[64]; mov.u32 %r2, %tid.x; ld.param.u64 %rd1, [out];\n" + body,
                            target),
                 {1}, {threads}, {out});
}

std::string idsOf(const std::string &body, unsigned threads = 1) {
  Emulator gpu;
  return run(gpu, body, gpu.upload(std::vector<std::uint32_t>(64, 0), "out"), threads).ids();
}

/// Section 3.2 of the specification.
struct Model {
  std::uint64_t phase = 0;
  std::uint32_t expected, pending;
  std::int64_t bytes = 0;
  void settle() {
    if (pending == 0 && bytes == 0) {
      ++phase;
      pending = expected;
    }
  }
};

} // namespace

TEST(Mbarrier, CountsLikeTheModel) {
  std::mt19937 random(11);
  for (unsigned round = 0; round < 40; ++round) {
    const std::uint32_t count = 1 + random() % 6;
    Model m{0, count, count};
    std::string body = "mbarrier.init.shared.b64 [bar+8], " + std::to_string(count) + ";\n";
    std::vector<std::uint32_t> expected;
    auto store = [&](const std::string &reg, std::uint32_t value) {
      body += "st.global.u32 [%rd1+" + std::to_string(expected.size() * 4) + "], " + reg + ";\n";
      expected.push_back(value);
    };
    for (unsigned step = 0; step < 40; ++step) {
      const std::uint32_t n = 1 + random() % m.pending, bytes = 16 * (1 + random() % 8);
      switch (random() % 6) {
      case 0:
        body += "mbarrier.arrive.shared.b64 %rd2, [bar+8], " + std::to_string(n) +
                "; mbarrier.pending_count.b64 %r3, %rd2;\n";
        store("%r3", m.pending);
        m.pending -= n;
        m.settle();
        break;
      case 1:
        body += "mbarrier.arrive.expect_tx.shared::cta.b64 %rd2, [bar+8], " + std::to_string(bytes) +
                "; mbarrier.pending_count.b64 %r3, %rd2;\n";
        store("%r3", m.pending);
        m.bytes += bytes;
        m.pending -= 1;
        m.settle();
        break;
      case 2:
        body += "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar+8], " + std::to_string(bytes) + ";\n";
        m.bytes += bytes;
        break;
      case 3: // also before they are announced, but not more than a phase that nobody arrives at any more expects
        if (m.pending == 0 && m.bytes < bytes)
          continue;
        body += "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar+8], " + std::to_string(bytes) + ";\n";
        m.bytes -= bytes;
        m.settle();
        break;
      case 4:
        if (m.expected == 1)
          continue;
        body += "mbarrier.arrive_drop.shared.b64 %rd2, [bar+8];\n";
        m.expected -= 1;
        m.pending -= 1;
        m.settle();
        break;
      default: {
        const unsigned parity = random() % 2;
        body += "mbarrier.test_wait.parity.shared.b64 %p1, [bar+8], " + std::to_string(parity) +
                "; selp.u32 %r3, 1, 0, %p1;\n";
        store("%r3", (m.phase & 1) != parity);
        break;
      }
      }
      if (m.pending == 0) { // bytes are missing: let them come
        if (m.bytes > 0)
          body += "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar+8], " + std::to_string(m.bytes) + ";\n";
        else
          body += "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar+8], " + std::to_string(-m.bytes) +
                  "; mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar+8], 0;\n";
        m.bytes = 0;
        m.settle();
      }
    }
    if (m.bytes > 0)
      body += "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar+8], " + std::to_string(m.bytes) + ";\n";
    else if (m.bytes < 0)
      body += "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar+8], " + std::to_string(-m.bytes) + ";\n";
    Emulator gpu;
    auto &out = gpu.upload(std::vector<std::uint32_t>(64, 0xABABABAB), "out");
    const Launched r = run(gpu, body, out);
    ASSERT_TRUE(r.clean()) << body << r.text();
    const auto got = gpu.download<std::uint32_t>(out);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(got[i], expected[i]) << "round " << round << " value " << i << "\n" << body;
  }
}

TEST(Mbarrier, StatesAreOfTheirPhase) {
  // The state of an arrival: not over before the phase is, over in the next phase.
  Emulator gpu;
  auto &out = gpu.upload(std::vector<std::uint32_t>(64, 0), "out");
  const Launched r = run(gpu, R"(
    mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 %rd2, [bar];
    mbarrier.test_wait.shared.b64 %p1, [bar], %rd2; selp.u32 %r3, 1, 2, %p1; st.global.u32 [%rd1], %r3;
    mbarrier.arrive.shared.b64 %rd3, [bar];
    mbarrier.test_wait.shared.b64 %p1, [bar], %rd2; selp.u32 %r3, 1, 2, %p1; st.global.u32 [%rd1+4], %r3;
    mbarrier.try_wait.shared.b64 %p1, [bar], %rd3; selp.u32 %r3, 1, 2, %p1; st.global.u32 [%rd1+8], %r3;
    mbarrier.arrive.shared.b64 %rd4, [bar];
    mbarrier.try_wait.shared.b64 %p1, [bar], %rd4; selp.u32 %r3, 1, 2, %p1; st.global.u32 [%rd1+12], %r3;)",
                         out);
  ASSERT_TRUE(r.clean()) << r.text();
  const auto got = gpu.download<std::uint32_t>(out);
  EXPECT_EQ(std::vector<std::uint32_t>(got.begin(), got.begin() + 4), (std::vector<std::uint32_t>{2, 1, 1, 2}));
}

TEST(Mbarrier, FindingsNameWhatIsWrong) {
  const std::string init = "mbarrier.init.shared.b64 [bar], 1; ", arrive = "mbarrier.arrive.shared.b64 %rd2, [bar]; ";
  EXPECT_EQ(idsOf(arrive), "mbarrier.uninit");
  EXPECT_EQ(idsOf(init + "mbarrier.inval.shared.b64 [bar];" + arrive), "mbarrier.uninit");
  EXPECT_EQ(idsOf("mbarrier.init.shared.b64 [bar], 0;"), "mbarrier.count");
  EXPECT_EQ(idsOf("mbarrier.init.shared.b64 [bar], 1048576;"), "mbarrier.count");
  EXPECT_EQ(idsOf("mbarrier.init.shared.b64 [bar], 1048575;"), "");
  EXPECT_EQ(idsOf(init + "mbarrier.arrive.shared.b64 %rd2, [bar], 0;"), "mbarrier.count");
  EXPECT_EQ(idsOf(init + "mbarrier.arrive.shared.b64 %rd2, [bar], 2;"), "mbarrier.underflow");
  EXPECT_EQ(idsOf("setp.eq.u32 %p1, %r2, 0; @%p1 " + init + "bar.sync 0;" + arrive, 32), "mbarrier.underflow");
  EXPECT_EQ(idsOf(init + "mbarrier.arrive.noComplete.shared.b64 %rd2, [bar], 1;"), "mbarrier.no_complete");
  EXPECT_EQ(idsOf(init + "mov.u64 %rd2, 5; mbarrier.test_wait.shared.b64 %p1, [bar], %rd2;"), "mbarrier.state");
  EXPECT_EQ(
      idsOf(init + arrive + "mbarrier.arrive.shared.b64 %rd3, [bar]; mbarrier.test_wait.shared.b64 %p1, [bar], %rd2;"),
      "mbarrier.state");
  EXPECT_EQ(idsOf(init + "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1048576;"), "mbarrier.tx_count");
  EXPECT_EQ(idsOf(init + "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 1048576;"), "mbarrier.tx_count");
  EXPECT_EQ(idsOf(init + "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;"), "mbarrier.tx_mismatch");
  EXPECT_EQ(idsOf(init + "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;"), "mbarrier.tx_mismatch");
  EXPECT_EQ(idsOf("mbarrier.init.shared.b64 [bar+4], 1;"), "misaligned");
  EXPECT_EQ(idsOf("mbarrier.init.shared.b64 [bar+64], 1;"), "oob.shared");
  Emulator gpu;
  const Launched twice = run(gpu, init + arrive + arrive, gpu.allocate(256, "out"));
  EXPECT_TRUE(twice.clean());
  ASSERT_TRUE(twice.has("mbarrier.overrun")) << twice.text();
  EXPECT_TRUE(twice.find("mbarrier.overrun")->note);
}

TEST(Mbarrier, BytesThatNeverComeAreNamedInTheDeadlock) {
  Emulator gpu;
  const Launched r = run(gpu, R"(
    mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared::cta.b64 %rd2, [bar], 4096;
    WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;)",
                         gpu.allocate(256, "out"));
  ASSERT_TRUE(r.has("deadlock")) << r.text();
  EXPECT_NE(r.find("deadlock")->message.find("mbarrier bar+0 phase 0"), std::string::npos) << r.text();
  EXPECT_NE(r.find("deadlock")->message.find("4096 bytes missing"), std::string::npos) << r.text();
}

TEST(Mbarrier, MalformedOperandsAreRefused) {
  auto refused = [](const char *text, const char *target, const char *why) {
    Emulator gpu(target);
    const Launched r = run(gpu, text, gpu.allocate(256, "out"), 1, target);
    EXPECT_EQ(r.status.code(), StatusCode::CompileError) << text << "\n" << r.text();
    EXPECT_NE(r.status.message().find(why), std::string::npos) << r.status.message();
  };
  for (const char *text :
       {"mbarrier.init.shared.b64 [bar];", "mbarrier.init.global.b64 [%rd1], 1;", "mbarrier.inval.shared.b64 [bar], 1;",
        "mbarrier.arrive.shared.b64 [bar];", "mbarrier.arrive.shared.b64 %rd2;",
        "mbarrier.arrive.shared.b64 %r2, [bar];", "mbarrier.arrive.expect_tx.shared::cta.b64 %rd2, [bar];",
        "mbarrier.arrive.noComplete.shared.b64 %rd2, [bar];", "mbarrier.arrive.shared::cluster.b64 %rd2, [bar];",
        "mbarrier.arrive.shared.b64 %rd2, [bar], 1, 2;", "mbarrier.test_wait.shared.b64 %p1, [bar];",
        "mbarrier.test_wait.shared.b64 %r2, [bar], %rd2;", "mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0, 5;",
        "mbarrier.expect_tx.shared::cta.b64 [bar];", "mbarrier.pending_count.b64 %r2;"})
    refused(text, "sm_90a", "mbarrier");
  for (const char *text :
       {"mbarrier.arrive.shared.b64 %rd2, [bar], 2;", "mbarrier.try_wait.shared.b64 %p1, [bar], %rd2;",
        "mbarrier.arrive.expect_tx.shared::cta.b64 %rd2, [bar], 16;",
        "mbarrier.arrive.relaxed.cta.shared.b64 %rd2, [bar];"})
    refused(text, "sm_80", "sm_90");
  refused("mbarrier.init.shared.b64 [bar], 1;", "sm_75", "sm_80");
}
