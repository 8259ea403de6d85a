// Pipelined loops with random mistakes.  A judge runs every program with every choice of ways and trip counts, up to a
// bound, counts commits and waits, and knows of each access which bytes are in flight and which have come.  The proof
// must say what the judge says; what insert-barriers makes must be free of races, whatever else is wrong.
#include "tests/barriers/BarrierHarness.h"
#include "tests/barriers/JudgedAccess.h"
#include "tests/support/TestTier.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <gtest/gtest.h>

#include <random>

namespace kiln::test {
namespace {

using namespace mlir;

//===----------------------------------------------------------------------===//
// The judge
//===----------------------------------------------------------------------===//

constexpr unsigned mostRounds = 9;
constexpr unsigned mostRuns = 1500;

/// One step of a run.
struct Step {
  Operation *op = nullptr;
  std::int64_t slot = 0;
};

/// Runs a function once; where it may go one way or the other, the script says.
class Run {
public:
  explicit Run(std::vector<bool> &script) : script(script) {}
  std::vector<Step> steps;

  void block(Block &code) {
    for (Operation &op : code)
      step(&op);
  }

private:
  bool choose() {
    if (next == script.size())
      script.push_back(false);
    return script[next++];
  }
  std::int64_t of(Value v) { return numbers.at(v); }

  void step(Operation *op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (auto value = dyn_cast<IntegerAttr>(constant.getValue()))
        numbers[constant] = value.getInt();
    } else if (auto add = dyn_cast<arith::AddIOp>(op)) {
      numbers[add] = of(add.getLhs()) + of(add.getRhs());
    } else if (auto remainder = dyn_cast<arith::RemUIOp>(op)) {
      numbers[remainder] = of(remainder.getLhs()) % of(remainder.getRhs());
    } else if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      numbers[compare] = of(compare.getLhs()) == of(compare.getRhs());
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      numbers[select] = of(select.getCondition()) ? of(select.getTrueValue()) : of(select.getFalseValue());
    } else if (auto view = dyn_cast<tile_gpu::LocalSubviewOp>(op)) {
      numbers[view] = of(view.getIndex());
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (choose())
        block(branch.getThenRegion().front());
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      std::vector<std::int64_t> carried;
      for (Value v : loop.getInitArgs())
        carried.push_back(of(v));
      for (unsigned k = 0; k < mostRounds && choose(); ++k) {
        for (auto [argument, value] : llvm::zip_equal(loop.getRegionIterArgs(), carried))
          numbers[argument] = value;
        block(*loop.getBody());
        for (auto [value, yielded] : llvm::zip_equal(carried, loop.getYieldedValues()))
          value = of(yielded);
      }
    } else if (isa<tile_gpu::LocalStoreOp, tile_gpu::LocalLoadOp, tile_gpu::AsyncCopyViewOp>(op)) {
      Value buffer = isa<tile_gpu::LocalLoadOp>(op)    ? op->getOperand(0)
                     : isa<tile_gpu::LocalStoreOp>(op) ? op->getOperand(1)
                                                       : cast<tile_gpu::AsyncCopyViewOp>(op).getBuffer();
      auto it = numbers.find(buffer);
      steps.push_back({op, it == numbers.end() ? 0 : it->second});
    } else if (isa<tile_gpu::BarrierOp, tile_gpu::WarpBarrierOp, tile_gpu::AsyncCommitOp, tile_gpu::AsyncWaitOp>(op)) {
      steps.push_back({op, 0});
    }
  }

  std::vector<bool> &script;
  std::size_t next = 0;
  llvm::DenseMap<Value, std::int64_t> numbers;
};

struct Verdict {
  bool race = false, inFlight = false;
  bool allRuns = false; ///< up to mostRounds
  bool wrong() const { return race || inFlight; }
};

