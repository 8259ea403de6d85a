// tile.scan inside a warp, tile_gpu.scan_partial, scan_before and scan_apply: the steps of the scan plan.
#include "compiler/layout/Subspace.h"
#include "compiler/lowering/Combine.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::applyColumns;
using layout::InDim;
using layout::Mask;
using layout::ScanPlan;
using layout::ScanStep;

/// What forward and reverse scans have in common, the direction apart: `far` are the elements that come first in the
/// scan's direction.
class WarpScan {
public:
  WarpScan(Emit &emit, const Combiner &combine, const ScanPlan &plan, bool reverse, Value lane)
      : e(emit), combine(combine), plan(plan), reverse(reverse), lane(lane) {}

  /// far o own in the order of the axis.
  Column join(const Column &far, const Column &own) const { return reverse ? combine(own, far) : combine(far, own); }
  const Combiner &combiner() const { return combine; }

  /// The scan of each run: a run is what the plan's steps cover.
  void run(RegisterFile &x) const {
    for (size_t i = 0; i < plan.steps.size();) {
      if (plan.steps[i].dim == InDim::Register) {
        registerStep(x, plan.steps[i++]);
        continue;
      }
      size_t end = i + 1;
      while (end < plan.steps.size() && plan.steps[end].dim == InDim::Lane)
        ++end;
      laneSteps(x, {plan.steps.data() + i, end - i});
      i = end;
    }
  }

  /// The total of the run that register r of this lane is in.
  Column total(const RegisterFile &x, Mask r, Mask lowRegisters, Mask lowLanes) const {
    return fetch(x, corner(r, lowRegisters), lowLanes);
  }

private:
  /// The last place of a run in the scan's direction.
  Mask corner(Mask r, Mask low) const { return reverse ? r & ~low : r | low; }

  Value laneCorner(Mask clear, Mask set) const {
    Value l = lane;
    if (clear)
      l = e.and_(l, e.i32(static_cast<int32_t>(~clear)));
    return set ? e.or_(l, e.i32(static_cast<int32_t>(set))) : l;
  }
  Column fetch(const RegisterFile &x, Mask r, Mask lowLanes) const {
    if (!lowLanes)
      return x[r];
    return combine.shuffle(NVVM::ShflKind::idx, x[r], reverse ? laneCorner(lowLanes, 0) : laneCorner(0, lowLanes));
  }

  void registerStep(RegisterFile &x, const ScanStep &s) const {
    const Mask bit = Mask(1) << s.bit;
    llvm::DenseMap<Mask, Column> totals;
    RegisterFile next = x;
    for (Mask r = 0; r < x.size(); ++r) {
      if (((r & bit) != 0) == reverse)
        continue;
      const Mask from = corner(r ^ bit, s.lowRegisters);
      if (!totals.contains(from))
        totals[from] = fetch(x, from, s.lowLanes);
      next[r] = join(totals[from], x[r]);
    }
    x = std::move(next);
  }

  /// Axis bits in neighbouring lanes: totals alone are scanned, and what comes before a lane is combined once with each
  /// of its registers.
  void laneSteps(RegisterFile &x, ArrayRef<ScanStep> steps) const {
    const Mask low = steps.front().lowRegisters;
    Mask before = 0; // lane bits of the steps that are done
    llvm::SmallVector<Value> takes, any;
    llvm::SmallVector<Value> source;
    for (const ScanStep &s : steps) {
      const Mask bit = Mask(1) << s.bit;
      source.push_back(reverse ? e.or_(laneCorner(s.lowLanes, 0), e.i32(static_cast<int32_t>(bit)))
                               : laneCorner(bit, s.lowLanes));
      takes.push_back(isFar(bit));
      before |= bit;
      any.push_back(isFar(before));
    }
    for (Mask group = 0; group < x.size(); ++group) {
      if (group & low)
        continue;
      Column sum = x[corner(group, low)], prefix;
      for (size_t i = 0; i < steps.size(); ++i) {
        Column far = combine.shuffle(NVVM::ShflKind::idx, sum, source[i]);
        if (i == 0)
          prefix = far;
        else
          prefix = combine.select(takes[i], combine.select(any[i - 1], join(far, prefix), far), prefix);
        if (i + 1 < steps.size())
          sum = combine.select(takes[i], join(far, sum), sum);
      }
      for (Mask r = 0; r < x.size(); ++r)
        if ((r & ~low) == group)
          x[r] = combine.select(any.back(), join(prefix, x[r]), x[r]);
    }
  }

