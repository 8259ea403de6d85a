#include "runtime/tools/BenchTiming.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace kiln::tools {
namespace {

/// Median and its interval by order statistics: no distribution is assumed.
Spread spreadOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  Spread out{(times[(n - 1) / 2] + times[n / 2]) / 2, times.front(), times.back(), 0, static_cast<unsigned>(n)};
  // How many of n lie below the median is binomial; of so few samples the interval is all of them.
  const double below = static_cast<double>(n) / 2 - 1.96 * std::sqrt(static_cast<double>(n)) / 2;
  const std::size_t first = below > 0 ? static_cast<std::size_t>(below) : 0;
  out.halfInterval = (times[n - 1 - first] - times[first]) / 2;
  return out;
}

} // namespace

Result<Spread> timeLaunches(Device &device, const Timing &how, const std::function<Status()> &launch) {
  KILN_TRY(launch());
  Stream &stream = device.defaultStream();
  KILN_TRY(stream.synchronize());
  std::vector<std::pair<std::unique_ptr<Event>, std::unique_ptr<Event>>> events; ///< around one launch
  const auto flushedBatchOf = [&](unsigned launches) -> Result<double> {
    while (events.size() < launches) {
      auto &[begin, end] = events.emplace_back();
      KILN_ASSIGN(begin, device.createEvent());
      KILN_ASSIGN(end, device.createEvent());
    }
    for (unsigned i = 0; i < launches; ++i) {
      KILN_TRY((*how.flush)(stream)); // the host gives the launch while the device is busy with this
      KILN_TRY(events[i].first->record(stream));
      KILN_TRY(launch());
      KILN_TRY(events[i].second->record(stream));
    }
    if (how.meanwhile)
      how.meanwhile();
    KILN_TRY(stream.synchronize());
    double sum = 0;
    for (unsigned i = 0; i < launches; ++i) {
      KILN_ASSIGN(const double ms, events[i].second->millisecondsSince(*events[i].first));
      sum += ms;
    }
    return sum / launches;
  };
  const auto batchOf = [&](unsigned launches) -> Result<double> {
    if (how.flush)
      return flushedBatchOf(launches);
    const auto hostBegin = std::chrono::steady_clock::now();
    KILN_ASSIGN(auto begin, device.createEvent());
    KILN_ASSIGN(auto end, device.createEvent());
    KILN_TRY(begin->record(stream));
    for (unsigned i = 0; i < launches; ++i)
      KILN_TRY(launch());
    KILN_TRY(end->record(stream));
    if (how.meanwhile)
      how.meanwhile();
    KILN_TRY(stream.synchronize());
    double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - hostBegin).count();
    if (how.byEvents) {
      KILN_ASSIGN(ms, end->millisecondsSince(*begin));
    }
    return ms / launches;
  };
  unsigned batch = how.batch;
  if (how.batchMilliseconds > 0) {
    KILN_ASSIGN(const double one, batchOf(1));
    batch = static_cast<unsigned>(std::clamp(how.batchMilliseconds / std::max(one, 1e-6), 1.0, double(how.batch)));
  }
  std::vector<double> times;
  for (unsigned s = 0; s < how.samples; ++s) {
    KILN_ASSIGN(const double ms, batchOf(batch));
    times.push_back(ms);
    if (how.enough > 0 && times.size() >= 5)
      if (const Spread now = spreadOf(times); now.halfInterval <= how.enough * now.median)
        break;
  }
  return spreadOf(times);
}

} // namespace kiln::tools
