//===- AttentionLayoutTest.cpp - Attention forward: batches, and where tensors lie ===//
#include "tests/kernels/AttentionHarness.h"
#include "tests/support/TestTier.h"

namespace kiln::test {
namespace {

using namespace kernels;

TEST_P(AttentionForward, PackedSequencesWithEmptyOnes) {
  Problem p;
  p.lengthsQ = {0, 70, 1, 0, 33, 130, 0}, p.lengthsK = {5, 90, 1, 0, 20, 130, 0};
  both(p);
  p.causal = true;
  both(p);
  p.left = 20;
  p.usedQ = {0, 50, 1, 0, 33, 100, 0}, p.usedK = {0, 80, 1, 0, 0, 130, 0};
  both(p);
}

/// Rows that are not used hold NaN, and reach nothing.
TEST_P(AttentionForward, UsedLengthsOfADenseBatch) {
  Problem p = with(60, 90);
  p.batch = 3;
  p.usedQ = {60, 10, 0}, p.usedK = {90, 0, 40};
  both(p);
}

TEST_P(AttentionForward, OrdersOfDimensionsInMemory) {
  for (const auto &order : {std::vector<unsigned>{0, 2, 1, 3}, {1, 0, 2, 3}, {2, 0, 1, 3}}) {
    Problem p = with(50, 60);
    p.batch = 2, p.order = order;
    both(p);
  }
}

/// q, k, v cut from one buffer, and o and lse of their own.
class Interleaved {
public:
  Interleaved(Opened &on, const Problem &p, const Numbers &whole)
      : on(on), p(p), buffer(upload(*on.device, p.type, {std::ssize(whole)}, whole)) {}

