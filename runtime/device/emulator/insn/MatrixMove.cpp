// ldmatrix, stmatrix and movmatrix of 8x8 matrices of 16-bit elements: section 2.1 of the emulator specification.
//
// Lane 8j + r gives the address of row r of matrix j; a row is 16 bytes.  Lane l holds elements 2 (l mod 4) and the
// next one of row l / 4, the first in the low half of register j; with .trans rows and columns of memory change places.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/DecodeMemory.h"
#include "runtime/device/emulator/Decoder.h"
#include "runtime/device/emulator/DefinedBits.h"
#include "runtime/device/emulator/Executor.h"
#include "runtime/device/emulator/MemoryFaults.h"
#include "runtime/device/emulator/Races.h"
#include "support/Text.h"

#include "runtime/device/emulator/LevelBegin.h"

#include "runtime/device/emulator/LaneOps.h"

#include "runtime/device/emulator/insn/Fragments.h"
#include "runtime/device/emulator/insn/MemoryAccess.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

constexpr unsigned side = 8, rowBytes = 16;
/// What a row reads as whose lane does not take part: undefined on hardware, recognisable here.
constexpr std::uint16_t poisonHalves[2] = {0xBEEF, 0xDEAD};

/// The 16-bit elements of `Count` matrices as they lie in memory, row after row.
template <unsigned Count> using Rows = std::uint16_t[Count * side][side];

/// The lane that holds element (row, column) of a matrix, and in which half of its register.
template <bool Trans> constexpr unsigned holder(unsigned row, unsigned column) {
  return Trans ? column * 4 + row / 2 : row * 4 + column / 2;
}
template <bool Trans> constexpr unsigned halfOf(unsigned row, unsigned column) {
  return (Trans ? row : column) % 2;
}

template <unsigned Count> constexpr U32 rowLanes = Count == 4 ? fullMask : (1u << Count * side) - 1;

/// Host addresses of the rows that the executing lanes give, in m.at; false after a fatal finding.
template <unsigned Count> bool locateRows(Warp &w, const Op &op, Accessed &m) {
  const BlockState &block = *w.block;
  const U32 exec = w.exec;
  // Up to sm_75 the addresses of all lanes must be good, also those that give no row.
  w.exec &= block.worker.launch.target->sm > 75 ? rowLanes<Count> : fullMask;
  bool good = true;
  if (w.exec) {
    laneAddresses(w, op, m);
    Extent e = extentOf(w, m, rowBytes);
    const U64 window = (op.flags & access::spaceMask) == access::shared ? 0 : windowBase(SharedWindow);
    const U64 base = window + block.sharedAddress, low = e.low - base, high = e.high - base;
    if (!e.aligned) {
      good = reportMisaligned(w, op, m.at, rowBytes);
    } else if (low < block.sharedBegin || high > block.sharedEnd || block.sharedEnd - high < rowBytes || low > high) {
      good = reportSharedBounds(w, op, m.at, rowBytes, window);
    } else {
      e.contiguous = e.uniform = false; // every row's address is wanted
      toHost(m, e, reinterpret_cast<U64>(block.shared) - base);
      m.bits = block.sharedBits;
      m.origin = reinterpret_cast<U64>(block.shared);
    }
  }
  w.exec = exec;
  return good;
}

template <unsigned Count, bool Trans> Next loadMatrices(Warp &w, const Op &op) {
  Accessed m;
  if (!locateRows<Count>(w, op, m))
    return Next::Fault;
  const U32 exec = w.exec, present = exec & rowLanes<Count>;
  if (exec != fullMask) [[unlikely]]
    reportMissingLanes(w, op, "rows whose address is missing read as 0xDEADBEEF");
  if (m.bits && present) {
    w.exec = present;
    watch(w, op, m, rowBytes, AccessRole::Read);
    if (!isDefined(w, m, rowBytes)) [[unlikely]]
      reportUninitialised(w, op, m.at, 0, 0, rowBytes, op.usedBytes, m.bits, m.origin);
    w.exec = exec;
  }
  alignas(64) Rows<Count> rows;
  for (unsigned r = 0; r < Count * side; ++r) {
    if (present >> r & 1)
      std::memcpy(rows[r], reinterpret_cast<const void *>(m.at[r]), rowBytes);
    else
      for (unsigned c = 0; c < side; ++c)
        rows[r][c] = poisonHalves[halfOf<Trans>(r, c)];
  }
  for (unsigned j = 0; j < Count; ++j) {
    alignas(64) std::uint16_t halves[warpSize][2];
    for (unsigned r = 0; r < side; ++r)
      for (unsigned c = 0; c < side; ++c)
        halves[holder<Trans>(r, c)][halfOf<Trans>(r, c)] = rows[j * side + r][c];
    alignas(64) U32 value[warpSize];
    std::memcpy(value, halves, sizeof value);
    U32 *d = lanesOf<U32>(w, w.pool[op.aux + j]);
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = exec >> l & 1 ? value[l] : d[l];
  }
  return Next::Advance;
}

