//===- Opcodes.h - The table of instruction forms under test --------------===//
#ifndef KILN_TESTS_PARITY_OPCODES_H
#define KILN_TESTS_PARITY_OPCODES_H

#include "tests/parity/Form.h"

namespace kiln::parity {

std::span<const Row> opcodeTable();

} // namespace kiln::parity

#endif // KILN_TESTS_PARITY_OPCODES_H
