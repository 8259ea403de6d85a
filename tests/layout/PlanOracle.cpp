#include "tests/layout/PlanOracle.h"

#include "compiler/layout/Gf2.h"
#include "support/Text.h"
#include "tests/layout/OracleAccess.h"
#include "tests/layout/OracleChecks.h"
#include "tests/layout/OracleMemory.h"

#include <algorithm>
#include <bit>
#include <random>

namespace kiln::test {

using namespace kiln::layout;

std::vector<std::uint32_t> elementTable(const LinearLayout &layout) {
  std::vector<std::uint32_t> table = {0};
  for (BitVector column : layout.allColumns()) {
    std::size_t half = table.size();
    table.resize(2 * half);
    for (std::size_t i = 0; i < half; ++i)
      table[half + i] = table[i] ^ static_cast<std::uint32_t>(column);
  }
  return table;
}

unsigned bruteForceLevel(const LinearLayout &source, const LinearLayout &destination) {
  std::vector<std::uint32_t> from = elementTable(source), to = elementTable(destination);
  for (unsigned level = 1; level < 4; ++level) {
    std::size_t sourceGroup = std::size_t(1) << source.innerColumns(level).size();
    std::size_t destinationGroup = std::size_t(1) << destination.innerColumns(level).size();
    std::vector<std::uint32_t> heldBy(source.numElements(), ~0u);
    bool serves = true;
    for (std::size_t g = 0; g * sourceGroup < from.size() && serves; ++g) {
      for (std::size_t i = 0; i < sourceGroup; ++i)
        heldBy[from[g * sourceGroup + i]] = static_cast<std::uint32_t>(g);
      for (std::size_t i = 0; i < destinationGroup && serves; ++i)
        serves = heldBy[to[g * destinationGroup + i]] == g;
    }
    if (serves)
      return level;
  }
  return 4;
}

bool oneRenameServesAll(const LinearLayout &source, const LinearLayout &destination) {
  std::vector<std::uint32_t> from = elementTable(source), to = elementTable(destination);
  std::size_t regs = source.size(InDim::Register), wanted = destination.size(InDim::Register);
  std::size_t threads = from.size() / regs;
  for (std::size_t r = 0; r < wanted; ++r) {
    bool found = false;
    for (std::size_t s = 0; s < regs && !found; ++s) {
      found = true;
      for (std::size_t t = 0; t < threads && found; ++t)
        found = from[t * regs + s] == to[t * wanted + r];
    }
    if (!found)
      return false;
  }
  return true;
}

namespace {

constexpr std::uint32_t unmade = ~0u;

/// One run of a plan.  Every step returns false after setting `error`.
class Runner {
public:
  Runner(const ConversionPlan &plan, const LinearLayout &source, const LinearLayout &destination,
         const OracleOptions &options)
      : plan(plan), source(source), destination(destination), options(options), random(options.seed) {}

  OracleRun go() {
    warps = 1u << plan.warpBits;
    blocks = 1u << plan.blockBits;
    sourceRegisters = 1u << plan.sourceRegisterBits;
    destinationRegisters = 1u << plan.destinationRegisterBits;
    out.places.assign(std::size_t(blocks) * warps * 32 * destinationRegisters, unmade);
    bool ran = false;
    switch (plan.strategy) {
    case Strategy::None:
    case Strategy::RegisterPermute:
      ran = rename();
      break;
    case Strategy::MmaToMma:
    case Strategy::WarpShuffle:
      ran = shuffle();
      break;
    case Strategy::Shared:
    case Strategy::SharedScalar:
      ran = shared();
      break;
    }
    if (ran)
      compare();
    return std::move(out);
  }

private:
  bool fail(std::string message) {
    out.error = std::move(message);
    return false;
  }
  void note(std::uint64_t a, std::uint64_t b) {
    out.trace = (out.trace ^ a) * 0x9e3779b97f4a7c15u;
    out.trace = (out.trace ^ b ^ out.trace >> 31) * 0xbf58476d1ce4e5b9u;
  }
  std::uint32_t place(unsigned block, unsigned warp, unsigned lane, unsigned reg) const {
    return ((block << plan.warpBits | warp) * 32 + lane) * sourceRegisters + reg;
  }
  std::uint32_t *result(unsigned block, unsigned warp, unsigned lane = 0) {
    return &out.places[std::size_t((block << plan.warpBits | warp) * 32 + lane) * destinationRegisters];
  }

