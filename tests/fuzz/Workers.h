//===- Workers.h - Many small tasks in processes that may crash -------------===//
//
// Forked workers take the tasks by number.  A worker that dies or takes too long is replaced, and the task it was at is
// reported with how it ended and the last lines that the worker wrote.  Address space and stack are limited.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_FUZZ_WORKERS_H
#define KILN_TESTS_FUZZ_WORKERS_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kiln::test {

struct Lost {
  std::uint64_t task = 0;
  std::string why;  ///< "SIGSEGV (invalid memory access)", "no end within 60 s of processor time"
  std::string said; ///< the end of its standard error, a backtrace at the end of a crash
};

struct WorkerOptions {
  unsigned workers = 2;
  double deadlineSeconds = 60;      ///< of processor time, for one task
  double wallDeadlineSeconds = 600; ///< the machine may be loaded
  std::uint64_t addressSpaceBytes = std::uint64_t(4) << 30;
  std::uint64_t stackBytes = std::uint64_t(64) << 20;
  std::uint64_t tasksAWorker = 2000; ///< then it is replaced: what leaks is gone
  std::size_t maxLost = 50;          ///< after so many the rest is left out
};

inline constexpr unsigned char lostResult = 255;

struct WorkerRun {
  std::uint64_t done = 0;
  std::vector<std::uint64_t> counts;  ///< of each result
  std::vector<unsigned char> results; ///< of each task; `lostResult` if it was lost
  std::vector<Lost> lost;
  double slowestSeconds = 0; ///< of processor time
  std::uint64_t slowest = 0;
};

/// Runs tasks first..first+count-1; `task` gives a number below `results`.  The caller has no other thread.
WorkerRun runTasks(std::uint64_t first, std::uint64_t count, unsigned results,
                   const std::function<unsigned(std::uint64_t)> &task, const WorkerOptions &options = {});

} // namespace kiln::test

#endif // KILN_TESTS_FUZZ_WORKERS_H
