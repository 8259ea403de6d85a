// mma.sync and wmma around the arithmetic: which targets have which form, operands that are wrong, lanes that are not
// there, modes, memory that is not.
#include "tests/emulator/PtxHarness.h"

#include "compiler/target/Target.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

/// One warp (or `threads`); the lane number is in %r1.  `body` leaves what is to be seen in %f20 or %r20.
Launched oneWarp(const std::string &body, std::vector<std::uint32_t> *results = nullptr,
                 const std::string &target = "sm_90a", EmulatorOptions options = {}, unsigned threads = 32) {
  Emulator gpu(target, options);
  auto &out = gpu.upload(std::vector<std::uint32_t>(128, 0xABABABAB), "out");
  Launched r =
      gpu.run(kernelText(".param .u64 out", ".shared .align 32 .b8 tile[1024]; mov.u32 %r1, %laneid;\n" + body, target),
              {1}, {threads}, {out});
  if (results)
    *results = gpu.download<std::uint32_t>(out);
  return r;
}
std::string writeOut(const char *reg) {
  return std::string(
             "ld.param.u64 %rd10, [out]; mul.wide.u32 %rd11, %r1, 4; add.u64 %rd10, %rd10, %rd11; st.global.b32 "
             "[%rd10], ") +
         reg + ";\n";
}

// All of A and B one, C = 1000 + lane.
const std::string ones = "mov.b32 %r10, 0x3c003c00; mov.b32 %r11, %r10; mov.b32 %r12, %r10; mov.b32 %r13, %r10;\n"
                         "mov.b32 %r14, %r10; mov.b32 %r15, %r10; add.u32 %r2, %r1, 1000; cvt.rn.f32.u32 %f10, %r2;\n"
                         "mov.f32 %f20, 0f00000000; mov.f32 %f21, %f20; mov.f32 %f22, %f20; mov.f32 %f23, %f20;\n";
const std::string product = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f20, %f21, %f22, %f23}, "
                            "{%r10, %r11, %r12, %r13}, {%r14, %r15}, {%f10, %f10, %f10, %f10};\n";

void expectMessage(const std::string &instruction, const std::string &part, const std::string &target = "sm_100a") {
  const Launched r = oneWarp(".reg .b64 %q<4>;" + instruction + ";", nullptr, target);
  EXPECT_FALSE(r.status.ok()) << instruction;
  EXPECT_NE(r.status.toString().find(part), std::string::npos) << instruction << ": " << r.status.toString();
}

} // namespace

TEST(MmaForms, GuardsAndOperandsInPlace) {
  std::vector<std::uint32_t> got;
  Launched r = oneWarp(ones + product + writeOut("%f20"), &got);
  ASSERT_TRUE(r.clean()) << r.text();
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(std::bit_cast<float>(got[l]), 1016.0f + float(l));
  // Nobody executes it.
  r = oneWarp(ones + "setp.gt.u32 %p1, %r1, 99; @%p1 " + product + writeOut("%f20"), &got);
  ASSERT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(got[7], 0u);
  // D over A, B and C.
  r = oneWarp(ones +
                  "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r10, %r14}, {%r10, %r11, %r12, %r13}, {%r14, "
                  "%r15}, {%r10, %r10};\n" +
                  writeOut("%r10"),
              &got);
  ASSERT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(got[31], 0x4c404c40u); // 17
  // A single register with or without braces, a result that nobody wants.
  r = oneWarp("mov.b32 %r2, 0x01010101; mov.b32 %r3, 5; mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r20, _}, %r2, "
              "{%r2}, {%r3, %r3};\n" +
                  writeOut("%r20"),
              &got);
  ASSERT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(got[3], 21u);
}

