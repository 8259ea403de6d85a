// Tensor maps that kernels change, and what is found about maps and boxes.
#include "tests/emulator/PtxHarness.h"
#include "tests/emulator/SeededBugs.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

/// Thread 0 copies the map to shared memory, points it 1024 bytes further, and publishes it in `maps`; then it loads a
/// box of 8 x 32 words.
std::string changedMap(const std::string &publish, const std::string &acquire) {
  return R"(
    .shared .align 128 .b8 scratch[128];
    setp.ne.u32 %p1, %r2, 0; mov.u32 %r30, scratch; mad.lo.u32 %r31, %r6, 4, %r30;
    setp.ge.u32 %p2, %r2, 32; @%p2 bra COPIED;
    cvt.u64.u32 %rd5, %r6; shl.b64 %rd5, %rd5, 2; add.u64 %rd5, %rd5, %rd3; ld.u32 %r32, [%rd5]; st.shared.u32 [%r31], %r32;
    bar.warp.sync -1; setp.ne.u32 %p3, %r6, 0; ld.param.u64 %rd6, [in]; add.u64 %rd6, %rd6, 1024;
    ld.param.u64 %rd7, [maps];
    @%p3 bra CHANGED;
    .loc 1 10 1
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [scratch], %rd6;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [scratch], 1, 4;
  CHANGED: bar.warp.sync -1;
    )" + publish +
         R"(
    bar.warp.sync -1;
    )" + acquire +
         R"(
  COPIED: @!%p1 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0; @%p1 bra WAIT;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
    .loc 1 20 1
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd7, {0, 0}], [bar];
  WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p9, [bar], 0; @!%p9 bra WAIT;
    mov.u32 %r33, tile; mad.lo.u32 %r33, %r2, 16, %r33; ld.shared.u32 %r34, [%r33]; st.global.u32 [%rd2], %r34;
)";
}

struct MapRun {
  Launched launched;
  std::vector<std::uint32_t> out;
};
MapRun runChangedMap(const std::string &publish, const std::string &acquire, const EmulatorOptions &options) {
  Emulator gpu("sm_90a", options);
  std::vector<std::uint32_t> words(1024);
  for (std::uint32_t i = 0; i < words.size(); ++i)
    words[i] = i;
  auto &in = gpu.upload(words, "in");
  auto &out = gpu.allocate(256, "out");
  auto &maps = gpu.allocate(128, "maps");
  const TensorMap map = gpu.encode(denseTensor(TensorMapType::U32, in.address(), {32, 8}, {32, 8}));
  MapRun run;
  run.launched = gpu.run(
      kernelText(
          ".param .u64 in, .param .u64 out, .param .u64 maps, .param .align 64 .b8 map[128]",
          std::string(threadIndex) +
              ".shared .align 1024 .b8 tile[1024]; .shared .align 8 .b64 bar;\n mov.u32 %r2, %tid.x; and.b32 %r6, "
              "%r2, 31; ld.param.u64 %rd2, [out]; add.u64 %rd2, %rd2, %rd60; mov.b64 %rd3, map; cvta.param.u64 "
              "%rd3, %rd3;\n" +
              changedMap(publish, acquire),
          "sm_90a", ".file 1 \"k.cu\""),
      {1}, {64}, {in, out, maps, map});
  run.out = gpu.download<std::uint32_t>(out);
  return run;
}

const std::string publishFence =
    "\n.loc 1 12 1\ntensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd7], "
    "[scratch], 128;";
/// The same by ordinary stores.
const std::string publishStores = "mul.wide.u32 %rd8, %r6, 4; add.u64 %rd8, %rd8, %rd7; ld.shared.u32 %r35, [%r31];\n"
                                  ".loc 1 12 1\nst.global.u32 [%rd8], %r35;";
const std::string releaseFence = " fence.proxy.tensormap::generic.release.gpu;";
const std::string acquireFence = "fence.proxy.tensormap::generic.acquire.gpu [%rd7], 128;";

