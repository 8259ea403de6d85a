// kiln-opt: MLIR's opt driver with Kiln's dialects and passes, and `--emit-ptx` for what the last stage leaves.
#include "compiler/pipeline/Dialects.h"

#include "compiler/codegen/Ptx.h"
#include "compiler/pipeline/ParserLimits.h"
#include "compiler/pipeline/Plugins.h"
#include "compiler/tile_gpu/TileGpu.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace kiln {
namespace {

/// Collects the PTX of every module that it sees: one, or with --split-input-file several.
struct EmitPtx : PassWrapper<EmitPtx, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmitPtx)
  EmitPtx(std::string &text, bool lineInfo) : text(text), lineInfo(lineInfo) {}
  llvm::StringRef getName() const override { return "EmitPtx"; }

  void runOnOperation() override {
    const Result<const Target *> target = tile_gpu::targetOf(getOperation());
    if (!target) {
      (void)tile_gpu::report(getOperation(), target.status());
      return signalPassFailure();
    }
    // The module is of no further use afterwards, and MLIR still prints it.
    OwningOpRef<ModuleOp> module = getOperation().clone();
    PtxOptions options;
    options.target = *target;
    options.lineInfo = lineInfo;
    FailureOr<PtxOutput> made = emitPtx(*module, options);
    if (failed(made))
      return signalPassFailure();
    text += made->ptx;
  }

  std::string &text;
  const bool lineInfo;
};

int fail(llvm::StringRef why) {
  llvm::errs() << "kiln-opt: " << why << "\n";
  return 1;
}

/// MLIR prints the operation of each diagnostic in a note, often the whole module; here only who asks for it sees that.
std::vector<char *> withUsualOptions(int argc, char **argv) {
  static char quiet[] = "--mlir-print-op-on-diagnostic=false";
  std::vector<char *> words(argv, argv + argc);
  if (llvm::none_of(words, [](llvm::StringRef w) { return w.contains("-mlir-print-op-on-diagnostic"); }))
    words.insert(words.begin() + std::min(argc, 1), quiet);
  words.push_back(nullptr);
  return words;
}

/// Ok, or where the text would end MLIR's parser.
LogicalResult checkText(llvm::StringRef file, llvm::StringRef text) {
  if (text.starts_with("ML\xefR")) // bytecode
    return success();
  const ParserLimit limit = checkParserLimits(text);
  if (!limit.line)
    return success();
  llvm::errs() << file << ":" << limit.line << ":" << limit.column << ": error: " << limit.message << " ("
               << limit.remedy << ")\n";
  return failure();
}

} // namespace

int optMain(int givenArgc, char **givenArgv) {
  std::vector<char *> words = withUsualOptions(givenArgc, givenArgv);
  const int argc = static_cast<int>(words.size()) - 1;
  char **const argv = words.data();
  llvm::sys::PrintStackTraceOnErrorSignal(argc ? argv[0] : "kiln-opt");
  const llvm::PrettyStackTraceProgram stack(argc, argv);
  static llvm::cl::opt<bool> emitsPtx(
      "emit-ptx", llvm::cl::desc("print PTX in place of the module, which must be what kiln-stage-lowering leaves"));
  static llvm::cl::opt<bool> lineInfo("line-info", llvm::cl::desc("with --emit-ptx: source lines in the PTX"));
  DialectRegistry registry;
  registerDialects(registry);
  registerPasses();
  if (const Status s = loadPluginsOf(argc, argv); !s.ok())
    return fail(s.toString());
  const auto [input, output] = registerAndParseCLIOptions(argc, argv, "Kiln's passes and stages\n", registry);
  const MlirOptMainConfig passes = MlirOptMainConfig::createFromCLOptions();
  if (passes.shouldShowDialects() || passes.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));

  std::string error, ptx;
  std::unique_ptr<llvm::MemoryBuffer> text = openInputFile(input, &error);
  if (!text)
    return fail(error);
  if (failed(checkText(text->getBufferIdentifier(), text->getBuffer())))
    return 1;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(output, &error);
  if (!file)
    return fail(error);
  if (!emitsPtx) {
    if (failed(MlirOptMain(file->os(), std::move(text), registry, passes)))
      return 1;
    file->keep();
    return 0;
  }
  MlirOptMainConfig config = passes;
  config.setPassPipelineSetupFn([&](PassManager &pm) {
    if (failed(passes.setupPassPipeline(pm)))
      return failure();
    pm.addPass(std::make_unique<EmitPtx>(ptx, lineInfo));
    return success();
  });
  if (failed(MlirOptMain(llvm::nulls(), std::move(text), registry, config)))
    return 1;
  file->os() << ptx;
  file->keep();
  return 0;
}

} // namespace kiln
