// cp.async.bulk and relatives: what they move, what is refused.
#include "tests/emulator/PtxHarness.h"
#include "tests/emulator/SeededBugs.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <set>

namespace kiln::test {
namespace {

// --- Refused when the module is loaded ------------------------------------------

struct Refusal {
  const char *text;
  const char *says;
  const char *target = "sm_90a";
};

constexpr Refusal refusals[] = {
    {"cp.async.bulk.shared::cta.global.bulk_group [%r1], [%rd1], 16;", "the destination's space comes first"},
    {"cp.async.bulk.shared::cta.shared::cluster.mbarrier::complete_tx::bytes [%r1], [%r2], 16, [%r3];",
     "the destination's space comes first"},
    {"cp.async.bulk.global.shared::cluster.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r3];",
     "the destination's space comes first"},
    {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.bulk_group [%r1], [%rd1], 16;", "no such form"},
    {"cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %rd2;", "'%rd2' has 64 bits where 32 are needed"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 16, [%r3], "
     "%r4;",
     "'%r4' has 32 bits where 16 are needed"},
    {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 16, [%r3], %h1;",
     "a multicast goes to .shared::cluster"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16;", "an mbarrier"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r3], %h1;",
     "takes a destination, a source, a size, an mbarrier"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 16, [%r3];",
     "a mask of blocks"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%rd1], 16, [%r3];",
     "a cache policy"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%r2], 16, [%r3];", "64 bits"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], 16, [%r3];",
     "only the address of a tensor map has coordinates"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], %rd1, 16, [%r3];",
     "address in brackets"},
    {"cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r1], 16, %h1;", "does not have it"},
    {"cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r1], 16;", "a mask of bytes", "sm_100a"},
    {"cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;", "does not have it", "sm_80"},
    {"cp.async.bulk.commit_group 1;", "takes no operands"},
    {"cp.async.bulk.wait_group %r1;", "one integer constant"},
    {"cp.async.bulk.wait_group.read;", "one integer constant"},
    {"cp.async.bulk.prefetch.L2.global [%rd1];", "an address, a size"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd1], [%r1], 16;", "no such form"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%rd1], [%r1], 16;", "no such form"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%rd1], [%r1], 16;", "no such form"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.s32 [%rd1], [%r1], 16;", "no such form"},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [%r1], [%r2], 16, [%r3];",
     "no such form"},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.u64 [%r1], [%r2], 16, [%r3];",
     "no such form"},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
     "[tensor map, {2 coordinates}]"},
    {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, %r2], [%r3];",
     "[tensor map, {1 coordinates}]"},
    {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], [%r3];",
     "[tensor map, {1 coordinates}]"},
    {"cp.async.bulk.tensor.6d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
     "no such form"},
    {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%r2, {%r2}], [%r3];",
     "64 bits"},
    {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [p, {%r2}], [%r3];",
     "generic address"},
    {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%rd2}], [%r3];",
     "'%rd2' has 64 bits where 32 are needed"},
    {"cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r2}];", "a tensor map with coordinates, a source"},
    {"cp.async.bulk.tensor.1d.shared::cta.global.bulk_group [%rd1, {%r2}], [%r1];",
     "the destination's space comes first"},
    {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r2, "
     "%r2}], [%r3], {%h1};",
     "im2col tensor maps are not emulated"},
    {"cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r2, "
     "%r2, %r2, %r2}], [%r3];",
     "tile::gather4 is not emulated"},
    {"cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd1, {%r2, %r2, %r2, %r2, %r2}], [%r1];",
     "tile::scatter4 is not emulated"},
    {"cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%r1], [%rd1, "
     "{%r2}], [%r3];",
     "pairs of blocks are not emulated", "sm_100a"},
    {"cp.reduce.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd1, {%r2}], [%r1];", "no such form"},
    {"cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r2}];", "[tensor map, {2 coordinates}]"},
    {"tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], 1;", "does not have it", "sm_90"},
    {"tensormap.replace.tile.rank.shared::cta.b1024.b64 [%r1], %rd1;", "no such form"},
    {"tensormap.replace.tile.global_address.shared::cta.b1024.b32 [%r1], %r2;", "no such form"},
    {"tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], %r2, %r2;", "the constant number of a dimension"},
    {"tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 5, %r2;", "dimension 5"},
    {"tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 0, 257;", "1..256"},
    {"tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 4, %rd2;", "dimension 4"},
    {"tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], %r2;", "the constant number of a dimension"},
    {"tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], %r2;", "a constant"},
    {"tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 13;", "0..12"},
    {"tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [%r1], 1;", "does not have it"},
    {"tensormap.replace.tile.rank.const.b1024.b32 [%rd1], 1;", "no such form"},
    {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r1], 64;",
     "the constant 128"},
    {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%rd2];",
     "the constant 128"},
    {"fence.proxy.tensormap::generic.acquire.gpu [%rd1];", "the constant 128"},
    {"fence.proxy.tensormap::generic.release.gpu [%rd1], 128;", "takes no operands"},
    {"st.bulk.shared::cta [%r1], 16, 0;", "does not have it"},
    {"st.bulk.shared::cta [%r1], 16, 1;", "the constant 0", "sm_100a"},
    {"st.bulk.shared::cta [%r1], 16;", "the constant 0", "sm_100a"},
};

