// Function bodies: scopes, labels, instructions, and the directives among them.
#include "runtime/ptx/ParserImpl.h"

#include <climits>
#include <cstring>
#include <utility>

namespace kiln::ptx {

namespace {
constexpr std::string_view bodyDirectives[] = {".reg",    ".local", ".shared", ".param",
                                               ".global", ".const", ".loc",    ".pragma"};
} // namespace

/// What follows '{', up to and with '}'.
bool Parser::parseScope(Scope &scope, unsigned depth) {
  if (depth > maxScopeDepth)
    return failWith(tok.line, "scopes are nested deeper than " + std::to_string(maxScopeDepth));
  while (!tok.is(TokenKind::RightBrace))
    if (!parseStatement(scope, depth))
      return false;
  advance();
  return true;
}

bool Parser::parseStatement(Scope &scope, unsigned depth) {
  switch (tok.kind) {
  case TokenKind::Identifier:
    return parseLabelOrInstruction(scope);
  case TokenKind::At: {
    advance();
    const bool negated = accept(TokenKind::Exclaim);
    std::string_view guard;
    if (!expectIdentifier(guard, "a predicate"))
      return false;
    const std::uint32_t line = tok.line;
    std::string_view mnemonic;
    if (!expectIdentifier(mnemonic, "an instruction"))
      return false;
    return parseInstruction(scope, mnemonic, line, guard, negated);
  }
  case TokenKind::LeftBrace: {
    advance();
    auto nested = std::make_unique<Scope>();
    if (!parseScope(*nested, depth + 1))
      return false;
    scope.statements.push_back({std::move(nested)});
    return true;
  }
  case TokenKind::Directive:
    if (tok.text == ".loc")
      return parseLocation();
    if (tok.text == ".pragma")
      return parsePragma(&pendingMask);
    if (tok.text == ".reg" || tok.text == ".local" || tok.text == ".shared" || tok.text == ".param" ||
        tok.text == ".global" || tok.text == ".const") {
      std::vector<Variable> variables;
      if (!parseVariables({}, false, variables))
        return false;
      for (Variable &v : variables)
        scope.statements.push_back({std::move(v)});
      return true;
    }
    if (tok.text == ".branchtargets" || tok.text == ".calltargets" || tok.text == ".callprototype")
      return fail("a statement", "'" + std::string(tok.text) + "' needs a label before it");
    return fail("a statement or '}'", suggestion(bodyDirectives));
  default:
    return fail("a statement or '}'");
  }
}

bool Parser::parseLabelOrInstruction(Scope &scope) {
  const std::uint32_t line = tok.line;
  std::string_view name;
  if (!expectIdentifier(name, "a statement"))
    return false;
  if (accept(TokenKind::Colon))
    return parseAfterLabel(scope, name, line);
  return parseInstruction(scope, name, line, {}, false);
}

/// A label, or the list of targets or the prototype that it names.
bool Parser::parseAfterLabel(Scope &scope, std::string_view label, std::uint32_t line) {
  TargetList list;
  list.label = label;
  list.line = line;
  if (acceptDirective(".callprototype")) {
    list.kind = TargetList::Kind::Prototype;
    if (!parsePrototype(list))
      return false;
  } else if (tok.isDirective(".branchtargets") || tok.isDirective(".calltargets")) {
    const bool branch = tok.text == ".branchtargets";
    list.kind = branch ? TargetList::Kind::Branch : TargetList::Kind::Call;
    advance();
    do {
      std::string_view name;
      if (!expectIdentifier(name, branch ? "a label" : "the name of a function"))
        return false;
      list.names.push_back(name);
    } while (accept(TokenKind::Comma));
    if (!expect(TokenKind::Semicolon, "',' or ';'"))
      return false;
  } else {
    scope.statements.push_back({Label{label, line}});
    return true;
  }
  scope.statements.push_back({std::move(list)});
  return true;
}

bool Parser::parseInstruction(Scope &scope, std::string_view mnemonic, std::uint32_t line, std::string_view guard,
                              bool guardNegated) {
  Instruction insn;
  insn.guard = guard;
  insn.guardNegated = guardNegated;
  insn.line = line;
  insn.location = static_cast<std::int32_t>(function->locations.size()) - 1;
  insn.usedBytesMask = std::exchange(pendingMask, std::nullopt);
  insn.opcode = joinModifiers(mnemonic, line, UINT_MAX);
  if (!tok.is(TokenKind::Semicolon)) {
    const bool isCall = mnemonic == "call";
    insn.operands.reserve(4);
    do {
      if (!parseOperand(insn.operands.emplace_back(), isCall))
        return false;
    } while (accept(TokenKind::Comma));
    if (!tok.is(TokenKind::Semicolon))
      return fail("',' or ';'");
  }
  advance();
  scope.statements.push_back({std::move(insn)});
  return true;
}

/// `name`, which stands on line `line`, with the modifiers that follow it, `most` at most.  White space and comments
/// between them are legal and rare; they are squeezed out in place, their lines kept, so that the whole stays one view
/// of the source.
std::string_view Parser::joinModifiers(std::string_view name, std::uint32_t line, unsigned most) {
  char *const begin = module.text.data() + (name.data() - module.text.data());
  char *joined = begin + name.size();
  const char *last = joined;
  std::uint32_t lastLine = line;
  for (; most != 0 && tok.is(TokenKind::Directive); --most) {
    if (joined != tok.text.data())
      std::memmove(joined, tok.text.data(), tok.text.size());
    joined += tok.text.size();
    last = tok.text.data() + tok.text.size();
    lastLine = tok.line;
    advance();
  }
  if (joined != last) {
    std::memset(joined, ' ', static_cast<std::size_t>(last - joined));
    std::memset(joined, '\n', lastLine - line);
  }
  return {begin, static_cast<std::size_t>(joined - begin)};
}

/// .loc FILE LINE COLUMN [, function_name LABEL [+ N], inlined_at FILE LINE COLUMN]
bool Parser::parseLocation() {
  advance();
  Location location, ignored;
  auto position = [this](Location &l) {
    return expectU32(l.file, "the number of a file") && expectU32(l.line, "a line") && expectU32(l.column, "a column");
  };
  if (!position(location))
    return false;
  function->locations.push_back(location);
  if (!accept(TokenKind::Comma))
    return true;
  if (!tok.isIdentifier("function_name"))
    return fail("'function_name'");
  advance();
  std::string_view name;
  std::uint64_t addend = 0;
  if (!expectIdentifier(name, "the label of a name"))
    return false;
  if (accept(TokenKind::Plus) && !expectInteger(addend, "an integer"))
    return false;
  if (!expect(TokenKind::Comma, "',' and 'inlined_at'"))
    return false;
  if (!tok.isIdentifier("inlined_at"))
    return fail("'inlined_at'");
  advance();
  return position(ignored);
}

} // namespace kiln::ptx
