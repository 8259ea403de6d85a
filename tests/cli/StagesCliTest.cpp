// Dumps that say how to go on from them, kernels given at a later stage, overrides, times of passes, SASS.
#include "runtime/io/File.h"
#include "support/Text.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sys/wait.h>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class StagesCliTest : public CachedCliTest {
protected:
  static std::string scale() { return KILN_SOURCE_DIR "/docs/examples/scale.mlir"; }

  /// Runs a line in the folder of dumps; standard output.
  std::string shell(const std::string &line) const {
    const std::string command = "cd '" + file("dump") + "' && PATH=" KILN_BINARY_DIR "/bin:$PATH && " + line + " >" +
                                file("out") + " 2>" + file("err");
    const int state = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << line << "\n" << *readTextFile(file("err"));
    return *readTextFile(file("out"));
  }

  /// The dump whose name ends so.
  std::string dump(const std::string &suffix) const {
    std::string found;
    for (const auto &entry : fs::directory_iterator(file("dump")))
      if (entry.path().filename().string().ends_with("." + suffix) &&
          entry.path().filename().string().find("-") == std::string::npos)
        found = entry.path();
    EXPECT_FALSE(found.empty()) << suffix;
    return found;
  }

  std::vector<std::string> runLine(const std::string &program) const {
    return {"run",   program,   "--grid", "4",       "--arg",    file("x.npy"),        "--arg",    "out:f32:500",
            "--arg", "f32:0.5", "--arg",  "i32:500", "--output", "1:" + file("y.npy"), "--target", "sm_80"};
  }
};

/// The first line of every dump is a command that makes the PTX of the whole compile.
TEST_F(StagesCliTest, EveryDumpDoesTheRest) {
  for (const bool lines : {false, true}) {
    fs::remove_all(file("dump"));
    std::vector<std::string> line = {"compile",  "softmax",      "--target",   "sm_90a",     "--divisible",   "x=16",
                                     "--equals", "x_stride_1=1", "--dump-dir", file("dump"), "--dump-passes", "1"};
    if (lines)
      line.insert(line.end(), {"--line-info", "--no-tensor-maps"});
    const Outcome whole = kiln(line);
    ASSERT_EQ(whole.status, 0) << whole.err;
    unsigned stages = 0, passes = 0;
    for (const auto &entry : fs::directory_iterator(file("dump"))) {
      const std::string name = entry.path().filename();
      if (!name.ends_with(".mlir"))
        continue;
      const std::string text = *readTextFile(entry.path()), first(split(text, '\n')[0]);
      ASSERT_TRUE(first.starts_with("// kiln")) << name << ": " << first;
      EXPECT_TRUE(shell(first.substr(3)) == whole.out) << name << ": " << first;
      ++(first.starts_with("// kiln-opt ") ? passes : stages);
    }
    EXPECT_EQ(stages, 4u);
    EXPECT_GT(passes, 25u);
  }
}

TEST_F(StagesCliTest, AKernelRunsFromTheTextOfAnyStage) {
  floats("x.npy", 500);
  ASSERT_EQ(kiln(runLine(scale())).status, 0);
  const std::string expected = *readTextFile(file("y.npy"));
  ASSERT_EQ(kiln({"compile", scale(), "--target", "sm_80", "--divisible", "x=16", "--dump-dir", file("dump")}).status,
            0);
  for (const char *stage : {"source.mlir", "tile.mlir", "tile_gpu.mlir", "lowering.mlir"}) {
    fs::remove(file("y.npy"));
    const Outcome o = kiln(runLine(dump(stage)));
    ASSERT_EQ(o.status, 0) << stage << o.err;
    EXPECT_EQ(*readTextFile(file("y.npy")), expected) << stage;
  }
  // The text says for which target, and takes no passes for stages that are over.
  const Outcome other = kiln({"compile", dump("tile_gpu.mlir"), "--target", "sm_90a"});
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("the program is written for sm_80, not for sm_90a"), std::string::npos) << other.err;
  const Outcome late = kiln({"compile", dump("tile_gpu.mlir"), "--target", "sm_80", "--passes", "tile=cse"});
  EXPECT_EQ(late.status, 2);
  EXPECT_NE(late.err.find("passes cannot be added"), std::string::npos) << late.err;
}

