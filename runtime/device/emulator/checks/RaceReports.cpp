// The findings of the race checks.
#include "runtime/device/emulator/async/Async.h"
#include "runtime/device/emulator/checks/RaceTouch.h"
#include "runtime/device/emulator/execute/LaneValues.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::emulator {

namespace {

std::string lanesText(std::uint32_t lanes) {
  if (lanes && !(lanes & (lanes - 1)))
    return " lane " + std::to_string(__builtin_ctz(lanes));
  return lanes ? format(" lanes 0x%08x", lanes) : "";
}

/// Lanes of an access that touch [word, word + 4), as far as it is known.
std::uint32_t lanesAt(const Access &a, std::uint64_t word) {
  if (!a.regular || !a.bytes)
    return a.lanes;
  std::uint32_t out = 0;
  for (unsigned l = 0; l < warpSize; ++l) {
    const std::uint64_t first = a.first + l * std::uint64_t(a.bytes);
    if (a.lanes >> l & 1 && first < word + 4 && word < first + a.bytes)
      out |= 1u << l;
  }
  return out ? out : a.lanes;
}

/// "4-byte store", "asynchronous write".
std::string kindText(const WarpState &w, const Access &a) {
  if (a.async())
    return a.write ? a.read ? "asynchronous reduction" : "asynchronous write" : "asynchronous read";
  return std::to_string(a.bytes) + "-byte " + accessKind(w, w.program->ops[a.op]);
}

RawOther otherOf(const Access &other, std::uint32_t lanes) {
  return other.async() ? RawOther{other.first, other.issuer, lanes, other.op}
                       : RawOther{other.block(), other.warp, lanes, other.op};
}

/// How one waits for what an asynchronous agent does.
const char *waitText(AgentKind kind) {
  switch (kind) {
  case AgentKind::CopyAsync:
    return "cp.async.wait_group, cp.async.wait_all or cp.async.mbarrier.arrive";
  case AgentKind::Wgmma:
    return "wgmma.wait_group";
  case AgentKind::Mbarrier:
    return "a wait on its mbarrier";
  case AgentKind::BulkRead:
    return "cp.async.bulk.wait_group or wait_group.read";
  case AgentKind::BulkWrite:
    return "cp.async.bulk.wait_group (without .read)";
  case AgentKind::Warp:
    break;
  }
  return "";
}

std::string opcodeAt(const WarpState &w, std::uint32_t op) {
  return w.program->point(op) + ", " + std::string(w.program->lines[w.program->ops[op].line].opcode);
}

bool isPlainStore(const WarpState &w, const Access &a) {
  const std::string_view opcode = w.program->lines[w.program->ops[a.op].line].opcode;
  return a.write && !a.read && !a.async() && !opcode.starts_with("st.async") && !opcode.starts_with("st.bulk") &&
         (opcode.starts_with("st.") || opcode.starts_with("stmatrix."));
}

/// Whether the plain store that the lanes are about to make leaves the memory at host address [word, word + 4) as it
/// is.
bool storesWhatIsThere(const WarpState &w, const Op &op, const LaneAccess &m, std::uint64_t word) {
  const unsigned count = m.data ? 1 : op.flags >> access::countShift & access::countMask, bytes = m.bytes / count;
  bool same = true;
  eachLane(w.exec, [&](unsigned lane) {
    const std::uint64_t first = m.address(lane), end = std::min(word + 4, first + m.bytes);
    for (std::uint64_t at = std::max(word, first); at < end; ++at) {
      if (m.data) {
        same &= m.data[lane * std::size_t(m.bytes) + (at - first)] == *reinterpret_cast<const std::uint8_t *>(at);
        continue;
      }
      const auto element = static_cast<unsigned>(at - first) / bytes, byte = static_cast<unsigned>(at - first) % bytes;
      const Slot slot = count == 1 ? op.s[2] : w.pool[op.aux + element];
      const auto stored = static_cast<std::uint8_t>(laneValue(w, slot, lane, bytes < 8) >> 8 * byte);
      same &= stored == *reinterpret_cast<const std::uint8_t *>(at);
    }
  });
  return same;
}

} // namespace

