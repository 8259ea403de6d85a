//===- Bench.cpp ----------------------------------------------------------===//
#include "tests/nvcc/Bench.h"

#include "support/Text.h"

#include <algorithm>

namespace kiln::test {

namespace {
constexpr std::byte poison{0xCD};
constexpr std::size_t guardBytes = 256;
} // namespace

void Bench::require(const Status &status) {
  if (status.ok())
    return;
  if (healthy)
    fail(lastLaunch + ": " + status.toString());
  healthy = false;
}

Buffer *Bench::allocate(std::size_t bytes) {
  if (!healthy)
    return nullptr;
  auto buffer = device.allocate(bytes + (onGpu() ? guardBytes : 0), format("array%zu", buffers.size()));
  if (!buffer.ok()) {
    require(buffer.status());
    return nullptr;
  }
  buffers.push_back(std::move(*buffer));
  require(buffers.back()->poison(poison));
  return buffers.back().get();
}

void Bench::readBytes(const Buffer &buffer, std::span<std::byte> bytes) {
  require(buffer.copyToHost(0, bytes));
  if (!onGpu() || !healthy)
    return;
  std::vector<std::byte> guard(guardBytes);
  require(buffer.copyToHost(bytes.size(), guard));
  for (std::size_t i = 0; i < guard.size(); ++i)
    if (guard[i] != poison) {
      return fail(format("%s: byte %zu after an array of %zu bytes was written", lastLaunch.c_str(), i, bytes.size()));
    }
}

TensorMap Bench::encode(const Buffer *buffer, TensorMapType type, std::span<const std::uint64_t> dims,
                        std::span<const std::uint32_t> box, unsigned swizzleBytes) {
  TensorMapRecipe recipe;
  recipe.type = type;
  recipe.rank = unsigned(dims.size());
  recipe.address = buffer ? buffer->address() : 0;
  std::copy(dims.begin(), dims.end(), recipe.dims.begin());
  std::copy(box.begin(), box.end(), recipe.box.begin());
  recipe.setDenseStrides();
  recipe.swizzle = swizzleBytes == 128  ? TensorMapSwizzle::B128
                   : swizzleBytes == 64 ? TensorMapSwizzle::B64
                   : swizzleBytes == 32 ? TensorMapSwizzle::B32
                                        : TensorMapSwizzle::None;
  if (!healthy)
    return {};
  auto map = device.encodeTensorMap(recipe);
  if (!map.ok()) {
    require(map.status());
    return {};
  }
  return *map;
}

void Bench::launchPacked(const char *kernel, const LaunchConfig &config,
                         const std::vector<std::vector<std::byte>> &arguments) {
  if (!healthy)
    return;
  const Dim3 &grid = config.grid, &block = config.block;
  lastLaunch = format("%s<<<(%u,%u,%u), (%u,%u,%u), %u>>>", kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                      config.dynamicSharedBytes);
  launched.insert(kernel);
  auto found = module.kernel(kernel);
  if (!found.ok())
    return require(found.status());
  const KernelInfo &info = (*found)->info();
  if (info.parameters.size() != arguments.size())
    return require(
        Status::invalid(format("%zu arguments for %zu parameters", arguments.size(), info.parameters.size())));
  std::vector<std::byte> packed(info.parameterBytes);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ParameterInfo &parameter = info.parameters[i];
    if (parameter.size != arguments[i].size() || parameter.offset + parameter.size > packed.size())
      return require(Status::invalid(format("argument %zu has %zu bytes, the parameter %u at %u of %zu", i,
                                            arguments[i].size(), parameter.size, parameter.offset, packed.size())));
    std::memcpy(packed.data() + parameter.offset, arguments[i].data(), arguments[i].size());
  }
  require((*found)->launch(config, packed));
  if (healthy)
    require(device.defaultStream().synchronize());
  for (const Finding &finding : device.takeFindings())
    if (!finding.note || finding.id == "wgmma.swizzle") // the kernels store no operands of wgmma themselves
      fail(lastLaunch + ": finding\n" + finding.toString());
}

