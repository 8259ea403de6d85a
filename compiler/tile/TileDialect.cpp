#include "compiler/target/KernelOptions.h"
#include "compiler/tile/Tile.h"

#include "compiler/layout/TileLayout.h"
#include "compiler/target/Target.h"
#include "compiler/tile/PrintSlice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/SetVector.h"

#include "compiler/tile/TileDialect.cpp.inc"

#include "compiler/tile/TileEnums.cpp.inc"

using namespace mlir;

namespace kiln::tile {
namespace {

/// Helper functions of a kernel are inlined into it.
struct InlineInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final { return true; }
  void handleTerminator(Operation *, ValueRange) const final {}
};

LogicalResult verifyKernel(Operation *op, NamedAttribute attr) {
  auto f = dyn_cast<func::FuncOp>(op);
  if (!f)
    return op->emitError() << attr.getName() << " belongs to a func.func";
  if (!isa<UnitAttr>(attr.getValue()))
    return op->emitError() << attr.getName() << " takes no value";
  if (f.getNumResults() != 0)
    return op->emitError() << "kernel '" << f.getName() << "' returns values: kernels write to memory instead";
  for (unsigned i = 0; i < f.getNumArguments(); ++i) {
    const Type t = f.getArgumentTypes()[i];
    // Exactly these: others have no place in a parameter list, and LLVM ends the process on some of them.
    const bool number =
        isa<PtrType, Float16Type, BFloat16Type, Float32Type, Float64Type, Float8E4M3FNType, Float8E5M2Type>(t) ||
        t.isSignlessInteger(8) || t.isSignlessInteger(16) || t.isSignlessInteger(32) || t.isSignlessInteger(64);
    const bool hidden = isHidden(t);
    if (!hidden && i > 0 && isHidden(f.getArgumentTypes()[i - 1]))
      return op->emitError() << "kernel '" << f.getName() << "': " << argumentName(f, i)
                             << " comes after one that the launcher makes, of type " << f.getArgumentTypes()[i - 1]
                             << ": those come last";
    if (!number && !hidden)
      return op->emitError() << "kernel '" << f.getName() << "': " << argumentName(f, i) << " has the type " << t
                             << ": arguments are !tile.ptr, i8 to i64 and floating-point numbers of 8 to 64 bits";
  }
  return success();
}

} // namespace

void TileDialect::initialize() {
  registerTypes();
  registerOps();
  addInterfaces<InlineInterface>();
}

void TileDialect::registerOps() {
  addOperations<
#define GET_OP_LIST
#include "compiler/tile/TileOps.cpp.inc"
      >();
}

Operation *TileDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

/// A signless integer in least .. most.
static bool isInteger(Attribute attr, int64_t least, int64_t most) {
  auto n = dyn_cast<IntegerAttr>(attr);
  return n && n.getType().isSignlessInteger() && n.getInt() >= least && n.getInt() <= most;
}

/// Of a kernel's option of three extents, of which the last may be left out.
static LogicalResult verifyExtents(Operation *op, const KernelExtentsInfo &option, NamedAttribute attr) {
  auto extents = dyn_cast<DenseI32ArrayAttr>(attr.getValue());
  if (!isa<func::FuncOp>(op) || !extents || extents.empty() || extents.size() > 3 ||
      !option.arePowersOfTwo(extents.asArrayRef()))
    return op->emitError() << attr.getName().getValue() << " is " << attr.getValue() << ": of a func.func, the "
                           << option.unit << " of a " << option.field << " along x, y and "
                           << "z, powers of two, as in array<i32: 2, 1, 1>";
  if (const int64_t product = option.product(extents.asArrayRef()); product > option.most)
    return op->emitError() << attr.getName().getValue() << " is " << attr.getValue() << ", " << product << " "
                           << option.unit << ": a " << option.field << " has at most " << option.most
                           << "; make an extent smaller";
  return success();
}

static LogicalResult verifyPrintSlice(Operation *op, Attribute value) {
  auto print = dyn_cast<PrintOp>(op);
  if (!print)
    return op->emitError() << printSliceAttr << " is for tile.print, not for " << op->getName();
  auto slice = dyn_cast<DenseI64ArrayAttr>(value);
  for (Type type : print.getValues().getTypes()) {
    auto tile = dyn_cast<RankedTensorType>(type);
    bool good = slice && tile && slice.size() == 2 * tile.getRank();
    for (int64_t d = 0; good && d < tile.getRank(); ++d)
      good = slice[2 * d] >= 0 && slice[2 * d] < slice[2 * d + 1] && slice[2 * d + 1] <= tile.getDimSize(d);
    if (!good)
      return op->emitError() << printSliceAttr << " is " << value << ": of " << type
                             << " begin and end of each dimension, 0 <= begin < end <= extent, as in array<i64: 0, 4>";
  }
  return success();
}

