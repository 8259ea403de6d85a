// Loading and launching: what is refused and with which words, budgets, deadlocks between blocks, grids of any size.
#include "runtime/device/emulator/EmulatorDevice.h"
#include "runtime/device/emulator/execute/WorkerPool.h"
#include "tests/emulator/PtxHarness.h"

#include <gtest/gtest.h>
#include <system_error>

using namespace kiln;
using namespace kiln::test;

namespace {

#define EXPECT_SAYS(launched, part)                                                                                    \
  EXPECT_NE((launched).status.toString().find(part), std::string::npos) << (launched).text()

const std::string nothing = kernelText("", "");

std::string withTarget(const std::string &target) {
  return kernelText("", "", target);
}

} // namespace

TEST(Launch, LimitsOfGridAndBlock) {
  Emulator gpu;
  EXPECT_SAYS(gpu.run(nothing, {0, 1, 1}, {32}, {}), "the grid is 0,1,1");
  EXPECT_SAYS(gpu.run(nothing, {0x80000000u, 1, 1}, {32}, {}), "x at most 2147483647");
  EXPECT_SAYS(gpu.run(nothing, {1, 65536, 1}, {32}, {}), "the grid is 1,65536,1");
  EXPECT_SAYS(gpu.run(nothing, {1, 1, 65536}, {32}, {}), "the grid is 1,1,65536");
  EXPECT_SAYS(gpu.run(nothing, {1}, {1025}, {}), "the block is 1025,1,1");
  EXPECT_SAYS(gpu.run(nothing, {1}, {1, 1, 65}, {}), "the block is 1,1,65");
  EXPECT_SAYS(gpu.run(nothing, {1}, {64, 32, 1}, {}), "a block of 64,32,1 has 2048 threads, sm_90a allows 1024");
  EXPECT_SAYS(gpu.run(nothing, {1}, {0}, {}), "the block is 0,1,1");
  EXPECT_TRUE(gpu.run(nothing, {1}, {1024}, {}).clean());
}

TEST(Launch, LimitsOfTheKernel) {
  Emulator gpu;
  const std::string required = kernelText("", "", "sm_90a", "", ".reqntid 64, 2, 1\n"),
                    most = kernelText("", "", "sm_90a", "", ".maxntid 128, 1, 1\n");
  EXPECT_SAYS(gpu.run(required, {1}, {128}, {}), "the kernel requires 64,2,1 (.reqntid)");
  EXPECT_TRUE(gpu.run(required, {1}, {64, 2, 1}, {}).clean());
  EXPECT_SAYS(gpu.run(most, {1}, {129}, {}), "the kernel allows 128 (.maxntid)");
  EXPECT_TRUE(gpu.run(most, {1}, {128}, {}).clean());
}

TEST(Launch, SharedMemoryAgainstTheTarget) {
  const std::string body = ".shared .align 4 .b8 tile[4096]; mov.u32 %r1, tile; st.shared.u32 [%r1], %r1;";
  Emulator gpu;
  EXPECT_TRUE(gpu.run(kernelText("", body), {1}, {32}, {}, 227 * 1024 - 4096).clean());
  EXPECT_SAYS(gpu.run(kernelText("", body), {1}, {32}, {}, 227 * 1024 - 4095),
              "4096 bytes of static and 228353 bytes of dynamic shared memory are 232449, sm_90a allows 232448");
  Emulator small("sm_86");
  EXPECT_SAYS(small.run(kernelText("", body, "sm_86"), {1}, {32}, {}, 100 * 1024), "sm_86 allows 101376");
}

