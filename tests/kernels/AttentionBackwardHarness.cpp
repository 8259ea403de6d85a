#include "tests/kernels/AttentionBackwardHarness.h"

#include "tests/kernels/PoisonedWorkspace.h"
#include "tests/support/TestTier.h"

#include <cmath>

namespace kiln::test {

using namespace kernels;

PreparedGradients prepare(Device &device, const Problem &p, const Data &d, const LossGradients &g, const Numbers &o,
                          const Numbers &lse) {
  PreparedGradients out;
  out.forward = prepare(device, p, d);
  AttentionBackwardArguments &a = out.arguments;
  a.of = out.forward.arguments;
  a.of.tiling = {};
  a.deterministic = p.deterministic;
  const auto shape = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim) {
    return p.packed() ? std::vector<std::int64_t>{rows, heads, dim}
                      : std::vector<std::int64_t>{p.batch, rows / p.batch, heads, dim};
  };
  const std::vector<std::int64_t> shapeLse = p.packed() ? std::vector<std::int64_t>{p.heads, p.rowsQ()}
                                                        : std::vector<std::int64_t>{p.batch, p.heads, p.queries};
  MemoryOrder order;
  if (!p.packed())
    order.dims = p.order;
  MemoryOrder orderOut = order;
  orderOut.pad = p.pad, orderOut.around = p.around;
  out.o = upload(device, p.type, shape(p.rowsQ(), p.heads, p.dimV), o, order);
  out.lse = upload(device, DType::F32, shapeLse, lse);
  out.dO = upload(device, p.type, shape(p.rowsQ(), p.heads, p.dimV), g.dO, order);
  out.dq = allocateOutput(device, p.type, shape(p.rowsQ(), p.heads, p.dim), orderOut);
  out.dk = allocateOutput(device, p.type, shape(p.rowsK(), p.keyHeads, p.dim), orderOut);
  out.dv = allocateOutput(device, p.type, shape(p.rowsK(), p.keyHeads, p.dimV), orderOut);
  a.of.o = out.o.tensor, a.of.lse = out.lse.tensor, a.dO = out.dO.tensor;
  a.dq = out.dq.tensor, a.dk = out.dk.tensor, a.dv = out.dv.tensor;
  if (!g.dlse.empty()) {
    out.dlse = upload(device, DType::F32, shapeLse, g.dlse);
    a.dlse = out.dlse.tensor;
  }
  if (p.sink) {
    out.dsink = allocateOutput(device, DType::F32, {p.heads});
    a.dsink = out.dsink.tensor;
  }
  if (p.biasOf && !a.of.blockMask) {
    out.dbias = allocateOutput(device, p.biasType, p.biasShape());
    a.dbias = out.dbias.tensor;
  }
  if (p.packed())
    a.maxKeys = *std::max_element(p.lengthsK.begin(), p.lengthsK.end()) + p.slack;
  return out;
}

PreparedGradients AttentionBackward::prepared(const Problem &p, const Data &d, const LossGradients &g) {
  Results forward = p.cap() > 0 ? run(p, d) : define(p, d);
  // Rows that are not used hold NaN.
  const Results shape = define(p, d);
  for (std::size_t i = 0; i < forward.o.size(); ++i)
    if (std::isnan(shape.o[i]))
      forward.o[i] = NAN;
  for (std::size_t i = 0; i < forward.lse.size(); ++i)
    if (std::isnan(shape.lse[i]))
      forward.lse[i] = NAN;
  return prepare(*on->device, p, d, g, forward.o, forward.lse);
}

Gradients AttentionBackward::runGradients(const PreparedGradients &call) {
  const Status s = runInPoison(*on->device, AttentionBackwardOperation(*on->jit), call.arguments);
  EXPECT_TRUE(s.ok()) << s.toString();
  for (const Finding &f : on->device->takeFindings())
    ADD_FAILURE() << f.message;
  return {download(call.dq), download(call.dk), download(call.dv),
          call.arguments.dsink ? download(call.dsink) : Numbers(),
          call.arguments.dbias ? download(call.dbias) : Numbers()};
}

