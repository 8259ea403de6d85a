#include "tests/emulator/WgmmaCases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kiln::test {

namespace {

constexpr WgmmaTypes allTypes[] = {
    {"f32", "f16", "f16", 16},   {"f16", "f16", "f16", 16},     {"f32", "bf16", "bf16", 16},
    {"f32", "tf32", "tf32", 8},  {"f32", "e4m3", "e4m3", 32},   {"f32", "e4m3", "e5m2", 32},
    {"f32", "e5m2", "e4m3", 32}, {"f32", "e5m2", "e5m2", 32},   {"f16", "e4m3", "e4m3", 32},
    {"f16", "e4m3", "e5m2", 32}, {"f16", "e5m2", "e4m3", 32},   {"f16", "e5m2", "e5m2", 32},
    {"s32", "s8", "s8", 32},     {"s32", "s8", "u8", 32},       {"s32", "u8", "s8", 32},
    {"s32", "u8", "u8", 32},     {"s32", "s8", "s8", 32, true}, {"s32", "u8", "u8", 32, true},
    {"s32", "b1", "b1", 256},
};

} // namespace

std::span<const WgmmaTypes> wgmmaTypes() {
  return allTypes;
}

std::uint32_t randomElement(std::mt19937 &random, const ElementFormat &f, Values values) {
  const std::uint32_t mask = f.bits == 32 ? ~0u : (1u << f.bits) - 1;
  std::uint32_t v = static_cast<std::uint32_t>(random()) & mask;
  if (f.integer || values == Values::AnyBits)
    return v;
  const unsigned low = f.skip() + f.fractionBits;
  const std::uint32_t field = (1u << f.exponentBits) - 1, bias = field / 2;
  std::uint32_t exponent = v >> low & field;
  if (values != Values::AnyBits && random() % 16 == 0)
    return v >> (f.bits - 1) << (f.bits - 1); // a zero
  if (values == Values::Small) {
    exponent = bias - 3 + exponent % 6;
  } else if (values == Values::Wide) {
    const std::uint32_t reach = std::min(bias - 1, 12u);
    exponent = bias - reach + static_cast<std::uint32_t>(random()) % (2 * reach + 1);
  } else if (exponent == field) {
    exponent = field - 1;
  }
  return (v & ~(field << low)) | exponent << low;
}

