// Products of warpgroups: who has issued them, when they are delivered, what waits for them.
#include "runtime/device/emulator/matrix/Wgmma.h"
#include "runtime/device/emulator/execute/LaneValues.h"

#include "runtime/device/emulator/async/Async.h"
#include "runtime/device/emulator/checks/FloatBirths.h"
#include "runtime/device/emulator/memory/DefinedBits.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "support/Text.h"

#include <algorithm>
#include <cstring>

namespace kiln::emulator {

namespace {

std::string warpsText(std::uint32_t members, unsigned leader, bool present) {
  std::string text;
  for (unsigned i = 0; i < warpgroupWarps; ++i)
    if ((members >> i & 1) == present)
      text += (text.empty() ? "" : ", ") + std::to_string(leader + i);
  return text;
}

/// "descriptor of B 0x... (start 0x400, leading 16, stride 1024, base offset 0, 128-byte swizzle)"
std::string descriptorText(char operand, std::uint64_t bits) {
  const WgmmaDescriptor d = wgmmaDescriptor(bits);
  return format("descriptor of %c 0x%016llx (start %u, leading byte offset %u, stride byte offset %u, base offset %u, "
                "%s)",
                operand, static_cast<unsigned long long>(bits), d.start, d.leading, d.stride, d.baseOffset,
                d.swizzleBytes ? (std::to_string(d.swizzleBytes) + "-byte swizzle").c_str() : "no swizzle");
}

/// Row and column of a matrix at the start of a piece: of A (M, K) or of B (K, N).
std::string elementText(char name, const WgmmaOperand &operand, std::uint32_t piece, unsigned k) {
  const std::uint32_t row = operand.rowOf(piece), byte = operand.byteOf(piece);
  const std::uint32_t alongK = operand.mnMajor ? row : byte * k / WgmmaOperand::bytesOfK;
  const std::uint32_t across = operand.mnMajor ? byte / 2 : row;
  return format("row %u, column %u of %c", name == 'A' ? across : alongK, name == 'A' ? alongK : across, name);
}

} // namespace

class WgmmaWork final : public AsyncWork {
public:
  WgmmaWork(WarpState &leader, const Op &op, std::uint32_t number, const WgmmaForm &form)
      : AsyncWork(leader, op, fullMask, AsyncKind::Wgmma), form(form) {
    group = number;
    ordered = true;
    agent = {agentRow(block.linear, AgentKind::Wgmma), number, static_cast<std::uint8_t>(warp / warpgroupWarps), true};
  }
  bool ready() const override { return members == (1u << warpgroupWarps) - 1; }
  bool holds(unsigned w, std::uint32_t, AsyncKind k, std::uint32_t limit) const override {
    return k == kind && w / warpgroupWarps == warp / warpgroupWarps && group < limit;
  }
  Next deliver() override;

  /// One of the four warps issues it.
  struct Member {
    std::uint32_t pc = 0;
    std::uint64_t a = 0, b = 0;
    bool addsD = false;
  };
  void join(WarpState &w, const Op &by, const Member &member);
  /// All have: checks that they agree, and the descriptors.  False after a fatal finding at `w`.
  bool check(WarpState &w, const Op &by);
  void recordAccesses(const Op &by);

  const WgmmaForm &form;
  std::uint32_t members = 0; ///< mask of the warps that issued it
  Member member[warpgroupWarps];

private:
  bool checkOperand(WarpState &w, const Op &by, char name, std::uint64_t bits, const WgmmaOperand &operand,
                    std::uint32_t *pieces);
  void checkSwizzle(WarpState &w, const Op &by, char name, std::uint64_t bits, const WgmmaOperand &operand,
                    const std::uint32_t *pieces);
  void checkDefined(char name, const WgmmaOperand &operand, const std::uint32_t *pieces);

