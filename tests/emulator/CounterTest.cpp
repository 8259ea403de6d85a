// Counters of a launch against counts made here, from the addresses and masks that the kernels are given.
#include "PtxHarness.h"

#include "runtime/device/emulator/decode/InstructionTable.h"
#include "runtime/device/emulator/observe/OpTraits.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace kiln;
using namespace kiln::test;

namespace {

/// Runs and gives the counters of the launch.
LaunchCounters count(Emulator &gpu, const std::string &text, Dim3 grid, Dim3 block,
                     const std::vector<Argument> &arguments, Dim3 cluster = {0, 0, 0}) {
  EXPECT_TRUE(gpu.device().record({.counters = true}).ok());
  const Launched r = gpu.run(text, grid, block, arguments, 0, {}, cluster);
  EXPECT_TRUE(r.status.ok()) << r.text();
  const std::vector<LaunchCounters> all = gpu.device().takeCounters();
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? LaunchCounters{} : all[0];
}

/// What section 5.2 of the specification says, lane by lane.
struct Expected {
  GlobalCounts global;
  SharedCounts shared;

  void addGlobal(const std::map<unsigned, std::uint64_t> &at, unsigned bytes) {
    std::set<std::uint64_t> sectors;
    for (const auto &[lane, address] : at)
      for (unsigned b = 0; b < bytes; ++b)
        sectors.insert((address + b) / 32);
    global.requests += !at.empty();
    global.sectors += sectors.size();
    global.bytes += at.size() * bytes;
  }
  void addShared(const std::map<unsigned, std::uint64_t> &at, unsigned bytes) {
    const unsigned phases = bytes <= 4 ? 1 : bytes / 4;
    for (unsigned phase = 0; phase < phases; ++phase) {
      std::map<std::uint64_t, std::set<std::uint64_t>> words; // by bank
      for (const auto &[lane, address] : at)
        if (lane / (32 / phases) == phase)
          for (unsigned b = 0; b < bytes; ++b)
            words[(address + b) / 4 % 32].insert((address + b) / 4);
      std::uint64_t most = 0;
      for (const auto &[bank, distinct] : words)
        most = std::max<std::uint64_t>(most, distinct.size());
      shared.wavefronts += most;
      shared.conflicts += most ? most - 1 : 0;
    }
    shared.requests += !at.empty();
    shared.bytes += at.size() * bytes;
  }
};

constexpr unsigned numLoads = static_cast<unsigned>(AccessKind::Load),
                   numStores = static_cast<unsigned>(AccessKind::Store),
                   numAtomics = static_cast<unsigned>(AccessKind::Atomic),
                   numCopies = static_cast<unsigned>(AccessKind::Copy),
                   numBulkLoads = static_cast<unsigned>(AccessKind::BulkLoad),
                   numBulkStores = static_cast<unsigned>(AccessKind::BulkStore);

/// A warp's random offsets of `bytes`-sized elements: scattered, in a row, equal, strided; bit 0 set: turned off.
std::vector<std::uint32_t> offsets(std::mt19937 &random, unsigned warps, unsigned bytes, unsigned elements) {
  std::vector<std::uint32_t> out;
  for (unsigned w = 0; w < warps; ++w) {
    const unsigned kind = random() % 5, start = random() % 16, stride = 1u << random() % 7;
    const std::uint32_t active = random() % 3 ? ~0u : random();
    for (unsigned l = 0; l < 32; ++l) {
      const std::uint32_t e = kind == 0   ? random() % elements
                              : kind == 1 ? start + l
                              : kind == 2 ? start
                              : kind == 3 ? start + l * stride
                                          : start + (31 - l);
      out.push_back(e % elements * bytes * 2 | !(active >> l & 1)); // twice, to leave bit 0 free for bytes
    }
  }
  return out;
}

struct Shape {
  unsigned bytes;
  const char *type, *value; ///< modifiers of ld and st, and their registers
};
constexpr Shape shapes[] = {{1, "u8", "%r10"},
                            {2, "u16", "%h1"},
                            {4, "u32", "%r10"},
                            {8, "u64", "%rd10"},
                            {8, "v2.u32", "{%r10, %r11}"},
                            {16, "v4.u32", "{%r10, %r11, %r12, %r13}"},
                            {16, "v2.u64", "{%rd10, %rd11}"}};

} // namespace

