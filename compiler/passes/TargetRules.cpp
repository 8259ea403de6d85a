#include "compiler/passes/TargetRules.h"

#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TensorMaps.h"
#include "support/Text.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace kiln {
namespace {

struct Rule {
  const char *what; ///< "a tile shared by several blocks"
  Capability needs;
  bool (*applies)(Operation *op);
};

bool spansBlocks(Operation *op) {
  return llvm::any_of(op->getResultTypes(), [](Type t) {
    const Result<layout::TileLayout> layout = tile_gpu::layoutOf(t);
    return layout && layout->core().bits(layout::InDim::Block) > 0;
  });
}

bool isProductOfWarpgroups(Operation *op) {
  auto dot = dyn_cast<tile::DotOp>(op);
  return dot && tile_gpu::readsShared(dot);
}

constexpr Rule rules[] = {
    {"a tile spread over the blocks of a cluster", Capability::Clusters, spansBlocks},
    {"a product of warpgroups", Capability::Wgmma, isProductOfWarpgroups},
};

std::string targetsWith(Capability capability) {
  std::string have;
  for (const Target &t : allTargets())
    if (t.has(capability))
      have += (have.empty() ? "" : ", ") + std::string(t.name);
  return "targets that have it: " + have;
}

/// `what`: "tile.dot: a product of warpgroups"
Status lacking(const std::string &what, Capability needs, const Target &target) {
  return Status(StatusCode::Unsupported,
                format("%s needs the capability '%s', which %s lacks", what.c_str(),
                       std::string(capabilityName(needs)).c_str(), std::string(target.name).c_str()),
                targetsWith(needs));
}

} // namespace

std::array<int32_t, 3> clusterOf(FunctionOpInterface kernel) {
  if (auto function = dyn_cast<func::FuncOp>(kernel.getOperation()))
    return tile::clusterOf(function);
  std::array<int32_t, 3> out{1, 1, 1};
  if (auto extents = kernel->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getClusterDimAttrName()))
    std::copy_n(extents.asArrayRef().begin(), std::min<size_t>(extents.size(), out.size()), out.begin());
  return out;
}

Status checkLaunch(FunctionOpInterface kernel, const Target &target) {
  const auto lacks = [&](Capability capability) {
    return format("%s has none: it lacks the capability '%s'", std::string(target.name).c_str(),
                  std::string(capabilityName(capability)).c_str());
  };
  const std::string name = kernel.getName().str();
  const auto [x, y, z] = clusterOf(kernel);
  if ((x != 1 || y != 1 || z != 1) && !target.has(Capability::Clusters))
    return Status(StatusCode::Unsupported,
                  format("kernel '%s' asks for clusters of %d x %d x %d blocks, ", name.c_str(), x, y, z) +
                      lacks(Capability::Clusters),
                  "leave the cluster out; " + targetsWith(Capability::Clusters));
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (tile_gpu::recipeOf(kernel, i) && !target.has(Capability::Tma))
      return Status(StatusCode::Unsupported,
                    format("argument %u of kernel '%s' is a tensor map, ", i, name.c_str()) + lacks(Capability::Tma),
                    "load without tensor maps; " + targetsWith(Capability::Tma));
  return {};
}

Status checkTarget(Operation *op, const Target &target) {
  const std::string name = op->getName().getStringRef().str();
  const CapabilitySet needs = tile_gpu::needsOf(op);
  for (Capability c : allCapabilities())
    if (needs.has(c) && !target.has(c))
      return lacking(name, c, target);
  for (const Rule &rule : rules)
    if (!target.has(rule.needs) && rule.applies(op))
      return lacking(name + ": " + rule.what, rule.needs, target);
  return {};
}

} // namespace kiln
