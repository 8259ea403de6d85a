// parse(print(m)) equals m, over compiler output and every accepted construct; and the speed of the parser.
#include "Constructs.h"
#include "PtxTesting.h"

#include "runtime/ptx/Parser.h"
#include "runtime/ptx/Printer.h"

#include <algorithm>
#include <ctime>
#include <gtest/gtest.h>

namespace kiln::ptx::test {
namespace {

void roundTrip(const std::string &text) {
  auto m = accepted(text);
  ASSERT_TRUE(m);
  const std::string printed = print(*m);
  auto again = accepted(printed);
  ASSERT_TRUE(again) << printed;
  EXPECT_EQ(difference(*m, *again), "") << printed;
  EXPECT_EQ(print(*again), printed);
}

TEST(RoundTrip, CompilerOutput) {
  ASSERT_GE(samples().size(), 9u);
  for (const Sample &s : samples()) {
    SCOPED_TRACE(s.name);
    roundTrip(s.text);
  }
}

TEST(RoundTrip, Constructs) {
  for (const Construct &c : constructs())
    if (c.error.empty()) {
      SCOPED_TRACE(c.text);
      roundTrip(moduleOf(c));
    }
  for (std::string_view text : callConstructs())
    roundTrip(moduleOfCalls(text));
}

// A comparison that finds nothing would prove nothing.
TEST(RoundTrip, DifferencesAreFound) {
  const std::string base = moduleWith(".global .align 8 .b32 a[2] = {1, 2};",
                                      "@%p1 setp.eq.u32 %p1|%p2, %r1, 5; L: ld.global.b32 %r1, [%rd1+4]; .loc 1 2 3");
  auto m = accepted(base);
  ASSERT_TRUE(m);
  EXPECT_EQ(difference(*m, *accepted(base)), "");
  auto changed = [&](std::string_view from, std::string_view to) {
    std::string text = base;
    text.replace(text.find(from), from.size(), to);
    auto other = accepted(text);
    return other ? difference(*m, *other) : "refused";
  };
  EXPECT_EQ(changed("sm_90a", "sm_80"), "targets");
  EXPECT_EQ(changed(".align 8 ", ""), "variables[0].align");
  EXPECT_EQ(changed("{1, 2}", "{1, 3}"), "variables[0].init[1].bits");
  EXPECT_EQ(changed("@%p1", "@!%p1"), "functions[0].statements[5].guardNegated");
  EXPECT_EQ(changed("|%p2", ""), "functions[0].statements[5].operands[0].second");
  EXPECT_EQ(changed("|%p2", "|%p3"), "functions[0].statements[5].operands[0].second.text");
  EXPECT_EQ(changed("+4]", "+8]"), "functions[0].statements[7].operands[1].bits");
  EXPECT_EQ(changed("L:", "M:"), "functions[0].statements[6].name");
  EXPECT_EQ(changed("1 2 3", "1 2 4"), "functions[0].locations[0].column");
}

double cpuMilliseconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

TEST(Speed, OneMegabyte) {
  // The functions of one sample, over and over; the parser resolves no names.
  const auto &sample = *std::ranges::find(samples(), "calls_sm100a.ptx", &Sample::name);
  const std::size_t start = sample.text.find(".visible .entry");
  ASSERT_NE(start, std::string::npos);
  std::string text = sample.text;
  while (text.size() < (1u << 20))
    text += sample.text.substr(start);
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  const double limit = 1000;
#else
  const double limit = 100;
#endif
#else
  const double limit = 100;
#endif
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    std::string copy = text;
    const double begin = cpuMilliseconds();
    auto r = parse(std::move(copy), "t.ptx");
    best = std::min(best, cpuMilliseconds() - begin);
    ASSERT_TRUE(r.ok()) << r.status().toString();
  }
  RecordProperty("milliseconds", std::to_string(best));
  EXPECT_LT(best, limit);
}

} // namespace
} // namespace kiln::ptx::test
