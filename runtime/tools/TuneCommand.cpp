// `kiln tune`: the fastest configuration of a kernel for a call, by sweeps that can be interrupted.
#include "runtime/cache/Hash.h"
#include "runtime/io/File.h"
#include "runtime/tools/CallList.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/Report.h"
#include "runtime/tools/TuneMeasurer.h"
#include "runtime/tools/TuneOptions.h"
#include "runtime/tools/TuneRemote.h"
#include "runtime/tools/TuneReport.h"
#include "runtime/tune/Export.h"
#include "runtime/tune/Merge.h"
#include "runtime/tune/Progress.h"
#include "runtime/tune/remote/MpiRanks.h"
#include "runtime/tune/Replay.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

namespace kiln::tools {
namespace {

/// A signal handler has nothing else.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// SIGINT and SIGTERM end the sweep after what is on the disk; a second one ends the program.
class Interruptible {
public:
  Interruptible() {
    struct sigaction action{};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (const int signal : {SIGINT, SIGTERM})
      ::sigaction(signal, &action, &before[signal == SIGTERM]);
  }
  ~Interruptible() {
    for (const int signal : {SIGINT, SIGTERM})
      ::sigaction(signal, &before[signal == SIGTERM], nullptr);
  }
  Interruptible(const Interruptible &) = delete;
  Interruptible &operator=(const Interruptible &) = delete;

private:
  struct sigaction before[2]{};
};

class Tune {
public:
  explicit Tune(const TuneOptions &options) : o(options) {}

  int operator()() {
    const Status s = execute();
    if (ranks)
      ranks->endWith(s.ok() ? 0 : s.exitCode());
    if (!s.ok())
      return fail("tune", s, o.request.run.json && !isQuiet, std::move(report));
    if (o.request.run.json && !isQuiet) {
      report["status"] = 0;
      printJson(report);
    }
    return 0;
  }

private:
  Status execute() {
    if (!o.exported.empty())
      return exportOne();
    if (!o.compared.empty())
      return Status::invalid("--compare goes with --export html",
                             "write kiln tune JOURNAL --export html --compare OTHER");
    if (!o.work.empty())
      return work();
    if (!o.words.empty() && o.words[0] == "merge")
      return merge();
    if (!o.replay.empty())
      return replay();
    if (!o.calls.empty() &&
        (!o.words.empty() || !o.shapes.empty() || !o.request.with.empty() || !o.request.dtype.empty()))
      return Status::invalid("--calls '" + o.calls + "' names kernels, types and sizes",
                             "leave out the kernel, --dtype, --with and --shapes");
    if (o.calls.empty() && o.words.size() != 1)
      return Status::invalid("one kernel is tuned at a time; " + std::to_string(o.words.size()) + " were named",
                             "write kiln tune KERNEL");
    KILN_TRY(checkNumbers(o));
    TuneRequest request = o.request;
    if (o.calls.empty())
      request.kernel = o.words[0];
    if (!o.devices.empty()) {
      if (!request.run.device.empty() || !request.run.target.empty())
        return Status::invalid("--devices " + o.devices + " goes with no --device or --target",
                               "leave one of them out");
      KILN_ASSIGN(devices, gpusNamed(o.devices));
      request.run.device = devices.front();
    }
    KILN_TRY(openCarrier());
    if (ranks && !ranks->isFirst()) {
      isQuiet = true; // rank 0 reports
      RunOptions run = o.request.run;
      if (run.device.empty() && run.target.empty())
        run.device = gpuOfRank(ranks->localRank());
      RemoteMeasurer measurer(std::move(run));
      return ranks->serve([&](const std::string &asked) { return measurer.answer(asked); });
    }
    return isList() ? tuneList(request) : tuneCall(request);
  }

