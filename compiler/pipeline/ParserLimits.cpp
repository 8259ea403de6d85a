#include "compiler/pipeline/ParserLimits.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace kiln {
namespace {

bool isIdentifier(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.';
}

/// The bare identifier at `i`, empty if none begins there.
std::string_view identifierAt(std::string_view text, std::size_t i) {
  std::size_t end = i;
  if (std::isalpha(static_cast<unsigned char>(text[i])) || text[i] == '_')
    while (end < text.size() && isIdentifier(text[end]))
      ++end;
  return text.substr(i, end - i);
}

/// Follows `array`, `<` and the element type, whatever blanks and comments are between them.
class ArrayAttributes {
public:
  /// The next token: an identifier and the character before it, or a character.
  bool refuses(std::string_view identifier, char before, char c) {
    // An alias (`!x`) may stand for `index`; other types that begin so are no elements of arrays either.
    const bool bad = seen == Open && (identifier == "index" || (identifier.empty() && c == '!'));
    constexpr std::string_view sigils = "!#%@^";
    seen = identifier == "array" && sigils.find(before) == sigils.npos ? Name
           : seen == Name && identifier.empty() && c == '<'            ? Open
                                                                       : Nothing;
    return bad;
  }

private:
  enum { Nothing, Name, Open } seen = Nothing;
};

} // namespace

ParserLimit checkParserLimits(std::string_view text) {
  unsigned depth = 0, prefixes = 0, line = 1;
  std::size_t lineBegin = 0;
  unsigned aliases = 0;
  bool alias = false; ///< the token before was a name of one
  ArrayAttributes arrays;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '\n') {
      ++line;
      lineBegin = i + 1;
      continue;
    }
    if (c == '/' && next == '/') {
      i = std::min(text.find_first_of("\n\r", i), text.size()) - 1;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\0')
      continue;
    const std::string_view identifier = identifierAt(text, i);
    if (arrays.refuses(identifier, i ? text[i - 1] : '\0', c))
      return {line, static_cast<unsigned>(i - lineBegin + 1),
              "an array attribute's elements must be integers or floating-point numbers",
              "write their type out: array<i64: ...>, array<f32: ...>"};
    if (!identifier.empty()) {
      i += identifier.size() - 1;
      prefixes = 0;
      alias = false;
      continue;
    }
    if (c == '#' || c == '!') { // "#a = .." defines an alias: each may hold the one before
      while (i + 1 < text.size() && isIdentifier(text[i + 1]))
        ++i;
      prefixes = 0;
      alias = true;
      continue;
    }
    if (std::exchange(alias, false) && c == '=' && ++aliases > maxAliases)
      return {line, static_cast<unsigned>(i - lineBegin + 1),
              "the program defines more than " + std::to_string(maxAliases) + " aliases",
              "write attributes and types out where they are used"};
    if (c == '"') { // a string ends on its line
      while (++i < text.size() && text[i] != '"' && text[i] != '\n')
        i += text[i] == '\\';
      if (i < text.size() && text[i] == '\n')
        --i;
      prefixes = 0;
      continue;
    }
    if ((c == '-' && next == '>') || (c == '>' && next == '=')) { // an arrow and a comparison close nothing
      ++i;
      prefixes = 0;
      continue;
    }
    // "- - - x" in affine maps; a type's "->" was skipped.
    prefixes = c == '-' ? prefixes + 1 : 0;
    if (c == '(' || c == '[' || c == '{' || c == '<')
      ++depth;
    else if ((c == ')' || c == ']' || c == '}' || c == '>') && depth)
      --depth;
    if (depth > maxNesting || prefixes > maxNesting)
      return {line, static_cast<unsigned>(i - lineBegin + 1),
              "the program is nested more than " + std::to_string(maxNesting) + " levels deep",
              "nest fewer brackets and regions into each other"};
  }
  return {};
}

} // namespace kiln
