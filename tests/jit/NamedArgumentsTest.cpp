// Launches by name: where each value goes, and what is refused with which words.
#include "kiln/Tensor.h"
#include "tests/jit/JitFixture.h"

#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

/// x and out are tensors of 2 dimensions, y one that may be left out, n a number.
KernelSource tensorSource() {
  KernelSource out;
  out.name = "add";
  out.fileName = "add.cpp";
  std::string program;
  const auto add = [&](const std::string &name, const std::string &type, std::optional<TensorPart> part) {
    out.arguments.push_back({name, type, Specialise::None, 1, part});
    program += "argument " + name + " " + type + "\n";
  };
  using Role = TensorPart::Role;
  const auto tensor = [&](const std::string &name, std::uint8_t rank, bool optional) {
    add(name, "ptr<f32>", TensorPart{name, Role::Pointer, 0, rank, optional});
    for (std::uint8_t d = 0; d < rank; ++d)
      add(name + "_extent_" + std::to_string(d), "i64", TensorPart{name, Role::Extent, d, rank, optional});
    for (std::uint8_t d = 0; d < rank; ++d)
      add(name + "_stride_" + std::to_string(d), "i64", TensorPart{name, Role::Stride, d, rank, optional});
  };
  tensor("x", 2, false);
  add("n", "i32", {});
  tensor("y", 1, true);
  add("p", "ptr<f32>", {});
  out.programText = program + "ptx\n" + addPtx;
  return out;
}

Tensor tensorOf(DeviceAddress address, std::initializer_list<std::int64_t> shape,
                std::initializer_list<std::int64_t> strides) {
  Tensor t;
  t.address = address;
  t.rank = static_cast<unsigned>(shape.size());
  std::copy(shape.begin(), shape.end(), t.shape.begin());
  std::copy(strides.begin(), strides.end(), t.strides.begin());
  return t;
}

class NamedArguments : public NullJitTest {
protected:
  void SetUp() override {
    NullJitTest::SetUp();
    kernel = kernelOf(*nullJit, tensorSource());
    ASSERT_TRUE(kernel);
  }
  JitKernel *kernel = nullptr;
  const Tensor x = tensorOf(256, {3, 5}, {7, 1}), y = tensorOf(512, {9}, {2});
};

struct Packed {
  std::uint64_t x;
  std::int64_t xExtents[2], xStrides[2];
  std::int32_t n;
  std::uint64_t y;
  std::int64_t yExtent, yStride;
  std::uint64_t p;
};

/// One call site for kernels with and without a tensor: an empty one is nothing given, another is refused.
TEST_F(NamedArguments, AnEmptyTensorThatTheKernelLacksIsNone) {
  const auto launch = [&](const Tensor &more) {
    return kernel->launch({1}, nullptr, named<"x">(x), named<"n">(1), named<"p">(std::uint64_t(0)), named<"z">(more));
  };
  EXPECT_TRUE(launch(Tensor()).ok());
  const Status given = launch(y);
  EXPECT_FALSE(given.ok());
  EXPECT_NE(given.toString().find("there is no argument 'z'"), std::string::npos) << given.toString();
  EXPECT_TRUE(launch(Tensor()).ok());
  JitKernel *const other = kernelOf(*nullJit, tensorSource());
  ASSERT_TRUE(other);
  const Status first =
      other->launch({1}, nullptr, named<"x">(x), named<"n">(1), named<"p">(std::uint64_t(0)), named<"more">(y));
  EXPECT_NE(first.toString().find("there is no argument 'more'"), std::string::npos) << first.toString();
}

TEST_F(NamedArguments, GoWhereTheKernelHasThem) {
  const auto launched = [&](const Status &status, const Packed &wanted) {
    ASSERT_TRUE(status.ok()) << status.toString();
    auto loaded = kernel->prepare(nullptr, named<"x">(x), named<"n">(1), named<"p">(std::uint64_t(0)));
    ASSERT_TRUE(loaded.ok()) << loaded.status().toString();
    const auto &ran = dynamic_cast<NullKernel &>((*loaded)->function());
    Packed got{};
    std::memcpy(&got.x, ran.lastArguments, 40);
    std::memcpy(&got.n, ran.lastArguments + 40, 4);
    std::memcpy(&got.y, ran.lastArguments + 48, 32);
    EXPECT_EQ(got.x, wanted.x);
    EXPECT_TRUE(std::ranges::equal(got.xExtents, wanted.xExtents));
    EXPECT_TRUE(std::ranges::equal(got.xStrides, wanted.xStrides));
    EXPECT_EQ(got.n, wanted.n);
    EXPECT_EQ(got.y, wanted.y);
    EXPECT_EQ(got.yExtent, wanted.yExtent);
    EXPECT_EQ(got.yStride, wanted.yStride);
    EXPECT_EQ(got.p, wanted.p);
  };
  for (int round = 0; round < 3; ++round) { // the first one makes the binding, others use it
    launched(
        kernel->launch({1}, nullptr, named<"n">(round), named<"x">(x), named<"p">(std::uint64_t(64)), named<"y">(y)),
        {256, {3, 5}, {7, 1}, round, 512, 9, 2, 64});
    launched(kernel->launch({1}, nullptr, named<"p">(x), named<"x">(x), named<"n">(7)),
             {256, {3, 5}, {7, 1}, 7, 0, 0, 0, 256});
    launched(kernel->launch({1}, nullptr, named<"p">(x), named<"x">(x), named<"n">(8), named<"y">(Tensor())),
             {256, {3, 5}, {7, 1}, 8, 0, 0, 0, 256});
  }
}