  /// --queue or --mpi.
  Status openCarrier() {
    if (o.queue.empty() && !o.mpi)
      return {};
    if (!o.queue.empty() && o.mpi)
      return Status::invalid("--queue and --mpi: one of them carries a sweep", "leave one of them out");
    if (!o.devices.empty())
      return Status::invalid("--devices " + o.devices + ": with --queue and --mpi the workers measure",
                             "give --devices to kiln tune --work, or start a rank for each GPU");
    if (o.mpi) {
      KILN_ASSIGN(ranks, tune::MpiRanks::join(o.silence));
      carrier = ranks.get();
      return {};
    }
    KILN_ASSIGN(tune::QueueOptions how, queueOptions(o.queue, o.silence, &interrupted));
    KILN_ASSIGN(queue, tune::openRedisQueue(std::move(how)));
    carrier = queue.get();
    return {};
  }

  tune::Patience patience() const {
    tune::Patience out{.interrupted = &interrupted};
    if (o.seconds > 0)
      out.begin = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                         std::chrono::duration<double>(o.seconds));
    return out;
  }
  static void say(const std::string &line) { std::fprintf(stderr, "kiln tune: %s\n", line.c_str()); }

  /// Measures for the sweeps of a queue.
  Status work() {
    if (!o.words.empty() || !o.queue.empty() || o.mpi || !o.journal.empty() || !o.replay.empty() || o.dryRun)
      return Status::invalid("--work takes kernels and calls from the queue, and keeps no journal",
                             "leave out the kernel, --queue, --mpi, --journal, --replay and --dry-run");
    KILN_TRY(checkNumbers(o));
    std::vector<std::string> named;
    if (!o.devices.empty()) {
      KILN_ASSIGN(named, gpusNamed(o.devices));
    }
    KILN_ASSIGN(const tune::QueueOptions how, queueOptions(o.work, o.silence, &interrupted));
    const Interruptible signals;
    KILN_ASSIGN(const std::size_t answered, serveQueue(how, o.request.run, named, o.idle));
    report["measured"] = answered;
    if (!o.request.run.json)
      std::printf("%zu configurations were measured for %s\n", answered, how.address.text().c_str());
    return {};
  }

  bool isList() const { return !o.shapes.empty() || !o.calls.empty(); }

  /// The call of a line; nothing: its kernel has nothing to tune.
  Result<std::optional<TuneRequest>> requestOf(const ListedCall &call, TuneRequest request) const {
    using Out = std::optional<TuneRequest>;
    if (o.calls.empty()) {
      request.with.insert(request.with.end(), call.words.begin(), call.words.end());
      return Out(std::move(request));
    }
    KILN_ASSIGN(CallWords words, parseCallWords(call));
    if (words.kernels.size() != 1 || words.dtypes.size() > 1)
      return Status::invalid("a line is one call: one kernel of one type", "write a line for each");
    KILN_ASSIGN(const kernels::Family *family, kernels::findFamily(words.kernels[0]));
    const auto isOpen = [&](const kernels::OptionInfo &p) {
      return !p.candidates.empty() &&
             std::ranges::none_of(words.with, [&](const std::string &w) { return w.starts_with(p.name + "="); });
    };
    if (o.request.set.empty() && std::ranges::none_of(family->callable->options(), isOpen))
      return Out();
    request.kernel = words.kernels[0], request.with = std::move(words.with);
    if (!words.dtypes.empty())
      request.dtype = words.dtypes[0];
    return Out(std::move(request));
  }

  Status tuneLine(const ListedCall &call, const TuneRequest &request) {
    KILN_ASSIGN(const std::optional<TuneRequest> one, requestOf(call, request));
    if (one)
      return tuneCall(*one);
    report["skipped"] = true;
    if (!o.request.run.json)
      std::printf("%s: %s leaves no tuned parameter open\n", call.where.c_str(), call.words[0].c_str());
    return {};
  }

