// Every way to get the command line of `kiln run` wrong: the exit status, the message, and nothing written.  The device
// is the fake driver's GPU, so the answers are those of a machine with a GPU too.
#include "tests/cli/Program.h"

#include "runtime/io/Npy.h"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace kiln::test {
namespace {

class RunInputCliTest : public CliTest {
protected:
  void SetUp() override {
    libraries = fakeDriver();
    ptx = write("add.ptx", addPtx);
    x = floats("x.npy", 64);
    before = files();
  }
  /// kiln run add.ptx with these arguments instead of the good ones.
  Outcome run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "run");
    return kiln(arguments, libraries);
  }
  void refused(std::vector<std::string> arguments, const std::string &part, int status = 2) {
    const Outcome o = run(arguments);
    EXPECT_EQ(o.status, status) << o.err << o.out;
    EXPECT_NE(o.err.find(part), std::string::npos) << "expected: " << part << "\nin: " << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_EQ(files(), before) << part;
  }
  /// The good command line, its arguments replaced.
  std::vector<std::string> withArguments(const std::vector<std::string> &arguments, const std::string &output = {}) {
    std::vector<std::string> line = {ptx, "--grid", "1", "--block", "64"};
    for (const std::string &a : arguments)
      line.insert(line.end(), {"--arg", a});
    if (!output.empty())
      line.insert(line.end(), {"--output", output});
    return line;
  }
  std::vector<std::string> good(const std::string &output = {}) {
    return withArguments({x, "out:f32:64", "i32:64"}, output);
  }
  static std::vector<std::string> with(std::vector<std::string> line, const std::vector<std::string> &more) {
    line.insert(line.end(), more.begin(), more.end());
    return line;
  }
  std::string libraries, ptx, x;
  std::vector<std::string> before;
};

TEST_F(RunInputCliTest, TheGoodLineRuns) {
  const Outcome o = run(good("1:" + file("y.npy")));
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.out, "cuda:0: kernel 'add': good\nargument 1 -> " + file("y.npy") + "\n");
  auto y = readNpy(file("y.npy"));
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(y->type, DType::F32);
  EXPECT_EQ(y->shape, Shape{64});
  EXPECT_EQ(y->data, std::vector<std::byte>(256, std::byte{0xcd})); // the fake GPU computes nothing: the poison stays
}

TEST_F(RunInputCliTest, AnInputMayBeWrittenBack) {
  const Outcome o = run(with(good("0:" + file("y.npy")), {"--output", "1:" + file("z.npy")}));
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(readNpy(file("y.npy"))->data, readNpy(x)->data);
  EXPECT_TRUE(std::filesystem::exists(file("z.npy")));
}

TEST_F(RunInputCliTest, Files) {
  refused({file("none.ptx"), "--grid", "1", "--block", "1"}, "none.ptx': No such file");
  refused({folder.path(), "--grid", "1", "--block", "1"}, "is a folder");
  refused(withArguments({file("none.npy"), "out:f32:64", "i32:64"}), "argument 0: cannot open");
  const std::string good = *readTextFile(x);
  write("cut.npy", good.substr(0, good.size() - 7));
  write("text.npy", "hello, this is no array");
  before = files();
  refused(withArguments({file("cut.npy"), "out:f32:64", "i32:64"}), "is truncated: shape 64 of f32 needs 256 bytes");
  refused(withArguments({file("text.npy"), "out:f32:64", "i32:64"}), "is not a .npy file");
  refused(withArguments({"i32:" + x, "out:f32:64", "i32:64"}), "holds f32, which is not converted to i32");
}

