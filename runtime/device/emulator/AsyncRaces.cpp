// Asynchronous operations as agents of the race checks, and the two proxies: sections 3.4 and 4.2 of the emulator
// specification.
#include "runtime/device/emulator/Executor.h"
#include "runtime/device/emulator/Races.h"

namespace kiln::emulator {

void BlockRaces::recordAsync(std::span<WarpState *const>, const Op &, const AsyncAgent &, std::span<const AsyncRange>,
                             bool) {}

void BlockRaces::observe(WarpState &, const AsyncAgent &) {}

void BlockRaces::proxyFence(WarpState &, bool, bool) {}

void BlockRaces::releaseTo(WarpState &w, Knowledge &k, bool relaxed) {
  WarpClocks &c = clocks[w.index];
  if (relaxed) {
    if (c.fenced)
      joinKnowledge(k, c.fenceWide.empty() ? c.fenceNarrow : c.fenceWide);
    return;
  }
  joinKnowledge(k, everything(w.index, w.block->linear));
  bump(w.index);
}

void BlockRaces::acquireFrom(WarpState &w, const Knowledge &k, bool relaxed) {
  if (relaxed) {
    joinKnowledge(clocks[w.index].pendingWide, k);
    return;
  }
  join(w.index, k, w.block->linear, true);
  bump(w.index);
}

void BlockRaces::recordObject(WarpState &, const Op &, std::uint32_t, std::uint64_t, unsigned, bool) {}

} // namespace kiln::emulator
