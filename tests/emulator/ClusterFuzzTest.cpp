// Random programs of clusters: phases of remote stores, atomics, barriers in their forms and exits of warps, against a
// model of them that runs the phases one after the other.
#include "tests/emulator/ClusterKernels.h"

#include <gtest/gtest.h>

#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

enum class Sync { Aligned, Unaligned, Relaxed, Apart };
enum class Way { Shared, Generic, Atomic, Own };

struct Phase {
  std::uint32_t shift = 0, add = 1; ///< writes to rank + shift
  Way way = Way::Shared;
  Sync first = Sync::Aligned, second = Sync::Aligned;
  std::uint32_t leaving = 99; ///< the warp that exits after it
};

struct Case {
  ClusterShape shape;
  std::vector<Phase> phases;
};

Case randomCase(std::mt19937 &random) {
  auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  static constexpr Dim3 clusters[] = {{1},    {2},    {4},       {8},       {16},      {1, 2},  {2, 2}, {2, 4},
                                      {4, 4}, {3, 2}, {2, 2, 2}, {1, 1, 4}, {2, 1, 8}, {1, 16}, {5},    {7}};
  Case c;
  const Dim3 k = clusters[below(std::size(clusters))];
  c.shape = {{k.x * (1 + below(2)), k.y * (1 + below(2)), k.z}, k, {1 + below(128)}};
  const std::uint32_t warps = (c.shape.block.x + 31) / 32, n = static_cast<std::uint32_t>(k.count());
  for (std::uint32_t p = 2 + below(4); p; --p) {
    Phase phase;
    phase.shift = below(n);
    phase.add = 1 + below(1000);
    phase.way = static_cast<Way>(below(4));
    phase.first = static_cast<Sync>(below(4));
    phase.second = static_cast<Sync>(below(4));
    phase.leaving = below(3) ? 99 : 1 + below(warps); // warp 0 stays
    c.phases.push_back(phase);
  }
  return c;
}

/// `between` stands where a split barrier allows work.
std::string syncText(Sync s, const std::string &between) {
  switch (s) {
  case Sync::Aligned:
    return "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n" + between;
  case Sync::Unaligned:
    return "barrier.cluster.arrive; barrier.cluster.wait;\n" + between;
  case Sync::Relaxed:
    return "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n" + between;
  case Sync::Apart:
    return "barrier.cluster.arrive.aligned;\n" + between + "barrier.cluster.wait.aligned;\n";
  }
  return "";
}

/// %r30 sums up what the thread found in its word.
std::string textOf(const Case &c) {
  std::string text = "mov.u32 %r30, 0; shr.u32 %r31, %r2, 5; st.shared.u32 [%r4], 0;\n" + syncText(Sync::Aligned, "");
  for (const Phase &p : c.phases) {
    text += "add.u32 %r32, %r10, " + std::to_string(p.shift) +
            "; rem.u32 %r32, %r32, %r11; mad.lo.u32 %r33, %r12, 7, " + std::to_string(p.add) +
            "; add.u32 %r33, %r33, %r2;\n";
    switch (p.way) {
    case Way::Shared:
      text += "mapa.shared::cluster.u32 %r34, %r4, %r32; st.shared::cluster.u32 [%r34], %r33;\n";
      break;
    case Way::Generic:
      text +=
          "cvt.u64.u32 %rd10, %r4; cvta.shared.u64 %rd10, %rd10; mapa.u64 %rd10, %rd10, %r32; st.u32 [%rd10], %r33;\n";
      break;
    case Way::Atomic: // old + value
      text += "mapa.shared::cluster.u32 %r34, %r4, %r32; red.relaxed.cluster.shared::cluster.add.u32 [%r34], %r33;\n";
      break;
    case Way::Own:
      text += "st.shared.u32 [%r4], %r33;\n";
      break;
    }
    text += syncText(p.first, "add.u32 %r35, %r30, %r30;\n");
    text += "ld.shared.u32 %r36, [%r4]; mad.lo.u32 %r30, %r30, 31, %r36;\n";
    text += syncText(p.second, "add.u32 %r35, %r30, 1;\n");
    if (p.leaving != 99)
      text += "setp.eq.u32 %p5, %r31, " + std::to_string(p.leaving) + "; @%p5 bra OUT;\n";
  }
  return text + "OUT: st.global.u32 [%rd2], %r30;\n";
}