class Judge {
public:
  Verdict of(ModuleOp module) {
    Verdict out;
    auto f = *module.getOps<func::FuncOp>().begin();
    std::vector<bool> script;
    for (unsigned runs = 0; runs < mostRuns; ++runs) {
      Run run(script);
      run.block(f.getBody().front());
      for (std::size_t i = 0; i < run.steps.size(); ++i)
        from(run.steps, i, out);
      while (!script.empty() && script.back())
        script.pop_back();
      if (script.empty()) {
        out.allRuns = true;
        return out;
      }
      script.back() = true;
    }
    return out;
  }

private:
  struct Pair {
    int need = 0;
    bool overlap = false;
  };
  using Key = std::pair<Operation *, std::int64_t>;

  static bool isAccess(const Step &s) {
    return isa<tile_gpu::LocalStoreOp, tile_gpu::LocalLoadOp, tile_gpu::AsyncCopyViewOp>(s.op);
  }

  /// Compares step i with every later step of the run that no barrier orders after it.
  void from(const std::vector<Step> &steps, std::size_t i, Verdict &out) {
    if (!isAccess(steps[i]))
      return;
    bool under = isa<tile_gpu::AsyncCopyViewOp>(steps[i].op), synced = false;
    std::optional<unsigned> behind; // the group of the copy
    for (std::size_t j = i + 1; j < steps.size(); ++j) {
      const Step &s = steps[j];
      if (isa<tile_gpu::AsyncCommitOp>(s.op))
        behind = behind ? *behind + 1 : 0;
      else if (auto wait = dyn_cast<tile_gpu::AsyncWaitOp>(s.op))
        under = under && !(behind && *behind >= wait.getGroups().value_or(0));
      else if (isa<tile_gpu::WarpBarrierOp>(s.op))
        synced = synced || !under;
      else if (isa<tile_gpu::BarrierOp>(s.op)) {
        if (!under)
          return;
      } else {
        const Pair &p = between(steps[i], s);
        if (under)
          out.inFlight = out.inFlight || p.overlap;
        else
          out.race = out.race || p.need == 2 || (p.need == 1 && !synced);
      }
    }
  }

  const Pair &between(const Step &a, const Step &b) {
    const Key x{a.op, a.slot}, y{b.op, b.slot};
    auto [it, fresh] = pairs.try_emplace({x, y});
    if (fresh)
      it->second = {need(of(x), of(y)), overlap(of(x), of(y))};
    return it->second;
  }
  const JudgedAccess &of(const Key &key) {
    auto it = accesses.find(key);
    return it == accesses.end() ? accesses.emplace(key, judged(key.first, key.second)).first->second : it->second;
  }

  std::map<Key, JudgedAccess> accesses;
  std::map<std::pair<Key, Key>, Pair> pairs;
};

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

constexpr std::string_view layouts = R"(
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[8,4], warpsPerCTA=[2,1], order=[1,0]>
#col = #tile_gpu.blocked<sizePerThread=[4,1], threadsPerWarp=[4,8], warpsPerCTA=[1,2], order=[0,1]>
#mix = #tile_gpu.blocked<sizePerThread=[2,2], threadsPerWarp=[4,8], warpsPerCTA=[2,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=4, perPhase=1, maxPhase=2>
)";

/// A pipelined loop as it should be, then a few lines lost, doubled, swapped or pointed at another slot.
class Program {
public:
  explicit Program(std::mt19937_64 &random) : random(random) {
    stages = 2 + below(3);
    layout = below(3) ? "#row" : "#mix";
    readers = below(4) ? "#col" : layout;
    for (unsigned s = 0; s + 1 < stages; ++s) {
      before.push_back(copy(constant(s), below(2)));
      before.push_back("tile_gpu.async_commit\n");
    }
    inside.push_back(wait(stages - 2));
    inside.push_back("tile_gpu.barrier\n");
    inside.push_back(copy("%write", below(2)));
    inside.push_back("tile_gpu.async_commit\n");
    inside.push_back(load("%read"));
    after.push_back(wait(0));
    if (below(2)) {
      after.push_back("tile_gpu.barrier\n");
      after.push_back("tile_gpu.local_store %x, %z : tensor<16x16xf16, #col>, !tile_gpu.buffer<16x16xf16, #sh>\n");
    }
    for (unsigned i = below(4); i > 0; --i)
      spoil();
  }

