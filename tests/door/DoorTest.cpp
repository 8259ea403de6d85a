// What callers of kiln/kiln.h may get wrong: each is refused by name before anything runs.
#include "kiln/kiln.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

/// A matrix of f32 in the host's memory.
struct Matrix {
  std::vector<float> values;
  std::int64_t shape[2], strides[2];
  DLTensor tensor{};
  Matrix(std::int64_t rows, std::int64_t columns, float value = 1)
      : values(static_cast<std::size_t>(rows * columns), value), shape{rows, columns}, strides{columns, 1} {
    tensor.data = values.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 2;
    tensor.dtype = {2, 32, 1};
    tensor.shape = shape;
    tensor.strides = strides;
  }
  Matrix(const Matrix &) = delete;
};

class Door : public testing::Test {
protected:
  Door() {
    kiln_softmax_init(&call);
    call.x = &x.tensor;
    call.out = &out.tensor;
  }
  /// The call is refused, with all of these in its message or remedy, and nothing was written.
  void expectRefused(kiln_status status, std::initializer_list<const char *> words,
                     const kiln_options *options = nullptr) {
    EXPECT_EQ(kiln_softmax_run(&call, options), status) << kiln_error_message();
    const std::string text = std::string(kiln_error_message()) + " | " + kiln_error_remedy();
    for (const char *word : words)
      EXPECT_NE(text.find(word), std::string::npos) << word << " is not in: " << text;
    EXPECT_STRNE(kiln_error_remedy(), "") << text;
    for (const float value : out.values)
      ASSERT_EQ(value, 7);
  }
  Matrix x{3, 50}, out{3, 50, 7};
  kiln_softmax call;
};

TEST_F(Door, RunsAsItIs) {
  ASSERT_EQ(kiln_softmax_run(&call, nullptr), KILN_OK) << kiln_error_message();
  for (const float value : out.values)
    EXPECT_NEAR(value, 1.0 / 50, 1e-7);
}

TEST_F(Door, RefusesWhatIsNotATensor) {
  call.x = nullptr;
  expectRefused(KILN_INVALID_ARGUMENT, {"softmax", "'x'", "missing"});
}

TEST_F(Door, RefusesNoMemory) {
  x.tensor.data = nullptr;
  expectRefused(KILN_INVALID_ARGUMENT, {"'x'", "no memory"});
}

TEST_F(Door, RefusesTypes) {
  x.tensor.dtype = {2, 32, 4};
  expectRefused(KILN_INVALID_ARGUMENT, {"'x'", "dtype"});
  x.tensor.dtype = {77, 32, 1};
  expectRefused(KILN_INVALID_ARGUMENT, {"'x'", "77"});
  x.tensor.dtype = out.tensor.dtype = {0, 32, 1}; // i32: DLPack's, not softmax's
  expectRefused(KILN_INVALID_ARGUMENT, {"'x'"});
  x.tensor.dtype = {2, 32, 1};
  out.tensor.dtype = {2, 16, 1}; // f16
  expectRefused(KILN_INVALID_ARGUMENT, {"'out'", "f16"});
}

TEST_F(Door, RefusesRanksAndShapes) {
  for (const std::int32_t rank : {-1, 9, 1000000}) {
    x.tensor.ndim = rank;
    expectRefused(KILN_INVALID_ARGUMENT, {"'x'", "dimensions"});
  }
  x.tensor.ndim = 2;
  x.shape[0] = -3;
  expectRefused(KILN_INVALID_ARGUMENT, {"'x'", "negative"});
  x.shape[0] = 3;
  x.strides[1] = -1;
  expectRefused(KILN_INVALID_ARGUMENT, {"'x'", "negative"});
  x.strides[1] = 1;
  out.shape[0] = 2;
  expectRefused(KILN_INVALID_ARGUMENT, {"'out'", "3"});
  out.shape[0] = 3;
  x.tensor.shape = nullptr;
  expectRefused(KILN_INVALID_ARGUMENT, {"'x'", "shape"});
}

TEST_F(Door, RefusesSizesThatNoMemoryHas) {
  x.shape[0] = out.shape[0] = std::int64_t(1) << 40;
  x.shape[1] = out.shape[1] = std::int64_t(1) << 40;
  expectRefused(KILN_INVALID_ARGUMENT, {"'x'"});
}

TEST_F(Door, RefusesDevices) {
  x.tensor.device.device_type = static_cast<DLDeviceType>(99);
  expectRefused(KILN_INVALID_ARGUMENT, {"'out'", "'x'"});
  out.tensor.device.device_type = static_cast<DLDeviceType>(99);
  expectRefused(KILN_NOT_SUPPORTED, {"softmax", "99"});
  x.tensor.device = out.tensor.device = {kDLCUDA, 63};
  EXPECT_NE(kiln_softmax_run(&call, nullptr), KILN_OK); // no GPU has this number
  EXPECT_NE(std::string(kiln_error_message()).find("softmax"), std::string::npos);
}

