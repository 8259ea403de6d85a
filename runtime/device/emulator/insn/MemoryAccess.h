//===- MemoryAccess.h - From lane addresses to host memory ----------------===//
//
// What loads, stores and atomics share: the 32 addresses of an op, the checks on them, and where they lie on the host.
// The common cases are decided with a handful of vector operations: all addresses inside the allocation that the op met
// last, aligned, contiguous from lane to lane.  Everything else, findings included, is in MemoryFaults.cpp.
//
// Included between LevelBegin.h and LevelEnd.h only.  No include guard: once a family file.
//
//===----------------------------------------------------------------------===//

namespace kiln::emulator::KILN_EMULATOR_LEVEL {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

/// Where an op's bytes are.  Lane l's host address is at[l], or first + l * bytes if `contiguous`.
struct Accessed {
  alignas(64) U64 at[warpSize]; ///< device addresses at first, host addresses after resolve()
  U64 first = 0;                ///< host address of lane 0 if contiguous
  bool contiguous = false;
  bool uniform = false; ///< all executing lanes access the bytes at `first`
  U64 *bits = nullptr;  ///< definedness to look at, nullptr: nothing to check or mark
  U64 origin = 0;       ///< host address of bit 0
};

/// The common case, decided without writing the addresses down: every lane executes, and the lanes' accesses of `Bytes`
/// bytes follow each other or are one and the same.  `first` is lane 0's device address.
template <unsigned Bytes, typename Base> inline bool probeBase(const Warp &w, const Op &op, Accessed &m, U64 &first) {
  const Base *base = lanesOf<Base>(w, op.s[0]);
  const Base zero = base[0];
  Base notContiguous = 0, notUniform = 0;
  for (unsigned l = 0; l < warpSize; ++l) {
    notContiguous |= base[l] ^ static_cast<Base>(zero + l * Bytes);
    notUniform |= base[l] ^ zero;
  }
  m.contiguous = notContiguous == 0;
  m.uniform = notUniform == 0;
  first = static_cast<Base>(zero + static_cast<Base>(op.imm));
  return m.contiguous || m.uniform;
}
template <unsigned Bytes> inline bool probe(const Warp &w, const Op &op, Accessed &m, U64 &first) {
  if constexpr (Bytes == 0) {
    return false;
  } else {
    if (w.exec != fullMask)
      return false;
    const bool regular =
        op.flags & access::base32 ? probeBase<Bytes, U32>(w, op, m, first) : probeBase<Bytes, U64>(w, op, m, first);
    return regular && first % Bytes == 0;
  }
}

/// After a probe that held: true if the whole access is inside what the op may touch.  Otherwise the general way must
/// be taken, which says what is wrong.
template <unsigned Bytes> inline bool resolveProbed(const Warp &w, const Op &op, bool write, U64 first, Accessed &m) {
  const U64 span = m.contiguous ? U64(warpSize) * Bytes : Bytes;
  const BlockState &block = *w.block;
  U32 space = op.flags & access::spaceMask;
  if (space == access::generic && first >> windowShift == SharedWindow) {
    space = access::shared;
    first -= windowBase(SharedWindow);
  }
  if (space == access::shared) {
    first -= block.sharedAddress;
    if (first < block.sharedBegin || first > block.sharedEnd || block.sharedEnd - first < span)
      return false;
    m.bits = block.sharedBits;
    m.origin = reinterpret_cast<U64>(block.shared);
    m.first = m.origin + first;
    return true;
  }
  if (space != access::global && space != access::constant && space != access::generic)
    return false;
  const AccessCache &c = w.caches[op.cache];
  if (first < c.begin || first >= c.end || c.end - first < span || (write && !c.writable))
    return false;
  m.first = first;
  if (!c.defined) {
    m.bits = block.worker.launch.memory->definedBits();
    m.origin = block.worker.launch.memory->base();
  }
  return true;
}

inline void laneAddresses(const Warp &w, const Op &op, Accessed &m) {
  if (op.flags & access::base32) {
    const U32 *base = lanesOf<U32>(w, op.s[0]);
    const U32 displacement = static_cast<U32>(op.imm);
    for (unsigned l = 0; l < warpSize; ++l)
      m.at[l] = U32(base[l] + displacement);
  } else {
    const U64 *base = lanesOf<U64>(w, op.s[0]);
    const U64 displacement = static_cast<U64>(op.imm);
    for (unsigned l = 0; l < warpSize; ++l)
      m.at[l] = base[l] + displacement;
  }
  // Lanes that do not execute must not disturb the tests: they take the address of one that does.
  if (w.exec != fullMask) {
    const U64 one = m.at[__builtin_ctz(w.exec)];
    for (unsigned l = 0; l < warpSize; ++l)
      m.at[l] = w.exec >> l & 1 ? m.at[l] : one;
  }
}

/// What the 32 addresses have in common.
struct Extent {
  U64 low, high;
  bool aligned, contiguous, uniform;
};

inline Extent extentOf(const Warp &w, const Accessed &m, unsigned bytes) {
  U64 notContiguous = 0, notUniform = 0, any = 0;
  const U64 first = m.at[0];
  for (unsigned l = 0; l < warpSize; ++l) {
    notContiguous |= m.at[l] ^ (first + l * bytes);
    notUniform |= m.at[l] ^ first;
    any |= m.at[l];
  }
  Extent e{first, first + (warpSize - 1) * U64(bytes), (any & (bytes - 1)) == 0,
           notContiguous == 0 && w.exec == fullMask, notUniform == 0};
  // A range that wraps around has low > high, which fails every bounds test.
  if (e.uniform) {
    e.high = first;
  } else if (!e.contiguous) {
    U64 low = first, high = first;
    for (unsigned l = 0; l < warpSize; ++l) {
      low = m.at[l] < low ? m.at[l] : low;
      high = m.at[l] > high ? m.at[l] : high;
    }
    e.low = low;
    e.high = high;
  }
  return e;
}

inline void toHost(Accessed &m, const Extent &e, U64 delta) {
  m.contiguous = e.contiguous;
  m.uniform = e.uniform;
  m.first = m.at[0] + delta;
  if (!e.contiguous)
    for (unsigned l = 0; l < warpSize; ++l)
      m.at[l] += delta;
}

/// Checks the addresses in m.at and turns them into host addresses; false after a fatal finding.
/// They must lie in one place (inSeveralPlaces).
inline bool resolve(Warp &w, const Op &op, unsigned bytes, bool write, Accessed &m) {
  const Extent e = extentOf(w, m, bytes);
  if (!e.aligned) [[unlikely]]
    return reportMisaligned(w, op, m.at, bytes);
  const BlockState &block = *w.block;
  U32 space = op.flags & access::spaceMask;
  U64 window = 0;
  if (space == access::generic) {
    const U64 number = e.low >> windowShift;
    space = number == SharedWindow  ? access::shared
            : number == LocalWindow ? access::local
            : number == ParamWindow ? access::param
                                    : access::global;
    window = space == access::global ? 0 : number << windowShift;
  }
  switch (space) {
  case access::shared: {
    const U64 base = window + block.sharedAddress, low = e.low - base, high = e.high - base;
    const BlockState *owner = &block;
    if (low < block.sharedBegin || high > block.sharedEnd || block.sharedEnd - high < bytes || low > high)
        [[unlikely]] {
      owner = resolveShared(w, op, m.at, bytes, window);
      if (!owner)
        return false;
    }
    toHost(m, e, reinterpret_cast<U64>(owner->shared) - window - owner->sharedAddress);
    m.bits = owner->sharedBits;
    m.origin = reinterpret_cast<U64>(owner->shared);
    return true;
  }
  case access::global:
  case access::constant: {
    const AccessCache &c = w.caches[op.cache];
    if (e.low < c.begin || e.high >= c.end || c.end - e.high < bytes || e.low > e.high || (write && !c.writable))
        [[unlikely]]
      return resolveGlobal(w, op, m.at, bytes, write, m.bits, m.origin) && (toHost(m, e, 0), true);
    toHost(m, e, 0);
    if (!c.defined) {
      m.bits = block.worker.launch.memory->definedBits();
      m.origin = block.worker.launch.memory->base();
    }
    return true;
  }
  case access::local:
    m.contiguous = false;
    m.bits = block.localBits;
    m.origin = reinterpret_cast<U64>(block.localBase);
    return resolveLocal(w, op, m.at, bytes, window);
  default:
    if (write)
      return reportReadOnly(w, op, "kernel parameters");
    if (e.high - window > block.worker.launch.parameters.size() ||
        block.worker.launch.parameters.size() - (e.high - window) < bytes)
      return reportParamBounds(w, op, m.at, bytes, window);
    toHost(m, e, reinterpret_cast<U64>(block.worker.launch.parameters.data()) - window);
    return true;
  }
}

/// The race checks see an access whose host addresses are known.  `data`: LaneAccess.
inline void watch(Warp &w, const Op &op, const Accessed &m, unsigned bytes, AccessRole role,
                  const std::uint8_t *data = nullptr) {
  if (BlockRaces *races = w.block->races)
    races->record(static_cast<WarpState &>(w), op, {m.at, m.first, m.contiguous, m.uniform, bytes, data}, role);
}

/// Of a plain store whose lanes write the same `bytes` bytes with different values it is up to the hardware which of
/// them stay.  equal(a, b): lanes a and b write the same value.
template <typename Equal>
inline void checkSameBytes(Warp &w, const Op &op, const Accessed &m, unsigned bytes, Equal equal) {
  if (!w.block->races || m.contiguous || op.flags & access::strong || (op.flags & access::spaceMask) == access::local)
    return;
  unsigned last = static_cast<unsigned>(__builtin_ctz(w.exec));
  auto report = [&](unsigned a, unsigned b) {
    w.block->races->reportSameBytes(static_cast<WarpState &>(w), op, a, b, m.uniform ? m.first : m.at[a]);
  };
  if (m.uniform) {
    for (U32 e = w.exec; e; e &= e - 1)
      if (const auto l = static_cast<unsigned>(__builtin_ctz(e)); !equal(last, l)) [[unlikely]]
        return report(last, l);
    return;
  }
  bool rising = true;
  for (U32 e = w.exec & (w.exec - 1); e; e &= e - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(e));
    rising &= m.at[last] < m.at[l];
    last = l;
  }
  if (rising)
    return;
  constexpr unsigned places = 2 * warpSize;
  std::uint8_t laneAt[places] = {}; // lane + 1, by a hash of its address
  for (U32 e = w.exec; e; e &= e - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(e));
    unsigned at = static_cast<unsigned>(m.at[l] / bytes * 0x9E3779B97F4A7C15u >> 58);
    while (laneAt[at] && m.at[laneAt[at] - 1] != m.at[l])
      at = (at + 1) % places;
    if (laneAt[at] && !equal(laneAt[at] - 1u, l)) [[unlikely]]
      return report(laneAt[at] - 1u, l);
    laneAt[at] = static_cast<std::uint8_t>(l + 1);
  }
}

