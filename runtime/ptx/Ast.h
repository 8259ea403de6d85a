//===- Ast.h - A PTX module as written ------------------------------------===//
//
// The parser's result: declarations and statements in source order, names unresolved, modifiers unnormalised.  Strings
// are views into Module::text, which the Module owns; a Module is therefore moved only through its unique_ptr.
// Every node knows its PTX line.  Instruction semantics live elsewhere (the emulator's insn/): the parser accepts any
// opcode.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_PTX_AST_H
#define KILN_RUNTIME_PTX_AST_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kiln::ptx {

/// Fundamental types, and the packed and alternate ones that occur as instruction modifiers.
enum class Type : std::uint8_t {
  None,
#define KILN_PTX_TYPE(id, name, bytes, kind) id,
#include "runtime/ptx/Types.def"
};

enum class TypeKind : std::uint8_t { Bits, Unsigned, Signed, Float, Predicate, Packed };

std::string_view typeName(Type t);
unsigned typeBytes(Type t); ///< 1 for a predicate
TypeKind typeKind(Type t);
/// The type spelled `name` without the dot ("f32", "bf16x2"), or None.
Type typeFromName(std::string_view name);

enum class Space : std::uint8_t { Reg, Const, Global, Local, Param, Shared, Generic };
std::string_view spaceName(Space s);

/// One .loc directive: the source position of the instructions that follow it.
struct Location {
  std::uint32_t file = 0, line = 0, column = 0; ///< file: the number of a .file directive
};

struct Operand {
  enum class Kind : std::uint8_t {
    Register, ///< %r1, %tid.x, a symbol, a label, a function name: anything that is one identifier (text)
    Integer,  ///< value as 64 bits (two's complement if negated)
    Float,    ///< a literal with a decimal point or an 0f / 0d prefix: `bits` of the f64 or f32 as `floatBits` says
    Address,  ///< [base + offset], base an identifier or empty; or [integer]
    Vector,   ///< {a, b, ...}
    Sink,     ///< _
    List,     ///< (a, b, ...): arguments of a call
  };
  Kind kind = Kind::Register;
  bool negated = false;       ///< !p, or -x before an identifier
  std::uint8_t floatBits = 0; ///< Float: 32 (0f...) or 64 (0d..., decimal)
  std::uint32_t line = 0;
  std::string_view text;  ///< Register: name; Address: base
  std::uint64_t bits = 0; ///< Integer, Float: value; Address: offset; Register: addend of `sym+imm`, else 0
  /// Of a Vector or List; of an Address, what follows a comma inside the brackets (tensor coordinates).
  std::vector<Operand> elements;
  /// `d|p`: the second destination.
  std::unique_ptr<Operand> second;
};

struct Instruction {
  std::string_view guard; ///< predicate register, empty if unguarded
  bool guardNegated = false;
  std::string_view opcode; ///< as written: "ld.global.v4.f32"
  std::vector<Operand> operands;
  std::uint32_t line = 0;
  std::int32_t location = -1;                 ///< index into Function::locations, -1: none
  std::optional<std::uint64_t> usedBytesMask; ///< from .pragma "used_bytes_mask N" just before
};

struct Label {
  std::string_view name;
  std::uint32_t line = 0;
};

/// .reg, or a local / shared / param declaration inside a body; also module-level variables.
struct Variable {
  Space space = Space::Reg;
  Type type = Type::None;
  std::uint8_t vector = 1; ///< 2 or 4 for .v2 / .v4 declarations
  std::string_view name;
  std::uint32_t rangeCount = 0; ///< %r<14>: 14; else 0
  std::uint32_t align = 0;      ///< bytes, 0: natural
  bool isArray = false;
  std::vector<std::uint64_t> extents; ///< of an array, outermost first; 0: unsized ([]), only of externs and parameters
  bool external = false, visible = false, weak = false;
  bool common = false, managed = false; ///< .common; .attribute(.managed)
  bool isPointer = false;               ///< parameter declared .ptr
  Space pointerSpace = Space::Generic;  ///< .ptr: what it points into, Generic if unsaid
  std::uint32_t pointerAlign = 0;       ///< .ptr: alignment in bytes of what it points at, 0 if unsaid
  std::uint32_t line = 0;
  /// Initialiser, flattened row by row: integers, floats, or symbols (text, addend in bits; generic(sym): `generic`;
  /// mask(sym) forms: `shift` right and 8-bit truncation are given by byteMask).
  struct Init {
    enum class Kind : std::uint8_t { Integer, Float, Symbol } kind = Kind::Integer;
    std::uint64_t bits = 0; ///< value, or addend of a symbol
    std::uint8_t floatBits = 0;
    std::string_view symbol;
    bool generic = false;
    std::uint64_t byteMask = 0; ///< 0xFF(sym), 0xFF00(sym) ...: which byte of the address; 0: whole
  };
  std::vector<Init> init;
};

struct Statement;
/// A nested { } scope; names declared inside are local to it.
struct Scope {
  std::vector<Statement> statements;
};

/// .branchtargets / .calltargets / .callprototype attached to a label.
struct TargetList {
  enum class Kind : std::uint8_t { Branch, Call, Prototype } kind = Kind::Branch;
  std::string_view label;
  std::vector<std::string_view> names;
  std::vector<Variable> returns, parameters; ///< Prototype
  std::uint32_t line = 0;
};

struct Statement {
  std::variant<Instruction, Label, Variable, std::unique_ptr<Scope>, TargetList> node;
};

struct Function {
  bool isEntry = false;
  bool external = false, visible = false, weak = false, noreturn = false;
  bool hasBody = false;
  std::string_view name;
  std::vector<Variable> returns; ///< .func (ret) name
  std::vector<Variable> parameters;
  std::uint32_t reqntid[3] = {0, 0, 0}, maxntid[3] = {0, 0, 0}, reqnctapercluster[3] = {0, 0, 0};
  std::uint32_t minnctapersm = 0, maxnreg = 0, maxclusterrank = 0;
  bool explicitCluster = false, blocksAreClusters = false;
  Scope body;
  std::vector<Location> locations;
  std::uint32_t line = 0;
};

struct Module {
  std::string text; ///< the source; every view points into it
  std::string fileName;
  unsigned versionMajor = 0, versionMinor = 0;
  std::vector<std::string_view> targets; ///< of .target, suffixes kept: "sm_90a", "debug", ...
  unsigned addressSize = 64;
  std::vector<std::pair<std::uint32_t, std::string>> files; ///< .file number -> path
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<std::pair<std::string_view, std::string_view>> aliases;

  std::string_view filePath(std::uint32_t number) const {
    for (const auto &f : files)
      if (f.first == number)
        return f.second;
    return {};
  }
};

} // namespace kiln::ptx

#endif // KILN_RUNTIME_PTX_AST_H
