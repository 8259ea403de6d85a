#include "runtime/device/emulator/observe/TimelineRecorder.h"

#include "runtime/device/emulator/async/Async.h"
#include "runtime/device/emulator/execute/Cluster.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "runtime/device/emulator/observe/OpTraits.h"

#include <algorithm>

namespace kiln::emulator {

/// Cells of all warps together, and of one at least and at most: what a picture can show and a browser draws at once.
static constexpr std::size_t totalCells = 16384, fewestCells = 512, mostCells = 2048;

static constexpr std::uint32_t unknownPlace = ~0u;

void TimelineRecorder::start(const BlockState &b) {
  block = &b;
  program = b.worker.launch.program;
  now = 0;
  times.assign(b.warps.size(), {});
  out.warps.assign(b.warps.size(), {});
  out.ends.assign(b.warps.size(), 0);
  out.left.assign(b.warps.size(), false);
  maxCells = std::clamp(totalCells / b.warps.size(), fewestCells, mostCells);
  placeOf.assign(program->ops.size(), unknownPlace);
}

std::uint32_t TimelineRecorder::place(std::uint32_t op) {
  if (placeOf[op] == unknownPlace) {
    std::string text = program->location(program->ops[op]);
    if (text.empty())
      text = "ptx line " + std::to_string(program->lines[program->ops[op].line].ptxLine);
    const auto [known, isNew] = placeNumbers.try_emplace(text, static_cast<std::uint32_t>(out.places.size()));
    if (isNew)
      out.places.push_back(std::move(text));
    placeOf[op] = known->second;
  }
  return placeOf[op];
}

/// Two cells become one; works whose cells fall together as well.
void TimelineRecorder::makeCoarser() {
  out.ticksPerCell *= 2;
  for (auto &cells : out.warps) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i % 2 == 0) {
        cells[i / 2] = cells[i];
        continue;
      }
      TimelineCell &to = cells[i / 2];
      const TimelineCell &from = cells[i];
      for (unsigned k = 0; k < instructionClasses; ++k)
        to.instructions[k] += from.instructions[k];
      to.waiting += from.waiting;
      to.wait = from.wait != TimelineCell::none ? from.wait : to.wait;
      to.firstPlace = to.firstPlace != TimelineCell::none ? to.firstPlace : from.firstPlace;
      to.lastPlace = from.lastPlace != TimelineCell::none ? from.lastPlace : to.lastPlace;
    }
    cells.resize((cells.size() + 1) / 2);
  }
  std::map<std::pair<unsigned, AsyncKind>, Flight *> last;
  for (auto f = flights.begin(); f != flights.end();) {
    Flight &flight = f->second;
    Flight *&before = last[{flight.warp, flight.kind}];
    const bool over = flight.pending == 0 && flight.observed != TimelineWork::never;
    if (before && over && before->observed != TimelineWork::never &&
        before->issued / out.ticksPerCell == flight.issued / out.ticksPerCell) {
      before->works += flight.works;
      before->bytes += flight.bytes;
      before->delivered = std::max(before->delivered, flight.delivered);
      before->observed = std::max(before->observed, flight.observed);
      f = flights.erase(f);
      continue;
    }
    before = &flight;
    ++f;
  }
}

TimelineCell &TimelineRecorder::cell(unsigned warp, std::uint64_t time) {
  while (time / out.ticksPerCell >= maxCells)
    makeCoarser();
  auto &cells = out.warps[warp];
  const std::size_t i = time / out.ticksPerCell;
  if (cells.size() <= i)
    cells.resize(i + 1);
  return cells[i];
}

void TimelineRecorder::fillWait(unsigned warp, std::uint64_t until) {
  WarpTime &t = times[warp];
  while (t.waits && t.upTo < until) {
    TimelineCell &c = cell(warp, t.upTo);
    const std::uint64_t end = std::min(until, (t.upTo / out.ticksPerCell + 1) * out.ticksPerCell);
    c.waiting += static_cast<std::uint32_t>(end - t.upTo);
    c.wait = t.wait;
    t.upTo = end;
  }
  t.waits = false;
}

void TimelineRecorder::ran(const WarpState &w, const Op &op, const OpTraits &traits, std::uint64_t asyncBytes) {
  helper = !traits.isInstruction;
  if (helper)
    return;
  WarpTime &t = times[w.index];
  fillWait(w.index, now);
  TimelineCell &c = cell(w.index, now);
  ++c.instructions[static_cast<unsigned>(traits.kind)];
  c.lastPlace = place(static_cast<std::uint32_t>(&op - program->ops.data()));
  if (c.firstPlace == TimelineCell::none)
    c.firstPlace = c.lastPlace;
  if (const auto f = flights.find(t.lastFlight); asyncBytes && f != flights.end())
    f->second.bytes += asyncBytes;
  t.upTo = now + 1;
  if (!inStep)
    ++now;
}

