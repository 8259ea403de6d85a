// `kiln run`: one kernel of a PTX or text file, on a GPU or the emulator, with arguments from the command line and
// .npy files.
#include "runtime/tools/Commands.h"
#include "runtime/tools/KernelArguments.h"
#include "runtime/tools/LibraryRun.h"
#include "runtime/tools/Report.h"
#include "runtime/tools/RunProgram.h"
#include "runtime/tools/RunRecording.h"
#include "support/Names.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

namespace kiln::tools {

namespace {

class Run {
public:
  explicit Run(const RunOptions &options) : o(options) {}

  int operator()() {
    Status s = prepare();
    if (s.ok())
      s = launchAll();
    findings = groupFindings(std::move(findings));
    report["findings"] = Json::array();
    for (const Finding &f : findings)
      report["findings"].push_back(toJson(f));
    if (!o.json)
      for (const Finding &f : findings)
        std::printf("%s\n", f.toString().c_str());
    const bool defects = std::any_of(findings.begin(), findings.end(), [](const Finding &f) { return !f.note; });
    if (launched && (s.ok() || defects))
      if (const Status drawn = recording.finish(*device, report); !drawn.ok())
        return fail("run", drawn, o.json, std::move(report));
    if (s.ok() && !defects)
      s = writeOutputs();
    // A finding that ends the launch fails it; the finding is the answer then.
    if (!s.ok() && !(launched && defects))
      return fail("run", s, o.json, std::move(report));
    return finish(defects || !s.ok());
  }

private:
  Status prepare() {
    if (o.repeat == 0 || o.repeat > 1000000)
      return Status::invalid("--repeat " + std::to_string(o.repeat) + " is not between 1 and 1000000");
    KILN_TRY(checkBudgets(o.emulator));
    KILN_ASSIGN(arguments, parseArguments(o.arguments, o.buffers));
    KILN_TRY(prepareOutputs());
    KILN_TRY(recording.prepare());
    KILN_TRY(openDevice());
    KILN_ASSIGN(program, loadProgram(*device, o, firstCalls));
    report["kernel"] = program->info().name;
    KILN_TRY(checkArguments(arguments, program->info()));
    return program->checkArguments(arguments);
  }

  /// Opens the temporaries, so that nothing is computed for a folder that cannot be written.
  Status prepareOutputs() {
    for (const std::string &text : o.outputs) {
      KILN_ASSIGN(OutputRequest request, parseOutputRequest(text));
      const auto found = std::find_if(arguments.begin(), arguments.end(), [&](const KernelArgument &a) {
        return a.isParameter() ? std::to_string(a.index) == request.buffer : a.label == request.buffer;
      });
      if (found == arguments.end())
        return Status::invalid(
            "--output " + text + ": there is no " +
                (std::isdigit(static_cast<unsigned char>(request.buffer[0])) ? "argument " : "buffer ") +
                request.buffer + "; " + std::to_string(o.arguments.size()) + " were given",
            "arguments count from 0");
      request.argument = found->index;
      if (!arguments[request.argument].isBuffer())
        return Status::invalid("--output " + text + ": " + arguments[request.argument].name() + " is not a buffer",
                               "name an argument FILE.npy or out:DTYPE:SHAPE");
      for (const OutputRequest &other : requests)
        if (other.file == request.file)
          return Status::invalid("two outputs are written to '" + request.file + "'", "give each its own file");
      KILN_ASSIGN(OutputFile file, OutputFile::create(request.file));
      files.push_back(std::move(file));
      requests.push_back(std::move(request));
    }
    return {};
  }

  /// An emulator that does not sum matrix products as hardware does.
  bool isFast() const { return report.value("mma", "") == matrixModeName(MatrixMode::Fast); }

  Status openDevice() {
    KILN_ASSIGN(device, openChosenDevice(o));
    KILN_TRY(recording.start(*device));
    if (device->info().kind == DeviceKind::Emulator)
      report["mma"] = matrixModeName(device->info().mma);
    report["device"] = device->info().name;
    report["description"] = device->info().description;
    return {};
  }

  Status launchAll() {
    for (unsigned i = 0; i < o.repeat; ++i) {
      KILN_ASSIGN(bound, BoundArguments::bind(*device, arguments, program->info()));
      KILN_TRY(program->prepare(bound.packed));
      launched = true;
      const Status s = launchOnce();
      const std::vector<Finding> seen = device->takeFindings();
      findings.insert(findings.end(), seen.begin(), seen.end());
      KILN_TRY(s);
      if (!seen.empty()) // the other launches would find the same
        break;
    }
    return {};
  }

