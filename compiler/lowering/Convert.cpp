// Layout conversions without shared memory: renamed registers, and shuffles as the plan lists them (ConversionPlan.h).
#include "compiler/lowering/Emit.h"

#include "compiler/layout/Planner.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::applyColumns;
using layout::ConversionPlan;
using layout::Mask;
using layout::ShufflePlan;
using layout::SwapTerm;

/// Runs the shuffle plan of a core on one repetition's registers.
class ShuffleRun {
public:
  ShuffleRun(const LoweringContext &context, const Emit &e, const ConversionPlan &plan)
      : context(context), e(e), plan(plan), shuffle(plan.shuffle), slots(4 / std::min(4u, plan.storageBytes)),
        halves(plan.storageBytes == 8 ? 2 : 1) {}

  Scalars run(ValueRange source) {
    const Type type = source.front().getType();
    std::vector<Word> words = formWords(source);
    swaps(shuffle.pick, words);
    std::vector<Word> made(std::size_t(1) << shuffle.roundBits);
    for (const layout::ShuffleRound &round : shuffle.rounds)
      made[round.index] = exchange(words[round.sourceWord], round);
    swaps(shuffle.place, made);
    Scalars out;
    for (unsigned r = 0; r < 1u << plan.destinationRegisterBits; ++r)
      out.push_back(element(made[applyColumns(shuffle.outputWord, r)], applyColumns(shuffle.outputSlot, r), type));
    return out;
  }

private:
  /// 32 bits of each lane; a 64-bit element has two.
  struct Word {
    Value part[2];
  };

  std::vector<Word> formWords(ValueRange source) const {
    std::vector<Word> words(std::size_t(1) << shuffle.sourceWord.size());
    for (unsigned q = 0; q < words.size(); ++q) {
      Scalars list;
      for (unsigned s = 0; s < 1u << shuffle.slotBits; ++s)
        list.push_back(e.toBits(source[applyColumns(shuffle.sourceSlot, s) ^ applyColumns(shuffle.sourceWord, q)]));
      if (halves == 2) {
        words[q].part[0] = arith::TruncIOp::create(e.b, e.loc, e.i(32), list[0]);
        words[q].part[1] = arith::TruncIOp::create(e.b, e.loc, e.i(32), e.shr(list[0], 32));
      } else {
        words[q].part[0] = e.joinWord(list);
      }
    }
    return words;
  }

  Value element(const Word &word, unsigned slot, Type type) const {
    if (halves == 2)
      return e.fromBits(e.or_(e.widen(word.part[0]), e.shl(e.widen(word.part[1]), 32)), type);
    return e.fromBits(e.splitWord(word.part[0], slots)[slot], type);
  }

  /// Selector of the byte permutation that moves the element of slot s ^ slotXor to slot s.
  unsigned selector(Mask slotXor) const {
    unsigned out = 0;
    for (unsigned byte = 0; byte < 4; ++byte) {
      const unsigned slot = byte / plan.storageBytes, within = byte % plan.storageBytes;
      out |= ((slot ^ slotXor) * plan.storageBytes + within) << (4 * byte);
    }
    return out;
  }

  void swaps(const std::vector<SwapTerm> &terms, std::vector<Word> &words) const {
    constexpr unsigned keep = 0x3210;
    const unsigned laneMask = layout::warpSize - 1;
    for (const SwapTerm &term : terms) {
      std::vector<Word> next(words.size());
      const Value condition =
          term.condition ? context.parity(term.condition & laneMask, term.condition >> plan.laneBits) : Value();
      Value selectors; // both permutations are of one word: choose the selector
      for (Mask w : term.words) {
        const Word &own = words[w], &other = words[w ^ term.wordXor];
        for (unsigned h = 0; h < halves; ++h) {
          if (!condition) {
            next[w].part[h] = own.part[h];
          } else if (term.wordXor == 0) {
            if (!selectors)
              selectors = e.select(condition, e.i32(selector(term.slotXor)), e.i32(keep));
            next[w].part[h] = e.permuteBytes(own.part[h], selectors);
          } else {
            Value swapped = other.part[h];
            if (term.slotXor)
              swapped = e.permuteBytes(swapped, e.i32(selector(term.slotXor)));
            next[w].part[h] = e.select(condition, swapped, own.part[h]);
          }
        }
      }
      words.swap(next);
    }
  }

