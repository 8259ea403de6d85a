// nan.born and inf.born: the instruction that a NaN or an infinity started with, and no other.
#include "runtime/device/emulator/checks/FloatBirths.h"
#include "tests/emulator/PtxHarness.h"
#include "tests/emulator/WgmmaCases.h"
#include "tests/emulator/WgmmaHarness.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

EmulatorOptions watching() {
  EmulatorOptions options;
  options.firstNan = true;
  return options;
}

/// Two operands of a lane in, `body` on them (%f1 = %f2 op %f3 or the like, 32 bits), result out.
Launched run(Emulator &gpu, const std::string &body, std::vector<std::uint32_t> a, std::vector<std::uint32_t> b,
             std::vector<std::uint32_t> *out = nullptr) {
  a.resize(32, a.back());
  b.resize(32, b.back());
  Buffer &x = gpu.upload(a, "x"), &y = gpu.upload(b, "y");
  Buffer &z = gpu.allocate(128, "z");
  const std::string text = kernelText(".param .u64 x, .param .u64 y, .param .u64 z", std::string(threadIndex) + R"(
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u64 %rd3, [z];
    add.s64 %rd1, %rd1, %rd60;
    add.s64 %rd2, %rd2, %rd60;
    add.s64 %rd3, %rd3, %rd60;
    .reg .b32 %a, %b, %c;
    .reg .b16 %ha, %hb, %hc;
    .reg .f64 %da, %db, %dc;
    ld.global.b32 %a, [%rd1];
    ld.global.b32 %b, [%rd2];
    )" + body + R"(
    st.global.b32 [%rd3], %c;
  )");
  Launched r = gpu.run(text, {1}, {32}, {x, y, z});
  EXPECT_TRUE(r.status.ok()) << r.text();
  if (out)
    *out = gpu.download<std::uint32_t>(z);
  return r;
}

std::vector<std::uint32_t> floats(std::initializer_list<float> values) {
  std::vector<std::uint32_t> out;
  for (const float v : values)
    out.push_back(std::bit_cast<std::uint32_t>(v));
  return out;
}

TEST(FloatBirths, OffUnlessAskedFor) {
  Emulator gpu("sm_90a");
  EXPECT_TRUE(run(gpu, "div.rn.f32 %c, %a, %b;", floats({0}), floats({0})).clean());
}

TEST(FloatBirths, NamesTheInstructionLaneAndOperands) {
  Emulator gpu("sm_90a", watching());
  const Launched r = run(gpu, "sub.rn.f32 %c, %a, %b;\n add.rn.f32 %c, %c, %c;", floats({1, 2, infinity, 4}),
                         floats({1, 2, infinity, 3}));
  EXPECT_EQ(r.ids(), "nan.born"); // the add only passes it on
  const Finding *f = r.find("nan.born");
  ASSERT_TRUE(f);
  EXPECT_EQ(f->opcode, "sub.rn.f32");
  EXPECT_EQ(f->lanes, 4u);
  EXPECT_EQ(f->message, "the result is NaN and no operand is: inf, inf (lane 2)");
  EXPECT_FALSE(f->fatal);
}

TEST(FloatBirths, AnInfinityIsBornOfFiniteNumbersOnly) {
  Emulator gpu("sm_90a", watching());
  const Launched r =
      run(gpu, "mul.rn.f32 %c, %a, %b;\n add.rn.f32 %c, %c, %a;", floats({1e30f, infinity, 2}), floats({1e30f, 2, 2}));
  EXPECT_EQ(r.ids(), "inf.born");
  EXPECT_EQ(r.find("inf.born")->opcode, "mul.rn.f32");
  EXPECT_EQ(r.find("inf.born")->lanes, 1u);
  EXPECT_EQ(r.find("inf.born")->message,
            "the result is infinite, of finite operands: 1.00000002e+30, 1.00000002e+30 (lane 0)");
}

TEST(FloatBirths, LoadsMovesSelectionsAndConstantsGiveBirthToNothing) {
  Emulator gpu("sm_90a", watching());
  const Launched r = run(gpu, R"(mov.b32 %c, 0fff800000;
    .reg .pred %q;
    setp.lt.f32 %q, %a, %b;
    selp.b32 %c, %a, %c, %q;
    max.f32 %c, %c, %a;
    neg.f32 %c, %c;
    or.b32 %c, %c, 0x7fc00000;
  )",
                         floats({NAN, infinity}), floats({1}));
  EXPECT_TRUE(r.clean()) << r.text();
}

TEST(FloatBirths, LanesThatDoNotExecuteAreNotLookedAt) {
  Emulator gpu("sm_90a", watching());
  const Launched r = run(gpu, R"(mov.b32 %c, 0;
    .reg .pred %q;
    setp.eq.f32 %q, %b, 0f3f800000;
    @%q rcp.approx.ftz.f32 %c, %a;
  )",
                         floats({0, 0, 5, 0}), floats({2, 1, 1, 2}));
  EXPECT_EQ(r.ids(), "inf.born");
  EXPECT_EQ(r.find("inf.born")->lanes, 2u);
}

