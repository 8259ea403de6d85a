//===- DType.h - Element types --------------------------------------------===//
//
// The one list of types that elements of tiles, tensors, arguments and files have.  Its rows have the spellings: the
// name that Kiln prints and commands take ("f32", "e4m3", "bool"), the front end's tag ("f8e4m3", "i1"), MLIR's text
// ("f8E4M3FN"; unsigned types are signless there), and NumPy's name ("float32").  What files make of a type is
// runtime/io/DType.h; tags are types of the front end (compiler/language/Types.h), host types kiln/HostTypes.h.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_SUPPORT_DTYPE_H
#define KILN_SUPPORT_DTYPE_H

#include "support/Status.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln {

enum class DType : std::uint8_t {
  I1, ///< a truth value: one byte in memory
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  F16,
  BF16,
  F8E4M3,
  F8E5M2,
  F32,
  F64,
  Raw8,  ///< one byte without a meaning: of files
  Raw16, ///< two bytes without a meaning
};
inline constexpr unsigned numDTypes = 17;

enum class DTypeKind : std::uint8_t { Signed, Unsigned, Float, Raw };

constexpr bool isFloat(DType t) {
  return t >= DType::F16 && t <= DType::F64;
}
/// Not truth values.
constexpr bool isInteger(DType t) {
  return t >= DType::I8 && t <= DType::U64;
}
constexpr bool isUnsigned(DType t) {
  return t >= DType::U8 && t <= DType::U64;
}
/// Of a value; 1 of a truth value.
constexpr unsigned bitsOf(DType t) {
  constexpr unsigned bits[numDTypes] = {1, 8, 16, 32, 64, 8, 16, 32, 64, 16, 16, 8, 8, 32, 64, 8, 16};
  return bits[static_cast<unsigned>(t)];
}
/// In memory.
constexpr unsigned dtypeBytes(DType t) {
  return (bitsOf(t) + 7) / 8;
}
constexpr DTypeKind dtypeKind(DType t) {
  return isFloat(t)                              ? DTypeKind::Float
         : t == DType::Raw8 || t == DType::Raw16 ? DTypeKind::Raw
         : isUnsigned(t) || t == DType::I1       ? DTypeKind::Unsigned
                                                 : DTypeKind::Signed;
}

/// What a kernel sees of an element in memory: floats by their type, everything else by its size alone (I8 to I64).
constexpr DType kernelElement(DType t) {
  constexpr DType bySize[] = {DType::I8,  DType::I8,  DType::I16, DType::I16, DType::I32,
                              DType::I32, DType::I32, DType::I32, DType::I64};
  return isFloat(t) ? t : bySize[dtypeBytes(t)];
}

std::string_view dtypeName(DType t);      ///< "f32", "e4m3", "bool"
std::string_view dtypeNumpyName(DType t); ///< "float32"
std::string_view elementName(DType t);    ///< the front end's tag: "f32", "f8e4m3", "i1", "u32"
std::string_view elementText(DType t);    ///< MLIR's: "f32", "f8E4M3FN", "i1", "i32" of u32

/// Any of these spellings but MLIR's, and other names in use ("fp16", "half"); a failure lists the names.
Result<DType> parseDType(std::string_view name);
/// The type of an element's text in MLIR; the signed one of integers.
std::optional<DType> dtypeOfText(std::string_view text);

} // namespace kiln

#endif // KILN_SUPPORT_DTYPE_H