TEST(BulkCopy, MalformedFormsAreRefused) {
  for (const Refusal &r : refusals) {
    Emulator gpu(r.target);
    auto module = gpu.load(kernelText(".param .u64 p", r.text, r.target));
    ASSERT_FALSE(module.ok()) << r.text;
    EXPECT_NE(module.status().toString().find(r.says), std::string::npos) << r.text << "\n"
                                                                          << module.status().toString();
    EXPECT_NE(module.status().toString().find("test.ptx:"), std::string::npos) << module.status().toString();
  }
}

// --- What is moved --------------------------------------------------------------

/// `load` copies `in` + from to shared memory at `at`, `store` from there to `out` + to; sizes are registers.
constexpr const char *roundTrip = R"(
    .shared .align 128 .b8 tile[8192]; .shared .align 8 .b64 full;
    ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [at]; ld.param.u32 %r2, [size];
    mov.u32 %r3, tile; add.u32 %r3, %r3, %r1; mov.u32 %r4, %tid.x; setp.ne.u32 %p1, %r4, 0; @%p1 bra DONE;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], %r2;
    cp.async.bulk.SPACE.global.mbarrier::complete_tx::bytes [%r3], [%rd1], %r2, [full];
  WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0; @!%p2 bra WAIT;
    STORE
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
  DONE: )";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  text.replace(text.find(what), what.size(), with);
  return text;
}

TEST(BulkCopy, BytesGoThereAndBack) {
  std::mt19937_64 random(5);
  for (unsigned n = 0; n < 60; ++n) {
    EmulatorOptions options;
    options.schedule = n % 3 == 0 ? Schedule::InOrder : n % 3 == 1 ? Schedule::Random : Schedule::Adversarial;
    options.seed = n;
    Emulator gpu("sm_90a", options);
    std::vector<std::uint8_t> data(4096);
    for (auto &b : data)
      b = static_cast<std::uint8_t>(random());
    const auto size = static_cast<std::uint32_t>(16 * (random() % 100));
    const std::uint32_t from = 16 * (random() % 64), to = 16 * (random() % 64), at = 16 * (random() % 200);
    auto &in = gpu.upload(data, "in");
    auto &out = gpu.upload(std::vector<std::uint8_t>(4096, 0xEE), "out");
    const std::string text =
        kernelText(".param .u64 in, .param .u64 out, .param .u32 at, .param .u32 size",
                   replaced(replaced(roundTrip, "SPACE", n % 2 ? "shared::cta" : "shared::cluster"), "STORE",
                            "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], %r2;"));
    const Launched r = gpu.run(text, {1}, {64}, {in.address() + from, out.address() + to, at, size});
    ASSERT_TRUE(r.clean()) << r.text();
    std::vector<std::uint8_t> expected(4096, 0xEE);
    std::copy_n(data.begin() + from, size, expected.begin() + to);
    ASSERT_EQ(gpu.download<std::uint8_t>(out), expected);
  }
}

