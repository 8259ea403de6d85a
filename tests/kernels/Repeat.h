//===- Repeat.h - Many runs of one call, and the same bits from each ------------===//
#ifndef KILN_TESTS_KERNELS_REPEAT_H
#define KILN_TESTS_KERNELS_REPEAT_H

#include "tests/kernels/Bench.h"
#include "tests/kernels/Operand.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <cstring>

namespace kiln::test {

/// Of one call: on a GPU a thousand in the full tier, on an emulator, which runs in one order, a few.
inline unsigned numberOfRuns(const Opened &on) {
  return on.emulated() ? 3 : pick(100u, 1000u);
}

/// How code is made that is run many times: for the device's target and for sm_80, as it is and with warps late where
/// they hand shared memory over.  On an emulator in the default tier one of them, `number` says which.
inline std::vector<Opening> openingsOfRuns(const Opened &on, std::size_t number) {
  std::vector<Opening> all, one;
  for (const char *target : {"", "sm_80"})
    for (const char *stress : {"", "1", "3:2"}) {
      Opening how;
      how.stress = stress, how.codeTarget = target;
      all.push_back(how);
    }
  one.push_back(all[number % all.size()]);
  return on.emulated() && !isFullTier() ? one : all;
}
/// How a device may order what the text leaves open: on an emulator by seeds of every schedule, 20 of each in the full
/// tier; and with warps late where they hand shared memory over.  `cache`: a folder of kernels, which all of them
/// share.
inline std::vector<Opening> openingsOfSchedules(const Opened &on, std::uint64_t firstSeed, const std::string &cache) {
  std::vector<Opening> out;
  for (const Schedule schedule : {Schedule::Random, Schedule::Adversarial})
    for (std::uint64_t seed = 0; on.emulated() && seed < pick(1u, 20u); ++seed) {
      Opening &how = out.emplace_back();
      how.emulator.schedule = schedule, how.emulator.seed = firstSeed + seed;
    }
  for (const char *stress : {"1", "3:2"})
    out.emplace_back().stress = stress;
  for (Opening &how : out)
    how.cache = cache;
  return out;
}
inline std::string textOf(const Opening &how) {
  return "code for " + (how.codeTarget.empty() ? "the device" : how.codeTarget) + ", KILN_STRESS=" + how.stress +
         ", schedule " + std::string(scheduleName(how.emulator.schedule)) + " " + std::to_string(how.emulator.seed);
}

/// `work` on devices opened in the ways that are run many times; `on` is each of them in turn.
template <typename Work>
void onEveryDeviceOfRuns(Opened *&on, std::size_t number, const std::string &what, const Work &work) {
  Opened *const usual = on;
  for (const Opening &how : openingsOfRuns(*usual, number)) {
    const std::unique_ptr<Opened> other = openWith(usual->device->info().name, how);
    ASSERT_TRUE(other);
    SCOPED_TRACE(textOf(how) + ", " + what);
    on = other.get();
    work();
    on = usual;
    if (testing::Test::HasFatalFailure())
      return;
  }
}

/// `launch` so many times, with poison in the outputs' buffers before each: all bytes are those of the first run.
template <typename Launch>
void expectSameBits(Device &device, const std::vector<const Operand *> &outputs, unsigned runs, Launch launch) {
  std::vector<std::vector<std::byte>> first(outputs.size());
  std::vector<std::byte> bytes; // one buffer for all: a thousand new ones cost more than the copies
  for (unsigned run = 0; run < runs; ++run) {
    for (const Operand *out : outputs)
      ASSERT_TRUE(out->buffer->poison(outputPoison).ok());
    const Status s = launch();
    ASSERT_TRUE(s.ok()) << s.toString();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      bytes.resize(outputs[i]->buffer->size());
      ASSERT_TRUE(outputs[i]->buffer->copyToHost(0, bytes).ok());
      if (run == 0)
        first[i] = bytes;
      else if (std::memcmp(bytes.data(), first[i].data(), bytes.size()) != 0)
        for (std::size_t at = 0; at < bytes.size(); ++at)
          ASSERT_EQ(bytes[at], first[i][at]) << "run " << run << ", output " << i << ", byte " << at;
    }
    for (const Finding &f : device.takeFindings())
      FAIL() << f.message;
  }
}

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_REPEAT_H
