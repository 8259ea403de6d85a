// Planted faults of bulk and tensor copies: S22, S25 to S28, S34, S35, S37 to S43.
#include "tests/emulator/SeededBugs.h"

using namespace kiln;
using namespace kiln::test;

namespace {

std::string waitFor(const std::string &address, const std::string &parity) {
  static unsigned loops = 0;
  const std::string label = "WAIT" + std::to_string(++loops);
  return label + ": mbarrier.try_wait.parity.shared::cta.b64 %p9, [" + address + "], " + parity + "; @!%p9 bra " +
         label + ";\n";
}

/// Thread 0 initialises the mbarrier, then copies 1024 bytes; `announce` before the copy, `wait` by everybody.
std::string loadAndRead(const std::string &announce, const std::string &wait) {
  return R"(
    setp.ne.u32 %p1, %r2, 0; @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1;
  READY: bar.sync 0; @%p1 bra ISSUED;
    .loc 1 10 1
    )" + announce +
         R"(
    .loc 1 20 1
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [bar];
  ISSUED: )" +
         wait + R"(
    .loc 1 30 1
    ld.shared.u32 %r20, [%r4]; st.global.u32 [%rd2], %r20;
)";
}
const std::string announce = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;";

/// Every thread fills its 16 bytes of the tile, thread 0 stores them; `before` and `after` the barrier between.
std::string fillAndStore(const std::string &before, const std::string &after, const std::string &end) {
  return R"(
    setp.ne.u32 %p1, %r2, 0; add.u32 %r20, %r2, 1000; mov.u32 %r21, tile; mad.lo.u32 %r21, %r2, 4, %r21;
    .loc 1 10 1
    st.shared.u32 [%r21], %r20;
    )" + before +
         " bar.sync 0; " + after + R"(
    @%p1 bra ISSUED;
    .loc 1 20 1
    cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 256;
    cp.async.bulk.commit_group;
    )" + end +
         "\n";
}
const std::string fence = "fence.proxy.async.shared::cta;";

/// 8 rows of 32 words at `address`.
TensorMapRecipe words(std::uint64_t address) {
  return denseTensor(TensorMapType::U32, address, {32, 8}, {32, 8});
}
TensorMapRecipe mapOfInput(std::uint64_t in, std::uint64_t) {
  return words(in);
}

/// Thread 0 loads the box to the address in %r22, everybody reads the first words.
std::string loadBox(const std::string &destination, const std::string &map = "%rd3") {
  return R"(
    setp.ne.u32 %p1, %r2, 0; @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1;
  READY: bar.sync 0; mov.u32 %r22, tile; add.u32 %r22, %r22, )" +
         destination + R"(; mov.u32 %r23, 0; @%p1 bra ISSUED;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
    .loc 1 20 1
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r22], [)" +
         map + ", {%r23, %r23}], [bar];\n  ISSUED: " + waitFor("bar", "0") + R"(
    mad.lo.u32 %r22, %r2, 4, %r22; ld.shared.u32 %r20, [%r22]; st.global.u32 [%rd2], %r20;
)";
}

} // namespace

TEST(SeededBulk, S22NobodyWaitsForTheLoad) {
  SeededBug b{.id = "async.missing_wait", .body = loadAndRead(announce, "@@")};
  b.right = waitFor("bar", "0");
  b.lines = {30, 20};
  b.always = true;
  b.result = [](std::uint32_t t) { return t * 4 + 1; };
  expectSeededBug(b);
  // A box of a tensor.
  SeededBug box{.id = "async.missing_wait"};
  box.body = loadBox("0");
  const std::size_t at = box.body.find("WAIT"), end = box.body.find('\n', at);
  box.right = box.body.substr(at, end - at);
  box.body.replace(at, end - at, "@@");
  box.body.replace(box.body.find("ld.shared.u32"), 0, "\n    .loc 1 30 1\n    ");
  box.map = mapOfInput;
  box.lines = {30, 20};
  box.always = true;
  box.result = [](std::uint32_t t) { return t + 1; };
  expectSeededBug(box);
}

