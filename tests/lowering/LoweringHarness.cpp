#include "tests/lowering/LoweringHarness.h"

#include "compiler/codegen/Ptx.h"
#include "compiler/layout/LayoutText.h"
#include "compiler/passes/Passes.h"
#include "compiler/pipeline/Stages.h"
#include "compiler/tile_gpu/TensorMaps.h"
#include "support/Text.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <chrono>

namespace kiln::test {

using layout::Sizes;

namespace {

std::string printed(mlir::ModuleOp module) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  module.print(stream);
  return out;
}

} // namespace

std::string withTensorMaps(std::string_view text, const std::vector<std::string> &recipes) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, tile::TileDialect, tile_gpu::TileGpuDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(llvm::StringRef(text.data(), text.size()), &context);
  if (!module)
    return "not parsed";
  const mlir::func::FuncOp kernel = *module->getOps<mlir::func::FuncOp>().begin();
  for (const std::string &recipe : recipes) {
    auto attribute = llvm::dyn_cast_or_null<tile_gpu::TensorMapRecipeAttr>(mlir::parseAttribute(recipe, &context));
    if (!attribute)
      return "no recipe: " + recipe;
    (void)tile_gpu::tensorMapArgument(kernel, attribute);
  }
  return mlir::succeeded(mlir::verify(*module)) ? printed(*module) : "not verified";
}

LoweredKernel lowered(std::string_view text, std::string_view target, bool keepStages, From from, bool lineInfo) {
  LoweredKernel out;
  mlir::DialectRegistry registry;
  registry
      .insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect, mlir::math::MathDialect,
              mlir::scf::SCFDialect, mlir::ub::UBDialect, tile::TileDialect, tile_gpu::TileGpuDialect>();
  registerPtxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &d) {
    out.errors += d.str() + "\n";
    for (mlir::Diagnostic &note : d.getNotes())
      out.errors += "  note: " + note.str() + "\n";
  });
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(llvm::StringRef(text.data(), text.size()), &context);
  if (!module)
    return out;
  (*module)->setAttr(tile_gpu::targetAttr, mlir::StringAttr::get(&context, llvm::StringRef(target)));
  // Launched here, with the arguments alone: without tensor maps.
  for (auto kernel : module->getOps<mlir::func::FuncOp>())
    kernel->setAttr(tile_gpu::noTensorMapsAttr, mlir::UnitAttr::get(&context));
  const auto start = std::chrono::steady_clock::now();
  mlir::PassManager first(&context), second(&context);
  if (from == From::Tile) {
    if (const Status status = buildTileGpuStage(first, {}); !status.ok()) {
      out.errors += status.toString();
      return out;
    }
  } else if (from == From::Expansion) {
    first.addPass(createExpandShared());
    first.addPass(createAllocateShared());
    first.addPass(createInsertBarriers());
  }
  first.addPass(createLowerTiles());
  second.addPass(createLowerNumbers());
  second.addPass(createToLLVM());
  if (mlir::failed(first.run(*module)))
    return out;
  for (auto kernel : module->getOps<mlir::func::FuncOp>())
    if (auto bytes = kernel->getAttrOfType<mlir::IntegerAttr>(tile_gpu::sharedBytesAttr))
      out.sharedBytes = static_cast<std::uint32_t>(bytes.getInt());
  if (keepStages)
    out.tiles = printed(*module);
  if (mlir::failed(second.run(*module)))
    return out;
  PtxOptions options;
  auto known = findTarget(target);
  if (!known) {
    out.errors += known.status().toString();
    return out;
  }
  options.target = *known;
  options.keepLlvmIr = keepStages;
  options.lineInfo = lineInfo;
  mlir::FailureOr<PtxOutput> ptx = emitPtx(*module, options);
  if (mlir::failed(ptx))
    return out;
  out.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  out.ptx = ptx->ptx;
  out.llvm = ptx->llvmBeforeO3;
  out.ok = true;
  return out;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string attribute(const layout::Encoding &encoding) {
  return "#tile_gpu." + layout::print(encoding);
}
std::string attribute(const layout::SharedEncoding &encoding) {
  return "#tile_gpu." + layout::print(encoding);
}

std::string extents(const Sizes &shape) {
  std::string out;
  for (std::int64_t extent : shape)
    out += (out.empty() ? "" : "x") + std::to_string(extent);
  return out;
}

std::string tensorType(const Sizes &shape, std::string_view element, const layout::Encoding &encoding) {
  return "tensor<" + extents(shape) + "x" + std::string(element) + ", " + attribute(encoding) + ">";
}

