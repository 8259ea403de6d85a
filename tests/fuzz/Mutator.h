//===- Mutator.h - Programs with something wrong ----------------------------===//
//
// One to four changes of a program, by bytes, tokens or lines: deleted, doubled, swapped, moved; numbers replaced by
// small, huge and negative ones; types, operands, operations and words replaced by others of the corpus or by unknown
// ones; truncated; nested deeply.  A seed and a number give the same mutation on every machine.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_FUZZ_MUTATOR_H
#define KILN_TESTS_FUZZ_MUTATOR_H

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

/// Whitespace is a token too: the tokens together are the text.
std::vector<std::string> tokensOf(std::string_view text);

class Mutator {
public:
  /// Learns the corpus's words.
  explicit Mutator(const std::vector<std::string> &corpus);

  std::string mutate(const std::string &text, std::uint64_t number) const;

private:
  using Random = std::mt19937_64;
  enum class Kind : unsigned char { Space, Number, Value, Operation, Type, Word, Alias, String, Other };
  static Kind kindOf(std::string_view token);
  void change(std::string &text, Random &random) const;
  void changeToken(std::vector<std::string> &tokens, Random &random) const;
  static void changeTyped(std::string &text, Random &random);
  static void changeLines(std::string &text, Random &random, const std::vector<std::string> &others);
  static void changeBytes(std::string &text, Random &random);
  static void nest(std::string &text, Random &random);

  std::map<Kind, std::vector<std::string>> known;
  std::vector<std::string> lines;
};

} // namespace kiln::test

#endif // KILN_TESTS_FUZZ_MUTATOR_H