  /// i1: some of these lane bits says that there are elements before this lane.
  Value isFar(Mask bits) const {
    Value masked = e.and_(lane, e.i32(static_cast<int32_t>(bits)));
    return e.compare(arith::CmpIPredicate::ne, masked, e.i32(reverse ? static_cast<int32_t>(bits) : 0));
  }

  Emit &e;
  const Combiner &combine;
  const ScanPlan &plan;
  bool reverse;
  Value lane;
};

/// A tile's registers with the repetitions along the axis told apart.
struct AxisRepetitions {
  const layout::TileLayout &tile;
  unsigned axis;

  size_t coreRegisters() const { return tile.core().size(InDim::Register); }
  unsigned along() const { return tile.tile().counts[axis]; }
  /// The first repetition of each group that differs along the axis only.
  llvm::SmallVector<unsigned> groups() const {
    llvm::SmallVector<unsigned> out;
    for (unsigned rep = 0; rep < tile.repetitions(); ++rep)
      if (tile.tile().repCoords(rep)[axis] == 0)
        out.push_back(rep);
    return out;
  }
  /// Repetition j along the axis of a group.
  unsigned repetition(unsigned group, unsigned j) const {
    layout::Coords at = tile.tile().repCoords(group);
    at[axis] = j;
    return tile.tile().repIndex(at);
  }
  RegisterFile take(const RegisterFile &file, unsigned rep) const {
    const auto first = file.begin() + static_cast<ptrdiff_t>(rep * coreRegisters());
    return {first, first + static_cast<ptrdiff_t>(coreRegisters())};
  }
  void put(RegisterFile &file, unsigned rep, const RegisterFile &part) const {
    std::copy(part.begin(), part.end(), file.begin() + static_cast<ptrdiff_t>(rep * coreRegisters()));
  }
};

FailureOr<ScanPlan> scanPlan(Operation *op, const layout::TileLayout &tile, unsigned axis, const Target &target) {
  Result<std::optional<ScanPlan>> plan = layout::planScan(tile.core(), axis, 32, target);
  if (!plan)
    return tile_gpu::report(op, plan.status());
  if (!plan->has_value())
    return tile_gpu::report(op, Status(StatusCode::CompileError, "the layout does not hold the axis as a permutation",
                                       "run expand-shared, or convert to a blocked layout first"));
  return std::move(**plan);
}

/// Repetition t of totals tiles: the group's coordinates without the axis, then the axis' repetition.
unsigned totalsRepetition(const layout::TileLayout &totals, const AxisRepetitions &reps, unsigned group, unsigned j) {
  const layout::Coords at = reps.tile.tile().repCoords(group);
  layout::Coords out;
  for (unsigned d = 0; d < at.size(); ++d)
    if (d != reps.axis)
      out.push_back(at[d]);
  out.push_back(j);
  return totals.tile().repIndex(out);
}

struct ScanLowering : Lowering<tile::ScanOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::ScanOp op, Adaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    const layout::TileLayout &tile = context.layout(op.getSources().front().getType());
    FailureOr<ScanPlan> plan = scanPlan(op, tile, op.getAxis(), context.target());
    if (failed(plan))
      return failure();
    if (plan->totals)
      return tile_gpu::report(
          op, Status(StatusCode::CompileError, "a scan across warps needs shared memory", "run expand-shared first"));
    Emit e(rewriter, op.getLoc());
    const Combiner combine(e, op.getCombine());
    const WarpScan scan(e, combine, *plan, op.getReverse(), context.lane());
    const AxisRepetitions reps{tile, op.getAxis()};
    RegisterFile file = filesOf(adaptor.getSources());
    for (unsigned group : reps.groups()) {
      std::vector<Column> carry(reps.coreRegisters()); // of all repetitions before, by register; empty at first
      for (unsigned k = 0; k < reps.along(); ++k) {
        const unsigned rep = reps.repetition(group, op.getReverse() ? reps.along() - 1 - k : k);
        RegisterFile x = reps.take(file, rep), out = x;
        scan.run(x);
        out = x;
        std::vector<Column> next(x.size());
        llvm::DenseMap<Mask, Column> totals;
        for (Mask r = 0; r < x.size(); ++r) {
          if (k > 0)
            out[r] = scan.join(carry[r], x[r]);
          if (k + 1 == reps.along())
            continue;
          // Registers of one run share its total.
          const Mask run = r & ~plan->lowRegisters;
          if (!totals.contains(run)) {
            Column total = scan.total(x, r, plan->lowRegisters, plan->lowLanes);
            totals[run] = k > 0 ? scan.join(carry[r], total) : total;
          }
          next[r] = totals[run];
        }
        carry = std::move(next);
        reps.put(file, rep, out);
      }
    }
    rewriter.replaceOpWithMultiple(op, listsOf(file, op.getNumResults()));
    return success();
  }
};

