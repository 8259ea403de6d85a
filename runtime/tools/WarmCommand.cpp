// `kiln warm`: the calls of a list compiled into the kernel cache, so that a program finds them there.
#include "kernels/support/Runner.h"
#include "kiln/Plan.h"
#include "runtime/cache/KernelCache.h"
#include "runtime/tools/BenchPrediction.h"
#include "runtime/tools/CallList.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/FamilyCalls.h"
#include "runtime/tools/LibraryRun.h"
#include "runtime/tools/Report.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

namespace kiln::tools {
namespace {

using namespace kernels;

struct Options {
  RunOptions run;
  std::string calls;
  unsigned jobs = 0;
};

/// One call, from its line to its kernels.
struct Warmed {
  std::string where, text; ///< "calls.txt, line 3", "add f32 4096"
  std::size_t line = 0;
  std::unique_ptr<PlanListing> launches; ///< null: it has none, as its status says
  CompileFuture code;
  bool reported = false;
};

class Warm {
public:
  explicit Warm(const Options &options) : o(options) {}

  int operator()() {
    if (const Status s = execute(); !s.ok())
      return fail("warm", s, o.run.json, std::move(report));
    report["status"] = worst;
    if (o.run.json)
      printJson(report);
    return worst;
  }

private:
  Status execute() {
    if (o.jobs > 256)
      return Status::invalid("--jobs " + std::to_string(o.jobs) + ": 1 to 256");
    KILN_ASSIGN(const std::vector<ListedCall> lines, readCallList(o.calls));
    if (lines.empty())
      return Status::invalid("'" + o.calls + "' names no call",
                             "write a call on each line, KERNEL [--dtype DTYPE] [--with NAME=V ..]");
    RunOptions run = o.run;
    run.noChecks = true; // nothing runs
    if (!run.target.empty()) {
      if (!run.device.empty())
        return Status::invalid("--device and --target exclude each other");
      run.device = "offline:" + std::exchange(run.target, {});
    }
    KILN_ASSIGN(device, openChosenDevice(run));
    KILN_ASSIGN(JitOptions options, chosenJitOptions(run));
    KILN_TRY(checkCache(options.knobs));
    options.backgroundThreads = o.jobs;
    KILN_ASSIGN(jit, Jit::create(*device, std::move(options)));
    report.update({{"device", device->info().name}, {"codeTarget", jit->codeTarget()}, {"calls", Json::array()}});
    for (const ListedCall &line : lines)
      if (Status s = begin(line); !s.ok()) {
        Warmed &call = calls.emplace_back(Warmed{line.where, join(line.words, " "), line.line, nullptr, {}});
        call.code = CompileFuture(std::move(s));
      }
    finishAll();
    report.update({{"compiled", compiled}, {"found", found}, {"failed", failed}});
    if (!o.run.json)
      std::printf("%zu calls for %s: %u kernels compiled, %u found, %u calls failed\n", calls.size(),
                  jit->codeTarget().c_str(), compiled, found, failed);
    return {};
  }

  /// What is compiled would be lost with this process.
  Status checkCache(const Knobs &knobs) {
    if (!knobs.dumpDir.empty())
      return Status::invalid("while stages are dumped (KILN_DUMP_DIR, --dump-dir) nothing is stored in the cache",
                             "leave it out");
    cache::CacheOptions how;
    KILN_ASSIGN(how.directory, cacheDirectory(knobs));
    report["cache"] = how.directory;
    return cache::KernelCache::open(std::move(how)).status();
  }

  /// Has the compiles of a line begun.  What is wrong with one call is its own status; with the words, this one's.
  Status begin(const ListedCall &line) {
    KILN_ASSIGN(const CallWords words, parseCallWords(line));
    KILN_ASSIGN(const std::vector<FamilyCall> all,
                chooseFamilyCalls(words.kernels, words.dtypes, words.with, {.samples = true}, SampleUse::Bench,
                                  /*large=*/true));
    for (const FamilyCall &of : all) {
      Warmed &call = calls.emplace_back();
      call.where = line.where;
      call.line = line.line;
      call.text = std::string(of.family->name()) + " " + std::string(dtypeName(of.type)) + " " + sizeTextOf(of);
      if (Status s = list(of, call); !s.ok())
        call.code = CompileFuture(std::move(s));
    }
    return {};
  }

