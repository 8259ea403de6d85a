// .entry and .func: parameters, directives after them, and call prototypes.
#include "runtime/ptx/ParserImpl.h"

#include <algorithm>

namespace kiln::ptx {

namespace {
constexpr std::string_view entryDirectives[] = {
    ".reqntid",        ".maxntid",         ".minnctapersm",      ".maxnreg",
    ".maxclusterrank", ".explicitcluster", ".reqnctapercluster", ".blocksareclusters",
    ".noreturn",       ".pragma",          ".abi_preserve",      ".abi_preserve_control"};
} // namespace

/// .entry NAME [(PARAMETERS)] DIRECTIVES BODY      .func [(RETURNS)] NAME [(PARAMETERS)] DIRECTIVES BODY
bool Parser::parseFunction(const Linkage &linkage) {
  Function f;
  f.isEntry = tok.text == ".entry";
  f.external = linkage.external;
  f.visible = linkage.visible;
  f.weak = linkage.weak;
  advance();
  if (tok.isDirective(".attribute") && !parseAttribute(nullptr))
    return false;
  f.line = tok.line;
  if (!f.isEntry && tok.is(TokenKind::LeftParen)) {
    if (!parseParameters(f.returns, false))
      return false;
    for (const Variable &v : f.returns)
      if (f.returns.size() > 1 && v.space != Space::Reg)
        return failWith(v.line, "'" + std::string(v.name) + "': several return values must all be .reg");
    f.line = tok.line;
  }
  if (!expectIdentifier(f.name, f.isEntry ? "the name of a kernel" : "the name of a function"))
    return false;
  if (tok.is(TokenKind::LeftParen) && !parseParameters(f.parameters, f.isEntry))
    return false;
  if (!parseFunctionDirectives(f))
    return false;
  if (!accept(TokenKind::Semicolon)) {
    if (!tok.is(TokenKind::LeftBrace)) {
      const bool known = std::ranges::find(entryDirectives, tok.text) != std::end(entryDirectives);
      return fail("a directive of the function, '{' or ';'",
                  known ? "only kernels have " + std::string(tok.text) : suggestion(entryDirectives));
    }
    if (f.external)
      return failWith(tok.line, "external function '" + std::string(f.name) + "' cannot have a body");
    advance();
    f.hasBody = true;
    function = &f;
    if (!parseScope(f.body, 0))
      return false;
    function = nullptr;
    pendingMask.reset();
  }
  module.functions.push_back(std::move(f));
  return true;
}

/// ( PARAMETER, ... )
bool Parser::parseParameters(std::vector<Variable> &out, bool entryOnly) {
  advance();
  if (accept(TokenKind::RightParen))
    return true;
  do {
    if (!out.empty() && out.back().isArray && out.back().extents[0] == 0)
      return failWith(out.back().line, "only the last parameter may be an array without a size");
    Variable v;
    if (!parseParameter(v, entryOnly))
      return false;
    out.push_back(std::move(v));
  } while (accept(TokenKind::Comma));
  return expect(TokenKind::RightParen, "',' or ')'");
}

/// .reg TYPE NAME      .param [.align N] [.vN] TYPE [.ptr [SPACE] [.align N]] NAME [[N]]
bool Parser::parseParameter(Variable &v, bool entryOnly) {
  if (acceptDirective(".param"))
    v.space = Space::Param;
  else if (entryOnly || !acceptDirective(".reg"))
    return fail(entryOnly ? "'.param'" : "'.param' or '.reg'");
  if (v.space == Space::Param && tok.isDirective(".align") && !parseAlignment(v.align))
    return false;
  if (!parseVectorLength(v.vector) || !parseDeclaredType(v))
    return false;
  if (v.space == Space::Param && tok.isDirective(".ptr") && !parsePointer(v))
    return false;
  v.line = tok.line;
  if (!tok.is(TokenKind::Identifier)) // "_" too: the names in a prototype
    return fail("the name of a parameter");
  v.name = tok.text;
  advance();
  if (v.space == Space::Param && tok.is(TokenKind::LeftBracket)) {
    if (!parseExtents(v))
      return false;
    if (v.extents.size() > 1)
      return failWith(v.line, "parameter '" + std::string(v.name) + "' has more than one dimension");
  }
  return true;
}

/// .ptr [.const | .global | .local | .shared] [.align N]
bool Parser::parsePointer(Variable &v) {
  advance();
  v.isPointer = true;
  for (Space s : {Space::Const, Space::Global, Space::Local, Space::Shared, Space::Param})
    if (tok.is(TokenKind::Directive) && tok.text.substr(1) == spaceName(s)) {
      v.pointerSpace = s;
      advance();
      break;
    }
  return !tok.isDirective(".align") || parseAlignment(v.pointerAlign);
}

bool Parser::parseFunctionDirectives(Function &f) {
  for (;;) {
    bool good = true;
    if (!tok.is(TokenKind::Directive))
      return true;
    if (tok.text == ".noreturn") {
      if (!f.returns.empty() || f.isEntry)
        return failWith(tok.line, "'.noreturn' does not apply to '" + std::string(f.name) +
                                      (f.isEntry ? "', a kernel" : "', which returns a value"));
      f.noreturn = true;
      advance();
    } else if (tok.text == ".abi_preserve" || tok.text == ".abi_preserve_control") {
      good = parseAbiPreserve();
    } else if (!f.isEntry) {
      return true;
    } else if (tok.text == ".pragma") {
      good = parsePragma(nullptr);
    } else if (tok.text == ".maxntid") {
      good = parseThreadCounts(f.maxntid);
    } else if (tok.text == ".reqntid") {
      good = parseThreadCounts(f.reqntid);
    } else if (tok.text == ".reqnctapercluster") {
      good = parseThreadCounts(f.reqnctapercluster);
    } else if (tok.text == ".minnctapersm") {
      advance();
      good = expectU32(f.minnctapersm, "a number of blocks");
    } else if (tok.text == ".maxnreg") {
      advance();
      good = expectU32(f.maxnreg, "a number of registers");
    } else if (tok.text == ".maxclusterrank") {
      advance();
      good = expectU32(f.maxclusterrank, "a number of blocks");
    } else if (tok.text == ".explicitcluster") {
      f.explicitCluster = true;
      advance();
    } else if (tok.text == ".blocksareclusters") {
      f.blocksAreClusters = true;
      advance();
    } else {
      return true;
    }
    if (!good)
      return false;
  }
}

/// X [, Y [, Z]]: what is left out is 1.
bool Parser::parseThreadCounts(std::uint32_t (&counts)[3]) {
  advance();
  counts[0] = counts[1] = counts[2] = 1;
  for (std::uint32_t &n : counts) {
    if (tok.is(TokenKind::Integer) && tok.bits == 0)
      return fail("a count above 0");
    if (!expectU32(n, "a count"))
      return false;
    if (!accept(TokenKind::Comma))
      return true;
    if (&n == &counts[2])
      return failWith(tok.line, "found a fourth count, expected at most 3");
  }
  return true;
}

/// .abi_preserve N: how many registers a call preserves, nothing that shows in an emulator.
bool Parser::parseAbiPreserve() {
  std::uint64_t ignored = 0;
  advance();
  return expectInteger(ignored, "a number of registers");
}

/// .callprototype [(RETURNS)] _ [(PARAMETERS)] [.noreturn] [.abi_preserve N];
bool Parser::parsePrototype(TargetList &list) {
  if (tok.is(TokenKind::LeftParen) && !parseParameters(list.returns, false))
    return false;
  if (!tok.isIdentifier("_"))
    return fail("'_' in place of the name of a function");
  advance();
  if (tok.is(TokenKind::LeftParen) && !parseParameters(list.parameters, false))
    return false;
  for (;;) {
    if (tok.isDirective(".abi_preserve") || tok.isDirective(".abi_preserve_control")) {
      if (!parseAbiPreserve())
        return false;
    } else if (!acceptDirective(".noreturn")) {
      return expect(TokenKind::Semicolon, "';'");
    }
  }
}

} // namespace kiln::ptx
