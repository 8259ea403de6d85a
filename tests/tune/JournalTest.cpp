#include "runtime/tune/Merge.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::tune {
namespace {

class JournalTest : public testing::Test {
protected:
  std::string file(const std::string &name) const { return folder.path() + "/" + name; }
  static std::string contents(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  static void write(const std::string &path, const std::string &text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }
  static JournalHeader header() {
    return {"matmul", "bf16", "sm_90a", "emulator:sm_90a", "a=256x256, b=256x256", "predicted", "0123"};
  }
  static Entry entry(int n, Outcome outcome = Outcome::Good) {
    Entry e;
    e.configuration = {{"block_m", std::to_string(n)}, {"flag", "true"}, {"word", "silu"}};
    e.outcome = outcome;
    if (e.good())
      e.milliseconds = 0.1 * n, e.least = 0.09 * n, e.greatest = 0.2 * n;
    else
      e.message = "a \"quoted\" line\nand a second one";
    e.estimate = 1.0 / n;
    e.seconds = 2.5, e.time = "2026-11-28T04:00:00Z";
    return e;
  }
  /// A journal of three entries.
  std::string three(const std::string &name) const {
    auto journal = Journal::create(file(name), header());
    EXPECT_TRUE(journal.ok());
    for (const Entry &e : {entry(1), entry(2, Outcome::Wrong), entry(3)})
      EXPECT_TRUE((*journal)->append(e).ok());
    return file(name);
  }

  test::TemporaryDirectory folder;
};

TEST_F(JournalTest, GivesBackWhatWasWritten) {
  const auto read = readJournal(three("j"));
  ASSERT_TRUE(read.ok()) << read.status().toString();
  EXPECT_EQ(read->header, header());
  ASSERT_EQ(read->entries.size(), 3u);
  const Entry &good = read->entries[2], &wrong = read->entries[1];
  EXPECT_EQ(good.key(), "block_m=3, flag=true, word=silu");
  EXPECT_EQ(good.milliseconds, 0.1 * 3); // bit for bit
  EXPECT_EQ(good.least, 0.09 * 3);
  EXPECT_EQ(good.greatest, 0.2 * 3);
  EXPECT_EQ(good.estimate, 1.0 / 3);
  EXPECT_EQ(wrong.outcome, Outcome::Wrong);
  EXPECT_EQ(wrong.message, "a \"quoted\" line\nand a second one");
  EXPECT_EQ(wrong.seconds, 2.5);
  EXPECT_FALSE(read->torn);
}

TEST_F(JournalTest, KeepsTheConditions) {
  Entry e = entry(1);
  e.conditions = {{"throttled: power cap", "used by another process: 1 (x)"}, 1500, 3201, 0};
  {
    auto journal = Journal::create(file("j"), header());
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->append(e).ok());
    ASSERT_TRUE((*journal)->append(entry(2)).ok());
  }
  const auto read = readJournal(file("j"));
  ASSERT_TRUE(read.ok()) << read.status().toString();
  const Conditions &c = read->entries[0].conditions, &none = read->entries[1].conditions;
  EXPECT_EQ(c.notes, e.conditions.notes);
  EXPECT_EQ(c.smMegahertz, 1500u);
  EXPECT_EQ(c.memoryMegahertz, 3201u);
  EXPECT_EQ(c.busyPercentBefore, 0u);
  EXPECT_TRUE(none.notes.empty() && !none.smMegahertz && !none.memoryMegahertz && !none.busyPercentBefore);
  EXPECT_NE(contents(file("j")).find("\"notes\":[\"throttled: power cap\",\"used by"), std::string::npos);
  ASSERT_EQ(countNotes(read->entries).size(), 2u);
  EXPECT_EQ(countNotes(read->entries)[0].note, "throttled: power cap");
}

TEST_F(JournalTest, CutAtEveryByteItKeepsTheWholeLines) {
  const std::string whole = contents(three("whole"));
  const std::string path = file("cut");
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    const std::string left = whole.substr(0, n);
    write(path, left);
    const auto lines = static_cast<std::size_t>(std::count(left.begin(), left.end(), '\n'));
    {
      const auto journal = Journal::open(path, header());
      ASSERT_TRUE(journal.ok()) << n << ": " << journal.status().toString();
      EXPECT_EQ((*journal)->entries().size(), lines ? lines - 1 : 0) << n;
      EXPECT_EQ((*journal)->wasTorn(), n > 0 && left.back() != '\n') << n;
      ASSERT_TRUE((*journal)->append(entry(9)).ok());
    }
    const auto read = readJournal(path);
    ASSERT_TRUE(read.ok()) << n << ": " << read.status().toString();
    EXPECT_EQ(read->entries.size(), (lines ? lines - 1 : 0) + 1) << n;
    EXPECT_EQ(read->entries.back().key(), entry(9).key()) << n;
  }
}

