//===- ParserImpl.h - The recursive-descent parser ------------------------===//
//
// Private to this folder.  Every parse function starts at `tok`, returns true past what it read, or returns false with
// `error` set; the first error ends the parse.  Recursion is bounded: scopes by maxScopeDepth, constant expressions by
// maxExpressionDepth, initialisers by the dimensions of their variable; nothing else recurses.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_PTX_PARSERIMPL_H
#define KILN_RUNTIME_PTX_PARSERIMPL_H

#include "runtime/ptx/Ast.h"
#include "runtime/ptx/Lexer.h"
#include "support/Status.h"

#include <span>

namespace kiln::ptx {

class Parser {
public:
  explicit Parser(Module &m) : module(m), lexer(m.text) {}
  Status run();

private:
  static constexpr unsigned maxScopeDepth = 128;
  static constexpr unsigned maxExpressionDepth = 64;
  static constexpr std::uint32_t maxRegisterRange = 1u << 20;
  static constexpr std::size_t maxDimensions = 16;
  static constexpr std::uint64_t maxVariableBytes = std::uint64_t{1} << 40;
  /// Elements of one initialiser, the zeros that complete short rows included.
  static constexpr std::size_t maxInitElements = std::size_t{1} << 24;
  static constexpr std::size_t maxInitPadding = std::size_t{1} << 20;

  /// What may precede a module-level variable or a function.
  struct Linkage {
    bool external = false, visible = false, weak = false, common = false;
  };
  /// The value of a constant expression.
  struct Constant {
    bool isFloat = false, isUnsigned = false;
    bool isHexFloat32 = false; ///< written 0f...: takes part in no arithmetic
    std::uint8_t floatBits = 0;
    std::uint64_t bits = 0;
  };

  // Tokens.
  void advance();
  bool accept(TokenKind kind);
  bool acceptDirective(std::string_view name);
  bool expect(TokenKind kind, const char *expected);
  /// Fails with "FILE:LINE: found TOKEN, expected EXPECTED" at `tok`.
  bool fail(std::string_view expected, std::string remedy = {});
  bool failWith(std::uint32_t line, std::string message, std::string remedy = {},
                StatusCode code = StatusCode::CompileError);
  bool expectIdentifier(std::string_view &name, const char *expected);
  bool expectInteger(std::uint64_t &value, const char *expected);
  bool expectU32(std::uint32_t &value, const char *expected);
  /// "did you mean ...?" for the directive at `tok`, or nothing.
  std::string suggestion(std::span<const std::string_view> known) const;

  // ParserModule.cpp: header and module-level directives.
  bool parseHeader();
  bool parseModuleStatement();
  bool parseFile();
  bool parseSection();
  bool parseAlias();
  bool parsePragma(std::optional<std::uint64_t> *usedBytesMask);
  bool parseAttribute(bool *managed);

  // ParserFunctions.cpp
  bool parseFunction(const Linkage &linkage);
  bool parseParameters(std::vector<Variable> &out, bool entryOnly);
  bool parseParameter(Variable &v, bool entryOnly);
  bool parsePointer(Variable &v);
  bool parseFunctionDirectives(Function &f);
  bool parseThreadCounts(std::uint32_t (&counts)[3]);
  bool parseAbiPreserve();
  bool parsePrototype(TargetList &list);

  // ParserDeclarations.cpp
  bool parseVariables(const Linkage &linkage, bool moduleLevel, std::vector<Variable> &out);
  bool parseAlignment(std::uint32_t &align);
  bool parseVectorLength(std::uint8_t &length);
  bool parseDeclaredType(Variable &v);
  bool parseDeclarator(Variable &v);
  bool parseExtents(Variable &v);
  bool checkVariable(const Variable &v, bool hasInit);
  bool parseInitialiser(Variable &v);
  bool parseInitList(Variable &v, std::span<const std::uint64_t> extents);
  bool parseInitElement(Variable &v);
  bool parseInitSymbol(const Variable &v, Variable::Init &init);

  // ParserStatements.cpp
  bool parseScope(Scope &scope, unsigned depth);
  bool parseStatement(Scope &scope, unsigned depth);
  bool parseLabelOrInstruction(Scope &scope);
  bool parseAfterLabel(Scope &scope, std::string_view label, std::uint32_t line);
  bool parseInstruction(Scope &scope, std::string_view mnemonic, std::uint32_t line, std::string_view guard,
                        bool guardNegated);
  std::string_view joinModifiers(std::string_view name, std::uint32_t line, unsigned most);
  bool parseLocation();

  // ParserOperands.cpp
  bool parseOperand(Operand &o, bool isCall);
  bool parseImmediate(Operand &o);
  bool parseName(Operand &o);
  bool parseRegister(Operand &o, const char *expected);
  bool parseElement(Operand &o, const char *expected);
  bool parseAddress(Operand &o);
  bool parseVector(Operand &o);
  bool parseArguments(Operand &o);
  bool startsConstant() const;

  // ParserConstants.cpp
  bool parseConstant(Constant &c) { return parseConditional(c, 0); }
  bool parseIntegerConstant(std::uint64_t &value);
  bool parseConditional(Constant &c, unsigned depth);
  bool parseBinary(Constant &c, unsigned minPrecedence, unsigned depth);
  bool parseUnary(Constant &c, unsigned depth);
  bool parsePrimary(Constant &c, unsigned depth);
  bool applyBinary(const Token &op, Constant &a, const Constant &b);

  Module &module;
  Lexer lexer;
  Token tok;
  Status error;
  Function *function = nullptr;             ///< whose body is being parsed
  std::optional<std::uint64_t> pendingMask; ///< used_bytes_mask for the next instruction
};

} // namespace kiln::ptx

#endif // KILN_RUNTIME_PTX_PARSERIMPL_H
