// wmma.load, wmma.store, wmma.mma: section 2.1 of the emulator specification.
//
// Programs may not look into a fragment, so its layout is private: element e of lane l is number 32 e + l (modulo their
// count: f16 A and B may hold every element more than once) of the matrix laid out with one of its extents inside. That
// is M for A, N for B; for C and D it is N in m8n32 and M otherwise: tiles (MatrixTile.h) come out of the registers
// without a permutation.  Op::aux: numbers, then slots.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/decode/DecodeMemory.h"
#include "runtime/device/emulator/decode/Decoder.h"
#include "runtime/device/emulator/execute/Executor.h"
#include "runtime/device/emulator/insn/MatrixTile.h"
#include "runtime/device/emulator/memory/DefinedBits.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "support/Text.h"

#include <algorithm>
#include <bit>

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"
#include "runtime/device/emulator/insn/Fragments.h"
#include "runtime/device/emulator/insn/MemoryAccess.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

//===--- load and store --------------------------------------------------===//

/// Where the elements of a fragment are; in the pool at Op::aux, before the slots of the registers.
struct Geometry {
  U32 innerShift;   ///< log2 of the inner extent
  U32 totalShift;   ///< log2 of the number of elements
  U32 innerStrided; ///< neighbours along the inner extent are a stride apart in memory, along the outer one element
  U32 registers;
  U32 rowBytes; ///< what a row's address must be aligned to
};
constexpr U32 geometryWords = sizeof(Geometry) / sizeof(U32);

Geometry geometryOf(const Warp &w, const Op &op) {
  Geometry g;
  __builtin_memcpy(&g, w.pool + op.aux, sizeof g);
  return g;
}

/// All lanes must give the same address and stride.
void checkUniform(Warp &w, const Op &op, const U64 *base, const U32 *stride) {
  constexpr char id[] = "matrix.lanes_differ";
  const unsigned first = static_cast<unsigned>(__builtin_ctz(w.exec));
  U32 different = 0;
  for (unsigned l = 0; l < warpSize; ++l)
    different |= (base[l] != base[first] || stride[l] != stride[first] ? 1u << l : 0u) & w.exec;
  if (!different || countFinding(w, op, id))
    return;
  const unsigned other = static_cast<unsigned>(__builtin_ctz(different));
  reportFinding(
      w, op, id, different,
      format("lane %u gives address 0x%llx and stride %u, lane %u 0x%llx and %u; all lanes must give the same", first,
             static_cast<unsigned long long>(base[first]), stride[first], other,
             static_cast<unsigned long long>(base[other]), stride[other]),
      false);
}

/// Base addresses and strides of the lanes; false after a fatal finding.
template <typename T> bool locate(Warp &w, const Op &op, const Geometry &g, U64 *base, U32 *stride) {
  Accessed m;
  laneAddresses(w, op, m);
  const U32 *s = lanesOf<U32>(w, op.s[1]);
  for (unsigned l = 0; l < warpSize; ++l) {
    base[l] = m.at[l];
    stride[l] = w.exec >> l & 1 ? s[l] : s[__builtin_ctz(w.exec)];
  }
  checkUniform(w, op, base, stride);
  U64 low = 0;
  for (unsigned row = 0; row < 2; ++row) {
    for (unsigned l = 0; l < warpSize; ++l) {
      m.at[l] = base[l] + row * U64(stride[l]) * sizeof(T);
      low |= m.at[l];
    }
    if (low % g.rowBytes != 0)
      return reportMisaligned(w, op, m.at, g.rowBytes);
  }
  return true;
}

