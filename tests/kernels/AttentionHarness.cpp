#include "tests/kernels/AttentionHarness.h"

#include "kernels/attention/AttentionTiling.h"

#include "tests/support/TestTier.h"

#include <atomic>
#include <cmath>
#include <thread>

namespace kiln::test {

using namespace kernels;

void AttentionForward::SetUp() {
  on = openedDevice(deviceName());
  ASSERT_TRUE(on);
}

bool AttentionForward::chosen(unsigned number, unsigned stride) const {
  return isFullTier() || number % stride == GetParam() * 3 % stride;
}

bool AttentionForward::shared(unsigned number, unsigned stride) const {
  if (!on->emulated())
    return true;
  return isFullTier() ? number % deviceNames().size() == GetParam() : number % stride == GetParam() * 7 % stride;
}

bool AttentionForward::isOneOf(std::initializer_list<std::size_t> devices) const {
  return isFullTier() || !on->emulated() || std::find(devices.begin(), devices.end(), GetParam()) != devices.end();
}

PreparedCall prepare(Device &device, const Problem &p, const Data &d) {
  const auto shape = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim) {
    return p.packed() ? std::vector<std::int64_t>{rows, heads, dim}
                      : std::vector<std::int64_t>{p.batch, rows / p.batch, heads, dim};
  };
  MemoryOrder order;
  if (!p.packed())
    order.dims = p.order;
  MemoryOrder orderO = order, around;
  orderO.pad = p.pad;
  orderO.around = around.around = p.around;
  const std::vector<std::int64_t> shapeLse = p.packed() ? std::vector<std::int64_t>{p.heads, p.rowsQ()}
                                                        : std::vector<std::int64_t>{p.batch, p.heads, p.queries};
  PreparedCall out;
  out.q = upload(device, p.type, shape(p.rowsQ(), p.heads, p.dim), d.q, order);
  out.k = upload(device, p.type, shape(p.rowsK(), p.keyHeads, p.dim), d.k, order);
  out.v = upload(device, p.type, shape(p.rowsK(), p.keyHeads, p.dimV), d.v, order);
  out.o = allocateOutput(device, p.output(), shape(p.rowsQ(), p.heads, p.dimV), orderO);
  out.lse = allocateOutput(device, DType::F32, shapeLse, around);
  AttentionArguments &a = out.arguments;
  a.q = out.q.tensor, a.k = out.k.tensor, a.v = out.v.tensor, a.o = out.o.tensor;
  if (p.lse)
    a.lse = out.lse.tensor;
  if (p.scale > 0)
    a.scale = p.scale;
  a.causal = p.causal, a.windowLeft = p.left, a.windowRight = p.right, a.alignment = p.alignment;
  a.positionOffset = p.offset;
  a.softcap = p.softcap;
  a.dropoutP = p.dropoutP, a.seed = p.seed, a.offset = p.dropoutOffset;
  const auto given = [&](std::optional<Tensor> &to, DType type, const Numbers &values) {
    out.tables.push_back(upload(device, type, {std::ssize(values)}, values));
    to = out.tables.back().tensor;
  };
  if (p.sink)
    given(a.sink, DType::F32, d.sink);
  if (p.alibi)
    given(a.alibi, DType::F32, d.alibi);
  if (p.biasOf) {
    out.tables.push_back(upload(device, p.biasType, p.biasShape(), d.bias));
    a.bias = out.tables.back().tensor;
  }
  for (const auto &[to, values] :
       {std::pair(&a.descaleQ, &d.descaleQ), std::pair(&a.descaleK, &d.descaleK), std::pair(&a.descaleV, &d.descaleV)})
    if (p.descale) {
      out.tables.push_back(upload(device, DType::F32, {p.sequences(), p.keyHeads}, *values));
      *to = out.tables.back().tensor;
    }
  if (p.packed()) {
    const auto starts = [](const std::vector<std::int64_t> &lengths) {
      Numbers at = {0};
      for (const std::int64_t n : lengths)
        at.push_back(at.back() + static_cast<double>(n));
      return at;
    };
    given(a.cuQ, DType::I32, starts(p.lengthsQ));
    given(a.cuK, DType::I32, starts(p.lengthsK));
    a.maxQueries = *std::max_element(p.lengthsQ.begin(), p.lengthsQ.end()) + p.slack;
  }
  if (!p.usedQ.empty())
    given(a.usedQ, DType::I32, Numbers(p.usedQ.begin(), p.usedQ.end()));
  if (!p.usedK.empty())
    given(a.usedK, DType::I32, Numbers(p.usedK.begin(), p.usedK.end()));
  if (p.hooks) {
    a.functions = p.hooks->functions;
    for (const Hooks::Aux &aux : p.hooks->aux) {
      out.tables.push_back(upload(device, aux.type, aux.shape, aux.values));
      a.aux.push_back(out.tables.back().tensor);
    }
    if (p.hooks->blocks) {
      std::int64_t queries = p.queries, keys = p.keys;
      for (const auto &[most, lengths] : {std::pair(&queries, &p.lengthsQ), std::pair(&keys, &p.lengthsK)})
        for (const std::int64_t n : *lengths)
          *most = std::max(*most, n);
      const auto lists = BlockMaskOnHost::from(
          {p.sequences(), p.heads, queries, keys}, *p.hooks->blocks,
          [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) { return p.hasPair({b, h, i, j}); });
      EXPECT_TRUE(lists.ok()) << lists.status().toString();
      auto uploaded = lists->upload(device);
      EXPECT_TRUE(uploaded.ok()) << uploaded.status().toString();
      out.blocks = std::move(*uploaded);
      a.blockMask = out.blocks.view();
    }
  }
  // A third of the problems has the operation's own tiles, the others those that they would have if there were some or
  // many of their kind.
  const Heads heads = everyHeads[(p.queries + p.keys + p.dim / 8 + p.heads + p.causal + p.rowsQ()) % 3];
  if (heads != Heads::Few && !a.blockMask) // whose tiles divide the blocks
    a.tiling = tilingOf(device, a, heads);
  return out;
}