TEST(SeededBulk, S25TooFewBytesAreExpected) {
  for (const char *id : {"async.missing_wait", "mbarrier.tx_mismatch"}) {
    SeededBug b{.id = id,
                .body = loadAndRead("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], @@;", waitFor("bar", "0"))};
    b.right = "1024";
    b.wrong = "512";
    b.lines = {std::string_view(id) == "async.missing_wait" ? 30u : 20u,
               std::string_view(id) == "async.missing_wait" ? 20u : 0u};
    b.always = true;
    b.result = [](std::uint32_t t) { return t * 4 + 1; };
    expectSeededBug(b);
  }
}

TEST(SeededBulk, S26TooManyBytesAreExpected) {
  SeededBug b{.id = "deadlock",
              .body = loadAndRead("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], @@;", waitFor("bar", "0"))};
  b.right = "1024";
  b.wrong = "2048";
  b.always = true;
  b.result = [](std::uint32_t t) { return t * 4 + 1; };
  expectSeededBug(b);
  const SeededRun bad = runSeeded(b, b.wrong, {});
  ASSERT_TRUE(bad.launched.has("deadlock"));
  EXPECT_NE(bad.launched.find("deadlock")->message.find("1024 bytes missing"), std::string::npos)
      << bad.launched.text();
}

TEST(SeededBulk, S27ArrivesBeforeItExpectsBytes) {
  const std::string expect = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1024;",
                    arrive = "mbarrier.arrive.shared::cta.b64 _, [bar];";
  SeededBug b{.id = "async.missing_wait", .body = loadAndRead("@@", waitFor("bar", "0"))};
  b.right = expect + arrive;
  b.wrong = arrive + expect;
  b.lines = {30, 20};
  b.result = [](std::uint32_t t) { return t * 4 + 1; };
  expectSeededBug(b);
}

/// One stage of 512 bytes; thread 0 fills it four times, each time after `empty`; warp 1 reads it, and does `given`
/// before it gives it back.
SeededBug ringOfOneStage(const std::string &empty, const std::string &given) {
  SeededBug b;
  b.body = R"(
    setp.ne.u32 %p1, %r2, 0; @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.init.shared::cta.b64 [bar+8], 32;
  READY: bar.sync 0; mov.u32 %r30, 0; mov.u32 %r40, 0; setp.eq.u32 %p2, %r3, 1; @%p2 bra CONSUMER; @%p1 bra OUT;
  PRODUCER: xor.b32 %r31, %r30, 1; and.b32 %r31, %r31, 1;
    )" + empty +
           R"(
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
    .loc 1 20 1
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 512, [bar];
    add.u64 %rd1, %rd1, 512; add.u32 %r30, %r30, 1; setp.lt.u32 %p3, %r30, 4; @%p3 bra PRODUCER; bra OUT;
  CONSUMER: and.b32 %r31, %r30, 1;
    )" + waitFor("bar", "%r31") +
           R"(
    .loc 1 30 1
    ld.shared.u32 %r20, [%r4+-512]; add.u32 %r40, %r40, %r20;
    )" + given +
           R"(
    mbarrier.arrive.shared::cta.b64 _, [bar+8];
    add.u32 %r30, %r30, 1; setp.lt.u32 %p3, %r30, 4; @%p3 bra CONSUMER; st.global.u32 [%rd2], %r40;
  OUT: )";
  b.result = [](std::uint32_t t) { return t < 32 ? 0xABABABAB : 4 * ((t - 32) * 4 + 1) + (0 + 1 + 2 + 3) * 128; };
  return b;
}
const std::string stageIsEmpty = waitFor("bar+8", "%r31");

TEST(SeededBulk, S28NoWaitForTheStageToBeEmpty) {
  SeededBug b = ringOfOneStage("@@", "");
  b.id = "race.shared";
  b.right = stageIsEmpty;
  expectSeededBug(b);
}

