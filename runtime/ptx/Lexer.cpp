#include "runtime/ptx/Lexer.h"

#include <array>
#include <bit>
#include <charconv>

namespace kiln::ptx {

namespace {

enum CharClass : std::uint8_t { IdentifierStart = 1, IdentifierRest = 2, Digit = 4, Space = 8 };

constexpr std::array<std::uint8_t, 256> makeClasses() {
  std::array<std::uint8_t, 256> c{};
  for (unsigned i = 'a'; i <= 'z'; ++i)
    c[i] = c[i - 'a' + 'A'] = IdentifierStart | IdentifierRest;
  for (unsigned i = '0'; i <= '9'; ++i)
    c[i] = Digit | IdentifierRest;
  c['_'] = c['$'] = IdentifierStart | IdentifierRest;
  c[' '] = c['\t'] = c['\r'] = c['\n'] = c['\v'] = c['\f'] = Space;
  return c;
}
constexpr std::array<std::uint8_t, 256> classes = makeClasses();

bool has(char ch, std::uint8_t wanted) {
  return classes[static_cast<unsigned char>(ch)] & wanted;
}

int digitValue(char ch) {
  if (ch >= '0' && ch <= '9')
    return ch - '0';
  char lower = static_cast<char>(ch | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99;
}

} // namespace

Token Lexer::make(TokenKind kind, const char *begin) {
  Token t;
  t.kind = kind;
  t.line = line;
  t.text = {begin, static_cast<std::size_t>(at - begin)};
  return t;
}

Token Lexer::invalid(const char *begin, const char *expected) {
  Token t = make(TokenKind::Invalid, begin);
  t.expected = expected;
  return t;
}

/// Skips white space and comments; false with `failure` set if a comment does not end.
bool Lexer::skipSpace(Token &failure) {
  for (;;) {
    while (has(*at, Space)) {
      line += *at == '\n';
      ++at;
    }
    if (*at != '/')
      return true;
    if (at[1] == '/') {
      while (at != end && *at != '\n')
        ++at;
    } else if (at[1] == '*') {
      const char *begin = at;
      const std::uint32_t first = line;
      at += 2;
      while (at != end && !(at[0] == '*' && at[1] == '/')) {
        line += *at == '\n';
        ++at;
      }
      if (at == end) {
        failure = invalid(begin, "a comment that ends with '*/'");
        failure.text = failure.text.substr(0, 2);
        failure.line = first;
        return false;
      }
      at += 2;
    } else {
      return true;
    }
  }
}

Token Lexer::next() {
  Token failure;
  if (!skipSpace(failure))
    return failure;
  const char *begin = at;
  const char ch = *at;
  if (has(ch, IdentifierStart)) {
    do
      ++at;
    while (has(*at, IdentifierRest));
    return make(TokenKind::Identifier, begin);
  }
  if (ch == '%') {
    ++at;
    if (!has(*at, IdentifierRest))
      return make(TokenKind::Percent, begin);
    while (has(*at, IdentifierRest))
      ++at;
    return make(TokenKind::Identifier, begin);
  }
  if (ch == '.') {
    ++at;
    for (;;) {
      if (has(*at, IdentifierRest))
        ++at;
      else if (at[0] == ':' && at[1] == ':' && has(at[2], IdentifierRest))
        at += 2;
      else
        break;
    }
    return at == begin + 1 ? invalid(begin, "a name after '.'") : make(TokenKind::Directive, begin);
  }
  if (has(ch, Digit))
    return number(begin);
  if (ch == '"')
    return string(begin);
  if (at == end)
    return make(TokenKind::End, begin);

  ++at;
  // One character, or two where `second` follows.
  auto either = [&](TokenKind one, char second, TokenKind two) {
    if (*at != second)
      return make(one, begin);
    ++at;
    return make(two, begin);
  };
  switch (ch) {
  case '{':
    return make(TokenKind::LeftBrace, begin);
  case '}':
    return make(TokenKind::RightBrace, begin);
  case '(':
    return make(TokenKind::LeftParen, begin);
  case ')':
    return make(TokenKind::RightParen, begin);
  case '[':
    return make(TokenKind::LeftBracket, begin);
  case ']':
    return make(TokenKind::RightBracket, begin);
  case ',':
    return make(TokenKind::Comma, begin);
  case ';':
    return make(TokenKind::Semicolon, begin);
  case ':':
    return make(TokenKind::Colon, begin);
  case '?':
    return make(TokenKind::Question, begin);
  case '@':
    return make(TokenKind::At, begin);
  case '+':
    return make(TokenKind::Plus, begin);
  case '-':
    return make(TokenKind::Minus, begin);
  case '*':
    return make(TokenKind::Star, begin);
  case '/':
    return make(TokenKind::Slash, begin);
  case '~':
    return make(TokenKind::Tilde, begin);
  case '^':
    return make(TokenKind::Caret, begin);
  case '=':
    return either(TokenKind::Equal, '=', TokenKind::EqualEqual);
  case '!':
    return either(TokenKind::Exclaim, '=', TokenKind::ExclaimEqual);
  case '&':
    return either(TokenKind::Amp, '&', TokenKind::AmpAmp);
  case '|':
    return either(TokenKind::Pipe, '|', TokenKind::PipePipe);
  case '<':
    if (*at == '<')
      return ++at, make(TokenKind::ShiftLeft, begin);
    return either(TokenKind::Less, '=', TokenKind::LessEqual);
  case '>':
    if (*at == '>')
      return ++at, make(TokenKind::ShiftRight, begin);
    return either(TokenKind::Greater, '=', TokenKind::GreaterEqual);
  default:
    return invalid(begin, "PTX text");
  }
}

Token Lexer::asNumber(const Token &t) {
  at = t.text.data();
  return decimalFloat(at);
}

/// `at` stands on the first digit.
Token Lexer::number(const char *begin) {
  const char second = at[0] == '0' ? static_cast<char>(at[1] | 0x20) : '\0';
  if (second == 'x')
    return at += 2, digits(begin, 16, "a hexadecimal number of at most 64 bits");
  if (second == 'b')
    return at += 2, digits(begin, 2, "a binary number of at most 64 bits");
  if (second == 'f')
    return at += 2, hexFloat(begin, 8, "0f and 8 hexadecimal digits");
  if (second == 'd')
    return at += 2, hexFloat(begin, 16, "0d and 16 hexadecimal digits");
  const char *p = at;
  while (has(*p, Digit))
    ++p;
  if (*p == '.' || *p == 'e' || *p == 'E')
    return decimalFloat(begin);
  if (*at == '0' && p - at > 1)
    return digits(begin, 8, "an octal number of at most 64 bits");
  return digits(begin, 10, "a decimal number of at most 64 bits");
}

/// Digits from `at` on, and an optional U.
Token Lexer::digits(const char *begin, unsigned radix, const char *expected) {
  std::uint64_t value = 0;
  bool fits = true;
  const char *first = at;
  for (int d; has(*at, IdentifierRest) && (d = digitValue(*at)) < static_cast<int>(radix); ++at)
    fits = fits && !__builtin_mul_overflow(value, std::uint64_t{radix}, &value) &&
           !__builtin_add_overflow(value, static_cast<std::uint64_t>(d), &value);
  const bool any = at != first;
  const bool suffix = any && *at == 'U';
  at += suffix;
  if (!any || !fits || has(*at, IdentifierRest)) {
    while (has(*at, IdentifierRest))
      ++at;
    return invalid(begin, expected);
  }
  Token t = make(TokenKind::Integer, begin);
  t.bits = value;
  t.isUnsigned = suffix || value >> 63;
  return t;
}

Token Lexer::hexFloat(const char *begin, unsigned count, const char *expected) {
  std::uint64_t value = 0;
  unsigned n = 0;
  for (int d; n < count && (d = digitValue(*at)) < 16; ++at, ++n)
    value = value << 4 | static_cast<std::uint64_t>(d);
  if (n != count || has(*at, IdentifierRest)) {
    while (has(*at, IdentifierRest))
      ++at;
    return invalid(begin, expected);
  }
  Token t = make(TokenKind::Float, begin);
  t.bits = value;
  t.floatBits = count == 8 ? 32 : 64;
  return t;
}

/// Digits with a point, an exponent, or both.
Token Lexer::decimalFloat(const char *begin) {
  at = begin;
  while (has(*at, Digit))
    ++at;
  if (*at == '.')
    do
      ++at;
    while (has(*at, Digit));
  bool good = true;
  if (*at == 'e' || *at == 'E') {
    ++at;
    if (*at == '+' || *at == '-')
      ++at;
    good = has(*at, Digit);
    while (has(*at, Digit))
      ++at;
  }
  double value = 0;
  if (good && !has(*at, IdentifierRest))
    good = std::from_chars(begin, at, value).ec == std::errc();
  else
    good = false;
  if (!good) {
    while (has(*at, IdentifierRest))
      ++at;
    return invalid(begin, "a decimal number within the range of f64");
  }
  Token t = make(TokenKind::Float, begin);
  t.bits = std::bit_cast<std::uint64_t>(value);
  t.floatBits = 64;
  return t;
}

Token Lexer::string(const char *begin) {
  ++at;
  while (at != end && *at != '"' && *at != '\n') // a backslash escapes nothing, as in ptxas
    ++at;
  if (at == end || *at == '\n')
    return invalid(begin, "a string that ends on its line");
  ++at;
  return make(TokenKind::String, begin);
}

} // namespace kiln::ptx
