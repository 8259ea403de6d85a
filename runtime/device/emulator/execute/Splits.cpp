// Divergence: groups of lanes with one program counter each, section 4.6 of the emulator specification.
//
// The split that is deepest in calls, then earliest in the scheduling order runs until it reaches the point of another
// one; splits at one point merge.  A split that has looped for a while lets the others go first, so lanes that wait for
// other lanes of their warp (spin locks) make progress.
#include "runtime/device/emulator/execute/Executor.h"

#include <algorithm>
#include <cstdio>

namespace kiln::emulator {

/// Backward branches of one split before others get their turn: if it polls and nothing changes; if nothing changes; in
/// any case.
static constexpr std::uint32_t fairness = 64, patience = 4096, most = 1 << 16;

static void removeSplit(WarpState &w, std::uint32_t i) {
  w.splits[i] = w.splits[--w.numSplits];
}

static void mergeSplits(WarpState &w) {
  for (std::uint32_t i = 0; i < w.numSplits; ++i) {
    Split &a = w.splits[i];
    if (a.state != SplitState::Ready && a.state != SplitState::Parked)
      continue;
    for (std::uint32_t j = i + 1; j < w.numSplits;) {
      const Split &b = w.splits[j];
      if (b.pc == a.pc && b.depth == a.depth && (b.state == SplitState::Ready || b.state == SplitState::Parked)) {
        a.mask |= b.mask;
        a.state = SplitState::Ready; // whoever parked looks again
        a.tired = a.tired && b.tired;
        a.backward = std::max(a.backward, b.backward);
        a.forced = a.forced || b.forced;
        removeSplit(w, j);
      } else {
        ++j;
      }
    }
  }
}

bool pickSplit(WarpState &w) {
  if (w.numSplits > 1)
    mergeSplits(w);
  const auto &order = w.program->order;
  for (int round = 0; round < 2; ++round) {
    std::uint32_t best = warpSize;
    for (std::uint32_t i = 0; i < w.numSplits; ++i) {
      const Split &s = w.splits[i];
      if (s.state != SplitState::Ready || s.tired)
        continue;
      if (best == warpSize || s.depth > w.splits[best].depth ||
          (s.depth == w.splits[best].depth && order[s.pc] < order[w.splits[best].pc]))
        best = i;
    }
    if (best == warpSize) {
      for (std::uint32_t i = 0; i < w.numSplits; ++i)
        w.splits[i].tired = false;
      continue;
    }
    if (w.numSplits > 1 && w.block->worker.launch.seeded()) {
      const unsigned i = w.block->chooser.pickSplit(w.numSplits);
      if (i < w.numSplits && w.splits[i].state == SplitState::Ready && !w.splits[i].tired)
        best = i;
    }
    const Split &s = w.splits[best];
    w.current = best;
    w.pc = s.pc;
    w.mask = s.mask;
    w.forced = s.forced;
    w.splits[best].forced = false;
    w.stopOrder = ~0u;
    for (std::uint32_t i = 0; i < w.numSplits; ++i) {
      const Split &t = w.splits[i];
      const bool meets = t.state == SplitState::Parked || (t.state == SplitState::Ready && !t.tired);
      if (i != best && meets && t.depth == s.depth && order[t.pc] > order[s.pc])
        w.stopOrder = std::min(w.stopOrder, order[t.pc]);
    }
    return true;
  }
  return false;
}

Split &addSplit(WarpState &w, std::uint32_t pc, std::uint32_t mask, unsigned depth) {
  Split &s = w.splits[w.numSplits++];
  s = {};
  s.pc = pc;
  s.mask = mask;
  s.depth = static_cast<std::uint16_t>(depth);
  return s;
}

Next branchTo(WarpState &w, std::uint32_t target) {
  if (w.exec == w.mask) {
    w.pc = target;
    return Next::Jump;
  }
  Split &s = w.splits[w.current];
  s.pc = w.pc + 1;
  s.mask = w.mask & ~w.exec;
  addSplit(w, target, w.exec, s.depth).backward = s.backward;
  return Next::Switch;
}

Split &detach(WarpState &w, std::uint32_t pc) {
  const std::uint32_t rest = w.mask & ~w.exec;
  if (rest)
    addSplit(w, w.pc + 1, rest, w.splits[w.current].depth);
  Split &s = w.splits[w.current];
  s.pc = pc;
  s.mask = w.exec;
  return s;
}

Next exitLanes(WarpState &w) {
  BlockState &block = *w.block;
  w.alive &= ~w.exec;
  ++block.worker.progress;
  const std::uint32_t rest = w.mask & ~w.exec;
  if (rest) {
    w.splits[w.current].pc = w.pc + 1;
    w.splits[w.current].mask = rest;
  } else {
    removeSplit(w, w.current);
  }
  // Parked splits may have been waiting for the lanes that left.
  for (std::uint32_t i = 0; i < w.numSplits; ++i)
    if (w.splits[i].state == SplitState::Parked)
      w.splits[i].state = SplitState::Ready;
  if (w.exited()) {
    block.warpsAlive &= ~(1u << w.index);
    block.exitPc = w.pc;
  }
  recheckBarriers(block);
  return Next::Switch;
}

bool wentBackward(WarpState &w, Split &s) {
  if (++s.backward % fairness)
    return false;
  Worker &worker = w.block->worker;
  const bool polled = worker.polls != w.pollMark, progressed = worker.progress != w.progressMark;
  w.pollMark = worker.polls;
  w.progressMark = worker.progress;
  const bool spins = polled && !progressed;
  if (w.numSplits == 1) {
    w.spinning = spins;
    return spins;
  }
  // Lanes that wait where the loop ends would run ahead on their own if the loop were left just because it is long.
  if (!spins && (progressed || s.backward < patience) && s.backward < most)
    return false;
  s.backward = 0;
  s.tired = true;
  // The warp as a whole spins only if every split of it has had its turn.
  bool all = true;
  for (std::uint32_t i = 0; i < w.numSplits; ++i)
    all &= w.splits[i].state != SplitState::Ready || w.splits[i].tired;
  w.spinning = spins && all;
  return true;
}

namespace {

std::string lanesText(std::uint32_t lanes) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", lanes);
  return text;
}

/// Where the warp's lanes outside `mask` are: "lanes 0xffff0000 of the warp are at k.cu:12 (ptx line 40)".
std::string whereAreOthers(const WarpState &w, std::uint32_t mask) {
  std::string text;
  for (std::uint32_t i = 0; i < w.numSplits; ++i)
    if (const std::uint32_t others = w.splits[i].mask & mask)
      text += (text.empty() ? "lanes " : ", lanes ") + lanesText(others) + " of the warp are at " +
              w.program->point(w.splits[i].pc);
  return text;
}

/// Reads of the control flow on a rare path: the graph of the function that holds `op`, rebuilt from the ops.
struct Reach {
  explicit Reach(const WarpState &w) : w(w) {}

