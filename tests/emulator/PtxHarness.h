//===- PtxHarness.h - Run a piece of PTX on the emulator ------------------===//
//
//   Emulator gpu("sm_90a");
//   auto &in = gpu.upload<float>({1, 2, 3}, "in");
//   auto &out = gpu.allocate(12, "out");              // nothing written yet
//   Launched r = gpu.run(kernelText(".param .u64 in, .param .u64 out", "...body..."), {1}, {32}, {in, out});
//   ASSERT_TRUE(r.status.ok()) << r.text();
//   std::vector<float> values = gpu.download<float>(out);
//
// Failures of the harness itself (a device that does not open) abort the test program with the reason.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_PTXHARNESS_H
#define KILN_TESTS_EMULATOR_PTXHARNESS_H

#include "kiln/Device.h"

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

/// One kernel argument: a buffer's address, a scalar or a tensor map, packed at its natural alignment.
struct Argument {
  std::uint64_t bits = 0;
  unsigned bytes = 8;
  std::shared_ptr<const TensorMap> map;
  Argument(const TensorMap &m) : bytes(TensorMap::size), map(std::make_shared<TensorMap>(m)) {}
  Argument(const Buffer &buffer) : bits(buffer.address()) {}
  Argument(std::uint64_t v) : bits(v) {}
  Argument(std::int64_t v) : bits(static_cast<std::uint64_t>(v)) {}
  Argument(std::uint32_t v) : bits(v), bytes(4) {}
  Argument(std::int32_t v) : bits(static_cast<std::uint32_t>(v)), bytes(4) {}
  Argument(float v) : bytes(4) { std::memcpy(&bits, &v, 4); }
  Argument(double v) { std::memcpy(&bits, &v, 8); }
};

struct Launched {
  Status status;
  std::vector<Finding> findings;
  LaunchStatistics statistics;
  /// Status and findings, for a failed expectation.
  std::string text() const;
  bool has(std::string_view id) const;
  const Finding *find(std::string_view id) const;
  /// The ids of all findings but notes, sorted, joined by spaces.
  std::string ids() const;
  /// Ran, and nothing was found.
  bool clean() const { return status.ok() && ids().empty(); }
};

/// The CPU levels that the emulator was built with and this CPU can run.
std::vector<std::string> usableLevels();

class Emulator {
public:
  explicit Emulator(std::string_view target = "sm_90a", EmulatorOptions options = {});
  Device &device() { return *gpu; }

  Buffer &allocate(std::size_t bytes, std::string_view label = "buffer");
  template <typename T> Buffer &upload(const std::vector<T> &values, std::string_view label = "buffer") {
    Buffer &b = allocate(values.size() * sizeof(T), label);
    write(b, values.data(), values.size() * sizeof(T));
    return b;
  }
  template <typename T> std::vector<T> download(const Buffer &b) {
    std::vector<T> values(b.size() / sizeof(T));
    read(b, values.data(), values.size() * sizeof(T));
    return values;
  }
  /// Gives a buffer back to the device.
  void release(Buffer &b);

  TensorMap encode(const TensorMapRecipe &recipe);
  Result<Module *> load(std::string_view text);
  /// Loads and launches the entry called `entry`, or the only one.
  Launched run(std::string_view text, Dim3 grid, Dim3 block, const std::vector<Argument> &arguments,
               std::uint32_t dynamicShared = 0, std::string_view entry = {}, Dim3 cluster = {0, 0, 0});

private:
  void write(Buffer &b, const void *data, std::size_t bytes);
  void read(const Buffer &b, void *data, std::size_t bytes);
  std::unique_ptr<Device> gpu;
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::unique_ptr<Buffer>> buffers;
};

/// Of a tensor without gaps, dimension 0 first.
TensorMapRecipe denseTensor(TensorMapType type, std::uint64_t address, const std::vector<std::uint64_t> &dims,
                            const std::vector<std::uint32_t> &box);

/// A module with one entry "k".  The body finds registers %r<64>, %rd<64>, %f<64>, %fd<64>, %h<64>, %p<32> declared and
/// ends with ret.  `outside` stands before the entry.
std::string kernelText(std::string_view parameters, std::string_view body, std::string_view target = "sm_90a",
                       std::string_view outside = {}, std::string_view directives = {});

/// Text that sets %r60 = thread number in the grid and %rd60 = 4 * that.
inline constexpr std::string_view threadIndex = "mov.u32 %r61, %ctaid.x; mov.u32 %r62, %ntid.x; mov.u32 %r63, %tid.x;\n"
                                                "mad.lo.u32 %r60, %r61, %r62, %r63; mul.wide.u32 %rd60, %r60, 4;\n";

} // namespace kiln::test

#endif // KILN_TESTS_EMULATOR_PTXHARNESS_H
