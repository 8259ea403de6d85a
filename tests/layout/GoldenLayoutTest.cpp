// The answers of the executable reference: layouts with free masks, encodings, shared encodings, vector widths, tiles.
#include "compiler/layout/MemoryAccess.h"
#include "compiler/layout/TileLayout.h"
#include "tests/layout/LayoutTestSupport.h"

#include <set>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

// A group of cases that the reference gains fails here until a test reads it.
TEST(GoldenLayouts, EveryGroupIsRead) {
  const std::set<std::string> here = {"layouts", "encodings", "shared", "vectors", "tiles", "tma_addresses"},
                              planner = {"conversions", "tile_conversions", "local", "reductions"}; // GoldenPlannerTest
  for (const auto &[name, group] : golden().items()) {
    if (group.is_array())
      EXPECT_EQ(here.count(name) + planner.count(name), 1u) << name;
  }
}

TEST(GoldenLayouts, LayoutsAndFreeMasks) {
  const auto &list = golden().at("layouts");
  ASSERT_GE(list.size(), 400u);
  for (std::size_t i = 0; i < list.size(); ++i) {
    LinearLayout layout = goldenLayout(i);
    EXPECT_TRUE(layout.isSurjective()) << i;
    auto free = layout.freeMasks();
    for (InDim d : hardwareDims)
      EXPECT_EQ(free[index(d)], list[i].at("free").at(index(d)).get<BitVector>())
          << "layout " << i << " " << inDimName(d);
  }
}

TEST(GoldenLayouts, Encodings) {
  const auto &list = golden().at("encodings");
  ASSERT_GE(list.size(), 140u);
  for (const auto &entry : list) {
    auto layout = lower(encodingFromJson(entry.at("enc")), entry.at("shape").get<Sizes>());
    ASSERT_TRUE(layout.ok()) << entry.dump() << "\n" << layout.status().toString();
    LinearLayout want = goldenLayout(entry.at("layout").get<std::size_t>());
    EXPECT_EQ(*layout, want) << entry.dump() << "\n" << layout->text() << "\n" << want.text();
    EXPECT_EQ(layout->hash(), want.hash());
  }
}

TEST(GoldenLayouts, SharedEncodings) {
  const auto &list = golden().at("shared");
  ASSERT_GE(list.size(), 80u);
  for (const auto &entry : list) {
    auto layout = lowerShared(sharedFromJson(entry.at("enc")), entry.at("shape").get<Sizes>(), entry.at("bits"));
    ASSERT_TRUE(layout.ok()) << entry.dump() << "\n" << layout.status().toString();
    auto columns = layout->columns(InDim::Offset);
    EXPECT_EQ(std::vector<BitVector>(columns.begin(), columns.end()), entry.at("offset").get<std::vector<BitVector>>())
        << entry.dump();
    EXPECT_TRUE(layout->checkShared().ok());
  }
}

TEST(GoldenLayouts, VectorWidths) {
  const auto &list = golden().at("vectors");
  ASSERT_GE(list.size(), 60u);
  for (const auto &entry : list) {
    LinearLayout layout = goldenLayout(entry.at(0).get<std::size_t>());
    EXPECT_EQ(vectorElements(layout, entry.at(1), entry.at(2), entry.at(3), entry.at(4), entry.at(5)),
              entry.at(6).get<std::uint32_t>())
        << entry.dump();
  }
}

TEST(GoldenLayouts, Tiles) {
  const auto &list = golden().at("tiles");
  ASSERT_GE(list.size(), 33u);
  for (const auto &entry : list) {
    SCOPED_TRACE(entry.dump());
    const auto shape = entry.at(1).get<Sizes>();
    auto tile = TileLayout::create(encodingFromJson(entry.at(0)), shape);
    ASSERT_TRUE(tile.ok()) << tile.status().toString();
    EXPECT_EQ(tile->core(), goldenLayout(entry.at(2).get<std::size_t>()));
    EXPECT_EQ(tile->tile().counts, Coords(entry.at(3).get<std::vector<std::uint32_t>>()));
    EXPECT_EQ(tile->shape(), shape);
  }
}

TEST(GoldenLayouts, TmaAddresses) {
  const auto &list = golden().at("tma_addresses");
  ASSERT_GE(list.size(), 7u);
  for (const auto &entry : list) {
    SCOPED_TRACE(entry.at(0).dump());
    const Tma encoding{entry.at(2), entry.at(3).get<Sizes>()};
    auto tile = SharedTile::create(encoding, entry.at(0).get<Sizes>(), entry.at(1).get<unsigned>());
    ASSERT_TRUE(tile.ok()) << tile.status().toString();
    ASSERT_GE(entry.at(4).size(), 24u);
    for (const auto &c : entry.at(4))
      EXPECT_EQ(tile->byteOffset(Coords{c.at(0).get<std::uint32_t>(), c.at(1).get<std::uint32_t>()}),
                c.at(2).get<std::uint64_t>())
          << c.dump();
  }
}