TEST(MmaForms, DoublesAreFusedInOrder) {
  struct {
    const char *shape;
    unsigned m, k;
    const char *first;
  } const shapes[] = {{"m8n8k4", 8, 4, "sm_80"},
                      {"m16n8k4", 16, 4, "sm_90"},
                      {"m16n8k8", 16, 8, "sm_90"},
                      {"m16n8k16", 16, 16, "sm_90"}};
  std::mt19937_64 random(5);
  for (const auto &s : shapes) {
    const unsigned na = s.m * s.k / 32, nb = 8 * s.k / 32, nc = s.m * 8 / 32;
    std::vector<double> in;
    for (unsigned i = 0; i < (na + nb + nc) * 32; ++i)
      in.push_back(std::ldexp(double(std::int64_t(random())), int(random() % 40) - 80));
    in[3] = INFINITY;
    in[40] = NAN;
    std::string text =
        ".reg .f64 %x<32>, %y<4>; ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %laneid;"
        "mul.wide.u32 %rd3, %r1, 8; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;\n";
    std::string lists[3];
    unsigned at = 0;
    for (unsigned o = 0; o < 3; ++o)
      for (unsigned i = 0; i < (o == 0 ? na : o == 1 ? nb : nc); ++i, ++at) {
        text += "ld.global.f64 %x" + std::to_string(at) + ", [%rd1+" + std::to_string(256 * at) + "];\n";
        lists[o] += (i ? ", %x" : "%x") + std::to_string(at);
      }
    std::string d, stores;
    for (unsigned i = 0; i < nc; ++i) {
      d += (i ? ", %y" : "%y") + std::to_string(i);
      stores += "st.global.f64 [%rd2+" + std::to_string(256 * i) + "], %y" + std::to_string(i) + ";\n";
    }
    text += "mma.sync.aligned." + std::string(s.shape) + ".row.col.f64.f64.f64.f64 {" + d + "}, {" + lists[0] + "}, {" +
            lists[1] + "}, {" + lists[2] + "};\n" + stores;
    Emulator gpu(s.first);
    Buffer &from = gpu.upload(in, "in"), &to = gpu.allocate(nc * 256, "out");
    const Launched r = gpu.run(kernelText(".param .u64 in, .param .u64 out", text, "sm_80"), {1}, {32}, {from, to});
    ASSERT_TRUE(r.clean()) << r.text();
    const auto got = gpu.download<double>(to);
    // Row g = lane / 4 (+ 8), k = lane mod 4 (+ 4, ..) of A; k and column g of B; row g, columns 2 (lane mod 4), + 1 of
    // C.
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned i = 0; i < nc; ++i) {
        const unsigned row = l / 4 + i / 2 * 8, column = 2 * (l % 4) + i % 2;
        double sum = in[(na + nb + i) * 32 + l];
        for (unsigned k = 0; k < s.k; ++k) {
          const unsigned laneA = row % 8 * 4 + k % 4, wordA = s.m == 8 ? k / 4 : k / 4 * 2 + row / 8;
          sum = std::fma(in[wordA * 32 + laneA], in[(na + k / 4) * 32 + column * 4 + k % 4], sum);
        }
        const double value = got[i * 32 + l];
        if (std::isnan(sum))
          ASSERT_TRUE(std::isnan(value)) << s.shape << " " << l << " " << i;
        else
          ASSERT_EQ(value, sum) << s.shape << " " << l << " " << i;
      }
    expectMessage("mma.sync.aligned." + std::string(s.shape) +
                      ".row.col.f64.f64.f64.f64 {%fd1}, {%fd1}, {%fd1}, {%fd1}",
                  s.first + std::string(" is the first target that does"), s.m == 8 ? "sm_75" : "sm_89");
  }
}

