#include "tests/layout/OracleChecks.h"

#include "compiler/layout/Gf2.h"
#include "support/Text.h"
#include "tests/layout/OracleAccess.h"

#include <algorithm>
#include <cmath>

namespace kiln::test {

using namespace kiln::layout;

namespace {

constexpr unsigned mostBits = 24;     // no list of a plan indexes more than this
constexpr unsigned mostWordBits = 16; // words of one thread

bool within(const std::vector<Mask> &columns, std::size_t count, unsigned bits) {
  return columns.size() == count &&
         std::all_of(columns.begin(), columns.end(), [&](Mask m) { return std::uint64_t(m) >> bits == 0; });
}

bool isIdentity(const std::vector<Mask> &columns) {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i] != Mask(1) << i)
      return false;
  return true;
}

std::string checkRename(const ConversionPlan &plan) {
  if (!within(plan.registerSource, plan.destinationRegisterBits, plan.sourceRegisterBits))
    return "registerSource has the wrong columns";
  if (plan.strategy == Strategy::None &&
      (plan.sourceRegisterBits != plan.destinationRegisterBits || !isIdentity(plan.registerSource)))
    return "strategy none renames registers";
  return {};
}

/// Sizes of everything that the steps index.
std::string checkShuffleShape(const ConversionPlan &plan) {
  const ShufflePlan &s = plan.shuffle;
  const unsigned elementsPerWord = std::max(1u, 4 / plan.storageBytes);
  if (s.slotBits > 2 || 1u << s.slotBits > elementsPerWord)
    return format("words of 2^%u slots of %u bytes", s.slotBits, plan.storageBytes);
  if (s.roundBits > mostWordBits || s.sourceWord.size() > mostWordBits)
    return "too many rounds or words";
  if (!within(s.sourceSlot, s.slotBits, plan.sourceRegisterBits) ||
      !within(s.sourceWord, s.sourceWord.size(), plan.sourceRegisterBits))
    return "source words have the wrong columns";
  if (!within(s.outputSlot, plan.destinationRegisterBits, s.slotBits) ||
      !within(s.outputWord, plan.destinationRegisterBits, s.roundBits))
    return "output words have the wrong columns";
  if (!within(s.laneColumns, plan.laneBits, plan.laneBits) ||
      !within(s.outerColumns, plan.warpBits + plan.blockBits, plan.laneBits))
    return "the lane map has the wrong columns";
  const unsigned sigmaBits = plan.laneBits + plan.warpBits + plan.blockBits;
  for (const auto *terms : {&s.pick, &s.place})
    for (const SwapTerm &term : *terms)
      if (std::uint64_t(term.condition) >> sigmaBits || term.slotXor >> s.slotBits)
        return "a swap term names a sigma bit or slot that does not exist";
  for (const ShuffleRound &round : s.rounds)
    if (round.index >> s.roundBits || round.sourceSlot >> s.slotBits || round.laneXor >> plan.laneBits)
      return "a round has an index, slot or lane that does not exist";
  return {};
}

std::string checkShuffleClaims(const ConversionPlan &plan) {
  const ShufflePlan &s = plan.shuffle;
  std::size_t selects = 0, shuffles = 0;
  for (const auto *terms : {&s.pick, &s.place})
    for (const SwapTerm &term : *terms)
      selects += term.words.size();
  // Rounds beyond the destination's own words exist only through extra bits, by which a lane sends a second register.
  Span reached;
  for (Mask word : s.outputWord)
    reached.add(word);
  if (s.roundBits != reached.dim() + s.extraRoundBits)
    return format("%u round bits, of them %u extra, but the outputs take 2^%u words", s.roundBits, s.extraRoundBits,
                  reached.dim());
  Mask touched = 0;
  bool identity = isIdentity(s.laneColumns);
  for (unsigned i = 0; i < s.laneColumns.size(); ++i)
    touched |= s.laneColumns[i] ^ Mask(1) << i;
  for (Mask m : s.outerColumns) {
    touched |= m;
    identity = identity && m == 0;
  }
  if (s.butterfly != identity)
    return "butterfly contradicts the lane map";
  for (const ShuffleRound &round : s.rounds) {
    bool own = identity && round.laneXor == 0;
    if (round.moves == own)
      return "a round's moves contradicts its lane map";
    shuffles += round.moves;
    touched |= round.laneXor;
  }
  if (touched != s.lanesTouched)
    return format("lanesTouched is %u, the rounds touch %u", s.lanesTouched, touched);
  const unsigned words = plan.storageBytes == 8 ? 2 : 1;
  if (shuffles * words != plan.shuffles || selects * words != plan.selects)
    return format("%zu shuffles and %zu selects in the steps, the plan counts %u and %u", shuffles * words,
                  selects * words, plan.shuffles, plan.selects);
  return {};
}

