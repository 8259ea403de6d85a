//===- MatmulSplitTest.cpp - Products whose K is split, and callers' epilogues ------===//
#include "tests/kernels/MatmulHarness.h"

#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;
using language::f32;
using language::Tile;

TEST_P(Matmul, SplitK) {
  unsigned number = 0;
  for (const bool deterministic : {true, false})
    for (const std::int64_t splits : {2, 5, 17}) { // of 9 steps: whole ones, cut ones, programs without any
      if (!chosen(number++, 4))
        continue;
      Problem p{DType::BF16, DType::BF16, 0, 70, 100, 270};
      p.splits = splits, p.deterministic = deterministic;
      check(p);
    }
}

TEST_P(Matmul, SplitKOfEveryTypeStrideAndBatch) {
  unsigned number = 0;
  for (const bool deterministic : {true, false}) {
    for (const auto &[type, out] : {std::pair(DType::F16, DType::F32),
                                    {DType::F8E4M3, DType::F16},
                                    {DType::I8, DType::I32},
                                    {DType::F32, DType::F32}}) {
      if (!chosen(number++, 4))
        continue;
      Problem p{type, out, 3, 33, 40, 150};
      p.splits = 3, p.deterministic = deterministic;
      p.outColumns = type == DType::F16;
      p.pad = 2;
      check(p);
    }
    Problem odd{DType::F16, DType::F16, 2, 33, 41, 150};
    odd.splits = 3, odd.deterministic = deterministic;
    odd.around = 5; // tensors at no multiple of 4 bytes
    check(odd);
    Problem empty{DType::F16, DType::F16, 0, 5, 3, 0};
    empty.splits = 4, empty.deterministic = deterministic;
    check(empty);
  }
}

TEST_P(Matmul, SplitKRunsTheEpilogueOnce) {
  Problem p{DType::F16, DType::F16, 0, 33, 70, 200};
  p.bias = true;
  p.scale = 0.25f;
  p.activation = Activation::Gelu;
  for (const bool deterministic : {true, false}) {
    p.splits = 4, p.deterministic = deterministic;
    check(p);
  }
}

/// As many parts as fill the device; one where the device's size is unknown or K is short.
TEST_P(Matmul, SplitsOfZeroFillTheDevice) {
  const Operand a = operand(DType::F16, {64, 4096}), b = operand(DType::F16, {4096, 64}),
                out = output(DType::F32, {64, 64});
  MatmulArguments arguments{a.tensor, b.tensor, out.tensor};
  arguments.splits = 0;
  MatmulOperation operation(*on->jit);
  // Parts have eight steps at least; those of warpgroups are twice as deep.
  const std::int64_t processors = on->device->info().multiprocessors,
                     parts = std::min<std::int64_t>(processors, multipliesByWarpgroups(*on) ? 8 : 16);
  EXPECT_EQ(operation.workspaceBytes(arguments), parts > 1 ? static_cast<std::size_t>(parts) * 64 * 64 * 4 : 0u);
  Problem p{DType::F16, DType::F32, 0, 40, 50, 600};
  p.splits = 0;
  check(p);
}

/// A caller's code over the tile: position in out, another tensor, functions of the front end.
TEST_P(Matmul, CallersEpilogue) {
  Hook gate;
  gate.recorded = [](const Tile<f32> &x, const EpilogueTile &at) { return x * at.other(); };
  gate.wanted = [](double x, std::int64_t, std::int64_t, double other) { return x * other; };
  gate.steep = 8; // normal numbers
  gate.other = true;
  Hook triangle; // below the diagonal alone
  triangle.recorded = [](const Tile<f32> &x, const EpilogueTile &at) {
    return language::select(at.columnIndices() <= at.rowIndices(), x, 0.0f);
  };
  triangle.wanted = [](double x, std::int64_t row, std::int64_t column, double) { return column <= row ? x : 0; };
  Hook soft;
  soft.recorded = [](const Tile<f32> &x, const EpilogueTile &) { return language::tanh(x * 0.125f) * 8.0f; };
  soft.wanted = [](double x, std::int64_t, std::int64_t, double) { return 8 * std::tanh(x / 8); };
  unsigned number = 0;
  for (const Hook &hook : {gate, triangle, soft})
    for (const std::int64_t splits : {1, 3}) {
      if (!chosen(number++, 4))
        continue;
      Problem p{DType::BF16, DType::F32, 2, 70, 150, 130};
      p.hook = hook, p.splits = splits;
      check(p);
      p.bias = true, p.scale = 0.5f, p.activation = Activation::Silu; // these come first
      p.out = DType::BF16;
      p.outColumns = true;
      check(p);
    }
}

