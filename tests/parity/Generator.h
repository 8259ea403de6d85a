//===- Generator.h - A form's kernel, and running it on any Device --------===//
#ifndef KILN_TESTS_PARITY_GENERATOR_H
#define KILN_TESTS_PARITY_GENERATOR_H

#include "kiln/Device.h"
#include "tests/parity/Cases.h"

namespace kiln::parity {

/// PTX text with one entry, "parity": a thread a case, 128 threads a block, one array an operand.
std::string kernelText(const Form &form);

/// What results stored for these cases depend on: the PTX and the inputs.
std::uint64_t recipeHash(const Form &form, const Cases &cases);

/// Outputs of all cases.  A failure says whether the module was refused ("load: ...") or did not run ("run: ...").
Result<Columns> runForm(Device &device, const Form &form, const Cases &cases);

} // namespace kiln::parity

#endif // KILN_TESTS_PARITY_GENERATOR_H
