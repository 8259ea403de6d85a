// The tile arithmetic of matrix instructions against the scalar statement in MatrixReference.h, bit for bit, at every
// CPU level.
#include "tests/emulator/MatrixReference.h"

#include "compiler/target/Target.h"
#include "runtime/device/emulator/decode/InstructionTable.h"
#include "tests/support/TestTier.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace kiln;
using namespace kiln::emulator;
using namespace kiln::test;

namespace {

FloatFormat formatOf(MatrixType t) {
  switch (t) {
  case MatrixType::F16:
    return f16Format;
  case MatrixType::BF16:
    return bf16Format;
  case MatrixType::TF32:
    return tf32Format;
  case MatrixType::E4M3:
    return e4m3Format;
  case MatrixType::HalfE4M3:
    return halfE4m3Format;
  case MatrixType::E5M2:
    return e5m2Format;
  default:
    return f32Format;
  }
}

constexpr unsigned maxRows = 64, maxColumns = 24, maxK = 32;

struct alignas(64) Tiles {
  std::uint32_t a[maxK * maxRows], b[maxK * maxRows], c[maxColumns * maxRows];
};
struct alignas(64) DecodedTile {
  float significand[maxK * maxRows];
  std::int32_t exponent[maxK * maxRows];
};

std::vector<std::uint32_t> product(const InstructionTable &table, const MatrixModel &m, MatrixMode mode, const Tiles &t,
                                   unsigned rows, unsigned columns, unsigned k, bool negate = false) {
  alignas(64) DecodedTile a, b;
  alignas(64) std::uint32_t d[maxColumns * maxRows];
  std::memcpy(d, t.c, sizeof d);
  MatrixOperand x{a.significand, a.exponent, maxRows, false}, y{b.significand, b.exponent, maxRows, false};
  x.special = table.matrix.decode(m.a, mode, t.a, k * maxRows, negate, a.significand, a.exponent);
  y.special = table.matrix.decode(m.b, mode, t.b, k * maxRows, false, b.significand, b.exponent);
  table.matrix.multiply(m, mode, x, y, d, maxRows, rows, columns, k);
  std::vector<std::uint32_t> out;
  for (unsigned j = 0; j < columns; ++j)
    out.insert(out.end(), d + j * maxRows, d + j * maxRows + rows);
  return out;
}

/// Elements that try a model: each column of the output grid tries something else.
class Inputs {
public:
  explicit Inputs(unsigned seed) : random(seed) {}
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }

  std::uint32_t finite(const FloatFormat &f, int lowest, int highest) {
    const int bias = (1 << (f.exponentBits - 1)) - 1, top = (1 << f.exponentBits) - (f.hasInfinity ? 2 : 1);
    const int span = highest - lowest + 1;
    const int e = std::clamp(lowest + static_cast<int>(below(static_cast<unsigned>(span))) + bias, 0, top);
    const unsigned low = f.skip + f.fractionBits;
    std::uint32_t fraction = random() & ((1u << low) - 1);
    if (!f.hasInfinity && e == top && fraction == (1u << low) - 1)
      --fraction;
    return static_cast<std::uint32_t>(e) << low | fraction | (random() & 1) << (f.bits - 1);
  }
  std::uint32_t special(const FloatFormat &f) {
    const unsigned low = f.skip + f.fractionBits;
    const std::uint32_t top = ((1u << f.exponentBits) - 1) << low, sign = (random() & 1) << (f.bits - 1);
    switch (below(4)) {
    case 0:
      return sign | (f.hasInfinity ? top : top | ((1u << low) - 1));
    case 1:
      return sign | top | ((1u << low) - 1);
    case 2:
      return sign;
    default:
      return sign | (top - 1); // f32, f16, ..: the largest number
    }
  }