/// Whether an mbarrier tells those who wait for it that an asynchronous operation is over.
static bool completesAnMbarrier(const BlockState &block, const Access &other) {
  if (kindOfRow(other.row) == AgentKind::Mbarrier)
    return true;
  for (const auto &[offset, b] : block.async->mbarriers.all())
    for (const Knowledge *k : {&b.releasing, &b.released})
      if (k->reaches(other.row, other.warp, other.clock))
        return true;
  return false;
}

/// Whether nobody has waited for an asynchronous operation that `t` comes too early for: it was issued before `t`, or
/// everybody could have waited and nobody has.
bool BlockRaces::notWaitedFor(const Touch &t, const Access &other) {
  if (!other.async() || !other.write || (t.access.async() && t.access.write))
    return false;
  if (t.self.clocks[t.w.index].lanesThatKnow(other.row, other.warp, other.clock))
    return false;
  if (t.order.knows(other.first, other.issuer, other.syncs))
    return true;
  if (!completesAnMbarrier(*t.self.block, other))
    return false;
  auto hasWaited = [&](const BlockRaces &races) {
    for (const WarpState &w : races.block->warps)
      if (const WarpClocks &c = races.clocks[w.index];
          c.knows(races.linear, w.index, w.alive, other.row, other.warp, other.clock) ||
          c.lanesThatKnow(other.row, other.warp, other.clock))
        return true;
    return false;
  };
  const auto &peers = t.self.peers;
  return !hasWaited(t.self) && std::none_of(peers.begin(), peers.end(), [&](const auto *p) { return hasWaited(*p); });
}

/// "tile+12" of the shared memory of `home`, or with an address of global memory "'out'+12".
std::string BlockRaces::placeText(const BlockRaces *home, std::uint64_t at) const {
  const BlockState &b = *block;
  if (home)
    return sharedName(*b.worker.launch.program, at) +
           (home != this ? " of block " + blockText(home->linear, b.worker.launch.grid) : "");
  const Allocation *a = b.worker.launch.memory->holding(at, 1);
  return a ? a->name() + "+" + std::to_string(at - a->begin) : "";
}

