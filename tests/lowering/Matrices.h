//===- Matrices.h - Random matrices of every element type, as tests of products use them ===//
#ifndef KILN_TESTS_LOWERING_MATRICES_H
#define KILN_TESTS_LOWERING_MATRICES_H

#include "tests/lowering/Text.h"

#include "runtime/io/Numbers.h"

namespace kiln::test {

inline const FloatFormat *formatOf(std::string_view name) {
  if (name == "f16")
    return &formatF16;
  if (name == "bf16")
    return &formatBf16;
  if (name == "f8E4M3FN")
    return &formatE4m3;
  return name == "f8E5M2" ? &formatE5m2 : nullptr;
}

/// A matrix in memory, and its values.
struct Matrix {
  std::vector<unsigned char> bytes;
  std::vector<double> values;
};

inline Matrix randomMatrix(std::mt19937_64 &random, std::size_t n, const std::string &type) {
  Matrix out;
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < n; ++i) {
    double v = normal(random);
    const auto put = [&](const auto &bits) {
      const auto *p = reinterpret_cast<const unsigned char *>(&bits);
      out.bytes.insert(out.bytes.end(), p, p + sizeof(bits));
    };
    if (const FloatFormat *f = formatOf(type)) {
      const std::uint32_t code = encodeFloat(v, *f);
      v = decodeFloat(code, *f);
      if (f->bits() == 8)
        put(static_cast<std::uint8_t>(code));
      else
        put(static_cast<std::uint16_t>(code));
    } else if (type == "i8") {
      const auto small = static_cast<std::int8_t>(random());
      v = small;
      put(small);
    } else if (type == "i32") {
      const auto number = static_cast<std::int32_t>(random());
      v = number;
      put(number);
    } else if (type == "f32") {
      const auto single = static_cast<float>(v);
      v = single;
      put(single);
    } else {
      put(v);
    }
    out.values.push_back(v);
  }
  return out;
}

inline std::string plainType(const layout::Sizes &shape, const std::string &element) {
  return "tensor<" + extents(shape) + "x" + element + ">";
}

} // namespace kiln::test

#endif // KILN_TESTS_LOWERING_MATRICES_H