  /// Fills one tile of a model: everything is of one kind.
  void fill(Tiles &t, const MatrixModel &m, unsigned k, unsigned kind) {
    const FloatFormat fa = formatOf(m.a), fb = formatOf(m.b), fc = formatOf(m.c);
    auto element = [&](const FloatFormat &f) -> std::uint32_t {
      switch (kind) {
      case 0: // any bits
        return static_cast<std::uint32_t>(random()) & (f.bits == 32 ? ~0u : (1u << f.bits) - 1);
      case 1: // near 1
        return finite(f, -3, 3);
      case 2: // exponents all over
        return finite(f, -140, 140);
      case 3: // subnormal and tiny
        return finite(f, -140, -(1 << (f.exponentBits - 1)) + 4);
      case 4: // huge
        return finite(f, (1 << (f.exponentBits - 1)) - 3, 140);
      case 5: // sparse
        return below(4) ? (random() & 1) << (f.bits - 1) : finite(f, -6, 6);
      case 6: // one in sixty is special
        return below(60) ? finite(f, -140, 140) : special(f);
      case 7: // infinities of one sign times numbers of one sign, zeros
        return below(40) ? finite(f, -2, 2) & ~(1u << (f.bits - 1)) : special(f) & ~(1u << (f.bits - 1));
      default: // two groups of products around F bits apart
        return finite(f, 0, 0);
      }
    };
    for (unsigned i = 0; i < maxK * maxRows; ++i) {
      t.a[i] = element(fa);
      t.b[i] = element(fb);
    }
    for (std::uint32_t &c : t.c)
      c = kind == 3 ? finite(fc, -160, fc.bits == 16 ? -12 : -140) : element(fc);
    if (kind == 8 || kind == 9) {
      // A few products are large, the others about `fraction` bits below, and so is C.
      const int apart = m.fraction + static_cast<int>(below(5)) - 2;
      for (unsigned i = 0; i < maxK; ++i) {
        const bool large = i % 5 == below(5);
        for (unsigned r = 0; r < maxRows; ++r) {
          t.a[i * maxRows + r] = finite(fa, large ? 0 : -(apart / 2), large ? 0 : -(apart / 2));
          t.b[i * maxRows + r] = finite(fb, large ? 0 : -(apart - apart / 2), large ? 0 : -(apart - apart / 2));
        }
      }
      for (std::uint32_t &c : t.c)
        c = finite(fc, below(2) ? 0 : -apart, 1 - apart * static_cast<int>(below(2)) + apart);
    }
    if (kind == 9 || kind == 10) // products cancel in pairs, what is left is small
      for (unsigned i = 0; i + 1 < k; i += 2)
        for (unsigned r = 0; r < maxRows; ++r) {
          t.a[(i + 1) * maxRows + r] = t.a[i * maxRows + r] ^ 1u << (fa.bits - 1);
          t.b[(i + 1) * maxRows + r] = t.b[i * maxRows + r] ^ (below(3) == 0 ? 1u << fb.skip : 0);
        }
  }
  static constexpr unsigned kinds = 11;

private:
  std::mt19937 random;
};

struct Case {
  MatrixType a, b, c, d;
  unsigned k;
  const char *target;
  MatrixUnit unit;
  int fraction; ///< what the specification's table says
  unsigned resultFraction, block;
  bool addsLast = false;
};

using enum MatrixType;
constexpr MatrixUnit mma = MatrixUnit::MmaSync, wgmma = MatrixUnit::Wgmma;
const Case cases[] = {
    {F16, F16, F32, F32, 8, "sm_75", mma, 24, 23, 8},
    {F16, F16, F16, F16, 8, "sm_75", mma, 24, 23, 8},
    {F16, F16, F32, F32, 16, "sm_80", mma, 24, 23, 8},
    {F16, F16, F16, F16, 16, "sm_80", mma, 24, 23, 8},
    {F16, F16, F16, F32, 16, "sm_86", mma, 24, 23, 8},
    {F16, F16, F32, F16, 16, "sm_87", mma, 24, 23, 8},
    {BF16, BF16, F32, F32, 16, "sm_80", mma, 24, 23, 8},
    {BF16, BF16, F32, F32, 8, "sm_89", mma, 24, 23, 8},
    {TF32, TF32, F32, F32, 8, "sm_80", mma, 24, 23, 4},
    {TF32, TF32, F32, F32, 4, "sm_89", mma, 24, 23, 4},
    {E4M3, E4M3, F32, F32, 32, "sm_89", mma, 13, 13, 16},
    {E5M2, E4M3, F16, F16, 32, "sm_89", mma, 13, 13, 16},
    {E4M3, E5M2, F32, F32, 16, "sm_89", mma, 13, 13, 16},
    {F16, F16, F32, F32, 16, "sm_90", mma, 25, 23, 16},
    {F16, F16, F16, F16, 16, "sm_90a", wgmma, 25, 23, 16},
    {BF16, BF16, F32, F32, 16, "sm_90a", wgmma, 25, 23, 16},
    {BF16, BF16, F32, F32, 8, "sm_90", mma, 25, 23, 8},
    {TF32, TF32, F32, F32, 8, "sm_90", mma, 25, 23, 8},
    {TF32, TF32, F32, F32, 4, "sm_90", mma, 25, 23, 4},
    {E4M3, E4M3, F32, F32, 32, "sm_90", mma, 25, 23, 16, true},
    {E5M2, E5M2, F16, F16, 32, "sm_90", mma, 25, 23, 16, true},
    {E4M3, E5M2, F32, F32, 32, "sm_90a", wgmma, 13, 13, 32},
    {E5M2, E4M3, F16, F16, 32, "sm_90a", wgmma, 13, 13, 32},
    {E4M3, E4M3, F32, F32, 32, "sm_100", mma, 25, 23, 32},
    {E5M2, E5M2, F16, F16, 32, "sm_120", mma, 25, 23, 32},
    {BF16, BF16, F32, F32, 16, "sm_120a", mma, 25, 23, 16},
};

