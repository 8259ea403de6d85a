//===- Records.h - Results of a GPU, stored --------------------------------===//
//
// One file an opcode and target class: DIR/sm_90/add.kpar.  A record holds, for one form, the recipe hash (PTX and
// inputs), the raw bits of the first cases, and 64-bit hashes of blocks of all cases:
//
//   exact forms          raw: the first 128 edge cases (they are shuffled).  Hashes: blocks of 64 edge cases (of 1024
//                        if there are more than 4096), then blocks of 1024 of the 32768 random cases
//   approximate forms    raw: all edge cases and the first 2048 random ones, at most 8192; no hashes
//
// Hashes are over normalised bits (Compare.h), so a NaN's payload does not enter.  Integers are little-endian.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_PARITY_RECORDS_H
#define KILN_TESTS_PARITY_RECORDS_H

#include "support/Status.h"
#include "tests/parity/Compare.h"

#include <map>

namespace kiln::parity {

inline constexpr std::size_t recordedRandom = 32768;

struct Record {
  std::uint64_t recipe = 0;
  Columns raw;                       ///< [output][case]
  std::vector<std::uint64_t> hashes; ///< edges' blocks, then random blocks
};

/// What a GPU gave for every form of one opcode.
struct OpcodeRecords {
  std::string device; ///< "NVIDIA H200, driver 580.159"
  std::map<std::string, Record> forms;
};

/// `cases` must be whole: all edges.
Record makeRecord(const Form &form, const Cases &cases, const Columns &results);

/// Cases of a form in the block of hash `hash`: [first, first + count).
struct HashedBlock {
  std::size_t first, count;
};
std::vector<HashedBlock> hashedBlocks(const Form &form, const Cases &cases);

/// Compares results (of any prefix of the cases) with a record, as far as they reach.
Difference compareRecord(const Form &form, const Cases &cases, const Columns &got, const Record &record);

Status writeRecords(const std::string &path, const OpcodeRecords &records);
Result<OpcodeRecords> readRecords(const std::string &path);
std::string recordPath(const std::string &directory, const std::string &targetClass, const std::string &opcode);

} // namespace kiln::parity

#endif // KILN_TESTS_PARITY_RECORDS_H
