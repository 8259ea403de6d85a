#include "runtime/tune/Sweep.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <system_error>
#include <thread>

namespace kiln::tune {
namespace {

using Clock = std::chrono::steady_clock;

class Sweep {
public:
  Sweep(const Space &space, const std::vector<Candidate> &kept, Searcher &searcher, Journal *journal,
        const Measuring &how, const SweepOptions &options, const std::function<void(const SweepState &)> &seen)
      : space(space), kept(kept), searcher(searcher), journal(journal), how(how), o(options), seen(seen) {
    if (journal)
      for (const Entry &e : journal->entries())
        known.emplace(e.key(), e);
    std::size_t open = 0;
    for (const Candidate &c : kept)
      open += !known.contains(space.text(space.at(c.number)));
    out.state.total = o.budget ? std::min(o.budget, open) : open;
  }

  Result<SweepResult> operator()() {
    {
      std::vector<std::jthread> others;
      startPreparing(others);
      startMeasuring(others);
      isPipelined ? measureAll(0) : prepareAll(0);
    }
    if (!problem.ok())
      return std::move(problem);
    return std::move(out);
  }

private:
  /// As many threads as the system gives; this one also prepares, unless it measures what the others prepare.
  void startPreparing(std::vector<std::jthread> &others) {
    try {
      while (others.size() + (isPipelined ? 0 : 1) < o.jobs) {
        if (isPipelined) {
          const std::lock_guard lock(mutex);
          ++preparing;
        }
        const auto number = static_cast<unsigned>(others.size() + 1);
        others.emplace_back([this, number] { prepareAll(number); });
      }
    } catch (const std::system_error &e) {
      const std::lock_guard lock(mutex);
      if (isPipelined)
        --preparing;
      if (isPipelined && others.empty())
        problem = Status(StatusCode::OutOfMemory, std::string("no thread can be started: ") + e.what());
    }
  }

  /// This thread is the first one that measures; with fewer than there are devices the sweep takes longer.
  void startMeasuring(std::vector<std::jthread> &others) {
    try {
      for (unsigned number = 1; isPipelined && number < o.measurers; ++number)
        others.emplace_back([this, number] { measureAll(number); });
    } catch (const std::system_error &) {
    }
  }

  /// A candidate that can be measured.
  struct Prepared {
    std::size_t candidate;
    double seconds; ///< that it took
  };

  /// Prepares one after the other; measures them too, if nobody else does.
  void prepareAll(unsigned number) {
    while (const std::optional<std::size_t> candidate = take()) {
      Prepared prepared{*candidate, 0};
      if (how.prepare) {
        Result<Entry> entry = how.prepare(configurationOf(*candidate));
        if (!entry || !entry->good()) {
          if (!finish(*candidate, std::move(entry)))
            break;
          continue;
        }
        prepared.seconds = entry->seconds;
      }
      if (!isPipelined) {
        if (!measure(prepared, number))
          break;
        continue;
      }
      std::unique_lock lock(mutex);
      // Those that wait are not measured if the time is over before, and a search that learns knows nothing of them.
      changed.wait(lock, [&] { return ready.size() < 2 * o.measurers || hasEnded(); });
      ready.push_back(prepared);
      changed.notify_all();
    }
    const std::lock_guard lock(mutex);
    if (isPipelined)
      --preparing;
    changed.notify_all();
  }

