//===- AttentionBackwardCallsTest.cpp - Attention's gradients: strides, refusals, limits ---===//
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/kernels/SassInFlight.h"
#include "tests/support/TestTier.h"

#include "compiler/codegen/Assembler.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

/// The same bits wherever tensors lie; poison stays between the rows of outputs.
TEST_P(AttentionBackward, EveryTensorWithStridesOfItsOwn) {
  const bool deterministic = GetParam() % 2;
  Problem p = with(70, 90, GetParam() % 2 ? DType::F16 : DType::BF16);
  p.batch = 2, p.heads = 4, p.dim = 40, p.dimV = 64, p.left = 50, p.right = 2;
  Device &device = *on->device;
  const Data d = randomData(p, random);
  const LossGradients g = randomGradients(p, true, random);
  PreparedGradients usualCall = prepared(p, d, g);
  fixTiles(usualCall.arguments);
  usualCall.arguments.deterministic = deterministic;
  const Gradients usual = runGradients(usualCall);
  compareGradients(p, d, g, usualCall, usual);
  const std::vector<MemoryOrder> orders = {{{1, 0, 2, 3}},       // rows, batch, heads
                                           {{0, 2, 1, 3}, 8},    // batch, heads, rows; padded by 16 bytes
                                           {{2, 0, 1, 3}, 0, 8}, // heads outermost
                                           {{}, 0, 1},           // no base of 4 bytes
                                           {{1, 2, 0, 3}, 3},    // odd strides
                                           {{2, 1, 0, 3}, 24, 4}};
  for (std::size_t i = 0; i < orders.size(); ++i) {
    if (!chosen(static_cast<unsigned>(i), 6))
      continue;
    SCOPED_TRACE(deviceName() + ", " + std::to_string(i));
    unsigned turn = 0;
    const auto at = [&] { return orders[(i + turn++) % orders.size()]; };
    const auto shape = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim) {
      return std::vector<std::int64_t>{p.batch, rows, heads, dim};
    };
    PreparedGradients call = prepare(device, p, d, g, usualCall.o.values, usualCall.lse.values);
    AttentionBackwardArguments &a = call.arguments;
    fixTiles(a);
    a.deterministic = deterministic;
    const Operand q = upload(device, p.type, shape(p.queries, p.heads, p.dim), d.q, at()),
                  k = upload(device, p.type, shape(p.keys, p.keyHeads, p.dim), d.k, at()),
                  v = upload(device, p.type, shape(p.keys, p.keyHeads, p.dimV), d.v, at()),
                  o = upload(device, p.type, shape(p.queries, p.heads, p.dimV), usualCall.o.values, at()),
                  dO = upload(device, p.type, shape(p.queries, p.heads, p.dimV), g.dO, at());
    a.of.q = q.tensor, a.of.k = k.tensor, a.of.v = v.tensor, a.of.o = o.tensor, a.dO = dO.tensor;
    turn = 1;
    call.dq = allocateOutput(device, p.type, shape(p.queries, p.heads, p.dim), at());
    call.dk = allocateOutput(device, p.type, shape(p.keys, p.keyHeads, p.dim), at());
    call.dv = allocateOutput(device, p.type, shape(p.keys, p.keyHeads, p.dimV), at());
    a.dq = call.dq.tensor, a.dk = call.dk.tensor, a.dv = call.dv.tensor;
    // Heads in two dimensions, as grouped layouts have them.
    for (Tensor *t : {&a.of.q, &a.of.o, &a.dO, &a.dq}) {
      if (i % 2)
        break;
      const std::int64_t step = t->strides[2];
      t->shape = {p.batch, p.queries, p.keyHeads, p.heads / p.keyHeads, t->shape[3]};
      t->strides = {t->strides[0], t->strides[1], step * p.heads / p.keyHeads, step, 1};
      t->rank = 5;
    }
    expectSame(runGradients(call), usual, deterministic);
  }
}

