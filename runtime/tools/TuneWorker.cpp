#include "runtime/tools/TuneWorker.h"

#include "compiler/codegen/Process.h"
#include "runtime/tools/Report.h"
#include "support/Text.h"

#include <chrono>
#include <ctime>
#include <filesystem>

namespace kiln::tools {
namespace {

using tune::Outcome;

/// What a command ended with.
struct Ran {
  Outcome outcome = Outcome::Good; ///< Wrong for the exit status of findings
  std::string message;
  Json report;
};

/// The JSON object among the lines of a command, which may say other things on standard error.
Json reportIn(const std::string &output) {
  const std::size_t begin = output.starts_with('{') ? 0 : output.find("\n{");
  const std::size_t end = output.rfind("\n}");
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return Json();
  Json out = Json::parse(output.substr(begin, end + 2 - begin), nullptr, /*allow_exceptions=*/false);
  return out.is_discarded() ? Json() : out;
}

std::string lastLine(std::string text) {
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
}

std::string errorIn(const Ran &ran, const std::string &output) {
  if (const auto error = ran.report.find("error"); error != ran.report.end())
    return error->is_string() ? error->get<std::string>() : error->value("message", error->dump());
  return lastLine(output);
}

Result<Ran> runKiln(std::vector<std::string> arguments, double seconds) {
  constexpr std::size_t most = 16u << 20;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    return Status(StatusCode::IoError, "this program's own file cannot be found: " + error.message());
  ProcessSpec spec;
  spec.program = program.string();
  spec.arguments = std::move(arguments);
  spec.deadlineSeconds = seconds;
  spec.maxOutputBytes = most;
  KILN_ASSIGN(const ProcessEnd end, runProcess(spec));
  Ran out;
  out.report = reportIn(end.output);
  if (end.timedOut) {
    out.outcome = Outcome::TimedOut;
    out.message = "it took longer than " + format("%g", seconds) + " seconds";
  } else if (end.exitStatus < 0) {
    out.outcome = Outcome::Crashed;
    out.message = "ended by " + signalName(end.signal);
  } else if (end.exitStatus > 0) {
    constexpr Outcome outcomeOf[] = {Outcome::Good, Outcome::Wrong, Outcome::Refused, Outcome::Compile};
    out.outcome = end.exitStatus < 4 ? outcomeOf[end.exitStatus] : Outcome::Failed;
    out.message = errorIn(out, end.output);
  } else if (!out.report.is_object()) {
    out.outcome = Outcome::Failed;
    out.message = "the command printed no report";
  }
  return out;
}

std::string timeNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// The row of the call: what `kiln bench` prints before it is the device's own copy.
const Json *rowOf(const Ran &ran) {
  const auto results = ran.report.find("results");
  return results != ran.report.end() && results->is_array() && !results->empty() ? &results->back() : nullptr;
}

class One {
public:
  One(const TuneWorker &worker, const tune::Space &space, const tune::Configuration &configuration) : w(worker) {
    for (const auto &[name, value] : tune::named(space, configuration))
      if (value != "false")
        chosen.insert(chosen.end(), {"--with", value == "true" ? name : name + "=" + value});
  }

  Result<tune::Entry> operator()() {
    const auto begin = std::chrono::steady_clock::now();
    KILN_TRY(compile());
    if (entry.good())
      KILN_TRY(measure());
    if (entry.good() && w.isPredicted)
      KILN_TRY(check());
    entry.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    entry.time = timeNow();
    return std::move(entry);
  }

private:
  std::vector<std::string> command(const char *name, const std::vector<std::string> &with,
                                   std::initializer_list<std::string> more) const {
    std::vector<std::string> out = {name, w.request.kernel, "--dtype", w.dtype, "--json"};
    for (const std::string &word : with)
      out.insert(out.end(), {"--with", word});
    out.insert(out.end(), chosen.begin(), chosen.end());
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::vector<std::string> bench(std::initializer_list<std::string> more) const {
    std::vector<std::string> out = command("bench", w.request.with, more);
    out.insert(out.end(), {"--device", w.device});
    if (!w.request.run.codeTarget.empty())
      out.insert(out.end(), {"--code-target", w.request.run.codeTarget});
    return out;
  }
  void fail(Outcome outcome, std::string message) { entry.outcome = outcome, entry.message = std::move(message); }

  /// Compiles all kernels of the call and looks at what they take.
  Status compile() {
    entry.outcome = Outcome::Good;
    KILN_ASSIGN(const Ran ran, runKiln(bench({"--resources"}), w.seconds));
    const Json *const row = rowOf(ran);
    if (ran.outcome != Outcome::Good || !row) {
      fail(ran.outcome == Outcome::Good ? Outcome::Failed : ran.outcome, ran.message);
      return {};
    }
    for (const Json &kernel : row->value("kernels", Json::array())) {
      tune::CodeReport code;
      code.threads = kernel.value("threads", 0u);
      code.registers = kernel.value("registers", 0u);
      code.sharedBytes = kernel.value("sharedBytes", std::uint64_t(0));
      code.spillBytes = kernel.value("spillBytes", std::uint64_t(0));
      if (const auto rejection = tune::judge(code, w.target))
        fail(Outcome::Refused, std::string(tune::ruleName(rejection->rule)) + ": " + kernel.value("kernel", "") + ": " +
                                   rejection->reason);
    }
    return {};
  }

  Status measure() {
    KILN_ASSIGN(const Ran ran, runKiln(w.isPredicted ? bench({"--predict"}) : bench({}), w.seconds));
    const Json *const row = rowOf(ran);
    if (ran.outcome != Outcome::Good || !row) {
      fail(ran.outcome == Outcome::Good ? Outcome::Failed : ran.outcome,
           ran.outcome == Outcome::Wrong && row ? row->value("check", ran.message) : ran.message);
      return {};
    }
    entry.milliseconds = row->value(w.isPredicted ? "predictedMs" : "medianMs", 0.0);
    entry.least = row->value("minMs", entry.milliseconds), entry.greatest = row->value("maxMs", entry.milliseconds);
    if (!(entry.milliseconds > 0))
      fail(Outcome::Failed, "the measurement has no time");
    return {};
  }

  /// Results against float64, and every check of the emulator.
  Status check() {
    const std::string target = w.device.substr(w.device.find(':') + 1);
    KILN_ASSIGN(const Ran ran,
                runKiln(command("check", w.checkWith,
                                {"--target", target, "--schedule", "in-order", "--timeout", format("%g", w.seconds)}),
                        w.seconds));
    if (ran.outcome == Outcome::Good)
      return {};
    std::string message = ran.message;
    if (ran.outcome == Outcome::Wrong)
      for (const Json &run : ran.report.value("checked", Json::array()))
        if (!run.value("good", true))
          message = !run["findings"].empty() ? run["findings"][0].value("message", run["findings"][0].dump())
                                             : run.value("wrong", message);
    fail(ran.outcome, std::move(message));
    return {};
  }

  const TuneWorker &w;
  std::vector<std::string> chosen; ///< --with NAME=VALUE of the configuration
  tune::Entry entry;
};

} // namespace

Result<tune::Entry> TuneWorker::operator()(const tune::Space &space, const tune::Configuration &configuration) const {
  return One(*this, space, configuration)();
}

} // namespace kiln::tools
