//===- AttentionDecodeCallsTest.cpp - Attention over a cache: relations, limits, refusals ===//
#include "tests/kernels/AttentionDecodeHarness.h"
#include "tests/kernels/StreamGraph.h"
#include "tests/support/TestTier.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

/// A call with everything at once: pages, new rows that are rotated, splits, a mask.
DecodeProblem busyProblem() {
  DecodeProblem p = decoding(3, {0, 5, 61, 150});
  p.of.heads = 6, p.of.keyHeads = 2, p.of.causal = true, p.of.sink = true;
  p.newTokens = 3, p.rotary = 32, p.pageSize = 16, p.splits = 3;
  return p;
}

/// The same keys in one piece, in pages that a tile fits, in pages that it does not: the same bits.
TEST_P(AttentionDecode, PagesGiveTheBitsOfOnePiece) {
  DecodeProblem p = decoding(2, {0, 1, 100, 256});
  p.of.keys = 256, p.of.causal = true, p.splits = 2, p.tiling.blockN = 64;
  const DecodeData d = randomDecodeData(p, random);
  const Results one = run(prepare(*on->device, p, d, random));
  for (const std::int64_t page : {64, 16, 1}) {
    p.pageSize = page;
    const Results other = run(prepare(*on->device, p, d, random));
    EXPECT_EQ(one.o, other.o) << page;
    EXPECT_EQ(one.lse, other.lse) << page;
  }
}

TEST_P(AttentionDecode, SplitsGiveWhatOneProgramGives) {
  DecodeProblem p = decoding(4, {0, 1, 77, 300}, GetParam() % 2 ? DType::F16 : DType::BF16);
  p.of.left = 120, p.of.right = 0, p.of.sink = true;
  p.splits = 1;
  const DecodeData d = randomDecodeData(p, random);
  const Results one = run(prepare(*on->device, p, d, random));
  const double ulp = p.of.type == DType::BF16 ? 0x1p-7 : 0x1p-10;
  for (const std::int64_t splits : {2, 5, 256}) {
    p.splits = splits;
    const Results other = run(prepare(*on->device, p, d, random));
    for (std::size_t i = 0; i < one.o.size(); ++i)
      ASSERT_NEAR(one.o[i], other.o[i], ulp * std::max(0.25, std::abs(one.o[i]))) << splits << " " << i;
    for (std::size_t i = 0; i < one.lse.size(); ++i)
      ASSERT_NEAR(one.lse[i], other.lse[i], 1e-5 * std::max(1.0, std::abs(one.lse[i]))) << splits << " " << i;
  }
}

/// NaN in a key that counts reaches the rows of its sequence and key head, and no others.
TEST_P(AttentionDecode, NaNInAKeyReachesItsRows) {
  for (const std::int64_t splits : {1, 3}) {
    DecodeProblem p = decoding(1, {90, 200});
    p.of.heads = 4, p.of.keyHeads = 2, p.splits = splits;
    DecodeData d = randomDecodeData(p, random);
    d.keys[1].k[static_cast<std::size_t>((130 * 2 + 1) * p.of.dim + 3)] = NAN;
    const Results got = run(prepare(*on->device, p, d, random));
    for (std::size_t i = 0; i < got.lse.size(); ++i)
      EXPECT_EQ(std::isnan(got.lse[i]), i >= 6) << splits << " " << i; // the second sequence's heads 2 and 3
    for (std::size_t i = 0; i < got.o.size(); ++i)
      EXPECT_EQ(std::isnan(got.o[i]), i >= 6 * static_cast<std::size_t>(p.of.dimV)) << splits << " " << i;
  }
}

/// Heads before rows, before sequences; rows with a gap, also one that 16 bytes do not divide; nothing around o and lse
/// is written.
TEST_P(AttentionDecode, OrdersInMemory) {
  unsigned number = 0;
  for (const std::vector<unsigned> &order : {std::vector<unsigned>{0, 2, 1, 3}, {1, 0, 2, 3}, {2, 1, 0, 3}})
    for (const std::int64_t pad : {8, 1}) {
      if (!chosen(number++, 3))
        continue;
      DecodeProblem p = decoding(5, {40, 130});
      p.of.order = order, p.of.pad = pad, p.of.around = 8 * pad, p.of.causal = true;
      p.pageSize = number % 2 ? 16 : 0, p.splits = 1 + number % 2;
      both(p);
    }
}

