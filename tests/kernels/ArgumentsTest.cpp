//===- ArgumentsTest.cpp - Wrong arguments are refused before a launch ---------===//
//
// Every refusal names the argument, its value and the limit, gives a remedy, compiles nothing and writes nothing.
//
//===----------------------------------------------------------------------===//
#include "kernels/add/AddOperation.h"
#include "kernels/copy/CopyOperation.h"
#include "kernels/cumsum/CumsumOperation.h"
#include "kernels/layer_norm/LayerNormOperation.h"
#include "kernels/reduce_sum/ReduceSumOperation.h"
#include "kernels/softmax/SoftmaxOperation.h"
#include "kernels/transpose/TransposeOperation.h"
#include "tests/kernels/Bench.h"

#include <algorithm>
#include <cmath>

namespace kiln::test {
namespace {

using namespace kernels;

class Arguments : public testing::Test {
protected:
  static constexpr std::size_t bufferBytes = 1 << 16;

  void SetUp() override {
    on = freshDevice(deviceNames().front());
    ASSERT_TRUE(on);
    for (auto *buffer : {&first, &second, &third}) {
      auto made = on->device->allocate(bufferBytes);
      ASSERT_TRUE(made.ok());
      *buffer = std::move(*made);
      ASSERT_TRUE((*buffer)->fill(std::byte(0xCD)).ok());
    }
    x = tensor(*first, {8, 16});
    y = tensor(*second, {8, 16});
    out = tensor(*third, {8, 16});
  }
  void TearDown() override {
    if (!on)
      return;
    EXPECT_EQ(on->jit->counters().compiles, 0u);
    EXPECT_TRUE(on->device->takeFindings().empty());
    for (auto *buffer : {&first, &second, &third}) {
      std::vector<std::byte> bytes(bufferBytes);
      ASSERT_TRUE((*buffer)->copyToHost(0, bytes).ok());
      EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte(0xCD); }));
      buffer->reset();
    }
  }

  Tensor tensor(const Buffer &buffer, std::initializer_list<std::int64_t> shape, DType dtype = DType::F32,
                std::size_t offset = 0) const {
    auto made = Tensor::dense(*on->device, buffer, dtype, shape, offset);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return made.ok() ? *made : Tensor{};
  }

  /// Runs and expects a refusal with all of `parts` in it.
  template <typename Op, typename Args>
  void refused(const Args &arguments, std::initializer_list<std::string> parts, const RunOptions &options = {}) {
    Op operation(*on->jit);
    expectRefused(operation.run(arguments, options), parts, std::string(operation.name()));
  }
  std::unique_ptr<Opened> on;
  std::unique_ptr<Buffer> first, second, third;
  Tensor x, y, out;
};

template <typename F> Tensor changed(Tensor t, F change) {
  change(t);
  return t;
}

/// What every operation with x and out refuses.
#define KILN_EVERY_OPERATION(check)                                                                                    \
  check(CopyOperation, CopyArguments);                                                                                 \
  check(SoftmaxOperation, SoftmaxArguments);                                                                           \
  check(CumsumOperation, CumsumArguments);                                                                             \
  check(LayerNormOperation, LayerNormArguments);                                                                       \
  check(TransposeOperation, TransposeArguments);                                                                       \
  check(ReduceSumOperation, ReduceSumArguments);                                                                       \
  check(AddOperation, AddArguments)

template <typename Args> Args argumentsOf(const Tensor &x, const Tensor &y, const Tensor &out) {
  Args a;
  a.x = x;
  a.out = out;
  if constexpr (std::is_same_v<Args, AddArguments>)
    a.y = y;
  if constexpr (std::is_same_v<Args, TransposeArguments>)
    a.out = out.transposed(0, 1);
  if constexpr (std::is_same_v<Args, ReduceSumArguments>) {
    a.out.rank = 1;
    a.out.shape[0] = 1;
  }
  return a;
}

TEST_F(Arguments, NullAddress) {
  const Tensor null = changed(x, [](Tensor &t) { t.address = 0; });
  const Tensor nullOut = changed(out, [](Tensor &t) { t.address = 0; });
#define KILN_CHECK(Op, Args)                                                                                           \
  refused<Op>(argumentsOf<Args>(null, y, out), {"'x'", "null pointer", "[8, 16]"});                                    \
  refused<Op>(argumentsOf<Args>(x, y, nullOut), {"'out'", "null pointer"})
  KILN_EVERY_OPERATION(KILN_CHECK);
#undef KILN_CHECK
  refused<AddOperation>(AddArguments{x, changed(y, [](Tensor &t) { t.address = 0; }), out}, {"'y'", "null pointer"});
}

