// Elementwise operations, constants and changes of shape on tiles of random layouts.
//
// Each kernel writes a tile through a view; the host computes the same tile element by element.
#include "tests/lowering/Text.h"

#include "compiler/layout/LayoutText.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using layout::Encoding;
using layout::Sizes;
using layout::TileLayout;

std::vector<std::int32_t> randomWords(std::mt19937_64 &random, std::size_t n) {
  std::vector<std::int32_t> out(n);
  for (std::int32_t &x : out)
    x = static_cast<std::int32_t>(random());
  return out;
}

/// Runs `body`, which reads %x (and makes i32 tile %r of type `type` and shape), on one block.
std::vector<std::int32_t> run(const std::string &body, const Sizes &shape, const std::string &type, unsigned warps,
                              const char *target, const std::vector<std::int32_t> &input) {
  const std::string text = kernelModule(
      "%x: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<i32> {tile.divisibility = 16 : i32}",
      zeroConstant + body + storeView("r", "y", shape, "i32", type), warps);
  Emulator gpu(target);
  Buffer &x = gpu.upload(input), &y = gpu.allocate(elementsOf(shape) * 4);
  (void)y.poison(std::byte(0xEE));
  const KernelRun ran = runKernel(gpu, target, text, warps, {x, y});
  EXPECT_EQ(ran.error, "");
  return ran.error.empty() ? gpu.download<std::int32_t>(y) : std::vector<std::int32_t>();
}

struct Case {
  Sizes shape;
  Encoding encoding = layout::Blocked{};
  unsigned logWarps = 0;
  const char *target = "";
  std::string type; ///< i32
};

/// A tile that has a layout.
Case randomCase(std::mt19937_64 &random, unsigned rank, unsigned maxBits = 9) {
  for (;;) {
    Case c;
    c.logWarps = static_cast<unsigned>(random() % 3);
    c.shape = randomShape(random, rank, maxBits);
    c.encoding = randomLayout(random, c.shape, c.logWarps);
    c.target = loweringTargets[random() % 4];
    if (!TileLayout::create(c.encoding, c.shape))
      continue;
    c.type = tensorType(c.shape, "i32", c.encoding);
    return c;
  }
}

/// The layout of a tile whose element `at` is the operand's element `from(at)`, from the operand's, by bases.
template <typename Map> Encoding mappedLayout(const TileLayout &source, const Sizes &core, Map to) {
  layout::Linear out;
  auto bases = [&](layout::InDim in, std::vector<Sizes> &into) {
    for (layout::BitVector c : source.core().columns(in)) {
      const layout::Coords at = source.core().coords(c);
      into.push_back(to(Sizes(at.begin(), at.end())));
    }
  };
  bases(layout::InDim::Register, out.registers);
  bases(layout::InDim::Lane, out.lanes);
  bases(layout::InDim::Warp, out.warps);
  out.shape = core;
  return out;
}

TEST(Shape, RangeInEveryLayout) {
  std::mt19937_64 random(1);
  for (unsigned i = 0, n = pick(12u, 100u); i < n; ++i) {
    const Case c = randomCase(random, 1);
    const std::int64_t start = static_cast<std::int64_t>(random() % 100) - 50;
    const auto out = run("    %r = tile.range " + std::to_string(start) + " to " + std::to_string(start + c.shape[0]) +
                             " : " + c.type + "\n",
                         c.shape, c.type, 1u << c.logWarps, c.target, {0});
    for (std::size_t k = 0; k < out.size(); ++k)
      ASSERT_EQ(out[k], start + static_cast<std::int64_t>(k)) << c.type;
  }
}

