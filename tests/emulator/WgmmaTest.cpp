// wgmma.mma_async on the emulator: results at every CPU level and under seeds, the ends of shared memory, what is
// refused.
#include "tests/emulator/PtxHarness.h"
#include "tests/emulator/WgmmaCases.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

TEST(Wgmma, EveryTypeMajorAndSwizzle) {
  wgmmaEveryTypeMajorAndSwizzle(Emulator("sm_90a").device());
}
TEST(Wgmma, EveryWidth) {
  wgmmaEveryWidth(Emulator("sm_90a").device());
}
TEST(Wgmma, AnyNumbers) {
  wgmmaAnyNumbers(Emulator("sm_90a").device());
}

TEST(Wgmma, EveryCpuLevel) {
  for (const std::string &level : usableLevels()) {
    EmulatorOptions options;
    options.cpuLevel = level;
    Emulator gpu("sm_90a", options);
    std::mt19937 random(4);
    for (const WgmmaTypes &types : wgmmaTypes())
      for (Values values : {Values::Small, Values::AnyBits}) {
        WgmmaKernel kernel;
        kernel.types = types;
        kernel.n = 48;
        kernel.fragments = values == Values::Small;
        setRandomScales(random, kernel);
        checkWgmma(gpu.device(), random, kernel, values, 64, false, 32, types.k == 16);
        if (HasFatalFailure())
          return;
      }
  }
}

/// Two warpgroups, each with four steps along K of its own A and of one B: groups of one, two and one product on the
/// same accumulators, a product on others between them, waits that leave one group pending.
std::string pipelineText() {
  std::string d, e, loads, stores;
  for (unsigned i = 0; i < 32; ++i) {
    const std::string n = std::to_string(i);
    d += (i ? ",%d" : "%d") + n;
    e += (i ? ",%e" : "%e") + n;
    loads += "ld.global.f32 %d" + n + ", [%rd3+" + std::to_string(4 * i) + "];\n";
    stores += "st.global.f32 [%rd4+" + std::to_string(8 * i) + "], %d" + n + "; st.global.f32 [%rd4+" +
              std::to_string(8 * i + 4) + "], %e" + n + ";\n";
  }
  auto product = [](const std::string &to, unsigned stepA, unsigned stepB, bool adds) {
    return "add.s64 %rd10, %rd6, " + std::to_string(2 * stepA) + "; add.s64 %rd11, %rd7, " + std::to_string(2 * stepB) +
           ";\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" + to + "}, %rd10, %rd11, " + (adds ? "1" : "0") +
           ", 1, 1, 0, 0;\n";
  };
  const std::string commit = "wgmma.commit_group.sync.aligned;\n", one = "wgmma.wait_group.sync.aligned 1;\n",
                    none = "wgmma.wait_group.sync.aligned 0;\n";
  return ".version 8.5\n.target sm_90a\n.address_size 64\n"
         ".visible .entry k(.param .u64 image, .param .u64 accumulators, .param .u64 out) {\n"
         ".shared .align 1024 .b8 tile[24576];\n"
         ".reg .b64 %rd<16>; .reg .b32 %r<16>; .reg .f32 %d<32>; .reg .f32 %e<32>; .reg .pred %p<4>;\n"
         "ld.param.u64 %rd1, [image]; ld.param.u64 %rd3, [accumulators]; ld.param.u64 %rd4, [out];\n"
         "mov.u32 %r1, %tid.x; mul.wide.u32 %rd5, %r1, 128; add.s64 %rd3, %rd3, %rd5; mul.wide.u32 %rd5, %r1, 256;\n"
         "add.s64 %rd4, %rd4, %rd5; mul.wide.u32 %rd5, %r1, 16; add.s64 %rd1, %rd1, %rd5;\n"
         "mov.u32 %r2, tile; mad.lo.u32 %r2, %r1, 16, %r2; mov.u32 %r3, 0;\n"
         "COPY: ld.global.v4.b32 {%r4,%r5,%r6,%r7}, [%rd1]; st.shared.v4.b32 [%r2], {%r4,%r5,%r6,%r7};\n"
         "add.s64 %rd1, %rd1, 4096; add.u32 %r2, %r2, 4096; add.u32 %r3, %r3, 4096;\n"
         "setp.lt.u32 %p1, %r3, 24576; @%p1 bra COPY;\n"
         "fence.proxy.async; bar.sync 0;\n"
         "mov.u32 %r8, tile; shr.u32 %r8, %r8, 4; cvt.u64.u32 %rd7, %r8; or.b64 %rd7, %rd7, 0x4000004000010000;\n"
         "shr.u32 %r9, %r1, 7; mul.wide.u32 %rd6, %r9, 512; add.s64 %rd6, %rd6, %rd7; add.s64 %rd7, %rd7, 1024;\n" +
         loads + "wgmma.fence.sync.aligned;\n" + product(d, 0, 0, true) + commit + product(d, 1, 1, true) +
         product(d, 2, 2, true) + commit + one + product(e, 0, 1, false) + commit + one + product(d, 3, 3, true) +
         commit + none + stores + "ret;\n}\n";
}

