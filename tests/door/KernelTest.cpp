// Text kernels through kiln/kiln.h: they run, and what a caller may get wrong is refused by name.
#include "kiln/kiln.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace {

std::string textOfScale() {
  std::ostringstream out;
  out << std::ifstream(KILN_SOURCE_DIR "/docs/examples/scale.mlir").rdbuf();
  return out.str();
}

struct DoorKernels : testing::Test {
  DoorKernels() {
    in.data = x.data(), result.data = out.data();
    for (DLTensor *t : {&in, &result})
      t->device = host, t->ndim = 1, t->dtype = {2, 32, 1}, t->shape = &extent;
    arguments = {of(in), of(result), number(0.5), whole(600)};
  }
  static kiln_value of(const DLTensor &t) {
    kiln_value out{KILN_TENSOR, {}};
    out.of.tensor = &t;
    return out;
  }
  static kiln_value whole(std::int64_t value) {
    kiln_value out{KILN_WHOLE, {}};
    out.of.whole = value;
    return out;
  }
  static kiln_value number(double value) {
    kiln_value out{KILN_NUMBER, {}};
    out.of.number = value;
    return out;
  }
  kiln_kernel *scale() {
    const std::string text = textOfScale();
    kiln_kernel *kernel = nullptr;
    EXPECT_EQ(kiln_kernel_open(text.data(), text.size(), nullptr, host, &kernel), KILN_OK) << kiln_error_message();
    return kernel;
  }
  kiln_status launch(kiln_kernel *kernel, const kiln_options *options = nullptr) {
    return kiln_kernel_launch(kernel, grid, arguments.data(), arguments.size(), options);
  }
  void expectRefused(kiln_kernel *kernel, std::initializer_list<const char *> words,
                     const kiln_options *options = nullptr) {
    EXPECT_EQ(launch(kernel, options), KILN_INVALID_ARGUMENT);
    const std::string text = std::string(kiln_error_message()) + " | " + kiln_error_remedy();
    for (const char *word : words)
      EXPECT_NE(text.find(word), std::string::npos) << word << " is not in: " << text;
    EXPECT_STRNE(kiln_error_remedy(), "") << text;
    for (const float value : out)
      ASSERT_EQ(value, 7);
  }
  static constexpr DLDevice host{kDLCPU, 0};
  std::vector<float> x = std::vector<float>(600, 3), out = std::vector<float>(600, 7);
  std::int64_t extent = 600;
  DLTensor in{}, result{};
  std::uint32_t grid[3] = {2, 1, 1};
  std::vector<kiln_value> arguments;
};

TEST_F(DoorKernels, RunAsTheyAre) {
  kiln_kernel *const kernel = scale();
  ASSERT_EQ(launch(kernel), KILN_OK) << kiln_error_message();
  for (const float value : out)
    ASSERT_EQ(value, 1.5);
  arguments[2] = whole(2); // a whole number is a float's value, too
  ASSERT_EQ(launch(kernel), KILN_OK) << kiln_error_message();
  EXPECT_EQ(out[599], 6);
  EXPECT_EQ(kiln_kernel_close(kernel), KILN_OK);
}

TEST_F(DoorKernels, RefuseArguments) {
  kiln_kernel *const kernel = scale();
  const auto right = arguments;
  arguments.pop_back();
  expectRefused(kernel, {"scale", "4 parameters", "3 arguments"});
  arguments = right, arguments.push_back(whole(1));
  expectRefused(kernel, {"4 parameters", "5 arguments"});
  arguments = right, arguments[0] = whole(1);
  expectRefused(kernel, {"'x' of kernel 'scale'", "no tensor", "f32"});
  arguments = right, arguments[2] = of(in);
  expectRefused(kernel, {"'factor'", "no number"});
  arguments = right, arguments[3] = number(600);
  expectRefused(kernel, {"'n'", "whole number"});
  arguments[3] = whole(std::int64_t(1) << 40);
  expectRefused(kernel, {"'n'", "1099511627776", "i32"});
  arguments = right, arguments[1].of.tensor = nullptr;
  expectRefused(kernel, {"argument 1", "NULL"});
  arguments = right, arguments[1].kind = static_cast<kiln_value_kind>(3);
  expectRefused(kernel, {"argument 1", "kind 3", "KILN_TENSOR"});
  arguments = right, result.dtype = {2, 16, 1};
  expectRefused(kernel, {"'out'", "f16", "f32"});
  result.dtype = {2, 32, 1}, result.device = {kDLCUDA, 1};
  expectRefused(kernel, {"'out'", "cuda:1", "host's memory"});
  result.device = host, result.data = x.data() + 4;
  expectRefused(kernel, {"'out'", "overlaps", "'x'"});
  result.data = out.data();
  const std::int64_t apart = 2;
  extent = 100, result.strides = const_cast<std::int64_t *>(&apart);
  expectRefused(nullptr, {"kernel"});
  EXPECT_EQ(launch(kernel), KILN_NOT_SUPPORTED);
  EXPECT_NE(std::string(kiln_error_message()).find("'out' of kernel 'scale' is not dense"), std::string::npos)
      << kiln_error_message();
  EXPECT_EQ(kiln_kernel_close(kernel), KILN_OK);
}