TEST(BulkCopy, ByteMaskSelectsBytesOfEverySixteen) {
  Emulator gpu("sm_100a");
  std::vector<std::uint8_t> data(64), expected(64, 0xEE);
  for (unsigned i = 0; i < 64; ++i)
    data[i] = static_cast<std::uint8_t>(i);
  constexpr unsigned mask = 0xA0F1;
  for (unsigned i = 0; i < 64; ++i)
    if (mask >> i % 16 & 1)
      expected[i] = data[i];
  auto &in = gpu.upload(data, "in");
  auto &out = gpu.upload(std::vector<std::uint8_t>(64, 0xEE), "out");
  const std::string text = kernelText(
      ".param .u64 in, .param .u64 out, .param .u32 at, .param .u32 size",
      replaced(replaced(roundTrip, "SPACE", "shared::cta"), "STORE",
               "mov.u16 %h1, 0xA0F1; cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd2], [%r3], %r2, %h1;"),
      "sm_100a");
  const Launched r = gpu.run(text, {1}, {32}, {in, out, 0u, 64u});
  ASSERT_TRUE(r.clean()) << r.text();
  EXPECT_EQ(gpu.download<std::uint8_t>(out), expected);
}

TEST(BulkCopy, FindingsNameWhatIsWrong) {
  struct Case {
    std::uint32_t from, to, at, size;
    const char *id, *says;
  };
  for (const Case &c :
       {Case{8, 0, 0, 16, "misaligned", "not aligned to 16"}, Case{0, 8, 0, 16, "misaligned", "not aligned to 16"},
        Case{0, 0, 8, 16, "misaligned", "not aligned to 16"}, Case{0, 0, 0, 24, "misaligned", "24 bytes"},
        Case{4080, 0, 0, 32, "oob.global", "16 bytes past the end of 'in'"},
        Case{0, 4080, 0, 32, "oob.global", "16 bytes past the end of 'out'"},
        Case{0, 0, 8192, 64, "oob.shared", "past the end"}}) {
    Emulator gpu("sm_90a");
    auto &in = gpu.upload(std::vector<std::uint8_t>(4096, 1), "in");
    auto &out = gpu.allocate(4096, "out");
    const std::string text = kernelText(".param .u64 in, .param .u64 out, .param .u32 at, .param .u32 size",
                                        replaced(replaced(roundTrip, "SPACE", "shared::cluster"), "STORE",
                                                 "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], %r2;"));
    const Launched r = gpu.run(text, {1}, {32}, {in.address() + c.from, out.address() + c.to, c.at, c.size});
    ASSERT_TRUE(r.has(c.id)) << r.text();
    EXPECT_NE(r.find(c.id)->message.find(c.says), std::string::npos) << r.text();
    EXPECT_TRUE(r.find(c.id)->opcode.starts_with("cp.async.bulk")) << r.text();
  }
}

