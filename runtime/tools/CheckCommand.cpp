// `kiln check`: kernels on the emulator with every check on; those of the library also against float64.
#include "kernels/support/Family.h"
#include "kernels/support/Runner.h"
#include "kiln/Knobs.h"
#include "runtime/io/File.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/FamilyCalls.h"
#include "runtime/tools/FamilyWords.h"
#include "runtime/tools/LibraryRun.h"
#include "runtime/tools/RunProgram.h"
#include "support/Names.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

namespace kiln::tools {
namespace {

using namespace kernels;

/// Exit statuses below it say that the command line or a file is wrong.
constexpr int compileStatus = 3;

/// Of one launch: a kernel that does not end must not keep the check from ending, whatever the schedule.
constexpr double defaultSeconds = 120;

struct Options {
  Options() { run.emulator.secondsBudget = defaultSeconds; }
  std::vector<std::string> what, with, targets, dtypes{"f32", "f16", "bf16"},
      schedules{"in-order", "random", "adversarial"};
  std::uint64_t seed = 1;
  RunOptions run; ///< file, --grid, --arg and the like
  bool decode = false;
  bool json = false;
};

class Check {
public:
  explicit Check(const Options &options) : o(options) {}

  int operator()() {
    report["checked"] = Json::array();
    report["failed"] = Json::array();
    Status s = execute();
    if (s.ok() && runs == 0 && !failures.empty())
      s = failures[0];
    if (!s.ok())
      return fail("check", s, o.json, std::move(report));
    const int status = bad ? 1 : failures.empty() ? 0 : failures[0].exitCode();
    report["runs"] = runs;
    report["bad"] = bad;
    report["status"] = status;
    for (const Status &f : failures)
      std::fprintf(stderr, "kiln check: %s\n", f.toString().c_str());
    if (o.json)
      printJson(report);
    else
      verdict();
    return status;
  }

private:
  Status execute() {
    KILN_TRY(checkBudgets(o.run.emulator));
    KILN_ASSIGN(const Knobs knobs, Knobs::fromEnvironment());
    mma = knobs.mma;
    strictProxy = knobs.strictProxy;
    report["mma"] = matrixModeName(mma);
    report["timeout"] = o.run.emulator.secondsBudget;
    const bool files = std::any_of(o.what.begin(), o.what.end(), isFile);
    if (files && o.what.size() > 1)
      return Status::invalid("a file is checked alone, because --grid and --arg are its own; " +
                                 std::to_string(o.what.size()) + " words were given",
                             "check one after the other");
    if (!files && (!o.run.grid.empty() || !o.run.block.empty() || !o.run.arguments.empty()))
      return Status::invalid("'" + o.what[0] +
                                 "' is a kernel of the library: its inputs are made, --grid, --block and "
                                 "--arg are for files",
                             "leave them out");
    std::vector<Schedule> schedules;
    for (const std::string &name : o.schedules) {
      KILN_ASSIGN(const Schedule schedule, parseSchedule(name));
      schedules.push_back(schedule);
    }
    if (files && !o.with.empty())
      return Status::invalid("--with " + o.with[0] + ": it is of a kernel of the library, and '" + o.what[0] +
                                 "' is a file",
                             "leave it out");
    if (o.decode && (!files || isTextKernel(o.what[0])))
      return Status::invalid("--decode is for PTX, '" + o.what[0] + "' is none", "leave it out");
    if (files) {
      KILN_ASSIGN(const std::vector<std::string> targets, fileTargets(o.what[0]));
      if (o.decode) {
        for (const std::string &target : targets)
          KILN_TRY(decodeFile(target));
        return {};
      }
      for (const std::string &target : targets)
        for (Schedule schedule : schedules)
          KILN_TRY(unlessFailed(o.what[0], target, [&] { return checkFile(target, schedule); }));
      return {};
    }
    KILN_ASSIGN(const std::vector<FamilyCall> calls,
                chooseFamilyCalls(o.what, o.dtypes, o.with, {.reference = true, .samples = true}, SampleUse::Check,
                                  /*large=*/false));
    for (const std::string &target : o.targets.empty() ? std::vector<std::string>{"sm_80", "sm_90a"} : o.targets) {
      first.clear();
      for (Schedule schedule : schedules) {
        KILN_ASSIGN(const std::unique_ptr<Device> device, openDevice(target, schedule));
        KILN_ASSIGN(const std::unique_ptr<Jit> jit, Jit::create(*device));
        for (const auto &[family, sample, type] : calls)
          KILN_TRY(unlessFailed(std::string(family->name()) + " " + std::string(dtypeName(type)), target,
                                [&] { return checkLibrary(*jit, *family, type, sample, target, schedule); }));
      }
    }
    return {};
  }

