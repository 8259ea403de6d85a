// mma.sync: section 2.1 of the emulator specification.
//
// A handler unpacks the fragments into tiles (Fragments.h), decodes both operands, and multiplies (MatrixTile.h).
// Op::aux: the slots of D, A, B and C in the pool.  Op::imm: the MatrixModel.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/decode/Decoder.h"
#include "runtime/device/emulator/execute/Executor.h"
#include "runtime/device/emulator/insn/MatrixTile.h"
#include "runtime/device/emulator/matrix/MatrixForms.h"
#include "support/Text.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"
#include "runtime/device/emulator/insn/Fragments.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

constexpr char missing[] = "what they hold of A, B and C reads as 0xDEADBEEF";
constexpr unsigned rowsOfTile = 16, columnsOfTile = 8;

/// How many registers of each operand: KSteps along K, 16 or 8 rows, C and D in halves or in words.
template <unsigned KSteps, bool Sixteen, bool HalfC> struct Registers {
  static constexpr unsigned a = KSteps * (Sixteen ? 2 : 1), b = KSteps, c = (Sixteen ? 4 : 2) / (HalfC ? 2 : 1);
};
/// The slots in the pool: D, A, B, C.
template <typename R> struct Operands {
  explicit Operands(const Warp &w, const Op &op) : d(w.pool + op.aux), a(d + R::c), b(a + R::a), c(b + R::b) {}
  const Slot *d, *a, *b, *c;
};

/// The order along k of a model that `addsLast`: pairs of elements with k mod 4 < 2, then the others.
template <unsigned KSteps> struct PairsApart {
  unsigned operator()(unsigned t, unsigned p) const { return p / 2 * (KSteps * 8) + t * 2 + p % 2; }
};

/// A and B into rawA[k * 16 + row] and rawB[k * 8 + column]; every register starts `step` further along k.
template <unsigned Bits, unsigned KSteps, bool Sixteen, bool Full, typename Place>
[[gnu::always_inline]] inline void unpackOperands(const Warp &w, const Slot *a, const Slot *b, U32 *rawA, U32 *rawB,
                                                  unsigned step, Place place) {
  for (unsigned i = 0; i < KSteps; ++i) {
    U32 *const ofA = rawA + i * step * rowsOfTile;
    if constexpr (Sixteen)
      unpackSixteen<Bits>(loadLanes<Full>(w, a[2 * i]), loadLanes<Full>(w, a[2 * i + 1]), ofA, place);
    else
      unpackSixteen<Bits>(loadLanes<Full>(w, a[i]), Lanes(0u), ofA, place);
    unpackEight<Bits>(loadLanes<Full>(w, b[i]), rawB + i * step * columnsOfTile, place);
  }
}
template <bool Sixteen, bool HalfC, bool Full>
[[gnu::always_inline]] inline void unpackAddend(const Warp &w, const Slot *c, U32 *tile) {
  const Lanes none = 0u;
  const Lanes c0 = loadLanes<Full>(w, c[0]);
  if constexpr (HalfC)
    unpackHalfTile(c0, Sixteen ? loadLanes<Full>(w, c[1]) : none, tile, rowsOfTile);
  else
    unpackTile(c0, loadLanes<Full>(w, c[1]), Sixteen ? loadLanes<Full>(w, c[2]) : none,
               Sixteen ? loadLanes<Full>(w, c[3]) : none, tile, rowsOfTile);
}
template <bool Sixteen, bool HalfC, bool Full>
[[gnu::always_inline]] inline void packResult(const Warp &w, const Slot *d, const U32 *tile) {
  for (unsigned half = 0; half < (Sixteen ? 2 : 1); ++half) {
    if constexpr (HalfC) {
      storeLanes<Full>(w, d[half], packHalfTile(tile + 8 * half, rowsOfTile));
    } else {
      storeLanes<Full>(w, d[2 * half], packTile(tile + 8 * half, rowsOfTile, 0));
      storeLanes<Full>(w, d[2 * half + 1], packTile(tile + 8 * half, rowsOfTile, 1));
    }
  }
}