  std::uint32_t fragments[warpgroupWarps][wgmmaFragments][warpSize];
  std::uint32_t piecesA[wgmmaPiecesA], piecesB[wgmmaPiecesB];
};

void WgmmaWork::join(WarpState &w, const Op &by, const Member &m) {
  const unsigned i = w.index % warpgroupWarps;
  members |= 1u << i;
  member[i] = m;
  const WgmmaForm &own = w.program->wgmma->forms[static_cast<std::size_t>(by.imm)];
  if (own.fragments)
    for (unsigned f = 0; f < wgmmaFragments; ++f)
      std::memcpy(fragments[i][f], lanesOf<std::uint32_t>(w, w.pool[by.aux + own.accumulators + f]),
                  sizeof fragments[i][f]);
}

bool WgmmaWork::check(WarpState &w, const Op &by) {
  auto all = [&](auto same) {
    return std::all_of(member, member + warpgroupWarps, [&](const Member &m) { return same(m, member[0]); });
  };
  if (!all([](const Member &x, const Member &y) { return x.pc == y.pc; })) {
    std::string points;
    for (unsigned i = 0; i < warpgroupWarps; ++i)
      points += (i ? ", warp " : "warp ") + std::to_string(warp + i) + " at " + w.program->point(member[i].pc);
    reportFinding(w, by, "wgmma.mismatch", w.exec,
                  "the warps of a warpgroup issue different products as their number " + std::to_string(group) + ": " +
                      points,
                  true);
    return false;
  }
  auto differ = [&](const char *what, auto text) {
    if (countFinding(w, by, "wgmma.mismatch"))
      return;
    std::string values;
    for (unsigned i = 0; i < warpgroupWarps; ++i)
      values += (i ? ", warp " : "warp ") + std::to_string(warp + i) + " " + text(member[i]);
    reportFinding(w, by, "wgmma.mismatch", w.exec,
                  std::string("the warps of a warpgroup issue it with different ") + what + ": " + values +
                      "; it goes on with the first warp's",
                  false);
  };
  auto hex = [](std::uint64_t v) { return format("0x%016llx", static_cast<unsigned long long>(v)); };
  if (!all([](const Member &x, const Member &y) { return x.a == y.a; }))
    differ("descriptors of A", [&](const Member &m) { return hex(m.a); });
  if (!all([](const Member &x, const Member &y) { return x.b == y.b; }))
    differ("descriptors of B", [&](const Member &m) { return hex(m.b); });
  if (!all([](const Member &x, const Member &y) { return x.addsD == y.addsD; }))
    differ("scale-d", [&](const Member &m) { return std::string(m.addsD ? "true" : "false"); });
  return (form.fragments || checkOperand(w, by, 'A', member[0].a, form.a, piecesA)) &&
         checkOperand(w, by, 'B', member[0].b, form.b, piecesB);
}

bool WgmmaWork::checkOperand(WarpState &w, const Op &by, char name, std::uint64_t bits, const WgmmaOperand &operand,
                             std::uint32_t *pieces) {
  const WgmmaDescriptor d = wgmmaDescriptor(bits);
  auto defect = [&](const std::string &text) {
    if (!countFinding(w, by, "wgmma.desc"))
      reportFinding(w, by, "wgmma.desc", w.exec, descriptorText(name, bits) + ": " + text, false);
  };
  if (d.reserved) [[unlikely]]
    defect(format("bits 0x%016llx must be zero", static_cast<unsigned long long>(d.reserved)));
  if (!d.leading && usesLeading(d, operand)) [[unlikely]]
    defect("the leading byte offset is 0: parts of the matrix lie on each other");
  if (!d.stride && usesStride(d, operand)) [[unlikely]]
    defect("the stride byte offset is 0: parts of the matrix lie on each other");
  wgmmaPieces(d, operand, pieces);
  const std::uint32_t count = operand.pieces();
  std::uint32_t least = ~0u, most = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    least = std::min(least, pieces[i]);
    most = std::max(most, pieces[i]);
  }
  if (least >= block.sharedBegin && most + WgmmaOperand::pieceBytes <= block.sharedEnd) [[likely]] {
    checkSwizzle(w, by, name, bits, operand, pieces);
    return true;
  }
  const std::uint32_t *bad = std::find_if(pieces, pieces + count, [&](std::uint32_t p) {
    return p < block.sharedBegin || p + WgmmaOperand::pieceBytes > block.sharedEnd;
  });
  reportFinding(w, by, "wgmma.desc", w.exec,
                descriptorText(name, bits) + ": " +
                    elementText(name, operand, static_cast<std::uint32_t>(bad - pieces), form.k) +
                    " is at shared offset " + std::to_string(*bad) + ", the block has offsets " +
                    std::to_string(block.sharedBegin) + " to " + std::to_string(block.sharedEnd),
                true);
  return false;
}

