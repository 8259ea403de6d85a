// shfl, vote, match, redux, activemask, elect: section 1.5 of the emulator specification.
//
// The executor has gathered the lanes of the member mask (OpKind MemberMask): warp.exec are the lanes that execute
// together, and the mask itself is in slot s[3].
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/LaneOps.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

using U32 = std::uint32_t;

enum class ShuffleMode { Up, Down, Bfly, Idx };

/// What a shuffle yields where the source lane does not take part: undefined on hardware, recognisable here.
constexpr U32 shufflePoison = 0xDEADBEEF;

template <ShuffleMode Mode> Next shuffleHandler(Warp &w, const Op &op) {
  const U32 *a = lanesOf<U32>(w, op.s[0]), *b = lanesOf<U32>(w, op.s[1]), *c = lanesOf<U32>(w, op.s[2]);
  U32 *d = lanesOf<U32>(w, op.d), *p = lanesOf<U32>(w, op.d2);
  alignas(64) U32 source[warpSize], inside[warpSize], value[warpSize];
  for (U32 l = 0; l < warpSize; ++l) {
    const U32 segment = c[l] >> 8 & 31, clamp = c[l] & 31, by = b[l] & 31;
    const U32 low = l & segment, limit = low | (clamp & ~segment);
    U32 j = 0;
    bool in = false;
    if (Mode == ShuffleMode::Up) {
      j = l - by;
      in = static_cast<std::int32_t>(l - by) >= static_cast<std::int32_t>(limit);
    } else {
      j = Mode == ShuffleMode::Down ? l + by : Mode == ShuffleMode::Bfly ? l ^ by : low | (by & ~segment);
      in = j <= limit;
    }
    source[l] = in ? j & 31 : l;
    inside[l] = in ? ~0u : 0u;
  }
  for (U32 l = 0; l < warpSize; ++l)
    value[l] = a[source[l]];
  const U32 exec = w.exec;
  U32 missing = 0;
  if (exec != fullMask) {
    for (U32 l = 0; l < warpSize; ++l)
      if (exec >> l & 1 && !(exec >> source[l] & 1)) {
        value[l] = shufflePoison;
        missing |= 1u << l;
      }
  }
  for (U32 l = 0; l < warpSize; ++l) {
    d[l] = exec >> l & 1 ? value[l] : d[l];
    p[l] = exec >> l & 1 ? inside[l] : p[l];
  }
  if (missing) {
    const unsigned l = static_cast<unsigned>(__builtin_ctz(missing));
    reportFinding(w, op, "shfl.inactive_source", missing,
                  "lane " + std::to_string(l) + " reads lane " + std::to_string(source[l]) +
                      ", which does not take part in the shuffle",
                  false);
  }
  return Next::Advance;
}

Handler buildShfl(const Form &f, std::string &) {
  return f.has("up")     ? &shuffleHandler<ShuffleMode::Up>
         : f.has("down") ? &shuffleHandler<ShuffleMode::Down>
         : f.has("bfly") ? &shuffleHandler<ShuffleMode::Bfly>
                         : &shuffleHandler<ShuffleMode::Idx>;
}

/// The executing lanes whose predicate holds.
inline U32 ballot(Warp &w, Slot predicate) {
  const U32 *p = lanesOf<U32>(w, predicate);
  U32 m = 0;
  for (U32 l = 0; l < warpSize; ++l)
    m |= (p[l] & 1) << l;
  return m & w.exec;
}

template <typename T> inline void broadcast(Warp &w, Slot slot, T value) {
  StorageOf<T> *d = lanesOf<T>(w, slot);
  const StorageOf<T> v = LaneTraits<T>::store(value);
  for (U32 l = 0; l < warpSize; ++l)
    d[l] = w.exec >> l & 1 ? v : d[l];
}

Handler buildVotePredicate(const Form &f, std::string &) {
  if (f.has("all"))
    return [](Warp &w, const Op &op) {
      broadcast(w, op.d, ballot(w, op.s[0]) == w.exec);
      return Next::Advance;
    };
  if (f.has("any"))
    return [](Warp &w, const Op &op) {
      broadcast(w, op.d, ballot(w, op.s[0]) != 0);
      return Next::Advance;
    };
  return [](Warp &w, const Op &op) {
    const U32 m = ballot(w, op.s[0]);
    broadcast(w, op.d, m == 0 || m == w.exec);
    return Next::Advance;
  };
}
Handler buildVoteBallot(const Form &, std::string &) {
  return [](Warp &w, const Op &op) {
    broadcast(w, op.d, ballot(w, op.s[0]));
    return Next::Advance;
  };
}

template <typename T> Next matchAnyHandler(Warp &w, const Op &op) {
  const T *a = lanesOf<T>(w, op.s[0]);
  U32 *d = lanesOf<U32>(w, op.d);
  alignas(64) U32 out[warpSize];
  for (U32 l = 0; l < warpSize; ++l) {
    U32 m = 0;
    for (U32 j = 0; j < warpSize; ++j)
      m |= U32(a[j] == a[l]) << j;
    out[l] = m & w.exec;
  }
  for (U32 l = 0; l < warpSize; ++l)
    d[l] = w.exec >> l & 1 ? out[l] : d[l];
  return Next::Advance;
}
template <typename T> Next matchAllHandler(Warp &w, const Op &op) {
  const T *a = lanesOf<T>(w, op.s[0]);
  const T first = a[__builtin_ctz(w.exec)];
  bool equal = true;
  eachLane(w.exec, [&](unsigned l) { equal &= a[l] == first; });
  broadcast(w, op.d, equal ? w.exec : 0u);
  broadcast(w, op.d2, equal);
  return Next::Advance;
}
Handler buildMatchAny(const Form &f, std::string &) {
  return f.type() == ptx::Type::B64 ? &matchAnyHandler<std::uint64_t> : &matchAnyHandler<U32>;
}
Handler buildMatchAll(const Form &f, std::string &) {
  return f.type() == ptx::Type::B64 ? &matchAllHandler<std::uint64_t> : &matchAllHandler<U32>;
}

