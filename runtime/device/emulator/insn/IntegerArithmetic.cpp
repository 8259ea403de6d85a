// add, sub, neg, abs, min, max, div, rem, sad and the carry chains on integers: section 1.2 of the emulator
// specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/IntegerLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

Handler buildAdd(const Form &f, std::string &) {
  if (f.has("sat"))
    return lanes<std::int32_t, std::int32_t, std::int32_t>(
        [](std::int32_t a, std::int32_t b) { return saturate(std::int64_t(a) + b); });
  return onInteger(f.type(), []<typename T>() { return lanes<T, T, T>([](T a, T b) { return wrapAdd(a, b); }); });
}

Handler buildSub(const Form &f, std::string &) {
  if (f.has("sat"))
    return lanes<std::int32_t, std::int32_t, std::int32_t>(
        [](std::int32_t a, std::int32_t b) { return saturate(std::int64_t(a) - b); });
  return onInteger(f.type(), []<typename T>() { return lanes<T, T, T>([](T a, T b) { return wrapSub(a, b); }); });
}

Handler buildNeg(const Form &f, std::string &) {
  return onInteger(f.type(), []<typename T>() { return lanes<T, T>([](T a) { return wrapSub(T(0), a); }); });
}

Handler buildAbs(const Form &f, std::string &) {
  return onInteger(f.type(),
                   []<typename T>() { return lanes<T, T>([](T a) { return a < T(0) ? wrapSub(T(0), a) : a; }); });
}

Handler buildMin(const Form &f, std::string &) {
  if (f.has("relu"))
    return lanes<std::int32_t, std::int32_t, std::int32_t>([](std::int32_t a, std::int32_t b) {
      const std::int32_t r = a < b ? a : b;
      return r < 0 ? 0 : r;
    });
  return onInteger(f.type(), []<typename T>() { return lanes<T, T, T>([](T a, T b) { return a < b ? a : b; }); });
}

Handler buildMax(const Form &f, std::string &) {
  if (f.has("relu"))
    return lanes<std::int32_t, std::int32_t, std::int32_t>([](std::int32_t a, std::int32_t b) {
      const std::int32_t r = a > b ? a : b;
      return r < 0 ? 0 : r;
    });
  return onInteger(f.type(), []<typename T>() { return lanes<T, T, T>([](T a, T b) { return a > b ? a : b; }); });
}

/// Division by zero yields all ones (the remainder too); MIN / -1 is MIN with remainder 0.
Handler buildDiv(const Form &f, std::string &) {
  return onInteger(f.type(), []<typename T>() {
    return lanes<T, T, T>([](T a, T b) {
      if (b == 0)
        return static_cast<T>(~Unsigned<T>(0));
      if (std::is_signed_v<T> && b == static_cast<T>(-1))
        return wrapSub(T(0), a);
      return static_cast<T>(a / b);
    });
  });
}

Handler buildRem(const Form &f, std::string &) {
  return onInteger(f.type(), []<typename T>() {
    return lanes<T, T, T>([](T a, T b) {
      if (b == 0)
        return static_cast<T>(~Unsigned<T>(0));
      if (std::is_signed_v<T> && b == static_cast<T>(-1))
        return T(0);
      return static_cast<T>(a % b);
    });
  });
}

Handler buildSad(const Form &f, std::string &) {
  return onInteger(f.type(), []<typename T>() {
    return lanes<T, T, T, T>([](T a, T b, T c) {
      const Wide<T> d = a > b ? Wide<T>(a) - Wide<T>(b) : Wide<T>(b) - Wide<T>(a);
      return static_cast<T>(Wide<T>(c) + d);
    });
  });
}

/// One link of a carry chain: d = a + b + carry, or a - b - borrow; T is unsigned.
template <typename T, bool Subtract, bool TakesCarry, bool SetsCarry> Next carryHandler(Warp &w, const Op &op) {
  StorageOf<T> *d = lanesOf<T>(w, op.d);
  const StorageOf<T> *a = lanesOf<T>(w, op.s[0]), *b = lanesOf<T>(w, op.s[1]);
  std::uint32_t *carry = lanesOf<std::uint32_t>(w, carrySlot);
  const std::uint32_t exec = w.exec;
#pragma clang loop vectorize(assume_safety)
  for (unsigned l = 0; l < warpSize; ++l) {
    const T x = a[l], y = b[l], in = TakesCarry ? carry[l] : 0;
    const T first = Subtract ? x - y : x + y;
    const T sum = Subtract ? first - in : first + in;
    const bool out = Subtract ? (x < y) | (first < in) : (first < x) | (sum < first);
    const bool on = exec >> l & 1;
    d[l] = on ? sum : d[l];
    if (SetsCarry)
      carry[l] = on ? out : carry[l];
  }
  return Next::Advance;
}

template <bool Subtract, bool TakesCarry> Handler pickCarry(const Form &f) {
  const bool wide = ptx::typeBytes(f.type()) == 8, sets = f.has("cc");
  if (wide)
    return sets ? &carryHandler<std::uint64_t, Subtract, TakesCarry, true>
                : &carryHandler<std::uint64_t, Subtract, TakesCarry, false>;
  return sets ? &carryHandler<std::uint32_t, Subtract, TakesCarry, true>
              : &carryHandler<std::uint32_t, Subtract, TakesCarry, false>;
}

Handler buildAddCc(const Form &f, std::string &) {
  return pickCarry<false, false>(f);
}
Handler buildSubCc(const Form &f, std::string &) {
  return pickCarry<true, false>(f);
}
Handler buildAddc(const Form &f, std::string &) {
  return pickCarry<false, true>(f);
}
Handler buildSubc(const Form &f, std::string &) {
  return pickCarry<true, true>(f);
}

constexpr const char *anyInteger = "u16|s16|u32|s32|u64|s64";
constexpr const char *signedInteger = "s16|s32|s64";
constexpr const char *wideInteger = "u32|s32|u64|s64";

constexpr Row rows[] = {
    {"add", "", anyInteger, "=0 0 0", 75, buildAdd},       {"add", "sat", "s32", "=0 0 0", 75, buildAdd},
    {"sub", "", anyInteger, "=0 0 0", 75, buildSub},       {"sub", "sat", "s32", "=0 0 0", 75, buildSub},
    {"neg", "", signedInteger, "=0 0", 75, buildNeg},      {"abs", "", signedInteger, "=0 0", 75, buildAbs},
    {"min", "", anyInteger, "=0 0 0", 75, buildMin},       {"min", "relu", "s32", "=0 0 0", 90, buildMin},
    {"max", "", anyInteger, "=0 0 0", 75, buildMax},       {"max", "relu", "s32", "=0 0 0", 90, buildMax},
    {"div", "", anyInteger, "=0 0 0", 75, buildDiv},       {"rem", "", anyInteger, "=0 0 0", 75, buildRem},
    {"sad", "", anyInteger, "=0 0 0 0", 75, buildSad},     {"add", "cc", wideInteger, "=0 0 0", 75, buildAddCc},
    {"sub", "cc", wideInteger, "=0 0 0", 75, buildSubCc},  {"addc", "cc?", wideInteger, "=0 0 0", 75, buildAddc},
    {"subc", "cc?", wideInteger, "=0 0 0", 75, buildSubc},
};

} // namespace

std::span<const Row> integerArithmeticRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
