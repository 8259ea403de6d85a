#include "runtime/tools/BenchPrediction.h"

#include "kiln/Knobs.h"
#include "support/Names.h"
#include "support/Text.h"

#include <cstdio>

namespace kiln::tools {

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

void printPredictionHead(const model::Hardware &hardware) {
  std::printf("predicted for an %s, not measured; alone: milliseconds if nothing else limited the launch\n"
              "%-12s %-5s %-27s %9s %9s %8s\n",
              std::string(hardware.name).c_str(), "kernel", "type", "shape", "ms", "GB/s", "TFLOP/s");
}

void printPrediction(const Json &row) {
  const std::string rate =
      row.contains("teraflopsPerSecond") ? format("%.1f", row["teraflopsPerSecond"].get<double>()) : std::string("-");
  std::printf("%-12s %-5s %-27s %9.4f %9.1f %8s\n", row["kernel"].get<std::string>().c_str(),
              row["dtype"].get<std::string>().c_str(), row["shape"].get<std::string>().c_str(),
              row["predictedMs"].get<double>(), row["gigabytesPerSecond"].get<double>(), rate.c_str());
  for (const Json &launch : row["launches"]) {
    std::string alone;
    for (const auto &[name, ms] : launch["aloneMs"].items())
      if (ms.get<double>() >= 0.05 * launch["predictedMs"].get<double>())
        alone += format("%s%s %.4f", alone.empty() ? "" : ", ", name.c_str(), ms.get<double>());
    std::printf("  %s: %.4f ms, limited by %s; alone: %s; %.1f waves of %u blocks a multiprocessor\n",
                launch["kernel"].get<std::string>().c_str(), launch["predictedMs"].get<double>(),
                launch["limiter"].get<std::string>().c_str(), alone.c_str(), launch["waves"].get<double>(),
                launch["resident"].get<unsigned>());
  }
  std::fflush(stdout);
}

} // namespace kiln::tools
