// mov with packing and unpacking, addresses (cvta, isspacep, mapa, getctarank), the stack, and the decoder's own ops.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/decode/Decoder.h"
#include "runtime/device/emulator/execute/Executor.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/LaneOps.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

/// d = s, through a copy of fixed size: a loop would become a call of memmove.
template <typename T> inline void moveLanes(Warp &w, Slot to, Slot from) {
  const T *s = lanesOf<T>(w, from);
  T *d = lanesOf<T>(w, to);
  alignas(64) T v[warpSize];
  __builtin_memcpy(v, s, sizeof v);
  if (w.exec != fullMask)
    for (unsigned l = 0; l < warpSize; ++l)
      v[l] = w.exec >> l & 1 ? v[l] : d[l];
  __builtin_memcpy(d, v, sizeof v);
}
Next move32(Warp &w, const Op &op) {
  moveLanes<U32>(w, op.d, op.s[0]);
  return Next::Advance;
}
Next move64(Warp &w, const Op &op) {
  moveLanes<U64>(w, op.d, op.s[0]);
  return Next::Advance;
}
Next move128(Warp &w, const Op &op) {
  moveLanes<U64>(w, op.d, op.s[0]);
  moveLanes<U64>(w, op.d + 256, op.s[0] + 256);
  return Next::Advance;
}

/// Bits of element e of a packed value of `total` bytes in two 64-bit halves.
struct Packed {
  alignas(64) U64 low[warpSize] = {}, high[warpSize] = {};
};

/// d = {pool[aux], ...}; flags: bytes of an element, imm: bytes of d.
Next pack(Warp &w, const Op &op) {
  const unsigned bytes = op.flags, total = static_cast<unsigned>(op.imm), count = total / bytes;
  Packed v;
  for (unsigned e = 0; e < count; ++e) {
    const Slot slot = w.pool[op.aux + e];
    const unsigned shift = 8 * bytes * e;
    U64 *half = shift < 64 ? v.low : v.high;
    if (bytes == 8) {
      const U64 *s = lanesOf<U64>(w, slot);
      for (unsigned l = 0; l < warpSize; ++l)
        half[l] = s[l];
    } else {
      const U32 *s = lanesOf<U32>(w, slot);
      const U32 keep = bytes == 4 ? ~0u : (1u << 8 * bytes) - 1;
      for (unsigned l = 0; l < warpSize; ++l)
        half[l] |= U64(s[l] & keep) << shift % 64;
    }
  }
  if (total <= 4) {
    U32 *d = lanesOf<U32>(w, op.d);
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = w.exec >> l & 1 ? static_cast<U32>(v.low[l]) : d[l];
    return Next::Advance;
  }
  U64 *d = lanesOf<U64>(w, op.d);
  for (unsigned l = 0; l < warpSize; ++l)
    d[l] = w.exec >> l & 1 ? v.low[l] : d[l];
  if (total == 16) {
    U64 *upper = lanesOf<U64>(w, op.d + 256);
    for (unsigned l = 0; l < warpSize; ++l)
      upper[l] = w.exec >> l & 1 ? v.high[l] : upper[l];
  }
  return Next::Advance;
}

/// {pool[aux], ...} = s[0].
Next unpack(Warp &w, const Op &op) {
  const unsigned bytes = op.flags, total = static_cast<unsigned>(op.imm), count = total / bytes;
  Packed v;
  if (total <= 4) {
    const U32 *s = lanesOf<U32>(w, op.s[0]);
    for (unsigned l = 0; l < warpSize; ++l)
      v.low[l] = s[l];
  } else {
    std::memcpy(v.low, w.registers + op.s[0], 256);
    if (total == 16)
      std::memcpy(v.high, w.registers + op.s[0] + 256, 256);
  }
  for (unsigned e = 0; e < count; ++e) {
    const Slot slot = w.pool[op.aux + e];
    if (slot == trashSlot)
      continue;
    const unsigned shift = 8 * bytes * e;
    const U64 *half = shift < 64 ? v.low : v.high;
    if (bytes == 8) {
      U64 *d = lanesOf<U64>(w, slot);
      for (unsigned l = 0; l < warpSize; ++l)
        d[l] = w.exec >> l & 1 ? half[l] : d[l];
    } else {
      U32 *d = lanesOf<U32>(w, slot);
      const U32 keep = bytes == 4 ? ~0u : (1u << 8 * bytes) - 1;
      for (unsigned l = 0; l < warpSize; ++l)
        d[l] = w.exec >> l & 1 ? static_cast<U32>(half[l] >> shift % 64) & keep : d[l];
    }
  }
  return Next::Advance;
}

ptx::Type bitsType(unsigned bytes) {
  return bytes == 1   ? ptx::Type::B8
         : bytes == 2 ? ptx::Type::B16
         : bytes == 4 ? ptx::Type::B32
         : bytes == 8 ? ptx::Type::B64
                      : ptx::Type::B128;
}

