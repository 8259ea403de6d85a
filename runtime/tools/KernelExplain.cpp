#include "runtime/tools/KernelExplain.h"

#include "compiler/codegen/Assembler.h"
#include "compiler/layout/LayoutPicture.h"
#include "compiler/layout/LayoutText.h"
#include "kernels/support/Family.h"
#include "kiln/Knobs.h"
#include "runtime/io/File.h"
#include "runtime/jit/CompileRequest.h"
#include "runtime/jit/CompilerLibrary.h"
#include "runtime/jit/Metadata.h"
#include "runtime/tools/BenchPrediction.h"
#include "runtime/tools/KernelProgram.h"
#include "runtime/tools/TextKernel.h"
#include "support/Text.h"

#include <cstdio>

namespace kiln::tools {
namespace {

class KernelExplain {
public:
  explicit KernelExplain(const KernelExplainOptions &options) : o(options) {}

  int operator()() {
    if (Status s = run(); !s.ok())
      return fail("explain", s, o.json, std::move(report));
    report["status"] = 0;
    if (o.json)
      printJson(report);
    else
      std::fputs(kernelText(report, o.plans).c_str(), stdout);
    return 0;
  }

private:
  Status run() {
    if (!o.predict && !o.with.empty())
      return Status::invalid("--with " + o.with[0] + ": it is of a call that is predicted", "add --predict");
    if (o.predict && namesTextFile(o.kernel))
      return Status::invalid("--predict: " + o.kernel + " is no kernel of the library, of which calls are known",
                             "leave --predict out");
    KILN_ASSIGN(const Target *target, findTarget(o.target));
    KILN_ASSIGN(const Knobs knobs, Knobs::fromEnvironment());
    const bool file = namesTextFile(o.kernel);
    if (file && !o.settings.empty())
      return Status::invalid("--set " + o.settings[0] + ": a text file has no configuration");
    KernelSource source;
    if (file) {
      KILN_ASSIGN(TextKernel text, readTextKernel(o.kernel, o.entry, o.target, knobs));
      source = std::move(text.source);
    } else {
      KILN_ASSIGN(source, recordLibraryKernel(o.kernel, o.dtype, o.settings));
      KILN_TRY(settings());
    }
    KILN_ASSIGN(const std::string facts, statedFacts(source));
    KILN_ASSIGN(const std::shared_ptr<CompilerLibrary> compiler, CompilerLibrary::find(knobs.compiler));
    CompilePurpose purpose;
    purpose.lineInfo = knobs.lineInfo == knob::Switch::On;
    purpose.explain = true;
    purpose.fromFile = file;
    purpose.kernel = source.name;
    purpose.codeTarget = o.target;
    KILN_ASSIGN(const CompileOptions asked, compileOptions(knobs, purpose));
    if (!asked.note.empty())
      std::fprintf(stderr, "kiln explain: %s\n", asked.note.c_str());
    const CompileInput input{source.programText, source.fileName, source.name, o.target, facts, asked.json};
    KILN_ASSIGN(const CompileOutput out, compiler->compile(input, FileHashes(nullptr)));
    KILN_TRY(compileStatus(out, source.name));
    const Json metadata = Json::parse(out.metadata, nullptr, /*allow_exceptions=*/false);
    if (!metadata.is_object() || !metadata.contains("explain"))
      return Status(StatusCode::Internal, "the compiler did not explain the kernel",
                    "use the libkiln-compiler of this version");
    for (const auto &[key, value] : metadata.items())
      report[key] = value;
    report["configuration"] = source.configuration;
    resources(out.output, assemblerLevelOf(out.metadata), *target, knobs);
    if (o.predict)
      KILN_TRY(predict());
    return o.svg.empty() ? Status() : draw();
  }

  /// What calls of the kernel would take, at sizes that fill the GPU or at those of --with.
  Status predict() {
    RunOptions run;
    run.target = o.target;
    model::Hardware hardware;
    KILN_ASSIGN(const std::unique_ptr<Device> device, openForPrediction(run, hardware));
    KILN_ASSIGN(const kernels::Family *family, kernels::findFamily(o.kernel));
    const std::vector<std::string> types = {o.dtype.empty() ? std::string(dtypeName(family->callable->dtypes().front()))
                                                            : o.dtype};
    KILN_ASSIGN(const std::vector<FamilyCall> calls, chooseFamilyCalls({o.kernel}, types, o.with, {.samples = true},
                                                                       kernels::SampleUse::Bench, /*large=*/true));
    KILN_ASSIGN(JitOptions options, chosenJitOptions(run));
    KILN_ASSIGN(const std::unique_ptr<Jit> jit, Jit::create(*device, std::move(options)));
    report["predictedFor"] = hardware.name;
    report["predicted"] = Json::array();
    for (const FamilyCall &call : calls) {
      KILN_ASSIGN(Json row, predictedRow(*device, *jit, hardware, call));
      report["predicted"].push_back(std::move(row));
    }
    return {};
  }

