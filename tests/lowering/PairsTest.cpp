// Every kind of layout to every other: planned, lowered, run, bit for bit.  A pair that fails is a defect, whatever it
// is.
#include "tests/lowering/Text.h"

#include "compiler/layout/TilePlanner.h"
#include "tests/support/TestTier.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <map>

namespace kiln::test {
namespace {

using layout::Encoding;
using layout::Sizes;

constexpr const char *kindNames[] = {"blocked", "slice", "mma", "wgmma", "dot", "linear", "transposed", "replicated"};
constexpr unsigned numKinds = std::size(kindNames);

/// 2^a x 2^b, a random split of 2^bits.
Sizes split(std::mt19937_64 &random, unsigned bits) {
  const unsigned a = static_cast<unsigned>(random() % (bits + 1));
  return {std::int64_t(1) << a, std::int64_t(1) << (bits - a)};
}

/// A layout of that kind for tiles of rank 2; wgmma needs four warps (nothing with fewer).
std::optional<Encoding> layoutOfKind(std::mt19937_64 &random, unsigned kind, const Sizes &shape, unsigned logWarps,
                                     unsigned bits) {
  const auto blocked = [&](const Sizes &warps) {
    return layout::Blocked{split(random, static_cast<unsigned>(random() % 4)), split(random, 5), warps,
                           random() % 2 ? Sizes{1, 0} : Sizes{0, 1}};
  };
  const auto mma = [&] {
    layout::Mma out;
    out.warpsPerCTA = split(random, logWarps);
    out.instrN = 8 << random() % 2;
    return out;
  };
  switch (kind) {
  case 0:
    return Encoding(blocked(split(random, logWarps)));
  case 1: {
    const Sizes lanes = split(random, 4), warps = split(random, logWarps);
    return Encoding(
        layout::Slice{2, Encoding(layout::Blocked{{1, 2, 4}, {lanes[0], lanes[1], 2}, {warps[0], warps[1], 1}})});
  }
  case 2:
    return Encoding(mma());
  case 3: {
    if (logWarps < 2)
      return std::nullopt;
    layout::Mma out;
    out.version = 3;
    const Sizes rest = split(random, logWarps - 2);
    out.warpsPerCTA = {4 * rest[0], rest[1]};
    out.instrN = 8 << random() % 3;
    return Encoding(out);
  }
  case 4:
    return Encoding(layout::DotOperand{static_cast<std::int64_t>(random() % 2), std::max<std::int64_t>(1, 32 / bits),
                                       Encoding(mma())});
  case 5:
    return randomLinear(random, shape, logWarps);
  case 6:
    return Encoding(
        layout::Transposed{{1, 0}, random() % 2 ? Encoding(mma()) : Encoding(blocked(split(random, logWarps)))});
  default: // lanes and warps far beyond the tile along one dimension
    return Encoding(layout::Blocked{{1, 1},
                                    random() % 2 ? Sizes{32, 1} : Sizes{1, 32},
                                    random() % 2 ? Sizes{1 << logWarps, 1} : Sizes{1, 1 << logWarps}});
  }
}

const ElementType &elementOf(unsigned bits) {
  static constexpr ElementType types[] = {{"i8", 1}, {"bf16", 2}, {"f32", 4}};
  return types[bits == 8 ? 0 : bits == 16 ? 1 : 2];
}

/// x in layout `from`, converted to each of `to`, each stored to a part of y of its own.
void checkPairs(std::mt19937_64 &random, const Sizes &shape, unsigned bits, unsigned logWarps, const char *target,
                const Encoding &from, const std::vector<Encoding> &to) {
  const ElementType &element = elementOf(bits);
  const std::size_t bytes = elementsOf(shape) * element.bytes;
  const std::string a = tensorType(shape, element.name, from);
  std::string body = zeroConstant + loadView("a", "x", shape, element.name, a);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::string n = std::to_string(i), b = tensorType(shape, element.name, to[i]);
    body += "    %o" + n + " = arith.constant " + std::to_string(i * elementsOf(shape)) + " : i32\n    %y" + n +
            " = tile.addptr %y, %o" + n + " : !tile.ptr<" + element.name + ">, i32\n    %b" + n +
            " = tile_gpu.convert_layout %a : " + a + " to " + b + "\n" +
            storeView("b" + n, "y" + n, shape, element.name, b);
  }
  const std::string text = kernelModule(twoPointers(element.name), body, 1u << logWarps);
  const auto x = randomBytes(random, bytes);
  Emulator gpu(target);
  Buffer &bx = gpu.upload(x), &by = gpu.allocate(bytes * to.size());
  (void)by.poison(std::byte(0xCD));
  const KernelRun run = runKernel(gpu, target, text, 1u << logWarps, {bx, by}, {}, From::Expansion);
  ASSERT_EQ(run.error, "");
  const auto y = gpu.download<unsigned char>(by);
  for (std::size_t i = 0; i < to.size(); ++i)
    ASSERT_TRUE(std::equal(x.begin(), x.end(), y.begin() + static_cast<std::ptrdiff_t>(i * bytes)))
        << target << ", " << bits << " bits, " << (1u << logWarps) << " warps: " << attribute(from) << " to "
        << attribute(to[i]) << "\n"
        << run.ptx;
}

/// One of that kind that fits the shape and a thread's registers, if there is one.
std::optional<Encoding> fitting(std::mt19937_64 &random, unsigned kind, const Sizes &shape, unsigned logWarps,
                                unsigned bits) {
  for (unsigned tries = 0; tries < 100; ++tries) {
    const auto e = layoutOfKind(random, kind, shape, logWarps, bits);
    if (!e)
      return std::nullopt;
    const auto lowered = layout::TileLayout::create(*e, shape);
    if (lowered.ok() && lowered->registers() <= 128)
      return e;
  }
  return std::nullopt;
}

TEST(Pairs, EveryKindToEveryKind) {
  std::mt19937_64 random(21);
  unsigned pairs = 0, without = 0, number = 0;
  for (const char *target : loweringTargets)
    for (const unsigned bits : {8u, 16u, 32u})
      for (unsigned logWarps = 0; logWarps <= 4; ++logWarps)
        for (unsigned source = 0; source < numKinds && !HasFatalFailure(); ++source) {
          if (number++ % pick(7u, 1u)) // a sample: every seventh of target x bits x warps x source
            continue;
          const Sizes shape = {64, 32};
          const auto from = fitting(random, source, shape, logWarps, bits);
          EXPECT_EQ(!from, source == 3 && logWarps < 2) << kindNames[source];
          if (!from) {
            without += numKinds;
            continue;
          }
          std::vector<Encoding> to;
          for (unsigned kind = 0; kind < numKinds; ++kind) {
            const auto e = fitting(random, kind, shape, logWarps, bits);
            EXPECT_EQ(!e, kind == 3 && logWarps < 2) << kindNames[kind];
            if (e)
              to.push_back(*e);
            else
              ++without;
          }
          checkPairs(random, shape, bits, logWarps, target, *from, to);
          pairs += static_cast<unsigned>(to.size());
        }
  std::printf("%u pairs; %u do not exist (wgmma with fewer than four warps)\n", pairs, without);
  EXPECT_GT(pairs, 4 * without);
}

TEST(Pairs, RandomShapesAndLayouts) {
  std::mt19937_64 random(22);
  std::map<std::string, unsigned> strategies;
  for (unsigned done = 0, count = pick(60u, 1000u); done < count && !HasFatalFailure();) {
    const unsigned logWarps = static_cast<unsigned>(random() % 5), bits = 8u << random() % 3;
    const Sizes shape = randomShape(random, 2, 11);
    const auto from = fitting(random, static_cast<unsigned>(random() % numKinds), shape, logWarps, bits),
               to = fitting(random, static_cast<unsigned>(random() % numKinds), shape, logWarps, bits);
    if (!from || !to) // too large for so few threads
      continue;
    const char *target = loweringTargets[random() % std::size(loweringTargets)];
    const auto plan = layout::planTileConversion(*layout::TileLayout::create(*from, shape),
                                                 *layout::TileLayout::create(*to, shape), bits, **findTarget(target));
    ASSERT_TRUE(plan.ok()) << plan.status().toString();
    ++strategies[std::string(layout::strategyName(plan->core.strategy))];
    checkPairs(random, shape, bits, logWarps, target, *from, {*to});
    ++done;
  }
  for (const auto &[name, n] : strategies)
    std::printf("%s: %u\n", name.c_str(), n);
  EXPECT_GE(strategies.size(), pick(4u, 5u));
}

/// 16 x 1, each element held by all threads or warps, to every kind.
TEST(Pairs, SixteenByOneReplicatedOver128ThreadsToAnyLayout) {
  std::mt19937_64 random(23);
  const Sizes shape = {16, 1};
  const Encoding everywhere = layout::Blocked{{16, 1}, {1, 32}, {1, 4}};
  for (const char *target : loweringTargets)
    for (const unsigned bits : {8u, 16u, 32u}) {
      std::vector<Encoding> to;
      for (unsigned kind = 0; kind < numKinds; ++kind)
        if (const auto e = fitting(random, kind, shape, 2, bits))
          to.push_back(*e);
      ASSERT_EQ(to.size(), numKinds);
      checkPairs(random, shape, bits, 2, target, everywhere, to);
      for (const Encoding &e : to) // and back
        checkPairs(random, shape, bits, 2, target, e, {everywhere});
    }
}

} // namespace
} // namespace kiln::test