TEST(Wgmma, PipelinesOfTwoWarpgroupsUnderSeeds) {
  std::mt19937 random(5);
  const WgmmaTypes types{"f32", "bf16", "bf16", 16};
  std::vector<std::uint32_t> a[2], b, c; // [64][64] each; c of 256 threads
  std::vector<std::uint8_t> image(24576);
  auto fill = [&](std::vector<std::uint32_t> &m, unsigned start) {
    for (unsigned i = 0; i < 64; ++i)
      for (unsigned k = 0; k < 64; ++k) {
        m.push_back(randomElement(random, elementFormat("bf16"), Values::Small));
        const unsigned plain = i * 128 + 2 * k, at = start + (plain ^ (plain >> 3 & 0x70));
        image[at] = static_cast<std::uint8_t>(m.back());
        image[at + 1] = static_cast<std::uint8_t>(m.back() >> 8);
      }
  };
  fill(a[0], 0);
  fill(a[1], 8192);
  fill(b, 16384);
  for (unsigned i = 0; i < 256 * 32; ++i)
    c.push_back(randomElement(random, elementFormat("f32"), Values::Small));
  std::vector<std::uint32_t> want(256 * 64);
  for (unsigned w = 0; w < 2; ++w)
    for (unsigned i = 0; i < 64; ++i)
      for (unsigned j = 0; j < 64; ++j) {
        const FragmentPlace p = accumulatorPlace(false, i, j);
        const unsigned thread = 128 * w + p.thread;
        std::uint32_t sum = c[thread * 32 + p.reg];
        for (unsigned step = 0; step < 4; ++step)
          sum = wgmmaElement(types, &a[w][i * 64 + 16 * step], &b[j * 64 + 16 * step], sum, false, false);
        want[thread * 64 + 2 * p.reg] = sum;
        want[thread * 64 + 2 * p.reg + 1] = wgmmaElement(types, &a[w][i * 64], &b[j * 64 + 16], 0, false, false);
      }
  for (unsigned i = 0; i <= 40; ++i) {
    EmulatorOptions options;
    options.schedule = i == 0 ? Schedule::InOrder : i % 2 ? Schedule::Random : Schedule::Adversarial;
    options.seed = i;
    Emulator gpu("sm_90a", options);
    auto &out = gpu.upload(std::vector<std::uint32_t>(want.size(), 0xDEADBEEF), "out");
    const Launched r = gpu.run(pipelineText(), {1}, {256}, {gpu.upload(image), gpu.upload(c), out});
    ASSERT_TRUE(r.clean()) << i << "\n" << r.text();
    ASSERT_EQ(gpu.download<std::uint32_t>(out), want) << i;
  }
}

TEST(Wgmma, TilesAtTheEndOfSharedMemory) {
  Emulator gpu("sm_90a");
  constexpr unsigned bytes = 4096;
  auto &image = gpu.upload(std::vector<std::uint8_t>(bytes), "image");
  auto &other = gpu.upload(std::vector<std::uint32_t>(128 * 4), "other");
  auto &out = gpu.allocate(128 * 16, "out");
  auto run = [&](unsigned startB, std::string_view majorB) {
    WgmmaKernel kernel;
    kernel.types = {"f32", "bf16", "bf16", 16};
    kernel.fragments = true;
    kernel.b = {majorB == "mn", 0, 8, startB, 128, 128, 0};
    return gpu.run(kernel.text(bytes), {1}, {128}, {image, other, other, out}, bytes);
  };
  for (std::string_view major : {"k", "mn"}) {
    EXPECT_TRUE(run(wgmmaSharedBase + bytes - 256, major).clean());
    const Launched r = run(wgmmaSharedBase + bytes - 240, major);
    const Finding *f = r.find("wgmma.desc");
    ASSERT_TRUE(f && f->fatal) << r.text();
    EXPECT_NE(f->message.find(major == "k" ? "row 8, column 7 of B is at shared offset 5120"
                                           : "row 15, column 0 of B is at shared offset 5120"),
              std::string::npos)
        << f->message;
    EXPECT_FALSE(run(wgmmaSharedBase - 16, major).status.ok());
    // The start address has 18 bits, so nothing lies above; the farthest is far outside.
    EXPECT_TRUE(run(0x3FFF0, major).has("wgmma.desc"));
  }
}

