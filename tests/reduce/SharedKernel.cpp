#include "tests/reduce/SharedKernel.h"

#include "compiler/passes/Passes.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>

namespace kiln::test {

using layout::Sizes;

SharedStage throughShared(std::string_view text, std::string_view target, std::int64_t scratchBytes) {
  SharedStage out;
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                  mlir::ub::UBDialect, tile::TileDialect, tile_gpu::TileGpuDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &d) { out.errors += d.str() + "\n"; });
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(llvm::StringRef(text.data(), text.size()), &context);
  if (!module)
    return out;
  (*module)->setAttr(tile_gpu::targetAttr, mlir::StringAttr::get(&context, llvm::StringRef(target)));
  mlir::PassManager pm(&context);
  ExpandSharedOptions expand;
  expand.scratchBytes = scratchBytes;
  pm.addPass(createExpandShared(expand));
  pm.addPass(createAllocateShared());
  pm.addPass(createInsertBarriers());
  pm.addPass(createVerifyBarriers());
  if (mlir::failed(pm.run(*module))) {
    out.errors += "a pass failed";
    return out;
  }
  for (auto f : module->getOps<mlir::func::FuncOp>())
    if (auto bytes = f->getAttrOfType<mlir::IntegerAttr>(tile_gpu::sharedBytesAttr))
      out.sharedBytes = static_cast<std::uint32_t>(bytes.getInt());
  llvm::raw_string_ostream stream(out.text);
  module->print(stream);
  return out;
}

std::string TileKernel::view(const std::string &name, const Sizes &shape, const std::string &element,
                             std::string &zeros) {
  const std::string type = "!tile.view<" + extents(shape) + "x" + element + ">";
  std::string sizes, strides;
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    const std::string n = name + std::to_string(d);
    code += "    %n" + n + " = arith.constant " + std::to_string(shape[d]) + " : i64\n    %s" + n +
            " = arith.constant " + std::to_string(stride) + " : i64\n";
  }
  code += "    %z" + name + " = arith.constant 0 : i64\n";
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::string comma = d ? ", " : "", n = name + std::to_string(d);
    sizes += comma + "%n" + n;
    strides += comma + "%s" + n;
    zeros += comma + "%z" + name;
  }
  code += "    %v" + name + " = tile.make_view %p" + name + ", extents [" + sizes + "], strides [" + strides +
          "] : " + type + ", i64\n";
  return type;
}

void TileKernel::input(const std::string &name, const Sizes &shape, const std::string &element,
                       const layout::Encoding &encoding) {
  parameters += (parameters.empty() ? "%p" : ", %p") + name + ": !tile.ptr<" + element + ">";
  std::string zeros;
  const std::string type = view(name, shape, element, zeros);
  code += "    %" + name + " = tile.load_view %v" + name + "[" + zeros + "] : " + type + ", i64 -> " +
          tensorType(shape, element, encoding) + "\n";
}

void TileKernel::output(const std::string &value, const Sizes &shape, const std::string &element,
                        const layout::Encoding *encoding) {
  std::string name = "o" + value; // value may be "r#1"
  std::replace(name.begin(), name.end(), '#', '_');
  parameters += (parameters.empty() ? "%p" : ", %p") + name + ": !tile.ptr<" + element + ">";
  if (shape.empty()) {
    code += "    tile.store %p" + name + ", %" + value + " : !tile.ptr<" + element + ">\n";
    return;
  }
  std::string zeros;
  const std::string type = view(name, shape, element, zeros);
  code += "    tile.store_view %v" + name + "[" + zeros + "], %" + value + " : " + type + ", i64, " +
          tensorType(shape, element, *encoding) + "\n";
}

std::string TileKernel::text() const {
  return kernelModule(parameters, code, warps);
}

std::string TileKernel::run(Emulator &gpu, std::string_view target, const std::vector<Argument> &arguments,
                            std::int64_t scratchBytes) const {
  const SharedStage stage = throughShared(text(), target, scratchBytes);
  if (!stage.errors.empty())
    return stage.errors + "\n" + text() + "\n" + stage.text;
  return runKernel(gpu, target, stage.text, warps, arguments).error;
}

std::size_t volume(const Sizes &shape) {
  std::size_t n = 1;
  for (std::int64_t extent : shape)
    n *= static_cast<std::size_t>(extent);
  return n;
}

Sizes without(const Sizes &shape, unsigned axis) {
  Sizes out(shape);
  out.erase(out.begin() + axis);
  return out;
}

layout::Encoding sliced(const layout::Encoding &encoding, unsigned axis) {
  return layout::Slice{axis, encoding};
}

TileCase randomCase(std::mt19937_64 &random, unsigned maxBits) {
  static constexpr const char *targets[] = {"sm_75", "sm_80", "sm_90a", "sm_120a"};
  static constexpr std::int64_t budgets[] = {1024, 4096, 49152};
  for (;;) {
    TileCase c{
        static_cast<unsigned>(random() % 4), 0, {}, layout::Blocked{}, targets[random() % 4], budgets[random() % 3]};
    const unsigned rank = 1 + static_cast<unsigned>(random() % 3);
    c.shape = randomShape(random, rank, maxBits);
    c.axis = static_cast<unsigned>(random() % rank);
    c.encoding = randomLayout(random, c.shape, c.logWarps);
    auto tile = layout::TileLayout::create(c.encoding, c.shape);
    if (tile && tile->registers() <= 128 &&
        layout::TileLayout::create(sliced(c.encoding, c.axis), without(c.shape, c.axis)))
      return c;
  }
}

} // namespace kiln::test
