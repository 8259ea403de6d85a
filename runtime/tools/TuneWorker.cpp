#include "runtime/tools/TuneWorker.h"

#include "compiler/codegen/Assembler.h"
#include "runtime/tools/OwnProgram.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace kiln::tools {
namespace {

using tune::Outcome;

/// What a command ended with.
struct Ran {
  Outcome outcome = Outcome::Good; ///< Wrong for the exit status of findings
  std::string message;
  Json report;
};

/// What the end of a process says of a configuration, if it was not to end so.
std::optional<std::pair<Outcome, std::string>> unexpected(const ProcessEnd &end, double seconds) {
  if (end.timedOut)
    return std::pair(Outcome::TimedOut, "it took longer than " + format("%g", seconds) + " seconds");
  if (end.exitStatus < 0)
    return std::pair(Outcome::Crashed, end.signal ? "ended by " + signalName(end.signal) : "ended in an unknown way");
  return {};
}

/// What is measured meanwhile has the processors first.
constexpr int compileNiceness = 10;

Result<Ran> runKiln(std::vector<std::string> arguments, double seconds, int niceness = 0) {
  KILN_ASSIGN(OwnRun run, runOwnProgram(std::move(arguments), seconds, niceness));
  Ran out;
  if (auto how = unexpected(run.end, seconds)) {
    std::tie(out.outcome, out.message) = std::move(*how);
  } else if (run.end.exitStatus > 0) {
    out.outcome = outcomeOf(run.end.exitStatus);
    out.message = run.message();
  } else if (!run.report.is_object()) {
    out.outcome = Outcome::Failed;
    out.message = "the command printed no report";
  }
  out.report = std::move(run.report);
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

std::vector<std::string> wordsOf(const tune::Space &space, const tune::Configuration &configuration) {
  std::vector<std::string> out;
  for (const auto &[name, value] : tune::named(space, configuration))
    if (value != "false")
      out.push_back(value == "true" ? name : name + "=" + value);
  return out;
}

/// What a row of --resources says of its kernels.
std::vector<std::pair<std::string, tune::CodeReport>> codeOf(const Json &row) {
  std::vector<std::pair<std::string, tune::CodeReport>> out;
  for (const Json &kernel : row.value("kernels", Json::array())) {
    tune::CodeReport &code = out.emplace_back(kernel.value("kernel", ""), tune::CodeReport()).second;
    code.threads = kernel.value("threads", 0u);
    code.registers = kernel.value("registers", 0u);
    code.sharedBytes = kernel.value("sharedBytes", std::uint64_t(0));
    code.spillBytes = kernel.value("spillBytes", std::uint64_t(0));
  }
  return out;
}

/// An entry from its steps, with the time that they took.
template <typename Steps> Result<tune::Entry> entryOf(Steps steps) {
  const auto begin = std::chrono::steady_clock::now();
  tune::Entry entry;
  entry.outcome = Outcome::Good;
  KILN_TRY(steps(entry));
  entry.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  entry.time = timeNow();
  return entry;
}

void fail(tune::Entry &entry, Outcome outcome, std::string message) {
  entry.outcome = outcome == Outcome::Good ? Outcome::Failed : outcome;
  entry.message = std::move(message);
}

} // namespace

Outcome outcomeOf(int exitStatus) {
  constexpr Outcome known[] = {Outcome::Good, Outcome::Wrong, Outcome::Refused, Outcome::Compile};
  return exitStatus >= 0 && exitStatus < 4 ? known[exitStatus] : Outcome::Failed;
}

Result<std::vector<std::string>> gpusNamed(const std::string &text) {
  constexpr unsigned most = 1024;
  std::vector<std::string> out;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const std::optional<unsigned> first = parseNumber<unsigned>(part.substr(0, dash)),
                                  last = dash == part.npos ? first : parseNumber<unsigned>(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= most)
      return Status::invalid("--devices " + text + ": '" + std::string(part) + "' names no GPUs",
                             "write the numbers of GPUs, with commas or as a range: 0-3 or 0,2");
    for (unsigned number = *first; number <= *last; ++number) {
      const std::string name = "cuda:" + std::to_string(number);
      if (std::find(out.begin(), out.end(), name) != out.end())
        return Status::invalid("--devices " + text + " names " + name + " twice", "name each GPU once");
      out.push_back(name);
    }
  }
  return out;
}

