// A Jit on an emulated device, with the fake compiler and a cache folder of its own.
#ifndef KILN_TESTS_JIT_JITFIXTURE_H
#define KILN_TESTS_JIT_JITFIXTURE_H

#include "kiln/Jit.h"
#include "runtime/jit/bench/NullDevice.h"
#include "tests/jit/FakeCompiler.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace kiln::test {

inline constexpr const char *fakeCompiler = KILN_BINARY_DIR "/tests/libkiln-jit-fake-compiler.so";

/// The text of a fake program whose kernel is `addPtx`, with extra lines.
inline std::string addProgram(const std::string &extra = {}) {
  return "argument x ptr<f32>\nargument y ptr<f32>\nargument out ptr<f32>\nargument n i32\n" + extra + "ptx\n" + addPtx;
}

inline KernelSource addSource(const std::string &extra = {}) {
  KernelSource out;
  out.name = "add";
  out.programText = addProgram(extra);
  out.fileName = "add.cpp";
  out.configuration = "block = 128";
  if (const std::size_t at = extra.find("warps "); at != std::string::npos)
    out.warps = static_cast<unsigned>(std::stoul(extra.substr(at + 6)));
  for (const char *name : {"x", "y", "out"})
    out.arguments.push_back({name, "ptr<f32>", Specialise::Divisibility});
  out.arguments.push_back({"n", "i32", Specialise::None});
  return out;
}

inline unsigned linesOf(const std::string &path) {
  std::ifstream in(path);
  unsigned lines = 0;
  for (std::string line; std::getline(in, line);)
    ++lines;
  return lines;
}

class JitTest : public testing::Test {
protected:
  ~JitTest() override { ::unsetenv("KILN_TEST_COMPILE_LOG"); }
  void SetUp() override {
    compileLog = folder.path() + "/compiles";
    ASSERT_EQ(::setenv("KILN_TEST_COMPILE_LOG", compileLog.c_str(), 1), 0);
    auto opened = openDevice("emulator:sm_80");
    ASSERT_TRUE(opened.ok()) << opened.status().toString();
    device = std::move(*opened);
    jit = makeJit();
  }

  JitOptions jitOptions() {
    JitOptions options;
    options.knobs.compiler = fakeCompiler;
    options.knobs.cacheDir = folder.path() + "/cache";
    return options;
  }
  std::unique_ptr<Jit> makeJit() { return makeJit(jitOptions()); }
  std::unique_ptr<Jit> makeJit(JitOptions options) {
    auto made = Jit::create(*device, std::move(options));
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return made.ok() ? std::move(*made) : nullptr;
  }
  JitKernel *kernelOf(Jit &of, const KernelSource &source) {
    auto made = of.kernel(source);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return made.ok() ? *made : nullptr;
  }
  std::unique_ptr<Buffer> floats(std::size_t n, float first, float step) {
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i)
      values[i] = first + step * static_cast<float>(i);
    auto buffer = device->allocate(4 * n, "floats");
    EXPECT_TRUE(buffer.ok());
    EXPECT_TRUE((*buffer)->copyFromHost(0, std::as_bytes(std::span(values))).ok());
    return std::move(*buffer);
  }
  unsigned compiles() const { return linesOf(compileLog); }

  TemporaryDirectory folder;
  std::string compileLog;
  std::unique_ptr<Device> device;
  std::unique_ptr<Jit> jit;
};

/// And a Jit on a device that does nothing but keep what it was given last.
class NullJitTest : public JitTest {
protected:
  void SetUp() override {
    JitTest::SetUp();
    auto made = Jit::create(null, jitOptions());
    ASSERT_TRUE(made.ok());
    nullJit = std::move(*made);
  }
  NullDevice null;
  std::unique_ptr<Jit> nullJit;
};

} // namespace kiln::test

#endif // KILN_TESTS_JIT_JITFIXTURE_H
