//===- BoxWalk.h - Where the elements of a tensor map's box lie -----------===//
//
// A box at given coordinates, as pieces: runs of bytes that are contiguous in global memory and in shared memory, or
// that lie outside the tensor.  Pure arithmetic, no memory is touched.
//
//  - Box element j of dimension i has coordinate c_i + j * s_i, with s_i the element stride (dimension 0: always 1);
//    there are ceil(box_i / s_i) of them.
//  - In shared memory the box is dense, dimension 0 fastest; with a swizzle of S bytes a row takes S bytes even if it
//    is shorter.  The swizzle permutes chunks by the bits of the shared address itself, so it depends on where the
//    box lies.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_BOXWALK_H
#define KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_BOXWALK_H

#include "compiler/target/TensorMap.h"

#include <algorithm>

namespace kiln::emulator {

/// The address that the element at the unswizzled shared address `a` gets.  Its own inverse.
constexpr std::uint32_t swizzledAddress(TensorMapSwizzle swizzle, std::uint32_t a) {
  const std::uint32_t line = a >> 7;
  switch (swizzle) {
  case TensorMapSwizzle::None:
    return a;
  case TensorMapSwizzle::B32:
    return a ^ (line & 1) << 4;
  case TensorMapSwizzle::B64:
    return a ^ (line & 3) << 4;
  case TensorMapSwizzle::B128:
    return a ^ (line & 7) << 4;
  case TensorMapSwizzle::B128Atom32:
    return a ^ (line & 3) << 5;
  case TensorMapSwizzle::B128Atom32Flip8:
    return a ^ (line & 3) << 5 ^ (line & 1) << 3;
  case TensorMapSwizzle::B128Atom64:
    return a ^ (line & 1) << 6;
  }
  return a;
}

/// Bytes that a swizzle keeps together.
constexpr std::uint32_t swizzleChunk(TensorMapSwizzle swizzle) {
  switch (swizzle) {
  case TensorMapSwizzle::None:
    return ~0u;
  case TensorMapSwizzle::B128Atom32:
    return 32;
  case TensorMapSwizzle::B128Atom32Flip8:
    return 8;
  case TensorMapSwizzle::B128Atom64:
    return 64;
  default:
    return 16;
  }
}

struct BoxPiece {
  std::uint32_t shared = 0; ///< address
  std::uint32_t bytes = 0;
  std::uint64_t global = 0; ///< address; 0 outside the tensor
  bool inside = false;
};

/// A row of the box: its elements of dimension 0.  Those in [begin, end) are inside the tensor.
struct BoxRow {
  std::uint64_t global = 0; ///< address of element 0, which may be outside
  std::uint32_t shared = 0; ///< offset in the box, before the swizzle
  std::uint32_t begin = 0, end = 0;
};

class BoxWalk {
public:
  /// `map` obeys checkTensorMap and is not interleaved.  `coordinates` has one a dimension, the contiguous one first.
  /// Stores write units of `unitBytes`: elements past the end of a row that share one with the last element are inside.
  BoxWalk(const TensorMapRecipe &map, const std::int32_t *coordinates, std::uint32_t unitBytes = 1);

  std::uint32_t elementBytes, rowElements, rowBytes;
  std::uint32_t pitch;      ///< bytes from row to row in shared memory
  std::uint64_t rows;       ///< of the whole box
  std::uint64_t denseBytes; ///< what the copy counts for: outside elements too, padding not
  std::uint64_t spanBytes;  ///< of shared memory, padding of the last row excluded

  /// Row `index` in the order of shared memory.
  BoxRow row(std::uint64_t index) const;

  /// Calls f(const BoxPiece &) for every piece of the box at shared address `destination`; spanBytes must fit there.
  template <typename F> void eachPiece(std::uint32_t destination, F f) const {
    for (std::uint64_t i = 0; i < rows; ++i) {
      const BoxRow r = row(i);
      const std::uint32_t from = destination + r.shared;
      eachChunk(from, 0, r.begin, r.global, false, f);
      eachChunk(from, r.begin, r.end, r.global, true, f);
      eachChunk(from, r.end, rowElements, r.global, false, f);
    }
  }

private:
  /// Elements [begin, end) of the row at unswizzled address `from`; `global` is element 0's address.
  template <typename F>
  void eachChunk(std::uint32_t from, std::uint32_t begin, std::uint32_t end, std::uint64_t global, bool inside,
                 F &f) const {
    std::uint32_t at = begin * elementBytes;
    const std::uint32_t limit = end * elementBytes;
    while (at < limit) {
      const std::uint32_t address = from + at;
      const std::uint32_t left = chunk == ~0u ? limit - at : std::min(limit - at, chunk - address % chunk);
      f(BoxPiece{swizzledAddress(swizzle, address), left, inside ? global + at : 0, inside});
      at += left;
    }
  }

  TensorMapSwizzle swizzle;
  std::uint32_t chunk;
  unsigned rank;
  std::uint64_t address;
  std::int64_t first[TensorMapRecipe::maxRank] = {};
  std::uint64_t dims[TensorMapRecipe::maxRank] = {}, strides[TensorMapRecipe::maxRank] = {};
  std::uint32_t counts[TensorMapRecipe::maxRank] = {}, steps[TensorMapRecipe::maxRank] = {};
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_ASYNC_BOXWALK_H