TEST(Wgmma, Refused) {
  auto text = [](const std::string &instruction, const std::string &target) {
    return ".version 8.5\n.target " + target +
           "\n.address_size 64\n.visible .entry k() {\n"
           ".reg .f32 %f<8>; .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .b16 %h<4>; .reg .pred %p<2>;\n" +
           instruction + ";\nret;\n}\n";
  };
  auto refused = [&](const std::string &instruction, const char *part, const std::string &target = "sm_90a") {
    Emulator gpu(target);
    const auto module = gpu.load(text(instruction, target));
    ASSERT_FALSE(module) << instruction;
    EXPECT_NE(module.status().toString().find(part), std::string::npos) << instruction << "\n"
                                                                        << module.status().toString();
    EXPECT_NE(module.status().toString().find(":6:"), std::string::npos) << module.status().toString();
  };
  const std::string mma = "wgmma.mma_async.sync.aligned.", bf16 = mma + "m64n8k16.f32.bf16.bf16 ",
                    d = "{%f0,%f1,%f2,%f3}";
  refused(bf16 + d + ", %rd0, %rd1, %p0, 1, 1, 0, 0", "sm_90a", "sm_90");
  refused(bf16 + d + ", %rd0, %rd1, %p0, 1, 1, 0, 0", "sm_90a is the only target", "sm_100a");
  refused("wgmma.fence.sync.aligned", "sm_90a", "sm_80");
  refused("wgmma.commit_group.sync.aligned", "sm_90a is the only target", "sm_100a");
  refused(bf16 + d + ", %rd0, %rd1, %p0, 1, 1", "takes 8 operands");
  refused(bf16 + d + ", {%r0,%r1,%r2,%r3}, %rd1, %p0, 1, 1, 0, 0", "takes 7 operands");
  refused(bf16 + d + ", %rd0, %rd1, %p0, 2, 1, 0, 0", "imm-scale-a (operand 5) must be the constant 1 or -1");
  refused(bf16 + d + ", %rd0, %rd1, %p0, 1, %r0, 0, 0", "imm-scale-b (operand 6)");
  refused(bf16 + d + ", %rd0, %rd1, %p0, 1, 1, 2, 0", "imm-trans-a (operand 7) must be the constant 0 or 1");
  refused(bf16 + d + ", %rd0, %rd1, %p0, 1, 1, 0, -1", "imm-trans-b (operand 8)");
  refused(bf16 + d + ", %rd0, %rd1, 2, 1, 1, 0, 0", "scale-d (operand 4)");
  refused(bf16 + d + ", %rd0, %rd1, %r0, 1, 1, 0, 0", "predicate");
  refused(bf16 + "{%f0,%f1,%f2}, %rd0, %rd1, %p0, 1, 1, 0, 0", "a vector of 4 registers in braces, this one has 3");
  refused(bf16 + "%f0, %rd0, %rd1, %p0, 1, 1, 0, 0", "a vector of 4 registers in braces");
  refused(bf16 + "{%f0,%f1,%f2,_}, %rd0, %rd1, %p0, 1, 1, 0, 0", "32-bit registers");
  refused(bf16 + "{%f0,%f1,%f2,%rd2}, %rd0, %rd1, %p0, 1, 1, 0, 0", "'%rd2' is none");
  refused(bf16 + "{%f0,%f1,%f2,%h1}, %rd0, %rd1, %p0, 1, 1, 0, 0", "'%h1' is none");
  refused(bf16 + d + ", {%r0,%r1,%r2}, %rd1, %p0, 1, 1, 0", "a vector of 4 registers in braces, this one has 3");
  refused(bf16 + d + ", {%r0,%r1,%r2,7}, %rd1, %p0, 1, 1, 0", "32-bit registers");
  refused(bf16 + d + ", %r0, %rd1, %p0, 1, 1, 0, 0", "needs 64");
  refused(bf16 + d + ", %rd0, %p1, %p0, 1, 1, 0, 0", "is a predicate");
  refused(mma + "m64n12k16.f32.bf16.bf16 " + d + ", %rd0, %rd1, %p0, 1, 1, 0, 0", "no such form");
  refused(mma + "m64n8k16.f16.bf16.bf16 {%r0,%r1}, %rd0, %rd1, %p0, 1, 1, 0, 0", "no such form");
  refused(mma + "m64n8k8.f32.bf16.bf16 " + d + ", %rd0, %rd1, %p0, 1, 1, 0, 0", "no such form");
  refused(mma + "m64n40k32.s32.s8.s8 " + d + ", %rd0, %rd1, %p0", "no such form");
  refused(mma + "m64n8k32.s32.s8.s8 " + d + ", %rd0, %rd1, %p0, 1, 1", "takes 4 operands");
  refused(mma + "m64n8k8.f32.tf32.tf32 " + d + ", %rd0, %rd1, %p0, 1, 1, 0, 0", "takes 6 operands");
  refused("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 " + d + ", %rd0, %rd1, %r0, 0, %p0, 1, 1, 0, 0",
          "not emulated in this version");
  refused("wgmma.wait_group.sync.aligned", "one integer constant");
  refused("wgmma.wait_group.sync.aligned %r0", "one integer constant");
  refused("wgmma.wait_group.sync.aligned -1", "not negative");
  refused("wgmma.fence.sync.aligned 1", "takes no operands");
  refused("wgmma.commit_group.sync.aligned %r0", "takes no operands");
}

} // namespace
} // namespace kiln::test
