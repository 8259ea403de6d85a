//===- DType.h - Element types in files -----------------------------------===//
//
// What .npy files make of an element type (support/DType.h): its code ("<f4"), and values of elements.  bf16, e4m3 and
// e5m2 have no code of their own: arrays of them are written as fp32.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_IO_DTYPE_H
#define KILN_RUNTIME_IO_DTYPE_H

#include "runtime/io/Numbers.h"
#include "support/DType.h"

#include <cstddef>

namespace kiln {

std::string_view dtypeNpyCode(DType t); ///< "<f4"; empty for bf16, e4m3, e5m2
/// The small float format of `t`; nullptr for every other type.
const FloatFormat *dtypeFloatFormat(DType t);

/// The type of a .npy descr string: "<f4", "|u1", "<V2".  A failure says why (big endian, unsupported).
Result<DType> dtypeFromNpyCode(std::string_view code);

/// One element's value; Raw types give their bits.  64-bit integers lose what a double cannot hold.
double loadElement(const std::byte *element, DType t);

} // namespace kiln

#endif // KILN_RUNTIME_IO_DTYPE_H
