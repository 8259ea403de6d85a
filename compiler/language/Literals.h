//===- Literals.h - C++ numbers as MLIR literals ------------------------------===//
//
// Floats are rounded to nearest even, once, from the C++ double.  Short exact decimals are written so (`1.0`, `0.5`),
// all others by their bits (`0x3DCCCCCD`), which MLIR reads back unchanged.  No locale is involved.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_LITERALS_H
#define KILN_LANGUAGE_LITERALS_H

#include "Recorder.h"

#include <string>

namespace kiln::language {

/// Appends `value` as an element of `e`.  Gives false, and appends nothing, if the type cannot hold it.
bool appendLiteral(std::string &out, DType e, const detail::Constant &value);

/// "300", "0.1": for messages.
std::string constantText(const detail::Constant &value);

/// The numbers that `e` holds: "-128 .. 127".
std::string rangeText(DType e);

/// Appends `text` between quotes, escaped as MLIR reads it.
void appendQuoted(std::string &out, std::string_view text);

void appendInteger(std::string &out, std::int64_t value);

} // namespace kiln::language

#endif // KILN_LANGUAGE_LITERALS_H
