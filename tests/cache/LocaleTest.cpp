#include "tests/cache/CacheTestSupport.h"

#include <gtest/gtest.h>

#include <clocale>
#include <locale>

using namespace kiln::cache;
using namespace kiln::cache::test;

namespace {

/// Writes 1234567 as 1.2.3.4.5.6.7.
struct DottedDigits : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  char do_decimal_point() const override { return ','; }
  std::string do_grouping() const override { return "\1"; }
};

} // namespace

/// A process of any locale reads what a process of any other wrote: the same names, the same bytes.
TEST(Locale, ChangesNeitherNamesNorBytes) {
  const KeyText key = sampleKey(12345).set("program", std::string(1'234'567, '\n'));
  const Entry entry = sampleEntry(12345, 7654321);
  kiln::test::TemporaryDirectory plain, other;
  ASSERT_TRUE(openCache(plain.path())->store(key, entry).ok());

  const std::string failure = inChild([&]() -> std::string {
    for (const char *name : {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "tr_TR.UTF-8", "C.UTF-8"})
      if (std::setlocale(LC_ALL, name))
        break;
    std::locale::global(std::locale(std::locale(), new DottedDigits));
    const auto found = openCache(plain.path())->lookup(key);
    if (!found.ok() || !found->has_value() || **found != entry)
      return "not found under another locale";
    return openCache(other.path())->store(key, entry).toString();
  });
  EXPECT_EQ(failure, "");
  EXPECT_EQ(namesIn(plain.path()), namesIn(other.path()));
  EXPECT_TRUE(readBytes(entryPathOf(key, plain.path())) == readBytes(entryPathOf(key, other.path())));
}
