#include "tests/layout/PlanMutations.h"

#include <algorithm>

namespace kiln::test {

using namespace kiln::layout;

namespace {

/// Collects mutations.  A field is named by a function from the plan to a reference, so that a mutation can be applied
/// to any copy of the plan.
class Collector {
public:
  explicit Collector(const ConversionPlan &plan) : plan(plan) {}
  std::vector<Mutation> out;

  template <typename Field> void number(const std::string &name, Field field, std::vector<std::int64_t> changes) {
    for (std::int64_t change : changes)
      if (change != 0)
        out.push_back({name, true, [=](ConversionPlan &p) {
                         auto &value = field(p);
                         value = static_cast<std::remove_reference_t<decltype(value)>>(
                             static_cast<std::int64_t>(value) + change);
                       }});
  }
  /// Every single bit below `bits` of one mask.
  template <typename Field> void mask(const std::string &name, Field field, unsigned bits, bool declared = false) {
    for (unsigned b = 0; b < bits; ++b)
      out.push_back({name, declared, [=](ConversionPlan &p) { field(p) ^= Mask(1) << b; }});
  }
  /// Every single bit of every mask of a list.
  template <typename List> void bitsOfList(const std::string &name, List list, unsigned bits) {
    std::size_t size = list(const_cast<ConversionPlan &>(plan)).size();
    for (std::size_t i = 0; i < size; ++i)
      mask(name, [=](ConversionPlan &p) -> Mask & { return list(p)[i]; }, bits);
  }
  template <typename List> void drop(const std::string &name, List list) {
    std::size_t size = list(const_cast<ConversionPlan &>(plan)).size();
    for (std::size_t i = 0; i < size; ++i)
      out.push_back({name + ": drop", false, [=](ConversionPlan &p) {
                       auto &l = list(p);
                       l.erase(l.begin() + static_cast<std::ptrdiff_t>(i));
                     }});
  }
  /// Neighbours change places, unless they are equal.
  template <typename List> void exchange(const std::string &name, List list) {
    auto &now = list(const_cast<ConversionPlan &>(plan));
    for (std::size_t i = 0; i + 1 < now.size(); ++i)
      if (!(now[i] == now[i + 1]))
        out.push_back({name + ": exchange", false, [=](ConversionPlan &p) { std::swap(list(p)[i], list(p)[i + 1]); }});
  }
  template <typename List> void dropAndExchange(const std::string &name, List list) {
    drop(name, list);
    exchange(name, list);
  }

  void shuffle();
  void terms(const std::string &name, std::vector<SwapTerm> ShufflePlan::*list, unsigned wordBits);
  void access(const std::string &name, Access SharedPlan::*side, unsigned registerBits);
  void shared();

