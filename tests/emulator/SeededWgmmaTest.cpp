// Planted faults of wgmma: S45 to S52, S34 and S36 with wgmma as the reader; further defects of its registers, groups
// and descriptors.
#include "tests/emulator/SeededBugs.h"

using namespace kiln;
using namespace kiln::test;

namespace {

/// Ones (bf16) everywhere in `tile`, visible to the async proxy; %rd10 describes 64 or 8 rows of it, 128-byte swizzle.
const std::string store = R"(
    mov.b32 %r20, 0x3f803f80;
    .loc 1 5 1
    st.shared.v4.b32 [%r4], {%r20,%r20,%r20,%r20}; st.shared.v4.b32 [%r4+2048], {%r20,%r20,%r20,%r20};
    st.shared.v4.b32 [%r4+4096], {%r20,%r20,%r20,%r20}; st.shared.v4.b32 [%r4+6144], {%r20,%r20,%r20,%r20};
)";
const std::string describe = R"(
    mov.u32 %r21, tile; shr.u32 %r21, %r21, 4; cvt.u64.u32 %rd10, %r21; or.b64 %rd10, %rd10, 0x4000004000010000;
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
)";
const std::string setup =
    store + "fence.proxy.async; bar.sync 0;\n" + describe + ".loc 1 9 1\nwgmma.fence.sync.aligned;\n";

std::string at(unsigned line) {
  return ".loc 1 " + std::to_string(line) + " 1\n";
}
std::string mma(unsigned line, const std::string &d = "%f0,%f1,%f2,%f3", const std::string &scaleD = "1",
                const std::string &a = "%rd10") {
  return at(line) + "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {" + d + "}, " + a + ", %rd10, " + scaleD +
         (a[0] == '{' ? ", 1, 1, 0;\n" : ", 1, 1, 0, 0;\n");
}
const std::string commit = "wgmma.commit_group.sync.aligned;\n", fence = "wgmma.fence.sync.aligned;\n";
std::string waitFor(unsigned n) {
  return "wgmma.wait_group.sync.aligned " + std::to_string(n) + ";\n";
}
std::string keep(unsigned line, const std::string &value = "%f0") {
  return at(line) + "st.global.f32 [%rd2], " + value + ";\n";
}
std::function<std::uint32_t(std::uint32_t)> all(float value) {
  return [value](std::uint32_t) { return __builtin_bit_cast(std::uint32_t, value); };
}

SeededBug bug(const char *id, const std::string &body, const std::string &right, const std::string &wrong,
              std::array<unsigned, 2> lines, float result) {
  SeededBug b{.id = id, .body = body, .right = right, .wrong = wrong, .lines = lines, .threads = 128};
  b.result = all(result);
  return b;
}

EmulatorOptions seeded(Schedule schedule, std::uint64_t seed) {
  EmulatorOptions options;
  options.schedule = schedule;
  options.seed = seed;
  return options;
}

} // namespace

TEST(SeededWgmma, S45NoFenceAfterWritingAccumulators) {
  SeededBug b = bug("wgmma.no_fence",
                    setup + mma(10) + commit + waitFor(0) + at(20) + "add.f32 %f0, %f0, %f0;\n@@" + mma(30) + commit +
                        waitFor(0) + keep(40),
                    fence, "", {30, 20}, 48);
  b.always = true;
  expectSeededBug(b);
  // Constants count as well once there was a product.
  b.body = setup + mma(10) + commit + waitFor(0) + at(20) + "mov.f32 %f0, 0f40000000;\n@@" + mma(30) + commit +
           waitFor(0) + keep(40);
  b.result = all(18);
  expectSeededBug(b);
  // No fence at all.
  b.body = setup.substr(0, setup.rfind(".loc")) + "@@" + mma(30) + commit + waitFor(0) + keep(40);
  b.lines = {30, 0};
  b.result = all(16);
  expectSeededBug(b);
  // Written by a load, read as A.
  b.body = setup + mma(10, "%f4,%f5,%f6,%f7", "0") + commit + waitFor(0) + at(20) +
           "ld.shared.v4.b32 {%r10,%r11,%r12,%r13}, [%r4];\n@@" +
           mma(30, "%f0,%f1,%f2,%f3", "1", "{%r10,%r11,%r12,%r13}") + commit + waitFor(0) + keep(40);
  b.lines = {30, 20};
  expectSeededBug(b);
  // Another shape has used the accumulators.
  b.body = setup + at(20) +
           "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0,%f1,%f2,%f3}, %rd10, %rd10, 0, 1, 1;\n" + commit +
           waitFor(0) + "@@" + mma(30, "%f0,%f1,%f2,%f3", "0") + commit + waitFor(0) + keep(40);
  b.result = all(16);
  expectSeededBug(b);
}