Tiling tilingOf(const Device &device, const AttentionArguments &a, Heads heads) {
  AttentionConfig c;
  const auto wide = [&](const Tensor &t) {
    const std::int64_t depth = a.q.dtype == DType::F8E4M3 ? 32 : 16;
    return static_cast<int>((t.shape[t.rank - 1] + depth - 1) / depth * depth);
  };
  c.hooks.functions = a.functions;
  c.dim = wide(a.q), c.dimV = wide(a.v), c.alibi = a.alibi.has_value(), c.softcap = a.softcap > 0;
  if (a.bias)
    c.bias = biasTypeOf(a.bias->dtype);
  const Target &target = *device.info().target;
  const std::int64_t queries = a.cuQ ? a.maxQueries : a.q.shape[1], processors = device.info().multiprocessors;
  const std::int64_t count =
      heads == Heads::Few    ? 1
      : heads == Heads::Some ? std::max<std::int64_t>(1, processors / std::max<std::int64_t>(1, (queries + 127) / 128))
                             : 1 << 20;
  std::int64_t keys = a.k.shape[a.cuK ? 0 : 1];
  if (heads == Heads::Many)
    keys = std::max<std::int64_t>(keys, 1 << 12);
  chooseTiles(c, {queries, keys, count, true, a.q.dtype}, target, target, processors);
  Tiling out;
  out.blockM = c.blockM, out.blockN = c.blockN, out.warps = c.warps;
  return out;
}

Results AttentionForward::run(const PreparedCall &call) {
  AttentionOperation operation(*on->jit);
  const Status s = operation.run(call.arguments);
  EXPECT_TRUE(s.ok()) << s.toString();
  for (const Finding &f : on->device->takeFindings())
    ADD_FAILURE() << f.message;
  return {download(call.o), download(call.lse)};
}

void AttentionForward::compare(const Problem &p, const Data &d, const Results &got) {
  compare(p, define(p, d), define(p, d, /*roundSteps=*/true), got);
}