/// Operations with different epilogues of one Jit keep to their own; composed ones run in order.
TEST_P(Matmul, EpiloguesDoNotMix) {
  const auto plus = [](float c) { return [c](const Tile<f32> &x, const EpilogueTile &) { return x + c; }; };
  const Operand a = operand(DType::F16, {16, 32}), b = operand(DType::F16, {32, 8});
  const auto result = [&](Epilogue epilogue) {
    const Operand out = output(DType::F32, {16, 8});
    MatmulOperation operation(*on->jit, std::move(epilogue));
    const Status s = operation.run({a.tensor, b.tensor, out.tensor});
    EXPECT_TRUE(s.ok()) << s.toString();
    return download(out);
  };
  const std::vector<double> plain = result({}), one = result(plus(1)), two = result(plus(2)),
                            relu = result(inOrder({plus(-1), activated(Activation::Relu), {}, plus(3)}));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto x = static_cast<float>(plain[i]);
    EXPECT_EQ(one[i], x + 1.0f);
    EXPECT_EQ(two[i], x + 2.0f);
    EXPECT_EQ(relu[i], std::max(x - 1.0f, 0.0f) + 3.0f);
  }
}

/// out = a x b + out.
TEST_P(Matmul, EpilogueInPlace) {
  const Operand a = operand(DType::F16, {130, 64}), b = operand(DType::F16, {64, 70});
  const Epilogue add = [](const Tile<f32> &x, const EpilogueTile &at) { return x + at.other(); };
  const Operand before = operand(DType::F32, {130, 70});
  for (const std::int64_t splits : {1, 2}) {
    const Operand apart = output(DType::F32, {130, 70}),
                  inPlace = upload(*on->device, DType::F32, {130, 70}, before.values);
    MatmulOperation operation(*on->jit, add);
    MatmulArguments arguments{a.tensor, b.tensor, apart.tensor};
    arguments.splits = splits;
    arguments.other = before.tensor;
    ASSERT_TRUE(operation.run(arguments).ok());
    arguments.out = inPlace.tensor;
    arguments.other = inPlace.tensor;
    ASSERT_TRUE(operation.run(arguments).ok());
    for (const Finding &f : on->device->takeFindings())
      ADD_FAILURE() << f.message;
    EXPECT_EQ(download(inPlace), download(apart));
  }
}

TEST_P(Matmul, WrongSplitsAndOthersAreRefused) {
  const Operand a = operand(DType::F16, {16, 32}), b = operand(DType::F16, {32, 8}), out = output(DType::F16, {16, 8}),
                bytes = operand(DType::I8, {16, 32}), byteColumns = operand(DType::I8, {32, 8}),
                sums = output(DType::I32, {16, 8});
  const Epilogue hook = [](const Tile<f32> &x, const EpilogueTile &at) { return x + at.other(); };
  const auto refused = [&](const Epilogue &epilogue, const MatmulArguments &arguments, const char *part) {
    MatmulOperation operation(*on->jit, epilogue);
    const Status s = operation.run(arguments);
    ASSERT_FALSE(s.ok()) << part;
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument) << s.toString();
    EXPECT_FALSE(s.remedy().empty()) << s.toString();
    EXPECT_NE(s.message().find(part), std::string::npos) << s.toString();
  };
  MatmulArguments good{a.tensor, b.tensor, out.tensor}, bad = good;
  bad.splits = -1;
  refused({}, bad, "splits = -1");
  bad.splits = 257;
  refused({}, bad, "splits = 257");
  bad = good;
  bad.other = a.tensor;
  refused({}, bad, "'other'");
  refused(hook, bad, "'other'"); // [16, 32] is not out's shape
  refused(hook, {bytes.tensor, byteColumns.tensor, sums.tensor}, "epilogue");
  refused(hook, good, "other()"); // called, and not given
  refused(biased(), good, "bias()");
}

} // namespace
} // namespace kiln::test
