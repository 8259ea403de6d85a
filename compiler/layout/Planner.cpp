#include "compiler/layout/Planner.h"

#include "compiler/layout/ConversionProblem.h"
#include "compiler/layout/SharedExchange.h"
#include "compiler/layout/ShuffleRounds.h"
#include "support/Text.h"

#include <functional>
#include <memory>

namespace kiln::layout {

namespace {

/// A way to do the conversion, costed; its plan is written only if it is taken.
struct Proposal {
  Strategy strategy;
  Scope scope = Scope::Cta; // shared memory only
  double cost = 0;
  std::function<void(ConversionPlan &)> emit;
};

/// One planning run: the problem, what was proposed and refused, and work that strategies share.
class Search {
public:
  Search(const ConversionProblem &p, std::uint64_t limit, bool every) : problem(p), limit(limit), every(every) {}

  const ConversionProblem &problem;
  const std::uint64_t limit;
  const bool every; ///< propose all variants of every strategy
  std::vector<Proposal> proposals;
  std::vector<Rejected> refused;

  void propose(Strategy s, double cost, std::function<void(ConversionPlan &)> emit, Scope scope = Scope::Cta) {
    proposals.push_back({s, scope, cost, std::move(emit)});
  }
  void refuse(std::string strategy, std::string reason) { refused.push_back({std::move(strategy), std::move(reason)}); }
  void refuse(Strategy s, std::string reason) { refuse(std::string(strategyName(s)), std::move(reason)); }

