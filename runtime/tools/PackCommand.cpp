// `kiln pack`: calls compiled for GPUs that are elsewhere, as one file.
#include "runtime/cache/KernelCache.h"
#include "runtime/cache/Pack.h"
#include "runtime/io/File.h"
#include "runtime/tools/CallList.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/OwnProgram.h"
#include "runtime/tools/Report.h"
#include "runtime/tools/TemporaryFolder.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <system_error>
#include <thread>

namespace kiln::tools {
namespace {

struct Options {
  std::vector<std::string> kernels, dtypes, with, targets;
  std::string calls, output;
  unsigned jobs = 0;
  double timeout = 600;
  bool json = false;
};

/// A call for one target.
struct Job {
  std::string where; ///< "calls.txt, line 3"; empty: the command line
  std::string target;
  std::vector<std::string> words; ///< after `kiln bench`
  std::string text() const { return join(words, " ") + " for " + target; }
};

class Pack {
public:
  explicit Pack(const Options &options) : o(options) {}

  int operator()() {
    if (Status s = execute(); !s.ok())
      return fail("pack", s, o.json, std::move(report));
    report["status"] = 0;
    if (o.json)
      printJson(report);
    return 0;
  }

private:
  Status execute() {
    if (!o.output.ends_with(cache::packSuffix))
      return Status::invalid("-o " + o.output + ": the name of a pack ends in " + std::string(cache::packSuffix),
                             "write -o kernels.pack");
    if (o.jobs > 256 || !(o.timeout > 0))
      return Status::invalid("--jobs is 1 to 256, --timeout more than 0 seconds");
    KILN_ASSIGN(const std::vector<Job> jobs, allJobs());
    KILN_ASSIGN(const TemporaryFolder folder, TemporaryFolder::create());
    KILN_TRY(compileAll(jobs, folder.name()));
    return write(folder.name());
  }

  Result<std::vector<Job>> allJobs() const {
    std::vector<Job> out;
    const auto add = [&](std::string where, const std::vector<std::string> &words) {
      for (const std::string &target : o.targets)
        out.push_back({where, target, words});
    };
    if (!o.kernels.empty()) {
      std::vector<std::string> words = o.kernels;
      for (const auto &[option, values] : {std::pair("--dtype", &o.dtypes), std::pair("--with", &o.with)})
        for (const std::string &value : *values)
          words.insert(words.end(), {option, value});
      add({}, words);
    }
    if (!o.calls.empty()) {
      KILN_ASSIGN(const std::vector<ListedCall> calls, readCallList(o.calls));
      for (const ListedCall &call : calls)
        add(call.where, call.words);
    }
    if (out.empty())
      return Status::invalid("there is nothing to compile", "name kernels, or a file of calls with --calls");
    return out;
  }

  /// Each in a process of its own, several at a time; the first failure ends it.
  Status compileAll(const std::vector<Job> &jobs, const std::string &cache) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex; // of what follows, and of what is printed
    std::size_t done = 0;
    Status problem;
    const auto work = [&] {
      for (std::size_t i; (i = next++) < jobs.size();) {
        const auto begin = std::chrono::steady_clock::now();
        Status s = compile(jobs[i], cache);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        const std::lock_guard lock(mutex);
        if (!s.ok() && problem.ok())
          problem = jobs[i].where.empty() ? std::move(s) : std::move(s).withContext(jobs[i].where);
        if (!problem.ok())
          return;
        std::fprintf(stderr, "%zu/%zu  %.1f s  %s\n", ++done, jobs.size(), took.count(), jobs[i].text().c_str());
      }
    };
    {
      const std::size_t most = o.jobs ? o.jobs : std::max(1u, std::thread::hardware_concurrency());
      std::vector<std::jthread> others;
      try {
        while (others.size() + 1 < std::min(most, jobs.size()))
          others.emplace_back(work);
      } catch (const std::system_error &) { // fewer at a time
      }
      work();
    }
    return problem;
  }

