//===- Main.cpp - kiln-parity: record a GPU's results, compare devices -----===//
#include "support/Text.h"
#include "tests/parity/Generator.h"
#include "tests/parity/Session.h"

#include <cstdio>
#include <cstring>

namespace kiln::parity {

namespace {

constexpr const char *usage =
    "usage: kiln-parity record  --device GPU --out DIR [--against DEVICE] [--filter TEXT]\n"
    "       kiln-parity compare --device A --device B [--filter TEXT] [--cases N]\n"
    "       kiln-parity check   --device A [--filter TEXT] [--cases N]     against the host's references only\n"
    "       kiln-parity sweep   --device A [--filter TEXT] [--cases N]     errors of the f32 approximations, N inputs "
    "each\n"
    "                                                                      (default 2^24; 4294967296: all)\n"
    "       kiln-parity list [--filter TEXT]                               the forms\n"
    "       kiln-parity ptx FORM                                           the kernel of one form\n";

struct Options {
  std::string command, out, filter, against = "emulator:sm_90a", form;
  std::vector<std::string> devices;
  std::size_t randomCount = recordedRandom;
  std::uint64_t points = 1 << 24; ///< of a sweep
};

bool parse(int argc, char **argv, Options &o) {
  if (argc < 2)
    return false;
  o.command = argv[1];
  for (int i = 2; i < argc; ++i) {
    std::string a = argv[i];
    bool more = i + 1 < argc;
    if (a == "--device" && more)
      o.devices.push_back(argv[++i]);
    else if (a == "--out" && more)
      o.out = argv[++i];
    else if (a == "--filter" && more)
      o.filter = argv[++i];
    else if (a == "--against" && more)
      o.against = argv[++i];
    else if (a == "--cases" && more) {
      o.points = std::strtoull(argv[++i], nullptr, 10);
      o.randomCount = (o.points + 1023) / 1024 * 1024;
    } else if (a[0] != '-' && o.command == "ptx" && o.form.empty())
      o.form = a;
    else
      return false;
  }
  if (o.command == "record")
    return o.devices.size() == 1 && !o.out.empty();
  if (o.command == "compare")
    return o.devices.size() == 2;
  if (o.command == "check" || o.command == "sweep")
    return o.devices.size() == 1;
  return o.command == "list" || (o.command == "ptx" && !o.form.empty());
}

int fail(const Status &status) {
  std::fprintf(stderr, "kiln-parity: %s\n", status.toString().c_str());
  return status.exitCode();
}

int runDevices(const Options &o) {
  bool recording = o.command == "record";
  Comparison comparison;
  comparison.device = o.devices[0];
  comparison.other = o.command == "compare" ? o.devices[1] : recording && o.against != "none" ? o.against : "";
  comparison.randomCount = o.randomCount;
  comparison.forms = selectForms(o.filter);
  comparison.recording = recording;
  auto report = comparison.run();
  if (!report.ok())
    return fail(report.status());
  for (const auto &[opcode, records] : report->records)
    if (Status status = writeRecords(recordPath(o.out, report->targetClass, opcode), records); !status.ok())
      return fail(status);
  report->againstHost.print();
  if (!comparison.other.empty())
    report->againstOther.print();
  std::printf("\n%zu forms could not be run\n", report->failures.size());
  for (const std::string &line : report->failures)
    std::printf("  %s\n", line.c_str());
  std::printf("\nsummary: %zu forms on %s in %.0f s; %zu differ from the host's references", comparison.forms.size(),
              report->identity.c_str(), report->seconds, report->againstHost.formsThatDiffer());
  if (!comparison.other.empty())
    std::printf(", %zu from %s", report->againstOther.formsThatDiffer(), comparison.other.c_str());
  std::printf("; %zu could not be run", report->failures.size());
  if (recording)
    std::printf("; %zu files under %s/%s", report->records.size(), o.out.c_str(), report->targetClass.c_str());
  std::printf("\n");
  bool clean =
      report->failures.empty() && !report->againstHost.formsThatDiffer() && !report->againstOther.formsThatDiffer();
  return clean ? 0 : 1;
}

} // namespace

int runMain(int argc, char **argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fputs(usage, stderr);
    return 2;
  }
  if (options.command == "list") {
    for (const Form *form : selectForms(options.filter))
      std::printf("%s\n", form->name.c_str());
    return 0;
  }
  if (options.command == "ptx") {
    for (const Form &form : allForms())
      if (form.name == options.form) {
        std::fputs(kernelText(form).c_str(), stdout);
        return 0;
      }
    return fail(Status(StatusCode::NotFound, "no form '" + options.form + "'", "'kiln-parity list' prints them"));
  }
  if (options.command == "sweep") {
    Status status = sweepApproximations(options.devices[0], options.points, options.filter);
    return status.ok() ? 0 : fail(status);
  }
  return runDevices(options);
}

} // namespace kiln::parity

int main(int argc, char **argv) {
  return kiln::parity::runMain(argc, argv);
}
