// mul, mad, madc, mul24, mad24, dp4a, dp2a: section 1.2 of the emulator specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/IntegerLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

template <typename T> struct Double;
template <> struct Double<std::uint16_t> {
  using type = std::uint32_t;
};
template <> struct Double<std::int16_t> {
  using type = std::int32_t;
};
template <> struct Double<std::uint32_t> {
  using type = std::uint64_t;
};
template <> struct Double<std::int32_t> {
  using type = std::int64_t;
};
template <> struct Double<std::uint64_t> {
  using type = unsigned __int128;
};
template <> struct Double<std::int64_t> {
  using type = __int128;
};
template <typename T> using DoubleOf = typename Double<T>::type;

/// Low half of the product; unsigned and at least 32 bits wide, so that it wraps.
template <typename T> inline T low(T a, T b) {
  return static_cast<T>(Wide<T>(a) * Wide<T>(b));
}
template <typename T> inline T high(T a, T b) {
  return static_cast<T>((DoubleOf<T>(a) * DoubleOf<T>(b)) >> (8 * sizeof(T)));
}
Handler buildMul(const Form &f, std::string &) {
  if (f.has("hi"))
    return onInteger(f.type(), []<typename T>() { return lanes<T, T, T>([](T a, T b) { return high(a, b); }); });
  return onInteger(f.type(), []<typename T>() { return lanes<T, T, T>([](T a, T b) { return low(a, b); }); });
}

Handler buildMad(const Form &f, std::string &) {
  if (f.has("sat"))
    return lanes<std::int32_t, std::int32_t, std::int32_t, std::int32_t>(
        [](std::int32_t a, std::int32_t b, std::int32_t c) { return saturate(std::int64_t(high(a, b)) + c); });
  if (f.has("hi"))
    return onInteger(
        f.type(), []<typename T>() { return lanes<T, T, T, T>([](T a, T b, T c) { return wrapAdd(high(a, b), c); }); });
  return onInteger(f.type(),
                   []<typename T>() { return lanes<T, T, T, T>([](T a, T b, T c) { return wrapAdd(low(a, b), c); }); });
}

/// 16 and 32 bits only: the product of 64-bit operands has no register to go to.
template <typename Fn> Handler onNarrow(ptx::Type t, Fn f) {
  switch (t) {
  case ptx::Type::U16:
    return f.template operator()<std::uint16_t>();
  case ptx::Type::S16:
    return f.template operator()<std::int16_t>();
  case ptx::Type::U32:
    return f.template operator()<std::uint32_t>();
  case ptx::Type::S32:
    return f.template operator()<std::int32_t>();
  default:
    return nullptr;
  }
}

Handler buildMulWide(const Form &f, std::string &) {
  return onNarrow(f.type(), []<typename T>() {
    return lanes<DoubleOf<T>, T, T>([](T a, T b) { return static_cast<DoubleOf<T>>(DoubleOf<T>(a) * DoubleOf<T>(b)); });
  });
}

Handler buildMadWide(const Form &f, std::string &) {
  return onNarrow(f.type(), []<typename T>() {
    return lanes<DoubleOf<T>, T, T, DoubleOf<T>>(
        [](T a, T b, DoubleOf<T> c) { return wrapAdd(static_cast<DoubleOf<T>>(DoubleOf<T>(a) * DoubleOf<T>(b)), c); });
  });
}

/// mad with carry: the carry of the final addition; the product never carries.
template <typename T, bool High, bool TakesCarry, bool SetsCarry> Next madCarryHandler(Warp &w, const Op &op) {
  using U = Unsigned<T>;
  StorageOf<T> *d = lanesOf<T>(w, op.d), *a = lanesOf<T>(w, op.s[0]), *b = lanesOf<T>(w, op.s[1]),
               *c = lanesOf<T>(w, op.s[2]);
  std::uint32_t *carry = lanesOf<std::uint32_t>(w, carrySlot);
  eachLane(w.exec, [&](unsigned l) {
    const T x = static_cast<T>(a[l]), y = static_cast<T>(b[l]);
    const U product = static_cast<U>(High ? high(x, y) : low(x, y));
    const U first = product + static_cast<U>(c[l]);
    const U sum = first + (TakesCarry ? carry[l] : 0);
    d[l] = sum;
    if (SetsCarry)
      carry[l] = (first < product) | (sum < first);
  });
  return Next::Advance;
}

template <bool TakesCarry, typename T> Handler pickMadCarry(const Form &f) {
  const bool hi = f.has("hi"), sets = f.has("cc");
  if (hi)
    return sets ? &madCarryHandler<T, true, TakesCarry, true> : &madCarryHandler<T, true, TakesCarry, false>;
  return sets ? &madCarryHandler<T, false, TakesCarry, true> : &madCarryHandler<T, false, TakesCarry, false>;
}
template <bool TakesCarry> Handler buildMadCarry(const Form &f, std::string &) {
  switch (f.type()) {
  case ptx::Type::U32:
    return pickMadCarry<TakesCarry, std::uint32_t>(f);
  case ptx::Type::S32:
    return pickMadCarry<TakesCarry, std::int32_t>(f);
  case ptx::Type::U64:
    return pickMadCarry<TakesCarry, std::uint64_t>(f);
  case ptx::Type::S64:
    return pickMadCarry<TakesCarry, std::int64_t>(f);
  default:
    return nullptr;
  }
}