/// q and o with the heads in two dimensions: grouped layouts.
TEST_P(AttentionDecode, SplitHeads) {
  DecodeProblem p = decoding(2, {70, 12});
  p.of.heads = 6, p.of.keyHeads = 2;
  const DecodeData d = randomDecodeData(p, random);
  PreparedDecode call = prepare(*on->device, p, d, random);
  const Results usual = run(call);
  for (Tensor *t : {&call.arguments.q, &call.arguments.o}) {
    t->rank = 5;
    t->shape = {2, 2, 2, 3, 64}, t->strides = {2 * 6 * 64, 6 * 64, 3 * 64, 64, 1};
  }
  const Results split = run(call);
  EXPECT_EQ(split.o, usual.o);
  EXPECT_EQ(split.lse, usual.lse);
}

TEST_P(AttentionDecode, SeedsOfEverySchedule) {
  underEverySchedule(busyProblem());
}

/// Of many rows, where warps that only copy fetch what a launch before may have written.
TEST_P(AttentionDecode, SeedsOfEveryScheduleWithCopyingWarps) {
  if (!isOneOf({2}))
    return;
  DecodeProblem p = decoding(16, {3, 300});
  p.of.heads = 8, p.of.causal = true, p.newTokens = 16, p.of.keys += 16, p.rotary = 32, p.splits = 2;
  underEverySchedule(p);
}

/// Lengths and batches compile nothing new; how many launches there are follows from sizes alone.
TEST_P(AttentionDecode, OneCompileForManyLengths) {
  std::unique_ptr<Opened> fresh = freshDevice(deviceName());
  ASSERT_TRUE(fresh);
  on = fresh.get();
  for (const std::vector<std::int64_t> &lengths : {std::vector<std::int64_t>{80, 3}, {0, 0, 200}, {333}}) {
    DecodeProblem p = decoding(1, lengths);
    p.splits = 1;
    const PreparedDecode call = prepare(*on->device, p, randomDecodeData(p, random), random);
    run(call);
    EXPECT_EQ(on->jit->counters().compiles, 1u);
    AttentionDecodeOperation operation(*on->jit);
    EXPECT_EQ(operation.workspaceBytes(call.arguments), 0u);
  }
}

/// Recorded once, a step of pages, new rows, angles and splits follows the lengths that are on the device when it is
/// replayed.
TEST_P(AttentionDecode, ReplaysReadLengthsOnTheDevice) {
  const DecodeProblem p = busyProblem();
  const DecodeData d = randomDecodeData(p, random);
  PreparedDecode call = prepare(*on->device, p, d, random);
  // Fewer of the same keys, and the same new ones after them.
  DecodeProblem less = p;
  less.lengths = {0, 2, 48, 75};
  DecodeData ofLess = d;
  for (std::size_t b = 0; b < less.lengths.size(); ++b)
    for (const auto &[values, width] : {std::pair(&ofLess.keys[b].k, p.of.dim), {&ofLess.keys[b].v, p.of.dimV}}) {
      const auto row = p.of.keyHeads * width;
      values->erase(values->begin() + less.lengths[b] * row, values->begin() + p.lengths[b] * row);
    }
  const auto table = std::ranges::find_if(
      call.tables, [&](const Operand &t) { return t.tensor.address == call.arguments.cacheSeqlens->address; });
  ASSERT_NE(table, call.tables.end());

  const AttentionDecodeOperation operation(*on->jit);
  ASSERT_TRUE(operation.prepare(call.arguments).ok());
  const std::size_t bytes = operation.workspaceBytes(call.arguments);
  ASSERT_GT(bytes, 0u);
  auto workspace = on->device->allocate(bytes);
  auto stream = on->device->createStream();
  ASSERT_TRUE(workspace.ok() && stream.ok());
  const auto compiles = on->jit->counters().compiles;
  StreamGraph graph(*on->device, **stream, [&](Stream &stream) {
    return operation.run(call.arguments,
                         {.stream = &stream, .workspace = (*workspace)->address(), .workspaceBytes = bytes});
  });
  ASSERT_TRUE(graph.status().ok()) << graph.status().toString();
  for (const auto &[problem, data] : {std::pair(&p, &d), {&less, &ofLess}}) {
    SCOPED_TRACE(problem->text());
    const std::vector<std::int32_t> lengths(problem->lengths.begin(), problem->lengths.end());
    const std::size_t at = table->tensor.address - table->buffer->address();
    ASSERT_TRUE(table->buffer->copyFromHost(at, std::as_bytes(std::span(lengths))).ok());
    compare(problem->of, define(*problem, *data), define(*problem, *data, /*roundSteps=*/true),
            runAndCheckCache(*problem, *data, call, [&] { return graph.replay(); }));
  }
  EXPECT_EQ(on->jit->counters().compiles, compiles);
}

