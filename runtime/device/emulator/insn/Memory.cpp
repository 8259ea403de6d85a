// ld, st, ldu, prefetch and relatives: section 1.7 of the emulator specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/decode/DecodeMemory.h"
#include "runtime/device/emulator/decode/Decoder.h"
#include "runtime/device/emulator/execute/Executor.h"
#include "runtime/device/emulator/memory/DefinedBits.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/LaneOps.h"

#include "runtime/device/emulator/insn/MemoryAccess.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

template <typename T> inline T peek(U64 address) {
  T v;
  __builtin_memcpy(&v, reinterpret_cast<const void *>(address), sizeof v);
  return v;
}
template <typename T> inline void poke(U64 address, T v) {
  __builtin_memcpy(reinterpret_cast<void *>(address), &v, sizeof v);
}

/// One element of every lane from memory into a register: T is the memory's type, S the register's lane.
template <typename T, typename S>
inline void loadElement(const Warp &w, const Op &op, const Accessed &m, Slot slot, unsigned stride, unsigned offset) {
  S *d = static_cast<S *>(__builtin_assume_aligned(w.registers + slot, 64));
  const S keep = sizeof(S) == 4 && op.flags & access::narrow ? S(0xFFFF) : ~S(0);
  auto widen = [](T v) {
    return static_cast<S>(static_cast<std::conditional_t<std::is_signed_v<T>, std::make_signed_t<S>, S>>(v));
  };
  if (m.uniform) {
    const S v = widen(peek<T>(m.first + offset)) & keep;
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = w.exec >> l & 1 ? v : d[l];
  } else if (m.contiguous && stride == sizeof(T)) {
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = widen(peek<T>(m.first + l * sizeof(T))) & keep;
  } else if (m.contiguous) {
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = widen(peek<T>(m.first + l * U64(stride) + offset)) & keep;
  } else if (w.exec == fullMask) {
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = widen(peek<T>(m.at[l] + offset)) & keep;
  } else {
    eachLane(w.exec, [&](unsigned l) { d[l] = widen(peek<T>(m.at[l] + offset)) & keep; });
  }
}

template <typename T, typename S>
inline void storeElement(const Warp &w, const Accessed &m, Slot slot, unsigned stride, unsigned offset) {
  const S *s = static_cast<const S *>(__builtin_assume_aligned(w.registers + slot, 64));
  if (m.uniform && w.exec == fullMask) {
    poke(m.first + offset, static_cast<T>(s[warpSize - 1]));
  } else if (m.contiguous && stride == sizeof(T)) {
    for (unsigned l = 0; l < warpSize; ++l)
      poke(m.first + l * sizeof(T), static_cast<T>(s[l]));
  } else if (m.contiguous) {
    for (unsigned l = 0; l < warpSize; ++l)
      poke(m.first + l * U64(stride) + offset, static_cast<T>(s[l]));
  } else {
    // In lane order: of lanes that write one address the last one wins.
    eachLane(w.exec, [&](unsigned l) { poke(m.at[l] + offset, static_cast<T>(s[l])); });
  }
}

/// A vector of Count elements a lane, lanes one after the other: taken apart with constant strides.
template <unsigned Count, typename T> inline void loadInterleaved(const Warp &w, const Op &op, U64 first) {
  alignas(64) T parts[Count][warpSize];
  for (unsigned l = 0; l < warpSize; ++l)
    for (unsigned e = 0; e < Count; ++e)
      parts[e][l] = peek<T>(first + (l * Count + e) * sizeof(T));
  for (unsigned e = 0; e < Count; ++e)
    if (const Slot slot = w.pool[op.aux + e]; slot != trashSlot)
      std::memcpy(w.registers + slot, parts[e], sizeof parts[e]);
}
template <unsigned Count, typename T> inline void storeInterleaved(const Warp &w, const Op &op, U64 first) {
  alignas(64) T parts[Count][warpSize];
  for (unsigned e = 0; e < Count; ++e)
    std::memcpy(parts[e], w.registers + w.pool[op.aux + e], sizeof parts[e]);
  for (unsigned l = 0; l < warpSize; ++l)
    for (unsigned e = 0; e < Count; ++e)
      poke(first + (l * Count + e) * sizeof(T), parts[e][l]);
}

/// The addresses of a load or store of Count elements (0: as the op's flags say), checked; Next::Jump stands for "the
/// lanes are in several memories".
template <unsigned Bytes> inline Next locate(Warp &w, const Op &op, unsigned bytes, bool write, Accessed &m) {
  U64 first;
  if (probe<Bytes>(w, op, m, first) && resolveProbed<Bytes>(w, op, write, first, m)) [[likely]]
    return Next::Advance;
  m.bits = nullptr;
  m.contiguous = m.uniform = false;
  laneAddresses(w, op, m);
  if (inSeveralPlaces(w, op, m)) [[unlikely]]
    return Next::Jump;
  return resolve(w, op, bytes, write, m) ? Next::Advance : Next::Fault;
}