template <unsigned Count, bool Trans> Next storeMatrices(Warp &w, const Op &op) {
  Accessed m;
  if (!locateRows<Count>(w, op, m))
    return Next::Fault;
  const U32 exec = w.exec, present = exec & rowLanes<Count>;
  if (exec != fullMask) [[unlikely]]
    reportMissingLanes(w, op, "elements that they hold and rows whose address they give are not stored");
  ++w.block->worker.progress;
  if (present) {
    w.exec = present;
    watch(w, op, m, rowBytes, AccessRole::Write);
    w.exec = exec;
  }
  // In the order of the rows: of rows with one address the last one wins.
  for (unsigned j = 0; j < Count; ++j) {
    const U32 *s = lanesOf<U32>(w, w.pool[op.aux + j]);
    for (unsigned r = 0; r < side; ++r) {
      if (!(present >> (j * side + r) & 1))
        continue;
      const U64 at = m.at[j * side + r];
      std::uint16_t row[side];
      for (unsigned c = 0; c < side; ++c)
        row[c] = static_cast<std::uint16_t>(s[holder<Trans>(r, c)] >> 16 * halfOf<Trans>(r, c));
      if (exec == fullMask) [[likely]] {
        std::memcpy(reinterpret_cast<void *>(at), row, rowBytes);
        if (m.bits)
          markDefined(m.bits, at - m.origin, rowBytes);
        continue;
      }
      for (unsigned c = 0; c < side; ++c)
        if (exec >> holder<Trans>(r, c) & 1) {
          std::memcpy(reinterpret_cast<void *>(at + 2 * c), &row[c], 2);
          if (m.bits)
            markDefined(m.bits, at + 2 * c - m.origin, 2);
        }
    }
  }
  return Next::Advance;
}

template <bool Store, unsigned Count> Handler handlerOf(bool trans) {
  if constexpr (Store)
    return trans ? &storeMatrices<Count, true> : &storeMatrices<Count, false>;
  else
    return trans ? &loadMatrices<Count, true> : &loadMatrices<Count, false>;
}

template <bool Store>
bool decodeMatrixMove(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const unsigned count = form.has("x4") ? 4 : form.has("x2") ? 2 : 1;
  if (instruction.operands.size() != 2)
    return context.error(instruction, Store ? "takes an address and a vector of registers"
                                            : "takes a vector of registers and an address");
  const ptx::Operand &vector = instruction.operands[Store ? 1 : 0];
  if (vector.kind != ptx::Operand::Kind::Vector || vector.elements.size() != count)
    return context.error(instruction, ".x" + std::to_string(count) + " takes a vector of " + std::to_string(count) +
                                          " registers in braces" +
                                          (vector.kind == ptx::Operand::Kind::Vector
                                               ? ", this one has " + std::to_string(vector.elements.size())
                                               : ""));
  U32 slots[4] = {};
  for (unsigned j = 0; j < count; ++j)
    if (!(Store ? context.source(instruction, vector.elements[j], ptx::Type::B32, slots[j])
                : context.destination(instruction, vector.elements[j], ptx::Type::B32, slots[j])))
      return false;
  op.aux = context.addPool(std::span(slots, count));
  DecodeContext::Address address;
  if (!decodeAddress(context, instruction, instruction.operands[Store ? 0 : 1], spaceOf(form), op, address))
    return false;
  if (address.space != ptx::Space::Shared && address.space != ptx::Space::Generic)
    return context.error(instruction, "the address is in ." + std::string(ptx::spaceName(address.space)) +
                                          ", matrices are moved from and to shared memory only");
  context.flow().visible |= Store;
  const bool trans = form.has("trans");
  op.run = count == 4   ? handlerOf<Store, 4>(trans)
           : count == 2 ? handlerOf<Store, 2>(trans)
                        : handlerOf<Store, 1>(trans);
  return true;
}

/// The lanes' matrix transposed.
Next transposeMatrix(Warp &w, const Op &op) {
  const U32 exec = w.exec;
  Lanes source = loadLanes<true>(w, op.s[0]);
  if (exec != fullMask) [[unlikely]] {
    reportMissingLanes(w, op, "what they hold reads as 0xDEADBEEF");
    source = loadLanes<false>(w, op.s[0]);
  }
  alignas(64) std::uint16_t from[warpSize][2], to[warpSize][2];
  std::memcpy(from, &source, sizeof from);
  for (unsigned r = 0; r < side; ++r)
    for (unsigned c = 0; c < side; ++c)
      to[holder<true>(r, c)][halfOf<true>(r, c)] = from[holder<false>(r, c)][halfOf<false>(r, c)];
  Lanes result;
  std::memcpy(&result, to, sizeof to);
  storeLanes<false>(w, op.d, result);
  return Next::Advance;
}
Handler buildTranspose(const Form &, std::string &) {
  return &transposeMatrix;
}

constexpr char modifiers[] = "sync aligned m8n8 x1|x2|x4 trans? shared|shared::cta?";
constexpr Row rows[] = {
    {"ldmatrix", modifiers, "b16", "custom", 75, nullptr, Aligned, decodeMatrixMove<false>},
    {"stmatrix", modifiers, "b16", "custom", 90, nullptr, Aligned, decodeMatrixMove<true>},
    {"movmatrix", "sync aligned m8n8 trans", "b16", "=b32 b32", 75, buildTranspose, Aligned},
};

} // namespace

std::span<const Row> matrixMoveRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/LevelEnd.h"