struct ScanPartialLowering : Lowering<tile_gpu::ScanPartialOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::ScanPartialOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const unsigned operands = op.getNumOperands();
    const layout::TileLayout &tile = context.layout(op.getSources().front().getType());
    const layout::TileLayout &totals = context.layout(op.getResult(operands).getType());
    FailureOr<ScanPlan> plan = scanPlan(op, tile, op.getAxis(), context.target());
    if (failed(plan))
      return failure();
    if (!plan->totals)
      return tile_gpu::report(op,
                              Status(StatusCode::CompileError, "this scan stays inside each warp", "use tile.scan"));
    if (failed(expectLayout(op, totals, plan->totals->source, tile.tile().counts[op.getAxis()])))
      return failure();
    Emit e(rewriter, op.getLoc());
    const Combiner combine(e, op.getCombine());
    const WarpScan scan(e, combine, *plan, op.getReverse(), context.lane());
    const AxisRepetitions reps{tile, op.getAxis()};
    RegisterFile file = filesOf(adaptor.getSources());
    const size_t totalRegisters = totals.core().size(InDim::Register);
    RegisterFile sums(totals.registers());
    for (unsigned group : reps.groups())
      for (unsigned j = 0; j < reps.along(); ++j) {
        const unsigned rep = reps.repetition(group, j);
        RegisterFile x = reps.take(file, rep);
        scan.run(x);
        reps.put(file, rep, x);
        const size_t first = totalsRepetition(totals, reps, group, j) * totalRegisters;
        for (Mask t = 0; t < totalRegisters; ++t)
          sums[first + t] = scan.total(x, applyColumns(plan->totalRegister, t), plan->lowRegisters, plan->lowLanes);
      }
    llvm::SmallVector<Scalars> results = listsOf(file, operands);
    for (Scalars &list : listsOf(sums, operands))
      results.push_back(std::move(list));
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