namespace {

struct Problem {
  std::vector<std::uint32_t> a, b, c; ///< [64][k], [n][k], [64][n], raw
};

Problem randomProblem(std::mt19937 &random, const WgmmaKernel &kernel, Values values) {
  const unsigned k = kernel.types.a == "b1" ? 8 : kernel.types.k;
  Problem p;
  for (unsigned i = 0; i < 64 * k; ++i)
    p.a.push_back(randomElement(random, elementFormat(kernel.types.a), values));
  for (unsigned i = 0; i < kernel.n * k; ++i)
    p.b.push_back(randomElement(random, elementFormat(kernel.types.b), values));
  for (unsigned i = 0; i < 64 * kernel.n; ++i)
    p.c.push_back(kernel.types.d == "s32" ? static_cast<std::uint32_t>(random()) << (random() % 2 ? 0 : 12)
                                          : randomElement(random, elementFormat(kernel.types.d), values));
  return p;
}

/// Lays the operand out in the image of shared memory, whose first byte is at `base`.
void place(std::vector<std::uint8_t> &image, unsigned base, const TileLayout &tile, unsigned k,
           const std::vector<std::uint32_t> &elements) {
  const unsigned bytes = 32 / k;
  for (unsigned i = 0; i < tile.extent; ++i)
    for (unsigned j = 0; j < k; ++j)
      for (unsigned e = 0; e < bytes; ++e) {
        const unsigned at = tile.mnMajor ? tile.offset(i, 2 * j) + e : tile.offset(i, j * bytes + e);
        image.at(at - base) = static_cast<std::uint8_t>(elements[i * k + j] >> 8 * e);
      }
}

unsigned randomN(std::mt19937 &random, const WgmmaTypes &types) {
  for (;;) {
    const unsigned n = 8 * (1 + static_cast<unsigned>(random() % (random() % 4 ? 8 : 32)));
    if (types.d != "s32" || n <= 32 || n % 16 == 0)
      return n;
  }
}

/// A buffer with these words or bytes.
template <typename T> std::unique_ptr<Buffer> upload(Device &device, const std::vector<T> &values, const char *name) {
  auto b = device.allocate(values.size() * sizeof(T), name);
  if (!b || !(*b)->copyFromHost(0, std::as_bytes(std::span(values))).ok())
    return nullptr;
  return std::move(*b);
}

/// Loads and runs the kernel's text; findings are failures.
Status run(Device &device, const std::string &text, unsigned sharedBytes,
           std::initializer_list<const Buffer *> arguments) {
  auto module = device.loadPtx(text, "wgmma.ptx");
  if (!module)
    return module.status();
  auto kernel = (*module)->kernel("k");
  if (!kernel)
    return kernel.status();
  std::vector<std::uint64_t> packed;
  for (const Buffer *b : arguments)
    packed.push_back(b->address());
  LaunchConfig config;
  config.grid = {1};
  config.block = {128};
  config.dynamicSharedBytes = sharedBytes;
  KILN_TRY((*kernel)->launch(config, std::as_bytes(std::span(packed))));
  for (const Finding &f : device.takeFindings())
    if (!f.note)
      return Status(StatusCode::DeviceError, f.id + ": " + f.message);
  return {};
}

} // namespace

void setRandomScales(std::mt19937 &random, WgmmaKernel &kernel) {
  kernel.scaleD = random() % 4 != 0;
  kernel.scaleImmediate = random() % 2;
  kernel.negateA = kernel.types.d != "s32" && random() % 2;
  kernel.negateB = kernel.types.d != "s32" && random() % 2;
}

/// Chooses layouts, runs the product and compares every element.
void checkWgmma(Device &device, std::mt19937 &random, WgmmaKernel kernel, Values values, unsigned swizzleA, bool mnA,
                unsigned swizzleB, bool mnB) {
  kernel.a = randomLayout(random, mnA, swizzleA, 64, wgmmaSharedBase);
  const unsigned end = kernel.a.start + kernel.a.span();
  kernel.b = randomLayout(random, mnB, swizzleB, kernel.n, (end + 1023) / 1024 * 1024);
  const unsigned bytes = (kernel.b.start + kernel.b.span() - wgmmaSharedBase + 2047) / 2048 * 2048;
  const unsigned k = kernel.types.a == "b1" ? 8 : kernel.types.k;
  const Problem p = randomProblem(random, kernel, values);
  std::vector<std::uint8_t> image(bytes);
  for (std::uint8_t &byte : image)
    byte = static_cast<std::uint8_t>(random());
  if (!kernel.fragments)
    place(image, wgmmaSharedBase, kernel.a, k, p.a);
  place(image, wgmmaSharedBase, kernel.b, k, p.b);
  std::vector<std::uint32_t> fragments(128 * 4), accumulators(128 * kernel.accumulators());
  for (unsigned i = 0; i < 64; ++i)
    for (unsigned j = 0; j < k; ++j) {
      const FragmentPlace at = fragmentPlace(32 / k * 8, i, j);
      fragments[at.thread * 4 + at.reg] |= p.a[i * k + j] << at.shift;
    }
  const bool halves = kernel.types.d == "f16";
  for (unsigned i = 0; i < 64; ++i)
    for (unsigned j = 0; j < kernel.n; ++j) {
      const FragmentPlace at = accumulatorPlace(halves, i, j);
      accumulators[at.thread * kernel.accumulators() + at.reg] |= p.c[i * kernel.n + j] << at.shift;
    }
  const auto imageBuffer = upload(device, image, "image"), fragmentBuffer = upload(device, fragments, "fragments"),
             accumulatorBuffer = upload(device, accumulators, "accumulators"),
             out = upload(device, std::vector<std::uint32_t>(accumulators.size(), 0xDEADBEEF), "out");
  ASSERT_TRUE(imageBuffer && fragmentBuffer && accumulatorBuffer && out);
  const std::string what = kernel.opcode() + " swizzles " + std::to_string(swizzleA) + " " + std::to_string(swizzleB) +
                           " mn " + std::to_string(mnA) + std::to_string(mnB) + " scale-d " +
                           std::to_string(kernel.scaleD) + (kernel.fragments ? " fragments" : "");
  const Status ran = run(device, kernel.text(bytes), bytes,
                         {imageBuffer.get(), fragmentBuffer.get(), accumulatorBuffer.get(), out.get()});
  ASSERT_TRUE(ran.ok()) << what << "\n" << ran.toString();
  std::vector<std::uint32_t> got(accumulators.size());
  ASSERT_TRUE(out->copyToHost(0, std::as_writable_bytes(std::span(got))).ok());
  for (unsigned i = 0; i < 64; ++i)
    for (unsigned j = 0; j < kernel.n; ++j) {
      const FragmentPlace at = accumulatorPlace(halves, i, j);
      const std::uint32_t word = got[at.thread * kernel.accumulators() + at.reg] >> at.shift;
      const std::uint32_t want =
          wgmmaElement(kernel.types, &p.a[i * k], &p.b[j * k], kernel.scaleD ? p.c[i * kernel.n + j] : 0,
                       kernel.negateA, kernel.negateB);
      ASSERT_EQ(halves ? word & 0xFFFF : word, want) << what << " row " << i << " column " << j;
    }
}

