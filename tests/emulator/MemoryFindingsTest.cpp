// What the memory checks report, with the words that a user needs.  S numbers are the seeded bugs of the emulator
// specification; each has its correct twin.
#include "tests/emulator/PtxHarness.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

bool contains(const Launched &r, std::string_view id, std::string_view part) {
  const Finding *f = r.find(id);
  return f && f->message.find(part) != std::string::npos;
}

/// out[i] = in[i] for threads whose number is `comparison` n.
std::string copyKernel(const std::string &comparison, int loadOffset = 0, int storeOffset = 0) {
  return kernelText(".param .u64 in, .param .u64 out, .param .u32 n", std::string(threadIndex) + R"(
    .loc 1 10 3
    ld.param.u32 %r1, [n]; setp.)" + comparison + R"(.u32 %p1, %r60, %r1; @!%p1 bra DONE;
    ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; add.u64 %rd1, %rd1, %rd60; add.u64 %rd2, %rd2, %rd60;
    .loc 1 12 7
    ld.global.u32 %r2, [%rd1+)" + std::to_string(loadOffset) + R"(];
    .loc 1 13 7
    st.global.u32 [%rd2+)" + std::to_string(storeOffset) + R"(], %r2;
    DONE:)",
                    "sm_90a", ".file 1 \"copy.cu\"");
}

} // namespace

TEST(MemoryFindings, S54StoreOnePastTheEnd) {
  Emulator gpu;
  auto &in = gpu.upload(std::vector<std::uint32_t>(64, 1), "in");
  auto &out = gpu.allocate(256, "out");
  const Launched bad = gpu.run(copyKernel("lt", 0, 4), {1}, {64}, {in, out, 64u});
  EXPECT_EQ(bad.ids(), "oob.global") << bad.text();
  EXPECT_FALSE(bad.status.ok());
  EXPECT_TRUE(contains(bad, "oob.global", "4-byte store")) << bad.text();
  EXPECT_TRUE(contains(bad, "oob.global", "4 bytes past the end of 'out' (256 bytes)")) << bad.text();
  const Finding &f = *bad.find("oob.global");
  EXPECT_TRUE(f.fatal);
  EXPECT_EQ(f.location, "copy.cu:13");
  EXPECT_EQ(f.warp, 1u);
  EXPECT_EQ(f.lanes, 0x80000000u);
  EXPECT_NE(bad.status.message().find("copy.cu:13"), std::string::npos) << bad.status.message();
  EXPECT_TRUE(gpu.run(copyKernel("lt"), {1}, {64}, {in, out, 64u}).clean());
}

TEST(MemoryFindings, S55LoadOfTheRowAfterTheLast) {
  Emulator gpu;
  auto &in = gpu.upload(std::vector<std::uint32_t>(50, 1), "in");
  auto &out = gpu.allocate(400, "out");
  const Launched bad = gpu.run(copyKernel("le"), {1}, {64}, {in, out, 50u});
  EXPECT_EQ(bad.ids(), "oob.global") << bad.text();
  EXPECT_TRUE(contains(bad, "oob.global", "4-byte load")) << bad.text();
  EXPECT_EQ(bad.find("oob.global")->location, "copy.cu:12");
  EXPECT_TRUE(gpu.run(copyKernel("lt"), {1}, {64}, {in, out, 50u}).clean());
}

TEST(MemoryFindings, BeforeTheStartFarAwayAndNull) {
  Emulator gpu;
  auto &in = gpu.upload(std::vector<std::uint32_t>(64, 1), "in");
  auto &out = gpu.allocate(256, "out");
  EXPECT_TRUE(contains(gpu.run(copyKernel("lt", -8, 0), {1}, {64}, {in, out, 64u}), "oob.global",
                       "8 bytes before the start of 'in' (256 bytes)"));
  EXPECT_TRUE(
      contains(gpu.run(copyKernel("lt"), {1}, {64}, {std::uint64_t(0), out, 64u}), "oob.global", "null pointer"));
  EXPECT_TRUE(
      contains(gpu.run(copyKernel("lt"), {1}, {64}, {std::uint64_t(1) << 46, out, 64u}), "oob.global", "in no buffer"));
  EXPECT_TRUE(contains(gpu.run(copyKernel("lt"), {1}, {64}, {std::uint64_t(1) << 40, out, 64u}), "oob.global",
                       "an address of shared memory"));
}

TEST(MemoryFindings, RedzonesAreAtLeast256Bytes) {
  Emulator gpu;
  std::vector<Buffer *> buffers;
  for (std::size_t size : {0, 1, 255, 256, 257, 4096, 100})
    buffers.push_back(&gpu.allocate(size, "b" + std::to_string(size)));
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(buffers[i]->address() % 256, 0u);
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_GE(buffers[i]->address() - (buffers[j]->address() + buffers[j]->size()), 256u);
  }
}

