//===- Text.h - Pieces of kernels at stage tile_gpu --------------------------===//
#ifndef KILN_TESTS_LOWERING_TEXT_H
#define KILN_TESTS_LOWERING_TEXT_H

#include "tests/lowering/LoweringHarness.h"

namespace kiln::test {

inline std::size_t elementsOf(const layout::Sizes &shape) {
  std::size_t n = 1;
  for (std::int64_t extent : shape)
    n *= static_cast<std::size_t>(extent);
  return n;
}

/// The coordinates of element i in row-major order.
inline layout::Sizes coordinatesOf(std::size_t i, const layout::Sizes &shape) {
  layout::Sizes at(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; i /= static_cast<std::size_t>(shape[d]))
    at[d] = static_cast<std::int64_t>(i % static_cast<std::size_t>(shape[d]));
  return at;
}

/// A view `name` of the whole of a dense row-major tile at `pointer`.
inline std::string denseView(const std::string &name, const std::string &pointer, const layout::Sizes &shape,
                             const std::string &element) {
  std::string text, sizes, strides;
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    const std::string n = name + std::to_string(d);
    text += "    %n" + n + " = arith.constant " + std::to_string(shape[d]) + " : i32\n    %s" + n +
            " = arith.constant " + std::to_string(stride) + " : i32\n";
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::string comma = d ? ", " : "", n = name + std::to_string(d);
    sizes += comma + "%n" + n;
    strides += comma + "%s" + n;
  }
  return text + "    %" + name + " = tile.make_view %" + pointer + ", extents [" + sizes + "], strides [" + strides +
         "] : !tile.view<" + extents(shape) + "x" + element + ">, i32\n";
}

inline const std::string zeroConstant = "    %zero = arith.constant 0 : i32\n";

inline std::string zeroCoordinates(std::size_t rank) {
  std::string out;
  for (std::size_t d = 0; d < rank; ++d)
    out += d ? ", %zero" : "%zero";
  return out;
}

/// %value = the whole tile at `pointer`; needs zeroConstant.
inline std::string loadView(const std::string &value, const std::string &pointer, const layout::Sizes &shape,
                            const std::string &element, const std::string &type) {
  return denseView("v" + value, pointer, shape, element) + "    %" + value + " = tile.load_view %v" + value + "[" +
         zeroCoordinates(shape.size()) + "] : !tile.view<" + extents(shape) + "x" + element + ">, i32 -> " + type +
         "\n";
}

inline std::string storeView(const std::string &value, const std::string &pointer, const layout::Sizes &shape,
                             const std::string &element, const std::string &type) {
  return denseView("w" + value, pointer, shape, element) + "    tile.store_view %w" + value + "[" +
         zeroCoordinates(shape.size()) + "], %" + value + " : !tile.view<" + extents(shape) + "x" + element +
         ">, i32, " + type + "\n";
}

/// Two pointers %x and %y, 16-byte aligned.
inline std::string twoPointers(const std::string &element) {
  const std::string p = ": !tile.ptr<" + element + "> {tile.divisibility = 16 : i32}";
  return "%x" + p + ", %y" + p;
}

struct ElementType {
  const char *name;
  unsigned bytes;
};
inline constexpr ElementType elementTypes[] = {{"i8", 1},  {"f8E5M2", 1}, {"i16", 2}, {"bf16", 2}, {"f16", 2},
                                               {"f32", 4}, {"i32", 4},    {"i64", 8}, {"f64", 8}};
inline const char *const loweringTargets[] = {"sm_75", "sm_80", "sm_90a", "sm_120a"};

inline std::vector<unsigned char> randomBytes(std::mt19937_64 &random, std::size_t n) {
  std::vector<unsigned char> out(n);
  for (unsigned char &c : out)
    c = static_cast<unsigned char>(random());
  return out;
}

} // namespace kiln::test

#endif // KILN_TESTS_LOWERING_TEXT_H
