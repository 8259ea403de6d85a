#include "compiler/codegen/Ptx.h"

#include "compiler/codegen/BackEndPasses.h"
#include "compiler/codegen/BesideLoops.h"
#include "compiler/codegen/CheapValues.h"
#include "compiler/codegen/InstructionNeeds.h"
#include "compiler/codegen/LocationScopes.h"
#include "compiler/codegen/Purposes.h"
#include "compiler/codegen/RoundLast.h"
#include "compiler/codegen/WordPhis.h"
#include "support/Text.h"

#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/IR/PassTimingInfo.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

#include <chrono>
#include <mutex>

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace kiln {
namespace {

constexpr const char *triple = "nvptx64-nvidia-cuda";

/// Once a process: the back end, and options that exist on LLVM's command line only.  Shared, constant and local
/// addresses have 32 bits.  Kiln chooses the width of every access itself, so vector combine must not cut vector loads
/// into scalar ones, and the load/store vectorizer must not make new ones: it pads loads (five bytes become eight),
/// which reads bytes that no kernel asked for, past the end of a buffer or while another thread writes them.
/// Loop strength reduction would carry a 64-bit pointer through a loop for each row of a tile, in two registers each.
/// Value numbering looks for earlier loads of the same bytes through all blocks before a load, for each load: 25 s for
/// a tile of a thousand guarded loads a thread, and not one instruction less in any kernel of the library.
/// CodeGenPrepare looks at the whole function again after any change, unless the function has more blocks than a limit:
/// then only at the blocks that changed.  With the limit at 0 the kernels of the library are the same text, in a
/// thirtieth of that pass's time, which was a fifth to a third of a compile's.
void initialiseBackEnd() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    auto &options = llvm::cl::getRegisteredOptions();
    for (const auto &[name, value] :
         {std::pair("nvptx-short-ptr", true), std::pair("disable-nvptx-load-store-vectorizer", true),
          std::pair("disable-vector-combine", true), std::pair("disable-lsr", true),
          std::pair("enable-gvn-memdep", false)})
      if (auto found = options.find(name); found != options.end())
        static_cast<llvm::cl::opt<bool> *>(found->second)->setValue(value);
    if (auto found = options.find("cgpp-huge-func"); found != options.end())
      static_cast<llvm::cl::opt<unsigned> *>(found->second)->setValue(0);
  });
}

class Stopwatch {
public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

private:
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

/// LLVM's diagnostics as MLIR's, at the line that LLVM names.  Without a handler LLVM would end the process.
class DiagnosticBridge : public llvm::DiagnosticHandler {
public:
  DiagnosticBridge(mlir::Location fallback, bool &failed) : fallback(fallback), failed(failed) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() != llvm::DS_Error && info.getSeverity() != llvm::DS_Warning)
      return true;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    if (info.getSeverity() == llvm::DS_Warning) {
      mlir::emitWarning(location(info)) << "LLVM: " << text;
      return true;
    }
    failed = true;
    mlir::emitError(location(info)) << "LLVM: " << text;
    return true;
  }

private:
  mlir::Location location(const llvm::DiagnosticInfo &info) const {
    if (const auto *unsupported = llvm::dyn_cast<llvm::DiagnosticInfoUnsupported>(&info))
      if (unsupported->isLocationAvailable())
        return mlir::FileLineColLoc::get(fallback.getContext(), unsupported->getAbsolutePath(),
                                         unsupported->getLocation().getLine(), unsupported->getLocation().getColumn());
    return fallback;
  }

  mlir::Location fallback;
  bool &failed;
};

mlir::Location locationOf(const llvm::Instruction &instruction, mlir::Location fallback) {
  const llvm::DILocation *location = instruction.getDebugLoc();
  if (!location || !location->getLine())
    return fallback;
  llvm::SmallString<128> path = location->getDirectory();
  if (!path.empty())
    path += '/';
  path += location->getFilename();
  return mlir::FileLineColLoc::get(fallback.getContext(), path, location->getLine(), location->getColumn());
}

std::string isaText(unsigned isa) {
  return format("%u.%u", isa / 10, isa % 10);
}

/// The address spaces that the back end knows: for others it ends the process.
bool isKnownSpace(const llvm::Type *type) {
  const auto *pointer = llvm::dyn_cast<llvm::PointerType>(type->getScalarType());
  // Generic, global, shared, constant, local, tensor memory, shared memory of a cluster, parameters.
  constexpr unsigned known[] = {0, 1, 3, 4, 5, 6, 7, 101};
  return !pointer || llvm::is_contained(known, pointer->getAddressSpace());
}

