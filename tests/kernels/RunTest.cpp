//===- RunTest.cpp - In place, twice, on any number of threads, own workspaces -===//
#include "kernels/reduce_sum/ReduceSumOperation.h"
#include "tests/kernels/Bench.h"

#include <algorithm>

namespace kiln::test {
namespace {

using namespace kernels;

Tensor denseOn(const Device &device, const Buffer &buffer, const Array &array, std::size_t offset = 0) {
  const std::vector<std::int64_t> extents(array.shape.begin(), array.shape.end());
  auto made = Tensor::dense(device, buffer, array.type, extents, offset);
  EXPECT_TRUE(made.ok()) << made.status().toString();
  return made.ok() ? *made : Tensor{};
}

TEST(Run, InPlace) {
  Opened *on = openedDevice(deviceNames().front());
  ASSERT_TRUE(on);
  for (const auto &[family, shape] : std::vector<std::pair<std::string, Shape>>{{"add", {4097}},
                                                                                {"copy", {1000}},
                                                                                {"softmax", {5, 1000}},
                                                                                {"softmax", {2, 16387}},
                                                                                {"layer_norm", {5, 1000}},
                                                                                {"layer_norm", {2, 16387}},
                                                                                {"cumsum", {3, 5000}}}) {
    SCOPED_TRACE(family + " " + shapeText(shape));
    const Array x = randomArray({DType::F32, shape}, 3);
    auto buffer = on->device->allocate(x.data.size(), "x");
    ASSERT_TRUE(buffer.ok() && (*buffer)->copyFromHost(0, x.data).ok());
    const Tensor both = denseOn(*on->device, **buffer, x);
    Call call{{{"x", both}, {"out", both}}, {}};
    Arrays inputs = {{"x", x}};
    if (family == "add") {
      call.tensors["y"] = both;
      inputs["y"] = x;
    }
    const Status s = familyOf(family).callable->run(*on->jit, call, {});
    ASSERT_TRUE(s.ok()) << s.toString();
    EXPECT_TRUE(on->device->takeFindings().empty());
    Array out{x.type, shape, std::vector<std::byte>(x.data.size())};
    ASSERT_TRUE((*buffer)->copyToHost(0, out.data).ok());
    auto comparison = compareWithReference(familyOf(family), inputs, {}, {{"out", out}});
    ASSERT_TRUE(comparison.ok());
    EXPECT_TRUE(comparison->good()) << comparison->toString();
  }
}

/// The outputs of every family, with this many host threads on an emulator.
std::map<std::string, Array> outputsOf(const std::string &device, unsigned threads) {
  std::map<std::string, Array> out;
  std::unique_ptr<Opened> on = freshDevice(device, threads);
  if (!on)
    return out;
  for (const Family *family : shapeFamilies()) {
    const Shape shape = family->name() == "reduce_sum" ? Shape{70001} : Shape{37, 1001};
    TensorTypes types = {{"x", {DType::F32, shape}}, {"y", {DType::F32, shape}}};
    for (int again = 0; again < 2; ++again) {
      auto ran = runCall(*on->jit, *family->callable, randomInputs(*family, types, 9), {});
      EXPECT_TRUE(ran.ok()) << ran.status().toString();
      if (!ran.ok())
        continue;
      EXPECT_TRUE(ran->findings.empty());
      const Array &got = ran->outputs.at("out");
      const auto [first, fresh] = out.try_emplace(std::string(family->name()), got);
      EXPECT_TRUE(fresh || first->second.data == got.data) << family->name() << ": two runs differ";
    }
  }
  return out;
}

TEST(Run, BitEqualOverRunsAndThreads) {
  const std::string device = deviceNames().front();
  const auto one = outputsOf(device, 1), many = outputsOf(device, 5);
  ASSERT_EQ(one.size(), shapeFamilies().size());
  for (const auto &[name, array] : one)
    EXPECT_TRUE(many.count(name) && many.at(name).data == array.data) << name << ": results depend on the threads";
}

TEST(Run, CallersWorkspace) {
  Opened *on = openedDevice(deviceNames().front());
  ASSERT_TRUE(on);
  const Array x = randomArray({DType::F32, {70001}}, 4);
  auto buffer = on->device->allocate(x.data.size(), "x"), result = on->device->allocate(4, "out"),
       workspace = on->device->allocate(1 << 16, "workspace");
  ASSERT_TRUE(buffer.ok() && result.ok() && workspace.ok());
  ASSERT_TRUE((*buffer)->copyFromHost(0, x.data).ok());
  ASSERT_TRUE((*result)->poison(std::byte(0xCD)).ok() && (*workspace)->poison(std::byte(0xCD)).ok());
  Array out{DType::F32, {1}, std::vector<std::byte>(4)};
  ReduceSumOperation operation(*on->jit);
  const ReduceSumArguments a{denseOn(*on->device, **buffer, x), denseOn(*on->device, **result, out)};
  const std::size_t needed = operation.workspaceBytes(a), offset = 1024;
  const Status s = operation.run(a, {.workspace = (*workspace)->address() + offset, .workspaceBytes = needed});
  ASSERT_TRUE(s.ok()) << s.toString();
  EXPECT_TRUE(on->device->takeFindings().empty());
  ASSERT_TRUE((*result)->copyToHost(0, out.data).ok());
  auto comparison = compareWithReference(familyOf("reduce_sum"), {{"x", x}}, {}, {{"out", out}});
  ASSERT_TRUE(comparison.ok());
  EXPECT_TRUE(comparison->good()) << comparison->toString();
  std::vector<std::byte> bytes((*workspace)->size());
  ASSERT_TRUE((*workspace)->copyToHost(0, bytes).ok());
  const auto used = [&](std::size_t i) { return i >= offset && i < offset + needed; };
  bool touched = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    touched |= used(i) && bytes[i] != std::byte(0xCD);
    ASSERT_TRUE(used(i) || bytes[i] == std::byte(0xCD)) << "byte " << i << " outside the workspace was written";
  }
  EXPECT_TRUE(touched) << "the workspace given was not used";
}

} // namespace
} // namespace kiln::test
