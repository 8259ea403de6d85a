#include "compiler/layout/ShuffleRounds.h"

#include "compiler/layout/CostModel.h"
#include "compiler/layout/Subspace.h"

#include <algorithm>
#include <tuple>

namespace kiln::layout {

//===----------------------------------------------------------------------===//
// The pull map: which copy
//===----------------------------------------------------------------------===//

LanePull::LanePull(const ConversionProblem &p) {
  const LinearLayout &src = *p.source, &dst = *p.destination;
  unsigned registers = src.bits(InDim::Register);
  Span thread(src.columns(InDim::Register)), warp(src.innerColumns(2));
  // The nearest copy first: a register of the own lane, else anything in the warp.  Level <= 2 makes this total.
  auto lift = [&](BitVector want) {
    if (auto x = thread.solve(want))
      return *x;
    return warp.reduce(want).second;
  };

  Span keptSpan;
  Columns number; // destination register bit -> its number among the kept ones
  for (BitVector c : dst.columns(InDim::Register)) {
    number.push_back(kept.size());
    if (keptSpan.add(c))
      kept.push_back(number.size() - 1);
  }
  for (BitVector c : dst.columns(InDim::Register)) {
    BitVector made = 0;
    for (unsigned i : bitsOf(keptSpan.reduce(c).second))
      made |= unitVector(static_cast<unsigned>(number[i]));
    expanded.push_back(made);
  }
  auto split = [&](BitVector x, Columns &regs, Columns &lanes) {
    regs.push_back(x & lowMask(registers));
    lanes.push_back(x >> registers);
  };
  for (BitVector i : kept)
    split(lift(dst.column(InDim::Register, static_cast<unsigned>(i))), A, C);
  for (unsigned j = 0; j < laneBits; ++j) {
    BitVector want = dst.column(InDim::Lane, j);
    if (auto x = thread.solve(want ^ src.column(InDim::Lane, j)))
      split(*x | unitVector(registers + j), B, D);
    else
      split(lift(want), B, D);
  }
  for (InDim d : {InDim::Warp, InDim::Block})
    for (unsigned i = 0; i < dst.bits(d); ++i)
      split(lift(dst.column(d, i) ^ src.column(d, i)), R, L);
}

//===----------------------------------------------------------------------===//
// Words and networks
//===----------------------------------------------------------------------===//

namespace {

/// Splits a register index into (slot inside a 32-bit word, word) along the pack directions.
class Frame {
public:
  Frame(std::span<const BitVector> packDirections, unsigned registerBits) : slotBits(packDirections.size()) {
    directions.append(packDirections);
    for (BitVector u : packDirections)
      span.add(u);
    // Only independent vectors are numbered, so that solve() gives (slot | word << slotBits).
    Span test = span;
    for (unsigned i = 0; i < registerBits; ++i)
      if (test.add(unitVector(i))) {
        directions.push_back(unitVector(i));
        span.add(unitVector(i));
      }
  }
  std::span<const BitVector> slots() const { return {directions.data(), slotBits}; }
  std::span<const BitVector> words() const { return {directions.data() + slotBits, directions.size() - slotBits}; }
  unsigned wordBits() const { return directions.size() - static_cast<unsigned>(slotBits); }
  BitVector slot(BitVector r) const { return span.reduce(r).second & lowMask(static_cast<unsigned>(slotBits)); }
  BitVector word(BitVector r) const { return span.reduce(r).second >> slotBits; }

private:
  std::size_t slotBits;
  Columns directions;
  Span span;
};

/// sum over i of f_i * parity(mask_i & sigma): one conditional swap a term.
struct Factors {
  Columns f, mask;
  explicit Factors(std::span<const BitVector> columns) {
    f = basis(columns);
    mask.resize(f.size(), 0);
    Span index(f);
    for (unsigned j = 0; j < columns.size(); ++j)
      for (unsigned i : bitsOf(index.reduce(columns[j]).second))
        mask[i] |= unitVector(j);
  }
};

/// Walks a network from its outputs to its inputs; `needed` grows to the words that the first term reads.  The words
/// needed are always a subspace, so they are counted, not listed.  Calls visit(term, needed) for each term.
template <typename Visit>
unsigned walkNetwork(const Factors &factors, const Frame &frame, Subspace &needed, Visit visit) {
  unsigned count = 0;
  for (unsigned i = factors.f.size(); i-- > 0;) {
    visit(i, needed);
    count += 1u << needed.dim();
    needed.add(frame.word(factors.f[i]));
  }
  return count;
}

std::vector<SwapTerm> makeTerms(const Factors &factors, const Frame &frame, Subspace needed) {
  std::vector<SwapTerm> terms(factors.f.size());
  walkNetwork(factors, frame, needed, [&](unsigned i, const Subspace &words) {
    terms[i] = {static_cast<Mask>(frame.slot(factors.f[i])), static_cast<Mask>(frame.word(factors.f[i])),
                static_cast<Mask>(factors.mask[i]), words.elements()};
  });
  return terms;
}

std::vector<Mask> toMasks(std::span<const BitVector> columns) {
  std::vector<Mask> out(columns.size());
  for (unsigned i = 0; i < columns.size(); ++i)
    out[i] = static_cast<Mask>(columns[i]);
  return out;
}

/// Everything that follows from a schedule.
struct Derived {
  Columns D2, F, constants, lanes; // constants, lanes: round word bit -> source register, lane xor
  Frame destination, source;
  Factors place, pick;
  Subspace outputs, rounds, sourceWords;
  bool identity = true;

