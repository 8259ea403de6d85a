#include "runtime/tools/PassTimes.h"

#include "support/Text.h"

#include <algorithm>
#include <cstdio>

namespace kiln::tools {

void printPassTimes(const Json &metadata) {
  struct Row {
    std::string stage, pass;
    double milliseconds;
  };
  std::vector<Row> rows;
  double total = 0;
  const auto passes = metadata.find("passes");
  if (passes == metadata.end() || !passes->is_array()) {
    std::fputs("no times of passes: they are measured in compiles to PTX\n", stderr);
    return;
  }
  for (const Json &p : *passes) {
    const double time = p.value("milliseconds", 0.0);
    rows.push_back({p.value("stage", ""), p.value("pass", ""), time});
    total += time;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row &a, const Row &b) { return a.milliseconds > b.milliseconds; });
  const auto line = [&](double time, const std::string &stage, const std::string &pass) {
    std::fprintf(stderr, "%10.3f  %5.1f %%  %-9s %s\n", time, total > 0 ? 100 * time / total : 0, stage.c_str(),
                 pass.c_str());
  };
  std::fprintf(stderr, "%10s  %7s  %-9s %s\n", "ms", "share", "stage", "pass");
  double small = 0;
  std::size_t count = 0;
  for (const Row &r : rows)
    if (r.milliseconds * 1000 >= total)
      line(r.milliseconds, r.stage, r.pass);
    else {
      small += r.milliseconds;
      ++count;
    }
  if (count)
    line(small, "", std::to_string(count) + " others, each less than 0.1 %");
  line(total, "", "all passes");
}

} // namespace kiln::tools
