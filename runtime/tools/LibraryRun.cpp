#include "runtime/tools/LibraryRun.h"

#include "kernels/support/Family.h"
#include "kernels/support/Runner.h"
#include "runtime/tools/FamilyWords.h"
#include "runtime/tools/FirstCalls.h"
#include "runtime/tools/RunRecording.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdio>

namespace kiln::tools {

using namespace kernels;

namespace {

class LibraryRun {
public:
  LibraryRun(const RunOptions &options, const std::vector<std::string> &extras) : o(options), extras(extras) {}

  int operator()() {
    Status s = prepare();
    if (s.ok())
      s = execute();
    report["findings"] = Json::array();
    result.findings = groupFindings(std::move(result.findings));
    for (const Finding &f : result.findings) {
      report["findings"].push_back(toJson(f));
      if (!o.json)
        std::printf("%s\n", f.toString().c_str());
    }
    const bool defects =
        std::any_of(result.findings.begin(), result.findings.end(), [](const Finding &f) { return !f.note; });
    if (s.ok())
      s = recording.finish(*device, report);
    if (s.ok() && !defects)
      s = writeOutputs();
    if (!s.ok())
      return fail("run", s, o.json, std::move(report));
    return finish(defects);
  }

private:
  Status prepare() {
    if (!o.arguments.empty() || !o.grid.empty() || !o.block.empty())
      return Status::invalid("'" + o.file +
                                 "' is a kernel of the library: it takes named parameters, not --arg, --grid "
                                 "or --block",
                             "see kiln run --help");
    KILN_TRY(checkBudgets(o.emulator));
    if (o.repeat == 0 || o.repeat > 1000000)
      return Status::invalid("--repeat " + std::to_string(o.repeat) + " is not between 1 and 1000000");
    KILN_ASSIGN(const Family *family, findFamily(o.file));
    callable = family->callable.get();
    KILN_TRY(recording.prepare());
    KILN_TRY(readWords());
    for (std::size_t i = 0; i < o.outputs.size(); ++i) {
      const std::vector<TensorParameter> all = callable->tensors();
      const auto first = std::find_if(all.begin(), all.end(), [](const TensorParameter &p) { return p.output; });
      if (i > 0 || first == all.end())
        return Status::invalid("--output was given " + std::to_string(o.outputs.size()) + " times",
                               "name each output: " + parameterList(*callable));
      KILN_TRY(addOutput(first->name, o.outputs[i]));
    }
    for (const auto &[name, array] : inputs)
      types[name] = {array.type, array.shape};
    KILN_TRY(requireInputs(*callable, types));
    return {};
  }

  Status readWords() {
    KILN_ASSIGN(FamilyWords words, parseFamilyWords(*callable, extras));
    values = std::move(words.options);
    std::optional<DType> type;
    if (!o.dtype.empty()) {
      KILN_ASSIGN(type, parseDType(o.dtype));
    }
    for (const TensorParameter &p : callable->tensors())
      for (const auto &[name, file] : words.tensors) {
        if (!p.has(name))
          continue;
        if (p.output) {
          KILN_TRY(addOutput(name, file));
          if (p.optional)
            values[name] = true;
        } else {
          KILN_ASSIGN(Array array, readInput(name, file, callable->inputType(p, type, values)));
          KILN_TRY(checkInputType(*callable, p, file, array.type, type, values));
          inputs[name] = std::move(array);
        }
      }
    return {};
  }

  Status addOutput(const std::string &name, const std::string &file) {
    for (const auto &[other, opened] : outputFiles)
      if (opened.second == file)
        return Status::invalid("two outputs are written to '" + file + "'", "give each its own file");
    KILN_ASSIGN(OutputFile opened, OutputFile::create(file));
    outputFiles.emplace(name, std::pair(std::move(opened), file));
    return {};
  }

  Status execute() {
    KILN_ASSIGN(device, openChosenDevice(o));
    KILN_TRY(recording.start(*device));
    report["kernel"] = o.file;
    report["device"] = device->info().name;
    report["size"] = callable->sizeText(types, values);
    KILN_ASSIGN(JitOptions options, chosenJitOptions(o));
    firstCalls.collect(options);
    KILN_ASSIGN(jit, Jit::create(*device, std::move(options)));
    // A GPU's first run lasts as long as its compiles: one more, and its time is left out.
    const bool gpu = device->info().kind == DeviceKind::Cuda;
    KILN_ASSIGN(result, runCall(*jit, *callable, inputs, values, {.repeat = o.repeat + (gpu ? 1 : 0)}));
    if (gpu && !result.milliseconds.empty())
      result.milliseconds.erase(result.milliseconds.begin());
    else if (!result.milliseconds.empty()) // the host's clock ran through both
      result.milliseconds[0] = std::max(0.0, result.milliseconds[0] - firstCalls.milliseconds());
    return {};
  }

