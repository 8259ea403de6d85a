// tile.reduce inside a warp, and tile_gpu.reduce_partial: the steps of the reduction plan.  tile.any_row: a vote.
#include "compiler/lowering/Combine.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kiln::lowering {
namespace {

using layout::applyColumns;
using layout::InDim;
using layout::Mask;
using layout::ReductionPlan;

/// The region is one integer operation on its two arguments that redux.sync has.
std::optional<NVVM::ReduxKind> reduxKind(Block &body) {
  if (body.getNumArguments() != 2 || !body.getArgument(0).getType().isInteger(32) ||
      !llvm::hasSingleElement(body.without_terminator()))
    return std::nullopt;
  Operation &op = body.front();
  if (op.getNumOperands() != 2 || op.getNumResults() != 1 || body.getTerminator()->getOperand(0) != op.getResult(0))
    return std::nullopt;
  const Value a = body.getArgument(0), b = body.getArgument(1);
  if (!(op.getOperand(0) == a && op.getOperand(1) == b) && !(op.getOperand(0) == b && op.getOperand(1) == a))
    return std::nullopt;
  using Kind = std::optional<NVVM::ReduxKind>;
  return llvm::TypeSwitch<Operation *, Kind>(&op)
      .Case<arith::AddIOp>([](auto) { return NVVM::ReduxKind::ADD; })
      .Case<arith::MinSIOp>([](auto) { return NVVM::ReduxKind::MIN; })
      .Case<arith::MaxSIOp>([](auto) { return NVVM::ReduxKind::MAX; })
      .Case<arith::MinUIOp>([](auto) { return NVVM::ReduxKind::UMIN; })
      .Case<arith::MaxUIOp>([](auto) { return NVVM::ReduxKind::UMAX; })
      .Case<arith::AndIOp>([](auto) { return NVVM::ReduxKind::AND; })
      .Case<arith::OrIOp>([](auto) { return NVVM::ReduxKind::OR; })
      .Case<arith::XOrIOp>([](auto) { return NVVM::ReduxKind::XOR; })
      .Default([](Operation *) { return Kind(); });
}

/// The registers of one repetition, reduced inside the warp: held registers have their partial results.
class WarpReduction {
public:
  WarpReduction(Emit &emit, const Combiner &combine, const ReductionPlan &plan, const Target &target)
      : e(emit), combine(combine), plan(plan), hasRedux(target.has(Capability::Redux)) {}

  void run(RegisterFile &x) const {
    registers(x);
    const std::optional<NVVM::ReduxKind> kind = plan.wholeWarp && hasRedux ? reduxKind(combine.block()) : std::nullopt;
    if (kind)
      redux(x, *kind);
    else
      for (const layout::LaneStep &step : plan.laneSteps)
        lanes(x, step);
  }

private:
  bool held(size_t r) const { return (r & ~size_t(plan.heldRegisters)) == 0; }

  void registers(RegisterFile &x) const {
    // Backwards: which registers a step must make so that the held ones come out.
    std::vector<std::vector<bool>> needed(plan.registerSteps.size());
    std::vector<bool> now(x.size());
    for (size_t r = 0; r < x.size(); ++r)
      now[r] = held(r);
    for (size_t s = plan.registerSteps.size(); s-- > 0;) {
      needed[s] = now;
      for (size_t r = 0; r < x.size(); ++r)
        if (needed[s][r])
          now[r ^ plan.registerSteps[s]] = true;
    }
    for (size_t s = 0; s < plan.registerSteps.size(); ++s) {
      const RegisterFile old = x;
      for (size_t r = 0; r < x.size(); ++r)
        if (needed[s][r])
          x[r] = combine(old[r], old[r ^ plan.registerSteps[s]]);
    }
  }

