//===- Cases.cpp ----------------------------------------------------------===//
#include "tests/parity/Cases.h"

#include "tests/parity/Matrix.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

namespace kiln::parity {

namespace {

namespace sf = softfloat;
using Rng = std::mt19937_64;
constexpr std::size_t sampledTuples = 4096, hashedRandom = 1024;

/// Numbers whose roundings and range checks matter, as doubles; packed to any format by rounding.
constexpr double landmarks[] = {1.0,
                                1.5,
                                2.5,
                                0.5,
                                -0.3,
                                3.0,
                                0x1p23,
                                0x1.000002p23,
                                0x1.fffffep22,
                                0x1.000002p24,
                                0x1p31,
                                0x1p32,
                                0x1p63,
                                0x1p64,
                                65504.0,
                                65519.996,
                                65520.0,
                                448.0,
                                464.0,
                                57344.0,
                                61440.0,
                                0x1p-9,
                                0x1p-10,
                                0x1.000002p-10,
                                0x1p-16,
                                0x1p-17,
                                0x1.000002p-17,
                                0x1p-24,
                                0x1p-25,
                                0x1.000002p-25,
                                127.5,
                                128.0,
                                255.5,
                                256.0,
                                32767.5,
                                65535.5,
                                0x1.fffffcp30,
                                0x1p-126,
                                0x1p-127,
                                0x1p126,
                                0x1p127,
                                0x1.8p127,
                                0x1p15,
                                88.7,
                                6.2831855,
                                9.0};

std::vector<std::uint64_t> floatEdges(const sf::Format &f) {
  std::uint64_t one = std::uint64_t(f.bias()) << (f.precision - 1), minNormal = f.fractionMask() + 1;
  std::uint64_t quiet = (f.fractionMask() + 1) >> 1;
  std::vector<std::uint64_t> values;
  for (std::uint64_t magnitude : {std::uint64_t(0), std::uint64_t(1), f.fractionMask(), minNormal, minNormal + 1,
                                  one - 1, one, one + 1, f.maxFinite()})
    values.insert(values.end(), {magnitude, magnitude | f.signBit()});
  if (!f.finiteOnly) // infinities; quiet and signalling NaN with payload and sign
    values.insert(values.end(), {f.infinity(), f.infinity() | f.signBit(),
                                 f.infinity() | quiet | (f.fractionMask() & 0x35), f.infinity() | f.signBit() | 1});
  bool negate = false;
  for (double landmark : landmarks) {
    std::uint64_t bits =
        sf::pack(f, sf::unpack(sf::real, std::bit_cast<std::uint64_t>(landmark)), sf::Rounding::NearestEven);
    negate = !negate; // every second landmark is negative: the table stays short enough for all pairs
    values.push_back(negate ? bits : bits ^ f.signBit());
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<std::uint64_t> integerEdges(unsigned bits) {
  std::uint64_t mask = bits == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << bits) - 1;
  std::uint64_t top = std::uint64_t(1) << (bits - 1);
  std::vector<std::uint64_t> values;
  for (std::uint64_t v : {std::uint64_t(0),
                          std::uint64_t(1),
                          ~std::uint64_t(0),
                          std::uint64_t(2),
                          std::uint64_t(7),
                          std::uint64_t(31),
                          std::uint64_t(32),
                          std::uint64_t(33),
                          std::uint64_t(63),
                          std::uint64_t(64),
                          std::uint64_t(255),
                          std::uint64_t(256),
                          top,
                          top + 1,
                          top - 1,
                          std::uint64_t(0x5555555555555555),
                          std::uint64_t(0xaaaaaaaaaaaaaaaa),
                          std::uint64_t(0x7fff),
                          std::uint64_t(0xffff8000),
                          ~std::uint64_t(1),
                          std::uint64_t(0x80000000),
                          std::uint64_t(0xffffffff),
                          std::uint64_t(0x7f),
                          ~std::uint64_t(127),
                          std::uint64_t(0x123456789abcdef0),
                          std::uint64_t(0x00ffffff),
                          std::uint64_t(0x00800000)})
    values.push_back(v & mask);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::uint64_t segmentValue(std::uint64_t r) {
  std::uint64_t width = std::uint64_t(1) << ((r >> 8) % 6); // 1..32
  if (r % 4 == 0)
    return (r >> 16) & 0x1f1f; // any clamp and mask
  return ((32 - width) << 8) | (r & 1 ? 31 : 0);
}

std::uint64_t randomFloat(const sf::Format &f, Rng &rng) {
  std::uint64_t r = rng(), bits = r & (f.signBit() | (f.signBit() - 1));
  switch (rng() % 8) {
  case 0: // few fraction bits: ties and exact results
    return bits & ~(f.fractionMask() >> (1 + (r >> 58) % 4));
  case 1: { // around 1
    std::uint64_t exponent = std::uint64_t(f.bias() - 4) + (r >> 56) % 9;
    return (bits & (f.signBit() | f.fractionMask())) | (exponent << (f.precision - 1));
  }
  default: // every exponent alike
    return bits;
  }
}

std::uint64_t randomInteger(unsigned bits, Rng &rng) {
  std::uint64_t mask = bits == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << bits) - 1;
  std::uint64_t control = rng(), v = rng() >> (control % 64);
  if (control & 0x100)
    v = ~v;
  if ((control & 0xe00) == 0)
    v = std::uint64_t(1) << ((control >> 16) % 64);
  return v & mask;
}

std::uint64_t randomValue(Type type, Rng &rng) {
  const TypeInfo &t = info(type);
  switch (type) {
  case Type::Pred:
    return rng() & 1;
  case Type::Amount:
    return rng() % 4 ? rng() % 70 : randomInteger(32, rng);
  case Type::Position:
    return rng() % 4 ? rng() % 70 : rng() % 2 ? rng() % 256 : randomInteger(32, rng);
  case Type::Lane:
    return rng() % 4 ? rng() % 33 : randomInteger(32, rng);
  case Type::Segment:
    return segmentValue(rng());
  case Type::Few:
    return rng() % 3;
  case Type::Base:
    return rng() % 32;
  case Type::Offset:
    return (rng() % 67 - 33) & 0xffffffff;
  case Type::Selector:
    return rng() & 0xffffffff;
  case Type::Angle: {
    double range = rng() % 2 ? 6.283 : 314.0;
    auto v = float(range * (double(rng() >> 11) * 0x1p-52 - 1.0));
    return std::bit_cast<std::uint32_t>(v);
  }
  default:
    break;
  }
  std::uint64_t value = 0;
  unsigned width = t.bits / t.elements;
  for (unsigned e = 0; e < t.elements; ++e)
    value |= (t.format ? randomFloat(*t.format, rng) : randomInteger(width, rng)) << (e * width);
  return value;
}

/// Random operands rarely meet: brings the exponents (or values) of neighbouring operands of one type together.
void relate(const Form &form, std::vector<std::uint64_t> &values, Rng &rng) {
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (form.inputs[i] != form.inputs[i - 1])
      continue;
    const TypeInfo &t = info(form.inputs[i]);
    std::uint64_t r = rng();
    if (!t.format) {
      if (r % 8 == 0 && t.type < Type::Amount && t.type != Type::Pred) {
        std::uint64_t mask = t.bits == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << t.bits) - 1;
        values[i] = (values[i - 1] + (r >> 32) % 3 - 1) & mask;
      }
      continue;
    }
    if (r % 2)
      continue;
    const sf::Format &f = *t.format;
    unsigned width = t.bits / t.elements;
    for (unsigned e = 0; e < t.elements; ++e) {
      auto field = [&](std::size_t operand) {
        return std::int64_t((values[operand] >> (e * width) & (f.signBit() - 1)) >> (f.precision - 1));
      };
      std::int64_t near = i == 2 ? field(0) + field(1) - f.bias() : field(i - 1); // fma: near the product
      near += std::int64_t((r >> (8 + 8 * e)) % 7) - 3;
      near = std::clamp<std::int64_t>(near, 0, (std::int64_t(1) << f.exponentBits) - 2);
      values[i] &= ~(f.infinity() << (e * width));
      values[i] |= std::uint64_t(near) << (f.precision - 1) << (e * width);
    }
  }
}

/// Values that a whole warp shares, and warps or blocks in which all lanes agree.
void shareLanes(const Form &form, Cases &cases, std::size_t first, Rng &rng) {
  if (form.group == 1)
    return;
  for (std::size_t at = first; at < first + blockThreads; at += 32)
    fillMatrix(form, cases, at, rng);
  for (std::size_t at = first; at < first + blockThreads; at += 32)
    for (std::size_t i = 0; i < form.inputs.size(); ++i) {
      auto &column = cases.inputs[i];
      Type t = form.inputs[i];
      std::uint64_t r = rng();
      bool agree = t == Type::Segment || ((t == Type::Few || t == Type::Pred) && r % 4 == 0);
      if (agree)
        std::fill_n(column.begin() + std::ptrdiff_t(at), 32, column[at]);
      if (t == Type::Few && r % 8 == 0)
        column[at + (r >> 32) % 32] = 7;
    }
  if (form.group == blockThreads && rng() % 3 == 0) // all agree, or all but one
    for (auto &column : cases.inputs) {
      std::fill_n(column.begin() + std::ptrdiff_t(first), blockThreads, column[first]);
      if (rng() % 2)
        column[first + rng() % blockThreads] ^= 1;
    }
}

} // namespace

