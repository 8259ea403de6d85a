// Which unit computes each tile.dot, and how its warps share the result: stated as the layouts around the dot, which
// assign-layouts then takes as given.
#include "compiler/passes/layouts/CarriedTiles.h"
#include "compiler/passes/layouts/ReorderedK.h"
#include "compiler/passes/Pass.h"
#include "compiler/passes/pipelines/AsyncTransport.h"

#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#include <limits>
#include <set>

using namespace mlir;

namespace kiln {
#include "compiler/passes/AccelerateDot.inc"

namespace {

using layout::Sizes;
using tile_gpu::LayoutAttr;

/// Extents of one product, and the powers of two in them: odd factors are repetitions of the same registers.
struct Extents {
  int64_t m, n, coreM, coreN, coreK, coreBatch;
};

Extents extentsOf(tile::DotOp dot) {
  const auto a = cast<RankedTensorType>(dot.getLhs().getType()), c = cast<RankedTensorType>(dot.getType());
  const int64_t rank = c.getRank(), m = c.getDimSize(rank - 2), n = c.getDimSize(rank - 1),
                batch = rank == 3 ? c.getDimSize(0) : 1;
  const int64_t k = a.getDimSize(rank - 1);
  return {m, n, m & -m, n & -n, k & -k, batch & -batch};
}

/// K of the shortest mma.sync for such operands on the target; 0 if it has none.
int64_t shortestK(tile::DotOp dot, const Target &target) {
  int64_t least = 0;
  if (const std::optional<MatrixElements> elements = tile_gpu::matrixElementsOf(dot))
    for (const MatrixInstruction &i : matrixInstructions(target, MatrixUnit::MmaSync, *elements))
      least = least ? std::min<int64_t>(least, i.k) : i.k;
  return least;
}

/// The largest power of two of `whole` that leaves at least `least` to each of so many parts, at most `limit`.
int64_t partsOf(int64_t whole, int64_t least, int64_t limit) {
  int64_t parts = 1;
  while (parts < limit && whole / (2 * parts) >= least)
    parts *= 2;
  return parts;
}

class Accelerator {
public:
  Accelerator(func::FuncOp f, const Target &target) : f(f), target(target), warps(tile_gpu::warpsOf(f).count) {}

  LogicalResult run() {
    llvm::SmallVector<tile::DotOp> dots;
    f.walk([&](tile::DotOp dot) {
      if (!tile_gpu::layoutAttrOf(dot.getType()))
        dots.push_back(dot);
    });
    if (const Status status = tile_gpu::checkWarps(warps); !dots.empty() && !status.ok())
      return tile_gpu::report(dots.front(), status);
    for (tile::DotOp dot : dots)
      widen(dot);
    findCopied(dots);
    for (tile::DotOp dot : dots)
      if (const int64_t least = shortestK(dot, target);
          least && extentsOf(dot).coreK >= least && wantsReorderedK(dot)) {
        reorderK(dot);
        reordered.insert(dot);
      }
    tilesAreSmall = llvm::all_of(dots, [&](tile::DotOp dot) { return isSmall(dot); });
    keepUnitsApart(dots);
    for (tile::DotOp dot : dots) {
      const LayoutAttr work = LayoutAttr::get(f.getContext(), choose(dot));
      if (const int64_t part = partOfK(dot, work))
        dot = inParts(dot, part);
      roundFirst(dot, work);
      if (failed(anchor(dot, work)))
        return failure();
    }
    return success();
  }

private:
  /// Element types that the target's matrix unit does not take, as ones that hold every value of theirs.
  void widen(tile::DotOp dot) {
    OpBuilder b(dot);
    const auto extend = [&](OpOperand &operand, Type element) {
      const Type type = tile::withElementType(operand.get().getType(), element);
      operand.set(arith::ExtFOp::create(b, dot.getLoc(), type, operand.get()));
    };
    const auto isFloat8 = [](Value v) {
      return isa<Float8E4M3FNType, Float8E5M2Type>(cast<RankedTensorType>(v.getType()).getElementType());
    };
    const int64_t least = shortestK(dot, target);
    if (isFloat8(dot.getLhs()) && (!least || extentsOf(dot).coreK < least)) {
      extend(dot.getLhsMutable(), b.getF16Type());
      extend(dot.getRhsMutable(), b.getF16Type());
    }
  }

