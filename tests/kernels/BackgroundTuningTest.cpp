// Calls that nothing was kept for have one sweep begun, in a process that gives way and ends with this one; later calls
// take what it kept, but never one that is recorded into a graph or only prepared.  The program `kiln` is a script
// here; TuneBackgroundCliTest.cpp runs the real one.
#include "kernels/attention/AttentionBackwardOperation.h"
#include "kernels/attention/AttentionOperation.h"
#include "kernels/support/Family.h"
#include "kernels/support/Runner.h"
#include "runtime/jit/bench/NullDevice.h"
#include "tests/support/TestTier.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>
#include <thread>

namespace kiln::test {
namespace {

using namespace kernels;
using Launches = std::vector<std::pair<const JitKernel *, Dim3>>;

constexpr auto patience = std::chrono::seconds(60);
bool waitFor(const std::function<bool()> &what) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!what() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return what();
}

std::string textIn(const std::string &file) {
  std::ifstream in(file);
  return (std::stringstream() << in.rdbuf()).str();
}

class BackgroundTuning : public testing::Test {
protected:
  ~BackgroundTuning() override { ::unsetenv("KILN_TUNE_BACKGROUND"); }
  void SetUp() override {
    ASSERT_EQ(::setenv("KILN_TUNE_BACKGROUND", "7", 1), 0); // which a sweep must not inherit
    auto opened = openDevice("emulator:sm_90a");
    ASSERT_TRUE(opened.ok());
    device = std::move(*opened);
    // The program is looked for next to the compiler.
    compiler = path("libkiln-compiler.so");
    std::filesystem::copy_file(KILN_BINARY_DIR "/tests/libkiln-jit-fake-compiler.so", compiler);
    script("while [ ! -e " + path("go") + " ]; do sleep 0.01; done");
    jit = makeJit();
    a.q = a.k = a.v = a.o = tensor({1, 4096, 4, 128});
    a.k.address += 1 << 26, a.v.address += 2 << 26, a.o.address += 3 << 26;
  }
  /// What `kiln` does after it has said its process, its niceness and its words.
  void script(const std::string &rest) {
    std::ofstream(path("kiln")) << "#!/bin/sh\nsleep 0.2\necho \"$$ $(nice) $*\" >> " << path("begun") << "\n"
                                << rest << "\n";
    ASSERT_EQ(::chmod(path("kiln").c_str(), 0700), 0);
  }
  std::unique_ptr<Jit> makeJit(unsigned budget = 3) {
    JitOptions options;
    options.knobs.compiler = compiler;
    options.knobs.cacheDir = path("cache");
    options.knobs.tuneBackground = knob::Number(budget);
    options.onTunedQuestion = [this](const TunedQuestion &q) { asked.push_back(q); };
    options.log = [this](std::string_view line) {
      const std::lock_guard lock(mutex);
      said.emplace_back(line);
    };
    auto made = Jit::create(*device, std::move(options));
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return std::move(*made);
  }
  std::string path(const std::string &name) const { return folder.path() + "/" + name; }
  std::string begun() const { return textIn(path("begun")); }
  std::vector<std::string> linesSaid() {
    const std::lock_guard lock(mutex);
    return said;
  }

  Tensor tensor(std::initializer_list<std::int64_t> shape, DType type = DType::BF16) const {
    Tensor t;
    t.device = device.get();
    t.dtype = type, t.rank = static_cast<unsigned>(shape.size());
    t.address = 1 << 20;
    std::copy(shape.begin(), shape.end(), t.shape.begin());
    std::int64_t stride = 1;
    for (unsigned d = t.rank; d-- > 0; stride *= t.shape[d])
      t.strides[d] = stride;
    return t;
  }
  template <typename Arguments> static Launches launches(const Operation<Arguments> &operation, const Arguments &a) {
    PlanListing list;
    const Status s = operation.describe(a, list);
    EXPECT_TRUE(s.ok()) << s.toString();
    Launches out;
    for (const PlanListing::Launch &l : list.launches)
      out.emplace_back(l.kernel, l.grid);
    return out;
  }
  /// What a call that runs would launch.
  template <typename Arguments>
  Launches run(const Operation<Arguments> &operation, const Arguments &of, const RunOptions &options = {}) {
    const PlanFunction none;
    const CallText text = [] { return std::optional<std::string>("attention --dtype bf16 --with q=1x4096x4x128"); };
    const RunPlan running(*jit, operation.name(), options, none, text);
    return launches(operation, of);
  }
  void keep(const TunedQuestion &question, const TunedValues &values) {
    const Status s = makeJit(0)->keepTuned(question, values, {});
    ASSERT_TRUE(s.ok()) << s.toString();
  }
  void go() const { std::ofstream(path("go")) << "go"; }