TEST_F(Arguments, OtherDevice) {
  auto other = freshDevice("emulator:sm_80");
  ASSERT_TRUE(other);
  const auto move = [&](Tensor &t) { t.device = other->device.get(); };
  const std::string here = on->device->info().name;
#define KILN_CHECK(Op, Args)                                                                                           \
  refused<Op>(argumentsOf<Args>(changed(x, move), y, out), {"'x'", "emulator:sm_80", here});                           \
  refused<Op>(argumentsOf<Args>(x, y, changed(out, move)), {"'out'", "emulator:sm_80", here});                         \
  refused<Op>(argumentsOf<Args>(x, y, changed(out, [](Tensor &t) { t.device = nullptr; })),                            \
              {"'out'", "no device", here})
  KILN_EVERY_OPERATION(KILN_CHECK);
#undef KILN_CHECK
}

TEST_F(Arguments, Misaligned) {
  const auto shift = [](Tensor &t) { t.address += 2; };
#define KILN_CHECK(Op, Args)                                                                                           \
  refused<Op>(argumentsOf<Args>(changed(x, shift), y, out), {"'x'", "0x", "4 bytes of f32"});                          \
  refused<Op>(argumentsOf<Args>(x, y, changed(out, shift)), {"'out'", "0x", "4 bytes of f32"})
  KILN_EVERY_OPERATION(KILN_CHECK);
#undef KILN_CHECK
}

TEST_F(Arguments, TypesDiffer) {
  const Tensor half = tensor(*third, {8, 16}, DType::F16);
#define KILN_CHECK(Op, Args) refused<Op>(argumentsOf<Args>(x, y, half), {"'out'", "f16", "'x'", "f32"})
  KILN_EVERY_OPERATION(KILN_CHECK);
#undef KILN_CHECK
  refused<AddOperation>(AddArguments{x, tensor(*second, {8, 16}, DType::BF16), out}, {"'y'", "bf16", "f32"});
}

TEST_F(Arguments, TypesThatTheKernelDoesNotCompute) {
  for (DType t : {DType::I32, DType::F64, DType::U8, DType::F8E4M3, DType::I1}) {
    const Tensor a = tensor(*first, {8, 16}, t), b = tensor(*second, {8, 16}, t), c = tensor(*third, {8, 16}, t);
    const std::string name(dtypeName(t));
#define KILN_CHECK(Op, Args) refused<Op>(argumentsOf<Args>(a, b, c), {"'x'", name, "f32", "f16", "bf16"})
    KILN_CHECK(SoftmaxOperation, SoftmaxArguments);
    KILN_CHECK(CumsumOperation, CumsumArguments);
    KILN_CHECK(LayerNormOperation, LayerNormArguments);
    KILN_CHECK(ReduceSumOperation, ReduceSumArguments);
    KILN_CHECK(AddOperation, AddArguments);
#undef KILN_CHECK
  }
}

TEST_F(Arguments, Rank) {
  const Tensor three = tensor(*first, {2, 4, 16}), threeOut = tensor(*third, {2, 4, 16});
  refused<SoftmaxOperation>(SoftmaxArguments{three, threeOut}, {"'x'", "rank 3", "[2, 4, 16]", "1 to 2"});
  refused<CumsumOperation>(CumsumArguments{three, threeOut}, {"'x'", "rank 3", "1 to 2"});
  refused<LayerNormOperation>(argumentsOf<LayerNormArguments>(three, y, threeOut), {"'x'", "rank 3", "1 to 2"});
  refused<TransposeOperation>(TransposeArguments{three, threeOut}, {"'x'", "rank 3", "takes 2"});
  refused<SoftmaxOperation>(SoftmaxArguments{tensor(*first, {}), tensor(*third, {})}, {"'x'", "rank 0", "1 to 2"});
  refused<TransposeOperation>(TransposeArguments{x, tensor(*third, {128})}, {"'out'", "rank 1", "takes 2"});
  const Tensor five = tensor(*first, {2, 2, 2, 4, 4}), fiveOut = tensor(*third, {2, 2, 2, 4, 4});
  refused<CopyOperation>(CopyArguments{five, fiveOut}, {"'x'", "rank 5", "0 to 4"});
  refused<AddOperation>(AddArguments{five, five, fiveOut}, {"'x'", "rank 5", "0 to 4"});
  const Tensor bad = changed(x, [](Tensor &t) { t.rank = 99; });
#define KILN_CHECK(Op, Args) refused<Op>(argumentsOf<Args>(bad, y, out), {"'x'", "rank 99", "8"})
  KILN_EVERY_OPERATION(KILN_CHECK);
#undef KILN_CHECK
}

