//===- AttentionBackwardLayoutsTest.cpp - Attention's gradients: every named layout, strides of 0, padding ---===//
//
// The numbers of a call are the same bit by bit wherever its tensors lie.  Gradients lie as what they are gradients of:
// of packed layouts dq, dk and dv are cut from one buffer, between each other's rows.
//
//===----------------------------------------------------------------------===//
#include "kernels/attention/AttentionLayouts.h"
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/support/TestTier.h"

namespace kiln::test {
namespace {

using namespace kernels;
using Extents = std::vector<std::int64_t>;

/// Of a layout's axis; t: the rows of all sequences.
std::int64_t extentOf(char axis, const Problem &p) {
  switch (axis) {
  case 'b':
    return p.batch;
  case 's':
    return p.queries;
  case 't':
    return p.batch * p.queries;
  case 'd':
    return p.dim;
  case 'f':
    return p.heads + 2 * p.keyHeads;
  case 'g':
    return p.keyHeads;
  case 'm':
    return p.heads / p.keyHeads + 2;
  default:
    return axis - '0'; // a packed axis
  }
}
/// `heads`: of the tensor.
Extents shapeOf(const std::string &axes, const Problem &p, std::int64_t heads) {
  Extents out;
  for (const char axis : axes)
    out.push_back(axis == 'h' ? heads : extentOf(axis, p));
  return out;
}

/// Where the elements of a view, [batch, row, head, column], lie from `base` on.
std::vector<std::size_t> placesOf(const Tensor &view, bool packed, const Problem &p, DeviceAddress base) {
  std::vector<std::size_t> out;
  const unsigned row = packed ? 0 : 1, head = row + 1;
  const bool split = view.rank == head + 3;
  const std::int64_t members = split ? view.shape[head + 1] : 1, heads = view.shape[head] * members;
  const auto first = static_cast<std::int64_t>(view.address - base) / dtypeBytes(view.dtype);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t s = 0; s < p.queries; ++s)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t c = 0; c < view.shape[view.rank - 1]; ++c) {
          std::int64_t at = first + c;
          at += packed ? (b * p.queries + s) * view.strides[0] : b * view.strides[0] + s * view.strides[1];
          at +=
              split ? h / members * view.strides[head] + h % members * view.strides[head + 1] : h * view.strides[head];
          out.push_back(static_cast<std::size_t>(at));
        }
  return out;
}

/// The tensors of a layout, and the views of q, k and v, or of their gradients.
struct Cut {
  std::vector<Operand> tensors;
  AttentionViews views;
};

class AttentionLayoutGradients : public AttentionBackward {
protected:
  Problem problemOf(bool oneHeadCount) const {
    Problem p = with(40, 40, GetParam() % 2 ? DType::F16 : DType::BF16);
    p.batch = 2, p.heads = oneHeadCount ? 3 : 4, p.keyHeads = oneHeadCount ? 3 : 2;
    p.dim = p.dimV = GetParam() == 1 ? 40 : 64, p.left = 25, p.right = 3;
    return p;
  }

  Cut cut(const AttentionLayout &layout, const Problem &p, const auto &make) {
    Cut out;
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
      out.tensors.push_back(make(i, shapeOf(layout.tensors[i], p, i == 0 ? p.heads : p.keyHeads)));
      tensors.push_back(out.tensors.back().tensor);
    }
    const auto views = attentionViews(layout, tensors, p.heads, p.keyHeads);
    EXPECT_TRUE(views.ok()) << views.status().toString();
    out.views = *views;
    return out;
  }
  /// Filled with q, k and v; NaN lies where none of them does.
  Cut filled(const AttentionLayout &layout, const Problem &p, const Data &d) {
    const Cut places =
        cut(layout, p, [&](std::size_t, const Extents &shape) { return allocateOutput(*on->device, p.type, shape); });
    std::vector<Numbers> values;
    for (const Operand &o : places.tensors)
      values.emplace_back(static_cast<std::size_t>(o.tensor.elements()), NAN);
    for (const auto &[view, packed, from] :
         {std::tuple(&places.views.q, layout.packedQ(), &d.q), std::tuple(&places.views.k, layout.packedK(), &d.k),
          std::tuple(&places.views.v, layout.packedK(), &d.v)}) {
      std::size_t of = 0; // the tensor that it is cut from
      for (std::size_t i = 0; i < values.size(); ++i)
        if (view->address >= places.tensors[i].tensor.address &&
            view->address < places.tensors[i].tensor.address + values[i].size() * 2)
          of = i;
      std::size_t n = 0;
      for (const std::size_t at : placesOf(*view, packed, p, places.tensors[of].tensor.address))
        values[of][at] = (*from)[n++];
      EXPECT_EQ(n, from->size());
    }
    return cut(layout, p,
               [&](std::size_t i, const Extents &shape) { return upload(*on->device, p.type, shape, values[i]); });
  }
  /// The elements of a view, in the order of a dense one.
  Numbers gathered(const std::vector<Operand> &tensors, const Tensor &view, bool packed, const Problem &p) {
    Numbers out;
    for (const Operand &o : tensors) {
      const Numbers all = download(o);
      if (view.address < o.tensor.address || view.address >= o.tensor.address + all.size() * 2)
        continue;
      for (const std::size_t at : placesOf(view, packed, p, o.tensor.address))
        out.push_back(all[at]);
    }
    return out;
  }
};

