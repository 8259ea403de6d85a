//===- Arrays.h - .npy files that tests of `kiln run` make and read ---------===//
#ifndef KILN_TESTS_CLI_ARRAYS_H
#define KILN_TESTS_CLI_ARRAYS_H

#include "runtime/io/Npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>

namespace kiln::test {

/// Values as an array of that type, rounded.  Integers: i32, i64, i8.
inline Array arrayFrom(DType type, const Shape &shape, const std::vector<double> &values) {
  Array out{DType::F64, shape, {}};
  const auto bytes = std::as_bytes(std::span(values));
  out.data.assign(bytes.begin(), bytes.end());
  if (dtypeKind(type) == DTypeKind::Float) {
    auto made = convertArray(std::move(out), type, "values");
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return made.ok() ? std::move(*made) : Array{type, shape, {}};
  }
  const unsigned width = dtypeBytes(type);
  Array integers{type, shape, std::vector<std::byte>(values.size() * width)};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto v = static_cast<std::int64_t>(values[i]); // little endian: its low bytes
    std::memcpy(&integers.data[i * width], &v, width);
  }
  return integers;
}

/// Writes values, rounded to the type; gives `file`.
inline std::string saveArray(const std::string &file, DType type, const Shape &shape,
                             const std::vector<double> &values) {
  EXPECT_TRUE(writeNpy(file, arrayFrom(type, shape, values)).ok());
  return file;
}
inline std::string saveZeros(const std::string &file, DType type, const Shape &shape) {
  std::size_t n = 1;
  for (const std::uint64_t e : shape)
    n *= e;
  return saveArray(file, type, shape, std::vector<double>(n));
}

/// A file's values, and its shape.
inline std::vector<double> valuesOf(const std::string &file, Shape *shape = nullptr) {
  auto array = readNpy(file);
  EXPECT_TRUE(array.ok()) << array.status().toString();
  std::vector<double> out;
  if (!array.ok())
    return out;
  for (std::uint64_t i = 0; i < array->elements(); ++i)
    out.push_back(loadElement(&array->data[i * dtypeBytes(array->type)], array->type));
  if (shape)
    *shape = array->shape;
  return out;
}

/// Normal numbers, rounded to f16, so that files of f16 and wider hold the same.
inline std::vector<double> normals(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> out(n);
  for (double &v : out)
    v = normal(random);
  const Array rounded = arrayFrom(DType::F16, {n}, out);
  for (std::size_t i = 0; i < n; ++i)
    out[i] = loadElement(&rounded.data[i * 2], DType::F16);
  return out;
}

} // namespace kiln::test

#endif // KILN_TESTS_CLI_ARRAYS_H
