//===- Matrix.cpp ---------------------------------------------------------===//
#include "tests/parity/Matrix.h"

#include "tests/emulator/MatrixFragments.h"
#include "tests/emulator/MatrixReference.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln::parity {

namespace {

using U64 = std::uint64_t;
using Random = std::mt19937_64;
constexpr unsigned lanes = 32;

unsigned bitsOf(const std::string &type) {
  if (type == "e4m3" || type == "e5m2")
    return 8;
  const std::size_t digits = type.find_first_of("0123456789");
  return static_cast<unsigned>(std::stoi(type.substr(digits)));
}

struct Product {
  const test::MatrixShape *shape = nullptr;
  std::string d, a, b, c;
  explicit Product(const Form &form) {
    std::vector<std::string> rest; // after "row", "col"
    for (auto part = std::find(form.parts.begin(), form.parts.end(), "col") + 1; part != form.parts.end(); ++part)
      if (*part != "satfinite")
        rest.push_back(*part);
    d = rest[0];
    a = rest[1];
    b = rest[2];
    c = rest[3];
    shape = test::findMatrixShape(form.parts[3], bitsOf(a));
  }
  unsigned wordBits() const { return shape->bits == 64 ? 64 : 32; }
  unsigned wordsA() const { return shape->m * shape->k * shape->bits / lanes / wordBits(); }
  unsigned wordsB() const { return shape->n * shape->k * shape->bits / lanes / wordBits(); }
  unsigned bitsC() const { return bitsOf(c); }
};

bool isInteger(const std::string &type) {
  return type[0] == 's' || type[0] == 'u' || type == "b1";
}
test::FloatFormat formatOf(const std::string &type) {
  return type == "f16"    ? test::f16Format
         : type == "bf16" ? test::bf16Format
         : type == "tf32" ? test::tf32Format
         : type == "e4m3" ? test::e4m3Format
         : type == "e5m2" ? test::e5m2Format
                          : test::f32Format;
}

/// What the elements of a product try.
enum class Kind : unsigned { AnyBits, NearOne, Everywhere, Tiny, Huge, Sparse, Special, Apart, Cancel, Count };

class Elements {
public:
  Elements(Random &random, Kind kind)
      : random(random), kind(kind), apart(static_cast<int>(random() % 18) + 11), half(apart / 2) {}