std::vector<std::string> TuneWorker::command(const char *name, const std::vector<std::string> &with,
                                             const std::vector<std::string> &chosen) const {
  // A configuration of zeros is what the operation chooses, not what was kept.
  std::vector<std::string> out = {name, request.kernel, "--dtype", dtype, "--json", "--tuned", "0"};
  for (const std::vector<std::string> *words : {&with, &chosen})
    for (const std::string &word : *words)
      out.insert(out.end(), {"--with", word});
  return out;
}

std::string compilerFor(const DeviceInfo &device, const Knobs &knobs) {
  AssemblerSearch search;
  search.nvJitLink = knobs.nvJitLink, search.ptxas = knobs.ptxas;
  if (device.kind != DeviceKind::Cuda || !device.target || !findAssembler(search))
    return device.name;
  return "offline:" + std::string(device.target->name) + ":" + std::to_string(device.multiprocessors);
}

Status TuneWorker::setUp(const TuneCall &call, const TuneRequest &asked, std::vector<std::string> named,
                         std::vector<std::string> checked, double stepSeconds) {
  const DeviceInfo &about = call.device().info();
  KILN_ASSIGN(const tune::JournalHeader header, call.header());
  KILN_ASSIGN(const Knobs knobs, Knobs::fromEnvironment());
  request = asked;
  dtype = header.dtype;
  devices = named.empty() ? std::vector<std::string>{about.name} : std::move(named);
  compiler = compilerFor(about, knobs);
  checkWith = checked.empty() ? asked.with : std::move(checked);
  isPredicted = call.isPredicted();
  seconds = stepSeconds;
  target = call.codeTarget();
  return {};
}

std::vector<std::string> TuneWorker::onDevice(std::vector<std::string> command, const std::string &device) const {
  command.insert(command.end(), {"--device", device});
  if (!request.run.codeTarget.empty())
    command.insert(command.end(), {"--code-target", request.run.codeTarget});
  return command;
}

Result<tune::Entry> TuneWorker::prepare(const tune::Space &space, const tune::Configuration &configuration) const {
  return entryOf([&](tune::Entry &entry) -> Status {
    std::vector<std::string> words = onDevice(command("bench", request.with, wordsOf(space, configuration)), compiler);
    words.emplace_back("--resources");
    KILN_ASSIGN(const Ran ran, runKiln(std::move(words), seconds, compileNiceness));
    const Json *const row = rowOf(ran);
    // The device may have failed for want of memory, which the others take that run at the same time: whoever measures
    // finds out.
    if (ran.outcome == Outcome::Failed)
      return {};
    if (ran.outcome != Outcome::Good || !row) {
      fail(entry, ran.outcome, ran.message);
      return {};
    }
    for (const auto &[kernel, code] : codeOf(*row))
      if (const auto rejection = tune::judge(code, target, code.spillBytes ? spillOfDefault() : 0))
        fail(entry, Outcome::Refused,
             std::string(tune::ruleName(rejection->rule)) + ": " + kernel + ": " + rejection->reason);
    return {};
  });
}

/// The default is mostly among the configurations, so its code is there or is being made.
std::uint64_t TuneWorker::spillOfDefault() const {
  std::call_once(defaultIsKnown, [&] {
    std::vector<std::string> words = onDevice(command("bench", request.with, {}), compiler);
    words.emplace_back("--resources");
    const Result<Ran> ran = runKiln(std::move(words), seconds, compileNiceness);
    if (!ran || ran->outcome != Outcome::Good)
      return;
    if (const Json *const row = rowOf(*ran))
      for (const auto &[kernel, code] : codeOf(*row))
        defaultSpill = std::max(defaultSpill, code.spillBytes);
  });
  return defaultSpill;
}

Result<tune::Entry> TuneWorker::measure(const tune::Space &space, const tune::Configuration &configuration,
                                        unsigned measurer) {
  const std::vector<std::string> chosen = wordsOf(space, configuration);
  return entryOf([&](tune::Entry &entry) -> Status {
    KILN_TRY(ask(chosen, measurer, entry));
    return entry.good() && isPredicted ? check(chosen, entry) : Status();
  });
}