TEST(Counters, SectorsAndWavefrontsOfRandomAddresses) {
  std::mt19937 random(7);
  for (const Shape &shape : shapes)
    for (const char *space : {"shared", "global", "generic shared", "generic global"}) {
      const std::string name = space;
      const bool isShared = name.ends_with("shared"), generic = name.starts_with("generic");
      const unsigned warps = 16, elements = 16384 / shape.bytes / 2;
      const auto at = offsets(random, warps, shape.bytes, elements);
      Emulator gpu("sm_90a");
      auto &table = gpu.upload(at, "offsets");
      // Each block has 16 KiB of its own: others would race.
      auto &data = gpu.upload(std::vector<std::uint32_t>(warps * 16384 / 4), "data");
      const std::string suffix = generic ? "" : isShared ? ".shared" : ".global";
      const std::string text =
          kernelText(".param .u64 offsets, .param .u64 data",
                     std::string(threadIndex) + R"(
            .shared .align 128 .b8 tile[16384];
            ld.param.u64 %rd1, [offsets]; ld.param.u64 %rd2, [data];
            add.u64 %rd3, %rd1, %rd60; ld.global.u32 %r1, [%rd3];
            and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; shr.u32 %r3, %r1, 1;
            cvt.u64.u32 %rd4, %r3;
            mov.u64 %rd5, tile;
          )" +
                         (isShared ? (generic ? "cvta.shared.u64 %rd5, %rd5;" : "")
                                   : "mov.u32 %r4, %ctaid.x; mad.wide.u32 %rd5, %r4, 16384, %rd2;") +
                         "add.u64 %rd6, %rd5, %rd4; @%p1 st" + suffix + "." + shape.type + " [%rd6], " + shape.value +
                         "; @%p1 ld" + suffix + "." + shape.type + " " + shape.value + ", [%rd6];");
      // Blocks of one warp: the warps of one would race for its tile.
      const LaunchCounters c = count(gpu, text, {warps}, {32}, {table, data});

      Expected accesses, offsetsRead;
      for (unsigned w = 0; w < warps; ++w) {
        const std::uint64_t base = isShared ? 0 : data.address() + w * 16384;
        std::map<unsigned, std::uint64_t> lanes, all;
        for (unsigned l = 0; l < 32; ++l) {
          all[l] = table.address() + (w * 32 + l) * 4;
          if (!(at[w * 32 + l] & 1))
            lanes[l] = base + at[w * 32 + l] / 2;
        }
        offsetsRead.addGlobal(all, 4);
        if (isShared)
          accesses.addShared(lanes, shape.bytes);
        else
          accesses.addGlobal(lanes, shape.bytes);
      }
      SCOPED_TRACE(std::string(shape.type) + " " + space);
      EXPECT_EQ(c.total.global[numStores], accesses.global);
      EXPECT_EQ(c.total.shared[numStores], accesses.shared);
      EXPECT_EQ(c.total.shared[numLoads], accesses.shared);
      GlobalCounts loads = accesses.global;
      loads.requests += offsetsRead.global.requests;
      loads.sectors += offsetsRead.global.sectors;
      loads.bytes += offsetsRead.global.bytes;
      EXPECT_EQ(c.total.global[numLoads], loads);
      EXPECT_EQ(c.total.localRequests, 0u);
    }
}

