// Operations of one program take effect in program order, also where different threads carry them out.
#include "tests/lowering/Text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace kiln::test {
namespace {

constexpr unsigned warps = 4, elements = 256, blocks = 8;
const std::string
    i32 = "tensor<256xi32, #tile_gpu.blocked<sizePerThread=[2], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>>",
    pointers = "tensor<256x!tile.ptr<i32>, #tile_gpu.blocked<sizePerThread=[2], threadsPerWarp=[32], "
               "warpsPerCTA=[4], order=[0]>>";

/// %r: 0 to 255, %k: 255 to 0, %sx and %sy: the two pointers in every element; then `body`.
std::string program(const std::string &body) {
  const std::string start =
      "    %r = tile.range 0 to 256 : " + i32 + "\n    %last = arith.constant dense<255> : " + i32 +
      "\n    %k = arith.subi %last, %r : " + i32 + "\n    %sx = tile.splat %x : !tile.ptr<i32> to " + pointers +
      "\n    %sy = tile.splat %y : !tile.ptr<i32> to " + pointers +
      "\n    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n    %c8 = arith.constant 8 : i32\n"
      "    %c256 = arith.constant 256 : i32\n    %one = arith.constant dense<1> : " +
      i32 + "\n";
  return kernelModule("%x: !tile.ptr<i32>, %y: !tile.ptr<i32>", start + body, warps);
}
std::string at(const std::string &name, const std::string &base, const std::string &index) {
  return "    %" + name + " = tile.addptr %" + base + ", %" + index + " : " + pointers + ", " + i32 + "\n";
}
std::string load(const std::string &name, const std::string &from) {
  return "    %" + name + " = tile.load %" + from + " : " + pointers + "\n";
}
std::string store(const std::string &to, const std::string &what) {
  return "    tile.store %" + to + ", %" + what + " : " + pointers + "\n";
}
std::string add(const std::string &name, const std::string &a, const std::string &b) {
  return "    %" + name + " = arith.addi %" + a + ", %" + b + " : " + i32 + "\n";
}
const std::string rowOffset = "    %o = arith.muli %i, %c256 : i32\n    %so = tile.splat %o : i32 to " + i32 + "\n";

struct Case {
  const char *name;
  std::string text;
  unsigned grid;
  bool races;                                                                   ///< without barriers
  std::function<std::vector<std::int32_t>(std::vector<std::int32_t> x)> result; ///< of y
};

std::vector<Case> cases() {
  auto reversed = [](std::vector<std::int32_t> x) {
    x.resize(elements);
    std::reverse(x.begin(), x.end());
    return x;
  };
  std::vector<Case> out;
  out.push_back({"a load sees what other threads stored",
                 program(at("p", "sx", "r") + at("q", "sx", "k") + store("p", "r") + load("v", "q") +
                         at("t", "sy", "r") + store("t", "v")),
                 1, true, [](std::vector<std::int32_t>) {
                   std::vector<std::int32_t> y(elements);
                   std::iota(y.rbegin(), y.rend(), 0);
                   return y;
                 }});
  out.push_back({"a store waits for the loads before it",
                 program(at("p", "sy", "r") + at("q", "sy", "k") + at("f", "sx", "r") + load("u", "f") +
                         store("p", "u") + load("v", "q") + store("p", "v")),
                 1, true, reversed});
  out.push_back(
      {"the next round of a loop sees what this one stored",
       program("    scf.for %i = %c0 to %c8 step %c1 : i32 {\n" + rowOffset + add("from", "k", "so") +
               add("to", "r", "so") + at("q", "sx", "from") + load("v", "q") + add("w", "v", "one") +
               at("row", "sx", "to") + "      %p = tile.addptr %row, %next : " + pointers + ", " + i32 + "\n" +
               store("p", "w") + "    }\n" + at("e", "sx", "k") + "      %f = tile.addptr %e, %far : " + pointers +
               ", " + i32 + "\n" + load("z", "f") + at("t", "sy", "r") + store("t", "z")),
       1, true, [&](std::vector<std::int32_t> x) {
         x.resize(elements);
         for (std::int32_t &v : x)
           v += 8;
         std::reverse(x.begin(), x.end());
         return x;
       }});
  // Constants that only this one has.
  std::string &loop = out.back().text;
  loop.insert(loop.find("    scf.for"), "    %next = arith.constant dense<256> : " + i32 +
                                            "\n    %far = arith.constant dense<2048> : " + i32 + "\n");
  out.push_back(
      {"the last program to arrive sees what all stored",
       program("    %i = tile.program_id x\n" + rowOffset + add("w", "r", "so") + at("p", "sx", "w") + store("p", "w") +
               "    %counter = tile.addptr %y, %c256 : !tile.ptr<i32>, i32\n"
               "    %old = tile.atomic_rmw add acq_rel gpu %counter, %c1 : !tile.ptr<i32>\n"
               "    %c7 = arith.constant 7 : i32\n    %is = arith.cmpi eq, %old, %c7 : i32\n"
               "    scf.if %is {\n      %zero = arith.constant dense<0> : " +
               i32 + "\n      %sum = scf.for %b = %c0 to %c8 step %c1 iter_args(%s = %zero) -> " + i32 +
               " : i32 {\n        %ob = arith.muli %b, %c256 : i32\n        %sb = tile.splat %ob : i32 to " + i32 +
               "\n" + add("from", "k", "sb") + at("q", "sx", "from") + load("v", "q") + add("n", "s", "v") +
               "        scf.yield %n : " + i32 + "\n      }\n" + at("t", "sy", "r") + store("t", "sum") + "    }\n"),
       blocks, false, [](std::vector<std::int32_t>) {
         std::vector<std::int32_t> y(elements);
         for (std::int32_t i = 0; i < std::int32_t(elements); ++i)
           y[static_cast<std::size_t>(i)] = 8 * (255 - i) + 256 * 28;
         return y;
       }});
  return out;
}

TEST(Order, OfAProgramsAccessesToGlobalMemory) {
  for (const Case &c : cases())
    for (const char *target : {"sm_80", "sm_90a"})
      for (unsigned seed = 0; seed <= 10; ++seed) {
        EmulatorOptions options;
        options.schedule = seed == 0 ? Schedule::InOrder : seed % 2 ? Schedule::Random : Schedule::Adversarial;
        options.seed = seed;
        Emulator gpu(target, options);
        std::vector<std::int32_t> x(9 * elements, 0);
        for (unsigned i = 0; i < elements; ++i)
          x[i] = static_cast<std::int32_t>(i * 37 % 101);
        std::vector<std::int32_t> poisoned(elements, -1);
        poisoned.push_back(0);
        Buffer &bx = gpu.upload(x), &by = gpu.upload(poisoned);
        const KernelRun run = runKernel(gpu, target, c.text, warps, {bx, by}, {c.grid}, From::Expansion);
        ASSERT_EQ(run.error, "") << c.name << ", seed " << seed;
        std::vector<std::int32_t> y = gpu.download<std::int32_t>(by);
        y.resize(elements); // without the counter
        EXPECT_EQ(y, c.result(x)) << c.name << ", seed " << seed << "\n" << run.ptx;
        if (c.races) {
          const KernelRun without = runKernel(gpu, target, c.text, warps, {bx, by}, {c.grid}, From::Lowering);
          EXPECT_NE(without.error.find("race.global"), std::string::npos) << c.name << ": no barrier was needed";
        }
      }
}

/// Each thread reads what it wrote itself: in place, round after round, without a barrier.
TEST(Order, NothingWhereThreadsKeepToTheirElements) {
  const std::string text = program(at("p", "sy", "r") + at("f", "sx", "r") + load("u", "f") + store("p", "u") +
                                   "    scf.for %i = %c0 to %c8 step %c1 : i32 {\n" + load("v", "p") +
                                   add("w", "v", "one") + store("p", "w") + "    }\n");
  Emulator gpu("sm_80");
  std::vector<std::int32_t> x(elements, 5);
  Buffer &bx = gpu.upload(x), &by = gpu.upload(std::vector<std::int32_t>(elements, -1));
  const KernelRun run = runKernel(gpu, "sm_80", text, warps, {bx, by}, {1}, From::Expansion);
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(gpu.download<std::int32_t>(by), std::vector<std::int32_t>(elements, 13));
  EXPECT_EQ(run.ptx.find("bar."), std::string::npos) << run.ptx;
  EXPECT_EQ(run.ptx.find("barrier"), std::string::npos) << run.ptx;
}

/// A tensor of 32 elements that each of four warps has a copy of: what one warp stores, no other may load.  (Volatile,
/// so that LLVM does not leave the load to the warp that stores.)
TEST(Order, InPlaceThroughTwoArguments) {
  const std::string layout = "#tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>",
                    numbers = "tensor<32xi32, " + layout + ">", places = "tensor<32x!tile.ptr<i32>, " + layout + ">";
  const std::string text = kernelModule(
      "%x: !tile.ptr<i32>, %y: !tile.ptr<i32>",
      "    %r = tile.range 0 to 32 : " + numbers + "\n    %one = arith.constant dense<1> : " + numbers +
          "\n    %sx = tile.splat %x : !tile.ptr<i32> to " + places + "\n    %sy = tile.splat %y : !tile.ptr<i32> to " +
          places + "\n    %p = tile.addptr %sx, %r : " + places + ", " + numbers + "\n    %q = tile.addptr %sy, %r : " +
          places + ", " + numbers + "\n    %v = tile.load %p cache volatile : " + places +
          "\n    %w = arith.addi %v, %one : " + numbers + "\n    tile.store %q, %w : " + places + "\n",
      warps);
  for (unsigned seed = 0; seed <= 10; ++seed) {
    EmulatorOptions options;
    options.schedule = seed == 0 ? Schedule::InOrder : seed % 2 ? Schedule::Random : Schedule::Adversarial;
    options.seed = seed;
    Emulator gpu("sm_80", options);
    Buffer &x = gpu.upload(std::vector<std::int32_t>(32, 6));
    const KernelRun run = runKernel(gpu, "sm_80", text, warps, {x, x}, {1}, From::Expansion);
    ASSERT_EQ(run.error, "") << "seed " << seed;
    EXPECT_EQ(gpu.download<std::int32_t>(x), std::vector<std::int32_t>(32, 7)) << "seed " << seed;
    const KernelRun without = runKernel(gpu, "sm_80", text, warps, {x, x}, {1}, From::Lowering);
    EXPECT_NE(without.error.find("race.global"), std::string::npos) << "no barrier was needed";
  }
}

} // namespace
} // namespace kiln::test