  Status compile(const Job &job, const std::string &cache) const {
    std::vector<std::string> words = {"bench"};
    words.insert(words.end(), job.words.begin(), job.words.end());
    // No other cache: what it has would not be in the folder.
    words.insert(words.end(), {"--device", "offline:" + job.target, "--resources", "--json", "--cache-dir", cache,
                               "--cache-shared", "", "--cache-server", ""});
    KILN_ASSIGN(const OwnRun run, runOwnProgram(std::move(words), o.timeout));
    if (run.end.exitStatus == 0)
      return {};
    if (run.end.timedOut)
      return Status(StatusCode::CompileError, job.text() + ": it took longer than " + format("%g s", o.timeout),
                    "give it more with --timeout");
    if (run.end.exitStatus < 0)
      return Status(StatusCode::CompileError, job.text() + ": its process ended by " + signalName(run.end.signal));
    return run.failure(run.end.exitStatus == 2 ? StatusCode::InvalidArgument : StatusCode::CompileError);
  }

  Status write(const std::string &folder) {
    cache::CacheOptions how;
    how.directory = folder;
    KILN_ASSIGN(const std::unique_ptr<cache::KernelCache> kernels, cache::KernelCache::open(std::move(how)));
    KILN_ASSIGN(const std::vector<cache::EntryInfo> all, kernels->list());
    std::vector<std::pair<cache::KeyText, cache::Entry>> entries;
    std::size_t code = 0;
    for (const cache::EntryInfo &info : all) {
      KILN_ASSIGN(std::optional<cache::Entry> entry, kernels->lookup(info.key));
      if (!entry)
        return Status(StatusCode::IoError, "what was compiled is not in the folder any more: " + info.fileName);
      code += entry->kind == cache::EntryKind::Cubin;
      entries.emplace_back(info.key, std::move(*entry));
    }
    const std::string bytes = cache::encodePack(entries);
    KILN_ASSIGN(OutputFile file, OutputFile::create(o.output));
    KILN_TRY(file.write(std::as_bytes(std::span(bytes.data(), bytes.size()))));
    KILN_TRY(file.commit());
    report.update({{"file", o.output}, {"entries", entries.size()}, {"assembled", code}, {"bytes", bytes.size()}});
    if (!o.json)
      std::printf("%s: %zu kernels, %zu of them assembled, %.1f KiB\n", o.output.c_str(), entries.size(), code,
                  static_cast<double>(bytes.size()) / 1024);
    return {};
  }

  const Options &o;
  Json report = Json::object();
};

} // namespace

void addPackCommand(CLI::App &app, int &exitStatus) {
  auto o = std::make_shared<Options>();
  CLI::App *c = app.add_subcommand("pack", "Compile calls for GPUs that are elsewhere, into one file");
  c->add_option("kernels", o->kernels, "kernels of the library; their own calls, or those of --with")
      ->type_name("KERNEL");
  c->add_option("--dtype", o->dtypes, "types, as in kiln bench")->type_name("DTYPE");
  c->add_option("--with", o->with, "NAME=SHAPE or NAME=V of the one kernel's call, as in kiln bench")
      ->type_name("NAME=V")
      ->allow_extra_args(false);
  c->add_option("--calls", o->calls, "a text file with a call a line: the words after kiln bench; # begins a comment")
      ->type_name("FILE");
  c->add_option("--target", o->targets, "GPUs to compile for: sm_90a, or sm_90a:N for one with N multiprocessors")
      ->type_name("TARGET")
      ->required()
      ->allow_extra_args(false);
  c->add_option("-o,--output", o->output, "the pack, NAME.pack")->type_name("FILE")->required();
  c->add_option("--jobs", o->jobs, "compiles at a time (default: the cores)")->type_name("N");
  c->add_option("--timeout", o->timeout, "seconds that a call may take (default: 600)")->type_name("S");
  c->add_flag("--json", o->json, "one JSON object on standard output");
  c->footer(
      "KILN_CACHE_SHARED=NAME.pack has it used: calls whose kernels are there compile nothing, whatever assembler the "
      "machine has.\n"
      "Examples:\n"
      "  kiln pack add --dtype f32 --target sm_80 --target sm_90a -o kernels.pack\n"
      "Exit status: 0 good, 2 input, 3 compile, 4 device.");
  c->callback([o, &exitStatus] { exitStatus = Pack(*o)(); });
}

} // namespace kiln::tools
