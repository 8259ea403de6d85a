#include "compiler/target/Target.h"

#include <gtest/gtest.h>

#include <set>

using namespace kiln;

TEST(Target, NamesAreUniqueAndFoundByThemselves) {
  std::set<std::string_view> seen;
  for (const Target &t : allTargets()) {
    EXPECT_TRUE(seen.insert(t.name).second) << t.name;
    Result<const Target *> r = findTarget(t.name);
    ASSERT_TRUE(r.ok());
    EXPECT_EQ(*r, &t);
    EXPECT_EQ(t.name, "sm_" + std::to_string(t.sm) + (t.archSpecific ? "a" : ""));
  }
  EXPECT_EQ(seen.size(), 13u);
}

TEST(Target, UnknownNameListsWhatExistsAndTheNearest) {
  Result<const Target *> r = findTarget("sm_90b");
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.status().code(), StatusCode::NotFound);
  EXPECT_NE(r.status().message().find("'sm_90b'"), std::string::npos);
  for (const Target &t : allTargets())
    EXPECT_NE(r.status().message().find(t.name), std::string::npos) << t.name;
  EXPECT_NE(r.status().remedy().find("sm_90a"), std::string::npos);
  for (const char *bad : {"", "sm_", "90a", "sm_70", "SM_80", "sm_80 "})
    EXPECT_FALSE(findTarget(bad).ok()) << bad;
}

TEST(Target, CapabilitiesFollowTheArchitecture) {
  auto has = [](const char *name, Capability c) { return (*findTarget(name))->has(c); };
  std::set<std::string_view> exchange, warpgroup, tensorMemory;
  for (const Target &t : allTargets()) {
    EXPECT_TRUE(t.has(Capability::Ldmatrix)) << t.name;
    EXPECT_EQ(t.has(Capability::CpAsync), t.sm >= 80) << t.name;
    EXPECT_EQ(t.has(Capability::Tma), t.sm >= 90) << t.name;
    EXPECT_EQ(t.has(Capability::Stmatrix), t.sm >= 90) << t.name;
    EXPECT_EQ(t.has(Capability::Wide256), t.sm >= 100) << t.name;
    EXPECT_EQ(t.has(Capability::Redux), t.sm >= 80) << t.name;
    EXPECT_EQ(t.has(Capability::Fp8Mma), t.sm >= 89) << t.name;
    if (t.has(Capability::MmaToMma))
      exchange.insert(t.name);
    if (t.has(Capability::Wgmma))
      warpgroup.insert(t.name);
    if (t.has(Capability::Tcgen05))
      tensorMemory.insert(t.name);
  }
  EXPECT_EQ(exchange, (std::set<std::string_view>{"sm_80", "sm_86", "sm_87", "sm_89"}));
  EXPECT_EQ(warpgroup, (std::set<std::string_view>{"sm_90a"}));
  EXPECT_EQ(tensorMemory, (std::set<std::string_view>{"sm_100a", "sm_103a", "sm_110a"}));
  EXPECT_FALSE(has("sm_90", Capability::Setmaxnreg));
}

TEST(Target, SharedMemoryOrders) {
  for (const Target &t : allTargets()) {
    // What ptxas takes: all of it for one architecture alone (suffix a), else 48 KiB.
    EXPECT_EQ(t.sharedStatic, t.name.back() == 'a' ? t.sharedOptIn : 48u * 1024) << t.name;
    EXPECT_LE(t.sharedOptIn + t.sharedReserved, t.sharedPerSm) << t.name;
  }
}

TEST(Target, ResidentBlocksTakesTheTightestLimit) {
  const Target &h = **findTarget("sm_90a");
  EXPECT_EQ(residentBlocks(h, 128, 0, 0), 16u);             // warps: 64 / 4
  EXPECT_EQ(residentBlocks(h, 32, 0, 0), 32u);              // blocks an SM
  EXPECT_EQ(residentBlocks(h, 128, 100 * 1024, 0), 2u);     // shared memory: 228 / 101
  EXPECT_EQ(residentBlocks(h, 128, h.sharedOptIn, 0), 1u);
  EXPECT_EQ(residentBlocks(h, 128, h.sharedOptIn + 1, 0), 0u);
  EXPECT_EQ(residentBlocks(h, 256, 0, 255), 1u);            // registers: 65536 / (8 * 8192)
  EXPECT_EQ(residentBlocks(h, 1025, 0, 0), 0u);
  EXPECT_EQ(residentBlocks(h, 0, 0, 0), 0u);
}

TEST(Target, CapabilityNamesAreUnique) {
  std::set<std::string_view> seen;
  for (Capability c : allCapabilities())
    EXPECT_TRUE(seen.insert(capabilityName(c)).second);
}
