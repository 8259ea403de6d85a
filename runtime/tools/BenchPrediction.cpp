#include "runtime/tools/BenchPrediction.h"

#include "kiln/Knobs.h"
#include "support/Names.h"
#include "support/Text.h"

#include <string_view>
#include <utility>
#include <vector>

namespace kiln::tools {

namespace {

/// Blocks of each launch that the emulator runs; and the longest that a launch may take it, in seconds: those of
/// kernels whose results depend on the order of blocks run whole.
constexpr std::uint64_t blocksOfPrediction = 32;
constexpr double secondsOfPrediction = 240;

Result<model::Hardware> hardwareForPrediction(const Device &device) {
  if (device.info().kind != DeviceKind::Emulator)
    return Status::invalid("--predict: " + device.info().name + " can be measured",
                           "name the target that is to be predicted: --target sm_90a");
  KILN_ASSIGN(const Knobs knobs, Knobs::fromEnvironment());
  if (const Schedule schedule = emulatorOptions(knobs).schedule; schedule != Schedule::InOrder)
    return Status::invalid("--predict: blocks run in the schedule " + std::string(scheduleName(schedule)) +
                               ", of which no sample can be taken",
                           "leave --schedule (KILN_SCHEDULE) at in-order");
  return model::hardwareOf(*device.info().target);
}

struct CallPrediction {
  double milliseconds = 0;
  std::vector<std::pair<std::string, model::Prediction>> launches; ///< a kernel's name, its prediction
};

/// Of the launches that `device` has counted since the last look; `bytes` are those of the call's tensors and of its
/// workspace.
CallPrediction predictCall(Device &device, const model::Hardware &hardware, double bytes) {
  const DeviceInfo &about = device.info();
  CallPrediction out;
  for (const LaunchCounters &launch : device.takeCounters()) {
    const model::Prediction p = model::predict(launch, *about.target, hardware, about.multiprocessors, bytes);
    out.milliseconds += p.milliseconds;
    out.launches.emplace_back(shortName(launch.kernel), p);
  }
  return out;
}

Json toJson(const CallPrediction &prediction, std::string_view kernel, std::string_view dtype, const std::string &shape,
            double bytes, double flops) {
  // A call of empty tensors has no launches.
  const auto rate = [&](double work) { return prediction.milliseconds > 0 ? work / prediction.milliseconds : 0; };
  Json row = {{"kernel", kernel},         {"dtype", dtype},
              {"shape", shape},           {"predictedMs", prediction.milliseconds},
              {"bytes", bytes},           {"gigabytesPerSecond", rate(bytes * 1e-6)},
              {"launches", Json::array()}};
  if (flops > 0)
    row.update({{"flops", flops}, {"teraflopsPerSecond", rate(flops * 1e-9)}});
  for (const auto &[name, p] : prediction.launches) {
    Json alone = Json::object();
    for (unsigned i = 0; i < model::limiters; ++i)
      alone[std::string(model::limiterName(static_cast<model::Limiter>(i)))] = p.alone[i];
    row["launches"].push_back({{"kernel", name},
                               {"predictedMs", p.milliseconds},
                               {"limiter", model::limiterName(p.limiter)},
                               {"resident", p.resident},
                               {"waves", p.waves},
                               {"aloneMs", alone}});
  }
  return row;
}

} // namespace

Result<std::unique_ptr<Device>> openForPrediction(const RunOptions &options, model::Hardware &hardware) {
  RunOptions run = options;
  run.noChecks = true; // the next launch may read what the sample did not write, which checks report
  run.emulator.secondsBudget = secondsOfPrediction;
  KILN_ASSIGN(std::unique_ptr<Device> device, openChosenDevice(run));
  KILN_ASSIGN(hardware, hardwareForPrediction(*device));
  KILN_TRY(recordSample(*device));
  return device;
}

kernels::OptionValues optionsAsOnGpu(const FamilyCall &of) {
  kernels::OptionValues options = of.sample.options;
  for (const kernels::OptionInfo &option : of.family->callable->options())
    if (option.name == "checked")
      options.emplace(option.name, false);
  return options;
}

Status recordSample(Device &device) {
  return device.record({.counters = true, .sampledBlocks = blocksOfPrediction});
}

Result<Json> predictedRow(Device &device, Jit &jit, const model::Hardware &hardware, const FamilyCall &of) {
  const kernels::Callable &callable = *of.family->callable;
  KILN_ASSIGN(const kernels::Arrays inputs, randomInputsOf(jit, of));
  KILN_ASSIGN(const kernels::PlacedCall placed,
              kernels::PlacedCall::create(device, callable, inputs, optionsAsOnGpu(of)));
  const kernels::Call &call = placed.call();
  const kernels::Callable::Planner planner = callable.bind(jit);
  device.takeCounters(); // of calls that made inputs
  WorkspacePlan workspace;
  KILN_TRY(planner(call, workspace));
  KILN_TRY(callable.run(jit, planner, call, {}));
  KILN_TRY(device.defaultStream().synchronize());
  const double bytes = callable.bytes(call);
  return toJson(predictCall(device, hardware, bytes + static_cast<double>(workspace.bytes)), of.family->name(),
                dtypeName(of.type), sizeTextOf(of), bytes, callable.flops(call));
}

std::string predictionHead(std::string_view hardware) {
  return format("predicted for an %s, not measured; alone: milliseconds if nothing else limited the launch\n"
                "%-12s %-5s %-27s %9s %9s %8s\n",
                std::string(hardware).c_str(), "kernel", "type", "shape", "ms", "GB/s", "TFLOP/s");
}

std::string predictionText(const Json &row) {
  const std::string rate =
      row.contains("teraflopsPerSecond") ? format("%.1f", row["teraflopsPerSecond"].get<double>()) : std::string("-");
  std::string out = format("%-12s %-5s %-27s %9.4f %9.1f %8s\n", row["kernel"].get<std::string>().c_str(),
                           row["dtype"].get<std::string>().c_str(), row["shape"].get<std::string>().c_str(),
                           row["predictedMs"].get<double>(), row["gigabytesPerSecond"].get<double>(), rate.c_str());
  for (const Json &launch : row["launches"]) {
    std::string alone;
    for (const auto &[name, ms] : launch["aloneMs"].items())
      if (ms.get<double>() >= 0.05 * launch["predictedMs"].get<double>())
        alone += format("%s%s %.4f", alone.empty() ? "" : ", ", name.c_str(), ms.get<double>());
    out += format("  %s: %.4f ms, limited by %s; alone: %s; %.1f waves of %u blocks a multiprocessor\n",
                  launch["kernel"].get<std::string>().c_str(), launch["predictedMs"].get<double>(),
                  launch["limiter"].get<std::string>().c_str(), alone.c_str(), launch["waves"].get<double>(),
                  launch["resident"].get<unsigned>());
  }
  return out;
}

} // namespace kiln::tools
