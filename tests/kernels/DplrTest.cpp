//===- DplrTest.cpp - The specification's test matrix of DPLR and RWKV7 (S5) -----===//
//
// Full tier and a GPU: every row as it stands there.  Default tier: a sample for each target, of fewer tokens.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/DplrHarness.h"
#include "tests/support/TestTier.h"

namespace kiln::test {
namespace {

using namespace kernels;

OptionValues safe(double lowerBound, double scale, int chunk) {
  return {{"safe_gate", true}, {"lower_bound", lowerBound}, {"scale", scale}, {"chunk_size", chunk}};
}
OptionValues any(double scale, int chunk) {
  return {{"scale", scale}, {"chunk_size", chunk}};
}

std::vector<DplrProblem> dense() {
  return {{1, 63, 1, 64, 64, {1, 0, -5}, safe(-5, 1, 16)},
          {2, 1000, 3, 60, 60, {1, 0, -5}, safe(-5, 1, 16)},
          {2, 1024, 3, 64, 64, {1, .5, -5}, safe(-5, 1, 16)},
          {2, 1024, 4, 100, 100, {.1, 0, -5}, safe(-5, 1, 16)},
          {2, 1024, 4, 100, 100, {.1, 0, -.61}, safe(-.61, 1, 64)},
          {2, 1024, 4, 128, 128, {1, .5}, any(.1, 16)},
          {2, 1024, 4, 128, 128, {10, 0}, any(.1, 16)},
          {2, 100, 3, 60, 60, {1, 0}, any(1, 32)},
          {2, 200, 3, 64, 64, {1, 0}, any(1, 64)}};
}

std::vector<DplrProblem> packed() {
  const auto row = [](std::uint64_t dim, const DplrGates &gates, const OptionValues &options,
                      std::vector<std::uint64_t> offsets) {
    DplrProblem p{1, offsets.back(), 4, dim, dim, gates, options};
    p.offsets = std::move(offsets);
    return p;
  };
  return {row(64, {1, 0, -5}, safe(-5, 1, 16), {0, 15}),
          row(64, {1, 0, -5}, safe(-5, 1, 16), {0, 256, 500, 1000}),
          row(64, {1, .5, -5}, safe(-5, 1, 16), {0, 256, 500, 1000}),
          row(64, {1, 0}, any(1, 32), {0, 15}),
          row(64, {1, 0}, any(1, 64), {0, 64, 128, 192}),
          row(100, {.1, 0}, any(1, 64), {0, 15, 100, 300, 1111, 1599, 2000}),
          row(100, {10, 0}, any(1, 64), {0, 15, 100, 300, 1111, 1599, 2000})};
}

/// "REC extra": bf16 everywhere, K and V that differ, one token, empty sequences, gates of the activations' type.
std::vector<DplrProblem> extra() {
  std::vector<DplrProblem> out;
  const auto add = [&](DplrProblem p, auto change) {
    p.dtype = DType::BF16;
    change(p);
    out.push_back(p);
  };
  add({2, 333, 3, 64, 32, {1, 0}, {}}, [](DplrProblem &p) { p.first = DType::BF16, p.last = DType::BF16; });
  add({1, 200, 2, 40, 128, {1, .5}, {}}, [](DplrProblem &p) { p.gateType = DType::BF16; });
  add({3, 1, 2, 64, 64, {1, 0}, {}}, [](DplrProblem &p) { p.last.reset(); });
  add({1, 431, 2, 48, 96, {1, 0}, {}}, [](DplrProblem &p) {
    p.offsets = {0, 0, 15, 15, 64, 130, 131, 400, 431, 431};
    p.offsetType = DType::I64;
  });
  add({1, 300, 2, 64, 64, {1, 0, -.61}, safe(-.61, 1, 0)}, [](DplrProblem &p) { p.first.reset(); });
  add({1, 257, 2, 64, 64, {1, 1}, any(1, 64)}, [](DplrProblem &) {});              // no decay at all: IPLR
  add({1, 257, 2, 64, 64, {.01, .3, -150}, any(1, 64)}, [](DplrProblem &) {});     // factors that vanish
  add({1, 512, 2, 64, 64, {1, 0, -5, -5}, safe(-5, 1, 64)}, [](DplrProblem &) {}); // all gates -5: dg of S3.4
  add({1, 512, 2, 64, 64, {1, 0, -5, -5}, any(1, 16)}, [](DplrProblem &) {});
  add({1, 512, 1, 64, 64, {1, 0, -5, -5}, safe(-5, 1, 32)}, [](DplrProblem &) {}); // the bound of a safe gate
  add({1, 256, 1, 64, 64, {1, 0, -2, -2}, any(1, 64)}, [](DplrProblem &) {});
  // Losses that are scaled, down and up: next to the bound of the fast way, and where chunks take the slow one.
  add({1, 200, 1, 64, 64, {1, 0, -.61}, safe(-.61, 1, 32)}, [](DplrProblem &p) { p.unit = 0x1p-24; });
  add({1, 130, 1, 64, 64, {1, 0, -1.8, -1.8}, any(1, 64)}, [](DplrProblem &p) { p.unit = 0x1p16; });
  add({1, 130, 1, 64, 64, {1, 0, -5, -5}, safe(-5, 1, 32)}, [](DplrProblem &p) { p.unit = 0x1p16; });
  // Gates that no middle row serves, in chunks of every size.
  add({1, 70, 1, 32, 32, {.05, .3, -20}, any(1, 16)}, [](DplrProblem &) {});
  add({1, 70, 1, 32, 48, {.05, .3, -20}, any(1, 32)}, [](DplrProblem &) {});
  add({1, 70, 1, 160, 32, {.05, .3, -20}, {}}, [](DplrProblem &) {});
  add({1, 90, 1, 256, 256, {1, 0}, {}}, [](DplrProblem &) {});
  add({1, 70, 1, 200, 16, {1, 0}, any(1, 64)}, [](DplrProblem &) {});
  // More than 128 columns of V, of both; of K in chunks of every size, some of another way than others of one slice.
  add({1, 70, 1, 24, 200, {1, 0}, any(1, 64)}, [](DplrProblem &) {});
  add({1, 150, 1, 144, 136, {1, 0, -.61}, safe(-.61, 1, 64)}, [](DplrProblem &p) { p.offsets = {0, 0, 80, 81, 150}; });
  add({1, 70, 1, 160, 144, {.05, .3, -20}, any(1, 16)}, [](DplrProblem &p) { p.first.reset(), p.last.reset(); });
  add({1, 77, 2, 5, 3, {1, 0}, {}}, [](DplrProblem &p) { p.first.reset(), p.last.reset(); });
  return out;
}

/// With fewer whole chunks, sequences and heads.
DplrProblem shortened(DplrProblem p) {
  p.batch = std::min<std::uint64_t>(p.batch, 2), p.heads = std::min<std::uint64_t>(p.heads, 2);
  p.tokens = std::min<std::uint64_t>(p.tokens, p.batch > 1 ? 75 : 150);
  for (std::uint64_t &offset : p.offsets)
    offset = offset > 300 ? offset / 10 + offset % 64 : offset;
  std::sort(p.offsets.begin(), p.offsets.end());
  if (!p.offsets.empty())
    p.tokens = p.offsets.back();
  return p;
}

TEST_P(Dplr, DenseRows) {
  checkRows(dense(), shortened);
}

TEST_P(Dplr, PackedRows) {
  checkRows(packed(), shortened);
}

TEST_P(Dplr, ExtraRows) {
  checkRows(extra(), shortened);
}

/// The call that aborts elsewhere: one packed sequence, int64 offsets, a bf16 first state, the last state asked for.
/// With and without offsets the bits are the same.
TEST_P(Dplr, HistoricalFailure) {
  DplrProblem p{1, on->emulated() ? pick(100u, 1024u) : 4096u, 2, 128, 128, {1, 0}, {}, DType::BF16};
  p.first = DType::BF16;
  p.offsetType = DType::I64;
  const Arrays inputs = inputsOf(p);
  DplrProblem q = p;
  q.offsets = {0, p.tokens};
  Arrays withOffsets = inputs;
  withOffsets["cu_seqlens"] = {DType::I64, {2}, std::vector<std::byte>(16)};
  std::memcpy(&withOffsets["cu_seqlens"].data[8], &p.tokens, 8);
  for (const char *family : {"dplr", "dplr_backward"}) {
    if (!chosen(family[4] != 0, 2)) // one direction a target
      continue;
    const Arrays plain = run(family, inputs, p), offsets = run(family, withOffsets, q);
    ASSERT_FALSE(plain.empty() || offsets.empty());
    for (const auto &[name, array] : plain)
      EXPECT_EQ(array.data, offsets.at(name).data) << name;
    ASSERT_NO_FATAL_FAILURE(compare(family, inputs, p, plain));
  }
}

/// RWKV7 is DPLR under other names, with scale 1.
TEST_P(Dplr, Rwkv7IsDplr) {
  if (GetParam() % 2 && on->emulated() && !isFullTier())
    return;
  DplrProblem p{1, 100, 2, 64, 64, {1, 0, -.61}, {{"safe_gate", true}, {"scale", 1}}, DType::BF16};
  const Arrays inputs = inputsOf(p);
  DplrProblem unscaled = p;
  unscaled.options.erase("scale");
  const Arrays dplr = run("dplr", inputs, p), rwkv7 = run("rwkv7", inputs, unscaled);
  for (const char *name : {"o", "final_state"})
    EXPECT_EQ(dplr.at(name).data, rwkv7.at(name).data) << name;
  const Arrays back = run("dplr_backward", inputs, p), rwkv7Back = run("rwkv7_backward", inputs, unscaled);
  for (const auto &[own, theirs] :
       {std::pair("dq", "dr"), {"dk", "dk"}, {"dv", "dv"}, {"da", "da"}, {"db", "db"}, {"dg", "dw"}, {"dh0", "dh0"}})
    EXPECT_EQ(back.at(own).data, rwkv7Back.at(theirs).data) << own;
}

/// Gates of minus infinity, in all channels of some tokens and some channels of others: nothing is left of the state
/// there.
TEST_P(Dplr, InfiniteGates) {
  for (const double chunk : {16, 32, 64}) {
    if (on->emulated() && !isFullTier() && static_cast<unsigned>(chunk / 16) % 3 != GetParam() % 3)
      continue;
    DplrProblem p{1, 75, 1, 32, 32, {1, 0}, any(1, chunk), DType::BF16};
    Arrays inputs = inputsOf(p);
    std::vector<double> g = toHost(inputs.at("g")).values;
    for (std::size_t i = 0; i < g.size(); ++i)
      if (i / 32 % 9 == 4 || (i / 32 % 5 == 1 && i % 3 == 0))
        g[i] = -std::numeric_limits<double>::infinity();
    inputs["g"] = arrayOf(DType::F32, {1, 75, 1, 32}, g);
    for (const char *family : {"dplr", "dplr_backward"}) {
      SCOPED_TRACE(std::string(family) + " " + p.text());
      ASSERT_NO_FATAL_FAILURE(compare(family, inputs, p, run(family, inputs, p)));
    }
  }
}

/// No tokens at all: the last state is the first, and so are their gradients.
TEST_P(Dplr, NoTokens) {
  if (!chosen(1, 2))
    return;
  for (const std::vector<std::uint64_t> &offsets : {std::vector<std::uint64_t>{}, {0, 0, 0}, {0}}) {
    DplrProblem p{offsets.empty() ? 2u : 1u, 0, 2, 16, 24, {1, 0}, {}, DType::BF16};
    p.offsets = offsets;
    const Arrays inputs = inputsOf(p);
    SCOPED_TRACE(p.text());
    const Arrays forward = run("dplr", inputs, p), backward = run("dplr_backward", inputs, p);
    ASSERT_FALSE(forward.empty() || backward.empty());
    EXPECT_EQ(forward.at("final_state").data, inputs.at("initial_state").data);
    EXPECT_EQ(backward.at("dh0").data, inputs.at("dht").data);
  }
}

/// A safe gate's numbers by hand (S5): the first gates of head 0 are -5, those of others are their own.
TEST_P(Dplr, HeadsHaveGatesOfTheirOwn) {
  DplrProblem p{1, 16, 3, 16, 16, {1, 0, -5}, safe(-5, 1, 16)};
  Arrays inputs = inputsOf(p);
  std::vector<double> g = toHost(inputs.at("g")).values;
  for (std::uint64_t t = 0; t < 16; ++t)
    for (std::uint64_t h = 0; h < 3; ++h)
      for (std::uint64_t c = 0; c < 16; ++c)
        g[(t * 3 + h) * 16 + c] = h == 0 && t < 8 ? -5 : -0.1 * static_cast<double>(h + 1);
  inputs["g"] = arrayOf(DType::F32, {1, 16, 3, 16}, g);
  for (const char *family : {"dplr", "dplr_backward"})
    ASSERT_NO_FATAL_FAILURE(compare(family, inputs, p, run(family, inputs, p)));
}

/// The comparison sees what it is there for: every gate's gradient off by 2 %.
TEST_P(Dplr, ASmallErrorIsSeen) {
  if (GetParam() != 0)
    return;
  const DplrProblem p{1, 70, 1, 16, 16, {1, 0}, {}, DType::BF16};
  const Arrays inputs = inputsOf(p);
  const Family &family = familyOf("dplr_backward");
  Arrays outputs = run("dplr_backward", inputs, p);
  std::vector<double> dg = toHost(outputs.at("dg")).values;
  for (double &x : dg)
    x *= 1.02;
  outputs["dg"] = arrayOf(DType::F32, outputs.at("dg").shape, dg);
  const auto compared = compareWithReference(family, inputsFor(family, inputs), {{"dh0", true}}, outputs);
  ASSERT_TRUE(compared.ok());
  EXPECT_FALSE(compared->good());
  EXPECT_GT(compared->ratioExcess, 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, Dplr, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
