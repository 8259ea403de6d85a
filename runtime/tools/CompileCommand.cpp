// `kiln compile`: one kernel of the library, or of a text file, to any stage.
#include "kiln/Knobs.h"
#include "runtime/cache/KernelCache.h"
#include "runtime/io/File.h"
#include "runtime/jit/CompileRequest.h"
#include "runtime/jit/CompilerLibrary.h"
#include "runtime/jit/Metadata.h"
#include "runtime/tools/CExport.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/KernelProgram.h"
#include "runtime/tools/PassTimes.h"
#include "runtime/tools/Report.h"
#include "runtime/tools/Sass.h"
#include "runtime/tools/TextKernel.h"

#include "compiler/codegen/Assembler.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

namespace kiln::tools {
namespace {

struct Options {
  std::string kernel, entry, target = "sm_80", arch, dtype, emit = "ptx", output;
  std::vector<std::string> settings, divisible, equals;
  bool noTensorMaps = false, lineInfo = false, json = false, report = false, timePasses = false;
};

class Compile {
public:
  explicit Compile(const Options &options) : o(options) {}

  int operator()() {
    const Status s = run();
    if (!s.ok())
      return fail("compile", s, o.json, std::move(report));
    if (o.json) {
      report["status"] = 0;
      printJson(report);
    }
    return 0;
  }

private:
  Status run() {
    if (o.json && o.output.empty())
      return Status::invalid("--json prints to standard output, where the result would go", "name a file with -o");
    KILN_ASSIGN(knobs, Knobs::fromEnvironment());
    const bool isExport = o.emit == "c";
    std::vector<std::string> targets{o.target};
    if (isExport) {
      targets.clear();
      for (const std::string_view target : split(o.target, ','))
        targets.emplace_back(target);
      KILN_TRY(checkExport(targets));
    }
    KILN_TRY(readProgram(targets[0]));
    if (isExport)
      return exportToC(targets);
    KILN_ASSIGN(const CompileOutput out, compile(o.target, o.noTensorMaps));
    if (!out.metadata.empty())
      report["metadata"] = Json::parse(out.metadata);
    if (o.timePasses && !o.json)
      printPassTimes(report["metadata"]);
    if (!assembles() && !o.report)
      return write(o.output, std::as_bytes(std::span(out.output.data(), out.output.size())));
    return assemble(out.output, assemblerLevelOf(out.metadata));
  }

  bool assembles() const { return o.emit == "cubin" || o.emit == "sass"; }

  Result<CompileOutput> compile(const std::string &target, bool noTensorMaps) {
    KILN_ASSIGN(const std::string facts, factsText(argumentNames, o.divisible, o.equals, noTensorMaps));
    KILN_ASSIGN(const std::shared_ptr<CompilerLibrary> compiler, CompilerLibrary::find(knobs.compiler));
    CompilePurpose purpose;
    purpose.emit = o.emit;
    if (assembles() || o.emit == "c")
      purpose.emit = "ptx";
    purpose.lineInfo = lineInfo();
    purpose.fromFile = !fileName.empty();
    purpose.timePasses = o.timePasses;
    purpose.kernel = kernelName;
    purpose.codeTarget = target;
    KILN_ASSIGN(const CompileOptions asked, compileOptions(knobs, purpose));
    if (!asked.note.empty())
      std::fprintf(stderr, "kiln compile: %s\n", asked.note.c_str());
    CompileInput input{program, fileName, o.entry, target, facts, asked.json};
    KILN_ASSIGN(CompileOutput out, compiler->compile(input, FileHashes(nullptr)));
    KILN_TRY(compileStatus(out, name));
    if (const std::string text = diagnosticsText(out.diagnostics); !text.empty())
      std::fprintf(stderr, "%s\n", text.c_str());
    return out;
  }

  Status checkExport(const std::vector<std::string> &targets) const {
    if (o.output.empty())
      return Status::invalid("--emit c writes two files", "name them with -o NAME: NAME.h and NAME.c");
    if (!o.arch.empty() || o.report || o.timePasses)
      return Status::invalid("--emit c takes no --arch, --report or --time-passes", "ask for them with --emit cubin");
    for (std::size_t i = 0; i < targets.size(); ++i)
      if (std::find(targets.begin(), targets.begin() + static_cast<std::ptrdiff_t>(i), targets[i]) !=
          targets.begin() + static_cast<std::ptrdiff_t>(i))
        return Status::invalid("--target " + o.target + ": " + targets[i] + " is named twice");
    return exportName(o.output).status();
  }