TEST(Shape, DenseConstants) {
  std::mt19937_64 random(2);
  for (unsigned i = 0, n = pick(8u, 60u); i < n; ++i) {
    const Case c = randomCase(random, 1 + i % 3, 6);
    const auto values = randomWords(random, elementsOf(c.shape));
    std::string list;
    for (std::int32_t v : values)
      list += (list.empty() ? "" : ", ") + std::to_string(v);
    // As a flat list with a shape: a splat if there is one element.
    std::string dense;
    std::vector<std::size_t> after(c.shape.size() + 1, 1);
    for (std::size_t d = c.shape.size(); d-- > 0;)
      after[d] = after[d + 1] * static_cast<std::size_t>(c.shape[d]);
    for (std::size_t k = 0; k < values.size(); ++k) {
      for (std::size_t d = 0; d < c.shape.size(); ++d)
        if (k % after[d] == 0)
          dense += "[";
      dense += std::to_string(values[k]);
      for (std::size_t d = 0; d < c.shape.size(); ++d)
        if ((k + 1) % after[d] == 0)
          dense += "]";
      if (k + 1 < values.size())
        dense += ", ";
    }
    const auto out = run("    %r = arith.constant dense<" + dense + "> : " + c.type + "\n", c.shape, c.type,
                         1u << c.logWarps, c.target, {0});
    ASSERT_EQ(out, values) << c.type;
  }
}

TEST(Shape, ElementwiseSelectAndScalars) {
  std::mt19937_64 random(3);
  for (unsigned i = 0, n = pick(10u, 80u); i < n; ++i) {
    const Case c = randomCase(random, 1 + i % 3);
    const auto x = randomWords(random, elementsOf(c.shape));
    const std::string bits = tensorType(c.shape, "i1", c.encoding), wide = tensorType(c.shape, "i64", c.encoding);
    const auto out =
        run(loadView("a", "x", c.shape, "i32", c.type) + "    %k = arith.constant dense<12345> : " + c.type + "\n" +
                "    %b = arith.xori %a, %k : " + c.type + "\n" + "    %m = arith.cmpi ult, %a, %b : " + c.type + "\n" +
                "    %w = arith.extsi %a : " + c.type + " to " + wide + "\n" + "    %ww = arith.muli %w, %w : " + wide +
                "\n" + "    %t = arith.trunci %ww : " + wide + " to " + c.type + "\n" +
                "    %s = arith.select %m, %t, %b : " + bits + ", " + c.type + "\n" +
                "    %yes = arith.constant true\n" + "    %r = arith.select %yes, %s, %a : " + c.type + "\n",
            c.shape, c.type, 1u << c.logWarps, c.target, x);
    ASSERT_EQ(out.size(), x.size());
    for (std::size_t k = 0; k < out.size(); ++k) {
      const std::uint32_t a = static_cast<std::uint32_t>(x[k]), b = a ^ 12345u;
      const std::uint32_t expected = a < b ? a * a : b;
      ASSERT_EQ(static_cast<std::uint32_t>(out[k]), expected) << c.type;
    }
  }
}

TEST(Shape, CarriedThroughLoopsAndBranches) {
  std::mt19937_64 random(4);
  for (unsigned i = 0, n = pick(6u, 40u); i < n; ++i) {
    const Case c = randomCase(random, 1 + i % 2);
    const auto x = randomWords(random, elementsOf(c.shape));
    const auto out =
        run(loadView("a", "x", c.shape, "i32", c.type) +
                "    %one = arith.constant 1 : i32\n    %five = arith.constant 5 : i32\n"
                "    %l:2 = scf.for %i = %zero to %five step %one iter_args(%u = %a, %n = %zero) -> (" +
                c.type +
                ", i32) : i32 {\n"
                "      %s = tile.splat %i : i32 to " +
                c.type +
                "\n"
                "      %odd = arith.andi %i, %one : i32\n"
                "      %c = arith.cmpi eq, %odd, %one : i32\n"
                "      %v = scf.if %c -> (" +
                c.type +
                ") {\n"
                "        %p = arith.muli %u, %u : " +
                c.type + "\n        scf.yield %p : " + c.type +
                "\n"
                "      } else {\n"
                "        %q = arith.addi %u, %s : " +
                c.type + "\n        scf.yield %q : " + c.type +
                "\n"
                "      }\n"
                "      %m = arith.addi %n, %i : i32\n"
                "      scf.yield %v, %m : " +
                c.type +
                ", i32\n    }\n"
                "    %k:2 = scf.while (%u = %l#0, %n = %zero) : (" +
                c.type + ", i32) -> (" + c.type +
                ", i32) {\n      %c = arith.cmpi slt, %n, %l#1 : i32\n      scf.condition(%c) %u, %n : " + c.type +
                ", i32\n    } do {\n    ^bb0(%u: " + c.type +
                ", %n: i32):\n"
                "      %p = arith.addi %u, %a : " +
                c.type +
                "\n      %m = arith.addi %n, %five : i32\n"
                "      scf.yield %p, %m : " +
                c.type +
                ", i32\n    }\n"
                "    %r = arith.addi %k#0, %a : " +
                c.type + "\n",
            c.shape, c.type, 1u << c.logWarps, c.target, x);
    ASSERT_EQ(out.size(), x.size());
    for (std::size_t k = 0; k < out.size(); ++k) {
      const auto a = static_cast<std::uint32_t>(x[k]);
      std::uint32_t u = a;
      for (std::uint32_t step = 0; step < 5; ++step)
        u = step & 1 ? u * u : u + step;
      for (int m = 0; m < 10; m += 5)
        u += a;
      ASSERT_EQ(static_cast<std::uint32_t>(out[k]), u + a) << c.type;
    }
  }
}