TEST_F(Arguments, Shape) {
  const Tensor other = tensor(*third, {16, 8});
  refused<CopyOperation>(CopyArguments{x, other}, {"'out'", "[16, 8]", "'x'", "[8, 16]"});
  refused<SoftmaxOperation>(SoftmaxArguments{x, other}, {"'out'", "[16, 8]", "[8, 16]"});
  refused<CumsumOperation>(CumsumArguments{x, other}, {"'out'", "[16, 8]", "[8, 16]"});
  refused<LayerNormOperation>(argumentsOf<LayerNormArguments>(x, y, other), {"'out'", "[16, 8]", "[8, 16]"});
  refused<AddOperation>(AddArguments{x, y, other}, {"'out'", "[16, 8]", "[8, 16]"});
  refused<AddOperation>(AddArguments{x, tensor(*second, {8, 15}), out}, {"'y'", "[8, 15]", "[8, 16]"});
  refused<TransposeOperation>(TransposeArguments{x, out}, {"'out'", "extent 8", "dimension 0", "16", "columns of x"});
  refused<TransposeOperation>(TransposeArguments{x, tensor(*third, {16, 9})},
                              {"'out'", "extent 9", "dimension 1", "8"});
  refused<ReduceSumOperation>(ReduceSumArguments{x, tensor(*third, {2})}, {"out", "[2]", "one element"});
  refused<ReduceSumOperation>(ReduceSumArguments{x, tensor(*third, {0})}, {"out", "[0]", "one element"});
  const Tensor negative = changed(x, [](Tensor &t) { t.shape[0] = -3; });
#define KILN_CHECK(Op, Args) refused<Op>(argumentsOf<Args>(negative, y, out), {"'x'", "-3", "dimension 0"})
  KILN_EVERY_OPERATION(KILN_CHECK);
#undef KILN_CHECK
}

TEST_F(Arguments, Strides) {
  const auto flatten = [](Tensor &t) { t.strides[0] = 0; };
#define KILN_CHECK(Op, Args) refused<Op>(argumentsOf<Args>(x, y, changed(out, flatten)), {"'out'", "stride", "is 0"})
  KILN_CHECK(CopyOperation, CopyArguments);
  KILN_CHECK(AddOperation, AddArguments);
  KILN_CHECK(SoftmaxOperation, SoftmaxArguments);
  KILN_CHECK(LayerNormOperation, LayerNormArguments);
  KILN_CHECK(CumsumOperation, CumsumArguments);
  KILN_CHECK(TransposeOperation, TransposeArguments);
#undef KILN_CHECK
  // A sum of many dimensions takes dense tensors only.
  refused<ReduceSumOperation>(ReduceSumArguments{x.transposed(0, 1), tensor(*third, {1})}, {"'x'", "dense", "[1, 16]"});
  const Tensor far = changed(x, [](Tensor &t) { t.strides[0] = std::int64_t(1) << 62; });
#define KILN_CHECK(Op, Args) refused<Op>(argumentsOf<Args>(far, y, out), {"'x'", "2^63"})
  KILN_EVERY_OPERATION(KILN_CHECK);
#undef KILN_CHECK
}

TEST_F(Arguments, Overlap) {
  const Tensor shifted = tensor(*first, {8, 16}, DType::F32, 64);
#define KILN_CHECK(Op, Args) refused<Op>(argumentsOf<Args>(x, y, shifted), {"'out'", "overlaps", "'x'", "0x"})
  KILN_CHECK(CopyOperation, CopyArguments);
  KILN_CHECK(AddOperation, AddArguments);
  KILN_CHECK(SoftmaxOperation, SoftmaxArguments);
  KILN_CHECK(LayerNormOperation, LayerNormArguments);
  KILN_CHECK(CumsumOperation, CumsumArguments);
  KILN_CHECK(TransposeOperation, TransposeArguments);
  KILN_CHECK(ReduceSumOperation, ReduceSumArguments);
#undef KILN_CHECK
  refused<AddOperation>(AddArguments{x, y, tensor(*second, {8, 16}, DType::F32, 256)}, {"'out'", "overlaps", "'y'"});
  // The same memory with other strides.
  const Tensor square = tensor(*first, {16, 16});
  refused<CopyOperation>(CopyArguments{square, square.transposed(0, 1)}, {"'out'", "overlaps", "'x'"});
  refused<TransposeOperation>(TransposeArguments{square, square}, {"'out'", "overlaps", "'x'"});
}