  Word exchange(const Word &word, const layout::ShuffleRound &round) const {
    Word out = word;
    for (unsigned h = 0; h < halves; ++h) {
      Value &v = out.part[h];
      if (round.moves && shuffle.butterfly) {
        v = e.shuffleWord(NVVM::ShflKind::bfly, v, e.i32(round.laneXor));
      } else if (round.moves) {
        Value from =
            context.linear(shuffle.laneColumns, ArrayRef<Mask>(shuffle.outerColumns).take_front(plan.warpBits));
        if (!from || round.laneXor)
          from = from ? e.xor_(from, e.i32(round.laneXor)) : e.i32(round.laneXor);
        v = e.shuffleWord(NVVM::ShflKind::idx, v, from);
      }
      if (round.sourceSlot)
        v = e.permuteBytes(v, e.i32(selector(round.sourceSlot)));
    }
    return out;
  }

  const LoweringContext &context;
  const Emit &e;
  const ConversionPlan &plan;
  const ShufflePlan &shuffle;
  const unsigned slots, halves;
};

struct LowerConvertLayout : Lowering<tile_gpu::ConvertLayoutOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::ConvertLayoutOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const layout::TileLayout &from = context.layout(op.getSource().getType()), &to = context.layout(op.getType());
    Result<layout::TileConversionPlan> plan = planInWarp(from, to, op.getType());
    if (!plan)
      return tile_gpu::report(op, plan.status());
    const Emit e(rewriter, op.getLoc());
    const unsigned sourceRegisters = from.core().size(layout::InDim::Register),
                   registers = to.core().size(layout::InDim::Register);
    Scalars out;
    for (unsigned rep = 0; rep < plan->core.repetitions; ++rep) {
      const ValueRange source = adaptor.getSource().slice(rep * sourceRegisters, sourceRegisters);
      if (plan->core.strategy == layout::Strategy::None || plan->core.strategy == layout::Strategy::RegisterPermute)
        for (unsigned r = 0; r < registers; ++r)
          out.push_back(source[applyColumns(plan->core.registerSource, r)]);
      else
        out.append(ShuffleRun(context, e, plan->core).run(source));
    }
    replace(rewriter, op, std::move(out));
    return success();
  }

private:
  /// The plan that the planner prefers; if that one goes through shared memory (expand-shared had less of it and chose
  /// otherwise), the best inside a warp.
  Result<layout::TileConversionPlan> planInWarp(const layout::TileLayout &from, const layout::TileLayout &to,
                                                Type tile) const {
    const unsigned bits = tile_gpu::planBits(tile);
    Result<layout::TileConversionPlan> plan = layout::planTileConversion(
        from, to, bits, context.target(), tile_gpu::planOptions(tile_gpu::layoutAttrOf(tile)));
    if (!plan || plan->core.passes == 0)
      return plan;
    for (layout::Strategy strategy : {layout::Strategy::MmaToMma, layout::Strategy::WarpShuffle}) {
      Result<layout::TileConversionPlan> other = layout::planTileConversion(
          from, to, bits, context.target(), layout::PlanOptions{.force = strategy});
      if (other)
        return other;
    }
    return Status(StatusCode::CompileError, "this conversion moves data between warps, through shared memory",
                  "run kiln-expand-shared, kiln-allocate-shared and kiln-insert-barriers before kiln-lower-tiles");
  }
};

} // namespace

void populateConvertPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                             const LoweringContext &context) {
  patterns.add<LowerConvertLayout>(converter, context);
}

} // namespace kiln::lowering