  Tensor cut(const std::vector<std::int64_t> &shape, const std::vector<std::int64_t> &strides, std::int64_t first) {
    auto t = Tensor::strided(*on.device, *buffer.buffer, p.type, shape, strides,
                             static_cast<std::size_t>(first * dtypeBytes(p.type)));
    EXPECT_TRUE(t.ok()) << t.status().toString();
    return *t;
  }
  Results run(const Tensor &q, const Tensor &k, const Tensor &v, const std::vector<std::int64_t> &shapeOfO) {
    const Operand o = allocateOutput(*on.device, p.type, shapeOfO),
                  lse = allocateOutput(*on.device, DType::F32, {p.batch, p.heads, p.queries});
    AttentionArguments a;
    a.q = q, a.k = k, a.v = v, a.o = o.tensor, a.lse = lse.tensor;
    a.windowLeft = p.left, a.windowRight = p.right;
    AttentionOperation operation(*on.jit);
    const Status s = operation.run(a);
    EXPECT_TRUE(s.ok()) << s.toString();
    for (const Finding &f : on.device->takeFindings())
      ADD_FAILURE() << f.message;
    return {download(o), download(lse)};
  }

private:
  Opened &on;
  const Problem &p;
  const Operand buffer;
};

/// [s, b, h + 2 hk, d]: the heads of q, then those of k, then those of v.
Results runFlat(Opened &on, const Problem &p, const Data &d) {
  const std::int64_t S = p.queries, B = p.batch, H = p.heads, Hk = p.keyHeads, D = p.dim, all = H + 2 * Hk;
  Numbers whole;
  for (std::int64_t s = 0; s < S; ++s)
    for (std::int64_t b = 0; b < B; ++b)
      for (const auto &[from, heads] : {std::pair(&d.q, H), std::pair(&d.k, Hk), std::pair(&d.v, Hk)}) {
        const auto row = from->begin() + (b * S + s) * heads * D;
        whole.insert(whole.end(), row, row + heads * D);
      }
  Interleaved call(on, p, whole);
  const std::vector<std::int64_t> strides = {all * D, B * all * D, D, 1};
  return call.run(call.cut({B, S, H, D}, strides, 0), call.cut({B, S, Hk, D}, strides, H * D),
                  call.cut({B, S, Hk, D}, strides, (H + Hk) * D), {B, S, H, D});
}

/// [b, s, hk, g + 2, d]: the g heads of q that a head of k serves, that head, its v.  q has two head strides.
Results runGrouped(Opened &on, const Problem &p, const Data &d) {
  const std::int64_t S = p.queries, B = p.batch, H = p.heads, Hk = p.keyHeads, D = p.dim, g = H / Hk;
  Numbers whole;
  for (std::int64_t row = 0; row < B * S; ++row)
    for (std::int64_t h = 0; h < Hk; ++h) {
      const auto q = d.q.begin() + (row * H + h * g) * D, k = d.k.begin() + (row * Hk + h) * D,
                 v = d.v.begin() + (row * Hk + h) * D;
      whole.insert(whole.end(), q, q + g * D);
      whole.insert(whole.end(), k, k + D);
      whole.insert(whole.end(), v, v + D);
    }
  Interleaved call(on, p, whole);
  const std::int64_t head = (g + 2) * D, token = Hk * head;
  const std::vector<std::int64_t> shared = {S * token, token, head, 1};
  return call.run(call.cut({B, S, Hk, g, D}, {S * token, token, head, D, 1}, 0), call.cut({B, S, Hk, D}, shared, g * D),
                  call.cut({B, S, Hk, D}, shared, (g + 1) * D), {B, S, Hk, g, D});
}

TEST_P(AttentionForward, CutFromOneInterleavedBuffer) {
  Problem p = with(70, 70, DType::F16);
  p.batch = 2, p.heads = 4, p.keyHeads = 2, p.left = 30, p.right = 0;
  const Data d = randomData(p, random);
  const Results three = run(p, d), flat = runFlat(*on, p, d), grouped = runGrouped(*on, p, d);
  compare(p, d, three);
  EXPECT_EQ(flat.o, three.o); // the same numbers as from three tensors
  EXPECT_EQ(flat.lse, three.lse);
  EXPECT_EQ(grouped.o, three.o);
  EXPECT_EQ(grouped.lse, three.lse);
}

/// 16 heads of q, 1 of k, 1 of v, in one [s, b, 18, 64] buffer; window (-1, 0).  S = 2048 in the full tier and on GPUs.
TEST_P(AttentionForward, FlatBufferOf16And2HeadsWithAnOpenLeftWindow) {
  Problem p = with(0, 0, DType::F16);
  p.queries = p.keys = on->emulated() ? pick(160, GetParam() == 0 ? 2048 : 300) : 2048;
  p.heads = 16, p.keyHeads = 1, p.left = -1, p.right = 0;
  for (const std::int64_t batch : {1, 2}) {
    if (batch == 2 && p.queries == 2048 && on->emulated())
      continue; // minutes, for strides that the shorter ones have
    p.batch = batch;
    SCOPED_TRACE(deviceName() + ": " + p.text());
    const Data d = randomData(p, random);
    compare(p, d, runFlat(*on, p, d));
    if (batch == 1) {
      const Data probe = probeData(p, 0, random);
      compareProbe(p, probe, runFlat(*on, p, probe));
    }
  }
}

/// Sequences that end inside a tile, with rows between and after them, and elements between rows, that nobody may
/// write.
TEST_P(AttentionForward, PackedEpilogueWithPoisonBetweenSequences) {
  Problem p;
  p.lengthsQ = {40, 1, 0, 129, 64, 20, 7}, p.lengthsK = {40, 9, 3, 129, 70, 0, 30};
  p.usedQ = {33, 1, 0, 128, 0, 5, 3}, p.usedK = {40, 9, 3, 100, 70, 0, 30};
  p.heads = 3, p.keyHeads = 1, p.dimV = 40, p.pad = 8, p.around = 1024;
  p.causal = true;
  both(p); // every element of a row that is not used, and every byte around, must be poison still
  p.type = DType::F16;
  p.usedQ = {};
  both(p);
}
} // namespace
} // namespace kiln::test
