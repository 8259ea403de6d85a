// setp, set, selp, slct on every type: sections 1.2 and 1.3 of the emulator specification.
#include "runtime/device/emulator/insn/Families.h"

#include "runtime/device/emulator/execute/LevelBegin.h"

#include "runtime/device/emulator/insn/FloatLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

/// The ordered outcomes, and `U` = one operand is NaN: a comparison is the set of outcomes for which it holds.
enum Outcome : unsigned { Less = 1, Equal = 2, Greater = 4, Unordered = 8 };

unsigned outcomesOf(const Form &f) {
  struct Spelling {
    const char *name;
    unsigned outcomes;
  };
  constexpr Spelling spellings[] = {{"eq", Equal},
                                    {"ne", Less | Greater},
                                    {"lt", Less},
                                    {"le", Less | Equal},
                                    {"gt", Greater},
                                    {"ge", Greater | Equal},
                                    {"lo", Less},
                                    {"ls", Less | Equal},
                                    {"hi", Greater},
                                    {"hs", Greater | Equal},
                                    {"equ", Equal | Unordered},
                                    {"neu", Less | Greater | Unordered},
                                    {"ltu", Less | Unordered},
                                    {"leu", Less | Equal | Unordered},
                                    {"gtu", Greater | Unordered},
                                    {"geu", Greater | Equal | Unordered},
                                    {"num", Less | Equal | Greater},
                                    {"nan", Unordered}};
  for (const Spelling &s : spellings)
    if (f.has(s.name))
      return s.outcomes;
  return 0;
}

/// Exact: both half formats embed in f32.
inline float widen(F16 h) {
  return toFloat(h);
}
inline float widen(BF16 h) {
  return toFloat(h);
}
template <typename T> inline T widen(T v) {
  return v;
}

/// Subnormal inputs count as zero of the same sign.
inline float flush(float v) {
  return flushed(v);
}
inline double flush(double v) {
  return v;
}
inline F16 flush(F16 h) {
  return (h.bits & 0x7C00) == 0 ? F16{static_cast<std::uint16_t>(h.bits & 0x8000)} : h;
}
template <typename T> inline T flush(T v) {
  return v;
}

template <unsigned Outcomes, bool Ftz, typename T> inline bool holds(T x, T y) {
  const auto a = widen(Ftz ? flush(x) : x), b = widen(Ftz ? flush(y) : y);
  bool r = false;
  if (Outcomes & Less)
    r |= a < b;
  if (Outcomes & Equal)
    r |= a == b;
  if (Outcomes & Greater)
    r |= a > b;
  if constexpr (std::is_floating_point_v<decltype(widen(x))>)
    if (Outcomes & Unordered)
      r |= __builtin_isunordered(a, b);
  return r;
}

/// Op::flags of this family: how the third operand joins, and what `set` writes for true.
enum : std::uint16_t { CombineMask = 3, CombineAnd = 1, CombineOr = 2, CombineXor = 3, TrueShift = 2 };
constexpr U32 trueValues[] = {0xFFFFFFFFu, 0x3F800000u /* 1.0f */, 0xFFFFu, 0x3C00u /* f16 1 */, 0x3F80u /* bf16 1 */};

std::uint16_t combineFlag(const Form &f) {
  return f.has("and") ? CombineAnd : f.has("or") ? CombineOr : f.has("xor") ? CombineXor : 0;
}

inline void combine(U32 *t, const U32 *c, unsigned how) {
  switch (how) {
  case CombineAnd:
    for (U32 l = 0; l < warpSize; ++l)
      t[l] &= c[l];
    return;
  case CombineOr:
    for (U32 l = 0; l < warpSize; ++l)
      t[l] |= c[l];
    return;
  case CombineXor:
    for (U32 l = 0; l < warpSize; ++l)
      t[l] ^= c[l];
    return;
  default:
    return;
  }
}

inline void storeActive(Warp &w, Slot slot, const U32 *v) {
  U32 *d = lanesOf<U32>(w, slot);
  if (w.exec == fullMask) {
    for (U32 l = 0; l < warpSize; ++l)
      d[l] = v[l];
    return;
  }
  for (U32 l = 0; l < warpSize; ++l)
    d[l] = w.exec >> l & 1 ? v[l] : d[l];
}

