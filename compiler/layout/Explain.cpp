#include "compiler/layout/Explain.h"

#include "support/Text.h"

#include <bit>

namespace kiln::layout {

namespace {

unsigned long long wide(std::uint64_t x) {
  return x;
}
std::string text(std::string_view s) {
  return std::string(s);
}

const char *plural(std::uint64_t n) {
  return n == 1 ? "" : "s";
}

/// What the class means, in words.
std::string_view movement(ConversionClass c) {
  switch (c) {
  case ConversionClass::None:
    return "nothing moves";
  case ConversionClass::Register:
    return "registers are renamed, the same way in every lane and warp";
  case ConversionClass::Thread:
    return "every thread holds its values; which register depends on the lane or warp";
  case ConversionClass::Lane:
    return "values move between the lanes of a warp";
  case ConversionClass::Warp:
    return "values move between the warps of a block";
  case ConversionClass::Block:
    return "values move between the blocks of a cluster";
  }
  return "";
}

std::string accessText(const Access &a) {
  std::string out = format("%s, %u bytes a lane, %llu instruction%s a warp, %u wavefront%s each",
                           text(accessFormName(a.form)).c_str(), a.bytes, wide(a.instructions), plural(a.instructions),
                           a.wavefronts, plural(a.wavefronts));
  out += a.wavefronts == a.ideal ? " (no bank conflicts)" : format(" (%u without bank conflicts)", a.ideal);
  if (a.lanePredicate || a.warpPredicate)
    out += "; owners only:";
  if (a.lanePredicate)
    out += format(" lane & 0x%x == 0", a.lanePredicate);
  if (a.lanePredicate && a.warpPredicate)
    out += ",";
  if (a.warpPredicate)
    out += format(" warp & 0x%x == 0", a.warpPredicate);
  return out;
}

std::string shuffleText(const ConversionPlan &p) {
  const ShufflePlan &s = p.shuffle;
  std::string out;
  if (p.storageBytes < 4)
    out += format("  words: %u element%s of %u byte%s a 32-bit word\n", 1u << s.slotBits, plural(1u << s.slotBits),
                  p.storageBytes, plural(p.storageBytes));
  unsigned moves = 0;
  for (const ShuffleRound &r : s.rounds)
    moves += r.moves;
  out += format("  pick: %zu swap term%s; shuffle: %zu round%s, %u of them instructions", s.pick.size(),
                plural(s.pick.size()), s.rounds.size(), plural(s.rounds.size()), moves);
  if (moves)
    out += format(" (%s, %s)", s.butterfly ? "shfl.bfly" : "shfl.idx",
                  s.lanesTouched & ~Mask(3) ? "across the warp" : "inside quads");
  out += format("; place: %zu swap term%s\n", s.place.size(), plural(s.place.size()));
  out += format("  a warp: %u shuffle%s, %u select%s, %llu byte permute%s; no shared memory, no barrier\n", p.shuffles,
                plural(p.shuffles), p.selects, plural(p.selects), wide(p.permutes), plural(p.permutes));
  return out;
}

std::string sharedText(const ConversionPlan &p) {
  const SharedPlan &s = p.shared;
  std::string out =
      format("  region: %llu bytes, one a %s", wide(s.regionBytes), s.scope == Scope::Warp ? "warp" : "block");
  if (s.scope == Scope::Cluster)
    out += ", read by all blocks of the cluster";
  out += "; offset bits:";
  for (Mask m : s.offsetBasis)
    out += format(" %u", m);
  out += "\n  store: " + accessText(s.store) + "\n  load: " + accessText(s.load) + "\n";
  out += format("  passes: %u%s; barriers: %u (%s)\n", p.passes, s.predicatedPasses ? ", each access predicated" : "",
                p.barriers, text(barrierName(p.barrier)).c_str());
  out += format("  scratch: %llu bytes; wavefronts of the block: %llu, %llu of them bank conflicts\n",
                wide(p.scratchBytes), wide(p.wavefronts), wide(p.conflicts));
  return out;
}

std::string rejectedText(const std::vector<Rejected> &rejected) {
  std::string out;
  for (const Rejected &r : rejected)
    out += "  not " + r.strategy + ": " + r.reason + "\n";
  return out;
}

std::string bodyText(const ConversionPlan &p) {
  switch (p.strategy) {
  case Strategy::None:
    return {};
  case Strategy::RegisterPermute: {
    std::string out = "  register bits:";
    for (unsigned i = 0; i < p.registerSource.size(); ++i)
      out += format(" %u<-0x%x", i, p.registerSource[i]);
    return out + "\n";
  }
  case Strategy::MmaToMma:
  case Strategy::WarpShuffle:
    return shuffleText(p);
  case Strategy::Shared:
  case Strategy::SharedScalar:
    return sharedText(p);
  }
  return {};
}

} // namespace

std::string explain(const ConversionPlan &p) {
  std::string out =
      format("%s: %s (class %s); %u bit%s an element, target %s, %u warp%s", text(strategyName(p.strategy)).c_str(),
             text(movement(p.cls)).c_str(), text(className(p.cls)).c_str(), p.elementBits, plural(p.elementBits),
             p.target.c_str(), 1u << p.warpBits, plural(1u << p.warpBits));
  if (p.blockBits)
    out += format(", %u blocks", 1u << p.blockBits);
  out += format("\n  cost: %.1f cycles of a block (for ranking)\n", p.cost);
  return out + bodyText(p) + rejectedText(p.rejected);
}

std::string explain(const TileConversionPlan &p) {
  std::string out = explain(p.core);
  if (p.core.repetitions == 1)
    return out;
  out += format("  %u repetitions of the core; the cost is of all, the counts above are of one", p.core.repetitions);
  if (p.core.passes)
    out += format(
        "; %u a round, %u round%s, %llu bytes of scratch, %u barriers, %llu wavefronts, %llu of them bank conflicts",
        p.core.perRound, p.core.rounds(), plural(p.core.rounds()), wide(p.scratchBytes), p.barriers, wide(p.wavefronts),
        wide(p.conflicts));
  return out + "\n";
}

std::string explain(const LocalAccessPlan &p) {
  return format("%s of a given buffer, %u bit%s an element, target %s\n  ", p.store ? "store" : "load", p.elementBits,
                plural(p.elementBits), p.target.c_str()) +
         accessText(p.access) +
         format("\n  cost: %.1f a warp; wavefronts of the block: %llu, %llu of them bank conflicts\n", p.cost,
                wide(p.wavefronts), wide(p.conflicts)) +
         rejectedText(p.rejected);
}

std::string explain(const ReductionPlan &p) {
  std::string out = format("reduction along dimension %u; the order of combination:\n", p.axis);
  for (Mask q : p.registerSteps)
    out += format("  register r with r ^ 0x%x\n", q);
  for (const LaneStep &s : p.laneSteps) {
    out += format("  lane l with l ^ 0x%x", s.laneXor);
    out += s.registerXor ? format(" (register r ^ 0x%x)\n", s.registerXor) : std::string("\n");
  }
  if (p.laneSteps.size())
    out += format("  %u shuffle%s a warp, %u partial result%s a thread\n", p.shuffles, plural(p.shuffles),
                  1u << std::popcount(p.heldRegisters), plural(1u << std::popcount(p.heldRegisters)));
  if (!p.exchange)
    return out;
  out += format("  then %u partial results of different warps or blocks, neighbours first, after this conversion:\n",
                1u << p.exchange->numberBits);
  return out + explain(p.exchange->plan);
}

} // namespace kiln::layout