inline unsigned countOf(const Op &op) {
  return op.flags >> access::countShift & access::countMask;
}

template <typename T, typename S, unsigned Count> Next load(Warp &w, const Op &op) {
  Accessed m;
  const unsigned count = Count ? Count : countOf(op), bytes = count * sizeof(T);
  if (const Next next = locate<Count * sizeof(T)>(w, op, bytes, false, m); next != Next::Advance) [[unlikely]]
    return next == Next::Jump ? eachPlace(w, op, m, &load<T, S, Count>) : next;
  if (op.flags & access::strong)
    ++w.block->worker.polls;
  watch(w, op, m, bytes, AccessRole::Read);
  if (m.bits && !isDefined(w, m, bytes)) [[unlikely]]
    reportUninitialised(w, op, m.contiguous || m.uniform ? nullptr : m.at, m.first, m.uniform ? 0 : bytes, bytes,
                        op.usedBytes, m.bits, m.origin);
  if constexpr (Count == 1) {
    loadElement<T, S>(w, op, m, op.d, sizeof(T), 0);
  } else {
    if constexpr (Count != 0 && sizeof(T) == sizeof(S))
      if (m.contiguous) {
        loadInterleaved<Count, T>(w, op, m.first);
        return Next::Advance;
      }
    for (unsigned e = 0; e < count; ++e)
      if (w.pool[op.aux + e] != trashSlot)
        loadElement<T, S>(w, op, m, w.pool[op.aux + e], bytes, e * sizeof(T));
  }
  return Next::Advance;
}

/// A lane's own local memory, where nobody waits for a value: a loop that polls and keeps its variables there (as
/// unoptimised code does) makes no progress.
inline bool isLocal(const Warp &w, const Op &op) {
  const unsigned space = op.flags & access::spaceMask;
  if (space != access::generic || op.flags & access::base32)
    return space == access::local;
  return (lanesOf<U64>(w, op.s[0])[__builtin_ctz(w.exec)] + static_cast<U64>(op.imm)) >> windowShift == LocalWindow;
}

/// The lanes' elements of Count registers (0: `count`) as they are stored.
template <typename T, typename S, unsigned Count>
inline auto sameElements(const Warp &w, const Op &op, unsigned count) {
  return [&w, &op, count](unsigned a, unsigned b) {
    bool same = true;
    for (unsigned e = 0; e < count; ++e) {
      const S *s = lanesOf<S>(w, Count == 1 ? op.s[2] : w.pool[op.aux + e]);
      same &= static_cast<T>(s[a]) == static_cast<T>(s[b]);
    }
    return same;
  };
}

template <typename T, typename S, unsigned Count> Next store(Warp &w, const Op &op) {
  Accessed m;
  const unsigned count = Count ? Count : countOf(op), bytes = count * sizeof(T);
  if (const Next next = locate<Count * sizeof(T)>(w, op, bytes, true, m); next != Next::Advance) [[unlikely]]
    return next == Next::Jump ? eachPlace(w, op, m, &store<T, S, Count>) : next;
  w.block->worker.progress += !isLocal(w, op);
  watch(w, op, m, bytes, AccessRole::Write);
  checkSameBytes(w, op, m, bytes, sameElements<T, S, Count>(w, op, count));
  if (m.bits)
    markWritten(w, m, bytes);
  if constexpr (Count == 1) {
    storeElement<T, S>(w, m, op.s[2], sizeof(T), 0);
  } else {
    if constexpr (Count != 0 && sizeof(T) == sizeof(S))
      if (m.contiguous) {
        storeInterleaved<Count, T>(w, op, m.first);
        return Next::Advance;
      }
    for (unsigned e = 0; e < count; ++e)
      storeElement<T, S>(w, m, w.pool[op.aux + e], bytes, e * sizeof(T));
  }
  return Next::Advance;
}

/// A kernel parameter at a fixed offset: one value for all lanes.
template <typename T, typename S> Next loadParameter(Warp &w, const Op &op) {
  const std::byte *parameters = w.block->worker.launch.parameters.data();
  const unsigned count = op.flags >> access::countShift & access::countMask;
  for (unsigned e = 0; e < count; ++e) {
    const Slot slot = count == 1 ? op.d : w.pool[op.aux + e];
    S *d = static_cast<S *>(__builtin_assume_aligned(w.registers + slot, 64));
    const T v = peek<T>(reinterpret_cast<U64>(parameters) + static_cast<U64>(op.imm) + e * sizeof(T));
    S wide = static_cast<S>(static_cast<std::conditional_t<std::is_signed_v<T>, std::make_signed_t<S>, S>>(v));
    if (sizeof(S) == 4 && op.flags & access::narrow)
      wide &= S(0xFFFF);
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = w.exec >> l & 1 ? wide : d[l];
  }
  return Next::Advance;
}

enum class Which { Load, Parameter };

