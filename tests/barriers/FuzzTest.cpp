// Random programs of accesses, loops, conditionals and barriers.  A brute-force judge runs every path (each loop no,
// one or two rounds) on every byte of every thread; the proof must say what the judge says, and what insert-barriers
// makes must be free of hazards, with no barrier that could go.
#include "tests/barriers/BarrierHarness.h"
#include "tests/barriers/JudgedAccess.h"
#include "tests/support/TestTier.h"

#include "compiler/layout/LayoutText.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace kiln::test {
namespace {

using namespace mlir;
using layout::Sizes;

//===----------------------------------------------------------------------===//
// The judge
//===----------------------------------------------------------------------===//

JudgedAccess judgedByConstant(Operation *op) {
  std::int64_t slot = 0;
  if (auto view = op->getOperand(isa<tile_gpu::LocalStoreOp>(op) ? 1 : 0).getDefiningOp<tile_gpu::LocalSubviewOp>())
    slot = cast<IntegerAttr>(view.getIndex().getDefiningOp<arith::ConstantOp>().getValue()).getInt();
  return judged(op, slot);
}

class Judge {
public:
  /// Some path has two accesses without the barrier they need.
  bool racy(ModuleOp module) {
    bool found = false;
    module.walk([&](func::FuncOp f) {
      std::vector<std::vector<Operation *>> paths{{}};
      extend(paths, f.getBody().front());
      for (const auto &path : paths)
        found = found || racyPath(path);
    });
    return found;
  }

private:
  using Paths = std::vector<std::vector<Operation *>>;

  static void append(Paths &paths, const Paths &tails) {
    Paths out;
    for (const auto &p : paths)
      for (const auto &t : tails) {
        out.push_back(p);
        out.back().insert(out.back().end(), t.begin(), t.end());
      }
    paths = std::move(out);
  }

  void extend(Paths &paths, Block &block) {
    for (Operation &op : block) {
      if (BarrierHarness::isAccess(&op) || isa<tile_gpu::BarrierOp, tile_gpu::WarpBarrierOp>(op)) {
        for (auto &p : paths)
          p.push_back(&op);
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        Paths tails{{}}, other{{}};
        extend(tails, branch.getThenRegion().front());
        if (!branch.getElseRegion().empty())
          extend(other, branch.getElseRegion().front());
        tails.insert(tails.end(), other.begin(), other.end());
        append(paths, tails);
      } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
        Paths once{{}};
        extend(once, *loop.getBody());
        Paths tails = once, none{{}};
        append(tails, once);
        tails.insert(tails.end(), once.begin(), once.end());
        tails.insert(tails.end(), none.begin(), none.end());
        append(paths, tails);
      }
    }
  }

  bool racyPath(const std::vector<Operation *> &path) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (!BarrierHarness::isAccess(path[i]))
        continue;
      bool synced = false;
      for (std::size_t j = i + 1; j < path.size() && !isa<tile_gpu::BarrierOp>(path[j]); ++j) {
        if (isa<tile_gpu::WarpBarrierOp>(path[j]))
          synced = true;
        else if (const int n = between(path[i], path[j]); n == 2 || (n == 1 && !synced))
          return true;
      }
    }
    return false;
  }

  int between(Operation *a, Operation *b) {
    // Mutants are copies: accesses are known by their number.
    const auto id = [](Operation *op) { return cast<IntegerAttr>(op->getAttr("test.id")).getInt(); };
    auto [it, fresh] = needs.insert({{id(a), id(b)}, 0});
    if (fresh)
      it->second = need(of(id(a), a), of(id(b), b));
    return it->second;
  }
  const JudgedAccess &of(std::int64_t id, Operation *op) {
    auto it = accesses.find(id);
    return it == accesses.end() ? accesses.emplace(id, judgedByConstant(op)).first->second : it->second;
  }

  std::map<std::int64_t, JudgedAccess> accesses;
  std::map<std::pair<std::int64_t, std::int64_t>, int> needs;
};

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

class Program {
public:
  explicit Program(std::mt19937_64 &random) : random(random) {
    logWarps = below(3);
    element = below(2) ? "i64" : below(2) ? "i8" : "f32";
    elements = 1u << (5 + below(4));
    const std::int64_t m = below(4) ? 1 : 3;
    if (below(3) == 0) {
      // Buffers of TMA: 8 rows or more of columns of 32 bytes.
      const std::int64_t column = element == "i64" ? 4 : element == "i8" ? 32 : 8;
      core = {8 << below(2), column << below(2)};
      elements = static_cast<unsigned>(core[0] * core[1]);
      shape = {core[0] * m, core[1] * (below(2) ? 1 : m)};
    } else {
      core = {static_cast<std::int64_t>(elements)};
      shape = {core[0] * m};
    }
    for (unsigned i = 0; i < 3; ++i)
      layouts.push_back("#tile_gpu." + layout::print(linear()));
    const unsigned buffers = 1 + below(3);
    for (unsigned i = 0; i < buffers; ++i)
      shared.push_back({sharedLayout(), below(3) ? 1u : 2u});
    sparse = 1 + below(4);
    body(2, 3 + below(5));
  }

