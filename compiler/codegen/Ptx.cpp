#include "compiler/codegen/Ptx.h"

#include "compiler/codegen/BackEndPasses.h"
#include "compiler/codegen/BesideLoops.h"
#include "compiler/codegen/CheapValues.h"
#include "compiler/codegen/InstructionNeeds.h"
#include "compiler/codegen/LocationScopes.h"
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
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
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
/// Loop strength reduction would carry a 64-bit pointer round a loop for each row of a tile, in two registers each.
/// Value numbering looks for earlier loads of the same bytes through all blocks before a load, for each load: 25 s for
/// a tile of a thousand guarded loads a thread, and not one instruction less in any kernel of the library.
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
  });
}

class Stopwatch {
public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

private:
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
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

void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

/// Arguments of kernels may carry what only a launcher reads (tensor maps' recipes, names): LLVM knows none of it.
void dropForeignAttributes(mlir::ModuleOp module) {
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      for (const mlir::NamedAttribute attribute : llvm::to_vector(mlir::FunctionOpInterface(function).getArgAttrs(i)))
        if (!llvm::isa_and_present<mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>(attribute.getNameDialect()))
          function.removeArgAttr(i, attribute.getName());
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
  if (!options.lineInfo)
    llvm::StripDebugInfo(*llvmModule);
  output.counts = countLlvm(*llvmModule);
  if (options.keepLlvmIr)
    output.llvmBeforeO3 = moduleText(*llvmModule);
  optimise(*llvmModule, *machine);
  if (failed)
    return mlir::failure();
  carryWords(*llvmModule);
  roundAfterChoices(*llvmModule);
  recomputeBesideLoops(*llvmModule);
  computeCheapValuesWhereUsed(*llvmModule);
  if (options.lineInfo)
    completeLocations(*llvmModule);
  if (options.keepLlvmIr)
    output.llvmAfterO3 = moduleText(*llvmModule);
  output.llvmMilliseconds = llvmTime.milliseconds();

  Stopwatch ptxTime;
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  BackEndPasses passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return mlir::emitError(where) << "LLVM's NVPTX back end cannot print assembly";
  passes.run(*llvmModule);
  if (failed)
    return mlir::failure();
  output.ptx = options.lineInfo ? withoutDebugLeftovers(text) : std::string(text);
  output.ptxMilliseconds = ptxTime.milliseconds();
  return output;
}

} // namespace kiln