TEST(SeededWgmma, S46AccumulatorReadBeforeTheWait) {
  SeededBug b =
      bug("wgmma.reg_in_flight", setup + mma(10) + commit + "@@" + keep(30) + waitFor(0), waitFor(0), "", {30, 10}, 16);
  b.always = true;
  expectSeededBug(b);
  b.body = setup + mma(10) + commit + "@@" + at(30) + "add.f32 %f8, %f3, %f3;\n" + waitFor(0) + keep(40, "%f8");
  b.result = all(32);
  expectSeededBug(b);
  // Written.
  b.body = setup + mma(10) + commit + "@@" + at(30) + "mov.f32 %f0, 0f3f800000;\n" + waitFor(0) + keep(40);
  b.result = all(1);
  expectSeededBug(b);
  // In a branch that some lanes take.
  b.body = setup + mma(10) + commit + "@@ setp.lt.u32 %p1, %r6, 16;\n" + at(30) + "@%p1 add.f32 %f0, %f0, %f0;\n" +
           waitFor(0) + keep(40);
  b.result = [](std::uint32_t t) { return __builtin_bit_cast(std::uint32_t, t % 32 < 16 ? 32.0f : 16.0f); };
  expectSeededBug(b);
}

TEST(SeededWgmma, S47WaitGroupLeavesTheGroupPending) {
  SeededBug b = bug("wgmma.reg_in_flight",
                    setup + mma(10) + commit + mma(12, "%f4,%f5,%f6,%f7", "0") + commit +
                        "wgmma.wait_group.sync.aligned @@;\n" + keep(30, "%f4"),
                    "0", "1", {30, 12}, 16);
  b.always = true;
  expectSeededBug(b);
  b.body.replace(b.body.rfind("%f4"), 3, "%f0"); // the older group is complete
  b.right = "1";
  b.wrong = "2";
  b.lines = {30, 10};
  expectSeededBug(b);
}

TEST(SeededWgmma, S48CommitMissing) {
  SeededBug b = bug("wgmma.uncommitted", setup + mma(10) + "@@" + waitFor(0) + keep(30), commit, "", {10, 0}, 16);
  b.always = true;
  expectSeededBug(b);
}

TEST(SeededWgmma, S49StageReleasedBeforeTheWait) {
  SeededBug b = bug("race.shared",
                    setup + mma(10) + commit + "@@ bar.sync 0;\n" + at(30) + "st.shared.b32 [%r4], %r2;\n" +
                        waitFor(0) + keep(40),
                    waitFor(0), "", {30, 10}, 16);
  b.always = true;
  expectSeededBug(b);
}

TEST(SeededWgmma, S50RegistersOfARewritten) {
  const std::string ones = "mov.b32 %r10, 0x3f803f80; mov.b32 %r11, %r10; mov.b32 %r12, %r10; mov.b32 %r13, %r10;\n";
  SeededBug b = bug("wgmma.reg_in_flight",
                    ones + setup + mma(10, "%f0,%f1,%f2,%f3", "1", "{%r10,%r11,%r12,%r13}") + commit + "@@" + at(30) +
                        "add.u32 %r11, %r11, 1;\n" + waitFor(0) + keep(40),
                    waitFor(0), "", {30, 10}, 16);
  b.always = true;
  expectSeededBug(b);
}

