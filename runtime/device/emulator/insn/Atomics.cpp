// atom and red: section 1.7 of the emulator specification.  Lanes of one op go in lane order.
//
// Kernels whose results depend on the order of blocks run on one worker (Program::inOrder): atomics whose result is
// read, float atomics, cas and exch.  What is left for several workers, integer operations without a result, uses the
// host's atomics.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/decode/DecodeMemory.h"
#include "runtime/device/emulator/decode/Decoder.h"
#include "runtime/device/emulator/execute/Executor.h"
#include "runtime/device/emulator/memory/DefinedBits.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"

#include "runtime/device/emulator/insn/MemoryAccess.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

/// A 128-bit value: the slot's two halves.
struct Wide {
  U64 low, high;
  bool operator==(const Wide &) const = default;
};

template <typename T> inline T laneValue(const Warp &w, Slot slot, unsigned l) {
  if constexpr (std::is_same_v<T, Wide>)
    return {lanesOf<U64>(w, slot)[l], lanesOf<U64>(w, slot + 256)[l]};
  else
    return LaneTraits<T>::load(lanesOf<T>(w, slot)[l]);
}
template <typename T> inline void setLane(Warp &w, Slot slot, unsigned l, T v) {
  if constexpr (std::is_same_v<T, Wide>) {
    lanesOf<U64>(w, slot)[l] = v.low;
    lanesOf<U64>(w, slot + 256)[l] = v.high;
  } else {
    lanesOf<T>(w, slot)[l] = LaneTraits<T>::store(v);
  }
}

template <typename T> inline bool sameBits(const T &a, const T &b) {
  return __builtin_memcmp(&a, &b, sizeof a) == 0;
}

/// Old value of *p, which becomes fn(old).
template <typename T, typename Fn> inline T exchange(T *p, bool shared, Fn fn) {
  if constexpr (std::is_integral_v<T> && sizeof(T) >= 4) {
    if (shared) {
      T old = __atomic_load_n(p, __ATOMIC_RELAXED);
      while (!__atomic_compare_exchange_n(p, &old, fn(old), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      }
      return old;
    }
  }
  T old;
  __builtin_memcpy(&old, p, sizeof old);
  const T fresh = fn(old);
  __builtin_memcpy(p, &fresh, sizeof fresh);
  return old;
}

/// Fn{}(old, b, c, isGlobal) gives the new value.  s[2] is b, s[3] is c; vectors have d and b in the pool.
template <typename T, typename Fn> Next atomicHandler(Warp &w, const Op &op) {
  Accessed m;
  laneAddresses(w, op, m);
  if (inSeveralPlaces(w, op, m)) [[unlikely]]
    return eachPlace(w, op, m, &atomicHandler<T, Fn>);
  const unsigned count = op.flags >> access::countShift & access::countMask, bytes = count * sizeof(T);
  const U32 segment = static_cast<U32>(m.at[__builtin_ctz(w.exec)] >> windowShift);
  if (!resolve(w, op, bytes, true, m)) [[unlikely]]
    return Next::Fault;
  if (m.bits) {
    if (!isDefined(w, m, bytes)) [[unlikely]]
      reportUninitialised(w, op, m.contiguous ? nullptr : m.at, m.first, bytes, bytes, ~0u, m.bits, m.origin);
    markWritten(w, m, bytes);
  }
  watch(w, op, m, bytes, AccessRole::Atomic);
  Worker &worker = w.block->worker;
  const U32 space = op.flags & access::spaceMask;
  const bool isGlobal =
      space == access::global || (space == access::generic && segment != SharedWindow && segment != LocalWindow);
  const bool shared = isGlobal && !worker.launch.program->inOrder;
  bool changed = false;
  for (U32 lanes = w.exec; lanes; lanes &= lanes - 1) {
    const unsigned l = static_cast<unsigned>(__builtin_ctz(lanes));
    const U64 at = m.contiguous ? m.first + l * U64(bytes) : m.at[l];
    for (unsigned e = 0; e < count; ++e) {
      const Slot d = count == 1 ? op.d : w.pool[op.aux + e];
      const Slot source = count == 1 ? op.s[2] : w.pool[op.aux + count + e];
      const T b = laneValue<T>(w, source, l);
      T c{};
      if (op.s[3] != noSlot)
        c = laneValue<T>(w, op.s[3], l);
      T fresh{};
      const T old = exchange(reinterpret_cast<T *>(at + e * sizeof(T)), shared,
                             [&](T was) { return fresh = Fn{}(was, b, c, isGlobal); });
      changed |= !sameBits(old, fresh);
      if (d != noSlot)
        setLane<T>(w, d, l, old);
    }
  }
  ++(changed ? worker.progress : worker.polls);
  return Next::Advance;
}

template <typename T, typename Fn> constexpr Handler atomicOf(Fn) {
  return &atomicHandler<T, Fn>;
}

template <typename T> Handler bitwise(const Form &f) {
  if (f.has("and"))
    return atomicOf<T>([](T a, T b, T, bool) { return T(a & b); });
  if (f.has("or"))
    return atomicOf<T>([](T a, T b, T, bool) { return T(a | b); });
  return atomicOf<T>([](T a, T b, T, bool) { return T(a ^ b); });
}
template <typename T> Handler exchangeOf(const Form &f) {
  if (f.has("cas"))
    return atomicOf<T>([](T a, T b, T c, bool) { return a == b ? c : a; });
  return atomicOf<T>([](T, T b, T, bool) { return b; });
}
template <typename T> Handler integer(const Form &f) {
  if (f.has("add"))
    return atomicOf<T>(
        [](T a, T b, T, bool) { return static_cast<T>(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b)); });
  if (f.has("min"))
    return atomicOf<T>([](T a, T b, T, bool) { return a < b ? a : b; });
  return atomicOf<T>([](T a, T b, T, bool) { return a > b ? a : b; });
}
Handler wrapping(const Form &f) {
  if (f.has("inc"))
    return atomicOf<U32>([](U32 a, U32 b, U32, bool) { return a >= b ? 0 : a + 1; });
  return atomicOf<U32>([](U32 a, U32 b, U32, bool) { return a == 0 || a > b ? b : a - 1; });
}

