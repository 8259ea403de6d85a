#include "runtime/device/emulator/checks/Findings.h"

#include "runtime/device/emulator/execute/Executor.h"

#include "support/Text.h"

#include <algorithm>

namespace kiln::emulator {

void FindingSink::report(RawFinding finding) {
  auto [entry, isNew] = found.try_emplace({finding.id, finding.op, finding.other ? finding.other->op : noOther});
  RawFinding &known = entry->second;
  const std::uint64_t count = known.count + 1;
  const std::uint64_t inBlock = isNew || known.block != finding.block ? 1 : known.countInBlock + 1;
  // A worker's clusters come in rising order, but those that wait for each other take turns.
  if (isNew || finding.block < known.block || (finding.fatal && !known.fatal)) {
    known = std::move(finding);
    known.countInBlock = inBlock;
  } else if (known.block == finding.block) {
    known.countInBlock = inBlock;
  }
  known.count = count;
}

bool FindingSink::again(const char *id, std::uint32_t op, BlockPlace block, std::uint32_t otherOp) {
  const auto known = found.find({id, op, otherOp});
  if (known == found.end() || known->second.block > block)
    return false;
  known->second.count += 1;
  known->second.countInBlock += known->second.block == block;
  return true;
}

static Dim3 blockIndex(std::uint64_t linear, Dim3 grid) {
  return {static_cast<std::uint32_t>(linear % grid.x), static_cast<std::uint32_t>(linear / grid.x % grid.y),
          static_cast<std::uint32_t>(linear / grid.x / grid.y)};
}

std::string blockText(std::uint64_t linear, Dim3 grid) {
  const Dim3 b = blockIndex(linear, grid);
  return format("(%u,%u,%u)", b.x, b.y, b.z);
}

std::vector<Finding> mergeFindings(std::vector<FindingSink *> sinks, const Program &program, Dim3 grid,
                                   std::uint64_t firstFatal) {
  std::map<FindingSink::Key, RawFinding> merged;
  const bool cut = firstFatal != ~std::uint64_t(0);
  for (FindingSink *sink : sinks)
    for (auto &[key, finding] : sink->all()) {
      if (finding.block.cluster > firstFatal)
        continue;
      const auto [entry, isNew] = merged.try_emplace(key, finding);
      if (isNew)
        continue;
      const std::uint64_t count = entry->second.count + finding.count;
      if (finding.block < entry->second.block)
        entry->second = finding;
      entry->second.count = count;
    }
  std::vector<RawFinding> list;
  for (auto &[key, finding] : merged)
    list.push_back(std::move(finding));
  std::stable_sort(list.begin(), list.end(), [](const RawFinding &a, const RawFinding &b) {
    const std::uint32_t otherA = a.other ? a.other->op : 0, otherB = b.other ? b.other->op : 0;
    return std::tie(a.block, a.warp, a.op, a.id, otherA) < std::tie(b.block, b.warp, b.op, b.id, otherB);
  });
  std::vector<Finding> out;
  for (RawFinding &f : list) {
    Finding finding;
    finding.id = std::move(f.id);
    finding.kernel = program.info.name;
    finding.block = blockIndex(f.block.linear, grid);
    finding.warp = f.warp;
    finding.lanes = f.lanes;
    if (f.op < program.ops.size()) {
      const SourceLine &line = program.lines[program.ops[f.op].line];
      finding.location = program.location(program.ops[f.op]);
      finding.ptxLine = line.ptxLine;
      finding.opcode = std::string(line.opcode);
    }
    if (f.other) {
      const SourceLine &line = program.lines[program.ops[f.other->op].line];
      finding.other = OtherAccess{blockIndex(f.other->block, grid),           f.other->warp, f.other->lanes,
                                  program.location(program.ops[f.other->op]), line.ptxLine,  std::string(line.opcode)};
    }
    finding.message = std::move(f.message);
    finding.fatal = f.fatal;
    finding.note = f.note;
    // How often other blocks met it before the launch ended is a matter of chance.
    finding.count = cut ? f.countInBlock : f.count;
    out.push_back(std::move(finding));
  }
  return out;
}

static void reportAny(Warp &warp, const Op &op, const char *id, std::uint32_t lanes, std::string message, bool fatal,
                      bool note, std::optional<RawOther> other = {}) {
  BlockState &block = *warp.block;
  const auto &ops = static_cast<WarpState &>(warp).program->ops;
  RawFinding finding;
  finding.id = id;
  finding.op = static_cast<std::uint32_t>(&op - ops.data());
  finding.block = block.place;
  finding.warp = warp.index;
  finding.lanes = lanes;
  finding.message = std::move(message);
  finding.fatal = fatal;
  finding.note = note;
  finding.other = other;
  block.worker.findings.report(std::move(finding));
  if (fatal) {
    auto &first = block.worker.launch.firstFatal;
    std::uint64_t seen = first.load();
    while (block.place.cluster < seen && !first.compare_exchange_weak(seen, block.place.cluster)) {
    }
  }
}

void reportFinding(Warp &warp, const Op &op, const char *id, std::uint32_t lanes, std::string message, bool fatal) {
  reportAny(warp, op, id, lanes, std::move(message), fatal, false);
}

void reportRace(Warp &warp, const Op &op, const char *id, std::uint32_t lanes, std::string message, RawOther other) {
  reportAny(warp, op, id, lanes, std::move(message), false, false, other);
}

bool countRace(Warp &warp, const Op &op, const char *id, std::uint32_t otherOp) {
  const auto index = static_cast<std::uint32_t>(&op - static_cast<WarpState &>(warp).program->ops.data());
  return warp.block->worker.findings.again(id, index, warp.block->place, otherOp);
}

bool countFinding(Warp &warp, const Op &op, const char *id) {
  const auto index = static_cast<std::uint32_t>(&op - static_cast<WarpState &>(warp).program->ops.data());
  return warp.block->worker.findings.again(id, index, warp.block->place);
}

void reportNote(Warp &warp, const Op &op, const char *id, std::uint32_t lanes, std::string message) {
  reportAny(warp, op, id, lanes, std::move(message), false, true);
}

void reportNote(Warp &warp, const Op &op, const char *id, std::uint32_t lanes, std::string message, RawOther other) {
  reportAny(warp, op, id, lanes, std::move(message), false, true, other);
}

} // namespace kiln::emulator
