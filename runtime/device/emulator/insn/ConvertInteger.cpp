// cvt between integers, and cvt.pack: section 1.4 of the emulator specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/ConvertLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

template <typename T> constexpr T lowestOf = std::is_signed_v<T> ? static_cast<T>(T(1) << (sizeof(T) * 8 - 1)) : T(0);
template <typename T> constexpr T highestOf = static_cast<T>(~lowestOf<T>);

/// s clamped to the range of D.
template <typename D, typename S> inline D clampedTo(S s) {
  using W = std::conditional_t<(sizeof(S) < 4), std::int32_t, S>;
  W v = s;
  if constexpr (std::is_signed_v<S>) {
    // Both bounds as signed values; the upper one may lie beyond S.
    constexpr std::int64_t low = static_cast<std::int64_t>(lowestOf<D>);
    if constexpr (low > static_cast<std::int64_t>(lowestOf<S>) || !std::is_signed_v<D>)
      v = v < static_cast<W>(low) ? static_cast<W>(low) : v;
    if constexpr (sizeof(D) < sizeof(S))
      v = v > static_cast<W>(highestOf<D>) ? static_cast<W>(highestOf<D>) : v;
  } else if constexpr (sizeof(D) < sizeof(S) || (sizeof(D) == sizeof(S) && std::is_signed_v<D>)) {
    v = v > static_cast<W>(highestOf<D>) ? static_cast<W>(highestOf<D>) : v;
  }
  return static_cast<D>(v);
}

Handler buildConvert(const Form &f, std::string &) {
  return onInteger8(f.type(0), [&]<typename D>() {
    return onInteger8(f.type(1), [&]<typename S>() {
      if (f.has("sat"))
        return converts<D, S>(f, [](S s) { return clampedTo<D>(s); });
      return converts<D, S>(f, [](S s) { return static_cast<D>(s); });
    });
  });
}

/// a and b clamped to `Bits` bits, a above b; the rest of the result is c shifted up.
template <unsigned Bits, bool Signed> inline U32 packed(std::int32_t a, std::int32_t b, U32 c) {
  constexpr std::int32_t high = (1 << (Signed ? Bits - 1 : Bits)) - 1, low = Signed ? -high - 1 : 0;
  constexpr U32 mask = (1u << Bits) - 1;
  const auto field = [](std::int32_t v) { return static_cast<U32>(v < low ? low : v > high ? high : v) & mask; };
  const U32 pair = field(a) << Bits | field(b);
  if constexpr (Bits == 16)
    return pair;
  else
    return pair | c << 2 * Bits;
}
template <unsigned Bits> Handler packs(const Form &f, bool isSigned) {
  return withFlags(
      [&]<bool Signed>() {
        if constexpr (Bits == 16)
          return converts<U32, std::int32_t, std::int32_t>(
              f, [](std::int32_t a, std::int32_t b) { return packed<16, Signed>(a, b, 0); });
        else
          return converts<U32, std::int32_t, std::int32_t, U32>(
              f, [](std::int32_t a, std::int32_t b, U32 c) { return packed<Bits, Signed>(a, b, c); });
      },
      isSigned);
}
Handler buildPack(const Form &f, std::string &) {
  switch (f.type()) {
  case ptx::Type::U16:
    return packs<16>(f, false);
  case ptx::Type::S16:
    return packs<16>(f, true);
  case ptx::Type::U8:
    return packs<8>(f, false);
  case ptx::Type::S8:
    return packs<8>(f, true);
  case ptx::Type::U4:
    return packs<4>(f, false);
  case ptx::Type::S4:
    return packs<4>(f, true);
  default:
    return packs<2>(f, f.has("s2"));
  }
}

#define KILN_TO_ALL(s) "u8." s "|s8." s "|u16." s "|s16." s "|u32." s "|s32." s "|u64." s "|s64." s
constexpr const char *allPairs = KILN_TO_ALL("u8") "|" KILN_TO_ALL("s8") "|" KILN_TO_ALL("u16") "|" KILN_TO_ALL(
    "s16") "|" KILN_TO_ALL("u32") "|" KILN_TO_ALL("s32") "|" KILN_TO_ALL("u64") "|" KILN_TO_ALL("s64");
/// Pairs whose destination does not hold every value of the source: the assembler takes .sat on no others.
constexpr const char *narrowingPairs =
    "u8.s8|u8.u16|u8.s16|u8.u32|u8.s32|u8.u64|u8.s64|s8.u8|s8.u16|s8.s16|s8.u32|s8.s32|s8.u64|s8.s64|"
    "u16.s8|u16.s16|u16.u32|u16.s32|u16.u64|u16.s64|s16.u16|s16.u32|s16.s32|s16.u64|s16.s64|"
    "u32.s8|u32.s16|u32.s32|u32.u64|u32.s64|s32.u32|s32.u64|s32.s64|u64.s8|u64.s16|u64.s32|u64.s64|s64.u64";

constexpr Row rows[] = {
    {"cvt", "", allPairs, "=0 1", 75, buildConvert},
    {"cvt", "sat", narrowingPairs, "=0 1", 75, buildConvert},
    {"cvt", "pack sat", "u16.s32|s16.s32", "=b32 1 1", 75, buildPack},
    {"cvt", "pack sat", "u8.s32.b32|s8.s32.b32|u4.s32.b32|s4.s32.b32", "=b32 1 1 2", 75, buildPack},
    {"cvt", "pack sat u2|s2", "s32.b32", "=b32 0 0 1", 75, buildPack},
};

} // namespace

std::span<const Row> convertIntegerRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
