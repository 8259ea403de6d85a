//===- Fragments.h - Matrix elements between registers and tiles ----------===//
//
// The lanes of a warp hold matrices in fragments (section 2 of the code generation reference).  All of mma.sync follow
// one rule: lane 4g + t holds, of A, row g and of B, column g, the elements of K from P t on, P being the elements of a
// register; further registers of A lie 8 rows down, then 4P further along K, of B 4P along K.  Of C and D it holds
// row g, columns 2t and 2t + 1, and the same 8 rows down.  A register of 32 lanes is so an 8 x 4 block, g by t, to be
// transposed: tiles (MatrixTile.h) have 16 rows next to each other.
//
// Included between LevelBegin.h and LevelEnd.h, after LaneOps.h or FloatLanes.h.  No include guard: once a family file.
//
//===----------------------------------------------------------------------===//

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

constexpr unsigned width = 16;
using Ints = std::int32_t __attribute__((ext_vector_type(width)));
using Words = std::uint32_t __attribute__((ext_vector_type(width)));
using Longs = std::int64_t __attribute__((ext_vector_type(width)));
using Floats = float __attribute__((ext_vector_type(width)));
using Doubles = double __attribute__((ext_vector_type(width)));

template <typename To, typename From> [[gnu::always_inline]] inline To bitsAs(From v) {
  return __builtin_bit_cast(To, v);
}
template <typename V, typename T> [[gnu::always_inline]] inline V loadVector(const T *p) {
  V v;
  __builtin_memcpy(&v, __builtin_assume_aligned(p, 64), sizeof v);
  return v;
}
template <typename V, typename T> [[gnu::always_inline]] inline void storeVector(T *p, V v) {
  __builtin_memcpy(__builtin_assume_aligned(p, 64), &v, sizeof v);
}
/// Lanes of `a` where the mask is -1, of `b` where it is 0.
template <typename V> [[gnu::always_inline]] inline V choose(Ints mask, V a, V b) {
  return bitsAs<V>((bitsAs<Ints>(a) & mask) | (bitsAs<Ints>(b) & ~mask));
}
[[gnu::always_inline]] inline bool anyLane(Ints mask) {
  return __builtin_reduce_or(mask) != 0;
}

//===--- registers -------------------------------------------------------===//

using Lanes = std::uint32_t __attribute__((ext_vector_type(warpSize)));
using Eight = std::uint32_t __attribute__((ext_vector_type(8)));

/// What operands read as that belong to lanes which do not take part: undefined on hardware, recognisable here.
constexpr std::uint32_t missingValue = 0xDEADBEEFu;

/// A register of all lanes.
template <bool Full> [[gnu::always_inline]] inline Lanes loadLanes(const Warp &w, Slot slot) {
  Lanes v = loadVector<Lanes>(lanesOf<std::uint32_t>(w, slot));
  if constexpr (!Full)
    for (unsigned l = 0; l < warpSize; ++l)
      v[l] = w.exec >> l & 1 ? v[l] : missingValue;
  return v;
}
template <bool Full> [[gnu::always_inline]] inline void storeLanes(const Warp &w, Slot slot, Lanes v) {
  std::uint32_t *d = lanesOf<std::uint32_t>(w, slot);
  if constexpr (Full)
    return storeVector(d, v);
  for (unsigned l = 0; l < warpSize; ++l)
    d[l] = w.exec >> l & 1 ? v[l] : d[l];
}