  void lanes(RegisterFile &x, const layout::LaneStep &step) const {
    const RegisterFile old = x;
    Value offset = e.i32(step.laneXor);
    for (size_t r = 0; r < x.size(); ++r)
      if (held(r))
        x[r] = combine(old[r], combine.shuffle(NVVM::ShflKind::bfly, old[r ^ step.registerXor], offset));
  }

  void redux(RegisterFile &x, NVVM::ReduxKind kind) const {
    Value everyLane = e.i32(-1);
    for (size_t r = 0; r < x.size(); ++r)
      if (held(r))
        x[r][0] = NVVM::ReduxOp::create(e.b, e.loc, e.i(32), x[r][0], kind, everyLane);
  }

  Emit &e;
  const Combiner &combine;
  const ReductionPlan &plan;
  bool hasRedux;
};

/// Repetitions that differ along the axis only are combined first.  Then `pick` names the held registers that each
/// group gives, in order; groups are in the order of the repetitions without the axis.
RegisterFile reduceTile(Emit &e, const Combiner &combine, const ReductionPlan &plan, const Target &target,
                        const layout::TileLayout &tile, const RegisterFile &in, ArrayRef<Mask> pick) {
  const size_t coreRegisters = tile.core().size(InDim::Register);
  const layout::TileShape &shape = tile.tile();
  const unsigned along = shape.counts[plan.axis];
  const WarpReduction reduction(e, combine, plan, target);
  RegisterFile out;
  for (unsigned rep = 0; rep < shape.repetitions(); ++rep) {
    layout::Coords at = shape.repCoords(rep);
    if (at[plan.axis] != 0)
      continue;
    RegisterFile x(in.begin() + static_cast<ptrdiff_t>(rep * coreRegisters),
                   in.begin() + static_cast<ptrdiff_t>((rep + 1) * coreRegisters));
    for (unsigned j = 1; j < along; ++j) {
      at[plan.axis] = j;
      const size_t first = shape.repIndex(at) * coreRegisters;
      for (size_t r = 0; r < coreRegisters; ++r)
        x[r] = combine(x[r], in[first + r]);
    }
    reduction.run(x);
    for (Mask r = 0; r < Mask(1) << pick.size(); ++r)
      out.push_back(x[applyColumns({pick.data(), pick.size()}, r)]);
  }
  return out;
}

struct ReduceLowering : Lowering<tile::ReduceOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::ReduceOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const layout::TileLayout &tile = context.layout(op.getSources().front().getType());
    Result<ReductionPlan> plan = layout::planReduction(tile.core(), op.getAxis(), 32, context.target());
    if (!plan)
      return tile_gpu::report(op, plan.status());
    if (plan->exchange)
      return tile_gpu::report(op, Status(StatusCode::CompileError, "a reduction across warps needs shared memory",
                                         "run expand-shared first"));
    const Type type = op.getResult(0).getType();
    if (isa<RankedTensorType>(type) && failed(expectLayout(op, context.layout(type), plan->result, 0)))
      return failure();
    Emit e(rewriter, op.getLoc());
    const Combiner combine(e, op.getCombine());
    const RegisterFile out =
        reduceTile(e, combine, *plan, context.target(), tile, filesOf(adaptor.getSources()), plan->resultRegister);
    rewriter.replaceOpWithMultiple(op, listsOf(out, op.getNumResults()));
    return success();
  }
};

struct ReducePartialLowering : Lowering<tile_gpu::ReducePartialOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile_gpu::ReducePartialOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const layout::TileLayout &tile = context.layout(op.getSources().front().getType());
    Result<ReductionPlan> plan = layout::planReduction(tile.core(), op.getAxis(), 32, context.target());
    if (!plan)
      return tile_gpu::report(op, plan.status());
    if (!plan->exchange)
      return tile_gpu::report(
          op, Status(StatusCode::CompileError, "this reduction stays inside each warp", "use tile.reduce"));
    if (failed(expectLayout(op, context.layout(op.getResult(0).getType()), plan->exchange->source, 1)))
      return failure();
    Emit e(rewriter, op.getLoc());
    const Combiner combine(e, op.getCombine());
    const RegisterFile out =
        reduceTile(e, combine, *plan, context.target(), tile, filesOf(adaptor.getSources()), plan->partialRegister);
    rewriter.replaceOpWithMultiple(op, listsOf(out, op.getNumResults()));
    return success();
  }
};