  /// Runs `check`, but not again what has failed on the target.  A kernel that one target cannot compile or run says
  /// nothing about the others, so that is kept for the end; a wrong command line ends everything.
  template <typename Fn> Status unlessFailed(const std::string &what, const std::string &target, Fn check) {
    const std::string place = what + " on " + target;
    if (failed.count(place))
      return {};
    Status s = check();
    if (s.ok())
      return {};
    if (s.exitCode() < compileStatus)
      return std::move(s).withContext(place);
    failed.insert(place);
    keepFailure(what, target, std::move(s), place);
    return {};
  }

  void keepFailure(const std::string &what, const std::string &target, Status s, const std::string &context) {
    report["failed"].push_back({{"kernel", what},
                                {"target", target},
                                {"message", s.message()},
                                {"remedy", s.remedy()},
                                {"status", s.exitCode()}});
    failures.push_back(std::move(s).withContext(context));
  }

  static bool isFile(const std::string &word) { return !namesLibraryKernel(word); }

  /// PTX runs on the architecture that it names; text is compiled for each target.
  Result<std::vector<std::string>> fileTargets(const std::string &file) const {
    if (!o.targets.empty())
      return o.targets;
    if (isTextKernel(file))
      return std::vector<std::string>{"sm_80", "sm_90a"};
    KILN_ASSIGN(const std::string ptx, readTextFile(file));
    for (std::string_view line : split(ptx, '\n')) {
      const std::size_t word = line.find_first_not_of(" \t");
      if (word == std::string_view::npos || !line.substr(word).starts_with(".target"))
        continue;
      const std::size_t begin = line.find("sm_", word);
      const std::string name(line.substr(std::min(begin, line.size()), line.find_first_of(", \t\r;", begin) - begin));
      if (findTarget(name))
        return std::vector<std::string>{name};
    }
    return std::vector<std::string>{"sm_90a"};
  }

  Result<std::unique_ptr<Device>> openDevice(const std::string &target, Schedule schedule) const {
    EmulatorOptions emulator = o.run.emulator;
    emulator.checks = true;
    emulator.schedule = schedule;
    emulator.seed = o.seed;
    emulator.mma = mma;
    emulator.strictProxy = strictProxy;
    return kiln::openDevice("emulator:" + target, emulator);
  }

  Status checkFile(const std::string &target, Schedule schedule) {
    RunOptions run = o.run;
    run.file = o.what[0];
    KILN_ASSIGN(const std::vector<KernelArgument> arguments, parseArguments(run.arguments, run.buffers));
    KILN_ASSIGN(const std::unique_ptr<Device> device, openDevice(target, schedule));
    FirstCalls firstCalls;
    KILN_ASSIGN(const std::unique_ptr<RunProgram> program, loadProgram(*device, run, firstCalls));
    KILN_TRY(checkArguments(arguments, program->info()));
    KILN_TRY(program->checkArguments(arguments));
    KILN_ASSIGN(const BoundArguments bound, BoundArguments::bind(*device, arguments, program->info()));
    KILN_TRY(program->prepare(bound.packed));
    const Status launched = program->launch(bound.packed);
    const std::vector<Finding> findings = device->takeFindings();
    // A fatal finding says why the launch ended; anything else (a budget) is told apart from what was found before.
    const bool explained = std::any_of(findings.begin(), findings.end(), [](const Finding &f) { return f.fatal; });
    if (launched.ok() || !findings.empty())
      add(program->info().name, target, schedule, run.file, findings, {});
    return explained ? Status() : launched;
  }

  /// Whether the target can run each kernel of a PTX file; nothing is launched.
  Status decodeFile(const std::string &target) {
    const std::string &file = o.what[0];
    KILN_ASSIGN(const std::string text, readTextFile(file));
    KILN_ASSIGN(const std::unique_ptr<Device> device, openDevice(target, Schedule::InOrder));
    KILN_TRY(unlessFailed(file, target, [&]() -> Status {
      KILN_ASSIGN(const std::unique_ptr<Module> module, device->loadPtx(text, file));
      unsigned number = 0;
      for (const std::string &name : module->kernelNames())
        decodeKernel(*module, name, target, ++number);
      return {};
    }));
    return {};
  }