template <unsigned Bits, unsigned KSteps, bool Sixteen, bool HalfC, bool Full>
[[gnu::always_inline]] inline void multiplyFragments(Warp &w, const Op &op) {
  constexpr unsigned k = KSteps * 4 * 32 / Bits, sizeA = k * rowsOfTile, sizeB = k * columnsOfTile;
  const MatrixModel model = bitsAs<MatrixModel>(op.imm);
  const MatrixMode mode = w.block->worker.launch.mma;
  const Operands<Registers<KSteps, Sixteen, HalfC>> slots(w, op);
  alignas(64) U32 rawA[sizeA], rawB[sizeB], tile[columnsOfTile * rowsOfTile];
  alignas(64) float significandA[sizeA], significandB[sizeB];
  alignas(64) std::int32_t exponentA[sizeA], exponentB[sizeB];
  if (Bits == 8 && model.addsLast && mode == MatrixMode::Exact)
    unpackOperands<Bits, KSteps, Sixteen, Full>(w, slots.a, slots.b, rawA, rawB, 8, PairsApart<KSteps>());
  else
    unpackOperands<Bits, KSteps, Sixteen, Full>(w, slots.a, slots.b, rawA, rawB, k / KSteps, InOrder<Bits>());
  unpackAddend<Sixteen, HalfC, Full>(w, slots.c, tile);
  MatrixOperand a{significandA, exponentA, rowsOfTile, false}, b{significandB, exponentB, columnsOfTile, false};
  a.special = decodeElements(model.a, mode, rawA, sizeA, false, significandA, exponentA);
  b.special = decodeElements(model.b, mode, rawB, sizeB, false, significandB, exponentB);
  multiplyTile(model, mode, a, b, tile, rowsOfTile, rowsOfTile, columnsOfTile, k);
  packResult<Sixteen, HalfC, Full>(w, slots.d, tile);
}

template <unsigned Bits, unsigned KSteps, bool Sixteen, bool HalfC> Next mma(Warp &w, const Op &op) {
  if (w.exec == fullMask) [[likely]] {
    multiplyFragments<Bits, KSteps, Sixteen, HalfC, true>(w, op);
  } else {
    reportMissingLanes(w, op, missing);
    multiplyFragments<Bits, KSteps, Sixteen, HalfC, false>(w, op);
  }
  return Next::Advance;
}

//===--- one-bit elements ------------------------------------------------===//

template <unsigned KSteps, bool Sixteen, bool Xor, bool Full>
[[gnu::always_inline]] inline void multiplyBits(Warp &w, const Op &op) {
  constexpr unsigned words = KSteps * 4;
  const Operands<Registers<KSteps, Sixteen, false>> slots(w, op);
  alignas(64) U32 a[words * rowsOfTile], b[words * columnsOfTile], tile[columnsOfTile * rowsOfTile];
  unpackOperands<32, KSteps, Sixteen, Full>(w, slots.a, slots.b, a, b, 4, InOrder<32>());
  unpackAddend<Sixteen, false, Full>(w, slots.c, tile);
  for (unsigned column = 0; column < columnsOfTile; ++column) {
    Words sum = loadVector<Words>(tile + column * rowsOfTile);
    for (unsigned i = 0; i < words; ++i) {
      const Words row = loadVector<Words>(a + i * rowsOfTile);
      const U32 other = b[i * columnsOfTile + column];
      sum += __builtin_elementwise_popcount(Xor ? row ^ other : row & other);
    }
    storeVector(tile + column * rowsOfTile, sum);
  }
  packResult<Sixteen, false, Full>(w, slots.d, tile);
}
template <unsigned KSteps, bool Sixteen, bool Xor> Next mmaBits(Warp &w, const Op &op) {
  if (w.exec == fullMask) [[likely]] {
    multiplyBits<KSteps, Sixteen, Xor, true>(w, op);
  } else {
    reportMissingLanes(w, op, missing);
    multiplyBits<KSteps, Sixteen, Xor, false>(w, op);
  }
  return Next::Advance;
}

//===--- f64 -------------------------------------------------------------===//

/// One value of each lane; elements of missing lanes are recognisable.
inline void loadDoubles(const Warp &w, Slot slot, double *out) {
  const double *s = reinterpret_cast<const double *>(lanesOf<double>(w, slot));
  for (unsigned l = 0; l < warpSize; ++l)
    out[l] = w.exec >> l & 1 ? s[l] : doubleOf(0xDEADBEEFDEADBEEFull);
}