/// A do that is one row, or one batch, for all: strides of 0.
TEST_P(AttentionBackward, StridesOfZeroInDo) {
  Problem p = with(40, 70, GetParam() % 2 ? DType::BF16 : DType::F16);
  p.batch = 2, p.heads = 4, p.causal = true;
  const Data d = randomData(p, random);
  for (const unsigned zeros : {7u, 2u, 1u, 4u}) { // bit d: dimension d has the stride 0
    if (!chosen(zeros, 4))
      continue;
    LossGradients g = randomGradients(p, false, random);
    std::vector<std::int64_t> few = {p.batch, p.queries, p.heads, p.dimV};
    for (unsigned dim = 0; dim < 3; ++dim)
      if (zeros >> dim & 1)
        few[dim] = 1;
    Numbers some(g.dO.begin(), g.dO.begin() + few[0] * few[1] * few[2] * few[3]);
    for (std::int64_t i = 0; i < std::ssize(g.dO); ++i) {
      const std::int64_t c = i % p.dimV, h = i / p.dimV % p.heads, r = i / p.dimV / p.heads % p.queries,
                         b = i / p.dimV / p.heads / p.queries;
      g.dO[static_cast<std::size_t>(i)] =
          some[static_cast<std::size_t>(((b % few[0] * few[1] + r % few[1]) * few[2] + h % few[2]) * few[3] + c)];
    }
    const PreparedGradients dense = prepared(p, d, g);
    PreparedGradients call = prepare(*on->device, p, d, g, dense.o.values, dense.lse.values);
    call.dO = upload(*on->device, p.type, few, some);
    call.arguments.dO = call.dO.tensor;
    for (unsigned dim = 0; dim < 3; ++dim)
      if (zeros >> dim & 1)
        call.arguments.dO.shape[dim] = dense.arguments.dO.shape[dim], call.arguments.dO.strides[dim] = 0;
    const Gradients got = runGradients(call);
    compareGradients(p, d, g, call, got);
    expectSame(got, runGradients(dense), /*deterministic=*/false);
  }
}

/// Packed q with dense k and v, and the other way round, give the bits of the dense call.
TEST_P(AttentionBackward, OneSidePacked) {
  Problem p = with(40, 70, GetParam() % 2 ? DType::BF16 : DType::F16);
  p.batch = 3, p.heads = 4, p.causal = true;
  const Data d = randomData(p, random);
  const LossGradients g = randomGradients(p, true, random);
  PreparedGradients dense = prepared(p, d, g);
  fixTiles(dense.arguments);
  const Gradients want = runGradients(dense);
  compareGradients(p, d, g, dense, want);
  const Operand cuQ = upload(*on->device, DType::I32, {4}, {0, 40, 80, 120}),
                cuK = upload(*on->device, DType::I32, {4}, {0, 70, 140, 210});
  const auto pack = [](Tensor &t) {
    t.rank = 3;
    t.shape = {t.shape[0] * t.shape[1], t.shape[2], t.shape[3]};
    t.strides = {t.strides[1], t.strides[2], t.strides[3]};
  };
  for (const bool ofQ : {true, false}) {
    SCOPED_TRACE(ofQ ? "q" : "k");
    PreparedGradients call = prepare(*on->device, p, d, g, dense.o.values, dense.lse.values);
    AttentionBackwardArguments &a = call.arguments;
    fixTiles(a);
    Operand lse, dlse;
    if (ofQ) {
      for (Tensor *t : {&a.of.q, &a.of.o, &a.dO, &a.dq})
        pack(*t);
      a.of.cuQ = cuQ.tensor, a.of.maxQueries = 45;
      const auto turned = [&](const Numbers &from) { // [B, H, Sq] to [H, T]
        Numbers to;
        for (std::int64_t h = 0; h < p.heads; ++h)
          for (std::int64_t b = 0; b < p.batch; ++b)
            for (std::int64_t i = 0; i < p.queries; ++i)
              to.push_back(from[static_cast<std::size_t>((b * p.heads + h) * p.queries + i)]);
        return upload(*on->device, DType::F32, {p.heads, p.batch * p.queries}, to);
      };
      lse = turned(call.lse.values), dlse = turned(call.dlse.values);
      a.of.lse = lse.tensor, a.dlse = dlse.tensor;
    } else {
      for (Tensor *t : {&a.of.k, &a.of.v, &a.dk, &a.dv})
        pack(*t);
      a.of.cuK = cuK.tensor, a.maxKeys = 200;
    }
    expectSame(runGradients(call), want, /*deterministic=*/false);
  }
}

