// Mutated PTX: every input gives a Module or a Status in bounded time, and every Module survives its printing.
#include "Constructs.h"
#include "PtxTesting.h"

#include "runtime/ptx/Parser.h"
#include "runtime/ptx/Printer.h"
#include "tests/support/TestTier.h"

#include <ctime>
#include <gtest/gtest.h>
#include <random>

namespace kiln::ptx::test {
namespace {

class Mutator {
public:
  Mutator(const std::vector<std::string> &seeds, unsigned seed) : corpus(seeds), random(seed) {}

  std::string next() {
    std::string text = pick(corpus);
    for (std::size_t n = below(3) ? 1 : 2 + below(3); n != 0; --n)
      mutate(text);
    return text;
  }

private:
  std::size_t below(std::size_t n) { return n ? random() % n : 0; }
  template <typename T> const T &pick(const std::vector<T> &list) { return list[below(list.size())]; }

  /// Start and length of a run of name characters, or of one other character.
  std::pair<std::size_t, std::size_t> token(const std::string &text) {
    auto word = [&](std::size_t i) {
      const char ch = text[i];
      return std::isalnum(static_cast<unsigned char>(ch)) || ch == '_' || ch == '$' || ch == '%' || ch == '.';
    };
    std::size_t begin = below(text.size()), end = begin + 1;
    if (word(begin)) {
      while (begin > 0 && word(begin - 1))
        --begin;
      while (end < text.size() && word(end))
        ++end;
    }
    return {begin, end - begin};
  }

  std::string repeated(std::string_view piece) {
    std::string out;
    for (std::size_t n = std::size_t{1} << below(17); n != 0; --n)
      out += piece;
    return out;
  }

  void mutate(std::string &text) {
    if (text.empty())
      return;
    static const std::vector<std::string_view> nests = {"{",  "}",    "(",      "[",  "-",  "!",  "~", "{}",
                                                        "1?", "1?1:", "(.u64)", "+1", ".a", "a|", ",", "{{",
                                                        "\"", "/*",   "@",      "<",  ":",  "a:"};
    static const std::vector<std::string_view> numbers = {"0",
                                                          "18446744073709551615",
                                                          "99999999999999999999999",
                                                          "0xFFFFFFFFFFFFFFFF",
                                                          "-9223372036854775808",
                                                          "4294967296",
                                                          "1e308",
                                                          "0f7FFFFFFF",
                                                          "0dFFFFFFFFFFFFFFFF",
                                                          "1.0",
                                                          "65536",
                                                          "1073741824",
                                                          "0U",
                                                          "1/0",
                                                          "017",
                                                          "2"};
    static const std::vector<std::string_view> words = {".reg",
                                                        ".b32",
                                                        ".v4",
                                                        ".align",
                                                        "{",
                                                        "}",
                                                        ";",
                                                        ",",
                                                        "[",
                                                        "]",
                                                        "(",
                                                        ")",
                                                        ".param",
                                                        ".extern",
                                                        ".entry",
                                                        ".func",
                                                        ".loc 1 2 3",
                                                        ".pragma \"used_bytes_mask 3\";",
                                                        "WARP_SZ",
                                                        "_",
                                                        "generic",
                                                        "=",
                                                        ".branchtargets",
                                                        ".ptr",
                                                        ".callprototype",
                                                        ".section .s {",
                                                        ".attribute(.managed)",
                                                        "call",
                                                        "%p",
                                                        "\0",
                                                        "\xff",
                                                        ".noreturn",
                                                        ".global"};
    const std::size_t at = below(text.size()), length = below(std::min<std::size_t>(text.size() - at, 200)) + 1;
    switch (below(11)) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(below(text.size()), text.substr(at, length));
      break;
    case 3: { // two tokens change places
      auto a = token(text), b = token(text);
      if (a.first > b.first)
        std::swap(a, b);
      if (a.first + a.second <= b.first) {
        const std::string first = text.substr(a.first, a.second), second = text.substr(b.first, b.second);
        text.replace(b.first, b.second, first);
        text.replace(a.first, a.second, second);
      }
      break;
    }
    case 4:
      text.resize(at);
      break;
    case 5: { // the head of this one and the tail of another
      const std::string &other = pick(corpus);
      text = text.substr(0, at) + other.substr(below(other.size()));
      break;
    }
    case 6:
      text.insert(at, repeated(pick(nests)));
      break;
    case 7: { // a number becomes a huge or an odd one
      const std::size_t digit = text.find_first_of("0123456789", at);
      if (digit != text.npos) {
        const std::size_t end = text.find_first_not_of("0123456789xabcdefABCDEF", digit);
        text.replace(digit, (end == text.npos ? text.size() : end) - digit, pick(numbers));
      }
      break;
    }
    case 8: {
      const auto t = token(text);
      text.replace(t.first, t.second, pick(words));
      break;
    }
    case 9:
      text.insert(token(text).first, std::string(pick(words)) + " ");
      break;
    case 10: {
      const auto t = token(text);
      text.erase(t.first, t.second);
      break;
    }
    }
  }

  const std::vector<std::string> &corpus;
  std::mt19937 random;
};

double cpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

TEST(PtxFuzz, ModuleOrStatus) {
  std::vector<std::string> corpus;
  for (const Sample &s : samples())
    for (int i = 0; i < 10; ++i) // as likely together as the constructs
      corpus.push_back(s.text);
  for (const Construct &c : constructs())
    if (c.error.empty())
      corpus.push_back(moduleOf(c));
  for (std::string_view text : callConstructs())
    corpus.push_back(moduleOfCalls(text));

  constexpr double limitSeconds = 2; // of the processor, for an input of at most a few hundred KB
  Mutator mutator(corpus, 20240607);
  unsigned modules = 0, statuses = 0;
  for (unsigned n = kiln::test::pick(3000u, 50000u); n != 0; --n) {
    const std::string text = mutator.next();
    const double begin = cpuSeconds();
    auto r = parse(text, "t.ptx");
    ASSERT_LT(cpuSeconds() - begin, limitSeconds) << text.substr(0, 4000);
    if (!r.ok()) {
      ++statuses;
      const Status &s = r.status();
      ASSERT_TRUE(s.code() == StatusCode::CompileError || s.code() == StatusCode::Unsupported) << s.toString();
      ASSERT_TRUE(s.message().starts_with("t.ptx:")) << s.toString();
      ASSERT_LT(s.message().size(), 100000u);
      continue;
    }
    ++modules;
    const std::string out = print(**r);
    auto again = parse(out, "again.ptx");
    ASSERT_TRUE(again.ok()) << again.status().toString() << "\n" << out;
    ASSERT_EQ(difference(**r, **again), "") << out;
  }
  // Both outcomes must stay common, or the mutations test nothing.
  EXPECT_GT(modules, (modules + statuses) / 20);
  EXPECT_GT(statuses, (modules + statuses) / 4);
  RecordProperty("modules", static_cast<int>(modules));
}

TEST(PtxFuzz, EveryPrefixOfEveryConstruct) {
  for (const Construct &c : constructs()) {
    const std::string text = moduleOf(c);
    for (std::size_t n = 0; n < text.size(); n += kiln::test::pick<std::size_t>(7, 1)) {
      auto r = parse(text.substr(0, n), "t.ptx");
      ASSERT_TRUE(r.ok() || r.status().message().starts_with("t.ptx:")) << text.substr(0, n);
    }
  }
}

} // namespace
} // namespace kiln::ptx::test
