//===- DplrStepTest.cpp - DPLR and RWKV7 token by token, for decoding ------------===//
//
// The specification's rows of fused_recurrent and fused_mul_recurrent (S5), and what decoding rests on: a state that is
// kept in place, calls of one token that give the bits of one long call, a prompt by chunks that goes on token by
// token. Default tier on emulators: fewer tokens and heads, a sample for each target.
//
//===----------------------------------------------------------------------===//
#include "kernels/dplr/DplrStepOperation.h"
#include "kernels/support/Runner.h"
#include "tests/kernels/DplrHarness.h"
#include "tests/kernels/Operand.h"
#include "tests/support/TestTier.h"

#include <cmath>
#include <limits>
#include <random>

namespace kiln::test {
namespace {

using namespace kernels;

std::vector<std::int64_t> extentsOf(const Array &array) {
  return {array.shape.begin(), array.shape.end()};
}

/// Token t of a tensor [B, T, H, columns].
Tensor tokenOf(Tensor t, std::int64_t token) {
  t.address += static_cast<std::uint64_t>(token * t.strides[1]) * dtypeBytes(t.dtype);
  t.shape[1] = 1;
  return t;
}

/// Tokens [begin, end) of a tensor [1, T, ..].
Array tokensOf(const Array &array, std::uint64_t begin, std::uint64_t end) {
  const std::size_t bytes = array.data.size() / array.shape[1];
  Array out{array.type, array.shape, {}};
  out.shape[1] = end - begin;
  out.data.assign(array.data.begin() + static_cast<std::ptrdiff_t>(begin * bytes),
                  array.data.begin() + static_cast<std::ptrdiff_t>(end * bytes));
  return out;
}

class DplrStep : public Dplr {
protected:
  void checkStep(const DplrProblem &p, const char *family = "dplr_step") {
    SCOPED_TRACE(deviceNames()[GetParam()] + ": " + family + " " + p.text());
    const Arrays inputs = inputsOf(p), outputs = run(family, inputs, p);
    ASSERT_FALSE(outputs.empty());
    compare(family, inputs, p, outputs);
  }

  /// The operation's arguments without the tensors that it writes; the memory belongs to the test.
  DplrStepArguments placed(const Arrays &inputs, const MemoryOrder &order = {}, const MemoryOrder &state = {}) {
    const auto at = [&](const char *name) { return keep(inputs.at(name), order); };
    DplrStepArguments a{at("q"), at("k"), at("v"), at("a"), at("b"), at("g"), {}};
    if (inputs.count("initial_state"))
      a.initialState = keep(inputs.at("initial_state"), state);
    return a;
  }
  Tensor keep(const Array &array, const MemoryOrder &order = {}) {
    return operands.emplace_back(upload(*on->device, array.type, extentsOf(array), toHost(array).values, order)).tensor;
  }
  Operand output(const Tensor &like, DType type, const MemoryOrder &order = {}) {
    return allocateOutput(*on->device, type, {like.shape.begin(), like.shape.begin() + like.rank}, order);
  }
  void launch(const DplrStepArguments &a) {
    const Status ran = DplrStepOperation(*on->jit).run(a);
    ASSERT_TRUE(ran.ok()) << ran.toString();
    ASSERT_TRUE(on->device->defaultStream().synchronize().ok());
    for (const Finding &f : on->device->takeFindings())
      ADD_FAILURE() << f.toString();
  }