TEST(BulkCopy, BulkStoresFillWithZeros) {
  for (const char *form :
       {"st.bulk.weak.shared::cta [tile+8], 24, 0;",
        "mov.u64 %rd3, tile; cvta.shared.u64 %rd3, %rd3; mov.u64 %rd4, 24; st.bulk [%rd3+8], %rd4, 0;"}) {
    Emulator gpu("sm_100a");
    auto &out = gpu.allocate(64, "out");
    const Launched r = gpu.run(kernelText(".param .u64 out", std::string(R"(
    .shared .align 16 .b8 tile[64]; mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2; mov.u32 %r2, tile; add.u32 %r2, %r2, %r1;
    st.shared.u32 [%r2], 7; bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra FILLED;
    )") + form + R"(
  FILLED: bar.sync 0; ld.shared.u32 %r3, [%r2]; ld.param.u64 %rd1, [out]; cvt.u64.u32 %rd2, %r1; add.u64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r3;)",
                                          "sm_100a"),
                               {1}, {16}, {out});
    ASSERT_TRUE(r.clean()) << r.text();
    const auto got = gpu.download<std::uint32_t>(out);
    for (unsigned i = 0; i < 16; ++i)
      EXPECT_EQ(got[i], i >= 2 && i < 8 ? 0u : 7u) << i;
  }
  Emulator gpu("sm_100a");
  for (const auto &[text, id] :
       std::vector<std::pair<const char *, const char *>>{{"st.bulk.shared::cta [tile], 12, 0;", "misaligned"},
                                                          {"st.bulk.shared::cta [tile+4], 8, 0;", "misaligned"},
                                                          {"st.bulk.shared::cta [tile+32], 40, 0;", "oob.shared"},
                                                          {"mov.u64 %rd1, 4096; st.bulk [%rd1], 8, 0;", "oob.shared"}})
    EXPECT_TRUE(gpu.run(kernelText("", std::string(".shared .align 16 .b8 tile[64]; ") + text, "sm_100a"), {1}, {1}, {})
                    .has(id))
        << text;
}

// --- Reductions -------------------------------------------------------------------

template <typename T, typename Fn>
void expectReduction(const std::string &form, const std::vector<T> &was, const std::vector<T> &given, Fn want) {
  ASSERT_EQ(was.size(), given.size());
  Emulator gpu("sm_90a");
  std::vector<T> a = was, b = given;
  while (a.size() * sizeof(T) % 16) {
    a.push_back(T{});
    b.push_back(T{});
  }
  auto &in = gpu.upload(b, "in");
  auto &out = gpu.upload(a, "out");
  const auto size = static_cast<std::uint32_t>(a.size() * sizeof(T));
  const std::string text =
      kernelText(".param .u64 in, .param .u64 out, .param .u32 at, .param .u32 size",
                 replaced(replaced(roundTrip, "SPACE", "shared::cta"), "STORE",
                          "cp.reduce.async.bulk.global.shared::cta.bulk_group." + form + " [%rd2], [%r3], %r2;"));
  const Launched r = gpu.run(text, {1}, {32}, {in, out, 0u, size});
  ASSERT_TRUE(r.clean()) << form << "\n" << r.text();
  const std::vector<T> got = gpu.download<T>(out);
  for (std::size_t i = 0; i < was.size(); ++i)
    EXPECT_EQ(got[i], want(was[i], given[i])) << form << " of " << was[i] << " and " << given[i];
}

template <typename T> void expectIntegers(const std::string &type, const std::set<std::string> &ops) {
  std::mt19937_64 random(6);
  std::vector<T> a(64), b(64);
  for (unsigned i = 0; i < 64; ++i) {
    a[i] = static_cast<T>(i % 5 ? random() : random() % 4);
    b[i] = static_cast<T>(i % 7 ? random() : random() % 4);
  }
  using U = std::make_unsigned_t<T>;
  for (const std::string &op : ops)
    expectReduction<T>(op + "." + type, a, b, [&](T x, T y) {
      return op == "add"   ? static_cast<T>(U(x) + U(y))
             : op == "min" ? std::min(x, y)
             : op == "max" ? std::max(x, y)
             : op == "inc" ? (x >= y ? T(0) : static_cast<T>(x + 1))
             : op == "dec" ? (x == 0 || x > y ? y : static_cast<T>(x - 1))
             : op == "and" ? static_cast<T>(x & y)
             : op == "or"  ? static_cast<T>(x | y)
                           : static_cast<T>(x ^ y);
    });
}

TEST(BulkReduce, Integers) {
  expectIntegers<std::uint32_t>("u32", {"add", "min", "max", "inc", "dec"});
  expectIntegers<std::int32_t>("s32", {"add", "min", "max"});
  expectIntegers<std::uint64_t>("u64", {"add", "min", "max"});
  expectIntegers<std::int64_t>("s64", {"min", "max"});
  expectIntegers<std::uint32_t>("b32", {"and", "or", "xor"});
  expectIntegers<std::uint64_t>("b64", {"and", "or", "xor"});
}