/// Wrong arguments: named, with a remedy, before anything is compiled.
TEST_P(AttentionBackward, WrongArgumentsAreRefused) {
  std::vector<Operand> made;
  MemoryOrder apart;
  apart.around = 1 << 13; // what is given another's address reaches no third tensor
  const auto tensor = [&](DType type, const std::vector<std::int64_t> &shape) {
    made.push_back(allocateOutput(*on->device, type, shape, apart));
    return made.back().tensor;
  };
  const std::vector<std::int64_t> ofQ = {2, 16, 4, 64}, ofK = {2, 16, 2, 64}, ofLse = {2, 4, 16};
  AttentionBackwardArguments good;
  good.of.q = tensor(DType::F16, ofQ), good.of.k = tensor(DType::F16, ofK), good.of.v = tensor(DType::F16, ofK);
  good.of.o = tensor(DType::F16, ofQ), good.of.lse = tensor(DType::F32, ofLse), good.dO = tensor(DType::F16, ofQ);
  good.of.sink = tensor(DType::F32, {4});
  good.dq = tensor(DType::F16, ofQ), good.dk = tensor(DType::F16, ofK), good.dv = tensor(DType::F16, ofK);
  good.dlse = tensor(DType::F32, ofLse), good.dsink = tensor(DType::F32, {4});
  const Tensor other = tensor(DType::BF16, ofQ), odd = tensor(DType::F16, {2, 16, 3, 64}),
               eighth = tensor(DType::F8E4M3, ofQ), offsets = tensor(DType::I32, {3});
  const AttentionBackwardOperation operation(*on->jit);
  ASSERT_TRUE(operation.check(good).ok()) << operation.check(good).toString();
  const auto before = on->jit->counters().compiles;
  using A = AttentionBackwardArguments;
  const auto refused = [&](auto change, std::initializer_list<std::string> parts) {
    A a = good;
    change(a);
    expectRefused(operation.run(a), parts, *parts.begin());
  };
  refused([&](A &a) { a.of.lse.reset(); }, {"attention_backward: argument 'lse' is missing"});
  refused([&](A &a) { a.of.sink.reset(); }, {"attention_backward: argument 'dsink' is given"});
  refused([&](A &a) { a.of.q = eighth; }, {"'q'", "e4m3", "f16, bf16"});
  refused([&](A &a) { a.of.k = odd; }, {"attention_backward: q has 4 heads", "3"});
  refused([&](A &a) { a.of.windowLeft = -2; }, {"attention_backward: window_left = -2"});
  refused([&](A &a) { a.of.softcap = -1; }, {"attention_backward: softcap"});
  refused([&](A &a) { a.of.tiling.blockM = 64; }, {"tiling"});
  refused([&](A &a) { a.of.o.shape[3] = 56; }, {"'o'", "56"});
  refused([&](A &a) { a.of.lse->shape[2] = 15; }, {"'lse'", "15"});
  refused([&](A &a) { a.dO = other; }, {"'do'", "bf16"});
  refused([&](A &a) { a.dO = a.of.k; }, {"'do'"});
  refused([&](A &a) { a.dO.strides[3] = 2; }, {"'do'", "stride"});
  refused([&](A &a) { a.dO.device = nullptr; }, {"'do'"});
  refused([&](A &a) { a.dlse->dtype = DType::I32; }, {"'dlse'"});
  refused([&](A &a) { a.dlse->shape[1] = 3; }, {"'dlse'"});
  for (const auto &[name, member] : {std::pair("'dq'", &A::dq), std::pair("'dk'", &A::dk), std::pair("'dv'", &A::dv)}) {
    refused([&](A &a) { (a.*member).dtype = DType::BF16; }, {name, "bf16"});
    refused([&](A &a) { (a.*member).shape[1] = 15; }, {name, "15"});
    refused([&](A &a) { (a.*member).strides[3] = 2; }, {name, "stride"});
    refused([&](A &a) { (a.*member).strides[1] = 0; }, {name, "stride"});
    refused([&](A &a) { (a.*member).address += 1; }, {name});
    refused([&](A &a) { (a.*member).device = nullptr; }, {name});
    for (const auto &[of, input] :
         {std::pair("'q'", &good.of.q), std::pair("'k'", &good.of.k), std::pair("'v'", &good.of.v),
          std::pair("'o'", &good.of.o), std::pair("'do'", &good.dO), std::pair("'lse'", &*good.of.lse)})
      refused([&, at = input->address](A &a) { (a.*member).address = at; }, {name, of});
  }
  refused([&](A &a) { a.dk.address = a.dq.address + 64; }, {"'dk'", "'dq'"});
  refused([&](A &a) { a.dv.address = a.dk.address; }, {"'dv'", "'dk'"});
  refused([&](A &a) { a.dsink->address = a.dv.address; }, {"'dsink'", "'dv'"});
  refused([&](A &a) { a.dsink->address = a.of.sink->address; }, {"'dsink'", "'sink'"});
  refused([&](A &a) { a.dsink->shape[0] = 3; }, {"'dsink'"});
  refused([&](A &a) { a.ofKeys.blockN = 48; }, {"keys_block_n = 48", "power of two"});
  refused([&](A &a) { a.ofQueries.warps = 3; }, {"queries_warps = 3"});
  refused([&](A &a) { a.ofQueries.blockN = 256, a.ofQueries.stages = 8; }, {"stages = 8", "queries_block_n = 256"});
  refused(
      [&](A &a) {
        for (Tensor *t : {&a.of.k, &a.of.v, &a.dk, &a.dv}) {
          t->rank = 3;
          t->shape = {32, 2, 64}, t->strides = {128, 64, 1};
        }
        a.of.cuK = offsets;
      },
      {"attention_backward: max_keys = 0"});
  EXPECT_EQ(on->jit->counters().compiles, before);
}