/// As ptxas: 48 KiB, all that a block may have where the code is for one architecture alone.
TEST(Launch, StaticSharedMemoryAsAssemblersTakeIt) {
  const auto body = [](unsigned bytes) {
    return ".shared .align 4 .b8 tile[" + std::to_string(bytes) + "]; mov.u32 %r1, tile; st.shared.u32 [%r1], %r1;";
  };
  const struct {
    const char *target;
    unsigned most;
  } rows[] = {{"sm_80", 49152}, {"sm_90", 49152}, {"sm_90a", 232448}, {"sm_120", 49152}, {"sm_120a", 101376}};
  for (const auto &[target, most] : rows) {
    Emulator gpu(target);
    EXPECT_TRUE(gpu.run(kernelText("", body(most), "sm_80"), {1}, {32}, {}).clean()) << target;
    EXPECT_SAYS(gpu.run(kernelText("", body(most + 4), "sm_80"), {1}, {32}, {}),
                "static shared memory takes " + std::to_string(most + 4) + " bytes, assemblers for " + target +
                    " take " + std::to_string(most) + " (declare it .extern");
  }
}

TEST(Launch, ArgumentBytes) {
  Emulator gpu;
  const std::string text = kernelText(".param .u32 a, .param .u64 b", "");
  EXPECT_SAYS(gpu.run(text, {1}, {32}, {1u}), "the arguments have 4 bytes, the kernel's parameters 16");
  EXPECT_TRUE(gpu.run(text, {1}, {32}, {1u, std::uint64_t(2)}).clean());
  auto module = gpu.load(text);
  ASSERT_TRUE(module.ok());
  auto missing = (*module)->kernel("kk");
  EXPECT_NE(missing.status().toString().find("did you mean k?"), std::string::npos) << missing.status().toString();
  const KernelInfo &info = (*(*module)->kernel("k"))->info();
  ASSERT_EQ(info.parameters.size(), 2u);
  EXPECT_EQ(info.parameters[1].offset, 8u);
  EXPECT_EQ(info.parameters[1].type, "u64");
}

TEST(Launch, ModuleAndDeviceTargets) {
  const auto status = [](const std::string &device, const std::string &module) {
    return Emulator(device).run(withTarget(module), {1}, {32}, {}).status;
  };
  EXPECT_TRUE(status("sm_90a", "sm_80").ok());
  EXPECT_TRUE(status("sm_90a", "sm_90").ok());
  EXPECT_TRUE(status("sm_90a", "sm_90a").ok());
  EXPECT_NE(status("sm_90", "sm_90a").message().find("the module is for sm_90a, the device is sm_90"),
            std::string::npos);
  EXPECT_NE(status("sm_100a", "sm_90a").message().find("the module is for sm_90a, the device is sm_100a"),
            std::string::npos);
  EXPECT_NE(status("sm_80", "sm_90").message().find("the module is for sm_90, the device is sm_80"), std::string::npos);
}

