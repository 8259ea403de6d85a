// u16x2 and s16x2 arithmetic and vabsdiff4: section 1.2 of the emulator specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/LaneOps.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

using U32 = std::uint32_t;

template <typename T> inline T halfOf(U32 v, unsigned i) {
  return static_cast<T>(v >> 16 * i);
}

/// Applies f to both halves.
template <typename T, typename Fn> inline U32 halves(U32 a, U32 b, Fn f) {
  const U32 low = static_cast<std::uint16_t>(f(halfOf<T>(a, 0), halfOf<T>(b, 0)));
  const U32 high = static_cast<std::uint16_t>(f(halfOf<T>(a, 1), halfOf<T>(b, 1)));
  return high << 16 | low;
}

Handler buildAdd(const Form &, std::string &) {
  return lanes<U32, U32, U32>(
      [](U32 a, U32 b) { return halves<std::uint16_t>(a, b, [](U32 x, U32 y) { return x + y; }); });
}

template <typename T, bool Max, bool Relu> Handler extremeFor() {
  return lanes<U32, U32, U32>([](U32 a, U32 b) {
    return halves<T>(a, b, [](int x, int y) {
      const int r = (x < y) != Max ? x : y;
      return Relu && r < 0 ? 0 : r;
    });
  });
}
template <bool Max> Handler buildExtreme(const Form &f, std::string &) {
  if (f.type() == ptx::Type::U16x2)
    return extremeFor<std::uint16_t, Max, false>();
  return f.has("relu") ? extremeFor<std::int16_t, Max, true>() : extremeFor<std::int16_t, Max, false>();
}

/// |a - b| of four bytes.  `add`: their sum plus c.  Else the four bytes; `sat` clamps each to the destination's range.
template <bool SignedA, bool SignedB, bool SignedD, bool Add, bool Sat> Handler absDiffFor() {
  return lanes<U32, U32, U32, U32>([](U32 a, U32 b, U32 c) {
    U32 r = Add ? c : 0;
    for (unsigned i = 0; i < 4; ++i) {
      const int x = SignedA ? static_cast<std::int8_t>(a >> 8 * i) : static_cast<int>(a >> 8 * i & 0xFF);
      const int y = SignedB ? static_cast<std::int8_t>(b >> 8 * i) : static_cast<int>(b >> 8 * i & 0xFF);
      int v = x > y ? x - y : y - x;
      if (Add) {
        r += static_cast<U32>(v);
        continue;
      }
      if (Sat) {
        const int top = SignedD ? 127 : 255;
        v = v > top ? top : v;
      }
      r |= (static_cast<U32>(v) & 0xFF) << 8 * i;
    }
    return r;
  });
}
template <bool SignedA, bool SignedB, bool SignedD> Handler pickAbsDiff(const Form &f) {
  if (f.has("add"))
    return absDiffFor<SignedA, SignedB, SignedD, true, false>();
  return f.has("sat") ? absDiffFor<SignedA, SignedB, SignedD, false, true>()
                      : absDiffFor<SignedA, SignedB, SignedD, false, false>();
}
Handler buildAbsDiff(const Form &f, std::string &) {
  const bool d = f.type(0) == ptx::Type::S32, a = f.type(1) == ptx::Type::S32, b = f.type(2) == ptx::Type::S32;
  if (a)
    return b   ? d ? pickAbsDiff<true, true, true>(f) : pickAbsDiff<true, true, false>(f)
           : d ? pickAbsDiff<true, false, true>(f)
               : pickAbsDiff<true, false, false>(f);
  return b   ? d ? pickAbsDiff<false, true, true>(f) : pickAbsDiff<false, true, false>(f)
         : d ? pickAbsDiff<false, false, true>(f)
             : pickAbsDiff<false, false, false>(f);
}

constexpr const char *absDiffTypes = "u32.u32.u32|u32.u32.s32|u32.s32.u32|u32.s32.s32|"
                                     "s32.u32.u32|s32.u32.s32|s32.s32.u32|s32.s32.s32";

constexpr Row rows[] = {
    {"add", "", "u16x2|s16x2", "=0 0 0", 90, buildAdd},
    {"min", "", "u16x2|s16x2", "=0 0 0", 90, buildExtreme<false>},
    {"min", "relu", "s16x2", "=0 0 0", 90, buildExtreme<false>},
    {"max", "", "u16x2|s16x2", "=0 0 0", 90, buildExtreme<true>},
    {"max", "relu", "s16x2", "=0 0 0", 90, buildExtreme<true>},
    {"vabsdiff4", "add|sat?", absDiffTypes, "=b32 b32 b32 b32", 75, buildAbsDiff},
};

} // namespace

std::span<const Row> packedIntegerRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