  /// A word of elements of `type`; of C if `isC`.
  U64 word(const std::string &type, unsigned wordBits, bool isB, bool isC) {
    if (type == "f64")
      return doubleBits();
    if (isInteger(type))
      return integerWord(type, isC);
    const test::FloatFormat f = formatOf(type);
    U64 w = 0;
    std::uint32_t last = 0;
    for (unsigned shift = 0; shift < wordBits; shift += f.bits) {
      std::uint32_t e = element(f, isC);
      if (kind == Kind::Cancel && shift / f.bits % 2) // with its neighbour along k
        e = isC ? e : isB ? last ^ static_cast<std::uint32_t>(random() % 4 == 0) : last ^ 1u << (f.bits - 1);
      last = e;
      w |= U64(e) << shift;
    }
    return w;
  }

private:
  U64 doubleBits() {
    if (kind == Kind::AnyBits || (kind == Kind::Special && random() % 40 == 0))
      return random();
    const int spread = kind == Kind::Everywhere ? 300 : 20;
    const double v = std::ldexp(double(std::int64_t(random())), int(random() % unsigned(2 * spread)) - spread - 63);
    return std::bit_cast<U64>(kind == Kind::Sparse && random() % 2 ? 0.0 : v);
  }
  U64 integerWord(const std::string &type, bool isC) {
    const U64 any = random() & 0xffffffff;
    if (isC)
      return kind == Kind::Huge ? (0x7fffffff - any % 100000) : kind == Kind::Tiny ? 0x80000000 + any % 100000 : any;
    if (kind != Kind::Huge && kind != Kind::Tiny)
      return any;
    U64 w = 0; // the ends of the range
    constexpr U64 ends[] = {0x00, 0x7f, 0x80, 0xff};
    for (unsigned shift = 0; shift < 32; shift += 8)
      w |= ends[random() % 4] << shift;
    return w;
  }
  std::uint32_t finite(const test::FloatFormat &f, int low, int high) {
    const int bias = (1 << (f.exponentBits - 1)) - 1, top = (1 << f.exponentBits) - (f.hasInfinity ? 2 : 1);
    const int e = std::clamp(low + static_cast<int>(random() % unsigned(high - low + 1)) + bias, 0, top);
    const unsigned digits = f.skip + f.fractionBits;
    return static_cast<std::uint32_t>(e) << digits | static_cast<std::uint32_t>(random() & ((1u << digits) - 1)) |
           static_cast<std::uint32_t>(random() & 1) << (f.bits - 1);
  }
  std::uint32_t special(const test::FloatFormat &f) {
    const unsigned digits = f.skip + f.fractionBits;
    const std::uint32_t top = ((1u << f.exponentBits) - 1) << digits;
    const std::uint32_t sign = static_cast<std::uint32_t>(random() & 1) << (f.bits - 1);
    const U64 r = random() % 8;
    return sign | (r == 0 ? 0 : r == 1 ? top | ((1u << digits) - 1) : r == 2 ? top - 1 : top);
  }
  std::uint32_t element(const test::FloatFormat &f, bool isC) {
    const int bias = (1 << (f.exponentBits - 1)) - 1;
    switch (kind) {
    case Kind::AnyBits:
      return static_cast<std::uint32_t>(random()) & (f.bits == 32 ? ~0u : (1u << f.bits) - 1);
    case Kind::Everywhere:
      return finite(f, -bias - 1, bias);
    case Kind::Tiny: // products of tiny numbers, and C of their size
      return isC ? finite(f, -f.hasInfinity * bias - 1, -bias / 2) : finite(f, -bias - 1, -bias + 4);
    case Kind::Huge:
      return finite(f, isC ? bias - 6 : bias / 2 - 2, isC ? bias : bias / 2 + 3);
    case Kind::Sparse:
      return random() % 3 ? static_cast<std::uint32_t>(random() & 1) << (f.bits - 1) : finite(f, -5, 5);
    case Kind::Special:
      return random() % 120 ? finite(f, -3, 3) : special(f);
    case Kind::Apart: { // products and C at two distances from the largest
      const bool far = random() % 3 != 0;
      return isC ? finite(f, far ? -apart : 0, far ? 1 - apart : 0) : finite(f, far ? -half : 0, far ? -half : 0);
    }
    case Kind::Cancel:
      return isC ? finite(f, -30, -10) : finite(f, -2, 2);
    default:
      return finite(f, -3, 3);
    }
  }