  Derived(const LanePull &pull, const ShuffleSchedule &s, std::span<const BitVector> pack, unsigned sourceRegisters)
      : D2(shear(pull.D, s.C, s.S)), F(sender(pull, s)), destination(pack, s.A.size()),
        source(compose(s.A, pack), sourceRegisters), place(s.S), pick(F) {
    for (unsigned j = 0; j < laneBits; ++j)
      identity &= D2[j] == unitVector(j);
    for (BitVector l : pull.L)
      identity &= l == 0;
    for (BitVector u : destination.words()) {
      BitVector lane = apply(s.C, u);
      lanes.push_back(lane);
      constants.push_back(apply(s.A, u) ^ layout::apply(std::span(F.data(), laneBits), lane));
    }
    for (unsigned i = 0; i < pull.A.size() - pack.size(); ++i) // extra round bits are the last word bits
      outputs.add(unitVector(i));
    rounds = outputs;
    walkNetwork(place, destination, rounds, [](unsigned, const Subspace &) {});
    for (BitVector w : rounds.vectors())
      sourceWords.add(source.word(apply(constants, w)));
  }

  static Columns shear(const Columns &base, const Columns &columns, const BitVector *S) {
    Columns out;
    for (unsigned j = 0; j < laneBits; ++j)
      out.push_back(base[j] ^ apply(columns, S[j]));
    return out;
  }