TEST(Launch, WhatTheDecoderSays) {
  Emulator gpu;
  EXPECT_SAYS(gpu.run(kernelText("", "addd.u32 %r1, %r1, %r2;"), {1}, {1}, {}),
              "unknown instruction 'addd.u32' (did you mean add");
  EXPECT_SAYS(gpu.run(kernelText("", "add.rn.u32 %r1, %r1, %r2;"), {1}, {1}, {}),
              "add.rn.u32: no such form (forms that exist: add");
  EXPECT_SAYS(gpu.run(kernelText("", "add.u32 %r1, %r1, %r99;"), {1}, {1}, {}), "'%r99' is not declared");
  EXPECT_SAYS(gpu.run(kernelText("", "add.u32 %r1, %rd1, %rd2, %rd3;"), {1}, {1}, {}), "takes 3 operands, 4 are given");
  EXPECT_SAYS(gpu.run(kernelText("", "add.u64 %rd1, %r1, %rd2;"), {1}, {1}, {}), "'%r1' has 32 bits, .u64 needs 64");
  EXPECT_SAYS(gpu.run(kernelText("", "add.u32 %rd1, %r1, %r2;"), {1}, {1}, {}),
              "'%rd1' has 64 bits, the result has 32");
  EXPECT_SAYS(gpu.run(kernelText("", "bra NOWHERE;"), {1}, {1}, {}), "'NOWHERE' is not a label");
  EXPECT_SAYS(gpu.run(kernelText("", "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1,%f2}];"), {1}, {1}, {}),
              "unsupported: tex.2d.v4.f32.f32");
  EXPECT_SAYS(gpu.run(kernelText("", "call nothing_here;"), {1}, {1}, {}), "is not declared");
  // The author's line where the PTX has it, as of inline assembly.
  const auto located = [&](const char *instruction) {
    return gpu.run(kernelText("", std::string(".loc 1 31 7\n") + instruction, "sm_80", ".file 1 \"mine.cpp\""), {1},
                   {1}, {});
  };
  EXPECT_SAYS(located("addd.u32 %r1, %r1, %r2;"), "mine.cpp:31 (test.ptx:");
  EXPECT_SAYS(located("addd.u32 %r1, %r1, %r2;"), "): unknown instruction 'addd.u32'");
  EXPECT_SAYS(located("add.u32 %r1, %r1, %r99;"), "mine.cpp:31 (test.ptx:");
  EXPECT_SAYS(located("tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1,%f2}];"), "mine.cpp:31 (test.ptx:");
  Emulator old("sm_75");
  const Launched r = old.run(kernelText("", "redux.sync.add.u32 %r1, %r2, -1;", "sm_75"), {1}, {32}, {});
  EXPECT_SAYS(r, "test.ptx:8: redux.sync.add.u32: sm_75 does not have it (sm_80 is the first target that does)");
  EXPECT_EQ(r.status.code(), StatusCode::CompileError);
}

TEST(Launch, InstructionBudget) {
  EmulatorOptions options;
  options.instructionBudget = 100000;
  Emulator gpu("sm_90a", options);
  const Launched r = gpu.run(kernelText("", "LOOP: add.u32 %r1, %r1, 1; bra LOOP;"), {4}, {64}, {});
  EXPECT_EQ(r.status.code(), StatusCode::DeviceError);
  EXPECT_SAYS(r, "budget: kernel k was ended by the limit of 100000 warp instructions a launch, after ");
  EXPECT_SAYS(r, "(schedule in-order) (look for a loop that does not end, or raise the limit: --instruction-budget N");
  EXPECT_TRUE(gpu.run(nothing, {1}, {32}, {}).clean()); // the device goes on
}

TEST(Launch, WallClockBudget) {
  EmulatorOptions options;
  options.secondsBudget = 0.05;
  Emulator gpu("sm_90a", options);
  const Launched r = gpu.run(kernelText("", "LOOP: add.u32 %r1, %r1, 1; bra LOOP;"), {4}, {64}, {});
  EXPECT_SAYS(r, "budget: kernel k was ended by the limit of 0.05 seconds a launch, after ");
  EXPECT_SAYS(r, "or raise the limit: --timeout S of the command (0: none), EmulatorOptions::secondsBudget");
  EXPECT_LT(r.statistics.seconds, 5);
}

TEST(Launch, GoesOnWithTheThreadsThatThereAre) {
  using kiln::emulator::WorkerPool;
  static unsigned made, allowed;
  made = 0;
  WorkerPool::beforeThread = [] {
    if (made == allowed)
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    ++made;
  };
  EmulatorOptions options;
  options.hostThreads = 4;
  const std::string text = kernelText(
      ".param .u64 out",
      std::string(threadIndex) + "ld.param.u64 %rd1, [out]; add.u64 %rd1, %rd1, %rd60; st.global.u32 [%rd1], %r60;");
  for (allowed = 0; allowed <= 3; ++allowed) {
    made = 0;
    Emulator gpu("sm_90a", options);
    for (unsigned launch = 0; launch < 2; ++launch) { // the second asks the system again
      auto &out = gpu.upload(std::vector<std::uint32_t>(64 * 32, 0), "out");
      const Launched r = gpu.run(text, {64}, {32}, {out});
      EXPECT_TRUE(r.clean()) << allowed << r.text();
      const std::vector<std::uint32_t> got = gpu.download<std::uint32_t>(out);
      for (std::uint32_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], i);
    }
    EXPECT_EQ(made, allowed);
  }
  WorkerPool::beforeThread = nullptr;
}

