//===- SeededBugs.h - Planted faults and their correct twins --------------===//
//
// Section 6.2 of the emulator specification.  A test names the fault (S14...), gives a kernel with the marker @@, what
// stands there in the correct kernel, and what stands there instead.  The correct one must have no finding in order and
// under the seeds of every schedule; the wrong one must have the finding in order, at the lines given, and under every
// seed if `always`.
//
//   SeededBug b{.id = "race.shared", .body = "st.shared.u32 [%r4], %r2; @@ ...", .right = "bar.sync 0;"};
//   b.lines = {30, 10};                  // of .loc 1 LINE 1, in either order; 0: not looked at
//   expectSeededBug(b);
//
// The body finds: %r2 thread, %r3 warp, %r6 lane, %r4 address of the thread's 16 bytes in `tile` (8 KiB of shared
// memory, 1024-byte aligned), `bar` (64 bytes of shared memory for mbarriers), %rd1 the thread's 16 bytes in `in` (word
// i holds i + 1), %rd2 the thread's word in `out`; `in` has 16 * threads bytes for every block and as much again.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_SEEDEDBUGS_H
#define KILN_TESTS_EMULATOR_SEEDEDBUGS_H

#include "tests/emulator/PtxHarness.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

namespace kiln::test {

struct SeededBug {
  std::string id{}, body{}, right{}, wrong{};
  /// Source lines of the finding and of the other access; the second 0: there is none, or it is not looked at.
  std::array<unsigned, 2> lines{0, 0};
  bool always = false; ///< found under every seed
  bool strictProxy = false;
  unsigned blocks = 1, threads = 64;
  std::string target = "sm_90a";
  /// What the correct kernel leaves in out[i], if given.
  std::function<std::uint32_t(std::uint32_t)> result{};
  std::function<TensorMapRecipe(std::uint64_t in, std::uint64_t out)> map{};
  /// Ids of the wrong kernel that are as good as `id`.
  std::vector<std::string> orElse{};
};

struct SeededRun {
  Launched launched;
  std::vector<std::uint32_t> out;
};

/// In order, and under so many seeds of each other schedule: calls f(options, what they are) until a test fails.
template <typename Fn> void forEverySchedule(unsigned seeds, Fn f) {
  for (unsigned i = 0; i <= 2 * seeds && !testing::Test::HasFatalFailure(); ++i) {
    EmulatorOptions o;
    o.hostThreads = 1;
    o.schedule = i == 0 ? Schedule::InOrder : i % 2 ? Schedule::Random : Schedule::Adversarial;
    o.seed = i ? (i - 1) / 2 : 0;
    f(o, std::string(scheduleName(o.schedule)) + " seed " + std::to_string(o.seed));
  }
}
inline unsigned seedsOfTwins() {
  return pick(20u, 100u);
}

inline SeededRun runSeeded(const SeededBug &b, const std::string &instead, const EmulatorOptions &options) {
  std::string body = b.body;
  for (std::size_t at; (at = body.find("@@")) != std::string::npos;)
    body.replace(at, 2, instead);
  EmulatorOptions all = options;
  all.strictProxy = b.strictProxy;
  Emulator gpu(b.target, all);
  std::vector<std::uint32_t> words(b.blocks * b.threads * 8);
  for (std::uint32_t i = 0; i < words.size(); ++i)
    words[i] = i + 1;
  auto &in = gpu.upload(words, "in");
  auto &out = gpu.upload(std::vector<std::uint32_t>(b.blocks * b.threads, 0xABABABAB), "out");
  SeededRun r;
  std::string parameters = ".param .u64 in, .param .u64 out";
  std::vector<Argument> arguments = {in, out};
  if (b.map) {
    auto map = gpu.device().encodeTensorMap(b.map(in.address(), out.address()));
    EXPECT_TRUE(map.ok()) << map.status().toString();
    arguments.push_back(map.ok() ? *map : TensorMap());
    parameters += ", .param .align 64 .b8 map[128]";
    body = "mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3;\n" + body;
  }
  r.launched = gpu.run(kernelText(parameters, std::string(threadIndex) + R"(
    .shared .align 1024 .b8 tile[8192]; .shared .align 16 .b8 bar[64];
    mov.u32 %r2, %tid.x; shr.u32 %r3, %r2, 5; and.b32 %r6, %r2, 31; mov.u32 %r4, tile; mad.lo.u32 %r4, %r2, 16, %r4;
    ld.param.u64 %rd1, [in]; mad.lo.u64 %rd1, %rd60, 4, %rd1; ld.param.u64 %rd2, [out]; add.u64 %rd2, %rd2, %rd60;
)" + body,
                                  b.target, ".file 1 \"k.cu\""),
                       {b.blocks}, {b.threads}, arguments);
  r.out = gpu.download<std::uint32_t>(out);
  return r;
}

inline bool hasLines(const SeededBug &b, const Finding &f) {
  auto line = [](unsigned n) { return "k.cu:" + std::to_string(n); };
  if (b.lines[0] == 0)
    return true;
  if (b.lines[1] == 0)
    return f.location == line(b.lines[0]);
  return f.other && ((f.location == line(b.lines[0]) && f.other->location == line(b.lines[1])) ||
                     (f.location == line(b.lines[1]) && f.other->location == line(b.lines[0])));
}

inline void expectSeededBug(const SeededBug &b) {
  ASSERT_NE(b.body.find("@@"), std::string::npos);
  auto found = [&](const Launched &r) {
    for (const Finding &f : r.findings)
      if ((f.id == b.id && hasLines(b, f)) || std::count(b.orElse.begin(), b.orElse.end(), f.id))
        return true;
    return false;
  };
  forEverySchedule(seedsOfTwins(), [&](const EmulatorOptions &o, const std::string &where) {
    const SeededRun good = runSeeded(b, b.right, o);
    ASSERT_TRUE(good.launched.clean()) << "correct twin, " << b.target << " " << where << "\n" << good.launched.text();
    for (std::uint32_t t = 0; b.result && t < good.out.size(); ++t)
      ASSERT_EQ(good.out[t], b.result(t)) << "correct twin, " << b.target << " " << where << ", thread " << t;
    if (o.schedule != Schedule::InOrder && !b.always)
      return;
    const SeededRun bad = runSeeded(b, b.wrong, o);
    ASSERT_TRUE(found(bad.launched)) << "fault, " << b.target << " " << where << "\n" << bad.launched.text();
  });
}

} // namespace kiln::test

#endif // KILN_TESTS_EMULATOR_SEEDEDBUGS_H