TEST_F(DoorKernels, RefuseGridsAndOptions) {
  kiln_kernel *const kernel = scale();
  for (const std::uint32_t extent : {0U, 0x80000000U}) {
    grid[1] = extent;
    expectRefused(kernel, {"extent 1 of the grid", std::to_string(extent).c_str(), "2^31"});
  }
  grid[1] = 1;
  EXPECT_EQ(kiln_kernel_launch(kernel, nullptr, arguments.data(), arguments.size(), nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_EQ(kiln_kernel_launch(kernel, grid, nullptr, 4, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_EQ(kiln_kernel_launch(kernel, grid, arguments.data(), SIZE_MAX, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_NE(std::string(kiln_error_message()).find("'count'"), std::string::npos) << kiln_error_message();
  kiln_options options{5, nullptr, nullptr, 0};
  expectRefused(kernel, {"kiln_options_init", "5 bytes"}, &options);
  kiln_options_init(&options);
  options.workspace = out.data();
  expectRefused(kernel, {"workspace"}, &options);
  EXPECT_EQ(kiln_kernel_close(kernel), KILN_OK);
}

TEST_F(DoorKernels, RefuseWhatIsNotOpen) {
  kiln_kernel *const kernel = scale();
  ASSERT_EQ(kiln_kernel_close(kernel), KILN_OK);
  expectRefused(kernel, {"kiln_kernel_launch", "'kernel'", "open"});
  expectRefused(nullptr, {"'kernel'"});
  expectRefused(reinterpret_cast<kiln_kernel *>(&extent), {"'kernel'"});
  EXPECT_EQ(kiln_kernel_close(kernel), KILN_INVALID_ARGUMENT);
  EXPECT_NE(std::string(kiln_error_message()).find("kiln_kernel_close"), std::string::npos) << kiln_error_message();
  EXPECT_EQ(kiln_kernel_close(nullptr), KILN_OK);
  kiln_kernel *const again = scale(); // never the number of another
  EXPECT_NE(again, kernel);
  EXPECT_EQ(kiln_kernel_close(again), KILN_OK);
}

TEST_F(DoorKernels, RefuseTexts) {
  const std::string scale = textOfScale();
  kiln_kernel *kernel = nullptr;
  const auto expect = [&](kiln_status status, const char *text, std::size_t size, const char *name, DLDevice device,
                          const char *word) {
    kernel = reinterpret_cast<kiln_kernel *>(&extent);
    EXPECT_EQ(kiln_kernel_open(text, size, name, device, &kernel), status) << kiln_error_message();
    EXPECT_EQ(kernel, nullptr);
    const std::string message = std::string(kiln_error_message()) + kiln_error_remedy();
    EXPECT_NE(message.find(word), std::string::npos) << word << " is not in: " << message;
  };
  expect(KILN_INVALID_ARGUMENT, nullptr, 10, nullptr, host, "'text' is NULL");
  expect(KILN_INVALID_ARGUMENT, scale.data(), 0, nullptr, host, "'text' has 0 bytes");
  expect(KILN_INVALID_ARGUMENT, scale.data(), SIZE_MAX, nullptr, host, "'text'");
  expect(KILN_INVALID_ARGUMENT, scale.data(), scale.size() / 2, nullptr, host, "text:");
  expect(KILN_INVALID_ARGUMENT, scale.data(), scale.size(), "scael", host, "scael");
  expect(KILN_NOT_SUPPORTED, scale.data(), scale.size(), nullptr, {static_cast<DLDeviceType>(99), 0}, "99");
  EXPECT_EQ(kiln_kernel_open(scale.data(), scale.size(), nullptr, host, nullptr), KILN_INVALID_ARGUMENT);
}

TEST_F(DoorKernels, ThreadsOpenLaunchAndClose) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      std::vector<float> mine(600);
      DLTensor to = result;
      to.data = mine.data();
      std::vector<kiln_value> values = {of(in), of(to), number(i), whole(600)};
      for (int round = 0; round < 3; ++round) {
        kiln_kernel *const kernel = scale();
        EXPECT_EQ(kiln_kernel_launch(kernel, grid, values.data(), values.size(), nullptr), KILN_OK)
            << kiln_error_message();
        EXPECT_EQ(mine[599], static_cast<float>(3 * i));
        EXPECT_EQ(kiln_kernel_close(kernel), KILN_OK);
      }
    });
  for (std::thread &t : threads)
    t.join();
}

} // namespace
