//===- Lexer.h - PTX text to tokens ---------------------------------------===//
//
// One token at a time, in one pass.  The text must be followed by a NUL (a std::string's is), which stops every scan;
// a NUL inside the text is an Invalid token.  Token text points into the source.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_PTX_LEXER_H
#define KILN_RUNTIME_PTX_LEXER_H

#include <cstdint>
#include <string_view>

namespace kiln::ptx {

enum class TokenKind : std::uint8_t {
  End,
  Invalid,    ///< `text` was found, `expected` was not
  Identifier, ///< foo, %r1, $L__BB0_1, _
  Directive,  ///< a dot and letters, digits, `_` and `::`: .visible, .shared::cta, .16x64b
  Integer,    ///< bits, isUnsigned
  Float,      ///< bits, floatBits
  String,     ///< text includes the quotes
  LeftBrace,
  RightBrace,
  LeftParen,
  RightParen,
  LeftBracket,
  RightBracket,
  Comma,
  Semicolon,
  Colon,
  Question,
  At,
  Equal,
  Plus,
  Minus,
  Star,
  Slash,
  Percent,
  Tilde,
  Exclaim,
  Amp,
  AmpAmp,
  Pipe,
  PipePipe,
  Caret,
  Less,
  LessEqual,
  ShiftLeft,
  Greater,
  GreaterEqual,
  ShiftRight,
  EqualEqual,
  ExclaimEqual,
};

struct Token {
  TokenKind kind = TokenKind::End;
  bool isUnsigned = false;    ///< Integer: U suffix, or above the greatest s64
  std::uint8_t floatBits = 0; ///< Float: 32 (0f...) or 64 (0d..., decimal)
  std::uint32_t line = 1;
  std::string_view text;
  std::uint64_t bits = 0;
  const char *expected = nullptr;

  bool is(TokenKind k) const { return kind == k; }
  bool isDirective(std::string_view name) const { return kind == TokenKind::Directive && text == name; }
  bool isIdentifier(std::string_view name) const { return kind == TokenKind::Identifier && text == name; }
};

class Lexer {
public:
  /// `text` must be NUL-terminated at text.end().
  explicit Lexer(std::string_view text) : at(text.data()), end(text.data() + text.size()) {}

  Token next();

  /// Reads the Directive token `t` again as the number it is where an operand stands: ".5" is a modifier of an opcode,
  /// and a decimal constant elsewhere.  `t` must be the last token read.
  Token asNumber(const Token &t);

private:
  Token make(TokenKind kind, const char *begin);
  Token invalid(const char *begin, const char *expected);
  Token number(const char *begin);
  Token digits(const char *begin, unsigned radix, const char *expected);
  Token hexFloat(const char *begin, unsigned count, const char *expected);
  Token decimalFloat(const char *begin);
  Token string(const char *begin);
  bool skipSpace(Token &failure);

  const char *at, *end;
  std::uint32_t line = 1;
};

} // namespace kiln::ptx

#endif // KILN_RUNTIME_PTX_LEXER_H