  /// The name of a result's layout says what multiplies, and layouts that map the same have one name (assign-layouts).
  /// Where a product of warpgroups and one of mma.sync would lie the same, that of mma.sync is shared another way, if
  /// there is one; else all of that shape are of mma.sync.
  void keepUnitsApart(MutableArrayRef<tile::DotOp> dots) {
    const auto layoutOf = [&](tile::DotOp dot) { return LayoutAttr::get(f.getContext(), choose(dot)); };
    llvm::SmallVector<LayoutAttr> layouts = llvm::map_to_vector(dots, layoutOf);
    const auto clash = [&](size_t group, size_t other) {
      const RankedTensorType type = dots[group].getType();
      return type.getShape() == dots[other].getType().getShape() && tile_gpu::isOfWarpgroups(layouts[group]) &&
             !tile_gpu::isOfWarpgroups(layouts[other]) && tile_gpu::sameLayout(type, layouts[group], layouts[other]);
    };
    for (size_t group = 0; group < dots.size(); ++group)
      for (size_t other = 0; other < dots.size(); ++other) {
        if (!clash(group, other))
          continue;
        inSquares.insert(dots[other]);
        layouts[other] = layoutOf(dots[other]);
        if (clash(group, other))
          withoutWarpgroups.insert(dots[group].getType().getShape().vec());
      }
    // Without wgmma there is nothing to lie otherwise than.
    for (tile::DotOp dot : dots)
      if (withoutWarpgroups.count(dot.getType().getShape().vec()))
        inSquares.erase(dot);
  }

  /// Operands of tf32 products that were computed are rounded before the first product of a block that reads them:
  /// once, not in every warp and product.  Loads stay what they are, to be staged.
  void roundFirst(tile::DotOp dot, LayoutAttr work) {
    const auto isF32 = [](Value x) { return cast<RankedTensorType>(x.getType()).getElementType().isF32(); };
    if (dot.getPrecision() != tile::Precision::Tf32 || !isF32(dot.getLhs()) || !isF32(dot.getRhs()) ||
        !std::holds_alternative<layout::Mma>(work.encoding().kind))
      return;
    const bool always = tile_gpu::isOfWarpgroups(work); // no registers are left to round where the instruction stands
    const auto isMovement = [](Operation *op) { return op && isa<tile::TransposeOp, tile::ReshapeOp>(op); };
    llvm::SmallVector<Value, 2> operands{dot.getLhs(), dot.getRhs()};
    for (Value &operand : operands) {
      llvm::SmallVector<Operation *> movements;
      Value root = operand;
      for (Operation *op = root.getDefiningOp(); isMovement(op); op = root.getDefiningOp()) {
        movements.push_back(op);
        root = op->getOperand(0);
      }
      Operation *op = root.getDefiningOp();
      if (!always && (tile_gpu::layoutAttrOf(root.getType()) || !op || op->getNumRegions() ||
                      isa<tile::LoadOp, tile::LoadViewOp, tile::GatherOp>(op)))
        return;
      Value &known = rounded[{root, dot->getBlock()}];
      if (!known) // what comes from 16 bits is no longer than tf32
        known = isa_and_nonnull<arith::ExtFOp>(op) ? root : roundedToTf32(dot, root);
      operand = known;
      OpBuilder b(dot);
      for (Operation *movement : llvm::reverse(movements)) {
        IRMapping source;
        source.map(movement->getOperand(0), operand);
        operand = b.clone(*movement, source)->getResult(0);
      }
    }
    dot.getLhsMutable().set(operands[0]);
    dot.getRhsMutable().set(operands[1]);
    dot->setAttr(tile_gpu::roundedOperands, UnitAttr::get(f.getContext()));
  }