/// t = the comparison, a lane at a time.  Not inlined: setp and set share one copy of each loop, which is most of the
/// code of this family.
template <unsigned Outcomes, bool Ftz, typename T> [[gnu::noinline]] void compareLanes(Warp &w, const Op &op, U32 *t) {
  const StorageOf<T> *a = lanesOf<T>(w, op.s[0]), *b = lanesOf<T>(w, op.s[1]);
  for (U32 l = 0; l < warpSize; ++l)
    t[l] = holds<Outcomes, Ftz, T>(LaneTraits<T>::load(a[l]), LaneTraits<T>::load(b[l])) ? ~0u : 0u;
}

/// p = t op c, q = !t op c.
[[gnu::noinline]] void finishSetp(Warp &w, const Op &op, U32 *t) {
  const unsigned how = op.flags & CombineMask;
  if (how == 0 && op.d2 == trashSlot) {
    storeActive(w, op.d, t);
    return;
  }
  alignas(64) U32 n[warpSize];
  for (U32 l = 0; l < warpSize; ++l)
    n[l] = ~t[l];
  if (how) {
    const U32 *c = lanesOf<U32>(w, op.s[2]);
    combine(t, c, how);
    combine(n, c, how);
  }
  storeActive(w, op.d, t);
  storeActive(w, op.d2, n);
}
template <unsigned Outcomes, bool Ftz, typename T> Next setpHandler(Warp &w, const Op &op) {
  alignas(64) U32 t[warpSize];
  compareLanes<Outcomes, Ftz, T>(w, op, t);
  finishSetp(w, op, t);
  return Next::Advance;
}

[[gnu::noinline]] void finishSet(Warp &w, const Op &op, U32 *t) {
  if (op.flags & CombineMask)
    combine(t, lanesOf<U32>(w, op.s[2]), op.flags & CombineMask);
  const U32 one = trueValues[op.flags >> TrueShift];
  for (U32 l = 0; l < warpSize; ++l)
    t[l] &= one;
  storeActive(w, op.d, t);
}
template <unsigned Outcomes, bool Ftz, typename T> Next setHandler(Warp &w, const Op &op) {
  alignas(64) U32 t[warpSize];
  compareLanes<Outcomes, Ftz, T>(w, op, t);
  finishSet(w, op, t);
  return Next::Advance;
}

/// Both halves of a packed pair: setp writes the low half's outcome to p and the high half's to q, set packs them.
template <unsigned Outcomes, bool Ftz, typename Half>
[[gnu::noinline]] void comparePacked(Warp &w, const Op &op, U32 (*t)[warpSize]) {
  const U32 *a = lanesOf<U32>(w, op.s[0]), *b = lanesOf<U32>(w, op.s[1]);
  for (unsigned h = 0; h < 2; ++h)
    for (U32 l = 0; l < warpSize; ++l) {
      const Half x{static_cast<std::uint16_t>(a[l] >> 16 * h)}, y{static_cast<std::uint16_t>(b[l] >> 16 * h)};
      t[h][l] = holds<Outcomes, Ftz, Half>(x, y) ? ~0u : 0u;
    }
}
template <unsigned Outcomes, bool Ftz, typename Half, bool Predicates> Next packedHandler(Warp &w, const Op &op) {
  alignas(64) U32 t[2][warpSize];
  comparePacked<Outcomes, Ftz, Half>(w, op, t);
  if (op.flags & CombineMask) {
    const U32 *c = lanesOf<U32>(w, op.s[2]);
    combine(t[0], c, op.flags & CombineMask);
    combine(t[1], c, op.flags & CombineMask);
  }
  if (Predicates) {
    storeActive(w, op.d, t[0]);
    storeActive(w, op.d2, t[1]);
    return Next::Advance;
  }
  const U32 one = trueValues[op.flags >> TrueShift] & 0xFFFF;
  for (U32 l = 0; l < warpSize; ++l)
    t[0][l] = (t[0][l] & one) | (t[1][l] & one) << 16;
  storeActive(w, op.d, t[0]);
  return Next::Advance;
}

/// Picks the instantiation for the comparison: integers have the six ordered ones, floats all fourteen.
template <template <unsigned> class Make, bool Float> Handler forOutcomes(unsigned outcomes) {
  switch (outcomes) {
  case Equal:
    return Make<Equal>::handler;
  case Less | Greater:
    return Make<Less | Greater>::handler;
  case Less:
    return Make<Less>::handler;
  case Less | Equal:
    return Make<Less | Equal>::handler;
  case Greater:
    return Make<Greater>::handler;
  case Greater | Equal:
    return Make<Greater | Equal>::handler;
  default:
    break;
  }
  if constexpr (Float) {
    switch (outcomes) {
    case Equal | Unordered:
      return Make<Equal | Unordered>::handler;
    case Less | Greater | Unordered:
      return Make<Less | Greater | Unordered>::handler;
    case Less | Unordered:
      return Make<Less | Unordered>::handler;
    case Less | Equal | Unordered:
      return Make<Less | Equal | Unordered>::handler;
    case Greater | Unordered:
      return Make<Greater | Unordered>::handler;
    case Greater | Equal | Unordered:
      return Make<Greater | Equal | Unordered>::handler;
    case Less | Equal | Greater:
      return Make<Less | Equal | Greater>::handler;
    case Unordered:
      return Make<Unordered>::handler;
    default:
      break;
    }
  }
  return nullptr;
}

