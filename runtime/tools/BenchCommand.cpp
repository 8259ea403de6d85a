// `kiln bench`: the library's kernels at sizes that fill a GPU, next to the device's own copy in the same run.
#include "kernels/support/Family.h"
#include "kernels/support/Runner.h"
#include "runtime/tools/BenchFirstCall.h"
#include "runtime/tools/BenchPrediction.h"
#include "runtime/tools/BenchResources.h"
#include "runtime/tools/BenchTiming.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/FamilyCalls.h"
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
  std::vector<std::string> kernels, dtypes{"f32", "bf16"}, with;
  unsigned samples = 15, batch = 20;
  std::optional<unsigned> firstCalls;    ///< processes
  std::optional<unsigned> firstCallHere; ///< of such a process: which of the calls
  bool check = true, predict = false, resources = false, flushL2 = false;
  bool measures() const { return !predict && !resources && !firstCalls && !firstCallHere; }
};

class Bench {
public:
  explicit Bench(const Options &options) : o(options) {}

  int operator()() {
    if (Status s = execute(); !s.ok())
      return fail("bench", s, o.run.json, std::move(report));
    report["wrong"] = wrong;
    report["status"] = wrong ? 1 : 0;
    if (o.run.json)
      printJson(report);
    return wrong ? 1 : 0;
  }

private:
  Status execute() {
    if (o.samples == 0 || o.samples > 1000 || o.batch == 0 || o.batch > 10000)
      return Status::invalid("--samples is 1 to 1000, --batch 1 to 10000");
    if (o.predict + o.resources + o.firstCalls.has_value() > 1)
      return Status::invalid("--predict, --resources and --first-call exclude each other",
                             "ask for one after the other");
    if (o.flushL2 && !o.measures())
      return Status::invalid("--flush-l2 goes with times of launches, not with --predict, --resources or --first-call",
                             "leave it out");
    if (o.firstCalls && (*o.firstCalls == 0 || *o.firstCalls > 100))
      return Status::invalid("--first-call " + std::to_string(*o.firstCalls) + ": 1 to 100 processes");
    if (o.predict) {
      KILN_ASSIGN(device, openForPrediction(o.run, hardware));
    } else {
      RunOptions run = o.run;
      run.noChecks |= o.resources; // nothing runs
      KILN_ASSIGN(device, openChosenDevice(run));
      if (o.resources && device->info().kind == DeviceKind::Emulator)
        KILN_TRY(recordSample(*device));
    }
    if (o.flushL2) {
      KILN_ASSIGN(flush, L2Flush::create(*device));
    }
    large = !o.measures() || device->info().kind == DeviceKind::Cuda;
    KILN_ASSIGN(const std::vector<FamilyCall> calls,
                chooseFamilyCalls(o.kernels, o.dtypes, o.with, {.reference = o.check && o.measures(), .samples = true},
                                  SampleUse::Bench, large));
    KILN_ASSIGN(jitOptions, chosenJitOptions(o.run));
    KILN_ASSIGN(jit, Jit::create(*device, JitOptions(jitOptions)));
    report["codeTarget"] = jit->codeTarget();
    report["device"] = device->info().name;
    report["description"] = device->info().description;
    report["driver"] = device->info().driver;
    report["flushedL2"] = o.flushL2;
    report["results"] = Json::array();
    if (o.predict) {
      report["hardware"] = hardware.name;
      if (!o.run.json)
        std::fputs(predictionHead(hardware.name).c_str(), stdout);
    } else if (!o.run.json && o.measures())
      std::printf("%s (%s)\n%-12s %-5s %-27s %9s %9s %9s %9s %8s  %s\n", device->info().name.c_str(),
                  device->info().description.c_str(), "kernel", "type", "shape", "median ms", "min ms", "max ms",
                  "GB/s", "TFLOP/s", "check");
    if (o.measures())
      KILN_TRY(deviceCopy());
    unsigned number = 0; ///< among the calls of one kernel and type
    for (const FamilyCall *last = nullptr; const FamilyCall &call : calls) {
      number = last && last->family == call.family && last->type == call.type ? number + 1 : 0;
      last = &call;
      if (o.firstCallHere.value_or(number) == number)
        KILN_TRY(
            one(call, number).withContext(std::string(call.family->name()) + " " + std::string(dtypeName(call.type))));
    }
    return {};
  }