/// What wrote the operand's bytes last was a copy of a tensor with another swizzle.  A note: what other blocks of a
/// cluster store there is not followed.
void WgmmaWork::checkSwizzle(WarpState &w, const Op &by, char name, std::uint64_t bits, const WgmmaOperand &operand,
                             const std::uint32_t *pieces) {
  const WgmmaState &state = *block.wgmma;
  if (state.writtenBy.empty())
    return;
  const std::uint32_t expected = wgmmaDescriptor(bits).swizzleBytes;
  for (std::uint32_t i = 0; i < operand.pieces(); ++i) {
    const std::uint32_t number = state.writtenBy[pieces[i] / WgmmaOperand::pieceBytes];
    if (!number)
      continue;
    const WgmmaState::TensorWrite &write = state.tensorWrites[number - 1];
    if (tensorMapSwizzleBytes(write.swizzle) == expected)
      continue;
    if (!countFinding(w, by, "wgmma.swizzle"))
      reportNote(w, by, "wgmma.swizzle", w.exec,
                 descriptorText(name, bits) + ": " + elementText(name, operand, i, form.k) + ", at " +
                     sharedName(*w.program, pieces[i]) + ", was written by a tensor copy at " +
                     w.program->point(write.op) + " with the swizzle '" +
                     std::string(tensorMapSwizzleName(write.swizzle)) + "'",
                 RawOther{write.block, write.warp, write.lanes, write.op});
    return;
  }
}

void WgmmaWork::recordAccesses(const Op &by) {
  std::vector<std::uint32_t> pieces(piecesB, piecesB + form.b.pieces());
  if (!form.fragments)
    pieces.insert(pieces.end(), piecesA, piecesA + form.a.pieces());
  std::sort(pieces.begin(), pieces.end());
  std::vector<AsyncRange> ranges;
  const auto base = reinterpret_cast<std::uint64_t>(block.shared);
  for (const std::uint32_t p : pieces) {
    if (ranges.empty() || base + p > ranges.back().address + ranges.back().bytes)
      ranges.push_back({base + p, 0});
    ranges.back().bytes = base + p + WgmmaOperand::pieceBytes - ranges.back().address;
  }
  WarpState *issuers[warpgroupWarps];
  for (unsigned i = 0; i < warpgroupWarps; ++i)
    issuers[i] = &block.warps[warp + i];
  block.races->recordAsync(issuers, by, agent, ranges, false);
}

void WgmmaWork::checkDefined(char name, const WgmmaOperand &operand, const std::uint32_t *pieces) {
  for (std::uint32_t i = 0; i < operand.pieces(); ++i) {
    if (allDefined(block.sharedBits, pieces[i], WgmmaOperand::pieceBytes)) [[likely]]
      continue;
    if (!countFinding(issuer(), op, "uninit.shared"))
      reportFinding(issuer(), op, "uninit.shared", lanes,
                    "reads 16 bytes from " + elementText(name, operand, i, form.k) + " on, at " +
                        sharedName(*issuer().program, pieces[i]) + ", of which nobody wrote all",
                    false);
    return;
  }
}

Next WgmmaWork::deliver() {
  if (block.sharedBits) {
    if (!form.fragments)
      checkDefined('A', form.a, piecesA);
    checkDefined('B', form.b, piecesB);
  }
  WgmmaProduct product{
      form, block.worker.launch.mma, block.shared, form.fragments ? nullptr : piecesA, piecesB, fragments,
      {},   member[0].addsD};
  for (unsigned i = 0; i < warpgroupWarps; ++i)
    for (unsigned e = 0; e < form.accumulators; ++e)
      product.accumulators[i][e] =
          lanesOf<std::uint32_t>(block.warps[warp + i], block.warps[warp + i].pool[op.aux + e]);
  FloatBirths *const births = block.worker.births.get();
  if (births)
    births->beforeProduct(issuer(), op, product);
  form.multiply(product);
  if (births)
    births->afterProduct(issuer(), op, product);
  return Next::Advance;
}

std::shared_ptr<WgmmaState> makeWgmmaState(const Program &program, std::size_t warps) {
  auto state = std::make_shared<WgmmaState>();
  state->warps.resize(warps);
  for (WgmmaWarp &w : state->warps)
    w.registers.resize(program.wgmma->numRegisters);
  state->groups.resize((warps + warpgroupWarps - 1) / warpgroupWarps);
  return state;
}