void wgmmaEveryTypeMajorAndSwizzle(Device &device) {
  std::mt19937 random(1);
  const unsigned swizzles[] = {0, 32, 64, 128};
  for (const WgmmaTypes &types : allTypes)
    for (const unsigned swizzleB : swizzles)
      for (bool mnB : {false, true})
        for (unsigned a = 0; a < 9; ++a) { // A: four swizzles, two majors, or registers
          if (types.k != 16 && (mnB || (a >= 4 && a < 8)))
            continue;
          WgmmaKernel kernel;
          kernel.types = types;
          kernel.n = randomN(random, types);
          kernel.fragments = a == 8;
          setRandomScales(random, kernel);
          checkWgmma(device, random, kernel, Values::Small, swizzles[a % 4], a >= 4 && a < 8, swizzleB, mnB);
        }
}

void wgmmaEveryWidth(Device &device) {
  std::mt19937 random(2);
  for (unsigned n = 8; n <= 256; n += 8)
    for (const WgmmaTypes &types : {allTypes[2], allTypes[1], allTypes[12]}) {
      if (types.d == "s32" && n > 32 && n % 16)
        continue;
      WgmmaKernel kernel;
      kernel.types = types;
      kernel.n = n;
      kernel.fragments = random() % 2;
      setRandomScales(random, kernel);
      checkWgmma(device, random, kernel, Values::Small, 128, false, 64, types.k == 16 && random() % 2);
    }
}

void wgmmaAnyNumbers(Device &device) {
  std::mt19937 random(3);
  for (const WgmmaTypes &types : allTypes)
    for (Values values : {Values::Wide, Values::AnyFinite, Values::AnyBits})
      for (unsigned i = 0; i < 4; ++i) {
        WgmmaKernel kernel;
        kernel.types = types;
        kernel.n = 8 * (1 + static_cast<unsigned>(random() % 4));
        kernel.fragments = i % 2;
        setRandomScales(random, kernel);
        checkWgmma(device, random, kernel, values, 128, false, 128, false);
      }
}

} // namespace kiln::test