TEST(MmaForms, TheModeChangesTheSum) {
  // 2^11 + 16 times 2^-14: cut off 25 bits below 2^11 they stay whole; as f32 each is lost.
  const std::string body = "mov.b32 %r10, 0x08000800; mov.b32 %r11, %r10; mov.b32 %r12, %r10; mov.b32 %r13, %r10;"
                           "mov.b32 %r14, 0x3c003c00; mov.b32 %r15, %r14; mov.f32 %f10, 0f45000000;" +
                           product + writeOut("%f20");
  std::vector<std::uint32_t> got;
  ASSERT_TRUE(oneWarp(body, &got).clean());
  EXPECT_EQ(std::bit_cast<float>(got[0]), 2048.0f + 16 * 0x1p-13f);
  EmulatorOptions options;
  options.mma = MatrixMode::Fast;
  ASSERT_TRUE(oneWarp(body, &got, "sm_90a", options).clean());
  EXPECT_EQ(std::bit_cast<float>(got[0]), 2048.0f);
  Emulator exact("sm_90a"), fast("sm_90a", options);
  EXPECT_EQ(exact.device().info().mma, MatrixMode::Exact);
  EXPECT_EQ(fast.device().info().mma, MatrixMode::Fast);
}

TEST(MmaForms, EveryLaneMustTakePart) {
  // Half of the warp is elsewhere.
  Launched r = oneWarp(ones + "setp.lt.u32 %p1, %r1, 16; @!%p1 bra DONE; " + product + "DONE: " + writeOut("%f20"));
  EXPECT_EQ(r.ids(), "aligned.divergent") << r.text();
  const Finding *f = r.find("aligned.divergent");
  ASSERT_TRUE(f);
  EXPECT_NE(f->message.find("lanes 0xffff0000 of the warp are at ptx line"), std::string::npos) << f->message;
  // 20 threads only; and lanes that left.
  for (bool left : {false, true}) {
    std::vector<std::uint32_t> got;
    r = oneWarp(ones + (left ? "setp.ge.u32 %p1, %r1, 20; @%p1 ret; " : "") + product + writeOut("%f20"), &got,
                "sm_90a", {}, left ? 32 : 20);
    EXPECT_EQ(r.ids(), "matrix.missing_lane") << r.text();
    EXPECT_TRUE(r.status.ok());
    EXPECT_EQ(std::bit_cast<float>(got[0]), 1016.0f); // rows and columns of lanes that are there
    EXPECT_EQ(got[20], 0xABABABABu);
  }
}

TEST(MmaForms, WhatTargetsHave) {
  struct {
    const char *opcode, *first;
    unsigned d, a, b;
    bool floats;
  } const forms[] = {
      {"m16n8k8.row.col.f32.f16.f16.f32", "sm_75", 4, 2, 1, true},
      {"m16n8k16.row.col.f32.f16.f16.f32", "sm_80", 4, 4, 2, true},
      {"m16n8k16.row.col.f32.bf16.bf16.f32", "sm_80", 4, 4, 2, true},
      {"m16n8k8.row.col.f32.tf32.tf32.f32", "sm_80", 4, 4, 2, true},
      {"m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_89", 4, 4, 2, true},
      {"m16n8k16.row.col.f32.e5m2.e5m2.f32", "sm_89", 4, 2, 1, true},
      {"m8n8k16.row.col.s32.u8.s8.s32", "sm_75", 2, 1, 1, false},
      {"m16n8k32.row.col.satfinite.s32.s8.u8.s32", "sm_80", 4, 4, 2, false},
      {"m8n8k32.row.col.s32.u4.s4.s32", "sm_75", 2, 1, 1, false},
      {"m16n8k64.row.col.s32.s4.s4.s32", "sm_80", 4, 4, 2, false},
      {"m8n8k128.row.col.s32.b1.b1.s32.xor.popc", "sm_75", 2, 1, 1, false},
      {"m8n8k128.row.col.s32.b1.b1.s32.and.popc", "sm_80", 2, 1, 1, false},
      {"m16n8k256.row.col.s32.b1.b1.s32.and.popc", "sm_80", 4, 4, 2, false},
  };
  auto list = [](const char *name, unsigned count) {
    std::string s = "{";
    for (unsigned i = 0; i < count; ++i)
      s += (i ? ", " : "") + std::string(name) + std::to_string(i);
    return s + "}";
  };
  for (const auto &form : forms)
    for (const Target &t : allTargets()) {
      const std::string accumulator = list(form.floats ? "%f" : "%r", form.d);
      const Launched r = oneWarp("mma.sync.aligned." + std::string(form.opcode) + " " + accumulator + ", " +
                                     list("%r", form.a) + ", " + list("%r", form.b) + ", " + accumulator + ";",
                                 nullptr, std::string(t.name));
      const bool has = t.sm >= static_cast<unsigned>(std::stoi(form.first + 3));
      EXPECT_EQ(r.clean(), has) << form.opcode << " on " << t.name << ": " << r.text();
      if (!has)
        EXPECT_NE(r.status.toString().find(std::string(form.first) + " is the first target that does"),
                  std::string::npos)
            << r.text();
    }
}

