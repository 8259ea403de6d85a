// Matrix products of every element type, on every class of targets: random shapes, and chains, against float64.
//
// Bounds.  A sum of K products of f32 (fused or by the matrix unit, which may truncate) errs by at most
// (K + 1) 2^-22 sum |a b|, that of 8-bit floats by the matrix unit, which keeps 13 bits after the point of the largest
// product, by (K + 1) 2^-13 of it; tf32 operands by 2^-11 each, tf32x3 by 2^-20 together.  Integers are exact.
#include "tests/lowering/Matrices.h"

#include "tests/support/TestTier.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>

namespace kiln::test {
namespace {

using layout::Sizes;

/// How numbers of one type are made, written to memory, and multiplied.
struct Kind {
  const char *name, *sum, *precision;
  unsigned bytes;
  double operandError; ///< relative, of one product
};
constexpr Kind kinds[] = {{"f16", "f32", "", 2, 0},
                          {"bf16", "f32", "", 2, 0},
                          {"f8E4M3FN", "f32", "", 1, 0},
                          {"f8E5M2", "f32", "", 1, 0},
                          {"i8", "i32", "", 1, 0},
                          {"f32", "f32", "", 4, 0},
                          {"f32", "f32", " precision tf32", 4, 1.01 / 1024},
                          {"f32", "f32", " precision tf32x3", 4, 1.0 / (1 << 20)},
                          {"f64", "f64", "", 8, 0}};
constexpr const char *targets[] = {"sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"};

std::vector<double> read(const std::vector<unsigned char> &bytes, const std::string &type) {
  std::vector<double> out;
  const auto each = [&]<typename T>(T) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(T)) {
      T v;
      std::memcpy(&v, &bytes[i], sizeof(T));
      out.push_back(static_cast<double>(v));
    }
  };
  if (type == "f32")
    each(float());
  else if (type == "f64")
    each(double());
  else
    each(std::int32_t());
  return out;
}

std::string pointers(std::initializer_list<std::pair<const char *, std::string>> list) {
  std::string out;
  for (const auto &[name, element] : list)
    out += std::string(out.empty() ? "" : ", ") + "%" + name + ": !tile.ptr<" + element +
           "> {tile.divisibility = 16 : i32}";
  return out;
}

/// c + a x b of one random shape; checks every element.  `found`: which instruction did it.
void checkDot(std::mt19937_64 &random, const Kind &kind, const Sizes &batch, std::int64_t M, std::int64_t N,
              std::int64_t K, unsigned warps, const char *target, std::map<std::string, unsigned> &found) {
  const std::string type = kind.name, sum = kind.sum;
  const auto with = [&](std::int64_t r, std::int64_t c) {
    Sizes s = batch;
    s.push_back(r);
    s.push_back(c);
    return s;
  };
  const Sizes a = with(M, K), b = with(K, N), c = with(M, N);
  const std::string text = kernelModule(
      pointers({{"x", type}, {"y", type}, {"z", sum}, {"o", sum}}),
      zeroConstant + loadView("a", "x", a, type, plainType(a, type)) + loadView("b", "y", b, type, plainType(b, type)) +
          loadView("c", "z", c, sum, plainType(c, sum)) + "    %d = tile.dot %a, %b, %c" + kind.precision + " : " +
          plainType(a, type) + ", " + plainType(b, type) + " to " + plainType(c, sum) + "\n" +
          storeView("d", "o", c, sum, plainType(c, sum)),
      warps);
  const std::string label = std::string(target) + " " + kind.name + kind.precision + " " + extents(a) + " by " +
                            extents(b) + ", " + std::to_string(warps) + " warps";
  SCOPED_TRACE(label);
  const Matrix x = randomMatrix(random, elementsOf(a), type), y = randomMatrix(random, elementsOf(b), type),
               z = randomMatrix(random, elementsOf(c), sum);
  Emulator gpu(target);
  Buffer &bx = gpu.upload(x.bytes), &by = gpu.upload(y.bytes), &bz = gpu.upload(z.bytes),
         &bo = gpu.allocate(z.bytes.size());
  (void)bo.poison(std::byte(0xCD));
  const KernelRun run = runKernel(gpu, target, text, warps, {bx, by, bz, bo}, {}, From::Tile);
  // Tiles whose even share no thread's registers hold, operands of multiply-adds that neither registers nor shared
  // memory hold: named, not wrong.
  const std::size_t largest = std::max({x.bytes.size(), y.bytes.size(), z.bytes.size()});
  const bool noTile = largest / 4 / 32 / warps > 512;
  if (run.error.find(noTile ? "L18: " : "bytes of shared memory; ") != std::string::npos) {
    ++found["too large"];
    return;
  }
  ASSERT_EQ(run.error, "");
  const std::vector<double> got = read(gpu.download<unsigned char>(bo), sum);
  const bool narrow = run.ptx.find(".e4m3.") != std::string::npos || run.ptx.find(".e5m2.") != std::string::npos;
  const std::size_t mn = static_cast<std::size_t>(M * N), mk = static_cast<std::size_t>(M * K),
                    kn = static_cast<std::size_t>(K * N);
  for (std::size_t i = 0; i < elementsOf(c); ++i) {
    const std::size_t p = i / mn, m = i % mn / static_cast<std::size_t>(N), n = i % static_cast<std::size_t>(N);
    double want = z.values[i], magnitude = std::abs(want);
    for (std::size_t k = 0; k < static_cast<std::size_t>(K); ++k) {
      const double product = x.values[p * mk + m * static_cast<std::size_t>(K) + k] *
                             y.values[p * kn + k * static_cast<std::size_t>(N) + n];
      want += product;
      magnitude += std::abs(product);
    }
    if (sum == "i32") {
      ASSERT_EQ(got[i], static_cast<double>(static_cast<std::int32_t>(static_cast<std::int64_t>(want)))) << i;
      continue;
    }
    const double ulp = std::ldexp(1, sum == "f64" ? -52 : narrow ? -13 : -22);
    const double bound = (static_cast<double>(K + 1) * ulp + 2 * kind.operandError) * magnitude;
    ASSERT_NEAR(got[i], want, bound) << i;
  }
  const auto holds = [&](const char *what) { return run.ptx.find(what) != std::string::npos; };
  ++found[holds("wgmma.") ? "wgmma" : holds("mma.sync") ? "mma.sync" : "multiply-adds"];
}