  Status launchOnce() {
    if (device->info().kind == DeviceKind::Emulator) {
      const Status s = program->launch(bound.packed);
      const LaunchStatistics cost = device->takeStatistics();
      milliseconds.push_back(cost.seconds * 1e3);
      report["warpInstructions"] = cost.warpInstructions;
      report["threadInstructions"] = cost.threadInstructions;
      return s;
    }
    Stream &stream = device->defaultStream();
    KILN_ASSIGN(auto start, device->createEvent());
    KILN_ASSIGN(auto end, device->createEvent());
    KILN_TRY(start->record(stream));
    KILN_TRY(program->launch(bound.packed));
    KILN_TRY(end->record(stream));
    KILN_TRY(stream.synchronize());
    KILN_ASSIGN(const double time, end->millisecondsSince(*start));
    milliseconds.push_back(time);
    return {};
  }

  Status writeOutputs() {
    report["outputs"] = Json::array();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const KernelArgument &a = arguments[requests[i].argument];
      KILN_ASSIGN(const Array array, bound.read(a));
      KILN_TRY(writeNpy(files[i], array));
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      KILN_TRY(files[i].commit());
      const KernelArgument &a = arguments[requests[i].argument];
      report["outputs"].push_back(
          {{a.isParameter() ? "argument" : "buffer", a.isParameter() ? Json(a.index) : Json(a.label)},
           {"file", requests[i].file},
           {"dtype", dtypeNumpyName(a.array.type)},
           {"shape", a.array.shape}});
    }
    return {};
  }

  int finish(bool defects) {
    const int status = defects ? 1 : 0;
    program->describe(report);
    const bool text = isTextKernel(o.file);
    if (text) {
      report["text"] = firstCalls.textJson();
      report["firstCalls"] = firstCalls.toJson();
      if (!o.json)
        std::fputs(firstCalls.toString(o.explainMiss).c_str(), stdout);
    }
    if ((o.time || o.repeat > 1 || text) && !milliseconds.empty()) {
      std::vector<double> sorted = milliseconds;
      std::sort(sorted.begin(), sorted.end());
      const std::size_t n = sorted.size();
      const double median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
      double bytes = 0; // of every buffer, once: what a kernel that reads or writes each element once moves
      for (const KernelArgument &a : arguments)
        bytes += a.isBuffer() ? static_cast<double>(a.bufferBytes) : 0;
      const double rate = median > 0 ? bytes / median * 1e-6 : 0;
      report["times"] = {{"launches", n},          {"medianMs", median}, {"minMs", sorted.front()},
                         {"maxMs", sorted.back()}, {"bytes", bytes},     {"gigabytesPerSecond", rate}};
      if (!o.json)
        std::printf("time: %zu launch%s, median %.4f ms, from %.4f to %.4f ms, %.2f GB/s of the buffers given\n", n,
                    n == 1 ? "" : "es", median, sorted.front(), sorted.back(), rate);
    }
    report["status"] = status;
    if (o.json) {
      printJson(report);
      return status;
    }
    const std::string what =
        device->info().name + (isFast() ? " (mma fast)" : "") + ": kernel '" + shortName(program->info().name) + "'";
    if (defects)
      std::printf("%s: %zu finding%s%s\n", what.c_str(), findings.size(), findings.size() == 1 ? "" : "s",
                  files.empty() ? "" : "; no output was written");
    else
      std::printf("%s: good\n", what.c_str());
    recording.print();
    if (!defects)
      for (const Json &out : report["outputs"])
        std::printf("%s -> %s\n",
                    (out.contains("buffer") ? "buffer " + out["buffer"].get<std::string>()
                                            : "argument " + std::to_string(out["argument"].get<unsigned>()))
                        .c_str(),
                    out["file"].get<std::string>().c_str());
    return status;
  }

  const RunOptions &o;
  std::vector<KernelArgument> arguments;
  std::vector<OutputRequest> requests;
  std::vector<OutputFile> files;
  std::unique_ptr<Device> device; // before what it makes
  FirstCalls firstCalls;          // before the program, whose Jit tells it
  std::unique_ptr<RunProgram> program;
  BoundArguments bound;
  RunRecording recording{o};
  std::vector<Finding> findings;
  std::vector<double> milliseconds;
  bool launched = false;
  Json report = Json::object();
};

} // namespace

void addRunCommand(CLI::App &app, int &exitStatus) {
  auto *command =
      app.add_subcommand("run", "Run a kernel of the library, or of a PTX or text file, on a GPU or the emulator");
  auto options = std::make_shared<RunOptions>();
  addRunOptions(*command, *options);
  // A library kernel's parameters are its own: --x FILE.npy.
  command->allow_extras();
  command->callback([command, options, &exitStatus] {
    const std::vector<std::string> extras = command->remaining();
    if (namesLibraryKernel(options->file))
      exitStatus = runLibraryKernel(*options, extras);
    else if (!extras.empty())
      throw CLI::ExtrasError(extras);
    else
      exitStatus = Run(*options)();
  });
}

} // namespace kiln::tools