  bool rename();
  bool shuffle();
  bool shuffleWarp(unsigned block, unsigned warp);
  bool swaps(const std::vector<SwapTerm> &terms, std::vector<std::uint32_t> &file, unsigned sigmaHigh);
  bool shared();
  bool copyRegisters();
  void compare();

  const ConversionPlan &plan;
  const LinearLayout &source, &destination;
  const OracleOptions &options;
  std::mt19937_64 random;
  OracleRun out;
  unsigned warps = 1, blocks = 1, sourceRegisters = 1, destinationRegisters = 1;
};

bool Runner::rename() {
  for (unsigned r = 0; r < destinationRegisters; ++r) {
    std::uint32_t from = applyMask(plan.registerSource, r);
    note(r, from);
    for (unsigned b = 0; b < blocks; ++b)
      for (unsigned w = 0; w < warps; ++w)
        for (unsigned l = 0; l < 32; ++l)
          result(b, w, l)[r] = place(b, w, l, from);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Shuffles.  A file holds [word][lane][slot] of one warp; a word that no step made has `unmade` in slot 0 of lane 0.
//===----------------------------------------------------------------------===//

bool Runner::swaps(const std::vector<SwapTerm> &terms, std::vector<std::uint32_t> &file, unsigned sigmaHigh) {
  const unsigned slots = 1u << plan.shuffle.slotBits, wordSize = 32 * slots;
  const std::size_t words = file.size() / wordSize;
  std::vector<std::uint32_t> next(file.size());
  for (const SwapTerm &term : terms) {
    std::fill(next.begin(), next.end(), unmade);
    for (Mask w : term.words) {
      if (w >= words || (w ^ term.wordXor) >= words)
        return fail(format("a swap term names word %u, there are %zu", w, words));
      const std::uint32_t *own = &file[w * wordSize], *other = &file[(w ^ term.wordXor) * wordSize];
      if (*own == unmade || *other == unmade)
        return fail(format("a swap term reads word %u or %u, which no step made", w, w ^ term.wordXor));
      if (next[w * wordSize] != unmade)
        return fail(format("a swap term makes word %u twice", w));
      note(w, std::uint64_t(term.condition) << 32 | term.wordXor << 4 | term.slotXor);
      for (unsigned l = 0; l < 32; ++l) {
        bool swap = std::popcount((sigmaHigh | l) & term.condition) & 1;
        for (unsigned s = 0; s < slots; ++s)
          next[w * wordSize + l * slots + s] = swap ? other[l * slots + (s ^ term.slotXor)] : own[l * slots + s];
      }
    }
    file.swap(next);
  }
  return true;
}

bool Runner::shuffleWarp(unsigned block, unsigned warp) {
  const ShufflePlan &s = plan.shuffle;
  const unsigned slots = 1u << s.slotBits, wordSize = 32 * slots;
  const unsigned sourceWords = 1u << s.sourceWord.size();
  const unsigned outer = block << plan.warpBits | warp, sigmaHigh = outer << plan.laneBits;
  std::vector<std::uint32_t> file(std::size_t(sourceWords) * wordSize);
  for (unsigned q = 0; q < sourceWords; ++q)
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned slot = 0; slot < slots; ++slot)
        file[q * wordSize + l * slots + slot] =
            place(block, warp, l, applyMask(s.sourceSlot, slot) ^ applyMask(s.sourceWord, q));
  if (!swaps(s.pick, file, sigmaHigh))
    return false;

  std::vector<std::uint32_t> made(std::size_t(wordSize) << s.roundBits, unmade);
  for (const ShuffleRound &round : s.rounds) {
    if (round.sourceWord >= sourceWords || file[round.sourceWord * wordSize] == unmade)
      return fail(format("round %u sends word %u, which no step made", round.index, round.sourceWord));
    if (made[round.index * wordSize] != unmade)
      return fail(format("round %u is made twice", round.index));
    note(std::uint64_t(round.index) << 32 | round.sourceWord, std::uint64_t(round.sourceSlot) << 1 | round.moves);
    for (unsigned l = 0; l < 32; ++l) {
      unsigned from = l;
      if (round.moves)
        from = s.butterfly ? l ^ round.laneXor
                           : applyMask(s.laneColumns, l) ^ applyMask(s.outerColumns, outer) ^ round.laneXor;
      if (from >= 32)
        return fail(format("round %u reads lane %u", round.index, from));
      note(l, from);
      for (unsigned slot = 0; slot < slots; ++slot)
        made[round.index * wordSize + l * slots + slot] =
            file[round.sourceWord * wordSize + from * slots + (slot ^ round.sourceSlot)];
    }
  }
  if (!swaps(s.place, made, sigmaHigh))
    return false;

  for (unsigned r = 0; r < destinationRegisters; ++r) {
    std::uint32_t word = applyMask(s.outputWord, r), slot = applyMask(s.outputSlot, r);
    if (made[word * wordSize] == unmade)
      return fail(format("register %u takes word %u, which no step made", r, word));
    note(r, std::uint64_t(word) << 8 | slot);
    for (unsigned l = 0; l < 32; ++l)
      result(block, warp, l)[r] = made[word * wordSize + l * slots + slot];
  }
  return true;
}

bool Runner::shuffle() {
  for (unsigned b = 0; b < blocks; ++b)
    for (unsigned w = 0; w < warps; ++w)
      if (!shuffleWarp(b, w))
        return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

bool Runner::shared() {
  const SharedPlan &s = plan.shared;
  AccessFrame frame;
  frame.laneBits = plan.laneBits;
  frame.warpBits = plan.warpBits;
  frame.blockBits = plan.blockBits;
  frame.placeBits = s.regionBits - s.passBits;
  frame.passBits = s.passBits;
  frame.storageBytes = plan.storageBytes;
  frame.regionBytes = s.regionBytes;
  frame.regionPerWarp = s.scope == Scope::Warp;
  frame.predicatedPasses = s.predicatedPasses;
  frame.registerBits = plan.sourceRegisterBits;
  AccessRunner store(s.store, frame);
  frame.registerBits = plan.destinationRegisterBits;
  if (s.scope == Scope::Cluster)
    frame.remote = s.remote;
  AccessRunner load(s.load, frame);
  for (const AccessRunner *side : {&store, &load})
    if (!side->error().empty())
      return fail(side->error());

  // Phases 2p and 2p + 1 store and load pass p.  There is a place for a barrier after each phase, except that scopes
  // Warp and Cta need none after the last one; the plan's barriers fill the places in order.
  const unsigned phases = 2 * plan.passes, places = s.scope == Scope::Cluster ? phases : phases - 1;
  if (plan.barriers > places)
    return fail(format("%u barriers are counted, the passes have room for %u", plan.barriers, places));
  OracleMemory memory(blocks, plan.scratchBytes);
  std::vector<std::uint32_t> registers(std::size_t(32) * sourceRegisters);
  std::vector<std::uint32_t> order(std::size_t(blocks) * warps);
  for (std::uint32_t i = 0; i < order.size(); ++i)
    order[i] = i;
  for (unsigned first = 0; first < phases;) {
    unsigned end = std::min(phases, first + 1); // phases [first, end) run without a barrier between them
    while (end < phases && end - 1 >= plan.barriers)
      ++end;
    std::shuffle(order.begin(), order.end(), random);
    for (std::uint32_t thread : order) {
      unsigned b = thread >> plan.warpBits, w = thread & (warps - 1);
      for (unsigned phase = first; phase < end; ++phase) {
        bool stores = phase % 2 == 0;
        if (stores)
          for (std::uint32_t i = 0; i < registers.size(); ++i)
            registers[i] = thread * static_cast<std::uint32_t>(registers.size()) + i;
        AccessRunner &side = stores ? store : load;
        if (!side.run(b, w, phase / 2, memory, stores ? registers.data() : result(b, w)))
          return fail(side.error());
      }
    }
    if (end - 1 < plan.barriers)
      memory.barrier();
    first = end;
  }
  if (s.scope == Scope::Cluster && memory.remoteReadsPending(warps * 32))
    return fail("a block may leave while others still read its scratch: the last barrier is missing");
  out.trace = store.trace() + 3 * load.trace();

  // In predicated passes every access is charged as if no lane stayed away.
  if (!options.stepsAlone && (!s.predicatedPasses || s.passBits == 0)) {
    std::uint64_t wavefronts = store.wavefronts() + load.wavefronts();
    std::uint64_t ideal = store.phases() + load.phases();
    if (wavefronts != plan.wavefronts || wavefronts - ideal != plan.conflicts)
      return fail(format("the bank simulation counts %llu wavefronts with %llu conflicts, the plan %llu and %llu",
                         (unsigned long long)wavefronts, (unsigned long long)(wavefronts - ideal),
                         (unsigned long long)plan.wavefronts, (unsigned long long)plan.conflicts));
  }
  return copyRegisters();
}

bool Runner::copyRegisters() {
  std::vector<std::uint32_t> loaded(destinationRegisters);
  for (std::size_t thread = 0; thread < out.places.size(); thread += destinationRegisters) {
    std::copy_n(&out.places[thread], destinationRegisters, loaded.begin());
    for (unsigned r = 0; r < destinationRegisters; ++r) {
      std::uint32_t from = applyMask(plan.shared.registerCopy, r);
      if (thread == 0)
        out.trace += (std::uint64_t(r) << 32 | from) * 0x9e3779b97f4a7c15u;
      if (loaded[from] == unmade)
        return fail(format("register %u is a copy of register %u, which was not loaded", r, from));
      out.places[thread + r] = loaded[from];
    }
  }
  return true;
}

void Runner::compare() {
  std::vector<std::uint32_t> from = elementTable(source), to = elementTable(destination);
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::uint32_t place = out.places[i];
    if (place >= from.size() || from[place] != to[i]) {
      out.error =
          format("%s: thread %zu register %zu holds %s, not element %u",
                 std::string(strategyName(plan.strategy)).c_str(), i / destinationRegisters, i % destinationRegisters,
                 place < from.size() ? format("element %u", from[place]).c_str() : "nothing", to[i]);
      return;
    }
  }
}

} // namespace

OracleRun runPlan(const ConversionPlan &plan, const LinearLayout &source, const LinearLayout &destination,
                  const OracleOptions &options) {
  OracleRun run;
  run.error = checkPlanShape(plan, source, destination);
  if (run.error.empty() && !options.stepsAlone)
    run.error = checkPlanClaims(plan, source, destination, options.target);
  if (!run.error.empty())
    return run;
  return Runner(plan, source, destination, options).go();
}

LocalRun runLocalAccess(const Access &access, const LinearLayout &distributed, const LinearLayout &shared,
                        unsigned storageBytes, const std::vector<Mask> &registerCopy) {
  LocalRun run;
  auto fail = [&](std::string message) {
    run.error = std::move(message);
    return run;
  };
  AccessFrame frame;
  frame.warpBits = distributed.bits(InDim::Warp);
  frame.blockBits = distributed.bits(InDim::Block);
  frame.registerBits = distributed.bits(InDim::Register);
  frame.placeBits = distributed.totalBits();
  frame.storageBytes = storageBytes;
  frame.regionBytes = std::uint64_t(storageBytes) << frame.placeBits;
  AccessRunner runner(access, frame);
  if (!runner.error().empty())
    return fail(runner.error());
  const bool stores = isStore(access.form);
  const std::uint32_t warps = 1u << frame.warpBits, elements = 1u << frame.placeBits;
  const std::size_t registers = std::size_t(1) << frame.registerBits, perWarp = 32 * registers;
  if (!stores && registerCopy.size() != frame.registerBits)
    return fail("registerCopy has the wrong number of columns");
  // Values are element numbers; a load finds a buffer that was filled before the last barrier.
  OracleMemory memory(1, frame.regionBytes);
  if (!stores) {
    for (std::uint32_t at = 0; at < elements; ++at)
      memory.write(0, std::uint64_t(at) * storageBytes, static_cast<std::uint32_t>(shared.applyOffset(at)), 0,
                   storageBytes, 0, 0);
    memory.barrier();
  }
  std::vector<std::uint32_t> held = elementTable(distributed), file(perWarp);
  for (std::uint32_t w = 0; w < warps; ++w) {
    const std::uint32_t *wanted = &held[w * perWarp];
    if (stores)
      std::copy_n(wanted, perWarp, file.begin());
    else
      std::fill(file.begin(), file.end(), unmade);
    if (!runner.run(0, w, 0, memory, file.data()))
      return fail(runner.error());
    for (std::size_t i = 0; !stores && i < perWarp; ++i) {
      std::size_t r = i % registers, from = applyMask(registerCopy, static_cast<std::uint32_t>(r));
      if (from >= registers || file[i - r + from] != wanted[i])
        return fail(format("warp %u lane %zu register %zu does not hold element %u", w, i / registers, r, wanted[i]));
    }
  }
  for (std::uint32_t at = 0; stores && at < elements; ++at) {
    for (unsigned byte = 0; byte < storageBytes; ++byte) {
      std::uint32_t value = 0;
      unsigned part = 0;
      if (!memory.peek(0, std::uint64_t(at) * storageBytes + byte, value, part))
        return fail(format("nobody stored offset %u", at));
      if (value != shared.applyOffset(at) || part != byte)
        return fail(format("offset %u holds byte %u of element %u", at, part, value));
    }
  }
  run.wavefronts = runner.wavefronts();
  run.conflicts = runner.wavefronts() - runner.phases();
  return run;
}

} // namespace kiln::test
