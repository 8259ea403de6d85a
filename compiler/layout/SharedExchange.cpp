#include "compiler/layout/SharedExchange.h"

#include "compiler/layout/CostModel.h"
#include "compiler/layout/OffsetBasis.h"
#include "compiler/layout/ShuffleRounds.h"
#include "support/Text.h"

#include <algorithm>
#include <tuple>

namespace kiln::layout {

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

SharedRegion::SharedRegion(const ConversionProblem &p, Scope scope) : scope(scope) {
  const LinearLayout &src = *p.source, &dst = *p.destination;
  unsigned level = scope == Scope::Warp ? 2 : 3; // inputs below `level` are inside the region
  Span sub(src.innerColumns(level));
  bits = sub.dim();
  regions = scope == Scope::Warp ? p.warps : 1;
  auto local = [&](BitVector t) { return gatherBits(t, sub.pivots()); };

  // Owners store: bits that depend on earlier ones make copies, whose coordinates are 0 here.
  BitVector free[4] = {};
  Span seen;
  for (InDim d : hardwareDims)
    for (unsigned i = 0; i < src.bits(d); ++i) {
      BitVector c = index(d) < level ? src.column(d, i) : 0;
      bool copy = index(d) < level && !seen.add(c);
      free[index(d)] |= BitVector(copy) << i;
      source[index(d)].push_back(copy || !c ? 0 : local(c));
    }
  Columns far; // what a block bit adds outside the region
  if (scope == Scope::Cluster)
    for (BitVector c : src.columns(InDim::Block))
      far.push_back(sub.reduce(c).first);
  Span farSpan(far);
  for (InDim d : hardwareDims)
    for (unsigned i = 0; i < dst.bits(d); ++i) {
      BitVector c = dst.column(d, i), block = 0;
      if (index(d) >= level && sub.contains(c ^ src.column(d, i))) {
        block = d == InDim::Block ? unitVector(i) : 0; // the own warp or block has it
        c ^= src.column(d, i);
      } else if (scope == Scope::Cluster && !sub.contains(c)) {
        block = farSpan.reduce(sub.reduce(c).first).second;
        c ^= apply(src.columns(InDim::Block), block);
      }
      destination[index(d)].push_back(local(c));
      remote[index(d)].push_back(block);
    }
  for (BitVector r : remote[0])
    remoteRegisters |= r != 0;

  for (unsigned i = 0; i < source[0].size(); ++i)
    if (!(free[0] >> i & 1)) {
      store.registerBits.push_back(i);
      store.registers.push_back(source[0][i]);
    }
  store.lanes = source[1];
  store.warps = source[2];
  store.lanePredicate = free[1];
  store.warpPredicate = free[2];
  Span registers; // copies in the destination's registers are read once
  for (unsigned i = 0; i < destination[0].size(); ++i)
    if (registers.add(destination[0][i] | remote[0][i] << bits)) {
      load.registerBits.push_back(i);
      load.registers.push_back(destination[0][i]);
    }
  load.lanes = destination[1];
  load.warps = destination[2];
  load.blocks = destination[3];
  load.keepAll = remoteRegisters;
}

//===----------------------------------------------------------------------===//
// Counts and cost
//===----------------------------------------------------------------------===//

/// What the cost of a plan through shared memory depends on; counts are of one repetition.
struct SharedExchange::Counts {
  std::uint64_t storeWarps = 0, storeInstructions = 0, loadInstructions = 0; ///< instructions of a warp
  std::uint64_t storeWavefronts = 0, loadWavefronts = 0;                     ///< of one instruction
  std::uint64_t constants = 0, permutes = 0;
  std::uint64_t moves = 0; ///< of words that loads leave apart
  unsigned rounds = 1; ///< of scratch: passes, or rounds of repetitions
  bool predicated = false;
};

namespace {

unsigned barrierCount(Scope scope, unsigned rounds) {
  return 2 * rounds - (scope == Scope::Cluster ? 0 : 1);
}

std::uint64_t storingWarps(const ConversionProblem &p, const SharedRegion &r) {
  return r.scope == Scope::Warp ? p.warps : p.warps >> std::popcount(r.store.warpPredicate);
}

std::uint64_t permutesOf(const BoundAccess &a, std::uint64_t instructions, unsigned storageBytes) {
  Columns directions = a.vector;
  if (a.halves)
    directions.push_back(a.halves);
  return wordPermutes(directions, instructions * a.bytes / storageBytes, storageBytes);
}

} // namespace

double SharedExchange::cost(const Counts &c) const {
  double warps = problem.warps, far = region.scope == Scope::Cluster ? costs::remote : 1;
  double barrier = region.scope == Scope::Warp  ? costs::warpBarrier
                   : region.scope == Scope::Cta ? costs::ctaBarrier + costs::ctaBarrierPerWarp * warps
                                                : costs::clusterBarrier;
  double instructions = static_cast<double>(c.storeInstructions + c.loadInstructions);
  double alu = static_cast<double>(c.constants + c.permutes + c.moves) + (c.predicated ? 2 * instructions : 0);
  double repetition = costs::wavefront * (static_cast<double>(c.storeWarps * c.storeInstructions * c.storeWavefronts) +
                                          far * warps * static_cast<double>(c.loadInstructions * c.loadWavefronts)) +
                      costs::issue * warps * instructions + costs::alu * warps * alu;
  return problem.repetitions * repetition + costs::alu * warps * costs::addressSetup +
         c.rounds * (costs::storeLatency + costs::loadLatency * far) + barrierCount(region.scope, c.rounds) * barrier;
}

/// Repetitions that go through scratch together.
unsigned SharedExchange::perRound(unsigned passBits, std::uint64_t scratchLimit) const {
  if (passBits > 0)
    return 1;
  const std::uint64_t one = (std::uint64_t(problem.storageBytes) << region.bits) * region.regions;
  const auto most = static_cast<unsigned>(std::clamp<std::uint64_t>(scratchLimit / one, 1, problem.repetitions));
  const unsigned rounds = (problem.repetitions + most - 1) / most;
  return (problem.repetitions + rounds - 1) / rounds;
}

/// Fills the counts of a bound pair.
void SharedExchange::count(SharedCandidate &c, std::uint64_t scratchLimit) const {
  unsigned passes = 1u << c.passBits;
  Counts n;
  n.storeWarps = storingWarps(problem, region);
  c.perRound = perRound(c.passBits, scratchLimit);
  n.rounds = passes * ((problem.repetitions + c.perRound - 1) / c.perRound);
  n.predicated = c.predicatedPasses;
  std::uint64_t repeat = c.predicatedPasses ? passes : 1; // every pass walks all instructions
  n.storeInstructions = repeat << c.store.log2Instructions();
  n.loadInstructions = repeat << c.load.log2Instructions();
  n.storeWavefronts = c.store.wavefronts;
  n.loadWavefronts = c.load.wavefronts;
  n.constants = c.store.constants + c.load.constants;
  c.permutes = permutesOf(c.store, n.storeInstructions, problem.storageBytes) +
               permutesOf(c.load, n.loadInstructions, problem.storageBytes);
  n.permutes = c.permutes;
  if (problem.neighbours && !c.load.hasNeighbours())
    n.moves = n.loadInstructions * (c.load.bytes / 4);
  c.scope = region.scope;
  c.scratchBytes = (std::uint64_t(problem.storageBytes) << (region.bits - c.passBits)) * region.regions;
  std::uint64_t stores = n.storeWarps * n.storeInstructions, loads = problem.warps * n.loadInstructions;
  c.wavefronts = stores * c.store.wavefronts + loads * c.load.wavefronts;
  c.conflicts = stores * (c.store.wavefronts - c.store.ideal) + loads * (c.load.wavefronts - c.load.ideal);
  c.barrier = region.scope == Scope::Warp  ? Barrier::Warp
              : region.scope == Scope::Cta ? Barrier::Cta
                                           : Barrier::Cluster;
  c.barriers = barrierCount(region.scope, passes);
  c.cost = cost(n);
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

std::optional<SharedCandidate> SharedExchange::best(std::uint64_t scratchLimit, std::string &reason,
                                                    std::vector<SharedCandidate> *every) const {
  const SharedRegion &r = region;
  unsigned logBytes = problem.logBytes;
  bool matrices = r.scope != Scope::Cluster;
  FormList stores =
      formsFor(true, r.store.registers.size(), logBytes, r.store.lanePredicate != 0, matrices, *problem.target);
  FormList loads = formsFor(false, r.load.registers.size(), logBytes, false, matrices, *problem.target);
  if (r.remoteRegisters)
    loads = {{AccessForm::Ld, 0}}; // registers of one vector may live in several blocks

  unsigned passBits = 0;
  while ((std::uint64_t(problem.storageBytes) << r.bits >> passBits) * r.regions > scratchLimit && passBits <= r.bits)
    ++passBits;

  const unsigned together = perRound(passBits, scratchLimit),
                 rounds = (problem.repetitions + together - 1) / together << std::min(passBits, r.bits);
  // Cheapest first by a bound that leaves out conflicts and address constants; a pair above the best cost is skipped.
  struct Pair {
    Form store, load;
    unsigned order;
    double bound;
  };
  InlineVector<Pair, FormList::capacity() * FormList::capacity()> pairs;
  auto leastPermutes = [&](const FormSize &s) -> std::uint64_t {
    // Directions are unknown yet: as many as a word wants may be natural ones.
    unsigned want = logBytes == 0 ? 2 : logBytes == 1 ? 1 : 0;
    std::uint64_t registers = (std::uint64_t(s.bytes) << s.logInstructions) >> logBytes;
    return want == 0 || registers < 1u << want || s.directions >= want ? 0 : registers >> s.directions;
  };
  for (const Form &s : stores)
    for (const Form &l : loads) {
      FormSize a = sizeOf(s, r.store, logBytes), b = sizeOf(l, r.load, logBytes);
      Counts n;
      n.storeWarps = storingWarps(problem, r);
      n.storeInstructions = std::uint64_t(1) << a.logInstructions;
      n.loadInstructions = std::uint64_t(1) << b.logInstructions;
      n.storeWavefronts = a.ideal;
      n.loadWavefronts = b.ideal;
      n.permutes = leastPermutes(a) + leastPermutes(b);
      n.rounds = rounds;
      pairs.push_back({s, l, pairs.size(), every ? 0 : cost(n)});
    }
  std::sort(pairs.begin(), pairs.end(),
            [](const Pair &a, const Pair &b) { return std::tie(a.bound, a.order) < std::tie(b.bound, b.order); });

  std::optional<SharedCandidate> winner;
  unsigned winnerOrder = 0;
  std::uint64_t leastNeed = 0; // scratch that the least demanding pair would need
  OffsetBasisSearch search(r.store, r.load, r.bits, logBytes);
  SharedCandidate c;
  for (const Pair &pair : pairs) {
    if (winner && !every && pair.bound > winner->cost)
      break;
    auto basis = search.find(pair.store, pair.load);
    if (!basis)
      continue;
    if (basis->fixedBits + passBits > r.bits) {
      std::uint64_t need = (std::uint64_t(problem.storageBytes) << basis->fixedBits) * r.regions;
      leastNeed = leastNeed ? std::min(leastNeed, need) : need;
      continue;
    }
    auto rows = inverseRows(basis->basis, r.bits);
    if (!rows)
      continue;
    if (!bindAccess(pair.store, r.store, logBytes, *rows, passBits, c.store) ||
        !bindAccess(pair.load, r.load, logBytes, *rows, passBits, c.load))
      continue;
    c.basis = basis->basis;
    c.rows = *rows;
    c.passBits = passBits;
    count(c, scratchLimit);
    auto key = [](const SharedCandidate &x, unsigned order) {
      return std::tuple(x.cost, x.conflicts, x.scratchBytes, order);
    };
    if (every)
      every->push_back(c);
    if (!winner || key(c, pair.order) < key(*winner, winnerOrder)) {
      winner = c;
      winnerOrder = pair.order;
    }
  }
  if (!winner)
    reason = leastNeed
                 ? format("needs at least %llu bytes of scratch, the limit is %llu",
                          static_cast<unsigned long long>(leastNeed), static_cast<unsigned long long>(scratchLimit))
                 : "no pair of access forms fits these layouts";
  return winner;
}

std::optional<SharedCandidate> SharedExchange::scalar(std::uint64_t scratchLimit) const {
  const SharedRegion &r = region;
  SharedCandidate c;
  auto bytes = [&] { return (std::uint64_t(problem.storageBytes) << (r.bits - c.passBits)) * r.regions; };
  while (bytes() > scratchLimit && c.passBits < r.bits)
    ++c.passBits;
  if (bytes() > scratchLimit)
    return std::nullopt;
  c.predicatedPasses = c.passBits > 0;
  for (unsigned i = 0; i < r.bits; ++i)
    c.rows.push_back(unitVector(i));
  c.basis = c.rows;
  // Passes are predicates on the address here, not a choice of instructions.
  if (!bindAccess({AccessForm::St, 0}, r.store, problem.logBytes, c.rows, 0, c.store) ||
      !bindAccess({AccessForm::Ld, 0}, r.load, problem.logBytes, c.rows, 0, c.load))
    return std::nullopt;
  count(c, scratchLimit);
  return c;
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

void SharedExchange::emit(const SharedCandidate &c, ConversionPlan &plan) const {
  auto masks = [](const Columns &columns) {
    std::vector<Mask> out(columns.size());
    for (unsigned i = 0; i < columns.size(); ++i)
      out[i] = static_cast<Mask>(columns[i]);
    return out;
  };
  SharedPlan &s = plan.shared;
  s.scope = region.scope;
  s.regionBits = region.bits;
  s.passBits = c.passBits;
  s.regions = region.regions;
  s.regionBytes = c.scratchBytes / region.regions;
  s.predicatedPasses = c.predicatedPasses;
  s.offsetBasis = masks(c.basis);
  s.offsetRows = masks(c.rows);
  for (unsigned d = 0; d < numHardwareDims; ++d) {
    s.source[d] = masks(region.source[d]);
    s.destination[d] = masks(region.destination[d]);
    if (region.scope == Scope::Cluster)
      s.remote[d] = masks(region.remote[d]);
  }
  Span loaded; // the registers that are loaded, and which of them a copy equals
  for (unsigned i : region.load.registerBits)
    loaded.add(region.destination[0][i] | region.remote[0][i] << region.bits);
  for (unsigned i = 0; i < region.destination[0].size(); ++i) {
    Mask copy = 0;
    for (unsigned k : bitsOf(loaded.reduce(region.destination[0][i] | region.remote[0][i] << region.bits).second))
      copy |= Mask(1) << region.load.registerBits[k];
    s.registerCopy.push_back(copy);
  }
  std::uint64_t repeat = c.predicatedPasses ? 1u << c.passBits : 1;
  s.store = emitAccess(c.store, region.store, plan.sourceRegisterBits, repeat << c.store.log2Instructions());
  s.load = emitAccess(c.load, region.load, plan.destinationRegisterBits, repeat << c.load.log2Instructions());
  plan.cost = c.cost;
  plan.permutes = c.permutes;
  plan.wavefronts = c.wavefronts;
  plan.conflicts = c.conflicts;
  plan.scratchBytes = c.scratchBytes;
  plan.passes = 1u << c.passBits;
  plan.perRound = c.perRound;
  plan.barrier = c.barrier;
  plan.barriers = c.barriers;
}

} // namespace kiln::layout