TEST(Shape, ExpandAndBroadcast) {
  std::mt19937_64 random(5);
  for (unsigned i = 0, n = pick(10u, 80u); i < n; ++i) {
    const unsigned rank = 2 + i % 2;
    const unsigned logWarps = static_cast<unsigned>(random() % 3);
    const Sizes shape = randomShape(random, rank, 9);
    const Encoding encoding = randomBlocked(random, rank, logWarps);
    const auto axis = static_cast<std::int64_t>(random() % rank);
    Sizes narrow = shape, thin = shape;
    narrow.erase(narrow.begin() + axis);
    thin[static_cast<std::size_t>(axis)] = 1;
    const std::string small = tensorType(narrow, "i32", layout::Slice{axis, encoding}),
                      column = tensorType(thin, "i32", encoding), full = tensorType(shape, "i32", encoding);
    const auto x = randomWords(random, elementsOf(narrow));
    const auto out = run(loadView("a", "x", narrow, "i32", small) +
                             "    %e = tile.expand_dims %a {axis = " + std::to_string(axis) + " : i32} : " + small +
                             " to " + column + "\n    %r = tile.broadcast %e : " + column + " to " + full + "\n",
                         shape, full, 1u << logWarps, loweringTargets[random() % 4], x);
    ASSERT_EQ(out.size(), elementsOf(shape)) << full;
    for (std::size_t k = 0; k < out.size(); ++k) {
      Sizes at = coordinatesOf(k, shape);
      at.erase(at.begin() + axis);
      std::size_t flat = 0;
      for (std::size_t d = 0; d < at.size(); ++d)
        flat = flat * static_cast<std::size_t>(narrow[d]) + static_cast<std::size_t>(at[d]);
      ASSERT_EQ(out[k], x[flat]) << full;
    }
  }
}

