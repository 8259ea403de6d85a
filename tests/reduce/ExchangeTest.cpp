// Conversions across warps, bit for bit, with budgets that force passes; and several of them in one kernel.
#include "tests/reduce/SharedKernel.h"
#include "tests/support/TestTier.h"

#include "compiler/layout/TilePlanner.h"

#include <gtest/gtest.h>

#include <map>

namespace kiln::test {
namespace {

using layout::Sizes;
using layout::TileLayout;

std::string convert(const std::string &to, const std::string &from, const Sizes &shape, const std::string &element,
                    const layout::Encoding &a, const layout::Encoding &b) {
  return "    %" + to + " = tile_gpu.convert_layout %" + from + " : " + tensorType(shape, element, a) + " to " +
         tensorType(shape, element, b) + "\n";
}

TEST(Exchange, RandomPairs) {
  std::mt19937_64 random(31);
  const struct {
    const char *type;
    unsigned bytes;
  } elements[] = {{"i8", 1}, {"f16", 2}, {"f32", 4}, {"i64", 8}};
  std::map<std::string, unsigned> strategies;
  unsigned passes = 0, matrices = 0;
  const unsigned rounds = pick(40u, 500u);
  for (unsigned round = 0; round < rounds; ++round) {
    const TileCase c = randomCase(random, 12);
    const layout::Encoding to = randomLayout(random, c.shape, c.logWarps);
    auto source = TileLayout::create(c.encoding, c.shape), destination = TileLayout::create(to, c.shape);
    if (!destination || destination->registers() > 128)
      continue;
    const auto &element = elements[random() % 4];
    auto plan = layout::planTileConversion(*source, *destination, element.bytes * 8, **findTarget(c.target),
                                           static_cast<std::uint64_t>(c.scratchBytes));
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    // Guarded accesses, one for each register and pass: compile time grows with their square.
    if (plan->core.shared.predicatedPasses &&
        plan->core.passes * std::max(source->registers(), destination->registers()) > 128)
      continue;
    ++strategies[std::string(layout::strategyName(plan->core.strategy))];
    passes += plan->core.passes > 1 || plan->core.rounds() > 1;
    std::vector<unsigned char> x(volume(c.shape) * element.bytes);
    for (unsigned char &v : x)
      v = static_cast<unsigned char>(random());
    // There and back: the second exchange reuses the first one's bytes.
    TileKernel kernel(c.logWarps);
    kernel.input("x", c.shape, element.type, c.encoding);
    kernel.body(convert("a", "x", c.shape, element.type, c.encoding, to));
    kernel.output("a", c.shape, element.type, &to);
    kernel.body(convert("b", "a", c.shape, element.type, to, c.encoding));
    kernel.output("b", c.shape, element.type, &c.encoding);
    Emulator gpu(c.target);
    Buffer &bx = gpu.upload(x), &ba = gpu.allocate(x.size()), &bb = gpu.allocate(x.size());
    (void)ba.poison(std::byte(0xCD));
    (void)bb.poison(std::byte(0xCD));
    const std::string error = kernel.run(gpu, c.target, {bx, ba, bb}, c.scratchBytes);
    if (error.find("matrix instructions are not emulated") != std::string::npos) {
      ++matrices; // ldmatrix and stmatrix: compiled, but this emulator cannot run them
      continue;
    }
    ASSERT_EQ(error, "") << "round " << round;
    ASSERT_EQ(gpu.download<unsigned char>(ba), x) << "round " << round << "\n" << kernel.text();
    ASSERT_EQ(gpu.download<unsigned char>(bb), x) << "round " << round << "\n" << kernel.text();
  }
  for (const auto &[name, count] : strategies)
    std::printf("  %-20s%u\n", name.c_str(), count);
  std::printf("  in several passes   %u\n  not run (matrix instructions, which the emulator lacks)  %u\n", passes,
              matrices);
  EXPECT_GT(strategies["shared"], rounds / 4);
  EXPECT_GT(passes, 0u);
}

} // namespace
} // namespace kiln::test