/// False after an error at the first pointer to an unknown address space.
bool checkSpaces(const llvm::Module &module, mlir::Location fallback) {
  const auto refuse = [](mlir::Location where, const llvm::Twine &what, const llvm::Type *type) {
    mlir::emitError(where) << "LLVM: " << what.str() << " points to address space "
                           << type->getScalarType()->getPointerAddressSpace()
                           << ", which no GPU has: 0 (generic), 1 (global), 3 (shared), 4 (constant) or 5 (local)";
    return false;
  };
  for (const llvm::GlobalVariable &global : module.globals())
    if (!isKnownSpace(global.getType()))
      return refuse(fallback, "'" + global.getName() + "'", global.getType());
  for (const llvm::Function &function : module) {
    for (const llvm::Argument &argument : function.args())
      if (!isKnownSpace(argument.getType()))
        return refuse(fallback, "an argument of '" + function.getName() + "'", argument.getType());
    for (const llvm::BasicBlock &block : function)
      for (const llvm::Instruction &i : block)
        if (!isKnownSpace(i.getType()))
          return refuse(locationOf(i, fallback), "an instruction", i.getType());
  }
  return true;
}

/// The PTX ISA to print, or 0 after errors.
unsigned chooseIsa(const llvm::Module &module, const PtxOptions &options, mlir::Location fallback) {
  const Target &target = *options.target;
  bool failed = false;
  unsigned isa =
      requiredIsa(module, target, [&](const llvm::Instruction &at, std::string_view name, const InstructionNeed &need) {
        failed = true;
        mlir::emitError(locationOf(at, fallback))
            << "'" << llvm::StringRef(name) << "' needs " << llvm::StringRef(capabilityName(*need.capability))
            << ", which " << llvm::StringRef(target.name) << " lacks";
      });
  for (Capability capability : allCapabilities()) {
    if (!options.uses.has(capability))
      continue;
    if (!target.has(capability)) {
      failed = true;
      mlir::emitError(fallback) << "the kernel uses " << llvm::StringRef(capabilityName(capability)) << ", which "
                                << llvm::StringRef(target.name) << " lacks";
    }
    isa = std::max(isa, capabilityPtxIsa(capability));
  }
  return failed ? 0 : std::max(isa, options.minimumIsa);
}

