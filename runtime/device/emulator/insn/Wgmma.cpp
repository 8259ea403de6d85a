// wgmma: section 2.2 of the emulator specification.  Who issues a product and when it is delivered is in ../Wgmma.cpp;
// here are the forms and the product itself.
//
// Columns of D are worked on 32 at a time, so that a tile stays in the first-level cache.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/decode/Decoder.h"
#include "runtime/device/emulator/insn/MatrixTile.h"
#include "runtime/device/emulator/matrix/MatrixForms.h"
#include "runtime/device/emulator/matrix/Wgmma.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

using ptx::Operand;
using ptx::Type;
using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using Eight = U32 __attribute__((ext_vector_type(8)));
using Warpful = U32 __attribute__((ext_vector_type(32)));

constexpr unsigned rows = wgmmaExtentM, columnsAtOnce = 32, mostK = 32, rowsOfWarp = 16;

//===--- operands --------------------------------------------------------===//

/// Raw elements of `count` rows of M or N (a multiple of 8), K-major: element (k, i) goes to raw[k * stride + i].
template <typename T> void unpackKMajor(const std::byte *shared, const U32 *pieces, U32 count, U32 *raw, U32 stride) {
  constexpr unsigned k = WgmmaOperand::bytesOfK / sizeof(T);
  for (U32 first = 0; first < count; first += 8) {
    alignas(64) T lines[8][k];
    for (unsigned r = 0; r < 8; ++r)
      for (unsigned half = 0; half < 2; ++half)
        __builtin_memcpy(&lines[r][half * k / 2], shared + pieces[2 * (first + r) + half], WgmmaOperand::pieceBytes);
#pragma clang loop unroll(full)
    for (unsigned i = 0; i < k; ++i) {
      const Eight column = {lines[0][i], lines[1][i], lines[2][i], lines[3][i],
                            lines[4][i], lines[5][i], lines[6][i], lines[7][i]};
      __builtin_memcpy(raw + i * stride + first, &column, sizeof column);
    }
  }
}

/// The same, MN-major, of an operand with `inRow` pieces in a row of K.
void unpackMnMajor(const std::byte *shared, const U32 *pieces, U32 inRow, U32 count, U32 *raw, U32 stride) {
  for (unsigned k = 0; k < WgmmaOperand::rowsOfK; ++k)
    for (U32 p = 0; p < count / 8; ++p) {
      using Halves = U16 __attribute__((ext_vector_type(8)));
      Halves v;
      __builtin_memcpy(&v, shared + pieces[k * inRow + p], sizeof v);
      const Eight wide = __builtin_convertvector(v, Eight);
      __builtin_memcpy(raw + k * stride + 8 * p, &wide, sizeof wide);
    }
}

void unpack(const std::byte *shared, const U32 *pieces, const WgmmaOperand &operand, unsigned k, U32 first, U32 count,
            U32 *raw, U32 stride) {
  if (operand.mnMajor)
    unpackMnMajor(shared, pieces + first / 8, operand.piecesOfRow(), count, raw, stride);
  else if (k == 16)
    unpackKMajor<U16>(shared, pieces + 2 * first, count, raw, stride);
  else if (k == 8)
    unpackKMajor<U32>(shared, pieces + 2 * first, count, raw, stride);
  else
    unpackKMajor<U8>(shared, pieces + 2 * first, count, raw, stride);
}

/// Fragments of A: register f of lane l holds elements from column (l mod 4 + 4 (f / 2)) * elements of a register on,
/// of row l / 4 + 8 (f mod 2) of its warp.
template <typename T> void unpackFragments(const WgmmaProduct &p, U32 *raw) {
  constexpr unsigned per = 4 / sizeof(T);
  for (unsigned w = 0; w < warpgroupWarps; ++w)
    for (unsigned f = 0; f < wgmmaFragments; ++f)
      for (unsigned l = 0; l < warpSize; ++l) {
        T elements[per];
        __builtin_memcpy(elements, &p.fragments[w][f][l], 4);
        for (unsigned e = 0; e < per; ++e)
          raw[((l % 4 + 4 * (f / 2)) * per + e) * rows + w * rowsOfWarp + l / 4 + 8 * (f % 2)] = elements[e];
      }
}

