#include "runtime/device/emulator/observe/Counting.h"
#include "runtime/device/emulator/execute/LaneValues.h"

#include "runtime/device/emulator/async/AsyncCopies.h"
#include "runtime/device/emulator/checks/FloatBirths.h"
#include "runtime/device/emulator/checks/Races.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "runtime/device/emulator/observe/TimelineRecorder.h"

#include <algorithm>
#include <map>

namespace kiln::emulator {

namespace {

std::uint32_t firstLanes(unsigned n) {
  return n >= warpSize ? fullMask : (1u << n) - 1;
}

void addAccesses(Counts &to, const Op &op, const OpTraits &traits, std::uint64_t (&at)[warpSize], std::uint32_t lanes) {
  std::uint32_t global = 0, shared = 0, local = 0, parameters = 0;
  switch (op.flags & access::spaceMask) {
  case access::global:
    global = lanes;
    break;
  case access::shared:
    shared = lanes;
    break;
  case access::local:
    local = lanes;
    break;
  case access::generic:
    eachLane(lanes, [&](unsigned l) {
      const std::uint64_t window = at[l] >> windowShift;
      const bool inShared = window == SharedWindow;
      (inShared ? shared : window == LocalWindow ? local : window == ParamWindow ? parameters : global) |= 1u << l;
      if (inShared)
        at[l] &= windowOffsetMask;
    });
    break;
  default: // parameters and constants
    return;
  }
  if (global)
    addAccess(to, CountedSpace::Global, traits.access, at, global, traits.bytes);
  if (shared)
    addAccess(to, CountedSpace::Shared, traits.access, at, shared, traits.bytes);
  if (local) {
    ++to.localRequests;
    to.localBytes += static_cast<unsigned>(__builtin_popcount(local)) * std::uint64_t(traits.bytes);
  }
}

/// The global side of a cp.async: lanes without source bytes read nothing.
void addCopySource(Counts &to, const Warp &w, const Op &op, unsigned bytes, std::uint32_t lanes) {
  std::uint64_t from[warpSize];
  std::uint32_t reading = lanes;
  std::uint64_t total = 0;
  eachLane(lanes, [&](unsigned l) {
    from[l] = lanesOf<std::uint64_t>(w, op.s[1])[l] + lanesOf<std::uint64_t>(w, op.s[3])[l];
    unsigned n = bytes;
    if (op.flags & copyFlag::ignoreSource)
      n = lanesOf<std::uint32_t>(w, op.s[2])[l] ? 0 : bytes;
    else if (op.flags & copyFlag::sourceSize)
      n = std::min(lanesOf<std::uint32_t>(w, op.s[2])[l], bytes);
    total += n;
    if (n == 0)
      reading &= ~(1u << l);
  });
  if (!reading)
    return;
  GlobalCounts &g = to.global[static_cast<unsigned>(AccessKind::Copy)];
  ++g.requests;
  g.sectors += sectorsOf(from, reading);
  g.bytes += total;
}

} // namespace

unsigned sectorsOf(const std::uint64_t *at, std::uint32_t lanes) {
  std::uint64_t sectors[warpSize];
  unsigned n = 0;
  bool rising = true;
  eachLane(lanes, [&](unsigned l) {
    const std::uint64_t s = at[l] / 32;
    rising = rising && (n == 0 || s >= sectors[n - 1]);
    if (n == 0 || s != sectors[n - 1])
      sectors[n++] = s;
  });
  if (rising)
    return n;
  std::sort(sectors, sectors + n);
  return static_cast<unsigned>(std::unique(sectors, sectors + n) - sectors);
}

unsigned wavefrontsOf(const std::uint64_t *at, std::uint32_t lanes, unsigned bytes, unsigned &ideal) {
  const unsigned words = std::max(1u, bytes / 4), lanesAtOnce = warpSize / words;
  unsigned total = 0;
  ideal = 0;
  for (unsigned first = 0; first < warpSize; first += lanesAtOnce) {
    std::uint64_t touched[warpSize];
    unsigned n = 0;
    eachLane(lanes & firstLanes(lanesAtOnce) << first, [&](unsigned l) {
      for (unsigned i = 0; i < words; ++i)
        touched[n++] = at[l] / 4 + i;
    });
    if (n == 0)
      continue;
    ++ideal;
    std::sort(touched, touched + n);
    n = static_cast<unsigned>(std::unique(touched, touched + n) - touched);
    unsigned ofBank[32] = {};
    unsigned most = 0;
    for (unsigned i = 0; i < n; ++i)
      most = std::max(most, ++ofBank[touched[i] % 32]);
    total += most;
  }
  return total;
}

void addAccess(Counts &to, CountedSpace space, AccessKind kind, const std::uint64_t *at, std::uint32_t lanes,
               unsigned bytes) {
  if (!lanes)
    return;
  const std::uint64_t asked = static_cast<unsigned>(__builtin_popcount(lanes)) * std::uint64_t(bytes);
  if (space == CountedSpace::Global) {
    GlobalCounts &g = to.global[static_cast<unsigned>(kind)];
    ++g.requests;
    g.sectors += sectorsOf(at, lanes);
    g.bytes += asked;
    return;
  }
  SharedCounts &s = to.shared[static_cast<unsigned>(kind)];
  unsigned ideal = 0;
  const unsigned wavefronts = wavefrontsOf(at, lanes, bytes, ideal);
  ++s.requests;
  s.wavefronts += wavefronts;
  s.conflicts += wavefronts - ideal;
  s.bytes += asked;
}

/// Different 32-byte sectors of ranges.
static std::uint64_t sectorsOf(std::span<const AsyncRange> ranges) {
  std::vector<AsyncRange> sorted(ranges.begin(), ranges.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const AsyncRange &a, const AsyncRange &b) { return a.address < b.address; });
  std::uint64_t sectors = 0, next = 0; // the first sector that has not been counted
  for (const AsyncRange &r : sorted) {
    const std::uint64_t first = std::max(next, r.address / 32), end = (r.address + r.bytes + 31) / 32;
    sectors += end > first ? end - first : 0;
    next = std::max(next, end);
  }
  return sectors;
}

