// Random programs of clusters under every schedule, against a model of them; and what happens when one of their
// barriers releases nothing.
#include "tests/emulator/ClusterPrograms.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

TEST(ClusterFuzz, PhasesOfStoresAndBarriers) {
  std::mt19937 random(20240611);
  const unsigned cases = pick(30u, 300u), seeds = pick(4u, 20u);
  for (unsigned i = 0; i < cases; ++i) {
    const ClusterProgram p = programOf(randomPhases(random));
    for (const ClusterSetting &s : clusterSettings(seeds)) {
      const ClusterOutcome o = runCluster(p.body, p.shape, s);
      ASSERT_TRUE(o.launched.clean()) << "case " << i << " " << s.text() << o.launched.text() << "\n" << p.body;
      ASSERT_EQ(o.values, p.expected) << "case " << i << " " << s.text() << "\n" << p.body;
    }
  }
}

TEST(ClusterFuzz, AMissingReleaseIsFound) {
  std::mt19937 random(77);
  unsigned tried = 0;
  for (unsigned i = 0; tried < pick(12u, 100u); ++i) {
    ClusterPhases c = randomPhases(random);
    const std::size_t which = random() % c.phases.size();
    ClusterPhase &p = c.phases[which];
    bool allThere = true;
    for (std::size_t q = 0; q < which; ++q)
      allThere &= c.phases[q].leaving == 99;
    if (c.shape.cluster.count() == 1 || p.shift == 0 || p.way == RemoteWay::Own || !allThere)
      continue;
    ++tried;
    p.first = ClusterSync::Aligned;
    std::string bad = programOf(c).body;
    const std::string marker = "add.u32 %r33, %r33, %r2;\n", release = "barrier.cluster.arrive.release.aligned;";
    std::size_t at = 0;
    for (std::size_t q = 0; q <= which; ++q)
      at = bad.find(marker, at) + marker.size();
    bad.replace(bad.find(release, at), release.size(), "barrier.cluster.arrive.relaxed.aligned;");
    for (const ClusterSetting &s : clusterSettings(2)) {
      const ClusterOutcome o = runCluster(bad, c.shape, s);
      EXPECT_TRUE(o.launched.has("race.shared")) << "case " << i << " " << s.text() << o.launched.text() << "\n" << bad;
    }
  }
}