/// Fused multiply-adds with k ascending, each rounded to nearest.
template <unsigned KSteps, bool Sixteen> Next mmaDoubles(Warp &w, const Op &op) {
  if (w.exec != fullMask) [[unlikely]]
    reportMissingLanes(w, op, missing);
  using R = Registers<KSteps, Sixteen, false>;
  constexpr unsigned rows = Sixteen ? 16 : 8;
  const Operands<R> slots(w, op);
  double a[R::a][warpSize], b[R::b][warpSize], c[R::c][warpSize];
  for (unsigned i = 0; i < R::a; ++i)
    loadDoubles(w, slots.a[i], a[i]);
  for (unsigned i = 0; i < R::b; ++i)
    loadDoubles(w, slots.b[i], b[i]);
  for (unsigned i = 0; i < R::c; ++i)
    loadDoubles(w, slots.c[i], c[i]);
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column = 0; column < columnsOfTile; ++column) {
      double &sum = c[column % 2 + row / 8 * 2][row % 8 * 4 + column / 2];
      for (unsigned k = 0; k < 4 * KSteps; ++k)
        sum = __builtin_fma(a[k / 4 * (rows / 8) + row / 8][row % 8 * 4 + k % 4], b[k / 4][column * 4 + k % 4], sum);
    }
  for (unsigned i = 0; i < R::c; ++i) {
    U64 *d = lanesOf<double>(w, slots.d[i]);
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = w.exec >> l & 1 ? bitsOf(canonical(c[i][l])) : d[l];
  }
  return Next::Advance;
}

//===--- decoding --------------------------------------------------------===//

/// The extents of "m16n8k16" among the modifiers.
struct Shape {
  unsigned m = 0, n = 0, k = 0;
};
Shape shapeOf(const Form &form) {
  Shape s;
  for (unsigned i = 0; i < form.numModifiers; ++i)
    if (const std::string_view text = form.modifiers[i]; text.size() > 4 && text[0] == 'm' && text[1] <= '9') {
      unsigned *const extents[] = {&s.m, &s.n, &s.k};
      unsigned next = 0;
      for (char c : text) {
        if (c < '0' || c > '9')
          *extents[next++] = 0;
        else
          *extents[next - 1] = *extents[next - 1] * 10 + static_cast<unsigned>(c - '0');
      }
    }
  return s;
}

template <unsigned Bits, unsigned KSteps, bool Sixteen> Handler forAddend(bool halfC) {
  if constexpr (Sixteen && (Bits == 16 || Bits == 8))
    if (halfC)
      return &mma<Bits, KSteps, Sixteen, true>;
  return &mma<Bits, KSteps, Sixteen, false>;
}
template <unsigned Bits> Handler forShape(unsigned kSteps, bool sixteen, bool halfC) {
  if constexpr (Bits < 16)
    if (!sixteen)
      return forAddend<Bits, 1, false>(halfC);
  return kSteps == 1 ? forAddend<Bits, 1, true>(halfC) : forAddend<Bits, 2, true>(halfC);
}
template <bool Xor> Handler forBits(unsigned kSteps, bool sixteen) {
  return !sixteen ? &mmaBits<1, false, Xor> : kSteps == 1 ? &mmaBits<1, true, Xor> : &mmaBits<2, true, Xor>;
}
Handler forDoubles(unsigned kSteps, bool sixteen) {
  return !sixteen      ? &mmaDoubles<1, false>
         : kSteps == 1 ? &mmaDoubles<1, true>
         : kSteps == 2 ? &mmaDoubles<2, true>
                       : &mmaDoubles<4, true>;
}

/// Bits of an element of A or B.
unsigned bitsOfElement(ptx::Type t) {
  const std::optional<MatrixType> type = matrixTypeOf(t);
  return type ? matrixTypeBits(*type) : t == ptx::Type::F64 ? 64 : 1;
}

