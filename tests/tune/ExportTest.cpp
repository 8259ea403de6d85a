#include "runtime/tune/Export.h"

#include <gtest/gtest.h>

#include <set>

namespace kiln::tune {
namespace {

JournalContents journal() {
  JournalContents out;
  const auto add = [&](int n, Outcome outcome, const std::string &message) {
    Entry e;
    e.configuration = {{"block_m", std::to_string(n)}, {"word", "silu"}};
    e.outcome = outcome, e.message = message, e.time = "2026-11-28T04:00:00Z", e.seconds = 1.5;
    if (e.good())
      e.milliseconds = 0.25, e.least = 0.125, e.greatest = 0.5;
    out.entries.push_back(e);
  };
  add(16, Outcome::Good, "");
  add(32, Outcome::Wrong, "off, by \"3\"");
  add(64, Outcome::Compile, "");
  add(128, Outcome::TimedOut, "");
  add(256, Outcome::Crashed, "");
  return out;
}

/// What results-schema.json of T4 1.0.0 asks for.
TEST(ExportTest, T4HasWhatTheSchemaAsksFor) {
  const auto text = exportJournal(journal(), "t4");
  ASSERT_TRUE(text.ok());
  const Json all = Json::parse(*text);
  EXPECT_EQ(all["schema_version"], "1.0.0");
  ASSERT_EQ(all["results"].size(), 5u);
  const std::set<std::string> words = {"timeout", "compile", "runtime", "correctness", "constraints", "correct"};
  std::vector<std::string> invalidities;
  for (const Json &r : all["results"]) {
    EXPECT_TRUE(r["timestamp"].is_string() && r["objectives"].is_array() && r["measurements"].is_array());
    EXPECT_TRUE(r["times"].is_object() && r["times"]["runtimes"].is_array());
    EXPECT_TRUE(r["correctness"].is_number());
    EXPECT_TRUE(r["configuration"]["block_m"].is_number_integer());
    EXPECT_EQ(r["configuration"]["word"], "silu");
    EXPECT_TRUE(words.contains(r["invalidity"].get<std::string>()));
    invalidities.push_back(r["invalidity"]);
  }
  EXPECT_EQ(invalidities, (std::vector<std::string>{"correct", "correctness", "compile", "timeout", "runtime"}));
  const Json &good = all["results"][0];
  EXPECT_EQ(good["measurements"][0], Json({{"name", "time"}, {"value", 0.25}, {"unit", "ms"}}));
  EXPECT_EQ(good["objectives"][0], good["measurements"][0]["name"]);
  EXPECT_EQ(good["correctness"], 1);
  EXPECT_EQ(all["results"][1]["correctness"], 0);
  EXPECT_TRUE(all["results"][1]["measurements"].empty());
}

TEST(ExportTest, CsvQuotesWhatNeedsIt) {
  const auto text = exportJournal(journal(), "csv");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->substr(0, text->find("32,silu") + 52),
            "block_m,word,outcome,ms,min_ms,max_ms,estimate_ms,seconds,time,message\r\n"
            "16,silu,good,0.25,0.125,0.5,,1.5,2026-11-28T04:00:00Z,\r\n"
            "32,silu,wrong,,,,,1.5,2026-11-28T04:00:00Z,\"off, by ");
  EXPECT_NE(text->find("\"off, by \"\"3\"\"\"\r\n"), std::string::npos);
  EXPECT_NE(exportJournal({}, "xml").status().toString().find("the formats are t4, csv, html"), std::string::npos);
}

} // namespace
} // namespace kiln::tune