TEST(Launch, OneBadKernelDoesNotTakeTheOthersAway) {
  const std::string bad = "\n.visible .entry bad() { .reg .b32 %r<2>; mov.u32 %r1, %pm0; ret; }\n";
  Emulator gpu;
  const std::string text = kernelText("", "") + bad;
  EXPECT_TRUE(gpu.run(text, {1}, {32}, {}, 0, "k").clean());
  const Launched r = gpu.run(text, {1}, {32}, {}, 0, "bad");
  EXPECT_EQ(r.status.code(), StatusCode::Unsupported);
  EXPECT_SAYS(r, "special register %pm0 does not exist on the emulator");
  auto module = gpu.load(text);
  ASSERT_TRUE(module.ok());
  EXPECT_EQ((*module)->kernelNames(), (std::vector<std::string>{"k", "bad"}));
  // Of one that has no other, loading is refused.
  EXPECT_FALSE(gpu.load(text.substr(0, text.find(".visible .entry k(")) + bad).ok());
}

// A launch that is not cooperative has no grid workspace: cooperative groups find 0 there.
TEST(Launch, EnvironmentRegistersAreZero) {
  Emulator gpu;
  auto &out = gpu.upload(std::vector<std::uint32_t>(3, 7), "out");
  const Launched r =
      gpu.run(kernelText(".param .u64 out",
                         "ld.param.u64 %rd1, [out]; mov.u32 %r1, %envreg1; mov.b32 %r2, %envreg2; mov.u32 %r3, "
                         "%envreg31; st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2; st.global.u32 "
                         "[%rd1+8], %r3;"),
              {1}, {1}, {out});
  EXPECT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(gpu.download<std::uint32_t>(out), (std::vector<std::uint32_t>{0, 0, 0}));
}

namespace {
/// Every block stores a number, all meet as grid.sync() of cooperative groups does it, every block reads the next
/// one's.
const char *const gridSync = R"(
    mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd1, {%r2, %r1}; setp.eq.u64 %p1, %rd1, 0; @%p1 trap;
    ld.param.u64 %rd2, [out]; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %nctaid.x; mov.u32 %r5, %tid.x;
    mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd2, %rd3; setp.ne.u32 %p2, %r5, 0;
    add.u32 %r6, %r3, 100; @!%p2 st.global.u32 [%rd3], %r6;
    bar.sync 0; @%p2 bra WAITED;
    sub.u32 %r7, 0x80000001, %r4; setp.ne.u32 %p3, %r3, 0; @%p3 mov.u32 %r7, 1;
    atom.add.release.gpu.u32 %r8, [%rd1+4], %r7;
  POLL: ld.acquire.gpu.u32 %r9, [%rd1+4]; xor.b32 %r9, %r9, %r8; setp.ge.s32 %p4, %r9, 0; @%p4 bra POLL;
  WAITED: bar.sync 0; @%p2 bra OUT;
    add.u32 %r10, %r3, 1; rem.u32 %r10, %r10, %r4; mul.wide.u32 %rd4, %r10, 4; add.u64 %rd4, %rd2, %rd4;
    ld.global.u32 %r11, [%rd4]; mul.wide.u32 %rd5, %r4, 4; add.u64 %rd5, %rd3, %rd5; st.global.u32 [%rd5], %r11;
  OUT: )";
} // namespace

