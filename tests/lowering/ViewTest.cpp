// Views: random extents, strides, coordinates, narrowed windows; reads outside give zero, writes outside do nothing.
#include "tests/lowering/Text.h"

#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using layout::Encoding;
using layout::Sizes;
using layout::TileLayout;

struct Window {
  std::int64_t extents[2], strides[2], at[2];
};

/// A kernel that reads a tile at run-time coordinates of x and writes it at others of y.
std::string copyKernel(const Sizes &shape, const std::string &element, const Encoding &encoding, int unit,
                       unsigned warps, unsigned divisibility, bool narrow, const char *cache) {
  const std::string kind = unit == 1 ? "" : unit == 0 ? ", unit = 0" : ", unit = none";
  const std::string view = "!tile.view<" + extents(shape) + "x" + element + kind + ">";
  const std::string type = tensorType(shape, element, encoding);
  const std::string d = " {tile.divisibility = " + std::to_string(divisibility) + " : i32}";
  std::string parameters = "%x: !tile.ptr<" + element + "> {tile.divisibility = 16 : i32}, %y: !tile.ptr<" + element +
                           "> {tile.divisibility = 16 : i32}";
  for (const char *p : {"x", "y"})
    for (const char *what : {"n", "s", "c"})
      for (const char *dim : {"0", "1"})
        parameters += std::string(", %") + p + what + dim + ": i64" + d;
  parameters += ", %start: i64" + d + ", %size: i64" + d;
  std::string body;
  for (const std::string p : {"x", "y"}) {
    body += "    %v" + p + "0 = tile.make_view %" + p + ", extents [%" + p + "n0, %" + p + "n1], strides [%" + p +
            "s0, %" + p + "s1] : " + view + ", i64\n";
    body += narrow
                ? "    %v" + p + " = tile.narrow_view %v" + p + "0[%start, %size] {dim = 0 : i32} : " + view + ", i64\n"
                : "    %z" + p + " = arith.constant 0 : i64\n";
  }
  const std::string x = narrow ? "%vx" : "%vx0", y = narrow ? "%vy" : "%vy0";
  body += "    %t = tile.load_view " + x + "[%xc0, %xc1]" + cache + " : " + view + ", i64 -> " + type + "\n";
  body += "    tile.store_view " + y + "[%yc0, %yc1], %t" + cache + " : " + view + ", i64, " + type + "\n";
  return kernelModule(parameters, body, warps);
}

template <typename T> void copyRandomWindows(unsigned seed, const std::string &element, unsigned rounds) {
  std::mt19937_64 random(seed);
  auto between = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (unsigned round = 0; round < rounds; ++round) {
    const unsigned logWarps = static_cast<unsigned>(random() % 3);
    const Sizes shape = randomShape(random, 2, 9);
    const Encoding encoding = randomLayout(random, shape, logWarps);
    const auto layout = TileLayout::create(encoding, shape);
    if (!layout || layout->registers() > 64)
      continue;
    const unsigned divisibility = random() % 2 ? 16 : 1;
    const int unit = static_cast<int>(between(-1, 1));
    const bool narrow = random() % 2;
    static const char *const caches[] = {"", "", " cache streaming", " cache global", " cache volatile"};
    const char *cache = caches[random() % 5];
    const char *target = loweringTargets[random() % 4];
    auto any = [&](std::int64_t low, std::int64_t high) {
      const std::int64_t v = between(low, high);
      return v - v % divisibility;
    };
    std::vector<T> x, y;
    Window wx, wy;
    auto fill = [&](Window &w, std::vector<T> &memory) {
      for (int d = 0; d < 2; ++d) {
        // Often wholly inside, often across an edge, sometimes outside.
        w.extents[d] = any(0, 2 * shape[d] + 20);
        w.at[d] = random() % 2 ? any(0, std::max<std::int64_t>(0, w.extents[d] - shape[d]))
                               : any(-shape[d] - 16, w.extents[d] + 16);
      }
      const int inner = unit == 0 ? 0 : 1;
      w.strides[inner] = unit < 0 && divisibility == 1 ? between(1, 2) : unit < 0 ? 16 : 1;
      w.strides[1 - inner] = (w.extents[inner] * w.strides[inner] + between(0, 3) + 15) / 16 * 16;
      std::int64_t size = 1;
      for (int d = 0; d < 2; ++d)
        size += std::max<std::int64_t>(0, w.extents[d] - 1) * w.strides[d];
      memory.resize(static_cast<std::size_t>(size));
      for (T &v : memory)
        v = static_cast<T>(random());
    };
    fill(wx, x);
    fill(wy, y);
    const std::int64_t start = any(-20, wx.extents[0] + 4), size = any(-1, wx.extents[0] + 20);

    std::vector<T> expected = y;
    auto valid = [&](const Window &w, std::int64_t i, std::int64_t j, std::int64_t &at) {
      if (narrow) {
        if (i < 0 || i >= size)
          return false;
        i += start;
      }
      at = i * w.strides[0] + j * w.strides[1];
      return i >= 0 && i < w.extents[0] && j >= 0 && j < w.extents[1];
    };
    for (std::int64_t i = 0; i < shape[0]; ++i)
      for (std::int64_t j = 0; j < shape[1]; ++j) {
        std::int64_t from = 0, to = 0;
        const bool reads = valid(wx, wx.at[0] + i, wx.at[1] + j, from);
        if (valid(wy, wy.at[0] + i, wy.at[1] + j, to))
          expected[static_cast<std::size_t>(to)] = reads ? x[static_cast<std::size_t>(from)] : T(0);
      }

    Emulator gpu(target);
    Buffer &bx = gpu.upload(x, "x"), &by = gpu.upload(y, "y");
    std::vector<Argument> arguments = {bx, by};
    for (const Window *w : {&wx, &wy})
      for (const auto &list : {w->extents, w->strides, w->at})
        for (int d = 0; d < 2; ++d)
          arguments.push_back(list[d]);
    arguments.push_back(start);
    arguments.push_back(size);
    const std::string text = copyKernel(shape, element, encoding, unit, 1u << logWarps, divisibility, narrow, cache);
    const KernelRun run = runKernel(gpu, target, text, 1u << logWarps, arguments);
    ASSERT_EQ(run.error, "") << "round " << round;
    ASSERT_EQ(gpu.download<T>(by), expected) << "round " << round << "\n" << text << run.ptx;
  }
}