TEST(Dot, RandomShapesOfEveryTypeOnEveryTarget) {
  std::mt19937_64 random(11);
  for (const Kind &kind : kinds) {
    std::map<std::string, unsigned> found;
    for (const char *target : targets)
      for (unsigned round = 0, rounds = pick(3u, 12u); round < rounds && !HasFatalFailure(); ++round) {
        const auto extent = [&](unsigned lowest, unsigned highest) {
          return std::int64_t(1) << (lowest + random() % (highest - lowest + 1));
        };
        std::int64_t M = extent(0, 6), N = extent(0, 6), K = extent(0, 6);
        if (round % 3 == 2) // one extent with an odd factor
          (random() % 3 == 0 ? M : random() % 2 ? N : K) *= 3;
        const Sizes batch = random() % 4 ? Sizes{} : Sizes{2};
        checkDot(random, kind, batch, M, N, K, 1u << random() % 4, target, found);
      }
    std::string text;
    for (const auto &[name, n] : found)
      text += " " + name + ": " + std::to_string(n);
    std::printf("%s%s:%s\n", kind.name, kind.precision, text.c_str());
    EXPECT_LE(found["too large"], std::string_view(kind.name) == "f64" ? 6 * pick(3u, 12u) / 8 : 0);
    // Both ways were taken where there are two.
    const std::string name = kind.name;
    EXPECT_EQ(found.count("mma.sync"), name != "f64" && !(name == "f32" && !*kind.precision));
  }
}

/// All of K of a thread's rows and columns takes more registers than a tile may: a loop over parts of K.
TEST(Dot, MultiplyAddsOfWhatNoRegistersHold) {
  std::mt19937_64 random(12);
  const Kind &f32 = kinds[5], &f64 = kinds[8];
  ASSERT_STREQ(f32.precision, "");
  std::map<std::string, unsigned> found;
  for (const char *target : {"sm_75", "sm_90a"}) {
    checkDot(random, f64, {}, 64, 64, 64, 4, target, found);
    checkDot(random, f64, {2}, 32, 16, 72, 1, target, found);
    checkDot(random, f32, {}, 64, 64, 96, 4, target, found);
    checkDot(random, f32, {}, 32, 64, 128, 1, target, found);
  }
  EXPECT_EQ(found["multiply-adds"], 8u);
}