  Result<Spread> time(const std::function<Status()> &launch) {
    return timeLaunches(*device,
                        {.samples = large ? o.samples : 3,
                         .batch = large ? o.batch : 1,
                         .flush = flush ? &*flush : nullptr,
                         .byEvents = large},
                        launch);
  }

  void row(std::string_view kernel, std::string_view type, const std::string &shape, const Spread &t, double bytes,
           double flops, const std::string &verdict) {
    const double rate = bytes / t.median * 1e-6, work = flops / t.median * 1e-9;
    report["results"].push_back({{"kernel", kernel},
                                 {"dtype", type},
                                 {"shape", shape},
                                 {"medianMs", t.median},
                                 {"minMs", t.least},
                                 {"maxMs", t.most},
                                 {"bytes", bytes},
                                 {"gigabytesPerSecond", rate},
                                 {"check", verdict}});
    if (flops > 0)
      report["results"].back().update({{"flops", flops}, {"teraflopsPerSecond", work}});
    if (!o.run.json)
      std::printf("%-12s %-5s %-27s %9.4f %9.4f %9.4f %9.1f %8s  %s\n", std::string(kernel).c_str(),
                  std::string(type).c_str(), shape.c_str(), t.median, t.least, t.most, rate,
                  flops > 0 ? format(large ? "%.1f" : "%.2g", work).c_str() : "-", verdict.c_str());
    std::fflush(stdout);
  }

  Status deviceCopy() {
    const std::size_t bytes = std::size_t(large ? 1 : 0) * (1ull << 30) + (1u << 20);
    KILN_ASSIGN(auto from, device->allocate(bytes, "from"));
    KILN_ASSIGN(auto to, device->allocate(bytes, "to"));
    KILN_TRY(from->fill(std::byte(1)));
    KILN_ASSIGN(const Spread t, time([&] { return to->copyFrom(*from); }));
    row("device copy", "bytes", std::to_string(bytes), t, 2.0 * static_cast<double>(bytes), 0, "the device's own");
    return {};
  }

  Status one(const FamilyCall &of, unsigned number) {
    if (o.predict) {
      KILN_ASSIGN(Json row, predictedRow(*device, *jit, hardware, of));
      if (!o.run.json) {
        std::fputs(predictionText(row).c_str(), stdout);
        std::fflush(stdout);
      }
      report["results"].push_back(std::move(row));
      return {};
    }
    if (o.resources) {
      KILN_ASSIGN(Json row, resourcesRow(*device, *jit, of));
      if (!o.run.json)
        std::fputs(resourcesText(row).c_str(), stdout);
      report["results"].push_back(std::move(row));
      return {};
    }
    if (o.firstCallHere) {
      KILN_ASSIGN(Json row, firstCallHere(*device, jitOptions, of));
      report["results"].push_back(std::move(row));
      return {};
    }
    if (o.firstCalls) {
      KILN_ASSIGN(Json row, firstCallRow(firstCallWords(of, number), *o.firstCalls, of));
      if (!o.run.json)
        std::fputs(firstCallText(row).c_str(), stdout);
      report["results"].push_back(std::move(row));
      return {};
    }
    const Callable &callable = *of.family->callable;
    const OptionValues &options = of.sample.options;
    KILN_ASSIGN(const Arrays inputs, randomInputsOf(*jit, of));
    KILN_ASSIGN(const PlacedCall placed, PlacedCall::create(*device, callable, inputs, options));
    const Call &call = placed.call();
    const Callable::Planner planner = callable.bind(*jit);
    KILN_ASSIGN(const Spread t, time([&] { return callable.run(*jit, planner, call, {}); }));
    std::string verdict = "not checked";
    if (o.check) {
      KILN_ASSIGN(const Arrays outputs, placed.readOutputs());
      KILN_ASSIGN(const Comparison comparison, compareWithReference(*of.family, inputs, options, outputs));
      wrong += !comparison.good();
      verdict = comparison.good() ? "good" : "WRONG: " + comparison.toString();
    }
    row(of.family->name(), dtypeName(of.type), sizeTextOf(of), t, callable.bytes(call), callable.flops(call), verdict);
    return {};
  }

  /// The command whose process makes one first call of it.
  std::vector<std::string> firstCallWords(const FamilyCall &of, unsigned number) const {
    std::vector<std::string> out = {"bench",
                                    std::string(of.family->name()),
                                    "--dtype",
                                    std::string(dtypeName(of.type)),
                                    "--device",
                                    device->info().name,
                                    "--first-call-here",
                                    std::to_string(number)};
    if (!o.run.codeTarget.empty())
      out.insert(out.end(), {"--code-target", o.run.codeTarget});
    for (const std::string &word : o.with)
      out.insert(out.end(), {"--with", word});
    return out;
  }