  /// One sweep after the other, each with a journal in the folder; one that finds nothing does not end the rest.
  Status tuneList(const TuneRequest &request) {
    const std::string &file = o.calls.empty() ? o.shapes : o.calls;
    KILN_ASSIGN(const std::vector<ListedCall> calls, readCallList(file));
    Json sweeps = Json::array();
    Status problem;
    for (const ListedCall &call : calls) {
      report = Json::object();
      Status s = tuneLine(call, request).withContext(call.where);
      if (!s.ok()) {
        report["error"] = {{"message", s.message()}, {"remedy", s.remedy()}};
        if (!o.request.run.json)
          std::fprintf(stderr, "kiln tune: %s\n", s.toString().c_str());
      }
      report["line"] = call.line;
      sweeps.push_back(std::move(report));
      if (problem.ok())
        problem = std::move(s);
      if (interrupted)
        break;
    }
    report = {{"sweeps", std::move(sweeps)}};
    if (report["sweeps"].empty())
      return Status::invalid("'" + file + "' names no call",
                             o.calls.empty() ? "write the words of --with of a call on each line"
                                             : "write a call on each line, KERNEL [--dtype DTYPE] [--with NAME=V ..]");
    return problem;
  }

  Status tuneCall(const TuneRequest &request) {
    KILN_ASSIGN(const std::unique_ptr<TuneCall> call, TuneCall::create(request));
    const tune::Space &space = call->space();
    KILN_ASSIGN(const tune::JournalHeader header, call->header());
    report.update({{"kernel", header.kernel},
                   {"dtype", header.dtype},
                   {"target", header.target},
                   {"device", header.device},
                   {"call", header.call},
                   {"objective", header.objective}});
    if (!o.dryRun && call->isPredicted())
      KILN_TRY(Status(call->modelStatus()));
    if (!o.dryRun && call->device().info().driver.empty())
      return Status(StatusCode::Unsupported, call->device().info().name + " compiles and measures nothing",
                    "name a GPU, cuda:N, or --target for times of the performance model");
    KILN_ASSIGN(tune::Pruned pruned, tune::prune(space, [&](const tune::Configuration &c) { return call->judge(c); }));
    if (pruned.kept.empty())
      return tune::nothingLeft(pruned);
    call->findDefault(pruned.kept);
    tune::keepBest(pruned, space, o.keep);
    std::unique_ptr<tune::Searcher> searcher;
    std::unique_ptr<tune::Journal> journal;
    if (!o.dryRun) {
      KILN_ASSIGN(searcher, tune::makeSearcher(o.search, space, pruned.kept, o.seed));
      KILN_TRY(openJournal(header, journal));
    }
    report["space"] = spaceJson(space, pruned);
    if (!o.request.run.json) {
      std::printf("%s %s on %s (%s): %s\n", header.kernel.c_str(), header.dtype.c_str(), header.device.c_str(),
                  header.objective.c_str(), header.call.c_str());
      printSpace(space, pruned, o.dryRun);
      std::fflush(stdout);
    }
    if (o.dryRun)
      return {};
    if (!devices.empty())
      KILN_TRY(checkDevices(devices, call->device().info()));
    TuneWorker worker;
    KILN_TRY(worker.setUp(*call, request, devices, o.checkWith, o.timeout));
    tune::SweepOptions how{o.budget, o.seconds, o.jobs};
    tune::Measuring measuring;
    tune::Measure again; // of the best
    std::optional<tune::Workers> workers, confirming;
    if (carrier) {
      carrier->beginCall();
      const auto begin = [&](std::optional<tune::Workers> &some) {
        some.emplace(*carrier, remoteCall(request, header, o.checkWith, o.timeout), space, patience(), say);
      };
      begin(workers);
      constexpr unsigned usual = 8; // where it is not known how many workers there are
      if (!how.jobs)
        how.jobs = carrier->workers().value_or(usual);
      measuring.measure = [&](const tune::Configuration &c, unsigned) { return workers->measure(c); };
      // The sweep's --time is no limit of what confirms it.
      again = [&, begin](const tune::Configuration &c, unsigned) {
        if (!confirming)
          begin(confirming);
        return confirming->measureOnOne(c);
      };
    } else {
      // On a GPU one configuration is measured at a time, and the core that waits for it is its own.
      how.measurers = call->isPredicted() ? 0 : static_cast<unsigned>(worker.devices.size());
      if (!how.jobs)
        how.jobs = call->isPredicted() ? 1 : jobsFor(how.measurers);
      measuring.measure =
          again = [&](const tune::Configuration &c, unsigned measurer) { return worker.measure(space, c, measurer); };
      measuring.prepare = [&](const tune::Configuration &c) { return worker.prepare(space, c); };
      measuring.getReady = [&](unsigned measurer) { worker.getReady(measurer); };
    }
    KILN_ASSIGN(const tune::SweepResult result, sweep(space, pruned.kept, *searcher, journal.get(), measuring, how));
    tune::Entry winner = *result.state.best;
    const bool isOver = o.seconds > 0 && result.state.seconds >= o.seconds; // nothing is begun any more
    if (!isOver)
      KILN_TRY(confirmBest(result.entries, again, o.confirm.value_or(call->isPredicted() ? 0 : 3), winner));
    return keep(*call, winner, usualOf(result), result.entries.size());
  }