  Status writeOutputs() {
    report["outputs"] = Json::array();
    for (auto &[name, file] : outputFiles)
      KILN_TRY(writeNpy(file.first, result.outputs.at(name)));
    for (auto &[name, file] : outputFiles) {
      KILN_TRY(file.first.commit());
      const Array &array = result.outputs.at(name);
      report["outputs"].push_back(
          {{"parameter", name}, {"file", file.second}, {"dtype", dtypeNumpyName(array.type)}, {"shape", array.shape}});
    }
    return {};
  }

  int finish(bool defects) {
    const int status = defects ? 1 : 0;
    const JitCounters counters = jit->counters();
    report["compiles"] = counters.compiles;
    report["diskHits"] = counters.diskHits;
    report["sharedHits"] = counters.sharedHits;
    report["firstCalls"] = firstCalls.toJson();
    if (!result.milliseconds.empty()) {
      std::vector<double> sorted = result.milliseconds;
      std::sort(sorted.begin(), sorted.end());
      const double median = (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
      report["times"] = {{"runs", sorted.size()},
                         {"firstCallMs", result.firstCallMilliseconds},
                         {"medianMs", median},
                         {"bytes", result.bytes},
                         {"gigabytesPerSecond", median > 0 ? result.bytes / median * 1e-6 : 0}};
      if (result.flops > 0)
        report["times"].update(
            {{"flops", result.flops}, {"teraflopsPerSecond", median > 0 ? result.flops / median * 1e-9 : 0}});
    }
    report["status"] = status;
    if (o.json) {
      printJson(report);
      return status;
    }
    std::fputs(firstCalls.toString(o.explainMiss).c_str(), stdout);
    std::printf("%s: kernel '%s' (%s): %s; %llu compiled, %llu from the cache on disk%s\n", device->info().name.c_str(),
                o.file.c_str(), report.value("size", "").c_str(), defects ? "findings; no output was written" : "good",
                static_cast<unsigned long long>(counters.compiles), static_cast<unsigned long long>(counters.diskHits),
                counters.sharedHits ? (", " + std::to_string(counters.sharedHits) + " from shared caches").c_str()
                                    : "");
    recording.print();
    if (report.contains("times")) {
      const Json &times = report["times"];
      const std::string work =
          times.contains("flops")
              ? format("%.3g TFLOP/s", times["teraflopsPerSecond"].get<double>())
              : format("%.2f GB/s of what must cross the memory bus", times["gigabytesPerSecond"].get<double>());
      std::printf("time: %u run%s, median %.4f ms, %s; first call %.2f ms\n", o.repeat, o.repeat == 1 ? "" : "s",
                  times["medianMs"].get<double>(), work.c_str(), result.firstCallMilliseconds);
    }
    for (const Json &out : report.value("outputs", Json::array()))
      std::printf("%s -> %s\n", out["parameter"].get<std::string>().c_str(), out["file"].get<std::string>().c_str());
    return status;
  }

  const RunOptions &o;
  const std::vector<std::string> &extras;
  const Callable *callable = nullptr;
  Arrays inputs;
  TensorTypes types; ///< of the inputs
  OptionValues values;
  std::map<std::string, std::pair<OutputFile, std::string>> outputFiles;
  std::unique_ptr<Device> device; // before what it makes
  FirstCalls firstCalls;
  std::unique_ptr<Jit> jit;
  RunnerResult result;
  RunRecording recording{o};
  Json report = Json::object();
};

} // namespace

bool namesLibraryKernel(const std::string &word) {
  return word.find_first_of("./\\") == std::string::npos;
}

int runLibraryKernel(const RunOptions &options, const std::vector<std::string> &extras) {
  return LibraryRun(options, extras)();
}

std::string libraryHelp() {
  std::string text;
  for (const Family &family : families())
    text += familyHelp(*family.callable);
  return text;
}

Result<JitOptions> chosenJitOptions(const RunOptions &o) {
  KILN_ASSIGN(JitOptions options, JitOptions::fromEnvironment());
  options.codeTarget = o.codeTarget;
  return options;
}

Result<std::unique_ptr<Device>> openChosenDevice(const RunOptions &o) {
  if (!o.target.empty() && !o.device.empty())
    return Status::invalid("--target " + o.target + " and --device " + o.device + " both name a machine",
                           "use one: --target T is --device emulator:T");
  KILN_ASSIGN(const Knobs knobs, Knobs::fromEnvironment());
  const EmulatorOptions set = emulatorOptions(knobs);
  EmulatorOptions emulator = o.emulator;
  emulator.checks = set.checks && !o.noChecks;
  emulator.schedule = set.schedule;
  emulator.seed = set.seed;
  emulator.mma = set.mma;
  emulator.strictProxy = set.strictProxy;
  KILN_ASSIGN(std::unique_ptr<Device> device,
              kiln::openDevice(o.target.empty() ? o.device : "emulator:" + o.target, emulator));
  if (device->info().kind == DeviceKind::Cuda && (o.emulator.firstNan || !o.emulator.tileDirectory.empty()))
    return Status(StatusCode::Unsupported,
                  std::string(o.emulator.firstNan ? "--first-nan" : "--dump-tiles") + ": " + device->info().name +
                      " cannot do this",
                  "the emulator can: --device emulator:TARGET");
  return device;
}

} // namespace kiln::tools