std::unique_ptr<llvm::TargetMachine> makeTargetMachine(const Target &target, unsigned isa, mlir::Location where) {
  std::string error;
  const llvm::Triple parsed(triple);
  const llvm::Target *backEnd = llvm::TargetRegistry::lookupTarget(parsed, error);
  if (!backEnd) {
    mlir::emitError(where) << "LLVM has no NVPTX back end: " << error;
    return nullptr;
  }
  // Fusing multiply and add is a flag of the operations (contract), never a global one.
  llvm::TargetOptions targetOptions;
  targetOptions.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(
      backEnd->createTargetMachine(parsed, target.name, "+ptx" + std::to_string(isa), targetOptions, llvm::Reloc::PIC_,
                                   std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Inline assembly with side effects has no convergence attribute in MLIR; without it O3 copies a barrier into both
/// arms of a divergent branch.
void markInlineAssembly(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
          call && call->isInlineAsm() && llvm::cast<llvm::InlineAsm>(call->getCalledOperand())->hasSideEffects()) {
        call->setConvergent();
        call->setDoesNotThrow();
      }
}

/// Tells the options' callbacks of passes; what only runs other passes is none.
class PassTimes {
public:
  explicit PassTimes(const PtxOptions &options) : options(options) {
    if (options.beforePass)
      callbacks.registerBeforeNonSkippedPassCallback([this](llvm::StringRef pass, llvm::Any) { enter(pass); });
    if (!options.afterPass)
      return;
    callbacks.registerAfterPassCallback(
        [this](llvm::StringRef pass, llvm::Any, const llvm::PreservedAnalyses &) { leave(pass); });
    callbacks.registerAfterPassInvalidatedCallback(
        [this](llvm::StringRef pass, const llvm::PreservedAnalyses &) { leave(pass); });
  }

  /// One of our own.
  void run(llvm::StringRef name, llvm::function_ref<void()> pass) {
    enter(name);
    pass();
    if (options.afterPass)
      leave(name);
  }

  llvm::PassInstrumentationCallbacks callbacks;

private:
  static bool onlyRunsOthers(llvm::StringRef pass) {
    return llvm::isSpecialPass(pass, {"PassManager", "PassAdaptor", "AnalysisManagerProxy", "DevirtSCCRepeatedPass",
                                      "ModuleInlinerWrapperPass"});
  }
  void enter(llvm::StringRef pass) {
    if (onlyRunsOthers(pass))
      return;
    if (options.beforePass)
      options.beforePass(pass);
    watch = Stopwatch();
  }
  void leave(llvm::StringRef pass) {
    if (!onlyRunsOthers(pass))
      options.afterPass("llvm", pass, watch.milliseconds());
  }

  const PtxOptions &options;
  Stopwatch watch; // leaves do not nest
};

void optimise(llvm::Module &module, llvm::TargetMachine &machine, PassTimes &times) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, llvm::PipelineTuningOptions(), std::nullopt, &times.callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

/// LLVM's table of the old pass manager's timers: "   0.0010 ( 12.5%)   0.0011 ( 12.5%)  Name of the pass", the last
/// number the wall clock's seconds.
void readTimings(llvm::StringRef table, llvm::function_ref<void(llvm::StringRef pass, double milliseconds)> row) {
  for (llvm::StringRef line : llvm::split(table, '\n')) {
    llvm::StringRef rest = line.ltrim(), last;
    for (;;) {
      const llvm::StringRef number = rest.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
      const llvm::StringRef share = rest.drop_front(number.size()).ltrim();
      if (number.empty() || !share.starts_with("(") || !share.contains(')'))
        break;
      last = number;
      rest = share.drop_front(share.find(')') + 1).ltrim();
    }
    double seconds = 0;
    if (!last.empty() && !last.getAsDouble(seconds) && rest != "Total")
      row(rest.trim(), seconds * 1000);
  }
}

/// The IR that takes this one's place; null after an error.
std::unique_ptr<llvm::Module> parseReplacement(const std::string &text, const llvm::Module &module,
                                               mlir::Location where) {
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> parsed = llvm::parseAssemblyString(text, problem, module.getContext());
  if (!parsed) {
    mlir::emitError(where) << "the LLVM IR that takes the kernel's place, line " << problem.getLineNo() << ": "
                           << problem.getMessage();
    return nullptr;
  }
  std::string wrong;
  llvm::raw_string_ostream stream(wrong);
  if (llvm::verifyModule(*parsed, &stream)) {
    mlir::emitError(where) << "the LLVM IR that takes the kernel's place is wrong: " << wrong;
    return nullptr;
  }
  parsed->setTargetTriple(module.getTargetTriple());
  parsed->setDataLayout(module.getDataLayout());
  return parsed;
}

/// Kernels and their arguments may carry what only a launcher reads (shared memory, tensor maps' recipes, names): LLVM
/// knows none of it.
void dropForeignAttributes(mlir::ModuleOp module) {
  const auto foreign = [](mlir::NamedAttribute attribute) {
    return !llvm::isa_and_present<mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>(attribute.getNameDialect());
  };
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    for (const mlir::NamedAttribute attribute : llvm::to_vector(function->getDiscardableAttrs()))
      if (foreign(attribute))
        function->removeDiscardableAttr(attribute.getName());
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      for (const mlir::NamedAttribute attribute : llvm::to_vector(mlir::FunctionOpInterface(function).getArgAttrs(i)))
        if (foreign(attribute))
          function.removeArgAttr(i, attribute.getName());
  }
}

/// PTX without two things that LLVM prints with `.loc`: the empty debug section, and line 0 for what instruction
/// selection moved (such an instruction keeps the line before it).
std::string withoutDebugLeftovers(llvm::StringRef ptx) {
  std::string out;
  out.reserve(ptx.size());
  while (!ptx.empty()) {
    auto [line, rest] = ptx.split('\n');
    ptx = rest;
    const llvm::StringRef text = line.trim();
    if (text.starts_with(".section") && text.contains(".debug_macinfo"))
      continue;
    if (llvm::StringRef location = text; location.consume_front(".loc")) {
      // ".loc file line column"
      llvm::StringRef number = location.ltrim().drop_while(llvm::isDigit).ltrim().take_while(llvm::isDigit);
      if (number == "0")
        continue;
    }
    out += line;
    out += '\n';
  }
  return out;
}

std::string moduleText(const llvm::Module &module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

} // namespace

void registerPtxDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>();
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
  registerPurposes(registry);
}