TEST(Counters, ClosedFormOfAStride) {
  // A stride of s words hits 32 / gcd(s, 32) banks.
  for (const unsigned stride : {1u, 2u, 3u, 4u, 8u, 16u, 32u, 33u}) {
    Emulator gpu("sm_80");
    const std::string text = kernelText("",
                                        ".shared .align 128 .b8 tile[8192]; mov.u32 %r1, tile; mov.u32 %r2, %tid.x;"
                                        "mad.lo.u32 %r3, %r2, " +
                                            std::to_string(stride * 4) + ", %r1; st.shared.u32 [%r3], %r2;",
                                        "sm_80");
    const LaunchCounters c = count(gpu, text, {1}, {32}, {});
    EXPECT_EQ(c.total.shared[numStores].wavefronts, std::gcd(stride, 32u)) << stride;
    EXPECT_EQ(c.total.shared[numStores].conflicts, std::gcd(stride, 32u) - 1) << stride;
  }
}

TEST(Counters, InstructionsByClassAndLine) {
  Emulator gpu("sm_90a");
  auto &out = gpu.allocate(4 * 96 * 3, "out");
  const std::string text = kernelText(".param .u64 out", std::string(threadIndex) + R"(
      ld.param.u64 %rd1, [out];
      .loc 1 10 0
      add.u64 %rd2, %rd1, %rd60;
      cvt.rn.f32.u32 %f1, %r60;
      mov.u32 %r2, 0;
    again:
      .loc 1 11 0
      fma.rn.f32 %f1, %f1, %f1, %f1;
      ex2.approx.f32 %f2, %f1;
      add.u32 %r2, %r2, 1;
      setp.lt.u32 %p1, %r2, 5;
      @%p1 bra again;
      .loc 1 12 0
      bar.sync 0;
      shfl.sync.bfly.b32 %r3, %r60, 1, 31, -1;
      @%p1 add.f32 %f1, %f1, %f1;
      .loc 1 13 0
      st.global.u32 [%rd2], %r3;
      ret;)",
                                      "sm_90a", ".file 1 \"kernel.cu\"");
  const LaunchCounters c = count(gpu, text, {3}, {96}, {out});
  const std::uint64_t warps = 9;
  auto of = [&](InstructionClass k) { return c.byClass[static_cast<unsigned>(k)]; };
  EXPECT_EQ(of(InstructionClass::Float), warps * (5 + 1)); // one of them with no lane
  EXPECT_EQ(of(InstructionClass::Special), warps * 5);
  EXPECT_EQ(of(InstructionClass::Compare), warps * 5);
  EXPECT_EQ(of(InstructionClass::Convert), warps);
  EXPECT_EQ(of(InstructionClass::Control), warps * (5 + 1));
  EXPECT_EQ(of(InstructionClass::Barrier), warps);
  EXPECT_EQ(of(InstructionClass::Warp), warps);
  EXPECT_EQ(of(InstructionClass::Constant), warps);
  EXPECT_EQ(of(InstructionClass::Store), warps);
  EXPECT_EQ(c.total.barriers, warps);
  std::uint64_t sum = 0;
  for (std::uint64_t n : c.byClass)
    sum += n;
  EXPECT_EQ(sum, c.total.instructions);
  EXPECT_EQ(c.kernel, "k");

  std::map<std::string, Counts> lines;
  Counts total;
  for (const LineCounts &l : c.lines) {
    total += l.counts;
    lines[l.file + ":" + std::to_string(l.line)] = l.counts;
  }
  EXPECT_EQ(total, c.total);
  EXPECT_EQ(lines["kernel.cu:11"].instructions, warps * 25);
  EXPECT_EQ(lines["kernel.cu:11"].threads, warps * 24 * 32); // the last branch has no lane
  EXPECT_EQ(lines["kernel.cu:12"].instructions, warps * 3);
  EXPECT_EQ(lines["kernel.cu:12"].threads, warps * 2 * 32);
  EXPECT_EQ(lines["kernel.cu:13"].global[numStores].sectors, warps * 4);
}

