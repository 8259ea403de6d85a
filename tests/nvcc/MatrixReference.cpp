//===- MatrixReference.cpp ------------------------------------------------===//
#include "tests/nvcc/MatrixReference.h"

#include <bit>

namespace kiln::test {

namespace sf = softfloat;

namespace {
template <typename T> Operand<T> randomOperand(Bench &bench, const sf::Format &format, std::size_t count, float range) {
  Operand<T> operand;
  for (float x : randomFloats(bench, count, -range, range)) {
    auto bits = sf::pack(format, sf::unpack(sf::single, std::bit_cast<unsigned>(x)), sf::Rounding::NearestEven);
    operand.bits.push_back(T(bits));
    operand.values.push_back(sf::toDouble(format, bits));
  }
  return operand;
}
} // namespace

Operand<std::uint16_t> randomHalves(Bench &bench, const sf::Format &format, std::size_t count, float range) {
  return randomOperand<std::uint16_t>(bench, format, count, range);
}
Operand<std::uint8_t> randomQuarters(Bench &bench, const sf::Format &format, std::size_t count, float range) {
  return randomOperand<std::uint8_t>(bench, format, count, range);
}

Operand<float> randomTf32(Bench &bench, std::size_t count, float range) {
  Operand<float> operand{randomFloats(bench, count, -range, range), {}};
  for (float x : operand.bits)
    operand.values.push_back(double(std::bit_cast<float>((std::bit_cast<unsigned>(x) + 0x1000) & 0xffffe000)));
  return operand;
}

Product multiply(const std::vector<double> &a, const std::vector<double> &b, int m, int n, int k, bool bByColumns,
                 const Accumulation &accumulation) {
  Product product;
  double truncations = (k + int(accumulation.block) - 1) / int(accumulation.block);
  double unit = (accumulation.block + 1) * std::ldexp(1.0, -int(accumulation.fraction)) + accumulation.precision;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0, magnitude = 0;
      for (int x = 0; x < k; ++x) {
        double term = a[std::size_t(i * k + x)] * b[std::size_t(bByColumns ? j * k + x : x * n + j)];
        sum += term;
        magnitude += std::abs(term);
      }
      product.want.push_back(sum);
      product.magnitude.push_back(magnitude);
      // 1.001: partial sums exceed the magnitude by their own errors.
      product.bound.push_back(truncations * (1.001 * unit * magnitude + accumulation.smallest));
    }
  return product;
}

void roundedTo(Product &product, unsigned precision) {
  for (std::size_t i = 0; i < product.want.size(); ++i)
    product.bound[i] += std::ldexp(std::abs(product.want[i]) + product.bound[i], -int(precision));
}

std::vector<float> toFloats(const sf::Format &format, const std::vector<std::uint16_t> &bits) {
  std::vector<float> values;
  for (std::uint16_t b : bits)
    values.push_back(float(sf::toDouble(format, b)));
  return values;
}

} // namespace kiln::test
