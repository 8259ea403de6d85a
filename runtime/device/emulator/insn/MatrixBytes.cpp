// ldmatrix and stmatrix of 8-bit elements, which sm_100a and its like have: section 2.1 of the emulator specification.
//
//   ldmatrix .m16n16 .trans  16 rows a matrix, two registers: byte b of register i of lane l is row 4 (l mod 4) + b,
//                            column l / 4 + 8 i of the matrix in memory
//   ldmatrix .m8n16          8 rows, one register: row l / 4, column 4 (l mod 4) + b
//   stmatrix .m16n8 .trans   8 rows of 16 in memory, one register: row 2 (l mod 4) + b mod 2, column l / 4 + 8 (b / 2)
//
// With .b8x16.b6x16_p32 and .b8x16.b4x16_p64 a row in memory is 16 elements of 6 or 4 bits, the first in the lowest
// bits, and padding to 16 bytes.  Each becomes the low bits of a byte.
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

/// Where a byte of a register lies: the row, of all matrices' rows, and the byte in it.
struct Place {
  unsigned row, byte;
};
/// .m16n16.trans, .m8n16 and .m16n8.trans; `registers` and `rows` of a matrix.
struct Tall {
  static constexpr unsigned registers = 2, rows = 16;
  static constexpr Place at(unsigned l, unsigned i, unsigned b) {
    return {i / 2 * 16 + l % 4 * 4 + b, l / 4 + i % 2 * 8};
  }
};
struct Wide {
  static constexpr unsigned registers = 1, rows = 8;
  static constexpr Place at(unsigned l, unsigned i, unsigned b) { return {i * 8 + l / 4, l % 4 * 4 + b}; }
};
struct Stored {
  static constexpr unsigned registers = 1, rows = 8;
  static constexpr Place at(unsigned l, unsigned i, unsigned b) {
    return {i * 8 + l % 4 * 2 + b % 2, l / 4 + b / 2 * 8};
  }
};

template <typename Shape, unsigned Registers> constexpr unsigned rowsOf = Registers / Shape::registers * Shape::rows;

/// 16 elements of Bits bits, one a byte.
template <unsigned Bits> void unpackRow(std::uint8_t (&row)[rowBytes]) {
  if constexpr (Bits != 8) {
    std::uint8_t packed[rowBytes + 1] = {};
    std::memcpy(packed, row, rowBytes);
    for (unsigned e = 0; e < rowBytes; ++e) {
      const unsigned bit = e * Bits, two = packed[bit / 8] + 256u * packed[bit / 8 + 1];
      row[e] = static_cast<std::uint8_t>(two >> bit % 8 & ((1u << Bits) - 1));
    }
  }
}

template <typename Shape, unsigned Registers, unsigned Bits> Next loadBytes(Warp &w, const Op &op) {
  constexpr unsigned count = rowsOf<Shape, Registers>;
  alignas(64) Rows<count> rows;
  U32 present;
  if (!loadRows<count>(w, op, rows, present, 2 * Bits))
    return Next::Fault;
  for (unsigned r = 0; r < count; ++r)
    if (present >> r & 1)
      unpackRow<Bits>(rows[r]);
  for (unsigned i = 0; i < Registers; ++i) {
    U32 *d = lanesOf<U32>(w, w.pool[op.aux + i]);
    eachLane(w.exec, [&](unsigned l) {
      U32 value = 0;
      for (unsigned b = 0; b < 4; ++b) {
        const Place p = Shape::at(l, i, b);
        value |= U32(present >> p.row & 1 ? rows[p.row][p.byte] : poisonBytes[b]) << 8 * b;
      }
      d[l] = value;
    });
  }
  return Next::Advance;
}

template <unsigned Registers> Next storeBytes(Warp &w, const Op &op) {
  constexpr unsigned count = rowsOf<Stored, Registers>;
  alignas(64) Rows<count> rows;
  std::uint8_t holders[Stored::rows][rowBytes];
  for (unsigned i = 0; i < Registers; ++i) {
    const U32 *s = lanesOf<U32>(w, w.pool[op.aux + i]);
    for (unsigned l = 0; l < warpSize; ++l)
      for (unsigned b = 0; b < 4; ++b) {
        const Place p = Stored::at(l, i, b);
        rows[p.row][p.byte] = static_cast<std::uint8_t>(s[l] >> 8 * b);
        holders[p.row % Stored::rows][p.byte] = static_cast<std::uint8_t>(l);
      }
  }
  return storeRows<count>(w, op, rows, [&](unsigned row, unsigned byte) { return holders[row % Stored::rows][byte]; });
}

template <typename Shape, unsigned Registers> Handler loadOf(unsigned bits) {
  if constexpr (Shape::registers == 2)
    if (bits == 8)
      return &loadBytes<Shape, Registers, 8>;
  return bits == 6 ? &loadBytes<Shape, Registers, 6> : &loadBytes<Shape, Registers, 4>;
}

bool decodeLoad8(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const bool tall = form.has("m16n16");
  const unsigned registers = matricesOf(form) * (tall ? Tall::registers : Wide::registers);
  const unsigned bits = form.has("b6x16_p32") ? 6 : form.has("b4x16_p64") ? 4 : 8;
  if (!decodeRows(context, form, instruction, op, false, registers))
    return false;
  op.run = tall ? (registers == 4 ? loadOf<Tall, 4>(bits) : loadOf<Tall, 2>(bits))
                : (registers == 4   ? loadOf<Wide, 4>(bits)
                   : registers == 2 ? loadOf<Wide, 2>(bits)
                                    : loadOf<Wide, 1>(bits));
  return true;
}

bool decodeStore8(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const unsigned registers = matricesOf(form);
  if (!decodeRows(context, form, instruction, op, true, registers))
    return false;
  op.run = registers == 4 ? &storeBytes<4> : registers == 2 ? &storeBytes<2> : &storeBytes<1>;
  return true;
}

constexpr Row rows[] = {
    {"ldmatrix", "sync aligned m16n16 x1|x2 trans shared|shared::cta?", "b8", "custom", 100, nullptr, Aligned,
     decodeLoad8, true},
    {"ldmatrix", "sync aligned m16n16 x1|x2 trans b8x16 b6x16_p32|b4x16_p64 shared|shared::cta?", "", "custom", 100,
     nullptr, Aligned, decodeLoad8, true},
    {"ldmatrix", "sync aligned m8n16 x1|x2|x4 b8x16 b6x16_p32|b4x16_p64 shared|shared::cta?", "", "custom", 100,
     nullptr, Aligned, decodeLoad8, true},
    {"stmatrix", "sync aligned m16n8 x1|x2|x4 trans shared|shared::cta?", "b8", "custom", 100, nullptr, Aligned,
     decodeStore8, true},
};

} // namespace

std::span<const Row> matrixBytesRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