/// Vectors of 2 and 4 words and double words are worth handlers of their own.
template <Which which, typename T, typename S> Handler loadOf(unsigned count) {
  if (which == Which::Parameter)
    return &loadParameter<T, S>;
  if constexpr (sizeof(T) >= 4 && sizeof(T) == sizeof(S)) {
    if (count == 2)
      return &load<T, S, 2>;
    if (count == 4)
      return &load<T, S, 4>;
  }
  return count == 1 ? &load<T, S, 1> : &load<T, S, 0>;
}
template <typename T, typename S> Handler storeOf(unsigned count) {
  if constexpr (sizeof(T) >= 4) {
    if (count == 2)
      return &store<T, S, 2>;
    if (count == 4)
      return &store<T, S, 4>;
  }
  return count == 1 ? &store<T, S, 1> : &store<T, S, 0>;
}
template <Which which> Handler loadHandler(const MemoryForm &f, unsigned n) {
  const bool wide = f.registerBytes == 8, isSigned = f.isSigned;
  switch (f.elementBytes) {
  case 1:
    return isSigned ? (wide ? loadOf<which, std::int8_t, U64>(n) : loadOf<which, std::int8_t, U32>(n))
                    : (wide ? loadOf<which, std::uint8_t, U64>(n) : loadOf<which, std::uint8_t, U32>(n));
  case 2:
    return isSigned ? (wide ? loadOf<which, std::int16_t, U64>(n) : loadOf<which, std::int16_t, U32>(n))
                    : (wide ? loadOf<which, std::uint16_t, U64>(n) : loadOf<which, std::uint16_t, U32>(n));
  case 4:
    return wide ? (isSigned ? loadOf<which, std::int32_t, U64>(n) : loadOf<which, U32, U64>(n))
                : loadOf<which, U32, U32>(n);
  default:
    return loadOf<which, U64, U64>(n);
  }
}

bool decodeLd(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  MemoryForm f;
  if (!decodeLoad(context, form, instruction, op, f))
    return false;
  op.run = f.fixedParameter ? loadHandler<Which::Parameter>(f, 1) : loadHandler<Which::Load>(f, countOf(op));
  return true;
}

bool decodeSt(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  MemoryForm f;
  if (!decodeStore(context, form, instruction, op, f))
    return false;
  const unsigned n = countOf(op);
  op.run = f.elementBytes == 1   ? storeOf<std::uint8_t, U32>(n)
           : f.elementBytes == 2 ? storeOf<std::uint16_t, U32>(n)
           : f.elementBytes == 4 ? storeOf<U32, U32>(n)
                                 : storeOf<U64, U64>(n);
  return true;
}

bool decodeNothing(DecodeContext &, const Form &, const ptx::Instruction &, Op &op) {
  op.run = [](Warp &, const Op &) { return Next::Advance; };
  return true;
}

/// createpolicy: the policy is a number that nobody looks at.
bool decodePolicy(DecodeContext &context, const Form &, const ptx::Instruction &instruction, Op &op) {
  if (instruction.operands.empty())
    return context.error(instruction, "the destination is missing");
  op.run = [](Warp &w, const Op &o) {
    U64 *d = lanesOf<U64>(w, o.d);
    eachLane(w.exec, [&](unsigned l) { d[l] = 0; });
    return Next::Advance;
  };
  return context.destination(instruction, instruction.operands[0], ptx::Type::B64, op.d);
}

constexpr char memoryTypes[] = "b8|b16|b32|b64|b128|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64|f16|bf16|f16x2|bf16x2";
constexpr char ldModifiers[] =
    "weak|volatile|relaxed|acquire|mmio? cta|cluster|gpu|sys? "
    "const|global|local|shared|shared::cta|shared::cluster|param|param::entry|param::func? "
    "nc? ca|cg|cs|lu|cv? v2|v4|v8? unified? "
    "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? "
    "L2::evict_normal|L2::evict_first|L2::evict_last? L2::cache_hint? L2::64B|L2::128B|L2::256B?";
constexpr char stModifiers[] = "weak|volatile|relaxed|release|mmio? cta|cluster|gpu|sys? "
                               "global|local|shared|shared::cta|shared::cluster|param|param::func? "
                               "wb|cg|cs|wt? v2|v4|v8? "
                               "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? "
                               "L2::evict_normal|L2::evict_first|L2::evict_last? L2::cache_hint?";

constexpr Row rows[] = {
    {"ld", ldModifiers, memoryTypes, "custom", 75, nullptr, Plain, decodeLd},
    {"ldu", "global? v2|v4?", memoryTypes, "custom", 75, nullptr, Plain, decodeLd},
    {"st", stModifiers, memoryTypes, "custom", 75, nullptr, Plain, decodeSt},
    {"prefetch", "*", "", "custom", 75, nullptr, Plain, decodeNothing},
    {"prefetchu", "*", "", "custom", 75, nullptr, Plain, decodeNothing},
    {"applypriority", "*", "", "custom", 80, nullptr, Plain, decodeNothing},
    {"discard", "*", "", "custom", 80, nullptr, Plain, decodeNothing},
    {"createpolicy", "*", "b64", "custom", 80, nullptr, Plain, decodePolicy},
};

} // namespace

std::span<const Row> memoryRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