bool decodeMov(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  if (instruction.operands.size() != 2)
    return context.error(instruction, "takes a destination and a source");
  const ptx::Operand &to = instruction.operands[0], &from = instruction.operands[1];
  const ptx::Type type = form.type();
  const unsigned bytes = type == ptx::Type::Pred ? 4 : ptx::typeBytes(type);
  const bool packs = from.kind == ptx::Operand::Kind::Vector && from.elements.size() > 1;
  const bool unpacks = to.kind == ptx::Operand::Kind::Vector && to.elements.size() > 1;
  if (packs || unpacks) {
    const std::vector<ptx::Operand> &elements = packs ? from.elements : to.elements;
    const auto n = static_cast<unsigned>(elements.size());
    if (packs == unpacks || (n != 2 && n != 4) || bytes % n || ptx::typeKind(type) != ptx::TypeKind::Bits)
      return context.error(instruction, "packs or unpacks 2 or 4 registers of equal width, with a .b type");
    std::vector<U32> slots;
    for (const ptx::Operand &e : elements) {
      Slot slot = noSlot;
      if (packs ? !context.source(instruction, e, bitsType(bytes / n), slot)
                : !context.destination(instruction, e, bitsType(bytes / n), slot))
        return false;
      slots.push_back(slot);
    }
    op.aux = context.addPool(slots);
    op.flags = static_cast<std::uint16_t>(bytes / n);
    op.imm = bytes;
    op.run = packs ? pack : unpack;
    return packs ? context.destination(instruction, to, type, op.d) : context.source(instruction, from, type, op.s[0]);
  }
  op.run = bytes == 16 ? move128 : bytes == 8 ? move64 : move32;
  return context.source(instruction, from, type, op.s[0]) && context.destination(instruction, to, type, op.d);
}

Handler buildNarrow(const Form &, std::string &) {
  return lanes<U32, U64>([](U64 a) { return static_cast<U32>(a); });
}
Handler buildNot(const Form &, std::string &) {
  return lanes<bool, bool>([](bool a) { return !a; });
}

inline Next addTo(Warp &w, Slot from, Slot to, U64 by) {
  const U64 *s = lanesOf<U64>(w, from);
  U64 *d = lanesOf<U64>(w, to);
  if (w.exec == fullMask)
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = s[l] + by;
  else
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = w.exec >> l & 1 ? s[l] + by : d[l];
  return Next::Advance;
}
/// d = s[0] + imm, 64 bits.
Next addDisplacement(Warp &w, const Op &op) {
  return addTo(w, op.s[0], op.d, static_cast<U64>(op.imm));
}
/// d = the local address of a variable in the lane's frame.
Next frameAddress(Warp &w, const Op &op) {
  return addTo(w, frameSlot, op.d, static_cast<U64>(op.imm));
}
Handler buildFrame(const Form &, std::string &) {
  return frameAddress;
}

U64 windowOf(const Form &form) {
  return form.has("shared") || form.has("shared::cta") || form.has("shared::cluster") ? windowBase(SharedWindow)
         : form.has("local")                                                          ? windowBase(LocalWindow)
         : form.has("param") || form.has("param::entry")                              ? windowBase(ParamWindow)
                                                                                      : 0;
}

bool decodeCvta(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  if (instruction.operands.size() != 2)
    return context.error(instruction, "takes a destination and an address");
  const U64 base = windowOf(form);
  op.imm = static_cast<std::int64_t>(form.has("to") ? 0 - base : base);
  op.run = base ? addDisplacement : move64;
  return context.source(instruction, instruction.operands[1], ptx::Type::U64, op.s[0]) &&
         context.destination(instruction, instruction.operands[0], ptx::Type::U64, op.d);
}

constexpr std::uint16_t anyRank = 16;

/// flags: the window asked for, or 0 for global and 8 for const; anyRank: of any rank, whether the cluster has it or
/// not.
Next isInSpace(Warp &w, const Op &op) {
  const U64 *a = lanesOf<U64>(w, op.s[0]);
  U32 *d = lanesOf<U32>(w, op.d);
  const GlobalMemory &memory = *w.block->worker.launch.memory;
  const unsigned window = op.flags & (anyRank - 1);
  eachLane(w.exec, [&](unsigned l) {
    const U64 number = a[l] >> windowShift;
    bool inside = number == window;
    if (window == 0 || window == 8) {
      const bool outside = number == SharedWindow || number == LocalWindow || number == ParamWindow;
      const Allocation *held = memory.holding(a[l], 1);
      inside = !outside && (window == 8 ? held && !held->writable : !held || held->writable);
    } else if (window == SharedWindow && inside) {
      const U64 rank = (a[l] & windowOffsetMask) / sharedRankBytes;
      inside = op.flags & anyRank ? rank < 16 : rank == w.block->rank;
    }
    d[l] = inside ? ~0u : 0u;
  });
  return Next::Advance;
}
bool decodeIsspacep(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  if (instruction.operands.size() != 2)
    return context.error(instruction, "takes a predicate and an address");
  op.flags = form.has("const") ? 8 : static_cast<std::uint16_t>(windowOf(form) >> windowShift);
  op.flags |= form.has("shared::cluster") ? anyRank : 0;
  op.run = isInSpace;
  return context.source(instruction, instruction.operands[1], ptx::Type::U64, op.s[0]) &&
         context.destination(instruction, instruction.operands[0], ptx::Type::Pred, op.d);
}