TEST(Counters, AtomicsMatricesAndCopies) {
  Emulator gpu("sm_90a");
  auto &data = gpu.upload(std::vector<std::uint32_t>(4096), "data");
  const std::string text = kernelText(".param .u64 data", R"(
      .shared .align 128 .b8 tile[8192];
      ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
      mad.lo.u32 %r3, %r1, 16, %r2;          // 16 bytes a lane
      mul.wide.u32 %rd2, %r1, 16; add.u64 %rd3, %rd1, %rd2;
      cp.async.cg.shared.global [%r3], [%rd3], 16;
      and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0; selp.u32 %r5, 8, 0, %p1;
      cp.async.ca.shared.global [%r3+2048], [%rd3], 8, %r5;
      cp.async.commit_group; cp.async.wait_all;
      bar.sync 0;
      ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r3];
      mad.lo.u32 %r6, %r1, 128, %r2;         // rows 128 bytes apart: every row in the same banks
      st.shared.u32 [%r6], %r1; bar.sync 0;
      and.b32 %r7, %r1, 7; mad.lo.u32 %r7, %r7, 128, %r2;
      ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r14}, [%r7];
      atom.shared.add.u32 %r15, [%r2], 1;
      red.global.add.u32 [%rd3+1024], 1;
      ret;)");
  const LaunchCounters c = count(gpu, text, {2}, {32}, {data});
  EXPECT_EQ(c.total.global[numCopies], (GlobalCounts{4, 2 * (16 + 16), 2 * (512 + 16 * 8)}));
  // Copies of 8 bytes a lane, 16 bytes apart: of each half warp the banks of 16 lanes come round twice.
  EXPECT_EQ(c.total.shared[numCopies], (SharedCounts{4, 2 * (4 + 4), 2 * 2, 2 * (512 + 256)}));
  EXPECT_EQ(c.total.shared[numLoads], (SharedCounts{4, 2 * (4 + 8), 2 * 7, 2 * (512 + 128)}));
  EXPECT_EQ(c.total.shared[numStores], (SharedCounts{2, 64, 62, 256}));
  EXPECT_EQ(c.total.shared[numAtomics], (SharedCounts{2, 2, 0, 256}));
  EXPECT_EQ(c.total.global[numAtomics], (GlobalCounts{2, 2 * 16, 256}));
  EXPECT_EQ(c.total.asyncBytes, 2u * (512 + 256));
  EXPECT_EQ(c.total.barriers, 4u);
}

namespace {

/// One thread: initialises `bar`, runs `issue`, which announces its bytes, and waits.
std::string oneThread(const std::string &issue) {
  return R"(
      .shared .align 1024 .b8 tile[4096]; .shared .align 8 .b8 bar[8];
      mbarrier.init.shared::cta.b64 [bar], 1; ld.param.u64 %rd1, [data];
    )" + issue;
}
const std::string waitForBytes = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p9, [bar], 0; @!%p9 bra WAIT;\n";
std::string expectBytes(unsigned n) {
  return "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], " + std::to_string(n) + ";\n";
}

} // namespace

TEST(Counters, BulkCopies) {
  Emulator gpu("sm_90a");
  auto &data = gpu.upload(std::vector<std::uint32_t>(4096), "data");
  // 1024 bytes from byte 48 on: of sectors 1 to 33 both ends by half.  Then 256 bytes out, 64 reduced, none.
  const LaunchCounters c = count(gpu,
                                 kernelText(".param .u64 data", oneThread(expectBytes(1024) + R"(
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1+48], 1024, [bar];)" +
                                                                          waitForBytes + R"(
      cp.async.bulk.global.shared::cta.bulk_group [%rd1+8192], [tile], 256;
      cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1+12304], [tile], 64;
      mov.u32 %r1, 0; cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], %r1;
      cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;)")),
                                 {1}, {1}, {data});
  EXPECT_EQ(c.total.global[numBulkLoads], (GlobalCounts{1, 33, 1024}));
  EXPECT_EQ(c.total.shared[numBulkLoads], (SharedCounts{1, 0, 0, 1024}));
  EXPECT_EQ(c.total.global[numBulkStores], (GlobalCounts{2, 8 + 3, 256 + 64}));
  EXPECT_EQ(c.total.shared[numBulkStores], (SharedCounts{2, 0, 0, 256 + 64}));
  EXPECT_EQ(c.total.asyncBytes, 1024u + 256 + 64);
}