std::vector<std::uint32_t> model(const Case &c) {
  const Dim3 g = c.shape.grid, k = c.shape.cluster;
  const std::uint32_t threads = c.shape.block.x, n = static_cast<std::uint32_t>(k.count());
  std::vector<std::uint32_t> sums(g.count() * threads, 0);
  for (std::uint32_t cz = 0; cz < g.z / k.z; ++cz)
    for (std::uint32_t cy = 0; cy < g.y / k.y; ++cy)
      for (std::uint32_t cx = 0; cx < g.x / k.x; ++cx) {
        auto linear = [&](std::uint32_t rank) {
          return ((cz * k.z + rank / k.x / k.y) * g.y + cy * k.y + rank / k.x % k.y) * g.x + cx * k.x + rank % k.x;
        };
        for (std::uint32_t t = 0; t < threads; ++t) { // a thread meets only words of its own number
          std::vector<std::uint32_t> word(n, 0);
          for (const Phase &p : c.phases) {
            std::vector<std::uint32_t> next = word;
            for (std::uint32_t r = 0; r < n; ++r) {
              const std::uint32_t value = linear(r) * 7 + p.add + t;
              std::uint32_t &to = next[p.way == Way::Own ? r : (r + p.shift) % n];
              to = p.way == Way::Atomic ? to + value : value;
            }
            word = next;
            for (std::uint32_t r = 0; r < n; ++r) {
              std::uint32_t &sum = sums[linear(r) * threads + t];
              sum = sum * 31 + word[r];
            }
            if (p.leaving == t / 32)
              break;
          }
        }
      }
  return sums;
}

} // namespace

TEST(ClusterFuzz, PhasesOfStoresAndBarriers) {
  std::mt19937 random(20240611);
  const unsigned cases = pick(30u, 300u), seeds = pick(4u, 20u);
  for (unsigned i = 0; i < cases; ++i) {
    const Case c = randomCase(random);
    const std::string text = textOf(c);
    const std::vector<std::uint32_t> expected = model(c);
    for (const ClusterSetting &s : clusterSettings(seeds)) {
      const ClusterOutcome o = runCluster(text, c.shape, s);
      ASSERT_TRUE(o.launched.clean()) << "case " << i << " " << s.text() << o.launched.text() << "\n" << text;
      ASSERT_EQ(o.values, expected) << "case " << i << " " << s.text() << "\n" << text;
    }
  }
}

TEST(ClusterFuzz, AMissingBarrierIsFound) {
  // The same programs, with one of the barriers after remote stores weakened: found whenever somebody reads a word that
  // another block wrote.
  std::mt19937 random(77);
  unsigned tried = 0;
  for (unsigned i = 0; tried < pick(12u, 100u); ++i) {
    Case c = randomCase(random);
    Phase &p = c.phases[random() % c.phases.size()];
    const auto n = c.shape.cluster.count();
    bool before = true; // all threads still there
    for (const Phase &q : c.phases) {
      if (&q == &p)
        break;
      before &= q.leaving == 99;
    }
    if (n == 1 || p.shift % n == 0 || p.way == Way::Own || !before)
      continue;
    ++tried;
    const std::string good = textOf(c);
    p.first = Sync::Aligned;
    std::string bad = textOf(c);
    const std::string marker = "add.u32 %r33, %r33, %r2;\n";
    std::size_t at = 0;
    for (const Phase &q : c.phases) {
      at = bad.find(marker, at) + marker.size();
      if (&q == &p)
        break;
    }
    const std::string release = "barrier.cluster.arrive.release.aligned;";
    bad.replace(bad.find(release, at), release.size(), "barrier.cluster.arrive.relaxed.aligned;");
    for (const ClusterSetting &s : clusterSettings(2)) {
      const ClusterOutcome o = runCluster(bad, c.shape, s);
      EXPECT_TRUE(o.launched.has("race.shared")) << "case " << i << " " << s.text() << o.launched.text() << "\n" << bad;
    }
  }
}