template <typename T, bool Ftz, bool Predicates> struct Compare {
  template <unsigned O> struct Make {
    static constexpr Handler handler = Predicates ? &setpHandler<O, Ftz, T> : &setHandler<O, Ftz, T>;
  };
};
template <typename Half, bool Ftz, bool Predicates> struct PackedCompare {
  template <unsigned O> struct Make {
    static constexpr Handler handler = &packedHandler<O, Ftz, Half, Predicates>;
  };
};

template <bool Predicates> Handler compareHandler(const Form &f, ptx::Type operand, std::string &why) {
  const unsigned o = outcomesOf(f);
  const bool ftz = f.has("ftz");
  if (ftz && operand != ptx::Type::F32 && operand != ptx::Type::F16 && operand != ptx::Type::F16x2) {
    why = ".ftz is for f32 and f16 operands, not " + std::string(ptx::typeName(operand));
    return nullptr;
  }
  const bool unsignedAlias = f.has("lo") || f.has("ls") || f.has("hi") || f.has("hs");
  const ptx::TypeKind kind = ptx::typeKind(operand);
  if (unsignedAlias && kind != ptx::TypeKind::Unsigned) {
    why = ".lo, .ls, .hi, .hs compare unsigned integers";
    return nullptr;
  }
  if (kind == ptx::TypeKind::Bits && o != Equal && o != (Less | Greater)) {
    why = "bit types compare with .eq and .ne only";
    return nullptr;
  }
  Handler h = nullptr;
  switch (operand) {
  case ptx::Type::B16:
  case ptx::Type::U16:
    h = forOutcomes<Compare<std::uint16_t, false, Predicates>::template Make, false>(o);
    break;
  case ptx::Type::S16:
    h = forOutcomes<Compare<std::int16_t, false, Predicates>::template Make, false>(o);
    break;
  case ptx::Type::B32:
  case ptx::Type::U32:
    h = forOutcomes<Compare<std::uint32_t, false, Predicates>::template Make, false>(o);
    break;
  case ptx::Type::S32:
    h = forOutcomes<Compare<std::int32_t, false, Predicates>::template Make, false>(o);
    break;
  case ptx::Type::B64:
  case ptx::Type::U64:
    h = forOutcomes<Compare<std::uint64_t, false, Predicates>::template Make, false>(o);
    break;
  case ptx::Type::S64:
    h = forOutcomes<Compare<std::int64_t, false, Predicates>::template Make, false>(o);
    break;
  case ptx::Type::F32:
    h = ftz ? forOutcomes<Compare<float, true, Predicates>::template Make, true>(o)
            : forOutcomes<Compare<float, false, Predicates>::template Make, true>(o);
    break;
  case ptx::Type::F64:
    h = forOutcomes<Compare<double, false, Predicates>::template Make, true>(o);
    break;
  case ptx::Type::F16:
    h = ftz ? forOutcomes<Compare<F16, true, Predicates>::template Make, true>(o)
            : forOutcomes<Compare<F16, false, Predicates>::template Make, true>(o);
    break;
  case ptx::Type::BF16:
    h = forOutcomes<Compare<BF16, false, Predicates>::template Make, true>(o);
    break;
  case ptx::Type::F16x2:
    h = ftz ? forOutcomes<PackedCompare<F16, true, Predicates>::template Make, true>(o)
            : forOutcomes<PackedCompare<F16, false, Predicates>::template Make, true>(o);
    break;
  case ptx::Type::BF16x2:
    h = forOutcomes<PackedCompare<BF16, false, Predicates>::template Make, true>(o);
    break;
  default:
    break;
  }
  if (!h)
    why = "this comparison does not exist for " + std::string(ptx::typeName(operand));
  return h;
}

Handler buildSetp(const Form &f, std::string &why) {
  f.flags = combineFlag(f);
  return compareHandler<true>(f, f.type(), why);
}