  /// F over sigma: the renaming that lane l applies before it sends.  Y solves Y D2 = B2, zero on lanes nobody reads.
  static Columns sender(const LanePull &pull, const ShuffleSchedule &s) {
    Columns b2 = shear(pull.B, s.A, s.S);
    Span generators(shear(pull.D, s.C, s.S));
    for (unsigned j = 0; j < laneBits; ++j) {
      generators.add(unitVector(j));
      b2.push_back(0);
    }
    Columns Y;
    for (unsigned j = 0; j < laneBits; ++j)
      Y.push_back(apply(b2, generators.reduce(unitVector(j)).second));
    Columns F = Y;
    for (unsigned i = 0; i < pull.L.size(); ++i)
      F.push_back(apply(Y, pull.L[i]) ^ pull.R[i]);
    return F;
  }
};

/// How many elements share a 32-bit word, log2.
unsigned wantedPack(unsigned storageBytes) {
  return storageBytes == 1 ? 2 : storageBytes == 2 ? 1 : 0;
}

} // namespace

std::uint64_t wordPermutes(std::span<const BitVector> directions, std::uint64_t registers, unsigned storageBytes) {
  unsigned want = wantedPack(storageBytes);
  if (want == 0 || registers < 1u << want)
    return 0;
  std::size_t have = std::min<std::size_t>(directions.size(), want);
  bool natural = have == want;
  for (unsigned i = 0; i < have; ++i)
    natural &= directions[i] == unitVector(i);
  return natural ? 0 : registers >> have;
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

ShuffleRounds::ShuffleRounds(const ConversionProblem &p) : problem(p), pull(p) {
  kernelC = kernel(pull.C);
  kernelImage = compose(pull.A, kernelC);
  Subspace span;
  Columns candidates;
  for (unsigned i = 0; i < pull.C.size(); ++i)
    if (pull.C[i] == 0)
      candidates.push_back(unitVector(i));
  candidates.append(kernelC);
  for (BitVector u : candidates)
    if (pack.size() < wantedPack(p.storageBytes) && span.add(u))
      pack.push_back(u);
  generate();
  auto key = [](const ShuffleSchedule &s) { return std::tuple(s.cost, s.shuffles, s.selects, s.rounds); };
  for (unsigned i = 0; i < schedules.size(); ++i) {
    evaluate(schedules[i]);
    if (key(schedules[i]) < key(schedules[bestIndex]))
      bestIndex = i;
  }
}

/// Completes S so that ker(D + C S) vanishes under B + A S.  `cancel`: 0 as it is; 1 the receiver picks instead of the
/// sender where S is already non-zero; 2 wherever it can; 3 nobody picks before sending, more rounds instead.
void ShuffleRounds::offer(ShuffleSchedule s, unsigned cancel) {
  unsigned b = pull.A.size();
  s.A = pull.A;
  s.C = pull.C;
  Span image(kernelImage);
  if (cancel == 1 || cancel == 2)
    for (unsigned j = 0; j < laneBits; ++j) {
      BitVector bj = pull.B[j] ^ apply(s.A, s.S[j]);
      if (bj && (cancel == 2 || s.S[j]))
        if (auto m = image.solve(bj))
          s.S[j] ^= apply(kernelC, *m);
    }
  if (cancel == 3) {
    Span sent;
    for (unsigned j = 0; j < laneBits; ++j) {
      BitVector bj = pull.B[j] ^ apply(s.A, s.S[j]);
      if (!bj)
        continue;
      if (!sent.contains(bj)) {
        sent.add(bj);
        s.A.push_back(bj);
        s.C.push_back(0);
      }
      s.S[j] ^= sent.reduce(bj).second << b;
    }
  }
  Columns d2 = Derived::shear(pull.D, s.C, s.S);
  for (BitVector k : kernel(d2)) {
    BitVector bk = apply(pull.B, k) ^ apply(s.A, apply(s.S, k));
    if (!bk)
      continue;
    unsigned free = highestBit(k); // kernel vectors have distinct highest bits
    if (auto m = image.solve(bk)) {
      s.S[free] ^= apply(kernelC, *m);
      continue;
    }
    Span extra(std::span(s.A.data() + b, s.A.size() - b));
    auto m = extra.solve(bk);
    if (!m) {
      s.A.push_back(bk);
      s.C.push_back(0);
      m = unitVector(s.A.size() - 1 - b);
    }
    s.S[free] ^= *m << b;
  }
  for (const ShuffleSchedule &old : schedules)
    if (old.A == s.A && std::equal(old.S, old.S + laneBits, s.S))
      return;
  schedules.push_back(s);
}

void ShuffleRounds::generate() {
  schedules.reserve(12);
  auto offerAll = [&](const ShuffleSchedule &start) {
    for (unsigned cancel = 0; cancel < 4; ++cancel)
      offer(start, cancel);
  };
  // D + C S = identity: butterflies, and some rounds may stay in their lane.
  ShuffleSchedule identity;
  bool exists = true;
  Span spanC(pull.C);
  for (unsigned j = 0; j < laneBits && exists; ++j) {
    auto x = spanC.solve(pull.D[j] ^ unitVector(j));
    exists = x.has_value();
    identity.S[j] = x.value_or(0);
  }
  if (exists)
    offerAll(identity);

  // Least rank: only lanes that D merges although they need different registers get a round bit.
  Columns merged = kernel(pull.D), both;
  for (unsigned j = 0; j < laneBits; ++j)
    both.push_back(pull.D[j] | pull.B[j] << laneBits);
  Columns content = kernel(both); // merged, and needing the same register
  Span mod;
  for (BitVector v : content) {
    BitVector in = 0;
    for (unsigned i = 0; i < merged.size(); ++i)
      in |= (v >> highestBit(merged[i]) & 1) << i;
    mod.add(in);
  }
  Columns ask; // numbers of the merged vectors that get one
  for (unsigned i = 0; i < merged.size(); ++i)
    if (mod.add(unitVector(i)))
      ask.push_back(i);
  Columns generators = content;
  for (BitVector i : ask)
    generators.push_back(merged[i]);
  Span solver(generators);
  for (bool wanted : {true, false}) {
    ShuffleSchedule start;
    BitVector given[laneBits] = {}; // by position in `ask`
    Span have(pull.D);
    for (unsigned a = 0; wanted && a < ask.size(); ++a)
      for (unsigned j = 0; j < pull.C.size(); ++j)
        if (have.add(pull.C[j])) {
          given[a] = unitVector(j);
          break;
        }
    for (BitVector k : merged)
      for (unsigned a : bitsOf(solver.reduce(k).second >> content.size()))
        start.S[highestBit(k)] ^= given[a];
    offerAll(start);
  }
}

void ShuffleRounds::evaluate(ShuffleSchedule &s) const {
  const ConversionProblem &p = problem;
  Derived d(pull, s, pack, p.source->bits(InDim::Register));
  unsigned halves = p.storageBytes == 8 ? 2 : 1; // a 64-bit element is two words
  auto ignore = [](unsigned, const Subspace &) {};
  Subspace outputs = d.outputs, words = d.sourceWords;
  unsigned selects =
      walkNetwork(d.place, d.destination, outputs, ignore) + walkNetwork(d.pick, d.source, words, ignore);
  s.rounds = 1u << d.rounds.dim();
  unsigned moves = s.rounds;
  if (d.identity) {
    Subspace moved;
    for (BitVector w : d.rounds.vectors())
      moved.add(apply(d.lanes, w));
    moves -= s.rounds >> moved.dim(); // rounds with lane xor 0
  }
  s.shuffles = moves * halves;
  s.selects = selects * halves;
  Columns full; // pack directions as destination registers
  for (BitVector u : pack) {
    BitVector direction = 0;
    for (unsigned i : bitsOf(u))
      direction |= unitVector(static_cast<unsigned>(pull.kept[i]));
    full.push_back(direction);
  }
  std::uint64_t registers = std::uint64_t(1) << pull.A.size();
  s.permutes =
      wordPermutes(full, registers, p.storageBytes) + wordPermutes(compose(pull.A, pack), registers, p.storageBytes);
  s.cost = static_cast<double>(p.repetitions) * p.warps *
               (s.shuffles * costs::shuffle + static_cast<double>(s.selects + s.permutes) * costs::alu) +
           (d.place.f.size() + d.pick.f.size()) * costs::selectLatency + (s.shuffles ? costs::shuffleLatency : 0);
}

void ShuffleRounds::emit(const ShuffleSchedule &s, ConversionPlan &plan) const {
  Derived d(pull, s, pack, problem.source->bits(InDim::Register));
  ShufflePlan &out = plan.shuffle;
  out.slotBits = pack.size();
  out.sourceSlot = toMasks(d.source.slots());
  out.sourceWord = toMasks(d.source.words());
  out.pick = makeTerms(d.pick, d.source, d.sourceWords);
  out.place = makeTerms(d.place, d.destination, d.outputs);
  out.roundBits = d.destination.wordBits();
  out.extraRoundBits = s.A.size() - pull.A.size();
  std::vector<Mask> indices = d.rounds.elements();
  out.rounds.reserve(indices.size());
  for (Mask w : indices) {
    BitVector constant = apply(d.constants, w), lane = apply(d.lanes, w);
    out.rounds.push_back({w, static_cast<Mask>(d.source.word(constant)), static_cast<Mask>(d.source.slot(constant)),
                          static_cast<Mask>(lane), !(d.identity && lane == 0)});
  }
  for (BitVector e : pull.expanded) {
    out.outputSlot.push_back(static_cast<Mask>(d.destination.slot(e)));
    out.outputWord.push_back(static_cast<Mask>(d.destination.word(e)));
  }
  out.laneColumns = toMasks(d.D2);
  out.outerColumns = toMasks(pull.L);
  out.butterfly = d.identity;
  for (unsigned j = 0; j < laneBits; ++j)
    out.lanesTouched |= static_cast<Mask>(d.D2[j] ^ unitVector(j));
  for (BitVector c : s.C)
    out.lanesTouched |= static_cast<Mask>(c);
  for (BitVector l : pull.L)
    out.lanesTouched |= static_cast<Mask>(l);
  Columns all = pull.C;
  all.append(pull.D);
  out.mixedSwaps = rank(all) - rank(pull.D);
  plan.cost = s.cost;
  plan.shuffles = s.shuffles;
  plan.selects = s.selects;
  plan.permutes = s.permutes;
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

bool isQuadFragment(const LinearLayout &layout) {
  if (layout.bits(InDim::Lane) != laneBits || !layout.isPermutation())
    return false;
  auto unitOrZero = [&](unsigned d, unsigned bit) { return bit < layout.log2Shape(d) ? layout.unit(d, bit) : 0; };
  BitVector registers = 0;
  for (BitVector c : layout.columns(InDim::Register))
    registers |= c;
  auto lanes = layout.columns(InDim::Lane);
  for (unsigned y = 0; y < layout.dims(); ++y) {
    if (lanes[2] != unitOrZero(y, 0) || lanes[3] != unitOrZero(y, 1) || lanes[4] != unitOrZero(y, 2))
      continue;
    for (unsigned x = 0; x < layout.dims(); ++x) {
      BitVector below = 0; // bits of x under q
      for (unsigned q = 0; x != y && q < 5; below |= unitOrZero(x, q++))
        if (lanes[0] == unitOrZero(x, q) && lanes[1] == unitOrZero(x, q + 1) && !(below & ~registers))
          return true;
    }
  }
  return false;
}

} // namespace kiln::layout
