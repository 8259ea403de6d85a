//===- AttentionStridesTest.cpp - Attention forward: every tensor with strides of its own ---===//
//
// The numbers of a call are the same bit by bit wherever its tensors lie.  NaN lies between the rows.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionHarness.h"
#include "tests/support/TestTier.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;
using Shape4 = std::vector<std::int64_t>; // batch, rows, heads, columns

/// Where a tensor lies: an order of its dimensions, elements after each row of a head, before the first element, rows
/// after each sequence.
struct Lie {
  MemoryOrder order;
  std::int64_t rowsAfter = 0;
};
const std::vector<Lie> lies = {
    {{{1, 0, 2, 3}}},           // rows, batch, heads
    {{{0, 2, 1, 3}, 8}},        // batch, heads, rows; heads padded by 16 bytes
    {{{}, 0, 0}, 5},            // sequences padded
    {{{2, 0, 1, 3}, 0, 8}, 3},  // heads outermost
    {{{}, 0, 1}},               // no base of 4 bytes
    {{{1, 2, 0, 3}, 3}},        // odd strides
    {{{2, 1, 0, 3}, 24, 4}, 1}, // all of it
};

/// Takes the last `extra` rows of each sequence out of the shape.
void dropRows(Operand &made, std::int64_t extra) {
  made.tensor.shape[1] -= extra;
}

Operand uploadAt(Device &device, DType type, Shape4 shape, const Numbers &values, const Lie &lie) {
  Numbers padded;
  const std::int64_t row = shape[2] * shape[3], rows = shape[1];
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    padded.insert(padded.end(), values.begin() + b * rows * row, values.begin() + (b + 1) * rows * row);
    padded.insert(padded.end(), static_cast<std::size_t>(lie.rowsAfter * row), NAN);
  }
  shape[1] += lie.rowsAfter;
  Operand out = upload(device, type, shape, padded, lie.order);
  dropRows(out, lie.rowsAfter);
  return out;
}

TEST_P(AttentionForward, EveryTensorWithStridesOfItsOwn) {
  Problem p = with(70, 90, GetParam() % 2 ? DType::F16 : DType::BF16);
  p.batch = 2, p.heads = 4, p.dim = 40, p.dimV = 64, p.left = 50, p.right = 2;
  const Data d = randomData(p, random);
  Device &device = *on->device;
  // One choice of tiles: another one for rows that are not whole 16 bytes would sum in another order.
  PreparedCall dense = prepare(device, p, d);
  dense.arguments.tiling = tilingOf(device, dense.arguments, Heads::Some);
  const Results usual = run(dense);
  compare(p, d, usual);
  for (std::size_t i = 0; i < lies.size(); ++i) {
    if (!chosen(static_cast<unsigned>(i), 4))
      continue;
    SCOPED_TRACE(deviceName() + ", " + std::to_string(i));
    const auto at = [&](std::size_t turn) { return lies[(i + turn) % lies.size()]; };
    PreparedCall call = prepare(device, p, d);
    call.arguments.tiling = dense.arguments.tiling;
    call.q = uploadAt(device, p.type, {p.batch, p.queries, p.heads, p.dim}, d.q, at(0));
    call.k = uploadAt(device, p.type, {p.batch, p.keys, p.keyHeads, p.dim}, d.k, at(2));
    call.v = uploadAt(device, p.type, {p.batch, p.keys, p.keyHeads, p.dimV}, d.v, at(5));
    call.o = allocateOutput(device, p.type, {p.batch, p.queries + at(1).rowsAfter, p.heads, p.dimV}, at(1).order);
    dropRows(call.o, at(1).rowsAfter);
    call.arguments.q = call.q.tensor, call.arguments.k = call.k.tensor;
    call.arguments.v = call.v.tensor, call.arguments.o = call.o.tensor;
    const Results got = run(call); // and what lies between the rows of o is poison still
    ASSERT_EQ(got.o, usual.o);
    ASSERT_EQ(got.lse, usual.lse);
  }
}

/// Strides of 0 in k and v: one for every batch, for every head, for every key.
TEST_P(AttentionForward, StridesOfZeroInKAndV) {
  Problem p = with(40, 70, GetParam() % 2 ? DType::BF16 : DType::F16);
  p.batch = 2, p.heads = 4, p.causal = true;
  for (const unsigned zeros : {1u, 4u, 5u, 2u, 7u}) { // bit d: dimension d has the stride 0
    if (!chosen(zeros, 4))
      continue;
    SCOPED_TRACE(deviceName() + ", zeros " + std::to_string(zeros));
    Shape4 whole = {p.batch, p.keys, p.keyHeads, p.dim}, few = whole;
    for (unsigned dim = 0; dim < 3; ++dim)
      if (zeros >> dim & 1)
        few[dim] = 1;
    Data d = randomData(p, random);
    const auto repeat = [&](Numbers &values) { // the whole of the few, which stay
      const Numbers from = values;
      const Numbers some(from.begin(), from.begin() + few[0] * few[1] * few[2] * few[3]);
      for (std::int64_t i = 0; i < std::ssize(values); ++i) {
        const std::int64_t c = i % whole[3], h = i / whole[3] % whole[2], j = i / whole[3] / whole[2] % whole[1],
                           b = i / whole[3] / whole[2] / whole[1];
        const std::int64_t place = ((b % few[0] * few[1] + j % few[1]) * few[2] + h % few[2]) * few[3] + c;
        values[static_cast<std::size_t>(i)] = some[static_cast<std::size_t>(place)];
      }
      return some;
    };
    const Numbers someK = repeat(d.k), someV = repeat(d.v);
    const Results usual = run(p, d);
    compare(p, d, usual);
    PreparedCall call = prepare(*on->device, p, d);
    const auto spread = [&](Operand &to, const Numbers &some) {
      to = upload(*on->device, p.type, few, some);
      for (unsigned dim = 0; dim < 3; ++dim)
        if (zeros >> dim & 1)
          to.tensor.shape[dim] = whole[dim], to.tensor.strides[dim] = 0;
      return to.tensor;
    };
    call.arguments.k = spread(call.k, someK), call.arguments.v = spread(call.v, someV);
    const Results got = run(call);
    ASSERT_EQ(got.o, usual.o);
    ASSERT_EQ(got.lse, usual.lse);
  }
}

} // namespace
} // namespace kiln::test
