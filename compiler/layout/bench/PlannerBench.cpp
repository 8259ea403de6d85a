// Time to plan one conversion, over the golden conversions of the layout tests, on one core.  Each conversion is
// planned `repeat` times in a row and counts with its median, so that a reschedule does not count.
#include "compiler/layout/Planner.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace kiln;
using namespace kiln::layout;

namespace {

constexpr const char *help =
    "usage: kiln-bench-planner [--json] [--repeat N] [--golden FILE]\n"
    "Times the conversion planner on the golden conversions of the layout tests, on one core.\n"
    "  --json         one JSON object instead of text\n"
    "  --repeat N     plans of each conversion, 1 to 1000 (default 15); its median counts\n"
    "  --golden FILE  cases (default tests/layout/data/layouts_golden.json of the sources)\n";

struct Options {
  bool json = false;
  int repeat = 15;
  std::string golden = KILN_SOURCE_DIR "/tests/layout/data/layouts_golden.json";
};

int usageError(const std::string &what) {
  std::fprintf(stderr, "kiln-bench-planner: %s\n%s", what.c_str(), help);
  return 2;
}

double percentile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(p * static_cast<double>(values.size() - 1) + 0.5)];
}

struct Case {
  LinearLayout source, destination;
  unsigned bits = 0;
  const Target *target = nullptr;
  std::uint64_t scratch = 0;
};

/// Throws what the JSON reader throws on a file of another form.
Result<std::vector<Case>> parseCases(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    return Status(StatusCode::IoError, "cannot open " + path, "give the file with --golden");
  auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.contains("layouts") || !json.contains("conversions"))
    return Status::invalid(path + " is not a file of golden layouts");
  std::vector<LinearLayout> layouts;
  for (const auto &l : json["layouts"]) {
    auto shape = l.at("shape").get<std::vector<std::uint32_t>>();
    auto bases = l.at("bases").get<std::vector<std::vector<BitVector>>>();
    KILN_ASSIGN(LinearLayout layout, LinearLayout::create(shape, {bases.at(0), bases.at(1), bases.at(2), bases.at(3)}));
    layouts.push_back(layout);
  }
  std::vector<Case> cases;
  for (const auto &c : json["conversions"]) {
    KILN_ASSIGN(const Target *target, findTarget(c.at(3).get<std::string>()));
    cases.push_back({layouts.at(c.at(0)), layouts.at(c.at(1)), c.at(2), target, c.at(4)});
  }
  if (cases.empty())
    return Status::invalid(path + " has no conversions");
  return cases;
}

Result<std::vector<Case>> load(const std::string &path) {
  try {
    return parseCases(path);
  } catch (const std::exception &e) {
    return Status::invalid(path + " is not a file of golden layouts: " + e.what());
  }
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--help" || arg == "-h") {
      std::fputs(help, stdout);
      return 0;
    }
    if (arg == "--json") {
      options.json = true;
    } else if (arg == "--repeat" && i + 1 < argc) {
      options.repeat = std::atoi(argv[++i]);
    } else if (arg == "--golden" && i + 1 < argc) {
      options.golden = argv[++i];
    } else {
      return usageError("unknown or incomplete option " + arg);
    }
  }
  if (options.repeat < 1 || options.repeat > 1000)
    return usageError("--repeat takes 1 to 1000");
  auto cases = load(options.golden);
  if (!cases) {
    std::fprintf(stderr, "kiln-bench-planner: %s\n", cases.status().toString().c_str());
    return 2;
  }

  std::vector<double> all;
  std::map<std::string, std::vector<double>> byStrategy;
  for (const Case &c : *cases) {
    std::vector<double> times;
    std::string strategy;
    for (int r = 0; r < options.repeat; ++r) {
      auto begin = std::chrono::steady_clock::now();
      auto plan = planConversion(c.source, c.destination, c.bits, *c.target, c.scratch);
      auto end = std::chrono::steady_clock::now();
      if (!plan) {
        std::fprintf(stderr, "kiln-bench-planner: %s\n", plan.status().toString().c_str());
        return 1;
      }
      times.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
      strategy = strategyName(plan->strategy);
    }
    all.push_back(percentile(times, 0.5));
    byStrategy[strategy].push_back(all.back());
  }

  auto summary = [](const std::vector<double> &v) {
    return nlohmann::json{{"plans", v.size()},
                          {"median_us", percentile(v, 0.5)},
                          {"p95_us", percentile(v, 0.95)},
                          {"max_us", percentile(v, 1)}};
  };
  if (options.json) {
    nlohmann::json out = summary(all);
    out["repeat"] = options.repeat;
    for (const auto &[name, times] : byStrategy)
      out["strategies"][name] = summary(times);
    std::printf("%s\n", out.dump().c_str());
    return 0;
  }
  std::printf("%-18s %6s %10s %10s %10s\n", "time to plan", "plans", "median us", "p95 us", "max us");
  auto line = [](const char *name, const std::vector<double> &v) {
    std::printf("%-18s %6zu %10.1f %10.1f %10.1f\n", name, v.size(), percentile(v, 0.5), percentile(v, 0.95),
                percentile(v, 1));
  };
  line("all", all);
  for (const auto &[name, times] : byStrategy)
    line(name.c_str(), times);
  return 0;
}