TEST_F(JournalTest, AKilledProcessLeavesEveryLineThatItFinished) {
  for (int round = 0; round < 8; ++round) {
    const std::string path = file("killed" + std::to_string(round));
    int said[2];
    ASSERT_EQ(::pipe(said), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto journal = Journal::create(path, header());
      for (int n = 1; journal.ok() && n < 100000; ++n)
        if ((*journal)->append(entry(n)).ok() && ::write(said[1], "x", 1) != 1)
          break;
      ::_exit(0);
    }
    ::close(said[1]);
    std::size_t finished = 0;
    char byte = 0;
    while (finished < static_cast<std::size_t>(3 * round + 1) && ::read(said[0], &byte, 1) == 1)
      ++finished;
    ::kill(child, SIGKILL);
    while (::read(said[0], &byte, 1) == 1)
      ++finished;
    ::close(said[0]);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const auto journal = Journal::open(path, header());
    ASSERT_TRUE(journal.ok()) << journal.status().toString();
    EXPECT_GE((*journal)->entries().size(), finished);
    EXPECT_LE((*journal)->entries().size(), finished + 1); // written, and not said
  }
}

TEST_F(JournalTest, OthersAreRefusedAndLeftAlone) {
  const auto refused = [&](const std::string &path, const JournalHeader &wanted, const std::string &part) {
    const std::string before = contents(path);
    const auto opened = Journal::open(path, wanted);
    ASSERT_FALSE(opened.ok()) << part;
    EXPECT_NE(opened.status().toString().find(part), std::string::npos) << opened.status().toString();
    EXPECT_EQ(contents(path), before);
  };
  const std::string path = three("j");
  JournalHeader other = header();
  other.kernel = "attention";
  refused(path, other, "its kernel is \"matmul\", not \"attention\"");
  other = header(), other.compiler = "4567";
  refused(path, other, "its compiler is \"0123\"");
  other = header(), other.call = "a=1x1, b=1x1";
  refused(path, other, "its call is");
  std::string text = contents(path);
  text.replace(text.find("\"version\":1"), 11, "\"version\":2");
  write(file("version"), text);
  refused(file("version"), header(), "is of version 2; this program reads 1");
  write(file("notes"), "shopping list\n");
  refused(file("notes"), header(), "is no journal");
  write(file("letters"), "no end of a line");
  refused(file("letters"), header(), "is no journal");
  write(file("middle"), contents(path) + "{\"configuration\"\n" + "{}\n");
  refused(file("middle"), header(), "line 5: it is no JSON object");
  const auto made = Journal::create(path, header());
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().toString().find("never overwritten"), std::string::npos);
  EXPECT_FALSE(Journal::open(file("none") + "/j", header()).ok());
  EXPECT_FALSE(Journal::open(folder.path(), header()).ok());
}