/// The number of splits: enough for a GPU's multiprocessors, one where there are programs enough; never from lengths.
TEST_P(AttentionDecode, NumberOfSplits) {
  AttentionDecodeOperation operation(*on->jit);
  const auto splits = [&](std::int64_t batch, std::int64_t keys, std::int64_t most = 0) {
    const Operand buffer = allocateOutput(*on->device, DType::BF16, {1, 1, 8, 128});
    AttentionDecodeArguments a;
    a.q = a.o = a.kCache = a.vCache = buffer.tensor;
    for (Tensor *t : {&a.q, &a.kCache, &a.vCache})
      t->shape[0] = batch, t->strides[0] = 0;
    for (Tensor *t : {&a.kCache, &a.vCache})
      t->shape[1] = keys, t->strides[1] = 0;
    a.maxKeys = most;
    const auto out = operation.splitsOf(a);
    EXPECT_TRUE(out.ok());
    return out.ok() ? *out : 0;
  };
  EXPECT_EQ(splits(1, 64), 1);
  EXPECT_EQ(splits(100000, 8192), 1);
  EXPECT_GT(splits(1, 1 << 17), 1);
  EXPECT_LE(splits(1, 1 << 29), 256);
  EXPECT_EQ(splits(1, 1 << 17, 64), 1); // a bound of the keys
}

/// Nothing to do, and new rows without queries.
TEST_P(AttentionDecode, EmptyCalls) {
  DecodeProblem p = decoding(0, {20, 3});
  p.newTokens = 2;
  {
    const DecodeData d = randomDecodeData(p, random);
    PreparedDecode call = prepare(*on->device, p, d, random);
    call.arguments.lse.reset();
    runAndCheckCache(p, d, call);
  }
  DecodeProblem none = decoding(1, {0, 0});
  none.of.keys = 0, none.lengths.clear(), none.of.sink = GetParam() % 2;
  both(none);
  const PreparedDecode call =
      prepare(*on->device, decoding(1, {5}), randomDecodeData(decoding(1, {5}), random), random);
  AttentionDecodeArguments a = call.arguments;
  for (Tensor *t : {&a.q, &a.o, &*a.lse, &*a.cacheSeqlens})
    t->shape[0] = 0;
  const auto before = on->jit->counters().compiles;
  EXPECT_TRUE(AttentionDecodeOperation(*on->jit).run(a).ok());
  EXPECT_EQ(on->jit->counters().compiles, before);
}

/// Code for targets without asynchronous copies.
TEST_P(AttentionDecode, WithoutAsynchronousCopies) {
  if (GetParam() != 0 || !on->emulated())
    return;
  const std::unique_ptr<Opened> other = openWith("emulator:sm_75", {});
  ASSERT_TRUE(other);
  Opened *const before = std::exchange(on, other.get());
  DecodeProblem p = busyProblem();
  p.of.type = DType::F16;
  both(p);
  on = before;
}

/// A page that counts and does not exist: the emulator finds the access.
TEST_P(AttentionDecode, WrongPagesAreFound) {
  for (const std::int64_t page : {16, 64}) {
    if (!on->emulated())
      return;
    DecodeProblem p = decoding(1, {100});
    p.pageSize = page;
    PreparedDecode call = prepare(*on->device, p, randomDecodeData(p, random), random);
    const Operand table = upload(*on->device, DType::I32, {1, call.arguments.pageTable->shape[1]},
                                 Numbers(static_cast<std::size_t>(call.arguments.pageTable->shape[1]),
                                         static_cast<double>(call.arguments.kCache.shape[0])));
    call.arguments.pageTable = table.tensor;
    (void)AttentionDecodeOperation(*on->jit).run(call.arguments);
    const std::vector<Finding> found = on->device->takeFindings();
    ASSERT_FALSE(found.empty()) << page;
    EXPECT_NE(found.front().toString().find("CacheRows.h"), std::string::npos) << found.front().toString();
  }
}