  /// The entry of what the call takes where nothing is tuned; null: it was not measured.
  static const tune::Entry *usualOf(const tune::SweepResult &result) {
    for (const tune::Entry &e : result.entries)
      if (e.isDefault)
        return &e;
    return nullptr;
  }

  /// A sweep without the call's default may have found nothing better than that, so its winner is kept only if that is
  /// asked for.
  Status keep(TuneCall &call, const tune::Entry &winner, const tune::Entry *usual, std::size_t configurations) {
    if (o.noSave || (!o.save && !usual))
      return {};
    Result<std::vector<TuneCall::Kept>> kept = call.keep(winner, usual, configurations);
    if (!kept) { // what was measured is not lost
      if (o.save)
        return kept.takeStatus().withContext("the winner is not kept");
      report["notKept"] = kept.status().toString();
      if (!o.request.run.json)
        std::printf("not kept for later calls: %s\n", kept.status().toString().c_str());
      return {};
    }
    report["kept"] = keptJson(*kept);
    if (!o.request.run.json)
      printKept(*kept);
    return {};
  }

  /// Compiles that run ahead of so many devices.
  static unsigned jobsFor(unsigned devices) {
    const unsigned most = 8 * devices, cores = std::thread::hardware_concurrency();
    return std::clamp(cores > devices ? cores - devices : 1, 1u, most);
  }

  /// Those of --devices are of the first one's kind, or what they measure does not compare.
  Status checkDevices(const std::vector<std::string> &names, const DeviceInfo &first) const {
    for (const std::string &name : names) {
      if (name == first.name)
        continue;
      const Result<std::unique_ptr<Device>> device = openDevice(name);
      if (!device)
        return Status(device.status()).withContext("--devices " + o.devices);
      if (const DeviceInfo &other = (*device)->info(); other.description != first.description)
        return Status::invalid("--devices " + o.devices + ": " + name + " is " + other.description + ", and " +
                                   first.name + " is " + first.description,
                               "tune each kind by itself");
    }
    return {};
  }

  Status openJournal(const tune::JournalHeader &header, std::unique_ptr<tune::Journal> &journal) const {
    if (o.journal.empty())
      return {};
    std::string file = o.journal;
    if (isList()) {
      std::error_code error;
      std::filesystem::create_directories(o.journal, error);
      if (error)
        return Status(StatusCode::IoError, "the folder '" + o.journal + "' cannot be made: " + error.message());
      // Where a call stands in the list does not matter.
      const std::string what =
          header.kernel + "\n" + header.dtype + "\n" + header.target + "\n" + header.device + "\n" + header.call;
      file += "/" + header.kernel + "-" + header.dtype + "-" + cache::hexText(cache::hash128(what)).substr(0, 16) +
              ".jsonl";
    }
    KILN_ASSIGN(journal, tune::Journal::open(file, header));
    if (journal->wasTorn())
      std::fprintf(stderr, "kiln tune: the last line of '%s' was torn, and is cut\n", file.c_str());
    return {};
  }