void countBulk(const WarpState &w, CountedSpace space, AccessKind kind, std::span<const AsyncRange> ranges) {
  OpTrace *const t = w.block->worker.trace.get();
  if (!t)
    return;
  std::uint64_t bytes = 0;
  for (const AsyncRange &r : ranges)
    bytes += r.bytes;
  if (!bytes)
    return;
  if (space == CountedSpace::Shared) {
    SharedCounts &s = t->pending.shared[static_cast<unsigned>(kind)];
    ++s.requests;
    s.bytes += bytes;
    return;
  }
  GlobalCounts &g = t->pending.global[static_cast<unsigned>(kind)];
  ++g.requests;
  g.sectors += sectorsOf(ranges);
  g.bytes += bytes;
}

static std::size_t indexOf(const WarpState &w, const Op &op) {
  return static_cast<std::size_t>(&op - w.program->ops.data());
}

void traceBefore(WarpState &w, const Op &op) {
  if (FloatBirths *births = w.block->worker.births.get())
    births->before(w, op);
  OpTrace &trace = *w.block->worker.trace;
  const OpTraits &t = trace.traits[indexOf(w, op)];
  trace.pending = {};
  if (!t.isInstruction)
    return;
  trace.pending.instructions = 1;
  trace.pending.matrixFlops = t.matrixFlops;
  trace.pending.barriers = t.arrives;
  if (!t.accesses)
    return;
  const std::uint32_t lanes = t.rowLanes ? w.exec & firstLanes(t.rowLanes) : w.exec;
  std::uint64_t at[warpSize];
  for (unsigned l = 0; l < warpSize; ++l)
    at[l] = laneAddress(w, op, l);
  addAccesses(trace.pending, op, t, at, lanes);
  if (t.access == AccessKind::Copy) {
    addCopySource(trace.pending, w, op, t.bytes, lanes);
    trace.pending.asyncBytes += static_cast<unsigned>(__builtin_popcount(lanes)) * std::uint64_t(t.bytes);
  }
}

void traceAfter(WarpState &w, const Op &op, std::uint32_t exec) {
  OpTrace &trace = *w.block->worker.trace;
  const std::uint32_t lanes = exec & ~w.uncounted;
  const std::size_t index = indexOf(w, op);
  if (!lanes)
    return;
  if (FloatBirths *births = w.block->worker.births.get())
    births->after(w, op, lanes);
  if (w.block->timeline)
    w.block->timeline->ran(w, op, trace.traits[index], trace.pending.asyncBytes);
  if (!trace.traits[index].isInstruction)
    return;
  trace.pending.threads = static_cast<unsigned>(__builtin_popcount(lanes));
  trace.counts[index] += trace.pending;
}

void traceSkipped(WarpState &w, const Op &op) {
  OpTrace &trace = *w.block->worker.trace;
  const std::size_t index = indexOf(w, op);
  trace.counts[index].instructions += trace.traits[index].isInstruction;
  if (w.block->timeline)
    w.block->timeline->ran(w, op, trace.traits[index], 0);
}

LaunchCounters mergeCounts(std::span<const OpTrace *const> workers, const Launch &launch) {
  const Program &p = *launch.program;
  LaunchCounters out;
  out.kernel = p.info.name;
  const Dim3 dims[] = {launch.grid, launch.block};
  std::uint32_t *const to[] = {out.grid, out.block};
  for (unsigned i = 0; i < 2; ++i) {
    to[i][0] = dims[i].x;
    to[i][1] = dims[i].y;
    to[i][2] = dims[i].z;
  }
  out.sharedBytes = p.sharedStatic + launch.dynamicShared;
  std::map<std::pair<std::string_view, unsigned>, Counts> lines;
  std::map<std::string_view, OpcodeCounts> opcodes;
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    Counts counts;
    for (const OpTrace *w : workers)
      counts += w->counts[i];
    if (!counts.instructions)
      continue;
    out.total += counts;
    out.byClass[static_cast<unsigned>(workers[0]->traits[i].kind)] += counts.instructions;
    const SourceLine &line = p.lines[p.ops[i].line];
    OpcodeCounts &opcode = opcodes[line.opcode];
    opcode.kind = workers[0]->traits[i].kind;
    opcode.counts += counts;
    lines[line.line ? std::pair(p.module->filePath(line.file), unsigned(line.line))
                    : std::pair(std::string_view(p.module->fileName), unsigned(line.ptxLine))] += counts;
  }
  for (const auto &[place, counts] : lines)
    out.lines.push_back({std::string(place.first), place.second, counts});
  for (auto &[name, counts] : opcodes) {
    counts.opcode = name;
    out.opcodes.push_back(std::move(counts));
  }
  return out;
}

} // namespace kiln::emulator
