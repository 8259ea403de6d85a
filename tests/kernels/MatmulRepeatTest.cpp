//===- MatmulRepeatTest.cpp - Matrix products: the same bits from every run ----------===//
#include "tests/kernels/MatmulHarness.h"
#include "tests/kernels/Repeat.h"

namespace kiln::test {
namespace {

using namespace kernels;

/// Whole, and split into parts that are added in their order.  A product of the same kind is compared with float64.
TEST_P(Matmul, ThousandRunsGiveTheSameBits) {
  unsigned number = 0;
  for (const std::int64_t splits : {1, 5})
    onEveryDeviceOfRuns(on, GetParam() + 3 * number++, "splits " + std::to_string(splits), [&] {
      const std::int64_t m = on->emulated() ? 150 : 700, n = on->emulated() ? 140 : 520, k = on->emulated() ? 170 : 900;
      const Operand a = operand(DType::BF16, {m, k}), b = operand(DType::BF16, {k, n}),
                    out = output(DType::F32, {m, n});
      MatmulArguments arguments{a.tensor, b.tensor, out.tensor};
      arguments.splits = splits;
      const MatmulOperation operation(*on->jit);
      expectSameBits(*on->device, {&out}, numberOfRuns(*on), [&] { return operation.run(arguments); });
      Problem p{DType::BF16, DType::F32, 0, m, n, k};
      p.splits = splits;
      check(p);
    });
}

} // namespace
} // namespace kiln::test