mlir::FailureOr<PtxOutput> emitPtx(mlir::ModuleOp module, const PtxOptions &options) {
  initialiseBackEnd();
  const mlir::Location where = module.getLoc();
  if (!options.target)
    return mlir::emitError(where) << "no code target given; targets: " << targetNames();
  Stopwatch llvmTime;
  {
    // Always: operations with a predicate would lose it silently otherwise.
    mlir::PassManager passes(module.getContext());
    passes.addPass(mlir::createConvertNVVMToLLVMPass());
    if (mlir::failed(passes.run(module)) || mlir::failed(addLocationScopes(module)))
      return mlir::failure();
    dropForeignAttributes(module);
  }

  bool failed = false;
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<DiagnosticBridge>(where, failed));
  std::unique_ptr<llvm::Module> llvmModule = mlir::translateModuleToLLVMIR(module, context, "kiln");
  if (!llvmModule || failed)
    return mlir::failure();
  PtxOutput output;
  output.isa = chooseIsa(*llvmModule, options, where);
  if (!output.isa)
    return mlir::failure();
  output.isaText = isaText(output.isa);
  std::unique_ptr<llvm::TargetMachine> machine = makeTargetMachine(*options.target, output.isa, where);
  if (!machine)
    return mlir::failure();
  llvmModule->setTargetTriple(llvm::Triple(triple));
  llvmModule->setDataLayout(machine->createDataLayout());
  markInlineAssembly(*llvmModule);
  std::string problem;
  llvm::raw_string_ostream problemStream(problem);
  if (llvm::verifyModule(*llvmModule, &problemStream))
    return mlir::emitError(where) << "the lowering made wrong LLVM IR: " << problem;
  if (!checkSpaces(*llvmModule, where))
    return mlir::failure();
  if (!options.lineInfo)
    llvm::StripDebugInfo(*llvmModule);
  output.counts = countLlvm(*llvmModule);
  if (options.keepLlvmIr)
    output.llvmBeforeO3 = moduleText(*llvmModule);
  PassTimes times(options);
  optimise(*llvmModule, *machine, times);
  if (failed)
    return mlir::failure();
  times.run("kiln: carry words", [&] { carryWords(*llvmModule); });
  times.run("kiln: round after choices", [&] { roundAfterChoices(*llvmModule); });
  times.run("kiln: recompute next to loops", [&] { recomputeBesideLoops(*llvmModule); });
  times.run("kiln: compute cheap values where used", [&] { computeCheapValuesWhereUsed(*llvmModule); });
  if (!options.replacement.empty()) {
    llvmModule = parseReplacement(options.replacement, *llvmModule, where);
    const unsigned isa = llvmModule ? chooseIsa(*llvmModule, options, where) : 0;
    if (!isa)
      return mlir::failure();
    if (isa > output.isa) {
      output.isa = isa;
      output.isaText = isaText(isa);
      machine = makeTargetMachine(*options.target, isa, where);
    }
  }
  if (options.lineInfo)
    completeLocations(*llvmModule);
  if (options.keepLlvmIr)
    output.llvmAfterO3 = moduleText(*llvmModule);
  output.llvmMilliseconds = llvmTime.milliseconds();

  Stopwatch ptxTime;
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  if (options.beforePass)
    options.beforePass("(the NVPTX back end)");
  const bool timed = options.timeBackEnd && options.afterPass;
  if (timed)
    llvm::TimePassesIsEnabled = true;
  {
    BackEndPasses passes;
    if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
      return mlir::emitError(where) << "LLVM's NVPTX back end cannot print assembly";
    passes.run(*llvmModule);
  }
  if (failed)
    return mlir::failure();
  if (timed) {
    std::string table;
    llvm::raw_string_ostream tableStream(table);
    llvm::reportAndResetTimings(&tableStream);
    readTimings(table, [&](llvm::StringRef pass, double time) { options.afterPass("ptx", pass, time); });
    llvm::TimePassesIsEnabled = false;
  }
  output.ptx = options.lineInfo ? withoutDebugLeftovers(text) : std::string(text);
  output.ptxMilliseconds = ptxTime.milliseconds();
  return output;
}

} // namespace kiln
