#include "compiler/passes/Pass.h"

#include "compiler/analysis/AxisAnalysis.h"
#include "compiler/tile_gpu/TileGpu.h"

using namespace mlir;

namespace kiln {
#include "compiler/passes/TestAxisInfo.inc"

namespace {

struct TestAxisInfo : impl::TestAxisInfoBase<TestAxisInfo> {
  void runOnOperation() override {
    Builder b(&getContext());
    getOperation().walk([&](func::FuncOp f) {
      const analysis::AxisAnalysis axes(f);
      auto describe = [&](ValueRange values) {
        llvm::SmallVector<Attribute> texts;
        for (Value v : values) {
          const Type element = tile::elementTypeOf(v.getType());
          if (isa<tile::PtrType>(element) || element.isInteger())
            if (const std::optional<layout::AxisInfo> info = axes.facts(v))
              texts.push_back(b.getStringAttr(info->text()));
        }
        return texts;
      };
      f.walk([&](Operation *op) {
        if (auto texts = describe(op->getResults()); !texts.empty())
          op->setAttr("facts", texts.size() == 1 ? texts.front() : b.getArrayAttr(texts));
        if (op != f && op->getNumRegions() > 0 && !op->getRegion(0).empty())
          if (auto texts = describe(op->getRegion(0).getArguments()); !texts.empty())
            op->setAttr("facts.arguments", b.getArrayAttr(texts));
        if (analysis::accessedTile(op)) {
          const analysis::VectorAccess access = axes.vectorAccess(op);
          op->setAttr("access", b.getStringAttr(std::to_string(access.elements) + " along dimension " +
                                                std::to_string(access.dim)));
        }
      });
    });
  }
};

} // namespace
} // namespace kiln
