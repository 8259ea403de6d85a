// What asynchronous operations, proxies and mbarriers add to who knows of whom: sections 3.4 and 4.2 of the emulator
// specification.
//
// An asynchronous operation is an agent with a clock.  Its accesses are compared when it is issued, with what its
// issuer knows then; from there on they are over only for somebody who has waited for it, or learnt from somebody who
// has. The async proxy (bulk copies, wgmma) sees a generic write only if the issuer's knowledge of it is *visible*: a
// fence has copied it to the proxy's row, in the writing warp, in the issuing one or on the way between.
#include "runtime/device/emulator/async/Async.h"
#include "runtime/device/emulator/checks/RaceTouch.h"

namespace kiln::emulator {

void BlockRaces::observe(WarpState &w, const AsyncAgent &agent) {
  if (clocks[w.index].knows(linear, w.index, w.exec, agent.row, agent.index, agent.epoch))
    return;
  Knowledge one;
  one[agent.row][agent.index] = agent.epoch;
  acquire(w, one, kindOfRow(agent.row) == AgentKind::CopyAsync);
}

void BlockRaces::proxyFence(WarpState &w, bool inShared, bool inGlobal) {
  settleSides(w);
  Knowledge visible;
  for (const auto &[row, clock] : everything(w)) {
    const AgentKind kind = kindOfRow(row);
    if (isProxyRow(row) || (kind != AgentKind::Warp && kind != AgentKind::CopyAsync))
      continue;
    if (inShared)
      visible[row | sharedProxyBit] = clock;
    if (inGlobal)
      visible[row | globalProxyBit] = clock;
  }
  acquire(w, visible);
}

void BlockRaces::releaseMaps(WarpState &w) {
  Knowledge released;
  for (const auto &[row, clock] : everything(w))
    if (!isProxyRow(row) && kindOfRow(row) == AgentKind::Warp)
      released[row | releasedMapBits] = clock;
  acquire(w, released);
}

void BlockRaces::acquireMaps(WarpState &w) {
  Knowledge visible;
  for (const auto &[row, clock] : everything(w))
    if ((row & releasedMapBits) == releasedMapBits)
      visible[(row & ~releasedMapBits) | mapProxyBit] = clock;
  acquire(w, visible);
}

void BlockRaces::releaseTo(WarpState &w, Knowledge &k, bool relaxed) {
  settleSides(w);
  WarpClocks &c = clocks[w.index];
  if (relaxed) {
    if (c.fenced)
      k.join(c.fenceWide.empty() ? c.fenceNarrow : c.fenceWide);
    return;
  }
  k.join(everything(w));
  bump(w.index);
}

void BlockRaces::acquireFrom(WarpState &w, const Knowledge &k, bool relaxed) {
  if (relaxed) {
    clocks[w.index].pendingWide.join(k);
    return;
  }
  acquire(w, k);
}

void BlockRaces::recordObject(WarpState &w, const Op &op, std::uint32_t lanes, std::uint64_t address, unsigned bytes,
                              ObjectUse use) {
  BlockRaces *const home = homeOf(address);
  if (!home)
    return;
  const LaneAccess m{nullptr, address, false, true, bytes};
  settleSides(w);
  Touch t{*this, w, op, &m, {}, {clocks[w.index], w}, home, home->sharedFirst};
  Access &a = t.access;
  a.row = linear;
  a.op = static_cast<std::uint32_t>(&op - w.program->ops.data());
  a.lanes = lanes;
  a.warp = static_cast<std::uint8_t>(w.index);
  a.bytes = static_cast<std::uint8_t>(bytes);
  a.write = use == ObjectUse::Write;
  a.read = !a.write;
  t.completes = use == ObjectUse::Complete;
  a.clock = clocks[w.index].own[w.index];
  a.syncs = w.syncs;
  t.order.lanes = lanes;
  t.sameLanes = !clocks[w.index].sides.empty();
  home->recordShared(t);
}

bool BlockRaces::touchesObject(Touch &t) {
  const LaneAccess &m = *t.m;
  const bool one = m.contiguous || m.uniform;
  bool touches = false;
  for (std::uint32_t e = one ? t.w.exec & -t.w.exec : t.w.exec; e; e &= e - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(e));
    const std::uint64_t first = (one ? m.first : m.at[l]) - t.origin;
    touches |= checkRawAccess(t.w, t.op, one ? t.w.exec : 1u << l, *block, first,
                              m.contiguous ? warpSize * m.bytes : m.bytes, t.access.write);
  }
  return touches;
}

bool BlockRaces::touchesObject(Touch &t, const AsyncRange &range) {
  return checkRawAccess(t.w, t.op, t.access.lanes, *block, range.address - t.origin, range.bytes, t.access.write);
}

} // namespace kiln::emulator
