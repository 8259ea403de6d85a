#include "compiler/pipeline/Compile.h"

#include "compiler/codegen/Ptx.h"
#include "compiler/pipeline/Dialects.h"
#include "compiler/pipeline/Dumps.h"
#include "compiler/pipeline/GivenStage.h"
#include "compiler/pipeline/KernelReport.h"
#include "compiler/pipeline/LoweredKernel.h"
#include "compiler/pipeline/Metadata.h"
#include "compiler/pipeline/ParserLimits.h"
#include "compiler/pipeline/PassWatch.h"
#include "compiler/pipeline/Plugins.h"
#include "compiler/pipeline/Stages.h"
#include "compiler/tile/Tile.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/SourceMgr.h"

#include <chrono>

using namespace mlir;

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;

class Compiler {
public:
  Compiler(const CompileJob &job, JobOutput &out, CompileProgress &progress)
      : job(job), out(out), progress(progress), context(registry(), MLIRContext::Threading::DISABLED),
        collector(context, out.messages), dumps(job, out.messages) {
    context.printOpOnDiagnostic(false);
    // Attributes of ours on a text of other dialects alone are checked, and have types, only if these are there.
    context.loadDialect<tile::TileDialect, tile_gpu::TileGpuDialect>();
  }

  void run() {
    const Result<const Target *> found = findTarget(job.codeTarget);
    if (!found)
      return fail(KILN_COMPILE_INPUT, found.status());
    target = *found;
    for (const std::string &plugin : job.plugins)
      if (const Status s = loadPlugin(plugin); !s.ok())
        return fail(KILN_COMPILE_INPUT, s);
    progress.enter("", "the parser");
    module = parse(job.program, job.fileName.empty() ? "<kernel>" : job.fileName);
    if (!module) {
      out.status = KILN_COMPILE_INPUT;
      return;
    }
    const Stage given = stageOf(*module);
    dumps.begin(kernelName());
    dumps.program();
    if (!mayAddPasses(given) || !mayStateFacts(given))
      return;
    if (given == Stage::Tile && !runTile())
      return;
    if (given == Stage::TileGpu && !takeFinished())
      return;
    if (given == Stage::Llvm && !takeLowered())
      return;
    if (job.emit == Emit::Tile) {
      metadata.milliseconds = milliseconds;
      metadata.passTimes = passTimes;
      out.metadata = toJson(metadata);
      return finish(print());
    }
    if (given == Stage::Tile && !runTileGpu())
      return;
    if (job.emit == Emit::TileGpu)
      return finish(print());
    if (given != Stage::Llvm && !runLowering())
      return;
    emitCode();
  }

private:
  bool runTile() {
    const auto build = [&](PassManager &pm) { return buildTileStage(pm, facts(), job.passes); };
    if (!namesOneKernel())
      out.status = KILN_COMPILE_INPUT; // the stage says what is wrong
    if (!stage(Stage::Tile, "tile", build))
      return false;
    // What takes the stage's place goes through it: it is checked, and made for the same target and facts.
    if (const int replaced = replace(Stage::Tile); replaced < 0 || (replaced > 0 && !stage(Stage::Tile, "tile", build)))
      return false;
    dump(Stage::Tile);
    func::FuncOp kernel = theKernel();
    metadata = describeKernel(kernel);
    metadata.target = std::string(target->name);
    mapsOfText = kernel.getNumArguments() - tile::numVisibleArguments(kernel);
    return true;
  }

  bool runTileGpu() {
    if (!stage(Stage::TileGpu, "tile_gpu", [&](PassManager &pm) { return buildTileGpuStage(pm, job.passes); }))
      return false;
    if (const int replaced = replace(Stage::TileGpu); replaced < 0 || (replaced > 0 && !takeFinished()))
      return false;
    dump(Stage::TileGpu);
    describeResources(theKernel(), metadata);
    if (job.explain)
      metadata.explanation = reportKernel(theKernel(), *target);
    return true;
  }

  bool runLowering() {
    if (!stage(Stage::Llvm, "lowering", [&](PassManager &pm) { return buildLoweringStage(pm, job.passes); }))
      return false;
    if (const int replaced = replace(Stage::Llvm); replaced < 0 || (replaced > 0 && !takeLowered()))
      return false;
    dump(Stage::Llvm);
    return true;
  }

  /// The module is what the tile_gpu stage leaves, written by someone else: its barriers are proved.
  bool takeFinished() {
    const FailureOr<func::FuncOp> kernel = pickFinishedKernel(*module, job.kernel, *target);
    if (failed(kernel)) {
      out.status = KILN_COMPILE_INPUT;
      return false;
    }
    if (!stage(Stage::TileGpu, "tile_gpu", [&](PassManager &pm) { return buildProofStage(pm); }))
      return false;
    metadata = describeKernel(*kernel);
    metadata.target = std::string(target->name);
    for (Metadata::Argument &argument : metadata.arguments)
      argument.specialize = "none"; // the code is what it is
    describeResources(*kernel, metadata);
    if (job.explain)
      metadata.explanation = reportKernel(*kernel, *target);
    return true;
  }