  const ShuffleRounds &shuffles() {
    if (!rounds)
      rounds = std::make_unique<ShuffleRounds>(problem);
    return *rounds;
  }
  const SharedExchange &exchange(Scope scope) {
    auto &e = exchanges[static_cast<unsigned>(scope)];
    if (!e)
      e = std::make_unique<SharedExchange>(problem, scope);
    return *e;
  }
  /// Smallest region first; a conversion inside a warp may also use the block's.
  std::span<const Scope> scopes() const {
    static constexpr Scope warp[] = {Scope::Warp, Scope::Cta}, cluster[] = {Scope::Cluster};
    if (problem.level == 4)
      return cluster;
    return problem.level == 3 ? std::span(warp).subspan(1) : std::span<const Scope>(warp);
  }
  std::string crossing() const { return std::string("data crosses ") + (problem.level == 3 ? "warps" : "blocks"); }

private:
  std::unique_ptr<ShuffleRounds> rounds;
  std::unique_ptr<SharedExchange> exchanges[3];
};

std::string scopedName(Strategy s, Scope scope) {
  std::string name(strategyName(s));
  if (s == Strategy::Shared || s == Strategy::SharedScalar)
    name += " (" + std::string(scopeName(scope)) + ")";
  return name;
}

//===----------------------------------------------------------------------===//
// The strategies
//===----------------------------------------------------------------------===//

void proposeRename(Search &s, Strategy strategy, ConversionClass wanted) {
  const ConversionProblem &p = s.problem;
  if (p.cls == wanted) {
    s.propose(strategy, 0, [&p](ConversionPlan &plan) {
      for (BitVector c : p.registerSource)
        plan.registerSource.push_back(static_cast<Mask>(c));
    });
    return;
  }
  switch (p.cls) {
  case ConversionClass::None:
    return s.refuse(strategy, "registers need no renaming");
  case ConversionClass::Register:
    return s.refuse(strategy, "registers are renamed");
  case ConversionClass::Thread:
    return s.refuse(strategy, "lanes or warps pick different registers");
  default:
    return s.refuse(strategy, "data moves between " + std::string(className(p.cls)) + "s");
  }
}

void proposeNone(Search &s) {
  proposeRename(s, Strategy::None, ConversionClass::None);
}
void proposePermute(Search &s) {
  proposeRename(s, Strategy::RegisterPermute, ConversionClass::Register);
}

void proposeRounds(Search &s, Strategy strategy, bool all) {
  const ShuffleRounds &rounds = s.shuffles();
  auto offer = [&](const ShuffleSchedule &schedule) {
    s.propose(strategy, schedule.cost, [&rounds, &schedule](ConversionPlan &plan) { rounds.emit(schedule, plan); });
  };
  if (!all)
    return offer(rounds.best());
  for (const ShuffleSchedule &schedule : rounds.all())
    offer(schedule);
}

void proposeMmaToMma(Search &s) {
  const ConversionProblem &p = s.problem;
  if (p.level > 2)
    return s.refuse(Strategy::MmaToMma, s.crossing());
  if (!isQuadFragment(*p.source) || !isQuadFragment(*p.destination))
    return s.refuse(Strategy::MmaToMma, "source or destination is not an mma fragment map");
  if (!p.target->has(Capability::MmaToMma))
    return s.refuse(Strategy::MmaToMma, "target " + std::string(p.target->name) + " lacks the capability " +
                                            std::string(capabilityName(Capability::MmaToMma)));
  proposeRounds(s, Strategy::MmaToMma, false);
}

void proposeShuffle(Search &s) {
  if (s.problem.level > 2)
    return s.refuse(Strategy::WarpShuffle, s.crossing());
  proposeRounds(s, Strategy::WarpShuffle, s.every);
}

void proposeExchange(Search &s, Strategy strategy, Scope scope, SharedCandidate candidate) {
  const SharedExchange &exchange = s.exchange(scope);
  double cost = candidate.cost;
  s.propose(
      strategy, cost,
      [&exchange, c = std::make_shared<SharedCandidate>(std::move(candidate))](ConversionPlan &plan) {
        exchange.emit(*c, plan);
      },
      scope);
}

void proposeShared(Search &s) {
  for (Scope scope : s.scopes()) {
    std::string reason;
    std::vector<SharedCandidate> all;
    auto best = s.exchange(scope).best(s.limit, reason, s.every ? &all : nullptr);
    if (!best)
      s.refuse(scopedName(Strategy::Shared, scope), reason);
    else if (!s.every)
      proposeExchange(s, Strategy::Shared, scope, *best);
    for (const SharedCandidate &c : all)
      proposeExchange(s, Strategy::Shared, scope, c);
  }
}

void proposeScalar(Search &s) {
  for (Scope scope : s.every ? s.scopes() : s.scopes().last(1)) {
    if (auto c = s.exchange(scope).scalar(s.limit))
      proposeExchange(s, Strategy::SharedScalar, scope, *c);
    else
      s.refuse(scopedName(Strategy::SharedScalar, scope),
               format("the scratch limit of %llu bytes is below one element of %u bytes",
                      static_cast<unsigned long long>(s.limit), s.problem.storageBytes));
  }
}

/// Every strategy, in the order in which ties are decided.  To add one: a value of enum Strategy in the same place, its
/// row here, and its steps in ConversionPlan.
struct StrategyRow {
  Strategy strategy;
  const char *name;
  bool free;       ///< costs nothing where it applies: the search ends
  bool lastResort; ///< asked only if nothing else applies
  void (*propose)(Search &);
};
constexpr StrategyRow strategies[] = {
    {Strategy::None, "none", true, false, proposeNone},
    {Strategy::RegisterPermute, "register_permute", true, false, proposePermute},
    {Strategy::MmaToMma, "mma_to_mma", false, false, proposeMmaToMma},
    {Strategy::WarpShuffle, "warp_shuffle", false, false, proposeShuffle},
    {Strategy::Shared, "shared", false, false, proposeShared},
    {Strategy::SharedScalar, "shared_scalar", false, true, proposeScalar},
};

ConversionPlan realise(const Search &s, const Proposal &proposal) {
  ConversionPlan plan = s.problem.emptyPlan(proposal.strategy);
  proposal.emit(plan);
  return plan;
}

} // namespace

//===----------------------------------------------------------------------===//
// The planner
//===----------------------------------------------------------------------===//

Result<ConversionPlan> planConversion(const LinearLayout &source, const LinearLayout &destination, unsigned elementBits,
                                      const Target &target, const PlanOptions &options) {
  KILN_ASSIGN(ConversionProblem problem,
              ConversionProblem::create(source, destination, elementBits, target, options.repetitions));
  problem.neighbours = options.neighbours;
  Search search(problem, options.scratchBytes, false);
  bool done = false;
  for (const StrategyRow &row : strategies) {
    if (options.force && *options.force != row.strategy)
      continue;
    if (done)
      search.refuse(row.strategy, "not needed: renaming registers costs nothing");
    else if (row.lastResort && !search.proposals.empty() && !options.force)
      search.refuse(row.strategy, "another plan exists");
    else
      row.propose(search);
    done |= row.free && !search.proposals.empty();
  }
  if (search.proposals.empty()) {
    const Rejected &last = search.refused.back();
    if (options.force && *options.force != Strategy::SharedScalar)
      return Status(StatusCode::Unsupported, last.strategy + " does not serve this conversion: " + last.reason,
                    "do not force a strategy");
    return Status::invalid(format("L19: the scratch limit of %llu bytes is below one element of %u bytes",
                                  static_cast<unsigned long long>(options.scratchBytes), problem.storageBytes),
                           format("allow at least %u bytes of scratch", problem.storageBytes));
  }
  const Proposal *best = &search.proposals.front();
  for (const Proposal &p : search.proposals) // in order of preference: ties stay with the earlier one
    if (p.cost < best->cost)
      best = &p;
  ConversionPlan plan = realise(search, *best);
  plan.rejected = std::move(search.refused);
  for (const Proposal &p : search.proposals)
    if (&p != best)
      plan.rejected.push_back({scopedName(p.strategy, p.scope), format("cost %.1f against %.1f", p.cost, best->cost)});
  return plan;
}

Result<std::vector<ConversionPlan>> planEveryConversion(const LinearLayout &source, const LinearLayout &destination,
                                                        unsigned elementBits, const Target &target,
                                                        std::uint64_t scratchBytes, unsigned repetitions) {
  KILN_ASSIGN(ConversionProblem problem,
              ConversionProblem::create(source, destination, elementBits, target, repetitions));
  Search search(problem, scratchBytes, true);
  for (const StrategyRow &row : strategies)
    row.propose(search);
  std::vector<ConversionPlan> plans;
  for (const Proposal &p : search.proposals)
    plans.push_back(realise(search, p));
  return plans;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string_view className(ConversionClass c) {
  constexpr std::string_view names[] = {"none", "register", "thread", "lane", "warp", "block"};
  return names[static_cast<unsigned>(c)];
}

std::string_view strategyName(Strategy s) {
  for (const StrategyRow &row : strategies)
    if (row.strategy == s)
      return row.name;
  return "";
}

std::string_view scopeName(Scope s) {
  constexpr std::string_view names[] = {"warp", "cta", "cluster"};
  return names[static_cast<unsigned>(s)];
}

std::string_view barrierName(Barrier b) {
  constexpr std::string_view names[] = {"none", "warp", "cta", "cluster"};
  return names[static_cast<unsigned>(b)];
}

std::string_view accessFormName(AccessForm f) {
  constexpr std::string_view names[] = {"st", "ld", "stmatrix", "stmatrix.trans", "ldmatrix", "ldmatrix.trans"};
  return names[static_cast<unsigned>(f)];
}

} // namespace kiln::layout
