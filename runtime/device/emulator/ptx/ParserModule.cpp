// Module level: the header, and every directive outside functions.
#include "runtime/device/emulator/ptx/ParserImpl.h"

#include "support/ParseNumber.h"

namespace kiln::ptx {

namespace {
constexpr std::string_view moduleDirectives[] = {".visible", ".extern", ".weak",  ".common", ".entry",
                                                 ".func",    ".global", ".const", ".shared", ".section",
                                                 ".file",    ".alias",  ".pragma"};
constexpr unsigned newestMajor = 9;
} // namespace

Status Parser::run() {
  if (module.text.starts_with("\xef\xbb\xbf"))
    lexer = Lexer(std::string_view(module.text).substr(3));
  tok = lexer.next();
  bool good = parseHeader();
  while (good && !tok.is(TokenKind::End))
    good = parseModuleStatement();
  return std::move(error);
}

/// .version M.m  .target a, b  [.address_size 64]
bool Parser::parseHeader() {
  if (!acceptDirective(".version"))
    return fail("'.version' at the start of the module");
  // The number is two integers, not a fraction: 8.10 follows 8.9.
  const std::string_view text = tok.text;
  auto number = [](std::string_view digits, unsigned &value) {
    const std::optional<unsigned> read = parseNumber<unsigned>(digits);
    value = read.value_or(0);
    return read.has_value();
  };
  const std::size_t dot = text.find('.');
  if (!tok.is(TokenKind::Float) || dot == text.npos || !number(text.substr(0, dot), module.versionMajor) ||
      !number(text.substr(dot + 1), module.versionMinor))
    return fail("a version such as 9.0");
  if (module.versionMajor > newestMajor)
    return failWith(tok.line, "PTX version " + std::string(text) + " is newer than 9.x", "compile for PTX 9.0 or older",
                    StatusCode::Unsupported);
  advance();

  if (!acceptDirective(".target"))
    return fail("'.target' after '.version'");
  do {
    std::string_view name;
    if (!expectIdentifier(name, "a target such as sm_90a"))
      return false;
    module.targets.push_back(name);
  } while (accept(TokenKind::Comma));

  const std::uint32_t line = tok.line;
  if (acceptDirective(".address_size")) {
    std::uint32_t size = 0;
    if (!expectU32(size, "an address size: 64"))
      return false;
    if (size != 64)
      return failWith(line, "address size " + std::to_string(size) + ": only 64-bit modules are accepted",
                      "compile with 64-bit addresses", StatusCode::Unsupported);
  }
  return true;
}

bool Parser::parseModuleStatement() {
  if (!tok.is(TokenKind::Directive))
    return fail("a directive");
  if (tok.text == ".file")
    return parseFile();
  if (tok.text == ".section")
    return parseSection();
  if (tok.text == ".alias")
    return parseAlias();
  if (tok.text == ".pragma")
    return parsePragma(nullptr);

  Linkage linkage;
  bool linked = true;
  if (acceptDirective(".visible"))
    linkage.visible = true;
  else if (acceptDirective(".extern"))
    linkage.external = true;
  else if (acceptDirective(".weak"))
    linkage.weak = true;
  else if (acceptDirective(".common"))
    linkage.common = true;
  else
    linked = false;

  if (tok.isDirective(".entry") || (tok.isDirective(".func") && !linkage.common))
    return parseFunction(linkage);
  if (tok.isDirective(".global") || (!linkage.common && (tok.isDirective(".const") || tok.isDirective(".shared"))))
    return parseVariables(linkage, true, module.variables);
  if (linkage.common)
    return fail("'.global' after '.common'");
  if (linked)
    return fail("'.entry', '.func', '.global', '.const' or '.shared'");
  if (tok.isDirective(".tex"))
    return failWith(tok.line, "'.tex' is not supported", {}, StatusCode::Unsupported);
  if (tok.isDirective(".local") || tok.isDirective(".param") || tok.isDirective(".reg"))
    return fail("a module-level directive", std::string(tok.text) + " variables belong inside a function");
  return fail("a module-level directive", suggestion(moduleDirectives));
}

/// .file N "path" [, timestamp, size]
bool Parser::parseFile() {
  advance();
  std::uint32_t number = 0;
  std::uint64_t ignored = 0;
  if (!expectU32(number, "the number of a file"))
    return false;
  if (!tok.is(TokenKind::String))
    return fail("the path of a file in quotes");
  module.files.emplace_back(number, std::string(tok.text.substr(1, tok.text.size() - 2)));
  advance();
  if (!accept(TokenKind::Comma))
    return true;
  return expectInteger(ignored, "a time stamp") && expect(TokenKind::Comma, "',' and the size of the file") &&
         expectInteger(ignored, "the size of the file");
}

/// .section NAME { ... }: debug data, skipped.
bool Parser::parseSection() {
  advance();
  if (!tok.is(TokenKind::Directive))
    return fail("the name of a section");
  const std::uint32_t line = tok.line;
  const std::string name(tok.text);
  advance();
  if (!expect(TokenKind::LeftBrace, "'{'"))
    return false;
  while (!tok.is(TokenKind::RightBrace)) {
    if (tok.is(TokenKind::End))
      return fail("'}' of the section " + name + " of line " + std::to_string(line));
    if (tok.is(TokenKind::LeftBrace) || tok.is(TokenKind::Invalid))
      return fail("debug data or '}'");
    advance();
  }
  advance();
  return true;
}

/// .alias NAME, FUNCTION;
bool Parser::parseAlias() {
  advance();
  std::string_view name, aliasee;
  if (!expectIdentifier(name, "the name of the alias") || !expect(TokenKind::Comma, "','") ||
      !expectIdentifier(aliasee, "the function that the alias stands for") || !expect(TokenKind::Semicolon, "';'"))
    return false;
  module.aliases.emplace_back(name, aliasee);
  return true;
}

/// .pragma "a", "b";  Unknown pragmas have no effect, as the ISA says.
bool Parser::parsePragma(std::optional<std::uint64_t> *usedBytesMask) {
  advance();
  do {
    if (!tok.is(TokenKind::String))
      return fail("a pragma in quotes");
    constexpr std::string_view maskPragma = "used_bytes_mask";
    std::string_view text = tok.text.substr(1, tok.text.size() - 2);
    if (usedBytesMask && text.starts_with(maskPragma)) {
      text.remove_prefix(maskPragma.size());
      while (text.starts_with(' '))
        text.remove_prefix(1);
      int radix = 10;
      if (text.starts_with("0x") || text.starts_with("0X")) {
        text.remove_prefix(2);
        radix = 16;
      }
      const std::optional<std::uint64_t> mask = parseNumber<std::uint64_t>(text, radix);
      if (!mask)
        return fail("\"used_bytes_mask N\" with an integer N of at most 64 bits");
      *usedBytesMask = *mask;
    }
    advance();
  } while (accept(TokenKind::Comma));
  return expect(TokenKind::Semicolon, "';'");
}

/// .attribute(.managed)  .attribute(.unified(uuid, uuid)); `managed` null: a function's, which has only the second.
bool Parser::parseAttribute(bool *managed) {
  advance();
  if (!expect(TokenKind::LeftParen, "'('"))
    return false;
  do {
    if (managed && acceptDirective(".managed")) {
      *managed = true;
    } else if (acceptDirective(".unified")) {
      std::uint64_t ignored = 0;
      if (!expect(TokenKind::LeftParen, "'('") || !expectInteger(ignored, "an integer") ||
          !expect(TokenKind::Comma, "','") || !expectInteger(ignored, "an integer") ||
          !expect(TokenKind::RightParen, "')'"))
        return false;
    } else {
      return fail(managed ? "'.managed' or '.unified'" : "'.unified'");
    }
  } while (accept(TokenKind::Comma));
  return expect(TokenKind::RightParen, "')'");
}

} // namespace kiln::ptx