TEST(View, RandomWindows32) {
  copyRandomWindows<std::uint32_t>(11, "i32", pick(25u, 150u));
}
TEST(View, RandomWindows16) {
  copyRandomWindows<std::uint16_t>(12, "f16", pick(18u, 150u));
}
TEST(View, RandomWindows8) {
  copyRandomWindows<std::uint8_t>(13, "i8", pick(18u, 150u));
}
TEST(View, RandomWindows64) {
  copyRandomWindows<std::uint64_t>(14, "f64", pick(15u, 120u));
}

TEST(View, NumbersAtTheEdgeOfI64AreOutside) {
  const std::int64_t low = std::numeric_limits<std::int64_t>::min(), high = std::numeric_limits<std::int64_t>::max();
  const Encoding encoding = layout::Blocked{{1, 1}, {4, 8}, {1, 1}, {1, 0}};
  const std::string text = copyKernel({4, 8}, "i32", encoding, 1, 1, 1, true, "");
  Emulator gpu("sm_80");
  for (std::int64_t c : {low, low + 1, high - 3, high}) {
    for (std::int64_t n : {low, high, std::int64_t(4)})
      for (std::int64_t start : {low, std::int64_t(0), high}) {
        if (n == high && c > 0)
          continue; // so large a view would have these rows
        const std::vector<std::uint32_t> x(64, 7), y(64, 9);
        Buffer &bx = gpu.upload(x, "x"), &by = gpu.upload(y, "y");
        // The target window is wholly inside; the source's coordinate or bounds are extreme: all of it is outside.
        const KernelRun run = runKernel(gpu, "sm_80", text, 1,
                                        {bx, by, n, std::int64_t(8), std::int64_t(8), std::int64_t(1), c,
                                         std::int64_t(0), std::int64_t(4), std::int64_t(8), std::int64_t(8),
                                         std::int64_t(1), c, std::int64_t(0), start, high});
        ASSERT_EQ(run.error, "") << c << " " << n << " " << start;
        ASSERT_EQ(gpu.download<std::uint32_t>(by), y) << c << " " << n << " " << start;
      }
  }
}

TEST(View, WholeTilesMove16BytesALane) {
  const Encoding encoding = layout::Blocked{{1, 8}, {4, 8}, {4, 1}, {1, 0}};
  const LoweredKernel k = lowered(copyKernel({64, 64}, "f16", encoding, 1, 4, 16, false, ""), "sm_90a");
  ASSERT_TRUE(k.ok) << k.errors;
  EXPECT_NE(k.ptx.find("ld.global.v4.b32"), std::string::npos) << k.ptx;
  EXPECT_NE(k.ptx.find("st.global.v4.b32"), std::string::npos) << k.ptx;
  EXPECT_EQ(k.ptx.find("ld.global.b16"), std::string::npos) << "bounds are multiples of 16 too: no narrow path\n"
                                                            << k.ptx;
}

} // namespace
} // namespace kiln::test