TEST(TensorMapOps, S44MapChangedWithoutAcquire) {
  forEverySchedule(seedsOfTwins(), [](const EmulatorOptions &options, const std::string &) {
    for (const std::string &publish : {publishFence, publishStores + releaseFence}) {
      const MapRun good = runChangedMap(publish, acquireFence, options);
      ASSERT_TRUE(good.launched.clean()) << good.launched.text();
      // 4 rows of the 8 are inside the tensor: threads 0 to 31 read them, the others zeros.
      for (std::uint32_t t = 0; t < 64; ++t)
        ASSERT_EQ(good.out[t], t < 32 ? 256 + 4 * t : 0) << t;
      const MapRun bad = runChangedMap(publish, "", options);
      const Finding *f = bad.launched.find("proxy.tensormap");
      ASSERT_TRUE(f) << bad.launched.text();
      EXPECT_EQ(f->location, "k.cu:20");
      ASSERT_TRUE(f->other);
      EXPECT_EQ(f->other->location, "k.cu:12");
    }
    // Never released.
    EXPECT_TRUE(runChangedMap(publishStores, acquireFence, options).launched.has("proxy.tensormap"));
  });
}

TEST(TensorMapOps, ReplacingInPlaceInGlobalMemory) {
  Emulator gpu("sm_90a");
  auto &in = gpu.upload(std::vector<std::uint32_t>(256, 1), "in");
  TensorMapRecipe r = denseTensor(TensorMapType::U32, in.address(), {32, 8}, {32, 8});
  const TensorMap map = gpu.encode(r);
  auto &maps = gpu.upload(std::vector<std::byte>(map.bytes.begin(), map.bytes.end()), "maps");
  const std::string text = kernelText(".param .u64 maps", R"(
    ld.param.u64 %rd1, [maps]; mov.u32 %r1, 3; mov.b64 %rd2, 256;
    tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 1, %r1;
    tensormap.replace.tile.global_stride.b1024.b64 [%rd1], 0, %rd2;
    tensormap.replace.tile.elemtype.global.b1024.b32 [%rd1], 7;
    tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%rd1], 3;
    tensormap.replace.tile.fill_mode.global.b1024.b32 [%rd1], 1;
    tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 1;)");
  const Launched done = gpu.run(text, {1}, {1}, {maps});
  ASSERT_TRUE(done.clean()) << done.text();
  r.box[1] = 3;
  r.strides[0] = 256;
  r.type = TensorMapType::F32;
  r.swizzle = TensorMapSwizzle::B128;
  r.fill = TensorMapFill::Nan;
  const TensorMap wanted = gpu.encode(r);
  EXPECT_EQ(gpu.download<std::byte>(maps), std::vector<std::byte>(wanted.bytes.begin(), wanted.bytes.end()));
  // What is no map, and a value that no map holds.
  EXPECT_TRUE(gpu.run(kernelText(".param .u64 maps", "ld.param.u64 %rd1, [maps]; "
                                                     "tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 1;"),
                      {1}, {1}, {in})
                  .has("tma.descriptor"));
  EXPECT_TRUE(gpu.run(kernelText(".param .u64 maps", "ld.param.u64 %rd1, [maps]; mov.u32 %r1, 300; "
                                                     "tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 0, %r1;"),
                      {1}, {1}, {maps})
                  .has("tma.descriptor"));
  EXPECT_TRUE(gpu.run(kernelText(".param .u64 maps", "ld.param.u64 %rd1, [maps]; "
                                                     "tensormap.replace.tile.rank.global.b1024.b32 [%rd1+8], 1;"),
                      {1}, {1}, {maps})
                  .has("misaligned"));
}

TEST(TensorCopy, FindingsOfMaps) {
  struct Case {
    std::string instruction, id, says;
  };
  const std::string load = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], ";
  for (const Case &c :
       {Case{"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd3, {0}], [bar];",
             "tma.box", "of rank 2"},
        Case{load + "[%rd4, {0, 0}], [bar];", "tma.descriptor", "in shared memory"},
        Case{load + "[%rd5, {0, 0}], [bar];", "misaligned", "64 bytes"},
        Case{load + "[%rd6, {0, 0}], [bar];", "tma.descriptor", "outside the kernel's parameters"},
        Case{load + "[%rd7, {0, 0}], [bar];", "tma.descriptor", "in no buffer"},
        Case{load + "[%rd3, {0, 0}], [bar+4];", "misaligned", "mbarrier"},
        Case{load + "[%rd3, {0, 0}], [bar+8];", "mbarrier.uninit", "bar+8"},
        Case{"cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%rd3, {0, 0}], [tile];", "tma.type",
             "'add' of elements of type u16"}}) {
    Emulator gpu("sm_90a");
    auto &in = gpu.upload(std::vector<std::uint16_t>(256, 1), "in");
    // The buffer ends after 4 rows.
    const TensorMap map = gpu.encode(denseTensor(TensorMapType::U16, in.address(), {64, 5}, {64, 2}));
    const Launched run = gpu.run(kernelText(".param .align 64 .b8 map[128]", R"(
    .shared .align 128 .b8 tile[1024]; .shared .align 16 .b8 bar[16];
    mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3; mov.u64 %rd4, tile; cvta.shared.u64 %rd4, %rd4; add.u64 %rd5, %rd3, 32;
    add.u64 %rd6, %rd3, 64; mov.u64 %rd7, 4096; mbarrier.init.shared::cta.b64 [bar], 1;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 256;
    )" + c.instruction + " cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"),
                                 {1}, {1}, {map});
    ASSERT_TRUE(run.has(c.id)) << c.instruction << "\n" << run.text();
    EXPECT_NE(run.find(c.id)->message.find(c.says), std::string::npos) << run.text();
  }
}

