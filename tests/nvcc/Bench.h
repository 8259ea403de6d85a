//===- Bench.h - One compiled kernel on one device, its buffers and checks -===//
//
// A case of the nvcc tests gets a Bench: the loaded module, a seeded generator, arrays on the device, launches with
// typed arguments, and checks that collect what differs in `failures`.  Outputs start as 0xCD bytes.  On a GPU
// arrays carry a guard after their end that must stay untouched; the emulator has bounds of its own.
// Everything read back is also appended to `transcript`: two runs may be compared byte by byte.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_NVCC_BENCH_H
#define KILN_TESTS_NVCC_BENCH_H

#include "kiln/Device.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace kiln::test {

/// An array of T on the device, owned by the Bench.
template <typename T> struct Array {
  Buffer *buffer = nullptr;
  std::size_t count = 0;
};

class Bench {
public:
  Bench(Device &device, Module &module, std::uint64_t seed) : device(device), module(module), random(seed) {}

  /// False after the first device failure: a case returns early then.
  bool good() const { return healthy; }
  /// Findings, results that differ, calls that failed: empty if the case passed.
  const std::vector<std::string> &failures() const { return failuresFound; }
  const std::set<std::string> &launchedKernels() const { return launched; }
  const std::string &transcript() const { return bytesRead; }
  std::mt19937_64 &rng() { return random; }
  bool onGpu() const { return device.info().kind == DeviceKind::Cuda; }

  template <typename T> Array<T> upload(const std::vector<T> &values) {
    Array<T> array = output<T>(values.size());
    if (array.buffer && !values.empty())
      require(array.buffer->copyFromHost(0, std::as_bytes(std::span(values))));
    return array;
  }
  /// Poisoned.
  template <typename T> Array<T> output(std::size_t count) { return {allocate(count * sizeof(T)), count}; }

  template <typename T> std::vector<T> read(const Array<T> &array) {
    std::vector<T> values = readUnordered(array);
    bytesRead.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
    return values;
  }
  /// For results whose order is not defined: the caller sorts them and gives them to `note`.
  template <typename T> std::vector<T> readUnordered(const Array<T> &array) {
    std::vector<T> values(array.count);
    if (array.buffer && healthy)
      readBytes(*array.buffer, std::as_writable_bytes(std::span(values)));
    return values;
  }
  template <typename T> void note(const std::vector<T> &values) {
    bytesRead.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
  }

  template <typename... Args>
  void launch(const char *kernel, Dim3 grid, Dim3 block, std::uint32_t dynamicShared, const Args &...args) {
    launchInClusters(kernel, {0, 0, 0}, grid, block, dynamicShared, args...);
  }
  /// Clusters of zeros: as the kernel declares.
  template <typename... Args>
  void launchInClusters(const char *kernel, Dim3 cluster, Dim3 grid, Dim3 block, std::uint32_t dynamicShared,
                        const Args &...args) {
    std::vector<std::vector<std::byte>> packed;
    (packed.push_back(pack(args)), ...);
    launchPacked(kernel, {grid, block, cluster, dynamicShared}, packed);
  }

  /// Of an array as a tensor: `dims` and `box` with the contiguous dimension first, without gaps.
  template <typename T>
  TensorMap tensorMap(const Array<T> &array, TensorMapType type, std::initializer_list<std::uint64_t> dims,
                      std::initializer_list<std::uint32_t> box, unsigned swizzleBytes = 0) {
    return encode(array.buffer, type, dims, box, swizzleBytes);
  }

  /// Bits must be equal.
  template <typename T> void expectEqual(const char *what, const std::vector<T> &got, const std::vector<T> &want) {
    expectSize(what, got.size(), want.size());
    for (std::size_t i = 0; healthy && i < got.size() && i < want.size(); ++i)
      if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0) {
        mismatch(what, i, double(got[i]), double(want[i]), 0);
        return;
      }
  }
  /// |got - want| <= bound, element by element.  A NaN or infinity in `want` asks for the same.
  void expectNear(const char *what, const std::vector<float> &got, const std::vector<double> &want,
                  const std::vector<double> &bound);

private:
  template <typename T> static std::vector<std::byte> pack(const T &value) {
    std::vector<std::byte> bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
  }
  template <typename T> static std::vector<std::byte> pack(const Array<T> &array) {
    return pack(array.buffer ? array.buffer->address() : DeviceAddress(0));
  }
  TensorMap encode(const Buffer *buffer, TensorMapType type, std::span<const std::uint64_t> dims,
                   std::span<const std::uint32_t> box, unsigned swizzleBytes);
  Buffer *allocate(std::size_t bytes);
  void readBytes(const Buffer &buffer, std::span<std::byte> bytes);
  void launchPacked(const char *kernel, const LaunchConfig &config,
                    const std::vector<std::vector<std::byte>> &arguments);
  void require(const Status &status);
  void fail(std::string what) { failuresFound.push_back(std::move(what)); }
  void expectSize(const char *what, std::size_t got, std::size_t want);
  void mismatch(const char *what, std::size_t index, double got, double want, double bound);

  Device &device;
  Module &module;
  std::mt19937_64 random;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::string bytesRead, lastLaunch;
  std::vector<std::string> failuresFound;
  std::set<std::string> launched;
  bool healthy = true;
};

/// Which of the PTX files of a case exist.
enum class Builds : unsigned char {
  All,
  Hopper,          ///< sm_90a only
  HopperOptimized, ///< sm_90a with -O3 only: results of wgmma in flight may not be kept in local memory
};

/// A test of one or more kernels of ptx/<file>.*.ptx.
struct NvccCase {
  const char *name;
  const char *file;
  void (*run)(Bench &bench);
  Builds builds = Builds::All;
};

std::span<const NvccCase> integerCases();
std::span<const NvccCase> floatCases();
std::span<const NvccCase> controlCases();
std::span<const NvccCase> memoryCases();
std::span<const NvccCase> matrixCases();
std::span<const NvccCase> pipelineCases();
std::span<const NvccCase> tensorCases();
std::span<const NvccCase> warpgroupCases();
std::span<const NvccCase> clusterCases();
std::vector<NvccCase> allCases();

/// Element counts that every one-dimensional case runs.
inline constexpr int sizes[] = {1, 31, 1000, 4097};

inline unsigned blocksFor(int n, unsigned threads) {
  return (unsigned(n) + threads - 1) / threads;
}

// Seeded inputs.
std::vector<int> randomInts(Bench &bench, std::size_t count);           ///< every bit length, both signs, edges
std::vector<unsigned> randomBits(Bench &bench, std::size_t count);      ///< the same bits, unsigned
std::vector<std::uint64_t> randomWide(Bench &bench, std::size_t count); ///< 64-bit, every bit length, edges
std::vector<float> randomFloats(Bench &bench, std::size_t count, float low, float high);
std::vector<std::uint16_t> randomHalfBits(Bench &bench, std::size_t count); ///< any bits of a 16-bit float but NaN

} // namespace kiln::test

#endif // KILN_TESTS_NVCC_BENCH_H
