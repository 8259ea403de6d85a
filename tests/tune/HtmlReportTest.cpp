#include "runtime/tune/HtmlReport.h"

#include "runtime/tune/Plot.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace kiln::tune {
namespace {

Entry good(int m, int warps, double ms) {
  Entry e;
  e.configuration = {{"block_m", std::to_string(m)}, {"warps", std::to_string(warps)}, {"stages", "2"}};
  e.outcome = Outcome::Good, e.milliseconds = ms, e.least = 0.99 * ms, e.greatest = 1.01 * ms;
  return e;
}

/// block_m 16 and 32 make 4, warps 4 and 8 make 2.
JournalContents sweep() {
  JournalContents out;
  out.header.kernel = "matmul", out.header.target = "sm_90a", out.header.call = "a=64x64<b>";
  out.entries = {good(16, 8, 8), good(16, 4, 4), good(32, 8, 2), good(32, 4, 1), good(64, 4, 1.01)};
  out.entries.back().estimate = 2;
  Entry bad;
  bad.configuration = {{"block_m", "128"}, {"warps", "4"}, {"stages", "2"}};
  bad.outcome = Outcome::Crashed, bad.message = "<script>alert(\"&\")</script>\x01";
  out.entries.push_back(bad);
  return out;
}

std::size_t count(const std::string &text, const std::string &what) {
  std::size_t out = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++out;
  return out;
}

/// Every element ends where it must, and '<' begins nothing else.
void expectWellFormed(const std::string &page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    const std::size_t end = page.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = page.substr(at + 1, end - at - 1), name = tag.substr(0, tag.find(' '));
    at = end;
    if (tag.front() == '!' || tag.back() == '/')
      continue;
    if (tag.front() != '/') {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    EXPECT_EQ("/" + open.back(), tag);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(Importances, AreSharesOfTheVariance) {
  std::vector<Entry> entries = sweep().entries;
  entries.resize(4); // a full factorial: ln 4 and ln 2 between the means
  const std::vector<Importance> all = importances(entries);
  ASSERT_EQ(all.size(), 2u); // stages has one value
  EXPECT_EQ(all[0].parameter, "block_m");
  EXPECT_NEAR(all[0].share, 0.8, 1e-12);
  EXPECT_EQ(all[1].parameter, "warps");
  EXPECT_NEAR(all[1].share, 0.2, 1e-12);
  EXPECT_TRUE(importances({}).empty());
  for (Entry &e : entries)
    e.milliseconds = 3;
  for (const Importance &of : importances(entries))
    EXPECT_EQ(of.share, 0) << of.parameter;
}

TEST(HtmlReport, ShowsTheSweep) {
  const std::string page = htmlReport(sweep(), nullptr);
  expectWellFormed(page);
  EXPECT_NE(page.find("6 configurations, of which 5 are good; the best is <b>block_m=32, warps=4, stages=2</b>, 1 ms"),
            std::string::npos);
  EXPECT_EQ(count(page, "<circle"), 5u + 1u); // measured, and with an estimate
  EXPECT_EQ(count(page, "its samples and the best one's overlap"), 1u);
  EXPECT_EQ(count(page, "<h2>Another sweep"), 0u);
  // What messages and calls say is text.
  EXPECT_EQ(count(page, "<script"), 0u);
  EXPECT_NE(page.find("&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt; <"), std::string::npos);
  EXPECT_NE(page.find("a=64x64&lt;b&gt;"), std::string::npos);
  // Nothing is loaded.
  EXPECT_EQ(count(page, "http"), 0u);
  EXPECT_EQ(count(page, "src="), 0u);
}

TEST(HtmlReport, ComparesTwo) {
  JournalContents other = sweep();
  other.entries.resize(4);
  for (Entry &e : other.entries)
    e.milliseconds *= 2;
  const std::string page = htmlReport(sweep(), &other);
  expectWellFormed(page);
  EXPECT_NE(page.find("4 configurations were measured in both; the other sweep's times are 2.000 times"),
            std::string::npos);
  EXPECT_EQ(count(page, "<circle class=\"other\""), 4u);
  other.entries.clear();
  EXPECT_NE(htmlReport(sweep(), &other).find("No configuration was measured in both."), std::string::npos);
}

TEST(HtmlReport, NamesWhatMakesTimesDoubtful) {
  JournalContents all = sweep();
  EXPECT_EQ(htmlReport(all, nullptr).find("Under which conditions"), std::string::npos);
  all.entries[1].conditions = {{"throttled: power cap", "used by another process: 7 (<b>)"}, 1500, 3201, {}};
  all.entries[3].conditions = {{"throttled: power cap"}, 1980, {}, 4};
  const std::string page = htmlReport(all, nullptr);
  expectWellFormed(page);
  EXPECT_NE(page.find("<td>throttled: power cap</td><td class=\"n\">2</td><td>block_m=16, warps=4, stages=2</td>"),
            std::string::npos);
  EXPECT_NE(page.find("<td>throttled: power cap; used by another process: 7 (&lt;b&gt;)</td>"), std::string::npos);
  EXPECT_NE(page.find("multiprocessors, at its lowest while a configuration was measured: 1500 to 1980 MHz"),
            std::string::npos);
}

/// 4 FLOP a byte below a ridge of 10: memory limits it to 4 TFLOP/s.
Roofline roofs() {
  return {4e9, 1e9, 10e12, 1e12, "GPU <x>"};
}

TEST(HtmlReport, PlacesTheCallUnderItsRoofs) {
  JournalContents all = sweep();
  all.header.roofline = roofs();
  std::string page = htmlReport(all, nullptr);
  expectWellFormed(page);
  EXPECT_NE(page.find("4e+09 FLOP and moves at least 1e+09 bytes: 4 FLOP a byte. By the rates of GPU &lt;x&gt; it is "
                      "limited by memory, at 4 TFLOP/s; the best configuration reaches 4 TFLOP/s, 100 % of that."),
            std::string::npos);
  EXPECT_NE(page.find("block_m=16, warps=8, stages=2: 0.5 TFLOP/s, 12 % of the roof"), std::string::npos);
  EXPECT_EQ(count(page, "<circle"), 5u + 1u + 5u);
  all.header.roofline->flops = 40e9; // beyond the ridge
  EXPECT_NE(htmlReport(all, nullptr).find("limited by products, at 10 TFLOP/s; the best configuration reaches 40"),
            std::string::npos);
  all.entries.resize(0);
  EXPECT_EQ(htmlReport(all, nullptr).find("Under the roofs"), std::string::npos);
  EXPECT_EQ(htmlReport(sweep(), nullptr).find("Under the roofs"), std::string::npos);
}

TEST(HtmlReport, OfNothingIsAPage) {
  JournalContents nothing = sweep();
  nothing.entries.erase(nothing.entries.begin(), nothing.entries.end() - 1);
  const std::string page = htmlReport(nothing, nullptr);
  expectWellFormed(page);
  EXPECT_EQ(count(page, "<svg"), 0u);
  EXPECT_EQ(count(page, "crashed"), 1u);
  expectWellFormed(htmlReport({}, nullptr));
}

TEST(Plot, PlacesPointsInside) {
  for (const bool isLog : {false, true})
    for (const double y : {1e-9, 1.0, 3e12}) {
      Plot plot({"x", isLog}, {"y", isLog});
      plot.dots({{1, y}, {1, y}}, "dot"); // no extent of its own
      const std::string svg = plot.svg();
      EXPECT_EQ(count(svg, "<circle"), 2u);
      EXPECT_EQ(count(svg, "nan") + count(svg, "inf"), 0u) << svg;
      EXPECT_GT(count(svg, "class=\"grid\""), 2u) << y;
      EXPECT_LT(count(svg, "class=\"grid\""), 40u) << y;
    }
  Plot rounding({"x"}, {"y"});
  rounding.dots({{1, 1}, {2, std::nextafter(1.0, 2.0)}}, "dot");
  EXPECT_LT(count(rounding.svg(), "class=\"grid\""), 40u);
  EXPECT_EQ(Plot({"x"}, {"y"}).svg(), "");
  for (const double most : {30.0, 1e3, 1e7, 1e90}) {
    Plot wide({"x", true}, {"y"});
    wide.dots({{1, 1}, {most, 2}}, "dot");
    EXPECT_LT(count(wide.svg(), "class=\"grid\""), 40u) << most;
    EXPECT_GT(count(wide.svg(), "class=\"grid\""), 8u) << most;
  }
}

/// A browser finds what the text says.
TEST(HtmlReport, ABrowserShowsIt) {
  if (std::system("command -v chromium > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "no chromium (scripts/setup.sh installs it)";
  const test::TemporaryDirectory made;
  const std::string folder = made.path();
  JournalContents all = sweep();
  all.header.roofline = roofs();
  all.entries[0].conditions.notes = {"throttled: power cap"};
  std::ofstream(folder + "/report.html") << htmlReport(all, &all);
  const std::string command = "timeout 120 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir='" +
                              folder + "/profile' --dump-dom 'file://" + folder + "/report.html' 2> /dev/null";
  std::FILE *const pipe = ::popen(command.c_str(), "r");
  ASSERT_TRUE(pipe);
  std::string dom;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    dom.append(buffer, n);
  EXPECT_EQ(::pclose(pipe), 0);
  for (const char *title : {"How it went", "The fastest", "Under the roofs", "Under which conditions",
                            "Which parameters matter", "The model's order", "What failed", "Another sweep"})
    EXPECT_EQ(count(dom, std::string("<h2>") + title + "</h2>"), 1u) << title;
  EXPECT_EQ(count(dom, "<circle"), 5u + 5u + 1u + 5u);
  EXPECT_EQ(count(dom, "<svg"), 4u);
}

} // namespace
} // namespace kiln::tune