  std::string text(bool withBarriers) {
    std::string out = std::string(layouts) + "module attributes {tile_gpu.target = \"sm_80\"} {\n";
    out += "func.func @k(%v: !tile.view<16x16xf16>, %x: tensor<16x16xf16, #col>, %n: i32, %p: i1) "
           "attributes {tile.num_warps = 2 : i32} {\n";
    for (unsigned c = 0; c <= 4; ++c)
      out += constant(c) + " = arith.constant " + std::to_string(c) + " : i32\n";
    out += "%b = tile_gpu.local_alloc {offset = 0 : i32} : " + buffers() + "\n";
    // Bytes of two slots.
    out += "%z = tile_gpu.local_alloc {offset = 256 : i32} : !tile_gpu.buffer<16x16xf16, #sh>\n";
    append(out, before, withBarriers);
    const std::string last = constant(stages - 1);
    out += "%r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%read = " + constant(firstRead) +
           ", %write = " + (firstWrite ? constant(firstWrite - 1) : last) + ") -> (i32, i32) : i32 {\n";
    append(out, inside, withBarriers);
    const std::string count = constant(stages);
    out += "%read1 = arith.addi %read, %c1 : i32\n%read2 = arith.cmpi eq, %read1, " + count + " : i32\n";
    out += "%read3 = arith.select %read2, %c0, %read1 : i32\n";
    out += "%write1 = arith.addi %write, %c1 : i32\n%write2 = arith.remui %write1, " + count + " : i32\n";
    out += "scf.yield %read3, %write2 : i32, i32\n}\n";
    append(out, after, withBarriers);
    return out + "return\n}\n}\n";
  }

private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random() % n); }
  static std::string constant(unsigned c) { return "%c" + std::to_string(c); }
  std::string buffers() const { return "!tile_gpu.buffer<[" + std::to_string(stages) + "] x 16x16xf16, #sh>"; }

  std::string slot(const std::string &index, const std::string &use) {
    return "%SLOT = tile_gpu.local_subview %b[" + index + "] : " + buffers() + "\n" + use;
  }
  std::string copy(const std::string &index, bool maybe) {
    const std::string text = slot(index, "tile_gpu.async_copy_view %v[%c0, %c0], %SLOT by " + layout +
                                             " : !tile.view<16x16xf16>, i32, !tile_gpu.buffer<16x16xf16, #sh>\n");
    return maybe ? "scf.if %p {\n" + text + "}\n" : text;
  }
  std::string load(const std::string &index) {
    return slot(index, "%LOAD = tile_gpu.local_load %SLOT : !tile_gpu.buffer<16x16xf16, #sh> to tensor<16x16xf16, " +
                           readers + ">\n");
  }
  static std::string wait(unsigned groups) {
    return "tile_gpu.async_wait all {groups = " + std::to_string(groups) + " : i32}\n";
  }

  void spoil() {
    std::vector<std::string> &lines = below(3) ? inside : below(2) ? before : after;
    const std::size_t at = below(static_cast<unsigned>(lines.size() + 1));
    const auto here = lines.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(11)) {
    case 0:
      if (here != lines.end())
        lines.erase(here);
      break;
    case 1:
      if (here != lines.end())
        lines.insert(here, std::string(*here));
      break;
    case 2:
      if (at + 1 < lines.size())
        std::swap(lines[at], lines[at + 1]);
      break;
    case 3:
      lines.insert(here, below(2) ? "tile_gpu.barrier\n" : "tile_gpu.warp_barrier\n");
      break;
    case 4:
      lines.insert(here, wait(below(3)));
      break;
    case 5:
      lines.insert(here, "tile_gpu.async_commit\n");
      break;
    case 6:
      firstRead = below(stages);
      break;
    case 7:
      firstWrite = 1 + below(stages);
      break;
    case 8:
    case 9:
      llvm::erase(inside, "tile_gpu.barrier\n");
      break;
    default:
      lines.insert(here, below(2) ? load(constant(below(stages))) : copy(constant(below(stages)), below(2)));
      break;
    }
  }

  /// Each line's own values get numbers.
  void append(std::string &out, const std::vector<std::string> &lines, bool withBarriers) {
    for (std::string line : lines) {
      if (!withBarriers && line.find("barrier") != std::string::npos)
        continue;
      for (const char *name : {"%SLOT", "%LOAD"})
        for (std::size_t at; (at = line.find(name)) != std::string::npos;)
          line.replace(at, 5, (name[1] == 'S' ? "%s" : "%l") + std::to_string(values));
      ++values;
      out += line;
    }
  }

  std::mt19937_64 &random;
  unsigned stages = 2, values = 0;
  unsigned firstRead = 0, firstWrite = 0; ///< 0: the last slot, else one more than the slot
  std::string layout, readers;
  std::vector<std::string> before, inside, after;
};