TEST(TensorCopy, BoxesStartAtMultiplesOf16Bytes) {
  for (const bool isLoad : {true, false})
    for (const int at : {-1, 4, 12}) {
      Emulator gpu("sm_90a");
      auto &in = gpu.upload(std::vector<std::uint16_t>(256, 1), "in");
      const TensorMap map = gpu.encode(denseTensor(TensorMapType::U16, in.address(), {256}, {64}));
      const Launched run = gpu.run(
          kernelText(".param .align 64 .b8 map[128]",
                     R"(
    .shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar; mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3;
    mbarrier.init.shared::cta.b64 [bar], 1; mov.b32 %r1, )" +
                         std::to_string(at) +
                         (isLoad ? "; cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes "
                                   "[tile], [%rd3, {%r1}], [bar];"
                                 : "; cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd3, {%r1}], [tile];")),
          {1}, {1}, {map});
      const Finding *f = run.find("tma.coordinate");
      ASSERT_TRUE(f) << run.text();
      EXPECT_TRUE(f->fatal);
      EXPECT_NE(f->message.find("must be a multiple of 8 for elements of type u16"), std::string::npos) << run.text();
    }
}

TEST(TensorCopy, StoresWriteWholeUnitsPastTheEndOfARow) {
  // 25 words of 28: the buffer ends after 25, or has the whole unit.
  for (const unsigned words : {25u, 28u}) {
    Emulator gpu("sm_90a");
    auto &out = gpu.upload(std::vector<std::uint32_t>(words, 7), "out");
    const TensorMap map = gpu.encode(denseTensor(TensorMapType::U32, out.address(), {25}, {32}));
    const Launched run = gpu.run(kernelText(".param .align 64 .b8 map[128]", R"(
    .shared .align 128 .b8 tile[128]; mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2;
    mov.u32 %r3, tile; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1; fence.proxy.async.shared::cta; bar.warp.sync -1;
    setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE; cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd3, {0}], [tile];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; DONE: )"),
                                 {1}, {32}, {map});
    EXPECT_EQ(run.ids(), words == 25 ? "oob.global" : "") << run.text();
    if (words == 28) {
      const auto got = gpu.download<std::uint32_t>(out);
      for (unsigned i = 0; i < words; ++i)
        EXPECT_EQ(got[i], i);
    } else {
      EXPECT_NE(run.find("oob.global")->message.find("whole units of 16 bytes"), std::string::npos) << run.text();
    }
  }
}

TEST(TensorCopy, TensorLargerThanItsBuffer) {
  Emulator gpu("sm_90a");
  auto &in = gpu.upload(std::vector<std::uint16_t>(256, 1), "in");
  const TensorMap map = gpu.encode(denseTensor(TensorMapType::U16, in.address(), {64, 5}, {64, 2}));
  for (const char *instruction :
       {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd3, {0, 3}], [bar];",
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {0, 3}], [tile];"}) {
    const Launched run = gpu.run(kernelText(".param .align 64 .b8 map[128]", std::string(R"(
    .shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar; mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3;
    mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 256;
    )") + instruction),
                                 {1}, {1}, {map});
    ASSERT_TRUE(run.has("oob.global")) << run.text();
    EXPECT_NE(run.find("oob.global")->message.find("128 bytes of the box at (0, 3)"), std::string::npos) << run.text();
    EXPECT_NE(run.find("oob.global")->message.find("'in'"), std::string::npos) << run.text();
  }
}

} // namespace
} // namespace kiln::test