constexpr U64 rankMask = 15 * sharedRankBytes;

/// A rank that no cluster has makes an address that no access accepts.
template <typename T> Handler mapHandler() {
  return lanes<T, T, U32>(
      [](T a, U32 rank) { return static_cast<T>((a & ~T(rankMask)) | T(rank < 255 ? rank : 255) << 24); });
}
Handler buildMapa(const Form &f, std::string &) {
  return f.type() == ptx::Type::U64 ? mapHandler<U64>() : mapHandler<U32>();
}
template <typename T> Handler rankHandler() {
  return lanes<U32, T>([](T a) { return static_cast<U32>((a & T(rankMask)) >> 24); });
}
Handler buildRank(const Form &f, std::string &) {
  return f.type() == ptx::Type::U64 ? rankHandler<U64>() : rankHandler<U32>();
}

/// d = s[0] bytes of stack aligned to imm.
Next takeStack(Warp &w, const Op &op) {
  auto &s = static_cast<WarpState &>(w);
  const U64 *size = lanesOf<U64>(w, op.s[0]), align = static_cast<U64>(op.imm);
  U64 *d = lanesOf<U64>(w, op.d);
  for (U32 m = w.exec; m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(__builtin_ctz(m));
    const U64 begin = (s.stack()[l] + align - 1) / align * align;
    const U64 bytes = size[l];
    if (!growStack(s, op, l, bytes > (U64(1) << 40) ? ~U64(0) : begin + bytes))
      return Next::Fault;
    d[l] = begin;
  }
  return Next::Advance;
}
bool decodeAlloca(DecodeContext &context, const Form &, const ptx::Instruction &instruction, Op &op) {
  if (instruction.operands.size() < 2 || instruction.operands.size() > 3)
    return context.error(instruction, "takes a destination, a size and perhaps an alignment");
  op.imm = instruction.operands.size() == 3 ? static_cast<std::int64_t>(instruction.operands[2].bits) : 16;
  if (op.imm < 1 || op.imm > 4096 || op.imm & (op.imm - 1))
    return context.error(instruction, "the alignment must be a power of two up to 4096");
  context.usesDynamicStack();
  op.run = takeStack;
  return context.source(instruction, instruction.operands[1], ptx::Type::U64, op.s[0]) &&
         context.destination(instruction, instruction.operands[0], ptx::Type::U64, op.d);
}
Handler buildStackSave(const Form &, std::string &) {
  return [](Warp &w, const Op &op) {
    eachLane(w.exec, [&](unsigned l) { lanesOf<U64>(w, op.d)[l] = static_cast<WarpState &>(w).stack()[l]; });
    return Next::Advance;
  };
}
Handler buildStackRestore(const Form &, std::string &) {
  return [](Warp &w, const Op &op) {
    auto &s = static_cast<WarpState &>(w);
    const U64 *to = lanesOf<U64>(w, op.s[0]);
    U32 wrong = 0;
    eachLane(w.exec, [&](unsigned l) { wrong |= to[l] > s.stack()[l] ? 1u << l : 0; });
    if (wrong) {
      reportFinding(w, op, "oob.local", wrong, "the stack pointer to restore lies above the present one", true);
      return Next::Fault;
    }
    eachLane(w.exec, [&](unsigned l) { s.stack()[l] = to[l]; });
    return Next::Advance;
  };
}

constexpr Row rows[] = {
    {"mov", "", "b16|b32|b64|b128|u16|u32|u64|s16|s32|s64|f16|f32|f64|f16x2|pred", "custom", 75, nullptr, Plain,
     decodeMov},
    {"cvta", "to? global|shared|shared::cta|shared::cluster|local|const|param|param::entry", "u64", "custom", 75,
     nullptr, Plain, decodeCvta},
    {"isspacep", "global|shared|shared::cta|shared::cluster|local|const|param|param::entry", "", "custom", 75, nullptr,
     Plain, decodeIsspacep},
    {"mapa", "shared::cluster?", "u32|u64", "=0 0 u32", 90, buildMapa},
    {"getctarank", "shared::cluster?", "u32|u64", "=u32 0", 90, buildRank},
    {"alloca", "", "u64|b64", "custom", 75, nullptr, Plain, decodeAlloca},
    {"stacksave", "", "u64|b64", "=0", 75, buildStackSave},
    {"stackrestore", "", "u64|b64", "0", 75, buildStackRestore},
    {"%narrow", "", "", "", 75, buildNarrow},
    {"%not", "", "", "", 75, buildNot},
    {"%frame", "", "", "", 75, buildFrame},
};

} // namespace

std::span<const Row> moveRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