TEST(BulkReduce, Floats) {
  const auto f = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  // Subnormals count: the first four sums are those of an H200.
  struct Sum {
    std::uint32_t a, b, sum;
  };
  for (const Sum &s :
       {Sum{2, 3, 5}, Sum{1, 0x00800000, 0x00800001}, Sum{0x00c00000, 0x80800000, 0x00400000},
        Sum{0, 0x7fc00001, 0x7fffffff}, Sum{f(1.5f), f(2.25f), f(3.75f)}, Sum{0x80000001, 0x80000000, 0x80000001},
        Sum{f(3e38f), f(3e38f), 0x7f800000}, Sum{0x7f800000, 0xff800000, 0x7fffffff},
        Sum{f(1.0f), f(0x1p-24f), f(1.0f)}, Sum{f(1.0f), f(0x1.8p-24f), f(0x1.000002p0f)}})
    expectReduction<std::uint32_t>("add.f32", {s.a}, {s.b}, [&](auto, auto) { return s.sum; });
  expectReduction<double>("add.f64", {1.5, 1e300, 0x1p-1074}, {2.25, -1e299, 0x1p-1074},
                          [](double a, double b) { return a + b; });
  struct Half {
    const char *form;
    std::uint16_t a, b, want;
  };
  for (const Half &h : {Half{"add.noftz.f16", 0x3C00, 0x4000, 0x4200},  Half{"add.noftz.f16", 1, 1, 2},
                        Half{"add.noftz.f16", 0x7BFF, 0x7BFF, 0x7C00},  Half{"add.noftz.f16", 0x3C00, 0x1000, 0x3C00},
                        Half{"add.noftz.f16", 0x3C01, 0x1000, 0x3C02},  Half{"add.noftz.f16", 0x7C00, 0xFC00, 0x7FFF},
                        Half{"add.noftz.bf16", 0x3F80, 0x4000, 0x4040}, Half{"add.noftz.bf16", 1, 1, 2},
                        Half{"add.noftz.bf16", 0x3F80, 0x3B80, 0x3F80}, Half{"add.noftz.bf16", 0x3F81, 0x3B80, 0x3F82},
                        Half{"min.f16", 0x3C00, 0xBC00, 0xBC00},        Half{"max.f16", 0x3C00, 0xBC00, 0x3C00},
                        Half{"min.f16", 0x0000, 0x8000, 0x8000},        Half{"max.f16", 0x8000, 0x0000, 0x0000},
                        Half{"min.f16", 0x7E00, 0x3C00, 0x3C00},        Half{"max.f16", 0x3C00, 0x7E00, 0x3C00},
                        Half{"max.f16", 0x7E01, 0xFE00, 0x7FFF},        Half{"min.bf16", 0x4000, 0x3F80, 0x3F80},
                        Half{"max.bf16", 0x4000, 0x3F80, 0x4000},       Half{"min.bf16", 0x7FC0, 0x3F80, 0x3F80}})
    expectReduction<std::uint16_t>(h.form, {h.a}, {h.b}, [&](auto, auto) { return h.want; });
}