/// The warp's rows of `tile` are among its rows of `rows`.
bool holdsItsRows(const layout::TileLayout &tile, const layout::TileLayout &rows) {
  const layout::LinearLayout &held = tile.core(), &known = rows.core();
  if (tile.shape(0) != rows.shape(0) || held.bits(InDim::Warp) != known.bits(InDim::Warp))
    return false;
  const auto row = [](const layout::LinearLayout &l, layout::BitVector at) -> layout::BitVector {
    return l.coord(at, 0);
  };
  // Of these a warp has all columns.
  for (layout::BitVector column : known.columns(InDim::Warp))
    for (unsigned dim = 1; dim < rows.dims(); ++dim)
      if (known.coord(column, dim))
        return false;
  SmallVector<layout::BitVector> columns;
  for (InDim inside : {InDim::Register, InDim::Lane})
    for (layout::BitVector column : known.columns(inside))
      columns.push_back(row(known, column));
  const layout::Span span(columns);
  const auto reached = [&](layout::BitVector at) { return span.solve(at).has_value(); };
  for (InDim inside : {InDim::Register, InDim::Lane})
    for (layout::BitVector column : held.columns(inside))
      if (!reached(row(held, column)))
        return false;
  for (unsigned w = 0; w < held.bits(InDim::Warp); ++w)
    if (!reached(row(held, held.column(InDim::Warp, w)) ^ row(known, known.column(InDim::Warp, w))))
      return false;
  return true;
}

/// No effects but on what the warp itself has in flight.
bool staysInWarp(Operation *branch) {
  return !branch
              ->walk([](Operation *op) {
                const std::optional<tile::MemoryOrdering> ordering = tile::orderingOf(op);
                const bool waits = ordering && ordering->awaits && !ordering->meets() && tile::accessesOf(op).empty();
                return waits || op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isMemoryEffectFree(op)
                           ? WalkResult::advance()
                           : WalkResult::interrupt();
              })
              .wasInterrupted();
}

struct AnyRowLowering : Lowering<tile::AnyRowOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(tile::AnyRowOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const Emit e(rewriter, op.getLoc());
    Value any;
    if (eachWarpMayAnswer(op)) {
      const llvm::SmallSetVector<Value, 8> rows(adaptor.getRows().begin(), adaptor.getRows().end());
      for (Value row : rows)
        any = any ? e.or_(any, row) : row;
      any = NVVM::VoteSyncOp::create(e.b, e.loc, e.i(1), e.i32(-1), any, NVVM::VoteSyncKind::any);
    }
    replace(rewriter, op, {any ? any : e.i1(true)});
    return success();
  }

private:
  bool eachWarpMayAnswer(tile::AnyRowOp op) const {
    const layout::TileLayout &rows = context.layout(op.getRows().getType());
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      auto branch = dyn_cast<scf::IfOp>(user);
      // What crosses warps has effects at this stage: on shared memory, or on barriers.
      return branch && staysInWarp(branch) && llvm::all_of(branch.getResultTypes(), [&](Type type) {
               return isa<RankedTensorType>(type) && holdsItsRows(context.layout(type), rows);
             });
    });
  }
};

} // namespace

void populateReducePatterns(RewritePatternSet &patterns, const TileTypeConverter &converter,
                            const LoweringContext &context) {
  patterns.add<ReduceLowering, ReducePartialLowering, AnyRowLowering>(converter, context);
  populateScanPatterns(patterns, converter, context);
  populateGatherPatterns(patterns, converter, context);
}

} // namespace kiln::lowering
