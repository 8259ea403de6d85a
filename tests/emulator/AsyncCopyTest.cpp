// cp.async: what is copied, filled, defined and refused.
#include "tests/emulator/PtxHarness.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

/// Thread t copies `size` bytes from in + 16 t to a slot of 16 poisoned bytes, with the operands `more`; out gets the
/// slot. %r2 thread, %r4 its slot, %rd1 its source.
std::string copyKernel(const std::string &copy, const std::string &target = "sm_80") {
  return kernelText(".param .u64 in, .param .u64 out", std::string(threadIndex) + R"(
    .shared .align 16 .b8 tile[1024]; mov.u32 %r2, %tid.x; mov.u32 %r4, tile; mad.lo.u32 %r4, %r2, 16, %r4; cvt.u64.u32 %rd5, %r4; cvta.shared.u64 %rd5, %rd5;
    ld.param.u64 %rd1, [in]; mul.wide.u32 %rd3, %r2, 16; add.u64 %rd1, %rd1, %rd3; ld.param.u64 %rd2, [out]; add.u64 %rd2, %rd2, %rd3;
    mov.u32 %r9, 0xDEADBEEF; st.shared.v4.u32 [%r4], {%r9, %r9, %r9, %r9};
)" + copy + R"(
    ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r4]; st.global.v4.u32 [%rd2], {%r20, %r21, %r22, %r23};)",
                    target);
}

std::vector<std::uint8_t> randomBytes(std::size_t n) {
  std::mt19937 random(7);
  std::vector<std::uint8_t> out(n);
  for (auto &b : out)
    b = static_cast<std::uint8_t>(random());
  return out;
}

/// What a slot holds after `size` bytes were copied, of which `source` come from memory.
std::uint8_t expected(const std::vector<std::uint8_t> &in, unsigned thread, unsigned byte, unsigned size,
                      unsigned source) {
  constexpr std::uint8_t poison[4] = {0xEF, 0xBE, 0xAD, 0xDE};
  return byte >= size ? poison[byte % 4] : byte >= source ? 0 : in[thread * 16 + byte];
}

void expectCopied(const std::string &copy, unsigned size, const std::function<unsigned(unsigned)> &source,
                  const std::string &target = "sm_80") {
  const auto in = randomBytes(1024);
  for (const std::string &level : usableLevels()) {
    EmulatorOptions o;
    o.cpuLevel = level;
    Emulator gpu(target, o);
    auto &from = gpu.upload(in, "in");
    auto &to = gpu.upload(std::vector<std::uint8_t>(1024, 0xAB), "out");
    const Launched r = gpu.run(copyKernel(copy, target), {1}, {64}, {from, to});
    ASSERT_TRUE(r.clean()) << copy << "\n" << r.text();
    const auto got = gpu.download<std::uint8_t>(to);
    for (unsigned i = 0; i < 1024; ++i)
      ASSERT_EQ(got[i], expected(in, i / 16, i % 16, size, source(i / 16))) << copy << " byte " << i;
  }
}

const std::string waitAll = "cp.async.wait_all;";

} // namespace

TEST(AsyncCopy, EverySizeAndWayToSayHowMuchComesFromMemory) {
  for (unsigned size : {4u, 8u, 16u}) {
    const std::string n = std::to_string(size);
    expectCopied("cp.async.ca.shared.global [%r4], [%rd1], " + n + ";" + waitAll, size, [&](unsigned) { return size; });
    expectCopied("cp.async.ca.shared::cta.global.L2::128B [%r4+0], [%rd1], " + n + ";" + waitAll, size,
                 [&](unsigned) { return size; });
    // Threads copy 0, 1, .. size bytes and zeros.
    expectCopied("rem.u32 %r10, %r2, " + std::to_string(size + 1) + "; cp.async.ca.shared.global [%r4], [%rd1], " + n +
                     ", %r10;" + waitAll,
                 size, [&](unsigned t) { return t % (size + 1); });
    expectCopied("and.b32 %r10, %r2, 1; setp.ne.u32 %p1, %r10, 0; cp.async.ca.shared.global [%r4], [%rd1], " + n +
                     ", %p1;" + waitAll,
                 size, [&](unsigned t) { return t % 2 ? 0 : size; });
  }
  expectCopied("cp.async.cg.shared.global [%r4], [%rd1], 16;" + waitAll, 16, [](unsigned) { return 16u; });
  expectCopied("createpolicy.fractional.L2::evict_first.b64 %rd9, 1.0; cp.async.cg.shared.global.L2::cache_hint [%r4], "
               "[%rd1], 16, %rd9;" +
                   waitAll,
               16, [](unsigned) { return 16u; });
  // Half of the lanes; the others keep their slots.
  const auto in = randomBytes(1024);
  Emulator gpu("sm_80");
  auto &to = gpu.upload(std::vector<std::uint8_t>(1024, 0xAB), "out");
  const Launched r =
      gpu.run(copyKernel("and.b32 %r10, %r2, 2; setp.ne.u32 %p1, %r10, 0; @%p1 cp.async.ca.shared.global "
                         "[%r4], [%rd1], 8; cp.async.commit_group; cp.async.wait_group 0;"),
              {1}, {64}, {gpu.upload(in, "in"), to});
  ASSERT_TRUE(r.clean()) << r.text();
  const auto got = gpu.download<std::uint8_t>(to);
  for (unsigned i = 0; i < 1024; ++i)
    ASSERT_EQ(got[i], expected(in, i / 16, i % 16, i / 16 & 2 ? 8 : 0, 8)) << i;
}

