// A program's call is tuned by the real `kiln tune` while the program goes on, and what calls it makes is a list that
// `kiln warm` and `kiln tune --calls` read.
#include "kernels/support/Family.h"
#include "kernels/support/Runner.h"
#include "tests/cli/Program.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::test {
namespace {

using Json = nlohmann::json;
using namespace kernels;

class TuneBackgroundCliTest : public CachedCliTest {
protected:
  ~TuneBackgroundCliTest() override { ::unsetenv("KILN_RECORD_CALLS"); }
  std::string read(const std::string &name) const {
    std::ifstream in(file(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(TuneBackgroundCliTest, ACallIsTunedWhileTheProgramGoesOn) {
  ASSERT_EQ(::setenv("KILN_RECORD_CALLS", file("calls").c_str(), 1), 0); // what a sweep tries is no call of ours
  auto device = openDevice("emulator:sm_90a");
  ASSERT_TRUE(device.ok());
  JitOptions options;
  options.knobs.cacheDir = file("cache");
  options.knobs.compiler = KILN_BINARY_DIR "/bin/libkiln-compiler.so";
  options.knobs.tuneBackground = knob::Number(2);
  std::vector<TunedQuestion> asked;
  options.onTunedQuestion = [&](const TunedQuestion &q) { asked.push_back(q); };
  auto jit = Jit::create(**device, options);
  ASSERT_TRUE(jit.ok()) << jit.status().toString();
  const Callable &matmul = *(*findFamily("matmul"))->callable;
  const Callable::Planner planner = matmul.bind(**jit);
  Arrays inputs;
  for (const char *name : {"a", "b"}) {
    Array &array = inputs[name] = Array{DType::BF16, {64, 64}, std::vector<std::byte>(64 * 64 * 2)};
    for (std::size_t i = 0; i < 64 * 64; ++i) { // numbers from 1 to 1.99, whose products bf16 rounds
      const auto bits = static_cast<std::uint16_t>(0x3f80 + (i * 37 + (*name == 'a' ? 5 : 11)) % 128);
      std::memcpy(array.data.data() + 2 * i, &bits, 2);
    }
  }
  const auto run = [&]() -> std::vector<std::byte> {
    auto placed = PlacedCall::create(**device, matmul, inputs, {});
    EXPECT_TRUE(placed.ok()) << placed.status().toString();
    const Status s = matmul.run(**jit, planner, placed->call(), {});
    EXPECT_TRUE(s.ok()) << s.toString();
    const Result<Arrays> outputs = placed->readOutputs();
    EXPECT_TRUE(outputs.ok()) << outputs.status().toString();
    return outputs->at("out").data;
  };
  const std::vector<std::byte> first = run();
  ASSERT_EQ(asked.size(), 2u);                                                   // the second time as a call that runs
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(600); // it gives way to all other tests
  while (!HasFailure() && (*jit)->tunedGeneration() == 1 && std::chrono::steady_clock::now() < end) {
    EXPECT_EQ(run(), first);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ASSERT_EQ((*jit)->tunedGeneration(), 2u);
  EXPECT_EQ(asked.size(), 2u); // remembered
  EXPECT_EQ(run(), first);
  EXPECT_EQ(asked.size(), 3u); // and asked once more
  options.knobs.tuneBackground = {};
  const auto later = Jit::create(**device, options);
  EXPECT_TRUE((*later)->tuned(asked[0]));
  EXPECT_EQ(read("calls"), "");
}

TEST_F(TuneBackgroundCliTest, RecordedCallsAreWarmedAndTuned) {
  const std::vector<std::vector<std::string>> calls = {
      {"softmax", "--dtype", "f16", "--with", "x=8x100"},
      {"matmul", "--dtype", "bf16", "--with", "a=64x64", "--with", "b=64x64"},
      {"rwkv7", "--with", "r=1x64x1x16", "--with", "w=1x64x1x16:f32", "--with", "k=1x64x1x16", "--with", "v=1x64x1x16",
       "--with", "a=1x64x1x16", "--with", "b=1x64x1x16", "--with", "final_state=1", "--with", "safe_gate"}};
  for (std::vector<std::string> words : calls) {
    words.insert(words.begin(), "bench");
    words.insert(words.end(),
                 {"--device", "emulator:sm_80", "--record-calls", file("calls"), "--cache-dir", file("cache")});
    const Outcome o = kiln(words);
    ASSERT_EQ(o.status, 0) << o.err;
  }
  const std::string list = read("calls");
  EXPECT_EQ(std::ranges::count(list, '\n'), 3) << list;
  EXPECT_NE(list.find("softmax --dtype f16 --with x=8x100\n"), std::string::npos) << list;
  EXPECT_NE(list.find(" --with w=1x64x1x16:f32 "), std::string::npos) << list;
  EXPECT_NE(list.find(" --with final_state=1 --with safe_gate\n"), std::string::npos) << list;
  const Outcome warm = kiln({"warm", file("calls"), "--device", "emulator:sm_80", "--cache-dir", file("cache")});
  EXPECT_EQ(warm.status, 0) << warm.err;
  EXPECT_NE(warm.out.find("3 calls for sm_80: 0 kernels compiled"), std::string::npos) << warm.out;
  const Outcome tune = kiln({"tune", "--calls", file("calls"), "--target", "sm_90a", "--dry-run", "--json"});
  EXPECT_EQ(tune.status, 0) << tune.err;
  const Json sweeps = Json::parse(tune.out)["sweeps"];
  ASSERT_EQ(sweeps.size(), 3u);
  EXPECT_EQ(sweeps[0]["skipped"], true); // softmax has no tuned parameters
  EXPECT_EQ(sweeps[1]["kernel"], "matmul");
  EXPECT_EQ(sweeps[2]["kernel"], "rwkv7");
  EXPECT_NE(sweeps[2]["call"].dump().find("safe_gate"), std::string::npos);
  EXPECT_NE(sweeps[2]["call"].dump().find("w=1x64x1x16:f32"), std::string::npos);
}

TEST_F(TuneBackgroundCliTest, AListNamesItsKernels) {
  std::ofstream(file("calls")) << "matmul add\nmatmul --dtype bf16 --with a=64x64\n";
  const Outcome wrong = kiln({"tune", "--calls", file("calls"), "--target", "sm_90a", "--dry-run"});
  EXPECT_EQ(wrong.status, 2) << wrong.out;
  EXPECT_NE(wrong.err.find("line 1: a line is one call"), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("line 2: "), std::string::npos) << wrong.err;
  for (const std::vector<std::string> &more :
       {std::vector<std::string>{"matmul"}, {"--with", "a=64x64"}, {"--dtype", "bf16"}}) {
    std::vector<std::string> words = {"tune", "--calls", file("calls"), "--target", "sm_90a", "--dry-run"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome o = kiln(words);
    EXPECT_EQ(o.status, 2) << o.out;
    EXPECT_NE(o.err.find("names kernels, types and sizes"), std::string::npos) << o.err;
  }
}

/// The shell is the program; what it starts writes its own number down.
TEST_F(TuneBackgroundCliTest, ItEndsWithItsProgramAndSoDoesAllThatItStarts) {
  const std::string sweep =
      "kiln tune matmul --dtype bf16 --with a=256x256 --with b=256x256 --target sm_90a --cache-dir " + file("cache") +
      " --ends-with ";
  std::ofstream(file("program")) << KILN_BINARY_DIR "/bin/" << sweep << "$$ >/dev/null 2>&1 & echo $! > "
                                 << file("sweep") << "; exec sleep 600\n";
  const pid_t program = ::fork();
  ASSERT_GE(program, 0);
  if (program == 0) {
    ::execl("/bin/sh", "sh", file("program").c_str(), static_cast<char *>(nullptr));
    ::_exit(127);
  }
  // Of its process group.
  const auto members = [&](const std::string &group) {
    std::vector<std::string> out;
    for (const auto &entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream in(entry.path() / "stat");
      std::string line;
      if (!std::getline(in, line))
        continue;
      std::istringstream rest(line.substr(line.rfind(')') + 2));
      std::string state, parent, its;
      rest >> state >> parent >> its;
      if (its == group && state != "Z")
        out.push_back(entry.path().filename());
    }
    return out;
  };
  const auto waitFor = [](const std::function<bool()> &what) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!what() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return what();
  };
  std::string group;
  EXPECT_TRUE(waitFor([&] {
    group = read("sweep");
    if (!group.ends_with('\n'))
      return false;
    group.pop_back();
    return members(group).size() > 1; // it has begun to measure
  }));
  EXPECT_EQ(::kill(program, SIGKILL), 0);
  EXPECT_EQ(::waitpid(program, nullptr, 0), program);
  EXPECT_TRUE(waitFor([&] { return members(group).empty(); }));
  // One whose program is gone does not begin.
  const Outcome late = kiln({"tune", "matmul", "--dtype", "bf16", "--with", "a=64x64", "--with", "b=64x64", "--target",
                             "sm_90a", "--ends-with", std::to_string(program), "--journal", file("journal")});
  EXPECT_EQ(late.out, "");
  EXPECT_EQ(read("journal"), "");
}

} // namespace
} // namespace kiln::test