inline bool isDefined(const Warp &w, const Accessed &m, unsigned bytes) {
  if (m.contiguous)
    return allDefined(m.bits, m.first - m.origin, U64(warpSize) * bytes);
  if (m.uniform)
    return allDefined(m.bits, m.first - m.origin, bytes);
  bool good = true;
  if (bytes <= 8) { // aligned, so inside one word
    const U64 mask = (U64(1) << bytes) - 1;
    for (unsigned l = 0; l < warpSize; ++l) {
      const U64 bit = m.at[l] - m.origin;
      good &= (__atomic_load_n(m.bits + bit / 64, __ATOMIC_RELAXED) >> bit % 64 & mask) == mask || !(w.exec >> l & 1);
    }
    return good;
  }
  for (U32 lanes = w.exec; lanes; lanes &= lanes - 1)
    good &= allDefined(m.bits, m.at[__builtin_ctz(lanes)] - m.origin, bytes);
  return good;
}

/// What was written is marked as defined, and is no tensor copy's.
inline void markWritten(const Warp &w, const Accessed &m, unsigned bytes) {
  if (BlockState &block = *w.block; block.wgmma && m.bits == block.sharedBits) [[unlikely]]
    for (U32 lanes = w.exec; lanes; lanes &= lanes - 1) {
      const U64 lane = static_cast<unsigned>(__builtin_ctz(lanes));
      const U64 at = m.contiguous ? m.first + lane * bytes : m.uniform ? m.first : m.at[lane];
      noteOrdinaryWrite(block, at - m.origin, bytes);
    }
  if (m.contiguous)
    return markDefined(m.bits, m.first - m.origin, U64(warpSize) * bytes);
  if (m.uniform)
    return markDefined(m.bits, m.first - m.origin, bytes);
  for (U32 lanes = w.exec; lanes; lanes &= lanes - 1)
    markDefined(m.bits, m.at[__builtin_ctz(lanes)] - m.origin, bytes);
}