void AttentionForward::compare(const Problem &p, const Results &want, const Results &base, const Results &got) {
  SCOPED_TRACE(deviceName() + ": " + p.text());
  ASSERT_EQ(got.o.size(), want.o.size());
  double most = 0, worst = 0, worstBase = 0, total = 0, totalBase = 0;
  std::size_t n = 0;
  for (std::size_t i = 0; i < got.o.size(); ++i) {
    if (std::isnan(want.o[i])) {
      ASSERT_TRUE(isUntouched(got.o[i], p.output())) << "row that is not used, element " << i;
      continue;
    }
    const double e = std::abs(got.o[i] - want.o[i]), b = std::abs(base.o[i] - want.o[i]);
    ASSERT_FALSE(std::isnan(e)) << "element " << i;
    most = std::max(most, std::abs(want.o[i])), worst = std::max(worst, e), worstBase = std::max(worstBase, b);
    total += e, totalBase += b, ++n;
  }
  const bool eighth = p.type == DType::F8E4M3;
  const double u = std::ldexp(1, p.output() == DType::BF16 ? -9 : -12), a = 2 * u * most + 1e-5,
               f = eighth        ? 4
                   : p.cap() > 0 ? 3
                                 : 2;
  EXPECT_LE(worst, f * worstBase + a);
  EXPECT_LE(total, (eighth ? 3 : 1.5) * totalBase + static_cast<double>(n) * a / 8);
  for (std::size_t i = 0; i < got.lse.size(); ++i) {
    if (!p.lse || std::isnan(want.lse[i]))
      ASSERT_TRUE(isUntouched(got.lse[i], DType::F32)) << "lse of a row that is not used, or not asked for, " << i;
    else if (want.lse[i] == -INFINITY)
      ASSERT_EQ(got.lse[i], want.lse[i]) << i;
    else
      ASSERT_NEAR(got.lse[i], want.lse[i],
                  (p.cap() > 0 ? 1e-3 * p.cap() : 1e-4) + 1e-5 * std::abs(want.lse[i]) + want.slack[i])
          << i;
  }
}

void AttentionForward::compare(const Problem &p, const Data &d) {
  compare(p, d, run(p, d));
}

void AttentionForward::compareProbe(const Problem &p, const Data &d, const Results &got) {
  compareProbe(p, define(p, d), got);
}

void AttentionForward::compareProbe(const Problem &p, const Results &want, const Results &got) {
  for (std::size_t i = 0; i < got.lse.size(); ++i) {
    if (!p.lse || std::isnan(want.lse[i]))
      ASSERT_TRUE(isUntouched(got.lse[i], DType::F32)) << i;
    else if (want.lse[i] == -INFINITY)
      ASSERT_EQ(got.lse[i], want.lse[i]) << i;
    else
      ASSERT_NEAR(got.lse[i], want.lse[i], 1e-5 + 1e-6 * std::abs(want.lse[i])) << i;
  }
  const double u = std::ldexp(1, p.output() == DType::BF16 ? -8 : -11);
  for (std::size_t i = 0; i < got.o.size(); ++i)
    if (std::isnan(want.o[i]))
      ASSERT_TRUE(isUntouched(got.o[i], p.output())) << i;
    else
      ASSERT_NEAR(got.o[i], want.o[i], want.o[i] == 0 ? 0 : u * want.o[i] * 1.01 + 1e-6) << i;
}

void AttentionForward::probe(const Problem &p, std::int64_t by, std::mt19937_64 &engine) {
  SCOPED_TRACE("probe " + std::to_string(by) + ", " + deviceName() + ": " + p.text());
  Data d = probeData(p, by, engine);
  poisonUnused(p, d);
  compareProbe(p, d, run(p, d));
}

void AttentionForward::both(const Problem &p, std::mt19937_64 &engine) {
  Data d = randomData(p, engine);
  poisonUnused(p, d);
  compare(p, d);
  probe(p, 0, engine);
  probe(p, p.dimV / 2, engine);
}

void AttentionForward::inParallel(std::size_t count, const std::function<void(std::size_t, std::mt19937_64 &)> &work) {
  std::atomic<std::size_t> next{0};
  const auto some = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      std::mt19937_64 engine(41 + i);
      work(i, engine);
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; !on->emulated() && i < std::thread::hardware_concurrency(); ++i)
    helpers.emplace_back(some);
  some();
  for (std::thread &t : helpers)
    t.join();
}

} // namespace kiln::test
