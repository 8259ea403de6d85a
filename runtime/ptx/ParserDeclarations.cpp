// Variables: .reg .const .global .local .param .shared, their types, extents and initial values.
#include "runtime/ptx/ParserImpl.h"

#include "support/Text.h"

namespace kiln::ptx {

namespace {

Space spaceOf(std::string_view directive) {
  for (Space s : {Space::Reg, Space::Const, Space::Global, Space::Local, Space::Param, Space::Shared})
    if (directive.substr(1) == spaceName(s))
      return s;
  return Space::Generic;
}

/// The fundamental types; the others occur only in opcodes.
bool isDeclarable(Type t) {
  switch (t) {
  case Type::None:
  case Type::BF16:
  case Type::TF32:
  case Type::B1:
  case Type::S4:
  case Type::U4:
    return false;
  default:
    return typeKind(t) != TypeKind::Packed && t != Type::E4M3 && t != Type::E5M2;
  case Type::F16x2:
    return true;
  }
}

Variable::Init zeroOf(Type t) {
  Variable::Init zero;
  if (typeKind(t) == TypeKind::Float) {
    zero.kind = Variable::Init::Kind::Float;
    zero.floatBits = 64;
  }
  return zero;
}

bool isInteger(TypeKind k) {
  return k == TypeKind::Bits || k == TypeKind::Unsigned || k == TypeKind::Signed;
}

} // namespace

/// SPACE [.attribute(...)] [.align N] [.vN] TYPE DECLARATOR {, DECLARATOR};
bool Parser::parseVariables(const Linkage &linkage, bool moduleLevel, std::vector<Variable> &out) {
  Variable common;
  common.space = spaceOf(tok.text);
  common.external = linkage.external;
  common.visible = linkage.visible;
  common.weak = linkage.weak;
  common.common = linkage.common;
  advance();
  while (common.space != Space::Reg) {
    const bool align = tok.isDirective(".align");
    if (!align && !(moduleLevel && tok.isDirective(".attribute")))
      break;
    if (!(align ? parseAlignment(common.align) : parseAttribute(&common.managed)))
      return false;
  }
  if (!parseVectorLength(common.vector) || !parseDeclaredType(common))
    return false;
  do {
    Variable v = common;
    if (!parseDeclarator(v))
      return false;
    out.push_back(std::move(v));
  } while (accept(TokenKind::Comma));
  return expect(TokenKind::Semicolon, "',' or ';'");
}

bool Parser::parseAlignment(std::uint32_t &align) {
  advance();
  const std::uint32_t line = tok.line;
  if (!expectU32(align, "an alignment in bytes"))
    return false;
  if (align == 0 || (align & (align - 1)) != 0)
    return failWith(line, "alignment " + std::to_string(align) + " is not a power of two");
  return true;
}

bool Parser::parseVectorLength(std::uint8_t &length) {
  if (acceptDirective(".v2"))
    length = 2;
  else if (acceptDirective(".v4"))
    length = 4;
  return true;
}

bool Parser::parseDeclaredType(Variable &v) {
  if (!tok.is(TokenKind::Directive))
    return fail("a type such as .b32");
  const std::string_view name = tok.text.substr(1);
  if (name == "texref" || name == "samplerref" || name == "surfref")
    return failWith(tok.line, "opaque type '." + std::string(name) + "': textures and surfaces are not supported",
                    "read global memory instead", StatusCode::Unsupported);
  v.type = typeFromName(name);
  if (v.type == Type::None)
    return fail("a type such as .b32");
  if (!isDeclarable(v.type))
    return fail("a fundamental type",
                "variables of this type are declared ." + std::string(typeName(typeBytes(v.type) == 8   ? Type::B64
                                                                               : typeBytes(v.type) == 4 ? Type::B32
                                                                               : typeBytes(v.type) == 2 ? Type::B16
                                                                                                        : Type::B8)));
  if (v.type == Type::Pred && (v.space != Space::Reg || v.vector != 1))
    return failWith(tok.line, "a predicate must be a scalar in the .reg space");
  if (v.vector != 1 && v.space == Space::Param)
    return failWith(tok.line, "a vector cannot be in the .param space", "declare an array with .align");
  if (v.vector * typeBytes(v.type) > 16)
    return failWith(tok.line, format("a vector of %u x %u bytes is larger than 16 bytes", v.vector, typeBytes(v.type)));
  advance();
  return true;
}

/// NAME  NAME<N>  NAME[N][M]  NAME[] = { ... }
bool Parser::parseDeclarator(Variable &v) {
  v.line = tok.line;
  if (!expectIdentifier(v.name, "the name of a variable"))
    return false;
  if (v.space == Space::Reg) {
    if (accept(TokenKind::Less)) {
      if (tok.is(TokenKind::Integer) && (tok.bits == 0 || tok.bits > maxRegisterRange))
        return fail("a count of registers from 1 to " + std::to_string(maxRegisterRange));
      return expectU32(v.rangeCount, "a count of registers") && expect(TokenKind::Greater, "'>'");
    }
    return true;
  }
  if (!parseExtents(v))
    return false;
  const bool hasInit = tok.is(TokenKind::Equal);
  if (!checkVariable(v, hasInit))
    return false;
  if (hasInit) {
    advance();
    return parseInitialiser(v);
  }
  return true;
}

bool Parser::parseExtents(Variable &v) {
  std::uint64_t bytes = std::uint64_t{typeBytes(v.type)} * v.vector;
  while (accept(TokenKind::LeftBracket)) {
    v.isArray = true;
    std::uint64_t extent = 0;
    if (!tok.is(TokenKind::RightBracket)) {
      if (tok.is(TokenKind::Integer) && tok.bits == 0 && !v.extents.empty())
        return fail("an extent above 0");
      if (!expectInteger(extent, v.extents.empty() ? "an extent or ']'" : "an extent"))
        return false;
    } else if (!v.extents.empty()) {
      return fail("an extent: only the first may be left out");
    }
    if (v.extents.size() == maxDimensions)
      return failWith(tok.line,
                      format("'%s' has more than %zu dimensions", std::string(v.name).c_str(), maxDimensions));
    if (extent != 0 && (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > maxVariableBytes))
      return failWith(tok.line, format("'%s' is larger than %llu bytes", std::string(v.name).c_str(),
                                       static_cast<unsigned long long>(maxVariableBytes)));
    v.extents.push_back(extent);
    if (!expect(TokenKind::RightBracket, "']'"))
      return false;
  }
  return true;
}

bool Parser::checkVariable(const Variable &v, bool hasInit) {
  const std::string name(v.name);
  if (hasInit && v.space != Space::Global && v.space != Space::Const)
    return failWith(tok.line, "'" + name + "' in the ." + std::string(spaceName(v.space)) +
                                  " space cannot have an initial value; only .global and .const variables can");
  if (hasInit && v.external)
    return failWith(tok.line, "external variable '" + name + "' cannot have an initial value");
  if (hasInit && (v.type == Type::F16 || v.type == Type::F16x2))
    return failWith(tok.line, "'" + name + "' of type ." + std::string(typeName(v.type)) +
                                  " cannot have an initial value; declare it .b16 or .b32");
  if (!hasInit && !v.external && v.isArray && v.extents[0] == 0)
    return failWith(v.line, "array '" + name + "' has no size; only .extern arrays may leave it out");
  return true;
}

bool Parser::parseInitialiser(Variable &v) {
  if (!v.isArray && v.vector == 1)
    return parseInitElement(v);
  std::vector<std::uint64_t> extents = v.extents;
  if (v.vector > 1)
    extents.push_back(v.vector);
  const std::size_t rowElements = [&] {
    std::size_t n = 1;
    for (std::size_t i = 1; i < extents.size(); ++i)
      n *= extents[i]; // bounded by maxVariableBytes
    return n;
  }();
  if (!parseInitList(v, extents))
    return false;
  if (v.isArray && v.extents[0] == 0) {
    v.extents[0] = (v.init.size() + rowElements - 1) / rowElements;
    if (v.extents[0] == 0)
      return failWith(v.line, "array '" + std::string(v.name) + "' has no size and no initial elements");
  }
  return true;
}

/// { ... } for the dimensions `extents`; each row but the last of all is completed with zeros.
bool Parser::parseInitList(Variable &v, std::span<const std::uint64_t> extents) {
  const std::string name(v.name);
  if (!expect(TokenKind::LeftBrace, "'{' and initial values"))
    return false;
  std::size_t rowElements = 1;
  for (std::uint64_t e : extents.subspan(1))
    rowElements *= e;
  std::uint64_t count = 0;
  if (!tok.is(TokenKind::RightBrace)) {
    do {
      if (extents[0] != 0 && count == extents[0])
        return failWith(tok.line, format("'%s' has more than %llu initial values in a row", name.c_str(),
                                         static_cast<unsigned long long>(extents[0])));
      // A short row before this one ends where this one starts.
      const std::size_t start = v.init.size();
      ++count;
      if (extents.size() == 1) {
        if (!parseInitElement(v))
          return false;
      } else {
        if (!parseInitList(v, extents.subspan(1)))
          return false;
        const std::size_t missing = start + rowElements - v.init.size();
        if (tok.is(TokenKind::Comma) && missing != 0) {
          if (missing > maxInitPadding || v.init.size() + missing > maxInitElements)
            return failWith(tok.line, format("a row of '%s' leaves out %zu initial values, more than %zu", name.c_str(),
                                             missing, maxInitPadding));
          v.init.resize(start + rowElements, zeroOf(v.type));
        }
      }
      if (v.init.size() > maxInitElements)
        return failWith(tok.line, format("'%s' has more than %zu initial values", name.c_str(), maxInitElements));
    } while (accept(TokenKind::Comma));
  }
  return expect(TokenKind::RightBrace, "',' or '}'");
}

/// A number, or the address of a symbol: SYM  SYM+N  generic(SYM)+N  MASK(...)
bool Parser::parseInitElement(Variable &v) {
  Variable::Init init;
  const TypeKind kind = typeKind(v.type);
  const std::uint32_t line = tok.line;
  if (tok.is(TokenKind::Identifier) && tok.text != "_" && tok.text != "WARP_SZ") {
    if (!isInteger(kind) || typeBytes(v.type) < 4)
      return fail("an initial value of type ." + std::string(typeName(v.type)));
    if (!parseInitSymbol(v, init))
      return false;
    v.init.push_back(init);
    return true;
  }
  Constant c;
  if (tok.is(TokenKind::LeftBrace))
    return fail("an initial value");
  if (!parseConstant(c))
    return false;
  // MASK(address): a constant and a parenthesis.
  if (tok.is(TokenKind::LeftParen) && !c.isFloat) {
    const std::uint64_t mask = c.bits;
    const unsigned shift = mask ? static_cast<unsigned>(__builtin_ctzll(mask)) : 1;
    if (shift % 8 != 0 || mask >> shift != 0xff)
      return failWith(
          line, format("mask 0x%llx does not select one byte of an address", static_cast<unsigned long long>(mask)));
    if (typeBytes(v.type) != 1)
      return failWith(line, "a masked address needs a variable of an 8-bit type");
    advance();
    init.byteMask = mask;
    if (!parseInitSymbol(v, init) || !expect(TokenKind::RightParen, "')'"))
      return false;
    v.init.push_back(init);
    return true;
  }
  if (c.isFloat ? kind == TypeKind::Unsigned || kind == TypeKind::Signed || typeBytes(v.type) < 4 : !isInteger(kind))
    return failWith(line,
                    format("%s constant initialises '%s' of type .%s", c.isFloat ? "a floating-point" : "an integer",
                           std::string(v.name).c_str(), std::string(typeName(v.type)).c_str()));
  init.kind = c.isFloat ? Variable::Init::Kind::Float : Variable::Init::Kind::Integer;
  init.bits = c.bits;
  init.floatBits = c.floatBits;
  v.init.push_back(init);
  return true;
}

/// SYM  SYM+N  generic(SYM)  generic(SYM)+N  generic(SYM+N)
bool Parser::parseInitSymbol(const Variable &v, Variable::Init &init) {
  init.kind = Variable::Init::Kind::Symbol;
  if (!expectIdentifier(init.symbol, "a symbol"))
    return false;
  if (init.symbol == "generic" && accept(TokenKind::LeftParen)) {
    init.generic = true;
    if (!expectIdentifier(init.symbol, "a symbol"))
      return false;
    std::uint64_t inner = 0;
    if (accept(TokenKind::Plus) && !expectInteger(inner, "an integer"))
      return false;
    init.bits = inner;
    if (!expect(TokenKind::RightParen, "')'"))
      return false;
    if (init.byteMask == 0 && typeBytes(v.type) < 8)
      return failWith(tok.line, "a generic address needs a variable of a 64-bit type");
  }
  std::uint64_t addend = 0;
  if (accept(TokenKind::Plus) && !expectInteger(addend, "an integer"))
    return false;
  init.bits += addend;
  return true;
}

} // namespace kiln::ptx