void startWgmma(WgmmaState &state) {
  for (WgmmaWarp &w : state.warps) {
    std::vector<WgmmaRegister> registers = std::move(w.registers);
    std::fill(registers.begin(), registers.end(), WgmmaRegister{});
    w = {};
    w.registers = std::move(registers);
  }
  for (WgmmaState::Warpgroup &g : state.groups)
    g = {};
  state.tensorWrites.clear();
  state.writtenBy.clear();
}

void noteBulkWrite(BlockState &block, std::span<const AsyncRange> offsets, const WarpState &w, const Op &op,
                   std::optional<TensorMapSwizzle> swizzle) {
  WgmmaState &state = *block.wgmma;
  constexpr std::uint32_t unit = WgmmaOperand::pieceBytes;
  if (state.writtenBy.empty())
    state.writtenBy.resize((block.sharedEnd + unit - 1) / unit);
  std::uint32_t number = 0;
  if (swizzle) {
    const WgmmaState::TensorWrite write{static_cast<std::uint32_t>(&op - w.program->ops.data()), w.exec,
                                        w.block->linear, w.index, *swizzle};
    const auto known = std::find(state.tensorWrites.begin(), state.tensorWrites.end(), write);
    number = static_cast<std::uint32_t>(known - state.tensorWrites.begin()) + 1;
    if (known == state.tensorWrites.end())
      state.tensorWrites.push_back(write);
  }
  for (const AsyncRange &r : offsets)
    for (std::uint64_t at = r.address / unit; at * unit < r.address + r.bytes; ++at)
      state.writtenBy[at] = number;
}

void noteOrdinaryWrite(BlockState &block, std::uint64_t offset, std::uint64_t bytes) {
  std::vector<std::uint32_t> &writtenBy = block.wgmma->writtenBy;
  constexpr std::uint32_t unit = WgmmaOperand::pieceBytes;
  for (std::uint64_t at = offset / unit; !writtenBy.empty() && at * unit < offset + bytes; ++at)
    writtenBy[at] = 0;
}

/// The value of a uniform operand: the first executing lane's; a finding if the lanes differ.
template <typename T> static T uniformValue(WarpState &w, const Op &op, Slot slot, const char *what) {
  const T *values = lanesOf<T>(w, slot);
  const T first = values[__builtin_ctz(w.exec)];
  for (std::uint32_t m = w.exec; m; m &= m - 1)
    if (const auto l = static_cast<unsigned>(__builtin_ctz(m)); values[l] != first) {
      if (!countFinding(w, op, "wgmma.mismatch"))
        reportFinding(w, op, "wgmma.mismatch", w.exec,
                      "lane " + std::to_string(l) + " has another " + what + " than lane " +
                          std::to_string(__builtin_ctz(w.exec)) + ", whose value is used",
                      false);
      break;
    }
  return first;
}

Next wgmmaIssue(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  BlockState &block = *w.block;
  WgmmaState &state = *block.wgmma;
  const WgmmaForm &form = w.program->wgmma->forms[static_cast<std::size_t>(op.imm)];
  const unsigned leader = w.index / warpgroupWarps * warpgroupWarps;
  if (leader + warpgroupWarps > block.warps.size()) {
    reportFinding(w, op, "wgmma.mismatch", w.exec,
                  "a warpgroup is four warps, but the block has only " + std::to_string(block.warps.size() - leader) +
                      " from warp " + std::to_string(leader) + " on",
                  true);
    return Next::Fault;
  }
  if (w.exec != fullMask && w.exec == w.alive && !countFinding(w, op, "matrix.missing_lane"))
    reportFinding(w, op, "matrix.missing_lane", w.exec,
                  format("lanes 0x%08x of the warp have exited or do not exist; all 32 must take part", ~w.exec),
                  false);
  checkProductRegisters(w, op, form);

  WgmmaWarp &mine = state.warps[w.index];
  WgmmaWork::Member member;
  member.pc = mine.lastPc = static_cast<std::uint32_t>(&op - w.program->ops.data());
  if (!form.fragments)
    member.a = uniformValue<std::uint64_t>(w, op, op.s[0], "descriptor of A");
  member.b = uniformValue<std::uint64_t>(w, op, op.s[1], "descriptor of B");
  member.addsD = uniformValue<std::uint32_t>(w, op, op.s[2], "scale-d") != 0;

  WgmmaState::Warpgroup &group = state.groups[w.index / warpgroupWarps];
  const std::uint32_t number = ++mine.issued;
  const std::size_t place = number - group.complete - 1;
  if (place == group.open.size()) {
    auto work = std::make_unique<WgmmaWork>(block.warps[leader], op, number, form);
    group.open.push_back(work.get());
    keepAsync(std::move(work));
  }
  WgmmaWork &work = *group.open[place];
  work.join(w, op, member);
  ++block.worker.progress;
  if (!work.ready())
    return Next::Advance;
  group.open.pop_front(); // the first one: every warp issues its products in order
  ++group.complete;
  if (!work.check(w, op))
    return Next::Fault;
  if (block.races)
    work.recordAccesses(op);
  return becameReady(work);
}