TEST_P(AttentionLayoutGradients, OfEveryNamedLayout) {
  unsigned number = 0;
  for (const bool oneHeadCount : {true, false}) {
    const Problem p = problemOf(oneHeadCount);
    const Data d = randomData(p, random);
    const LossGradients g = randomGradients(p, true, random);
    PreparedGradients dense = prepared(p, d, g);
    fixTiles(dense.arguments);
    std::optional<Gradients> want;
    // [B, H, S] as [H, T].
    const auto ofRows = [&](const Numbers &from, bool packed) {
      Numbers to;
      for (std::int64_t h = 0; packed && h < p.heads; ++h)
        for (std::int64_t b = 0; b < p.batch; ++b)
          for (std::int64_t i = 0; i < p.queries; ++i)
            to.push_back(from[static_cast<std::size_t>((b * p.heads + h) * p.queries + i)]);
      const Extents shape = packed ? Extents{p.heads, p.batch * p.queries} : Extents{p.batch, p.heads, p.queries};
      return upload(*on->device, DType::F32, shape, packed ? to : from);
    };
    for (const AttentionLayout &layout : attentionLayouts()) {
      if ((layout.name.find('3') != std::string::npos) != oneHeadCount || !chosen(number++, 6))
        continue;
      SCOPED_TRACE(deviceName() + " " + layout.name);
      if (!want) {
        want = runGradients(dense);
        compareGradients(p, d, g, dense, *want);
      }
      const bool packedQ = layout.packedQ(), packedK = layout.packedK();
      const Cut inputs = filled(layout, p, d), gradients = cut(layout, p, [&](std::size_t, const Extents &shape) {
                                                 return allocateOutput(*on->device, p.type, shape);
                                               });
      PreparedGradients call;
      AttentionBackwardArguments &a = call.arguments;
      a.of = dense.arguments.of;
      a.of.q = inputs.views.q, a.of.k = inputs.views.k, a.of.v = inputs.views.v;
      a.dq = gradients.views.q, a.dk = gradients.views.k, a.dv = gradients.views.v;
      // o and do in the layout's order of rows.
      const Extents shape = shapeOf(layout.output(), p, p.heads);
      const auto given = [&](Operand &to, const Numbers &values, Tensor &view) {
        const auto cutAt = [&](const Operand &whole) {
          const auto got = attentionOutputView(layout, whole.tensor, inputs.views);
          EXPECT_TRUE(got.ok()) << got.status().toString();
          return *got;
        };
        const Operand where = allocateOutput(*on->device, p.type, shape);
        Numbers moved(values.size());
        std::size_t n = 0;
        for (const std::size_t at : placesOf(cutAt(where), packedQ, p, where.tensor.address))
          moved[at] = values[n++];
        to = upload(*on->device, p.type, shape, moved);
        view = cutAt(to);
      };
      given(call.o, dense.o.values, a.of.o);
      given(call.dO, g.dO, a.dO);
      const Operand lse = ofRows(dense.lse.values, packedQ), dlse = ofRows(g.dlse, packedQ),
                    starts = upload(*on->device, DType::I32, {3}, {0, 40, 80});
      a.of.lse = lse.tensor, a.dlse = dlse.tensor;
      if (packedQ)
        a.of.cuQ = starts.tensor, a.of.maxQueries = p.queries;
      if (packedK)
        a.of.cuK = starts.tensor, a.maxKeys = p.keys;
      fixTiles(a);
      const Status s = AttentionBackwardOperation(*on->jit).run(a);
      ASSERT_TRUE(s.ok()) << s.toString();
      for (const Finding &f : on->device->takeFindings())
        ADD_FAILURE() << f.message;
      expectSame({gathered(gradients.tensors, a.dq, packedQ, p), gathered(gradients.tensors, a.dk, packedK, p),
                  gathered(gradients.tensors, a.dv, packedK, p)},
                 *want, !on->device->info().target->has(Capability::Wgmma));
    }
  }
}