TEST(Counters, TensorCopies) {
  // 6 rows of 20 words, 96 bytes apart.  A box of 4 x 8 at row 3, word 16: 3 rows of 16 bytes are inside.
  Emulator gpu("sm_90a");
  auto &data = gpu.upload(std::vector<std::uint32_t>(6 * 24), "data");
  TensorMapRecipe r = denseTensor(TensorMapType::U32, data.address(), {20, 6}, {8, 4});
  r.strides = {96};
  for (const TensorMapSwizzle swizzle : {TensorMapSwizzle::None, TensorMapSwizzle::B32}) {
    r.swizzle = swizzle;
    const LaunchCounters c =
        count(gpu,
              kernelText(".param .u64 data, .param .align 64 .b8 map[128]", oneThread(expectBytes(128) + R"(
        mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3; mov.u32 %r1, 16; mov.u32 %r2, 3; mov.u32 %r3, 0;
        cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd3, {%r1, %r2}], [bar];)" +
                                                                                      waitForBytes + R"(
        cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd3, {%r1, %r2}], [tile];
        cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd3, {%r3, %r3}], [tile];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;)")),
              {1}, {1}, {data, gpu.encode(r)});
    EXPECT_EQ(c.total.global[numBulkLoads], (GlobalCounts{1, 3, 48}));
    EXPECT_EQ(c.total.shared[numBulkLoads], (SharedCounts{1, 0, 0, 128})); // zeros outside, too
    EXPECT_EQ(c.total.global[numBulkStores], (GlobalCounts{2, 3 + 4, 48 + 128}));
    EXPECT_EQ(c.total.shared[numBulkStores], (SharedCounts{2, 0, 0, 48 + 128}));
    EXPECT_EQ(c.total.asyncBytes, 128u + 48 + 128);
  }
}

TEST(Counters, BulkCopiesInsideACluster) {
  Emulator gpu("sm_90a");
  auto &data = gpu.upload(std::vector<std::uint32_t>(4096), "data");
  // Block 0 copies 512 bytes to both blocks; then each copies 256 of them to the other block's upper half.
  const std::string text = kernelText(".param .u64 data", oneThread(R"(
      mbarrier.init.shared::cta.b64 [bar], 1; mov.u32 %r1, %cluster_ctarank; mov.u16 %h1, 3;
      )" + expectBytes(512) + R"(
      fence.mbarrier_init.release.cluster; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      setp.ne.u32 %p1, %r1, 0; @%p1 bra WAIT;
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%rd1], 512, [bar], %h1;)" +
                                                                    waitForBytes + R"(
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      xor.b32 %r2, %r1, 1; mov.u32 %r3, tile; mapa.shared::cluster.u32 %r4, %r3, %r2; mov.u32 %r5, bar;
      mapa.shared::cluster.u32 %r6, %r5, %r2;
      cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4+2048], [tile], 256, [%r6];
    LAST: mbarrier.try_wait.parity.shared::cta.b64 %p9, [bar], 1; @!%p9 bra LAST;
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;)"));
  std::string once = text;
  once.replace(once.find("mbarrier.init"), std::string("mbarrier.init.shared::cta.b64 [bar], 1;").size(), "");
  const LaunchCounters c = count(gpu, once, {2}, {1}, {data}, {2, 1, 1});
  EXPECT_EQ(c.total.global[numBulkLoads], (GlobalCounts{1, 16, 512})); // read once
  EXPECT_EQ(c.total.shared[numBulkLoads], (SharedCounts{4, 0, 0, 2 * 512 + 2 * 256}));
  EXPECT_EQ(c.total.shared[numBulkStores], (SharedCounts{2, 0, 0, 2 * 256}));
  EXPECT_EQ(c.total.globalTotal().requests, 1u);
}