/// What no instruction does is refused with a reason; so is what would multiply the wrong elements.
TEST(Dot, LayoutsThatDoNotFitAreRefused) {
  const std::string mma = "mma<version=2, warpsPerCTA=[1,1]>";
  const auto errorOf = [](const std::string &element, const std::string &a, const std::string &b, const std::string &c,
                          std::int64_t K, const char *target) {
    const std::string at = "tensor<16x" + std::to_string(K) + "x" + element + ", #tile_gpu." + a + ">",
                      bt = "tensor<" + std::to_string(K) + "x8x" + element + ", #tile_gpu." + b + ">",
                      ct = "tensor<16x8xf32, #tile_gpu." + c + ">";
    const std::string body = "    %s = arith.constant 0.0 : " + element + "\n    %a = tile.splat %s : " + element +
                             " to " + at + "\n    %b = tile.splat %s : " + element + " to " + bt +
                             "\n    %c = arith.constant dense<0.0> : " + ct + "\n    %d = tile.dot %a, %b, %c : " + at +
                             ", " + bt + " to " + ct + "\n" + zeroConstant + storeView("d", "o", {16, 8}, "f32", ct);
    return lowered(kernelModule("%o: !tile.ptr<f32>", body, 1), target).errors;
  };
  const auto operand = [](int op, int width, const std::string &parent) {
    return "dot<op=" + std::to_string(op) + ", kWidth=" + std::to_string(width) + ", parent=" + parent + ">";
  };
  const auto expect = [](const std::string &error, const char *what) {
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  EXPECT_EQ(errorOf("f16", operand(0, 2, mma), operand(1, 2, mma), mma, 16, "sm_80"), "");
  EXPECT_EQ(errorOf("f16", operand(0, 4, mma), operand(1, 4, mma), mma, 16, "sm_80"), "");
  expect(errorOf("f16", operand(0, 4, mma), operand(1, 2, mma), mma, 16, "sm_80"), "deal out K differently");
  expect(errorOf("f16", operand(1, 2, mma), operand(1, 2, mma), mma, 16, "sm_80"), "operand 0 of a dot has the layout");
  expect(errorOf("f16", operand(0, 2, mma), operand(1, 2, mma), operand(0, 2, mma), 16, "sm_80"),
         "a dot in the layout");
  expect(errorOf("f16", operand(0, 2, mma), operand(1, 2, mma), mma, 4, "sm_80"), "needs a multiple of 8");
  expect(errorOf("f32", operand(0, 1, mma), operand(1, 1, mma), mma, 16, "sm_80"), "mma.sync of sm_80 takes no such");
  expect(errorOf("bf16", operand(0, 2, mma), operand(1, 2, mma), mma, 16, "sm_75"), "mma.sync of sm_75 takes no such");
}

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

/// A value of a chain: its text, and what it is in float64, with the largest error that it may have.
struct Link {
  std::string name;
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values, errors;
};

/// Builds one kernel of several products, each of which takes the one before as an operand.
class Chain {
public:
  Chain(std::mt19937_64 &random, const char *element) : random(random), element(element) {}

  Link input(std::int64_t rows, std::int64_t columns) {
    Link out{"in" + std::to_string(inputs.size()), rows, columns, {}, {}};
    Matrix m = randomMatrix(random, static_cast<std::size_t>(rows * columns), element);
    const std::string pointer = "p" + std::to_string(inputs.size()), type = plainType({rows, columns}, element);
    body += loadView(out.name, pointer, {rows, columns}, element, type);
    out.values = m.values;
    out.errors.assign(m.values.size(), 0);
    inputs.push_back(std::move(m));
    return out;
  }
  Link dot(const Link &a, const Link &b) {
    const std::string name = next();
    const std::string sum = plainType({a.rows, b.columns}, "f32");
    body += "    %z" + name + " = arith.constant dense<0.0> : " + sum + "\n    %" + name + " = tile.dot %" + a.name +
            ", %" + b.name + ", %z" + name + " : " + plainType({a.rows, a.columns}, element) + ", " +
            plainType({b.rows, b.columns}, element) + " to " + sum + "\n";
    Link out{name, a.rows, b.columns, {}, {}};
    for (std::int64_t m = 0; m < a.rows; ++m)
      for (std::int64_t n = 0; n < b.columns; ++n) {
        double v = 0, size = 0, error = 0;
        for (std::int64_t k = 0; k < a.columns; ++k) {
          const auto i = static_cast<std::size_t>(m * a.columns + k), j = static_cast<std::size_t>(k * b.columns + n);
          v += a.values[i] * b.values[j];
          size += std::abs(a.values[i] * b.values[j]);
          error +=
              a.errors[i] * std::abs(b.values[j]) + b.errors[j] * std::abs(a.values[i]) + a.errors[i] * b.errors[j];
        }
        out.values.push_back(v);
        out.errors.push_back(error + (size + error) * static_cast<double>(a.columns + 1) * std::ldexp(1, -22));
      }
    return out;
  }
  /// A product as the next one's operand: scaled down, rounded.
  Link rounded(const Link &x) {
    const std::string name = next(), wide = plainType({x.rows, x.columns}, "f32");
    body += "    %s" + name + " = arith.constant dense<0.125> : " + wide + "\n    %m" + name + " = arith.mulf %" +
            x.name + ", %s" + name + " : " + wide + "\n    %" + name + " = arith.truncf %m" + name + " : " + wide +
            " to " + plainType({x.rows, x.columns}, element) + "\n";
    Link out{name, x.rows, x.columns, {}, {}};
    const double half = std::ldexp(1, std::string_view(element) == "bf16" ? -8 : -11);
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      const double v = x.values[i] / 8, error = x.errors[i] / 8;
      out.values.push_back(v);
      out.errors.push_back(error + (std::abs(v) + error) * half + 1e-7);
    }
    return out;
  }
  Link transposed(const Link &x) {
    const std::string name = next();
    body += "    %" + name + " = tile.transpose %" + x.name + " [1, 0] : " + plainType({x.rows, x.columns}, element) +
            " to " + plainType({x.columns, x.rows}, element) + "\n";
    Link out{name, x.columns, x.rows, {}, {}};
    for (std::int64_t c = 0; c < x.columns; ++c)
      for (std::int64_t r = 0; r < x.rows; ++r) {
        out.values.push_back(x.values[static_cast<std::size_t>(r * x.columns + c)]);
        out.errors.push_back(x.errors[static_cast<std::size_t>(r * x.columns + c)]);
      }
    return out;
  }
  /// Each element less its row's (axis 1) or column's maximum.
  Link lessMaximum(const Link &x, unsigned axis) {
    const std::string name = next(), whole = plainType({x.rows, x.columns}, "f32"),
                      flat = plainType({axis ? x.rows : x.columns}, "f32"),
                      thin = axis ? plainType({x.rows, 1}, "f32") : plainType({1, x.columns}, "f32"),
                      along = "{axis = " + std::to_string(axis) + " : i32}";
    body +=
        "    %r" + name + " = tile.reduce(%" + x.name + ") " + along + " : " + whole + " to " + flat +
        " {\n    ^bb0(%l: f32, %h: f32):\n      %t = arith.maximumf %l, %h : f32\n      tile.yield %t : f32\n    }\n"
        "    %e" +
        name + " = tile.expand_dims %r" + name + " " + along + " : " + flat + " to " + thin + "\n    %b" + name +
        " = tile.broadcast %e" + name + " : " + thin + " to " + whole + "\n    %" + name + " = arith.subf %" + x.name +
        ", %b" + name + " : " + whole + "\n";
    Link out = x;
    out.name = name;
    for (std::int64_t r = 0; r < x.rows; ++r)
      for (std::int64_t c = 0; c < x.columns; ++c) {
        double most = -1e300, error = 0;
        for (std::int64_t o = 0; o < (axis ? x.columns : x.rows); ++o) {
          const auto i = static_cast<std::size_t>(axis ? r * x.columns + o : o * x.columns + c);
          most = std::max(most, x.values[i]);
          error = std::max(error, x.errors[i]);
        }
        const auto i = static_cast<std::size_t>(r * x.columns + c);
        out.values[i] -= most;
        out.errors[i] += error + 1e-6 * std::abs(out.values[i]);
      }
    return out;
  }

  /// Compiles, runs and compares.
  void check(const Link &result, unsigned warps, const char *target) {
    const Sizes shape = {result.rows, result.columns};
    std::string parameters;
    for (unsigned i = 0; i < inputs.size(); ++i)
      parameters += "%p" + std::to_string(i) + ": !tile.ptr<" + element + "> {tile.divisibility = 16 : i32}, ";
    const std::string text =
        kernelModule(parameters + "%o: !tile.ptr<f32> {tile.divisibility = 16 : i32}",
                     zeroConstant + body + storeView(result.name, "o", shape, "f32", plainType(shape, "f32")), warps);
    Emulator gpu(target);
    std::vector<Argument> arguments;
    for (const Matrix &m : inputs)
      arguments.push_back(gpu.upload(m.bytes));
    Buffer &out = gpu.allocate(4 * elementsOf(shape));
    (void)out.poison(std::byte(0xCD));
    arguments.push_back(out);
    const KernelRun run = runKernel(gpu, target, text, warps, arguments, {}, From::Tile);
    ASSERT_EQ(run.error, "") << target;
    ptx = run.ptx;
    const std::vector<double> got = read(gpu.download<unsigned char>(out), "f32");
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], result.values[i], result.errors[i] + 1e-6) << i << " on " << target << "\n" << text;
  }
  std::string ptx;