TEST_F(NamedArguments, AreRefusedByName) {
  const auto refused = [](const Status &status, const char *words) {
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << words;
    EXPECT_NE(status.message().find(words), std::string::npos) << status.toString();
    EXPECT_FALSE(status.remedy().empty()) << words;
  };
  const std::uint64_t p = 0;
  for (int round = 0; round < 2; ++round) {
    refused(kernel->launch({1}, nullptr, named<"x">(x), named<"p">(p)), "kernel 'add': the argument 'n' is missing");
    refused(kernel->launch({1}, nullptr, named<"n">(1), named<"p">(p)), "the argument 'x' is missing");
    refused(kernel->launch({1}, nullptr, named<"x">(x), named<"n">(1), named<"p">(p), named<"m">(1)),
            "there is no argument 'm'");
    refused(kernel->launch({1}, nullptr, named<"x">(x), named<"n">(1), named<"p">(p), named<"n">(1)),
            "the argument 'n' is given twice");
    refused(kernel->launch({1}, nullptr, named<"x">(x), named<"n">(1.0f), named<"p">(p)),
            "the argument 'n' is i32, f32 was given");
    refused(kernel->launch({1}, nullptr, named<"x">(p), named<"n">(1), named<"p">(p)),
            "the argument 'x' is a tensor of 2 dimensions");
    refused(kernel->launch({1}, nullptr, named<"x">(y), named<"n">(1), named<"p">(p)),
            "the tensor 'x' has 1 dimensions, not 2");
    Tensor half = x;
    half.dtype = DType::F16;
    refused(kernel->launch({1}, nullptr, named<"x">(half), named<"n">(1), named<"p">(p)),
            "argument 0 'x' is a pointer to f32, a tensor of f16 was given");
  }
  // A part of a tensor is no argument of a launch.
  refused(
      kernel->launch({1}, nullptr, named<"x">(x), named<"x_extent_0">(std::int64_t(1)), named<"n">(1), named<"p">(p)),
      "there is no argument 'x_extent_0'");
}

template <int i> bool preparesFrom(JitKernel &kernel, const Tensor &x) {
  return kernel.prepare(nullptr, named<"x">(x), named<"n">(i), named<"p">(std::uint64_t(4 * i))).ok();
}

/// More call sites than have a place of their own, bound by several threads at once.
TEST_F(NamedArguments, ManyThreadsBindAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  const auto sites = [&]<int... i>(std::integer_sequence<int, i...>) { return (preparesFrom<i>(*kernel, x) && ...); };
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        good += sites(std::make_integer_sequence<int, 4>()) &&
                kernel->prepare(nullptr, named<"p">(x), named<"x">(x), named<"n">(i)).ok() &&
                kernel->prepare(nullptr, named<"p">(x), named<"n">(i), named<"x">(x)).ok() &&
                kernel->prepare(nullptr, named<"n">(i), named<"p">(x), named<"x">(x)).ok() &&
                kernel->prepare(nullptr, named<"n">(i), named<"x">(x), named<"p">(x)).ok() &&
                kernel->prepare(nullptr, named<"x">(x), named<"p">(x), named<"n">(i)).ok() &&
                kernel->prepare(nullptr, named<"x">(x), named<"n">(i), named<"p">(x)).ok() &&
                kernel->prepare(nullptr, named<"y">(y), named<"x">(x), named<"n">(i), named<"p">(x)).ok() &&
                kernel->prepare(nullptr, named<"x">(x), named<"y">(y), named<"n">(i), named<"p">(x)).ok() &&
                kernel->prepare(nullptr, named<"x">(x), named<"n">(i), named<"y">(y), named<"p">(x)).ok();
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(good, 400);
}

} // namespace
