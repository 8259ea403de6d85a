//===- Op.h - One decoded instruction -------------------------------------===//
//
// A kernel is decoded once into an array of Ops.  Every operand, immediates and special registers included, is a
// *slot*: the byte offset of 32 lanes in the warp's register file.  A slot of a value of up to 32 bits holds
// uint32_t[32], of 64 bits uint64_t[32], of 128 bits two 64-bit halves (low first).  Invariants:
//  - slots are 64-byte aligned and either equal or disjoint, so a handler may write while it reads lane by lane;
//  - values narrower than 32 bits are zero-extended in their lane unless an instruction says that it sign-extends
//    (ld and cvt into a wider register); whoever reads a narrow value takes the low bits;
//  - a predicate is 0 or 0xFFFFFFFF;
//  - constant slots are written before a warp starts and never again; writes to `_` go to the trash slot.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_DECODE_OP_H
#define KILN_RUNTIME_DEVICE_EMULATOR_DECODE_OP_H

#include <cstdint>

namespace kiln::emulator {

struct Warp;
struct Op;

using Slot = std::uint32_t;
constexpr Slot noSlot = ~0u;
constexpr unsigned warpSize = 32;
constexpr std::uint32_t fullMask = ~0u;

/// Fixed slots at the start of every register file.
constexpr Slot carrySlot = 0;        ///< condition code of .cc instructions: 0 or 1 a lane
constexpr Slot trashSlot = 128;      ///< room for a 128-bit value; nobody reads it
constexpr Slot frameSlot = 640;      ///< u64: where the lane's local frame starts, as an offset in its local memory
constexpr Slot stackSlot = 896;      ///< u64: first free byte of the lane's local memory
constexpr Slot firstFreeSlot = 1152; ///< constants, special registers and registers follow

/// What the executor does after a handler.
enum class Next : std::uint32_t {
  Advance, ///< go to the following op
  Jump,    ///< the handler set warp.pc
  Switch,  ///< the set of splits changed (branch, exit, call, park): pick the split to run anew.  The handler has moved
           ///< or removed the running split
  Fault,   ///< a fatal finding was reported: the launch ends
};

/// Executes one op for the lanes in `warp.exec` (never 0).
using Handler = Next (*)(Warp &warp, const Op &op);

struct Op {
  Handler run = nullptr;
  Slot d = noSlot, d2 = noSlot;                 ///< destinations
  Slot s[4] = {noSlot, noSlot, noSlot, noSlot}; ///< sources in the order of the operand signature
  std::int64_t imm = 0;                         ///< address displacement, or an immediate of the signature
  Slot guard = noSlot;                          ///< predicate slot, noSlot: unguarded
  std::uint32_t aux = 0;                        ///< row-specific: branch target, index of an operand list
  std::uint32_t line = 0;                       ///< index into Program::lines
  std::uint32_t cache = 0;                      ///< global memory ops: index into Warp::caches
  std::uint32_t usedBytes = ~0u;                ///< loads: the bytes that the program uses, as a mask
  std::uint16_t flags = 0;                      ///< row-specific; calls and branches own the two top bits
  std::uint8_t guardNegated = 0;
  std::uint8_t kind = 0; ///< OpKind: what the executor itself must know
};
static_assert(sizeof(Op) <= 64, "one cache line");

/// Ops that need the executor's help before their handler runs.
enum OpKind : std::uint8_t {
  Plain = 0,
  Aligned = 1,            ///< .aligned: all non-exited lanes of the warp together
  MemberMask = 2,         ///< gathers the lanes of the member mask in slot s[3] first; exec = the lanes that arrived
  MemberMaskAnywhere = 3, ///< the same, but lanes may also arrive at other ops of this kind (bar.warp.sync)
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_DECODE_OP_H