TEST(MemoryFindings, S56VectorLoadFromAScalarAlignedPointer) {
  Emulator gpu;
  auto &in = gpu.upload(std::vector<std::uint32_t>(256, 1), "in");
  const auto text = [](const std::string &offset) {
    return kernelText(
        ".param .u64 in",
        R"(ld.param.u64 %rd1, [in]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd1, %rd1, %rd2;
      ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1+)" +
            offset + "]; st.global.u32 [%rd1], %r4;");
  };
  const Launched bad = gpu.run(text("4"), {1}, {32}, {in});
  EXPECT_EQ(bad.ids(), "misaligned") << bad.text();
  EXPECT_TRUE(contains(bad, "misaligned", "is not aligned to 16 bytes"));
  EXPECT_TRUE(gpu.run(text("0"), {1}, {32}, {in}).clean());
}

TEST(MemoryFindings, S57DynamicSharedMemoryTooSmall) {
  Emulator gpu;
  auto &out = gpu.allocate(512, "out");
  const std::string text = kernelText(".param .u64 out", std::string(threadIndex) + R"(
    mov.u32 %r1, buffer; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; add.u32 %r1, %r1, %r3; st.shared.u32 [%r1], %r2; bar.sync 0;
    ld.shared.u32 %r4, [%r1]; ld.param.u64 %rd1, [out]; add.u64 %rd1, %rd1, %rd60; st.global.u32 [%rd1], %r4;)",
                                      "sm_90a", ".extern .shared .align 16 .b8 buffer[];");
  const Launched bad = gpu.run(text, {1}, {128}, {out}, 256);
  EXPECT_EQ(bad.ids(), "oob.shared") << bad.text();
  EXPECT_TRUE(contains(bad, "oob.shared", "buffer+256")) << bad.text();
  EXPECT_TRUE(
      contains(bad, "oob.shared", "4 bytes past the end of the block's shared memory (0 bytes static, 256 dynamic)"))
      << bad.text();
  EXPECT_EQ(bad.find("oob.shared")->warp, 2u);
  EXPECT_TRUE(gpu.run(text, {1}, {128}, {out}, 512).clean());
}

TEST(MemoryFindings, S58SharedTilePartlyNeverWritten) {
  Emulator gpu;
  auto &out = gpu.allocate(256, "out");
  const auto text = [](const std::string &columns) {
    return kernelText(".param .u64 out", std::string(threadIndex) + R"(
      .shared .align 4 .b8 tile[256];
      mov.u32 %r1, tile; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; add.u32 %r1, %r1, %r3;
      setp.lt.u32 %p1, %r2, )" + columns + R"(; @%p1 st.shared.u32 [%r1], %r2; bar.sync 0;
      ld.shared.u32 %r4, [%r1]; ld.param.u64 %rd1, [out]; add.u64 %rd1, %rd1, %rd60; st.global.u32 [%rd1], %r4;)");
  };
  const Launched bad = gpu.run(text("60"), {1}, {64}, {out});
  EXPECT_EQ(bad.ids(), "uninit.shared") << bad.text();
  EXPECT_TRUE(bad.status.ok());
  EXPECT_TRUE(contains(bad, "uninit.shared", "tile+240")) << bad.text();
  EXPECT_EQ(bad.find("uninit.shared")->lanes, 0xF0000000u);
  EXPECT_TRUE(gpu.run(text("64"), {1}, {64}, {out}).clean());
}

TEST(MemoryFindings, S59OutputReadAsIfItWereZero) {
  Emulator gpu;
  const std::string text = kernelText(".param .u64 out", std::string(threadIndex) + R"(
    ld.param.u64 %rd1, [out]; add.u64 %rd1, %rd1, %rd60; ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;)");
  auto &fresh = gpu.allocate(4096, "sum");
  const Launched bad = gpu.run(text, {8}, {128}, {fresh});
  EXPECT_EQ(bad.ids(), "uninit.global") << bad.text();
  EXPECT_TRUE(contains(bad, "uninit.global", "reads 'sum'+0 (of 4096 bytes) (lane 0), which nobody wrote"))
      << bad.text();
  EXPECT_EQ(bad.find("uninit.global")->count, 32u);
  EXPECT_TRUE(gpu.run(text, {8}, {128}, {fresh}).clean()); // now it is written
  auto &zeroed = gpu.upload(std::vector<std::uint32_t>(1024, 0), "sum");
  EXPECT_TRUE(gpu.run(text, {8}, {128}, {zeroed}).clean());
}