TEST(AsyncCopy, WithoutSourceBytesTheSourceIsNotLookedAt) {
  Emulator gpu("sm_80");
  auto &to = gpu.allocate(1024, "out");
  const std::string null = "mov.u64 %rd1, 0; mov.u32 %r10, 0; setp.eq.u32 %p1, %r10, 0;";
  for (const char *operand : {"%r10", "%p1"}) {
    const Launched r =
        gpu.run(copyKernel(null + "cp.async.ca.shared.global [%r4], [%rd1], 16, " + operand + ";" + waitAll), {1}, {64},
                {to, to});
    EXPECT_TRUE(r.clean()) << r.text();
  }
  EXPECT_EQ(
      gpu.run(copyKernel(null + "cp.async.ca.shared.global [%r4], [%rd1], 16;" + waitAll), {1}, {64}, {to, to}).ids(),
      "oob.global");
}

TEST(AsyncCopy, UndefinedBytesStayUndefined) {
  // Bytes 0 to 511 of `in` are written: threads 0 to 31 copy defined bytes, the others do not.  The copy itself is no
  // finding, reading the result is.
  for (Schedule schedule : {Schedule::InOrder, Schedule::Random, Schedule::Adversarial}) {
    EmulatorOptions o;
    o.schedule = schedule;
    Emulator gpu("sm_80", o);
    auto &in = gpu.allocate(1024, "in");
    const auto half = randomBytes(512);
    ASSERT_TRUE(in.copyFromHost(0, std::as_bytes(std::span(half))).ok());
    auto &out = gpu.allocate(1024, "out");
    auto run = [&](const std::string &copy) { return gpu.run(copyKernel(copy), {1}, {64}, {in, out}); };
    const Launched bad = run("cp.async.ca.shared.global [%r4], [%rd1], 16;" + waitAll);
    ASSERT_EQ(bad.ids(), "uninit.shared") << bad.text();
    EXPECT_EQ(bad.find("uninit.shared")->warp, 1u);
    EXPECT_EQ(bad.find("uninit.shared")->lanes, 0xFFFFFFFFu);
    EXPECT_EQ(bad.find("uninit.shared")->opcode, "ld.shared.v4.u32");
    // Zeros are defined, and what is not read does not matter.
    EXPECT_TRUE(run("setp.ge.u32 %p1, %r2, 32; cp.async.ca.shared.global [%r4], [%rd1], 16, %p1;" + waitAll).clean());
    EXPECT_TRUE(
        run("cp.async.ca.shared.global [%r4], [%rd1], 16;" + waitAll + "setp.ge.u32 %p1, %r2, 32; @%p1 exit;").clean());
    // One byte of the source is missing: only the word that has it.
    const Launched edge = run("add.u64 %rd1, %rd1, -4; setp.ne.u32 %p1, %r2, 32; @%p1 exit; cp.async.ca.shared.global "
                              "[%r4], [%rd1], 8;" +
                              waitAll);
    EXPECT_EQ(edge.ids(), "misaligned");
    const Launched word =
        run("setp.ne.u32 %p1, %r2, 32; @%p1 exit; cp.async.ca.shared.global [%r4], [%rd1+-4], 4;" + waitAll);
    EXPECT_TRUE(word.clean()) << word.text();
    const Launched next =
        run("setp.ne.u32 %p1, %r2, 32; @%p1 exit; cp.async.ca.shared.global [%r4], [%rd1], 4;" + waitAll);
    EXPECT_EQ(next.ids(), "uninit.shared") << next.text();
  }
}

