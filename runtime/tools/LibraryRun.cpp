#include "runtime/tools/LibraryRun.h"

#include "kernels/support/Runner.h"
#include "runtime/tools/FirstCalls.h"
#include "runtime/tools/RunRecording.h"
#include "support/Text.h"

#include <algorithm>
#include <charconv>
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
    if (o.repeat == 0 || o.repeat > 1000000)
      return Status::invalid("--repeat " + std::to_string(o.repeat) + " is not between 1 and 1000000");
    KILN_ASSIGN(family, findFamily(o.file));
    KILN_TRY(recording.prepare());
    KILN_TRY(readExtras());
    for (std::size_t i = 0; i < o.outputs.size(); ++i) {
      const std::vector<TensorParameter> all = family->tensors();
      const auto first = std::find_if(all.begin(), all.end(), [](const TensorParameter &p) { return p.output; });
      if (i > 0 || first == all.end())
        return Status::invalid("--output was given " + std::to_string(o.outputs.size()) + " times",
                               "name each output: " + parameterList());
      KILN_TRY(addOutput(first->name, o.outputs[i]));
    }
    for (const TensorParameter &p : family->tensors())
      if (!p.output && !p.optional && !inputs.count(p.name))
        return Status::invalid("kernel '" + o.file + "' needs --" + p.name + " FILE.npy (" + p.description + ")",
                               "its parameters are " + parameterList());
    return {};
  }

  Status readExtras() {
    for (std::size_t i = 0; i < extras.size(); ++i) {
      std::string word = extras[i], value;
      if (!word.starts_with("--"))
        return Status::invalid("'" + word + "' was not expected", "parameters are written --NAME VALUE");
      word = word.substr(2);
      if (const std::size_t equal = word.find('='); equal != std::string::npos) {
        value = word.substr(equal + 1);
        word = word.substr(0, equal);
      } else if (i + 1 < extras.size()) {
        value = extras[++i];
      } else {
        return Status::invalid("--" + word + " has no value");
      }
      KILN_TRY(addParameter(word, value));
    }
    return {};
  }

  Status addParameter(std::string name, const std::string &value) {
    const std::vector<TensorParameter> all = family->tensors();
    if (name == "input")
      name = std::find_if(all.begin(), all.end(), [](const TensorParameter &p) { return !p.output; })->name;
    for (const TensorParameter &p : all)
      if (p.name == name)
        return p.output ? addOutput(name, value) : addInput(name, value);
    for (const NumberParameter &p : family->numbers())
      if (p.name == name) {
        double number = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc() || end != value.data() + value.size())
          return Status::invalid("--" + name + " " + value + ": expected a number (" + p.description + ")");
        numbers[name] = number;
        return {};
      }
    return Status::invalid("kernel '" + o.file + "' has no parameter '" + name + "'",
                           "its parameters are " + parameterList());
  }

  Status addInput(const std::string &name, const std::string &file) {
    KILN_ASSIGN(Array array, readNpy(file));
    DType type = array.type == DType::F64 ? DType::F32 : array.type;
    if (!o.dtype.empty()) {
      KILN_ASSIGN(type, parseDType(o.dtype));
    }
    KILN_ASSIGN(inputs[name], convertArray(std::move(array), type, file));
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

  std::string parameterList() const {
    std::vector<std::string> names;
    for (const TensorParameter &p : family->tensors())
      names.push_back("--" + p.name);
    for (const NumberParameter &p : family->numbers())
      names.push_back("--" + p.name);
    return join(names);
  }

  Status execute() {
    KILN_ASSIGN(device, openChosenDevice(o));
    KILN_TRY(recording.start(*device));
    report["kernel"] = o.file;
    report["device"] = device->info().name;
    KILN_ASSIGN(JitOptions options, JitOptions::fromEnvironment());
    firstCalls.collect(options);
    KILN_ASSIGN(jit, Jit::create(*device, std::move(options)));
    // A GPU's first run lasts as long as its compiles: one more, and its time is left out.
    const bool gpu = device->info().kind == DeviceKind::Cuda;
    KILN_ASSIGN(result, runFamily(*jit, *family, inputs, numbers, {.repeat = o.repeat + (gpu ? 1 : 0)}));
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
    }
    report["status"] = status;
    if (o.json) {
      printJson(report);
      return status;
    }
    std::fputs(firstCalls.toString(o.explainMiss).c_str(), stdout);
    std::printf("%s: kernel '%s': %s; %llu compiled, %llu from the cache on disk\n", device->info().name.c_str(),
                o.file.c_str(), defects ? "findings; no output was written" : "good",
                static_cast<unsigned long long>(counters.compiles), static_cast<unsigned long long>(counters.diskHits));
    recording.print();
    if (report.contains("times"))
      std::printf("time: %u run%s, median %.4f ms, %.2f GB/s of what must cross the memory bus; first call %.2f ms\n",
                  o.repeat, o.repeat == 1 ? "" : "s", report["times"]["medianMs"].get<double>(),
                  report["times"]["gigabytesPerSecond"].get<double>(), result.firstCallMilliseconds);
    for (const Json &out : report.value("outputs", Json::array()))
      std::printf("%s -> %s\n", out["parameter"].get<std::string>().c_str(), out["file"].get<std::string>().c_str());
    return status;
  }

  const RunOptions &o;
  const std::vector<std::string> &extras;
  const Family *family = nullptr;
  Arrays inputs;
  Numbers numbers;
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
  for (const auto &family : families()) {
    text += "  " + std::string(family->name());
    for (const TensorParameter &p : family->tensors())
      text += (p.optional ? " [--" : " --") + p.name + (p.output ? " OUT.npy" : " FILE.npy") + (p.optional ? "]" : "");
    for (const NumberParameter &p : family->numbers())
      text += " [--" + p.name + " V]";
    text += "\n      " + std::string(family->summary()) + "\n";
  }
  return text;
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
  return kiln::openDevice(o.target.empty() ? o.device : "emulator:" + o.target, emulator);
}

} // namespace kiln::tools