/// Coordinates of the region against the layouts: the source's owners number the region's elements, and every
/// destination bit finds there what its layout names.
std::string checkCoordinates(const ConversionPlan &plan, const LinearLayout &source, const LinearLayout &destination) {
  const SharedPlan &s = plan.shared;
  const unsigned level = s.scope == Scope::Warp ? 2 : 3;
  Span numbered, held, all;
  Columns owners;
  for (unsigned d = 0; d < 4; ++d) {
    if (!within(s.source[d], source.bits(InDim(d)), s.regionBits) ||
        !within(s.destination[d], destination.bits(InDim(d)), s.regionBits))
      return "region coordinates have the wrong columns";
    for (unsigned i = 0; i < s.source[d].size(); ++i) {
      Mask x = s.source[d][i];
      if (d >= level && x)
        return "an outer source bit has coordinates inside the region";
      if (d < level)
        all.add(source.column(InDim(d), i));
      if (!x)
        continue;
      if (!numbered.add(x) || !held.add(source.column(InDim(d), i)))
        return "two owners have dependent coordinates";
      owners.push_back(source.column(InDim(d), i));
    }
  }
  if (numbered.dim() != s.regionBits || held.dim() != all.dim())
    return "the owners do not number the region";
  for (unsigned d = 0; d < 4; ++d) {
    for (unsigned i = 0; i < s.destination[d].size(); ++i) {
      auto made = numbered.solve(s.destination[d][i]);
      BitVector found = made ? layout::apply(owners, *made) : 0;
      if (s.scope == Scope::Cluster)
        found ^= layout::apply(source.columns(InDim::Block), s.remote[d][i]);
      else if (d >= level)
        found ^= source.column(InDim(d), i); // the region itself lies at the own outer position
      if (found != destination.column(InDim(d), i))
        return format("coordinates of destination %s bit %u name another element",
                      std::string(inDimName(InDim(d))).c_str(), i);
    }
  }
  return {};
}

std::string checkOffsets(const ConversionPlan &plan) {
  const SharedPlan &s = plan.shared;
  if (!within(s.offsetBasis, s.regionBits, s.regionBits) || !within(s.offsetRows, s.regionBits, s.regionBits))
    return "the offset basis has the wrong columns";
  auto offset = [&](Mask x) {
    Mask at = 0;
    for (unsigned i = 0; i < s.regionBits; ++i)
      at |= Mask(parity(x & s.offsetRows[i])) << i;
    return at;
  };
  for (unsigned i = 0; i < s.regionBits; ++i)
    if (offset(s.offsetBasis[i]) != Mask(1) << i)
      return "offsetRows is not the inverse of offsetBasis";
  auto same = [&](const std::vector<Mask> &columns, const std::vector<Mask> &coordinates) {
    if (columns.size() != coordinates.size())
      return columns.empty();
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i] != offset(coordinates[i]))
        return false;
    return true;
  };
  for (bool store : {true, false}) {
    const Access &a = store ? s.store : s.load;
    const auto *x = store ? s.source : s.destination;
    if (!same(a.lane, x[1]) || !same(a.warp, x[2]) || (!store && !same(a.block, x[3])))
      return "lane, warp or block offsets contradict the offset basis";
    if (a.registerOffset.size() != x[0].size())
      return "registerOffset has the wrong number of columns";
    for (std::size_t i = 0; i < x[0].size(); ++i)
      if (a.registerOffset[i] != offset(x[0][i]) && a.registerOffset[i] != 0)
        return "register offsets contradict the offset basis";
    if (store && std::any_of(a.block.begin(), a.block.end(), [](Mask m) { return m != 0; }))
      return "stores go to the own block";
  }
  return {};
}

/// Words of a side that have to be assembled: none if the lowest register bits already form them.
std::uint64_t assembledWords(const Access &a, unsigned storageBytes) {
  if (storageBytes > 2)
    return 0;
  std::vector<Mask> directions = a.vector;
  if (a.halves)
    directions.push_back(a.halves);
  std::vector<Mask> natural = storageBytes == 1 ? std::vector<Mask>{1, 2} : std::vector<Mask>{1};
  std::size_t registers = std::size_t(a.instructions) * a.bytes / storageBytes;
  if (registers < std::size_t(1) << natural.size())
    return 0;
  directions.resize(std::min(directions.size(), natural.size()));
  return directions == natural ? 0 : registers >> directions.size();
}