  Result<tune::SweepResult> sweep(const tune::Space &space, const std::vector<tune::Candidate> &kept,
                                  tune::Searcher &searcher, tune::Journal *journal, const tune::Measuring &measuring,
                                  tune::SweepOptions how) {
    report["search"] = o.search;
    report["seed"] = o.seed;
    how.interrupted = &interrupted;
    std::optional<tune::SweepResult> result;
    {
      const Interruptible signals;
      tune::Progress progress(stderr);
      const bool shows = o.replay.empty(); // a replay has no time to show
      KILN_ASSIGN(result,
                  tune::runSweep(space, kept, searcher, journal, measuring, how, [&](const tune::SweepState &state) {
                    if (shows)
                      progress.show(state);
                  }));
    }
    const tune::Entry *const usual = usualOf(*result);
    report["sweep"] = sweepJson(*result, usual);
    if (!o.request.run.json)
      printSweep(*result, usual);
    if (result->end == tune::SweepEnd::Interrupted)
      return Status(StatusCode::NotReady, "interrupted after " + std::to_string(result->state.done) + " configurations",
                    journal ? "the same command goes on from '" + o.journal + "'"
                            : "with --journal FILE a sweep can be continued");
    if (!result->state.best)
      return noGood(*result);
    return std::move(*result);
  }

  /// Of what a sweep found.  `entries` are of the sweep, or of the journal that it continued.
  Status confirmBest(const std::vector<tune::Entry> &entries, const tune::Measure &measure, std::size_t best,
                     tune::Entry &winner) {
    const Interruptible signals;
    KILN_ASSIGN(const std::vector<tune::Confirmed> confirmed,
                tune::confirm(entries, measure, {.best = best, .interrupted = &interrupted}));
    if (confirmed.empty() && !interrupted)
      return {};
    report["sweep"]["confirmed"] = confirmedJson(confirmed);
    if (!o.request.run.json)
      printConfirmed(confirmed);
    if (!interrupted && !confirmed.empty() && confirmed[0].failure)
      return Status(StatusCode::Findings,
                    "none of the best was good when it was measured again: " + confirmed[0].entry.key() + ": " +
                        confirmed[0].failure->message,
                    "look at what the GPU does besides; the same command measures them again");
    if (!confirmed.empty() && !confirmed[0].failure) {
      const tune::Confirmed &one = o.request.isShared ? tune::clearlyBest(confirmed) : confirmed[0];
      winner = one.entry, winner.milliseconds = one.median;
    }
    return interrupted ? Status(StatusCode::NotReady, "interrupted while the best were measured again",
                                "the same command measures them again")
                       : Status();
  }

  Status replay() {
    if (!o.words.empty() || !o.journal.empty() || o.dryRun || o.save || !o.devices.empty())
      return Status::invalid("--replay takes its kernel and its space from the journal, and measures nothing",
                             "leave out the kernel, --journal, --dry-run, --save and --devices");
    KILN_ASSIGN(const tune::JournalContents contents, tune::readJournal(o.replay));
    KILN_ASSIGN(const tune::Replay stored, tune::Replay::create(contents));
    report.update({{"kernel", contents.header.kernel}, {"call", contents.header.call}});
    KILN_ASSIGN(const std::unique_ptr<tune::Searcher> searcher,
                tune::makeSearcher(o.search, stored.space(), stored.candidates(), o.seed));
    if (Result<tune::SweepResult> r =
            sweep(stored.space(), stored.candidates(), *searcher, nullptr,
                  {[&](const tune::Configuration &c, unsigned) { return stored.measure(c); }}, {o.budget, o.seconds});
        !r)
      return r.takeStatus();
    report["trueBest"] = tune::toJson(stored.best());
    if (!o.request.run.json)
      std::printf("the journal's best: %.4f ms  %s\n", stored.best().milliseconds, stored.best().key().c_str());
    return {};
  }

