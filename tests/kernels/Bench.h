//===- Bench.h - One kernel call, checked from all sides ----------------------===//
#ifndef KILN_TESTS_KERNELS_BENCH_H
#define KILN_TESTS_KERNELS_BENCH_H

#include "tests/kernels/Window.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace kiln::test {

struct Opened {
  std::unique_ptr<Device> device;
  std::unique_ptr<Jit> jit; ///< goes first
  bool emulated() const { return device->info().kind == DeviceKind::Emulator; }
  ~Opened() { jit.reset(); }
};

/// --device NAME: run on that device alone.
void setDevice(std::string name);
/// The four emulator targets, or the chosen device.
std::vector<std::string> deviceNames();
/// Kept open between tests; nullptr and a test failure if it cannot be opened.
Opened *openedDevice(const std::string &name);
/// How a device is opened: `cache` is the folder of the disk cache, empty: none; `stress` as KILN_STRESS.
struct Opening {
  EmulatorOptions emulator = {};
  std::string cache = {}, stress = {};
  std::vector<std::string> *texts = nullptr;     ///< gets every PTX text that is loaded
  std::map<std::string, std::string> swaps = {}; ///< what is loaded in the place of a text
  std::string codeTarget = {};                   ///< what the code may use; empty: the device's own target
};
std::unique_ptr<Opened> openWith(const std::string &name, const Opening &how);
/// A device with a Jit of its own; an emulator with `hostThreads` of them, 0: one a core.
std::unique_ptr<Opened> freshDevice(const std::string &name, unsigned hostThreads = 0);
void closeDevices();
/// "sm_80" of "emulator:sm_80", for names of tests.
std::string testName(std::string_view text);

/// The families of a tensor x, which suites run with any shape.  attention and matmul have suites of their own.
std::vector<const kernels::Family *> shapeFamilies();
/// Parameter of a suite that runs each of them on every device: the family's name and the device's index.
using FamilyOnDevice = std::tuple<std::string, std::size_t>;
std::vector<FamilyOnDevice> familiesOnDevices();
/// "softmax_sm_80", the test's name.
std::string familyAndDevice(const testing::TestParamInfo<FamilyOnDevice> &info);

const kernels::Family &familyOf(std::string_view name);

struct Case {
  std::string family;
  kernels::Arrays inputs; ///< in C order
  kernels::OptionValues options;
  std::map<std::string, Place, std::less<>> places; ///< Dense if not named
  std::function<void(Buffer &out)> tamper;          ///< after the run, for tests of the bench itself
  std::string toString() const;
};

/// Runs the case and expects: success, no finding, every byte outside the output's elements as it was, each element
/// within the family's tolerance; of copy and transpose the input's bits, of add the correctly rounded sum.
void runCase(Opened &on, Case testCase);

/// A call was refused for wrong arguments: with a remedy, and all of `parts` in the message.  `what`: whose call, for
/// the report.
void expectRefused(const Status &status, std::initializer_list<std::string> parts, const std::string &what);

/// Values, rounded to `dtype` once.
Array arrayOf(DType dtype, const Shape &shape, const std::vector<double> &values);

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_BENCH_H