TEST(SeededBulk, S28NoProxyFenceBeforeTheStageIsGivenBack) {
  SeededBug b = ringOfOneStage(stageIsEmpty, "@@");
  b.id = "proxy.overwrite";
  b.right = fence;
  b.lines = {20, 30};
  b.always = b.strictProxy = true;
  expectSeededBug(b);
  // By the one who copies, after the wait.
  SeededBug late = ringOfOneStage(stageIsEmpty + "@@", "");
  late.id = b.id, late.right = b.right, late.lines = b.lines;
  late.always = late.strictProxy = true;
  expectSeededBug(late);
  // Compilers leave it out: only on request.
  b.strictProxy = false;
  EXPECT_TRUE(runSeeded(b, "", EmulatorOptions()).launched.clean());
}

/// A barrier of the block between reads and copy is no fence, whatever it lets the checks forget; nor is a store of
/// tile by the copy engine, which reads what the threads have read.
TEST(SeededBulk, S28ReadsBeforeABarrierAndAnotherCopy) {
  SeededBug b{.id = "proxy.overwrite"};
  b.body = R"(
    setp.ne.u32 %p1, %r2, 0; @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1;
  READY: mov.u32 %r21, 5; st.shared.u32 [%r4], %r21; fence.proxy.async.shared::cta; bar.sync 0;
    .loc 1 10 1
    ld.shared.u32 %r20, [%r4]; @@ bar.sync 0; @%p1 bra ISSUED;
    cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 256;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
    .loc 1 20 1
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [bar];
  ISSUED: )" +
           waitFor("bar", "0") + "bar.sync 0; st.global.u32 [%rd2], %r20;";
  b.right = fence;
  b.lines = {20, 10};
  b.always = b.strictProxy = true;
  b.result = [](std::uint32_t) { return 5; };
  expectSeededBug(b);
}

TEST(SeededBulk, S34NoProxyFenceBeforeTheStore) {
  SeededBug b{.id = "proxy.missing_fence", .body = fillAndStore("@@", "", "cp.async.bulk.wait_group 0; ISSUED:")};
  b.right = fence;
  b.lines = {20, 10};
  b.always = true;
  b.result = [](std::uint32_t t) { return 1000 + t; };
  expectSeededBug(b);
  // A reduction, and a box.
  SeededBug box = b;
  box.map = [](std::uint64_t, std::uint64_t out) {
    TensorMapRecipe r = words(out);
    r.dims[1] = r.box[1] = 2;
    return r;
  };
  const std::string plain = "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 256;";
  for (const char *store : {"cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd3, {0, 0}], [tile];",
                            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.bulk_group [%rd3, {0, 0}], [tile];",
                            "cp.reduce.async.bulk.global.shared::cta.bulk_group.and.b32 [%rd2], [tile], 256;"}) {
    box.body = b.body;
    box.body.replace(box.body.find(plain), plain.size(), store);
    const bool bits = std::string_view(store).find("and") != std::string_view::npos;
    box.result = [bits](std::uint32_t t) { return bits ? (1000 + t) & 0xABABABAB : 1000 + t; };
    expectSeededBug(box);
  }
}

TEST(SeededBulk, S35TheFenceIsInAnotherThread) {
  // After the barrier the issuing thread needs it; a fence of warp 1 says nothing to warp 0.
  SeededBug b{.id = "proxy.missing_fence", .body = fillAndStore("", "@@", "cp.async.bulk.wait_group 0; ISSUED:")};
  b.right = fence;
  b.wrong = "setp.ne.u32 %p2, %r3, 1; @%p2 bra SKIP; " + fence + " SKIP:";
  b.lines = {20, 10};
  b.always = true;
  b.result = [](std::uint32_t t) { return 1000 + t; };
  expectSeededBug(b);
}