private:
  std::string next() { return "v" + std::to_string(count++); }
  std::mt19937_64 &random;
  const char *element;
  std::string body;
  std::vector<Matrix> inputs;
  unsigned count = 0;
};

TEST(DotChain, RandomLengthsOrdersAndTranspositions) {
  std::mt19937_64 random(12);
  for (unsigned round = 0, rounds = pick(20u, 100u); round < rounds && !HasFatalFailure(); ++round) {
    Chain chain(random, random() % 2 ? "f16" : "bf16");
    const auto extent = [&] { return std::int64_t(16) << random() % 3; };
    Link v = chain.dot(chain.input(extent(), 32), chain.input(32, extent()));
    for (unsigned more = 1 + static_cast<unsigned>(random() % 3); more--;) {
      Link x = random() % 2 ? chain.transposed(chain.rounded(v)) : chain.rounded(v);
      v = random() % 2 ? chain.dot(x, chain.input(x.columns, extent())) : chain.dot(chain.input(extent(), x.rows), x);
    }
    chain.check(v, 1u << random() % 4, targets[random() % 6]);
  }
}

TEST(DotChain, Chained64x64WithEightWarps) {
  std::mt19937_64 random(13);
  for (const char *target : targets) {
    Chain chain(random, "f16");
    const Link s = chain.dot(chain.input(64, 64), chain.input(64, 64));
    const Link p = chain.dot(chain.rounded(s), chain.input(64, 64));
    chain.check(chain.dot(chain.rounded(p), chain.input(64, 64)), 8, target);
  }
}

