// Works in flight: when they are delivered, who waits for them.
#include "runtime/device/emulator/async/Async.h"

#include "runtime/device/emulator/matrix/Wgmma.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "runtime/device/emulator/observe/TimelineRecorder.h"

#include <algorithm>

namespace kiln::emulator {

static constexpr GroupSeries seriesOf(AsyncKind kind) {
  return kind == AsyncKind::Copy || kind == AsyncKind::CopyArrive ? GroupSeries::Copy
         : kind == AsyncKind::Wgmma                               ? GroupSeries::Wgmma
                                                                  : GroupSeries::Bulk;
}

AsyncWork::AsyncWork(WarpState &issuer, const Op &op, std::uint32_t lanes, AsyncKind kind)
    : block(*issuer.block), op(op), lanes(lanes), warp(static_cast<std::uint8_t>(issuer.index)), kind(kind) {
  const AsyncGroups &groups = block.async->groups[issuer.index];
  group = groups.open[static_cast<unsigned>(seriesOf(kind))][__builtin_ctz(lanes)];
  if (block.timeline)
    flight = block.timeline->issued(*this);
}

AsyncWork::~AsyncWork() {
  if (block.timeline)
    block.timeline->delivered(flight);
}

void AsyncQueue::start(Schedule schedule, RandomStream seeded) {
  for (auto &s : streams)
    s.clear();
  count = 0;
  random = seeded;
  when = Timing::Any;
  // In half of the blocks of a hostile schedule data comes as late as it may, in some as early as it may: pipelines
  // then run as far ahead of their data, or as soon after it, as they can.
  if (schedule == Schedule::Adversarial)
    if (const std::uint64_t r = random.below(8); r < 6)
      when = r < 4 ? Timing::Late : Timing::Early;
}

// By kind and issuer, so that a schedule may starve or favour one of them.
unsigned AsyncQueue::streamOf(const AsyncWork &work) {
  return (static_cast<unsigned>(work.kind) * 11u + work.warp) % numStreams;
}

void AsyncQueue::push(std::unique_ptr<AsyncWork> work) {
  auto &stream = streams[streamOf(*work)];
  work->serial = ++serials;
  stream.push_back(std::move(work));
  ++count;
}

std::uint32_t AsyncQueue::deliverable() const {
  std::uint32_t out = 0;
  for (unsigned s = 0; count && s < numStreams; ++s)
    if (std::any_of(streams[s].begin(), streams[s].end(), [](const auto &w) { return w->ready(); }))
      out |= 1u << s;
  return out;
}

Next AsyncQueue::deliver(unsigned stream) {
  auto &list = streams[stream];
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const AsyncWork &w = *list[i];
    const bool behind = w.ordered && std::any_of(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i),
                                                 [&](const auto &e) { return e->kind == w.kind && e->warp == w.warp; });
    if (!behind && w.ready())
      ready.push_back(i);
  }
  if (ready.empty())
    return Next::Advance;
  const std::size_t i = ready[random.below(ready.size())];
  const std::unique_ptr<AsyncWork> work = std::move(list[i]);
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
  --count;
  return work->deliver();
}

bool AsyncQueue::holds(unsigned warp, std::uint32_t waiting, AsyncKind kind, std::uint32_t limit) const {
  if (count == 0)
    return false;
  for (const auto &stream : streams)
    for (const auto &w : stream)
      if (w->holds(warp, waiting, kind, limit))
        return true;
  return false;
}

bool AsyncQueue::hasEarlier(const AsyncWork &than, AsyncKind kind) const {
  for (const auto &stream : streams)
    for (const auto &w : stream)
      if (w->kind == kind && w->warp == than.warp && w->lanes & than.lanes && w->serial < than.serial)
        return true;
  return false;
}

std::shared_ptr<AsyncState> makeAsyncState(std::size_t warps) {
  auto state = std::make_shared<AsyncState>();
  state->groups.resize(warps);
  return state;
}

void startAsync(BlockState &block) {
  AsyncState &a = *block.async;
  const Launch &launch = block.worker.launch;
  // A stream of random numbers of its own: what the warps do does not depend on how many copies there are.
  a.queue.start(launch.schedule, RandomStream{launch.seed, launch.gridId, block.linear, 0xA51C});
  a.mbarriers.clear();
  a.pendingStores.clear();
  std::fill(a.groups.begin(), a.groups.end(), AsyncGroups{});
  a.wokenAt = ~std::uint64_t(0);
}

/// Lanes of the block whose groups are complete go on.
static void wakeGroupWaits(BlockState &block) {
  for (WarpState &w : block.warps)
    for (std::uint32_t i = 0; i < w.numSplits; ++i) {
      Split &s = w.splits[i];
      if (s.state == SplitState::AsyncGroup &&
          !block.async->queue.holds(w.index, s.mask, static_cast<AsyncKind>(s.asyncKind), s.waitsFor))
        s.state = SplitState::Ready;
    }
}

