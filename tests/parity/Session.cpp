//===- Session.cpp --------------------------------------------------------===//
#include "tests/parity/Session.h"

#include "support/Text.h"
#include "tests/parity/Generator.h"
#include "tests/parity/Oracle.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

namespace kiln::parity {

Status Runner::open() {
  device.reset();
  EmulatorOptions options;
  options.secondsBudget = 60;
  options.hostThreads = hostThreads;
  KILN_ASSIGN(device, openDevice(name, options));
  return {};
}

Result<Columns> Runner::run(const Form &form, const Cases &cases) {
  if (!device)
    KILN_TRY(open());
  auto results = runForm(*device, form, cases);
  if (!results.ok() && !results.status().message().starts_with("load"))
    device.reset();
  return results;
}

void Tally::add(const Form &form, const Difference &d) {
  auto found = std::find_if(opcodes.begin(), opcodes.end(), [&](auto &entry) { return entry.first == form.opcode(); });
  if (found == opcodes.end())
    found = opcodes.insert(found, {form.opcode(), Opcode{}});
  Opcode &o = found->second;
  ++o.forms;
  o.cases += d.compared;
  o.undefined += d.undefined;
  if (form.approximate() && d.worstUlp > 0)
    ulps.push_back(format("  %-28s %9.3f ulp, %zu results", form.name.c_str(), d.worstUlp, d.compared));
  if (d.cases == 0)
    return;
  ++differing;
  ++o.differing;
  o.differingCases += d.cases;
  o.lines.push_back(format("    %s: %zu of %zu; %s", form.name.c_str(), d.cases, d.compared, d.first.c_str()));
}

void Tally::print() const {
  std::size_t forms = 0, cases = 0, differingCases = 0;
  for (const auto &[name, o] : opcodes) {
    forms += o.forms;
    cases += o.cases;
    differingCases += o.differingCases;
  }
  std::printf("\n%s: %zu forms, %zu results compared; %zu forms differ in %zu results\n", title.c_str(), forms, cases,
              differing, differingCases);
  for (const auto &[name, o] : opcodes) {
    if (o.differing == 0)
      continue;
    std::printf("  %s: %zu of %zu forms differ\n", name.c_str(), o.differing, o.forms);
    for (const std::string &line : o.lines)
      std::printf("%s\n", line.c_str());
  }
  if (!ulps.empty())
    std::printf("  worst distance from the true value (normal results):\n");
  for (const std::string &line : ulps)
    std::printf("  %s\n", line.c_str());
}

Difference compareOracle(const Form &form, const Cases &cases, const Columns &got) {
  if (form.approximate())
    return compareApproximate(form, cases, got);
  Columns want = expected(form, cases);
  if (want.empty())
    return {};
  return compareExact(form, cases, got, want, 0, cases.count(), "host");
}

namespace {

/// What one form gave.
struct Outcome {
  Difference host, other;
  bool ran = false, compared = false;
  Record record;
  std::vector<std::string> failures;
};

/// A device for all threads: GPUs are shared under a lock, every thread has emulators of its own.
class SharedDevice {
public:
  explicit SharedDevice(const std::string &name) : name(name), shared(name), isGpu(!name.starts_with("emulator")) {}
  Status open() { return shared.open(); }
  const DeviceInfo &info() const { return shared.info(); }
  Result<Columns> run(std::unique_ptr<Runner> &own, const Form &form, const Cases &cases) {
    if (isGpu) {
      std::lock_guard lock(mutex);
      return shared.run(form, cases);
    }
    if (!own)
      own = std::make_unique<Runner>(name, 1);
    return own->run(form, cases);
  }

private:
  std::string name;
  Runner shared;
  bool isGpu;
  std::mutex mutex;
};

} // namespace

Result<Comparison::Report> Comparison::run() const {
  auto start = std::chrono::steady_clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  SharedDevice first(device), second(other);
  KILN_TRY(first.open());
  if (!other.empty())
    KILN_TRY(second.open());
  Report report;
  report.identity = first.info().description + ", " + first.info().driver;
  report.targetClass = format("sm_%u", first.info().sm);
  std::printf("%s: %s\n", device.c_str(), report.identity.c_str());

  std::vector<Outcome> outcomes(forms.size());
  std::atomic<std::size_t> next = 0, done = 0;
  std::mutex printing;
  auto work = [&] {
    std::unique_ptr<Runner> ownFirst, ownSecond;
    for (std::size_t i; (i = next++) < forms.size();) {
      const Form &form = *forms[i];
      Outcome &o = outcomes[i];
      if (i == 0 || forms[i - 1]->opcode() != form.opcode()) {
        std::lock_guard lock(printing);
        std::printf("[%5.1f s] %4zu of %zu forms done, now %s\n", seconds(), done.load(), forms.size(),
                    form.opcode().c_str());
        std::fflush(stdout);
      }
      Cases cases = makeCases(form, randomCount);
      auto results = first.run(ownFirst, form, cases);
      if (results.ok()) {
        o.ran = true;
        o.host = compareOracle(form, cases, *results);
        if (recording)
          o.record = makeRecord(form, cases, *results);
      } else {
        o.failures.push_back(form.name + " on " + device + ": " + results.status().message());
      }
      if (!other.empty()) {
        auto otherResults = second.run(ownSecond, form, cases);
        if (!otherResults.ok())
          o.failures.push_back(form.name + " on " + other + ": " + otherResults.status().message());
        else if (results.ok()) {
          o.compared = true;
          o.other = form.approximate()
                        ? compareApproximate(form, cases, *results, *otherResults, cases.count(), other.c_str())
                        : compareExact(form, cases, *results, *otherResults, 0, cases.count(), other.c_str());
        }
      }
      ++done;
    }
  };
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
    workers.emplace_back(work);
  for (std::thread &worker : workers)
    worker.join();

  for (std::size_t i = 0; i < forms.size(); ++i) {
    const Form &form = *forms[i];
    Outcome &o = outcomes[i];
    report.failures.insert(report.failures.end(), o.failures.begin(), o.failures.end());
    if (o.ran)
      report.againstHost.add(form, o.host);
    if (o.compared)
      report.againstOther.add(form, o.other);
    if (o.ran && recording) {
      OpcodeRecords &opcode = report.records[form.opcode()];
      opcode.device = report.identity;
      opcode.forms[form.name] = std::move(o.record);
    }
  }
  report.seconds = seconds();
  return report;
}

std::vector<const Form *> selectForms(std::string_view filter) {
  std::vector<const Form *> selected;
  for (const Form &form : allForms())
    if (form.name.find(filter) != std::string::npos)
      selected.push_back(&form);
  return selected;
}

} // namespace kiln::parity