  std::string text(bool withBarriers) const {
    std::string out = "module attributes {tile_gpu.target = \"sm_90a\"} {\nfunc.func @k(";
    for (std::size_t i = 0; i < layouts.size(); ++i)
      out += (i ? ", %t" : "%t") + std::to_string(i) + ": " + tile(i);
    out += ", %n: i32, %p: i1) attributes {tile.num_warps = " + std::to_string(1 << logWarps) +
           " : i32} {\n%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n";
    for (std::size_t b = 0; b < shared.size(); ++b) {
      out += "%b" + std::to_string(b) + " = tile_gpu.local_alloc : " + buffer(b, true) + "\n";
      for (unsigned s = 0; shared[b].second > 1 && s < 2; ++s)
        out += "%b" + std::to_string(b) + "s" + std::to_string(s) + " = tile_gpu.local_subview %b" + std::to_string(b) +
               "[%c" + std::to_string(s) + "] : " + buffer(b, true) + "\n";
    }
    std::string program = code;
    if (!withBarriers) {
      for (const char *line : {"tile_gpu.barrier\n", "tile_gpu.warp_barrier\n"})
        for (std::size_t at; (at = program.find(line)) != std::string::npos;)
          program.erase(at, std::string_view(line).size());
    }
    return out + program + "return\n}\n}\n";
  }

private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random() % n); }
  std::string tile(std::size_t i) const { return "tensor<" + extents(shape) + "x" + element + ", " + layouts[i] + ">"; }
  static std::string extents(const Sizes &list) {
    std::string out;
    for (std::int64_t extent : list)
      out += (out.empty() ? "" : "x") + std::to_string(extent);
    return out;
  }
  /// Coordinates of a flat index of the core.
  Sizes coords(std::int64_t flat) const {
    return core.size() == 1 ? Sizes{flat} : Sizes{flat / core[1], flat % core[1]};
  }
  std::string buffer(std::size_t b, bool all) const {
    return std::string("!tile_gpu.buffer<") + (all && shared[b].second > 1 ? "[2] x " : "") + extents(shape) + "x" +
           element + ", " + shared[b].first + ">";
  }

  layout::Encoding linear() {
    std::vector<std::int64_t> bits;
    for (std::int64_t bit = 1; bit < static_cast<std::int64_t>(elements); bit *= 2)
      bits.push_back(bit);
    if (below(2))
      std::shuffle(bits.begin(), bits.end(), random);
    layout::Linear out;
    auto deal = [&](std::vector<Sizes> &into, unsigned count) {
      for (unsigned i = 0; i < count; ++i)
        if (bits.empty() || below(6) == 0) {
          into.push_back(coords(0));
        } else {
          std::int64_t place = bits.back();
          bits.pop_back();
          if (!bits.empty() && below(5) == 0)
            place += bits.front();
          into.push_back(coords(place));
        }
    };
    deal(out.warps, logWarps);
    deal(out.lanes, 5);
    while (!bits.empty())
      deal(out.registers, 1);
    out.shape = core;
    return out;
  }

  std::string sharedLayout() {
    if (core.size() == 2 && below(4))
      return shape[1] == core[1] && below(3) == 0 ? "#tile_gpu.tma<swizzle=0>" : "#tile_gpu.tma<swizzle=32>";
    switch (below(3)) {
    case 0:
      return "#tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>";
    case 1:
      return "#tile_gpu.padded<interval=16, pad=4>";
    default: {
      std::vector<std::int64_t> bits;
      for (std::int64_t bit = 1; bit < static_cast<std::int64_t>(elements); bit *= 2)
        bits.push_back(bit);
      std::shuffle(bits.begin(), bits.end(), random);
      std::string list;
      for (std::int64_t bit : bits)
        list += (list.empty() ? "[" : ", [") +
                (core.size() == 1 ? std::to_string(bit)
                                  : std::to_string(bit / core[1]) + ", " + std::to_string(bit % core[1])) +
                "]";
      return "#tile_gpu.shared_linear<offset=[" + list + "]>";
    }
    }
  }

  void body(unsigned depth, unsigned length) {
    for (unsigned i = 0; i < length; ++i) {
      if (below(sparse) == 0)
        code += below(3) ? "tile_gpu.barrier\n" : "tile_gpu.warp_barrier\n";
      const unsigned kind = below(6);
      if (kind == 0 && depth) {
        code += "scf.for %i" + std::to_string(depth) + " = %c0 to %n step %c1 : i32 {\n";
        body(depth - 1, 1 + below(3));
        code += "}\n";
      } else if (kind == 1 && depth) {
        code += "scf.if %p {\n";
        body(depth - 1, 1 + below(2));
        if (below(2)) {
          code += "} else {\n";
          body(depth - 1, 1 + below(2));
        }
        code += "}\n";
      } else {
        access();
      }
    }
  }

  void access() {
    const std::size_t b = below(static_cast<unsigned>(shared.size())), t = below(3);
    std::string name = "%b" + std::to_string(b);
    if (shared[b].second > 1)
      name += "s" + std::to_string(below(2));
    const std::string id = " {test.id = " + std::to_string(ids++) + " : i64} : ";
    if (below(2))
      code +=
          "tile_gpu.local_store %t" + std::to_string(t) + ", " + name + id + tile(t) + ", " + buffer(b, false) + "\n";
    else
      code += "%l" + std::to_string(ids) + " = tile_gpu.local_load " + name + id + buffer(b, false) + " to " + tile(t) +
              "\n";
  }

  std::mt19937_64 &random;
  unsigned logWarps = 0, elements = 0, ids = 0, sparse = 1;
  std::string element, code;
  Sizes core, shape;
  std::vector<std::string> layouts;
  std::vector<std::pair<std::string, unsigned>> shared;
};