  std::vector<Operand> operands;
};

/// Fewer tokens and heads for emulators, unless everything runs.
DplrProblem sized(DplrProblem p, const Opened &on, std::uint64_t tokens) {
  if (!isFullTier() && on.emulated())
    p.batch = 1, p.tokens = std::min(p.tokens, tokens), p.heads = std::min<std::uint64_t>(p.heads, 2);
  return p;
}

/// fused_recurrent, f32.
TEST_P(DplrStep, RecurrentRows) {
  const DplrGates quarter{4};
  unsigned number = 0;
  for (const DplrProblem &p : {DplrProblem{1, 63, 1, 64, 64, quarter, {{"scale", 1}}, DType::F32},
                               {2, 1024, 4, 60, 60, quarter, {{"scale", 1}}, DType::F32},
                               {2, 1024, 8, 100, 100, quarter, {{"scale", 1}}, DType::F32},
                               {2, 1024, 8, 128, 128, quarter, {{"scale", .1}}, DType::F32},
                               {4, 2048, 8, 64, 64, quarter, {{"scale", .1}}, DType::F32}})
    if (chosen(number++, 4))
      checkStep(sized(p, *on, 40));
}

/// fused_mul_recurrent, f32: a = -kk of length 1, b = kk times a rate in (0, 1).
TEST_P(DplrStep, MulRecurrentRows) {
  unsigned number = 0;
  for (const std::uint64_t tokens : {1, 1024})
    for (const bool scaled : {false, true}) {
      if (!chosen(number++, 4))
        continue;
      DplrProblem p{2, tokens, 1, 64, 64, {1, 0, -.61}, {}, DType::F32};
      if (scaled)
        p.options["scale"] = 1;
      p = sized(p, *on, 50);
      Arrays inputs = inputsOf(p);
      std::mt19937_64 random(tokens);
      std::uniform_real_distribution<double> rate;
      std::vector<double> b = toHost(inputs.at("a")).values;
      for (double &x : b)
        x *= -rate(random);
      inputs["b"] = arrayOf(DType::F32, inputs.at("a").shape, b);
      const Arrays outputs = run("rwkv7_step", inputs, p);
      ASSERT_FALSE(outputs.empty());
      ASSERT_NO_FATAL_FAILURE(compare("rwkv7_step", inputs, p, outputs));
    }
}

/// Every type of activations, gates and states; K that fills no tile and the largest; V of any size; packed sequences,
/// some of them empty.
TEST_P(DplrStep, TypesAndShapes) {
  std::vector<DplrProblem> all;
  const auto add = [&](DplrProblem p, auto change) {
    change(p);
    all.push_back(p);
  };
  const auto packed = [](DplrProblem &p) { p.offsets = {0, 0, 3, 3, 4, 11, 11}, p.offsetType = DType::I64; };
  add({2, 9, 2, 64, 64, {1}, {}, DType::F16}, [](DplrProblem &p) { p.first = DType::F16; });
  add({1, 11, 2, 48, 300, {1}, {}, DType::BF16}, packed);
  add({3, 4, 1, 256, 8, {1}, {}, DType::BF16}, [](DplrProblem &p) { p.gateType = p.dtype, p.first = DType::BF16; });
  add({1, 5, 2, 5, 3, {1}, {}, DType::F16}, [](DplrProblem &p) { p.gateType = p.dtype, p.first.reset(); });
  add({2, 6, 1, 130, 20, {.1}, {}, DType::F32}, [](DplrProblem &p) { p.first = DType::BF16; });
  add({1, 11, 1, 192, 17, {1, .5}, {{"scale", -2}}, DType::F32}, [&](DplrProblem &p) {
    packed(p);
    p.offsetType = DType::I32;
  });
  add({2, 7, 3, 1, 1, {1}, {}, DType::F32}, [](DplrProblem &p) { p.first.reset(); });
  add({40, 2, 4, 16, 64, {1}, {}, DType::BF16}, [](DplrProblem &) {});
  unsigned number = 0;
  for (const DplrProblem &p : all)
    if (chosen(number++, 4))
      checkStep(p);
}

TEST_P(DplrStep, Rwkv7IsDplr) {
  DplrProblem p{2, 9, 2, 64, 64, {1, 0, -.61}, {{"scale", 1}}, DType::BF16};
  const Arrays inputs = inputsOf(p);
  DplrProblem unscaled = p;
  unscaled.options.clear();
  const Arrays dplr = run("dplr_step", inputs, p), rwkv7 = run("rwkv7_step", inputs, unscaled);
  for (const char *name : {"o", "final_state"})
    EXPECT_EQ(dplr.at(name).data, rwkv7.at(name).data) << name;
  const Arrays other = run("dplr_step", inputs, unscaled); // 1 / sqrt(K), an eighth: exact in every type
  std::vector<double> o = toHost(dplr.at("o")).values;
  for (double &x : o)
    x /= 8;
  EXPECT_EQ(other.at("o").data, arrayOf(DType::BF16, dplr.at("o").shape, o).data);
}

/// Twenty calls of one token, the state kept in place, are one call of twenty tokens, bit for bit.
TEST_P(DplrStep, CallsOfOneTokenAreOneCall) {
  const DplrProblem p{2, 20, 3, 64, 32, {1}, {}, GetParam() % 2 ? DType::F16 : DType::BF16};
  const Arrays inputs = inputsOf(p);
  DplrStepArguments all = placed(inputs);
  const Operand o = output(all.v, p.dtype), last = output(*all.initialState, DType::F32), each = output(all.v, p.dtype);
  all.o = o.tensor, all.finalState = last.tensor;
  ASSERT_NO_FATAL_FAILURE(launch(all));
  const Operand state =
      upload(*on->device, DType::F32, extentsOf(inputs.at("initial_state")), toHost(inputs.at("initial_state")).values);
  for (std::int64_t t = 0; t < 20; ++t) {
    DplrStepArguments one{tokenOf(all.q, t), tokenOf(all.k, t), tokenOf(all.v, t),      tokenOf(all.a, t),
                          tokenOf(all.b, t), tokenOf(all.g, t), tokenOf(each.tensor, t)};
    one.initialState = one.finalState = state.tensor;
    ASSERT_NO_FATAL_FAILURE(launch(one));
  }
  EXPECT_EQ(download(each), download(o));
  EXPECT_EQ(download(state), download(last));
}

/// States of 16 bits are kept in place, too: as if they had been written elsewhere.
TEST_P(DplrStep, StatesInPlace) {
  DplrProblem p{3, 2, 2, 40, 24, {1}, {}, DType::BF16};
  p.first = GetParam() % 2 ? DType::F16 : DType::BF16;
  const Arrays inputs = inputsOf(p);
  DplrStepArguments a = placed(inputs);
  const Operand o = output(a.v, p.dtype), last = output(*a.initialState, *p.first), again = output(a.v, p.dtype);
  a.o = o.tensor, a.finalState = last.tensor;
  ASSERT_NO_FATAL_FAILURE(launch(a));
  const Operand state = std::move(operands.back()); // the first state's
  a.o = again.tensor, a.finalState = a.initialState;
  ASSERT_NO_FATAL_FAILURE(launch(a));
  EXPECT_EQ(download(again), download(o));
  EXPECT_EQ(download(state), download(last));
  // The f32 state that a call would give, rounded once.
  const Arrays wide = run("dplr_step", inputs, p);
  EXPECT_EQ(download(last), toHost(arrayOf(*p.first, {3, 2, 40, 24}, toHost(wide.at("final_state")).values)).values);
}

/// Heads before tokens, rows with gaps, tensors at no multiple of 16 bytes; states with gaps.
TEST_P(DplrStep, AnyStrides) {
  DplrProblem p{2, 5, 3, 40, 24, {1}, {}, GetParam() % 2 ? DType::F32 : DType::F16};
  const Arrays inputs = inputsOf(p);
  const MemoryOrder order{{2, 0, 1, 3}, 3, 5}, ofState{{1, 0, 2, 3}, 5, 3};
  DplrStepArguments a = placed(inputs, order, ofState);
  const Operand o = output(a.v, p.dtype, {{1, 2, 0, 3}, 1, 7}), last = output(*a.initialState, DType::F32, ofState);
  a.o = o.tensor, a.finalState = last.tensor;
  ASSERT_NO_FATAL_FAILURE(launch(a));
  compare("dplr_step", inputs, p,
          {{"o", arrayOf(p.dtype, inputs.at("v").shape, download(o))},
           {"final_state", arrayOf(DType::F32, inputs.at("initial_state").shape, download(last))}});
}

/// Every state crosses once in each direction, in whole sectors; each program fetches the rows of its head.
TEST_P(DplrStep, CountersInClosedForm) {
  if (!on->emulated())
    GTEST_SKIP() << "a GPU counts nothing";
  unsigned number = 0;
  for (const auto &[dim, dimV, blockV] : {std::tuple<unsigned, unsigned, unsigned>{64, 64, 32}, {128, 32, 16}}) {
    if (!chosen(number++, 2))
      continue;
    const DplrProblem p{4, 2, 48, dim, dimV, {1}, {}, DType::BF16}; // heads for every multiprocessor
    DplrStepArguments a = placed(inputsOf(p));
    const Operand o = output(a.v, p.dtype), last = output(*a.initialState, DType::F32);
    a.o = o.tensor, a.finalState = last.tensor;
    on->device->takeCounters();
    ASSERT_TRUE(on->device->record({.counters = true}).ok());
    launch(a);
    EXPECT_TRUE(on->device->record({}).ok());
    const std::vector<LaunchCounters> got = on->device->takeCounters();
    ASSERT_EQ(got.size(), 1u);
    const Counts &c = got[0].total;
    const auto of = [&](AccessKind kind) { return c.global[static_cast<unsigned>(kind)]; };
    const std::uint64_t heads = p.batch * p.heads, programs = heads * dimV / blockV, state = heads * dim * dimV * 4,
                        rows = programs * p.tokens * (4 * 2 * dim + 4 * dim + 2 * blockV);
    EXPECT_EQ(got[0].grid[0], programs);
    EXPECT_EQ(of(AccessKind::Load).bytes, state);
    EXPECT_EQ(of(AccessKind::Load).sectors, state / 32);
    EXPECT_EQ(of(AccessKind::Copy).bytes, rows);
    EXPECT_EQ(of(AccessKind::Copy).sectors, rows / 32);
    EXPECT_EQ(of(AccessKind::Store).bytes, state + 2 * heads * p.tokens * dimV);
    EXPECT_EQ(of(AccessKind::Store).sectors, of(AccessKind::Store).bytes / 32);
    EXPECT_EQ(c.sharedTotal().conflicts, 0u);
    EXPECT_EQ(c.localRequests, 0u) << "registers are spilled";
  }
}

/// No token: the last state is the first, or zeros.
TEST_P(DplrStep, NoTokens) {
  const DplrProblem p{2, 0, 2, 16, 24, {1}, {}, DType::BF16};
  const Arrays inputs = inputsOf(p), outputs = run("dplr_step", inputs, p);
  EXPECT_EQ(outputs.at("final_state").data, inputs.at("initial_state").data);
  Arrays none = inputs;
  none.erase("initial_state");
  const Arrays zeros = run("dplr_step", none, p);
  for (const std::byte b : zeros.at("final_state").data)
    ASSERT_EQ(b, std::byte(0));
  DplrStepArguments a = placed(none);
  a.o = a.v;
  PlanListing listing;
  const Status s = DplrStepOperation(*on->jit).describe(a, listing);
  ASSERT_TRUE(s.ok()) << s.toString();
  EXPECT_TRUE(listing.launches.empty());
}

/// A prompt by chunks, then its last tokens one by one.
TEST_P(DplrStep, GoesOnAfterChunks) {
  if (GetParam() % 2 && on->emulated() && !isFullTier())
    return;
  const DplrProblem p{1, 100, 2, 64, 64, {1}, {}, DType::BF16};
  const Arrays inputs = inputsOf(p);
  constexpr std::uint64_t prompt = 83;
  DplrProblem before = p, after = p;
  before.tokens = prompt, after.tokens = p.tokens - prompt;
  Arrays first, rest;
  for (const auto &[name, array] : inputs)
    if (name == "initial_state")
      first[name] = array;
    else if (name != "dht")
      first[name] = tokensOf(array, 0, prompt), rest[name] = tokensOf(array, prompt, p.tokens);
  const Arrays chunks = run("dplr", first, before);
  ASSERT_FALSE(chunks.empty());
  rest["initial_state"] = chunks.at("final_state");
  const Arrays steps = run("dplr_step", rest, after);
  ASSERT_FALSE(steps.empty());
  Array o = chunks.at("o");
  o.shape[1] = p.tokens;
  o.data.insert(o.data.end(), steps.at("o").data.begin(), steps.at("o").data.end());
  compare("dplr_step", inputs, p, {{"o", o}, {"final_state", steps.at("final_state")}});
}

/// e^-inf is 0: nothing is left of the state, and nothing of it is NaN.
TEST_P(DplrStep, InfiniteGates) {
  const double infinity = std::numeric_limits<double>::infinity();
  DplrProblem p{2, 6, 1, 40, 24, {1}, {}, DType::BF16};
  p.gateType = GetParam() % 2 ? DType::F32 : DType::BF16;
  Arrays inputs = inputsOf(p);
  std::vector<double> g = toHost(inputs.at("g")).values;
  for (std::size_t i = 0; i < g.size(); ++i)
    if (i / 40 % 6 == 2 || i % 7 == 0) // every gate of a token, some of the others
      g[i] = -infinity;
  inputs["g"] = arrayOf(p.gateType, inputs.at("g").shape, g);
  const Arrays outputs = run("dplr_step", inputs, p);
  ASSERT_NO_FATAL_FAILURE(compare("dplr_step", inputs, p, outputs));

  inputs["g"] = arrayOf(p.gateType, inputs.at("g").shape, std::vector<double>(g.size(), -infinity));
  for (const char *name : {"k", "b"})
    inputs[name] = arrayOf(p.dtype, inputs.at(name).shape, std::vector<double>(g.size(), 0));
  const Arrays nothing = run("dplr_step", inputs, p);
  for (const char *name : {"o", "final_state"})
    for (const double x : toHost(nothing.at(name)).values)
      ASSERT_EQ(x, 0) << name;
}

TEST_P(DplrStep, WrongArgumentsAreRefused) {
  if (GetParam() != 0)
    return;
  const DplrProblem p{2, 3, 2, 40, 40, {1}, {}, DType::BF16};
  const Arrays inputs = inputsOf(p);
  const DplrStepArguments good = placed(inputs);
  const Operand o = output(good.v, p.dtype), last = output(*good.initialState, DType::F32);
  const DplrStepOperation operation(*on->jit);
  const auto refused = [&](auto change, const char *what) {
    DplrStepArguments a = good;
    a.o = o.tensor, a.finalState = last.tensor;
    change(a);
    const Status s = operation.run(a);
    EXPECT_FALSE(s.ok()) << what;
    EXPECT_NE(s.toString().find(what), std::string::npos) << s.toString();
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
    EXPECT_FALSE(s.remedy().empty());
  };
  using A = DplrStepArguments;
  refused([](A &a) { a.initialState->shape[0] = 1; }, "'initial_state' has extent 1 in dimension 0, it must be 2");
  refused([](A &a) { a.finalState->shape[1] = 1; }, "'final_state' has extent 1 in dimension 1, it must be 2");
  refused([](A &a) { a.o = a.v; }, "'o' (bf16[2, 3, 2, 40]");
  refused([](A &a) { a.o = a.v; }, "overlaps 'v'");
  refused([](A &a) { a.o = a.q; }, "overlaps 'q'");
  refused([](A &a) { a.v = tokenOf(a.v, 0), a.v.shape[1] = 3, a.o = a.v, a.o.address += 2; }, "overlaps 'v'");
  refused([](A &a) { a.finalState = a.initialState, a.finalState->address += 4; }, "overlaps 'initial_state'");
  refused([](A &a) { a.g.address = a.finalState->address; }, "overlaps 'g'");
  refused([](A &a) { a.o.address = a.initialState->address; }, "overlaps 'initial_state'");
  refused([](A &a) { a.o.address = a.finalState->address; }, "overlaps 'o'");
  refused([](A &a) { a.q.shape[3] = 257; }, "dplr_step: argument 'q' has 257 columns: from 1 to 256");
  refused([](A &a) { a.k.shape[3] = 39; }, "'k' has shape [2, 3, 2, 39], 'q' has [2, 3, 2, 40]");
  refused([](A &a) { a.k.dtype = DType::F16; }, "'k' has dtype f16, 'q' has bf16");
  refused([](A &a) { a.g.dtype = DType::F16; }, "'g' has dtype");
  refused([](A &a) { a.q.dtype = DType::I32; }, "'q' has dtype");
  refused([](A &a) { a.finalState->dtype = DType::F16; }, "'final_state' has dtype");
  refused([](A &a) { a.v.shape[1] = 2; }, "'v' has extent 2 in dimension 1, it must be 3 (as of q)");
  refused([](A &a) { a.b.strides[3] = 2; }, "'b' has stride 2 in dimension 3");
  refused([](A &a) { a.scale = INFINITY; }, "scale");
  refused([&](A &a) { a.cuSeqlens = keep({DType::I32, {3}, std::vector<std::byte>(12)}); }, "the batch is 2");

  Rwkv7StepArguments r{good.q, good.g, good.k, good.v, good.a, good.b, good.v};
  const Status named = Rwkv7StepOperation(*on->jit).run(r);
  EXPECT_NE(named.toString().find("rwkv7_step: argument 'o'"), std::string::npos) << named.toString();
  r.r.shape[3] = 300;
  EXPECT_NE(Rwkv7StepOperation(*on->jit).run(r).toString().find("argument 'r' has 300"), std::string::npos);

  ASSERT_TRUE(on->device->defaultStream().synchronize().ok());
  for (const double x : download(o))
    ASSERT_TRUE(isUntouched(x, p.dtype));
  for (const double x : download(last))
    ASSERT_TRUE(isUntouched(x, DType::F32));
}

/// The comparison of f32 sees an error of half a percent.
TEST_P(DplrStep, ASmallErrorIsSeen) {
  if (GetParam() != 0)
    return;
  const DplrProblem p{1, 20, 1, 16, 16, {1}, {}, DType::F32};
  const Arrays inputs = inputsOf(p);
  const Family &family = familyOf("dplr_step");
  Arrays outputs = run("dplr_step", inputs, p);
  std::vector<double> o = toHost(outputs.at("o")).values;
  for (double &x : o)
    x *= 1.005;
  outputs["o"] = arrayOf(DType::F32, outputs.at("o").shape, o);
  const auto compared = compareWithReference(family, inputsFor(family, inputs), {{"final_state", true}}, outputs);
  ASSERT_TRUE(compared.ok());
  EXPECT_FALSE(compared->good());
}

INSTANTIATE_TEST_SUITE_P(Devices, DplrStep, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
