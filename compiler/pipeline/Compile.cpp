#include "compiler/pipeline/Compile.h"

#include "compiler/codegen/Ptx.h"
#include "compiler/pipeline/Dialects.h"
#include "compiler/pipeline/KernelReport.h"
#include "compiler/pipeline/LoweredKernel.h"
#include "compiler/pipeline/Metadata.h"
#include "compiler/pipeline/ParserLimits.h"
#include "compiler/pipeline/Plugins.h"
#include "compiler/pipeline/Stages.h"
#include "compiler/tile/Tile.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/xxhash.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <unistd.h>

using namespace mlir;

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;

class Compiler {
public:
  Compiler(const CompileJob &job, JobOutput &out)
      : job(job), out(out), context(registry(), MLIRContext::Threading::DISABLED), collector(context, out.messages) {
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
    if (!parse()) {
      out.status = KILN_COMPILE_INPUT;
      return;
    }
    if (isLowered(*module))
      return runLowered();
    if (!namesOneKernel())
      out.status = KILN_COMPILE_INPUT; // the stage says what is wrong
    if (!stage("tile", [&](PassManager &pm) { return buildTileStage(pm, facts(), job.passes); }))
      return;
    kernel = theKernel();
    Metadata metadata = describeKernel(kernel, job);
    metadata.target = std::string(target->name);
    if (job.emit == Emit::Tile) {
      metadata.milliseconds = milliseconds;
      out.metadata = toJson(metadata);
      return finish(print());
    }
    if (!stage("tile_gpu", [&](PassManager &pm) { return buildTileGpuStage(pm, job.passes); }))
      return;
    kernel = theKernel();
    describeResources(kernel, metadata);
    if (job.explain)
      metadata.explanation = reportKernel(kernel, *target);
    if (job.emit == Emit::TileGpu)
      return finish(print());
    if (!stage("lowering", [&](PassManager &pm) { return buildLoweringStage(pm, job.passes); }))
      return;
    emitCode(metadata);
  }

private:
  /// The text is at stage llvm: its author did what the stages do.
  void runLowered() {
    if (!job.passes.empty())
      return fail(KILN_COMPILE_INPUT,
                  Status::invalid("passes cannot be added to a kernel that is given at stage llvm",
                                  "unset KILN_PASSES and KILN_STRESS, or give the kernel at stage tile or tile_gpu"));
    if (job.explain)
      return fail(KILN_COMPILE_INPUT, Status::invalid("a kernel that is given at stage llvm has no layouts to explain",
                                                      "explain one that is given at stage tile or tile_gpu"));
    FailureOr<Metadata> metadata = describeLoweredKernel(*module, job.kernel, *target);
    if (failed(metadata)) {
      out.status = KILN_COMPILE_INPUT;
      return;
    }
    if (job.emit == Emit::Tile)
      out.metadata = toJson(*metadata);
    if (job.emit == Emit::Tile || job.emit == Emit::TileGpu)
      return finish(print());
    emitCode(*metadata);
  }

  /// PTX of the lowered module, and what only that tells.
  void emitCode(Metadata &metadata) {
    for (auto f : module->getOps<LLVM::LLVMFuncOp>())
      if (f.getName() == metadata.kernel)
        describeHidden(f, metadata);
    PtxOptions options;
    options.target = target;
    options.lineInfo = job.lineInfo;
    options.keepLlvmIr = job.emit == Emit::Llvm || !job.dumpDirectory.empty();
    FailureOr<PtxOutput> ptx = emitPtx(*module, options);
    if (failed(ptx))
      return;
    dump("ll", ptx->llvmAfterO3);
    dump("ptx", ptx->ptx);
    if (job.emit == Emit::Llvm)
      return finish(std::move(ptx->llvmAfterO3));
    milliseconds.emplace_back("llvm", ptx->llvmMilliseconds);
    milliseconds.emplace_back("ptx", ptx->ptxMilliseconds);
    metadata.ptxIsa = ptx->isaText;
    metadata.milliseconds = milliseconds;
    out.metadata = toJson(metadata);
    finish(std::move(ptx->ptx));
  }