std::uint64_t hashBytes(const void *data, std::size_t size, std::uint64_t seed) {
  const auto *bytes = static_cast<const unsigned char *>(data);
  for (; size >= 8; size -= 8, bytes += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    seed = (seed ^ word) * 0x9e3779b97f4a7c15;
    seed ^= seed >> 29;
  }
  for (; size; --size, ++bytes)
    seed = (seed ^ *bytes) * 0x100000001b3;
  return seed ^ seed >> 32;
}

std::vector<std::uint64_t> edgeValues(Type type, bool exhaustive) {
  const TypeInfo &t = info(type);
  std::vector<std::uint64_t> values;
  auto range = [&](std::uint64_t count) {
    for (std::uint64_t v = 0; v < count; ++v)
      values.push_back(v);
  };
  switch (type) {
  case Type::Pred:
    range(2);
    return values;
  case Type::Amount:
    return {0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0x80000000, 0xffffffff};
  case Type::Position:
    return {0, 1, 7, 31, 32, 33, 63, 64, 65, 128, 255, 256, 0x80000000, 0xffffffff};
  case Type::Selector:
    return {0x3210, 0x7654, 0xfedc, 0x89ab, 0x0123, 0x4567, 0, 1, 2, 3, 0x8888, 0xffffffff, 0x12345678, 0x7777, 0xf0f0};
  case Type::Base:
    range(32);
    return values;
  case Type::Offset:
    for (std::int64_t v = -33; v <= 33; ++v)
      values.push_back(std::uint64_t(v) & 0xffffffff);
    return values;
  case Type::Lane:
    range(34);
    values.insert(values.end(), {63, 255, 0x80000000, 0xffffffff});
    return values;
  case Type::Few:
    range(4);
    return values;
  case Type::Segment:
    for (std::uint64_t r = 0; r < 4096; r += 37)
      values.push_back(segmentValue(r * 0x9e3779b97f4a7c15));
    return values;
  default:
    break;
  }
  unsigned width = t.bits / t.elements;
  if (exhaustive && width <= 16) {
    if (t.elements == 1 || t.bits == 16) {
      range(std::uint64_t(1) << t.bits);
    } else { // both halves run through everything, in different orders
      for (std::uint64_t v = 0; v < 65536; ++v)
        values.push_back(v | ((v * 40503 + 12345) & 0xffff) << 16);
    }
    return values;
  }
  std::vector<std::uint64_t> element = t.format ? floatEdges(*t.format) : integerEdges(width);
  if (t.elements == 1)
    return element;
  for (std::size_t i = 0; i < element.size(); ++i)
    values.push_back(element[i] | element[(i * 7 + 3) % element.size()] << width);
  return values;
}