  Status list(const FamilyCall &of, Warmed &call) {
    const Callable &callable = *of.family->callable;
    KILN_ASSIGN(const Arrays inputs, randomInputsOf(*jit, of, InputValues::Any));
    KILN_ASSIGN(const PlacedCall placed, PlacedCall::createForPlans(*device, callable, inputs, optionsAsOnGpu(of)));
    auto launches = std::make_unique<PlanListing>();
    KILN_TRY(callable.bind(*jit)(placed.call(), *launches));
    std::vector<CompileFuture> all;
    for (const PlanListing::Launch &launch : launches->launches)
      all.push_back(launch.kernel->prepareAsync(launch.arguments()));
    call.code = CompileFuture::all(std::move(all));
    call.launches = std::move(launches);
    return {};
  }

  void finishAll() {
    for (std::size_t first = 0; first < calls.size();) {
      for (std::size_t i = first; i < calls.size(); ++i)
        if (!calls[i].reported && calls[i].code.isReady())
          finish(calls[i]);
      while (first < calls.size() && calls[first].reported)
        ++first;
      if (first < calls.size())
        (void)calls[first].code.waitFor(std::chrono::milliseconds(50));
    }
  }

  void refuse(const Warmed &call, const Status &s, Json &row) {
    ++failed;
    worst = std::max(worst, s.exitCode());
    row["error"] = {{"message", s.message()}, {"remedy", s.remedy()}};
    std::fprintf(stderr, "%zu/%zu  failed  %s: %s: %s\n", done, calls.size(), call.where.c_str(), call.text.c_str(),
                 s.toString().c_str());
  }

  void finish(Warmed &call) {
    call.reported = true;
    ++done;
    Json row = {{"line", call.line}, {"call", call.text}};
    if (const Status s = call.code.wait(); !s.ok()) {
      refuse(call, s, row);
    } else {
      unsigned made = 0, there = 0, lost = 0;
      double milliseconds = 0;
      for (const PlanListing::Launch &launch : call.launches->launches)
        if (const Result<const LoadedKernel *> loaded = launch.kernel->prepare(launch.arguments());
            loaded && seen.insert(*loaded).second) {
          const FirstCallReport &first = (*loaded)->report();
          lost += first.source == FirstCallReport::Source::Compiled &&
                  std::ranges::none_of(first.stages, [](const auto &s) { return s.name == "store"; });
          ++(first.source == FirstCallReport::Source::Compiled ? made : there);
          milliseconds += first.milliseconds;
        }
      compiled += made;
      found += there;
      row.update({{"compiled", made}, {"found", there}, {"milliseconds", milliseconds}});
      if (lost) { // what was compiled is gone with this process
        refuse(call,
               Status(StatusCode::IoError, std::to_string(lost) + " of its kernels could not be stored in the cache",
                      "make room in the cache's folder, or raise KILN_CACHE_MAX_BYTES"),
               row);
      }
      std::fprintf(stderr, "%zu/%zu  %u compiled, %u found  %.2f s  %s\n", done, calls.size(), made, there,
                   milliseconds / 1000, call.text.c_str());
    }
    call.launches.reset();
    report["calls"].push_back(std::move(row));
  }

  const Options &o;
  std::unique_ptr<Device> device; // before what it makes
  std::unique_ptr<Jit> jit;
  std::vector<Warmed> calls;
  std::set<const LoadedKernel *> seen; ///< a kernel counts once, for the first call that it is of
  std::size_t done = 0;
  unsigned compiled = 0, found = 0, failed = 0;
  int worst = 0;
  Json report = Json::object();
};

} // namespace

void addWarmCommand(CLI::App &app, int &exitStatus) {
  auto o = std::make_shared<Options>();
  CLI::App *c = app.add_subcommand("warm", "Compile the calls of a list into the kernel cache");
  c->add_option("calls", o->calls, "a text file with a call a line: the words after kiln bench; # begins a comment")
      ->type_name("FILE")
      ->required();
  c->add_option("--device", o->run.device, "auto (default), cuda:N, emulator:TARGET or offline:TARGET[:N]")
      ->type_name("NAME");
  c->add_option("--target", o->run.target, "the same as --device offline:TARGET: a GPU that is elsewhere")
      ->type_name("TARGET");
  addCodeTarget(*c, o->run);
  c->add_option("--jobs", o->jobs, "compiles at a time (default: the cores, at most 16)")->type_name("N");
  c->add_flag("--json", o->run.json, "one JSON object on standard output");
  c->footer("Nothing runs. A call that fails is reported, and the others go on.\n"
            "Examples:\n"
            "  kiln warm docs/examples/calls.txt --target sm_90a\n"
            "Exit status: that of the worst call: 0 good, 2 input, 3 compile, 4 device.");
  c->callback([o, &exitStatus] { exitStatus = Warm(*o)(); });
}

} // namespace kiln::tools
