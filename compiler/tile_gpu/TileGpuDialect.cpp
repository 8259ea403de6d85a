#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include "compiler/tile_gpu/TileGpuDialect.cpp.inc"

using namespace mlir;

namespace kiln::tile_gpu {
namespace {

/// `#blocked` before the first use instead of the whole text at every one.
struct Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attr, llvm::raw_ostream &os) const override {
    if (auto layout = dyn_cast<LayoutAttr>(attr))
      os << llvm::StringRef(layout.encoding().keyword());
    else if (auto shared = dyn_cast<SharedLayoutAttr>(attr))
      os << llvm::StringRef(shared.encoding().keyword());
    else
      return AliasResult::NoAlias;
    return AliasResult::FinalAlias;
  }
};

} // namespace

void TileGpuDialect::initialize() {
  registerTypes();
  registerLayouts();
  registerTensorMaps();
  registerOps();
  addInterfaces<Aliases>();
}

Operation *TileGpuDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

Warps warpsOf(Operation *op) {
  auto kernel = dyn_cast<func::FuncOp>(op);
  if (!kernel)
    kernel = op->getParentOfType<func::FuncOp>();
  if (!kernel)
    return {};
  const unsigned warps = tile::numWarps(kernel);
  for (Region *region = op->getParentRegion(); region; region = region->getParentRegion())
    if (auto roles = dyn_cast_or_null<RolesOp>(region->getParentOp()); roles && region == &roles.getCopies())
      return {warps, tile::numCopyWarps(kernel)};
  if (const unsigned copies = tile::numCopyWarps(kernel); copies && isElected(op))
    return {warps, 1};
  return {0, warps};
}

unsigned threadsOf(func::FuncOp kernel) {
  return layout::warpSize * (tile::numWarps(kernel) + tile::numCopyWarps(kernel));
}

std::optional<RoleRegisters> registersOfRoles(func::FuncOp kernel, const Target &target) {
  if (kernel->hasAttr(tile::maxRegistersAttr)) // the author shares them out
    return std::nullopt;
  return roleRegisters(target, tile::numWarps(kernel), tile::numCopyWarps(kernel));
}

namespace {
template <Capability C> void addNeed(Operation *op, CapabilitySet &set) {
  if (op->hasTrait<Needs<C>::template Impl>())
    set.insert(C);
}
} // namespace

CapabilitySet needsOf(Operation *op) {
  CapabilitySet set;
#define KILN_CAPABILITY(id, text, isa) addNeed<Capability::id>(op, set);
#include "compiler/target/Capabilities.def"
  return set;
}

void TileGpuDialect::registerOps() {
  addOperations<
#define GET_OP_LIST
#include "compiler/tile_gpu/TileGpuOps.cpp.inc"
      >();
}

} // namespace kiln::tile_gpu