/// Numbers the memories that an address can be in: windows of the generic space, and in a cluster the blocks' shared
/// memories.
constexpr unsigned numPlaces = ParamWindow + 1 + 16;
inline unsigned placeOf(const Warp &w, const Op &op, U64 at) {
  const U32 space = op.flags & access::spaceMask;
  U64 number = at >> windowShift;
  if (space == access::generic ? number != SharedWindow : space != access::shared)
    return space == access::generic && number <= ParamWindow ? static_cast<unsigned>(number) : 0;
  const U64 rank = (at & windowOffsetMask) / sharedRankBytes;
  return rank == w.block->rank || rank >= 16 ? SharedWindow : ParamWindow + 1 + static_cast<unsigned>(rank);
}

/// Whether the executing lanes' addresses are in several memories.
inline bool inSeveralPlaces(const Warp &w, const Op &op, const Accessed &m) {
  const U32 space = op.flags & access::spaceMask;
  if (space != access::generic && space != access::shared)
    return false;
  U64 different = 0;
  for (unsigned l = 0; l < warpSize; ++l)
    different |= m.at[l] ^ m.at[0];
  if (different / sharedRankBytes == 0)
    return false;
  const unsigned first = placeOf(w, op, m.at[0]);
  for (unsigned l = 1; l < warpSize; ++l)
    if (placeOf(w, op, m.at[l]) != first)
      return true;
  return false;
}

/// Runs `handler` once for the lanes of each memory.
inline Next eachPlace(Warp &w, const Op &op, const Accessed &m, Handler handler) {
  U32 groups[numPlaces] = {};
  eachLane(w.exec, [&](unsigned l) { groups[placeOf(w, op, m.at[l])] |= 1u << l; });
  const U32 exec = w.exec;
  for (U32 group : groups) {
    if (!group)
      continue;
    w.exec = group;
    if (handler(w, op) == Next::Fault)
      return Next::Fault;
  }
  w.exec = exec;
  return Next::Advance;
}

} // namespace
} // namespace kiln::emulator::KILN_EMULATOR_LEVEL