/// Column t of the 8 x 4 block.
template <unsigned T> [[gnu::always_inline]] inline Eight blockColumn(Lanes v) {
  return __builtin_shufflevector(v, v, T, T + 4, T + 8, T + 12, T + 16, T + 20, T + 24, T + 28);
}
[[gnu::always_inline]] inline Words joined(Eight low, Eight high) {
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
/// The block with these columns.
[[gnu::always_inline]] inline Lanes blockOf(Eight t0, Eight t1, Eight t2, Eight t3) {
  const Words a = __builtin_shufflevector(t0, t1, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
  const Words b = __builtin_shufflevector(t2, t3, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
  return __builtin_shufflevector(a, b, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23, 8, 9, 24, 25, 10, 11, 26,
                                 27, 12, 13, 28, 29, 14, 15, 30, 31);
}

/// Calls f.operator()<T>() for T = 0 .. 3.
template <typename Fn> [[gnu::always_inline]] inline void eachColumn(Fn f) {
  f.template operator()<0>();
  f.template operator()<1>();
  f.template operator()<2>();
  f.template operator()<3>();
}

/// Where element p of the registers of lanes with t goes along k.
template <unsigned Bits> struct InOrder {
  unsigned operator()(unsigned t, unsigned p) const { return t * (32 / Bits) + p; }
};

/// Elements of a register of 8 rows (or columns) into raw[place(t, p) * 8 + g]; bits above an element may be set.
template <unsigned Bits, typename Place>
[[gnu::always_inline]] inline void unpackEight(Lanes v, std::uint32_t *raw, Place place) {
  constexpr unsigned perRegister = 32 / Bits;
  eachColumn([&]<unsigned T>() __attribute__((always_inline)) {
    const Eight column = blockColumn<T>(v);
    for (unsigned p = 0; p < perRegister; ++p) {
      const Eight element = column >> (p * Bits);
      __builtin_memcpy(raw + place(T, p) * 8, &element, sizeof element);
    }
  });
}
/// Of two registers, the second 8 rows down, into raw[place(t, p) * 16 + row].
template <unsigned Bits, typename Place>
[[gnu::always_inline]] inline void unpackSixteen(Lanes low, Lanes high, std::uint32_t *raw, Place place) {
  constexpr unsigned perRegister = 32 / Bits;
  eachColumn([&]<unsigned T>() __attribute__((always_inline)) {
    const Words column = joined(blockColumn<T>(low), blockColumn<T>(high));
    for (unsigned p = 0; p < perRegister; ++p)
      storeVector(raw + place(T, p) * 16, column >> (p * Bits));
  });
}

/// C of 32-bit elements: registers of column 2t and 2t + 1, and both again 8 rows down, into tile[column * stride +
/// row].
[[gnu::always_inline]] inline void unpackTile(Lanes c0, Lanes c1, Lanes c2, Lanes c3, std::uint32_t *tile,
                                              std::uint32_t stride) {
  eachColumn([&]<unsigned T>() __attribute__((always_inline)) {
    storeVector(tile + (2 * T) * stride, joined(blockColumn<T>(c0), blockColumn<T>(c2)));
    storeVector(tile + (2 * T + 1) * stride, joined(blockColumn<T>(c1), blockColumn<T>(c3)));
  });
}
/// C of f16 pairs: a register of columns 2t (low half) and 2t + 1, and one 8 rows down.
[[gnu::always_inline]] inline void unpackHalfTile(Lanes c0, Lanes c1, std::uint32_t *tile, std::uint32_t stride) {
  eachColumn([&]<unsigned T>() __attribute__((always_inline)) {
    const Words pair = joined(blockColumn<T>(c0), blockColumn<T>(c1));
    storeVector(tile + (2 * T) * stride, pair & 0xffffu);
    storeVector(tile + (2 * T + 1) * stride, pair >> 16);
  });
}
/// The register of D for columns 2t + odd, rows from `tile` on.
[[gnu::always_inline]] inline Lanes packTile(const std::uint32_t *tile, std::uint32_t stride, unsigned odd) {
  Eight column[4];
  for (unsigned t = 0; t < 4; ++t)
    __builtin_memcpy(&column[t], tile + (2 * t + odd) * stride, sizeof(Eight));
  return blockOf(column[0], column[1], column[2], column[3]);
}
[[gnu::always_inline]] inline Lanes packHalfTile(const std::uint32_t *tile, std::uint32_t stride) {
  return packTile(tile, stride, 0) | packTile(tile, stride, 1) << 16;
}

/// Lanes that exited or that the block does not have.  Where lanes are elsewhere, `aligned.divergent` was reported.
inline void reportMissingLanes(Warp &w, const Op &op, const char *consequence) {
  constexpr char id[] = "matrix.missing_lane";
  if (w.exec != w.alive || countFinding(w, op, id))
    return;
  reportFinding(
      w, op, id, w.exec,
      format("lanes 0x%08x of the warp have exited or do not exist; all 32 must take part: %s", ~w.exec, consequence),
      false);
}

} // namespace
} // namespace kiln::emulator::KILN_EMULATOR_LEVEL
