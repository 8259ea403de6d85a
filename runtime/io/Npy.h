//===- Npy.h - NumPy's .npy files -----------------------------------------===//
//
// Reads format versions 1.0, 2.0 and 3.0, little endian, C or Fortran order, the types of DType.h that have a code.
// Any byte sequence gives an Array or a Status that names the file, the value and the remedy; no size is trusted before
// it is compared with the file.  An Array in memory is always in C order.  Writing makes version 1.0 and renames.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_IO_NPY_H
#define KILN_RUNTIME_IO_NPY_H

#include "runtime/io/DType.h"
#include "runtime/io/File.h"

#include <cstddef>
#include <span>
#include <vector>

namespace kiln {

using Shape = std::vector<std::uint64_t>;

/// "16x100"; "scalar" for rank 0.
std::string shapeText(const Shape &shape);
/// "16x100", "7", or "scalar".
Result<Shape> parseShape(std::string_view text);
/// Elements of the shape times `elementBytes`; a product that does not fit 63 bits is an error.
Result<std::uint64_t> shapeBytes(const Shape &shape, unsigned elementBytes);

struct NpyHeader {
  DType type = DType::F32;
  Shape shape;
  bool fortranOrder = false;
  std::uint64_t dataOffset = 0; ///< bytes before the data
  std::uint64_t dataBytes = 0;
};

struct Array {
  DType type = DType::F32;
  Shape shape;
  std::vector<std::byte> data; ///< C order
  std::uint64_t elements() const { return data.size() / dtypeBytes(type); }
};

/// How many leading bytes hold the header, read from the first bytes of the file (12 are enough).
Result<std::uint64_t> npyHeaderBytes(std::span<const std::byte> start, const std::string &fileName);
/// `start`: at least the header.  `fileName` names the file in messages.
Result<NpyHeader> parseNpyHeader(std::span<const std::byte> start, const std::string &fileName);

/// A whole file in memory.
Result<Array> parseNpy(std::span<const std::byte> file, const std::string &fileName);
Result<Array> readNpy(const std::string &path);

/// bf16, e4m3 and e5m2 are written as fp32.
Status writeNpy(OutputFile &file, const Array &array);
Status writeNpy(const std::string &path, const Array &array);

/// Whether convertArray takes elements of `from` as the bits of the small float format `to`.
bool readsBits(DType from, DType to);

/// The array with elements of type `to`.  Between floating-point types: values, rounded to nearest even once.  To bf16
/// and f16 from two-byte raw or uint16 arrays, to e4m3 and e5m2 from one-byte ones: the bits.  Anything else that is
/// not the identity is an error; `name` is the file's name in it.
Result<Array> convertArray(Array array, DType to, const std::string &name);

} // namespace kiln

#endif // KILN_RUNTIME_IO_NPY_H