template <typename T, bool Store> Next moveFragment(Warp &w, const Op &op) {
  using Register = std::conditional_t<sizeof(T) == 8, U64, U32>;
  constexpr unsigned perRegister = sizeof(Register) / sizeof(T);
  const Geometry g = geometryOf(w, op);
  const Slot *slots = w.pool + op.aux + geometryWords;
  U64 base[warpSize];
  U32 stride[warpSize];
  if (!locate<T>(w, op, g, base, stride))
    return Next::Fault;
  if (w.exec != fullMask) [[unlikely]]
    reportMissingLanes(w, op, Store ? "the elements that they hold are not stored" : "what they would hold is lost");
  if (Store)
    ++w.block->worker.progress;
  // Read before written: a register may be the address.
  Register values[8][warpSize] = {};
  for (unsigned r = 0; Store && r < g.registers; ++r)
    __builtin_memcpy(values[r], w.registers + slots[r], sizeof values[r]);
  for (unsigned e = 0; e < g.registers * perRegister; ++e) {
    if (Store && e << 5 >> g.totalShift)
      break; // repeats
    Accessed m;
    for (unsigned l = 0; l < warpSize; ++l) {
      const U32 x = (e * warpSize + l) & ((1u << g.totalShift) - 1);
      const U64 inner = x & ((1u << g.innerShift) - 1), outer = x >> g.innerShift;
      m.at[l] = base[l] + (g.innerStrided ? inner * stride[l] + outer : outer * stride[l] + inner) * sizeof(T);
    }
    if (!resolve(w, op, sizeof(T), Store, m))
      return Next::Fault;
    watch(w, op, m, sizeof(T), Store ? AccessRole::Write : AccessRole::Read);
    if (!Store && m.bits && !isDefined(w, m, sizeof(T))) [[unlikely]]
      reportUninitialised(w, op, m.contiguous ? nullptr : m.at, m.first, sizeof(T), sizeof(T), ~0u, m.bits, m.origin);
    const unsigned shift = e % perRegister * sizeof(T) * 8;
    eachLane(w.exec, [&](unsigned l) {
      const U64 at = m.contiguous ? m.first + l * sizeof(T) : m.uniform ? m.first : m.at[l];
      T v;
      if constexpr (Store) {
        v = static_cast<T>(values[e / perRegister][l] >> shift);
        __builtin_memcpy(reinterpret_cast<void *>(at), &v, sizeof v);
      } else {
        __builtin_memcpy(&v, reinterpret_cast<const void *>(at), sizeof v);
        values[e / perRegister][l] |= static_cast<Register>(v) << shift;
      }
    });
    if (Store && m.bits)
      markWritten(w, m, sizeof(T));
  }
  for (unsigned r = 0; !Store && r < g.registers; ++r) {
    Register *d = reinterpret_cast<Register *>(w.registers + slots[r]);
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = w.exec >> l & 1 ? values[r][l] : d[l];
  }
  return Next::Advance;
}

//===--- products --------------------------------------------------------===//

constexpr char missing[] = "what they hold of A, B and C reads as 0xDEADBEEF";

/// Elements of `Bits` bits of a fragment, in the order of the private layout.
template <unsigned Bits, bool Full>
[[gnu::always_inline]] inline void unpackFragment(const Warp &w, const Slot *slots, unsigned count, U32 *raw) {
  constexpr unsigned perRegister = 32 / Bits;
  for (unsigned i = 0; i < count; i += warpSize) {
    const unsigned e = i / warpSize;
    const Lanes v = loadLanes<Full>(w, slots[e / perRegister]) >> (e % perRegister * Bits);
    storeVector(raw + i, Bits == 32 ? v : v & (Bits == 32 ? ~0u : (1u << Bits % 32) - 1));
  }
}

/// What a product of floating-point or integer matrices needs; in the pool before the slots of D, A, B and C.
struct Product {
  MatrixModel model;
  U32 m, n, k;
  U32 registersA, registersB, registersC, registersD;
};
constexpr U32 productWords = sizeof(Product) / sizeof(U32);

template <bool Full> void unpackTyped(const Warp &w, MatrixType type, const Slot *slots, unsigned count, U32 *raw) {
  switch (matrixTypeBits(type)) {
  case 8:
    return unpackFragment<8, Full>(w, slots, count, raw);
  case 16:
    return unpackFragment<16, Full>(w, slots, count, raw);
  default:
    return unpackFragment<32, Full>(w, slots, count, raw);
  }
}