/// min / max of 16-bit floats: a NaN is dropped, two give the canonical one, -0 < +0.
template <bool Max, typename H> inline H extremeHalf(H x, H y) {
  const float a = toFloat(x), b = toFloat(y);
  if (isNan(a) || isNan(b))
    return isNan(a) && isNan(b) ? H{canonicalNan16} : isNan(a) ? y : x;
  if (a == b)
    return (x.bits >> 15 != 0) == Max ? y : x;
  return (a < b) != Max ? x : y;
}
template <typename H> inline H addHalf(H x, H y) {
  return toHalf<H>(toFloat(x) + toFloat(y));
}

template <typename H> Handler halfOf(const Form &f, bool packed) {
  if (f.has("add"))
    return packed ? atomicOf<Pair>([](Pair a, Pair b, Pair, bool) {
      return halves<H>([](H x, H y) { return addHalf(x, y); }, a, b);
    })
                  : atomicOf<H>([](H a, H b, H, bool) { return addHalf(a, b); });
  if (f.has("min"))
    return packed ? atomicOf<Pair>([](Pair a, Pair b, Pair, bool) {
      return halves<H>([](H x, H y) { return extremeHalf<false>(x, y); }, a, b);
    })
                  : atomicOf<H>([](H a, H b, H, bool) { return extremeHalf<false>(a, b); });
  return packed ? atomicOf<Pair>([](Pair a, Pair b, Pair, bool) {
    return halves<H>([](H x, H y) { return extremeHalf<true>(x, y); }, a, b);
  })
                : atomicOf<H>([](H a, H b, H, bool) { return extremeHalf<true>(a, b); });
}

Handler handlerOf(const Form &f) {
  using ptx::Type;
  const bool exchanges = f.has("cas") || f.has("exch");
  switch (f.type()) {
  case Type::B16:
    return exchangeOf<U16>(f);
  case Type::B32:
    return exchanges ? exchangeOf<U32>(f) : bitwise<U32>(f);
  case Type::B64:
    return exchanges ? exchangeOf<U64>(f) : bitwise<U64>(f);
  case Type::B128:
    return exchangeOf<Wide>(f);
  case Type::U32:
    return f.has("inc") || f.has("dec") ? wrapping(f) : integer<U32>(f);
  case Type::S32:
    return integer<std::int32_t>(f);
  case Type::U64:
    return integer<U64>(f);
  case Type::S64:
    return integer<std::int64_t>(f);
  case Type::F32:
    return atomicOf<float>([](float a, float b, float, bool isGlobal) {
      return isGlobal ? flushed(canonical(flushed(a) + flushed(b))) : canonical(a + b);
    });
  case Type::F64:
    return atomicOf<double>([](double a, double b, double, bool) { return canonical(a + b); });
  case Type::F16:
    return halfOf<F16>(f, false);
  case Type::BF16:
    return halfOf<BF16>(f, false);
  case Type::F16x2:
    return halfOf<F16>(f, true);
  case Type::BF16x2:
    return halfOf<BF16>(f, true);
  default:
    return nullptr;
  }
}