TEST(SeededBulk, S36CopiedDataWithoutProxyFence) {
  SeededBug b{.id = "proxy.missing_fence"};
  b.body = R"(
    setp.ne.u32 %p1, %r2, 0;
    .loc 1 10 1
    cp.async.ca.shared.global [%r4], [%rd1], 16; cp.async.wait_all; @@ bar.sync 0; @%p1 bra ISSUED;
    .loc 1 20 1
    cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 256;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ISSUED: )";
  b.right = fence;
  b.lines = {20, 10};
  b.always = true;
  b.result = [](std::uint32_t t) { return t + 1; };
  expectSeededBug(b);
}

TEST(SeededBulk, S37SourceOverwrittenBeforeItWasRead) {
  SeededBug b{.id = "race.shared"};
  b.body = fillAndStore(fence, "",
                        "@@ ISSUED: bar.sync 0;\n    .loc 1 30 1\n    st.shared.u32 [%r21], %r2; "
                        "@!%p1 cp.async.bulk.wait_group 0;");
  b.right = "cp.async.bulk.wait_group.read 0;";
  b.lines = {30, 20};
  b.always = true;
  b.result = [](std::uint32_t t) { return 1000 + t; };
  expectSeededBug(b);
  // One of two groups is left.
  b.wrong = "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 2;";
  expectSeededBug(b);
}

TEST(SeededBulk, S38ReadBackAfterWaitForReadsOnly) {
  SeededBug b{.id = "async.missing_wait"};
  b.body = fillAndStore(fence, "",
                        "cp.async.bulk.wait_group@@ 0;\n    .loc 1 30 1\n    ld.global.u32 %r20, [%rd2+16]; "
                        "st.shared.u32 [tile+4096], %r20; cp.async.bulk.wait_group 0; ISSUED:");
  b.wrong = ".read";
  b.lines = {30, 20};
  b.always = true;
  b.result = [](std::uint32_t t) { return 1000 + t; };
  expectSeededBug(b);
}

TEST(SeededBulk, TheBlockEndsBeforeALoadThatNobodyWaitsForHasWritten) {
  SeededBug b{.id = "async.exit_pending", .body = loadAndRead(announce, "@@ mad.lo.u32 %r20, %r2, 4, 1;")};
  b.body.replace(b.body.find("ld.shared.u32 %r20, [%r4];"), 26, "");
  b.right = waitFor("bar", "0");
  b.lines = {20, 0};
  b.always = true;
  b.result = [](std::uint32_t t) { return t * 4 + 1; };
  expectSeededBug(b);
}

TEST(SeededBulk, S39TheBlockEndsBeforeItsStoreHasRead) {
  SeededBug b{.id = "async.exit_pending", .body = fillAndStore(fence, "", "@@ ISSUED:")};
  b.right = "cp.async.bulk.wait_group.read 0;";
  b.lines = {20, 0};
  b.always = true;
  b.result = [](std::uint32_t t) { return 1000 + t; };
  expectSeededBug(b);
  b.wrong = "cp.async.bulk.wait_group 1;";
  expectSeededBug(b);
  // A group that is never closed is never waited for.
  b.body.replace(b.body.find("cp.async.bulk.commit_group;"), 27, "");
  b.right = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;";
  b.wrong = "cp.async.bulk.wait_group 0;";
  expectSeededBug(b);
}

TEST(SeededBulk, S40DestinationOfABoxMisaligned) {
  SeededBug b{.id = "misaligned", .body = loadBox("@@")};
  b.map = mapOfInput;
  b.right = "128";
  b.wrong = "64";
  b.lines = {20, 0};
  b.always = true;
  b.result = [](std::uint32_t t) { return t + 1; };
  expectSeededBug(b);
}

TEST(SeededBulk, S41BoxLargerThanSharedMemory) {
  SeededBug b{.id = "oob.shared", .body = loadBox("@@")};
  b.map = mapOfInput;
  b.right = "7168";
  b.wrong = "7424";
  b.lines = {20, 0};
  b.always = true;
  b.result = [](std::uint32_t t) { return t + 1; };
  expectSeededBug(b);
}