TEST(SeededWgmma, S51OneWarpSkipsTheProduct) {
  SeededBug b =
      bug("wgmma.mismatch",
          setup + "setp.eq.u32 %p1, %r3, 3; @@\n" + mma(10) + "SKIP: " + mma(12) + commit + waitFor(0) + keep(40), "",
          "@%p1 bra SKIP;", {0, 0}, 32);
  b.orElse = {"deadlock"};
  expectSeededBug(b);
  // Nothing follows: the others wait for ever.
  b.body = setup + "setp.eq.u32 %p1, %r3, 3; @@\n" + mma(10) + commit + waitFor(0) + "SKIP: " + keep(40);
  b.id = "deadlock";
  b.lines = {0, 0};
  b.result = all(16);
  expectSeededBug(b);
  // Nor does anybody wait.
  b.body = setup + "setp.eq.u32 %p1, %r3, 3; @@\n" + mma(10) + commit + "SKIP: bar.sync 0;\n" + keep(40, "0f40000000");
  b.id = "wgmma.mismatch";
  b.lines = {10, 0};
  b.result = all(2);
  b.always = true;
  expectSeededBug(b);
}

TEST(SeededWgmma, MismatchNamesThePoints) {
  SeededBug b{.body = setup + "setp.eq.u32 %p1, %r3, 3; @%p1 bra SKIP;\n" + mma(10) + "SKIP: " + mma(12) + commit +
                      waitFor(0) + keep(40) + "@@",
              .threads = 128};
  const Launched r = runSeeded(b, "", {}).launched;
  const Finding *f = r.find("wgmma.mismatch");
  ASSERT_TRUE(f) << r.text();
  for (const char *part : {"warp 0 at k.cu:10", "warp 1 at k.cu:10", "warp 2 at k.cu:10", "warp 3 at k.cu:12"})
    EXPECT_NE(f->message.find(part), std::string::npos) << f->message;
}

TEST(SeededWgmma, S52StrideDoubled) {
  SeededBug b = bug("wgmma.desc", setup + "@@\n" + mma(10) + commit + waitFor(0) + keep(40), "",
                    "or.b64 %rd10, %rd10, 0x8000000000; and.b64 %rd10, %rd10, 0xFFFFFFBFFFFFFFFF;", {10, 0}, 16);
  b.always = true;
  expectSeededBug(b);
  const Launched r = runSeeded(b, b.wrong, {}).launched;
  const std::string &m = r.find("wgmma.desc")->message;
  EXPECT_NE(m.find("stride byte offset 2048"), std::string::npos) << m;
  EXPECT_NE(m.find("column 0 of A"), std::string::npos) << m;
}

TEST(SeededWgmma, S34NoProxyFence) {
  SeededBug b = bug("proxy.missing_fence",
                    store + "@@ bar.sync 0;\n" + describe + fence + mma(10) + commit + waitFor(0) + keep(40),
                    "fence.proxy.async;", "", {10, 5}, 16);
  b.always = true;
  expectSeededBug(b);
  // Without the barrier it is a race.
  b = bug("race.shared",
          store + "fence.proxy.async; @@\n" + describe + fence + mma(10) + commit + waitFor(0) + keep(40),
          "bar.sync 0;", "", {10, 5}, 16);
  b.always = true;
  expectSeededBug(b);
}

TEST(SeededWgmma, S36CopyReadWithoutProxyFence) {
  const auto kernel = [](const std::string &store) {
    return R"(
    .loc 1 5 1
    cp.async.cg.shared.global [%r4], [%rd1], 16; cp.async.cg.shared.global [%r4+2048], [%rd1], 16;
    cp.async.cg.shared.global [%r4+4096], [%rd1], 16; cp.async.cg.shared.global [%r4+6144], [%rd1], 16;
    cp.async.wait_all;
    )" + store +
           "@@\nbar.sync 0;\n" + describe + fence + mma(10, "%f0,%f1,%f2,%f3", "0") + commit + waitFor(0) +
           keep(40, "0f3f800000");
  };
  SeededBug b = bug("proxy.copy_async", kernel(""), "fence.proxy.async;", "", {10, 5}, 1);
  b.always = b.strictProxy = true;
  expectSeededBug(b);
  // Compilers leave it out: only on request.
  b.strictProxy = false;
  EXPECT_TRUE(runSeeded(b, "", EmulatorOptions()).launched.clean());
  // One half of one word was stored afterwards, which is another matter.
  b = bug("proxy.missing_fence", kernel(at(7) + "mov.b16 %h1, 0x3f80; st.shared.b16 [%r4+2], %h1;"),
          "fence.proxy.async;", "", {10, 7}, 1);
  b.always = true;
  expectSeededBug(b);
  b.strictProxy = true;
  expectSeededBug(b);
}