void Bench::expectSize(const char *what, std::size_t got, std::size_t want) {
  if (healthy && got != want)
    fail(format("%s: %s has %zu elements, expected %zu", lastLaunch.c_str(), what, got, want));
}

void Bench::mismatch(const char *what, std::size_t index, double got, double want, double bound) {
  fail(format("%s: %s[%zu] is %.17g (%a), expected %.17g (%a), bound %.3g", lastLaunch.c_str(), what, index, got, got,
              want, want, bound));
}

void Bench::expectNear(const char *what, const std::vector<float> &got, const std::vector<double> &want,
                       const std::vector<double> &bound) {
  expectSize(what, got.size(), want.size());
  for (std::size_t i = 0; healthy && i < got.size() && i < want.size(); ++i) {
    double g = double(got[i]);
    bool same = std::isnan(want[i])   ? std::isnan(g)
                : std::isinf(want[i]) ? g == want[i]
                                      : std::abs(g - want[i]) <= bound[i];
    if (!same)
      return mismatch(what, i, g, want[i], bound[i]);
  }
}

std::vector<NvccCase> allCases() {
  std::vector<NvccCase> all;
  for (auto cases : {integerCases(), floatCases(), controlCases(), memoryCases(), matrixCases(), pipelineCases(),
                     tensorCases(), warpgroupCases(), clusterCases()})
    all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

std::vector<std::uint64_t> randomWide(Bench &bench, std::size_t count) {
  static constexpr std::uint64_t edges[] = {0,
                                            1,
                                            2,
                                            0xff,
                                            0x7fffffff,
                                            0x80000000,
                                            0xffffffff,
                                            0x7fffffffffffffff,
                                            0x8000000000000000,
                                            0xffffffffffffffff,
                                            0xaaaaaaaaaaaaaaaa};
  std::vector<std::uint64_t> values(count);
  for (auto &v : values) {
    std::uint64_t r = bench.rng()();
    v = r % 8 == 0 ? edges[(r >> 8) % std::size(edges)] : bench.rng()() >> ((r >> 8) % 64);
    if (r & 16)
      v = ~v;
  }
  return values;
}

std::vector<unsigned> randomBits(Bench &bench, std::size_t count) {
  static constexpr unsigned edges[] = {0,          1,          2,          31,         32,         255,
                                       0x7fffffff, 0x80000000, 0x80000001, 0x55555555, 0xaaaaaaaa, 0xffffffff};
  std::vector<unsigned> values(count);
  for (auto &v : values) {
    std::uint64_t r = bench.rng()();
    v = r % 8 == 0 ? edges[(r >> 8) % std::size(edges)] : unsigned(r >> 32) >> ((r >> 8) % 32);
    if (r & 16)
      v = 0u - v;
  }
  return values;
}

std::vector<int> randomInts(Bench &bench, std::size_t count) {
  std::vector<unsigned> bits = randomBits(bench, count);
  return {reinterpret_cast<const int *>(bits.data()), reinterpret_cast<const int *>(bits.data()) + count};
}

std::vector<float> randomFloats(Bench &bench, std::size_t count, float low, float high) {
  std::vector<float> values(count);
  for (auto &v : values)
    v = float(double(low) + (double(high) - double(low)) * (double(bench.rng()() >> 11) * 0x1p-53));
  return values;
}

std::vector<std::uint16_t> randomHalfBits(Bench &bench, std::size_t count) {
  std::vector<std::uint16_t> values(count);
  for (auto &v : values) {
    do
      v = std::uint16_t(bench.rng()() >> 40);
    while ((v & 0x7c00) == 0x7c00 && (v & 0x3ff)); // no half NaN; bfloat NaNs (0x7f8x) are caught by this too
  }
  return values;
}

} // namespace kiln::test
