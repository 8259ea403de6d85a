#include "runtime/jit/BackgroundTuner.h"

#include "compiler/codegen/Process.h"
#include "support/Text.h"

#include <csignal>
#include <system_error>
#include <unistd.h>

namespace kiln {

BackgroundTuner::~BackgroundTuner() {
  {
    const std::lock_guard lock(mutex);
    ending = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void BackgroundTuner::add(Job job) {
  std::unique_lock lock(mutex);
  // The launches of one call ask a question each, and its sweep answers them all.
  if (ending || !known.insert(job.key).second || !known.insert(job.words).second)
    return;
  jobs.push_back(std::move(job));
  if (!thread.joinable()) {
    try {
      thread = std::thread([this] { serve(); });
    } catch (const std::system_error &e) {
      const Job failed = std::move(jobs.front());
      jobs.clear();
      lock.unlock(); // what is told may call again
      options.failed(failed, Status(StatusCode::OutOfMemory, e.what(), limitsRemedy()));
      return;
    }
  }
  changed.notify_one();
}

void BackgroundTuner::serve() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return ending || !jobs.empty(); });
      if (ending)
        return;
      job = std::move(jobs.front());
      jobs.pop_front();
    }
    try {
      options.around(job, [&] { return sweep(job); }, ending);
    } catch (...) { // a log of the caller's may throw, and so may memory: the next call's sweep is another matter
    }
  }
}

Status BackgroundTuner::sweep(const Job &job) const {
  constexpr double longest = 3600; // seconds
  constexpr int niceness = 19;
  KILN_ASSIGN(Program program, options.program());
  ProcessSpec spec;
  spec.program = std::move(program.file);
  spec.arguments = {"tune"};
  for (const std::string_view word : split(job.words, ' '))
    spec.arguments.emplace_back(word);
  for (std::string &argument : program.arguments)
    spec.arguments.push_back(std::move(argument));
  spec.arguments.insert(spec.arguments.end(), {"--shared-gpu", "--ends-with=" + std::to_string(::getpid())});
  spec.deadlineSeconds = longest;
  spec.niceness = niceness;
  spec.cancelled = &ending;
  spec.cancelSignal = SIGHUP; // which ends its own processes with it (--ends-with)
  KILN_ASSIGN(ProcessEnd end, runProcess(spec));
  // Nothing is known of its end where the program waits for all of its children; the cache tells.
  const bool isUnknown = end.exitStatus < 0 && !end.signal && !end.timedOut;
  if (end.exitStatus == 0 || isUnknown || ending)
    return {};
  while (end.output.ends_with('\n'))
    end.output.pop_back();
  const std::string last = end.output.substr(end.output.rfind('\n') + 1);
  return {StatusCode::Internal, end.timedOut ? "it took more than an hour"
                                : end.signal ? "it ended by " + signalName(end.signal)
                                             : last};
}

} // namespace kiln