// Compilers put plain moves around the inline assembly of wgmma; they are no accesses.
TEST(SeededWgmma, MovesOfCompilers) {
  // Constants between the fence and the first product, copies of the accumulators between products.
  SeededBug b = bug("-",
                    store + "fence.proxy.async; bar.sync 0;\n" + describe + fence + "mov.f32 %f4, 0f00000000;\n" +
                        "mov.f32 %f5, %f4; mov.f32 %f6, %f4; mov.f32 %f7, %f4;\n@@" + mma(10, "%f4,%f5,%f6,%f7") +
                        "mov.f32 %f8, %f4; mov.f32 %f9, %f5; mov.f32 %f10, %f6; mov.f32 %f11, %f7;\n" +
                        mma(12, "%f8,%f9,%f10,%f11") + commit + "mov.f32 %f12, %f8;\n" + waitFor(0) + keep(40, "%f12"),
                    "", "", {}, 32);
  for (unsigned i = 0; i <= 20; ++i) {
    const SeededRun r = runSeeded(b, "", seeded(i ? Schedule::Adversarial : Schedule::InOrder, i));
    EXPECT_TRUE(r.launched.clean()) << r.launched.text();
    EXPECT_TRUE(r.launched.has("wgmma.reg_in_flight")) << "a note";
    for (std::uint32_t t = 0; t < 128; ++t)
      ASSERT_EQ(r.out[t], b.result(t)) << i << " " << t;
  }
}

// A loop as nvcc makes it of inline assembly with tied operands: scopes, predicates, accumulators that go round.
TEST(SeededWgmma, LoopWithTiedOperands) {
  const SeededBug b = bug("-", store + "fence.proxy.async; bar.sync 0;\n" + describe + R"(
    mov.u32 %r30, 0;
LOOP:
    wgmma.fence.sync.aligned;
    setp.ne.u32 %p3, %r30, 0; selp.u32 %r31, 1, 0, %p3;
    mov.f32 %f20, %f0; mov.f32 %f21, %f1; mov.f32 %f22, %f2; mov.f32 %f23, %f3;
    {
    .reg .pred p; .reg .b64 d;
    mov.b64 d, %rd10; setp.ne.b32 p, %r31, 0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f20,%f21,%f22,%f23}, d, %rd10, p, 1, 1, 0, 0;
    }
    {
    .reg .pred p; .reg .b32 a<4>;
    setp.ne.b32 p, 1, 0; mov.b32 a0, %r20; mov.b32 a1, %r20; mov.b32 a2, %r20; mov.b32 a3, %r20;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f20,%f21,%f22,%f23}, {a0,a1,a2,a3}, %rd10, p, 1, 1, 0;
    }
    {
    .reg .b32 x; mov.b32 x, 7; add.u32 x, x, x;
    }
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mov.f32 %f0, %f20; mov.f32 %f1, %f21; mov.f32 %f2, %f22; mov.f32 %f3, %f23;
    add.u32 %r30, %r30, 1; setp.lt.u32 %p3, %r30, 3; @%p3 bra LOOP;
@@)" + keep(40),
                          "", "", {}, 96);
  for (unsigned i = 0; i <= 20; ++i) {
    const SeededRun r = runSeeded(b, "",
                                  seeded(i % 2 ? Schedule::Adversarial
                                         : i   ? Schedule::Random
                                               : Schedule::InOrder,
                                         i));
    EXPECT_TRUE(r.launched.clean()) << r.launched.text();
    EXPECT_FALSE(r.launched.has("wgmma.reg_in_flight")) << r.launched.text();
    for (std::uint32_t t = 0; t < 128; ++t)
      ASSERT_EQ(r.out[t], b.result(t)) << i << " " << t;
  }
}

