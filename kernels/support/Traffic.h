//===- Traffic.h - What a launch must cost, in closed form ------------------===//
//
// Each family says for dense tensors, launch by launch, what the emulator's counters (kiln/Counters.h) must show; a
// test holds them to it on every target.  So a compiler that loads a byte twice, loses a vector access or adds a
// barrier fails a test, not a benchmark.
//
// How elements meet sectors.  Buffers start at multiples of 256 bytes.  Where a row's length is a multiple of 16 bytes,
// a lane has 16 bytes, else one element.  An access takes what 32 lanes have from a row's start on; a sector that two
// accesses share counts for both.  Where a mask cuts vectors (tails whose length is not known to be a multiple of 16
// bytes), each of the elements that a vector has is accessed by itself by all lanes: its sectors count once for each.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_TRAFFIC_H
#define KILN_KERNELS_SUPPORT_TRAFFIC_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace kiln::kernels {

/// Of one launch.  Bank conflicts: none, in any kernel of the library.
struct Traffic {
  std::string kernel;
  std::uint64_t loadSectors = 0, storeSectors = 0;
  std::uint64_t loadBytes = 0, storeBytes = 0; ///< that lanes ask for
  std::uint64_t barriers = 0;                  ///< arrivals of warps
  std::optional<std::uint64_t> wavefronts;     ///< of shared memory; nothing: see the family for why
};

/// n elements in a row from an aligned address on, each sector once.
inline std::uint64_t sectorsOnce(std::uint64_t n, std::uint64_t elementBytes) {
  return (n * elementBytes + 31) / 32;
}

/// n elements from an aligned address on, of whose vectors of 16 bytes each element is accessed by itself.  A sector
/// holds two vectors: element c of them lies in ceil((n - c) / (2 v)) sectors.
inline std::uint64_t sectorsOfCutVectors(std::uint64_t n, std::uint64_t elementBytes) {
  const std::uint64_t v = 16 / elementBytes;
  std::uint64_t sectors = 0;
  for (std::uint64_t c = 0; c < std::min(v, n); ++c)
    sectors += (n - c + 2 * v - 1) / (2 * v);
  return sectors;
}

/// What a lane has of a row: a vector where all rows start at multiples of one.
inline std::uint64_t elementsOfLane(std::uint64_t columns, std::uint64_t elementBytes) {
  return columns * elementBytes % 16 == 0 ? 16 / elementBytes : 1;
}

/// Rows that follow each other without a gap, `run` elements an access from each row's start on; or, where `together`
/// rows fill a warp, all of those from the first one's start on.
inline std::uint64_t sectorsOfRows(std::uint64_t rows, std::uint64_t columns, std::uint64_t elementBytes,
                                   std::uint64_t run = 32, std::uint64_t together = 1) {
  std::uint64_t sectors = 0;
  for (std::uint64_t r = 0; r < rows; r += together) {
    const std::uint64_t end = std::min(rows, r + together) * columns;
    for (std::uint64_t c = r * columns, next; c < end; c = next) {
      next = std::min(end, together > 1 ? end : c + run);
      sectors += (next * elementBytes - 1) / 32 - c * elementBytes / 32 + 1;
    }
  }
  return sectors;
}

/// Rows that follow each other without a gap, cut vectors from each row's start on: a warp has 32 of them, and accesses
/// the first element of each, then the second, and so on.
inline std::uint64_t sectorsOfCutRows(std::uint64_t rows, std::uint64_t columns, std::uint64_t elementBytes) {
  const std::uint64_t v = 16 / elementBytes;
  std::uint64_t sectors = 0;
  for (std::uint64_t r = 0; r < rows; ++r)
    for (std::uint64_t first = 0; first < columns; first += 32 * v)
      for (std::uint64_t c = first; c < std::min(first + v, columns); ++c) {
        const std::uint64_t lanes = std::min<std::uint64_t>((columns - c + v - 1) / v, 32);
        const std::uint64_t at = (r * columns + c) * elementBytes, last = at + (lanes - 1) * 16;
        sectors += last / 32 - at / 32 + 1;
      }
  return sectors;
}

/// n elements in blocks of a program: whole blocks once, the rest under a mask that cuts vectors.
inline std::uint64_t sectorsOfBlocks(std::uint64_t n, std::uint64_t block, std::uint64_t elementBytes) {
  return sectorsOnce(n / block * block, elementBytes) + sectorsOfCutVectors(n % block, elementBytes);
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_TRAFFIC_H
