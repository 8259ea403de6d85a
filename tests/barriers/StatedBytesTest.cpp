// The bytes that operations state against those that their instructions touch, for kernels of the library on the
// emulator.  Both ways in which the compiler reads a statement are held against the run: the one that inserts barriers
// (SharedFootprint) and the one that proves them (SharedAccess).
//
// Nothing may be touched that is not stated, byte by byte, warp by warp, lane by lane.  A store touches all that it
// states; a load may touch less (of a tile that is read whole a part may be used), and so may an operation that takes
// one of several buffers.  An instruction belongs to the operation at its line; LLVM takes the line from what it moves
// to another block, so what fits no operation there must fit another one, and such instructions are few.
#include "tests/barriers/BarrierHarness.h"
#include "tests/barriers/KernelSubjects.h"
#include "tests/barriers/TouchedBytes.h"
#include "tests/lowering/LoweringHarness.h"
#include "tests/support/TestTier.h"

#include "compiler/passes/barriers/SharedAccess.h"
#include "compiler/passes/barriers/SharedFootprint.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kiln::test {
namespace {

using namespace mlir;

/// The places of a piece of the proof, one by one.
void addTo(Footprint &out, const proof::Piece &piece) {
  for (std::uint64_t i = 0; i < std::uint64_t(1) << piece.free.size(); ++i) {
    proof::Place at = piece.constant;
    for (std::size_t bit = 0; bit < piece.free.size(); ++bit)
      if (i >> bit & 1)
        at = at ^ piece.free[bit];
    std::uint64_t offset = at.offset;
    if (piece.interval)
      offset += offset / static_cast<std::uint64_t>(piece.interval) * static_cast<std::uint64_t>(piece.pad);
    Threads &threads = out[piece.base + offset];
    threads.warps |= 1u << at.warp;
    threads.lanes |= piece.everyLane ? ~0u : 1u << at.lane;
  }
}

struct Tally {
  unsigned operations = 0, exact = 0, whole = 0, notRun = 0, instructions = 0, moved = 0, matrixUnit = 0;
};

/// One operation: what it states, as both passes read it, and what of that was touched.
class Statement {
public:
  explicit Statement(Operation *op) : name(op->getName().getStringRef().str()) {
    const llvm::SmallVector<Value, 2> choice = proof::chosenBy(op);
    auto proved = proof::accessesOf(op, proof::Chosen(choice.size(), std::nullopt));
    auto footprints = SharedFootprint::of(op);
    if (!proved || !footprints) {
      ADD_FAILURE() << name << " cannot be analysed";
      return;
    }
    for (const proof::SharedAccess &access : *proved)
      for (const proof::Piece &piece : access.pieces)
        addTo(stated[access.write], piece);
    inserted = std::move(*footprints);
    // By threads and by their copies, to a place that is fixed.
    exact = llvm::none_of(choice, [](Value index) { return index != nullptr; }) &&
            llvm::all_of(tile::accessesOf(op), [](const tile::MemoryAccess &access) {
              return !access.in<tile_gpu::SharedMemory>() || access.tile;
            });
  }

  /// Nothing if all that an instruction touched is stated, by these threads.
  std::string beyond(const TouchedBytes::Touched &instruction) const {
    for (const auto &entry : instruction.bytes) {
      const std::uint64_t byte = entry.first;
      const Threads by = entry.second;
      const std::string what = " byte " + std::to_string(byte) + " by warps " + std::to_string(by.warps) + ", lanes " +
                               std::to_string(by.lanes);
      const auto it = stated[instruction.write].find(byte);
      if (it == stated[instruction.write].end() || (by.warps & ~it->second.warps) || (by.lanes & ~it->second.lanes))
        return "the proof does not know of" + what;
      if (llvm::none_of(inserted, [&](const SharedFootprint &footprint) {
            const SharedFootprint::Cell *cell = footprint.cellAt(byte);
            return footprint.writes() == instruction.write && cell && !(by.warps & ~cell->warps) &&
                   !(by.lanes & ~cell->lanes);
          }))
        return "insert-barriers does not know of" + what;
    }
    return {};
  }

  void add(const TouchedBytes::Touched &instruction) {
    for (const auto &[byte, by] : instruction.bytes) {
      Threads &threads = touched[instruction.write][byte];
      threads.warps |= by.warps;
      threads.lanes |= by.lanes;
    }
  }