/// The farthest position and the widest windows: sums of rows, shifts and windows stay in 32 bits.
TEST_P(AttentionBackward, RowsAndWindowsAtTheirLimits) {
  constexpr std::int64_t most = std::int64_t(1) << 29, D = 64;
  Problem one = with(3, 1);
  one.heads = one.keyHeads = 1, one.offset = 1 << 28, one.right = 1 << 30;
  one.left = (1 << 28) + 1; // hides the key from the third row
  all(one);
  one.left = 1 << 30;
  all(one);
  const Data d = randomData(one, random);
  const LossGradients g = randomGradients(one, false, random);
  PreparedGradients call = prepared(one, d, g);
  for (Tensor *t : {&call.arguments.of.k, &call.arguments.of.v, &call.arguments.dk, &call.arguments.dv})
    t->shape[1] = most + 1, t->strides[1] = D;
  EXPECT_NE(AttentionBackwardOperation(*on->jit).check(call.arguments).message().find("the limit is 2^29"),
            std::string::npos);
}

/// Types x head dims x every target of the table: compiled and run there, and compared with float64.
TEST(AttentionBackwardTargets, EveryTargetComputesEveryWidth) {
  if (!openedDevice(deviceNames()[0])->emulated())
    GTEST_SKIP() << "every target's code runs on the emulator of that target";
  struct OnTarget : AttentionBackward {
    void TestBody() override {}
    using AttentionBackward::on, AttentionBackward::compareRandom;
  };
  const std::vector<std::pair<std::int64_t, std::int64_t>> dims = {
      {64, 64}, {128, 128}, {96, 96}, {192, 192}, {256, 256}, {8, 256}, {40, 24}, {208, 208}, {176, 160}, {240, 240}};
  std::size_t number = 0, ran = 0;
  for (const Target &target : allTargets())
    for (const auto &[dim, dimV] : dims)
      for (const DType type : {DType::F16, DType::BF16}) {
        ++number;
        // Where the type has no matrix instructions there are thousands of multiply-adds.
        const bool slow = type == DType::BF16 && !target.has(Capability::Bf16Mma);
        // Columns for which Hopper's tiles are wider.
        const bool always =
            (dim == 208 || dim == 240) && type == DType::BF16 && target.name == std::string_view("sm_90a");
        if (!isFullTier() && !always && (slow || number % 45 != 3))
          continue;
        if (slow && (dim != 64 || dimV != 64))
          continue;
        const std::unique_ptr<Opened> opened = openWith("emulator:" + std::string(target.name), {});
        ASSERT_TRUE(opened);
        OnTarget test;
        test.on = opened.get();
        Problem p = with(40, 70, type);
        p.dim = dim, p.dimV = dimV, p.causal = true;
        p.heads = 2, p.keyHeads = 1;
        if (number % 3 == 0)
          p.softcap = 15, p.scale = 0.125f, p.alibi = true, p.left = 30;
        test.compareRandom(p, number % 2);
        ++ran;
      }
  EXPECT_GT(ran, 0u);
}

