//===- TrafficTest.cpp - Counters of every kernel against its closed forms --------===//
#include "tests/kernels/Bench.h"

#include <bit>
#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using namespace kernels;

class KernelTraffic : public testing::TestWithParam<FamilyOnDevice> {};

/// Shapes that fill nothing, whole tiles, cut ones, rows that fit no tile; lengths that are multiples of 16 and not.
std::vector<Shape> shapesFor(std::string_view family) {
  if (family == "transpose")
    return {{1, 1}, {64, 128}, {300, 500}, {65, 31}};
  if (family == "copy" || family == "add" || family == "reduce_sum")
    return {{1}, {4096}, {5000}, {70001}};
  return {{3, 31},  {1, 32},   {33, 32},  {9, 48},    {9, 100},   {9, 112},  {9, 128},
          {9, 256}, {3, 2000}, {5, 1000}, {1, 16384}, {2, 20001}, {2, 20000}};
}

void check(const Family &family, Opened &on, const TensorTypes &types) {
  const TensorType &x = types.at("x");
  SCOPED_TRACE(std::string(dtypeName(x.dtype)) + " " + shapeText(x.shape) + (types.count("weight") ? " affine" : ""));
  const std::vector<Traffic> wanted = family.reference->traffic(types);
  // The only shapes of which nothing is stated: see layer_norm.
  if (types.count("weight") && x.dtype != DType::F32 && x.shape.back() <= 512 && std::has_single_bit(x.shape.back())) {
    EXPECT_TRUE(wanted.empty());
    return;
  }
  ASSERT_FALSE(wanted.empty());
  on.device->takeCounters();
  ASSERT_TRUE(on.device->record({.counters = true}).ok());
  const auto ran = runCall(*on.jit, *family.callable, randomInputs(family, types, 5), {});
  EXPECT_TRUE(on.device->record({}).ok());
  ASSERT_TRUE(ran.ok()) << ran.status().toString();
  const std::vector<LaunchCounters> got = on.device->takeCounters();
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Traffic &t = wanted[i];
    const Counts &c = got[i].total;
    SCOPED_TRACE(t.kernel);
    const GlobalCounts &loads = c.global[static_cast<unsigned>(AccessKind::Load)];
    const GlobalCounts &stores = c.global[static_cast<unsigned>(AccessKind::Store)];
    EXPECT_EQ(got[i].kernel, t.kernel);
    EXPECT_EQ(loads.bytes, t.loadBytes);
    EXPECT_EQ(loads.sectors, t.loadSectors);
    EXPECT_EQ(stores.bytes, t.storeBytes);
    EXPECT_EQ(stores.sectors, t.storeSectors);
    EXPECT_EQ(c.globalTotal().requests, loads.requests + stores.requests) << "atomics or asynchronous copies";
    EXPECT_EQ(c.barriers, t.barriers);
    EXPECT_EQ(c.sharedTotal().conflicts, 0u);
    if (t.wavefronts) {
      EXPECT_EQ(c.sharedTotal().wavefronts, *t.wavefronts);
    }
    EXPECT_EQ(c.localRequests, 0u) << "registers are spilled";
    EXPECT_EQ(c.matrixFlops, 0u);
  }
}

TEST_P(KernelTraffic, IsAsStated) {
  const auto &[name, device] = GetParam();
  Opened *on = openedDevice(deviceNames()[device]);
  ASSERT_TRUE(on);
  if (!on->emulated())
    GTEST_SKIP() << "a GPU counts nothing";
  const Family &family = familyOf(name);
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    for (const Shape &shape : shapesFor(name)) {
      TensorTypes types = {{"x", {dtype, shape}}};
      if (name == "add")
        types["y"] = types["x"];
      check(family, *on, types);
      if (name != "layer_norm")
        continue;
      types["weight"] = types["bias"] = {dtype, {shape.back()}};
      check(family, *on, types);
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, KernelTraffic, testing::ValuesIn(familiesOnDevices()), familyAndDevice);

} // namespace
} // namespace kiln::test