/// d = the executing lanes' values combined, in every executing lane.
template <typename T, typename Fn> Next reduceHandler(Warp &w, const Op &op) {
  const StorageOf<T> *a = lanesOf<T>(w, op.s[0]);
  T r = LaneTraits<T>::load(a[__builtin_ctz(w.exec)]);
  eachLane(w.exec & (w.exec - 1), [&](unsigned l) { r = Fn{}(r, LaneTraits<T>::load(a[l])); });
  broadcast(w, op.d, r);
  return Next::Advance;
}
template <typename T, typename Fn> Handler reduceWith(Fn) {
  return &reduceHandler<T, Fn>;
}

template <typename T> Handler reduxInteger(const Form &f) {
  if (f.has("add"))
    return reduceWith<T>([](T a, T b) { return static_cast<T>(U32(a) + U32(b)); });
  if (f.has("min"))
    return reduceWith<T>([](T a, T b) { return a < b ? a : b; });
  return reduceWith<T>([](T a, T b) { return a > b ? a : b; });
}
Handler buildReduxInteger(const Form &f, std::string &) {
  return f.type() == ptx::Type::S32 ? reduxInteger<std::int32_t>(f) : reduxInteger<U32>(f);
}
Handler buildReduxBits(const Form &f, std::string &) {
  if (f.has("and"))
    return reduceWith<U32>([](U32 a, U32 b) { return a & b; });
  if (f.has("or"))
    return reduceWith<U32>([](U32 a, U32 b) { return a | b; });
  return reduceWith<U32>([](U32 a, U32 b) { return a ^ b; });
}

/// min / max of floats as bits: NaN is dropped unless Propagate, then the canonical one; -0 < +0.
template <bool Max, bool Propagate, bool Magnitude> inline float extreme(float a, float b) {
  if (Magnitude) {
    a = __builtin_fabsf(a);
    b = __builtin_fabsf(b);
  }
  const bool nanA = a != a, nanB = b != b;
  const float canonical = __builtin_bit_cast(float, 0x7fffffffu);
  if (nanA || nanB)
    return Propagate || (nanA && nanB) ? canonical : nanA ? b : a;
  if (a == b)
    return __builtin_signbitf(a) != 0 == Max ? b : a;
  return (a < b) != Max ? a : b;
}
template <bool Max, bool Propagate> Handler reduxFloat(bool magnitude) {
  if (magnitude)
    return reduceWith<float>([](float a, float b) { return extreme<Max, Propagate, true>(a, b); });
  return reduceWith<float>([](float a, float b) { return extreme<Max, Propagate, false>(a, b); });
}
Handler buildReduxFloat(const Form &f, std::string &) {
  const bool nan = f.has("NaN"), magnitude = f.has("abs");
  if (f.has("max"))
    return nan ? reduxFloat<true, true>(magnitude) : reduxFloat<true, false>(magnitude);
  return nan ? reduxFloat<false, true>(magnitude) : reduxFloat<false, false>(magnitude);
}

Handler buildActivemask(const Form &, std::string &) {
  return [](Warp &w, const Op &op) {
    broadcast(w, op.d, w.exec);
    return Next::Advance;
  };
}

/// The lowest lane of the mask is elected; its number goes to every lane.
Handler buildElect(const Form &, std::string &) {
  return [](Warp &w, const Op &op) {
    const U32 leader = static_cast<U32>(__builtin_ctz(w.exec));
    broadcast(w, op.d, leader);
    U32 *p = lanesOf<U32>(w, op.d2);
    eachLane(w.exec, [&](unsigned l) { p[l] = l == leader ? ~0u : 0u; });
    return Next::Advance;
  };
}

constexpr Row rows[] = {
    {"shfl", "sync up|down|bfly|idx", "b32", "=b32|p b32 u32 u32 m", 75, buildShfl, MemberMask},
    {"vote", "sync all|any|uni", "pred", "=p p m", 75, buildVotePredicate, MemberMask},
    {"vote", "sync ballot", "b32", "=b32 p m", 75, buildVoteBallot, MemberMask},
    {"match", "any sync", "b32|b64", "=b32 0 m", 75, buildMatchAny, MemberMask},
    {"match", "all sync", "b32|b64", "=b32|p 0 m", 75, buildMatchAll, MemberMask},
    {"redux", "sync add|min|max", "u32|s32", "=0 0 m", 80, buildReduxInteger, MemberMask},
    {"redux", "sync and|or|xor", "b32", "=0 0 m", 80, buildReduxBits, MemberMask},
    {"redux", "sync min|max abs? NaN?", "f32", "=0 0 m", 100, buildReduxFloat, MemberMask, nullptr, true},
    {"activemask", "", "b32", "=b32", 75, buildActivemask},
    {"elect", "sync", "", "=b32|p m", 90, buildElect, MemberMask},
};

} // namespace

std::span<const Row> warpOpsRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