TEST(MemoryFindings, PartOfAnAccessUndefined) {
  Emulator gpu;
  auto &b = gpu.allocate(64, "b");
  const std::byte one[3] = {};
  ASSERT_TRUE(b.copyFromHost(0, one).ok());
  const auto text = [](const std::string &pragma, const std::string &load) {
    return kernelText(".param .u64 b", "ld.param.u64 %rd1, [b]; " + pragma + load + " st.global.u32 [%rd1+16], %r1;");
  };
  EXPECT_EQ(gpu.run(text("", "ld.global.u16 %r1, [%rd1];"), {1}, {1}, {b}).ids(), "");
  EXPECT_TRUE(contains(gpu.run(text("", "ld.global.u32 %r1, [%rd1];"), {1}, {1}, {b}), "uninit.global", "'b'+3"));
  EXPECT_EQ(gpu.run(text(".pragma \"used_bytes_mask 0x7\";", "ld.global.u32 %r1, [%rd1];"), {1}, {1}, {b}).ids(), "");
  EXPECT_EQ(gpu.run(text(".pragma \"used_bytes_mask 0xC\";", "ld.global.u32 %r1, [%rd1];"), {1}, {1}, {b}).ids(),
            "uninit.global");
}

TEST(MemoryFindings, UninitialisedLocal) {
  Emulator gpu;
  auto &out = gpu.allocate(128, "out");
  const auto text = [](const std::string &store) {
    return kernelText(".param .u64 out", ".local .align 4 .b8 depot[16]; mov.u32 %r2, 5;" + store + R"(
      ld.local.u32 %r1, [depot+8]; ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r1;)");
  };
  EXPECT_EQ(gpu.run(text("st.local.u32 [depot+4], %r2;"), {1}, {1}, {out}).ids(), "uninit.local");
  EXPECT_TRUE(gpu.run(text("st.local.u32 [depot+8], %r2;"), {1}, {1}, {out}).clean());
}

TEST(MemoryFindings, LocalAndParameterBounds) {
  Emulator gpu;
  auto &out = gpu.allocate(128, "out");
  const std::string local =
      kernelText(".param .u64 out",
                 R"(.local .align 4 .b8 depot[16]; mov.u64 %rd2, depot; mov.u32 %r1, 3; st.local.u32 [%rd2+16], %r1;)");
  EXPECT_TRUE(contains(gpu.run(local, {1}, {1}, {out}), "oob.local", "local offset 16"));
  const std::string param = kernelText(
      ".param .u64 out",
      R"(mov.b64 %rd2, out; ld.param.u32 %r1, [%rd2+8]; ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r1;)");
  EXPECT_TRUE(contains(gpu.run(param, {1}, {1}, {out}), "oob.param",
                       "offset 8 of the kernel's parameters, which have 8 bytes"));
}

TEST(MemoryFindings, WritesToReadOnlyMemory) {
  Emulator gpu;
  auto &out = gpu.allocate(128, "out");
  const std::string constant = kernelText(
      ".param .u64 out", "mov.u64 %rd1, table; cvta.const.u64 %rd1, %rd1; mov.u32 %r1, 1; st.u32 [%rd1], %r1;",
      "sm_90a", ".const .align 4 .u32 table[2] = {1, 2};");
  const Launched r = gpu.run(constant, {1}, {1}, {out});
  EXPECT_EQ(r.ids(), "readonly_write") << r.text();
  EXPECT_TRUE(contains(r, "readonly_write", "'table'")) << r.text();
  const std::string param = kernelText(
      ".param .u64 out", "mov.b64 %rd1, out; cvta.param.u64 %rd1, %rd1; mov.u32 %r1, 1; st.u32 [%rd1], %r1;");
  EXPECT_EQ(gpu.run(param, {1}, {1}, {out}).ids(), "readonly_write");
}

TEST(MemoryFindings, S65UseAfterFree) {
  Emulator gpu;
  auto &in = gpu.upload(std::vector<std::uint32_t>(64, 1), "in");
  auto &out = gpu.allocate(256, "scores");
  EXPECT_TRUE(gpu.run(copyKernel("lt"), {1}, {64}, {in, out, 64u}).clean());
  const std::uint64_t address = out.address();
  gpu.release(out);
  gpu.allocate(256, "other"); // the address is not given out again
  const Launched bad = gpu.run(copyKernel("lt"), {1}, {64}, {in, address, 64u});
  EXPECT_EQ(bad.ids(), "use_after_free") << bad.text();
  EXPECT_TRUE(contains(bad, "use_after_free", "'scores' (256 bytes, freed)")) << bad.text();
}

TEST(MemoryFindings, AddressesAreEqualFromRunToRun) {
  std::vector<std::uint64_t> first;
  for (int i = 0; i < 2; ++i) {
    Emulator gpu;
    const std::uint64_t address = gpu.allocate(100, "a").address();
    first.push_back(address);
  }
  EXPECT_EQ(first[0], first[1]);
}

TEST(MemoryFindings, ChecksOffStillStopOutOfBounds) {
  EmulatorOptions options;
  options.checks = false;
  Emulator gpu("sm_90a", options);
  auto &in = gpu.allocate(256, "in"); // never written: not reported
  auto &out = gpu.allocate(256, "out");
  EXPECT_TRUE(gpu.run(copyKernel("lt"), {1}, {64}, {in, out, 64u}).clean());
  EXPECT_EQ(gpu.run(copyKernel("lt", 0, 4), {1}, {64}, {in, out, 64u}).ids(), "oob.global");
}
