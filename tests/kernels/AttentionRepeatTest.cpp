//===- AttentionRepeatTest.cpp - Attention forward: the same bits from every run -----===//
#include "tests/kernels/AttentionHarness.h"
#include "tests/kernels/Repeat.h"

namespace kiln::test {
namespace {

using namespace kernels;

/// A packed batch of 60 sequences, the shortest below one tile; the first run is compared with float64.
TEST_P(AttentionForward, ThousandRunsGiveTheSameBits) {
  std::mt19937_64 lengths(60);
  Problem causal;
  for (unsigned b = 0; b < (on->emulated() ? 5u : 60u); ++b) {
    causal.lengthsQ.push_back(static_cast<std::int64_t>(lengths() % 150));
    causal.lengthsK.push_back(static_cast<std::int64_t>(lengths() % 200));
  }
  causal.heads = 4, causal.causal = true;
  Problem window = causal;
  window.causal = false, window.left = 40, window.right = 10, window.sink = true;
  window.type = DType::F16, window.heads = window.keyHeads = 1, window.dim = 192, window.dimV = 128;
  Opened *const usual = on;
  const std::string name = deviceName();
  unsigned number = 0;
  for (const Problem &p : {causal, window})
    for (const Opening &how : openingsOfRuns(*usual, GetParam() + 3 * number++)) {
      const std::unique_ptr<Opened> other = openWith(name, how);
      ASSERT_TRUE(other);
      on = other.get();
      SCOPED_TRACE(textOf(how) + ", " + p.text());
      {
        const Data d = randomData(p, random);
        const PreparedCall call = prepare(*on->device, p, d);
        AttentionOperation operation(*on->jit);
        expectSameBits(*on->device, {&call.o, &call.lse}, numberOfRuns(*on),
                       [&] { return operation.run(call.arguments); });
        compare(p, d, {download(call.o), download(call.lse)});
      }
      on = usual;
      if (HasFatalFailure())
        return;
    }
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

} // namespace
} // namespace kiln::test
