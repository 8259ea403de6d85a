// bfe, bfi, bfind, brev, popc, clz, fns, prmt, bmsk, szext: section 1.2 of the emulator specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/LaneOps.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

/// Position or length as the hardware reads it: the low 8 bits for 32-bit values, the whole number for 64-bit ones,
/// whose code is made of other instructions (seen on an H200).
template <typename T> inline std::uint64_t fieldOperand(std::uint32_t v) {
  return sizeof(T) == 8 ? v : v & 0xFF;
}

/// Missing bits and the sign come from bit min(pos + len - 1, msb).
template <typename T> inline T extractField(T value, std::uint32_t position, std::uint32_t length) {
  using U = std::make_unsigned_t<T>;
  constexpr std::uint64_t bits = 8 * sizeof(T), msb = bits - 1;
  const std::uint64_t pos = fieldOperand<T>(position), len = fieldOperand<T>(length);
  if (len == 0)
    return 0;
  const U u = static_cast<U>(value);
  const std::uint64_t signBit = pos + len - 1 < msb ? pos + len - 1 : msb;
  const U fill = std::is_signed_v<T> && (u >> signBit & 1) ? static_cast<U>(~U(0)) : U(0);
  const U shifted = pos > msb ? U(0) : u >> pos;
  const std::uint64_t have = pos > msb ? 0 : bits - pos; // bits that the shift brought
  const std::uint64_t keep = len < have ? len : have;
  const U mask = keep >= bits ? static_cast<U>(~U(0)) : static_cast<U>((U(1) << keep) - 1);
  return static_cast<T>((shifted & mask) | (fill & ~mask));
}

template <typename T> inline T insertField(T from, T into, std::uint32_t position, std::uint32_t length) {
  constexpr std::uint64_t bits = 8 * sizeof(T);
  const std::uint64_t pos = fieldOperand<T>(position), len = fieldOperand<T>(length);
  if (len == 0 || pos >= bits)
    return into;
  const T ones = len >= bits ? ~T(0) : (T(1) << len) - 1;
  const T mask = ones << pos;
  return (into & ~mask) | ((from << pos) & mask);
}

Handler buildBfe(const Form &f, std::string &) {
  return onInteger(f.type(), []<typename T>() {
    return lanes<T, T, std::uint32_t, std::uint32_t>(
        [](T a, std::uint32_t pos, std::uint32_t len) { return extractField(a, pos, len); });
  });
}

Handler buildBfi(const Form &f, std::string &) {
  if (f.type() == ptx::Type::B64)
    return lanes<std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t>(
        [](std::uint64_t a, std::uint64_t b, std::uint32_t c, std::uint32_t d) { return insertField(a, b, c, d); });
  return lanes<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
      [](std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) { return insertField(a, b, c, d); });
}

template <typename U> inline std::uint32_t leadingZeros(U v) {
  if (v == 0)
    return 8 * sizeof(U);
  return sizeof(U) == 8 ? __builtin_clzll(v) : __builtin_clz(static_cast<std::uint32_t>(v));
}

/// Position of the highest bit that differs from the sign (signed), or is set; 0xFFFFFFFF if there is none.
/// .shiftamt: how far left it must go to reach the top.
template <typename T, bool ShiftAmount> inline std::uint32_t findBit(T value) {
  using U = std::make_unsigned_t<T>;
  U u = static_cast<U>(value);
  if (std::is_signed_v<T> && value < 0)
    u = ~u;
  if (u == 0)
    return ~0u;
  const std::uint32_t msb = 8 * sizeof(T) - 1, position = msb - leadingZeros(u);
  return ShiftAmount ? msb - position : position;
}

Handler buildBfind(const Form &f, std::string &) {
  if (f.has("shiftamt"))
    return onInteger(f.type(),
                     []<typename T>() { return lanes<std::uint32_t, T>([](T a) { return findBit<T, true>(a); }); });
  return onInteger(f.type(),
                   []<typename T>() { return lanes<std::uint32_t, T>([](T a) { return findBit<T, false>(a); }); });
}

Handler buildBrev(const Form &f, std::string &) {
  if (f.type() == ptx::Type::B64)
    return lanes<std::uint64_t, std::uint64_t>(
        [](std::uint64_t a) { return static_cast<std::uint64_t>(__builtin_bitreverse64(a)); });
  return lanes<std::uint32_t, std::uint32_t>(
      [](std::uint32_t a) { return static_cast<std::uint32_t>(__builtin_bitreverse32(a)); });
}

Handler buildPopc(const Form &f, std::string &) {
  if (f.type() == ptx::Type::B64)
    return lanes<std::uint32_t, std::uint64_t>(
        [](std::uint64_t a) { return static_cast<std::uint32_t>(__builtin_popcountll(a)); });
  return lanes<std::uint32_t, std::uint32_t>(
      [](std::uint32_t a) { return static_cast<std::uint32_t>(__builtin_popcount(a)); });
}

Handler buildClz(const Form &f, std::string &) {
  if (f.type() == ptx::Type::B64)
    return lanes<std::uint32_t, std::uint64_t>([](std::uint64_t a) { return leadingZeros(a); });
  return lanes<std::uint32_t, std::uint32_t>([](std::uint32_t a) { return leadingZeros(a); });
}