TEST_F(RunInputCliTest, ArgumentTexts) {
  const auto first = [&](const std::string &text, const std::string &part) { refused(withArguments({text}), part); };
  first("x", "argument 0 ('x') is neither a .npy file nor KIND:VALUE");
  first("i33:4", "has the unknown kind 'i33'");
  first("out:f33:4", "unknown dtype 'f33'");
  first("out:f32", "has no shape");
  first("out:f32:4x", "bad shape '4x'");
  first("out:f32:-4", "bad shape '-4'");
  first("out:f32:4294967296x4294967296", "more than 2^63 bytes");
  first("i32:abc", "'abc' is not an integer");
  first("i32:", "is not an integer");
  first("i32:1.5", "is not an integer");
  first("i32:2147483648", "is out of range (from -2147483648 to 2147483647)");
  first("i32:-2147483649", "is out of range");
  first("u8:256", "from 0 to 255");
  first("u32:-1", "is out of range (from 0 to 4294967295)");
  first("i64:99999999999999999999", "is out of range");
  first("f32:abc", "'abc' is not a number");
  first("f32:1e40", "is out of the range of f32");
  first("bf16:1e39", "is out of the range of bf16");
  first("e4m3:1000", "is out of the range of e4m3");
  first("f64:1e999", "is out of the range of f64");
  first("ptr:zero", "is not an integer");
  first("zeros:f32", "write zeros:DTYPE:SHAPE");
  first("out:f32:4+17", "points past the end of its buffer of 16 bytes");
  first(x + "+257", "points past the end of its buffer of 256 bytes (offsets are bytes, from 0 to the buffer's size)");
  first("bytes:" + x + "+4", "data by value has no offset");
  first("arg:", "names no buffer");
  first("arg:0", "argument 0 ('arg:0'): argument 0 ('arg:0') is not a buffer (there is none yet");
  first("arg:q", "there is no buffer 'q'");
  first("arg:q+many", "the offset 'many' is not a number");
}

TEST_F(RunInputCliTest, ArgumentsAgainstParameters) {
  refused(withArguments({x, "out:f32:64"}), "takes 3 arguments, 2 were given");
  refused(withArguments({x, "out:f32:64", "i32:64", "i32:1"}), "takes 3 arguments, 4 were given");
  refused(withArguments({x, "out:f32:64", x}), "is a pointer (8 bytes); parameter 2");
  refused(withArguments({x, "out:f32:64", "i64:64"}), "argument 2 ('i64:64') has 8 bytes; parameter 2");
  refused(withArguments({"i32:1", "out:f32:64", "i32:64"}), "argument 0 ('i32:1') has 4 bytes; parameter 0");
  refused(withArguments({"bytes:" + x, "out:f32:64", "i32:64"}), "has 256 bytes of data");
  refused(withArguments({x, "out:f32:64", "f32:64"}), "argument 2 ('f32:64') is a floating-point number; parameter 2 "
                                                      "'n' of kernel 'add' is u32 (4 bytes) (pass i32:V)");
  EXPECT_EQ(run(withArguments({"ptr:0", "b64:0x10", "b32:7"})).status, 0);
  EXPECT_EQ(run(withArguments({"ptr:0", "i64:-1", "u32:0x7"})).status, 0);
}

TEST_F(RunInputCliTest, Outputs) {
  refused(good("3:" + file("y.npy")), "there is no argument 3; 3 were given");
  refused(good("2:" + file("y.npy")), "argument 2 ('i32:64') is not a buffer");
  refused(good("y.npy"), "is not N:FILE");
  refused(good("1:"), "is not N:FILE");
  refused(good("-1:" + file("y.npy")), "is not N:FILE");
  refused(good("1:" + file("missing/y.npy")), "missing/y.npy': No such file or directory");
  refused(good("1:" + folder.path()), "it is a folder");
  refused(with(good("1:" + file("y.npy")), {"--output", "0:" + file("y.npy")}), "two outputs are written to");
}