void AttentionBackward::compareGradients(const Problem &p, const Data &d, const LossGradients &g,
                                         const PreparedGradients &call, const Gradients &got) {
  SCOPED_TRACE(deviceName() + ": " + p.text() + (g.dlse.empty() ? "" : " dlse"));
  const Gradients want = defineGradients(p, d, g), base = defineGradients(p, d, g, /*roundSteps=*/true);
  const double u = std::ldexp(1, p.type == DType::BF16 ? -9 : -12), f = p.cap() > 0 ? 3 : 2;
  for (const auto &[name, member, type] :
       {std::tuple("dq", &Gradients::dq, p.type), std::tuple("dk", &Gradients::dk, p.type),
        std::tuple("dv", &Gradients::dv, p.type)}) {
    SCOPED_TRACE(name);
    const Numbers &x = got.*member, &ref = want.*member, &rounded = base.*member;
    ASSERT_EQ(x.size(), ref.size());
    double most = 0, worst = 0, worstBase = 0, total = 0, totalBase = 0;
    std::size_t n = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(ref[i])) {
        ASSERT_TRUE(isUntouched(x[i], type)) << "row that is not used, element " << i << ": " << x[i];
        continue;
      }
      const double e = std::abs(x[i] - ref[i]), b = std::abs(rounded[i] - ref[i]);
      ASSERT_FALSE(std::isnan(e)) << "element " << i;
      most = std::max(most, std::abs(ref[i])), worst = std::max(worst, e), worstBase = std::max(worstBase, b);
      total += e, totalBase += b, ++n;
    }
    const double a = 2 * u * most + 1e-5;
    EXPECT_LE(worst, f * worstBase + a + (p.cap() > 0 ? 3e-4 : 0));
    EXPECT_LE(total, 1.5 * totalBase + static_cast<double>(n) * a / 8);
  }
  // Of a few numbers the rule says little.  dsink has no step in 16 bits: fp32 sums of what was given.
  const SumsOfGradients sums = defineSinks(p, d, g, call.o.values, call.lse.values);
  for (std::size_t h = 0; h < got.dsink.size(); ++h)
    EXPECT_NEAR(got.dsink[h], sums.value[h], 1e-5 * sums.magnitude[h] + 1e-6) << "dsink " << h;
  if (got.dbias.empty())
    return;
  // So has dbias, which is rounded once; a fast tanh is off by 2^-11.  The numbers on the way may be far larger than
  // the term: inner products that cancel (of a row that sees one key), logits in the hundreds.
  const SumsOfGradients bias = defineBias(p, d, g, call.o.values, call.lse.values);
  const double ofTerms = p.cap() > 0 ? 1e-3 * p.cap() : 3e-5, once = p.biasType == DType::F32    ? 0
                                                                     : p.biasType == DType::BF16 ? 0x1p-8
                                                                                                 : 0x1p-11;
  ASSERT_EQ(got.dbias.size(), bias.value.size());
  for (std::size_t i = 0; i < got.dbias.size(); ++i)
    ASSERT_NEAR(got.dbias[i], bias.value[i],
                ofTerms * bias.magnitude[i] + 0x1p-24 * bias.rounded[i] + once * std::abs(bias.value[i]) + 1e-6)
        << "dbias " << i;
}

void AttentionBackward::probeGradients(const Problem &p, GradientProbe probe, std::int64_t by,
                                       std::mt19937_64 &engine) {
  SCOPED_TRACE(std::string("probe ") + (probe == GradientProbe::A ? "A " : "B ") + std::to_string(by) + ", " +
               deviceName() + ": " + p.text());
  ProbeOfGradients made = probeOf(p, probe, by, engine);
  poisonUnused(p, made.d);
  poisonUnused(p, made.g);
  const Gradients got = runGradients(prepare(*on->device, p, made.d, made.g, made.o, made.lse));
  // p and dx are rounded once, and so is the sum of them, all of one sign.  Below 2^-14 f16 has steps of 2^-24.
  const double ofType = p.type == DType::BF16 ? 0x1p-7 : 0x1p-11 + std::max(0x1p-11, 0x1p-25 / made.leastShare);
  const double ofBias = p.biasType == DType::F32 ? 1e-5 : std::ldexp(1, p.biasType == DType::BF16 ? -8 : -11);
  for (const auto &[name, member, u] :
       {std::tuple("dq", &Gradients::dq, ofType), std::tuple("dk", &Gradients::dk, ofType),
        std::tuple("dv", &Gradients::dv, ofType), std::tuple("dbias", &Gradients::dbias, ofBias)})
    for (std::size_t i = 0; i < (got.*member).size(); ++i) {
      const double x = (got.*member)[i], want = (made.want.*member)[i];
      if (std::isnan(want))
        ASSERT_TRUE(isUntouched(x, p.type)) << name << " " << i << ": " << x;
      else
        ASSERT_NEAR(x, want, want == 0 ? 0 : u * want * 1.01 + 1e-6) << name << " " << i;
    }
  for (const double x : got.dsink)
    ASSERT_EQ(x, 0) << "delta is 0";
}

void AttentionBackward::compareGradientsOf(const Problem &p, const Data &d, bool withLse, std::mt19937_64 &engine) {
  LossGradients g = randomGradients(p, withLse, engine);
  poisonUnused(p, g);
  const PreparedGradients call = prepared(p, d, g);
  compareGradients(p, d, g, call, runGradients(call));
}

void AttentionBackward::compareRandom(const Problem &p, bool withLse, std::mt19937_64 &engine) {
  Data d = randomData(p, engine);
  poisonUnused(p, d);
  compareGradientsOf(p, d, withLse, engine);
}

void AttentionBackward::all(const Problem &p, bool withLse, std::mt19937_64 &engine) {
  compareRandom(p, withLse, engine);
  for (const GradientProbe probe : {GradientProbe::A, GradientProbe::B})
    for (const bool isShifted : {false, true})
      if (!HasFatalFailure() && (isFullTier() || !on->emulated() || isShifted == (probe == GradientProbe::B)))
        probeGradients(p, probe, isShifted ? p.dimV / 2 : 0, engine);
}

void fixTiles(AttentionBackwardArguments &a) {
  a.ofKeys.blockM = 32, a.ofKeys.blockN = 64, a.ofKeys.warps = 4;
  a.ofQueries.blockM = 64, a.ofQueries.blockN = 32, a.ofQueries.warps = 4;
}

void expectSame(const Gradients &got, const Gradients &want, bool deterministic) {
  if (deterministic)
    EXPECT_EQ(got.dq, want.dq);
  ASSERT_EQ(got.dq.size(), want.dq.size());
  for (std::size_t i = 0; i < got.dq.size(); ++i)
    ASSERT_NEAR(got.dq[i], want.dq[i], std::ldexp(std::abs(want.dq[i]), -7) + 1e-5) << "dq, element " << i;
  EXPECT_EQ(got.dk, want.dk);
  EXPECT_EQ(got.dv, want.dv);
  EXPECT_EQ(got.dsink, want.dsink);
  EXPECT_EQ(got.dbias, want.dbias);
}

} // namespace kiln::test
