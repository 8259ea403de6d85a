// Reductions against host references: random layouts, shapes with odd factors, 1 to 8 warps.
#include "compiler/layout/Reduction.h"
#include "tests/reduce/SharedKernel.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace kiln::test {
namespace {

using layout::Sizes;

constexpr unsigned maxBits = 11;

std::string reduceOp(const std::string &result, const std::string &sources, const TileCase &c,
                     const std::vector<std::string> &elements, const layout::Encoding &to, const std::string &region) {
  std::string from, results;
  for (const std::string &e : elements) {
    const std::string comma = from.empty() ? "" : ", ";
    from += comma + tensorType(c.shape, e, c.encoding);
    results += comma + (c.shape.size() == 1 ? e : tensorType(without(c.shape, c.axis), e, to));
  }
  return "    " + result + " = tile.reduce(" + sources + ") {axis = " + std::to_string(c.axis) + " : i32} : " + from +
         " to " + results + " {\n" + region + "    }\n";
}

std::string binary(const std::string &element, const std::string &op) {
  return "    ^bb0(%a: " + element + ", %b: " + element + "):\n      %c = " + op + " %a, %b : " + element +
         "\n      tile.yield %c : " + element + "\n";
}

/// The reduction goes through shared memory.
bool acrossWarps(const TileCase &c) {
  const auto tile = layout::TileLayout::create(c.encoding, c.shape);
  return layout::planReduction(tile->core(), c.axis, 32, **findTarget(c.target))->exchange.has_value();
}

/// The layout of the result: what the operand's gives, or any other that fits.
layout::Encoding resultLayout(std::mt19937_64 &random, const TileCase &c) {
  const Sizes shape = without(c.shape, c.axis);
  if (!shape.empty() && random() % 4 == 0) {
    layout::Encoding other = randomLayout(random, shape, c.logWarps);
    if (layout::TileLayout::create(other, shape))
      return other;
  }
  return sliced(c.encoding, c.axis);
}

template <typename T>
std::string reduceOne(std::mt19937_64 &random, const TileCase &c, const std::string &element, const std::string &op,
                      const std::vector<T> &x, std::vector<T> &out, unsigned runs = 1) {
  TileKernel kernel(c.logWarps);
  const layout::Encoding to = resultLayout(random, c);
  const Sizes shape = without(c.shape, c.axis);
  kernel.input("x", c.shape, element, c.encoding);
  kernel.body(reduceOp("%r", "%x", c, {element}, to, binary(element, op)));
  kernel.output("r", shape, element, &to);
  std::vector<T> first;
  for (unsigned i = 0; i < runs; ++i) {
    Emulator gpu(c.target);
    Buffer &bx = gpu.upload(x), &br = gpu.allocate(volume(shape) * sizeof(T));
    (void)br.poison(std::byte(0xCD));
    if (std::string error = kernel.run(gpu, c.target, {bx, br}, c.scratchBytes); !error.empty())
      return error;
    out = gpu.download<T>(br);
    if (i == 0)
      first = out;
    else if (std::memcmp(first.data(), out.data(), out.size() * sizeof(T)) != 0)
      return "two runs differ\n" + kernel.text();
  }
  return {};
}

template <typename T> void integers(const char *element, unsigned seed) {
  std::mt19937_64 random(seed);
  const struct {
    const char *name;
    T (*combine)(T, T);
  } ops[] = {{"arith.addi",
              [](T a, T b) {
                return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                                      static_cast<std::make_unsigned_t<T>>(b));
              }},
             {"arith.maxsi", [](T a, T b) { return std::max(a, b); }},
             {"arith.minsi", [](T a, T b) { return std::min(a, b); }},
             {"arith.xori", [](T a, T b) { return static_cast<T>(a ^ b); }},
             {"arith.ori", [](T a, T b) { return static_cast<T>(a | b); }}};
  unsigned across = 0;
  for (unsigned round = 0; round < pick(12u, 150u); ++round) {
    const TileCase c = randomCase(random, maxBits);
    across += acrossWarps(c);
    std::vector<T> x(volume(c.shape)), out, want;
    for (T &v : x)
      v = static_cast<T>(random());
    const auto &op = ops[random() % 5];
    ASSERT_EQ(reduceOne(random, c, element, op.name, x, out), "") << "round " << round;
    eachLine(c.shape, c.axis, [&](const std::vector<std::size_t> &line) {
      T all = x[line[0]];
      for (std::size_t k = 1; k < line.size(); ++k)
        all = op.combine(all, x[line[k]]);
      want.push_back(all);
    });
    ASSERT_EQ(out, want) << "round " << round << ": " << op.name << " along " << c.axis << " of "
                         << tensorType(c.shape, element, c.encoding) << " for " << c.target;
  }
  EXPECT_GT(across, 1u) << "too few of them went across warps";
}