  Status merge() {
    if (o.words.size() < 2)
      return Status::invalid("merge needs the name of the new journal", "write kiln tune merge OUT A B");
    KILN_ASSIGN(const tune::Merged merged,
                tune::mergeJournals(o.words[1], std::vector<std::string>(o.words.begin() + 2, o.words.end())));
    report.update({{"journal", o.words[1]}, {"entries", merged.entries}, {"duplicates", merged.duplicates}});
    if (!o.request.run.json)
      std::printf("%s: %zu configurations, %zu of them in several journals\n", o.words[1].c_str(), merged.entries,
                  merged.duplicates);
    return {};
  }

  Status exportOne() {
    if (o.words.size() != 1)
      return Status::invalid("--export takes one journal; " + std::to_string(o.words.size()) + " were named",
                             "write kiln tune JOURNAL --export t4 -o FILE");
    KILN_ASSIGN(const tune::JournalContents contents, tune::readJournal(o.words[0]));
    KILN_ASSIGN(const std::string text, textOf(contents));
    if (o.output.empty()) {
      isQuiet = true; // standard output is the export
      std::fputs(text.c_str(), stdout);
      return {};
    }
    KILN_ASSIGN(OutputFile file, OutputFile::create(o.output));
    KILN_TRY(file.write(text));
    KILN_TRY(file.commit());
    report.update({{"file", o.output}, {"entries", contents.entries.size()}});
    return {};
  }

  Result<std::string> textOf(const tune::JournalContents &contents) {
    if (o.compared.empty())
      return tune::exportJournal(contents, o.exported);
    KILN_ASSIGN(const tune::JournalContents other, tune::readJournal(o.compared));
    // Times of one call compare, wherever they were measured.
    tune::JournalHeader wanted = other.header;
    wanted.kernel = contents.header.kernel, wanted.dtype = contents.header.dtype, wanted.call = contents.header.call;
    if (!wanted.timing.empty() && !contents.header.timing.empty()) // times of the model stand next to either
      wanted.timing = contents.header.timing;
    KILN_TRY(tune::sameSweep(o.compared, other.header, wanted));
    return tune::exportJournal(contents, o.exported, &other);
  }

  const TuneOptions &o;
  bool isQuiet = false;
  std::unique_ptr<tune::MpiRanks> ranks;
  std::unique_ptr<tune::Carrier> queue;
  tune::Carrier *carrier = nullptr; ///< one of the two; null: this host measures
  std::vector<std::string> devices; ///< of --devices
  Json report = Json::object();
};

} // namespace

void addTuneCommand(CLI::App &app, int &exitStatus) {
  auto o = std::make_shared<TuneOptions>();
  CLI::App *c = app.add_subcommand("tune", "Find the fastest configuration of a library kernel for a call");
  declare(*c, *o);
  c->callback([o, &exitStatus] {
    if (o->request.run.device == "auto")
      o->request.run.device.clear();
    ::unsetenv("KILN_RECORD_CALLS"); // configurations that are tried are no calls of a program's
    if (o->endsWith) {
      ::setpgid(0, 0); // with all that it starts
      struct sigaction action{};
      action.sa_handler = [](int) { ::kill(0, SIGKILL); };
      ::sigaction(SIGHUP, &action, nullptr);
      ::prctl(PR_SET_PDEATHSIG, SIGHUP);
      if (::getppid() != o->endsWith) // that one has ended already
        return;
    }
    if (o->answer.empty()) {
      exitStatus = Tune(*o)();
      return;
    }
    o->request.kernel = o->words.empty() ? "" : o->words[0];
    exitStatus = serveMeasurements(o->request, o->answer == "predicted");
  });
}

} // namespace kiln::tools