std::string describe(const Case &c) {
  return std::string(c.target) + (c.unit == mma ? " mma" : " wgmma") + " types " + std::to_string(int(c.a)) + " " +
         std::to_string(int(c.b)) + " " + std::to_string(int(c.c)) + " " + std::to_string(int(c.d)) + " k " +
         std::to_string(c.k);
}

std::vector<const InstructionTable *> levels() {
  std::vector<const InstructionTable *> out;
  for (std::string_view name : builtLevels())
    if (const InstructionTable *t = instructionTable(name))
      out.push_back(t);
  return out;
}

} // namespace

TEST(MatrixModel, TableOfTheSpecification) {
  for (const Case &c : cases) {
    const MatrixModel m = matrixModel(**findTarget(c.target), c.unit, c.a, c.b, c.c, c.d, c.k);
    EXPECT_EQ(int(m.fraction), c.fraction) << describe(c);
    EXPECT_EQ(m.resultFraction, c.resultFraction) << describe(c);
    EXPECT_EQ(m.block, c.block) << describe(c);
    EXPECT_EQ(m.addsLast, c.addsLast) << describe(c);
  }
}

TEST(MatrixModel, ExactModeIsTheSpecification) {
  const unsigned rounds = pick(3u, 24u);
  auto tiles = std::make_unique<Tiles>();
  std::size_t compared = 0, distinct = 0;
  unsigned seed = 1;
  for (const Case &c : cases) {
    const MatrixModel m = matrixModel(**findTarget(c.target), c.unit, c.a, c.b, c.c, c.d, c.k);
    const ReferenceModel r{formatOf(m.a), formatOf(m.b),    formatOf(c.c), formatOf(c.d),
                           c.fraction,    c.resultFraction, c.block,       c.addsLast};
    for (unsigned kind = 0; kind < Inputs::kinds; ++kind)
      for (unsigned round = 0; round < rounds; ++round) {
        Inputs inputs(seed++);
        inputs.fill(*tiles, m, c.k, kind);
        const unsigned rows = 16 * (1 + round % 4), columns = 8 + kind;
        const bool negate = round % 2;
        std::vector<std::uint32_t> expected;
        std::vector<std::uint32_t> a(c.k), b(c.k);
        for (unsigned j = 0; j < columns; ++j)
          for (unsigned i = 0; i < rows; ++i) {
            for (unsigned k = 0; k < c.k; ++k) {
              a[k] = tiles->a[k * maxRows + i] ^ (negate ? 1u << (r.a.bits - 1) : 0);
              b[k] = tiles->b[k * maxRows + j];
            }
            expected.push_back(referenceDot(r, a, b, tiles->c[j * maxRows + i]));
          }
        for (const InstructionTable *level : levels()) {
          const auto got = product(*level, m, MatrixMode::Exact, *tiles, rows, columns, c.k, negate);
          for (std::size_t i = 0; i < got.size(); ++i)
            ASSERT_EQ(got[i], expected[i])
                << std::hex << got[i] << " for " << expected[i] << std::dec << " " << describe(c) << " " << level->level
                << " kind " << kind << " round " << round << " row " << i % rows << " column " << i / rows;
          compared += got.size();
        }
        distinct += std::adjacent_find(expected.begin(), expected.end(), std::not_equal_to<>()) != expected.end();
      }
  }
  EXPECT_GT(compared, 350000u * levels().size());
  EXPECT_GT(distinct, std::size(cases) * Inputs::kinds * rounds / 2); // the inputs are worth something
}