  /// The module is at stage llvm: its author did what the stages do.
  bool takeLowered() {
    if (job.explain)
      return fail(KILN_COMPILE_INPUT, Status::invalid("a kernel that is given at stage llvm has no layouts to explain",
                                                      "explain one that is given at stage tile or tile_gpu")),
             false;
    FailureOr<Metadata> described = describeLoweredKernel(*module, job.kernel, *target);
    if (failed(described)) {
      out.status = KILN_COMPILE_INPUT;
      return false;
    }
    metadata = std::move(*described);
    return true;
  }

  /// A stage that is over takes no passes.
  bool mayAddPasses(Stage given) {
    const StageInsertions &p = job.passes;
    const bool late = given != Stage::Tile && !(p.tile.empty() && p.tileGpu.empty() && p.barriers.empty());
    if (!late && (given != Stage::Llvm || p.lowering.empty()))
      return true;
    fail(KILN_COMPILE_INPUT,
         Status::invalid("passes cannot be added to " +
                             std::string(given == Stage::Llvm ? "a kernel that is given at stage llvm"
                                                              : "stage tile or tile_gpu of a kernel that is given at "
                                                                "the end of stage tile_gpu"),
                         given == Stage::Llvm
                             ? "unset KILN_PASSES and KILN_STRESS, or give the kernel at stage tile or tile_gpu"
                             : "unset KILN_PASSES (but for its stage lowering) and KILN_STRESS, or give the kernel at "
                               "stage tile"));
    return false;
  }

  /// The code of a later stage was made for what it was made for: facts would change nothing.
  bool mayStateFacts(Stage given) {
    if (given == Stage::Tile || (job.divisible.empty() && job.equals.empty() && !job.noTensorMaps))
      return true;
    fail(KILN_COMPILE_INPUT,
         Status::invalid("facts about the arguments of a kernel that is given at stage " + stageName(given).str() +
                             ": its code is made already",
                         "leave --divisible, --equals and --no-tensor-maps out, or give the kernel at stage tile"));
    return false;
  }

  /// Puts the file that overrides a stage's output in its place: 1 if there is one, 0 if not, -1 if it is wrong.
  int replace(Stage done) {
    const llvm::StringRef suffix = Dumps::suffixOf(done);
    const std::string *text = dumps.replacement(suffix);
    if (!text)
      return 0;
    const std::string file = dumps.fileName(suffix);
    OwningOpRef<ModuleOp> other = parse(*text, file);
    if (!other) {
      out.status = KILN_COMPILE_INPUT;
      return -1;
    }
    if (stageOf(*other) != done) {
      fail(KILN_COMPILE_INPUT,
           Status::invalid(file + " is at stage " + stageName(stageOf(*other)).str() +
                               " and cannot take the place of a text at stage " + stageName(done).str(),
                           "change a dump of that stage (KILN_DUMP_DIR)"));
      return -1;
    }
    module = std::move(other);
    return 1;
  }

  /// PTX of the lowered module, and what only that tells.
  void emitCode() {
    for (auto f : module->getOps<LLVM::LLVMFuncOp>())
      if (f.getName() == metadata.kernel)
        describeHidden(f, metadata);
    metadata.mapsByPasses = mapsOfText && metadata.hidden.size() > *mapsOfText;
    PtxOptions options;
    options.target = target;
    options.lineInfo = job.lineInfo;
    options.keepLlvmIr = job.emit == Emit::Llvm || dumps.wanted();
    options.timeBackEnd = job.timePasses;
    options.beforePass = [&](llvm::StringRef name) { progress.enter("LLVM, pass ", name); };
    if (job.timePasses)
      options.afterPass = [&](const char *part, llvm::StringRef name, double time) { addTime(part, name, time); };
    if (const std::string *text = dumps.replacement(stage_files::llvmIr))
      options.replacement = *text;
    FailureOr<PtxOutput> ptx = emitPtx(*module, options);
    if (failed(ptx))
      return;
    if (const std::string *text = dumps.replacement(stage_files::ptx))
      ptx->ptx = *text;
    dumps.llvmIr(ptx->llvmAfterO3);
    dumps.ptx(ptx->ptx, static_cast<unsigned>(metadata.options.warps + metadata.options.copyWarps) * 32,
              metadata.sharedBytes);
    if (job.emit == Emit::Llvm)
      return finish(std::move(ptx->llvmAfterO3));
    milliseconds.emplace_back("llvm", ptx->llvmMilliseconds);
    milliseconds.emplace_back("ptx", ptx->ptxMilliseconds);
    metadata.ptxIsa = ptx->isaText;
    metadata.milliseconds = milliseconds;
    metadata.passTimes = passTimes;
    out.metadata = toJson(metadata);
    finish(std::move(ptx->ptx));
  }

  /// LLVM runs a pass on each function, and some several times: one sum a name.
  void addTime(llvm::StringRef part, llvm::StringRef pass, double time) {
    for (Metadata::PassTime &t : passTimes)
      if (t.stage == part && t.pass == pass) {
        t.milliseconds += time;
        return;
      }
    passTimes.push_back({part.str(), pass.str(), time});
  }

