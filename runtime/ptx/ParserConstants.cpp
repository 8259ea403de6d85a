// Constant expressions.  Integers are 64 bits, unsigned if suffixed U or above the greatest s64, and follow C's rules
// for mixed signs; shift amounts count modulo 64 and a shift takes the sign of its left side, as ptxas computes them.
#include "runtime/ptx/ParserImpl.h"

#include <bit>

namespace kiln::ptx {

namespace {

unsigned precedence(TokenKind kind) {
  switch (kind) {
  case TokenKind::PipePipe:
    return 1;
  case TokenKind::AmpAmp:
    return 2;
  case TokenKind::Pipe:
    return 3;
  case TokenKind::Caret:
    return 4;
  case TokenKind::Amp:
    return 5;
  case TokenKind::EqualEqual:
  case TokenKind::ExclaimEqual:
    return 6;
  case TokenKind::Less:
  case TokenKind::LessEqual:
  case TokenKind::Greater:
  case TokenKind::GreaterEqual:
    return 7;
  case TokenKind::ShiftLeft:
  case TokenKind::ShiftRight:
    return 8;
  case TokenKind::Plus:
  case TokenKind::Minus:
    return 9;
  case TokenKind::Star:
  case TokenKind::Slash:
  case TokenKind::Percent:
    return 10;
  default:
    return 0;
  }
}

/// `a op b` for the six comparisons; false for any other operator.
template <typename T> bool compare(TokenKind op, T a, T b, bool &result) {
  switch (op) {
  case TokenKind::EqualEqual:
    return result = a == b, true;
  case TokenKind::ExclaimEqual:
    return result = a != b, true;
  case TokenKind::Less:
    return result = a < b, true;
  case TokenKind::LessEqual:
    return result = a <= b, true;
  case TokenKind::Greater:
    return result = a > b, true;
  case TokenKind::GreaterEqual:
    return result = a >= b, true;
  default:
    return false;
  }
}

} // namespace

bool Parser::parseIntegerConstant(std::uint64_t &value) {
  const std::uint32_t line = tok.line;
  Constant c;
  if (!parseConstant(c))
    return false;
  if (c.isFloat)
    return failWith(line, "found a floating-point constant, expected an integer");
  value = c.bits;
  return true;
}

bool Parser::parseConditional(Constant &c, unsigned depth) {
  const std::uint32_t line = tok.line;
  if (!parseBinary(c, 1, depth))
    return false;
  if (!accept(TokenKind::Question))
    return true;
  if (c.isFloat)
    return failWith(line, "found a floating-point condition, expected an integer");
  Constant yes, no;
  if (!parseConditional(yes, depth + 1) || !expect(TokenKind::Colon, "':' of a conditional expression") ||
      !parseConditional(no, depth + 1))
    return false;
  if (yes.isFloat != no.isFloat)
    return failWith(line, "a constant expression mixes integers and floating-point numbers");
  const bool isUnsigned = yes.isUnsigned || no.isUnsigned;
  c = c.bits ? yes : no;
  c.isUnsigned = isUnsigned;
  return true;
}

bool Parser::parseBinary(Constant &c, unsigned minPrecedence, unsigned depth) {
  if (!parseUnary(c, depth))
    return false;
  for (;;) {
    const Token op = tok;
    const unsigned p = precedence(op.kind);
    if (p < minPrecedence || p == 0)
      return true;
    advance();
    Constant right;
    if (!parseBinary(right, p + 1, depth) || !applyBinary(op, c, right))
      return false;
  }
}

bool Parser::parseUnary(Constant &c, unsigned depth) {
  if (depth > maxExpressionDepth)
    return failWith(tok.line, "a constant expression is nested deeper than " + std::to_string(maxExpressionDepth));
  const Token op = tok;
  if (!op.is(TokenKind::Minus) && !op.is(TokenKind::Plus) && !op.is(TokenKind::Tilde) && !op.is(TokenKind::Exclaim))
    return parsePrimary(c, depth);
  advance();
  const Token operand = tok;
  if (!parseUnary(c, depth + 1))
    return false;
  if (c.isFloat) {
    if (c.isHexFloat32 || op.is(TokenKind::Tilde) || op.is(TokenKind::Exclaim))
      return failWith(operand.line, "operator '" + std::string(op.text) + "' does not apply to the constant after it");
    if (op.is(TokenKind::Minus))
      c.bits ^= std::uint64_t{1} << 63;
    return true;
  }
  if (op.is(TokenKind::Minus))
    c.bits = 0 - c.bits;
  else if (op.is(TokenKind::Tilde))
    c.bits = ~c.bits;
  else if (op.is(TokenKind::Exclaim))
    c = {.bits = c.bits == 0};
  return true;
}

bool Parser::parsePrimary(Constant &c, unsigned depth) {
  if (tok.is(TokenKind::Directive) && tok.text.size() > 1 && tok.text[1] >= '0' && tok.text[1] <= '9')
    tok = lexer.asNumber(tok);
  if (tok.is(TokenKind::Integer)) {
    c = {.isUnsigned = tok.isUnsigned, .bits = tok.bits};
    advance();
    return true;
  }
  if (tok.is(TokenKind::Float)) {
    c = {.isFloat = true, .isHexFloat32 = tok.floatBits == 32, .floatBits = tok.floatBits, .bits = tok.bits};
    advance();
    return true;
  }
  if (tok.isIdentifier("WARP_SZ")) {
    c = {.bits = 32};
    advance();
    return true;
  }
  if (!accept(TokenKind::LeftParen))
    return fail("a constant");
  const bool toSigned = tok.isDirective(".s64"), toUnsigned = tok.isDirective(".u64");
  if (toSigned || toUnsigned) {
    advance();
    const std::uint32_t line = tok.line;
    if (!expect(TokenKind::RightParen, "')' after the type of a cast") || !parseUnary(c, depth + 1))
      return false;
    if (c.isFloat)
      return failWith(line, "found a floating-point constant after an integer cast, expected an integer");
    c.isUnsigned = toUnsigned;
    return true;
  }
  if (tok.is(TokenKind::Directive) && typeFromName(tok.text.substr(1)) != Type::None)
    return fail("'.s64' or '.u64'");
  return parseConditional(c, depth + 1) && expect(TokenKind::RightParen, "')'");
}

bool Parser::applyBinary(const Token &op, Constant &a, const Constant &b) {
  if (a.isFloat != b.isFloat)
    return failWith(op.line, "a constant expression mixes integers and floating-point numbers");
  bool truth = false;
  if (a.isFloat) {
    const double x = std::bit_cast<double>(a.bits), y = std::bit_cast<double>(b.bits);
    double value = 0;
    if (a.isHexFloat32 || b.isHexFloat32)
      return failWith(op.line, "operator '" + std::string(op.text) + "' does not apply to 0f constants");
    if (compare(op.kind, x, y, truth)) {
      a = {.bits = truth};
      return true;
    }
    switch (op.kind) {
    case TokenKind::Plus:
      value = x + y;
      break;
    case TokenKind::Minus:
      value = x - y;
      break;
    case TokenKind::Star:
      value = x * y;
      break;
    case TokenKind::Slash:
      if (y == 0)
        return failWith(op.line, "a constant expression divides by zero");
      value = x / y;
      break;
    default:
      return failWith(op.line, "operator '" + std::string(op.text) + "' does not apply to floating-point constants");
    }
    a = {.isFloat = true, .floatBits = 64, .bits = std::bit_cast<std::uint64_t>(value)};
    return true;
  }

  const bool isUnsigned = a.isUnsigned || b.isUnsigned;
  const auto sa = static_cast<std::int64_t>(a.bits), sb = static_cast<std::int64_t>(b.bits);
  if (isUnsigned ? compare(op.kind, a.bits, b.bits, truth) : compare(op.kind, sa, sb, truth)) {
    a = {.bits = truth};
    return true;
  }
  const unsigned amount = b.bits & 63;
  switch (op.kind) {
  case TokenKind::PipePipe:
    a = {.bits = a.bits || b.bits};
    return true;
  case TokenKind::AmpAmp:
    a = {.bits = a.bits && b.bits};
    return true;
  case TokenKind::ShiftLeft:
    a.bits <<= amount;
    return true;
  case TokenKind::ShiftRight:
    a.bits = a.isUnsigned ? a.bits >> amount : static_cast<std::uint64_t>(sa >> amount);
    return true;
  case TokenKind::Pipe:
    a.bits |= b.bits;
    break;
  case TokenKind::Caret:
    a.bits ^= b.bits;
    break;
  case TokenKind::Amp:
    a.bits &= b.bits;
    break;
  case TokenKind::Plus:
    a.bits += b.bits;
    break;
  case TokenKind::Minus:
    a.bits -= b.bits;
    break;
  case TokenKind::Star:
    a.bits *= b.bits;
    break;
  default: { // Slash, Percent
    if (b.bits == 0)
      return failWith(op.line, "a constant expression divides by zero");
    const bool quotient = op.is(TokenKind::Slash);
    if (isUnsigned)
      a.bits = quotient ? a.bits / b.bits : a.bits % b.bits;
    else if (sb == -1) // INT64_MIN / -1 wraps
      a.bits = quotient ? 0 - a.bits : 0;
    else
      a.bits = static_cast<std::uint64_t>(quotient ? sa / sb : sa % sb);
    break;
  }
  }
  a.isUnsigned = isUnsigned;
  return true;
}

} // namespace kiln::ptx
