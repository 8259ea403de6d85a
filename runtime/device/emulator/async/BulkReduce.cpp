#include "runtime/device/emulator/async/BulkReduce.h"

#include <cstring>
#include <iterator>
#include <type_traits>

namespace kiln::emulator {

namespace {

/// Old and given value to the new one; Integer: changed with the host's atomics.
template <typename T, typename Fn> void each(std::byte *to, const std::byte *from, std::uint32_t bytes) {
  for (std::uint32_t at = 0; at < bytes; at += sizeof(T)) {
    T value;
    std::memcpy(&value, from + at, sizeof value);
    T *place = reinterpret_cast<T *>(to + at);
    if constexpr (std::is_integral_v<T> && sizeof(T) >= 4) {
      T old = __atomic_load_n(place, __ATOMIC_RELAXED);
      while (!__atomic_compare_exchange_n(place, &old, Fn{}(old, value), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      }
    } else {
      T old;
      std::memcpy(&old, place, sizeof old);
      const T fresh = Fn{}(old, value);
      std::memcpy(place, &fresh, sizeof fresh);
    }
  }
}

struct Add {
  template <typename T> T operator()(T a, T b) const {
    return static_cast<T>(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  }
};
struct Min {
  template <typename T> T operator()(T a, T b) const { return a < b ? a : b; }
};
struct Max {
  template <typename T> T operator()(T a, T b) const { return a > b ? a : b; }
};
struct Inc {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a >= b ? 0 : a + 1; }
};
struct Dec {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a == 0 || a > b ? b : a - 1; }
};
struct And {
  template <typename T> T operator()(T a, T b) const { return a & b; }
};
struct Or {
  template <typename T> T operator()(T a, T b) const { return a | b; }
};
struct Xor {
  template <typename T> T operator()(T a, T b) const { return a ^ b; }
};

float flushed(float x) {
  const auto b = __builtin_bit_cast(std::uint32_t, x);
  return __builtin_bit_cast(float, (b & 0x7f800000u) == 0 ? b & 0x80000000u : b);
}
template <bool Ftz> struct AddFloat {
  float operator()(float a, float b) const {
    const float sum = Ftz ? flushed(flushed(a) + flushed(b)) : a + b;
    return sum != sum ? __builtin_bit_cast(float, 0x7fffffffu) : sum;
  }
};
struct AddDouble {
  double operator()(double a, double b) const {
    const double sum = a + b;
    return sum != sum ? __builtin_bit_cast(double, std::uint64_t(0xfff8000000000000)) : sum;
  }
};

constexpr std::uint16_t canonicalNan16 = 0x7fff;
struct F16 {
  static float widen(std::uint16_t h) { return static_cast<float>(__builtin_bit_cast(_Float16, h)); }
  static std::uint16_t narrow(float x) { return __builtin_bit_cast(std::uint16_t, static_cast<_Float16>(x)); }
};
struct Bf16 {
  static float widen(std::uint16_t h) { return __builtin_bit_cast(float, std::uint32_t(h) << 16); }
  static std::uint16_t narrow(float x) {
    const auto b = __builtin_bit_cast(std::uint32_t, x);
    return static_cast<std::uint16_t>((b + 0x7fff + (b >> 16 & 1)) >> 16);
  }
};
/// An f32 sum has more than twice the bits of the operands, so rounding twice is rounding once.
template <typename H> struct AddHalf {
  std::uint16_t operator()(std::uint16_t a, std::uint16_t b) const {
    const float sum = H::widen(a) + H::widen(b);
    return sum != sum ? canonicalNan16 : H::narrow(sum);
  }
};
/// A NaN is dropped, two give the canonical one, -0 < +0.
template <typename H, bool Largest> struct ExtremeHalf {
  std::uint16_t operator()(std::uint16_t a, std::uint16_t b) const {
    const float x = H::widen(a), y = H::widen(b);
    if (x != x || y != y)
      return x != x && y != y ? canonicalNan16 : x != x ? b : a;
    if (x == y)
      return (a >> 15 != 0) == Largest ? b : a;
    return (x < y) != Largest ? a : b;
  }
};

template <typename T> Combine extreme(ReduceOp op) {
  return op == ReduceOp::Min ? each<T, Min> : op == ReduceOp::Max ? each<T, Max> : nullptr;
}
template <typename T> Combine bitwise(ReduceOp op) {
  return op == ReduceOp::And ? each<T, And> : op == ReduceOp::Or ? each<T, Or> : each<T, Xor>;
}
template <typename H> Combine half(ReduceOp op) {
  return op == ReduceOp::Add   ? each<std::uint16_t, AddHalf<H>>
         : op == ReduceOp::Min ? each<std::uint16_t, ExtremeHalf<H, false>>
         : op == ReduceOp::Max ? each<std::uint16_t, ExtremeHalf<H, true>>
                               : nullptr;
}

constexpr std::string_view names[] = {"", "add", "min", "max", "inc", "dec", "and", "or", "xor"};

} // namespace

Combine combineOf(ReduceOp op, ReduceType type) {
  const bool bits = op == ReduceOp::And || op == ReduceOp::Or || op == ReduceOp::Xor;
  switch (type) {
  case ReduceType::U32:
    return bits                  ? bitwise<std::uint32_t>(op)
           : op == ReduceOp::Add ? each<std::uint32_t, Add>
           : op == ReduceOp::Inc ? each<std::uint32_t, Inc>
           : op == ReduceOp::Dec ? each<std::uint32_t, Dec>
                                 : extreme<std::uint32_t>(op);
  case ReduceType::S32:
    return bits                  ? bitwise<std::uint32_t>(op)
           : op == ReduceOp::Add ? each<std::int32_t, Add>
                                 : extreme<std::int32_t>(op);
  case ReduceType::U64:
    return bits                  ? bitwise<std::uint64_t>(op)
           : op == ReduceOp::Add ? each<std::uint64_t, Add>
                                 : extreme<std::uint64_t>(op);
  case ReduceType::S64:
    return bits                  ? bitwise<std::uint64_t>(op)
           : op == ReduceOp::Add ? each<std::int64_t, Add>
                                 : extreme<std::int64_t>(op);
  case ReduceType::F16:
    return half<F16>(op);
  case ReduceType::Bf16:
    return half<Bf16>(op);
  case ReduceType::F32:
    return op == ReduceOp::Add ? each<float, AddFloat<false>> : nullptr;
  case ReduceType::F32Ftz:
    return op == ReduceOp::Add ? each<float, AddFloat<true>> : nullptr;
  case ReduceType::F64:
    return op == ReduceOp::Add ? each<double, AddDouble> : nullptr;
  }
  return nullptr;
}

Combine combineOf(ReduceOp op, TensorMapType type) {
  switch (type) {
  case TensorMapType::U32:
    return combineOf(op, ReduceType::U32);
  case TensorMapType::S32:
    return combineOf(op, ReduceType::S32);
  case TensorMapType::U64:
    return combineOf(op, ReduceType::U64);
  case TensorMapType::S64: // of the rest the hardware traps
    return op == ReduceOp::Min || op == ReduceOp::Max ? combineOf(op, ReduceType::S64) : nullptr;
  case TensorMapType::F16:
    return combineOf(op, ReduceType::F16);
  case TensorMapType::Bf16:
    return combineOf(op, ReduceType::Bf16);
  case TensorMapType::F32:
  case TensorMapType::Tf32:
    return combineOf(op, ReduceType::F32);
  case TensorMapType::F32Ftz:
  case TensorMapType::Tf32Ftz:
    return combineOf(op, ReduceType::F32Ftz);
  case TensorMapType::F64:
    return combineOf(op, ReduceType::F64);
  default:
    return nullptr;
  }
}

ReduceOp reduceOpOf(std::string_view name) {
  for (std::size_t i = 1; i < std::size(names); ++i)
    if (names[i] == name)
      return static_cast<ReduceOp>(i);
  return ReduceOp::None;
}

std::string_view reduceOpName(ReduceOp op) {
  return names[static_cast<std::size_t>(op)];
}

} // namespace kiln::emulator
