//===- Main.cpp - kiln-parity: record a GPU's results, compare devices -----===//
#include "support/Text.h"
#include "tests/parity/Generator.h"
#include "tests/parity/Session.h"

#include <algorithm>
#include <chrono>
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
      o.randomCount = (std::max<std::uint64_t>(o.points, 1) + hashedRandom - 1) / hashedRandom * hashedRandom;
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

/// Progress: a line an opcode.
class Progress {
public:
  explicit Progress(std::size_t total) : total(total), start(std::chrono::steady_clock::now()) {}
  void form(const Form &f) {
    ++done;
    if (f.opcode() == opcode)
      return;
    opcode = f.opcode();
    std::printf("[%5.1f s] %4zu of %zu forms, now %s\n", seconds(), done, total, opcode.c_str());
    std::fflush(stdout);
  }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

private:
  std::size_t total, done = 0;
  std::string opcode;
  std::chrono::steady_clock::time_point start;
};

int fail(const Status &status) {
  std::fprintf(stderr, "kiln-parity: %s\n", status.toString().c_str());
  return status.exitCode();
}

std::string targetClass(const DeviceInfo &device) {
  return format("sm_%u", device.sm);
}

int runDevices(const Options &o) {
  bool recording = o.command == "record";
  Runner first(o.devices[0]);
  if (Status status = first.open(); !status.ok())
    return fail(status);
  std::unique_ptr<Runner> second;
  std::string secondName = o.command == "compare" ? o.devices[1] : recording ? o.against : "";
  if (!secondName.empty() && secondName != "none") {
    second = std::make_unique<Runner>(secondName);
    if (Status status = second->open(); !status.ok())
      return fail(status);
  }
  std::string identity = first.info().description + ", driver " + first.info().driver, sm = targetClass(first.info());
  std::printf("%s: %s\n", first.deviceName().c_str(), identity.c_str());
  std::vector<const Form *> forms = selectForms(o.filter);
  std::map<std::string, OpcodeRecords> records;
  Tally againstHost(first.deviceName() + " against the host's references");
  Tally againstSecond(first.deviceName() + " against " + secondName);
  std::vector<std::string> failures;
  Progress progress(forms.size());
  for (const Form *form : forms) {
    progress.form(*form);
    Cases cases = makeCases(*form, o.randomCount);
    auto results = first.run(*form, cases);
    if (!results.ok()) {
      failures.push_back(
          format("  %s on %s: %s", form->name.c_str(), first.deviceName().c_str(), results.status().message().c_str()));
      continue;
    }
    againstHost.add(*form, compareOracle(*form, cases, *results));
    if (recording) {
      OpcodeRecords &opcode = records[form->opcode()];
      opcode.device = identity;
      opcode.forms[form->name] = makeRecord(*form, cases, *results);
    }
    if (!second)
      continue;
    auto other = second->run(*form, cases);
    if (!other.ok())
      failures.push_back(
          format("  %s on %s: %s", form->name.c_str(), secondName.c_str(), other.status().message().c_str()));
    else
      againstSecond.add(*form,
                        form->approximate()
                            ? compareApproximate(*form, cases, *results, *other, cases.count(), secondName.c_str())
                            : compareExact(*form, cases, *results, *other, 0, cases.count(), secondName.c_str()));
  }
  std::uintmax_t written = 0;
  for (const auto &[opcode, opcodeRecords] : records) {
    std::string path = recordPath(o.out, sm, opcode);
    if (Status status = writeRecords(path, opcodeRecords); !status.ok())
      return fail(status);
    ++written;
  }
  againstHost.print();
  if (second)
    againstSecond.print();
  std::printf("\n%zu forms could not be run\n", failures.size());
  for (const std::string &line : failures)
    std::printf("%s\n", line.c_str());
  std::printf(
      "\nsummary: %zu forms in %.0f s; %zu differ from the host's references, %zu from %s; %zu could not be run",
      forms.size(), progress.seconds(), againstHost.formsThatDiffer(), againstSecond.formsThatDiffer(),
      second ? secondName.c_str() : "(no other device)", failures.size());
  if (recording)
    std::printf("; %ju files written under %s/%s", written, o.out.c_str(), sm.c_str());
  std::printf("\n");
  return failures.empty() && againstHost.formsThatDiffer() == 0 && againstSecond.formsThatDiffer() == 0 ? 0 : 1;
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
