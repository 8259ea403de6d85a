//===- Session.h - Running forms on a device and collecting a report ------===//
#ifndef KILN_TESTS_PARITY_SESSION_H
#define KILN_TESTS_PARITY_SESSION_H

#include "kiln/Device.h"
#include "tests/parity/Records.h"

namespace kiln::parity {

/// A device that is opened again after a failed launch (a faulted GPU context refuses everything after).
class Runner {
public:
  /// `hostThreads` as in EmulatorOptions.
  explicit Runner(std::string name, unsigned hostThreads = 0) : name(std::move(name)), hostThreads(hostThreads) {}
  Status open();
  Result<Columns> run(const Form &form, const Cases &cases);
  const DeviceInfo &info() const { return device->info(); }

private:
  std::string name;
  unsigned hostThreads;
  std::unique_ptr<Device> device;
};

/// Results of one device against one reference, over many forms.
class Tally {
public:
  explicit Tally(std::string title) : title(std::move(title)) {}
  void add(const Form &form, const Difference &difference);
  void print() const;
  std::size_t formsThatDiffer() const { return differing; }

private:
  struct Opcode {
    std::size_t forms = 0, differing = 0, cases = 0, differingCases = 0, undefined = 0;
    std::vector<std::string> lines; ///< a line for each form that differs
  };
  std::string title;
  std::vector<std::pair<std::string, Opcode>> opcodes;
  std::vector<std::string> ulps;
  std::size_t differing = 0;
};

/// Many forms on one device, compared with the host and perhaps with another device.  Host threads share the forms;
/// each emulator runs on the thread that needs it, a GPU serves one thread at a time.
struct Comparison {
  std::string device, other; ///< `other` may be empty
  std::vector<const Form *> forms;
  std::size_t randomCount = recordedRandom;
  bool recording = false;

  struct Report {
    std::string identity, targetClass; ///< of `device`
    Tally againstHost{"against the host's references"}, againstOther{"against the other device"};
    std::map<std::string, OpcodeRecords> records;
    std::vector<std::string> failures; ///< a line each
    double seconds = 0;
  };
  /// Prints a line of progress an opcode.
  Result<Report> run() const;
};

/// Against the host oracle; compared == 0 if there is none for this form.
Difference compareOracle(const Form &form, const Cases &cases, const Columns &got);

/// Prints the errors of every unary f32 approximation over `points` of all 2^32 inputs (Sweep.cpp).
Status sweepApproximations(const std::string &deviceName, std::uint64_t points, std::string_view filter);

/// Forms whose name contains `filter` (all if empty).
std::vector<const Form *> selectForms(std::string_view filter);

} // namespace kiln::parity

#endif // KILN_TESTS_PARITY_SESSION_H