struct Case {
  const char *body;
  std::uint32_t a, b;
  const char *ids;
};

/// Every kind of arithmetic and conversion, with what becomes of finite operands, and of those that are special.
TEST(FloatBirths, EveryType) {
  const auto f = [](float v) { return std::bit_cast<std::uint32_t>(v); };
  const char *const double_ = "cvt.f64.f32 %da, %a;\n cvt.f64.f32 %db, %b;\n mul.rn.f64 %da, %da, %da;\n"
                              " mul.rn.f64 %da, %da, %da;\n mul.rn.f64 %da, %da, %da;\n mul.rn.f64 %da, %da, %da;\n";
  const Case cases[] = {
      {"fma.rn.f32 %c, %a, %b, %b;", f(1e30f), f(1e30f), "inf.born"},
      {"fma.rn.f32 %c, %a, %b, %b;", f(2), f(3), ""},
      {"fma.rn.f32 %c, %a, %b, %b;", f(0), f(infinity), "nan.born"},
      {"fma.rn.f32 %c, %a, %b, %b;", f(NAN), f(infinity), ""},
      {"sqrt.rn.f32 %c, %a;", f(-1), f(0), "nan.born"},
      {"sqrt.rn.f32 %c, %a;", f(4), f(0), ""},
      {"rsqrt.approx.f32 %c, %a;", f(0), f(0), "inf.born"},
      {"lg2.approx.f32 %c, %a;", f(-2), f(0), "nan.born"},
      {"ex2.approx.f32 %c, %a;", f(200), f(0), "inf.born"},
      {"ex2.approx.f32 %c, %a;", f(-infinity), f(0), ""},
      {"sin.approx.f32 %c, %a;", f(infinity), f(0), "nan.born"},
      {"div.full.f32 %c, %a, %b;", f(1), f(0), "inf.born"},
      {"div.rn.f32 %c, %a, %b;", f(0), f(0), "nan.born"},
      // Halves: 60000 = 0x7b53, 1 = 0x3c00, infinity 0x7c00, NaN 0x7e00.
      {"add.rn.f16x2 %c, %a, %b;", 0x3c007b53, 0x3c007b53, "inf.born"},
      {"add.rn.f16x2 %c, %a, %b;", 0x7b533c00, 0x7b533c00, "inf.born"},
      {"add.rn.f16x2 %c, %a, %b;", 0x3c003c00, 0x3c003c00, ""},
      {"add.rn.f16x2 %c, %a, %b;", 0x7c003c00, 0xfc003c00, "nan.born"},
      {"add.rn.f16x2 %c, %a, %b;", 0x7e003c00, 0x3c003c00, ""},
      // A NaN in the other half excuses nothing.
      {"add.rn.f16x2 %c, %a, %b;", 0x7e007c00, 0x3c00fc00, "nan.born"},
      // bf16: 2^127 = 0x7f00.
      {"fma.rn.bf16x2 %c, %a, %b, %b;", 0x3f807f00, 0x3f807f00, "inf.born"},
      {"fma.rn.bf16x2 %c, %a, %b, %b;", 0x3f803f80, 0x3f803f80, ""},
      {"mov.b32 {%ha, %hb}, %a;\n mul.rn.f16 %hc, %ha, %hb;\n mov.b32 %c, {%hc, %hc};", 0x7b534400, 0, "inf.born"},
      {"cvt.rn.f16.f32 %hc, %a;\n mov.b32 %c, {%hc, %hc};", f(70000), 0, "inf.born"},
      {"cvt.rn.f16.f32 %hc, %a;\n mov.b32 %c, {%hc, %hc};", f(infinity), 0, ""},
      {"cvt.rn.satfinite.f16.f32 %hc, %a;\n mov.b32 %c, {%hc, %hc};", f(70000), 0, ""},
      {"cvt.rn.bf16x2.f32 %c, %a, %b;", f(3.4e38f), f(1), "inf.born"},
      {"cvt.rn.bf16x2.f32 %c, %a, %b;", f(infinity), f(3.4e38f), "inf.born"}, // the other half
      {"cvt.rn.bf16x2.f32 %c, %a, %b;", f(infinity), f(1), ""},
      {"cvt.rn.f32.s32 %c, %a;", 7, 0, ""},
      {"cvt.rn.f16.s32 %hc, %a;\n mov.b32 %c, {%hc, %hc};", 100000, 0, "inf.born"},
      {double_, f(1e20f), 0, "inf.born"},
      {double_, f(1), 0, ""},
      {"cvt.f64.f32 %da, %a;\n mul.rn.f64 %da, %da, %da;\n cvt.rn.f32.f64 %c, %da;", f(1e30f), 0, "inf.born"},
  };
  Emulator gpu("sm_90a", watching());
  for (const Case &c : cases) {
    const std::string body = std::string("mov.b32 %c, 0;\n") + c.body;
    const Launched r = run(gpu, body, {c.a}, {c.b});
    EXPECT_EQ(r.ids(), c.ids) << c.body << " of " << std::hex << c.a << ", " << c.b << "\n" << r.text();
  }
}