TEST(DotChain, DotTransposeDot) {
  std::mt19937_64 random(14);
  for (const char *target : targets)
    for (unsigned warps : {1u, 4u, 8u}) {
      Chain chain(random, "f16");
      const Link s = chain.dot(chain.input(64, 32), chain.input(32, 128));
      chain.check(chain.dot(chain.transposed(chain.rounded(s)), chain.input(64, 32)), warps, target);
    }
}

TEST(DotChain, MmaReduceBroadcastMma) {
  std::mt19937_64 random(15);
  for (const char *target : targets)
    for (unsigned axis : {0u, 1u}) {
      Chain chain(random, "bf16");
      const Link s = chain.dot(chain.input(64, 32), chain.input(32, 64));
      chain.check(chain.dot(chain.rounded(chain.lessMaximum(s, axis)), chain.input(64, 32)), 4, target);
    }
}

/// The accumulator's fragment is the next operand's: nothing goes through shared memory or another lane between them.
TEST(DotChain, TheProductOfAttentionStaysInItsRegisters) {
  std::mt19937_64 random(16);
  Chain chain(random, "f16");
  const Link p = chain.rounded(chain.dot(chain.input(64, 32), chain.input(32, 64)));
  chain.check(chain.dot(p, chain.input(64, 32)), 4, "sm_80");
  // The operands on the right, and the result on its way to whole lines of memory, go through shared memory, each
  // through a place of its own: a barrier for each, none between them.  The first product is an operand as it lies.
  const auto count = [&](std::string_view what) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = chain.ptx.find(what, at)) != std::string::npos; ++at)
      ++n;
    return n;
  };
  EXPECT_EQ(count("shfl.sync"), 0u);
  EXPECT_GT(count("mma.sync"), 0u);
  EXPECT_EQ(count("bar.sync"), 3u) << chain.ptx;
}

} // namespace
} // namespace kiln::test