template <bool Full> void multiplyFragments(Warp &w, const Op &op) {
  Product p;
  __builtin_memcpy(&p, w.pool + op.aux, sizeof p);
  const Slot *d = w.pool + op.aux + productWords, *sa = d + p.registersD, *sb = sa + p.registersA,
             *sc = sb + p.registersB;
  const MatrixMode mode = w.block->worker.launch.mma;
  constexpr unsigned most = 32 * 16;
  alignas(64) U32 raw[most], tile[256];
  alignas(64) float significandA[most], significandB[most];
  alignas(64) std::int32_t exponentA[most], exponentB[most];
  MatrixOperand a{significandA, exponentA, p.m, false}, b{significandB, exponentB, p.n, false};
  unpackTyped<Full>(w, p.model.a, sa, p.m * p.k, raw);
  a.special = decodeElements(p.model.a, mode, raw, p.m * p.k, false, significandA, exponentA);
  unpackTyped<Full>(w, p.model.b, sb, p.n * p.k, raw);
  b.special = decodeElements(p.model.b, mode, raw, p.n * p.k, false, significandB, exponentB);
  unpackTyped<Full>(w, p.model.c, sc, 256, tile);
  if (p.m == 8) // the tile has N inside
    multiplyTile(p.model, mode, b, a, tile, p.n, p.n, p.m, p.k);
  else
    multiplyTile(p.model, mode, a, b, tile, p.m, p.m, p.n, p.k);
  for (unsigned r = 0; r < p.registersD; ++r)
    if (p.model.d == MatrixType::F16)
      storeLanes<Full>(w, d[r], loadVector<Lanes>(tile + 64 * r) | loadVector<Lanes>(tile + 64 * r + warpSize) << 16);
    else
      storeLanes<Full>(w, d[r], loadVector<Lanes>(tile + warpSize * r));
}

Next multiply(Warp &w, const Op &op) {
  if (w.exec == fullMask) [[likely]] {
    multiplyFragments<true>(w, op);
  } else {
    reportMissingLanes(w, op, missing);
    multiplyFragments<false>(w, op);
  }
  return Next::Advance;
}

/// m8n8k4: fused multiply-adds with k ascending.
Next multiplyDoubles(Warp &w, const Op &op) {
  if (w.exec != fullMask) [[unlikely]]
    reportMissingLanes(w, op, missing);
  const Slot *slots = w.pool + op.aux; // D: 2, A, B, C: 2
  double values[4][warpSize];
  for (unsigned i = 0; i < 4; ++i) {
    const U64 *s = lanesOf<double>(w, slots[2 + i]);
    for (unsigned l = 0; l < warpSize; ++l)
      values[i][l] = doubleOf(w.exec >> l & 1 ? s[l] : 0xDEADBEEFDEADBEEFull);
  }
  for (unsigned x = 0; x < 64; ++x) {
    double &sum = values[2 + x / warpSize][x % warpSize];
    for (unsigned k = 0; k < 4; ++k)
      sum = __builtin_fma(values[0][k * 8 + x % 8], values[1][k * 8 + x / 8], sum);
  }
  for (unsigned i = 0; i < 2; ++i) {
    U64 *d = lanesOf<double>(w, slots[i]);
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = w.exec >> l & 1 ? bitsOf(canonical(values[2 + i][l])) : d[l];
  }
  return Next::Advance;
}

//===--- decoding --------------------------------------------------------===//

/// Elements of M, N, K and the element of each matrix.
struct Extents {
  U32 m = 0, n = 0, k = 0;
};
Extents extentsOf(const Form &form) {
  static constexpr struct {
    const char *name;
    Extents extents;
  } shapes[] = {{"m16n16k16", {16, 16, 16}},
                {"m32n8k16", {32, 8, 16}},
                {"m8n32k16", {8, 32, 16}},
                {"m16n16k8", {16, 16, 8}},
                {"m8n8k4", {8, 8, 4}}};
  for (const auto &s : shapes)
    if (form.has(s.name))
      return s.extents;
  return {};
}

enum class Matrix { A, B, Accumulator };