Cases makeCases(const Form &form, std::size_t randomCount, std::size_t maxEdges) {
  Rng rng(hashBytes(form.name.data(), form.name.size()));
  std::size_t operands = form.inputs.size();
  std::vector<std::vector<std::uint64_t>> edges;
  std::size_t combinations = 1;
  for (Type type : form.inputs) {
    edges.push_back(edgeValues(type, operands == 1 && form.group == 1));
    combinations = std::min<std::size_t>(combinations * edges.back().size(), 1 << 20);
  }
  Cases cases;
  cases.inputs.resize(operands);
  std::vector<std::vector<std::uint64_t>> tuples;
  if (operands <= 2 && form.group == 1 && (operands == 1 || combinations <= sampledTuples)) {
    for (std::uint64_t a : edges[0])
      if (operands == 1)
        tuples.push_back({a});
      else
        for (std::uint64_t b : edges[1])
          tuples.push_back({a, b});
    for (std::size_t i = tuples.size(); i > 1; --i)
      std::swap(tuples[i - 1], tuples[rng() % i]);
  } else {
    for (std::size_t i = 0; i < sampledTuples; ++i) {
      std::vector<std::uint64_t> tuple;
      for (const auto &values : edges)
        tuple.push_back(values[rng() % values.size()]);
      tuples.push_back(std::move(tuple));
    }
  }
  auto push = [&](const std::vector<std::uint64_t> &tuple) {
    for (std::size_t i = 0; i < operands; ++i)
      cases.inputs[i].push_back(tuple[i]);
  };
  auto pushRandom = [&] {
    std::vector<std::uint64_t> tuple;
    for (Type type : form.inputs)
      tuple.push_back(randomValue(type, rng));
    relate(form, tuple, rng);
    push(tuple);
  };
  for (const auto &tuple : tuples)
    push(tuple);
  while (cases.count() % blockThreads)
    pushRandom();
  cases.edges = cases.count();
  for (std::size_t at = 0; at < cases.edges; at += blockThreads)
    shareLanes(form, cases, at, rng);
  while (cases.count() < cases.edges + std::max(randomCount, hashedRandom)) {
    std::size_t first = cases.count();
    for (std::size_t i = 0; i < blockThreads; ++i)
      pushRandom();
    shareLanes(form, cases, first, rng);
  }
  cases.inputHash = hashBytes(nullptr, 0);
  for (auto &column : cases.inputs) {
    cases.inputHash = hashBytes(column.data(), (cases.edges + hashedRandom) * sizeof(std::uint64_t), cases.inputHash);
    column.resize(cases.edges > maxEdges ? maxEdges : cases.edges + randomCount);
  }
  return cases;
}

} // namespace kiln::parity
