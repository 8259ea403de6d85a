// What NVML says of a GPU while it is measured, by a library that says what a test wants.
#include "runtime/device/cuda/GpuMonitor.h"
#include "tests/runtime/FakeNvml.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::test {
namespace {

using cuda::GpuConditions;
using cuda::GpuMonitor;
using Notes = std::vector<std::string>;

class GpuMonitorTest : public testing::Test {
protected:
  static constexpr const char *library = KILN_BINARY_DIR "/tests/libkiln-fake-nvml.so";

  void SetUp() override {
    void *handle = dlopen(library, RTLD_NOW);
    ASSERT_NE(handle, nullptr) << dlerror();
    auto get = reinterpret_cast<FakeNvml *(*)()>(dlsym(handle, "fakeNvml"));
    ASSERT_NE(get, nullptr);
    fake = get();
    *fake = FakeNvml();
    fake->processes = {self};
  }
  void open() {
    auto opened = GpuMonitor::open("0000:19:00.0", ::getpid(), library);
    ASSERT_TRUE(opened.ok()) << opened.status().toString();
    monitor = std::move(*opened);
  }

  const unsigned self = static_cast<unsigned>(::getpid());
  FakeNvml *fake = nullptr;
  std::unique_ptr<GpuMonitor> monitor;
};

TEST_F(GpuMonitorTest, AQuietGpuHasNoNotes) {
  open();
  fake->utilisation = 3;
  fake->reasons = 1 | 2 | 0x100; // idle, chosen clocks, a display
  monitor->begin();
  fake->smMegahertz = 1500;
  monitor->look();
  fake->smMegahertz = 1980;
  const GpuConditions c = monitor->end();
  EXPECT_EQ(c.notes, Notes());
  EXPECT_EQ(c.smMegahertz, 1500u);
  EXPECT_EQ(c.memoryMegahertz, 3201u);
  EXPECT_EQ(c.busyBefore, 3u);
  EXPECT_EQ(monitor->unknown(), "");
}

TEST_F(GpuMonitorTest, ThrottlingIsSeenWheneverItIsThere) {
  open();
  monitor->begin();
  fake->reasons = 0x4;
  monitor->look();
  fake->reasons = 0x40;
  EXPECT_EQ(monitor->end().notes, Notes{"throttled: power cap, temperature (hardware)"});
  fake->reasons = 0;
  monitor->begin(); // of the next one nothing is left
  EXPECT_EQ(monitor->end().notes, Notes());
}

TEST_F(GpuMonitorTest, OthersAreNamedAndOursAreNot) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  open();
  fake->processes = {self, static_cast<unsigned>(child)};
  monitor->begin();
  EXPECT_EQ(monitor->end().notes, Notes());
  fake->processes.push_back(1); // of somebody else, and there at the end only
  monitor->begin();
  fake->processes = {self};
  const Notes notes = monitor->end().notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].starts_with("used by another process: 1 (")) << notes[0];
  // More than fit at first.
  fake->processes.assign(100, self);
  fake->processes.push_back(1);
  monitor->begin();
  EXPECT_EQ(monitor->end().notes, notes);
  EXPECT_EQ(monitor->unknown(), "");
  // A sweep of many machines may have the GPU open in a process that started none of ours.
  monitor->include(1);
  monitor->begin();
  EXPECT_EQ(monitor->end().notes, Notes());
  // The child is not of a sweep that it started itself.
  EXPECT_TRUE(cuda::descendsFrom(child, ::getpid()));
  EXPECT_FALSE(cuda::descendsFrom(::getpid(), child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

/// Inside of a container the list may have the numbers of the host.
TEST_F(GpuMonitorTest, NumbersOfAnotherPlaceSayNothing) {
  open();
  fake->processes = {1};
  monitor->begin();
  EXPECT_EQ(monitor->end().notes, Notes());
  EXPECT_EQ(monitor->unknown(), "NVML does not say: processes (the driver numbers them as outside of this container)");
}

TEST_F(GpuMonitorTest, WhatIsRefusedIsUnknown) {
  open();
  for (const char *function : {"nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetClockInfo",
                               "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetComputeRunningProcesses_v3"})
    fake->failures[function] = 4;
  for (int twice = 0; twice < 2; ++twice) {
    monitor->begin();
    const GpuConditions c = monitor->end();
    EXPECT_EQ(c.notes, Notes());
    EXPECT_FALSE(c.smMegahertz || c.memoryMegahertz || c.busyBefore);
  }
  EXPECT_EQ(monitor->unknown(), "NVML does not say: processes (Insufficient Permissions), the clock of memory "
                                "(Insufficient Permissions), the clock of multiprocessors (Insufficient Permissions), "
                                "throttling (Insufficient Permissions), utilisation (Insufficient Permissions)");
}

TEST_F(GpuMonitorTest, FailuresToOpenSayWhy) {
  const auto message = [&](const std::string &bus, const std::string &from) {
    return GpuMonitor::open(bus, ::getpid(), from).status().message();
  };
  EXPECT_NE(message("0000:19:00.0", "libnone-of-these.so.1").find("no NVML: libnone-of-these.so.1"), std::string::npos);
  EXPECT_EQ(message("0000:20:00.0", library), "NVML does not find the GPU at 0000:20:00.0: as NVML explains it");
  fake->failures["nvmlInit_v2"] = 4;
  EXPECT_EQ(message("0000:19:00.0", library), "NVML does not start (nvmlInit_v2): Insufficient Permissions");
  EXPECT_NE(message("0000:19:00.0", KILN_BINARY_DIR "/tests/libkiln-fake-cuda.so").find("is too old"),
            std::string::npos);
}

} // namespace
} // namespace kiln::test
