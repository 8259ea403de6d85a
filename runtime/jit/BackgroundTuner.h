//===- BackgroundTuner.h - Sweeps of a program's calls, while it runs ------------===//
//
// A call that nothing was kept for goes on with the operation's own choice; here its sweep waits for its turn: one at a
// time, each `kiln tune` in a process of its own that gives way to others (nice 19) and ends with this one.  What a
// sweep keeps lies in the kernel cache, where the next call finds it.
//
// Invariants: nothing here fails a call; a key is swept once at most, a call too; `add` does not wait.  The destructor
// ends the sweep that runs.  After fork the child must not use or destroy it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_BACKGROUNDTUNER_H
#define KILN_RUNTIME_JIT_BACKGROUNDTUNER_H

#include "kiln/Tuned.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace kiln {

class BackgroundTuner {
public:
  struct Job {
    TunedQuestion question;
    std::string key;   ///< its text
    std::string words; ///< a call that asks it, as after `kiln tune`
  };
  /// `kiln`, and what it is told after `tune` and the call's words.
  struct Program {
    std::string file;
    std::vector<std::string> arguments;
  };
  struct Options {
    std::function<Result<Program>()> program; ///< asked at each sweep
    /// Calls `sweep`, unless an answer is there, while no other process sweeps for the key.  It may wait, and looks at
    /// `isEnding` meanwhile.
    std::function<void(const Job &job, const std::function<Status()> &sweep, const std::atomic<bool> &isEnding)> around;
    std::function<void(const Job &job, const Status &why)> failed; ///< where no thread can be had
  };

  explicit BackgroundTuner(Options options) : options(std::move(options)) {}
  ~BackgroundTuner();
  BackgroundTuner(const BackgroundTuner &) = delete;
  BackgroundTuner &operator=(const BackgroundTuner &) = delete;

  void add(Job job);

private:
  void serve();
  Status sweep(const Job &job) const;

  const Options options;
  std::atomic<bool> ending{false};
  std::mutex mutex; ///< everything below
  std::condition_variable changed;
  std::deque<Job> jobs;
  std::set<std::string> known; ///< keys and calls
  std::thread thread;          ///< begun with the first job; the sweep's process ends with it
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_BACKGROUNDTUNER_H