TEST(CopyFuzz, TheProofSaysWhatTheJudgeSays) {
  std::mt19937_64 random(43);
  BarrierHarness harness;
  unsigned races = 0, inFlight = 0, clean = 0, open = 0;
  for (unsigned round = 0; round < pick(130u, 5000u); ++round) {
    Program program(random);
    const std::string text = program.text(/*withBarriers=*/true);
    auto module = harness.parse(text);
    ASSERT_TRUE(module) << harness.errors << text;
    const Verdict verdict = Judge().of(*module);
    races += verdict.race;
    inFlight += verdict.inFlight;
    clean += !verdict.wrong() && verdict.allRuns;
    const bool accepted = harness.verifies(*module);
    if (verdict.wrong())
      ASSERT_FALSE(accepted) << "round " << round << " not noticed: " << (verdict.race ? "race " : "")
                             << (verdict.inFlight ? "in flight" : "") << "\n"
                             << text;
    else if (verdict.allRuns)
      ASSERT_TRUE(accepted) << "round " << round << " rejected without need\n" << harness.errors << text;
    else
      ++open;
    if (!accepted && verdict.inFlight && !verdict.race)
      ASSERT_NE(harness.errors.find("a copy in flight may still write"), std::string::npos) << harness.errors;
  }
  std::printf("  %u programs with races, %u with accesses to what is in flight, %u without, %u with too many runs\n",
              races, inFlight, clean, open);
  EXPECT_GT(races, 25u);
  EXPECT_GT(inFlight, 40u);
  EXPECT_GT(clean, 30u);
}

TEST(CopyFuzz, InsertedBarriersAreEnough) {
  std::mt19937_64 random(44);
  BarrierHarness harness;
  unsigned barriers = 0, rejected = 0;
  for (unsigned round = 0; round < pick(70u, 3000u); ++round) {
    Program program(random);
    const std::string text = program.text(/*withBarriers=*/false);
    auto module = harness.parse(text);
    ASSERT_TRUE(module) << harness.errors << text;
    ASSERT_TRUE(harness.prepare(*module)) << harness.errors << text;
    barriers += static_cast<unsigned>(BarrierHarness::barriers(*module).size());
    const Verdict verdict = Judge().of(*module);
    ASSERT_FALSE(verdict.race) << "round " << round << "\n" << BarrierHarness::text(*module);
    const bool accepted = harness.verifies(*module);
    rejected += !accepted;
    if (verdict.allRuns || verdict.inFlight)
      ASSERT_EQ(accepted, !verdict.inFlight) << "round " << round << "\n"
                                             << harness.errors << BarrierHarness::text(*module);
  }
  std::printf("  %u barriers; %u programs touch what is in flight\n", barriers, rejected);
  EXPECT_GT(barriers, 80u);
}

} // namespace
} // namespace kiln::test