std::string checkSharedShape(const ConversionPlan &plan, const LinearLayout &destination) {
  const SharedPlan &s = plan.shared;
  if (s.regionBits > mostBits || s.passBits > s.regionBits)
    return "region or pass bits out of range";
  if (!isStore(s.store.form) || isStore(s.load.form))
    return "the store does not store or the load does not load";
  if (plan.passes != 1u << s.passBits)
    return "passes and passBits disagree";
  if (!within(s.registerCopy, plan.destinationRegisterBits, plan.destinationRegisterBits))
    return "registerCopy has the wrong columns";
  for (unsigned d = 0; d < 4; ++d)
    if (s.scope == Scope::Cluster ? !within(s.remote[d], destination.bits(InDim(d)), plan.blockBits)
                                  : !s.remote[d].empty())
      return "remote parts have the wrong columns";
  if (plan.scratchBytes > std::uint64_t(1) << mostBits || s.regionBytes > plan.scratchBytes)
    return "a region is larger than the scratch";
  return {};
}

std::string checkSharedClaims(const ConversionPlan &plan, const LinearLayout &source, const LinearLayout &destination) {
  const SharedPlan &s = plan.shared;
  const bool scalar = plan.strategy == Strategy::SharedScalar;
  if (scalar && (s.store.form != AccessForm::St || s.load.form != AccessForm::Ld || !s.store.vector.empty() ||
                 !s.load.vector.empty()))
    return "shared_scalar moves one element an instruction";
  if (s.predicatedPasses != (scalar && s.passBits > 0))
    return "predicatedPasses belongs to shared_scalar in passes";
  const std::uint64_t regionBytes = (std::uint64_t(1) << (s.regionBits - s.passBits)) * plan.storageBytes;
  const unsigned regions = s.scope == Scope::Warp ? 1u << plan.warpBits : 1;
  if (s.regionBytes != regionBytes || s.regions != regions)
    return "regionBytes or regions contradict the scope and the passes";
  if (plan.scratchBytes != regionBytes * regions)
    return format("%llu bytes of scratch are declared, %llu are needed", (unsigned long long)plan.scratchBytes,
                  (unsigned long long)(regionBytes * regions));
  const Barrier barrier = s.scope == Scope::Warp  ? Barrier::Warp
                          : s.scope == Scope::Cta ? Barrier::Cta
                                                  : Barrier::Cluster;
  if (plan.barrier != barrier)
    return format("barrier %s does not order scope %s", std::string(barrierName(plan.barrier)).c_str(),
                  std::string(scopeName(s.scope)).c_str());
  if (s.scope == Scope::Cluster && (isMatrix(s.store.form) || isMatrix(s.load.form)))
    return "cluster plans use plain accesses";
  for (std::string error : {checkCoordinates(plan, source, destination), checkOffsets(plan)})
    if (!error.empty())
      return error;
  const std::uint64_t warps = std::uint64_t(1) << plan.warpBits;
  const std::uint64_t storing = warps >> std::popcount(s.store.warpPredicate);
  const std::uint64_t stores = storing * s.store.instructions, loads = warps * s.load.instructions;
  if (plan.wavefronts != stores * s.store.wavefronts + loads * s.load.wavefronts ||
      plan.conflicts != stores * (s.store.wavefronts - s.store.ideal) + loads * (s.load.wavefronts - s.load.ideal))
    return "wavefronts or conflicts of the plan contradict those of its accesses";
  if (plan.permutes != assembledWords(s.store, plan.storageBytes) + assembledWords(s.load, plan.storageBytes))
    return "permutes is not the number of words to assemble";
  return {};
}

} // namespace