// Accumulators nobody reads arrive late all the same: their registers must not be others' meanwhile.
TEST(SeededWgmma, UnreadResultsHarmNobody) {
  std::string values, sum;
  for (unsigned i = 30; i < 60; ++i) {
    values += "cvt.rn.f32.u32 %f" + std::to_string(i) + ", %r2;\n";
    sum += "add.f32 %f29, %f29, %f" + std::to_string(i) + ";\n";
  }
  SeededBug b = bug("-",
                    setup + mma(10, "%f4,%f5,%f6,%f7", "0") + commit + "@@" + values + "mov.f32 %f29, 0f00000000;\n" +
                        sum + waitFor(0) + keep(40, "%f29"),
                    "", "", {}, 0);
  for (unsigned i = 0; i < 20; ++i) {
    const SeededRun r = runSeeded(b, "", seeded(i % 2 ? Schedule::Random : Schedule::Adversarial, i));
    EXPECT_TRUE(r.launched.clean()) << r.launched.text();
    for (std::uint32_t t = 0; t < 128; ++t)
      ASSERT_EQ(r.out[t], __builtin_bit_cast(std::uint32_t, 30.0f * static_cast<float>(t)));
  }
}

TEST(SeededWgmma, DescriptorFields) {
  auto run = [](const std::string &change) {
    SeededBug b{.body = setup + "@@\n" + mma(10) + commit + waitFor(0) + keep(40), .threads = 128};
    return runSeeded(b, change, {}).launched;
  };
  auto expect = [&](const std::string &change, const char *text) {
    const Launched r = run(change);
    const Finding *f = r.find("wgmma.desc");
    ASSERT_TRUE(f) << change << "\n" << r.text();
    EXPECT_NE(f->message.find(text), std::string::npos) << f->message;
  };
  EXPECT_TRUE(run("").clean());
  expect("or.b64 %rd10, %rd10, 0x0001000000000000;", "bits 0x0001000000000000 must be zero");
  expect("and.b64 %rd10, %rd10, 0xFFFFFFBFFFFFFFFF;", "stride byte offset is 0");
  expect("and.b64 %rd10, %rd10, 0x3FFFFFFFFFFF0000; mov.u64 %rd11, 0x10; or.b64 %rd10, %rd10, %rd11;",
         "row 0, column 0 of A is at shared offset 256");
  expect("add.u64 %rd10, %rd10, 0x180;", "of A is at shared offset");
  // No swizzle: the leading byte offset is used.
  expect("and.b64 %rd10, %rd10, 0x3FFFFF0F0000FFFF; mov.u64 %rd11, 0x800000000; or.b64 %rd10, %rd10, %rd11;",
         "leading byte offset is 0");
}

TEST(SeededWgmma, OperandsThatDiffer) {
  auto run = [](const std::string &change, const std::string &scale = "1") {
    SeededBug b{.body = setup + "@@\n" + mma(10, "%f0,%f1,%f2,%f3", scale) + commit + waitFor(0) + keep(40),
                .threads = 128};
    return runSeeded(b, change, {}).launched;
  };
  auto expect = [&](const Launched &r, const char *text) {
    const Finding *f = r.find("wgmma.mismatch");
    ASSERT_TRUE(f) << r.text();
    EXPECT_NE(f->message.find(text), std::string::npos) << f->message;
  };
  expect(run("setp.eq.u32 %p1, %r6, 5; @%p1 add.u64 %rd10, %rd10, 2;"),
         "lane 5 has another descriptor of A than lane 0");
  expect(run("setp.eq.u32 %p1, %r3, 2; @%p1 add.u64 %rd10, %rd10, 2;"), "different descriptors of A");
  expect(run("setp.ne.u32 %p1, %r3, 2;", "%p1"), "different scale-d: warp 0 true, warp 1 true, warp 2 false");
  SeededBug b{.body = setup + "@@\n" + mma(10) + commit + waitFor(0) + keep(40), .threads = 96};
  b.body.replace(b.body.find("[%r4+6144]"), 10, "[%r4+2048]");
  expect(runSeeded(b, "", {}).launched, "the block has only 3 from warp 0 on");
}