TEST(MmaForms, OperandsThatAreWrong) {
  const std::string f32 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 ";
  expectMessage(f32 + "{%f1, %f2, %f3}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}",
                "operand D takes 4 registers in braces, this one has 3");
  expectMessage(f32 + "{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4, %r5}, {%r5, %r6}, {%f1, %f2, %f3, %f4}",
                "operand A takes 4 registers in braces, this one has 5");
  expectMessage(f32 + "{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, %r5, {%f1, %f2, %f3, %f4}",
                "operand B takes 2 registers in braces, this one has 1");
  expectMessage(f32 + "{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}", "takes four operands: D, A, B, C");
  expectMessage(f32 + "{%q1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}",
                "'%q1' has 64 bits, the result has 32");
  expectMessage(f32 + "{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %p1}, {%r5, %r6}, {%f1, %f2, %f3, %f4}", "%p1");
  expectMessage(f32 + "{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %nothing}, {%r5, %r6}, {%f1, %f2, %f3, %f4}", "%nothing");
  const std::string rest = " {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}";
  // Forms that are not.
  expectMessage("mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32" + rest, "A must be by rows and B by columns");
  expectMessage("mma.sync.aligned.m16n8k16.row.f32.f16.f16.f32" + rest, "no such form");
  expectMessage("mma.sync.m16n8k16.row.col.f32.f16.f16.f32" + rest, "no such form");
  expectMessage("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32" + rest, "no such form");
  expectMessage("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f32" + rest, "no such form");
  expectMessage("mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32" + rest, "no such form");
  expectMessage("mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32" + rest, "no such form");
  expectMessage("mma.sync.aligned.m99n8k16.row.col.f32.f16.f16.f32" + rest, "no such form");
  // Forms that this version does not have.
  expectMessage("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32" + rest, "sparse matrices are not emulated");
  expectMessage("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32" + rest,
                "sparse matrices are not emulated");
  expectMessage("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e4m3.f32" + rest,
                "block scaling and the kind f8f6f4 are not emulated");
  expectMessage("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32" + rest, "m8n8k4 in one warp are not emulated");
  // wmma.
  const std::string eight = "{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}";
  expectMessage("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r10}, [%q1], %r2",
                "operand r takes 8 registers in braces");
  expectMessage("wmma.load.a.sync.aligned.row.m16n16k16.f16 " + eight, "takes a vector of registers, an address");
  expectMessage("wmma.load.a.sync.aligned.row.m16n16k16.f32 " + eight + ", [%q1]", "no such form");
  expectMessage("wmma.load.a.sync.aligned.row.m16n16k8.f16 " + eight + ", [%q1]", "no such form");
  expectMessage("wmma.load.a.sync.aligned.m16n16k16.f16 " + eight + ", [%q1]", "no such form");
  expectMessage(".local .align 32 .b8 own[1024]; wmma.load.a.sync.aligned.row.m16n16k16.f16 " + eight + ", [own]",
                "it must be in .global or .shared");
  expectMessage("wmma.store.d.sync.aligned.row.m16n16k16.f16 [%q1], {%r1, %r2, %r3}", "operand d takes 4 registers");
  expectMessage("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1}, " + eight + ", " + eight + ", {%f1}",
                "operand D takes 8 registers in braces, this one has 1");
  expectMessage("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 " + eight + ", {%r1, %r2}, {%r3, %r4}, " + eight,
                "no such form");
  expectMessage("wmma.load.a.sync.aligned.row.m8n8k32.s4 {%r10}, [%q1], %r2", "no such form");
}