//===--- accumulators ----------------------------------------------------===//

/// Element q of every group of four lanes: eight rows of one column.
template <unsigned Q> inline Eight everyFourth(Warpful v) {
  return __builtin_shufflevector(v, v, Q, Q + 4, Q + 8, Q + 12, Q + 16, Q + 20, Q + 24, Q + 28);
}
inline Warpful interleave(Eight a, Eight b, Eight c, Eight d) {
  const auto ab = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
  const auto cd = __builtin_shufflevector(c, d, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
  return __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23, 8, 9, 24, 25, 10, 11,
                                 26, 27, 12, 13, 28, 29, 14, 15, 30, 31);
}
inline Eight loadEight(const U32 *p) {
  Eight v;
  __builtin_memcpy(&v, __builtin_assume_aligned(p, 32), sizeof v);
  return v;
}
inline void storeEight(U32 *p, Eight v) {
  __builtin_memcpy(__builtin_assume_aligned(p, 32), &v, sizeof v);
}
inline Warpful loadWarpful(const U32 *p) {
  Warpful v;
  __builtin_memcpy(&v, __builtin_assume_aligned(p, 64), sizeof v);
  return v;
}
inline void storeWarpful(U32 *p, Warpful v) {
  __builtin_memcpy(__builtin_assume_aligned(p, 64), &v, sizeof v);
}

/// Accumulators to the tile of columns [first, first + count): element (i, j) at tile[j * rows + i].  Register e of a
/// lane holds elements of row lane / 4 + 8 (e / 2 mod 2) and column 8 (e / 4) + 2 (lane mod 4) + e mod 2.
void loadWords(const WgmmaProduct &p, U32 first, U32 count, U32 *tile) {
  for (unsigned w = 0; w < warpgroupWarps; ++w)
    for (U32 e = 0; e < count / 2; ++e) {
      const Warpful v = loadWarpful(p.accumulators[w][first / 2 + e]);
      U32 *to = tile + (e / 4 * 8 + e % 2) * rows + w * rowsOfWarp + e / 2 % 2 * 8;
      storeEight(to, everyFourth<0>(v));
      storeEight(to + 2 * rows, everyFourth<1>(v));
      storeEight(to + 4 * rows, everyFourth<2>(v));
      storeEight(to + 6 * rows, everyFourth<3>(v));
    }
}
void storeWords(const WgmmaProduct &p, U32 first, U32 count, const U32 *tile) {
  for (unsigned w = 0; w < warpgroupWarps; ++w)
    for (U32 e = 0; e < count / 2; ++e) {
      const U32 *from = tile + (e / 4 * 8 + e % 2) * rows + w * rowsOfWarp + e / 2 % 2 * 8;
      storeWarpful(p.accumulators[w][first / 2 + e],
                   interleave(loadEight(from), loadEight(from + 2 * rows), loadEight(from + 4 * rows),
                              loadEight(from + 6 * rows)));
    }
}
/// Halves: two neighbours of a row in a register, the first in its low half.
void loadHalves(const WgmmaProduct &p, U32 first, U32 count, U32 *tile) {
  for (unsigned w = 0; w < warpgroupWarps; ++w)
    for (U32 e = 0; e < count / 4; ++e) {
      const Warpful v = loadWarpful(p.accumulators[w][first / 4 + e]), low = v & 0xFFFFu, high = v >> 16;
      U32 *to = tile + e / 2 * 8 * rows + w * rowsOfWarp + e % 2 * 8;
      storeEight(to, everyFourth<0>(low));
      storeEight(to + rows, everyFourth<0>(high));
      storeEight(to + 2 * rows, everyFourth<1>(low));
      storeEight(to + 3 * rows, everyFourth<1>(high));
      storeEight(to + 4 * rows, everyFourth<2>(low));
      storeEight(to + 5 * rows, everyFourth<2>(high));
      storeEight(to + 6 * rows, everyFourth<3>(low));
      storeEight(to + 7 * rows, everyFourth<3>(high));
    }
}
void storeHalves(const WgmmaProduct &p, U32 first, U32 count, const U32 *tile) {
  for (unsigned w = 0; w < warpgroupWarps; ++w)
    for (U32 e = 0; e < count / 4; ++e) {
      const U32 *from = tile + e / 2 * 8 * rows + w * rowsOfWarp + e % 2 * 8;
      auto pair = [&](unsigned q) {
        return loadEight(from + 2 * q * rows) | loadEight(from + (2 * q + 1) * rows) << 16;
      };
      storeWarpful(p.accumulators[w][first / 4 + e], interleave(pair(0), pair(1), pair(2), pair(3)));
    }
}