/// The facts that code was made for stay with its text: arguments that break them are refused.
TEST_F(StagesCliTest, FactsStayWithTheText) {
  ASSERT_EQ(kiln({"compile", scale(), "--target", "sm_80", "--equals", "n=400", "--divisible", "x=16", "--dump-dir",
                  file("dump")})
                .status,
            0);
  for (const char *stage : {"tile.mlir", "tile_gpu.mlir", "lowering.mlir"}) {
    const Outcome o = kiln({"compile", dump(stage), "--target", "sm_80", "-o", file("o.ptx"), "--json"});
    ASSERT_EQ(o.status, 0) << o.err;
    const auto guards = nlohmann::json::parse(o.out)["metadata"]["guards"];
    EXPECT_EQ(guards, nlohmann::json::parse(R"([{"argument": 0, "divisibility": 16}, {"argument": 3, "equals": 400}])"))
        << stage;
    floats("x.npy", 500);
    EXPECT_NE(kiln(runLine(dump(stage))).status, 0) << stage; // n is 500
  }
  // Code that is made already takes no more of them.
  for (const char *stage : {"tile_gpu.mlir", "lowering.mlir"}) {
    for (const std::vector<std::string> &fact :
         {std::vector<std::string>{"--equals", "n=400"}, std::vector<std::string>{"--no-tensor-maps"}}) {
      std::vector<std::string> line{"compile", dump(stage), "--target", "sm_80"};
      line.insert(line.end(), fact.begin(), fact.end());
      const Outcome o = kiln(line);
      EXPECT_EQ(o.status, 2) << stage;
      EXPECT_NE(o.err.find("facts about the arguments"), std::string::npos) << stage << o.err;
    }
  }
}

/// For the passes that would make them.
TEST_F(StagesCliTest, NoTensorMapsStandsInTheText) {
  const std::vector<std::string> line{"compile", scale(), "--target", "sm_90a", "--emit", "tile"};
  EXPECT_EQ(kiln(line).out.find("no_tensor_maps"), std::string::npos);
  std::vector<std::string> without = line;
  without.push_back("--no-tensor-maps");
  EXPECT_NE(kiln(without).out.find("tile_gpu.no_tensor_maps"), std::string::npos);
  EXPECT_EQ(kiln({"explain", scale(), "--target", "sm_90a", "--no-tensor-maps"}).status, 0);
}

TEST_F(StagesCliTest, AnOverrideTakesAStagesPlaceAndIsInTheKey) {
  floats("x.npy", 500);
  std::vector<std::string> run = runLine(scale());
  run.push_back("--json");
  const auto source = [&](const std::vector<std::string> &line) {
    const Outcome o = kiln(line);
    EXPECT_EQ(o.status, 0) << o.err;
    return nlohmann::json::parse(o.out)["firstCalls"][0]["source"].get<std::string>();
  };
  std::vector<std::string> dumping = run;
  dumping.insert(dumping.end(), {"--dump-dir", file("dump")});
  source(dumping);
  EXPECT_EQ(source(run), "compiled");
  EXPECT_EQ(source(run), "disk");
  const std::string plain = *readTextFile(file("y.npy"));
  // The same kernel, but it adds where it multiplied.
  fs::create_directory(file("override"));
  fs::permissions(file("override"), fs::perms::owner_all);
  const std::string path = dump("tile_gpu.mlir");
  std::string text = *readTextFile(path);
  const std::size_t at = text.find("arith.mulf");
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, 10, "arith.addf");
  write("override/" + fs::path(path).filename().string(), text);
  std::vector<std::string> overridden = run;
  overridden.insert(overridden.end(), {"--override-dir", file("override"), "--log", "compile=info"});
  const Outcome first = kiln(overridden);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.err.find("takes the place of what the stage made (KILN_OVERRIDE_DIR)"), std::string::npos)
      << first.err;
  EXPECT_NE(*readTextFile(file("y.npy")), plain);
  EXPECT_EQ(source(overridden), "disk");
  EXPECT_EQ(source(run), "disk"); // the entry of the plain kernel is still that
  EXPECT_EQ(*readTextFile(file("y.npy")), plain);
  // Another text is another key; a text of another stage is refused.
  write("override/" + fs::path(path).filename().string(), text + "\n// changed\n");
  EXPECT_EQ(source(overridden), "compiled");
  write("override/" + fs::path(path).filename().string(), *readTextFile(dump("lowering.mlir")));
  const Outcome wrong = kiln(overridden);
  EXPECT_EQ(wrong.status, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("is at stage llvm and cannot take the place of a text at stage tile_gpu"), std::string::npos)
      << wrong.err;
}