/// Buffers at random places, overlapping or not, at equal offsets or not: what a hand-written function may do.
void placeBuffers(ModuleOp module, std::mt19937_64 &random) {
  module.walk([&](tile_gpu::LocalAllocOp op) {
    const std::uint64_t align = cast<tile_gpu::BufferType>(op.getType()).lowered()->alignment();
    const std::uint64_t at = random() % 3 ? random() % 3 * 512 : random() % 64 * 16;
    op.setOffset(static_cast<std::uint32_t>((at + align - 1) / align * align));
  });
}

TEST(BarrierFuzz, TheProofSaysWhatTheJudgeSays) {
  std::mt19937_64 random(41);
  BarrierHarness harness;
  unsigned racy = 0, clean = 0;
  for (unsigned round = 0; round < pick(250u, 6000u); ++round) {
    const Program program(random);
    auto module = harness.parse(program.text(/*withBarriers=*/true));
    ASSERT_TRUE(module) << harness.errors << program.text(true);
    placeBuffers(*module, random);
    Judge judge;
    const bool wrong = judge.racy(*module);
    ++(wrong ? racy : clean);
    ASSERT_EQ(harness.verifies(*module), !wrong) << "round " << round << "\n"
                                                 << harness.errors << BarrierHarness::text(*module);
  }
  std::printf("  %u programs with races, %u without\n", racy, clean);
  EXPECT_GT(racy, 50u);
  EXPECT_GT(clean, 50u);
}

TEST(BarrierFuzz, InsertedBarriersAreEnoughAndNoneIsTooMany) {
  std::mt19937_64 random(42);
  BarrierHarness harness;
  unsigned blocks = 0, warps = 0;
  for (unsigned round = 0; round < pick(130u, 3000u); ++round) {
    const Program program(random);
    auto module = harness.parse(program.text(/*withBarriers=*/false));
    ASSERT_TRUE(module) << harness.errors << program.text(false);
    placeBuffers(*module, random);
    ASSERT_TRUE(harness.prepare(*module)) << harness.errors;
    Judge judge;
    ASSERT_FALSE(judge.racy(*module)) << "round " << round << "\n" << BarrierHarness::text(*module);
    ASSERT_TRUE(harness.verifies(*module)) << "round " << round << "\n"
                                           << harness.errors << BarrierHarness::text(*module);
    const std::size_t count = BarrierHarness::barriers(*module).size();
    for (std::size_t i = 0; i < count; ++i) {
      OwningOpRef<ModuleOp> mutant(module->clone());
      Operation *barrier = BarrierHarness::barriers(*mutant)[i];
      const bool whole = isa<tile_gpu::BarrierOp>(barrier);
      ++(whole ? blocks : warps);
      if (whole) {
        OpBuilder b(barrier);
        tile_gpu::WarpBarrierOp::create(b, barrier->getLoc());
      }
      barrier->erase();
      ASSERT_TRUE(judge.racy(*mutant)) << "round " << round << ": barrier " << i
                                       << (whole ? " may be a warp's" : " may go") << "\n"
                                       << BarrierHarness::text(*module);
    }
  }
  std::printf("  %u barriers of the block, %u of the warp\n", blocks, warps);
  EXPECT_GT(blocks, 50u);
  EXPECT_GT(warps, 20u);
}

} // namespace
} // namespace kiln::test