void TuneWorker::getReady(unsigned measurer) {
  (void)processOf(measurer); // a failure shows again when it is asked
}

Result<Conversation *> TuneWorker::processOf(unsigned measurer) {
  std::unique_ptr<Conversation> *place = nullptr;
  {
    const std::lock_guard lock(mutex);
    place = &processes[{measurer, std::this_thread::get_id()}];
  }
  if (!*place || (*place)->hasEnded()) { // one that ended unasked says nothing of the next configuration
    std::vector<std::string> words = onDevice(command("tune", request.with, {}), devices[measurer % devices.size()]);
    words.insert(words.end(), {"--answer", isPredicted ? "predicted" : "timed"});
    if (!isPredicted && !request.flushes())
      words.emplace_back("--no-flush-l2");
    if (request.isShared)
      words.emplace_back("--shared-gpu");
    if (request.sweepProcess)
      words.insert(words.end(), {"--sweep-process", std::to_string(request.sweepProcess)});
    KILN_ASSIGN(ProcessSpec spec, ownProgram(std::move(words)));
    KILN_ASSIGN(*place, Conversation::start(std::move(spec)));
  }
  return place->get();
}

Status TuneWorker::ask(const std::vector<std::string> &chosen, unsigned measurer, tune::Entry &entry) {
  KILN_ASSIGN(Conversation *const process, processOf(measurer));
  const std::optional<std::string> answer = process->ask(Json(chosen).dump(), seconds);
  const Json row = answer ? Json::parse(*answer, nullptr, /*allow_exceptions=*/false) : Json();
  if (!answer) {
    const ProcessEnd &end = process->end();
    if (auto how = unexpected(end, seconds))
      fail(entry, how->first, std::move(how->second));
    else // a verdict is an answer
      fail(entry, Outcome::Failed,
           "its process ended with status " + std::to_string(end.exitStatus) + ": " + lastLine(end.output));
  } else if (!row.is_object()) {
    fail(entry, Outcome::Failed, "the process that measures printed no report");
  } else if (row.contains("outcome")) {
    fail(entry, tune::outcomeNamed(row.value("outcome", "")).value_or(Outcome::Failed), row.value("message", ""));
  } else {
    entry.milliseconds = row.value(isPredicted ? "predictedMs" : "medianMs", 0.0);
    entry.least = row.value("minMs", entry.milliseconds), entry.greatest = row.value("maxMs", entry.milliseconds);
    entry.conditions = tune::conditionsOf(row);
    if (const std::string unknown = row.value("unknownConditions", ""); !unknown.empty())
      sayOnce(unknown);
    if (!(entry.milliseconds > 0))
      fail(entry, Outcome::Failed, "the measurement has no time");
  }
  if (!entry.good()) {
    std::unique_ptr<Conversation> ended; // outside of the lock: it may wait for the process
    const std::lock_guard lock(mutex);
    ended = std::move(processes[{measurer, std::this_thread::get_id()}]);
  }
  return {};
}

void TuneWorker::sayOnce(const std::string &unknown) {
  const std::lock_guard lock(mutex);
  if (!hasSaid)
    std::fprintf(stderr, "kiln tune: not all of the GPU's conditions are known: %s\n", unknown.c_str());
  hasSaid = true;
}

/// Results against float64, and every check of the emulator.
Status TuneWorker::check(const std::vector<std::string> &chosen, tune::Entry &entry) const {
  std::vector<std::string> words = command("check", checkWith, chosen);
  const std::string &device = devices.front(), emulated = device.substr(device.find(':') + 1);
  words.insert(words.end(), {"--target", emulated, "--schedule", "in-order", "--timeout", format("%g", seconds)});
  KILN_ASSIGN(const Ran ran, runKiln(std::move(words), seconds));
  if (ran.outcome == Outcome::Good)
    return {};
  std::string message = ran.message;
  if (ran.outcome == Outcome::Wrong)
    for (const Json &run : ran.report.value("checked", Json::array()))
      if (!run.value("good", true))
        message = !run["findings"].empty() ? run["findings"][0].value("message", run["findings"][0].dump())
                                           : run.value("wrong", message);
  fail(entry, ran.outcome, std::move(message));
  return {};
}

} // namespace kiln::tools
