// Sweeps in the background, and the list of a program's calls: what Jit.h says of them.
#include "runtime/jit/RecordedCalls.h"
#include "runtime/jit/Service.h"

#include <filesystem>
#include <thread>

namespace kiln {

namespace {

/// The flags of settings that a process of this environment would not have by itself.
Result<std::vector<std::string>> flagsOf(const Knobs &knobs) {
  const Result<Knobs> inherited = Knobs::fromEnvironment();
  const Knobs usual = inherited ? *inherited : Knobs();
  std::vector<std::string> out;
  for (const KnobInfo &knob : allKnobs()) {
    KILN_ASSIGN(const std::string wanted, knobs.get(knob.flag));
    KILN_ASSIGN(const std::string there, usual.get(knob.flag));
    if (wanted != there) // as two words: an empty value after = would be none
      out.insert(out.end(), {std::string(knob.flag), wanted});
  }
  return out;
}

} // namespace

std::unique_ptr<BackgroundTuner> JitService::makeTuner() {
  return std::make_unique<BackgroundTuner>(BackgroundTuner::Options{
      .program = [this] { return tuningProgram(); },
      .around = [this](const auto &job, const auto &sweep, const auto &isEnding) { tuneNow(job, sweep, isEnding); },
      .failed =
          [this](const BackgroundTuner::Job &job, const Status &why) {
            log.write(LogTopic::Cache, LogLevel::Error, "no sweep of " + job.words + ": " + why.toString());
          }});
}

Result<BackgroundTuner::Program> JitService::tuningProgram() {
  KILN_ASSIGN(const std::shared_ptr<CompilerLibrary> library, compilerLibrary());
  const std::filesystem::path folder = std::filesystem::path(library->path()).parent_path();
  BackgroundTuner::Program out;
  for (const std::filesystem::path &file : {folder / "kiln", folder.parent_path() / "bin" / "kiln"}) {
    std::error_code error;
    if (out.file.empty() && std::filesystem::is_regular_file(file, error))
      out.file = file.string();
  }
  if (out.file.empty())
    return Status(StatusCode::NotFound,
                  "there is no program kiln in '" + folder.string() +
                      "', where the compiler is, or in the bin next to it",
                  "install it there, or set KILN_TUNE_BACKGROUND=0");
  Knobs knobs = options.knobs;
  const auto budget = static_cast<std::uint64_t>(knobs.tuneBackground);
  knobs.tuneBackground = {}, knobs.recordCalls.clear();
  knobs.compiler = library->path();
  KILN_ASSIGN(out.arguments, flagsOf(knobs));
  out.arguments.insert(out.arguments.end(), {"--device=" + device.info().name, "--code-target=" + codeTarget,
                                             "--budget=" + std::to_string(budget)});
  return out;
}

void JitService::tuneInBackground(const TunedQuestion &question, std::string words) {
  if (!tuner || forkGuard.forked())
    return;
  if (const Result<cache::KeyText> key = tunedKey(question))
    tuner->add({question, key->serialise(), std::move(words)});
}

void JitService::tuneNow(const BackgroundTuner::Job &job, const std::function<Status()> &sweep,
                         const std::atomic<bool> &isEnding) {
  const auto say = [&](LogLevel level, const std::string &what) { log.write(LogTopic::Cache, level, what); };
  const Result<cache::KeyText> key = tunedKey(job.question);
  if (!key)
    return;
  std::optional<cache::CompileLock> lock;
  while (!lock && !isEnding) {
    constexpr std::chrono::milliseconds patience(20), pause(50);
    constexpr int pauses = 20; // another process may sweep for minutes
    const auto begin = std::chrono::steady_clock::now();
    if (Result<cache::CompileLock> held = disk->lockForCompile(*key, patience))
      lock = std::move(*held);
    else if (std::chrono::steady_clock::now() - begin < patience) // nobody has it, and it cannot be had
      break;
    for (int i = 0; i < pauses && !lock && !isEnding; ++i)
      std::this_thread::sleep_for(pause);
  }
  if (isEnding)
    return;
  if (!answerTo(job.question)) { // nor did another process answer it meanwhile
    say(LogLevel::Info, "sweep in the background: " + job.words);
    if (const Status s = sweep(); !s.ok())
      return say(LogLevel::Error, "the sweep of " + job.words + " in the background failed: " + s.toString());
    if (isEnding)
      return;
    if (!answerTo(job.question))
      say(LogLevel::Info, "the sweep of " + job.words + " kept nothing for " + job.question.operation + " (" +
                              job.question.sizes +
                              "): the call's tensors lie in memory otherwise, or its own choice could not be measured");
  }
  generation.fetch_add(1, std::memory_order_acq_rel);
}

void JitService::recordCall(const std::string &words) {
  if (forkGuard.forked())
    return;
  if (const Status s = kiln::recordCall(options.knobs.recordCalls, words);
      !s.ok() && isFirst("record calls in " + options.knobs.recordCalls))
    log.write(LogTopic::Cache, LogLevel::Error, "calls are not recorded: " + s.toString());
}

std::uint64_t Jit::tunedGeneration() const {
  return service->tunedGeneration();
}
void Jit::tuneInBackground(const TunedQuestion &question, std::string words) {
  service->tuneInBackground(question, std::move(words));
}
bool Jit::recordsCalls() const {
  return !service->options.knobs.recordCalls.empty();
}
void Jit::recordCall(const std::string &words) {
  service->recordCall(words);
}

} // namespace kiln
