//===- Dialects.h - What Kiln's compiler reads ------------------------------===//
//
// The dialects and interfaces of every stage, and the registration of every pass and pipeline: one list for kiln-opt,
// the JIT and the tests.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_DIALECTS_H
#define KILN_PIPELINE_DIALECTS_H

namespace mlir {
class DialectRegistry;
}

namespace kiln {

/// tile, tile_gpu, those of upstream that kernels use, those that lowering produces, and their translations.
void registerDialects(mlir::DialectRegistry &registry);

/// Every pass and stage under its name.  Process-wide, done once however often it is called.
void registerPasses();

/// kiln-opt's main: MLIR's options and passes, and `--emit-ptx [--line-info]` after --kiln-stage-lowering.
int optMain(int argc, char **argv);

} // namespace kiln

#endif // KILN_PIPELINE_DIALECTS_H
