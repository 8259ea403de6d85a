//===- Lowering.h - Tiles become scalars of a thread ------------------------===//
//
// kiln-lower-tiles is a dialect conversion in which one tile becomes as many scalars as a thread holds registers of it
// (TileLayout::registers(), repetition * core registers + core register), in that order; a scalar stays one value, a
// pointer becomes !llvm.ptr<1>, a view its base, bounds and strides (Views.cpp), a buffer and a scratch a !llvm.ptr<3>.
// No tile ever becomes an LLVM struct.  After it only scalars of arith, math, scf, LLVM and NVVM are left.
//
// One file an op family; each has a populate<Family>Patterns.  Rules for patterns:
//  - the conversion does not roll back: check everything, report with tile_gpu::report and return failure *before* the
//    first operation is made;
//  - make only legal operations (arith, math, scf, llvm, nvvm on scalars);
//  - no pattern allocates shared memory or emits a barrier that is not in its input.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LOWERING_LOWERING_H
#define KILN_LOWERING_LOWERING_H

#include "compiler/analysis/AxisAnalysis.h"
#include "compiler/layout/MemoryAccess.h"
#include "compiler/layout/TilePlanner.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/DialectConversion.h"

#include <bit>
#include <map>
#include <memory>

namespace kiln::lowering {

/// The scalars of one value: of a tile one a register.
using Scalars = llvm::SmallVector<mlir::Value>;

/// LLVM address spaces.
constexpr unsigned globalSpace = 1, sharedSpace = 3, tensorSpace = 6;

/// Shared memory of a kernel, all of it dynamic.
constexpr llvm::StringLiteral sharedSymbol = "kiln_shared";
/// What kiln-lower-tiles leaves on a kernel for kiln-to-llvm: its number of threads, i32.
constexpr llvm::StringLiteral threadsAttr = "tile_gpu.threads";
constexpr llvm::StringLiteral maxRegistersAttr = "tile_gpu.max_registers";
/// A multiprocessor has one block: what warps give to others is the block's.
constexpr llvm::StringLiteral oneBlockAttr = "tile_gpu.one_block";
/// And the blocks of its cluster, if it has one.
constexpr llvm::StringLiteral clusterAttr = "tile_gpu.cluster";

/// What the lowering of one function knows: its target, the layouts of its tiles, and values that every pattern uses.
/// Values that depend only on the thread are made once, at the function's entry.
class LoweringContext {
public:
  /// Checks every tile of the function (a layout that lowers, over the function's warps and one block), so that
  /// layout() cannot fail afterwards.  Reports at the operation that has the tile.
  static std::unique_ptr<LoweringContext> create(mlir::func::FuncOp function);

  const Target &target() const { return *theTarget; }
  unsigned numWarps() const { return warps; }
  unsigned numThreads() const { return (warps + copies) * layout::warpSize; }
  mlir::MLIRContext *context() const { return function.getContext(); }
  mlir::func::FuncOp kernel() const { return function; }

  /// The layout of a tile of this function.
  const layout::TileLayout &layout(mlir::Type tile) const;
  /// The layout of a tile of that type, of this function or not; a failure is reported at `op`.
  const layout::TileLayout *checkedLayout(mlir::Operation *op, mlir::Type tile) const;

  //===--- values of a thread, i32, made at the entry ----------------------===//

  mlir::Value thread() const { return threadId; }
  mlir::Value lane() const { return laneId; }
  mlir::Value warp() const { return warpId; }
  /// Start of shared memory, !llvm.ptr<3>.
  mlir::Value sharedBase() const;

  /// A place of that type in the thread's local memory (generic address), the same one at every call: for values that
  /// are used at once.
  mlir::Value localPlace(mlir::Type type) const;

  /// The xor of the columns at the set bits of lane and warp; null if that is 0 for every thread.
  mlir::Value linear(llvm::ArrayRef<layout::BitVector> laneColumns,
                     llvm::ArrayRef<layout::BitVector> warpColumns) const;
  mlir::Value linear(llvm::ArrayRef<layout::Mask> laneColumns, llvm::ArrayRef<layout::Mask> warpColumns) const;
  /// i1: an odd number of the bits of lane & laneMask and warp & warpMask is set.
  mlir::Value parity(unsigned laneMask, unsigned warpMask) const;
  /// i1: all those bits are 0; null if both masks are 0.
  mlir::Value noneSet(unsigned laneMask, unsigned warpMask) const;
  /// i1: this thread acts for the elements it holds (layout::Owners); null if every thread does.
  mlir::Value owns(const layout::LinearLayout &layout) const;
  /// i1: this is thread 0, which acts where a scalar is stored.
  mlir::Value firstThread() const { return noneSet(layout::warpSize - 1, std::bit_ceil(warps) - 1); }

  /// i1: this is the thread that does what one thread does alone.
  mlir::Value elected() const;

  //===--- memory accesses -------------------------------------------------===//

  /// How many neighbours along which dimension one access of this load or store may move.
  analysis::VectorAccess access(mlir::Operation *memoryOp) const { return accesses.lookup(memoryOp).masked; }
  /// The same where no element is masked out: what a view's access may do wholly inside.
  analysis::VectorAccess unmaskedAccess(mlir::Operation *memoryOp) const { return accesses.lookup(memoryOp).unmasked; }