Next wgmmaFence(Warp &warp, const Op &) {
  WgmmaWarp &mine = warp.block->wgmma->warps[warp.index];
  ++mine.fences;
  mine.issuedAtFence = mine.issued;
  return Next::Advance;
}

Next wgmmaCommit(Warp &warp, const Op &) {
  WgmmaWarp &mine = warp.block->wgmma->warps[warp.index];
  mine.commits.push_back(mine.issued);
  mine.committed = mine.issued;
  return Next::Advance;
}

Next waitForProducts(WarpState &w, std::uint32_t last) {
  if (!w.block->async->queue.holds(w.index, w.exec, AsyncKind::Wgmma, last + 1))
    return Next::Advance;
  w.uncounted = w.exec;
  Split &s = detach(w, w.pc);
  s.state = SplitState::AsyncGroup;
  s.asyncKind = static_cast<std::uint8_t>(AsyncKind::Wgmma);
  s.waitsFor = last + 1;
  return Next::Switch;
}

Next wgmmaWait(Warp &warp, const Op &op) {
  auto &w = static_cast<WarpState &>(warp);
  WgmmaWarp &mine = w.block->wgmma->warps[w.index];
  const auto keep = static_cast<std::size_t>(op.imm);
  if (mine.commits.size() <= keep)
    return Next::Advance;
  const std::size_t over = mine.commits.size() - keep;
  const std::uint32_t last = mine.commits[over - 1];
  if (const Next next = waitForProducts(w, last); next != Next::Advance)
    return next;
  mine.done = std::max(mine.done, last);
  mine.commits.erase(mine.commits.begin(), mine.commits.begin() + static_cast<std::ptrdiff_t>(over));
  if (BlockRaces *races = w.block->races; races && last)
    races->observe(w, {agentRow(w.block->linear, AgentKind::Wgmma), last,
                       static_cast<std::uint8_t>(w.index / warpgroupWarps), true});
  return Next::Advance;
}

std::string wgmmaGroupText(const WgmmaWarp &w, std::uint32_t product) {
  const auto at = std::lower_bound(w.commits.begin(), w.commits.end(), product);
  if (at == w.commits.end())
    return "not committed to a group";
  return "group " + std::to_string(at - w.commits.begin() + 1) + " of " + std::to_string(w.commits.size()) + " pending";
}

void checkWgmmaAtExit(BlockState &block) {
  WgmmaState &state = *block.wgmma;
  for (WgmmaState::Warpgroup &g : state.groups)
    if (!g.open.empty()) {
      const WgmmaWork &work = *g.open.front();
      reportFinding(work.issuer(), work.op, "wgmma.mismatch", fullMask,
                    "issued by warps " + warpsText(work.members, work.warp, true) + " of the warpgroup, but warps " +
                        warpsText(work.members, work.warp, false) + " exited without it",
                    false);
      g.open.clear();
    }
  for (WarpState &w : block.warps)
    if (const WgmmaWarp &mine = state.warps[w.index]; mine.issued > mine.committed)
      reportFinding(w, w.program->ops[mine.lastPc], "wgmma.uncommitted", fullMask,
                    "the warp exits without a wgmma.commit_group after it, so no wait could cover it", false);
}

std::string describeWgmmaWait(const BlockState &block, const WarpState &w, std::uint32_t limit) {
  const WgmmaState::Warpgroup &g = block.wgmma->groups[w.index / warpgroupWarps];
  for (const WgmmaWork *work : g.open)
    if (work->group < limit)
      return " waits for the wgmma issued at " +
             w.program->point(static_cast<std::uint32_t>(&work->op - w.program->ops.data())) + " by warps " +
             warpsText(work->members, work->warp, true) + " only (warps " +
             warpsText(work->members, work->warp, false) + " of the warpgroup have not issued it)";
  return " waits for wgmma";
}

} // namespace kiln::emulator
