// `kiln demo`: every kernel of the library compiled, run, compared with float64, reported.
#include "kernels/support/Family.h"
#include "kernels/support/Runner.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/LibraryRun.h"
#include "runtime/tools/Report.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace kiln::tools {
namespace {

using namespace kernels;

struct Options {
  RunOptions run;
  std::vector<std::string> kernels, dtypes{"f32", "f16", "bf16"};
  std::uint64_t seed = 1;
};

class Demo {
public:
  explicit Demo(const Options &options) : o(options) {}

  int operator()() {
    if (Status s = execute(); !s.ok())
      return fail("demo", s, o.run.json, std::move(report));
    report["wrong"] = wrong;
    report["status"] = wrong ? 1 : 0;
    if (o.run.json)
      printJson(report);
    else
      std::printf("%u of %u good on %s (%s)\n", total - wrong, total, device->info().name.c_str(),
                  device->info().description.c_str());
    return wrong ? 1 : 0;
  }

private:
  Status execute() {
    KILN_ASSIGN(const std::vector<KernelTypes> chosen,
                selectKernels(o.kernels, o.dtypes, {.reference = true, .samples = true}));
    KILN_ASSIGN(device, openChosenDevice(o.run));
    KILN_ASSIGN(JitOptions options, chosenJitOptions(o.run));
    KILN_ASSIGN(jit, Jit::create(*device, std::move(options)));
    report["codeTarget"] = jit->codeTarget();
    report["device"] = device->info().name;
    report["kernels"] = Json::array();
    if (!o.run.json)
      std::printf("%-12s %-5s %-27s %10s %10s  %s\n", "kernel", "type", "shape", "first ms", "again ms",
                  "against float64");
    for (const auto &[family, types] : chosen)
      for (const DType type : types)
        for (const Sample &sample :
             family->samples->calls(type, SampleUse::Demo, device->info().kind == DeviceKind::Cuda))
          KILN_TRY(
              one(*family, type, sample).withContext(std::string(family->name()) + " " + std::string(dtypeName(type))));
    return {};
  }

  Status one(const Family &family, DType type, const Sample &sample) {
    KILN_ASSIGN(const Arrays inputs, sampleInputs(*jit, family, sample, o.seed));
    KILN_ASSIGN(const RunnerResult result, runCall(*jit, *family.callable, inputs, sample.options, {.repeat = 2}));
    ++total;
    std::string verdict;
    bool good = false;
    for (const Finding &f : result.findings)
      verdict += (verdict.empty() ? "" : "; ") + f.toString();
    if (result.findings.empty()) {
      KILN_ASSIGN(const Comparison comparison, compareWithReference(family, inputs, sample.options, result.outputs));
      good = comparison.good();
      verdict = comparison.toString();
    }
    wrong += !good;
    const std::string size = family.callable->sizeText(sample.inputs, sample.options);
    const double again = result.milliseconds.size() > 1 ? result.milliseconds[1] : 0;
    report["kernels"].push_back({{"kernel", family.name()},
                                 {"dtype", dtypeName(type)},
                                 {"shape", size},
                                 {"firstCallMs", result.firstCallMilliseconds},
                                 {"milliseconds", again},
                                 {"good", good},
                                 {"comparison", verdict}});
    if (!o.run.json)
      std::printf("%-12s %-5s %-27s %10.2f %10.3f  %s%s\n", std::string(family.name()).c_str(),
                  std::string(dtypeName(type)).c_str(), size.c_str(), result.firstCallMilliseconds, again,
                  good ? "" : "WRONG: ", verdict.c_str());
    std::fflush(stdout);
    return {};
  }

  const Options &o;
  std::unique_ptr<Device> device; // before what it makes
  std::unique_ptr<Jit> jit;
  unsigned total = 0, wrong = 0;
  Json report = Json::object();
};

} // namespace

void addDemoCommand(CLI::App &app, int &exitStatus) {
  auto o = std::make_shared<Options>();
  CLI::App *c = app.add_subcommand("demo", "Compile, run and check every kernel of the library");
  c->add_option("kernels", o->kernels, "kernels to show (default: all)")->type_name("KERNEL");
  c->add_option("--dtype", o->dtypes, "types (default: f32 f16 bf16)")->type_name("DTYPE");
  c->add_option("--seed", o->seed, "of the random inputs")->type_name("N");
  c->add_option("--device", o->run.device, "auto (default), cuda:N or emulator:TARGET")->type_name("NAME");
  c->add_option("--target", o->run.target, "the same as --device emulator:TARGET")->type_name("TARGET");
  addCodeTarget(*c, o->run);
  c->add_flag("--json", o->run.json, "one JSON object on standard output");
  c->footer("Inputs are random, outputs are poisoned first, results are compared with float64 within each kernel's\n"
            "documented tolerance.\n"
            "Examples:\n"
            "  kiln demo\n"
            "  kiln demo softmax layer_norm --dtype bf16 --device emulator:sm_90a\n"
            "Exit status: 0 good, 1 wrong results or findings, 2 input, 3 compile, 4 device.");
  c->callback([o, &exitStatus] { exitStatus = Demo(*o)(); });
}

} // namespace kiln::tools