  void decodeKernel(Module &module, const std::string &name, const std::string &target, unsigned number) {
    const std::string place = shortName(demangled(name), 100) + " on " + target;
    Status s = module.kernel(name).status();
    lines.push_back(std::to_string(number) + ": " + place + (s.ok() ? ": decoded" : ": refused"));
    if (s.ok()) {
      ++runs;
      report["checked"].push_back({{"kernel", name}, {"target", target}, {"good", true}});
      return;
    }
    failed.insert(std::to_string(number) + " on " + target);
    keepFailure(name, target, std::move(s), place);
  }

  Status checkLibrary(Jit &jit, const Family &family, DType type, const Sample &sample, const std::string &target,
                      Schedule schedule) {
    KILN_ASSIGN(const Arrays inputs, sampleInputs(jit, family, sample, o.seed));
    KILN_ASSIGN(const RunnerResult result, runCall(jit, *family.callable, inputs, sample.options));
    std::string what(dtypeName(type));
    for (const auto &[name, array] : inputs)
      what += ", " + name + " " + shapeText(array.shape);
    what += optionsText(*family.callable, sample.options);
    std::string wrong;
    const bool defects = std::any_of(result.findings.begin(), result.findings.end(), isDefect);
    if (!defects) {
      KILN_ASSIGN(const Comparison comparison, compareWithReference(family, inputs, sample.options, result.outputs));
      if (!comparison.good())
        wrong = comparison.toString() + " (float64 reference)";
      // The order of warps and blocks must not show in the result, not in its last bit.
      const auto [known, isNew] = first.try_emplace(std::string(family.name()) + " " + what, result.outputs);
      for (const auto &[name, array] : result.outputs)
        if (!isNew && wrong.empty() && known->second.at(name).data != array.data)
          wrong = "output '" + name + "' differs from that of schedule " + o.schedules[0] + ", on the same inputs";
    }
    add(std::string(family.name()), target, schedule, what, result.findings, wrong);
    return {};
  }

  static bool isDefect(const Finding &f) { return !f.note; }

  void add(const std::string &kernel, const std::string &target, Schedule schedule, const std::string &what,
           const std::vector<Finding> &all, const std::string &wrong) {
    const std::vector<Finding> findings = groupFindings(all);
    ++runs;
    kernels.insert(kernel);
    targets.insert(target);
    const bool good = wrong.empty() && std::none_of(findings.begin(), findings.end(), isDefect);
    bad += !good;
    Json list = Json::array();
    for (const Finding &f : findings)
      list.push_back(toJson(f));
    report["checked"].push_back({{"kernel", kernel},
                                 {"target", target},
                                 {"schedule", scheduleName(schedule)},
                                 {"inputs", what},
                                 {"good", good},
                                 {"findings", std::move(list)},
                                 {"wrong", wrong}});
    if (o.json || good)
      return;
    // The same defect shows in many runs: each place once, with the first run that met it.
    std::string text;
    for (const Finding &f : findings)
      if (isDefect(f) && seen.insert(f.id + f.kernel + f.location + std::to_string(f.ptxLine)).second)
        text += f.toString() + "\n";
    if (!wrong.empty())
      text += "wrong: " + wrong + "\n";
    if (!text.empty())
      std::printf("kernel %s on %s, schedule %s, %s:\n%s", shortName(kernel).c_str(), target.c_str(),
                  std::string(scheduleName(schedule)).c_str(), what.c_str(), text.c_str());
  }

  void verdict() const {
    if (o.decode) {
      for (const std::string &line : lines)
        std::printf("%s\n", line.c_str());
      std::printf("%s: %s: %u of %zu kernels decoded%s\n", failed.empty() ? "good" : "INCOMPLETE", o.what[0].c_str(),
                  runs, runs + failed.size(),
                  failed.empty() ? ""
                                 : ("; not: " + join(std::vector<std::string>(failed.begin(), failed.end()))).c_str());
      return;
    }
    const std::string where =
        join(shortNames(kernels)) + " on " + join(std::vector<std::string>(targets.begin(), targets.end()));
    const std::string count = std::to_string(runs) + (runs == 1 ? " run" : " runs") + " (" + join(o.schedules) +
                              (mma == MatrixMode::Exact ? "" : ", mma " + std::string(matrixModeName(mma))) + ")";
    const bool library = !isFile(o.what[0]);
    std::string text;
    if (bad)
      text = "BAD: " + where + ": " + std::to_string(bad) + " of " + count + " with findings" +
             (library ? " or wrong results" : "");
    else
      text = (failed.empty() ? "good: " : "INCOMPLETE: ") + where + ": " + count + ", no finding" +
             (library ? ", all results within tolerance of float64" : "");
    if (!failed.empty())
      text += "; not compiled or not run: " + join(std::vector<std::string>(failed.begin(), failed.end()));
    std::printf("%s\n", text.c_str());
  }