TEST(SeededBulk, S42StoreStartsBeforeTheTensor) {
  SeededBug b{.id = "tma.coordinate", .body = fillAndStore(fence, "", "cp.async.bulk.wait_group 0; ISSUED:")};
  const std::string plain = "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 256;";
  b.body.replace(
      b.body.find(plain), plain.size(),
      "mov.b32 %r23, @@; cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd3, {0, %r23}], [tile];");
  b.map = [](std::uint64_t, std::uint64_t out) {
    TensorMapRecipe r = words(out);
    r.dims[1] = r.box[1] = 2;
    return r;
  };
  b.right = "1"; // what is past the end is dropped
  b.wrong = "-1";
  b.lines = {20, 0};
  b.always = true;
  b.result = [](std::uint32_t t) { return t < 32 ? 0xABABABAB : 1000 + t - 32; };
  expectSeededBug(b);
}

TEST(SeededBulk, S43BytesThatAreNoTensorMap) {
  SeededBug b{.id = "tma.descriptor", .body = "cvta.global.u64 %rd4, %rd1;" + loadBox("0", "@@")};
  b.map = mapOfInput;
  b.right = "%rd3";
  b.wrong = "%rd4";
  b.lines = {20, 0};
  b.always = true;
  b.result = [](std::uint32_t t) { return t + 1; };
  expectSeededBug(b);
}

namespace {
/// Whole warps store the tile: those below `warps`.  `before` stands before the store, `lanes` before the wait.
std::string storeByWarps(const std::string &warps, const std::string &before, const std::string &lanes,
                         const std::string &store) {
  return R"(
    add.u32 %r20, %r2, 1000; mov.u32 %r21, tile; mad.lo.u32 %r21, %r2, 4, %r21; st.shared.u32 [%r21], %r20;
    fence.proxy.async.shared::cta; bar.sync 0;
    ld.param.u64 %rd10, [out]; mov.u32 %r22, tile; mov.u32 %r23, 0; setp.eq.u32 %p2, %r6, 0; setp.eq.u32 %p3, %r6, 5;
    setp.ge.u32 %p1, %r3, )" +
         warps + "; @%p1 bra OUT; " + before + R"(
    .loc 1 20 1
    )" + store +
         " cp.async.bulk.commit_group;\n" + lanes + R"( cp.async.bulk.wait_group 0;
  OUT: )";
}
TensorMapRecipe mapOfOutput(std::uint64_t, std::uint64_t out) {
  return denseTensor(TensorMapType::U32, out, {32, 2}, {32, 2});
}
} // namespace

// All lanes of a warp issue the same store: no race among them.  Of two warps, or from other bytes, it is one; and each
// lane must wait for its own.
TEST(SeededBulk, AWarpStoresOnce) {
  const std::string forms[] = {
      "cp.async.bulk.global.shared::cta.bulk_group [%rd10], [%r22], 256;",
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd3, {%r23, %r23}], [%r22];"};
  for (const std::string &store : forms) {
    const auto bug = [&](const char *id, const std::string &body, const std::string &right, const std::string &wrong) {
      SeededBug b{.id = id, .body = body, .right = right, .wrong = wrong};
      b.result = [](std::uint32_t t) { return t + 1000; };
      b.map = mapOfOutput;
      b.lines = {20, 0};
      b.always = true;
      expectSeededBug(b);
    };
    bug("race.global", storeByWarps("@@", "", "", store), "1", "2");
    bug("race.global", storeByWarps("1", "@%p3 add.u32 %r22, %r22, @@;", "", store), "0", "128");
    bug("async.exit_pending", storeByWarps("1", "", "@@", store), "", "@%p2");
    bug("async.exit_pending", storeByWarps("1", "", "@@", store), "", "@%p3");
  }
}

// Reductions of a warp's lanes are as many as there are lanes.
TEST(SeededBulk, AWarpReducesOnceALane) {
  SeededBug b{.id = "async.exit_pending",
              .body = storeByWarps("1", "", "@@",
                                   "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd10], [%r22], 256;")};
  b.wrong = "@%p2";
  b.result = [](std::uint32_t t) { return 0xABABABABu + 32 * (t + 1000); };
  expectSeededBug(b);
}
