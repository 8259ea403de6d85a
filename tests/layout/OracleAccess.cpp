#include "tests/layout/OracleAccess.h"

#include "support/Text.h"

#include <algorithm>
#include <bit>

namespace kiln::test {

using namespace kiln::layout;

AccessRunner::AccessRunner(const Access &a, const AccessFrame &f) : access(a), frame(f) {
  if (validate())
    tabulate();
}

bool AccessRunner::validate() {
  auto bad = [&](const char *what) {
    failure = format("%s: %s", std::string(accessFormName(access.form)).c_str(), what);
    return false;
  };
  const std::uint32_t registerMask = (1u << frame.registerBits) - 1;
  auto directions = [&](const std::vector<Mask> &list) {
    return list.size() <= frame.registerBits &&
           std::all_of(list.begin(), list.end(), [&](Mask m) { return (m & ~registerMask) == 0; });
  };
  auto offsets = [&](const std::vector<Mask> &list) {
    unsigned bits = frame.placeBits + frame.passBits;
    return std::all_of(list.begin(), list.end(), [&](Mask m) { return m >> bits == 0; });
  };
  if (!directions(access.vector) || !directions(access.matrices) || !directions(access.instruction) ||
      access.halves & ~registerMask)
    return bad("a register direction names a register that does not exist");
  if (access.lane.size() != frame.laneBits || access.warp.size() != frame.warpBits ||
      access.registerOffset.size() != frame.registerBits ||
      (!access.block.empty() && access.block.size() != frame.blockBits))
    return bad("an offset list has the wrong number of columns");
  if (!offsets(access.lane) || !offsets(access.warp) || !offsets(access.block) || !offsets(access.registerOffset) ||
      !offsets(access.rowOffset))
    return bad("an offset lies outside the region");
  if (access.lanePredicate >> frame.laneBits || access.warpPredicate >> frame.warpBits)
    return bad("a predicate names a lane or warp bit that does not exist");
  std::size_t words = access.vector.size();
  if (isMatrix(access.form)) {
    unsigned unit = isTrans(access.form) ? 2 : 4;
    if (frame.storageBytes > unit || frame.storageBytes << words != unit)
      return bad("a matrix word is not made of whole elements");
    if (isTrans(access.form) != (access.halves != 0))
      return bad("halves belong to .trans forms and to no others");
    if (access.matrices.size() > 2 || access.bytes != 4u << access.matrices.size())
      return bad("bytes a lane and number of matrices disagree");
    if (access.rowOffset.size() != 3 + access.matrices.size())
      return bad("rowOffset needs a column for each row and matrix bit");
    if (access.lanePredicate)
      return bad("a lane may not stay away from a matrix access");
    if (frame.predicatedPasses)
      return bad("a matrix access cannot be predicated on passes");
  } else {
    if (access.bytes != frame.storageBytes << words || access.bytes > 16)
      return bad("bytes a lane and vector directions disagree");
    if (access.halves || !access.matrices.empty() || !access.rowOffset.empty())
      return bad("matrix fields of a plain access");
  }
  unsigned passes = frame.predicatedPasses ? 1u << frame.passBits : 1;
  if (access.instructions != passes << access.instruction.size())
    return bad("the number of instructions is not that of its directions");
  return true;
}

void AccessRunner::tabulate() {
  unsigned count = 1u << access.instruction.size();
  // Predicated accesses form the whole offset, pass bits included, and compare its upper part.
  std::uint32_t places = (1u << (frame.placeBits + (frame.predicatedPasses ? frame.passBits : 0))) - 1;
  std::vector<std::uint32_t> constants;
  for (unsigned i = 0; i < count; ++i) {
    base.push_back(applyMask(access.instruction, i));
    constant.push_back(applyMask(access.registerOffset, base.back()));
    constants.push_back(constant.back() & places & access.addressSpan);
  }
  std::sort(constants.begin(), constants.end());
  auto distinct = std::unique(constants.begin(), constants.end()) - constants.begin();
  if (access.constants + 1 != static_cast<std::size_t>(distinct))
    failure = format("%s: %u xor constants declared, %d found", std::string(accessFormName(access.form)).c_str(),
                     access.constants, static_cast<int>(distinct) - 1);
  for (unsigned s = 0; s < 1u << access.vector.size(); ++s)
    vectorRegisters.push_back(applyMask(access.vector, s));
  for (unsigned l = 0; l < 32; ++l) {
    laneOffset[l] = applyMask(access.lane, l);
    if (isMatrix(access.form))
      rowOfLane[l] = applyMask(access.rowOffset, l & ((8u << access.matrices.size()) - 1));
  }
}

bool AccessRunner::fail(const char *what, unsigned block, unsigned warp, unsigned pass, unsigned instruction) {
  failure = format("%s (%s, block %u, warp %u, pass %u, instruction %u)", what,
                   std::string(accessFormName(access.form)).c_str(), block, warp, pass, instruction);
  return false;
}

void AccessRunner::note(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t h = (a * 0x9e3779b97f4a7c15u) ^ (b * 0xc2b2ae3d27d4eb4fu) ^ (c * 0x165667b19e3779f9u);
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9u;
  traceHash += h ^ h >> 32;
}

unsigned AccessRunner::sourceBlock(unsigned block, unsigned warp, unsigned lane, unsigned reg) const {
  if (!frame.remote)
    return block;
  const std::uint32_t at[] = {reg, lane, warp, block};
  std::uint32_t from = 0;
  for (unsigned d = 0; d < 4; ++d)
    from ^= applyMask(frame.remote[d], at[d]);
  return from;
}

bool AccessRunner::countMatches(unsigned wavefronts, unsigned phases, unsigned block, bool partOfWarp) {
  if (block == 0) {
    simulated += wavefronts;
    simulatedPhases += phases;
  }
  // Lanes that belong to another pass of a predicated access stay away, which can only save wavefronts.
  return partOfWarp ? wavefronts <= access.wavefronts && phases <= access.ideal
                    : wavefronts == access.wavefronts && phases == access.ideal;
}

bool AccessRunner::run(unsigned block, unsigned warp, unsigned pass, OracleMemory &memory, std::uint32_t *registers) {
  if (warp & access.warpPredicate)
    return true;
  for (unsigned i = 0; i < base.size(); ++i) {
    if (!frame.predicatedPasses && constant[i] >> frame.placeBits != pass)
      continue;
    if (isMatrix(access.form) ? !runMatrix(block, warp, pass, i, memory, registers)
                              : !runPlain(block, warp, pass, i, memory, registers))
      return false;
  }
  return true;
}

bool AccessRunner::runPlain(unsigned block, unsigned warp, unsigned pass, unsigned number, OracleMemory &memory,
                            std::uint32_t *registers) {
  const unsigned beta = frame.storageBytes, count = 1u << access.vector.size();
  const std::uint32_t outer =
      applyMask(access.warp, warp) ^ (access.block.empty() ? 0 : applyMask(access.block, block));
  std::uint32_t fixed = constant[number];
  if (!frame.predicatedPasses)
    fixed &= (1u << frame.placeBits) - 1;
  std::uint64_t address[32] = {};
  std::uint32_t active = 0;
  for (unsigned l = 0; l < 32; ++l) {
    if (l & access.lanePredicate)
      continue;
    std::uint64_t place = ((laneOffset[l] ^ outer) ^ (fixed & access.addressSpan)) + (fixed & ~access.addressSpan);
    if (frame.predicatedPasses) {
      if (place >> frame.placeBits != pass)
        continue;
      place &= (1u << frame.placeBits) - 1;
    }
    address[l] = place * beta;
    if (address[l] + access.bytes > frame.regionBytes)
      return fail("an address outside the region", block, warp, pass, number);
    address[l] += regionBase(warp);
    if (address[l] % access.bytes)
      return fail("a misaligned address", block, warp, pass, number);
    active |= 1u << l;
  }
  if (!active)
    return true;
  if (!countMatches(simulateWavefronts(address, active, access.bytes), activePhases(active, access.bytes), block,
                    frame.predicatedPasses && frame.passBits))
    return fail("wavefronts differ from the bank simulation", block, warp, pass, number);
  const std::uint32_t threadBase = (block << frame.warpBits | warp) << frame.laneBits;
  for (unsigned l = 0; l < 32; ++l) {
    if (!(active >> l & 1))
      continue;
    unsigned from = isStore(access.form) ? block : sourceBlock(block, warp, l, base[number]);
    for (unsigned s = 0; s < count; ++s) {
      std::uint32_t reg = base[number] ^ vectorRegisters[s];
      std::uint32_t &value = registers[(l << frame.registerBits) + reg];
      std::uint64_t at = address[l] + s * beta;
      note((threadBase | l) * 64ull + pass, at << 8 | from, reg * 16ull + access.bytes);
      const char *error = nullptr;
      if (isStore(access.form)) {
        error = memory.write(block, at, value, 0, beta, threadBase | l, pass);
      } else {
        if (value != ~0u)
          error = "a register is loaded twice";
        if (from != sourceBlock(block, warp, l, reg))
          error = "one vector reads the memories of two blocks";
        for (unsigned b = 0; b < beta && !error; ++b)
          error = memory.read(from, at + b, value, b, threadBase | l, pass);
      }
      if (error)
        return fail(error, block, warp, pass, number);
    }
  }
  return true;
}

bool AccessRunner::runMatrix(unsigned block, unsigned warp, unsigned pass, unsigned number, OracleMemory &memory,
                             std::uint32_t *registers) {
  const unsigned beta = frame.storageBytes, perHalf = 1u << access.vector.size();
  const unsigned matrices = 1u << access.matrices.size();
  const bool trans = isTrans(access.form);
  const std::uint32_t outer =
      applyMask(access.warp, warp) ^ (access.block.empty() ? 0 : applyMask(access.block, block));
  const std::uint32_t fixed = constant[number] & ((1u << frame.placeBits) - 1);
  std::uint64_t address[32];
  for (unsigned l = 0; l < 32; ++l) {
    std::uint64_t place = ((rowOfLane[l] ^ outer) ^ (fixed & access.addressSpan)) + (fixed & ~access.addressSpan);
    address[l] = place * beta;
    if (l >= 8 * matrices)
      continue; // the hardware ignores these lanes' addresses
    if (address[l] + 16 > frame.regionBytes)
      return fail("a row outside the region", block, warp, pass, number);
    address[l] += regionBase(warp);
    if (address[l] % 16)
      return fail("a misaligned row", block, warp, pass, number);
  }
  if (!countMatches(simulateRows(address, matrices), matrices, block, false))
    return fail("wavefronts differ from the bank simulation", block, warp, pass, number);
  const std::uint32_t threadBase = (block << frame.warpBits | warp) << frame.laneBits;
  if (frame.remote && !isStore(access.form))
    return fail("a matrix load cannot read another block", block, warp, pass, number);
  for (unsigned j = 0; j < matrices; ++j) {
    for (unsigned l = 0; l < 32; ++l) {
      for (unsigned byte = 0; byte < 4; ++byte) {
        // Where the hardware puts byte `byte` of the lane's register of matrix j.
        unsigned row = trans ? 2 * (l & 3) + byte / 2 : l >> 2;
        unsigned column = trans ? 2 * (l >> 2) + byte % 2 : 4 * (l & 3) + byte;
        std::uint64_t at = address[8 * j + row] + column;
        unsigned element = byte / beta, part = byte % beta;
        std::uint32_t reg = base[number] ^ applyMask(access.matrices, j) ^ vectorRegisters[element % perHalf] ^
                            (element / perHalf ? access.halves : 0);
        std::uint32_t &value = registers[(l << frame.registerBits) + reg];
        note((threadBase | l) * 64ull + pass, at << 8 | byte, reg * 16ull + 7);
        const char *error = nullptr;
        if (isStore(access.form)) {
          error = memory.write(block, at, value, part, 1, threadBase | l, pass);
        } else {
          if (part == 0 && value != ~0u)
            error = "a register is loaded twice";
          else
            error = memory.read(block, at, value, part, threadBase | l, pass);
        }
        if (error)
          return fail(error, block, warp, pass, number);
      }
    }
  }
  return true;
}

} // namespace kiln::test