TEST_F(RunInputCliTest, ShapesOfTheLaunch) {
  const auto launch = [&](const std::vector<std::string> &shape) {
    return with({ptx, "--arg", x, "--arg", "out:f32:64", "--arg", "i32:64", "--output", "1:" + file("y.npy")}, shape);
  };
  refused(launch({"--block", "64"}), "--grid is required");
  refused(launch({"--grid", "1"}), "--block is required");
  for (const char *bad : {"0", "x", "1,2,3,4", "1,", ",1", "1,0", "4294967296", "1.5", ""})
    refused(launch({"--grid", bad, "--block", "64"}), "--grid");
  refused(launch({"--grid", "-1,0", "--block", "64"}), "--grid '-1,0' is not one to three positive numbers");
  refused(launch({"--grid=-1,0", "--block", "64"}), "--grid '-1,0' is not one to three positive numbers");
  refused(launch({"--grid", "1", "--block", "1025"}), "block (1025, 1, 1)");
  refused(launch({"--grid", "1", "--block", "1,1,65"}), "block (1, 1, 65)");
  refused(launch({"--grid", "1,65536", "--block", "64"}), "grid (1, 65536, 1)");
  refused(launch({"--grid", "1", "--block", "64", "--shared", "300000"}), "300000 bytes of dynamic");
  refused(launch({"--grid", "1", "--block", "64", "--shared", "-1"}), "--shared");
  refused(launch({"--grid", "3", "--block", "64", "--cluster", "2"}), "no multiple of the cluster");
  refused(launch({"--grid", "1", "--block", "64", "--repeat", "0"}), "--repeat 0");
  refused(launch({"--grid", "1", "--block", "64", "--timeout", "-2"}), "--timeout -2");
  refused(launch({"--grid", "1", "--block", "64", "--timeout=-2"}), "--timeout -2");
  refused(launch({"--grid", "1", "--block", "64", "--threads", "9999"}), "--threads 9999");
}

TEST_F(RunInputCliTest, Machines) {
  refused(with(good(), {"--device", "gpu"}), "unknown device 'gpu'");
  refused(with(good(), {"--device", "cuda:5"}), "there is no device cuda:5; the driver lists 1 GPU");
  refused(with(good(), {"--device", "emulator:sm_91"}), "unknown target 'sm_91'");
  refused(with(good(), {"--target", "sm_91"}), "unknown target 'sm_91'");
  refused(with(good(), {"--target", "sm_80", "--device", "cuda:0"}), "both name a machine");
  const Outcome none = kiln(with({"run"}, with(good(), {"--device", "cuda:0"})));
  if (none.err.find("no CUDA driver") != std::string::npos) { // else this machine has a GPU
    EXPECT_EQ(none.status, 4);
  }
}

TEST_F(RunInputCliTest, Entries) {
  refused(with(good(), {"--entry", "adt"}), "has no kernel 'adt'; its kernels: add (did you mean add?)");
  write("two.ptx",
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry a() { ret; }\n.visible .entry b() { ret; }\n");
  before = files();
  refused({file("two.ptx"), "--grid", "1", "--block", "1"},
          "has 2 kernels: 1: a, 2: b (choose one with --entry NAME, a part of its name or its number)");
}

TEST_F(RunInputCliTest, RefusedPtxIsStatus3) {
  write("zero.ptx", std::string("a\0b", 3));
  before = files();
  refused({file("zero.ptx"), "--grid", "1", "--block", "1"}, "is not PTX", 3);
  write("b.ptx", ".version 8.7\n.target sm_120\n.address_size 64\n.visible .entry a() { ret; }\n");
  before = files();
  refused({file("b.ptx"), "--grid", "1", "--block", "1"}, "is for sm_120, which needs that architecture or a newer one",
          3);
}

TEST_F(RunInputCliTest, JsonSaysTheSame) {
  const Outcome bad = run(with(good("7:" + file("y.npy")), {"--json"}));
  EXPECT_EQ(bad.status, 2);
  const auto error = nlohmann::json::parse(bad.out);
  EXPECT_EQ(error["status"], 2);
  EXPECT_NE(error["error"]["message"].get<std::string>().find("there is no argument 7"), std::string::npos);
  const Outcome o = run(with(good("1:" + file("y.npy")), {"--json", "--repeat", "3"}));
  EXPECT_EQ(o.status, 0) << o.err;
  const auto j = nlohmann::json::parse(o.out);
  EXPECT_EQ(j["status"], 0);
  EXPECT_EQ(j["device"], "cuda:0");
  EXPECT_EQ(j["kernel"], "add");
  EXPECT_EQ(j["times"]["launches"], 3);
  EXPECT_EQ(j["times"]["medianMs"], 1.5);
  EXPECT_EQ(j["outputs"][0]["dtype"], "float32");
  EXPECT_TRUE(j["findings"].empty());
}

} // namespace
} // namespace kiln::test