  TemporaryDirectory folder;
  std::string compiler;
  std::mutex mutex;
  std::vector<std::string> said; ///< under the mutex
  std::unique_ptr<Device> device;
  std::vector<TunedQuestion> asked;
  AttentionArguments a;
  std::unique_ptr<Jit> jit; // ends before what it tells
};

TEST_F(BackgroundTuning, LaterCallsTakeWhatASweepKept) {
  const AttentionOperation operation(*jit);
  const Launches usual = launches(operation, a);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(begun(), ""); // nothing has run
  EXPECT_EQ(jit->tunedGeneration(), 1u);

  const PlanFunction none;
  const CallText text;
  const RunOptions usually;
  std::optional<RunPlan> early(std::in_place, *jit, "attention", usually, none, text);
  EXPECT_EQ(launches(operation, a), usual); // it has seen the first generation
  EXPECT_EQ(begun(), "");                   // and says no words
  early.reset();
  // A call with words; that the question was asked before does not matter.
  const AttentionOperation other(*jit);
  EXPECT_EQ(run(other, a), usual);
  ASSERT_TRUE(waitFor([&] { return begun().find('\n') != std::string::npos; }));
  const std::string words = begun();
  for (const std::string &part :
       {std::string(" 19 tune attention --dtype bf16 --with q=1x4096x4x128 "), std::string("--tune-background 0"),
        "--cache-dir " + path("cache"), "--compiler " + compiler, std::string("--device=emulator:sm_90a"),
        std::string("--code-target=sm_90a"), std::string("--budget=3"), "--ends-with=" + std::to_string(::getpid())})
    EXPECT_NE(words.find(part), std::string::npos) << words;
  // Not once more while it runs.
  EXPECT_EQ(run(other, a), usual);
  early.emplace(*jit, "attention", usually, none, text);
  EXPECT_EQ(launches(other, a), usual);

  keep(TunedQuestion(asked[0]), {64, 32, 4, 3});
  EXPECT_EQ(launches(other, a), usual);
  go();
  ASSERT_TRUE(waitFor([&] { return jit->tunedGeneration() == 2; }));
  EXPECT_EQ(launches(other, a), usual); // a call that began before sees one answer
  early.reset();
  EXPECT_EQ(launches(other, a), usual); // nothing runs
  AttentionArguments told = a;
  told.tiling.blockM = 64, told.tiling.blockN = 32, told.tiling.warps = 4, told.tiling.stages = 3;
  const Launches tuned = launches(other, told);
  ASSERT_NE(tuned, usual);
  EXPECT_EQ(run(other, a), tuned);
  EXPECT_EQ(run(operation, a), tuned); // which has asked before, too
  EXPECT_EQ(launches(other, a), usual);
  EXPECT_EQ(begun(), words);
}

TEST_F(BackgroundTuning, ACallThatIsRecordedBeginsAndTakesNothing) {
  const AttentionOperation operation(*jit);
  NullStream stream;
  stream.capturing = true;
  const Launches usual = run(operation, a, {.stream = &stream});
  keep(TunedQuestion(asked.at(0)), {64, 32, 4, 3});
  EXPECT_EQ(run(operation, a, {.stream = &stream}), usual);
  EXPECT_NE(run(operation, a), usual);
  EXPECT_EQ(run(operation, a, {.stream = &stream}), usual);
  EXPECT_EQ(begun(), "");
}

/// The launches of one call share a sweep.
TEST_F(BackgroundTuning, EachPartOfACallIsAnsweredByOneSweep) {
  AttentionBackwardArguments b;
  b.of = a;
  b.of.lse = tensor({1, 4, 4096}, DType::F32);
  b.of.lse->address += 4 << 26;
  b.dO = b.dq = b.dk = b.dv = a.q;
  std::uint64_t next = 5;
  for (Tensor *t : {&b.dO, &b.dq, &b.dk, &b.dv})
    t->address += next++ << 26;
  b.deterministic = true;
  const AttentionBackwardOperation operation(*jit);
  const Launches usual = run(operation, b);
  ASSERT_TRUE(waitFor([&] { return !begun().empty(); }));
  const std::vector<TunedQuestion> questions = asked;
  ASSERT_FALSE(questions.empty());
  for (const TunedQuestion &q : questions)
    keep(q, {64, 64, 4, 1});
  go();
  ASSERT_TRUE(waitFor([&] { return jit->tunedGeneration() == 2; }));
  AttentionBackwardArguments told = b;
  for (Tiling *t : {&told.ofKeys, &told.ofQueries})
    t->blockM = t->blockN = 64, t->warps = 4, t->stages = 1;
  EXPECT_EQ(run(operation, b), launches(operation, told));
  EXPECT_NE(run(operation, b), usual);
  EXPECT_EQ(std::ranges::count(begun(), '\n'), 1);
}

/// The winner of a caller that has measured its workspace before may need more.
TEST_F(BackgroundTuning, AWorkspaceThatIsTooSmallForTheWinnerIsEnoughForTheFirstAnswer) {
  std::vector<std::size_t> reserved;
  std::size_t ofWinner = 1024;
  const PlanFunction call = [&](Plan &plan) -> Status {
    RunPlan *const running = RunPlan::running(*jit);
    const std::size_t needed = running && running->tunedGeneration() > 0 ? ofWinner : 1024;
    reserved.push_back(needed);
    return plan.workspace({{"part", needed}}).status();
  };
  const CallText text;
  RunOptions with;
  with.workspace = 1 << 20, with.workspaceBytes = 1024;
  EXPECT_TRUE(RunPlan::run(*jit, "op", with, call, text).ok());
  ofWinner = 4096;
  EXPECT_TRUE(RunPlan::run(*jit, "op", with, call, text).ok());
  with.workspaceBytes = 4096;
  EXPECT_TRUE(RunPlan::run(*jit, "op", with, call, text).ok());
  EXPECT_EQ(reserved, (std::vector<std::size_t>{1024, 4096, 1024, 4096}));
  with.workspaceBytes = 512; // for either
  EXPECT_FALSE(RunPlan::run(*jit, "op", with, call, text).ok());
}

TEST_F(BackgroundTuning, AFailureIsSaidOnceAndDisturbsNothing) {
  script("echo 'kiln tune: no device today' >&2; exit 4");
  const AttentionOperation operation(*jit);
  const Launches usual = run(operation, a);
  ASSERT_TRUE(waitFor([&] { return !linesSaid().empty(); }));
  EXPECT_NE(linesSaid()[0].find("in the background failed"), std::string::npos) << linesSaid()[0];
  EXPECT_NE(linesSaid()[0].find("no device today"), std::string::npos) << linesSaid()[0];
  EXPECT_EQ(run(operation, a), usual);
  EXPECT_EQ(run(AttentionOperation(*jit), a), usual);
  EXPECT_EQ(jit->tunedGeneration(), 1u);
  jit.reset();
  EXPECT_EQ(linesSaid().size(), 1u);
  EXPECT_EQ(std::ranges::count(begun(), '\n'), 1);
}

TEST_F(BackgroundTuning, WithoutTheProgramNothingHappensButALine) {
  std::filesystem::remove(path("kiln"));
  (void)run(AttentionOperation(*jit), a);
  ASSERT_TRUE(waitFor([&] { return !linesSaid().empty(); }));
  EXPECT_NE(linesSaid()[0].find("there is no program kiln"), std::string::npos) << linesSaid()[0];
}

/// What another process has kept since the first call needs no sweep.
TEST_F(BackgroundTuning, AnswersOfOthersAreTaken) {
  const AttentionOperation operation(*jit);
  (void)launches(operation, a);
  keep(TunedQuestion(asked.at(0)), {64, 32, 4, 3});
  AttentionArguments told = a;
  told.tiling.blockM = 64, told.tiling.blockN = 32, told.tiling.warps = 4, told.tiling.stages = 3;
  EXPECT_EQ(run(operation, a), launches(operation, told));
  EXPECT_EQ(begun(), "");
}

TEST_F(BackgroundTuning, TheSweepEndsWithTheJit) {
  script("exec sleep 600");
  (void)run(AttentionOperation(*jit), a);
  ASSERT_TRUE(waitFor([&] { return begun().find('\n') != std::string::npos; }));
  const pid_t process = std::stoi(begun());
  EXPECT_EQ(::kill(process, 0), 0);
  const auto before = std::chrono::steady_clock::now();
  jit.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, patience / 2);
  EXPECT_NE(::kill(process, 0), 0);
}