TEST(Counters, FillsOfSharedMemory) {
  Emulator gpu("sm_100a");
  const LaunchCounters c = count(
      gpu,
      kernelText("", ".shared .align 16 .b8 tile[512]; mov.u64 %rd1, 256; st.bulk.weak.shared::cta [tile], %rd1, 0;",
                 "sm_100a"),
      {1}, {1}, {});
  EXPECT_EQ(c.total.shared[numBulkLoads], (SharedCounts{1, 0, 0, 256}));
}

TEST(Counters, TheSameForAnyNumberOfThreadsAndCpuLevel) {
  const std::string text = kernelText(".param .u64 out", std::string(threadIndex) + R"(
      .shared .align 16 .b8 tile[1024];
      ld.param.u64 %rd1, [out]; add.u64 %rd2, %rd1, %rd60;
      mov.u32 %r1, tile; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r2, 4, %r1;
      mov.u32 %r5, %ctaid.x; and.b32 %r5, %r5, 7;
    again:
      st.shared.u32 [%r3], %r5; bar.sync 0; xor.b32 %r4, %r3, 8; ld.shared.u32 %r6, [%r4]; bar.sync 0;
      setp.lt.u32 %p1, %r2, 7; @%p1 bra skip; add.u32 %r6, %r6, 1;
    skip:
      sub.u32 %r5, %r5, 1; setp.gt.s32 %p2, %r5, 0; @%p2 bra again;
      st.global.u32 [%rd2], %r6;)");
  // A schedule with a seed lets parts of a diverged warp run on their own for longer: other counts, but always the
  // same.
  std::map<Schedule, LaunchCounters> first;
  for (const std::string &level : usableLevels())
    for (unsigned threads : {1u, 4u})
      for (bool checks : {true, false})
        for (Schedule schedule : {Schedule::InOrder, Schedule::Random, Schedule::Adversarial}) {
          EmulatorOptions options;
          options.cpuLevel = level;
          options.hostThreads = threads;
          options.checks = checks;
          options.schedule = schedule;
          options.seed = 3;
          Emulator gpu("sm_90a", options);
          auto &out = gpu.allocate(4 * 100 * 50, "out");
          const LaunchCounters c = count(gpu, text, {50}, {100}, {out});
          EXPECT_TRUE(c == first.try_emplace(schedule, c).first->second)
              << level << " " << threads << " " << checks << " " << scheduleName(schedule);
        }
}

TEST(Counters, OffUnlessAskedFor) {
  Emulator gpu("sm_90a");
  const std::string text = kernelText("", "mov.u32 %r1, %tid.x;");
  EXPECT_TRUE(gpu.run(text, {1}, {32}, {}).clean());
  EXPECT_TRUE(gpu.device().takeCounters().empty());
  EXPECT_EQ(count(gpu, text, {1}, {32}, {}).total.instructions, 2u);
  ASSERT_TRUE(gpu.device().record({}).ok());
  EXPECT_TRUE(gpu.run(text, {1}, {32}, {}).clean());
  EXPECT_TRUE(gpu.device().takeCounters().empty());
}

TEST(Counters, ALaunchThatEndedEarlyHasNone) {
  Emulator gpu("sm_90a");
  ASSERT_TRUE(gpu.device().record({.counters = true}).ok());
  EXPECT_TRUE(gpu.run(kernelText("", "trap;"), {1}, {32}, {}).has("trap"));
  EXPECT_TRUE(gpu.device().takeCounters().empty());
}

