//===- KernelSource.h - A kernel's program, ready to be compiled ----------===//
//
// What the JIT needs to know of a kernel: the text of its program, the configuration that the text was recorded with,
// and its arguments.  The front end's recorded kernels convert into it; a text file can be made into one by hand.  It
// is a plain value: two sources that are equal name the same kernel.
//
// Specialisation.  A kernel is compiled for a *class* of argument values, never for values, unless it says so:
//   None          nothing is known of the argument
//   Divisibility  a multiple of 16 (a pointer: aligned to 16 bytes; what counts elements: whole 16 bytes), or not
//   Stride        1, a multiple of 16 (of what counts elements: whole 16 bytes, 8 of bf16), or neither
//   Value         the value itself (an integer): one compile a value
//
// The program's text says which, by types and attributes of its arguments (tile.specialize, tile.element), never by
// names. Sizes stay None: a kernel called with 300 lengths is compiled once.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELSOURCE_H
#define KILN_KERNELSOURCE_H

#include "runtime/io/DType.h"
#include "support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

enum class Specialise : std::uint8_t { None, Divisibility, Stride, Value };

std::string_view specialiseName(Specialise how); ///< "none", "divisibility", "stride", "value"

/// Of a tensor that is one argument of the kernel as its author wrote it, and several here.
struct TensorPart {
  enum class Role : std::uint8_t { Pointer, Extent, Stride };
  std::string tensor; ///< its name
  Role role = Role::Pointer;
  std::uint8_t dim = 0, rank = 0;
  bool optional = false; ///< a launch may leave the tensor out
  bool operator==(const TensorPart &) const = default;
};

struct ArgumentSpec {
  std::string name;
  std::string type; ///< "ptr<f32>", "i32", "f32": as in the compiler's metadata
  Specialise specialise = Specialise::None;
  unsigned elementBytes = 1; ///< of what the integer counts; 1: it counts bytes, or anything
  std::optional<TensorPart> part = {};
  bool operator==(const ArgumentSpec &) const = default;
};

/// What the values of an argument's class "divisible" are multiples of: 16, or the elements that make 16 bytes.
unsigned classDivisor(const ArgumentSpec &argument);

struct KernelSource {
  std::string name;          ///< the function of `programText`
  std::string programText;   ///< one module at stage tile or tile_gpu, with locations or without
  std::string fileName;      ///< names the text in messages; may be empty
  std::string configuration; ///< "block = 1024, warps = 4": enters the key as it is
  std::vector<ArgumentSpec> arguments;
  unsigned warps = 4; ///< of one block
  bool operator==(const KernelSource &) const = default;
};

/// How a kernel is passed an argument: a value by its DType, whose number it has, or an address.
enum class ArgumentType : std::uint8_t {
  I1 = static_cast<std::uint8_t>(DType::I1),
  I8 = static_cast<std::uint8_t>(DType::I8),
  I16 = static_cast<std::uint8_t>(DType::I16),
  I32 = static_cast<std::uint8_t>(DType::I32),
  I64 = static_cast<std::uint8_t>(DType::I64),
  F16 = static_cast<std::uint8_t>(DType::F16),
  BF16 = static_cast<std::uint8_t>(DType::BF16),
  F32 = static_cast<std::uint8_t>(DType::F32),
  F64 = static_cast<std::uint8_t>(DType::F64),
  Pointer = numDTypes,
  Word64, ///< a caller's 64-bit word: fits Pointer and I64; never the type of a kernel's argument
};

unsigned argumentBytes(ArgumentType type);
std::string_view argumentTypeName(ArgumentType type); ///< "ptr", "i32"

/// An argument's type as text: how it is passed, and for pointers the element.
struct ParsedArgumentType {
  ArgumentType type = ArgumentType::Pointer;
  std::string element;              ///< "f32" of "ptr<f32>"; empty for values
  unsigned elementBytes = 1;        ///< 1 if the element's size is not known
  std::optional<DType> elementType; ///< nothing if the runtime does not know the element's name

  /// Whether a kernel may be given memory of these elements: the same floats, or integers of the same size; true if
  /// the kernel's own element is not known.
  bool pointsTo(DType given) const { return !elementType || kernelElement(*elementType) == kernelElement(given); }
};
Result<ParsedArgumentType> parseArgumentType(std::string_view text);

/// What a type alone says: `Divisibility` of pointers, None of all others.
Specialise defaultSpecialisation(const ParsedArgumentType &type);

} // namespace kiln

#endif // KILN_KERNELSOURCE_H