struct ScanApplyLowering : Lowering<tile_gpu::ScanApplyOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::ScanApplyOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const unsigned operands = op.getNumResults();
    const layout::TileLayout &tile = context.layout(op.getSources().front().getType());
    const layout::TileLayout &totals = context.layout(op.getSources()[operands].getType());
    FailureOr<ScanPlan> plan = scanPlan(op, tile, op.getAxis(), context.target());
    if (failed(plan))
      return failure();
    if (!plan->totals)
      return tile_gpu::report(op,
                              Status(StatusCode::CompileError, "this scan stays inside each warp", "use tile.scan"));
    if (failed(expectLayout(op, totals, op.getBefore() ? plan->totals->source : plan->totals->destination,
                            tile.tile().counts[op.getAxis()])))
      return failure();
    Emit e(rewriter, op.getLoc());
    const Combiner combine(e, op.getCombine());
    const WarpScan scan(e, combine, *plan, op.getReverse(), context.lane());
    const AxisRepetitions reps{tile, op.getAxis()};
    RegisterFile file = filesOf(adaptor.getSources().take_front(operands));
    const RegisterFile sums = filesOf(adaptor.getSources().drop_front(operands));
    if (op.getBefore()) {
      applyBefore(e, op, scan, *plan, reps, totals, sums, file);
      rewriter.replaceOpWithMultiple(op, listsOf(file, operands));
      return success();
    }

    // The part of a number that the thread decides, and the values it may have.
    Value own = context.linear(ArrayRef<Mask>(plan->number[1]), ArrayRef<Mask>(plan->number[2]));
    layout::Subspace span;
    for (unsigned d = 1; d < 3; ++d)
      for (Mask column : plan->number[d])
        span.add(column);
    const std::vector<std::uint32_t> values = span.elements();
    llvm::SmallVector<Value> is; // own == values[i]
    for (std::uint32_t v : values)
      is.push_back(own ? e.compare(arith::CmpIPredicate::eq, own, e.i32(static_cast<int32_t>(v))) : Value());

    const unsigned numbers = 1u << plan->totals->numberBits, all = numbers * reps.along();
    const size_t totalRegisters = totals.core().size(InDim::Register);
    for (unsigned group : reps.groups()) {
      auto sum = [&](unsigned number, Mask first) {
        return sums[totalsRepetition(totals, reps, group, number / numbers) * totalRegisters +
                    (first ^ number % numbers)];
      };
      // before[k]: the totals that come before number k in the scan's direction, combined.
      llvm::DenseMap<Mask, std::vector<Column>> chains;
      auto chain = [&](Mask first) -> const std::vector<Column> & {
        std::vector<Column> &before = chains[first];
        if (!before.empty())
          return before;
        before.resize(all);
        for (unsigned i = 1; i < all; ++i) {
          const unsigned k = op.getReverse() ? all - 1 - i : i, nearest = op.getReverse() ? k + 1 : k - 1;
          const Column total = sum(nearest, first);
          // In the axis' order: forward, the nearest one is the latest.
          before[k] = i == 1 ? total : scan.join(before[nearest], total);
        }
        return before;
      };
      for (unsigned j = 0; j < reps.along(); ++j) {
        const unsigned rep = reps.repetition(group, j);
        RegisterFile x = reps.take(file, rep);
        llvm::DenseMap<std::pair<Mask, Mask>, std::pair<Column, Value>> prefixes;
        for (Mask r = 0; r < x.size(); ++r) {
          const Mask first = applyColumns(plan->totalsOf, r), fixed = applyColumns(plan->number[0], r);
          auto [it, fresh] = prefixes.insert({{first, fixed}, {}});
          auto &[prefix, none] = it->second; // none: there is nothing before, and when
          if (fresh) {
            const std::vector<Column> &before = chain(first);
            for (size_t i = 0; i < values.size(); ++i) {
              const Column &value = before[(fixed ^ values[i]) + numbers * j];
              if (value.empty())
                none = is[i] ? is[i] : e.i1(true);
              else
                prefix = prefix.empty() || !is[i] ? value : combine.select(is[i], value, prefix);
            }
          }
          if (prefix.empty())
            continue;
          Column with = scan.join(prefix, x[r]);
          x[r] = none ? combine.select(none, x[r], with) : with;
        }
        reps.put(file, rep, x);
      }
    }
    rewriter.replaceOpWithMultiple(op, listsOf(file, operands));
    return success();
  }

private:
  /// Each run with what comes before it, which is there already.
  void applyBefore(Emit &e, tile_gpu::ScanApplyOp op, const WarpScan &scan, const ScanPlan &plan,
                   const AxisRepetitions &reps, const layout::TileLayout &totals, const RegisterFile &sums,
                   RegisterFile &file) const {
    const Value own = context.linear(ArrayRef<Mask>(plan.number[1]), ArrayRef<Mask>(plan.number[2]));
    layout::Subspace span; // of what `own` may be
    for (unsigned d = 1; d < 3; ++d)
      for (Mask column : plan.number[d])
        span.add(column);
    const std::vector<std::uint32_t> values = span.elements();
    const Mask foremost = op.getReverse() ? (Mask(1) << plan.totals->numberBits) - 1 : 0;
    const unsigned foremostRep = op.getReverse() ? reps.along() - 1 : 0;
    const size_t totalRegisters = totals.core().size(InDim::Register);
    llvm::DenseMap<Mask, Value> isForemost; // by the register's part of the number
    for (unsigned group : reps.groups())
      for (unsigned j = 0; j < reps.along(); ++j) {
        const unsigned rep = reps.repetition(group, j);
        RegisterFile x = reps.take(file, rep);
        const size_t first = totalsRepetition(totals, reps, group, j) * totalRegisters;
        for (Mask r = 0; r < x.size(); ++r) {
          const Mask fixed = applyColumns(plan.number[0], r);
          const bool maybe = j == foremostRep && llvm::is_contained(values, fixed ^ foremost);
          if (maybe && !own)
            continue;
          Mask from = 0;
          for (auto [t, source] : llvm::enumerate(plan.totalRegister))
            from |= r & source ? Mask(1) << t : 0;
          const Column with = scan.join(sums[first + from], x[r]);
          if (maybe) {
            Value &none = isForemost[fixed];
            if (!none)
              none = e.compare(arith::CmpIPredicate::eq, own, e.i32(static_cast<int32_t>(fixed ^ foremost)));
            x[r] = scan.combiner().select(none, x[r], with);
          } else {
            x[r] = with;
          }
        }
        reps.put(file, rep, x);
      }
  }
};