TEST(Counters, MatrixProductsByShape) {
  using emulator::traitsOf;
  EXPECT_EQ(traitsOf("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").matrixFlops, 2u * 16 * 8 * 16);
  EXPECT_EQ(traitsOf("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64").matrixFlops, 2u * 8 * 8 * 4);
  EXPECT_EQ(traitsOf("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16").matrixFlops, 2u * 64 * 128 * 16 / 4);
  EXPECT_EQ(traitsOf("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32").matrixFlops, 2u * 16 * 16 * 16);
  EXPECT_EQ(traitsOf("wmma.load.a.sync.aligned.row.m16n16k16.f16").matrixFlops, 0u);
}

TEST(Counters, EveryInstructionHasAClass) {
  const std::set<std::string> none{"prefetch", "prefetchu", "applypriority", "discard", "createpolicy"};
  std::size_t rows = 0;
  for (const auto &family : emulator::instructionTable()->families)
    for (const emulator::Row &row : family) {
      const std::string name = row.mnemonic;
      if (name.starts_with("%"))
        continue;
      ++rows;
      // Any form of it will do: the first alternative of each group of modifiers and of the types.
      std::string opcode = name;
      auto add = [&](std::string words) {
        for (std::size_t at = 0; at < words.size();) {
          std::size_t end = words.find(' ', at);
          end = end == std::string::npos ? words.size() : end;
          std::string word = words.substr(at, end - at);
          word = word.substr(0, word.find('|'));
          if (word != "*" && !word.empty())
            opcode += "." + (word.ends_with("?") ? word.substr(0, word.size() - 1) : word);
          at = end + 1;
        }
      };
      add(row.modifiers);
      add(row.types);
      EXPECT_EQ(emulator::traitsOf(opcode).kind == InstructionClass::Other, none.count(name) == 1)
          << opcode << ": give it a class in OpTraits.cpp";
    }
  EXPECT_GT(rows, 100u);
}

// A sample: so many blocks run, spread over both dimensions of the grid; the others leave no trace.
TEST(SampledCounters, SomeBlocksRun) {
  const std::string text = kernelText(".param .u64 marks", R"(
    ld.param.u64 %rd1, [marks];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %rd2, %r4, 4;
    add.u64 %rd3, %rd1, %rd2;
    mov.u32 %r5, 1;
    st.global.u32 [%rd3], %r5;
  )");
  Emulator gpu("sm_90a");
  constexpr unsigned columns = 64, rows = 32, wanted = 16;
  Buffer &marks = gpu.upload(std::vector<std::uint32_t>(columns * rows), "marks");
  ASSERT_TRUE(gpu.device().record({.counters = true, .sampledBlocks = wanted}).ok());
  const Launched r = gpu.run(text, {columns, rows}, {1}, {marks});
  ASSERT_TRUE(r.status.ok()) << r.text();
  const std::vector<LaunchCounters> counters = gpu.device().takeCounters();
  ASSERT_EQ(counters.size(), 1u);
  ASSERT_EQ(counters[0].blocks, std::vector<std::uint64_t>(wanted, 10));
  EXPECT_EQ(counters[0].total.instructions, wanted * 10u);
  // Each block has its mirror image in the sample, so that the means of coordinates are those of the grid.
  std::set<unsigned> met, rowsMet;
  const std::vector<std::uint32_t> after = gpu.download<std::uint32_t>(marks);
  for (unsigned i = 0; i < after.size(); ++i)
    if (after[i]) {
      met.insert(i);
      rowsMet.insert(i / columns);
    }
  EXPECT_EQ(met.size(), wanted);
  EXPECT_GE(rowsMet.size(), wanted - 4u);
  for (unsigned i : met)
    EXPECT_TRUE(met.count(columns * rows - 1 - i)) << i;
  // By opcode: each is there once.
  std::map<std::string, std::uint64_t> opcodes;
  for (const OpcodeCounts &o : counters[0].opcodes)
    opcodes[o.opcode] = o.counts.instructions;
  EXPECT_EQ(opcodes["mov.u32"], wanted * 4u);
  EXPECT_EQ(opcodes["st.global.u32"], wanted);
}

