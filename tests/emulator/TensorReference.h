//===- TensorReference.h - Boxes of tensors, element by element -----------===//
//
// What the specification says of a tensor map's box, stated once for the tests of addresses and for those of copies on
// any device.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_TENSORREFERENCE_H
#define KILN_TESTS_EMULATOR_TENSORREFERENCE_H

#include "compiler/target/TensorMap.h"

#include <algorithm>
#include <map>

namespace kiln::test {

/// Where the swizzle puts a byte: in rows of 128 bytes, columns of a unit are exchanged by the row's number.
inline std::uint32_t placed(TensorMapSwizzle swizzle, std::uint32_t address) {
  const std::uint32_t row = address / 128, in = address % 128;
  auto exchange = [&](std::uint32_t unit, std::uint32_t group) { // units in each group of `group` units
    const std::uint32_t column = in / unit;
    const std::uint32_t moved = column / group * group + (column % group ^ row % group);
    return row * 128 + moved * unit + in % unit;
  };
  switch (swizzle) {
  case TensorMapSwizzle::None:
    return address;
  case TensorMapSwizzle::B32:
    return exchange(16, 2);
  case TensorMapSwizzle::B64:
    return exchange(16, 4);
  case TensorMapSwizzle::B128:
    return exchange(16, 8);
  case TensorMapSwizzle::B128Atom32:
    return exchange(32, 4);
  case TensorMapSwizzle::B128Atom64:
    return exchange(64, 2);
  case TensorMapSwizzle::B128Atom32Flip8: {
    const std::uint32_t at = exchange(32, 4);
    return row % 2 ? at / 16 * 16 + (at % 16 + 8) % 16 : at;
  }
  }
  return 0;
}

constexpr std::uint64_t outsideTensor = ~std::uint64_t(0);

/// Every byte of the box: shared address -> global address, element by element.  Stores write 16 bytes or none: of
/// dimension 0 also the elements past the end that share them with the last one.
inline std::map<std::uint32_t, std::uint64_t> boxBytes(const TensorMapRecipe &r, const std::int32_t *c,
                                                       std::uint32_t destination, bool isStore = false) {
  std::map<std::uint32_t, std::uint64_t> bytes;
  const std::uint32_t size = tensorMapTypeBytes(r.type);
  const std::uint32_t pitch = std::max(r.box[0] * size, tensorMapSwizzleBytes(r.swizzle));
  std::uint32_t count[5] = {r.box[0], 1, 1, 1, 1};
  for (unsigned i = 1; i < r.rank; ++i)
    for (count[i] = 0; count[i] * r.elementStrides[i] < r.box[i];)
      ++count[i];
  std::uint32_t row = 0;
  for (std::uint32_t j4 = 0; j4 < count[4]; ++j4)
    for (std::uint32_t j3 = 0; j3 < count[3]; ++j3)
      for (std::uint32_t j2 = 0; j2 < count[2]; ++j2)
        for (std::uint32_t j1 = 0; j1 < count[1]; ++j1, ++row)
          for (std::uint32_t j0 = 0; j0 < count[0]; ++j0) {
            const std::uint32_t j[5] = {j0, j1, j2, j3, j4};
            bool in = true;
            std::uint64_t global = r.address;
            for (unsigned i = 0; i < r.rank; ++i) {
              const __int128 at = __int128(c[i]) + __int128(j[i]) * (i ? r.elementStrides[i] : 1);
              const std::uint64_t whole = (r.dims[0] * size + 15) / 16 * 16 / size;
              in &= at >= 0 && at < __int128(i == 0 && isStore ? whole : r.dims[i]);
              if (in)
                global += static_cast<std::uint64_t>(at) * (i ? r.strides[i - 1] : size);
            }
            for (std::uint32_t b = 0; b < size; ++b)
              bytes[placed(r.swizzle, destination + row * pitch + j0 * size + b)] = in ? global + b : outsideTensor;
          }
  return bytes;
}

} // namespace kiln::test

#endif // KILN_TESTS_EMULATOR_TENSORREFERENCE_H