//===----------------------------------------------------------------------===//
// Registers and spills
//===----------------------------------------------------------------------===//

/// The kernel's name in its PTX.
std::string entryOf(const std::string &text) {
  const std::string_view before = ".visible .entry ";
  const std::size_t at = text.find(before) + before.size();
  return text.substr(at, text.find('(', at) - at);
}

/// The tiles that a causal call gets at 64, 128 and 256 columns: what they spill, printed; and nothing touches what
/// products in flight read and write.
class AttentionBackwardSpills : public testing::TestWithParam<const char *> {};

TEST_P(AttentionBackwardSpills, OfTheUsualHeads) {
  const auto assembler = findAssembler();
  if (!assembler.ok())
    GTEST_SKIP() << assembler.status().toString();
  for (const std::int64_t dim : {128, 64, 256}) {
    if (!isFullTier() && dim != 128)
      continue;
    std::vector<std::string> texts;
    const std::unique_ptr<Opened> on = openWith(std::string("emulator:") + GetParam(), {{}, {}, {}, &texts});
    ASSERT_TRUE(on);
    Problem p = with(64, 64);
    p.dim = p.dimV = dim, p.causal = true;
    std::mt19937_64 random(1);
    const Data d = randomData(p, random);
    const Results forward = define(p, d);
    const PreparedGradients call =
        prepare(*on->device, p, d, randomGradients(p, false, random), forward.o, forward.lse);
    const Status s = AttentionBackwardOperation(*on->jit).run(call.arguments);
    ASSERT_TRUE(s.ok()) << s.toString();
    ASSERT_EQ(texts.size(), 3u);
    for (const std::string &text : texts) {
      const Result<AssembledModule> made = (*assembler)->assemble(text, GetParam());
      ASSERT_TRUE(made.ok()) << made.status().toString();
      EXPECT_TRUE(made->warnings.empty()) << made->warnings.front();
      const std::string name = entryOf(text);
      const KernelResources *k = made->resources.find(name);
      ASSERT_TRUE(k && k->spillStoreBytes && k->spillLoadBytes) << "the report says nothing of spills";
      std::printf("  %-8s D%-4lld%-28s%4u registers, %5u bytes spilled\n", GetParam(), static_cast<long long>(dim),
                  name.c_str(), k->registers, *k->spillStoreBytes);
      // Sums of dk and dv take half of the registers.  Tiles that spill nothing have half the rows (128 columns: slower
      // by 1.2), or one warpgroup's products less in flight.
      const bool warpgroups = text.find("wgmma.mma_async") != std::string::npos;
      if (warpgroups && dim <= 128) { // one pass: the copy engine adds to dq, and no thread does
        EXPECT_NE(text.find("cp.reduce.async.bulk.global"), std::string::npos) << name << " " << dim;
        EXPECT_EQ(text.find("red.relaxed.gpu.global"), std::string::npos) << name << " " << dim;
      }
      // By mma.sync one pass that spills a little is faster by a quarter than two that do not (128 columns, an H200).
      const bool spills = warpgroups || text.find("red.relaxed.gpu.global") != std::string::npos;
      EXPECT_LE(*k->spillStoreBytes + *k->spillLoadBytes, !spills      ? 0u
                                                          : dim == 256 ? 520u
                                                                       : 160u)
          << name << " " << dim;
      const auto code = sassOf(made->cubin, name);
      const InFlightReport report = touchedInFlight(code);
      EXPECT_EQ(report.products > 0, warpgroups) << name << " " << dim;
      for (const TouchedInFlight &t : report.touched)
        ADD_FAILURE() << name << " " << dim << ": " << t.text(code);
      if (warpgroups) {
        EXPECT_FALSE(touchedInFlight(withTouchInFlight(code, true)).touched.empty()) << name << " " << dim;
        if (report.fromRegisters)
          EXPECT_FALSE(touchedInFlight(withTouchInFlight(code, false)).touched.empty()) << name << " " << dim;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, AttentionBackwardSpills, testing::Values("sm_80", "sm_90a"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace kiln::test