TEST(Reduce, Integers8) {
  integers<std::int8_t>("i8", 1);
}
TEST(Reduce, Integers32) {
  integers<std::int32_t>("i32", 2);
}
TEST(Reduce, Integers64) {
  integers<std::int64_t>("i64", 3);
}

/// |sum - exact| <= (n - 1) u sum|x|, and two runs are equal bit for bit.
template <typename T> void sums(const char *element, double unit, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (unsigned round = 0; round < pick(10u, 120u); ++round) {
    const TileCase c = randomCase(random, maxBits);
    std::vector<T> x(volume(c.shape)), out;
    for (T &v : x)
      v = static_cast<T>(uniform(random));
    ASSERT_EQ(reduceOne(random, c, element, "arith.addf", x, out, 2), "") << "round " << round;
    std::size_t at = 0;
    eachLine(c.shape, c.axis, [&](const std::vector<std::size_t> &line) {
      double sum = 0, magnitude = 0;
      for (std::size_t i : line) {
        sum += static_cast<double>(x[i]);
        magnitude += std::abs(static_cast<double>(x[i]));
      }
      const double bound = static_cast<double>(line.size() - 1) * unit * magnitude;
      ASSERT_LE(std::abs(static_cast<double>(out[at]) - sum), bound)
          << "round " << round << ", line " << at << " of " << tensorType(c.shape, element, c.encoding);
      ++at;
    });
  }
}

TEST(Reduce, SumsOfF32) {
  sums<float>("f32", 0x1p-24, 4);
}
TEST(Reduce, SumsOfF16) {
  sums<_Float16>("f16", 0x1p-11, 5);
}
TEST(Reduce, SumsOfF64) {
  sums<double>("f64", 0x1p-53, 6);
}

TEST(Reduce, MaximaAndNaN) {
  std::mt19937_64 random(7);
  for (unsigned round = 0; round < pick(10u, 100u); ++round) {
    const TileCase c = randomCase(random, maxBits);
    const bool propagates = random() % 2;
    std::vector<float> x(volume(c.shape)), out;
    for (float &v : x)
      v = random() % 40 == 0 ? std::numeric_limits<float>::quiet_NaN()
                             : static_cast<float>(static_cast<int>(random() % 2001) - 1000);
    ASSERT_EQ(reduceOne(random, c, "f32", propagates ? "arith.maximumf" : "arith.maxnumf", x, out), "");
    std::size_t at = 0;
    eachLine(c.shape, c.axis, [&](const std::vector<std::size_t> &line) {
      float best = -std::numeric_limits<float>::infinity();
      bool nan = false, number = false;
      for (std::size_t i : line) {
        nan |= std::isnan(x[i]);
        number |= !std::isnan(x[i]);
        best = std::fmax(best, x[i]);
      }
      if (propagates ? nan : !number)
        EXPECT_TRUE(std::isnan(out[at])) << "round " << round << ", line " << at;
      else
        EXPECT_EQ(out[at], best) << "round " << round << ", line " << at;
      ++at;
    });
  }
}

/// Two operands; a NaN is the largest, of equals the first one wins.
TEST(Reduce, WhereTheMaximumIs) {
  std::mt19937_64 random(8);
  const std::string region = "    ^bb0(%a: f32, %ia: i32, %b: f32, %ib: i32):\n"
                             "      %an = arith.cmpf uno, %a, %a : f32\n      %bn = arith.cmpf uno, %b, %b : f32\n"
                             "      %gt = arith.cmpf ogt, %a, %b : f32\n      %oeq = arith.cmpf oeq, %a, %b : f32\n"
                             "      %both = arith.andi %an, %bn : i1\n      %eq = arith.ori %oeq, %both : i1\n"
                             "      %first = arith.cmpi slt, %ia, %ib : i32\n"
                             "      %tie = arith.andi %eq, %first : i1\n"
                             "      %one = arith.constant true\n      %bnot = arith.xori %bn, %one : i1\n"
                             "      %only = arith.andi %an, %bnot : i1\n"
                             "      %w0 = arith.ori %gt, %tie : i1\n      %w = arith.ori %w0, %only : i1\n"
                             "      %vw = arith.select %w, %a, %b : f32\n      %k = arith.select %w, %ia, %ib : i32\n"
                             "      tile.yield %vw, %k : f32, i32\n";
  for (unsigned round = 0; round < pick(10u, 100u); ++round) {
    const TileCase c = randomCase(random, maxBits);
    const layout::Encoding to = resultLayout(random, c);
    const Sizes shape = without(c.shape, c.axis);
    std::vector<float> x(volume(c.shape));
    std::vector<std::int32_t> where(x.size());
    for (float &v : x)
      v = random() % 60 == 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(random() % 50);
    eachLine(c.shape, c.axis, [&](const std::vector<std::size_t> &line) {
      for (std::size_t k = 0; k < line.size(); ++k)
        where[line[k]] = static_cast<std::int32_t>(k);
    });
    TileKernel kernel(c.logWarps);
    kernel.input("x", c.shape, "f32", c.encoding);
    kernel.input("i", c.shape, "i32", c.encoding);
    kernel.body(reduceOp("%v:2", "%x, %i", c, {"f32", "i32"}, to, region));
    kernel.output("v#1", shape, "i32", &to);
    std::string text = kernel.text();
    Emulator gpu(c.target);
    Buffer &bx = gpu.upload(x), &bi = gpu.upload(where), &bo = gpu.allocate(volume(shape) * 4);
    (void)bo.poison(std::byte(0xCD));
    ASSERT_EQ(kernel.run(gpu, c.target, {bx, bi, bo}, c.scratchBytes), "") << "round " << round;
    const auto out = gpu.download<std::int32_t>(bo);
    std::size_t at = 0;
    eachLine(c.shape, c.axis, [&](const std::vector<std::size_t> &line) {
      std::size_t best = 0;
      for (std::size_t k = 1; k < line.size(); ++k) {
        const float old = x[line[best]], now = x[line[k]];
        if (!std::isnan(old) && (std::isnan(now) || now > old))
          best = k;
      }
      ASSERT_EQ(out[at], static_cast<std::int32_t>(best)) << "round " << round << ", line " << at << "\n" << text;
      ++at;
    });
  }
}

