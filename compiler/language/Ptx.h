//===- Ptx.h - Instructions of PTX, element by element ------------------------===//
//
//   auto y = inlinePtx<f32(f32, f32)>("fma.rn.f32 $0, $1, $2, $2;", x, 2);
//   auto [q, r] = inlinePtx<std::tuple<u32, u32>(u32, u32)>("div.u32 $0, $2, $3; rem.u32 $1, $2, $3;", a, b);
//   auto t = inlinePtxWithEffects<u64()>("mov.u64 $0, %clock64;");
//
// The signature gives the element types, of 16, 32 or 64 bits; $0, $1, .. are registers of the results, then of the
// operands; $$ is a dollar sign.  f16 and bf16 lie in registers of type .b16.  Operands are scalars and tiles of these
// types and C++ numbers, which meet as those of an addition do: if one is a tile, so are the results.
//
// The results of inlinePtx depend on its operands alone: the compiler may drop, repeat, merge and move it.  What is
// read from elsewhere (a clock), does something, or exchanges data between lanes takes inlinePtxWithEffects, which
// stays where it is; every thread that holds a copy of an element issues it.  Memory that it touches is invisible to
// the compiler: no barrier orders it.  A target that lacks the instruction refuses the kernel, at this line.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_PTX_H
#define KILN_LANGUAGE_PTX_H

#include "Checks.h"
#include "Control.h"
#include "Math.h"

#include <array>
#include <tuple>

namespace kiln::language {
namespace detail {

template <typename T>
concept RegisterElement = Element<T> && bitsOf(elementOf<T>) >= 16;

template <typename R> struct PtxResults {
  using Type = std::tuple<R>;
};
template <> struct PtxResults<void> {
  using Type = std::tuple<>;
};
template <typename... Rs> struct PtxResults<std::tuple<Rs...>> {
  using Type = std::tuple<Rs...>;
};

template <typename T, typename A> Operand ptxOperand(const A &a, Location loc) {
  static_assert(Value<A> ? std::same_as<typename TagOf<A>::Type, T> : ConstantFor<A, T>,
                "an operand of inline PTX has the type that the signature says: cast<T>(x) gives another one");
  return meeting<T>(a, loc);
}

template <bool effects, typename Signature> struct Ptx {
  static_assert(sizeof(Signature) == 0, "the signature of inline PTX is a function's, as f32(f32, i32)");
};
template <bool effects, typename R, typename... Ts> struct Ptx<effects, R(Ts...)> {
  template <typename... As> static auto record(const Message &text, const As &...operands) {
    return of(static_cast<typename PtxResults<R>::Type *>(nullptr), text, operands...);
  }

private:
  template <typename... Rs, typename... As>
  static auto of(std::tuple<Rs...> *, const Message &text, const As &...operands) {
    static_assert((RegisterElement<Rs> && ...) && (RegisterElement<Ts> && ...),
                  "inline PTX works on registers of 16, 32 and 64 bits: f16, bf16, f32, f64, i16 .. u64");
    static_assert(sizeof...(Ts) == sizeof...(As), "inline PTX takes one operand for each parameter of its signature");
    static_assert(effects || sizeof...(Rs) > 0, "what has no result is there for its effects: inlinePtxWithEffects");
    constexpr bool tiles = (isTile<As>() || ...);
    static_assert(sizeof...(Rs) > 0 || !tiles, "inline PTX of tiles has a result: use it, or reduce the tile first");
    using Values = std::tuple<std::conditional_t<tiles, Tile<Rs>, Scalar<Rs>>...>;
    std::array<Handle, sizeof...(Rs) + 1> results = {};
    constexpr std::array<DType, sizeof...(Rs) + 1> outputs = {elementOf<Rs>...};
    if constexpr (sizeof...(Ts) == sizeof...(As)) {
      const std::array<Operand, sizeof...(As) + 1> all = {ptxOperand<Ts>(operands, text.location)..., Operand()};
      inlinePtx(text.text, effects, {outputs.data(), sizeof...(Rs)}, {all.data(), sizeof...(As)},
                {results.data(), sizeof...(Rs)}, text.location);
    }
    return unbundle<Values>({results.data(), sizeof...(Rs)});
  }
};
} // namespace detail

/// See the top of this file.  One result, or a std::tuple of several.
template <typename Signature, typename... As> auto inlinePtx(detail::Message text, const As &...operands) {
  return detail::Ptx<false, Signature>::record(text, operands...);
}
/// The same, kept where it is; `void(..)` has no result.
template <typename Signature, typename... As> auto inlinePtxWithEffects(detail::Message text, const As &...operands) {
  return detail::Ptx<true, Signature>::record(text, operands...);
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_PTX_H