TEST(FloatBirths, Products) {
  // A and B all `a` and `b`, C `c`: D = 16 a b + c.
  const char *const body = R"(
    .reg .f32 %d<4>;
    .reg .b32 %pa, %pb;
    cvt.rn.bf16x2.f32 %pa, %a, %a;
    cvt.rn.bf16x2.f32 %pb, %b, %b;
    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%d0, %d1, %d2, %d3}, {%pa, %pa, %pa, %pa}, {%pb, %pb},
      {%b, %b, %b, %b};
    add.f32 %d0, %d0, %d1;
    mov.b32 %c, %d0;
  )";
  Emulator gpu("sm_90a", watching());
  EXPECT_TRUE(run(gpu, body, floats({2}), floats({3})).clean());
  const Launched overflow = run(gpu, body, floats({1e30f}), floats({1e30f}));
  EXPECT_EQ(overflow.ids(), "inf.born");
  EXPECT_TRUE(overflow.find("inf.born")->opcode.starts_with("mma.sync")) << overflow.text();
  EXPECT_EQ(overflow.find("inf.born")->lanes, emulator::fullMask);
  EXPECT_EQ(run(gpu, body, floats({0}), floats({infinity})).ids(), "nan.born");
  EXPECT_TRUE(run(gpu, body, floats({NAN}), floats({infinity})).clean());
  EXPECT_TRUE(run(gpu, body, floats({1}), floats({infinity})).clean());
}

TEST(FloatBirths, ProductsOfWarpgroups) {
  constexpr unsigned bytes = 4096;
  Emulator gpu("sm_90a", watching());
  WgmmaKernel kernel;
  kernel.types = {"f32", "bf16", "bf16", 16};
  kernel.fragments = true;
  kernel.b = {false, 0, 8, wgmmaSharedBase, 128, 128, 0};
  // Every element of A, B and C.
  const auto run = [&](std::uint32_t a, std::uint32_t b, float c) {
    Buffer &image = gpu.upload(std::vector<std::uint32_t>(bytes / 4, b * 0x10001), "image"),
           &fragments = gpu.upload(std::vector<std::uint32_t>(128 * 4, a * 0x10001), "fragments"),
           &addend = gpu.upload(std::vector<float>(128 * 4, c), "addend"), &out = gpu.allocate(128 * 16, "out");
    return gpu.run(kernel.text(bytes), {1}, {128}, {image, fragments, addend, out}, bytes);
  };
  EXPECT_TRUE(run(0x3f80, 0x3f80, 1).clean());
  const Launched overflow = run(0x7f00, 0x7f00, 1);
  EXPECT_EQ(overflow.ids(), "inf.born") << overflow.text();
  EXPECT_TRUE(overflow.find("inf.born")->opcode.starts_with("wgmma.mma_async")) << overflow.text();
  EXPECT_EQ(run(0, 0x7f80, 1).ids(), "nan.born");
  EXPECT_EQ(run(0x7f80, 0x3f80, -infinity).ids(), "nan.born");
  EXPECT_TRUE(run(0x7fc0, 0x7f80, 1).clean()); // A has the NaN
  EXPECT_TRUE(run(0x3f80, 0x3f80, NAN).clean());
}

TEST(FloatBirths, FormsOfOpcodes) {
  using Kind = emulator::FloatPack::Kind;
  using Shape = emulator::FloatForm::Shape;
  const auto form = [](std::string_view opcode) { return emulator::floatFormOf(opcode); };
  for (const char *none : {"add.s32", "mad.lo.s32", "mov.f32", "ld.global.f32", "selp.f32", "setp.lt.f32", "neg.f32",
                           "abs.f32", "cvt.rzi.s32.f32", "atom.global.add.f32", "shfl.sync.idx.b32",
                           "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "copysign.f32"})
    EXPECT_EQ(form(none).shape, Shape::None) << none;
  const emulator::FloatForm half = form("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16");
  EXPECT_EQ(half.shape, Shape::Matrix);
  EXPECT_EQ(half.d.kind, Kind::F16);
  EXPECT_EQ(half.registers[0], 2);
  EXPECT_EQ(half.registers[1], 4);
  EXPECT_EQ(half.registers[2], 2);
  EXPECT_EQ(half.registers[3], 2);
  const emulator::FloatForm tf32 = form("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32");
  EXPECT_EQ(tf32.registers[0], 4);
  EXPECT_EQ(tf32.registers[1], 2);
  EXPECT_EQ(tf32.registers[2], 1);
  const emulator::FloatForm bytes = form("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32");
  EXPECT_EQ(bytes.s[0].kind, Kind::E4M3);
  EXPECT_EQ(bytes.s[1].count, 4);
  EXPECT_EQ(bytes.registers[1], 4);
  const emulator::FloatForm doubles = form("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64");
  EXPECT_EQ(doubles.registers[0], 2);
  EXPECT_EQ(doubles.registers[1], 1);
  EXPECT_EQ(form("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16").shape, Shape::Warpgroup);
  EXPECT_EQ(form("add.rn.f32.bf16").s[0].kind, Kind::BF16);
  EXPECT_EQ(form("add.rn.f32.bf16").s[1].kind, Kind::F32);
}

} // namespace