  /// Code for each target; without an assembler PTX, for the driver.
  Status exportToC(const std::vector<std::string> &targets) {
    AssemblerSearch search;
    search.nvJitLink = knobs.nvJitLink;
    search.ptxas = knobs.ptxas;
    const Result<std::shared_ptr<const Assembler>> assembler = findAssembler(search);
    if (!assembler)
      std::fprintf(stderr, "kiln compile: the driver will assemble the code: %s\n",
                   assembler.status().message().c_str());
    std::vector<CImage> images;
    report["targets"] = Json::array();
    for (const std::string &name : targets) {
      CImage &image = images.emplace_back();
      KILN_ASSIGN(image.target, findTarget(name));
      // Maps that passes make need a launcher that makes them.
      KILN_ASSIGN(const CompileOutput out, compile(name, /*noTensorMaps=*/true));
      image.metadata = Json::parse(out.metadata, nullptr, /*allow_exceptions=*/false);
      if (!image.metadata.is_object() || !image.metadata.contains("arguments") || !image.metadata.contains("guards"))
        return {StatusCode::Internal, "the compiler's metadata is incomplete",
                "use the libkiln-compiler of this version"};
      if (assembler) {
        KILN_ASSIGN(AssembledModule module,
                    assembleToRun(**assembler, out.output, name, {assemblerLevelOf(out.metadata), lineInfo()}));
        image.assembled = module.isTrusted();
        if (image.assembled)
          image.code = std::move(module.cubin);
        else
          std::fprintf(stderr, "kiln compile: the driver will assemble the code for %s: %s\n", name.c_str(),
                       module.doubt.c_str());
      }
      if (!image.assembled) {
        const auto bytes = std::as_bytes(std::span(out.output.data(), out.output.size()));
        image.code.assign(bytes.begin(), bytes.end());
      }
      report["targets"].push_back({{"target", name},
                                   {"assembled", image.assembled},
                                   {"bytes", image.code.size()},
                                   {"metadata", image.metadata}});
    }
    KILN_ASSIGN(const std::string name, exportName(o.output));
    KILN_ASSIGN(const CFiles files, exportC(name, configuration, std::move(images)));
    for (const auto &[suffix, text] : {std::pair(".h", &files.header), std::pair(".c", &files.source)})
      KILN_TRY(write(o.output + suffix, std::as_bytes(std::span(text->data(), text->size()))));
    report["output"] = o.output;
    return {};
  }

  bool lineInfo() const { return o.lineInfo || knobs.lineInfo == knob::Switch::On; }

  /// `target`: the first one.
  Status readProgram(const std::string &target) {
    name = o.kernel;
    kernelName = o.entry;
    KernelSource source;
    if (!namesTextFile(o.kernel)) {
      KILN_ASSIGN(source, recordLibraryKernel(o.kernel, o.dtype, o.settings));
      program = std::move(source.programText);
      kernelName = source.name;
      configuration = source.configuration;
    } else {
      if (!o.settings.empty())
        return Status::invalid("--set " + o.settings[0] + ": a text file has no configuration");
      fileName = o.kernel;
      KILN_ASSIGN(program, readTextFile(o.kernel));
      if (o.divisible.empty() && o.equals.empty())
        return {}; // arguments need no names
      KILN_ASSIGN(TextKernel text, readTextKernel(o.kernel, o.entry, target, knobs));
      source = std::move(text.source);
    }
    for (const ArgumentSpec &a : source.arguments)
      argumentNames.push_back(a.name);
    return {};
  }