  /// What --set takes, and what of it a tuner would try.
  Status settings() {
    KILN_ASSIGN(const kernels::Family *family, kernels::findFamily(o.kernel));
    Json &out = report["settings"] = Json::array();
    for (const kernels::FieldInfo &f : family->callable->settings()) {
      out.push_back({{"name", f.name}, {"default", f.standard}, {"values", f.valuesText()}, {"text", f.text}});
      if (const std::vector<std::string> all = f.candidates(); !all.empty())
        out.back()["tuned"] = all;
    }
    return {};
  }

  /// What the caller stated; or else what dense, aligned tensors give, with rows of whole 16 bytes: of the strides that
  /// follow a pointer the last is 1, the others are of the class "divisible".
  Result<std::string> statedFacts(const KernelSource &source) {
    std::vector<std::string> names, divisible = o.divisible, equals = o.equals;
    const std::vector<ArgumentSpec> &all = source.arguments;
    for (std::size_t i = 0; i < all.size(); ++i) {
      names.push_back(all[i].name);
      if (!o.divisible.empty() || !o.equals.empty())
        continue;
      const auto isStride = [&](std::size_t at) { return at < all.size() && all[at].specialise == Specialise::Stride; };
      if (isStride(i) && !isStride(i + 1))
        equals.push_back(std::to_string(i) + "=1");
      else if (isStride(i) || all[i].specialise == Specialise::Divisibility)
        divisible.push_back(std::to_string(i) + "=" + std::to_string(classDivisor(all[i])));
    }
    return factsText(names, divisible, equals, o.noTensorMaps);
  }

  void resources(const std::string &ptx, unsigned level, const Target &target, const Knobs &knobs) {
    Json &out = report["resources"];
    AssemblerSearch search;
    search.nvJitLink = knobs.nvJitLink;
    search.ptxas = knobs.ptxas;
    const Result<std::shared_ptr<const Assembler>> assembler = findAssembler(search);
    if (!assembler) {
      out["unknown"] = "no assembler was found: " + assembler.status().toString();
      return;
    }
    const Result<AssembledModule> module = (*assembler)->assemble(ptx, target.name, {.optimisation = level});
    const KernelResources *found = module ? module->resources.find(report.value("entry", std::string())) : nullptr;
    if (!found) {
      out["unknown"] = std::string((*assembler)->name()) + ": " +
                       (module ? "its report does not name the kernel" : module.status().toString());
      return;
    }
    out["assembler"] = std::string(module->assembler) + (module->isTrusted() ? "" : "; the driver would assemble it");
    out["arch"] = target.name;
    out["registers"] = found->registers;
    out["stackBytes"] = found->stackBytes;
    out["barriers"] = found->barriers;
    if (found->spillStoreBytes)
      out["spillStoreBytes"] = *found->spillStoreBytes;
    if (found->spillLoadBytes)
      out["spillLoadBytes"] = *found->spillLoadBytes;
  }

  Status draw() {
    const LayoutLegend legend(report["explain"]);
    std::vector<std::string> letters;
    const LayoutLegend::Row *row = nullptr;
    for (const LayoutLegend::Row &r : legend.rows) {
      letters.push_back(r.letter);
      if (r.letter == o.draw)
        row = &r;
    }
    if (!row)
      return Status::invalid("--draw " + o.draw + ": the kernel has no layout of that letter",
                             letters.empty() ? "it has no tiles" : "its layouts are " + join(letters));
    // The layout's text wants an element type of the layout library's; a pointer is drawn as the 64 bits that it has.
    const std::size_t pointer = row->type.find("ptr<");
    const std::string type = pointer == std::string::npos ? row->type : row->type.substr(0, pointer) + "i64";
    const std::string title = row->layout + " : " + type;
    KILN_ASSIGN(const layout::LayoutText text, layout::parseLayout(title));
    KILN_ASSIGN(const layout::TileLayout tile, layout::lowerDistributed(text));
    KILN_ASSIGN(OutputFile file, OutputFile::create(o.svg));
    KILN_TRY(file.write(layout::svg(tile, title)));
    KILN_TRY(file.commit());
    report["svg"] = o.svg;
    return {};
  }

  const KernelExplainOptions &o;
  Json report = Json::object();
};

} // namespace

int explainKernel(const KernelExplainOptions &options) {
  return KernelExplain(options)();
}

} // namespace kiln::tools
