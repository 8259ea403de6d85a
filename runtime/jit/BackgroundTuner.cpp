#include "runtime/jit/BackgroundTuner.h"

#include "compiler/codegen/Process.h"
#include "support/Text.h"

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
  const std::lock_guard lock(mutex);
  // Both are noted: launches of one call ask one question each, and its sweep answers them all.
  const bool isNew = known.insert(job.key).second, isNewCall = known.insert(job.words).second;
  if (ending || !isNew || !isNewCall)
    return;
  jobs.push_back(std::move(job));
  if (!thread.joinable()) {
    try {
      thread = std::thread([this] { serve(); });
    } catch (const std::system_error &e) {
      options.failed(jobs.front(), Status(StatusCode::OutOfMemory, e.what(), limitsRemedy()));
      jobs.clear();
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
    options.around(job, [&] { return sweep(job); }, ending);
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
  spec.arguments.push_back("--ends-with=" + std::to_string(::getpid()));
  spec.deadlineSeconds = longest;
  spec.niceness = niceness;
  spec.cancelled = &ending;
  KILN_ASSIGN(ProcessEnd end, runProcess(spec));
  if (end.exitStatus == 0 || ending)
    return {};
  while (end.output.ends_with('\n'))
    end.output.pop_back();
  const std::string last = end.output.substr(end.output.rfind('\n') + 1);
  return {StatusCode::Internal, end.timedOut ? "it took more than an hour"
                                : end.signal ? "it ended by " + signalName(end.signal)
                                             : last};
}

} // namespace kiln