void BlockRaces::report(Touch &t, const Access &other, std::uint64_t word, bool isShared, bool unseen) {
  WarpState &w = t.w;
  const bool missingWait = !unseen && notWaitedFor(t, other);
  const bool ofMap = unseen && t.order.proxy == mapProxyBit;
  // The manual asks for the fence; compilers leave it out, and no GPU has been seen to need it.
  const bool ofCopy =
      unseen && kindOfRow(other.row) == AgentKind::CopyAsync && kindOfRow(t.access.row) == AgentKind::Wgmma;
  const bool ofRead = unseen && !other.write; // looked for on request only
  if (ofCopy && !w.block->worker.launch.strictProxy)
    return;
  // Warps of a block that hold copies of a tile store them all, and which comes last does not matter.  In global memory
  // it is a finding: a program's guard may be what is missing, and other workers may be storing.
  const bool sameValue = isShared && !unseen && t.m && other.row == t.access.row && isPlainStore(w, t.access) &&
                         isPlainStore(w, other) && storesWhatIsThere(w, t.op, *t.m, t.origin + word);
  const char *id = sameValue     ? "race.same_value"
                   : ofMap       ? "proxy.tensormap"
                   : ofCopy      ? "proxy.copy_async"
                   : ofRead      ? "proxy.overwrite"
                   : unseen      ? "proxy.missing_fence"
                   : missingWait ? "async.missing_wait"
                   : isShared    ? "race.shared"
                                 : "race.global";
  if (countRace(w, t.op, id, other.op))
    return;
  std::uint32_t lanes = 0;
  for (std::uint32_t e = t.access.lanes; t.m && e; e &= e - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(e));
    const std::uint64_t first = t.m->address(l) - t.origin;
    if (first < word + 4 && word < first + t.m->bytes)
      lanes |= 1u << l;
  }
  if (!t.m)
    lanes = t.access.lanes;
  const std::uint32_t otherLanes = other.async() ? other.lanes : lanesAt(other, word);
  const RawOther where = otherOf(other, otherLanes);
  const Dim3 grid = w.block->worker.launch.grid;
  const bool sameBlock = where.block == w.block->linear;
  const std::string place = t.self.placeText(isShared ? t.home : nullptr, word);
  std::string text = kindText(w, t.access) + " of " + place + " (" + lanesText(lanes).substr(1) + ") " +
                     (ofMap         ? "as a tensor map follows the "
                      : unseen      ? "through the async proxy follows the "
                      : missingWait ? "comes before anybody has waited for the "
                                    : "is not ordered with the ") +
                     kindText(w, other) + (other.async() ? " issued by " : " by ");
  if (!sameBlock)
    text += "block " + blockText(where.block, grid) + " ";
  text += "warp " + std::to_string(where.warp) + lanesText(otherLanes) + " at " + opcodeAt(w, other.op) + ": ";
  const std::uint64_t proxyBit = unseen ? t.order.proxy : 0;
  if (const std::uint32_t l = t.self.clocks[w.index].lanesThatKnow(other.row | proxyBit, other.warp, other.clock))
    text += "only" + lanesText(l) + (unseen ? " executed the fence" : " waited") +
            "; the other lanes need a bar.warp.sync after it";
  else if (ofMap)
    text += "after the write fence.proxy.tensormap::generic.release (or tensormap.cp_fenceproxy), then before the copy "
            "fence.proxy.tensormap::generic.acquire must lie between them";
  else if (unseen)
    text += std::string("no fence.proxy.async") + (isShared ? "" : " for global memory") +
            " lies between them, after the one or before the other";
  else if (other.async())
    text += std::string("it is over only after ") + waitText(kindOfRow(other.row)) +
            (missingWait ? "" : ", and a barrier for the threads that do not wait themselves");
  else if (sameBlock)
    text += isShared && !t.access.strong && !other.strong ? "no barrier lies between them"
                                                          : "no barrier, and no release and acquire, lies between them";
  else if (isShared)
    text += "no barrier.cluster, mbarrier, or release and acquire of scope .cluster lies between them";
  else
    text += "blocks run in any order; only atomics, or a release and an acquire of scope .gpu, order them";
  if (sameValue)
    reportNote(w, t.op, id, lanes, text + ", but it stores what is there already", where);
  else
    reportRace(w, t.op, id, lanes, std::move(text), where);
}

void BlockRaces::reportLanes(Touch &t, const Access &other, std::uint64_t at, unsigned lane, std::uint32_t otherLanes) {
  WarpState &w = t.w;
  if (countRace(w, t.op, "race.warp", other.op))
    return;
  const std::uint32_t lanes = lane < warpSize ? 1u << lane : t.access.lanes;
  if (!otherLanes)
    otherLanes = other.lanes;
  reportRace(w, t.op, "race.warp", lanes,
             kindText(w, t.access) + " of " + sharedName(*w.program, at) + " (" + lanesText(lanes).substr(1) +
                 ") is not ordered with the " + kindText(w, other) + " by" + lanesText(otherLanes) +
                 " of the same warp at " + opcodeAt(w, other.op) +
                 (other.async() ? ": a lane waits for its own copies only; no bar.warp.sync follows the wait"
                                : ": lanes may run apart; no bar.warp.sync lies between them"),
             otherOf(other, otherLanes));
}

void BlockRaces::reportSameBytes(WarpState &w, const Op &op, unsigned lane, unsigned other, std::uint64_t address) {
  const auto number = static_cast<std::uint32_t>(&op - w.program->ops.data());
  if (countRace(w, op, "race.warp", number))
    return;
  const BlockRaces *const home = homeOf(address);
  reportRace(w, op, "race.warp", 1u << lane | 1u << other,
             "lanes " + std::to_string(lane) + " and " + std::to_string(other) + " store different values to " +
                 placeText(home, home ? address - home->sharedFirst : address) +
                 " with one instruction: which of the two stays is not defined",
             {linear, static_cast<std::uint32_t>(w.index), 1u << other, number});
}

} // namespace kiln::emulator
