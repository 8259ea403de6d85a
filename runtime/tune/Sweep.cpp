#include "runtime/tune/Sweep.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

namespace kiln::tune {
namespace {

using Clock = std::chrono::steady_clock;

class Sweep {
public:
  Sweep(const Space &space, const std::vector<Candidate> &kept, Searcher &searcher, Journal *journal,
        const Measure &measure, const SweepOptions &options, const std::function<void(const SweepState &)> &seen)
      : space(space), kept(kept), searcher(searcher), journal(journal), measure(measure), o(options), seen(seen) {
    if (journal)
      for (const Entry &e : journal->entries())
        known.emplace(e.key(), e);
    std::size_t open = 0;
    for (const Candidate &c : kept)
      open += !known.contains(space.text(space.at(c.number)));
    out.state.total = o.budget ? std::min(o.budget, open) : open;
  }

  Result<SweepResult> operator()() {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < o.jobs; ++i)
      others.emplace_back([this] { work(); });
    work();
    others.clear();
    if (!problem.ok())
      return std::move(problem);
    return std::move(out);
  }

private:
  void work() {
    while (const std::optional<std::size_t> candidate = take()) {
      const Candidate &c = kept[*candidate];
      const Configuration configuration = space.at(c.number);
      Result<Entry> entry = measure(configuration);
      const std::lock_guard lock(mutex);
      // What the signal did to the measurement is not known.
      if (isInterrupted()) {
        out.end = SweepEnd::Interrupted;
        return;
      }
      if (!entry) {
        if (problem.ok())
          problem = entry.takeStatus();
        return;
      }
      entry->configuration = named(space, configuration);
      entry->estimate = c.estimate;
      if (Status s = journal ? journal->append(*entry) : Status(); !s.ok()) {
        problem = std::move(s);
        return;
      }
      ++out.state.done;
      meet(*candidate, *entry);
      out.state.seconds = secondsSince(begin);
      if (seen)
        seen(out.state);
    }
  }

  /// The next one to measure.
  std::optional<std::size_t> take() {
    const std::lock_guard lock(mutex);
    while (problem.ok() && out.end == SweepEnd::Complete) {
      if (isInterrupted()) {
        out.end = SweepEnd::Interrupted;
        break;
      }
      if ((o.budget && begun >= o.budget) || (o.seconds > 0 && secondsSince(begin) >= o.seconds)) {
        out.end = SweepEnd::Budget;
        break;
      }
      const std::optional<std::size_t> candidate = searcher.next();
      if (!candidate)
        break;
      const auto found = known.find(space.text(space.at(kept[*candidate].number)));
      if (found == known.end()) {
        ++begun;
        return candidate;
      }
      ++out.state.known;
      meet(*candidate, found->second);
    }
    return {};
  }

  void meet(std::size_t candidate, const Entry &entry) {
    searcher.tell(candidate, entry.good() ? std::optional(entry.milliseconds) : std::nullopt);
    SweepState &s = out.state;
    if (!entry.good())
      ++s.failures[static_cast<unsigned>(entry.outcome)];
    else if (!s.best || entry.milliseconds < s.best->milliseconds) {
      s.best = entry;
      s.convergence.emplace_back(s.known + s.done, entry.milliseconds);
    }
    s.last = entry;
    out.entries.push_back(entry);
  }

  bool isInterrupted() const { return o.interrupted && o.interrupted->load(); }
  static double secondsSince(Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  }

  const Space &space;
  const std::vector<Candidate> &kept;
  Searcher &searcher;
  Journal *journal;
  const Measure &measure;
  const SweepOptions &o;
  const std::function<void(const SweepState &)> &seen;
  std::map<std::string, Entry> known; ///< by key
  const Clock::time_point begin = Clock::now();
  std::mutex mutex; ///< of everything below, and of the searcher
  std::size_t begun = 0;
  Status problem;
  SweepResult out;
};

} // namespace

Result<SweepResult> runSweep(const Space &space, const std::vector<Candidate> &kept, Searcher &searcher,
                             Journal *journal, const Measure &measure, const SweepOptions &options,
                             const std::function<void(const SweepState &)> &seen) {
  return Sweep(space, kept, searcher, journal, measure, options, seen)();
}

std::vector<std::pair<std::string, std::string>> named(const Space &space, const Configuration &configuration) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t i = 0; i < configuration.size(); ++i)
    out.emplace_back(space.parameters()[i].name, configuration[i]);
  return out;
}

} // namespace kiln::tune