/// Registers of a fragment.  Of f16, A and B have eight in every shape, and elements repeat.
unsigned registersOf(Matrix matrix, ptx::Type type, Extents e) {
  const unsigned elements = matrix == Matrix::A ? e.m * e.k : matrix == Matrix::B ? e.n * e.k : e.m * e.n;
  if (type == ptx::Type::F16 && matrix != Matrix::Accumulator)
    return 8;
  const unsigned bytes = type == ptx::Type::TF32 ? 4 : ptx::typeBytes(type);
  return bytes == 8 ? elements / warpSize : elements * bytes / (4 * warpSize);
}
/// The type of a fragment's registers.
ptx::Type registerType(Matrix matrix, ptx::Type type) {
  if (type == ptx::Type::F64)
    return type;
  return matrix == Matrix::Accumulator && type != ptx::Type::F16 ? type : ptx::Type::B32;
}

template <bool Store>
bool decodeMove(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const std::size_t operands = instruction.operands.size();
  if (operands != 2 && operands != 3)
    return context.error(instruction, Store ? "takes an address, a vector of registers and a stride"
                                            : "takes a vector of registers, an address and a stride");
  const Extents e = extentsOf(form);
  const Matrix matrix = form.has("a") ? Matrix::A : form.has("b") ? Matrix::B : Matrix::Accumulator;
  const ptx::Type type = form.type();
  const bool rows = form.has("row");
  const U32 height = matrix == Matrix::B ? e.k : e.m, breadth = matrix == Matrix::A ? e.k : e.n;
  const bool innerIsRow =
      matrix == Matrix::A || (matrix == Matrix::Accumulator && e.m != 8) || (matrix == Matrix::Accumulator && e.n == 8);
  const unsigned bytes = ptx::typeBytes(type), registers = registersOf(matrix, type, e);
  Geometry g;
  g.innerShift = static_cast<U32>(std::countr_zero(innerIsRow ? height : breadth));
  g.totalShift = static_cast<U32>(std::countr_zero(height * breadth));
  g.innerStrided = innerIsRow == rows;
  g.registers = registers;
  g.rowBytes = std::min(16u, registers * std::max(4u, bytes));
  U32 words[geometryWords];
  std::memcpy(words, &g, sizeof g);
  Slot slots[8];
  if (!context.registers(instruction, instruction.operands[Store ? 1 : 0], Store ? "d" : "r", registers,
                         registerType(matrix, type), !Store, slots))
    return false;
  op.aux = context.addNumbers(words);
  context.addPool(std::span(slots, registers));
  if (operands == 2)
    op.s[1] = context.constant(rows ? breadth : height, 4);
  else if (!context.source(instruction, instruction.operands[2], ptx::Type::U32, op.s[1]))
    return false;
  DecodeContext::Address address;
  if (!decodeAddress(context, instruction, instruction.operands[Store ? 0 : 1], spaceOf(form), op, address))
    return false;
  if (address.space != ptx::Space::Shared && address.space != ptx::Space::Generic &&
      address.space != ptx::Space::Global)
    return context.error(instruction, "the address is in ." + std::string(ptx::spaceName(address.space)) +
                                          "; it must be in .global or .shared");
  context.flow().visible |= Store;
  op.run = bytes == 8   ? &moveFragment<U64, Store>
           : bytes == 4 ? &moveFragment<U32, Store>
           : bytes == 2 ? &moveFragment<U16, Store>
                        : &moveFragment<std::uint8_t, Store>;
  return true;
}

bool decodeProduct(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  if (instruction.operands.size() != 4)
    return context.error(instruction, "takes four operands: D, A, B, C");
  const Extents e = extentsOf(form);
  // The forms of f16 name D and C only.
  const bool half = form.numTypes == 2;
  const ptx::Type d = form.type(0), a = half ? ptx::Type::F16 : form.type(1), b = half ? ptx::Type::F16 : form.type(2),
                  c = form.type(half ? 1 : 3);
  const struct {
    const char *name;
    unsigned registers;
    ptx::Type type;
  } fragments[] = {
      {"D", registersOf(Matrix::Accumulator, d, e), registerType(Matrix::Accumulator, d)},
      {"A", registersOf(Matrix::A, a, e), registerType(Matrix::A, a)},
      {"B", registersOf(Matrix::B, b, e), registerType(Matrix::B, b)},
      {"C", registersOf(Matrix::Accumulator, c, e), registerType(Matrix::Accumulator, c)},
  };
  Slot slots[4 * 8];
  unsigned used = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if (!context.registers(instruction, instruction.operands[i], fragments[i].name, fragments[i].registers,
                           fragments[i].type, i == 0, slots + used))
      return false;
    used += fragments[i].registers;
  }
  if (a == ptx::Type::F64) {
    op.aux = context.addPool(std::span(slots, used));
    op.run = &multiplyDoubles;
    return true;
  }
  Product p;
  p.model = matrixModel(context.target(), MatrixUnit::MmaSync, *matrixTypeOf(a), *matrixTypeOf(b), *matrixTypeOf(c),
                        *matrixTypeOf(d), e.k);
  p.model.saturate = form.has("satfinite");
  p.m = e.m;
  p.n = e.n;
  p.k = e.k;
  p.registersD = fragments[0].registers;
  p.registersA = fragments[1].registers;
  p.registersB = fragments[2].registers;
  p.registersC = fragments[3].registers;
  U32 words[productWords];
  std::memcpy(words, &p, sizeof p);
  op.aux = context.addNumbers(words);
  context.addPool(std::span(slots, used));
  op.run = &multiply;
  return true;
}