  static DialectRegistry registry() {
    registerPasses();
    DialectRegistry registry;
    registerDialects(registry);
    registerPtxDialects(registry);
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

  bool parse() {
    const auto begin = Clock::now();
    if (const ParserLimit limit = checkParserLimits(job.program); limit.line) {
      out.messages.push_back({"error", job.fileName, limit.line, limit.column, limit.message, limit.remedy});
      return false;
    }
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(job.program, job.fileName.empty() ? "<kernel>" : job.fileName),
        llvm::SMLoc());
    module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context, /*verifyAfterParse=*/true));
    lap("parse", begin);
    return static_cast<bool>(module);
  }

  bool namesOneKernel() {
    unsigned kernels = 0;
    for (auto f : module->getOps<func::FuncOp>())
      kernels += tile::isKernel(f) && (job.kernel.empty() || f.getName() == job.kernel);
    return kernels == 1;
  }

  SpecializeFacts facts() const {
    SpecializeFacts f;
    f.target = job.codeTarget;
    f.kernel = job.kernel;
    for (const auto &[argument, number] : job.divisible)
      f.divisible.push_back(std::to_string(argument) + "=" + std::to_string(number));
    for (const auto &[argument, number] : job.equals)
      f.equals.push_back(std::to_string(argument) + "=" + std::to_string(number));
    return f;
  }

  /// Runs one stage; the verifier runs once, at its end, or after each pass if there are added ones.
  bool stage(const char *name, llvm::function_ref<Status(PassManager &)> build) {
    const auto begin = Clock::now();
    PassManager pm(&context);
    pm.enableVerifier(!job.passes.empty());
    if (const Status s = build(pm); !s.ok()) {
      fail(KILN_COMPILE_INPUT, s);
      return false;
    }
    const bool good = succeeded(pm.run(*module)) && succeeded(verify(*module)) && keptKernel(name);
    lap(name, begin);
    if (good)
      dump((std::string(name) + ".mlir").c_str(), job.dumpDirectory.empty() ? std::string() : print());
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

  std::string print() {
    std::string text;
    llvm::raw_string_ostream os(text);
    OpPrintingFlags flags;
    if (job.lineInfo)
      flags.enableDebugInfo(true, /*prettyForm=*/false);
    module->print(os, flags);
    return text;
  }

  /// "add.sm_80.1f3a5c70": the kernel, the target, and which program and facts, so that variants do not overwrite each
  /// other.
  const std::string &dumpName() {
    if (!dumpedAs.empty())
      return dumpedAs;
    func::FuncOp f = theKernel();
    std::string request = job.program;
    for (const auto &[argument, number] : job.divisible)
      request += "\n" + std::to_string(argument) + "/" + std::to_string(number);
    for (const auto &[argument, number] : job.equals)
      request += "\n" + std::to_string(argument) + "=" + std::to_string(number);
    const std::string hash = llvm::utohexstr(llvm::xxh3_64bits(request) & 0xffffffff, /*LowerCase=*/true, 8);
    dumpedAs = (f ? f.getName().str() : std::string("kernel")) + "." + job.codeTarget + "." + hash;
    return dumpedAs;
  }

  /// One that cannot be written is said once; the rest would fail alike.
  void dump(const char *suffix, const std::string &text) {
    if (job.dumpDirectory.empty() || dumpFailed)
      return;
    llvm::SmallString<256> path(job.dumpDirectory);
    llvm::sys::path::append(path, dumpName() + "." + suffix);
    std::error_code error = llvm::sys::fs::create_directories(job.dumpDirectory);
    if (!error)
      error = replaceFile(path, text);
    dumpFailed = static_cast<bool>(error);
    if (error)
      out.messages.push_back({"warning", path.str().str(), 0, 0, "cannot write a dump: " + error.message(),
                              "set KILN_DUMP_DIR to a folder of your own"});
  }

  /// A new file takes the name: what lay there, maybe a link that someone else placed, is not written through.
  static std::error_code replaceFile(llvm::StringRef path, const std::string &text) {
    static std::atomic<unsigned> serial = 0;
    const auto failure = [] { return std::error_code(errno, std::generic_category()); };
    const std::string temporary = llvm::formatv("{0}.{1}-{2}.tmp", path, ::getpid(), ++serial).str();
    (void)::unlink(temporary.c_str()); // of a process that ended while it wrote
    constexpr int fresh = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const int fd = ::open(temporary.c_str(), fresh, 0666);
    if (fd < 0)
      return failure();
    llvm::raw_fd_ostream file(fd, /*shouldClose=*/true);
    file << text;
    file.close();
    std::error_code error = file.error();
    file.clear_error();
    if (!error && ::rename(temporary.c_str(), path.str().c_str()) != 0)
      error = failure();
    if (error)
      (void)::unlink(temporary.c_str());
    return error;
  }

  void lap(const char *name, Clock::time_point begin) {
    milliseconds.emplace_back(name, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }

  const CompileJob &job;
  JobOutput &out;
  MLIRContext context;
  DiagnosticCollector collector;
  const Target *target = nullptr;
  OwningOpRef<ModuleOp> module;
  func::FuncOp kernel;
  std::string dumpedAs;
  bool dumpFailed = false;
  std::vector<std::pair<std::string, double>> milliseconds;
};

} // namespace

JobOutput compileJob(const CompileJob &job) {
  JobOutput out;
  Compiler(job, out).run();
  const auto isError = [](const auto &message) { return message.severity == "error"; };
  if (out.status != KILN_COMPILE_OK && llvm::none_of(out.messages, isError))
    out.messages.push_back({"error", job.fileName, 0, 0, "the kernel was refused without a reason", ""});
  return out;
}

} // namespace kiln