  void measureAll(unsigned number) {
    if (how.getReady && out.state.total)
      how.getReady(number);
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !ready.empty() || preparing == 0; });
      if (ready.empty())
        return;
      const Prepared next = ready.front();
      ready.pop_front();
      changed.notify_all();
      if (isInterrupted())
        out.end = SweepEnd::Interrupted;
      if (isOver() && out.end == SweepEnd::Complete)
        out.end = SweepEnd::Budget; // begun, and never measured
      if (hasEnded() || isOver())
        continue;
      lock.unlock();
      if (!measure(next, number))
        return endWaiting();
    }
  }
  /// The sweep has ended: those that prepare wait for no room any more.
  void endWaiting() {
    std::unique_lock lock(mutex);
    changed.notify_all();
    changed.wait(lock, [&] { return preparing == 0; });
  }

  bool measure(const Prepared &prepared, unsigned number) {
    Result<Entry> entry = how.measure(configurationOf(prepared.candidate), number);
    if (entry)
      entry->seconds += prepared.seconds;
    return finish(prepared.candidate, std::move(entry));
  }

  Configuration configurationOf(std::size_t candidate) const { return space.at(kept[candidate].number); }

  /// Keeps what became of a candidate.  False: the sweep ends.
  bool finish(std::size_t candidate, Result<Entry> entry) {
    const std::lock_guard lock(mutex);
    // What the signal did to the measurement is not known.
    if (isInterrupted()) {
      out.end = SweepEnd::Interrupted;
      return false;
    }
    if (!entry && entry.status().code() == StatusCode::NotReady && o.seconds > 0) { // nobody began it in time
      out.end = SweepEnd::Budget;
      return false;
    }
    if (!entry) {
      if (problem.ok())
        problem = entry.takeStatus();
      return false;
    }
    entry->configuration = named(space, configurationOf(candidate));
    entry->estimate = kept[candidate].estimate;
    entry->isDefault = kept[candidate].isDefault;
    if (Status s = journal ? journal->append(*entry) : Status(); !s.ok()) {
      problem = std::move(s);
      return false;
    }
    ++out.state.done;
    meet(candidate, *entry);
    out.state.seconds = secondsSince(begin);
    if (seen)
      seen(out.state);
    return true;
  }

  /// The next one to measure.
  std::optional<std::size_t> take() {
    const std::lock_guard lock(mutex);
    while (problem.ok() && out.end == SweepEnd::Complete) {
      if (isInterrupted()) {
        out.end = SweepEnd::Interrupted;
        break;
      }
      if ((o.budget && begun >= o.budget) || isOver()) {
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
      Entry entry = found->second;
      entry.isDefault = kept[*candidate].isDefault; // journals that were written before this was known
      meet(*candidate, entry);
    }
    return {};
  }

  void meet(std::size_t candidate, const Entry &entry) {
    searcher.tell(candidate, entry.good() ? std::optional(entry.milliseconds) : std::nullopt);
    SweepState &s = out.state;
    if (!entry.good())
      ++s.failures[static_cast<unsigned>(entry.outcome)];
    else if (!s.best || isBetter(entry, *s.best)) {
      if (!s.best || entry.milliseconds < s.best->milliseconds)
        s.convergence.emplace_back(s.known + s.done, entry.milliseconds);
      s.best = entry;
    }
    s.last = entry;
    out.entries.push_back(entry);
  }

  bool isOver() const { return o.seconds > 0 && secondsSince(begin) >= o.seconds; }
  /// Nothing that was begun counts any more.
  bool hasEnded() const { return !problem.ok() || out.end == SweepEnd::Interrupted; }
  bool isInterrupted() const { return o.interrupted && o.interrupted->load(); }
  static double secondsSince(Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  }

  const Space &space;
  const std::vector<Candidate> &kept;
  Searcher &searcher;
  Journal *journal;
  const Measuring &how;
  const SweepOptions &o;
  const bool isPipelined = o.measurers && how.prepare;
  const std::function<void(const SweepState &)> &seen;
  std::map<std::string, Entry> known; ///< by key
  const Clock::time_point begin = Clock::now();
  std::mutex mutex; ///< of everything below, and of the searcher
  std::condition_variable changed;
  std::deque<Prepared> ready; ///< waiting to be measured
  unsigned preparing = 0;     ///< of a pipeline: threads that still prepare
  std::size_t begun = 0;
  Status problem;
  SweepResult out;
};

} // namespace

Result<SweepResult> runSweep(const Space &space, const std::vector<Candidate> &kept, Searcher &searcher,
                             Journal *journal, const Measuring &how, const SweepOptions &options,
                             const std::function<void(const SweepState &)> &seen) {
  return Sweep(space, kept, searcher, journal, how, options, seen)();
}

std::vector<std::pair<std::string, std::string>> named(const Space &space, const Configuration &configuration) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t i = 0; i < configuration.size(); ++i)
    out.emplace_back(space.parameters()[i].name, configuration[i]);
  return out;
}

} // namespace kiln::tune