TEST(MatrixModel, FastModeIsFusedMultiplyAddInOrder) {
  auto tiles = std::make_unique<Tiles>();
  unsigned seed = 1000;
  for (const Case &c : cases) {
    const MatrixModel m = matrixModel(**findTarget(c.target), c.unit, c.a, c.b, c.c, c.d, c.k);
    for (unsigned kind : {0u, 1u, 2u, 3u, 4u, 6u}) {
      Inputs inputs(seed++);
      inputs.fill(*tiles, m, c.k, kind);
      auto value = [](MatrixType t, std::uint32_t bits) -> float {
        const ReferenceNumber n = referenceNumber(formatOf(t), bits);
        const float magnitude = n.nan        ? NAN
                                : n.infinite ? INFINITY
                                             : std::ldexp(float(n.digits), n.exponent - int(formatOf(t).fractionBits));
        return n.negative ? -magnitude : magnitude;
      };
      std::vector<std::uint32_t> expected;
      for (unsigned j = 0; j < 11; ++j)
        for (unsigned i = 0; i < 32; ++i) {
          float sum = value(c.c, tiles->c[j * maxRows + i]);
          for (unsigned k = 0; k < c.k; ++k)
            sum = std::fma(value(c.a, tiles->a[k * maxRows + i]), value(c.b, tiles->b[k * maxRows + j]), sum);
          std::uint32_t bits;
          std::memcpy(&bits, &sum, 4);
          if (c.d == F32) {
            expected.push_back(std::isnan(sum) ? 0x7fffffff : bits);
          } else if (!std::isfinite(sum)) {
            expected.push_back(std::isnan(sum) ? 0x7fff : sum < 0 ? 0xfc00 : 0x7c00);
          } else {
            const ReferenceNumber n = referenceNumber(f32Format, bits);
            expected.push_back(referenceNearestHalf(n.negative, n.digits, n.exponent - 23) |
                               (n.negative ? 0x8000u : 0));
          }
        }
      for (const InstructionTable *level : levels()) {
        const auto got = product(*level, m, MatrixMode::Fast, *tiles, 32, 11, c.k);
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_EQ(got[i], expected[i]) << std::hex << got[i] << " for " << expected[i] << std::dec << " "
                                         << describe(c) << " " << level->level << " kind " << kind << " row " << i % 32;
      }
    }
  }
}

TEST(MatrixModel, IntegersWrapOrSaturateOnce) {
  std::mt19937 random(7);
  auto tiles = std::make_unique<Tiles>();
  for (MatrixType ta : {S8, U8, S4, U4})
    for (MatrixType tb : {S8, U8, S4, U4}) {
      if (matrixTypeBits(ta) != matrixTypeBits(tb))
        continue;
      for (bool saturate : {false, true})
        for (unsigned extreme = 0; extreme < 4; ++extreme) {
          MatrixModel m = matrixModel(**findTarget("sm_90"), mma, ta, tb, S32, S32, 32);
          m.saturate = saturate;
          const std::uint32_t largest[] = {0x7f, 0x80, 0xff};
          for (unsigned i = 0; i < maxK * maxRows; ++i) {
            tiles->a[i] = extreme ? largest[random() % 3] : random();
            tiles->b[i] = extreme > 1 ? largest[random() % 3] : random();
          }
          for (std::uint32_t &c : tiles->c)
            c = extreme == 3   ? 0x80000000u + random() % 4096
                : extreme == 2 ? 0x7fffffffu - random() % 4096
                               : static_cast<std::uint32_t>(random());
          auto value = [](MatrixType t, std::uint32_t bits) -> std::int64_t {
            const unsigned n = matrixTypeBits(t);
            const std::int64_t low = bits & ((1u << n) - 1);
            return (t == S8 || t == S4) && (low >> (n - 1)) ? low - (1 << n) : low;
          };
          std::vector<std::uint32_t> expected;
          for (unsigned j = 0; j < 9; ++j)
            for (unsigned i = 0; i < 48; ++i) {
              std::int64_t sum = static_cast<std::int32_t>(tiles->c[j * maxRows + i]);
              for (unsigned k = 0; k < 32; ++k)
                sum += value(ta, tiles->a[k * maxRows + i]) * value(tb, tiles->b[k * maxRows + j]);
              if (saturate)
                sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
              expected.push_back(static_cast<std::uint32_t>(sum));
            }
          for (const InstructionTable *level : levels())
            for (MatrixMode mode : {MatrixMode::Exact, MatrixMode::Fast})
              ASSERT_EQ(product(*level, m, mode, *tiles, 48, 9, 32), expected)
                  << int(ta) << " " << int(tb) << " " << saturate << " " << level->level;
        }
    }
}
