//===- IntegerLanes.h - Wrapping and saturating lane arithmetic -----------===//
//
// What the integer families share.  Invariant: nothing here overflows a signed type, which the compiler may take to be
// impossible; wrapping happens in unsigned types of at least 32 bits.
//
// Included between LevelBegin.h and LevelEnd.h, in place of LaneOps.h.  No include guard.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/emulator/insn/LaneOps.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

template <typename T> using Unsigned = std::make_unsigned_t<T>;
/// Unsigned arithmetic at least 32 bits wide: narrow types would promote to a signed int and could overflow.
template <typename T> using Wide = std::conditional_t<(sizeof(T) < 4), std::uint32_t, Unsigned<T>>;

template <typename T> inline T wrapAdd(T a, T b) {
  return static_cast<T>(Wide<T>(a) + Wide<T>(b));
}
template <typename T> inline T wrapSub(T a, T b) {
  return static_cast<T>(Wide<T>(a) - Wide<T>(b));
}

/// .sat of the integer instructions: clamps to the range of s32.
inline std::int32_t saturate(std::int64_t v) {
  return static_cast<std::int32_t>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}

} // namespace
} // namespace kiln::emulator::KILN_EMULATOR_LEVEL