double specifiedCost(const ConversionPlan &plan) {
  const double warps = 1u << plan.warpBits, repetitions = plan.repetitions;
  switch (plan.strategy) {
  case Strategy::None:
  case Strategy::RegisterPermute:
    return 0;
  case Strategy::MmaToMma:
  case Strategy::WarpShuffle:
    return repetitions * warps * (plan.shuffles + 0.5 * (plan.selects + plan.permutes)) +
           5.0 * static_cast<double>(plan.shuffle.pick.size() + plan.shuffle.place.size()) + (plan.shuffles ? 24 : 0);
  case Strategy::Shared:
  case Strategy::SharedScalar:
    break;
  }
  const SharedPlan &s = plan.shared;
  const double far = s.scope == Scope::Cluster ? 4 : 1;
  const double storing = (1u << plan.warpBits) >> std::popcount(s.store.warpPredicate);
  const double instructions = s.store.instructions + s.load.instructions;
  const double barrier = plan.barrier == Barrier::Warp ? 4 : plan.barrier == Barrier::Cta ? 20 + warps : 200;
  double address = s.store.constants + s.load.constants + plan.permutes;
  if (s.predicatedPasses)
    address += 2 * instructions;
  const double one = storing * s.store.instructions * s.store.wavefronts +
                     far * warps * s.load.instructions * s.load.wavefronts + 0.25 * warps * instructions +
                     0.5 * warps * address;
  const double rounds = plan.passes * std::ceil(repetitions / plan.perRound);
  return repetitions * one + 6 * warps + rounds * (12 + 30 * far) +
         (2 * rounds - (s.scope == Scope::Cluster ? 0 : 1)) * barrier;
}

std::string checkPlanShape(const ConversionPlan &plan, const LinearLayout &source, const LinearLayout &destination) {
  if (plan.laneBits != 5 || plan.warpBits != source.bits(InDim::Warp) || plan.blockBits != source.bits(InDim::Block) ||
      plan.sourceRegisterBits != source.bits(InDim::Register) ||
      plan.destinationRegisterBits != destination.bits(InDim::Register) || plan.tensorBits != source.totalBits())
    return "the plan's sizes are not those of its layouts";
  if (plan.storageBytes != std::max(8u, plan.elementBits) / 8)
    return "storageBytes contradicts elementBits";
  switch (plan.strategy) {
  case Strategy::None:
  case Strategy::RegisterPermute:
    return checkRename(plan);
  case Strategy::MmaToMma:
  case Strategy::WarpShuffle:
    return checkShuffleShape(plan);
  case Strategy::Shared:
  case Strategy::SharedScalar:
    return checkSharedShape(plan, destination);
  }
  return "unknown strategy";
}

std::string checkPlanClaims(const ConversionPlan &plan, const LinearLayout &source, const LinearLayout &destination,
                            const Target *target) {
  if (!target) {
    auto found = findTarget(plan.target);
    if (!found.ok())
      return found.status().message();
    target = *found;
  }
  if (plan.target != target->name)
    return "the plan is for target " + plan.target;
  if (plan.perRound < 1 || plan.perRound > plan.repetitions || (plan.passes > 1 && plan.perRound > 1))
    return format("%u of %u repetitions a round of %u passes", plan.perRound, plan.repetitions, plan.passes);
  auto needs = [&](Capability c) {
    return target->has(c) ? std::string()
                          : format("the plan uses %s, which %s lacks", std::string(capabilityName(c)).c_str(),
                                   std::string(target->name).c_str());
  };
  const bool shared = plan.strategy == Strategy::Shared || plan.strategy == Strategy::SharedScalar;
  const bool rounds = plan.strategy == Strategy::MmaToMma || plan.strategy == Strategy::WarpShuffle;
  std::string error;
  if (plan.strategy == Strategy::MmaToMma)
    error = needs(Capability::MmaToMma);
  if (shared && isMatrix(plan.shared.store.form))
    error = needs(Capability::Stmatrix);
  if (error.empty() && shared && isMatrix(plan.shared.load.form))
    error = needs(Capability::Ldmatrix);
  if (error.empty() && plan.blockBits)
    error = needs(Capability::Clusters);
  if (!error.empty())
    return error;
  if (!shared && (plan.scratchBytes || plan.passes || plan.barriers || plan.barrier != Barrier::None ||
                  plan.wavefronts || plan.conflicts))
    return "a plan without shared memory counts scratch, passes, barriers or wavefronts";
  if (!rounds && (plan.shuffles || plan.selects))
    return "a plan without rounds counts shuffles or selects";
  if (!rounds && !shared && plan.permutes)
    return "a renaming of registers counts byte permutes";
  if (rounds)
    error = checkShuffleClaims(plan);
  if (shared)
    error = checkSharedClaims(plan, source, destination);
  if (error.empty() && plan.cost != specifiedCost(plan))
    error = format("cost %g, the counts make %g", plan.cost, specifiedCost(plan));
  return error;
}

} // namespace kiln::test
