#include "runtime/ptx/Parser.h"

#include "runtime/ptx/ParserImpl.h"
#include "support/Text.h"

namespace kiln::ptx {

namespace {

constexpr std::size_t maxTextBytes = std::size_t{1} << 30;

/// A token as a message shows it: printable, and no longer than a line can bear.
std::string shown(const Token &t) {
  if (t.is(TokenKind::End))
    return "the end of the file";
  constexpr std::size_t limit = 40;
  std::string out = "'";
  for (char ch : t.text.substr(0, limit)) {
    auto byte = static_cast<unsigned char>(ch);
    if (byte >= 0x20 && byte < 0x7f)
      out += ch;
    else
      out += format("\\x%02x", byte);
  }
  return out + (t.text.size() > limit ? "...'" : "'");
}

} // namespace

Result<std::unique_ptr<Module>> parse(std::string text, std::string fileName) {
  // Modules passed as C strings often carry their NUL.
  while (!text.empty() && text.back() == '\0')
    text.pop_back();
  if (text.size() > maxTextBytes)
    return Status(StatusCode::CompileError,
                  format("%s: a module of %zu bytes is larger than %zu", fileName.c_str(), text.size(), maxTextBytes));
  auto module = std::make_unique<Module>();
  module->text = std::move(text);
  module->fileName = std::move(fileName);
  KILN_TRY(Parser(*module).run());
  return module;
}

void Parser::advance() {
  tok = lexer.next();
}

bool Parser::accept(TokenKind kind) {
  if (!tok.is(kind))
    return false;
  advance();
  return true;
}

bool Parser::acceptDirective(std::string_view name) {
  if (!tok.isDirective(name))
    return false;
  advance();
  return true;
}

bool Parser::expect(TokenKind kind, const char *expected) {
  return accept(kind) || fail(expected);
}

bool Parser::fail(std::string_view expected, std::string remedy) {
  if (tok.is(TokenKind::Invalid))
    expected = tok.expected;
  return failWith(tok.line, "found " + shown(tok) + ", expected " + std::string(expected), std::move(remedy));
}

bool Parser::failWith(std::uint32_t line, std::string message, std::string remedy, StatusCode code) {
  error = Status(code, module.fileName + ":" + std::to_string(line) + ": " + std::move(message), std::move(remedy));
  return false;
}

bool Parser::expectIdentifier(std::string_view &name, const char *expected) {
  if (!tok.is(TokenKind::Identifier) || tok.text == "_")
    return fail(expected);
  name = tok.text;
  advance();
  return true;
}

bool Parser::expectInteger(std::uint64_t &value, const char *expected) {
  if (!tok.is(TokenKind::Integer))
    return fail(expected);
  value = tok.bits;
  advance();
  return true;
}

bool Parser::expectU32(std::uint32_t &value, const char *expected) {
  if (!tok.is(TokenKind::Integer))
    return fail(expected);
  if (tok.bits > UINT32_MAX)
    return fail(std::string(expected) + " below 2^32");
  value = static_cast<std::uint32_t>(tok.bits);
  advance();
  return true;
}

std::string Parser::suggestion(std::span<const std::string_view> known) const {
  if (!tok.is(TokenKind::Directive) || tok.text.size() > 40)
    return {};
  std::vector<std::string> names(known.begin(), known.end());
  names = nearest(tok.text, names);
  return names.empty() ? std::string() : "did you mean " + names.front() + "?";
}

} // namespace kiln::ptx
