//===- DType.h - Element types of buffers and files -----------------------===//
//
// One table: the short name that Kiln prints ("f32"), NumPy's name ("float32") and the .npy type code ("<f4").  bf16,
// e4m3 and e5m2 have no NumPy code of their own: arrays of them are written as fp32.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_IO_DTYPE_H
#define KILN_RUNTIME_IO_DTYPE_H

#include "runtime/io/Numbers.h"
#include "support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

enum class DType : std::uint8_t {
  Bool,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  F16,
  Bf16,
  E4m3,
  E5m2,
  F32,
  F64,
  Raw8,  ///< one byte without a meaning, |V1
  Raw16, ///< two bytes without a meaning, |V2
};

enum class DTypeKind : std::uint8_t { Signed, Unsigned, Float, Raw };

/// What a kernel sees of an element: floats by their type, everything else by its size alone (I8 to I64).
constexpr DType kernelElement(DType t) {
  switch (t) {
  case DType::Bool:
  case DType::U8:
  case DType::Raw8:
    return DType::I8;
  case DType::U16:
  case DType::Raw16:
    return DType::I16;
  case DType::U32:
    return DType::I32;
  case DType::U64:
    return DType::I64;
  default:
    return t;
  }
}

unsigned dtypeBytes(DType t);
DTypeKind dtypeKind(DType t);
std::string_view dtypeName(DType t);      ///< "f32"
std::string_view dtypeNumpyName(DType t); ///< "float32"
std::string_view dtypeNpyCode(DType t);   ///< "<f4"; empty for bf16, e4m3, e5m2
/// The small float format of `t`; nullptr for every other type.
const FloatFormat *dtypeFloatFormat(DType t);

/// Either name; a failure lists what exists.
Result<DType> parseDType(std::string_view name);
/// The type of a .npy descr string: "<f4", "|u1", "<V2".  A failure says why (big endian, unsupported).
Result<DType> dtypeFromNpyCode(std::string_view code);

/// One element's value; Raw types give their bits.  64-bit integers lose what a double cannot hold.
double loadElement(const std::byte *element, DType t);

} // namespace kiln

#endif // KILN_RUNTIME_IO_DTYPE_H
