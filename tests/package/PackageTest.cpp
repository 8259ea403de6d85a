// The installed package, as somebody uses it who has nothing of the source tree: moved to another folder, a kernel and
// a pass built outside the tree.
#include "tests/package/Shell.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace fs = std::filesystem;
using namespace kiln;
using namespace kiln::test;

namespace {

std::string contentsOf(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class PackageTest : public testing::Test {
protected:
  void SetUp() override {
    run("cmake --install " KILN_BINARY_DIR " --prefix " + folder.path() + "/installed");
    fs::rename(folder.path() + "/installed", prefix);
  }
  /// Configures and builds a project against the package; the folder it was built in.
  std::string build(const std::string &project, const std::string &more = {}) {
    const std::string binary = folder.path() + "/build-" + fs::path(project).filename().string();
    run("cmake -G Ninja -S " + project + " -B " + binary + " -DCMAKE_PREFIX_PATH=" + prefix +
        " -DCMAKE_CXX_COMPILER=" KILN_PACKAGE_COMPILER " " + more);
    run("cmake --build " + binary);
    return binary;
  }
  /// A copy of an example, to be changed.
  std::string example(const std::string &name) {
    const std::string copy = folder.path() + "/" + name;
    if (fs::exists(copy))
      return copy;
    fs::copy(KILN_SOURCE_DIR "/examples/" + name, copy, fs::copy_options::recursive);
    fs::remove_all(copy + "/build"); // of somebody who tried it in the tree
    return copy;
  }
  static void edit(const std::string &file, const std::string &from, const std::string &to) {
    std::string text = contentsOf(file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(file, std::ios::binary) << text.replace(at, from.size(), to);
  }
  /// Changes the number after `before` in `file`, which is `first` now, and does `build`, timed from the edit on.  The
  /// machine may be busy with other things: up to six edits, until one was done within `limit` seconds; the shortest
  /// time.
  template <typename Build>
  static double fastestEdit(const std::string &file, const std::string &before, std::string first, double limit,
                            Build build) {
    const std::string end(1, first.back());
    double best = 1e9;
    for (int attempt = 1; attempt <= 6 && best > limit; ++attempt) {
      if (attempt > 1)
        std::this_thread::sleep_for(std::chrono::seconds(3));
      const std::string next = std::to_string(attempt) + end;
      const auto start = std::chrono::steady_clock::now();
      edit(file, before + first, before + next);
      build();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("edit to run, attempt %d: %.2f s\n", attempt, seconds);
      best = std::min(best, seconds);
      first = next;
    }
    return best;
  }
  /// Runs the commands of a project's README in its folder, word for word; the package is where the page says it is.
  std::string readme(const std::string &project) {
    std::ifstream page(project + "/README.md");
    std::string script =
        "set -e -o pipefail\nexport HOME=" + folder.path() + " KILN_CACHE_DIR=" + folder.path() + "/cache\n";
    bool shown = false;
    for (std::string line; std::getline(page, line);) {
      if (line.starts_with("```"))
        shown = line == "```sh";
      else if (shown)
        script += line + "\n";
    }
    std::ofstream(folder.path() + "/commands.sh") << script;
    return run("cd " + project + " && bash " + folder.path() + "/commands.sh");
  }
  std::string cached(const std::string &command, const std::string &more = {}) {
    return "KILN_CACHE_DIR=" + folder.path() + "/cache " + more + " " + command;
  }
  /// The 16 digits after "bits ".
  static std::string bitsOf(const std::string &output) {
    const std::size_t at = output.find("bits ");
    return at == std::string::npos ? "" : output.substr(at + 5, 16);
  }

  TemporaryDirectory folder;
  const std::string prefix = folder.path() + "/kiln";
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_HAS_NOT(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

TEST_F(PackageTest, ProgramsRunFromAnywhereAndNothingNamesTheBuild) {
  const std::string demo = run(cached(prefix + "/bin/kiln demo add --target sm_80"));
  EXPECT_HAS(demo, "add");
  const std::string ptx =
      run(prefix + "/bin/kiln-opt " KILN_SOURCE_DIR "/docs/examples/scale.mlir "
                   "--kiln-stage-tile=target=sm_80 --kiln-stage-tile-gpu --kiln-stage-lowering --emit-ptx");
  EXPECT_HAS(ptx, ".entry");
  // The helper process is found as well.
  EXPECT_HAS(run(cached(prefix + "/bin/kiln demo copy --target sm_80", "KILN_ISOLATION=child")), "copy");
  unsigned files = 0;
  for (const char *part : {"/include", "/lib/cmake"})
    for (const auto &entry : fs::recursive_directory_iterator(prefix + part)) {
      if (!entry.is_regular_file())
        continue;
      ++files;
      const std::string text = contentsOf(entry.path());
      EXPECT_EQ(text.find(KILN_BINARY_DIR), std::string::npos) << entry.path();
      EXPECT_EQ(text.find(KILN_SOURCE_DIR "/"), std::string::npos) << entry.path();
      EXPECT_EQ(text.find(folder.path()), std::string::npos) << entry.path();
    }
  EXPECT_GT(files, 100u);
  for (const char *program : {"/bin/kiln", "/lib/libkiln.so", "/lib/kiln-compile-helper"}) {
    const std::string needed = run("readelf -d " + prefix + program);
    for (const char *library : {"LLVM", "MLIR", "kiln-compiler", "cuda"})
      EXPECT_HAS_NOT(needed, library);
  }
}

/// The README of the example, with its one constant changed: from the edit to the result in 5 s.
TEST_F(PackageTest, AKernelOfOnesOwn) {
  const std::string project = example("out-of-tree-kernel"), binary = project + "/build";
  EXPECT_HAS(readme(project), "largest relative error");
  const std::string program = cached(binary + "/silu emulator:sm_80");
  const std::string first = run(program);
  EXPECT_HAS(first, "compiled");
  const std::string second = run(program);
  EXPECT_HAS(second, "disk hit");
  EXPECT_EQ(bitsOf(first).size(), 16u) << first;
  EXPECT_EQ(bitsOf(second), bitsOf(first));

  std::string seen = bitsOf(first);
  const double seconds = fastestEdit(project + "/Silu.cpp", "beta = 1.", "0f", 5, [&] {
    const std::string output = run("cmake --build " + binary + " && " + program);
    EXPECT_HAS(output, "compiled");
    EXPECT_NE(bitsOf(output), seen) << output;
    seen = bitsOf(output);
  });
  EXPECT_LE(seconds, 5) << "seconds from the edit to the result";
}

/// A kernel in a text file, with one number changed: 1 s.
TEST_F(PackageTest, ATextKernel) {
  const std::string kiln = cached(prefix + "/bin/kiln"), text = folder.path() + "/tail.mlir",
                    x = folder.path() + "/x.npy", y = folder.path() + "/y.npy";
  fs::copy_file(KILN_SOURCE_DIR "/docs/examples/scale.mlir", text);
  edit(text, "arith.mulf %value, %factors", "arith.addf %value, %factors");
  edit(text, "%factors = tile.splat %factor : f32 to tensor<512xf32>",
       "%factors = arith.constant dense<1.0> : tensor<512xf32>");
  run(kiln +
      " run " KILN_SOURCE_DIR
      "/docs/examples/vector.ptx --entry iota --grid 4 --block 128 --arg out:f32:500 --arg u32:500 "
      "--output 0:" +
      x + " --target sm_80");
  std::string seen;
  const double seconds = fastestEdit(text, "dense<1.", "0>", 1, [&] {
    run(kiln + " run " + text + " --grid 1 --arg " + x +
        " --arg out:f32:500 --arg f32:0 --arg i32:500 --output 1:" + y + " --target sm_80");
    EXPECT_NE(contentsOf(y), seen);
    seen = contentsOf(y);
  });
  EXPECT_LE(seconds, 1) << "seconds from the edit to the result";
}

/// No LLVM on the include path, none in the process on a hit; with the real compiler.
TEST_F(PackageTest, ADiskHitMapsNoLlvm) {
  const std::string binary = build(KILN_SOURCE_DIR "/tests/package/seam", "-DEXAMPLE=" + example("out-of-tree-kernel"));
  for (const auto &entry : fs::recursive_directory_iterator(binary))
    if (entry.path().extension() == ".d" || entry.path().filename() == "build.ninja")
      EXPECT_EQ(contentsOf(entry.path()).find("llvm-22"), std::string::npos) << entry.path();
  const std::string command = cached(binary + "/seam");
  const std::string miss = run(command);
  EXPECT_HAS(miss, "compiled 2, from disk 0");
  for (const char *library : {"libkiln-compiler", "libMLIR", "libLLVM"})
    EXPECT_HAS(miss, library); // or the test below would prove nothing
  const std::string hit = run(command);
  EXPECT_HAS(hit, "compiled 0, from disk 2");
  for (const char *library : {"kiln-compiler", "MLIR", "LLVM", "nvJitLink", "ptxas"})
    EXPECT_HAS_NOT(hit, library);
}

/// The README of the example: through kiln-opt, then in a kernel's first call.
TEST_F(PackageTest, APassOfOnesOwn) {
  const std::string kernel = example("out-of-tree-kernel"), project = example("out-of-tree-pass");
  readme(kernel);
  const std::string page = readme(project);
  EXPECT_HAS(page, "2 operations approximate");
  EXPECT_HAS(page, "div.full.f32");
  const std::string binary = project + "/build", plugin = binary + "/libapproximate-math.so";
  const std::string opt = prefix + "/bin/kiln-opt " + project + "/exp.mlir --load-pass-plugin=" + plugin + " ";
  const std::string changed = run(opt + "'--pass-pipeline=builtin.module(func.func(approximate-math))'");
  EXPECT_HAS(changed, "2 operations approximate");
  EXPECT_HAS(changed, "math.exp %");
  EXPECT_HAS(changed, "fastmath<afn>");
  EXPECT_HAS(run(opt + "--approximate-math"), "2 operations approximate");
  const std::string one = run(opt + "'--pass-pipeline=builtin.module(func.func(approximate-math{ops=math.exp}))'");
  EXPECT_HAS(one, "1 operations approximate");

  const std::string silu = kernel + "/build/silu emulator:sm_80";
  const std::string with = "KILN_PLUGINS=" + plugin + " KILN_PASSES='tile=func.func(approximate-math)'";
  const std::string precise = run(cached(silu)), approximate = run(cached(silu, with));
  EXPECT_HAS(precise, "compiled");
  EXPECT_HAS(approximate, "compiled");
  EXPECT_NE(bitsOf(approximate), bitsOf(precise)) << approximate;
  EXPECT_HAS(run(cached(silu, with)), "disk hit");
  const std::string again = run(cached(silu));
  EXPECT_HAS(again, "disk hit");
  EXPECT_EQ(bitsOf(again), bitsOf(precise));
  // What the pass does is what the author could have written.
  edit(kernel + "/Silu.cpp", "value / (1.0f + exp(value * -beta))",
       "div(value, 1.0f + exp(value * -beta, approx), approx)");
  run("cmake --build " + kernel + "/build");
  EXPECT_EQ(bitsOf(run(cached(silu))), bitsOf(approximate));

  // Another build of the plugin is another key: this one leaves both operations alone.
  edit(project + "/ApproximateMath.cpp", "\"arith.divf\", \"math.cos\", \"math.exp\",", "\"math.cos\",");
  edit(kernel + "/Silu.cpp", "div(value, 1.0f + exp(value * -beta, approx), approx)",
       "value / (1.0f + exp(value * -beta))");
  run("cmake --build " + binary + " && cmake --build " + kernel + "/build");
  const std::string rebuilt = run(cached(silu, with));
  EXPECT_HAS(rebuilt, "compiled");
  EXPECT_EQ(bitsOf(rebuilt), bitsOf(precise));
}

/// Each header by itself, with nothing but the package's own folder to look in.  g++ as well, where there is one.
TEST_F(PackageTest, HeadersCompileAlone) {
  const fs::path headers = prefix + "/include/kiln";
  const auto compiles = [&](const std::string &header, const std::string &compiler) {
    const Outcome got = shell("cd " + headers.string() + " && printf '#include \"" + header + "\"\\n' | " + compiler +
                              " -std=c++20 -Wall -Wextra -Wno-unused-parameter -Werror -fsyntax-only -I. -x c++ -");
    EXPECT_EQ(got.status, 0) << header << " with " << compiler << "\n" << got.out;
  };
  unsigned count = 0;
  for (const char *part : {"kiln", "compiler/language", "kernels", "runtime/io", "support"})
    for (const auto &entry : fs::recursive_directory_iterator(headers / part))
      if (entry.path().extension() == ".h") {
        compiles(fs::relative(entry.path(), headers).string(), KILN_PACKAGE_COMPILER);
        ++count;
      }
  EXPECT_GT(count, 30u);
  if (fs::exists("/usr/bin/g++"))
    for (const char *header :
         {"kiln/Jit.h", "kiln/Language.h", "kiln/Operation.h", "kernels/softmax/SoftmaxOperation.h"})
      compiles(header, "/usr/bin/g++");
}

} // namespace