TEST(Launch, CooperativeBlocksMeet) {
  for (const Schedule schedule : {Schedule::InOrder, Schedule::Random, Schedule::Adversarial})
    for (std::uint64_t seed = 0; seed < (schedule == Schedule::InOrder ? 1 : 5); ++seed) {
      EmulatorOptions o;
      o.schedule = schedule;
      o.seed = seed;
      Emulator gpu("sm_90a", o);
      auto &out = gpu.upload(std::vector<std::uint32_t>(12, 0), "out");
      const auto module = gpu.load(kernelText(".param .u64 out", gridSync));
      ASSERT_TRUE(module.ok()) << module.status().toString();
      Kernel &kernel = **(*module)->kernel("k");
      const DeviceAddress address = out.address();
      const auto packed = std::as_bytes(std::span(&address, 1));
      LaunchConfig config{{6, 1, 1}, {64, 1, 1}};
      config.cooperative = true;
      for (int again = 0; again < 2; ++again) { // each launch has a workspace of its own
        ASSERT_TRUE(kernel.launch(config, packed).ok());
        const std::vector<Finding> findings = gpu.device().takeFindings();
        EXPECT_TRUE(findings.empty()) << findings[0].message;
        const auto values = gpu.download<std::uint32_t>(out);
        for (unsigned b = 0; b < 6; ++b)
          EXPECT_EQ(values[6 + b], 100 + (b + 1) % 6);
      }
      config.cooperative = false;
      EXPECT_FALSE(kernel.launch(config, packed).ok());
      ASSERT_EQ(gpu.device().takeFindings().at(0).id, "trap");
      // 132 multiprocessors with 32 blocks of 64 threads each.
      config.cooperative = true;
      config.grid = {132 * 32 + 1, 1, 1};
      const Status large = kernel.launch(config, packed);
      EXPECT_EQ(large.code(), StatusCode::InvalidArgument);
      EXPECT_NE(large.message().find("a cooperative launch of 4225 blocks, of which emulator:sm_90a holds 4224 at a "
                                     "time"),
                std::string::npos)
          << large.message();
    }
}

TEST(Launch, LivelockOfAPollingLoop) {
  Emulator gpu;
  auto &flag = gpu.upload(std::vector<std::uint32_t>{0}, "flag");
  const Launched r = gpu.run(kernelText(".param .u64 f", "ld.param.u64 %rd1, [f];\nPOLL: ld.acquire.gpu.global.u32 "
                                                         "%r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra POLL;"),
                             {2}, {64}, {flag});
  EXPECT_EQ(r.ids(), "livelock") << r.text();
  EXPECT_NE(r.find("livelock")->message.find("while every warp polls: warp 0 runs at ptx line"), std::string::npos)
      << r.text();
}

TEST(Launch, BlocksThatWaitForLaterBlocks) {
  // Block 0 waits until the last block has raised the flag: all of them must be resident together.
  Emulator gpu;
  auto &flag = gpu.upload(std::vector<std::uint32_t>{0}, "flag");
  const Launched r =
      gpu.run(kernelText(".param .u64 f",
                         R"(ld.param.u64 %rd1, [f]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; sub.u32 %r2, %r2, 1;
    setp.eq.u32 %p1, %r1, %r2; @%p1 bra RAISE; setp.ne.u32 %p2, %r1, 0; @%p2 bra DONE;
    POLL: nanosleep.u32 20; ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.eq.u32 %p3, %r3, 0; @%p3 bra POLL; bra DONE;
    RAISE: mov.u32 %r4, 1; st.release.gpu.global.u32 [%rd1], %r4;
    DONE: )"),
              {40}, {64}, {flag});
  EXPECT_TRUE(r.clean()) << r.text();
}

