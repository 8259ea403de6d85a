//===- OrderedSumsTest.cpp - Sums of programs that add one after the other ---------===//
//
// Each program takes a number as it starts and adds a tile of its own to every tile of `out` that it visits, after
// those with smaller numbers: the bits are those of a sum in that order, in whatever order blocks and warps run.
//
//===----------------------------------------------------------------------===//
#include "kiln/Language.h"
#include "tests/kernels/Bench.h"
#include "tests/kernels/Operand.h"
#include "tests/kernels/Repeat.h"
#include "tests/support/TestTier.h"

#include <random>

namespace kiln::test {
namespace {

using namespace language;

constexpr int columns = 256, tiles = 5;
constexpr std::int64_t programs = 12;

/// Program t visits the tiles from t / 4 on: of tile i all before it have done so.
language::Kernel sums() {
  return kernel("ordered_sums", {.warps = 4},
                [&](TensorArg<f32, 3, "x"> x, TensorArg<f32, 2, "out"> out, TensorArg<i32, 1, "counts"> counts,
                    TensorArg<i32, 1, "ticket"> ticket) {
                  const auto number = atomicAdd(ticket.at(0).pointer(), 1);
                  const auto column = range(0, columns);
                  loop(over(number / 4, constant<i32>(tiles)), [&](auto tile) {
                    const auto part = load(x.at(number, tile, all).pointer() + column);
                    atomicAddAfter(number, counts.at(tile).pointer(), out.at(tile, all).pointer() + column, part,
                                   column >= 0);
                  });
                });
}

TEST(OrderedSums, BitsOfOneOrder) {
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  std::vector<double> x(programs * tiles * columns);
  for (double &v : x)
    v = normal(random);
  const TemporaryDirectory cache;
  for (const std::string &name : deviceNames()) {
    Opened *const usual = openedDevice(name);
    ASSERT_TRUE(usual);
    if (usual->emulated() && name != "emulator:sm_80" && name != "emulator:sm_90a" && !isFullTier())
      continue;
    for (const Opening &how : openingsOfSchedules(*usual, 3, cache.path() + "/kernels")) {
      SCOPED_TRACE(textOf(how));
      const std::unique_ptr<Opened> on = openWith(name, how);
      ASSERT_TRUE(on);
      const Operand in = upload(*on->device, DType::F32, {programs, tiles, columns}, x);
      const std::vector<double> zeros(tiles * columns);
      const Operand out = upload(*on->device, DType::F32, {tiles, columns}, zeros),
                    counts = upload(*on->device, DType::I32, {tiles}, std::vector<double>(tiles)),
                    ticket = upload(*on->device, DType::I32, {1}, {0});
      const Result<KernelSource> source = sourceOf(sums());
      ASSERT_TRUE(source.ok()) << source.status().toString();
      const Result<JitKernel *> kernel = on->jit->kernel(*source);
      ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
      const Status s =
          (*kernel)->launch({static_cast<unsigned>(programs)}, nullptr, named<"x">(in.tensor), named<"out">(out.tensor),
                            named<"counts">(counts.tensor), named<"ticket">(ticket.tensor));
      ASSERT_TRUE(s.ok()) << s.toString();
      for (const Finding &f : on->device->takeFindings())
        ADD_FAILURE() << f.toString();
      const std::vector<double> got = download(out), visits = download(counts);
      for (std::size_t tile = 0; tile < tiles; ++tile) {
        const std::size_t visitors = std::min<std::size_t>(programs, 4 * (tile + 1));
        EXPECT_EQ(visits[tile], static_cast<double>(visitors));
        for (std::size_t c = 0; c < columns; ++c) {
          float want = 0;
          for (std::size_t t = 0; t < visitors; ++t)
            want += static_cast<float>(in.values[(t * tiles + tile) * columns + c]);
          ASSERT_EQ(got[tile * columns + c], static_cast<double>(want)) << "tile " << tile << ", column " << c;
        }
      }
    }
  }
}

} // namespace
} // namespace kiln::test