TEST_F(Arguments, LayerNormParameters) {
  const auto with = [&](const Tensor &weight, const Tensor &bias, float eps = 1e-5f) {
    return LayerNormArguments{x, weight, bias, out, eps};
  };
  const Tensor w = tensor(*second, {16}), b = tensor(*second, {16}, DType::F32, 1024);
  refused<LayerNormOperation>(with({}, {}, -1.0f), {"eps", "-1"});
  refused<LayerNormOperation>(with({}, {}, NAN), {"eps", "nan"});
  refused<LayerNormOperation>(with(w, {}), {"'bias'"});
  refused<LayerNormOperation>(with({}, b), {"'weight'"});
  refused<LayerNormOperation>(with(changed(w, [](Tensor &t) { t.address = 0; }), b), {"'weight'", "null pointer"});
  refused<LayerNormOperation>(with(changed(w, [](Tensor &t) { t.address = 0; }), {}), {"'weight'", "null pointer"});
  refused<LayerNormOperation>(with(tensor(*second, {8}), b), {"'weight'", "extent 8", "16", "columns of x"});
  refused<LayerNormOperation>(with(w, tensor(*second, {17})), {"'bias'", "extent 17", "16"});
  refused<LayerNormOperation>(with(w, tensor(*second, {1, 16})), {"'bias'", "rank 2", "takes 1"});
  refused<LayerNormOperation>(with(w, tensor(*second, {16}, DType::F16)), {"'bias'", "f16", "f32"});
  refused<LayerNormOperation>(with(changed(w, [](Tensor &t) { t.strides[0] = 2; }), b), {"'weight'", "dense", "[2]"});
  // The output must not lie on them either.
  refused<LayerNormOperation>(with(tensor(*third, {16}), b), {"'out'", "overlaps", "'weight'"});
  refused<LayerNormOperation>(with(w, tensor(*third, {16}, DType::F32, 64)), {"'out'", "overlaps", "'bias'"});
}

TEST_F(Arguments, Workspace) {
  const ReduceSumArguments a{x, tensor(*third, {1})};
  ReduceSumOperation operation(*on->jit);
  const std::size_t needed = operation.workspaceBytes(a);
  ASSERT_GT(needed, 0u);
  refused<ReduceSumOperation>(a, {"reduce_sum", std::to_string(needed - 1), std::to_string(needed)},
                              {.workspace = second->address(), .workspaceBytes = needed - 1});
  refused<ReduceSumOperation>(a, {"reduce_sum", "workspace", "256"},
                              {.workspace = second->address() + 4, .workspaceBytes = 4096});
}

TEST_F(Arguments, UnknownKernel) {
  const auto found = findFamily("sofmax");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.status().toString().find("'sofmax'"), std::string::npos);
  EXPECT_NE(found.status().toString().find("softmax"), std::string::npos) << found.status().toString();
}

TEST_F(Arguments, NothingToDo) {
  // No elements: no launch, and a null pointer is right.
  for (const auto &shape : {std::pair<std::int64_t, std::int64_t>{0, 16}, {8, 0}}) {
    const auto empty = [&](Tensor &t) {
      t.shape[0] = shape.first;
      t.shape[1] = shape.second;
      t.address = 0;
    };
    const Tensor a = changed(x, empty), b = changed(y, empty), c = changed(out, empty);
#define KILN_CHECK(Op, Args)                                                                                           \
  {                                                                                                                    \
    Op operation(*on->jit);                                                                                            \
    const Status s = operation.run(argumentsOf<Args>(a, b, c));                                                        \
    EXPECT_TRUE(s.ok()) << s.toString();                                                                               \
  }
    KILN_CHECK(CopyOperation, CopyArguments);
    KILN_CHECK(AddOperation, AddArguments);
    KILN_CHECK(SoftmaxOperation, SoftmaxArguments);
    KILN_CHECK(LayerNormOperation, LayerNormArguments);
    KILN_CHECK(CumsumOperation, CumsumArguments);
    KILN_CHECK(TransposeOperation, TransposeArguments);
#undef KILN_CHECK
  }
}

} // namespace
} // namespace kiln::test
