// Operands of instructions.
#include "runtime/ptx/ParserImpl.h"

namespace kiln::ptx {

bool Parser::startsConstant() const {
  switch (tok.kind) {
  case TokenKind::Integer:
  case TokenKind::Float:
  case TokenKind::Minus:
  case TokenKind::Plus:
  case TokenKind::Tilde:
  case TokenKind::Exclaim:
  case TokenKind::LeftParen:
    return true;
  case TokenKind::Directive:
    return tok.text[1] >= '0' && tok.text[1] <= '9';
  case TokenKind::Identifier:
    return tok.text == "WARP_SZ";
  default:
    return false;
  }
}

/// `isCall`: parentheses hold arguments, not a constant.
bool Parser::parseOperand(Operand &o, bool isCall) {
  o.line = tok.line;
  if (tok.is(TokenKind::Identifier) && tok.text != "WARP_SZ")
    return parseName(o);
  if (tok.is(TokenKind::LeftBracket))
    return parseAddress(o);
  if (tok.is(TokenKind::LeftBrace))
    return parseVector(o);
  if (isCall && tok.is(TokenKind::LeftParen))
    return parseArguments(o);
  if (!startsConstant())
    return fail("an operand");
  if (tok.is(TokenKind::Exclaim) || tok.is(TokenKind::Minus)) {
    // !p and -x; before anything else the sign belongs to a constant.
    Lexer ahead = lexer;
    const Token after = ahead.next();
    if (after.is(TokenKind::Identifier) && after.text != "WARP_SZ") {
      advance();
      o.negated = true;
      return parseRegister(o, "a register");
    }
  }
  return parseImmediate(o);
}

bool Parser::parseImmediate(Operand &o) {
  Constant c;
  if (!parseConstant(c))
    return false;
  o.kind = c.isFloat ? Operand::Kind::Float : Operand::Kind::Integer;
  o.bits = c.bits;
  o.floatBits = c.floatBits;
  return true;
}

/// NAME  NAME.x  NAME+N  _  NAME|NAME  NAME|_  _|NAME
bool Parser::parseName(Operand &o) {
  if (!parseRegister(o, "an operand"))
    return false;
  if (accept(TokenKind::Pipe)) {
    o.second = std::make_unique<Operand>();
    return parseRegister(*o.second, "the second destination");
  }
  if (o.kind == Operand::Kind::Sink)
    return true;
  if (accept(TokenKind::Plus))
    return parseIntegerConstant(o.bits);
  if (tok.is(TokenKind::LeftBracket))
    return failWith(tok.line, "array element '" + std::string(o.text) + "[...]' as an operand is not supported",
                    "write the address as [" + std::string(o.text) + "+bytes]", StatusCode::Unsupported);
  return true;
}

/// NAME  NAME.x  _
bool Parser::parseRegister(Operand &o, const char *expected) {
  o.line = tok.line;
  if (tok.isIdentifier("_")) {
    o.kind = Operand::Kind::Sink;
    advance();
    return true;
  }
  if (!expectIdentifier(o.text, expected))
    return false;
  o.text = joinModifiers(o.text, o.line, 1); // a selector: .x, .b3210
  return true;
}

/// [NAME]  [NAME+N]  [N]  [NAME, OPERAND, ...]
bool Parser::parseAddress(Operand &o) {
  o.kind = Operand::Kind::Address;
  advance();
  const char *after = "']'";
  if (tok.is(TokenKind::Identifier) && tok.text != "WARP_SZ") {
    if (!expectIdentifier(o.text, "an address"))
      return false;
    if (accept(TokenKind::Plus)) {
      if (!parseIntegerConstant(o.bits))
        return false;
    } else {
      after = tok.is(TokenKind::Comma) ? "',' or ']'" : "'+', ',' or ']'";
      while (accept(TokenKind::Comma)) {
        Operand &e = o.elements.emplace_back();
        e.line = tok.line;
        if (tok.is(TokenKind::LeftBrace)) {
          if (!parseVector(e))
            return false;
        } else if (!expectIdentifier(e.text, "'{' and coordinates, or a register")) {
          return false;
        }
      }
    }
  } else if (startsConstant()) {
    if (!parseIntegerConstant(o.bits))
      return false;
  } else {
    return fail("an address");
  }
  return expect(TokenKind::RightBracket, after);
}

/// What a vector or a list of arguments holds: a register, a sink or a constant.
bool Parser::parseElement(Operand &o, const char *expected) {
  if (tok.is(TokenKind::Identifier) && tok.text != "WARP_SZ")
    return parseRegister(o, expected);
  o.line = tok.line;
  return startsConstant() ? parseImmediate(o) : fail(expected);
}

/// {a, b, ...}
bool Parser::parseVector(Operand &o) {
  o.kind = Operand::Kind::Vector;
  advance();
  o.elements.reserve(4);
  do {
    if (!parseElement(o.elements.emplace_back(), "an element of a vector"))
      return false;
  } while (accept(TokenKind::Comma));
  return expect(TokenKind::RightBrace, "',' or '}'");
}

/// (a, b, ...) of a call.
bool Parser::parseArguments(Operand &o) {
  o.kind = Operand::Kind::List;
  advance();
  if (accept(TokenKind::RightParen))
    return true;
  do {
    if (!parseElement(o.elements.emplace_back(), "an argument"))
      return false;
  } while (accept(TokenKind::Comma));
  return expect(TokenKind::RightParen, "',' or ')'");
}

} // namespace kiln::ptx
