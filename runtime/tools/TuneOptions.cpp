#include "runtime/tools/TuneOptions.h"

#include "runtime/tune/Search.h"

#include <CLI/CLI.hpp>

namespace kiln::tools {

void declare(CLI::App &c, TuneOptions &o) {
  c.add_option("words", o.words, "a kernel of the library; or merge OUT A B..; or a journal, with --export")
      ->type_name("KERNEL");
  c.add_option("--dtype", o.request.dtype, "type (default: the kernel's first)")->type_name("DTYPE");
  c.add_option("--with", o.request.with, "NAME=SHAPE, NAME=FILE.npy or NAME=V of the call, as in kiln bench")
      ->type_name("NAME=V")
      ->allow_extra_args(false);
  c.add_option("--shapes", o.shapes,
               "a text file with a call a line, each the words of --with with blanks between them; # begins a comment. "
               "The calls are tuned one after the other; --journal names a folder then")
      ->type_name("FILE");
  c.add_option(
       "--calls", o.calls,
       "a text file with a call a line, the words after kiln bench, such as KILN_RECORD_CALLS writes; those of kernels "
       "without tuned parameters are left out. --journal names a folder then")
      ->type_name("FILE");
  c.add_option("--set", o.request.set,
               "NAME=V1,V2: the values that are tried of a parameter, in place of its own; also of an option that is "
               "not tuned")
      ->type_name("NAME=V1,V2")
      ->allow_extra_args(false);
  c.add_option("--check-with", o.checkWith,
               "on the emulator: NAME=SHAPE or NAME=V of the call that is run whole and checked; default: as --with, "
               "without --with the kernel's own small calls")
      ->type_name("NAME=V")
      ->allow_extra_args(false);
  c.add_option("--device", o.request.run.device, "auto (default), cuda:N or emulator:TARGET")->type_name("NAME");
  c.add_option("--target", o.request.run.target, "the same as --device emulator:TARGET")->type_name("TARGET");
  addCodeTarget(c, o.request.run);
  c.add_option("--devices", o.devices,
               "GPUs of this host that measure, each one configuration at a time: 0-3 or 0,2; all of one kind. What is "
               "the best is confirmed on the first one")
      ->type_name("N-M");
  c.add_flag(
      "--flush-l2", o.request.flushL2,
      "on a GPU: fill the L2 with other data before each launch that is timed (default; the emulator has no L2)");
  c.add_flag("--no-flush-l2", o.request.noFlushL2, "let launches that are timed follow each other")
      ->excludes("--flush-l2");
  c.add_flag("--dry-run", o.dryRun, "show the space and what is rejected and why; compile nothing");
  c.add_option("--keep", o.keep, "configurations that are compiled, the best in the model's order (default: 64)")
      ->type_name("K");
  c.add_option("--search", o.search, tune::searchNames() + " (default: model)")->type_name("NAME");
  c.add_option("--seed", o.seed, "of the search")->type_name("N");
  c.add_option("--budget", o.budget, "configurations to measure; 0 (default): all that are kept")->type_name("N");
  c.add_option("--time", o.seconds, "seconds after which no measurement begins; 0 (default): no limit")->type_name("S");
  c.add_option("--confirm", o.confirm,
               "the best K and the call's default are measured again, in turn, six rounds; 0: none (default: 3, on the "
               "emulator 0)")
      ->type_name("K");
  c.add_flag(
      "--save", o.save,
      "keep the winner in the kernel cache, for later calls that leave their tuned options open (default: if the "
      "call's default was measured too)");
  c.add_flag("--no-save", o.noSave, "keep no winner")->excludes("--save");
  c.add_option("--timeout", o.timeout, "seconds that each step of a configuration may take (default: 300)")
      ->type_name("S");
  c.add_option("--jobs", o.jobs,
               "configurations that are compiled at a time, ahead of what the GPU measures (default: the cores less "
               "one for each GPU, at most 8 for each); on the emulator also predicted and checked (default: 1)")
      ->type_name("N");
  c.add_option("--journal", o.journal, "file that keeps each result at once; an older one is continued")
      ->type_name("FILE");
  c.add_option(
       "--queue", o.queue,
       "a Redis server: what is started there by kiln tune --work measures, on any host; what it holds is signed "
       "with KILN_CACHE_SECRET")
      ->type_name("ADDRESS[#NAME]");
  c.add_option("--work", o.work, "measure for the sweeps of a queue, until Ctrl-C; goes with --device or --devices")
      ->type_name("ADDRESS[#NAME]");
  c.add_flag("--mpi", o.mpi, "started by mpirun -n N: rank 0 has the sweep, the others measure");
  c.add_option("--idle", o.idle, "of --work: seconds without work after which it ends; 0 (default): none")
      ->type_name("S");
  c.add_option("--patience", o.silence,
               "seconds of silence after which a worker counts as lost, and the queue's server as gone (default: 15)")
      ->type_name("S");
  c.add_option("--replay", o.replay, "a journal in place of a device: compares searches")->type_name("JOURNAL");
  c.add_option("--export", o.exported,
               "write a journal as t4 (schema T4 1.0.0 of Kernel Tuner), csv, or html: a page to look at")
      ->type_name("FORMAT");
  c.add_option("--compare", o.compared, "of --export html: a journal of another sweep, shown next to it")
      ->type_name("JOURNAL");
  c.add_option("-o,--output", o.output, "of --export: a file in place of standard output")->type_name("FILE");
  c.add_flag("--json", o.request.run.json, "one JSON object on standard output");
  // Not for people: what a sweep starts to measure.
  c.add_option("--answer", o.answer)->check(CLI::IsMember({"predicted", "timed"}))->group("");
  c.add_option("--sweep-process", o.request.sweepProcess)->group("");
  c.add_option("--ends-with", o.endsWith)->group("");
  c.add_flag("--shared-gpu", o.request.isShared)->group("");
  c.footer("On a GPU batches are timed until the median is known to half a percent; on the emulator the time is the "
           "performance model's.\n"
           "Each one is compared with float64 before it counts, in processes other than the sweep's.\n"
           "Examples:\n"
           "  kiln tune matmul --dtype bf16 --target sm_90a --set block_k=64 --set stages=3,4 --dry-run\n"
           "Exit status: 0 good, 1 no configuration is good, 2 input, 3 compile, 4 device or interrupted.");
}

Status checkNumbers(const TuneOptions &o) {
  if (o.keep == 0)
    return Status::invalid("--keep 0 leaves no configuration", "give at least 1");
  if (o.confirm == std::size_t(1))
    return Status::invalid("--confirm 1: one configuration has none to be compared with", "give 0, or 2 or more");
  if (o.jobs > 256)
    return Status::invalid("--jobs " + std::to_string(o.jobs) + ": 1 to 256", "give the number of cores");
  if (!(o.silence >= 0.1) || o.silence > 3600 || o.idle < 0)
    return Status::invalid("--patience is 0.1 to 3600 seconds, --idle 0 or more",
                           "leave --patience out for 15 seconds, and --idle to wait for ever");
  if (!(o.timeout > 0) || o.seconds < 0)
    return Status::invalid("--timeout is more than 0 seconds, --time 0 or more");
  return {};
}

} // namespace kiln::tools