bool decodeAtomic(DecodeContext &context, const Form &form, const ptx::Instruction &instruction, Op &op) {
  const bool isAtom = form.mnemonic == "atom", isCas = form.has("cas");
  const std::size_t needed = 2 + isAtom + isCas;
  if (instruction.operands.size() < needed || instruction.operands.size() > needed + 1)
    return context.error(instruction, "takes " + std::to_string(needed) + " operands and perhaps a cache policy");
  std::size_t at = isAtom ? 1 : 0;
  DecodeContext::Address address;
  if (!decodeAddress(context, instruction, instruction.operands[at], spaceOf(form), op, address))
    return false;
  if (address.fixed)
    return context.error(instruction, "the parameters of a kernel are read-only");
  const unsigned vector = vectorOf(form);
  op.flags |= orderFlags(form) | clusterFlag(form);
  op.flags |= static_cast<std::uint16_t>(vector << access::countShift);
  op.run = handlerOf(form);
  if (!op.run)
    return context.unsupported(instruction, "this combination of operation and type does not exist");
  context.flow().visible = true;
  const ptx::Type type = form.type();
  const ptx::TypeKind kind = ptx::typeKind(type);
  const bool isGlobal = address.space == ptx::Space::Global || address.space == ptx::Space::Generic;
  if (isGlobal && (kind == ptx::TypeKind::Float || kind == ptx::TypeKind::Packed || isCas || form.has("exch")))
    context.needsOrder(/*seesOthers=*/isCas || form.has("exch"));
  auto element = [&](const ptx::Operand &o, unsigned e) -> const ptx::Operand * {
    if (vector == 1)
      return &o;
    return o.kind == ptx::Operand::Kind::Vector && o.elements.size() == vector ? &o.elements[e] : nullptr;
  };
  std::vector<U32> slots;
  for (unsigned pass = isAtom ? 0 : 1; pass < 2; ++pass)
    for (unsigned e = 0; e < vector; ++e) {
      const bool isResult = pass == 0;
      const ptx::Operand *o = element(instruction.operands[isResult ? 0 : at + 1], e);
      if (!o)
        return context.error(instruction, "needs vectors of " + std::to_string(vector) + " registers");
      Slot slot = noSlot;
      if (isResult ? !context.destination(instruction, *o, type, slot) : !context.source(instruction, *o, type, slot))
        return false;
      if (isResult && slot == trashSlot)
        slot = noSlot;
      if (isResult && slot != noSlot && isGlobal)
        context.needsOrderIfRead(slot);
      slots.push_back(slot);
    }
  if (!isAtom)
    slots.insert(slots.begin(), vector, noSlot);
  if (vector == 1) {
    op.d = slots[0];
    op.s[2] = slots[1];
  } else {
    op.aux = context.addPool(slots);
  }
  return !isCas || context.source(instruction, instruction.operands[at + 2], type, op.s[3]);
}

#define KILN_ATOMIC_BOTH(op, types, sm)                                                                                \
  {"atom", KILN_QUALIFIERS op " L2::cache_hint?", types, "custom", sm, nullptr, Plain, decodeAtomic}, {                \
    "red", KILN_QUALIFIERS op " L2::cache_hint?", types, "custom", sm, nullptr, Plain, decodeAtomic                    \
  }
#define KILN_QUALIFIERS                                                                                                \
  "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta|shared::cluster? "

constexpr Row rows[] = {
    KILN_ATOMIC_BOTH("and|or|xor", "b32|b64", 75),
    KILN_ATOMIC_BOTH("add", "u32|s32|u64|f32|f64", 75),
    KILN_ATOMIC_BOTH("inc|dec", "u32", 75),
    KILN_ATOMIC_BOTH("min|max", "u32|s32|u64|s64", 75),
    KILN_ATOMIC_BOTH("add noftz", "f16|f16x2", 75),
    KILN_ATOMIC_BOTH("add noftz", "bf16|bf16x2", 90),
    KILN_ATOMIC_BOTH("add v2|v4", "f32", 90),
    KILN_ATOMIC_BOTH("add|min|max noftz v2|v4|v8", "f16|bf16", 90),
    KILN_ATOMIC_BOTH("add|min|max noftz v2|v4", "f16x2|bf16x2", 90),
    {"atom", KILN_QUALIFIERS "cas L2::cache_hint?", "b16|b32|b64", "custom", 75, nullptr, Plain, decodeAtomic},
    {"atom", KILN_QUALIFIERS "exch L2::cache_hint?", "b32|b64", "custom", 75, nullptr, Plain, decodeAtomic},
    {"atom", KILN_QUALIFIERS "cas|exch L2::cache_hint?", "b128", "custom", 90, nullptr, Plain, decodeAtomic},
};

#undef KILN_QUALIFIERS
#undef KILN_ATOMIC_BOTH

} // namespace

std::span<const Row> atomicsRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