  /// analysis::beginsAtZero of this asynchronous copy's view.
  bool beginsAtZero(mlir::Operation *copy) const { return accesses.lookup(copy).beginsAtZero; }

  /// How many neighbours the copy engine may add at a time: those that lie together in memory for certain.
  uint32_t contiguousRun(mlir::Operation *bulkAdd) const { return runs.lookup(bulkAdd); }

  /// What this copy's map is made by; nothing is known of it once the kernel's arguments are converted.
  const TensorMapRecipe &recipe(tile_gpu::TensorCopyOp copy) const { return recipes.at(copy); }
  /// One thread executes it; what is around it may be converted already.
  bool isElected(mlir::Operation *op) const { return electedOps.contains(op); }

  //===--- where registers are ---------------------------------------------===//

  /// The coordinate of a register's element along dimension d, i32; made where `builder` stands.
  mlir::Value coordinate(mlir::OpBuilder &builder, mlir::Location loc, const layout::TileLayout &layout, unsigned d,
                         unsigned reg) const;
  /// The part of a coordinate that the thread decides (null: 0), and which bits it may set.
  mlir::Value threadCoordinate(const layout::TileLayout &layout, unsigned d) const;
  static layout::BitVector threadCoordinateBits(const layout::TileLayout &layout, unsigned d);
  /// The part that the register decides: to be xor-ed below the core's extent, then added.
  struct RegisterPart {
    unsigned exclusive = 0; ///< bits that the thread's part may set too: xor
    unsigned added = 0;     ///< the others: add
    bool operator==(const RegisterPart &) const = default;
    bool operator<(const RegisterPart &o) const {
      return exclusive != o.exclusive ? exclusive < o.exclusive : added < o.added;
    }
  };
  static RegisterPart registerCoordinate(const layout::TileLayout &layout, unsigned d, unsigned reg);

private:
  LoweringContext() = default;
  mlir::OpBuilder atEntry() const;
  void findAccesses();

  mutable mlir::func::FuncOp function; // operations are handles without const
  const Target *theTarget = nullptr;
  unsigned warps = 1, copies = 0;
  mlir::Value threadId, laneId, warpId;
  mutable mlir::Operation *last = nullptr; ///< of the operations at the entry
  mutable mlir::Value shared, electedThread;
  mutable llvm::DenseMap<mlir::Type, mlir::Value> places;
  mutable llvm::DenseMap<mlir::Type, std::unique_ptr<layout::TileLayout>> layouts;
  struct Accesses {
    analysis::VectorAccess masked, unmasked;
    bool beginsAtZero = false;
  };
  llvm::DenseMap<mlir::Operation *, Accesses> accesses;
  llvm::DenseMap<mlir::Operation *, uint32_t> runs;
  llvm::DenseMap<mlir::Operation *, TensorMapRecipe> recipes;
  llvm::DenseSet<mlir::Operation *> electedOps;
  mutable std::map<std::vector<layout::BitVector>, mlir::Value> linearValues;
  mutable std::map<std::pair<unsigned, unsigned>, mlir::Value> parities, noneSets;
};

/// Tile, pointer, view and buffer types to lists of scalars.
class TileTypeConverter : public mlir::TypeConverter {
public:
  explicit TileTypeConverter(const LoweringContext &context);
};

/// The scalar type that an element has in a register: !llvm.ptr<1> for pointers, else itself.
mlir::Type scalarType(mlir::Type element);
/// The type in which an element lies in memory, one that LLVM loads: i8 for i1 and 8-bit floats.
mlir::Type memoryType(mlir::Type element);

/// A pattern of this conversion: knows the context.
template <typename Op> class Lowering : public mlir::OpConversionPattern<Op> {
public:
  Lowering(const TileTypeConverter &converter, const LoweringContext &context)
      : mlir::OpConversionPattern<Op>(converter, context.context()), context(context) {}
  using Adaptor = typename mlir::OpConversionPattern<Op>::OneToNOpAdaptor;

protected:
  const LoweringContext &context;
};

/// Replaces an operation of one result.
inline void replace(mlir::ConversionPatternRewriter &rewriter, mlir::Operation *op, Scalars values) {
  llvm::SmallVector<Scalars> lists;
  lists.push_back(std::move(values));
  rewriter.replaceOpWithMultiple(op, std::move(lists));
}

void populateElementwisePatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateShapePatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateMemoryPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateViewPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateAtomicPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateConvertPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateLocalPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateAsyncPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateBulkPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateBarrierPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateMbarrierPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateCheckPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateProgramPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateDotPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);
void populateWarpgroupDotPatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &,
                                  const LoweringContext &);
/// LowerReduce.cpp: tile.reduce and tile.scan.
void populateReducePatterns(mlir::RewritePatternSet &patterns, const TileTypeConverter &, const LoweringContext &);

} // namespace kiln::lowering

#endif // KILN_LOWERING_LOWERING_H
