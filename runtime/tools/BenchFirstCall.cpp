#include "runtime/tools/BenchFirstCall.h"

#include "runtime/tools/OwnProgram.h"
#include "runtime/tools/TemporaryFolder.h"
#include "support/Text.h"

#include <algorithm>
#include <chrono>
#include <set>

namespace kiln::tools {
namespace {

using namespace kernels;

struct Planned {
  const Callable *callable;
  PlacedCall placed;
};

/// The call, after those that make its inputs.
Result<std::vector<Planned>> callsOf(Device &device, Jit &jit, const FamilyCall &of) {
  const Callable &callable = *of.family->callable;
  KILN_ASSIGN(const Arrays inputs, randomInputsOf(jit, of, InputValues::Any));
  std::vector<Planned> out;
  std::set<std::string> makers;
  for (const TensorParameter &p : callable.tensors()) {
    if (p.madeBy.empty() || std::count(of.sample.made.begin(), of.sample.made.end(), p.name) == 0 ||
        !makers.insert(p.madeBy).second)
      continue;
    KILN_ASSIGN(const MakerCall maker, makerOf(p, inputs, of.sample.options, of.sample.made));
    KILN_ASSIGN(PlacedCall placed,
                PlacedCall::createForPlans(device, *maker.family->callable, maker.inputs, maker.options));
    out.push_back({maker.family->callable.get(), std::move(placed)});
  }
  KILN_ASSIGN(PlacedCall placed, PlacedCall::createForPlans(device, callable, inputs, of.sample.options));
  out.push_back({&callable, std::move(placed)});
  return out;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Result<Json> runOne(std::vector<std::string> words, const std::string &cache) {
  constexpr double patience = 600;
  // No other cache, or what it has is not compiled.
  words.insert(words.end(),
               {"--cache-dir", cache, "--cache-shared", "", "--cache-server", "", "--tuned", "0", "--json"});
  KILN_ASSIGN(const OwnRun run, runOwnProgram(std::move(words), patience));
  const Json &report = run.report;
  if (run.end.exitStatus == 0 && report.is_object() && report.contains("results") && !report["results"].empty())
    return report["results"].back();
  if (report.is_object() && report.contains("error"))
    return run.failure(StatusCode::CompileError);
  return Status(StatusCode::Internal, run.end.timedOut
                                          ? "the first call took longer than " + format("%g s", patience)
                                          : "the process of a first call ended with " +
                                                std::to_string(run.end.exitStatus) + ": " + run.end.output);
}

} // namespace

Result<Json> firstCallHere(Device &device, const JitOptions &options, const FamilyCall &of) {
  std::vector<Planned> calls;
  {
    JitOptions others = options;
    others.diskCache = false;
    KILN_ASSIGN(const std::unique_ptr<Jit> jit, Jit::create(device, std::move(others)));
    KILN_ASSIGN(calls, callsOf(device, *jit, of));
  }
  const auto begin = std::chrono::steady_clock::now();
  KILN_ASSIGN(const std::unique_ptr<Jit> jit, Jit::create(device, JitOptions(options)));
  std::vector<Callable::Planner> planners;
  for (const Planned &call : calls)
    planners.push_back(call.callable->bind(*jit));
  KILN_ASSIGN(const std::vector<const LoadedKernel *> loaded, prepareAll([&](Plan &plan) {
                for (std::size_t i = 0; i < calls.size(); ++i)
                  KILN_TRY(planners[i](calls[i].placed.call(), plan));
                return Status();
              }));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  Json row = {{"milliseconds", took.count()}, {"kernels", Json::array()}};
  for (const LoadedKernel *kernel : loaded) {
    Json stages = Json::object();
    for (const FirstCallReport::Stage &stage : kernel->report().stages)
      stages[stage.name] = stage.milliseconds;
    row["kernels"].push_back({{"kernel", kernel->name()},
                              {"compiled", kernel->report().source == FirstCallReport::Source::Compiled},
                              {"milliseconds", kernel->report().milliseconds},
                              {"stages", std::move(stages)}});
  }
  return row;
}

Result<Json> firstCallRow(const std::vector<std::string> &words, unsigned processes, const FamilyCall &of) {
  std::vector<double> cold, disk;
  Json kernels;
  for (unsigned i = 0; i < processes; ++i) {
    KILN_ASSIGN(const TemporaryFolder cache, TemporaryFolder::create());
    KILN_ASSIGN(Json first, runOne(words, cache.name()));
    KILN_ASSIGN(const Json second, runOne(words, cache.name()));
    const auto compiled = [](const Json &row) {
      return std::count_if(row["kernels"].begin(), row["kernels"].end(),
                           [](const Json &k) { return k.value("compiled", false); });
    };
    // A kernel that two launches share is compiled once and named twice.
    if (compiled(first) == 0 || compiled(second) != 0)
      return Status(StatusCode::Internal,
                    "the first process compiled " + std::to_string(compiled(first)) + " kernels and the second one " +
                        std::to_string(compiled(second)),
                    "see whether the cache works: kiln cache list");
    cold.push_back(first["milliseconds"]), disk.push_back(second["milliseconds"]);
    kernels = std::move(first["kernels"]);
  }
  return Json{{"kernel", of.family->name()},
              {"dtype", dtypeName(of.type)},
              {"shape", sizeTextOf(of)},
              {"coldMs", median(cold)},
              {"diskMs", median(disk)},
              {"coldRuns", cold},
              {"diskRuns", disk},
              {"kernels", std::move(kernels)}};
}

std::string firstCallText(const Json &row) {
  const auto range = [&](const char *name) {
    const std::vector<double> runs = row[name];
    const auto [least, most] = std::minmax_element(runs.begin(), runs.end());
    return format("(%.1f to %.1f)", *least, *most);
  };
  std::string out = format("%s %s %s: %.1f ms %s with an empty cache, %.1f ms %s from disk\n",
                           row["kernel"].get<std::string>().c_str(), row["dtype"].get<std::string>().c_str(),
                           row["shape"].get<std::string>().c_str(), row["coldMs"].get<double>(),
                           range("coldRuns").c_str(), row["diskMs"].get<double>(), range("diskRuns").c_str());
  for (const Json &kernel : row["kernels"]) {
    out +=
        format("  %-28s %8.1f ms:", kernel["kernel"].get<std::string>().c_str(), kernel["milliseconds"].get<double>());
    for (const auto &[name, milliseconds] : kernel["stages"].items())
      if (!name.starts_with("compile: ") && milliseconds.get<double>() >= 0.1)
        out += format(" %s %.1f", name.c_str(), milliseconds.get<double>());
    out += "\n";
  }
  return out;
}

} // namespace kiln::tools