TEST(WmmaMemory, Findings) {
  const std::string eight = "{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}";
  const std::string load = "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " + eight + ", ";
  const std::string filled = "mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2; mov.u32 %r4, 0; mov.u32 %r5, 0;"
                             "L: st.shared.u32 [%r3], %r4; add.u32 %r3, %r3, 128; add.u32 %r5, %r5, 1;"
                             "setp.lt.u32 %p1, %r5, 8; @%p1 bra L; bar.warp.sync 0xffffffff;\n";
  EXPECT_TRUE(oneWarp(filled + load + "[tile], 16;").clean());
  EXPECT_TRUE(oneWarp(filled + load + "[tile];").clean());
  EXPECT_TRUE(oneWarp(filled + load + "[%r2+16], 24;").clean()); // 16 bytes are enough
  // Nobody wrote the last line.
  EXPECT_EQ(oneWarp("mov.u32 %r2, tile;" + load + "[tile], 16;").ids(), "uninit.shared");
  const struct {
    const char *address, *id, *part;
  } rows[] = {
      {"[tile+512], 32;", "oob.shared", "2-byte load at"}, // the sixteenth line ends 512 bytes past the end
      {"[%r2+8], 16;", "misaligned", "16-byte load at"},
      {"[tile], 20;", "misaligned", "is not aligned to 16 bytes"},
      {"[tile], -16;", "oob.shared", "2-byte load at"},
  };
  for (const auto &row : rows) {
    const Launched r = oneWarp(filled + load + row.address);
    EXPECT_EQ(r.ids(), row.id) << row.address << r.text();
    EXPECT_FALSE(r.status.ok());
    if (const Finding *f = r.find(row.id))
      EXPECT_NE(f->message.find(row.part), std::string::npos) << f->message;
  }
  Launched r = oneWarp(filled + "setp.eq.u32 %p2, %r1, 9; @%p2 add.u32 %r2, %r2, 32;" + load + "[%r2], 16;");
  EXPECT_EQ(r.ids(), "matrix.lanes_differ") << r.text();
  ASSERT_TRUE(r.find("matrix.lanes_differ"));
  EXPECT_EQ(r.find("matrix.lanes_differ")->lanes, 1u << 9);
  r = oneWarp("wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [tile+768], {%r1, %r1, %r1, %r1}, 16;");
  EXPECT_EQ(r.ids(), "oob.shared") << r.text();
  EXPECT_NE(r.text().find("2-byte store at"), std::string::npos) << r.text();
  // What is stored counts as written.
  EXPECT_TRUE(oneWarp("wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [tile], {%r1, %r1, %r1, %r1}, 16;"
                      "bar.warp.sync 0xffffffff;" +
                      load + "[tile], 16;")
                  .clean());
  EXPECT_EQ(oneWarp("wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [tile], {%r1, %r1, %r1, %r1}, 24;"
                    "bar.warp.sync 0xffffffff;" +
                    load + "[tile], 16;")
                .ids(),
            "uninit.shared");
  // Other warps are told apart: two warps store one tile.
  const Launched race = oneWarp("wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [tile], {%r1, %r1, %r1, %r1}, 16;",
                                nullptr, "sm_90a", {}, 64);
  EXPECT_EQ(race.ids(), "race.shared") << race.text();
}
