// ldmatrix, stmatrix and movmatrix of 8x8 matrices of 16-bit elements: section 2.1 of the emulator specification.
//
// Lane 8j + r gives the address of row r of matrix j; a row is 16 bytes.  Lane l holds elements 2 (l mod 4) and the
// next one of row l / 4, the first in the low half of register j; with .trans rows and columns of memory change places.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/decode/DecodeMemory.h"
#include "runtime/device/emulator/decode/Decoder.h"
#include "runtime/device/emulator/execute/Executor.h"
#include "runtime/device/emulator/memory/DefinedBits.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "support/Text.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/LaneOps.h"

#include "runtime/device/emulator/insn/Fragments.h"
#include "runtime/device/emulator/insn/MemoryAccess.h"

#include "runtime/device/emulator/insn/MatrixRows.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

constexpr unsigned side = 8;

/// The lane that holds element (row, column) of a matrix, and in which half of its register.
template <bool Trans> constexpr unsigned holder(unsigned row, unsigned column) {
  return Trans ? column * 4 + row / 2 : row * 4 + column / 2;
}
template <bool Trans> constexpr unsigned halfOf(unsigned row, unsigned column) {
  return (Trans ? row : column) % 2;
}

template <unsigned Count, bool Trans> Next loadMatrices(Warp &w, const Op &op) {
  alignas(64) Rows<Count * side> rows;
  U32 present;
  if (!loadRows<Count * side>(w, op, rows, present))
    return Next::Fault;
  const U32 exec = w.exec;
  for (unsigned j = 0; j < Count; ++j) {
    alignas(64) std::uint16_t halves[warpSize][2];
    for (unsigned r = 0; r < side; ++r)
      for (unsigned c = 0; c < side; ++c)
        std::memcpy(&halves[holder<Trans>(r, c)][halfOf<Trans>(r, c)],
                    present >> (j * side + r) & 1 ? &rows[j * side + r][2 * c] : &poisonBytes[2 * halfOf<Trans>(r, c)],
                    2);
    alignas(64) U32 value[warpSize];
    std::memcpy(value, halves, sizeof value);
    U32 *d = lanesOf<U32>(w, w.pool[op.aux + j]);
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = exec >> l & 1 ? value[l] : d[l];
  }
  return Next::Advance;
}

template <unsigned Count, bool Trans> Next storeMatrices(Warp &w, const Op &op) {
  alignas(64) Rows<Count * side> rows;
  for (unsigned j = 0; j < Count; ++j) {
    const U32 *s = lanesOf<U32>(w, w.pool[op.aux + j]);
    for (unsigned r = 0; r < side; ++r)
      for (unsigned c = 0; c < side; ++c) {
        const auto element = static_cast<std::uint16_t>(s[holder<Trans>(r, c)] >> 16 * halfOf<Trans>(r, c));
        std::memcpy(&rows[j * side + r][2 * c], &element, 2);
      }
  }
  return storeRows<Count * side>(w, op, rows,
                                 [](unsigned row, unsigned byte) { return holder<Trans>(row % side, byte / 2); });
}

template <bool Store, unsigned Count> Handler handlerOf(bool trans) {
  if constexpr (Store)
    return trans ? &storeMatrices<Count, true> : &storeMatrices<Count, false>;
  else
    return trans ? &loadMatrices<Count, true> : &loadMatrices<Count, false>;
}

template <bool Store>
bool decodeMatrixMove(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const unsigned count = matricesOf(form);
  if (!decodeRows(context, form, instruction, op, Store, count))
    return false;
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

#include "runtime/device/emulator/execute/LevelEnd.h"
