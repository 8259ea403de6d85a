//===- LaneOps.h - Handlers from per-lane functions -----------------------===//
//
// Turns a stateless function on lane values into a Handler: a loop over 32 lanes that the host compiler vectorises, and a
// second one that keeps the inactive lanes.  Included between LevelBegin.h and LevelEnd.h only, so that every CPU level
// has its own copy.
//
//   lanes<float, float, float>([](float a, float b) { return a + b; })       d = f(s0, s1)
//
// Lane types: integers, float, double, bool (a predicate), F16, BF16 (bits of a half), Pair (32 bits of a packed type).
//
//===----------------------------------------------------------------------===//
// No include guard: it defines templates in the level's namespace, once a family file.

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

struct F16 { std::uint16_t bits; };
struct BF16 { std::uint16_t bits; };
struct Pair { std::uint32_t bits; };

/// How a lane value of type T lies in its slot.
template <typename T> struct LaneTraits {
  using Storage = std::uint32_t;
  static T load(Storage v) { return static_cast<T>(v); }
  static Storage store(T v) { return static_cast<std::make_unsigned_t<T>>(v); }
};
template <> struct LaneTraits<bool> {
  using Storage = std::uint32_t;
  static bool load(Storage v) { return v != 0; }
  static Storage store(bool v) { return v ? ~0u : 0u; }
};
template <> struct LaneTraits<std::uint64_t> {
  using Storage = std::uint64_t;
  static std::uint64_t load(Storage v) { return v; }
  static Storage store(std::uint64_t v) { return v; }
};
template <> struct LaneTraits<std::int64_t> {
  using Storage = std::uint64_t;
  static std::int64_t load(Storage v) { return static_cast<std::int64_t>(v); }
  static Storage store(std::int64_t v) { return static_cast<std::uint64_t>(v); }
};
template <> struct LaneTraits<float> {
  using Storage = std::uint32_t;
  static float load(Storage v) { return __builtin_bit_cast(float, v); }
  static Storage store(float v) { return __builtin_bit_cast(std::uint32_t, v); }
};
template <> struct LaneTraits<double> {
  using Storage = std::uint64_t;
  static double load(Storage v) { return __builtin_bit_cast(double, v); }
  static Storage store(double v) { return __builtin_bit_cast(std::uint64_t, v); }
};
template <typename T> struct BitsTraits {
  using Storage = std::uint32_t;
  static T load(Storage v) { return T{static_cast<decltype(T::bits)>(v)}; }
  static Storage store(T v) { return v.bits; }
};
template <> struct LaneTraits<F16> : BitsTraits<F16> {};
template <> struct LaneTraits<BF16> : BitsTraits<BF16> {};
template <> struct LaneTraits<Pair> : BitsTraits<Pair> {};

template <typename T> using StorageOf = typename LaneTraits<T>::Storage;

template <typename T> inline StorageOf<T> *lanesOf(const Warp &w, Slot slot) {
  return static_cast<StorageOf<T> *>(__builtin_assume_aligned(w.registers + slot, 64));
}

template <typename Fn, typename R, typename... A, std::size_t... I>
inline Next laneLoop(Warp &w, const Op &op, std::index_sequence<I...>) {
  StorageOf<R> *d = lanesOf<R>(w, op.d);
  std::tuple<const StorageOf<A> *...> s{lanesOf<A>(w, op.s[I])...};
  const std::uint32_t exec = w.exec;
  if (exec == fullMask) {
#pragma clang loop vectorize(assume_safety)
    for (unsigned l = 0; l < warpSize; ++l)
      d[l] = LaneTraits<R>::store(Fn{}(LaneTraits<A>::load(std::get<I>(s)[l])...));
  } else {
#pragma clang loop vectorize(assume_safety)
    for (unsigned l = 0; l < warpSize; ++l) {
      const StorageOf<R> v = LaneTraits<R>::store(Fn{}(LaneTraits<A>::load(std::get<I>(s)[l])...));
      d[l] = exec >> l & 1 ? v : d[l];
    }
  }
  return Next::Advance;
}

template <typename Fn, typename R, typename... A> Next laneHandler(Warp &w, const Op &op) {
  return laneLoop<Fn, R, A...>(w, op, std::index_sequence_for<A...>{});
}

/// Handler of d = f(s0, s1, ...) with result type R and argument types A; f is a stateless lambda.
template <typename R, typename... A, typename Fn> constexpr Handler lanes(Fn) { return &laneHandler<Fn, R, A...>; }

/// One loop over the active lanes, scalar: for rare or irregular instructions.  f(lane).
template <typename Fn> inline void eachLane(std::uint32_t exec, Fn f) {
  for (std::uint32_t m = exec; m; m &= m - 1)
    f(static_cast<unsigned>(__builtin_ctz(m)));
}

/// Calls f.template operator()<T>() with the C++ type of an integer (or bit) PTX type; nullptr for other types.
template <typename Fn> inline Handler onInteger(ptx::Type t, Fn f) {
  switch (t) {
  case ptx::Type::U16: case ptx::Type::B16: return f.template operator()<std::uint16_t>();
  case ptx::Type::S16: return f.template operator()<std::int16_t>();
  case ptx::Type::U32: case ptx::Type::B32: return f.template operator()<std::uint32_t>();
  case ptx::Type::S32: return f.template operator()<std::int32_t>();
  case ptx::Type::U64: case ptx::Type::B64: return f.template operator()<std::uint64_t>();
  case ptx::Type::S64: return f.template operator()<std::int64_t>();
  default: return nullptr;
  }
}

} // namespace
} // namespace kiln::emulator::KILN_EMULATOR_LEVEL