// Tile.h names what passes read.
static_assert(kernelOption("warps").standard == defaultNumWarps && kernelOption("stages").most == maxNumStages &&
              kernelOption("assemblerLevel").most == maxAssemblerLevel);
static_assert([] {
  for (const KernelExtentsInfo &option : kernelExtents)
    if (option.field == "cluster")
      return static_cast<unsigned>(option.most) == portableClusterBlocks;
  return false;
}());

/// Warps that compute and warps that copy are one block's.
static LogicalResult verifyWarps(Operation *op, StringRef name) {
  auto kernel = dyn_cast<func::FuncOp>(op);
  if (name != copyWarpsAttr || !kernel)
    return success();
  constexpr unsigned most = kernelOption("warps").most;
  const unsigned all = numWarps(kernel) + numCopyWarps(kernel);
  if (all <= most)
    return success();
  return op->emitError() << numWarpsAttr << " and " << copyWarpsAttr << " are " << all << " together: a block has at most "
                         << most << " warps";
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  if (attr.getName() == kernelAttr)
    return verifyKernel(op, attr);
  if (attr.getName() == numStagesAttr && !isa<func::FuncOp>(op) && op->getName().getStringRef() != "scf.for")
    return op->emitError() << numStagesAttr << " is for func.func and scf.for, not for " << op->getName();
  const StringRef name = attr.getName().getValue();
  // Tiles ask for a power of two warps (checkWarps of tile_gpu), a block does not: three warpgroups are 12 warps.
  for (const KernelOptionInfo &option : kernelOptions)
    if (name == "tile." + Twine(option.attribute).str()) {
      if (!isInteger(attr.getValue(), option.least, option.most))
        return op->emitError() << name << " is " << attr.getValue() << ": " << option.rule();
      return verifyWarps(op, name);
    }
  for (const KernelExtentsInfo &option : kernelExtents)
    if (name == "tile." + Twine(option.attribute).str())
      return verifyExtents(op, option, attr);
  if (attr.getName() == unrollAttr) {
    if (op->getName().getStringRef() != "scf.for")
      return op->emitError() << unrollAttr << " is for scf.for, not for " << op->getName();
    if (!isInteger(attr.getValue(), 1, maxUnroll))
      return op->emitError() << unrollAttr << " is " << attr.getValue() << ": a loop's body is repeated 1 to "
                             << maxUnroll << " times";
    return success();
  }
  if (attr.getName() == printSliceAttr)
    return verifyPrintSlice(op, attr.getValue());
  std::string numbers, extents;
  for (const KernelOptionInfo &option : kernelOptions)
    numbers += ", tile." + std::string(option.attribute);
  for (const KernelExtentsInfo &option : kernelExtents)
    extents += ", tile." + std::string(option.attribute);
  return op->emitError() << "unknown attribute " << attr.getName() << ": operations may have " << kernelAttr << numbers
                         << ", " << unrollAttr << extents << " and " << printSliceAttr;
}

/// tile.specialize and tile.element.
static LogicalResult verifySpecialization(func::FuncOp f, unsigned argument, NamedAttribute attr) {
  const Type type = f.getArgumentTypes()[argument];
  const bool counts = type.isInteger(32) || type.isInteger(64);
  auto how = f.getArgAttrOfType<StringAttr>(argument, specializeAttr);
  const llvm::StringRef name = how ? how.getValue() : "";
  if (attr.getName() == elementAttr) {
    auto element = dyn_cast<TypeAttr>(attr.getValue());
    if (element && element.getValue().isIntOrFloat() && counts && (name == "divisibility" || name == "stride"))
      return success();
    return f.emitError() << argumentName(f, argument) << ": " << elementAttr
                         << " is the type of the elements that an i32 "
                         << "or i64 counts, which is specialised by divisibility or as a stride (" << specializeAttr
                         << ")";
  }
  if (name == "none" || (name == "divisibility" && (counts || isa<PtrType>(type))) || (name == "stride" && counts) ||
      (name == "value" && type.isInteger()))
    return success();
  return f.emitError()
         << argumentName(f, argument) << ": " << specializeAttr << " is " << attr.getValue()
         << ": \"none\", \"divisibility\" (of a pointer, an i32 or an i64), \"stride\" (an i32 or an i64) "
         << "or \"value\" (of an integer)";
}