TEST_F(Door, RefusesOutputsOverInputs) {
  out.tensor.data = x.values.data() + 10;
  out.shape[0] = x.shape[0] = 2;
  EXPECT_EQ(kiln_softmax_run(&call, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_NE(std::string(kiln_error_message()).find("overlaps 'x'"), std::string::npos) << kiln_error_message();
}

TEST_F(Door, RefusesStructsOfOtherSizes) {
  const std::size_t right = call.size;
  for (const std::size_t size : {std::size_t(0), std::size_t(3), right + 8, SIZE_MAX, right - 1}) {
    call.size = size;
    expectRefused(KILN_INVALID_ARGUMENT, {"softmax", "bytes", "kiln_softmax_init"});
  }
  call.size = right - sizeof(void *); // of an older header, without its last field
  expectRefused(KILN_INVALID_ARGUMENT, {"'out'", "missing"});
  call.size = right;
  kiln_options options{5, nullptr, nullptr, 0};
  expectRefused(KILN_INVALID_ARGUMENT, {"kiln_options", "kiln_options_init"}, &options);
}

TEST(DoorCalls, RefuseNothing) {
  EXPECT_EQ(kiln_softmax_run(nullptr, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_EQ(kiln_softmax_workspace(nullptr, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_EQ(kiln_softmax_outputs(nullptr, nullptr, nullptr), KILN_INVALID_ARGUMENT);
  kiln_softmax_init(nullptr);
  kiln_options_init(nullptr);
}

TEST(DoorCalls, RefuseValuesOfOptions) {
  Matrix q(1, 1);
  kiln_attention call;
  kiln_attention_init(&call);
  EXPECT_EQ(call.size, sizeof call);
  EXPECT_TRUE(std::isnan(call.scale));
  EXPECT_EQ(call.causal, KILN_NOT_GIVEN);
  call.q = call.k = call.v = call.o = &q.tensor;
  call.causal = 2;
  EXPECT_EQ(kiln_attention_run(&call, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_NE(std::string(kiln_error_message()).find("'causal'"), std::string::npos) << kiln_error_message();
}

/// What a thread did wrong is no other's failure.
TEST(DoorCalls, ThreadsHaveTheirOwnFailures) {
  EXPECT_NE(kiln_softmax_run(nullptr, nullptr), KILN_OK);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([i] {
      EXPECT_STREQ(kiln_error_message(), "");
      for (int round = 0; round < 3; ++round) {
        Matrix x(4, 16 + i), out(4, 16 + i, 7);
        kiln_softmax call;
        kiln_softmax_init(&call);
        call.x = &x.tensor, call.out = &out.tensor;
        ASSERT_EQ(kiln_softmax_run(&call, nullptr), KILN_OK) << kiln_error_message();
        for (const float value : out.values)
          ASSERT_NEAR(value, 1.0 / (16 + i), 1e-6);
      }
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_STRNE(kiln_error_message(), "");
}

TEST(DoorCalls, AForkedChildIsRefused) {
  Matrix x(2, 8), out(2, 8);
  kiln_softmax call;
  kiln_softmax_init(&call);
  call.x = &x.tensor, call.out = &out.tensor;
  ASSERT_EQ(kiln_softmax_run(&call, nullptr), KILN_OK);
  const pid_t child = ::fork();
  if (child == 0) {
    const kiln_status status = kiln_softmax_run(&call, nullptr);
    ::_exit(status != KILN_OK && std::strstr(kiln_error_message(), "fork") ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// As other languages do it: declared by hand, found by name.
TEST(DoorCalls, ByNameAlone) {
  struct Call {
    std::size_t size;
    const DLTensor *x, *out;
  } call{};
  const auto init = reinterpret_cast<void (*)(Call *)>(::dlsym(RTLD_DEFAULT, "kiln_softmax_init"));
  const auto run = reinterpret_cast<int (*)(const Call *, const void *)>(::dlsym(RTLD_DEFAULT, "kiln_softmax_run"));
  ASSERT_TRUE(init && run);
  Matrix x(2, 4), out(2, 4);
  init(&call);
  ASSERT_EQ(call.size, sizeof call);
  call.x = &x.tensor, call.out = &out.tensor;
  EXPECT_EQ(run(&call, nullptr), 0);
  EXPECT_NEAR(out.values[5], 0.25, 1e-6);
}

} // namespace