TEST(SampledCounters, NoMoreThanThereAreAndWholeClusters) {
  Emulator gpu("sm_90a");
  const std::string text = kernelText("", "mov.u32 %r1, %ctaid.x;");
  const auto sampled = [&](std::uint64_t blocks, std::uint64_t wanted, Dim3 cluster) {
    EXPECT_TRUE(gpu.device().record({.counters = true, .sampledBlocks = wanted}).ok());
    const Launched r = gpu.run(text, {static_cast<unsigned>(blocks)}, {32}, {}, 0, {}, cluster);
    EXPECT_TRUE(r.status.ok()) << r.text();
    const std::vector<LaunchCounters> counters = gpu.device().takeCounters();
    EXPECT_EQ(counters.size(), 1u);
    return counters.empty() ? 0 : counters[0].blocks.size();
  };
  EXPECT_EQ(sampled(8, 8, {}), 8u); // all of them
  EXPECT_EQ(sampled(8, 3, {}), 3u);
  EXPECT_EQ(sampled(64, 3, {2, 1, 1}), 4u);
}

// Where blocks see what others did, and in an order of a seed's, they all run.
TEST(SampledCounters, SomeLaunchesRunWhole) {
  const auto blocksRun = [](Emulator &gpu, const std::string &text) {
    Buffer &sum = gpu.upload(std::vector<float>(4), "sum");
    EXPECT_TRUE(gpu.device().record({.counters = true, .sampledBlocks = 4}).ok());
    const Launched r = gpu.run(text, {64}, {1}, {sum});
    EXPECT_TRUE(r.status.ok()) << r.text();
    const std::vector<LaunchCounters> counters = gpu.device().takeCounters();
    EXPECT_EQ(counters.size(), 1u);
    return std::pair(counters.empty() ? 0 : counters[0].total.instructions, gpu.download<float>(sum)[0]);
  };
  const std::string add = kernelText(".param .u64 sum", R"(
    ld.param.u64 %rd1, [sum];
    mov.f32 %f1, 0f3F800000;
    red.global.add.f32 [%rd1], %f1;
  )");
  Emulator inOrder("sm_90a"), seeded("sm_90a", {.schedule = Schedule::Random, .seed = 1});
  EXPECT_EQ(blocksRun(inOrder, add), std::pair(std::uint64_t(4 * 4), 4.0f));
  EXPECT_EQ(blocksRun(seeded, add), std::pair(std::uint64_t(64 * 4), 64.0f));
  // By the copy engine, too.
  const std::string bulk = kernelText(".param .u64 sum", R"(
    .shared .align 16 .b8 buffer[16];
    ld.param.u64 %rd1, [sum];
    mov.u32 %r1, buffer;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
  )");
  EXPECT_EQ(blocksRun(inOrder, bulk).first, 4 * 6u);
  const std::string ticket = kernelText(".param .u64 sum", R"(
    ld.param.u64 %rd1, [sum];
    mov.f32 %f1, 0f3F800000;
    atom.global.add.f32 %f2, [%rd1], %f1;
    add.f32 %f3, %f2, %f1;
  )");
  EXPECT_EQ(blocksRun(inOrder, ticket), std::pair(std::uint64_t(64 * 5), 64.0f));
  const std::string store = kernelText(".param .u64 sum", "mov.u32 %r1, %ctaid.x;");
  EXPECT_EQ(blocksRun(inOrder, store).first, 4 * 2u);
  EXPECT_EQ(blocksRun(seeded, store).first, 64 * 2u);
}