TEST(Shape, RowsThatNeedAnArm) {
  std::mt19937_64 random(8);
  // Rows whose number has no bit of the mask in common are doubled: all of them, some, those of one warp, none.
  for (unsigned i = 0, n = pick(48u, 240u); i < n; ++i) {
    const unsigned logWarps = static_cast<unsigned>(random() % 3);
    const Sizes shape = {std::int64_t(1) << (4 + random() % 3), std::int64_t(1) << (2 + random() % 4)};
    // Of three times once as the tile does, once in any other way, once so that each warp has all rows of the tile but
    // some of the mask.
    Encoding encoding = randomBlocked(random, 2, logWarps), ofMask = encoding;
    if (i % 3 == 1)
      ofMask = randomBlocked(random, 2, logWarps);
    if (i % 3 == 2) {
      layout::Blocked b{.sizePerThread = {1, 2}, .threadsPerWarp = {4, 8}, .warpsPerCTA = {1, 1 << logWarps}};
      b.order = {1, 0};
      encoding = b;
      std::swap(b.warpsPerCTA[0], b.warpsPerCTA[1]);
      ofMask = b;
    }
    const auto rowsOf = [&](const char *element, const Encoding &e) {
      return tensorType({shape[0]}, element, layout::Slice{1, e});
    };
    const std::string rows = rowsOf("i32", ofMask), asked = rowsOf("i1", ofMask), near = rowsOf("i32", encoding),
                      bits = rowsOf("i1", encoding), column = tensorType({shape[0], 1}, "i1", encoding),
                      mask = tensorType(shape, "i1", encoding), words = tensorType(shape, "i32", encoding);
    const std::uint32_t number = std::array<std::uint32_t, 4>{0, 1, 28, ~0u}[i / 3 % 4];
    const bool never = i / 3 % 4 == 3;
    const auto condition = [&](const std::string &p, const std::string &type) {
      return "    %i" + p + " = tile.range 0 to " + std::to_string(shape[0]) + " : " + type + "\n    %k" + p +
             " = arith.constant dense<" + std::to_string(static_cast<std::int32_t>(number)) + "> : " + type +
             "\n    %m" + p + " = arith.andi %i" + p + ", %k" + p + " : " + type + "\n    %z" + p +
             " = arith.constant dense<" + (never ? "-1" : "0") + "> : " + type + "\n    %c" + p +
             " = arith.cmpi eq, %m" + p + ", %z" + p + " : " + type + "\n";
    };
    const auto x = randomWords(random, elementsOf(shape));
    const auto out =
        run(loadView("a", "x", shape, "i32", words) + condition("q", rows) + condition("w", near) +
                "    %some = tile.any_row %cq : " + asked + "\n    %r = scf.if %some -> (" + words +
                ") {\n    %e = tile.expand_dims %cw {axis = 1 : i32} : " + bits + " to " + column +
                "\n    %b = tile.broadcast %e : " + column + " to " + mask + "\n    %d = arith.addi %a, %a : " + words +
                "\n    %s = arith.select %b, %d, %a : " + mask + ", " + words + "\n    scf.yield %s : " + words +
                "\n    } else {\n    scf.yield %a : " + words + "\n    }\n",
            shape, words, 1u << logWarps, loweringTargets[random() % 4], x);
    ASSERT_EQ(out.size(), x.size()) << words;
    for (std::size_t k = 0; k < out.size(); ++k) {
      const bool changed = !never && (k / static_cast<std::size_t>(shape[1]) & number) == 0;
      ASSERT_EQ(out[k], static_cast<std::int32_t>(static_cast<std::uint32_t>(x[k]) * (changed ? 2 : 1)))
          << words << " " << asked << " " << k;
    }
  }
}

TEST(Shape, Transpose) {
  std::mt19937_64 random(6);
  for (unsigned i = 0, n = pick(10u, 80u); i < n; ++i) {
    const unsigned rank = 2 + i % 2;
    const Case c = randomCase(random, rank);
    std::vector<std::int64_t> perm(rank);
    for (unsigned d = 0; d < rank; ++d)
      perm[d] = d;
    std::shuffle(perm.begin(), perm.end(), random);
    Sizes shape(rank);
    std::string list;
    for (unsigned d = 0; d < rank; ++d) {
      shape[d] = c.shape[static_cast<std::size_t>(perm[d])];
      list += (d ? ", " : "") + std::to_string(perm[d]);
    }
    const std::string type = tensorType(shape, "i32", layout::Transposed{perm, c.encoding});
    const auto x = randomWords(random, elementsOf(c.shape));
    const auto out = run(loadView("a", "x", c.shape, "i32", c.type) + "    %r = tile.transpose %a [" + list +
                             "] : " + c.type + " to " + type + "\n",
                         shape, type, 1u << c.logWarps, c.target, x);
    ASSERT_EQ(out.size(), x.size()) << type;
    for (std::size_t k = 0; k < out.size(); ++k) {
      const Sizes at = coordinatesOf(k, shape);
      Sizes from(rank);
      for (unsigned d = 0; d < rank; ++d)
        from[static_cast<std::size_t>(perm[d])] = at[d];
      std::size_t flat = 0;
      for (unsigned d = 0; d < rank; ++d)
        flat = flat * static_cast<std::size_t>(c.shape[d]) + static_cast<std::size_t>(from[d]);
      ASSERT_EQ(out[k], x[flat]) << type;
    }
  }
}