  /// Whether lanes at `from` can come to `to` without leaving the function by a call.
  bool reaches(std::uint32_t from, std::uint32_t to) {
    std::vector<char> seen(w.program->ops.size(), 0);
    std::vector<std::uint32_t> todo{from};
    while (!todo.empty()) {
      const std::uint32_t pc = todo.back();
      todo.pop_back();
      if (pc >= seen.size() || seen[pc])
        continue;
      if (pc == to)
        return true;
      seen[pc] = 1;
      for (std::uint32_t s : successors(pc))
        todo.push_back(s);
    }
    return false;
  }
  /// Whether lanes at `from` leave the kernel without an op that others could see.
  bool justLeaves(std::uint32_t from) {
    for (unsigned steps = 0; steps < 64; ++steps) {
      const auto next = successors(from);
      const auto &edge = w.program->edges[from];
      if (next.empty())
        return edge.kind != FlowKind::Next;
      if (next.size() > 1 || edge.visible)
        return false;
      from = next[0];
    }
    return false;
  }

private:
  std::vector<std::uint32_t> successors(std::uint32_t pc) const {
    std::vector<std::uint32_t> out;
    const ProgramEdge &e = w.program->edges[pc];
    if (e.kind == FlowKind::Next || e.guarded)
      out.push_back(pc + 1);
    if (e.kind == FlowKind::Branch)
      out.push_back(w.program->ops[pc].aux);
    if (e.kind == FlowKind::IndexedBranch)
      for (std::uint32_t i = 0; i < e.targets; ++i)
        out.push_back(w.program->pool[w.program->ops[pc].aux + i]);
    return out;
  }
  const WarpState &w;
};

/// An .aligned op met by a part of the warp.
Next parkAligned(WarpState &w, const Op &op) {
  w.uncounted = w.exec;
  Split &s = detach(w, w.pc);
  s.state = SplitState::Parked;
  if (s.depth == 0) {
    Reach reach(w);
    for (std::uint32_t i = 0; i < w.numSplits; ++i) {
      const Split &other = w.splits[i];
      if (&other == &s || other.depth != 0 || other.state == SplitState::Parked)
        continue;
      if (!reach.reaches(other.pc, s.pc) && !reach.justLeaves(other.pc)) {
        reportFinding(w, op, "aligned.divergent", s.mask,
                      "executed by lanes " + lanesText(s.mask) + "; " + whereAreOthers(w, w.alive & ~s.mask), false);
        s.state = SplitState::Ready;
        s.forced = true;
        break;
      }
    }
  }
  return Next::Switch;
}

const std::uint32_t *maskLanes(const WarpState &w, const Op &op) {
  return reinterpret_cast<const std::uint32_t *>(w.registers + op.s[3]);
}

/// The lanes that `op` may run with now, of those that execute it, and the ones that must wait.
struct Gathered {
  std::uint32_t groups[warpSize];
  unsigned numGroups = 0;
  std::uint32_t waiting = 0;
};

/// Lanes parked at other ops that gather from any program point (bar.warp.sync) with member mask `m`.
std::uint32_t parkedElsewhere(const WarpState &w, std::uint32_t m) {
  std::uint32_t lanes = 0;
  for (std::uint32_t i = 0; i < w.numSplits; ++i) {
    const Split &s = w.splits[i];
    if (i == w.current || s.state != SplitState::Parked)
      continue;
    const Op &op = w.program->ops[s.pc];
    if (op.kind != MemberMaskAnywhere)
      continue;
    for (std::uint32_t l = s.mask; l; l &= l - 1) {
      const unsigned lane = static_cast<unsigned>(__builtin_ctz(l));
      if (maskLanes(w, op)[lane] == m)
        lanes |= 1u << lane;
    }
  }
  return lanes;
}

/// Lanes `lanes` parked elsewhere go on after their op.
void releaseElsewhere(WarpState &w, std::uint32_t lanes) {
  for (std::uint32_t i = 0, n = w.numSplits; i < n; ++i) {
    Split &s = w.splits[i];
    if (i == w.current || s.state != SplitState::Parked || !(s.mask & lanes) ||
        w.program->ops[s.pc].kind != MemberMaskAnywhere)
      continue;
    if (const std::uint32_t rest = s.mask & ~lanes) {
      Split &left = addSplit(w, s.pc, rest, s.depth);
      left.state = SplitState::Parked;
    }
    w.splits[i].mask &= lanes;
    w.splits[i].pc += 1;
    w.splits[i].state = SplitState::Ready;
  }
}

Next runMemberMask(WarpState &w, const Op &op) {
  const std::uint32_t *masks = maskLanes(w, op);
  const bool anywhere = op.kind == MemberMaskAnywhere;
  Gathered g;
  std::uint32_t todo = w.exec, released = 0, selfless = 0;
  while (todo) {
    const unsigned first = static_cast<unsigned>(__builtin_ctz(todo));
    const std::uint32_t m = masks[first];
    std::uint32_t group = 0;
    for (std::uint32_t l = todo; l; l &= l - 1) {
      const unsigned lane = static_cast<unsigned>(__builtin_ctz(l));
      if (masks[lane] == m)
        group |= 1u << lane;
    }
    todo &= ~group;
    selfless |= group & ~m;
    const std::uint32_t elsewhere = anywhere ? parkedElsewhere(w, m) : 0;
    const std::uint32_t missing = m & w.alive & ~group & ~elsewhere;
    if (missing && !w.forced) {
      g.waiting |= group;
    } else {
      g.groups[g.numGroups++] = group;
      released |= elsewhere;
    }
  }
  if (selfless) {
    const unsigned lane = static_cast<unsigned>(__builtin_ctz(selfless));
    reportFinding(w, op, "mask.self", selfless,
                  "lane " + std::to_string(lane) + " is not in its own mask " + lanesText(masks[lane]), false);
  }
  w.forced = false;
  const std::uint32_t exec = w.exec;
  for (unsigned i = 0; i < g.numGroups; ++i) {
    w.exec = g.groups[i];
    ++w.syncs;
    if (const Next n = op.run(w, op); n == Next::Fault)
      return n;
  }
  w.exec = exec;
  if (released)
    releaseElsewhere(w, released);
  if (!g.waiting)
    return released ? (w.pc += 1, storeSplit(w), Next::Switch) : Next::Advance;
  w.uncounted = g.waiting;
  w.exec = g.waiting;
  detach(w, w.pc).state = SplitState::Parked;
  return Next::Switch;
}

} // namespace