//===--- products --------------------------------------------------------===//

/// D = A * B + D of single bits: `a` and `b` hold words of 32.
void multiplyBits(const U32 *a, const U32 *b, U32 strideB, U32 *tile, U32 columns, unsigned words) {
  for (U32 j = 0; j < columns; ++j)
    for (U32 i = 0; i < rows; ++i)
      for (unsigned k = 0; k < words; ++k)
        tile[j * rows + i] += static_cast<U32>(__builtin_popcount(a[k * rows + i] & b[k * strideB + j]));
}

void multiply(const WgmmaProduct &p) {
  const WgmmaForm &f = p.form;
  alignas(64) U32 rawA[mostK * rows], rawB[mostK * columnsAtOnce], tile[columnsAtOnce * rows];
  alignas(64) float significandA[mostK * rows], significandB[mostK * columnsAtOnce];
  alignas(64) std::int32_t exponentA[mostK * rows], exponentB[mostK * columnsAtOnce];
  if (p.piecesA)
    unpack(p.shared, p.piecesA, f.a, f.k, 0, rows, rawA, rows);
  else if (f.k == 16)
    unpackFragments<U16>(p, rawA);
  else if (f.k == 8)
    unpackFragments<U32>(p, rawA);
  else
    unpackFragments<U8>(p, rawA);
  MatrixOperand a{significandA, exponentA, rows, false}, b{significandB, exponentB, columnsAtOnce, false};
  if (!f.singleBits)
    a.special = decodeElements(f.model.a, p.mode, rawA, f.k * rows, f.negateA, significandA, exponentA);
  const bool halves = f.model.d == MatrixType::F16;
  for (U32 first = 0; first < f.b.extent; first += columnsAtOnce) {
    const U32 count = f.b.extent - first < columnsAtOnce ? f.b.extent - first : columnsAtOnce;
    if (count < columnsAtOnce)
      __builtin_memset(rawB, 0, f.k * columnsAtOnce * sizeof(U32));
    unpack(p.shared, p.piecesB, f.b, f.k, first, count, rawB, columnsAtOnce);
    if (!p.addsD)
      __builtin_memset(tile, 0, count * rows * sizeof(U32));
    else if (halves)
      loadHalves(p, first, count, tile);
    else
      loadWords(p, first, count, tile);
    if (f.singleBits) {
      multiplyBits(rawA, rawB, columnsAtOnce, tile, count, f.k);
    } else {
      b.special = decodeElements(f.model.b, p.mode, rawB, f.k * columnsAtOnce, f.negateB, significandB, exponentB);
      multiplyTile(f.model, p.mode, a, b, tile, rows, rows, count, f.k);
    }
    if (halves)
      storeHalves(p, first, count, tile);
    else
      storeWords(p, first, count, tile);
  }
}

//===--- forms -----------------------------------------------------------===//

/// The rows say sm_90 with suffix 'a'; later targets do not have it either.
bool hasWgmma(DecodeContext &context, const ptx::Instruction &instruction) {
  return context.target().sm == 90 ||
         context.error(instruction,
                       std::string(context.target().name) + " does not have it; sm_90a is the only target that does");
}

/// The number that follows `letter` in "m64n128k16".
unsigned extentOf(std::string_view shape, char letter) {
  unsigned n = 0;
  for (std::size_t i = shape.find(letter) + 1; i < shape.size() && shape[i] >= '0' && shape[i] <= '9'; ++i)
    n = n * 10 + static_cast<unsigned>(shape[i] - '0');
  return n;
}