TEST(Launch, GridBarrierThroughAtomics) {
  Emulator gpu;
  auto &counter = gpu.upload(std::vector<std::uint32_t>{0}, "counter");
  auto &values = gpu.upload(std::vector<std::uint32_t>(64, 0), "values");
  auto &out = gpu.upload(std::vector<std::uint32_t>(64, 0), "out");
  const Launched r = gpu.run(kernelText(".param .u64 c, .param .u64 v, .param .u64 o", R"(
    ld.param.u64 %rd1, [c]; ld.param.u64 %rd2, [v]; ld.param.u64 %rd3, [o]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mul.wide.u32 %rd4, %r1, 4;
    setp.ne.u32 %p1, %r2, 0; @%p1 bra WAIT;
    add.u64 %rd5, %rd2, %rd4; add.u32 %r3, %r1, 100; st.global.u32 [%rd5], %r3; fence.acq_rel.gpu; atom.global.add.u32 %r4, [%rd1], 1;
    POLL: ld.acquire.gpu.global.u32 %r5, [%rd1]; setp.lt.u32 %p2, %r5, 64; @%p2 bra POLL;
    WAIT: bar.sync 0; @%p1 bra DONE; mov.u32 %r6, 63; sub.u32 %r6, %r6, %r1; mul.wide.u32 %rd6, %r6, 4; add.u64 %rd6, %rd2, %rd6; ld.relaxed.gpu.global.u32 %r7, [%rd6];
    add.u64 %rd7, %rd3, %rd4; st.global.u32 [%rd7], %r7;
    DONE: )"),
                             {64}, {128}, {counter, values, out});
  ASSERT_TRUE(r.clean()) << r.text();
  const auto got = gpu.download<std::uint32_t>(out);
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(got[i], 63 - i + 100);
}

TEST(Launch, GridBarrierOfMoreBlocksThanFit) {
  // 1024 threads a block: two blocks an SM, 132 SMs, so 264 are resident and the 265th never starts.
  EmulatorOptions options;
  options.hostThreads = 1;
  Emulator gpu("sm_90a", options);
  auto &counter = gpu.upload(std::vector<std::uint32_t>{0}, "counter");
  const std::string text = kernelText(".param .u64 c", R"(
    ld.param.u64 %rd1, [c]; mov.u32 %r2, %tid.x; mov.u32 %r8, %nctaid.x; setp.ne.u32 %p1, %r2, 0; @%p1 bra WAIT; atom.global.add.u32 %r4, [%rd1], 1;
    POLL: ld.acquire.gpu.global.u32 %r5, [%rd1]; setp.lt.u32 %p2, %r5, %r8; @%p2 bra POLL;
    WAIT: bar.sync 0;)");
  EXPECT_TRUE(gpu.run(text, {264}, {1024}, {counter}).clean());
  auto &again = gpu.upload(std::vector<std::uint32_t>{0}, "counter");
  EXPECT_EQ(gpu.run(text, {265}, {1024}, {again}).ids(), "livelock");
}

TEST(Launch, LargeGridsCountInSixtyFourBits) {
  // More blocks than 2^32; the budget ends the launch, the block numbers are right before that.
  EmulatorOptions options;
  options.instructionBudget = 20000;
  options.hostThreads = 1;
  Emulator gpu("sm_90a", options);
  const Launched r = gpu.run(kernelText("", "mov.u32 %r1, %nctaid.x; mov.u32 %r2, %nctaid.z; mov.u32 %r3, %ctaid.x;"),
                             {0x7FFFFFFFu, 65535, 65535}, {1}, {});
  EXPECT_SAYS(r, "budget");
  // y and z advance.
  Emulator second;
  auto &out = second.upload(std::vector<std::uint32_t>(24, 0), "out");
  const Launched s = second.run(
      kernelText(".param .u64 out",
                 R"(ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
    mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y; mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1; mul.wide.u32 %rd2, %r6, 4; add.u64 %rd1, %rd1, %rd2;
    mad.lo.u32 %r7, %r3, 10, %r2; mad.lo.u32 %r7, %r7, 10, %r1; st.global.u32 [%rd1], %r7;)"),
      {4, 3, 2}, {1}, {out});
  ASSERT_TRUE(s.clean()) << s.text();
  const auto got = second.download<std::uint32_t>(out);
  for (unsigned i = 0; i < 24; ++i)
    EXPECT_EQ(got[i], i / 12 * 100 + i / 4 % 3 * 10 + i % 4);
}

