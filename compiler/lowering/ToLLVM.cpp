#include "compiler/passes/Passes.h"

#include "compiler/tile_gpu/TileGpu.h"

namespace kiln {
#define GEN_PASS_DEF_TOLLVM
#include "compiler/passes/Passes.h.inc"

namespace {

struct ToLLVM : impl::ToLLVMBase<ToLLVM> {
  void runOnOperation() override {}
};

} // namespace
} // namespace kiln
