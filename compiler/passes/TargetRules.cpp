#include "compiler/passes/TargetRules.h"

#include "compiler/tile_gpu/LayoutInference.h"
#include "compiler/tile_gpu/TileGpu.h"
#include "support/Text.h"

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

bool copiesBeside(Operation *op) {
  return isa<tile_gpu::AsyncCopyOp, tile_gpu::AsyncCopyViewOp, tile_gpu::AsyncCommitOp, tile_gpu::AsyncWaitOp>(op);
}

bool multipliesByWarpgroups(Operation *op) {
  auto dot = dyn_cast<tile::DotOp>(op);
  return isa<tile_gpu::WarpgroupDotOp>(op) || (dot && tile_gpu::readsShared(dot));
}

/// A new operation that not every target has: a row here.
constexpr Rule rules[] = {
    {"a tile spread over the blocks of a cluster", Capability::Clusters, spansBlocks},
    {"a copy that runs beside the program", Capability::CpAsync, copiesBeside},
    {"a product of warpgroups", Capability::Wgmma, multipliesByWarpgroups},
};

std::string targetsWith(Capability capability) {
  std::string have;
  for (const Target &t : allTargets())
    if (t.has(capability))
      have += (have.empty() ? "" : ", ") + std::string(t.name);
  return "targets that have it: " + have;
}

} // namespace

Status checkLaunch(func::FuncOp kernel, const Target &target) {
  const auto [x, y, z] = tile::clusterOf(kernel);
  if ((x == 1 && y == 1 && z == 1) || target.has(Capability::Clusters))
    return {};
  return Status(StatusCode::Unsupported,
                format("kernel '%s' asks for clusters of %d x %d x %d blocks, %s has none: it lacks the capability '%s'",
                       kernel.getName().str().c_str(), x, y, z, std::string(target.name).c_str(),
                       std::string(capabilityName(Capability::Clusters)).c_str()),
                "leave the cluster out; " + targetsWith(Capability::Clusters));
}

Status checkTarget(Operation *op, const Target &target) {
  for (const Rule &rule : rules) {
    if (target.has(rule.needs) || !rule.applies(op))
      continue;
    return Status(StatusCode::Unsupported,
                  format("%s: %s needs the capability '%s', which %s lacks", op->getName().getStringRef().str().c_str(),
                         rule.what, std::string(capabilityName(rule.needs)).c_str(), std::string(target.name).c_str()),
                  targetsWith(rule.needs));
  }
  return {};
}

} // namespace kiln