TEST(Launch, SpecialRegisters) {
  Emulator gpu;
  auto &out = gpu.upload(std::vector<std::uint32_t>(12 * 64, 0), "out");
  const Launched r = gpu.run(kernelText(".param .u64 out", R"(
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd1, %r4, 48; ld.param.u64 %rd2, [out]; add.u64 %rd2, %rd2, %rd1;
    mov.u32 %r5, %laneid; mov.u32 %r6, %warpid; mov.u32 %r7, %nwarpid; mov.u32 %r8, %lanemask_lt; mov.u32 %r9, %lanemask_ge; mov.u32 %r10, WARP_SZ;
    mov.u32 %r11, %dynamic_smem_size; mov.u32 %r12, %nctaid.x; mov.u64 %rd3, %clock64; mov.u64 %rd4, %clock64; setp.gt.u64 %p1, %rd4, %rd3; selp.u32 %r13, 1, 0, %p1;
    mov.u32 %r14, %nsmid; mov.u32 %r15, %total_smem_size; mov.u32 %r16, %lanemask_eq;
    st.global.v4.u32 [%rd2], {%r5,%r6,%r7,%r8}; st.global.v4.u32 [%rd2+16], {%r9,%r10,%r11,%r12}; st.global.v4.u32 [%rd2+32], {%r13,%r14,%r15,%r16};)"),
                             {1}, {16, 4, 1}, {out}, 512);
  ASSERT_TRUE(r.clean()) << r.text();
  const auto got = gpu.download<std::uint32_t>(out);
  for (unsigned t = 0; t < 64; ++t) {
    const std::uint32_t l = t % 32, *v = &got[12 * t];
    EXPECT_EQ(v[0], l);
    EXPECT_EQ(v[1], t / 32);
    EXPECT_EQ(v[2], 2u);
    EXPECT_EQ(v[3], (1u << l) - 1);
    EXPECT_EQ(v[4], ~((1u << l) - 1));
    EXPECT_EQ(v[5], 32u);
    EXPECT_EQ(v[6], 512u);
    EXPECT_EQ(v[7], 1u);
    EXPECT_EQ(v[8], 1u);
    EXPECT_EQ(v[9], 132u);
    EXPECT_EQ(v[10], 512u);
    EXPECT_EQ(v[11], 1u << l);
  }
}

TEST(Launch, TrapIsAFinding) {
  Emulator gpu;
  const Launched r = gpu.run(kernelText("", "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 7; @%p1 trap;"), {1}, {32}, {});
  EXPECT_EQ(r.ids(), "trap");
  EXPECT_EQ(r.find("trap")->lanes, 1u << 7);
}

TEST(Launch, BuffersAndCopiesAreChecked) {
  Emulator gpu;
  auto &b = gpu.allocate(16, "b");
  std::byte data[32] = {};
  EXPECT_FALSE(b.copyFromHost(8, data).ok());
  EXPECT_FALSE(b.copyToHost(17, {data, 0}).ok());
  EXPECT_TRUE(b.copyToHost(16, {data, 0}).ok());
  EXPECT_NE(b.copyFromHost(8, data).message().find("32 bytes at offset 8 do not lie inside the buffer of 16 bytes"),
            std::string::npos);
  auto huge = gpu.device().allocate(std::size_t(1) << 60, "huge");
  EXPECT_EQ(huge.status().code(), StatusCode::OutOfMemory);
  EXPECT_EQ(gpu.device().loadCubin({}).status().code(), StatusCode::Unsupported);
}

TEST(Launch, UnknownCpuLevel) {
  EmulatorOptions options;
  options.cpuLevel = "x86-64-v9";
  auto device = createEmulatorDevice(**findTarget("sm_90a"), options);
  EXPECT_NE(device.status().message().find("CPU level 'x86-64-v9'"), std::string::npos);
}
