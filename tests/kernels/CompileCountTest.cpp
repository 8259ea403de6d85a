//===- CompileCountTest.cpp - One compile serves many lengths ------------------===//
#include "tests/kernels/Bench.h"

namespace kiln::test {
namespace {

using namespace kernels;

class CompileCount : public testing::Test {
protected:
  void SetUp() override {
    on = freshDevice(deviceNames().front());
    ASSERT_TRUE(on);
  }
  std::uint64_t compiles() const { return on->jit->counters().compiles; }
  void run(const std::string &family, const Shape &shape, Place place = Place::Dense, DType dtype = DType::F32) {
    TensorTypes types = {{"x", {dtype, shape}}};
    if (family == "add")
      types["y"] = types["x"];
    Case c{family, randomInputs(familyOf(family), types, 7), {}, {}, {}};
    for (const char *name : {"x", "y", "out"})
      c.places[name] = place;
    runCase(*on, std::move(c));
  }
  std::unique_ptr<Opened> on;
};

TEST_F(CompileCount, FlatKernelsTakeAnyLength) {
  for (std::uint64_t n : {1, 2, 31, 32, 1000, 1024, 4097, 65536})
    run("copy", {n});
  EXPECT_EQ(compiles(), 1u);
  for (std::uint64_t n : {1, 31, 1000, 4096, 4097})
    run("add", {n});
  EXPECT_EQ(compiles(), 2u);
  // Types of one size share copy.
  run("copy", {1000}, Place::Dense, DType::F32);
  EXPECT_EQ(compiles(), 2u);
  // An address that 16 does not divide is a class of its own; so is its length.
  for (std::uint64_t n : {1, 31, 1000, 4097})
    run("copy", {n}, Place::Offset);
  EXPECT_EQ(compiles(), 3u);
}

TEST_F(CompileCount, ReduceSumTakesAnyLength) {
  for (std::uint64_t n : {1, 31, 1000, 2048, 4097, 70000})
    run("reduce_sum", {n});
  EXPECT_EQ(compiles(), 2u) << "one for each of its two launches";
}

TEST_F(CompileCount, RowKernelsTakeTheLengthsOfATile) {
  std::uint64_t expected = 0;
  for (const char *family : {"softmax", "layer_norm", "cumsum"}) {
    // Odd: nothing is known of the strides between rows.
    for (std::uint64_t columns : {513, 515, 777, 1001, 1023})
      run(family, {3, columns});
    EXPECT_EQ(compiles(), ++expected) << family;
    // Whole 16 bytes, which four f32 make: another class, again one for all.
    for (std::uint64_t columns : {516, 528, 640, 1004, 1008, 1024})
      run(family, {3, columns});
    EXPECT_EQ(compiles(), ++expected) << family;
  }
}

TEST_F(CompileCount, RowsLongerThanATileShareAKernel) {
  for (std::uint64_t columns : {16385, 20001, 40003})
    run("softmax", {2, columns});
  EXPECT_EQ(compiles(), 1u);
}

} // namespace
} // namespace kiln::test