  Random &random;
  Kind kind;
  int apart, half;
};

/// Elements of a fragment as a matrix: `along` is its row (or column), then k.
std::vector<std::vector<U64>> gather(const Columns &in, std::size_t column, std::size_t first, unsigned words,
                                     const test::FragmentMap &map, const Product &p, bool isB) {
  const unsigned bits = p.shape->bits, perWord = p.wordBits() / bits;
  std::vector<std::vector<U64>> out(isB ? p.shape->n : p.shape->m, std::vector<U64>(p.shape->k));
  for (unsigned l = 0; l < lanes; ++l)
    for (unsigned e = 0; e < words * perWord; ++e) {
      const auto at = map.at(l, e);
      out[isB ? at.n : at.m][at.k] =
          in[column + e / perWord][first + l] >> (e % perWord * bits) & (bits == 64 ? ~U64(0) : (U64(1) << bits) - 1);
    }
  return out;
}

U64 integerDot(const Product &p, const Form &form, const std::vector<U64> &a, const std::vector<U64> &b, U64 c) {
  auto value = [](const std::string &type, U64 bits) {
    const unsigned n = bitsOf(type);
    return type[0] == 's' && bits >> (n - 1) ? std::int64_t(bits) - (1 << n) : std::int64_t(bits);
  };
  std::int64_t sum = static_cast<std::int32_t>(c);
  for (std::size_t k = 0; k < a.size(); ++k)
    sum +=
        p.a == "b1" ? std::int64_t(form.has("xor") ? a[k] ^ b[k] : a[k] & b[k]) : value(p.a, a[k]) * value(p.b, b[k]);
  if (form.has("satfinite"))
    sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
  return static_cast<std::uint32_t>(sum);
}

U64 dot(const Product &p, const Form &form, const std::vector<U64> &a, const std::vector<U64> &b, U64 c) {
  if (isInteger(p.d))
    return integerDot(p, form, a, b, c);
  if (p.d == "f64") {
    auto sum = std::bit_cast<double>(c);
    for (std::size_t k = 0; k < a.size(); ++k)
      sum = std::fma(std::bit_cast<double>(a[k]), std::bit_cast<double>(b[k]), sum);
    return std::bit_cast<U64>(sum);
  }
  const std::vector<std::uint32_t> x(a.begin(), a.end()), y(b.begin(), b.end());
  // sm_90: 25 bits, all of k; of fp8 two products of f16 and an addition (PTX is expanded so).
  test::ReferenceModel m{formatOf(p.a), formatOf(p.b), formatOf(p.c), formatOf(p.d), 25, 23, p.shape->k};
  if (p.shape->bits != 8)
    return test::referenceDot(m, x, y, static_cast<std::uint32_t>(c));
  m.block = p.shape->k / 2;
  m.addsLast = true;
  m.a.normalizes = p.a == "e4m3";
  m.b.normalizes = p.b == "e4m3";
  return test::referenceDot(m, test::pairsApart(x), test::pairsApart(y), static_cast<std::uint32_t>(c));
}

/// movmatrix: element (row, column) is in lane 4 row + column / 2.
void transpose(const Columns &in, std::size_t first, Columns &out) {
  for (unsigned l = 0; l < lanes; ++l)
    for (unsigned h = 0; h < 2; ++h) {
      const unsigned row = l / 4, column = l % 4 * 2 + h;
      out[0][first + l] |= (in[0][first + column * 4 + row / 2] >> (16 * (row % 2)) & 0xffff) << (16 * h);
    }
}

} // namespace

void fillMatrix(const Form &form, Cases &cases, std::size_t first, Random &random) {
  if (form.opcode() != "mma")
    return;
  const Product p(form);
  Elements elements(random, static_cast<Kind>(random() % unsigned(Kind::Count)));
  for (std::size_t i = 0; i < form.inputs.size(); ++i) {
    const bool isC = i >= p.wordsA() + p.wordsB(), isB = !isC && i >= p.wordsA();
    for (unsigned l = 0; l < lanes; ++l)
      cases.inputs[i][first + l] = elements.word(isC ? p.c : isB ? p.b : p.a, p.wordBits(), isB, isC);
  }
}

bool matrixOracle(const Form &form, const Columns &in, std::size_t first, Columns &out) {
  if (form.opcode() == "movmatrix") {
    transpose(in, first, out);
    return true;
  }
  if (form.opcode() != "mma")
    return false;
  const Product p(form);
  const test::MatrixShape &s = *p.shape;
  const auto a = gather(in, 0, first, p.wordsA(), test::mapOf(s.elementsA, s.lanes, 'm'), p, false);
  const auto b = gather(in, p.wordsA(), first, p.wordsB(), test::mapOf(s.elementsB, s.lanes, 'n'), p, true);
  const test::FragmentMap map = test::mapOfC(s);
  const unsigned bits = p.bitsC(), perWord = p.wordBits() / bits;
  const std::size_t c = p.wordsA() + p.wordsB();
  for (unsigned l = 0; l < lanes; ++l)
    for (unsigned e = 0; e < s.m * s.n / lanes; ++e) {
      const auto at = map.at(l, e);
      const unsigned shift = e % perWord * bits;
      const U64 addend = in[c + e / perWord][first + l] >> shift & (bits == 64 ? ~U64(0) : (U64(1) << bits) - 1);
      out[e / perWord][first + l] |= dot(p, form, a[at.m], b[at.n], addend) << shift;
    }
  return true;
}

} // namespace kiln::parity
