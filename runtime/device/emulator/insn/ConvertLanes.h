//===- ConvertLanes.h - Handlers of cvt -----------------------------------===//
//
// cvt is the one arithmetic instruction whose destination may be wider than its type.  `converts` returns the plain
// lane handler where the destination has the storage of its type, else one that copies through a private register file:
// signed results are sign-extended to the register, all others zero-extended.  Sources always have the storage of their
// type here: the decoder narrows those that lie in a 64-bit register (DecodeContext::source).
//
// Included between LevelBegin.h and LevelEnd.h, in place of FloatLanes.h.  No include guard.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/emulator/insn/FloatLanes.h"

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

/// Op::flags of a handler made by `wideHandler`.
enum WideFlags : U16 {
  wideResult = 1,     ///< the destination register has 64 bits, the result fewer
  result64 = 2,       ///< the result itself has 64 bits
  signedResult = 4,   ///< sign-extended from `resultBits`
  resultByte = 8,     ///< the result has 8 bits
  resultShort = 16,   ///< 16 bits
  shortRegister = 32, ///< the destination register has 16 bits
  source64 = 64,      ///< << i: the type of source i has 64 bits
};

/// A private register file of a handler's operands: d, then the sources.
struct WideFile {
  static constexpr Slot stride = 256;
  alignas(64) std::byte bytes[4 * stride];
  Warp warp;
  Op op;
};

[[gnu::noinline]] inline void copySources(WideFile &file, const Warp &w, const Op &op) {
  file.warp = w;
  file.warp.registers = file.bytes;
  file.warp.exec = fullMask;
  file.op = op;
  file.op.d = 0;
  for (unsigned i = 0; i < 3 && op.s[i] != noSlot; ++i) {
    const Slot to = (i + 1) * WideFile::stride;
    file.op.s[i] = to;
    __builtin_memcpy(file.bytes + to, w.registers + op.s[i], op.flags & source64 << i ? 256 : 128);
  }
}

[[gnu::noinline]] inline void copyResult(const WideFile &file, const Warp &w, const Op &op) {
  eachLane(w.exec, [&](unsigned l) {
    U64 v = op.flags & result64 ? lanesOf<U64>(file.warp, 0)[l] : lanesOf<U32>(file.warp, 0)[l];
    if (op.flags & signedResult) {
      const unsigned shift = op.flags & resultByte ? 56 : op.flags & resultShort ? 48 : 32;
      v = static_cast<U64>(static_cast<std::int64_t>(v << shift) >> shift);
      v &= op.flags & shortRegister ? 0xffffull : ~0ull;
    }
    if (op.flags & (wideResult | result64))
      lanesOf<U64>(w, op.d)[l] = v;
    else
      lanesOf<U32>(w, op.d)[l] = static_cast<U32>(v);
  });
}

template <Handler Plain> Next wideHandler(Warp &w, const Op &op) {
  WideFile file;
  copySources(file, w, op);
  [[clang::noinline]] Plain(file.warp, file.op); // shared with the plain form
  copyResult(file, w, op);
  return Next::Advance;
}

/// Handler of d = f(s0, ...) for a cvt whose operands are d and one source for each A.
template <typename R, typename... A, typename Fn> Handler converts(const Form &f, Fn) {
  constexpr std::size_t sourceBytes[] = {sizeof(StorageOf<A>)...};
  U16 flags = 0;
  const unsigned destination = f.registerBytes[0];
  if (destination == 8 && sizeof(StorageOf<R>) == 4)
    flags |= wideResult;
  if constexpr (std::is_integral_v<R>)
    if (std::is_signed_v<R> && destination > sizeof(R))
      flags |= signedResult | (sizeof(R) == 1 ? resultByte : 0) | (sizeof(R) == 2 ? resultShort : 0) |
               (destination == 2 ? shortRegister : 0);
  if (!flags)
    return &laneHandler<Fn, R, A...>;
  if (sizeof(StorageOf<R>) == 8)
    flags |= result64;
  for (unsigned i = 0; i < sizeof...(A); ++i)
    if (sourceBytes[i] == 8)
      flags |= static_cast<U16>(source64 << i);
  f.flags = flags;
  return &wideHandler<&laneHandler<Fn, R, A...>>;
}

/// Calls f.operator()<T>() with the C++ type of an integer type of 8 to 64 bits.
template <typename Fn> inline Handler onInteger8(ptx::Type t, Fn f) {
  switch (t) {
  case ptx::Type::U8:
    return f.template operator()<std::uint8_t>();
  case ptx::Type::S8:
    return f.template operator()<std::int8_t>();
  default:
    return onInteger(t, f);
  }
}

template <Rounding R, typename T> inline T integral(T x) {
  if constexpr (R == Rounding::Near)
    return __builtin_elementwise_roundeven(x);
  if constexpr (R == Rounding::Zero)
    return __builtin_elementwise_trunc(x);
  if constexpr (R == Rounding::Down)
    return __builtin_elementwise_floor(x);
  return __builtin_elementwise_ceil(x);
}
inline Rounding integralRoundingOf(const Form &f) {
  return f.has("rzi") ? Rounding::Zero : f.has("rmi") ? Rounding::Down : f.has("rpi") ? Rounding::Up : Rounding::Near;
}

} // namespace
} // namespace kiln::emulator::KILN_EMULATOR_LEVEL