  const Options &o;
  JitOptions jitOptions;
  std::unique_ptr<Device> device; // before what it makes
  std::unique_ptr<Jit> jit;
  std::optional<L2Flush> flush;
  bool large = false;
  model::Hardware hardware; ///< of a prediction
  unsigned wrong = 0;
  Json report = Json::object();
};

} // namespace

void addBenchCommand(CLI::App &app, int &exitStatus) {
  auto o = std::make_shared<Options>();
  CLI::App *c = app.add_subcommand("bench", "Time the library's kernels next to the device's own copy");
  c->add_option("kernels", o->kernels, "kernels to time (default: all)")->type_name("KERNEL");
  c->add_option("--dtype", o->dtypes, "types (default: f32 bf16)")->type_name("DTYPE");
  c->add_option("--with", o->with,
                "NAME=SHAPE, NAME=SHAPE:DTYPE or NAME=V: sizes of the one kernel's inputs, also of another type, "
                "numbers, flags; "
                "NAME=FILE.npy: an input's values; "
                "NAME=1: an optional output; "
                "NAME=KERNEL: an input that another kernel makes; default: its own")
      ->type_name("NAME=V")
      ->allow_extra_args(false);
  c->add_option("--samples", o->samples, "batches; their median is reported")->type_name("N");
  c->add_option("--batch", o->batch, "launches of a batch, between two events")->type_name("N");
  c->add_flag(
      "--flush-l2", o->flushL2,
      "on a GPU: fill the L2 with other data before each launch, which is timed by itself (default: no, launches "
      "of a batch follow each other; the emulator has no L2)");
  c->add_option("--device", o->run.device, "auto (default), cuda:N or emulator:TARGET")->type_name("NAME");
  c->add_option("--target", o->run.target, "the same as --device emulator:TARGET")->type_name("TARGET");
  c->add_flag("!--no-check", o->check, "do not compare what was timed with float64");
  c->add_flag("--predict", o->predict,
              "times from the performance model: the emulator runs a sample of blocks at the GPU's sizes; nothing is "
              "timed or compared");
  c->add_flag("--resources", o->resources,
              "registers, spills and shared memory of the call's kernels, where an assembler is found; nothing is "
              "timed or compared");
  c->add_option("--first-call", o->firstCalls,
                "what the first call costs, of each kernel's call and of those that make its inputs, compiled side by "
                "side: the median of N new processes with an empty cache, and from the cache; nothing is run")
      ->type_name("N");
  c->add_option("--first-call-here", o->firstCallHere)->group(""); // not for people: what --first-call starts
  addCodeTarget(*c, o->run);
  c->add_flag("--json", o->run.json, "one JSON object on standard output");
  c->footer(
      "On a GPU the tensors are far larger than its caches; GB/s counts each input and output once,\n"
      "TFLOP/s the usual operations: 2 M N K of matmul; of attention 2 (D + Dv) for each pair of a query and a key\n"
      "that it sees, causal half.  What was timed is compared with float64: all of it, or of large products a sample.\n"
      "On the emulator sizes are small and times say nothing about a GPU, but for those of --predict: what a GPU of "
      "the\n"
      "target would take, and what limits it (docs/performance-model.md).\n"
      "Examples:\n"
      "  kiln bench softmax --dtype f32 --target sm_80\n"
      "  kiln bench attention --dtype bf16 --target sm_80 --with q=1x128x2x64 --with k=1x128x1x64 --with v=1x128x1x64 "
      "--with causal\n"
      "  kiln bench rwkv7_backward --dtype bf16 --target sm_80 --with saved=rwkv7\n"
      "  kiln bench softmax --dtype f32 --target sm_90a --predict\n"
      "  kiln bench softmax --dtype f32 --target sm_90a --resources\n"
      "  kiln bench add --dtype f32 --target sm_90a --first-call 3\n"
      "  kiln bench copy add --device cuda:0 --samples 31 --json\n"
      "Exit status: 0 good, 1 wrong results, 2 input, 3 compile, 4 device.");
  c->callback([o, &exitStatus] { exitStatus = Bench(*o)(); });
}

} // namespace kiln::tools