Next runGathered(WarpState &w, const Op &op) {
  if (op.kind != Aligned)
    return runMemberMask(w, op);
  if (w.exec == w.alive || w.forced) {
    w.forced = false;
    ++w.syncs;
    const Next next = op.run(w, op);
    ++w.syncs; // nor do the lanes part while they move a matrix
    return next;
  }
  return parkAligned(w, op);
}

bool forceParked(BlockState &block) {
  for (WarpState &w : block.warps) {
    std::uint32_t best = warpSize;
    for (std::uint32_t i = 0; i < w.numSplits; ++i)
      if (w.splits[i].state == SplitState::Parked &&
          (best == warpSize || w.program->order[w.splits[i].pc] < w.program->order[w.splits[best].pc]))
        best = i;
    if (best == warpSize)
      continue;
    Split &s = w.splits[best];
    const Op &op = w.program->ops[s.pc];
    if (op.kind == Aligned) {
      reportFinding(w, op, "aligned.divergent", s.mask,
                    "executed by lanes " + lanesText(s.mask) + "; " + whereAreOthers(w, w.alive & ~s.mask), false);
    } else {
      const std::uint32_t m = maskLanes(w, op)[__builtin_ctz(s.mask)];
      reportFinding(w, op, "mask.missing", s.mask,
                    "waits for lanes " + lanesText(m & w.alive & ~s.mask) + " of mask " + lanesText(m) + ": " +
                        whereAreOthers(w, m & w.alive & ~s.mask),
                    false);
    }
    s.state = SplitState::Ready;
    s.forced = true;
    return true;
  }
  return false;
}

} // namespace kiln::emulator