/// The scan of whole lines, one place on.
struct ScanBeforeLowering : Lowering<tile_gpu::ScanBeforeOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::ScanBeforeOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const layout::TileLayout &tile = context.layout(op.getSources().front().getType());
    const unsigned axis = tile.dims() - 1;
    FailureOr<ScanPlan> plan = scanPlan(op, tile, axis, context.target());
    if (failed(plan))
      return failure();
    // Low registers, then neighbouring lanes.
    Mask lanes = 0, lowest = 0, highest = 0;
    bool inOrder = !plan->totals;
    for (const ScanStep &s : plan->steps) {
      const Mask bit = Mask(1) << s.bit;
      if (s.dim == InDim::Register) {
        inOrder &= lanes == 0 && bit > s.lowRegisters;
        continue;
      }
      inOrder &= lanes == 0 || bit == 2 * highest;
      lowest = lanes ? lowest : bit;
      highest = bit;
      lanes |= bit;
    }
    if (!inOrder)
      return tile_gpu::report(op, Status(StatusCode::CompileError,
                                         "the last dimension does not lie in low registers and then lanes",
                                         "convert it to such a layout"));
    Emit e(rewriter, op.getLoc());
    const Combiner combine(e, op.getCombine());
    const bool reverse = op.getReverse();
    const WarpScan scan(e, combine, *plan, reverse, context.lane());
    const AxisRepetitions reps{tile, axis};
    RegisterFile file = filesOf(adaptor.getSources());
    // The neighbour's lane; what the outermost one gets is used by no one, or replaced.
    Value neighbour, outermost;
    if (lanes) {
      neighbour =
          e.and_(e.add(context.lane(), e.i32(reverse ? static_cast<int32_t>(lowest) : -static_cast<int32_t>(lowest))),
                 e.i32(layout::warpSize - 1));
      outermost = e.compare(arith::CmpIPredicate::eq, e.and_(context.lane(), e.i32(static_cast<int32_t>(lanes))),
                            e.i32(reverse ? static_cast<int32_t>(lanes) : 0));
    }
    const Mask low = plan->lowRegisters;
    for (unsigned group : reps.groups()) {
      RegisterFile before; // the totals of all repetitions before, by register
      for (unsigned k = 0; k < reps.along(); ++k) {
        const unsigned rep = reps.repetition(group, reverse ? reps.along() - 1 - k : k);
        RegisterFile x = reps.take(file, rep), out(x.size()), totals(x.size());
        scan.run(x);
        const bool last = k + 1 == reps.along();
        for (Mask r = 0; r < x.size(); ++r) {
          const Mask outer = r & ~low;
          if (k > 0)
            x[r] = scan.join(before[outer], x[r]);
        }
        for (Mask r = 0; r < x.size(); ++r) {
          const Mask outer = r & ~low;
          if (!last && r == outer)
            totals[r] = scan.total(x, r, low, lanes);
          // The place before, in the scan's direction.
          const Mask place = r & low, edge = reverse ? low : 0;
          if (place != edge) {
            out[r] = x[outer | (reverse ? ((place | ~low) + 1) & low : (place - 1) & low)];
          } else {
            const Column &end = x[outer | (reverse ? 0 : low)];
            if (lanes)
              out[r] = combine.shuffle(NVVM::ShflKind::idx, end, neighbour);
            if (k > 0)
              out[r] = lanes ? combine.select(outermost, before[outer], out[r]) : before[outer];
            else if (!lanes)
              out[r] = x[r];
          }
        }
        before = std::move(totals);
        reps.put(file, rep, out);
      }
    }
    rewriter.replaceOpWithMultiple(op, listsOf(file, op.getNumResults()));
    return success();
  }
};

} // namespace

void populateScanPatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                          const LoweringContext &context) {
  patterns.add<ScanLowering, ScanPartialLowering, ScanApplyLowering, ScanBeforeLowering>(converter, context);
}

} // namespace kiln::lowering