TEST(BulkReduce, IntoSharedMemoryOfTheCluster) {
  for (const auto &[form, want] : std::vector<std::pair<std::string, std::uint32_t>>{{"", 7},
                                                                                     {"add.u32", 107},
                                                                                     {"min.s32", 7},
                                                                                     {"max.u32", 100},
                                                                                     {"inc.u32", 0},
                                                                                     {"and.b32", 100 & 7},
                                                                                     {"xor.b32", 100 ^ 7}}) {
    Emulator gpu("sm_90a");
    auto &out = gpu.allocate(128, "out");
    const std::string opcode =
        form.empty() ? "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                     : "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." + form;
    const Launched r = gpu.run(kernelText(".param .u64 out", R"(
    .shared .align 16 .b8 from[128]; .shared .align 16 .b8 to[128]; .shared .align 8 .b64 full;
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, from; add.u32 %r3, %r3, %r2; mov.u32 %r4, to; add.u32 %r4, %r4, %r2;
    st.shared.u32 [%r3], 7; st.shared.u32 [%r4], 100; fence.proxy.async.shared::cta;
    setp.ne.u32 %p1, %r1, 0; @!%p1 mbarrier.init.shared::cta.b64 [full], 1; bar.sync 0;
    @%p1 bra WAIT; mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
    mapa.shared::cluster.u32 %r5, %r4, 0; mov.u32 %r7, full; mapa.shared::cluster.u32 %r8, %r7, 0;
    )" + opcode + R"( [%r5], [from], 128, [%r8];
  WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0; @!%p2 bra WAIT;
    ld.shared.u32 %r6, [%r4]; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r6;)"),
                               {1}, {32}, {out});
    ASSERT_TRUE(r.clean()) << form << r.text();
    for (const std::uint32_t v : gpu.download<std::uint32_t>(out))
      EXPECT_EQ(v, want) << form;
  }
}

// --- Definedness ------------------------------------------------------------------

TEST(BulkCopy, WhatNobodyWroteStaysUnwritten) {
  Emulator gpu("sm_90a");
  auto &in = gpu.allocate(256, "in"); // nobody writes it
  auto &out = gpu.allocate(256, "out");
  const std::string copy = replaced(replaced(roundTrip, "SPACE", "shared::cta"), "STORE",
                                    "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], %r2;");
  const std::string parameters = ".param .u64 in, .param .u64 out, .param .u32 at, .param .u32 size";
  Launched r = gpu.run(kernelText(parameters, copy), {1}, {32}, {in, out, 0u, 128u});
  EXPECT_TRUE(r.clean()) << r.text();
  const std::string read = kernelText(".param .u64 out", "ld.param.u64 %rd1, [out]; ld.global.u32 %r1, [%rd1+64];");
  EXPECT_EQ(gpu.run(read, {1}, {1}, {out}).ids(), "uninit.global");
  r = gpu.run(kernelText(parameters, copy + "ld.shared.u32 %r10, [%r3];"), {1}, {1}, {in, out, 0u, 128u});
  EXPECT_EQ(r.ids(), "uninit.shared") << r.text();
}

// --- wait_group and wait_group.read -------------------------------------------------

TEST(BulkCopy, WaitingForReadsIsNotWaitingForWrites) {
  for (const bool readsOnly : {false, true}) {
    std::set<std::uint32_t> seen;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      EmulatorOptions options;
      options.schedule = seed % 2 ? Schedule::Adversarial : Schedule::Random;
      options.seed = seed;
      options.checks = false;
      Emulator gpu("sm_90a", options);
      auto &out = gpu.upload(std::vector<std::uint32_t>(8, 5), "out");
      const Launched r = gpu.run(kernelText(".param .u64 out", std::string(R"(
    .shared .align 16 .b8 from[16];
    ld.param.u64 %rd1, [out]; st.shared.u32 [from], 7; fence.proxy.async.shared::cta;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [from], 16; cp.async.bulk.commit_group;
    cp.async.bulk.wait_group)") + (readsOnly ? ".read" : "") + R"( 0;
    ld.volatile.global.u32 %r1, [%rd1]; st.shared.u32 [from], 9; cp.async.bulk.wait_group 0; st.global.u32 [%rd1+16], %r1;)"),
                                 {1}, {1}, {out});
      ASSERT_TRUE(r.clean()) << r.text();
      const auto values = gpu.download<std::uint32_t>(out);
      EXPECT_EQ(values[0], 7u); // never what was written after the wait
      seen.insert(values[4]);
    }
    EXPECT_EQ(seen, (readsOnly ? std::set<std::uint32_t>{5, 7} : std::set<std::uint32_t>{7}));
  }
}

} // namespace
} // namespace kiln::test