inline std::int64_t low24(std::int32_t v) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(v) << 8) >> 8;
}
inline std::uint64_t low24(std::uint32_t v) {
  return v & 0xFFFFFF;
}
/// .lo: bits 31:0 of the 48-bit product; .hi: bits 47:16.
template <typename T> inline T mul24Low(T a, T b) {
  return static_cast<T>(low24(a) * low24(b));
}
template <typename T> inline T mul24High(T a, T b) {
  return static_cast<T>((low24(a) * low24(b)) >> 16);
}

template <typename T> Handler mul24For(const Form &f) {
  if (f.has("hi"))
    return lanes<T, T, T>([](T a, T b) { return mul24High(a, b); });
  return lanes<T, T, T>([](T a, T b) { return mul24Low(a, b); });
}
Handler buildMul24(const Form &f, std::string &) {
  return f.type() == ptx::Type::U32 ? mul24For<std::uint32_t>(f) : mul24For<std::int32_t>(f);
}
template <typename T> Handler mad24For(const Form &f) {
  if (f.has("hi"))
    return lanes<T, T, T, T>([](T a, T b, T c) { return wrapAdd(mul24High(a, b), c); });
  return lanes<T, T, T, T>([](T a, T b, T c) { return wrapAdd(mul24Low(a, b), c); });
}
Handler buildMad24(const Form &f, std::string &) {
  if (f.has("sat"))
    return lanes<std::int32_t, std::int32_t, std::int32_t, std::int32_t>(
        [](std::int32_t a, std::int32_t b, std::int32_t c) { return saturate(std::int64_t(mul24High(a, b)) + c); });
  return f.type() == ptx::Type::U32 ? mad24For<std::uint32_t>(f) : mad24For<std::int32_t>(f);
}

template <bool Signed> inline std::int32_t byteOf(std::uint32_t v, unsigned i) {
  return Signed ? static_cast<std::int8_t>(v >> 8 * i) : static_cast<std::int32_t>(v >> 8 * i & 0xFF);
}
template <bool Signed> inline std::int32_t halfOf(std::uint32_t v, unsigned i) {
  return Signed ? static_cast<std::int16_t>(v >> 16 * i) : static_cast<std::int32_t>(v >> 16 * i & 0xFFFF);
}

template <bool SignedA, bool SignedB> Handler dp4aFor() {
  return lanes<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
      [](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        for (unsigned i = 0; i < 4; ++i)
          c += static_cast<std::uint32_t>(byteOf<SignedA>(a, i) * byteOf<SignedB>(b, i));
        return c;
      });
}
Handler buildDp4a(const Form &f, std::string &) {
  const bool a = f.type(0) == ptx::Type::S32, b = f.type(1) == ptx::Type::S32;
  return a ? b ? dp4aFor<true, true>() : dp4aFor<true, false>() : b ? dp4aFor<false, true>() : dp4aFor<false, false>();
}

/// Halves of a times two bytes of b: the low pair or the high pair.
template <bool SignedA, bool SignedB> Handler dp2aFor(bool highPair) {
  if (highPair)
    return lanes<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>([](std::uint32_t a, std::uint32_t b,
                                                                                std::uint32_t c) {
      for (unsigned i = 0; i < 2; ++i)
        c += static_cast<std::uint32_t>(halfOf<SignedA>(a, i)) * static_cast<std::uint32_t>(byteOf<SignedB>(b, i + 2));
      return c;
    });
  return lanes<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
      [](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        for (unsigned i = 0; i < 2; ++i)
          c += static_cast<std::uint32_t>(halfOf<SignedA>(a, i)) * static_cast<std::uint32_t>(byteOf<SignedB>(b, i));
        return c;
      });
}
Handler buildDp2a(const Form &f, std::string &) {
  const bool a = f.type(0) == ptx::Type::S32, b = f.type(1) == ptx::Type::S32, hi = f.has("hi");
  return a   ? b ? dp2aFor<true, true>(hi) : dp2aFor<true, false>(hi)
         : b ? dp2aFor<false, true>(hi)
             : dp2aFor<false, false>(hi);
}

constexpr const char *anyInteger = "u16|s16|u32|s32|u64|s64";
constexpr const char *narrowInteger = "u16|s16|u32|s32";
constexpr const char *wideInteger = "u32|s32|u64|s64";
constexpr const char *signPairs = "u32.u32|u32.s32|s32.u32|s32.s32";

constexpr Row rows[] = {
    {"mul", "lo|hi", anyInteger, "=0 0 0", 75, buildMul},
    {"mul", "wide", narrowInteger, "=w0 0 0", 75, buildMulWide},
    {"mad", "lo|hi", anyInteger, "=0 0 0 0", 75, buildMad},
    {"mad", "hi sat", "s32", "=0 0 0 0", 75, buildMad},
    {"mad", "wide", narrowInteger, "=w0 0 0 w0", 75, buildMadWide},
    {"mad", "lo|hi cc", wideInteger, "=0 0 0 0", 75, buildMadCarry<false>},
    {"madc", "lo|hi cc?", wideInteger, "=0 0 0 0", 75, buildMadCarry<true>},
    {"mul24", "lo|hi", "u32|s32", "=0 0 0", 75, buildMul24},
    {"mad24", "lo|hi", "u32|s32", "=0 0 0 0", 75, buildMad24},
    {"mad24", "hi sat", "s32", "=0 0 0 0", 75, buildMad24},
    {"dp4a", "", signPairs, "=b32 b32 b32 b32", 75, buildDp4a},
    {"dp2a", "lo|hi", signPairs, "=b32 b32 b32 b32", 75, buildDp2a},
};

} // namespace

std::span<const Row> integerMultiplyRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
