#include "compiler/passes/Passes.h"

#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "compiler/passes/Passes.h.inc"

namespace {

struct AssignLayouts : impl::AssignLayoutsBase<AssignLayouts> {
  void runOnOperation() override {}
};

} // namespace
} // namespace kiln