  Status assemble(const std::string &ptx, unsigned level) {
    AssemblerSearch search;
    search.nvJitLink = knobs.nvJitLink;
    search.ptxas = knobs.ptxas;
    KILN_ASSIGN(const auto assembler, findAssembler(search));
    const std::string arch = o.arch.empty() ? o.target : o.arch;
    KILN_ASSIGN(const AssembledModule module, assembler->assemble(ptx, arch, {level, lineInfo()}));
    for (const std::string &warning : module.warnings)
      std::fprintf(stderr, "%s\n", warning.c_str());
    if (!module.isTrusted())
      std::fprintf(stderr,
                   "kiln compile: %s: this code may be wrong, and a call would have ptxas (--ptxas) or the driver "
                   "assemble it\n",
                   module.doubt.c_str());
    Json resources = Json::array();
    for (const KernelResources &k : module.resources.kernels) {
      resources.push_back({{"kernel", k.name},
                           {"registers", k.registers},
                           {"sharedBytes", k.sharedBytes},
                           {"stackBytes", k.stackBytes},
                           {"barriers", k.barriers}});
      if (k.spillStoreBytes)
        resources.back()["spillBytes"] = *k.spillStoreBytes;
      if (o.report && !o.json)
        std::fprintf(stderr, "%s on %s: %u registers, %u bytes of stack, %s (%s, %.1f ms)\n", k.name.c_str(),
                     arch.c_str(), k.registers, k.stackBytes,
                     k.spillStoreBytes ? (std::to_string(*k.spillStoreBytes) + " bytes spilled").c_str()
                                       : "spills unknown",
                     std::string(module.assembler).c_str(), module.milliseconds);
    }
    report["assembler"] = {{"name", module.assembler},
                           {"arch", arch},
                           {"milliseconds", module.milliseconds},
                           {"trusted", module.isTrusted()}};
    report["resources"] = std::move(resources);
    if (o.emit == "cubin")
      return write(o.output, module.cubin);
    std::string text = ptx;
    if (o.emit == "sass") {
      KILN_ASSIGN(text, disassemble(module.cubin));
    }
    return write(o.output, std::as_bytes(std::span(text.data(), text.size())));
  }

  /// `to`: a file; empty: standard output.
  Status write(const std::string &to, std::span<const std::byte> bytes) {
    if (to.empty()) {
      std::fwrite(bytes.data(), 1, bytes.size(), stdout);
      return {};
    }
    KILN_ASSIGN(OutputFile file, OutputFile::create(to));
    KILN_TRY(file.write(bytes));
    KILN_TRY(file.commit());
    report["output"] = to;
    return {};
  }

  const Options &o;
  Knobs knobs;
  std::string program, fileName, name, kernelName, configuration;
  std::vector<std::string> argumentNames;
  Json report = Json::object();
};

} // namespace

void addCompileCommand(CLI::App &app, int &exitStatus) {
  auto options = std::make_shared<Options>();
  CLI::App *c = app.add_subcommand("compile", "Compile a kernel to any stage");
  c->add_option("kernel", options->kernel, "a kernel of the library, or a text file FILE.mlir")->required();
  c->add_option("--entry", options->entry, "the kernel of the file; not needed if there is one");
  c->add_option("--target", options->target, "what the code may use; for --emit c several: sm_80,sm_90a")
      ->capture_default_str();
  c->add_option("--arch", options->arch,
                "what --emit cubin, --emit sass and --report assemble for (default: the target)");
  c->add_option("--dtype", options->dtype,
                "element type of a library kernel: f32, f16, bf16 (default: f32, of attention bf16)");
  c->add_option("--set", options->settings, "NAME=VALUE of a library kernel's configuration, such as block=2048");
  c->add_option("--divisible", options->divisible, "ARGUMENT=N: compile for values divisible by N, such as x=16");
  c->add_option("--equals", options->equals, "ARGUMENT=N: compile for this value");
  c->add_flag("--no-tensor-maps", options->noTensorMaps,
              "compile as for tensors that no tensor map can describe: passes make none");
  c->add_option("--emit", options->emit, "tile, tile_gpu, llvm, ptx, cubin, sass or c")
      ->check(CLI::IsMember({"tile", "tile_gpu", "llvm", "ptx", "cubin", "sass", "c"}))
      ->capture_default_str();
  c->add_option("-o,--output", options->output,
                "file to write (default: standard output); of --emit c NAME, for NAME.h and NAME.c");
  c->add_flag("--line-info", options->lineInfo, "source lines in the code");
  c->add_flag("--report", options->report, "registers, stack and spills, from the assembler, to standard error");
  c->add_flag("--time-passes", options->timePasses,
              "time of every pass, MLIR's and LLVM's, to standard error; with --json in its metadata");
  c->add_flag("--json", options->json, "a report in JSON to standard output; needs -o");
  c->footer("Examples:\n"
            "  kiln compile softmax --target sm_90a --dtype bf16 --divisible x=16 --divisible out=16\n"
            "  kiln compile docs/examples/scale.mlir --target sm_80 --emit tile_gpu\n"
            "  kiln compile add --target sm_80 --arch sm_90a --emit cubin --report -o add.cubin\n"
            "  kiln compile add --target sm_80,sm_90a --emit c --divisible x=16 -o vector_add\n"
            "  kiln compile softmax --target sm_90a --time-passes -o softmax.ptx\n"
            "Exit status: 0 good, 2 input, 3 compile.");
  c->callback([options, &exitStatus] { exitStatus = Compile(*options)(); });
}

} // namespace kiln::tools