std::string kernelModule(std::string_view parameters, std::string_view body, unsigned warps,
                         std::string_view functionAttributes) {
  return "module {\n  func.func @k(" + std::string(parameters) +
         ") attributes {tile.kernel, tile.num_warps = " + std::to_string(warps) + " : i32" +
         std::string(functionAttributes) + "} {\n" + std::string(body) + "    return\n  }\n}\n";
}

KernelRun runKernel(Emulator &gpu, std::string_view target, std::string_view text, unsigned warps,
                    const std::vector<Argument> &arguments, Dim3 grid, From from) {
  KernelRun out;
  const LoweredKernel kernel = lowered(text, target, /*keepStages=*/false, from);
  out.ptx = kernel.ptx;
  if (!kernel.ok) {
    out.error = "does not compile: " + kernel.errors + "\n" + std::string(text);
    return out;
  }
  const Launched launched = gpu.run(kernel.ptx, grid, {warps * 32}, arguments, kernel.sharedBytes, "k");
  if (!launched.clean())
    out.error = launched.text() + "\n" + std::string(text) + "\n" + kernel.ptx;
  return out;
}

//===----------------------------------------------------------------------===//
// Random layouts
//===----------------------------------------------------------------------===//

namespace {

unsigned below(std::mt19937_64 &random, unsigned n) {
  return static_cast<unsigned>(random() % n);
}

/// Powers of two whose product is 2^bits.
Sizes split(std::mt19937_64 &random, unsigned rank, unsigned bits) {
  Sizes out(rank, 1);
  for (unsigned i = 0; i < bits; ++i)
    out[below(random, rank)] *= 2;
  return out;
}

} // namespace

layout::Encoding randomBlocked(std::mt19937_64 &random, unsigned rank, unsigned logWarps) {
  layout::Blocked b;
  b.sizePerThread = split(random, rank, below(random, 5));
  b.threadsPerWarp = split(random, rank, 5);
  b.warpsPerCTA = split(random, rank, logWarps);
  for (unsigned d = 0; d < rank; ++d)
    b.order.push_back(d);
  std::shuffle(b.order.begin(), b.order.end(), random);
  return b;
}

layout::Encoding randomLinear(std::mt19937_64 &random, const Sizes &shape, unsigned logWarps) {
  // The bits of the core, in random order.
  std::vector<Sizes> bits;
  for (std::size_t d = 0; d < shape.size(); ++d)
    for (std::int64_t step = 1; shape[d] % (2 * step) == 0; step *= 2) {
      Sizes basis(shape.size(), 0);
      basis[d] = step;
      bits.push_back(basis);
    }
  std::shuffle(bits.begin(), bits.end(), random);
  layout::Linear out;
  const Sizes zero(shape.size(), 0);
  auto deal = [&](std::vector<Sizes> &into, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      // Now and then a copy.
      if (bits.empty() || below(random, 6) == 0) {
        into.push_back(zero);
        continue;
      }
      into.push_back(bits.back());
      bits.pop_back();
      // A shear: another bit of the core on top, which keeps the map surjective.
      if (!bits.empty() && below(random, 5) == 0)
        for (std::size_t d = 0; d < shape.size(); ++d)
          into.back()[d] += bits.front()[d];
    }
  };
  deal(out.lanes, 5);
  deal(out.warps, logWarps);
  while (!bits.empty())
    deal(out.registers, 1);
  out.shape.clear();
  for (std::int64_t extent : shape)
    out.shape.push_back(extent & -extent);
  return out;
}

layout::Encoding randomLayout(std::mt19937_64 &random, const Sizes &shape, unsigned logWarps) {
  const auto rank = static_cast<unsigned>(shape.size());
  switch (below(random, 3)) {
  case 0:
    return randomBlocked(random, rank, logWarps);
  case 1:
    return randomLinear(random, shape, logWarps);
  default:
    return layout::Slice{static_cast<std::int64_t>(below(random, rank + 1)), randomBlocked(random, rank + 1, logWarps)};
  }
}

Sizes randomShape(std::mt19937_64 &random, unsigned rank, unsigned maxBits) {
  Sizes out = split(random, rank, below(random, maxBits + 1));
  if (below(random, 2)) {
    static constexpr std::int64_t odd[] = {3, 5, 7};
    out[below(random, rank)] *= odd[below(random, 3)];
  }
  return out;
}

} // namespace kiln::test
