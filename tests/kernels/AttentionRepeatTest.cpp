//===- AttentionRepeatTest.cpp - Attention: the same bits from every run ----------===//
//
// A thousand runs on a GPU in the full tier, a few on emulators, of batches of up to 60 sequences, the shortest below
// one tile; workspaces are full of NaN before each.  The last run is compared with float64.
//
//===----------------------------------------------------------------------===//
#include "tests/kernels/AttentionBackwardHarness.h"
#include "tests/kernels/AttentionDecodeHarness.h"
#include "tests/kernels/AttentionHookCases.h"
#include "tests/kernels/PoisonedWorkspace.h"
#include "tests/kernels/Repeat.h"

namespace kiln::test {
namespace {

using namespace kernels;

Problem packedProblem(std::size_t sequences) {
  std::mt19937_64 lengths(60);
  Problem p;
  for (std::size_t b = 0; b < sequences; ++b) {
    p.lengthsQ.push_back(static_cast<std::int64_t>(lengths() % 150));
    p.lengthsK.push_back(static_cast<std::int64_t>(lengths() % 200));
  }
  return p;
}
Problem causalProblem(std::size_t sequences) {
  Problem p = packedProblem(sequences);
  p.heads = 4, p.causal = true;
  return p;
}
Problem windowProblem(std::size_t sequences) {
  Problem p = packedProblem(sequences);
  p.left = 40, p.right = 10, p.sink = true;
  p.type = DType::F16, p.heads = p.keyHeads = 1, p.dim = 192, p.dimV = 128;
  return p;
}

TEST_P(AttentionForward, ThousandRunsGiveTheSameBits) {
  const std::size_t sequences = on->emulated() ? 5 : 60;
  unsigned number = 0;
  for (const Problem &p : {causalProblem(sequences), windowProblem(sequences)})
    onEveryDeviceOfRuns(on, GetParam() + 3 * number++, p.text(), [&] {
      const Data d = randomData(p, random);
      const PreparedCall call = prepare(*on->device, p, d);
      const AttentionOperation operation(*on->jit);
      expectSameBits(*on->device, {&call.o, &call.lse}, numberOfRuns(*on),
                     [&] { return operation.run(call.arguments); });
      compare(p, d, {download(call.o), download(call.lse)});
    });
}

class AttentionBackwardRuns : public AttentionBackward {
protected:
  void expectSameBitsOf(const std::vector<Problem> &problems, unsigned first);
};
/// dq only if it is to be deterministic; dk and dv always, also as sums over a group of heads.  In the default tier an
/// emulator takes one of three; the first has the number `first`.
void AttentionBackwardRuns::expectSameBitsOf(const std::vector<Problem> &problems, unsigned first) {
  for (unsigned number = first; number < first + problems.size(); ++number) {
    if (on->emulated() && !isFullTier() && number % 3 != GetParam() % 3)
      continue;
    const Problem &p = problems[number - first];
    onEveryDeviceOfRuns(on, GetParam() + 3 * number, p.text(), [&] {
      const Data d = randomData(p, random);
      const LossGradients g = randomGradients(p, true, random);
      const PreparedGradients call = prepared(p, d, g);
      std::vector<const Operand *> outputs = {&call.dk, &call.dv};
      if (p.deterministic)
        outputs.push_back(&call.dq);
      if (call.arguments.dsink)
        outputs.push_back(&call.dsink);
      if (call.arguments.dbias)
        outputs.push_back(&call.dbias);
      const AttentionBackwardOperation operation(*on->jit);
      expectSameBits(*on->device, outputs, numberOfRuns(*on),
                     [&] { return runInPoison(*on->device, operation, call.arguments); });
      compareGradients(p, d, g, call,
                       {download(call.dq), download(call.dk), download(call.dv),
                        call.arguments.dsink ? download(call.dsink) : Numbers(),
                        call.arguments.dbias ? download(call.dbias) : Numbers()});
    });
  }
}

TEST_P(AttentionBackwardRuns, ThousandGiveTheSameBits) {
  const std::size_t sequences = on->emulated() ? 4 : 60;
  std::vector<Problem> problems = {causalProblem(sequences), causalProblem(sequences), windowProblem(sequences)};
  problems[1].sink = problems[1].deterministic = true;
  expectSameBitsOf(problems, 0);
}
TEST_P(AttentionBackwardRuns, ThousandOfOptionsGiveTheSameBits) {
  const std::size_t sequences = on->emulated() ? 4 : 60;
  std::vector<Problem> problems;
  Problem &wide = problems.emplace_back(windowProblem(sequences));
  wide.dim = wide.dimV = 128, wide.heads = 2, wide.deterministic = true;
  Problem &biased = problems.emplace_back(with(100, 120));
  biased.batch = on->emulated() ? 2 : 60, biased.biasOf = 12, biased.dropoutP = 0.17f, biased.heads = 2;
  Problem &listed = problems.emplace_back(causalProblem(sequences));
  Hooks hooks = documents(listed, random);
  hooks.blocks = BlockSize{64, 128};
  listed.causal = false, listed.hooks = std::make_shared<const Hooks>(hooks);
  expectSameBitsOf(problems, 3);
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionBackwardRuns, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

TEST_P(AttentionDecode, ThousandRunsGiveTheSameBits) {
  std::mt19937_64 lengths(60);
  DecodeProblem p = decoding(3, {0, 300});
  while (p.lengths.size() < (on->emulated() ? 4u : 60u))
    p.lengths.push_back(static_cast<std::int64_t>(lengths() % 300));
  p.of.batch = std::ssize(p.lengths);
  p.of.heads = 4, p.of.keyHeads = 2, p.of.causal = true, p.pageSize = 16, p.splits = 3;
  onEveryDeviceOfRuns(on, GetParam(), p.text(), [&] {
    const DecodeData d = randomDecodeData(p, random);
    const PreparedDecode call = prepare(*on->device, p, d, random);
    const AttentionDecodeOperation operation(*on->jit);
    expectSameBits(*on->device, {&call.o, &call.lse}, numberOfRuns(*on),
                   [&] { return runInPoison(*on->device, operation, call.arguments); });
    compare(p.of, define(p, d), define(p, d, /*roundSteps=*/true), {download(call.o), download(call.lse)});
  });
}

/// Launches one after the other, the host waits for none; the outputs are those of the last.
TEST_P(AttentionForward, BackToBackLaunches) {
  Problem p = with(64, on->emulated() ? 300 : 8192);
  p.heads = on->emulated() ? 2 : 16, p.keyHeads = 2, p.causal = true;
  const Data d = randomData(p, random);
  const PreparedCall call = prepare(*on->device, p, d);
  AttentionOperation operation(*on->jit);
  for (unsigned i = 0; i < (on->emulated() ? 2u : 100u); ++i) {
    const Status s = operation.run(call.arguments);
    ASSERT_TRUE(s.ok()) << s.toString();
  }
  compare(p, d, run(call));
}

/// The same of gradients, in the workspace that the Jit keeps: sums of dq begin at 0 each time.
TEST_P(AttentionBackward, BackToBackLaunches) {
  if (!isOneOf({2}))
    return;
  Problem p = with(64, on->emulated() ? 300 : 8192);
  p.heads = on->emulated() ? 2 : 16, p.keyHeads = 2, p.causal = true;
  const Data d = randomData(p, random);
  const LossGradients g = randomGradients(p, false, random);
  const PreparedGradients call = prepared(p, d, g);
  const AttentionBackwardOperation operation(*on->jit);
  for (unsigned i = 0; i < (on->emulated() ? 2u : 100u); ++i) {
    const Status s = operation.run(call.arguments);
    ASSERT_TRUE(s.ok()) << s.toString();
  }
  for (const Finding &f : on->device->takeFindings())
    ADD_FAILURE() << f.message;
  compareGradients(p, d, g, call, {download(call.dq), download(call.dk), download(call.dv)});
}

} // namespace
} // namespace kiln::test