TEST_F(BackgroundTuning, TheKnobsTurnItOff) {
  const auto without = makeJit(0);
  EXPECT_EQ(without->tunedGeneration(), 0u);
  without->tuneInBackground({}, "attention");
  JitOptions options;
  options.knobs.compiler = compiler, options.knobs.cacheDir = path("cache");
  options.knobs.tuneBackground = knob::Number(3);
  options.knobs.tuned = false;
  const auto notAsking = Jit::create(*device, options);
  ASSERT_TRUE(notAsking.ok());
  EXPECT_EQ((*notAsking)->tunedGeneration(), 0u);
  options.knobs.tuned = true, options.knobs.cacheDir = "off"; // a winner would be kept nowhere
  const auto nowhere = Jit::create(*device, options);
  ASSERT_TRUE(nowhere.ok());
  EXPECT_EQ((*nowhere)->tunedGeneration(), 0u);
  EXPECT_EQ(begun(), "");
}

/// Every family's calls in words, each once however often and from wherever it is made: through its table, or by its
/// struct.
TEST_F(BackgroundTuning, CallsAreRecorded) {
  JitOptions options;
  options.knobs.compiler = compiler;
  options.knobs.recordCalls = path("calls");
  auto made = Jit::create(*device, options);
  ASSERT_TRUE(made.ok());
  // The fake compiler has no code for them: calls fail after they have been recorded.
  const auto callOf = [&](const char *family, const TensorTypes &types, const OptionValues &values) {
    const Callable &callable = *(*findFamily(family))->callable;
    Arrays inputs;
    for (const auto &[name, type] : types)
      inputs[name] = Array{type.dtype, type.shape, std::vector<std::byte>(type.elements() * dtypeBytes(type.dtype))};
    for (const std::int64_t i : {1, 2}) // offsets, where there are any
      if (const auto table = inputs.find("cu_seqlens"); table != inputs.end()) {
        const std::int64_t value = 8 * i;
        std::memcpy(table->second.data.data() + 8 * i, &value, 8);
      }
    const auto placed = PlacedCall::createForPlans(*device, callable, inputs, values);
    ASSERT_TRUE(placed.ok()) << placed.status().toString();
    EXPECT_FALSE(callable.run(**made, placed->call(), {}).ok());
  };
  const auto of = [](Shape shape) { return TensorType{DType::BF16, std::move(shape)}; };
  const TensorType q{DType::BF16, {1, 4096, 4, 128}};
  for (int i = 0; i < 2; ++i) {
    callOf("gla",
           {{"q", of({1, 16, 1, 16})},
            {"k", of({1, 16, 1, 16})},
            {"v", of({1, 16, 1, 16})},
            {"g", {DType::F32, {1, 16, 1, 16}}}},
           {});
    callOf("gla",
           {{"q", of({1, 16, 1, 16})},
            {"k", of({1, 16, 1, 16})},
            {"v", of({1, 16, 1, 16})},
            {"g", of({1, 16, 1, 16})},
            {"cu_seqlens", {DType::I64, {3}}}}, // which no words make up
           {});
    callOf("softmax", {{"x", {DType::F16, {8, 100}}}}, {});
    callOf("attention", {{"q", q}, {"k", q}, {"v", q}}, {{"causal", true}, {"window_left", 5}, {"scale", 0.125}});
    a.causal = true, a.windowLeft = 5, a.scale = 0.125f;
    EXPECT_FALSE(AttentionOperation(**made).run(a).ok());
    a.functions = AttentionFunctions({.mask = [](const AttentionPairs &p) { return p.query >= p.key; }});
    EXPECT_FALSE(AttentionOperation(**made).run(a).ok());
    a.functions = {};
  }
  EXPECT_EQ(textIn(path("calls")),
            "gla --dtype bf16 --with q=1x16x1x16 --with k=1x16x1x16 --with v=1x16x1x16 --with g=1x16x1x16:f32\n"
            "softmax --dtype f16 --with x=8x100\n"
            "attention --dtype bf16 --with q=1x4096x4x128 --with k=1x4096x4x128 --with "
            "v=1x4096x4x128 --with causal --with window=5,-1 --with scale=0.125\n");
}

TEST_F(BackgroundTuning, AListThatCannotBeWrittenIsSaidOnce) {
  JitOptions options;
  options.knobs.compiler = compiler;
  options.knobs.recordCalls = path("no/such/folder/calls");
  options.log = [this](std::string_view line) { said.emplace_back(line); };
  auto made = Jit::create(*device, options);
  ASSERT_TRUE(made.ok());
  for (int i = 0; i < 2; ++i)
    EXPECT_FALSE(AttentionOperation(**made).run(a).ok());
  std::erase_if(said, [](const std::string &line) { return line.find("KILN_RECORD_CALLS") == std::string::npos; });
  EXPECT_EQ(said.size(), 1u);
}

} // namespace
} // namespace kiln::test