/// Strides of 0 in k and v: one row for all sequences, heads or keys, each with gradients of its own.
TEST_P(AttentionLayoutGradients, StridesOfZeroInKAndV) {
  Problem p = problemOf(false);
  p.keys = 70;
  for (const unsigned zeros : {1u, 4u, 5u, 2u}) { // bit d: dimension d has the stride 0
    if (!chosen(zeros, 4))
      continue;
    SCOPED_TRACE(deviceName() + ", zeros " + std::to_string(zeros));
    const Extents whole = {p.batch, p.keys, p.keyHeads, p.dim};
    Extents few = whole;
    for (unsigned dim = 0; dim < 3; ++dim)
      if (zeros >> dim & 1)
        few[dim] = 1;
    Data d = randomData(p, random);
    const auto repeat = [&](Numbers &values) { // the first ones, everywhere
      const Numbers some(values.begin(), values.begin() + few[0] * few[1] * few[2] * few[3]);
      for (std::int64_t i = 0; i < std::ssize(values); ++i) {
        const std::int64_t c = i % whole[3], h = i / whole[3] % whole[2], j = i / whole[3] / whole[2] % whole[1],
                           b = i / whole[3] / whole[2] / whole[1];
        values[static_cast<std::size_t>(i)] =
            some[static_cast<std::size_t>(((b % few[0] * few[1] + j % few[1]) * few[2] + h % few[2]) * few[3] + c)];
      }
      return some;
    };
    const Numbers someK = repeat(d.k), someV = repeat(d.v);
    const LossGradients g = randomGradients(p, false, random);
    PreparedGradients dense = prepared(p, d, g);
    fixTiles(dense.arguments);
    const Gradients want = runGradients(dense);
    compareGradients(p, d, g, dense, want);
    PreparedGradients call = prepare(*on->device, p, d, g, dense.o.values, dense.lse.values);
    fixTiles(call.arguments);
    const Operand k = upload(*on->device, p.type, few, someK), v = upload(*on->device, p.type, few, someV);
    for (const auto &[to, from] : {std::pair(&call.arguments.of.k, &k), std::pair(&call.arguments.of.v, &v)}) {
      *to = from->tensor;
      for (unsigned dim = 0; dim < 3; ++dim)
        if (zeros >> dim & 1)
          to->shape[dim] = whole[dim], to->strides[dim] = 0;
    }
    expectSame(runGradients(call), want, /*deterministic=*/false);
  }
}

/// Rows after each sequence, elements after each head, that nobody reads or writes.
TEST_P(AttentionLayoutGradients, PaddedSequencesAndHeads) {
  if (!isOneOf({1, 2}))
    return;
  const Problem p = problemOf(false);
  const Data d = randomData(p, random);
  const LossGradients g = randomGradients(p, false, random);
  PreparedGradients dense = prepared(p, d, g);
  fixTiles(dense.arguments);
  const Gradients want = runGradients(dense);
  compareGradients(p, d, g, dense, want);
  PreparedGradients call = prepare(*on->device, p, d, g, dense.o.values, dense.lse.values);
  AttentionBackwardArguments &a = call.arguments;
  fixTiles(a);
  std::vector<Operand> inputs;
  std::int64_t rows = 3;
  const auto shape = [&](std::int64_t heads) { return Extents{p.batch, p.queries + rows++, heads, p.dim}; };
  for (const auto &[to, values, heads] :
       {std::tuple(&a.of.q, &d.q, p.heads), std::tuple(&a.of.k, &d.k, p.keyHeads),
        std::tuple(&a.of.v, &d.v, p.keyHeads), std::tuple(&a.of.o, &std::as_const(dense.o.values), p.heads),
        std::tuple(&a.dO, &g.dO, p.heads)}) {
    const Extents padded = shape(heads);
    const std::int64_t used = p.queries * heads * p.dim, room = padded[1] * heads * p.dim;
    Numbers all(static_cast<std::size_t>(p.batch * room), NAN);
    for (std::int64_t b = 0; b < p.batch; ++b)
      std::copy_n(values->begin() + b * used, used, all.begin() + b * room);
    *to = inputs.emplace_back(upload(*on->device, p.type, padded, all, {.pad = 8})).tensor;
    to->shape[1] = p.queries;
  }
  for (const auto &[to, output, heads] : {std::tuple(&a.dq, &call.dq, p.heads), std::tuple(&a.dk, &call.dk, p.keyHeads),
                                          std::tuple(&a.dv, &call.dv, p.keyHeads)}) {
    *output = allocateOutput(*on->device, p.type, shape(heads), {.pad = 8});
    output->tensor.shape[1] = p.queries;
    *to = output->tensor;
  }
  expectSame(runGradients(call), want, /*deterministic=*/false);
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionLayoutGradients, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