/// Index into trueValues of a destination type.
unsigned trueOf(ptx::Type destination, ptx::Type operand) {
  const bool packedFloat = destination == ptx::Type::F16x2 || destination == ptx::Type::BF16x2;
  if (ptx::typeKind(operand) == ptx::TypeKind::Packed && !packedFloat)
    return 2; // u32 / s32 of a packed comparison: all ones in each half
  switch (destination) {
  case ptx::Type::F32:
    return 1;
  case ptx::Type::U16:
  case ptx::Type::S16:
    return 2;
  case ptx::Type::F16:
  case ptx::Type::F16x2:
    return 3;
  case ptx::Type::BF16:
  case ptx::Type::BF16x2:
    return 4;
  default:
    return 0;
  }
}

Handler buildSet(const Form &f, std::string &why) {
  f.flags = static_cast<std::uint16_t>(combineFlag(f) | trueOf(f.type(0), f.type(1)) << TrueShift);
  return compareHandler<false>(f, f.type(1), why);
}

/// Selection moves bits: one handler a width.
template <typename Fn> Handler byWidth(ptx::Type t, Fn f) {
  switch (ptx::typeBytes(t)) {
  case 2:
    return f.template operator()<std::uint16_t>();
  case 4:
    return f.template operator()<std::uint32_t>();
  case 8:
    return f.template operator()<std::uint64_t>();
  default:
    return nullptr;
  }
}

Handler buildSelp(const Form &f, std::string &) {
  return byWidth(f.type(),
                 []<typename T>() { return lanes<T, T, T, bool>([](T a, T b, bool p) { return p ? a : b; }); });
}

/// a iff c >= 0: -0.0 picks a, NaN picks b.
Handler buildSlct(const Form &f, std::string &) {
  if (f.type(1) == ptx::Type::S32)
    return byWidth(f.type(), []<typename T>() {
      return lanes<T, T, T, std::int32_t>([](T a, T b, std::int32_t c) { return c >= 0 ? a : b; });
    });
  if (f.has("ftz"))
    return byWidth(f.type(), []<typename T>() {
      return lanes<T, T, T, float>([](T a, T b, float c) { return flush(c) >= 0.0f ? a : b; });
    });
  return byWidth(f.type(), []<typename T>() {
    return lanes<T, T, T, float>([](T a, T b, float c) { return c >= 0.0f ? a : b; });
  });
}

constexpr const char *comparisons = "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan and|or|xor? ftz?";
#define KILN_SCALARS(d)                                                                                                \
  d "b16|" d "b32|" d "b64|" d "u16|" d "u32|" d "u64|" d "s16|" d "s32|" d "s64|" d "f32|" d "f64|" d "f16"
constexpr const char *slctTypes = "b16.s32|b32.s32|b64.s32|u16.s32|u32.s32|u64.s32|s16.s32|s32.s32|s64.s32|f32.s32|"
                                  "f64.s32|b16.f32|b32.f32|b64.f32|u16.f32|u32.f32|u64.f32|s16.f32|s32.f32|s64.f32|"
                                  "f32.f32|f64.f32";

constexpr Row rows[] = {
    {"setp", comparisons, KILN_SCALARS(""), "=p|p 0 0 p?", 75, buildSetp},
    {"setp", comparisons, "f16x2", "=p|p 0 0 p?", 75, buildSetp},
    {"setp", comparisons, "bf16|bf16x2", "=p|p 0 0 p?", 90, buildSetp},
    {"set", comparisons, KILN_SCALARS("u32.") "|" KILN_SCALARS("s32.") "|" KILN_SCALARS("f32."), "=0 1 1 p?", 75,
     buildSet},
    {"set", comparisons, KILN_SCALARS("f16.") "|u16.f16|s16.f16", "=0 1 1 p?", 75, buildSet},
    {"set", comparisons, "f16x2.f16x2|u32.f16x2|s32.f16x2", "=0 1 1 p?", 75, buildSet},
    {"set", comparisons, "u32.bf16|s32.bf16|f32.bf16|u16.bf16|s16.bf16|bf16.bf16|f16.bf16|" KILN_SCALARS("bf16."),
     "=0 1 1 p?", 90, buildSet},
    {"set", comparisons, "bf16x2.bf16x2|u32.bf16x2|s32.bf16x2", "=0 1 1 p?", 90, buildSet},
    {"selp", "", "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64", "=0 0 0 p", 75, buildSelp},
    {"slct", "ftz?", slctTypes, "=0 0 0 1", 75, buildSlct},
};
#undef KILN_SCALARS

} // namespace

std::span<const Row> compareRows() {
  return rows;
}

} // namespace kiln::emulator::KILN_EMULATOR_LEVEL

#include "runtime/device/emulator/execute/LevelEnd.h"