#define KILN_WMMA_SPACE "shared|shared::cta|global?"
constexpr char operands[] = "a|b sync aligned row|col m16n16k16|m32n8k16|m8n32k16 " KILN_WMMA_SPACE;
constexpr char loadedC[] = "c sync aligned row|col m16n16k16|m32n8k16|m8n32k16 " KILN_WMMA_SPACE;
constexpr char storedD[] = "d sync aligned row|col m16n16k16|m32n8k16|m8n32k16 " KILN_WMMA_SPACE;
constexpr char product[] = "sync aligned row|col row|col m16n16k16|m32n8k16|m8n32k16";
constexpr char integerProduct[] = "sync aligned row|col row|col m16n16k16|m32n8k16|m8n32k16 satfinite?";

constexpr Row rows[] = {
    {"wmma.load", operands, "f16|s8|u8", "custom", 75, nullptr, Aligned, decodeMove<false>},
    {"wmma.load", operands, "bf16", "custom", 80, nullptr, Aligned, decodeMove<false>},
    {"wmma.load", loadedC, "f16|f32|s32", "custom", 75, nullptr, Aligned, decodeMove<false>},
    {"wmma.load", "a|b sync aligned row|col m16n16k8 " KILN_WMMA_SPACE, "tf32", "custom", 80, nullptr, Aligned,
     decodeMove<false>},
    {"wmma.load", "c sync aligned row|col m16n16k8 " KILN_WMMA_SPACE, "f32", "custom", 80, nullptr, Aligned,
     decodeMove<false>},
    {"wmma.load", "a|b|c sync aligned row|col m8n8k4 " KILN_WMMA_SPACE, "f64", "custom", 80, nullptr, Aligned,
     decodeMove<false>},
    {"wmma.store", storedD, "f16|f32|s32", "custom", 75, nullptr, Aligned, decodeMove<true>},
    {"wmma.store", "d sync aligned row|col m16n16k8 " KILN_WMMA_SPACE, "f32", "custom", 80, nullptr, Aligned,
     decodeMove<true>},
    {"wmma.store", "d sync aligned row|col m8n8k4 " KILN_WMMA_SPACE, "f64", "custom", 80, nullptr, Aligned,
     decodeMove<true>},
    {"wmma.mma", product, "f16.f16|f16.f32|f32.f16|f32.f32", "custom", 75, nullptr, Aligned, decodeProduct},
    {"wmma.mma", product, "f32.bf16.bf16.f32", "custom", 80, nullptr, Aligned, decodeProduct},
    {"wmma.mma", integerProduct, "s32.s8.s8.s32|s32.u8.u8.s32", "custom", 75, nullptr, Aligned, decodeProduct},
    {"wmma.mma", "sync aligned row|col row|col m16n16k8", "f32.tf32.tf32.f32", "custom", 80, nullptr, Aligned,
     decodeProduct},
    {"wmma.mma", "sync aligned row|col row|col m8n8k4 rn?", "f64.f64.f64.f64", "custom", 80, nullptr, Aligned,
     decodeProduct},
};
#undef KILN_WMMA_SPACE

} // namespace

std::span<const Row> wmmaRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