/// An immediate that is one of two values.
bool choice(DecodeContext &context, const ptx::Instruction &instruction, std::size_t at, const char *what,
            std::int64_t first, std::int64_t second, bool &isSecond) {
  const Operand &o = instruction.operands[at];
  const auto v = static_cast<std::int64_t>(o.bits);
  if (o.kind != Operand::Kind::Integer || (v != first && v != second))
    return context.error(instruction, std::string(what) + " (operand " + std::to_string(at + 1) +
                                          ") must be the constant " + std::to_string(first) + " or " +
                                          std::to_string(second));
  isSecond = v == second;
  return true;
}

bool decodeVector(DecodeContext &context, const ptx::Instruction &instruction, const Operand &vector, std::size_t count,
                  const char *what, bool reads, bool writes, WgmmaForm &f, std::vector<U32> &slots) {
  if (vector.kind != Operand::Kind::Vector || vector.elements.size() != count)
    return context.error(
        instruction,
        std::string(what) + " must be a vector of " + std::to_string(count) + " registers in braces" +
            (vector.kind == Operand::Kind::Vector ? ", this one has " + std::to_string(vector.elements.size()) : ""));
  for (const Operand &o : vector.elements) {
    Slot slot = noSlot;
    if (o.kind != Operand::Kind::Register || context.registerBytes(o) != 4)
      return context.error(instruction, std::string(what) + " must consist of 32-bit registers" +
                                            (o.text.empty() ? "" : ": '" + std::string(o.text) + "' is none"));
    if ((reads && !context.source(instruction, o, Type::B32, slot)) ||
        (writes && !context.destination(instruction, o, Type::B32, slot)))
      return false;
    context.keepForScope(slot);
    slots.push_back(slot);
    f.names.push_back(o.text);
  }
  return true;
}

bool decodeProduct(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  if (!hasWgmma(context, instruction))
    return false;
  WgmmaForm f;
  f.multiply = multiply;
  std::string_view shape;
  for (unsigned i = 0; i < form.numModifiers; ++i)
    if (form.modifiers[i].starts_with("m64n"))
      shape = form.modifiers[i];
  f.b.extent = extentOf(shape, 'n');
  const unsigned k = extentOf(shape, 'k');
  f.singleBits = form.type(1) == Type::B1;
  f.k = static_cast<std::uint16_t>(f.singleBits ? k / 32 : k);
  // Sums of single bits are integers.
  const auto typeOf = [&](unsigned i) { return matrixTypeOf(form.type(i)).value_or(MatrixType::S32); };
  const MatrixType a = typeOf(1), b = typeOf(2), d = typeOf(0);
  f.model = matrixModel(context.target(), MatrixUnit::Wgmma, a, b, d, d, k);
  f.model.saturate = form.has("satfinite");
  f.accumulators = static_cast<std::uint16_t>(f.b.extent / (d == MatrixType::F16 ? 4 : 2));

  const auto &operands = instruction.operands;
  const bool scales = d != MatrixType::S32, transposes = f.k == 16;
  f.fragments = operands.size() > 1 && operands[1].kind == Operand::Kind::Vector;
  const std::size_t count = 4 + (scales ? 2 : 0) + (transposes ? (f.fragments ? 1 : 2) : 0);
  if (operands.size() != count)
    return context.error(instruction,
                         std::string("takes ") + std::to_string(count) + " operands (accumulators, " +
                             (f.fragments ? "registers of A" : "descriptor of A") + ", descriptor of B, scale-d" +
                             (scales ? ", imm-scale-a, imm-scale-b" : "") +
                             (transposes ? (f.fragments ? ", imm-trans-b" : ", imm-trans-a, imm-trans-b") : "") +
                             "), " + std::to_string(operands.size()) + " are given");
  if (scales && (!choice(context, instruction, 4, "imm-scale-a", 1, -1, f.negateA) ||
                 !choice(context, instruction, 5, "imm-scale-b", 1, -1, f.negateB)))
    return false;
  if (transposes && ((!f.fragments && !choice(context, instruction, 6, "imm-trans-a", 0, 1, f.a.mnMajor)) ||
                     !choice(context, instruction, count - 1, "imm-trans-b", 0, 1, f.b.mnMajor)))
    return false;
  const Operand &scaleD = operands[3];
  if (scaleD.kind == Operand::Kind::Integer && scaleD.bits > 1)
    return context.error(instruction, "scale-d (operand 4) must be a predicate or the constant 0 or 1");
  if (!context.predicate(instruction, scaleD, op.s[2]))
    return false;
  const bool readsD = scaleD.kind != Operand::Kind::Integer || scaleD.bits != 0;
  std::vector<U32> slots;
  if (!decodeVector(context, instruction, operands[0], f.accumulators, "the accumulators", readsD, true, f, slots))
    return false;
  if (!(f.fragments ? decodeVector(context, instruction, operands[1], wgmmaFragments, "A", true, false, f, slots)
                    : context.source(instruction, operands[1], Type::B64, op.s[0])) ||
      !context.source(instruction, operands[2], Type::B64, op.s[1]))
    return false;
  op.aux = context.addPool(slots);
  op.imm = static_cast<std::int64_t>(context.wgmma().forms.size());
  context.wgmma().forms.push_back(std::move(f));
  context.usesAsync(true);
  context.flow().visible = true;
  op.run = wgmmaIssue;
  return true;
}