TEST(SeededWgmma, UnwrittenSharedMemory) {
  SeededBug b{.body = setup + "@@\n" + mma(10) + commit + waitFor(0) + keep(40), .threads = 128};
  b.body.replace(b.body.find("[%r4+6144]"), 10, "[%r4+2048]");
  const Launched r = runSeeded(b, "", {}).launched;
  const Finding *f = r.find("uninit.shared");
  ASSERT_TRUE(f) << r.text();
  EXPECT_NE(f->message.find("row 48, column 0 of A on, at tile+6144"), std::string::npos) << f->message;
}

TEST(SeededWgmma, SwizzleOfTheTensorCopy) {
  // Thread 0 fills 4 KiB of the tile with a copy; B is read with another swizzle, or with the same.  What ordinary
  // stores have written since is no copy's.
  constexpr TensorMapSwizzle swizzles[] = {TensorMapSwizzle::None, TensorMapSwizzle::B128, TensorMapSwizzle::B64,
                                           TensorMapSwizzle::B32};
  for (const TensorMapSwizzle swizzle : swizzles)
    for (unsigned number = 0; number < 8; ++number) {
      const unsigned mode = number % 4; // of the descriptor, in the order of `swizzles`
      const bool stored = number >= 4;
      const unsigned row = swizzle == TensorMapSwizzle::None ? 16 : tensorMapSwizzleBytes(swizzle);
      SeededBug b{.id = "wgmma.swizzle", .threads = 128};
      b.map = [&](std::uint64_t in, std::uint64_t) {
        TensorMapRecipe r = denseTensor(TensorMapType::U32, in, {row / 4, 4096 / row}, {row / 4, 4096 / row});
        r.swizzle = swizzle;
        return r;
      };
      b.body =
          R"(
    setp.ne.u32 %p1, %r2, 0; @%p1 bra READY; mbarrier.init.shared::cta.b64 [bar], 1;
  READY: bar.sync 0; mov.u32 %r23, 0; @%p1 bra ISSUED; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 4096;
    .loc 1 5 1
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd3, {%r23, %r23}], [bar];
  ISSUED: mbarrier.try_wait.parity.shared::cta.b64 %p9, [bar], 0; @!%p9 bra ISSUED;
    mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0; @@
)" +
          std::string(
              stored ? "mov.u32 %r23, tile; mad.lo.u32 %r23, %r2, 16, %r23;\n"
                       "st.shared.v4.b32 [%r23], {%r10,%r11,%r12,%r13}; fence.proxy.async.shared::cta; bar.sync 0;\n"
                     : "") +
          describe + "and.b64 %rd10, %rd10, 0x3fffffffffffffff; or.b64 %rd10, %rd10, " +
          std::to_string(std::uint64_t(mode) << 62) + "U;\n" + fence +
          mma(10, "%f0,%f1,%f2,%f3", "1", "{%r10,%r11,%r12,%r13}") + commit + waitFor(0) + keep(40);
      const SeededRun run = runSeeded(b, "", {});
      ASSERT_TRUE(run.launched.clean()) << run.launched.text();
      const Finding *f = run.launched.find("wgmma.swizzle");
      EXPECT_EQ(f != nullptr, swizzles[mode] != swizzle && !stored) << mode << " " << run.launched.text();
      if (!f)
        continue;
      EXPECT_TRUE(f->note);
      b.lines = {10, 5};
      EXPECT_TRUE(hasLines(b, *f)) << run.launched.text();
      EXPECT_NE(f->message.find("descriptor of B"), std::string::npos) << f->message;
      EXPECT_NE(f->message.find("row 0, column 0 of B, at tile+0, was written by a tensor copy at k.cu:5"),
                std::string::npos)
          << f->message;
    }
}