/// Masks: i1 through shuffles and shared memory.
TEST(Reduce, AnyOfAMask) {
  std::mt19937_64 random(9);
  for (unsigned round = 0; round < pick(8u, 80u); ++round) {
    const TileCase c = randomCase(random, maxBits);
    const layout::Encoding to = resultLayout(random, c);
    const Sizes shape = without(c.shape, c.axis);
    std::vector<std::int32_t> x(volume(c.shape)), want;
    for (std::int32_t &v : x)
      v = random() % 16 == 0;
    eachLine(c.shape, c.axis, [&](const std::vector<std::size_t> &line) {
      std::int32_t any = 0;
      for (std::size_t i : line)
        any |= x[i];
      want.push_back(any);
    });
    const std::string i32 = tensorType(c.shape, "i32", c.encoding);
    const bool scalar = shape.empty();
    const std::string mask = scalar ? "i1" : tensorType(shape, "i1", to);
    const std::string number = scalar ? "i32" : tensorType(shape, "i32", to);
    TileKernel kernel(c.logWarps);
    kernel.input("x", c.shape, "i32", c.encoding);
    kernel.body("    %zero = arith.constant 0 : i32\n    %zeros = tile.splat %zero : i32 to " + i32 +
                "\n    %m = arith.cmpi ne, %x, %zeros : " + i32 + "\n");
    kernel.body(reduceOp("%any", "%m", c, {"i1"}, to, binary("i1", "arith.ori")));
    kernel.body("    %r = arith.extui %any : " + mask + " to " + number + "\n");
    kernel.output("r", shape, "i32", &to);
    Emulator gpu(c.target);
    Buffer &bx = gpu.upload(x), &br = gpu.allocate(want.size() * 4);
    (void)br.poison(std::byte(0xCD));
    ASSERT_EQ(kernel.run(gpu, c.target, {bx, br}, c.scratchBytes), "") << "round " << round;
    ASSERT_EQ(gpu.download<std::int32_t>(br), want) << "round " << round << "\n" << kernel.text();
  }
}

/// Whole-warp integer reductions are one instruction where the target has it.
TEST(Reduce, ReduxWhereItExists) {
  TileKernel kernel(2);
  const layout::Blocked encoding{{4}, {32}, {4}, {0}};
  const TileCase c{2, 0, {512}, encoding, "", 49152};
  kernel.input("x", c.shape, "i32", encoding);
  kernel.body(reduceOp("%r", "%x", c, {"i32"}, encoding, binary("i32", "arith.addi")));
  kernel.output("r", {}, "i32", nullptr);
  for (const char *target : {"sm_75", "sm_80", "sm_90a"}) {
    const SharedStage stage = throughShared(kernel.text(), target);
    ASSERT_EQ(stage.errors, "");
    const LoweredKernel code = lowered(stage.text, target);
    ASSERT_TRUE(code.ok) << code.errors;
    const bool has = std::string_view(target) != "sm_75";
    EXPECT_EQ(code.ptx.find("redux.sync.add.s32") != std::string::npos, has) << code.ptx;
    EXPECT_EQ(code.ptx.find("shfl.sync.bfly") == std::string::npos, has) << code.ptx;
  }
}

} // namespace
} // namespace kiln::test