TEST_F(StagesCliTest, TimesOfPassesOfBothHalves) {
  const Outcome o = kiln({"compile", "softmax", "--target", "sm_80", "--time-passes", "-o", file("s.ptx"), "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  std::map<std::string, unsigned> passes;
  bool instcombine = false;
  const auto report = nlohmann::json::parse(o.out);
  for (const auto &p : report["metadata"]["passes"]) {
    ++passes[p["stage"]];
    instcombine |= p["pass"] == "InstCombinePass" && p["milliseconds"] > 0;
  }
  for (const char *stage : {"tile", "tile_gpu", "lowering", "llvm", "ptx"})
    EXPECT_GE(passes[stage], 5u) << stage;
  EXPECT_TRUE(instcombine);
  const Outcome table = kiln({"compile", "softmax", "--target", "sm_80", "--time-passes", "-o", file("t.ptx")});
  EXPECT_NE(table.err.find("all passes"), std::string::npos) << table.err;
  EXPECT_EQ(*readTextFile(file("s.ptx")), *readTextFile(file("t.ptx")));
}

TEST_F(StagesCliTest, TwoKernelsAreComparedWithoutTheNumbersOfRegisters) {
  const char *const head = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n";
  const std::string a =
      write("a.ptx", std::string(head) + ".reg .b32 %r<3>;\nmov.u32 %r1, %tid.x;\nbar.sync 0;\n"
                                         "$L__BB0_1:\nst.global.v2.b32 [%rd1], {%r1, %r2};\nret;\n}\n");
  const std::string same = write("same.ptx", std::string(head) + "// another numbering\n.reg .b32 %r<9>;\n"
                                                                 "mov.u32 %r7, %tid.x;\nbar.sync 0;\n$L__BB0_4:\n"
                                                                 "st.global.v2.b32 [%rd2], {%r7, %r8};\nret;\n}\n");
  const std::string other = write("other.ptx", std::string(head) + ".reg .b32 %r<3>;\nmov.u32 %r1, %tid.x;\n"
                                                                   "$L__BB0_1:\nst.global.b32 [%rd1], %r1;\nret;\n}\n");
  EXPECT_EQ(kiln({"diff", a, same}).status, 0);
  const Outcome o = kiln({"diff", a, other, "--json"});
  EXPECT_EQ(o.status, 1) << o.err;
  const auto report = nlohmann::json::parse(o.out);
  EXPECT_EQ(report["lines"], nlohmann::json::parse(R"(["- bar.sync 0;", "- st.global.v2.b32 [%rd], {%r, %r};",
                                                       "+ st.global.b32 [%rd], %r;"])"));
  EXPECT_EQ(report["counts"]["barriers"], nlohmann::json::parse("[1, 0]"));
  EXPECT_EQ(report["counts"]["st.global.v2.b32"], nlohmann::json::parse("[1, 0]"));
  EXPECT_EQ(kiln({"diff", a, file("none.ptx")}).status, 2);
}

/// A disassembler of ours stands for nvdisasm, which few machines have.
TEST_F(StagesCliTest, SassThroughWhatIsFound) {
  const std::string fake = write("nvdisasm", "#!/bin/sh\nhead -c 4 \"$1\" | tail -c 3\necho ' SASS'\n");
  fs::permissions(fake, fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  const std::vector<std::string> line = {"compile", "add", "--target", "sm_80", "--emit", "sass"};
  const Outcome without = kiln(line);
  if (without.err.find("no assembler for GPU code") != std::string::npos)
    GTEST_SKIP() << "no assembler on this machine: there is no cubin to disassemble";
  if (without.status != 0)
    EXPECT_NE(without.err.find("install CUDA's nvdisasm or cuobjdump"), std::string::npos) << without.err;
  setenv("PATH", (folder.path() + ":" + path).c_str(), 1);
  const Outcome o = kiln(line);
  setenv("PATH", path.c_str(), 1);
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.out, "ELF SASS\n"); // it was given the cubin
}

} // namespace
} // namespace kiln::test