template <Next (*Run)(Warp &, const Op &)>
bool decodeGroup(DecodeContext &context, const Form &, const ptx::Instruction &instruction, Op &op) {
  if (!hasWgmma(context, instruction))
    return false;
  const bool waits = Run == wgmmaWait;
  if (instruction.operands.size() != waits)
    return context.error(instruction, waits ? "takes one integer constant" : "takes no operands");
  if (waits) {
    const Operand &n = instruction.operands[0];
    if (n.kind != Operand::Kind::Integer || n.bits > 0x7FFFFFFF)
      return context.error(instruction, "takes one integer constant that is not negative");
    op.imm = static_cast<std::int64_t>(n.bits);
  }
  context.wgmma();
  context.usesAsync(true);
  context.flow().visible = true;
  context.flow().observes = waits;
  op.run = Run;
  return true;
}

#define KILN_N4(k, a, b, c, d) "m64n" a "k" k "|m64n" b "k" k "|m64n" c "k" k "|m64n" d "k" k
/// Every n of single bits.
#define KILN_INTEGER_SHAPES(k)                                                                                         \
  KILN_N4(k, "8", "16", "24", "32")                                                                                    \
  "|" KILN_N4(k, "48", "64", "80", "96") "|" KILN_N4(k, "112", "128", "144", "160") "|" KILN_N4(                       \
      k, "176", "192", "208", "224") "|m64n240k" k "|m64n256k" k

/// What the table of matrix units does not list.
constexpr Row others[] = {
    {"wgmma.fence", "sync aligned", "", "custom", 90, nullptr, Aligned, decodeGroup<wgmmaFence>, true},
    {"wgmma.commit_group", "sync aligned", "", "custom", 90, nullptr, Aligned, decodeGroup<wgmmaCommit>, true},
    {"wgmma.wait_group", "sync aligned", "", "custom", 90, nullptr, Aligned, decodeGroup<wgmmaWait>, true},
    {"wgmma.mma_async", "sync aligned " KILN_INTEGER_SHAPES("256") " and popc", "s32.b1.b1", "custom", 90, nullptr,
     Aligned, decodeProduct, true},
};

} // namespace

std::span<const Row> wgmmaRows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> out(std::begin(others), std::end(others));
    for (const MatrixForm &f : matrixForms(MatrixUnit::Wgmma))
      out.push_back({"wgmma.mma_async", f.modifiers.c_str(), f.types.c_str(), "custom", f.minSm, nullptr, Aligned,
                     decodeProduct, f.archSpecific});
    return out;
  }();
  return all;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