  void finish(Tally &tally) const {
    ++tally.operations;
    const bool ran = !touched[0].empty() || !touched[1].empty();
    tally.notRun += !ran;
    tally.exact += exact && ran;
    tally.whole += exact && touched[0].size() == stated[0].size() && touched[1].size() == stated[1].size();
    if (!exact || touched[1].empty())
      return;
    EXPECT_EQ(touched[1].size(), stated[1].size()) << name << " states other bytes than it writes";
    for (const auto &[byte, by] : stated[1])
      if (const auto it = touched[1].find(byte); it != touched[1].end())
        EXPECT_EQ(it->second.warps, by.warps) << name << ", byte " << byte;
  }

  std::string name;

private:
  Footprint stated[2], touched[2]; ///< reads, writes
  std::vector<SharedFootprint> inserted;
  bool exact = false;
};

void check(BarrierHarness &harness, const Subject &s, const char *target, Tally &tally) {
  SCOPED_TRACE(s.name + " on " + target);
  auto made = harness.parse(s.kernel.text());
  ASSERT_TRUE(made && harness.stage(*made, s.facts)) << harness.errors;
  // Parsed again, an operation's line is its own.
  const std::string text = BarrierHarness::text(*made);
  auto module = harness.parse(text);
  const LoweredKernel lower = lowered(text, target, /*keepStages=*/false, From::Lowering, /*lineInfo=*/true);
  ASSERT_TRUE(module && lower.ok) << harness.errors << lower.errors;
  const TouchedBytes code(lower.ptx);
  Emulator gpu(target);
  Buffer &output = gpu.allocate(4 * s.output);
  Buffer &log = gpu.upload(std::vector<std::uint32_t>(std::size_t(1) << 23));
  const Launched launched = s.run(gpu, code.code(), lower.sharedBytes, output, s.arguments, {log});
  ASSERT_TRUE(launched.clean()) << launched.text();
  std::string failed;
  const std::vector<TouchedBytes::Touched> touched = code.read(gpu.download<std::uint32_t>(log), failed);
  ASSERT_EQ(failed, "");

  std::map<unsigned, Statement> statements; // by line
  module->walk([&](Operation *op) {
    if (const auto at = op->getLoc()->findInstanceOf<FileLineColLoc>(); at && !proof::chosenBy(op).empty())
      statements.try_emplace(at.getLine(), op);
  });
  for (const TouchedBytes::Touched &instruction : touched) {
    ++tally.instructions;
    const auto its = statements.find(instruction.line);
    const std::string why =
        its == statements.end() ? "no operation at its line states an access" : its->second.beyond(instruction);
    const auto at = why.empty() ? its : std::ranges::find_if(statements, [&](const auto &entry) {
      return entry.second.beyond(instruction).empty();
    });
    if (at == statements.end()) {
      ADD_FAILURE() << "line " << instruction.line << (its == statements.end() ? "" : ", " + its->second.name) << ": "
                    << why;
      continue;
    }
    tally.moved += !why.empty();
    at->second.add(instruction);
  }
  for (const auto &[line, statement] : statements)
    statement.finish(tally);
  tally.matrixUnit += code.matrixUnitReads();
}

class StatedBytes : public testing::TestWithParam<std::size_t> {};

TEST_P(StatedBytes, AreThoseThatAreTouched) {
  const char *target = subjectTargets[GetParam()];
  BarrierHarness harness;
  unsigned instructions = 0, moved = 0;
  for (const MakeSubject make : {matmulOf, attentionOf16Rows, attentionOf32Rows, chunksOf, warpgroupsOf, mapsOfDplr,
                                 gradientsOfDplr, softmaxOf, cumsumOf, transposeOf})
    for (const bool aligned : {true, false}) {
      if (!aligned && !isFullTier())
        continue;
      Tally tally;
      const Subject subject = make(target, aligned);
      check(harness, subject, target, tally);
      std::printf("  %s%s: %u operations, %u of them touch all that they state, %u do not run; %u instructions, %u of "
                  "them found by their bytes\n",
                  subject.name.c_str(), aligned ? "" : ", not aligned", tally.operations, tally.whole, tally.notRun,
                  tally.instructions, tally.moved);
      if (tally.matrixUnit)
        std::printf("    %u wgmma are not compared: their reads have no address in the code\n", tally.matrixUnit);
      // Where wgmma reads all that is loaded, what is left to compare may be copies to one of several slots alone.
      EXPECT_GT(tally.exact ? tally.whole : tally.instructions, 0u);
      instructions += tally.instructions;
      moved += tally.moved;
    }
  EXPECT_LE(20 * moved, instructions) << "too few instructions are at their operation's line";
}

INSTANTIATE_TEST_SUITE_P(Targets, StatedBytes, testing::Range<std::size_t>(0, std::size(subjectTargets)),
                         [](const auto &info) { return std::string(subjectTargets[info.param]); });

} // namespace
} // namespace kiln::test
