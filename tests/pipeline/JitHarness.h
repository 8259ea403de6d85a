// Kernels of any stage through the JIT, on the emulator: findings are failures, outputs are poisoned.
#ifndef KILN_TESTS_PIPELINE_JITHARNESS_H
#define KILN_TESTS_PIPELINE_JITHARNESS_H

#include "kiln/Jit.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace kiln::test {

inline std::string fileText(const std::string &path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// A Jit of the real compiler on an emulator.
struct JitOnEmulator {
  explicit JitOnEmulator(const std::string &target = "sm_90a", const Knobs &knobs = {}) {
    auto opened = openDevice("emulator:" + target);
    EXPECT_TRUE(opened.ok()) << opened.status().toString();
    device = std::move(*opened);
    JitOptions options;
    options.knobs = knobs;
    options.knobs.compiler = KILN_BINARY_DIR "/bin/libkiln-compiler.so";
    options.diskCache = false;
    auto made = Jit::create(*device, std::move(options));
    EXPECT_TRUE(made.ok()) << made.status().toString();
    jit = std::move(*made);
  }
  template <typename T> std::unique_ptr<Buffer> upload(const std::vector<T> &values) {
    auto buffer = device->allocate(values.size() * sizeof(T), "in");
    EXPECT_TRUE(buffer.ok());
    EXPECT_TRUE((*buffer)->copyFromHost(0, std::as_bytes(std::span(values))).ok());
    return std::move(*buffer);
  }
  std::unique_ptr<Buffer> poisoned(std::size_t bytes) {
    auto buffer = device->allocate(bytes, "out");
    EXPECT_TRUE(buffer.ok());
    EXPECT_TRUE((*buffer)->poison(std::byte(0xA5)).ok());
    return std::move(*buffer);
  }
  template <typename T> std::vector<T> download(const Buffer &buffer) {
    std::vector<T> values(buffer.size() / sizeof(T));
    EXPECT_TRUE(buffer.copyToHost(0, std::as_writable_bytes(std::span(values))).ok());
    return values;
  }
  /// Of the launches so far.
  void expectNoFindings() {
    for (const Finding &f : device->takeFindings())
      ADD_FAILURE() << f.toString();
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Jit> jit;
};

} // namespace kiln::test

#endif // KILN_TESTS_PIPELINE_JITHARNESS_H
