//===- Matrix.h - Matrix products: inputs and references -------------------===//
//
// The operands of mma are the registers of a warp.  Inputs of a form: the words of A, of B, of C; outputs: of D.  A
// warp's 32 cases are one product, whose elements try one thing: cancellation, alignment, subnormal or huge numbers,
// ...
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_PARITY_MATRIX_H
#define KILN_TESTS_PARITY_MATRIX_H

#include "tests/parity/Cases.h"

#include <random>

namespace kiln::parity {

/// Overwrites the inputs of the warp of cases that starts at `first`; nothing for forms other than mma.
void fillMatrix(const Form &form, Cases &cases, std::size_t first, std::mt19937_64 &random);

/// Outputs of the warp at `first`, by the model of sm_90; false if the form is no matrix instruction.
bool matrixOracle(const Form &form, const Columns &in, std::size_t first, Columns &out);

} // namespace kiln::parity

#endif // KILN_TESTS_PARITY_MATRIX_H