  static DialectRegistry registry() {
    registerPasses();
    DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  void fail(int status, const Status &why) {
    out.status = status;
    out.messages.push_back({"error", job.fileName, 0, 0, why.message(), why.remedy()});
  }

  void finish(std::string text) {
    out.status = KILN_COMPILE_OK;
    out.text = std::move(text);
  }

  OwningOpRef<ModuleOp> parse(const std::string &text, const std::string &file) {
    const auto begin = Clock::now();
    if (const ParserLimit limit = checkParserLimits(text); limit.line) {
      out.messages.push_back({"error", file, limit.line, limit.column, limit.message, limit.remedy});
      return {};
    }
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, file), llvm::SMLoc());
    OwningOpRef<ModuleOp> parsed =
        parseSourceFile<ModuleOp>(sources, ParserConfig(&context, /*verifyAfterParse=*/true));
    lap("parse", begin);
    return parsed;
  }

  bool namesOneKernel() {
    unsigned kernels = 0;
    for (auto f : module->getOps<func::FuncOp>())
      kernels += tile::isKernel(f) && (job.kernel.empty() || f.getName() == job.kernel);
    return kernels == 1;
  }

  /// Of the request, else of the first kernel.
  std::string kernelName() {
    if (!job.kernel.empty())
      return job.kernel;
    for (auto f : module->getOps<func::FuncOp>())
      if (tile::isKernel(f))
        return f.getName().str();
    for (auto f : module->getOps<LLVM::LLVMFuncOp>())
      if (f->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
        return f.getName().str();
    return {};
  }

  SpecializeFacts facts() const {
    SpecializeFacts f;
    f.target = job.codeTarget;
    f.kernel = job.kernel;
    for (const auto &[argument, number] : job.divisible)
      f.divisible.push_back(std::to_string(argument) + "=" + std::to_string(number));
    for (const auto &[argument, number] : job.equals)
      f.equals.push_back(std::to_string(argument) + "=" + std::to_string(number));
    f.noTensorMaps = job.noTensorMaps;
    return f;
  }

  /// Runs one stage; the verifier runs once, at its end, or after each pass if there are added ones.
  bool stage(Stage which, const char *name, llvm::function_ref<Status(PassManager &)> build) {
    const auto begin = Clock::now();
    PassManager pm(&context);
    pm.enableVerifier(!job.passes.empty());
    if (const Status s = build(pm); !s.ok()) {
      fail(KILN_COMPILE_INPUT, s);
      return false;
    }
    watchPasses(pm, which, {progress, dumps, job.timePasses ? &passTimes : nullptr}, [&] { return print(); });
    const bool good = succeeded(pm.run(*module)) && succeeded(verify(*module)) && keptKernel(name);
    lap(name, begin);
    return good;
  }

  /// The one that the tile stage picked; helpers may stand before it.
  func::FuncOp theKernel() {
    for (auto f : module->getOps<func::FuncOp>())
      if (tile::isKernel(f))
        return f;
    return {}; // not after the tile stage
  }

  /// Kiln's own passes keep it; an added one may not.
  bool keptKernel(llvm::StringRef stage) {
    if (job.passes.empty() || stage == "lowering" || theKernel())
      return true;
    fail(KILN_COMPILE_REFUSED, Status::invalid("after stage '" + stage.str() + "' there is no kernel",
                                               "a pass that was added to it (KILN_PASSES) removes it"));
    return false;
  }

  void dump(Stage done) {
    if (dumps.wanted())
      dumps.stage(done, print());
  }

  std::string print() {
    std::string text;
    llvm::raw_string_ostream os(text);
    OpPrintingFlags flags;
    if (job.lineInfo)
      flags.enableDebugInfo(true, /*prettyForm=*/false);
    module->print(os, flags);
    return text;
  }

  /// A stage that runs again, over what takes its output's place, adds to its time.
  void lap(const char *name, Clock::time_point begin) {
    const double passed = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    for (auto &[known, time] : milliseconds)
      if (known == name) {
        time += passed;
        return;
      }
    milliseconds.emplace_back(name, passed);
  }

  const CompileJob &job;
  JobOutput &out;
  CompileProgress &progress;
  MLIRContext context;
  DiagnosticCollector collector;
  Dumps dumps;
  const Target *target = nullptr;
  OwningOpRef<ModuleOp> module;
  Metadata metadata;
  /// Tensor maps at the end of stage tile: passes make the others.  Nothing: the text is of a later stage.
  std::optional<unsigned> mapsOfText;
  std::vector<std::pair<std::string, double>> milliseconds;
  std::vector<Metadata::PassTime> passTimes;
};

} // namespace

JobOutput compileJob(const CompileJob &job, CompileProgress &progress) {
  JobOutput out;
  Compiler(job, out, progress).run();
  const auto isError = [](const auto &message) { return message.severity == "error"; };
  if (out.status != KILN_COMPILE_OK && llvm::none_of(out.messages, isError))
    out.messages.push_back({"error", job.fileName, 0, 0, "the kernel was refused without a reason", ""});
  return out;
}

} // namespace kiln
