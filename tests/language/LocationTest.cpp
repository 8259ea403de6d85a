// Every operation has the line that wrote it; paths do not depend on the build folder.
#include "tests/language/LanguageTesting.h"

#include <gtest/gtest.h>

using namespace kiln::language;
using kiln::test::linesOf;

namespace {

constexpr const char *thisFile = "tests/language/LocationTest.cpp";

/// The location of the first line with `what`: "12:3".
std::string locationOf(const Kernel &k, const std::string &what) {
  for (const std::string &line : linesOf(k.text()))
    if (line.find(what) != std::string::npos) {
      const std::string start = std::string(" loc(\"") + thisFile + "\":";
      const auto at = line.rfind(start);
      return at == std::string::npos ? line : line.substr(at + start.size(), line.find(')', at) - at - start.size());
    }
  return "no line with " + what;
}

TEST(Location, OperatorsHaveTheirRightOperandsFunctionsTheirCalls) {
  const unsigned base = __LINE__;
  // clang-format off
  const Kernel k = kernel("where", {}, [&](Arg<f32, "a"> a, Arg<f32, "b"> b, Arg<i32, "n"> n) {
    auto c = a + b * a;
    auto d = c /
             b;
    auto e = exp(d) -
        log(c);
    auto f = -e;
    auto g = f < 1.0f;
    loop(over(0, n),
         [&](auto i) { assume(i < n); });
    when(g, [&] {
      assume(g); });
  });
  // clang-format on
  ASSERT_TRUE(k.ok()) << k.status().toString();
  const auto at = [&](unsigned line, unsigned column) {
    return std::to_string(base + 1 + line) + ":" + std::to_string(column);
  };
  EXPECT_EQ(locationOf(k, "mulf"), at(2, 22));
  EXPECT_EQ(locationOf(k, "addf"), at(2, 18));
  EXPECT_EQ(locationOf(k, "divf"), at(4, 14));
  EXPECT_EQ(locationOf(k, "math.exp"), at(5, 14));
  EXPECT_EQ(locationOf(k, "math.log"), at(6, 9));
  EXPECT_EQ(locationOf(k, "subf"), at(6, 9));
  EXPECT_EQ(locationOf(k, "negf"), at(7, 15));
  EXPECT_EQ(locationOf(k, "arith.constant 1.0"), at(8, 18));
  EXPECT_EQ(locationOf(k, "cmpf olt"), at(8, 18));
  EXPECT_EQ(locationOf(k, "cmpi slt"), at(10, 35));
  EXPECT_EQ(locationOf(k, "tile.assume"), at(10, 24));
  EXPECT_EQ(locationOf(k, "scf.yield"), at(9, 10));
  EXPECT_EQ(locationOf(k, "return"), at(1, 20));
  EXPECT_EQ(locationOf(k, "func.func"), at(1, 20));
}

TEST(Location, EveryOperationHasOne) {
  const Kernel k = kernel("all", {}, [&](Arg<Pointer<f32>, "x"> x, Arg<i32, "n"> n) {
    auto i = reshape(range(0, 64), {8, 8});
    auto m = loop(over(0, n), zeros<f32>({8}), [&](auto k, auto m) {
      return m + when(k > 2, [&] { return max(load(x + i), along(1)); }, [&] { return m; });
    });
    store(x + range(0, 8), cumsum(m, along(0)));
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  unsigned checked = 0;
  for (const std::string &line : linesOf(k.text())) {
    const bool opens = line.ends_with("{") || line.ends_with("):") || line == "// all: warps = 4";
    if (opens)
      continue;
    ++checked;
    EXPECT_NE(line.find(std::string(" loc(\"") + thisFile + "\":"), std::string::npos) << line;
    EXPECT_EQ(line.find(":0:"), std::string::npos) << line;
  }
  EXPECT_GT(checked, 25u);
}

/// A helper whose caller is the place to look at.
template <Element T> Tile<T> doubled(const Tile<T> &x, Location loc = Location::current()) {
  const LocationScope scope(loc);
  return x + x;
}
template <Element T> Tile<T> quadrupled(const Tile<T> &x, Location loc = Location::current()) {
  const LocationScope scope(loc);
  return doubled(x) + doubled(x);
}

TEST(Location, HelpersMayTakeTheirCallers) {
  unsigned line = 0;
  const Kernel k = kernel("helper", {}, [&](Arg<Pointer<f32>, "x"> x) {
    auto y = load(x + range(0, 8));
    line = __LINE__ + 1;
    auto z = quadrupled(y);
    store(x + range(0, 8), z * 3);
  });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  unsigned adds = 0;
  for (const std::string &text : linesOf(k.text()))
    if (text.find("addf") != std::string::npos) {
      ++adds;
      EXPECT_NE(text.find(":" + std::to_string(line) + ":"), std::string::npos) << text;
    }
  EXPECT_EQ(adds, 3u);
  EXPECT_EQ(locationOf(k, "mulf"), std::to_string(line + 1) + ":32");
}

TEST(Location, AnErrorInAHelperIsItsCallers) {
  unsigned line = 0;
  const Kernel k = kernel("helper", {}, [&](Arg<i32, "n"> n) {
    Tile<f32> nothing;
    line = __LINE__ + 1;
    (void)quadrupled(nothing);
  });
  EXPECT_EQ(k.status().message().find(std::string(thisFile) + ":" + std::to_string(line) + ":"), 0u)
      << k.status().message();
}

TEST(Location, SourceRootsAreCutOff) {
  const auto fileIn = [](std::string root) {
    const Kernel k = kernel("k", {.sourceRoot = std::move(root)}, [](Arg<i32, "n"> n) {});
    const auto at = k.text().find("loc(\"");
    return k.text().substr(at + 5, k.text().find('"', at + 5) - at - 5);
  };
  EXPECT_EQ(fileIn(""), "tests/language/LocationTest.cpp");
  EXPECT_EQ(fileIn("tests"), "language/LocationTest.cpp");
  EXPECT_EQ(fileIn("tests/"), "language/LocationTest.cpp");
  EXPECT_EQ(fileIn("tests/language"), "LocationTest.cpp");
  EXPECT_EQ(fileIn("tests/lang"), "tests/language/LocationTest.cpp"); // whole names only
  EXPECT_EQ(fileIn("/"), "tests/language/LocationTest.cpp");
  EXPECT_EQ(fileIn("tests/language/LocationTest.cpp"), "tests/language/LocationTest.cpp");
}

} // namespace