Next issueAsync(std::unique_ptr<AsyncWork> work) {
  BlockState &block = work->block;
  if (block.worker.launch.seeded()) {
    block.async->queue.push(std::move(work));
    return Next::Advance;
  }
  ++block.worker.progress;
  return work->deliver();
}

void keepAsync(std::unique_ptr<AsyncWork> work) {
  BlockState &block = work->block;
  block.async->queue.push(std::move(work));
}

Next becameReady(AsyncWork &work) {
  return work.block.worker.launch.seeded() ? Next::Advance : deliverAsync(work.block, AsyncQueue::streamOf(work));
}

Next deliverAsync(BlockState &block, unsigned stream) {
  ++block.worker.progress;
  if (block.async->queue.deliver(stream) == Next::Fault)
    return Next::Fault;
  wakeGroupWaits(block);
  return Next::Advance;
}

void commitGroup(WarpState &w, GroupSeries series) {
  std::uint32_t *open = w.block->async->groups[w.index].open[static_cast<unsigned>(series)];
  for (unsigned l = 0; l < warpSize; ++l)
    open[l] += w.exec >> l & 1;
}

Next waitForGroups(WarpState &w, const Op &, GroupSeries series, AsyncKind kind, std::uint32_t keep) {
  AsyncState &a = *w.block->async;
  TimelineRecorder *const timeline = w.block->timeline;
  if (a.queue.empty() && !timeline)
    return Next::Advance;
  const std::uint32_t *open = a.groups[w.index].open[static_cast<unsigned>(series)];
  // Lanes with different counts wait for the most: no harm, since copies may be late or early anyway.
  std::uint32_t limit = 0;
  for (std::uint32_t m = w.exec; m; m &= m - 1)
    if (const std::uint32_t n = open[__builtin_ctz(m)]; n > keep)
      limit = std::max(limit, n - keep);
  if (!a.queue.holds(w.index, w.exec, kind, limit)) {
    if (timeline)
      timeline->observedGroups(w.index, kind, limit);
    return Next::Advance;
  }
  w.uncounted = w.exec;
  Split &s = detach(w, w.pc);
  s.state = SplitState::AsyncGroup;
  s.asyncKind = static_cast<std::uint8_t>(kind);
  s.waitsFor = limit;
  return Next::Switch;
}

bool waitsForMbarrier(const BlockState &block) {
  if (!block.async)
    return false;
  for (const WarpState &w : block.warps)
    for (std::uint32_t i = 0; i < w.numSplits; ++i)
      if (w.splits[i].state == SplitState::Mbarrier)
        return true;
  return false;
}

bool wakeMbarrierWaits(BlockState &block) {
  AsyncState &a = *block.async;
  if (a.wokenAt == block.worker.progress)
    return false;
  a.wokenAt = block.worker.progress;
  for (WarpState &w : block.warps)
    for (std::uint32_t i = 0; i < w.numSplits; ++i)
      if (w.splits[i].state == SplitState::Mbarrier) {
        w.splits[i].state = SplitState::Ready;
        w.splits[i].forced = true;
      }
  return true;
}

/// The block must not end while bulk stores may still read its shared memory.
static void checkPendingStores(BlockState &block) {
  for (const PendingStore &s : block.async->pendingStores) {
    WarpState &w = block.warps[s.warp];
    const Op &op = w.program->ops[s.op];
    if (!countFinding(w, op, "async.exit_pending"))
      reportFinding(w, op, "async.exit_pending", 1u << s.lane,
                    "the block ends while this store may still read " + sharedName(*w.program, s.offset) + ", " +
                        std::to_string(s.bytes) + " bytes: its thread (lane " + std::to_string(s.lane) +
                        ") has not waited for its bulk group",
                    false);
  }
}

Next finishAsync(BlockState &block) {
  AsyncQueue &queue = block.async->queue;
  while (!queue.empty()) {
    const std::uint32_t streams = queue.deliverable();
    if (!streams)
      break;
    if (queue.deliver(static_cast<unsigned>(__builtin_ctz(streams))) == Next::Fault)
      return Next::Fault;
  }
  checkMbarriersAtExit(block);
  checkPendingStores(block);
  if (block.wgmma)
    checkWgmmaAtExit(block);
  return Next::Advance;
}

std::string describeAsyncWait(const BlockState &block, const WarpState &w, const Split &s) {
  if (s.state == SplitState::Mbarrier)
    return describeMbarrier(block, s.waitsFor);
  const auto kind = static_cast<AsyncKind>(s.asyncKind);
  if (kind == AsyncKind::Wgmma)
    return describeWgmmaWait(block, w, s.waitsFor);
  return std::string(" waits for ") +
         (kind == AsyncKind::Copy       ? "cp.async groups"
          : kind == AsyncKind::BulkRead ? "the reads of bulk groups"
                                        : "bulk groups") +
         " before number " + std::to_string(s.waitsFor);
}

} // namespace kiln::emulator