TEST(AsyncCopy, GroupsAreDeliveredWhenTheyAreWaitedFor) {
  // Four groups into four slots; after wait_group 2 the first two are there under every seed.
  std::string copies;
  for (unsigned g = 0; g < 4; ++g)
    copies += "cp.async.ca.shared.global [%r4+" + std::to_string(g * 4) + "], [%rd1+" + std::to_string(g * 4) +
              "], 4; cp.async.commit_group;";
  const auto in = randomBytes(1024);
  for (unsigned seed = 0; seed < 40; ++seed) {
    EmulatorOptions o;
    o.schedule = seed % 2 ? Schedule::Random : Schedule::Adversarial;
    o.seed = seed / 2;
    Emulator gpu("sm_80", o);
    auto &out = gpu.upload(std::vector<std::uint8_t>(1024, 0), "out");
    const Launched r =
        gpu.run(copyKernel(copies + "cp.async.wait_group 2; ld.shared.v2.u32 {%r30, %r31}, [%r4]; "
                                    "cp.async.wait_group 0; bar.sync 0; st.shared.v2.u32 [%r4+8], {%r30, %r31};"),
                {1}, {64}, {gpu.upload(in, "in"), out});
    ASSERT_TRUE(r.clean()) << r.text();
    const auto got = gpu.download<std::uint8_t>(out);
    for (unsigned i = 0; i < 1024; ++i)
      ASSERT_EQ(got[i], in[i / 16 * 16 + i % 8]) << "seed " << seed << " byte " << i;
  }
}

TEST(AsyncCopy, AddressesAndSizesAreChecked) {
  Emulator gpu("sm_80");
  auto &in = gpu.upload(std::vector<std::uint32_t>(256, 1), "in");
  // An address in another thread's slot is a race as well.
  auto found = [&](const std::string &copy, const char *id) {
    return gpu.run(copyKernel(copy + waitAll), {1}, {64}, {in, in}).has(id);
  };
  EXPECT_TRUE(found("cp.async.ca.shared.global [%r4+4], [%rd1], 8;", "misaligned"));
  EXPECT_TRUE(found("cp.async.ca.shared.global [%r4], [%rd1+4], 8;", "misaligned"));
  EXPECT_TRUE(found("cp.async.ca.shared.global [%r4+16], [%rd1], 16;", "oob.shared"));
  EXPECT_TRUE(found("cp.async.ca.shared.global [%r4+-16], [%rd1], 16;", "oob.shared"));
  EXPECT_TRUE(found("cp.async.ca.shared.global [%r4], [%rd1+16], 16;", "oob.global"));
  EXPECT_TRUE(found("cp.async.ca.shared.global [%rd1], [%rd1], 16;", "oob.shared"));
  EXPECT_TRUE(found("mov.u32 %r10, 5; cp.async.ca.shared.global [%r4], [%rd1], 4, %r10;", "async.size"));
}

TEST(AsyncCopy, MalformedOperandsAreRefused) {
  for (const char *text :
       {"cp.async.cg.shared.global [%r4], [%rd1], 8;", "cp.async.ca.shared.global [%r4], [%rd1], 12;",
        "cp.async.ca.shared.global [%r4], [%rd1], %r2;", "cp.async.ca.shared.global [%r4], [%rd1];",
        "cp.async.ca.shared.global [%r4], [%rd1], 4, 4, 4;", "cp.async.ca.shared.global [%r4], [%r2], 4;",
        "cp.async.ca.global.shared [%rd1], [%r4], 4;", "cp.async.ca.shared.global %r4, [%rd1], 4;",
        "cp.async.commit_group 1;", "cp.async.wait_group;", "cp.async.wait_group %r2;", "cp.async.wait_all 0;",
        "cp.async.mbarrier.arrive.shared.b64 [%r4], 1;", "cp.async.mbarrier.arrive.global.b64 [%rd1];"}) {
    Emulator gpu("sm_80");
    auto &in = gpu.upload(std::vector<std::uint32_t>(256, 1), "in");
    const Launched r = gpu.run(copyKernel(text), {1}, {64}, {in, in});
    EXPECT_EQ(r.status.code(), StatusCode::CompileError) << text << "\n" << r.text();
    EXPECT_NE(r.status.message().find("cp.async"), std::string::npos) << r.status.message();
  }
  Emulator old("sm_75");
  auto &in = old.upload(std::vector<std::uint32_t>(256, 1), "in");
  const Launched r = old.run(copyKernel("cp.async.ca.shared.global [%r4], [%rd1], 4;", "sm_75"), {1}, {64}, {in, in});
  EXPECT_NE(r.status.message().find("sm_80"), std::string::npos) << r.status.message();
}