/// Of a checked call an entry that cannot be stops the kernel, and the message names the table; right ones do not.
TEST_P(AttentionDecode, CheckedCallsNameTheTable) {
  if (!on->emulated())
    GTEST_SKIP() << "the emulator's findings";
  struct Wrong {
    std::optional<Tensor> AttentionDecodeArguments::*table;
    double entry;
    const char *said;
  };
  using A = AttentionDecodeArguments;
  for (const std::int64_t page : {0, 16, 64}) {
    DecodeProblem p = decoding(1, {20, 100});
    p.of.keys = 192, p.pageSize = page, p.newTokens = 2, p.leftPad = {3, 0};
    if (page == 64) // a tile of keys in a page, which rows of padding are not
      p.leftPad.clear();
    if (page == 0)
      p.batchIndex = {1, 0};
    PreparedDecode call = prepare(*on->device, p, randomDecodeData(p, random), random);
    call.arguments.checked = true;
    run(call);
    for (const auto &[table, entry, said] : {Wrong{&A::cacheSeqlens, -1, "cache_seqlens"},
                                             {&A::cacheSeqlens, 191, "cache_seqlens"},
                                             {&A::leftPadK, -2, "leftpad_k"},
                                             {&A::leftPadK, 193, "leftpad_k"},
                                             {&A::cacheBatchIdx, 3, "cache_batch_idx"},
                                             {&A::cacheBatchIdx, -1, "cache_batch_idx"},
                                             {&A::pageTable, 1 << 20, "page_table"},
                                             {&A::pageTable, -1, "page_table"}}) {
      AttentionDecodeArguments a = call.arguments;
      const std::optional<Tensor> &given = a.*table;
      if (!given)
        continue;
      const std::vector<std::int64_t> shape(given->shape.begin(), given->shape.begin() + given->rank);
      const Operand wrong =
          upload(*on->device, DType::I32, shape, Numbers(static_cast<std::size_t>(given->elements()), entry));
      a.*table = wrong.tensor;
      EXPECT_FALSE(AttentionDecodeOperation(*on->jit).run(a).ok()) << said << " " << entry;
      std::string all;
      for (const Finding &f : on->device->takeFindings())
        all += f.toString() + "\n";
      EXPECT_NE(all.find(std::string("an entry of ") + said), std::string::npos)
          << said << " " << entry << ", page " << page << ": " << all;
    }
  }
}