std::uint32_t TimelineRecorder::waitNumber(const WarpState &w) {
  const Split &s = w.splits[0];
  TimelineWait wait;
  switch (s.state) {
  case SplitState::Barrier:
    wait = {WaitKind::Barrier, "barrier " + std::to_string(s.barrier)};
    break;
  case SplitState::Cluster:
    wait = {WaitKind::Cluster, "the cluster's barrier"};
    break;
  case SplitState::Mbarrier:
    wait = {WaitKind::Mbarrier,
            s.waitsFor == ~0u ? std::string("several mbarriers") : "mbarrier " + sharedName(*program, s.waitsFor)};
    break;
  case SplitState::AsyncGroup: {
    const auto kind = static_cast<AsyncKind>(s.asyncKind);
    wait = {WaitKind::Group, kind == AsyncKind::Copy       ? "cp.async groups"
                             : kind == AsyncKind::Wgmma    ? "wgmma groups"
                             : kind == AsyncKind::BulkRead ? "reads of bulk groups"
                                                           : "bulk groups"};
    break;
  }
  case SplitState::Registers:
    wait = {WaitKind::Lanes, "registers of the block's pool"};
    break;
  default:
    wait = {WaitKind::Lanes, "other lanes of the warp"};
    break;
  }
  wait.what += " at " + out.places[place(s.pc < program->ops.size() ? s.pc : 0)];
  const auto [known, isNew] = waitNumbers.try_emplace(wait.what, static_cast<std::uint32_t>(out.waits.size()));
  if (isNew)
    out.waits.push_back(std::move(wait));
  return known->second;
}

void TimelineRecorder::settle(const WarpState &w) {
  WarpTime &t = times[w.index];
  if (w.exited()) {
    out.ends[w.index] = t.upTo;
    out.left[w.index] = true;
    return;
  }
  const bool runs =
      std::any_of(w.splits, w.splits + w.numSplits, [](const Split &s) { return s.state == SplitState::Ready; });
  if (runs || t.waits || w.numSplits == 0)
    return;
  t.waits = true;
  t.wait = waitNumber(w);
}

bool TimelineRecorder::joins(const Flight &f, const AsyncWork &work) const {
  if (f.warp != work.warp || f.kind != work.kind || f.observed != TimelineWork::never)
    return false;
  const bool byGroup = work.kind != AsyncKind::Bulk && work.kind != AsyncKind::CopyArrive;
  return byGroup ? f.group == work.group
                 : &program->ops[f.op] == &work.op && f.lastIssued / out.ticksPerCell == now / out.ticksPerCell;
}

std::uint32_t TimelineRecorder::issued(const AsyncWork &work) {
  WarpTime &t = times[work.warp];
  auto f = flights.find(t.lastFlight);
  if (f == flights.end() || !joins(f->second, work)) {
    t.lastFlight = nextFlight++;
    f = flights.emplace(t.lastFlight, Flight{}).first;
    f->second.warp = work.warp;
    f->second.kind = work.kind;
    f->second.group = work.group;
    f->second.op = static_cast<std::uint32_t>(&work.op - program->ops.data());
    f->second.issued = now;
  }
  ++f->second.works;
  ++f->second.pending;
  f->second.lastIssued = now;
  return f->first;
}

void TimelineRecorder::delivered(std::uint32_t flight) {
  const auto f = flights.find(flight);
  if (f == flights.end() || f->second.pending == 0)
    return;
  --f->second.pending;
  f->second.delivered = now;
}

void TimelineRecorder::observedGroups(unsigned warp, AsyncKind kind, std::uint32_t limit) {
  for (auto &[id, f] : flights)
    if (f.warp == warp && f.kind == kind && f.group < limit && f.observed == TimelineWork::never)
      f.observed = now;
}

void TimelineRecorder::completes(std::uint32_t flight, std::uint32_t offset, std::uint64_t phase) {
  if (const auto f = flights.find(flight); f != flights.end()) {
    f->second.hasPhase = true;
    f->second.mbarrier = offset;
    f->second.phase = phase;
  }
}

void TimelineRecorder::observedPhases(std::uint32_t offset, std::uint64_t below) {
  for (auto &[id, f] : flights)
    if (f.hasPhase && f.mbarrier == offset && f.phase < below && f.observed == TimelineWork::never)
      f.observed = now;
}

Timeline TimelineRecorder::finish(const Launch &launch) {
  std::uint64_t end = now;
  for (const WarpTime &t : times)
    end = std::max(end, t.upTo);
  const bool stuck = std::any_of(times.begin(), times.end(), [](const WarpTime &t) { return t.waits; });
  if (stuck) // room to see it
    end += std::max<std::uint64_t>(4, end / 16);
  for (unsigned w = 0; w < times.size(); ++w) {
    fillWait(w, end);
    if (!out.left[w])
      out.ends[w] = times[w].upTo;
  }
  out.ticks = end;
  out.inStep = inStep;
  out.kernel = program->info.name;
  const Dim3 dims[] = {launch.grid, launch.block, wanted};
  std::uint32_t *const to[] = {out.grid, out.block, out.index};
  for (unsigned i = 0; i < 3; ++i) {
    to[i][0] = dims[i].x;
    to[i][1] = dims[i].y;
    to[i][2] = dims[i].z;
  }
  for (const auto &[id, f] : flights)
    out.works.push_back({f.warp, std::string(program->lines[program->ops[f.op].line].opcode), place(f.op), f.works,
                         f.bytes, f.issued, f.delivered, f.observed});
  return std::move(out);
}

} // namespace kiln::emulator