  /// To the nearest, ties away from zero, as cvt.rna.tf32: instructions read the upper 19 bits.  What is not finite
  /// stays as it is.
  static Value roundedToTf32(tile::DotOp before, Value x) {
    OpBuilder b(before);
    const Location loc = before.getLoc();
    const auto type = cast<RankedTensorType>(x.getType());
    const Type bits = tile::withElementType(type, b.getI32Type());
    const auto all = [&](Type of, Attribute value) -> Value {
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(cast<ShapedType>(of), value));
    };
    const Value half = all(bits, b.getI32IntegerAttr(0x1000)),
                infinity = all(type, b.getFloatAttr(type.getElementType(), std::numeric_limits<double>::infinity()));
    const Value isFinite =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, loc, x), infinity);
    const Value up = arith::BitcastOp::create(
        b, loc, type, arith::AddIOp::create(b, loc, arith::BitcastOp::create(b, loc, bits, x), half));
    return arith::SelectOp::create(b, loc, isFinite, up, x);
  }

  /// Both operands have K innermost, in memory or as they were computed: wgmma reads only 16-bit ones in another way.
  static bool isKInnermost(tile::DotOp dot) {
    const auto isInnermost = [&](unsigned number) {
      const auto [tile, turned] = tile_gpu::viewedTile(dot->getOperand(number));
      const int64_t k = (number == 0) != turned;
      auto load = tile.getDefiningOp<tile::LoadViewOp>();
      const auto unit = load ? load.getView().getType().getUnit() : tile::ViewType::noUnit;
      return k == (unit == tile::ViewType::noUnit ? 1 : unit);
    };
    return isInnermost(0) && isInnermost(1);
  }

  /// The result goes into a factor of a product, or a factor comes out of one: its rows should stay in one warp.  Along
  /// everything that computes with it, through loops and conditionals.
  static bool isChained(tile::DotOp dot) {
    const auto isFactor = [](OpOperand &use) {
      auto user = dyn_cast<tile::DotOp>(use.getOwner());
      return user && (use.get() == user.getLhs() || use.get() == user.getRhs());
    };
    const auto isTile = [](Value v) { return isa<RankedTensorType>(v.getType()); };
    SetVector<Value> after;
    after.insert(dot.getResult());
    for (size_t at = 0; at < after.size(); ++at)
      for (OpOperand &use : after[at].getUses()) {
        if (isFactor(use))
          return true;
        Operation *user = use.getOwner();
        for (Operation *carrier : {carrierOf(user), user})
          if (carrier)
            if (const auto tiles = carriedTiles(carrier); const CarriedTile *tile = tileFedBy(tiles, use))
              after.insert_range(tile->values);
        if (!isa<scf::ForOp, scf::IfOp, scf::WhileOp>(user))
          after.insert_range(llvm::make_filter_range(user->getResults(), isTile));
      }
    SetVector<Value> before;
    before.insert(dot.getLhs());
    before.insert(dot.getRhs());
    for (size_t at = 0; at < before.size(); ++at) {
      if (Operation *carrier = carrierOf(before[at])) {
        const auto tiles = carriedTiles(carrier);
        if (const CarriedTile *tile = tileWith(tiles, before[at]))
          for (OpOperand *feed : tile->feeds)
            before.insert(feed->get());
      } else if (Operation *from = before[at].getDefiningOp()) {
        if (isa<tile::DotOp>(from))
          return true;
        before.insert_range(llvm::make_filter_range(from->getOperands(), isTile));
      }
    }
    return false;
  }

  layout::Encoding choose(tile::DotOp dot) const {
    const Extents e = extentsOf(dot);
    if (!withoutWarpgroups.count(dot.getType().getShape().vec()))
      if (const std::optional<layout::Mma> mma = warpgroups(dot, e))
        return *mma;
    const int64_t least = shortestK(dot, target);
    return least && e.coreK >= least ? layout::Encoding(matrixUnit(dot, e)) : layout::Encoding(threads(dot, e));
  }

  /// wgmma, where the target has it: four warps compute 64 x N at a time and read both operands from shared memory.
  /// Nothing if the tile is not made of such parts for all warps; in loops that are pipelined, unless all that their
  /// products multiply is copied: then the copies lie as wgmma wants them.
  std::optional<layout::Mma> warpgroups(tile::DotOp dot, const Extents &e) const {
    constexpr int64_t leastN = 16;
    const std::optional<MatrixElements> elements = tile_gpu::matrixElementsOf(dot);
    if (!elements)
      return std::nullopt;
    const auto instructions = matrixInstructions(target, MatrixUnit::Wgmma, *elements);
    if (instructions.empty())
      return std::nullopt;
    const MatrixInstruction &one = instructions.front();
    const int64_t instructionM = one.m, mostN = one.mostN;
    const bool isTf32 = *elements == MatrixElements::TF32;
    // Of tiles that are no power of two wide only those that lie where they were copied have been tried.
    const bool isPower = e.n == e.coreN && dot.getLhs().getType().getShape().back() == e.coreK;
    if (warps % 4 || dot.getType().getRank() != 2 || (isTf32 && dot.getPrecision() != tile::Precision::Tf32) ||
        e.m != e.coreM || !(isPower || copied.contains(dot)) || e.coreK < one.k || e.m < instructionM ||
        e.coreN < leastN || (isPipelined(dot) && (isTf32 || !copied.contains(dot))) || !tilesAreSmall ||
        (one.bits() != 16 && !isKInnermost(dot) && !(fromRegisters.contains(dot) && reordered.contains(dot))))
      return std::nullopt;
    const int64_t groups = warps / 4, alongM = std::min(groups, e.m / instructionM), alongN = groups / alongM;
    if (e.coreN / alongN < leastN)
      return std::nullopt;
    layout::Mma out;
    out.version = 3;
    out.warpsPerCTA = {4 * alongM, alongN};
    out.instrN = std::min(e.coreN / alongN, mostN);
    return out;
  }
  /// A thread holds an eighth of its registers of each tile at most, as f32: kernels of larger ones spill.  Tiles that
  /// are read where they were copied take none.
  bool isSmall(tile::DotOp dot) const {
    if (copied.contains(dot))
      return true;
    const int64_t threads = 32 * warps, registers = this->registers();
    return llvm::all_of(dot->getOperandTypes(), [&](Type type) {
      return cast<RankedTensorType>(type).getNumElements() / threads <= registers / 8;
    });
  }
  /// Of a thread.
  int64_t registers() const {
    return std::min<int64_t>(int64_t(target.registersPerThread) + 1, target.registersPerSm / (32 * warps));
  }
  /// What the products of a loop with stages read.
  struct Copies {
    uint64_t copied = 0, kept = 0; ///< bytes: of one round's tiles, of tiles from outside
    bool good = true;              ///< all that they read lies there or is computed
    llvm::DenseSet<Value> counted = {};
  };
  /// The products of loops with stages whose tiles are loads of the loop that can be copied rounds ahead, or come from
  /// outside, the left ones also what the loop computes: if so are all products there, and memory and registers hold
  /// it.
  void findCopied(llvm::ArrayRef<tile::DotOp> dots) {
    const auto stagedLoop = [](tile::DotOp dot) {
      auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
      return loop && tile::numStages(loop) > 1 ? loop : scf::ForOp();
    };
    if (!hasAsyncCopies(target) || !target.has(Capability::Wgmma) || llvm::none_of(dots, stagedLoop))
      return;
    const analysis::AxisAnalysis facts(f);
    llvm::MapVector<scf::ForOp, Copies> loops;
    for (tile::DotOp dot : dots)
      for (auto loop = dot->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>()) {
        Copies &copies = loops[loop];
        copies.good &= loop == stagedLoop(dot) && addTo(copies, loop, dot, facts);
      }
    for (tile::DotOp dot : dots)
      if (scf::ForOp loop = stagedLoop(dot)) {
        const Copies &copies = loops[loop];
        if (copies.good && copies.copied && 2 * copies.copied + copies.kept <= target.sharedOptIn &&
            mostWords(loop) <= static_cast<uint64_t>(registers() * 4 / 5))
          copied.insert(dot);
      }
  }
  /// Of a thread: the most that a round holds of what follows from its products, and of the sums that it carries.
  uint64_t mostWords(scf::ForOp loop) const {
    const auto wordsOf = [&](Value v) -> uint64_t {
      const auto type = dyn_cast<RankedTensorType>(v.getType());
      Operation *def = v.getDefiningOp();
      const bool isRepeated = def && isa<tile::BroadcastOp, tile::SplatOp>(def); // takes the registers of its source
      if (!type || !isa<FloatType>(type.getElementType()) || isRepeated)
        return 0;
      return static_cast<uint64_t>(type.getNumElements()) * tile::storageBits(type.getElementType()) / 32 /
             static_cast<uint64_t>(32 * warps);
    };
    llvm::DenseMap<Operation *, uint64_t> ends; // words whose last use it is
    llvm::DenseSet<Value> follows;
    uint64_t now = 0, most = 0;
    const auto begin = [&](Value v) {
      Operation *last = nullptr;
      for (Operation *user : v.getUsers())
        if (Operation *at = loop.getBody()->findAncestorOpInBlock(*user))
          last = last && at->isBeforeInBlock(last) ? last : at;
      follows.insert(v);
      if (last) {
        now += wordsOf(v);
        ends[last] += wordsOf(v);
      }
    };
    for (BlockArgument sums : loop.getRegionIterArgs())
      begin(sums);
    for (Operation &op : loop.getBody()->without_terminator()) {
      now -= ends.lookup(&op); // results take the registers of what ends here
      const bool isProduct = isa<tile::DotOp>(op);
      if (isProduct || llvm::any_of(op.getOperands(), [&](Value v) { return follows.contains(v); }))
        for (Value v : op.getResults())
          begin(v);
      most = std::max(most, now);
    }
    return most;
  }
  bool addTo(Copies &copies, scf::ForOp loop, tile::DotOp dot, const analysis::AxisAnalysis &facts) {
    for (const bool isLeft : {true, false}) {
      auto [operand, turned] = tile_gpu::viewedTile(isLeft ? dot.getLhs() : dot.getRhs());
      const auto tile = cast<RankedTensorType>(operand.getType());
      const uint64_t bytes = copies.counted.insert(operand).second ? static_cast<uint64_t>(tile.getNumElements()) *
                                                                         tile::storageBits(tile.getElementType()) / 8
                                                                   : 0;
      Operation *def = operand.getDefiningOp();
      const auto isRead = [](Operation *user) { return isa<tile::DotOp, tile::TransposeOp>(user); };
      if (def && def->getParentOp() == loop && isa<tile::LoadOp, tile::LoadViewOp>(def)) {
        if (!llvm::all_of(def->getUsers(), isRead) || !mayCopyAsync(def, facts))
          return false;
        copies.copied += bytes;
      } else if (!loop->isAncestor(operand.getParentRegion()->getParentOp())) {
        copies.kept += bytes;
      } else if (!isLeft) {
        return false;
      } else if (const unsigned bits = tile.getElementTypeBitWidth();
                 bits == 16 && (turned || extentsOf(dot).m < 64 * warps / 4)) {
        copies.kept += bytes; // rows of another warpgroup: threads exchange the tile, in every round
      } else {
        if (turned || (bits != 16 && !(bits == 8 && wantsReorderedK(dot))) || extentsOf(dot).m < 64 * warps / 4)
          return false;
        fromRegisters.insert(dot);
      }
    }
    return true;
  }
  static bool isPipelined(tile::DotOp dot) {
    for (auto loop = dot->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>())
      if (tile::numStages(loop) > 1)
        return true;
    return false;
  }

  /// mma.sync: a warp computes 16 x 8 at a time.
  layout::Mma matrixUnit(tile::DotOp dot, const Extents &e) const {
    int64_t alongM = 1, alongN = 1;
    if (isChained(dot) && !inSquares.contains(dot)) {
      alongM = partsOf(e.coreM, 16, warps);
      alongN = partsOf(e.coreN, 8, warps / alongM);
    } else {
      // As square as possible: each warp reads its rows of lhs and its columns of rhs.
      while (alongM * alongN < warps) {
        const bool canM = e.coreM / alongM >= 32, canN = e.coreN / alongN >= 16;
        if (!canM && !canN)
          break;
        if (canM && (!canN || e.m / alongM >= e.n / alongN))
          alongM *= 2;
        else
          alongN *= 2;
      }
    }
    const int64_t alongBatch = partsOf(e.coreBatch, 1, warps / (alongM * alongN));
    alongM *= warps / (alongM * alongN * alongBatch); // warps beyond the tile hold copies
    layout::Mma out;
    out.warpsPerCTA = {alongM, alongN};
    if (dot.getType().getRank() == 3)
      out.warpsPerCTA.insert(out.warpsPerCTA.begin(), alongBatch);
    // Two instructions side by side: one ldmatrix brings rhs for both.
    out.instrN = e.coreN / alongN >= 16 ? 16 : 8;
    return out;
  }

  /// Multiply-adds of each thread.
  layout::Blocked threads(tile::DotOp dot, const Extents &e) const {
    // Lanes first: what a thread holds of the operands grows with its rows and columns.
    const int64_t lanesN = partsOf(e.coreN, 1, 8), lanesM = layout::warpSize / lanesN;
    const int64_t perN = std::min<int64_t>(4, e.coreN / lanesN), perM = std::clamp<int64_t>(e.coreM / lanesM, 1, 4);
    const int64_t alongM = partsOf(e.coreM / perM / std::min(lanesM, e.coreM / perM), 1, warps);
    layout::Blocked out{{perM, perN}, {lanesM, lanesN}, {alongM, warps / alongM}};
    if (dot.getType().getRank() == 3)
      for (Sizes *sizes : {&out.sizePerThread, &out.threadsPerWarp, &out.warpsPerCTA})
        sizes->insert(sizes->begin(), 1);
    return out;
  }

  /// Multiply-adds of each thread take all of K of its rows and columns.  Where no registers hold that, how much of K
  /// is computed at a time; else 0.
  int64_t partOfK(tile::DotOp dot, LayoutAttr work) const {
    constexpr uint64_t enough = 64; // words of an operand
    if (!std::holds_alternative<layout::Blocked>(work.encoding().kind))
      return 0;
    const int64_t rank = dot.getType().getRank();
    const auto words = [&](int64_t k) {
      uint64_t most = 0;
      for (unsigned i = 0; i < 2; ++i) {
        OpOperand &operand = dot->getOpOperand(i);
        const auto type = cast<RankedTensorType>(operand.get().getType());
        const std::optional<LayoutAttr> layout = tile_gpu::operandLayout(operand, work);
        if (tile_gpu::layoutAttrOf(type) || !layout || !tile_gpu::fits(type, *layout))
          return uint64_t(0);
        Sizes shape(type.getShape().begin(), type.getShape().end());
        shape[static_cast<size_t>(rank - (i == 0 ? 1 : 2))] = k;
        most = std::max(most, tile_gpu::threadWords(RankedTensorType::get(shape, type.getElementType(), *layout)));
      }
      return most;
    };
    const auto a = cast<RankedTensorType>(dot.getLhs().getType());
    if (words(a.getDimSize(rank - 1)) <= tile_gpu::maxThreadWords)
      return 0;
    int64_t part = extentsOf(dot).coreK;
    while (part > 1 && words(part) > enough)
      part /= 2;
    return part;
  }

  /// The product as a loop over parts of K, which are read from shared memory; what is left is the loop's product.
  tile::DotOp inParts(tile::DotOp dot, int64_t part) {
    OpBuilder b(dot);
    const Location loc = dot.getLoc();
    const Type i32 = b.getI32Type();
    const auto number = [&](int64_t v) -> Value { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(i32, v)); };
    const auto lhs = cast<RankedTensorType>(dot.getLhs().getType());
    const int64_t rank = lhs.getRank(), k = lhs.getDimSize(rank - 1);
    auto loop = scf::ForOp::create(b, loc, number(0), number(k), number(part), ValueRange{dot.getAccumulator()});
    dot.getResult().replaceAllUsesWith(loop.getResult(0));
    b.setInsertionPointToStart(loop.getBody());
    const auto row = RankedTensorType::get({part}, i32);
    const Value numbers = arith::AddIOp::create(
        b, loc, tile::SplatOp::create(b, loc, row, loop.getInductionVar()),
        tile::RangeOp::create(b, loc, row, b.getI32IntegerAttr(0), b.getI32IntegerAttr(static_cast<int32_t>(part))));
    const auto partOf = [&](Value operand, int64_t axis) -> Value {
      const auto type = cast<RankedTensorType>(operand.getType());
      Sizes thin{part};
      Value at = numbers;
      for (int64_t d = 0; d < rank; ++d)
        if (d != axis) {
          thin.insert(thin.begin() + d, 1);
          at = tile::ExpandDimsOp::create(b, loc, RankedTensorType::get(thin, i32), at,
                                          b.getI32IntegerAttr(static_cast<int32_t>(d)));
        }
      Sizes shape(type.getShape().begin(), type.getShape().end());
      shape[static_cast<size_t>(axis)] = part;
      at = tile::BroadcastOp::create(b, loc, RankedTensorType::get(shape, i32), at);
      return tile::GatherOp::create(b, loc, RankedTensorType::get(shape, type.getElementType()), operand, at,
                                    b.getI32IntegerAttr(static_cast<int32_t>(axis)));
    };
    const Value a = partOf(dot.getLhs(), rank - 1), c = partOf(dot.getRhs(), rank - 2);
    auto inner = cast<tile::DotOp>(b.clone(*dot));
    inner->setOperands({a, c, loop.getRegionIterArg(0)});
    scf::YieldOp::create(b, loc, inner.getResult());
    dot.erase();
    return inner;
  }

  LogicalResult anchor(tile::DotOp dot, LayoutAttr work) {
    OpBuilder b(dot);
    const auto convert = [&](Value v, LayoutAttr layout) {
      return tile_gpu::ConvertLayoutOp::create(b, dot.getLoc(), tile_gpu::withLayout(v.getType(), layout), v);
    };
    llvm::SmallVector<LayoutAttr> layouts;
    for (OpOperand &operand : dot->getOpOperands()) {
      if (tile_gpu::isOfWarpgroups(work) && operand.getOperandNumber() < 2) {
        const bool isLeft = operand.getOperandNumber() == 0;
        const auto type = cast<RankedTensorType>(operand.get().getType());
        std::optional<LayoutAttr> layout;
        if (isLeft && copied.contains(dot) && fromRegisters.contains(dot))
          layout = tile_gpu::dotOperandLayout(work, 0, type);
        else if (!isLeft && reordered.contains(dot))
          layout = turningLayout(type, warps);
        layouts.push_back(layout.value_or(LayoutAttr())); // none: any
        continue;
      }
      const std::optional<LayoutAttr> layout = tile_gpu::operandLayout(operand, work);
      if (!layout || !tile_gpu::fits(operand.get().getType(), *layout))
        return dot->emitError() << "no layout for the operand " << operand.get().getType() << " of a dot in "
                                << work.text();
      layouts.push_back(*layout);
    }
    for (auto [operand, layout] : llvm::zip_equal(dot->getOpOperands(), layouts))
      if (layout && !tile_gpu::layoutAttrOf(operand.get().getType()))
        operand.set(convert(operand.get(), layout));
    const Type plain = dot.getType();
    dot.getResult().setType(tile_gpu::withLayout(plain, work));
    b.setInsertionPointAfter(dot);
    auto result = tile_gpu::ConvertLayoutOp::create(b, dot.getLoc(), cast<RankedTensorType>(plain), dot.getResult());
    dot.getResult().replaceAllUsesExcept(result, result);
    return success();
  }

  func::FuncOp f;
  const Target &target;
  const int64_t warps;
  bool tilesAreSmall = false;
  llvm::DenseSet<Operation *> copied;               ///< products whose tiles are read where they were copied
  llvm::DenseSet<Operation *> reordered;            ///< products of 8 bits with K in the order of accumulators
  llvm::DenseSet<Operation *> fromRegisters;        ///< of these, with a left tile that the loop computes
  std::set<std::vector<int64_t>> withoutWarpgroups; ///< shapes of results
  llvm::DenseSet<Operation *> inSquares;            ///< whatever they are chained with
  llvm::DenseMap<std::pair<Value, Block *>, Value> rounded;
};

struct AccelerateDot : impl::AccelerateDotBase<AccelerateDot> {
  void runOnOperation() override {
    for (func::FuncOp f : getOperation().getOps<func::FuncOp>()) {
      tile::DotOp first;
      f.walk([&](tile::DotOp dot) { first = first ? first : dot; });
      if (!first)
        continue;
      Result<const Target *> target = tile_gpu::targetOf(f);
      if (!target) {
        (void)tile_gpu::report(first, target.takeStatus());
        return signalPassFailure();
      }
      if (failed(Accelerator(f, **target).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace kiln