/// Wrong arguments: named, with a remedy, before anything is compiled.
TEST_P(AttentionDecode, WrongArgumentsAreRefused) {
  const DecodeProblem p = [] {
    DecodeProblem p = busyProblem();
    p.pageSize = 0;
    return p;
  }();
  const PreparedDecode call = prepare(*on->device, p, randomDecodeData(p, random), random);
  const auto tensor = [&](DType type, const std::vector<std::int64_t> &shape) {
    return allocateOutput(*on->device, type, shape);
  };
  const Operand four = tensor(DType::I32, {4}), five = tensor(DType::I32, {5}), pages = tensor(DType::I32, {4, 3}),
                eighth = tensor(DType::F8E4M3, {4, 3, 6, 64}), odd = tensor(DType::F32, {400, 20}),
                brief = tensor(DType::F32, {10, 16}), halves = tensor(DType::F16, {4, 160, 2, 64});
  const auto before = on->jit->counters().compiles;
  const auto refused = [&](auto change, std::initializer_list<std::string> parts) {
    AttentionDecodeArguments a = call.arguments;
    change(a);
    expectRefused(AttentionDecodeOperation(*on->jit).run(a), parts, *parts.begin());
  };
  using A = AttentionDecodeArguments;
  refused([&](A &a) { a.q = odd.tensor, a.q.rank = 4; }, {"'q'", "f32"});
  refused([&](A &a) { a.q = eighth.tensor; }, {"'k_cache'", "bf16", "e4m3"});
  refused([&](A &a) { a.descaleK = odd.tensor; }, {"k_descale", "bf16", "e4m3"});
  refused(
      [&](A &a) {
        for (Tensor *t : {&a.q, &a.kCache, &a.vCache, &*a.kNew, &*a.vNew})
          t->dtype = DType::F8E4M3;
      },
      {"rotary_cos", "e4m3", "rotate"});
  refused([&](A &a) { a.kCache = halves.tensor; }, {"'k_cache'", "f16", "bf16"});
  refused([&](A &a) { a.kCache.rank = 3; }, {"'k_cache'", "rank"});
  refused([&](A &a) { a.kCache.strides[3] = 2; }, {"'k_cache'", "stride"});
  refused([&](A &a) { a.vCache.shape[1] -= 1; }, {"'v_cache'", "k_cache"});
  refused([&](A &a) { a.kCache.shape[0] = a.vCache.shape[0] = 3; }, {"k_cache", "3 sequences", "4"});
  refused([&](A &a) { a.kCache.shape[2] = a.vCache.shape[2] = 4; }, {"6 heads", "4"});
  refused([&](A &a) { a.cacheSeqlens = five.tensor; }, {"'cache_seqlens'", "5", "4"});
  refused([&](A &a) { a.cacheSeqlens.reset(); }, {"k_new", "cache_seqlens"});
  refused([&](A &a) { a.leftPadK = five.tensor; }, {"'leftpad_k'", "5"});
  refused([&](A &a) { a.cacheBatchIdx = odd.tensor; }, {"'cache_batch_idx'", "f32"});
  refused([&](A &a) { a.pageTable = four.tensor; }, {"'page_table'", "rank"});
  refused([&](A &a) { a.pageTable = pages.tensor, a.cacheBatchIdx = four.tensor; }, {"cache_batch_idx", "page_table"});
  refused([&](A &a) { a.vNew.reset(); }, {"k_new", "without v_new"});
  refused([&](A &a) { a.kNew.reset(); }, {"v_new", "without k_new"});
  refused([&](A &a) { a.kNew->shape[3] = 32; }, {"'k_new'", "32"});
  refused([&](A &a) { a.kNew->shape[1] = a.vNew->shape[1] = 1000; }, {"k_new", "1000", "room"});
  refused([&](A &a) { a.vCache = a.kCache; }, {"k_cache", "v_cache", "same memory"});
  refused([&](A &a) { a.kCache.strides[1] = 0; }, {"'k_cache'", "stride"});
  refused([&](A &a) { a.rotarySin.reset(); }, {"rotary_cos", "rotary_sin"});
  refused([&](A &a) { a.rotaryCos = a.rotarySin = odd.tensor; }, {"rotary_cos", "20", "multiple of 16"});
  refused([&](A &a) { a.rotaryCos = a.rotarySin = brief.tensor; }, {"rotary_cos", "10 rows"});
  refused([&](A &a) { a.kNew.reset(), a.vNew.reset(); }, {"rotary_cos", "k_new"});
  refused([&](A &a) { a.rotaryCos.reset(), a.rotarySin.reset(), a.rotaryInterleaved = true; }, {"rotary_interleaved"});
  refused([&](A &a) { a.o = a.kCache; }, {"'o'"});
  // What is written lies apart.
  refused(
      [&](A &a) {
        a.kNew.reset(), a.vNew.reset(), a.rotaryCos.reset(), a.rotarySin.reset(), a.sink.reset(), a.lse.reset();
        a.o = a.kCache, a.q = halves.tensor, a.q.dtype = DType::BF16, a.q.shape = a.o.shape; // o and k_cache the same
      },
      {"'o'", "'k_cache'"});
  const auto inside = [](Tensor table, const Tensor &of) { return table.address = of.address, table; };
  refused([&](A &a) { a.cacheSeqlens = inside(*a.cacheSeqlens, a.o); }, {"'o'", "'cache_seqlens'"});
  refused([&](A &a) { a.leftPadK = inside(four.tensor, *a.lse); }, {"'lse'", "'leftpad_k'"});
  refused([&](A &a) { a.rotaryCos = inside(*a.rotaryCos, a.kCache); }, {"'k_cache'", "'rotary_cos'"});
  refused([&](A &a) { a.lse = inside(*a.lse, a.o); }, {"'o'", "'lse'"});
  refused([&](A &a) { a.o = inside(a.o, *a.vNew); }, {"'o'", "'v_new'"});
  refused([&](A &a) { a.windowLeft = -2; }, {"window_left", "-2"});
  refused([&](A &a) { a.scale = 0.0f; }, {"scale"});
  refused([&](A &a) { a.softcap = -1; }, {"softcap"});
  refused([&](A &a) { a.maxKeys = -1; }, {"max_keys", "-1"});
  refused([&](A &a) { a.splits = 257; }, {"splits = 257", "256"});
  refused([&](A &a) { a.splits = -1; }, {"splits = -1"});
  refused([&](A &a) { a.tiling.blockM = 48; }, {"block_m = 48", "power of two"});
  refused([&](A &a) { a.tiling.blockN = 256, a.tiling.stages = 8; }, {"stages = 8", "block_n = 256"});
  EXPECT_EQ(on->jit->counters().compiles, before);
}

} // namespace
} // namespace kiln::test