/// offset 0: base itself if its bit is set.  Else the |offset|-th set bit from base (inclusive), up or down.
inline std::uint32_t findNthSet(std::uint32_t mask, std::uint32_t base, std::int32_t offset) {
  if (base > 31)
    return ~0u;
  if (offset == 0)
    return mask >> base & 1 ? base : ~0u;
  const int step = offset > 0 ? 1 : -1;
  std::int64_t left = offset > 0 ? std::int64_t(offset) : -std::int64_t(offset);
  for (int i = static_cast<int>(base); i >= 0 && i < 32; i += step)
    if (mask >> i & 1 && --left == 0)
      return static_cast<std::uint32_t>(i);
  return ~0u;
}
Handler buildFns(const Form &, std::string &) {
  return lanes<std::uint32_t, std::uint32_t, std::uint32_t, std::int32_t>(
      [](std::uint32_t m, std::uint32_t b, std::int32_t o) { return findNthSet(m, b, o); });
}

/// Bytes 0-3 of a, 4-7 of b, picked by nibbles of a selector; bit 3 of a nibble replicates the byte's sign.
inline std::uint32_t permuteBytes(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t bytes = std::uint64_t(b) << 32 | a;
  std::uint32_t r = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t nibble = selector >> 4 * i & 15;
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> 8 * (nibble & 7)) & 0xFF;
    if (nibble & 8)
      byte = byte & 0x80 ? 0xFF : 0;
    r |= byte << 8 * i;
  }
  return r;
}
Handler buildPrmt(const Form &f, std::string &) {
  using U = std::uint32_t;
  if (f.numModifiers == 0)
    return lanes<U, U, U, U>([](U a, U b, U c) { return permuteBytes(a, b, c); });
  // The modes are selectors of the generic form, chosen by the two low bits of c.
  if (f.has("f4e"))
    return lanes<U, U, U, U>([](U a, U b, U c) { return permuteBytes(a, b, 0x3210 + 0x1111 * (c & 3)); });
  if (f.has("b4e"))
    return lanes<U, U, U, U>([](U a, U b, U c) {
      const U n = c & 3;
      return permuteBytes(a, b, (n & 7) | (n - 1 & 7) << 4 | (n - 2 & 7) << 8 | (n - 3 & 7) << 12);
    });
  if (f.has("rc8"))
    return lanes<U, U, U, U>([](U a, U b, U c) { return permuteBytes(a, b, 0x1111 * (c & 3)); });
  if (f.has("ecl"))
    return lanes<U, U, U, U>([](U a, U b, U c) {
      const U n = c & 3;
      U s = 0;
      for (U i = 0; i < 4; ++i)
        s |= (i > n ? i : n) << 4 * i;
      return permuteBytes(a, b, s);
    });
  if (f.has("ecr"))
    return lanes<U, U, U, U>([](U a, U b, U c) {
      const U n = c & 3;
      U s = 0;
      for (U i = 0; i < 4; ++i)
        s |= (i < n ? i : n) << 4 * i;
      return permuteBytes(a, b, s);
    });
  return lanes<U, U, U, U>([](U a, U b, U c) { return permuteBytes(a, b, c & 1 ? 0x3232 : 0x1010); });
}

/// `length` ones starting at bit `position`; .clamp limits both to 32, .wrap takes them modulo 32.
template <bool Wrap> inline std::uint32_t bitMask(std::uint32_t position, std::uint32_t length) {
  const std::uint32_t pos = Wrap ? position & 31 : position > 32 ? 32 : position;
  const std::uint32_t len = Wrap ? length & 31 : length > 32 ? 32 : length;
  const std::uint64_t ones = (std::uint64_t(1) << len) - 1;
  return static_cast<std::uint32_t>(ones << pos);
}
Handler buildBmsk(const Form &f, std::string &) {
  using U = std::uint32_t;
  if (f.has("wrap"))
    return lanes<U, U, U>([](U a, U b) { return bitMask<true>(a, b); });
  return lanes<U, U, U>([](U a, U b) { return bitMask<false>(a, b); });
}

/// Extends the low n bits of a, n = b clamped to 32 or modulo 32; 0 if n = 0.
template <typename T, bool Wrap> inline T extendLow(T a, std::uint32_t b) {
  const std::uint32_t n = Wrap ? b & 31 : b > 32 ? 32 : b;
  if (n == 0)
    return 0;
  return static_cast<T>(static_cast<T>(static_cast<std::uint32_t>(a) << (32 - n)) >> (32 - n));
}
template <typename T> Handler szextFor(bool wrap) {
  if (wrap)
    return lanes<T, T, std::uint32_t>([](T a, std::uint32_t b) { return extendLow<T, true>(a, b); });
  return lanes<T, T, std::uint32_t>([](T a, std::uint32_t b) { return extendLow<T, false>(a, b); });
}
Handler buildSzext(const Form &f, std::string &) {
  return f.type() == ptx::Type::S32 ? szextFor<std::int32_t>(f.has("wrap")) : szextFor<std::uint32_t>(f.has("wrap"));
}

constexpr Row rows[] = {
    {"bfe", "", "u32|s32|u64|s64", "=0 0 u32 u32", 75, buildBfe},
    {"bfi", "", "b32|b64", "=0 0 0 u32 u32", 75, buildBfi},
    {"bfind", "shiftamt?", "u32|s32|u64|s64", "=u32 0", 75, buildBfind},
    {"brev", "", "b32|b64", "=0 0", 75, buildBrev},
    {"popc", "", "b32|b64", "=u32 0", 75, buildPopc},
    {"clz", "", "b32|b64", "=u32 0", 75, buildClz},
    {"fns", "", "b32", "=b32 b32 u32 s32", 75, buildFns},
    {"prmt", "f4e|b4e|rc8|ecl|ecr|rc16?", "b32", "=b32 b32 b32 b32", 75, buildPrmt},
    {"bmsk", "clamp|wrap", "b32", "=b32 b32 b32", 75, buildBmsk},
    {"szext", "clamp|wrap", "u32|s32", "=0 0 u32", 75, buildSzext},
};

} // namespace

std::span<const Row> bitFieldRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
