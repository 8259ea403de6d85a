//===- OracleMemory.h - Shared memory that remembers who touched it -------===//
//
// The scratch memory of the plan oracle.  Every byte holds which value it belongs to (the source place it came from)
// and which byte of that value it is, who wrote and who read it last, and when.  Time is counted in epochs: a barrier
// starts the next one.  Two accesses of different threads in one epoch, one of them a write, are a race.
//
// A byte written in an earlier pass counts as unwritten: passes must not feed on each other's data.
//
// Also here: the bank model by brute force (32 banks of 4 bytes; one wavefront serves one word of each bank), which
// knows nothing of linear algebra.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_LAYOUT_ORACLEMEMORY_H
#define KILN_TESTS_LAYOUT_ORACLEMEMORY_H

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::test {

/// Wavefronts of one load or store of `bytes` a lane: lanes whose bit of `active` is 0 take no part.
unsigned simulateWavefronts(const std::uint64_t (&address)[32], std::uint32_t active, unsigned bytes);

/// Phases that have at least one active lane: the wavefronts without any conflict.
unsigned activePhases(std::uint32_t active, unsigned bytes);

/// Wavefronts of an ldmatrix or stmatrix: lane 8j + r names the 16-byte row r of matrix j.
unsigned simulateRows(const std::uint64_t (&address)[32], unsigned matrices);

class OracleMemory {
public:
  /// `size` bytes in each block.
  OracleMemory(unsigned blocks, std::uint64_t size) : bytesPerBlock(size), cells(blocks * size) {}

  std::uint64_t size() const { return bytesPerBlock; }
  void barrier() { ++epoch; }

  /// Writes the bytes first .. first+count-1 of value `place` at an address; the error, or nothing.
  const char *write(unsigned block, std::uint64_t address, std::uint32_t place, unsigned first, unsigned count,
                    std::uint32_t thread, std::uint32_t pass);
  /// Reads `count` bytes that must be bytes 0 .. count-1 of one value; sets `place`.  Bytes are given one by one, so
  /// that a value may be gathered from several rows: byte number `index` must be `index`.
  const char *read(unsigned block, std::uint64_t address, std::uint32_t &place, unsigned index, std::uint32_t thread,
                   std::uint32_t pass);

  /// A byte of another block was read since the last barrier: the block must not leave or reuse it yet.
  bool remoteReadsPending(unsigned threadsPerBlock) const;

  /// The value and byte number at an address, or false if it was never written.
  bool peek(unsigned block, std::uint64_t address, std::uint32_t &place, unsigned &byte) const;

private:
  static constexpr std::uint32_t nobody = ~0u, many = ~0u - 1;
  struct Cell {
    std::uint32_t place = 0;
    std::uint32_t pass = ~0u;
    std::uint32_t writer = nobody, writeEpoch = 0;
    std::uint32_t reader = nobody, readEpoch = 0;
    unsigned char byte = 0;
  };

  std::uint64_t bytesPerBlock;
  std::uint32_t epoch = 0;
  std::vector<Cell> cells;
};

} // namespace kiln::test

#endif // KILN_TESTS_LAYOUT_ORACLEMEMORY_H
