//===- NvccTests.cpp - nvcc's PTX against host references -----------------===//
//
// Every case runs with four PTX files (two targets, -O3 and -G).  By default on the emulator of the PTX's target; with
// `--device NAME` on that device.  On an emulator each case runs twice, with 1 and with 4 host threads, and must read
// back the same bytes; then under schedules with a seed (`--seeds N` of each).
//
//===----------------------------------------------------------------------===//
#include "support/Text.h"
#include "tests/nvcc/Bench.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

namespace kiln::test {

namespace {

std::string deviceName; // from --device; empty: the emulator of each PTX's target
unsigned seeds = 0;     // from --seeds; 0: as the tier says
std::string ptxFolder = KILN_SOURCE_DIR "/tests/nvcc/ptx";

struct Variant {
  const char *target, *build;
};
constexpr Variant variants[] = {{"sm_80", "O3"}, {"sm_80", "G"}, {"sm_90a", "O3"}, {"sm_90a", "G"}};

struct Parameter {
  NvccCase testCase;
  Variant variant;
};

std::string nameOf(const Parameter &p) {
  return format("%s_%s_%s", p.testCase.name, p.variant.target, p.variant.build);
}
/// How GoogleTest and ctest show a parameter.
void PrintTo(const Parameter &p, std::ostream *out) {
  *out << nameOf(p);
}

bool exists(Builds builds, const Variant &variant) {
  return (builds == Builds::All || variant.target == std::string_view("sm_90a")) &&
         (builds != Builds::HopperOptimized || variant.build == std::string_view("O3"));
}

std::vector<Parameter> allParameters() {
  std::vector<Parameter> all;
  for (const NvccCase &c : allCases())
    for (const Variant &variant : variants)
      if (exists(c.builds, variant))
        all.push_back({c, variant});
  return all;
}

/// Devices stay open over the cases of a process: a GPU takes long to open.  A device that failed is dropped.
struct OpenedDevice {
  std::unique_ptr<Device> device;
  std::map<std::string, std::unique_ptr<Module>> modules; // freed before the device
};
std::map<std::string, OpenedDevice> &openedDevices() {
  static std::map<std::string, OpenedDevice> devices;
  return devices;
}

struct Outcome {
  bool ran = false;
  std::string transcript;
};

Outcome runCase(const Parameter &p, const std::string &name, const EmulatorOptions &options) {
  std::string key = format("%s/%u", name.c_str(), options.hostThreads);
  OpenedDevice &opened = openedDevices()[key];
  if (!opened.device) {
    auto device = openDevice(name, options);
    if (!device.ok()) {
      ADD_FAILURE() << device.status().toString();
      return {};
    }
    opened.device = std::move(*device);
  }
  std::string file = format("%s.%s.%s.ptx", p.testCase.file, p.variant.target, p.variant.build);
  std::unique_ptr<Module> &module = opened.modules[file];
  if (!module) {
    std::ifstream stream(ptxFolder + "/" + file);
    if (!stream) {
      ADD_FAILURE() << "no file " << ptxFolder << "/" << file << " (tests/nvcc/generate.sh writes it)";
      return {};
    }
    std::stringstream text;
    text << stream.rdbuf();
    auto loaded = opened.device->loadPtx(text.str(), file);
    if (!loaded.ok()) {
      ADD_FAILURE() << file << ": " << loaded.status().toString();
      return {};
    }
    module = std::move(*loaded);
  }
  bool good;
  Outcome outcome;
  {
    Bench bench(*opened.device, *module, 20260101);
    p.testCase.run(bench);
    good = bench.good();
    outcome = {good, bench.transcript()};
    for (const std::string &failure : bench.failures())
      ADD_FAILURE() << failure;
  }
  if (!good) // a faulted GPU context refuses everything after: start afresh
    openedDevices().erase(key);
  return outcome;
}

class NvccTest : public testing::TestWithParam<Parameter> {};

TEST_P(NvccTest, MatchesHost) {
  const Parameter &p = GetParam();
  std::string name = deviceName.empty() ? format("emulator:%s", p.variant.target) : deviceName;
  bool emulated = name.starts_with("emulator");
  EmulatorOptions options;
  options.secondsBudget = 120;
  options.hostThreads = 1;
  Outcome first = runCase(p, name, options);
  if (!first.ran || !emulated)
    return;
  options.hostThreads = 4;
  Outcome second = runCase(p, name, options);
  if (second.ran)
    EXPECT_TRUE(first.transcript == second.transcript) << "results differ between 1 and 4 host threads";
}

/// Kernels of asynchronous instructions, and whatever else passes data from warp to warp, under schedules with a seed.
TEST_P(NvccTest, IsRightUnderSeeds) {
  const Parameter &p = GetParam();
  if (!deviceName.empty())
    GTEST_SKIP() << "schedules are the emulator's";
  const unsigned count = seeds ? seeds : pick(1u, 5u);
  for (unsigned seed = 1; seed <= count && !HasFailure(); ++seed)
    for (Schedule schedule : {Schedule::Random, Schedule::Adversarial}) {
      EmulatorOptions options;
      options.schedule = schedule;
      options.seed = seed;
      options.secondsBudget = 120;
      SCOPED_TRACE(format("%s, seed %u", std::string(scheduleName(schedule)).c_str(), seed));
      runCase(p, format("emulator:%s", p.variant.target), options);
      openedDevices().clear(); // schedules depend on the launches before
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, NvccTest, testing::ValuesIn(allParameters()),
                         [](const auto &info) { return nameOf(info.param); });

} // namespace

void setDevice(std::string name) {
  deviceName = std::move(name);
}
void setSeeds(unsigned count) {
  seeds = count;
}
void setPtxFolder(std::string folder) {
  ptxFolder = std::move(folder);
}

/// Modules and buffers must go before the devices, and devices before the process ends.
void closeDevices() {
  openedDevices().clear();
}

} // namespace kiln::test

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    auto value = [&](const char *flag) { return argument == flag && i + 1 < argc; };
    if (value("--device"))
      kiln::test::setDevice(argv[++i]);
    else if (value("--seeds"))
      kiln::test::setSeeds(unsigned(std::atoi(argv[++i])));
    else if (value("--ptx"))
      kiln::test::setPtxFolder(argv[++i]);
    else {
      std::fprintf(stderr, "usage: kiln-nvcc-tests [--device NAME] [--ptx FOLDER] [--seeds N] [GoogleTest flags]\n");
      return 2;
    }
  }
  int status = RUN_ALL_TESTS();
  kiln::test::closeDevices();
  return status;
}