  const Options &o;
  MatrixMode mma = MatrixMode::Exact;
  bool strictProxy = false;
  unsigned runs = 0, bad = 0;
  std::set<std::string> kernels, targets, seen, failed; ///< failed: "softmax f32 on sm_75"
  std::vector<Status> failures;
  std::vector<std::string> lines;      ///< --decode: of each kernel
  std::map<std::string, Arrays> first; ///< outputs of the first schedule, by kernel and inputs
  Json report = Json::object();
};

} // namespace

void addCheckCommand(CLI::App &app, int &exitStatus) {
  auto o = std::make_shared<Options>();
  CLI::App *c = app.add_subcommand("check", "Run kernels on the emulator with every check on");
  c->add_option("what", o->what, "kernels of the library, or one file: a text kernel (.mlir) or PTX")
      ->required()
      ->type_name("KERNEL|FILE");
  c->add_option("--target", o->targets,
                "GPUs to imitate, with commas between (default: sm_80,sm_90a; of PTX the one that it names)")
      ->type_name("TARGETS")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--dtype", o->dtypes, "library kernels: types (default: f32,f16,bf16)")
      ->type_name("DTYPES")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option(
       "--with", o->with,
       "library kernels: NAME=SHAPE, NAME=FILE.npy or NAME=V of the one kernel's call, as in kiln bench; default: "
       "its own calls")
      ->type_name("NAME=V")
      ->allow_extra_args(false);
  c->add_option("--schedule", o->schedules,
                "orders in which warps and blocks run (default: in-order,random,adversarial)")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--seed", o->seed, "of the schedules, and of the inputs of library kernels")->type_name("N");
  c->add_option("--entry", o->run.entry, "files: the kernel, as in kiln run")->type_name("NAME");
  c->add_option("--grid", o->run.grid, "files: blocks, as in kiln run")->type_name("DIMS");
  c->add_option("--block", o->run.block, "PTX: threads of a block")->type_name("DIMS");
  c->add_option("--cluster", o->run.cluster, "PTX: blocks of a cluster")->type_name("DIMS");
  c->add_option("--shared", o->run.sharedBytes, "PTX: dynamic shared memory of a block")->type_name("BYTES");
  c->add_flag("--cooperative", o->run.cooperative, "PTX: all blocks run at the same time, for grid.sync()");
  c->add_option("--arg", o->run.arguments, "files: one argument, as in kiln run")
      ->type_name("ARG")
      ->allow_extra_args(false);
  c->add_option("--buffer", o->run.buffers, "files: a buffer that is no argument, as in kiln run")
      ->type_name("NAME=ARG")
      ->allow_extra_args(false);
  c->add_option("--threads", o->run.emulator.hostThreads, "host threads; 0: one a core")->type_name("N");
  c->add_option("--instruction-budget", o->run.emulator.instructionBudget,
                "end a launch after N warp instructions; 0: 2^40")
      ->type_name("N");
  c->add_option("--timeout", o->run.emulator.secondsBudget, "end a launch after S seconds (default: 120); 0: never")
      ->type_name("S");
  c->add_flag("--first-nan", o->run.emulator.firstNan,
              "also report each instruction whose result is NaN though no operand is, or infinite of finite ones");
  c->add_flag("--decode", o->decode, "PTX: only see whether the target can run each kernel of the file");
  c->add_flag("--json", o->json, "one JSON object on standard output");
  c->footer(
      "Checked are accesses out of bounds or misaligned, reads of memory that nobody wrote, barriers that not all\n"
      "threads reach, races, and what else docs/emulator.md lists, in several orders of warps and blocks.\n"
      "Kernels of the library run on random inputs of four sizes; their results are compared with a float64\n"
      "reference within the kernel's documented tolerance, and bit by bit between the orders.\n"
      "Examples:\n"
      "  kiln check softmax\n"
      "  kiln check add copy --target sm_75,sm_120a --dtype bf16 --schedule adversarial --seed 7\n"
      "  kiln check docs/examples/scale.mlir --grid 2 --arg x.npy --arg out:f32:1000 --arg f32:0.5 --arg i32:1000\n"
      "  kiln check docs/examples/vector.ptx --entry iota --grid 4 --block 128 --arg out:f32:500 --arg u32:500 --json\n"
      "A kernel that does not compile or run on one target does not end the check.\n"
      "Exit status: 0 good, 1 findings or wrong results, 2 input, 3 compile, 4 device.");
  c->callback([o, &exitStatus] { exitStatus = Check(*o)(); });
}

} // namespace kiln::tools
