//===- Operations.h - The operations that the recorder emits ---------------===//
//
// One enumerator an MLIR operation (Operations.def).  All recorded operations are spelt through this table.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_OPERATIONS_H
#define KILN_LANGUAGE_OPERATIONS_H

#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::language {

enum class Op : std::uint8_t {
#define KILN_OPERATION(enumerator, name) enumerator,
#include "compiler/language/Operations.def"
#undef KILN_OPERATION
};

/// "arith.addf".
std::string_view operationName(Op op);

/// The names of all operations that a recording can hold ("return" is func.return).
std::span<const std::string_view> recordedOperations();

} // namespace kiln::language

#endif // KILN_LANGUAGE_OPERATIONS_H