LogicalResult TileDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument, NamedAttribute attr) {
  auto f = dyn_cast<func::FuncOp>(op);
  // A kernel at stage llvm keeps what a caller has to know, and so does one on its way there.
  if (auto any = dyn_cast<FunctionOpInterface>(op);
      any && (!f || isa<LLVM::LLVMPointerType>(f.getArgumentTypes()[argument])))
    if ((attr.getName() == nameAttr && isa<StringAttr>(attr.getValue())) ||
        (attr.getName() == elementAttr && isa<TypeAttr>(attr.getValue())) ||
        ((attr.getName() == divisibilityAttr || attr.getName() == equalsAttr) && isa<IntegerAttr>(attr.getValue())))
      return success();
  if (!f)
    return op->emitError() << attr.getName() << " belongs to an argument of a func.func";
  const std::string name = argumentName(f, argument);
  if (attr.getName() == nameAttr)
    return isa<StringAttr>(attr.getValue()) ? success() : op->emitError() << nameAttr << " must be a string";
  if (attr.getName() == noaliasAttr) {
    if (isa<UnitAttr>(attr.getValue()) && isa<PtrType>(f.getArgumentTypes()[argument]))
      return success();
    return op->emitError() << name << ": " << noaliasAttr << " is a unit attribute of a pointer";
  }
  if (attr.getName() == divisibilityAttr) {
    auto d = dyn_cast<IntegerAttr>(attr.getValue());
    const Type t = f.getArgumentTypes()[argument];
    if (!d || d.getInt() < 1 || !(isa<PtrType>(t) || t.isInteger()))
      return op->emitError() << name << ": " << divisibilityAttr
                             << " is a positive integer, of a pointer or an integer argument";
    return success();
  }
  if (attr.getName() == equalsAttr) {
    auto value = dyn_cast<IntegerAttr>(attr.getValue());
    if (value && value.getType() == f.getArgumentTypes()[argument] && value.getType().isInteger())
      return success();
    return op->emitError() << name << ": " << equalsAttr << " is an integer of the argument's type";
  }
  if (attr.getName() == elementAttr || attr.getName() == specializeAttr)
    return verifySpecialization(f, argument, attr);
  return op->emitError() << name << ": unknown attribute " << attr.getName() << ": arguments may have " << nameAttr
                         << ", " << noaliasAttr << ", " << divisibilityAttr << ", " << equalsAttr << ", "
                         << specializeAttr << " and " << elementAttr;
}

unsigned numWarps(func::FuncOp kernel) {
  auto n = kernel->getAttrOfType<IntegerAttr>(numWarpsAttr);
  return n ? static_cast<unsigned>(n.getInt()) : defaultNumWarps;
}

unsigned numCopyWarps(func::FuncOp kernel) {
  auto n = kernel->getAttrOfType<IntegerAttr>(copyWarpsAttr);
  return n ? static_cast<unsigned>(n.getInt()) : 0;
}

std::array<int32_t, 3> clusterOf(func::FuncOp kernel) {
  std::array<int32_t, 3> out{1, 1, 1};
  if (auto extents = kernel->getAttrOfType<DenseI32ArrayAttr>(clusterAttr))
    llvm::copy(extents.asArrayRef(), out.begin());
  return out;
}

unsigned numVisibleArguments(func::FuncOp kernel) {
  return static_cast<unsigned>(llvm::count_if(kernel.getArgumentTypes(), [](Type t) { return !isHidden(t); }));
}

unsigned numStages(Operation *loop) {
  auto n = loop->getAttrOfType<IntegerAttr>(numStagesAttr);
  if (auto kernel = loop->getParentOfType<func::FuncOp>(); kernel && !n)
    n = kernel->getAttrOfType<IntegerAttr>(numStagesAttr);
  return n ? static_cast<unsigned>(n.getInt()) : 1;
}

std::string argumentName(func::FuncOp kernel, unsigned index) {
  if (auto name = dyn_cast_or_null<StringAttr>(kernel.getArgAttr(index, nameAttr)))
    return "'" + name.str() + "'";
  return "argument " + std::to_string(index);
}

llvm::StringRef memoryName(Value memory) {
  llvm::StringRef name;
  llvm::SetVector<Value> seen;
  seen.insert(memory);
  for (size_t i = 0; i < seen.size(); ++i) {
    const Value v = seen[i];
    if (auto argument = dyn_cast<BlockArgument>(v)) {
      Operation *parent = argument.getOwner()->getParentOp();
      if (auto f = dyn_cast<func::FuncOp>(parent); f && argument.getOwner()->isEntryBlock()) {
        auto its = dyn_cast_or_null<StringAttr>(f.getArgAttr(argument.getArgNumber(), nameAttr));
        if (!its || (!name.empty() && its.getValue() != name))
          return {};
        name = its.getValue();
        continue;
      }
      auto loop = dyn_cast<LoopLikeOpInterface>(parent);
      OpOperand *init = loop ? loop.getTiedLoopInit(argument) : nullptr;
      OpOperand *next = init ? loop.getTiedLoopYieldedValue(argument) : nullptr;
      if (!next)
        return {};
      seen.insert(init->get());
      seen.insert(next->get());
      continue;
    }
    Operation *op = v.getDefiningOp();
    if (op->getNumRegions())
      return {};
    bool any = false;
    for (Value operand : op->getOperands())
      if (isa<ViewType>(operand.getType()) || isa<PtrType>(elementTypeOf(operand.getType()))) {
        seen.insert(operand);
        any = true;
      }
    if (!any)
      return {};
  }
  return name;
}

} // namespace kiln::tile