TEST(Shape, Reshape) {
  std::mt19937_64 random(7);
  for (unsigned i = 0, n = pick(8u, 60u); i < n; ++i) {
    // 2^a x m 2^b becomes 2^c x 2^(a-c) x m 2^b.
    const std::int64_t a = std::int64_t(1) << random() % 5, a1 = std::int64_t(1) << random() % 3,
                       b = (std::int64_t(1) << random() % 5) * (random() % 2 ? 3 : 1);
    const Sizes shape = {a * a1, b}, result = {a, a1, b};
    const unsigned logWarps = static_cast<unsigned>(random() % 3);
    const Encoding encoding = randomLinear(random, shape, logWarps);
    const auto source = TileLayout::create(encoding, shape);
    ASSERT_TRUE(source.ok());
    const Sizes core = {a, a1, b & -b};
    const Encoding mapped =
        mappedLayout(*source, core, [&](const Sizes &at) { return Sizes{at[0] / a1, at[0] % a1, at[1]}; });
    const std::string from = tensorType(shape, "i32", encoding), to = tensorType(result, "i32", mapped);
    const auto x = randomWords(random, elementsOf(shape));
    const auto out =
        run(loadView("a", "x", shape, "i32", from) + "    %r = tile.reshape %a : " + from + " to " + to + "\n", result,
            to, 1u << logWarps, loweringTargets[random() % 4], x);
    ASSERT_EQ(out, x) << from << " to " << to;
  }
}

TEST(Shape, JoinAndSplit) {
  std::mt19937_64 random(8);
  for (unsigned i = 0, n = pick(8u, 60u); i < n; ++i) {
    const Case c = randomCase(random, 1 + i % 2);
    const auto half = TileLayout::create(c.encoding, c.shape);
    Sizes shape = c.shape, core(half->tile().core.begin(), half->tile().core.end());
    shape.push_back(2);
    core.push_back(2);
    Encoding whole = mappedLayout(*half, core, [](Sizes at) {
      at.push_back(0);
      return at;
    });
    Sizes last(core.size(), 0);
    last.back() = 1;
    auto &registers = std::get<layout::Linear>(whole.kind).registers;
    registers.insert(registers.begin() + static_cast<long>(random() % (registers.size() + 1)), last);
    const std::string type = tensorType(shape, "i32", whole);
    const auto x = randomWords(random, elementsOf(c.shape));
    const auto out = run(loadView("a", "x", c.shape, "i32", c.type) + "    %k = arith.constant dense<77> : " + c.type +
                             "\n    %b = arith.xori %a, %k : " + c.type + "\n    %j = tile.join %a, %b : " + c.type +
                             " to " + type + "\n    %p, %q = tile.split %j : " + type + " to " + c.type +
                             "\n    %r = tile.join %q, %p : " + c.type + " to " + type + "\n",
                         shape, type, 1u << c.logWarps, c.target, x);
    ASSERT_EQ(out.size(), 2 * x.size()) << type;
    for (std::size_t k = 0; k < out.size(); ++k)
      ASSERT_EQ(out[k], k % 2 ? x[k / 2] : x[k / 2] ^ 77) << type;
  }
}

TEST(Shape, ALayoutThatWouldMoveElementsIsRefused) {
  const Encoding a = layout::Blocked{{1, 1}, {8, 4}, {1, 1}, {1, 0}},
                 b = layout::Blocked{{1, 1}, {8, 4}, {1, 1}, {1, 0}};
  const std::string from = tensorType({8, 4}, "i32", a), to = tensorType({4, 8}, "i32", b);
  const LoweredKernel k = lowered(kernelModule("%x: !tile.ptr<i32>, %y: !tile.ptr<i32>",
                                               zeroConstant + loadView("a", "x", {8, 4}, "i32", from) +
                                                   "    %r = tile.transpose %a [1, 0] : " + from + " to " + to + "\n" +
                                                   storeView("r", "y", {4, 8}, "i32", to),
                                               1),
                                  "sm_80");
  EXPECT_FALSE(k.ok);
  EXPECT_NE(k.errors.find("elements would move between threads"), std::string::npos) << k.errors;
}

TEST(Shape, ALayoutForOtherWarpsIsRefused) {
  const std::string type = tensorType({128}, "i32", layout::Blocked{{1}, {32}, {4}, {0}});
  const LoweredKernel k =
      lowered(kernelModule("%x: !tile.ptr<i32>",
                           "    %r = tile.range 0 to 128 : " + type + "\n    tile.print \"r\" %r : " + type + "\n", 2),
              "sm_80");
  EXPECT_FALSE(k.ok);
  EXPECT_NE(k.errors.find("4 warps"), std::string::npos) << k.errors;
  EXPECT_NE(k.errors.find("tile.num_warps = 4"), std::string::npos) << k.errors;
}

} // namespace
} // namespace kiln::test
