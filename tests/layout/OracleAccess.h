//===- OracleAccess.h - One shared-memory access, run as hardware does ----===//
//
// Runs the `Access` of a plan for one warp and one pass on OracleMemory: plain vector loads and stores, ldmatrix and
// stmatrix by their hardware definition (lane 8j + r names row r of matrix j; plain: lane l holds bytes 4(l & 3).. of
// row l >> 2; trans: half h of lane l is the 16-bit unit l >> 2 of row 2(l & 3) + h).  Addresses are formed as the
// lowering forms them: thread base, xor constant inside addressSpan, immediate outside of it.
//
// Every instruction is compared with the bank simulation, every address with its alignment and its region.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_LAYOUT_ORACLEACCESS_H
#define KILN_TESTS_LAYOUT_ORACLEACCESS_H

#include "compiler/layout/ConversionPlan.h"
#include "tests/layout/OracleMemory.h"

#include <string>
#include <vector>

namespace kiln::test {

/// Columns applied to an index; bits without a column are an error the caller has excluded before.
inline std::uint32_t applyMask(const std::vector<layout::Mask> &columns, std::uint32_t x) {
  std::uint32_t y = 0;
  for (std::size_t i = 0; x; ++i, x >>= 1)
    if (x & 1)
      y ^= columns[i];
  return y;
}

/// What an access needs to know about the conversion around it.
struct AccessFrame {
  unsigned laneBits = 5, warpBits = 0, blockBits = 0, registerBits = 0;
  unsigned placeBits = 0, passBits = 0; ///< offset bits below and above the pass boundary
  unsigned storageBytes = 1;
  std::uint64_t regionBytes = 0;
  bool regionPerWarp = false;
  bool predicatedPasses = false;
  const std::vector<layout::Mask> *remote = nullptr; ///< four lists, or null: own block
};

class AccessRunner {
public:
  /// Checks that every list has the length and every mask the bits that its description promises.
  AccessRunner(const layout::Access &access, const AccessFrame &frame);

  const std::string &error() const { return failure; }

  /// Runs all instructions of `pass` of one warp.  Stores read `registers` (places, [lane][register]); loads write
  /// them.  False and error() on any violation.
  bool run(unsigned block, unsigned warp, unsigned pass, OracleMemory &memory, std::uint32_t *registers);

  /// Wavefronts and phases simulated so far in block 0.
  std::uint64_t wavefronts() const { return simulated; }
  std::uint64_t phases() const { return simulatedPhases; }
  /// Hash of every instruction that ran, in any order.
  std::uint64_t trace() const { return traceHash; }

private:
  bool fail(const char *what, unsigned block, unsigned warp, unsigned pass, unsigned instruction);
  bool validate();
  void tabulate();
  bool runPlain(unsigned block, unsigned warp, unsigned pass, unsigned number, OracleMemory &memory,
                std::uint32_t *registers);
  bool runMatrix(unsigned block, unsigned warp, unsigned pass, unsigned number, OracleMemory &memory,
                 std::uint32_t *registers);
  bool countMatches(unsigned wavefronts, unsigned phases, unsigned block, bool partOfWarp);
  unsigned sourceBlock(unsigned block, unsigned warp, unsigned lane, unsigned reg) const;
  std::uint64_t regionBase(unsigned warp) const { return frame.regionPerWarp ? warp * frame.regionBytes : 0; }
  void note(std::uint64_t a, std::uint64_t b, std::uint64_t c);

  const layout::Access &access;
  AccessFrame frame;
  std::string failure;
  std::vector<std::uint32_t> base;     // of each instruction: register
  std::vector<std::uint32_t> constant; // of each instruction: offset
  std::vector<std::uint32_t> vectorRegisters;
  std::uint32_t laneOffset[32] = {}, rowOfLane[32] = {};
  std::uint64_t simulated = 0, simulatedPhases = 0, traceHash = 0;
};

} // namespace kiln::test

#endif // KILN_TESTS_LAYOUT_ORACLEACCESS_H
