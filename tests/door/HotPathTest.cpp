// A call through the door that is like the last one but for addresses adds no allocation and no lock to the operation's
// own.
#include "kernels/support/Runner.h"
#include "runtime/door/DoorCall.h"
#include "runtime/door/DoorDevices.h"
#include "runtime/jit/bench/NullDevice.h"
#include "tests/jit/HotPathCounts.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::door;
using namespace kiln::kernels;

namespace {

constexpr Place place{2, 77};

/// The device of `place`, which does nothing.
DoorDevice &nothing() {
  static DoorDevice *const one = [] {
    auto device = std::make_unique<NullDevice>();
    JitOptions options;
    options.knobs.compiler = KILN_BINARY_DIR "/bin/libkiln-compiler.so";
    options.diskCache = false;
    auto jit = Jit::create(*device, std::move(options));
    DoorDevice::lend(place, std::move(device), std::move(*jit));
    return *DoorDevice::of(place);
  }();
  return *one;
}

/// A tensor of a call as a caller has it.
FfiTensor tensorLike(const Tensor &t, std::uint8_t code, std::uint8_t bits) {
  return {reinterpret_cast<void *>(t.address),
          place.type,
          place.number,
          static_cast<std::int32_t>(t.rank),
          code,
          bits,
          1,
          t.shape.data(),
          t.strides.data(),
          0};
}

struct DoorHotPath : testing::TestWithParam<std::string> {
  /// A small call of the family as the library describes it, and as arguments by position.
  void make() {
    const auto found = findFamily(GetParam());
    ASSERT_TRUE(found.ok());
    family = *found;
    const Callable &callable = *family->callable;
    const DType type = callable.takes(DType::BF16) ? DType::BF16 : callable.dtypes().front();
    const auto samples = samplesOf(*family);
    ASSERT_TRUE(samples.ok());
    const Sample sample = (*samples)->calls(type, SampleUse::Demo, false).front();
    const auto inputs = sampleInputs(nothing().jit(), *family, sample, 1);
    ASSERT_TRUE(inputs.ok()) << inputs.status().toString();
    auto created = PlacedCall::create(nothing().device(), callable, *inputs, sample.options);
    ASSERT_TRUE(created.ok()) << created.status().toString();
    placed = std::make_unique<PlacedCall>(std::move(*created));
    const Call &call = placed->call();
    tensors.reserve(call.tensors.size());
    for (const TensorParameter &p : callable.tensors()) {
      if (p.isGroup)
        continue;
      FfiValue value{ffiNone, 0, {0}};
      if (const auto t = call.tensors.find(p.name); t != call.tensors.end()) {
        const DType of = t->second.dtype;
        const std::uint8_t code = of == DType::BF16 ? 4 : isFloat(of) ? 2 : isUnsigned(of) ? 1 : 0;
        tensors.push_back(tensorLike(t->second, code, static_cast<std::uint8_t>(bitsOf(of))));
        value.type = ffiTensorPointer, value.object = &tensors.back();
        outputs.push_back(p.output);
      }
      values.push_back(value);
    }
    for (const OptionInfo &o : callable.options()) {
      FfiValue value{ffiNone, 0, {0}};
      if (const auto v = sample.options.find(o.name); v != sample.options.end()) {
        if (const bool *flag = std::get_if<bool>(&v->second))
          value.type = ffiFlag, value.whole = *flag;
        else if (const std::int64_t *whole = std::get_if<std::int64_t>(&v->second))
          value.type = ffiWhole, value.whole = *whole;
        else if (const double *number = std::get_if<double>(&v->second))
          value.type = ffiNumber, value.number = *number;
        else
          texts.push_back(std::make_unique<std::string>(std::get<std::string>(v->second))),
              value.type = ffiText, value.text = texts.back()->c_str();
      }
      values.push_back(value);
    }
  }
  Failure throughDoor() {
    const Surroundings where{nullptr, workspace.address(), workspace.size()};
    return run(*family, values, &where);
  }
  Status direct(const Callable::Planner &planner) {
    return family->callable->run(nothing().jit(), planner, placed->call(),
                                 {.workspace = workspace.address(), .workspaceBytes = workspace.size()});
  }
  const Family *family = nullptr;
  std::unique_ptr<PlacedCall> placed;
  std::vector<FfiTensor> tensors;
  std::vector<bool> outputs; ///< of `tensors`
  std::vector<std::unique_ptr<std::string>> texts;
  std::vector<FfiValue> values;
  NullBuffer workspace{std::size_t(64) << 20};
};

TEST_P(DoorHotPath, TheDoorAllocatesNothingAndTakesNoLock) {
  if (!countsAllocations || !countsLocks)
    GTEST_SKIP() << "a sanitizer's own operator new and mutexes cannot be counted";
  ASSERT_NO_FATAL_FAILURE(make());
  const Callable::Planner &planner = nothing().plannerOf(*family->callable);
  ASSERT_EQ(direct(planner).toString(), "");
  ASSERT_EQ(throughDoor().toString(), "");
  struct Cost {
    std::uint64_t allocated = allocations, locked = locks;
    bool good = true;
  };
  const auto cost = [&](auto call) {
    Cost out;
    for (int i = 0; i < 100; ++i)
      out.good &= call();
    out.allocated = allocations - out.allocated, out.locked = locks - out.locked;
    return out;
  };
  const Cost own = cost([&] { return direct(planner).ok(); });
  const Cost door = cost([&] { return throughDoor().kind.empty(); });
  EXPECT_TRUE(own.good && door.good);
  EXPECT_EQ(door.allocated, own.allocated);
  EXPECT_EQ(door.locked, own.locked);
}

TEST_P(DoorHotPath, WhatChangedIsLookedAtAgain) {
  ASSERT_NO_FATAL_FAILURE(make());
  ASSERT_EQ(throughDoor().toString(), "");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const FfiTensor before = tensors[i];
    tensors[i].code = 6, tensors[i].bits = 8; // truth values: no operation takes or gives them
    EXPECT_NE(throughDoor().kind, "") << i;
    EXPECT_NE(throughDoor().kind, "") << i << ", again";
    tensors[i] = before;
    EXPECT_EQ(throughDoor().toString(), "") << i;
    std::vector<std::int64_t> shape(before.shape, before.shape + before.rank);
    if (shape.empty() || !outputs[i])
      continue;
    shape[0] += 1;
    tensors[i].shape = shape.data();
    // The door's own words: the operation would say others.
    for (int time = 0; time < 2; ++time)
      EXPECT_NE(throughDoor().message.find("it must be"), std::string::npos) << i;
    tensors[i] = before;
  }
}

// One of each kind of table: without options, with optional tensors, with options of every kind.
INSTANTIATE_TEST_SUITE_P(Families, DoorHotPath,
                         testing::Values("copy", "add", "reduce_sum", "attention", "attention_decode", "matmul",
                                         "rwkv7_step"),
                         [](const auto &name) { return name.param; });

} // namespace
