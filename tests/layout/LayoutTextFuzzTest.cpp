// Mutations of the corpus: whatever the text, the parser returns a value or a Status, quickly, and a value prints to a
// text that gives the same value again, and lowers to a layout or a diagnostic.
#include "compiler/layout/LayoutText.h"
#include "tests/layout/LayoutTestSupport.h"
#include "tests/support/TestTier.h"

#include <ctime>
#include <fstream>

using namespace kiln;
using namespace kiln::layout;
using namespace kiln::layout::test;

namespace {

std::string mutated(Random &random, const std::vector<std::string> &corpus) {
  auto any = [&](const std::string &s) { return static_cast<std::size_t>(random.in(0, int(s.size()))); };
  std::string text = corpus[std::size_t(random.in(0, int(corpus.size()) - 1))];
  static const char *const pieces[] = {"<",
                                       ">",
                                       "[",
                                       "]",
                                       ",",
                                       "=",
                                       ":",
                                       "x",
                                       "-",
                                       "+",
                                       "0",
                                       "1",
                                       "64",
                                       "j4",
                                       "i1",
                                       "parent=",
                                       "order=",
                                       "f16",
                                       " ",
                                       "\n",
                                       "99999999999999999999",
                                       "-9223372036854775808",
                                       "slice<dim=0, parent=",
                                       "transposed<perm=[1,0], parent=",
                                       "scalar",
                                       "register=[",
                                       "\xff",
                                       "dim=1",
                                       "4611686018427387904",
                                       "mma<version=3, warpsPerCTA=[4,1]>",
                                       "cta=<"};
  for (int n = random.in(1, 4); n > 0; --n) {
    std::size_t at = any(text), length = std::size_t(random.in(1, 12));
    switch (random.in(0, 6)) {
    case 0: // cut
      text.erase(std::min(at, text.size()), length);
      break;
    case 1: // insert a piece
      text.insert(at, pieces[random.in(0, int(std::size(pieces)) - 1)]);
      break;
    case 2: // another byte
      if (at < text.size())
        text[at] = static_cast<char>(random.in(0, 255));
      break;
    case 3: { // a part of another text
      const std::string &other = corpus[std::size_t(random.in(0, int(corpus.size()) - 1))];
      std::size_t from = any(other);
      text.insert(at, other.substr(from, std::size_t(random.in(1, 60))));
      break;
    }
    case 4: // repeat a part
      text.insert(at, text.substr(std::min(at, text.size()), length * 4));
      break;
    case 5: // another number
      if (auto digit = text.find_first_of("0123456789", at); digit != std::string::npos)
        text.replace(digit, 1, std::to_string(1 << random.in(0, 12)));
      break;
    case 6: // cut off
      text.resize(at);
      break;
    }
  }
  return text;
}

} // namespace

TEST(LayoutTextFuzz, MutationsGiveAValueOrAStatus) {
  std::vector<std::string> corpus;
  std::ifstream in(KILN_SOURCE_DIR "/tests/layout/data/layout_texts.txt");
  for (std::string line; std::getline(in, line);)
    corpus.push_back(line);
  ASSERT_GE(corpus.size(), 30u);
  Random random(71);
  std::clock_t begin = std::clock(); // processor time: a busy machine is no failure
  int values = 0, layouts = 0, refused = 0, rounds = kiln::test::pick(50000, 200000);
  for (int round = 0; round < rounds; ++round) {
    std::string text = mutated(random, corpus);
    auto parsed = parseLayout(text);
    if (!parsed.ok()) {
      ++refused;
      EXPECT_FALSE(parsed.status().message().empty());
      EXPECT_LT(parsed.status().toString().size(), 2000u) << text;
      continue;
    }
    ++values;
    std::string printed = print(*parsed);
    auto again = parseLayout(printed);
    ASSERT_TRUE(again.ok()) << text << "\n" << printed << "\n" << again.status().toString();
    EXPECT_EQ(*again, *parsed) << printed;
    EXPECT_EQ(print(*again), printed);
    if (parsed->isShared())
      layouts += lowerShared(*parsed).ok();
    else if (auto tile = lowerDistributed(*parsed); tile.ok()) {
      ++layouts;
      EXPECT_TRUE(tile->core().checkDistributed().ok()) << printed;
    }
  }
  EXPECT_GT(values, rounds / 50);
  EXPECT_GT(layouts, rounds / 100);
  EXPECT_GT(refused, rounds / 10);
  EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, 0.001 * rounds) << "a millisecond a text";
}
