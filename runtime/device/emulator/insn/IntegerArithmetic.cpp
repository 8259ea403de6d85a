// add, sub, neg, abs, min, max, div, rem, mul, mad, sad on integers: section 1.2 of the emulator specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/LevelBegin.h"

#include "runtime/device/emulator/LaneOps.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

template <typename T> using Unsigned = std::make_unsigned_t<T>;
/// Unsigned arithmetic at least 32 bits wide: narrow types would promote to a signed int and could overflow.
template <typename T> using Wide = std::conditional_t<(sizeof(T) < 4), std::uint32_t, Unsigned<T>>;

Handler buildAdd(const Form &f, std::string &) {
  if (f.has("sat"))
    return lanes<std::int32_t, std::int32_t, std::int32_t>([](std::int32_t a, std::int32_t b) {
      const std::int64_t r = std::int64_t(a) + b;
      return static_cast<std::int32_t>(r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : r);
    });
  return onInteger(f.type(), []<typename T>() {
    return lanes<T, T, T>([](T a, T b) { return static_cast<T>(Wide<T>(a) + Wide<T>(b)); });
  });
}

Handler buildMin(const Form &f, std::string &) {
  if (f.has("relu"))
    return lanes<std::int32_t, std::int32_t, std::int32_t>([](std::int32_t a, std::int32_t b) {
      const std::int32_t r = a < b ? a : b;
      return r < 0 ? 0 : r;
    });
  return onInteger(f.type(), []<typename T>() { return lanes<T, T, T>([](T a, T b) { return a < b ? a : b; }); });
}

constexpr Row rows[] = {
    {"add", "", "u16|s16|u32|s32|u64|s64", "=0 0 0", 75, buildAdd},
    {"add", "sat", "s32", "=0 0 0", 75, buildAdd},
    {"min", "", "u16|s16|u32|s32|u64|s64", "=0 0 0", 75, buildMin},
    {"min", "relu", "s32", "=0 0 0", 80, buildMin},
};

} // namespace

std::span<const Row> integerArithmeticRows() { return rows; }

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/LevelEnd.h"