  const ConversionPlan &plan;
};

void Collector::terms(const std::string &name, std::vector<SwapTerm> ShufflePlan::*list, unsigned wordBits) {
  auto of = [=](ConversionPlan &p) -> std::vector<SwapTerm> & { return p.shuffle.*list; };
  unsigned sigmaBits = plan.laneBits + plan.warpBits + plan.blockBits;
  drop(name + " term", of);
  for (std::size_t i = 0; i + 1 < (plan.shuffle.*list).size(); ++i)
    out.push_back({name + " term: exchange", false, [=](ConversionPlan &p) { std::swap(of(p)[i], of(p)[i + 1]); }});
  for (std::size_t i = 0; i < (plan.shuffle.*list).size(); ++i) {
    mask(name + ".condition", [=](ConversionPlan &p) -> Mask & { return of(p)[i].condition; }, sigmaBits);
    mask(name + ".wordXor", [=](ConversionPlan &p) -> Mask & { return of(p)[i].wordXor; }, wordBits);
    mask(name + ".slotXor", [=](ConversionPlan &p) -> Mask & { return of(p)[i].slotXor; }, plan.shuffle.slotBits);
    auto words = [=](ConversionPlan &p) -> std::vector<Mask> & { return of(p)[i].words; };
    for (std::size_t w = 0; w < (plan.shuffle.*list)[i].words.size(); ++w)
      out.push_back({name + ".words: drop", false,
                     [=](ConversionPlan &p) { words(p).erase(words(p).begin() + static_cast<std::ptrdiff_t>(w)); }});
    bitsOfList(name + ".words", words, wordBits);
  }
}

void Collector::shuffle() {
  const ShufflePlan &s = plan.shuffle;
  const unsigned wordBits = static_cast<unsigned>(s.sourceWord.size());
  terms("pick", &ShufflePlan::pick, wordBits);
  terms("place", &ShufflePlan::place, s.roundBits);
  auto rounds = [](ConversionPlan &p) -> std::vector<ShuffleRound> & { return p.shuffle.rounds; };
  for (std::size_t i = 0; i < s.rounds.size(); ++i) {
    out.push_back({"round: drop", false,
                   [=](ConversionPlan &p) { rounds(p).erase(rounds(p).begin() + static_cast<std::ptrdiff_t>(i)); }});
    out.push_back({"round.moves", false, [=](ConversionPlan &p) { rounds(p)[i].moves ^= true; }});
    mask("round.laneXor", [=](ConversionPlan &p) -> Mask & { return rounds(p)[i].laneXor; }, plan.laneBits);
    mask("round.index", [=](ConversionPlan &p) -> Mask & { return rounds(p)[i].index; }, s.roundBits);
    mask("round.sourceWord", [=](ConversionPlan &p) -> Mask & { return rounds(p)[i].sourceWord; }, wordBits);
    mask("round.sourceSlot", [=](ConversionPlan &p) -> Mask & { return rounds(p)[i].sourceSlot; }, s.slotBits);
  }
  bitsOfList("laneColumns", [](ConversionPlan &p) -> auto & { return p.shuffle.laneColumns; }, plan.laneBits);
  bitsOfList("outerColumns", [](ConversionPlan &p) -> auto & { return p.shuffle.outerColumns; }, plan.laneBits);
  bitsOfList("sourceWord", [](ConversionPlan &p) -> auto & { return p.shuffle.sourceWord; }, plan.sourceRegisterBits);
  bitsOfList("sourceSlot", [](ConversionPlan &p) -> auto & { return p.shuffle.sourceSlot; }, plan.sourceRegisterBits);
  bitsOfList("outputWord", [](ConversionPlan &p) -> auto & { return p.shuffle.outputWord; }, s.roundBits);
  bitsOfList("outputSlot", [](ConversionPlan &p) -> auto & { return p.shuffle.outputSlot; }, s.slotBits);
  out.push_back({"butterfly", true, [](ConversionPlan &p) { p.shuffle.butterfly ^= true; }});
  number("slotBits", [](ConversionPlan &p) -> auto & { return p.shuffle.slotBits; }, {1, -1});
  number("roundBits", [](ConversionPlan &p) -> auto & { return p.shuffle.roundBits; }, {1, -1});
  number("extraRoundBits", [](ConversionPlan &p) -> auto & { return p.shuffle.extraRoundBits; }, {1, -1});
  mask("lanesTouched", [](ConversionPlan &p) -> Mask & { return p.shuffle.lanesTouched; }, plan.laneBits, true);
}

void Collector::access(const std::string &name, Access SharedPlan::*side, unsigned registerBits) {
  const Access &a = plan.shared.*side;
  auto of = [=](ConversionPlan &p) -> Access & { return p.shared.*side; };
  const unsigned bits = plan.shared.regionBits;
  for (unsigned f = 0; f < 6; ++f)
    if (static_cast<AccessForm>(f) != a.form)
      out.push_back({name + ".form", true, [=](ConversionPlan &p) { of(p).form = static_cast<AccessForm>(f); }});
  number(name + ".bytes", [=](ConversionPlan &p) -> auto & { return of(p).bytes; },
         {std::int64_t(a.bytes), -std::int64_t(a.bytes / 2), 1});
  auto list = [&](const char *field, std::vector<Mask> Access::*member, unsigned width) {
    bitsOfList(name + field, [=](ConversionPlan &p) -> auto & { return of(p).*member; }, width);
  };
  auto directions = [&](const char *field, std::vector<Mask> Access::*member, bool ordered) {
    list(field, member, registerBits);
    drop(name + field, [=](ConversionPlan &p) -> auto & { return of(p).*member; });
    if (ordered)
      exchange(name + field, [=](ConversionPlan &p) -> auto & { return of(p).*member; });
  };
  directions(".vector", &Access::vector, true);
  directions(".matrices", &Access::matrices, true);
  directions(".instruction", &Access::instruction, false); // their order only numbers independent instructions
  mask(name + ".halves", [=](ConversionPlan &p) -> Mask & { return of(p).halves; }, registerBits);
  list(".lane", &Access::lane, bits);
  list(".warp", &Access::warp, bits);
  list(".block", &Access::block, bits);
  list(".registerOffset", &Access::registerOffset, bits);
  list(".rowOffset", &Access::rowOffset, bits);
  dropAndExchange(name + ".rowOffset", [=](ConversionPlan &p) -> auto & { return of(p).rowOffset; });
  mask(name + ".lanePredicate", [=](ConversionPlan &p) -> Mask & { return of(p).lanePredicate; }, plan.laneBits);
  mask(name + ".warpPredicate", [=](ConversionPlan &p) -> Mask & { return of(p).warpPredicate; }, plan.warpBits);
  mask(name + ".addressSpan", [=](ConversionPlan &p) -> Mask & { return of(p).addressSpan; }, bits);
  number(name + ".constants", [=](ConversionPlan &p) -> auto & { return of(p).constants; }, {1, -1});
  number(name + ".instructions", [=](ConversionPlan &p) -> auto & { return of(p).instructions; }, {1, -1});
  number(name + ".wavefronts", [=](ConversionPlan &p) -> auto & { return of(p).wavefronts; }, {1, -1});
  number(name + ".ideal", [=](ConversionPlan &p) -> auto & { return of(p).ideal; }, {1, -1});
}

void Collector::shared() {
  const SharedPlan &s = plan.shared;
  access("store", &SharedPlan::store, plan.sourceRegisterBits);
  access("load", &SharedPlan::load, plan.destinationRegisterBits);
  for (unsigned scope = 0; scope < 3; ++scope)
    if (static_cast<Scope>(scope) != s.scope)
      out.push_back({"scope", true, [=](ConversionPlan &p) { p.shared.scope = static_cast<Scope>(scope); }});
  for (unsigned kind = 0; kind < 4; ++kind)
    if (static_cast<Barrier>(kind) != plan.barrier)
      out.push_back({"barrier", true, [=](ConversionPlan &p) { p.barrier = static_cast<Barrier>(kind); }});
  out.push_back({"predicatedPasses", true, [](ConversionPlan &p) { p.shared.predicatedPasses ^= true; }});
  number("regionBits", [](ConversionPlan &p) -> auto & { return p.shared.regionBits; }, {1, -1});
  number("passBits", [](ConversionPlan &p) -> auto & { return p.shared.passBits; }, {1, -1});
  number("regionBytes", [](ConversionPlan &p) -> auto & { return p.shared.regionBytes; },
         {16, -std::int64_t(s.regionBytes / 2)});
  number("regions", [](ConversionPlan &p) -> auto & { return p.shared.regions; }, {1, -1});
  for (unsigned d = 0; d < 4; ++d) {
    bitsOfList("source", [=](ConversionPlan &p) -> auto & { return p.shared.source[d]; }, s.regionBits);
    bitsOfList("destination", [=](ConversionPlan &p) -> auto & { return p.shared.destination[d]; }, s.regionBits);
    bitsOfList("remote", [=](ConversionPlan &p) -> auto & { return p.shared.remote[d]; }, plan.blockBits);
  }
  bitsOfList(
      "registerCopy", [](ConversionPlan &p) -> auto & { return p.shared.registerCopy; }, plan.destinationRegisterBits);
  bitsOfList("offsetBasis", [](ConversionPlan &p) -> auto & { return p.shared.offsetBasis; }, s.regionBits);
  bitsOfList("offsetRows", [](ConversionPlan &p) -> auto & { return p.shared.offsetRows; }, s.regionBits);
  dropAndExchange("offsetRows", [](ConversionPlan &p) -> auto & { return p.shared.offsetRows; });
  number("scratchBytes", [](ConversionPlan &p) -> auto & { return p.scratchBytes; },
         {-1, 16, -std::int64_t(plan.scratchBytes / 2), std::int64_t(plan.scratchBytes)});
  number("passes", [](ConversionPlan &p) -> auto & { return p.passes; }, {1, -1});
  number("barriers", [](ConversionPlan &p) -> auto & { return p.barriers; }, {1, -1});
  number("wavefronts", [](ConversionPlan &p) -> auto & { return p.wavefronts; }, {1, -1});
  number("conflicts", [](ConversionPlan &p) -> auto & { return p.conflicts; }, {1, -1});
}

} // namespace

std::vector<Mutation> allMutations(const ConversionPlan &plan) {
  Collector c(plan);
  switch (plan.strategy) {
  case Strategy::None:
  case Strategy::RegisterPermute:
    c.bitsOfList(
        "registerSource", [](ConversionPlan &p) -> auto & { return p.registerSource; }, plan.sourceRegisterBits);
    c.dropAndExchange("registerSource", [](ConversionPlan &p) -> auto & { return p.registerSource; });
    break;
  case Strategy::MmaToMma:
  case Strategy::WarpShuffle:
    c.shuffle();
    break;
  case Strategy::Shared:
  case Strategy::SharedScalar:
    c.shared();
    break;
  }
  c.number("shuffles", [](ConversionPlan &p) -> auto & { return p.shuffles; }, {1, -1});
  c.number("selects", [](ConversionPlan &p) -> auto & { return p.selects; }, {1, -1});
  c.number("permutes", [](ConversionPlan &p) -> auto & { return p.permutes; }, {1, -1});
  c.number("cost", [](ConversionPlan &p) -> auto & { return p.cost; }, {1, -1});
  return std::move(c.out);
}

} // namespace kiln::test