/// Times with what the launch before left in the caches do not compare with those without.
TEST_F(JournalTest, HowItWasTimedIsPartOfTheSweep) {
  JournalHeader warm = header();
  warm.objective = "measured", warm.timing = timingWarm;
  JournalHeader cold = warm;
  cold.timing = timingCold;
  for (const auto &[name, h] : {std::pair("warm", warm), std::pair("cold", cold)})
    ASSERT_TRUE(Journal::create(file(name), h).ok());
  const Status refused = Journal::open(file("warm"), cold).status();
  EXPECT_NE(refused.message().find("its timing is \"warm\", not \"cold\""), std::string::npos) << refused.message();
  EXPECT_FALSE(mergeJournals(file("both"), {file("warm"), file("cold")}).ok());
  // Of older programs: measured ones are warm and go on, those of the model have no such field.
  std::string text = contents(file("warm"));
  const std::string field = ",\"timing\":\"warm\"";
  ASSERT_NE(text.find(field), std::string::npos) << text;
  write(file("old"), text.erase(text.find(field), field.size()));
  EXPECT_TRUE(Journal::open(file("old"), warm).ok());
  EXPECT_EQ(readJournal(file("old"))->header, warm);
  EXPECT_TRUE(mergeJournals(file("merged"), {file("old"), file("warm")}).ok());
  EXPECT_EQ(contents(three("predicted")).find("timing"), std::string::npos);
}

/// Another version's numbers of a GPU make no other sweep.
TEST_F(JournalTest, RoofsAreKeptAndNotCompared) {
  JournalHeader roofed = header();
  roofed.roofline = Roofline{4e9, 1e9, 1e13, 1e12, "G"};
  ASSERT_TRUE(Journal::create(file("j"), roofed).ok());
  EXPECT_EQ(readJournal(file("j"))->header, roofed);
  EXPECT_TRUE(Journal::open(file("j"), header()).ok());
  std::string text = contents(file("j"));
  text.replace(text.find("4000000000"), 10, "0");
  write(file("zero"), text);
  EXPECT_EQ(readJournal(file("zero"))->header, header());
}

TEST_F(JournalTest, OneProcessAtATime) {
  const auto journal = Journal::create(file("j"), header());
  ASSERT_TRUE(journal.ok());
  const auto second = Journal::open(file("j"), header());
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().toString().find("in use"), std::string::npos);
}

TEST_F(JournalTest, MergeTakesEachConfigurationOnce) {
  {
    const auto a = Journal::create(file("a"), header()), b = Journal::create(file("b"), header());
    ASSERT_TRUE(a.ok() && b.ok());
    for (const Entry &e : {entry(1), entry(2, Outcome::TimedOut)})
      ASSERT_TRUE((*a)->append(e).ok());
    Entry again = entry(1);
    again.milliseconds = 7;
    for (const Entry &e : {again, entry(2), entry(3)})
      ASSERT_TRUE((*b)->append(e).ok());
  }
  const auto merged = mergeJournals(file("all"), {file("a"), file("b")});
  ASSERT_TRUE(merged.ok()) << merged.status().toString();
  EXPECT_EQ(merged->entries, 3u);
  EXPECT_EQ(merged->duplicates, 2u);
  const auto read = readJournal(file("all"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->header, header());
  EXPECT_EQ(read->entries[0].milliseconds, 0.1); // the first that is good
  EXPECT_EQ(read->entries[1].outcome, Outcome::Good);
  EXPECT_EQ(read->entries[2].key(), entry(3).key());

  const std::string before = contents(file("all"));
  EXPECT_FALSE(mergeJournals(file("all"), {file("a"), file("b")}).ok());
  EXPECT_EQ(contents(file("all")), before);
  JournalHeader other = header();
  other.target = "sm_80";
  ASSERT_TRUE(Journal::create(file("c"), other).ok());
  const auto mixed = mergeJournals(file("mixed"), {file("a"), file("c")});
  ASSERT_FALSE(mixed.ok());
  EXPECT_NE(mixed.status().toString().find("its target is \"sm_80\""), std::string::npos);
  EXPECT_NE(::access(file("mixed").c_str(), F_OK), 0);
}

} // namespace
} // namespace kiln::tune
