// and, or, xor, not, cnot, lop3 and the shifts: section 1.2 of the emulator specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/LaneOps.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

/// Bit operations act on the storage: a predicate is 0 or all ones, so the same loop serves it (not: see buildNot).
template <typename Fn> Handler onBits(ptx::Type t, Fn f) {
  switch (t) {
  case ptx::Type::Pred:
  case ptx::Type::B32:
    return f.template operator()<std::uint32_t>();
  case ptx::Type::B16:
    return f.template operator()<std::uint16_t>();
  case ptx::Type::B64:
    return f.template operator()<std::uint64_t>();
  default:
    return nullptr;
  }
}

Handler buildAnd(const Form &f, std::string &) {
  return onBits(f.type(), []<typename T>() { return lanes<T, T, T>([](T a, T b) { return static_cast<T>(a & b); }); });
}
Handler buildOr(const Form &f, std::string &) {
  return onBits(f.type(), []<typename T>() { return lanes<T, T, T>([](T a, T b) { return static_cast<T>(a | b); }); });
}
Handler buildXor(const Form &f, std::string &) {
  return onBits(f.type(), []<typename T>() { return lanes<T, T, T>([](T a, T b) { return static_cast<T>(a ^ b); }); });
}
Handler buildNot(const Form &f, std::string &) {
  return onBits(f.type(), []<typename T>() { return lanes<T, T>([](T a) { return static_cast<T>(~a); }); });
}
Handler buildCnot(const Form &f, std::string &) {
  return onBits(f.type(), []<typename T>() { return lanes<T, T>([](T a) { return static_cast<T>(a == 0); }); });
}

/// The table has bit 4a + 2b + c: every minterm whose bit is set.
template <bool WithPredicate> Next lop3Handler(Warp &w, const Op &op) {
  std::uint32_t *d = lanesOf<std::uint32_t>(w, op.d);
  const std::uint32_t *a = lanesOf<std::uint32_t>(w, op.s[0]), *b = lanesOf<std::uint32_t>(w, op.s[1]),
                      *c = lanesOf<std::uint32_t>(w, op.s[2]);
  std::uint32_t term[8];
  for (unsigned i = 0; i < 8; ++i)
    term[i] = op.imm >> i & 1 ? ~0u : 0u;
  alignas(64) std::uint32_t out[warpSize];
  for (unsigned l = 0; l < warpSize; ++l) {
    const std::uint32_t x = a[l], y = b[l], z = c[l];
    const std::uint32_t low = (term[0] & ~y & ~z) | (term[1] & ~y & z) | (term[2] & y & ~z) | (term[3] & y & z);
    const std::uint32_t top = (term[4] & ~y & ~z) | (term[5] & ~y & z) | (term[6] & y & ~z) | (term[7] & y & z);
    out[l] = (~x & low) | (x & top);
  }
  if (WithPredicate) {
    std::uint32_t *p = lanesOf<std::uint32_t>(w, op.d2);
    const std::uint32_t *q = lanesOf<std::uint32_t>(w, op.s[3]);
    const bool isAnd = op.flags != 0;
    for (unsigned l = 0; l < warpSize; ++l) {
      const std::uint32_t t = out[l] != 0 ? ~0u : 0u, v = isAnd ? t & q[l] : t | q[l];
      p[l] = w.exec >> l & 1 ? v : p[l];
    }
  }
  for (unsigned l = 0; l < warpSize; ++l)
    d[l] = w.exec >> l & 1 ? out[l] : d[l];
  return Next::Advance;
}
Handler buildLop3(const Form &f, std::string &) {
  return &lop3Handler<false>;
}
Handler buildLop3Predicate(const Form &f, std::string &) {
  f.flags = f.has("and");
  return &lop3Handler<true>;
}

/// Amounts are unsigned and clamped to the width.
Handler buildShl(const Form &f, std::string &) {
  return onBits(f.type(), []<typename T>() {
    return lanes<T, T, std::uint32_t>([](T a, std::uint32_t n) {
      return n >= 8 * sizeof(T) ? T(0) : static_cast<T>(a << (n & (8 * sizeof(T) - 1)));
    });
  });
}
Handler buildShr(const Form &f, std::string &) {
  return onInteger(f.type(), []<typename T>() {
    return lanes<T, T, std::uint32_t>([](T a, std::uint32_t n) {
      constexpr std::uint32_t top = 8 * sizeof(T) - 1;
      if (std::is_signed_v<T>)
        return static_cast<T>(a >> (n > top ? top : n));
      return n > top ? T(0) : static_cast<T>(a >> (n & top));
    });
  });
}

/// The 64-bit value is b:a (a low); .l gives the high word of it shifted left, .r the low word of it shifted right.
template <bool Left, bool Wrap> Handler shfFor() {
  return lanes<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(
      [](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        const std::uint32_t n = Wrap ? c & 31 : c > 32 ? 32 : c;
        const std::uint64_t v = std::uint64_t(b) << 32 | a;
        return static_cast<std::uint32_t>(Left ? (v << n) >> 32 : v >> n);
      });
}
Handler buildShf(const Form &f, std::string &) {
  const bool wrap = f.has("wrap");
  return f.has("l") ? wrap ? shfFor<true, true>() : shfFor<true, false>()
         : wrap     ? shfFor<false, true>()
                    : shfFor<false, false>();
}

constexpr const char *bits = "pred|b16|b32|b64";

constexpr Row rows[] = {
    {"and", "", bits, "=0 0 0", 75, buildAnd},
    {"or", "", bits, "=0 0 0", 75, buildOr},
    {"xor", "", bits, "=0 0 0", 75, buildXor},
    {"not", "", bits, "=0 0", 75, buildNot},
    {"cnot", "", "b16|b32|b64", "=0 0", 75, buildCnot},
    {"lop3", "", "b32", "=b32 b32 b32 b32 i", 75, buildLop3},
    {"lop3", "or|and", "b32", "=b32|p b32 b32 b32 i p", 75, buildLop3Predicate},
    {"shl", "", "b16|b32|b64", "=0 0 u32", 75, buildShl},
    {"shr", "", "b16|b32|b64|u16|s16|u32|s32|u64|s64", "=0 0 u32", 75, buildShr},
    {"shf", "l|r clamp|wrap", "b32", "=b32 b32 b32 u32", 75, buildShf},
};

} // namespace

std::span<const Row> logicRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
