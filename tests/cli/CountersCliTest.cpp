// `kiln run --counters` and `--timeline`: text, JSON, pictures, library kernels, and the answer of a GPU.
#include "runtime/io/File.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

namespace kiln::test {
namespace {

class CountersCliTest : public CliTest {
protected:
  /// 64 elements, of which 60 are added.
  std::vector<std::string> line(const std::string &device) {
    return {"run",       write("add.ptx", addPtx),
            "--grid",    "1",
            "--block",   "64",
            "--arg",     floats("x.npy", 64),
            "--arg",     "out:f32:64",
            "--arg",     "i32:60",
            "--device",  device,
            "--counters"};
  }
};

TEST_F(CountersCliTest, TextHasTotalsAndATableByLine) {
  const Outcome o = kiln(line("emulator:sm_80"));
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  for (const char *text : {"counters: kernel 'add', grid 1,1,1, block 64,1,1\n", "global loads: 2 requests, 8 sectors",
                           "(4.00 a request), 240 bytes asked for", "global stores: 2 requests", "add.ptx:10 ",
                           "global requests", "sectors"})
    EXPECT_NE(o.out.find(text), std::string::npos) << text << "\n" << o.out;
  EXPECT_EQ(o.out.find("wavefronts"), std::string::npos) << "no shared memory, no column\n" << o.out;
}

TEST_F(CountersCliTest, Json) {
  std::vector<std::string> words = line("emulator:sm_90a");
  words.insert(words.end(), {"--json", "--repeat", "3"});
  const Outcome o = kiln(words);
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  const auto j = nlohmann::json::parse(o.out);
  ASSERT_EQ(j["counters"].size(), 1u) << o.out;
  const auto &c = j["counters"][0];
  EXPECT_EQ(c["launches"], 3);
  EXPECT_EQ(c["kernel"], "add");
  EXPECT_EQ(c["global"]["loads"], (nlohmann::json{{"requests", 2}, {"sectors", 8}, {"bytes", 240}}));
  EXPECT_EQ(c["classes"]["float"], 2);
  EXPECT_EQ(c["shared"]["loads"]["wavefronts"], 0);
  std::uint64_t sum = 0;
  for (const auto &row : c["lines"])
    sum += row["instructions"].get<std::uint64_t>();
  EXPECT_EQ(sum, c["instructions"].get<std::uint64_t>());
}

TEST_F(CountersCliTest, LibraryKernels) {
  const Outcome o = kiln({"run", "softmax", "--input", floats("x.npy", 640), "--target", "sm_80", "--counters"});
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_NE(o.out.find("counters: kernel 'softmax'"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("kernels/softmax/Softmax.cpp:"), std::string::npos) << o.out;
}

TEST_F(CountersCliTest, AGpuSaysThatItCannotCount) {
  const Outcome o = kiln(line("cuda:0"), fakeDriver());
  EXPECT_NE(o.status, 0);
  EXPECT_NE(o.err.find("cuda:0 cannot count or draw what a kernel does (the emulator can"), std::string::npos) << o.err;
}

class TimelineCliTest : public CountersCliTest {
protected:
  Outcome draw(const std::vector<std::string> &more) {
    std::vector<std::string> words = line("emulator:sm_80");
    words.insert(words.end(), more.begin(), more.end());
    return kiln(words);
  }
};

TEST_F(TimelineCliTest, SvgAndPage) {
  for (const char *name : {"t.svg", "t.html"}) {
    const Outcome o = draw({"--timeline", file(name)});
    ASSERT_EQ(o.status, 0) << o.out << o.err;
    EXPECT_NE(o.out.find("timeline: kernel 'add', block 0,0,0 -> "), std::string::npos) << o.out;
    const auto read = readTextFile(file(name));
    ASSERT_TRUE(read.ok()) << read.status().toString();
    const std::string &text = *read;
    EXPECT_TRUE(text.starts_with(std::string(name) == "t.svg" ? "<svg" : "<!DOCTYPE html>"));
    for (const char *part : {"add: block 0,0,0 of 1,1,1", ">warp 1<", "store 1", "ptx line 10", "</svg>"})
      EXPECT_NE(text.find(part), std::string::npos) << part;
    EXPECT_EQ(text.find("http", text.find("xmlns") + 40), std::string::npos) << "needs nothing from elsewhere";
  }
}

TEST_F(TimelineCliTest, WhatCannotBeDrawnIsRefused) {
  EXPECT_NE(draw({"--timeline", file("t.png")}).err.find("ends neither in .svg nor in .html"), std::string::npos);
  EXPECT_NE(draw({"--timeline", file("t.svg"), "--timeline-block", "1"}).err.find("the grid is 1,1,1"),
            std::string::npos);
  EXPECT_NE(draw({"--timeline", file("t.svg"), "--timeline-block", "x"}).err.find("with commas between"),
            std::string::npos);
  EXPECT_NE(draw({"--timeline", file("t.svg"), "--timeline-launch", "2"}).err.find("there were 1 launches"),
            std::string::npos);
  EXPECT_NE(draw({"--timeline-block", "0"}).err.find("which is not given"), std::string::npos);
  EXPECT_EQ(files(), (std::vector<std::string>{"add.ptx", "x.npy"}));
}

} // namespace
} // namespace kiln::test
