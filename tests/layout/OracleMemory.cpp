#include "tests/layout/OracleMemory.h"

#include <algorithm>

namespace kiln::test {

namespace {

/// The words of one phase; add() merges equal words, wavefronts() is the load of the busiest bank.
class Phase {
public:
  void add(std::uint64_t word) {
    unsigned bank = static_cast<unsigned>(word & 31);
    for (unsigned i = 0; i < filled[bank]; ++i)
      if (words[bank][i] == word)
        return;
    words[bank][filled[bank]++] = word;
    worst = std::max<unsigned>(worst, filled[bank]);
  }
  unsigned wavefronts() const { return worst; }

private:
  unsigned worst = 0;
  unsigned char filled[32] = {};
  std::uint64_t words[32][32]; // a phase has at most 32 words
};

unsigned lanesPerPhase(unsigned bytes) {
  return bytes == 16 ? 8 : bytes == 8 ? 16 : 32;
}

} // namespace

unsigned simulateWavefronts(const std::uint64_t (&address)[32], std::uint32_t active, unsigned bytes) {
  unsigned total = 0, lanes = lanesPerPhase(bytes);
  for (unsigned first = 0; first < 32; first += lanes) {
    Phase phase;
    for (unsigned l = first; l < first + lanes; ++l)
      if (active >> l & 1)
        for (unsigned at = 0; at < std::max(bytes, 4u); at += 4)
          phase.add((address[l] + at) >> 2);
    total += phase.wavefronts();
  }
  return total;
}

unsigned activePhases(std::uint32_t active, unsigned bytes) {
  unsigned total = 0, lanes = lanesPerPhase(bytes);
  for (unsigned first = 0; first < 32; first += lanes) {
    std::uint32_t group = lanes == 32 ? ~0u : ((1u << lanes) - 1) << first;
    total += (active & group) != 0;
  }
  return total;
}

unsigned simulateRows(const std::uint64_t (&address)[32], unsigned matrices) {
  unsigned total = 0;
  for (unsigned j = 0; j < matrices; ++j) {
    Phase phase;
    for (unsigned r = 0; r < 8; ++r)
      for (unsigned at = 0; at < 16; at += 4)
        phase.add((address[8 * j + r] + at) >> 2);
    total += phase.wavefronts();
  }
  return total;
}

const char *OracleMemory::write(unsigned block, std::uint64_t address, std::uint32_t place, unsigned first,
                                unsigned count, std::uint32_t thread, std::uint32_t pass) {
  if (address + count > bytesPerBlock)
    return "a store outside the scratch";
  Cell *cell = &cells[block * bytesPerBlock + address];
  for (unsigned i = 0; i < count; ++i, ++cell) {
    if (cell->pass == pass)
      return "two writers of one byte in a pass";
    if (cell->writer != nobody && cell->writeEpoch == epoch && cell->writer != thread)
      return "a race: two writes without a barrier between them";
    if (cell->reader != nobody && cell->readEpoch == epoch && cell->reader != thread)
      return "a race: a read and a later write without a barrier between them";
    cell->place = place;
    cell->byte = static_cast<unsigned char>(first + i);
    cell->pass = pass;
    cell->writer = thread;
    cell->writeEpoch = epoch;
  }
  return nullptr;
}

const char *OracleMemory::read(unsigned block, std::uint64_t address, std::uint32_t &place, unsigned index,
                               std::uint32_t thread, std::uint32_t pass) {
  if (address >= bytesPerBlock)
    return "a load outside the scratch";
  Cell &cell = cells[block * bytesPerBlock + address];
  if (cell.pass != pass)
    return "a load of a byte that this pass did not write";
  if (cell.writeEpoch == epoch && cell.writer != thread)
    return "a race: a write and a read without a barrier between them";
  if (cell.byte != index || (index > 0 && cell.place != place))
    return "a torn read: the bytes of one element come from different values";
  place = cell.place;
  cell.reader = cell.reader == nobody || cell.readEpoch != epoch || cell.reader == thread ? thread : many;
  cell.readEpoch = epoch;
  return nullptr;
}

bool OracleMemory::remoteReadsPending(unsigned threadsPerBlock) const {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell &cell = cells[i];
    if (cell.reader == nobody || cell.readEpoch != epoch)
      continue;
    if (cell.reader == many || cell.reader / threadsPerBlock != i / bytesPerBlock)
      return true;
  }
  return false;
}

bool OracleMemory::peek(unsigned block, std::uint64_t address, std::uint32_t &place, unsigned &byte) const {
  const Cell &cell = cells[block * bytesPerBlock + address];
  place = cell.place;
  byte = cell.byte;
  return cell.writer != nobody;
}

} // namespace kiln::test
