#include "runtime/tools/TuneMeasurer.h"

#include "compiler/codegen/Conversation.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/tools/BenchPrediction.h"
#include "runtime/tools/TuneWorker.h"

#include <algorithm>
#include <unistd.h>

namespace kiln::tools {

using namespace kernels;

Status TuneMeasurer::open() {
  if (device)
    return {};
  const RunOptions &run = request.run;
  KILN_ASSIGN(std::unique_ptr<Device> opened, isPredicted ? openForPrediction(run, hardware) : openChosenDevice(run));
  KILN_ASSIGN(JitOptions options, chosenJitOptions(run));
  options.knobs.tuned = false;
  KILN_ASSIGN(jit, Jit::create(*opened, std::move(options)));
  device = std::move(opened);
  if (device->info().kind != DeviceKind::Cuda)
    return {};
  if (request.flushes()) {
    KILN_ASSIGN(flush, L2Flush::create(*device));
  }
  // The sweep that started this process, and all that it starts besides.
  const pid_t sweep = ::getppid() > 1 ? ::getppid() : ::getpid();
  const Result<cuda::GpuFacts> facts = cuda::factsOf(*device);
  Result<std::unique_ptr<cuda::GpuMonitor>> monitored = facts
                                                            ? cuda::GpuMonitor::open(facts->pciBusId, sweep)
                                                            : Result<std::unique_ptr<cuda::GpuMonitor>>(facts.status());
  if (monitored) {
    monitor = std::move(*monitored);
    monitor->include(request.sweepProcess);
  } else {
    noMonitor = monitored.status().message();
  }
  return {};
}

Result<FamilyCall> TuneMeasurer::callOf(const std::vector<std::string> &configuration) const {
  std::vector<std::string> with = request.with;
  with.insert(with.end(), configuration.begin(), configuration.end());
  KILN_ASSIGN(std::vector<FamilyCall> calls,
              chooseFamilyCalls({request.kernel}, {request.dtype}, with, {.reference = !isPredicted, .samples = true},
                                SampleUse::Bench, /*large=*/true));
  if (calls.size() != 1)
    return Status::invalid(request.kernel + ": one call is measured, not " + std::to_string(calls.size()));
  return std::move(calls[0]);
}

Status TuneMeasurer::getReady() {
  KILN_TRY(open());
  KILN_ASSIGN(const FamilyCall of, callOf({}));
  if (isPredicted)
    return {};
  KILN_TRY(makeInputs(of));
  return expectedOf(of).takeStatus();
}

Result<Json> TuneMeasurer::measure(const std::vector<std::string> &configuration) {
  KILN_TRY(open());
  KILN_ASSIGN(const FamilyCall of, callOf(configuration));
  if (isPredicted)
    return predictedRow(*device, *jit, hardware, of);
  KILN_ASSIGN(Json row, timed(of, !compared.contains(configuration)));
  if (!row.contains("outcome"))
    compared.insert(configuration);
  return row;
}

Status TuneMeasurer::makeInputs(const FamilyCall &of) {
  if (inputs)
    return {};
  KILN_ASSIGN(Arrays made, randomInputsOf(*jit, of));
  host = toHost(made);
  inputs = std::move(made);
  return {};
}

Result<TuneMeasurer::Expected *> TuneMeasurer::expectedOf(const FamilyCall &of) {
  std::string key;
  const std::vector<OptionInfo> all = of.family->callable->options();
  for (const auto &[name, value] : of.sample.options) {
    const auto info = std::find_if(all.begin(), all.end(), [&, &n = name](const OptionInfo &o) { return o.name == n; });
    if (info == all.end() || info->candidates.empty()) // what is tuned never changes the result
      key += name + "=" + textOf(value) + "\n";
  }
  const auto found = expected.find(key);
  if (found != expected.end())
    return &found->second;
  KILN_ASSIGN(const Reference *definition, kernels::referenceOf(*of.family));
  KILN_ASSIGN(HostTensors values, definition->compute(host, of.sample.options));
  return &(expected[key] = {std::move(values), {}});
}

Result<Json> TuneMeasurer::timed(const FamilyCall &of, bool isCompared) {
  KILN_TRY(makeInputs(of));
  const Callable &callable = *of.family->callable;
  const OptionValues &options = of.sample.options;
  bool isRenewed = false;
  if (placed) {
    KILN_ASSIGN(isRenewed, placed->renew(callable, *inputs, options));
  }
  if (isRenewed) {
    KILN_ASSIGN(Json row, timedAt(of, isCompared));
    // What an earlier one did to the inputs is not this one's fault.
    if (row.value("outcome", "") != tune::outcomeName(tune::Outcome::Wrong))
      return row;
  }
  placed.reset(); // before there is memory for both
  KILN_ASSIGN(placed, PlacedCall::create(*device, callable, *inputs, options, Around::Redzones)); // poison in outputs
  return timedAt(of, isCompared);
}

Result<Json> TuneMeasurer::timedAt(const FamilyCall &of, bool isCompared) {
  const Callable &callable = *of.family->callable;
  const Call &call = placed->call();
  const Callable::Planner planner = callable.bind(*jit);
  KILN_ASSIGN(const Seen seen, timeSeen([&] { return callable.run(*jit, planner, call, {}); }));
  const auto wrong = [](const std::string &what) {
    return Json{{"outcome", tune::outcomeName(tune::Outcome::Wrong)}, {"message", "WRONG: " + what}};
  };
  KILN_ASSIGN(const std::optional<std::string> trespass, placed->trespass(*inputs, turn++));
  if (trespass)
    return wrong(*trespass);
  if (isCompared) {
    KILN_ASSIGN(const std::optional<std::string> results, wrongResults(of));
    if (results)
      return wrong(*results);
  }
  const Spread &t = seen.times;
  Json row = {{"medianMs", timeOf(t)}, {"minMs", t.least}, {"maxMs", t.most}, {"halfIntervalMs", t.halfInterval},
              {"samples", t.samples},  {"check", "good"}};
  const cuda::GpuConditions &c = seen.conditions;
  tune::addConditions(row, {c.notes, c.smMegahertz, c.memoryMegahertz, c.busyBefore});
  if (const std::string unknown = monitor ? monitor->unknown() : noMonitor; !unknown.empty())
    row["unknownConditions"] = unknown;
  return row;
}

Result<std::optional<std::string>> TuneMeasurer::wrongResults(const FamilyCall &of) {
  KILN_TRY(placed->readOutputs(outputs));
  KILN_ASSIGN(const Reference *definition, kernels::referenceOf(*of.family));
  KILN_ASSIGN(Expected *const wanted, expectedOf(of));
  KILN_ASSIGN(const Comparison comparison,
              compareWith(wanted->values, *definition, host, of.sample.options, outputs, &wanted->limits));
  return comparison.good() ? std::optional<std::string>() : std::optional(comparison.toString());
}

double TuneMeasurer::timeOf(const Spread &times) const {
  return request.isShared ? times.least : times.median;
}

Result<TuneMeasurer::Seen> TuneMeasurer::timeSeen(const std::function<Status()> &launch) {
  Timing how{.flush = flush ? &*flush : nullptr,
             .byEvents = device->info().kind == DeviceKind::Cuda,
             .enough = 0.005,
             .batchMilliseconds = 5};
  if (request.isShared) // single launches, of which some are between those of others
    how.samples = 60, how.batch = 1, how.enough = 0;
  if (monitor)
    how.meanwhile = [this] { monitor->look(); };
  const auto once = [&]() -> Result<Seen> {
    Seen out;
    if (monitor)
      monitor->begin();
    KILN_ASSIGN(out.times, timeLaunches(*device, how, launch));
    if (monitor)
      out.conditions = monitor->end();
    return out;
  };
  KILN_ASSIGN(Seen first, once());
  if (first.conditions.notes.empty())
    return first;
  KILN_ASSIGN(Seen second, once());
  const bool isBetter = second.conditions.notes.empty() || timeOf(second.times) < timeOf(first.times);
  return isBetter ? std::move(second) : std::move(first);
}

int serveMeasurements(const TuneRequest &request, bool isPredicted) {
  TuneMeasurer measurer(request, isPredicted);
  (void)measurer.getReady(); // a failure shows again at the first request
  return answerRequests([&](const std::string &line) {
    const Json words = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    std::vector<std::string> configuration;
    if (words.is_array())
      for (const Json &word : words)
        configuration.push_back(word.is_string() ? word.get<std::string>() : word.dump());
    Result<Json> row = measurer.measure(configuration);
    Json answer;
    if (row)
      answer = std::move(*row);
    else
      answer = {{"outcome", tune::outcomeName(outcomeOf(row.status().exitCode()))},
                {"message", row.status().toString()}};
    return std::pair(answer.dump(-1, ' ', false, Json::error_handler_t::replace), !answer.contains("outcome"));
  });
}

} // namespace kiln::tools