bool decodeMma(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  if (instruction.operands.size() != 4)
    return context.error(instruction, "takes four operands: D, A, B, C");
  // Modifiers match in any order; these two name A's and B's layout.
  const std::string_view opcode = instruction.opcode;
  if (opcode.find(".col") < opcode.find(".row"))
    return context.error(instruction, "A must be by rows and B by columns: .row.col");
  const Shape shape = shapeOf(form);
  const ptx::Type typeD = form.type(0), typeA = form.type(1), typeB = form.type(2), typeC = form.type(3);
  const unsigned bits = bitsOfElement(typeA), word = bits == 64 ? 64 : 32;
  const unsigned kSteps = shape.k * bits / (4 * word);
  const bool sixteen = shape.m == 16, halfC = typeC == ptx::Type::F16;
  const unsigned countA = kSteps * (sixteen ? 2 : 1), countC = (sixteen ? 4 : 2) / (halfC ? 2 : 1);
  const ptx::Type wordA = word == 64 ? ptx::Type::F64 : ptx::Type::B32;
  const ptx::Type wordC = halfC ? ptx::Type::B32 : typeC;
  Slot slots[2 * 4 + 8 + 4];
  unsigned used = 0;
  const struct {
    const char *name;
    unsigned count;
    ptx::Type type;
  } expected[] = {
      {"D", countC, halfC ? ptx::Type::B32 : typeD}, {"A", countA, wordA}, {"B", kSteps, wordA}, {"C", countC, wordC}};
  for (unsigned i = 0; i < 4; ++i)
    if (!context.registers(instruction, instruction.operands[i], expected[i].name, expected[i].count, expected[i].type,
                           i == 0, slots + used))
      return false;
    else
      used += expected[i].count;
  op.aux = context.addPool(std::span(slots, used));
  if (bits == 64) {
    op.run = forDoubles(kSteps, sixteen);
    return true;
  }
  if (bits == 1) {
    op.run = form.has("xor") ? forBits<true>(kSteps, sixteen) : forBits<false>(kSteps, sixteen);
    return true;
  }
  MatrixModel model = matrixModel(context.target(), MatrixUnit::MmaSync, *matrixTypeOf(typeA), *matrixTypeOf(typeB),
                                  *matrixTypeOf(typeC), *matrixTypeOf(typeD), shape.k);
  model.saturate = form.has("satfinite");
  op.imm = bitsAs<std::int64_t>(model);
  op.run = bits == 32   ? forShape<32>(kSteps, sixteen, halfC)
           : bits == 16 ? forShape<16>(kSteps, sixteen, halfC)
           : bits == 8  ? forShape<8>(kSteps, sixteen, halfC)
                        : forShape<4>(kSteps, sixteen, halfC);
  return true;
}

constexpr char nibbleTypes[] = "s32.s4.s4.s32|s32.s4.u4.s32|s32.u4.s4.s32|s32.u4.u4.s32";

/// What the table of matrix units does not list.
constexpr Row others[] = {
    {"mma", "sync aligned m8n8k32 row col satfinite?", nibbleTypes, "custom", 75, nullptr, Aligned, decodeMma},
    {"mma", "sync aligned m16n8k32|m16n8k64 row col satfinite?", nibbleTypes, "custom", 80, nullptr, Aligned,
     decodeMma},
    {"mma", "sync aligned m8n8k128 row col xor popc", "s32.b1.b1.s32", "custom", 75, nullptr, Aligned, decodeMma},
    {"mma", "sync aligned m8n8k128 row col and popc", "s32.b1.b1.s32", "custom", 80, nullptr, Aligned, decodeMma},
    {"mma", "sync aligned m16n8k128|m16n8k256 row col and|xor popc", "s32.b1.b1.s32", "custom", 80, nullptr, Aligned,
     decodeMma},
    {"mma", "sync aligned m8n8k4 row col", "f64.f64.f64.f64", "custom", 80, nullptr, Aligned, decodeMma},
    {"mma", "sync aligned m16n8k4|m16n8k8|m16n8k16 row col", "f64.f64.f64.f64", "custom", 90, nullptr, Aligned,
     decodeMma},
};

} // namespace

std::span<const Row> mmaRows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> out;
    for (const MatrixForm &f : matrixForms(MatrixUnit::MmaSync))
      out.push_back({"mma", f.modifiers.c_str(), f.types.c_str(), "custom", f.minSm, nullptr, Aligned, decodeMma,
                     f.archSpecific});
    out.insert(out.end(), std::begin(others), std::end(others));
    return out;
  }();
  return all;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
