//===- MatrixForms.h - PTX forms of the table of matrix units -----------------===//
//
// What compiler/target/MatrixUnits.def lists, as rows of the instruction table write it.  Elements that Kiln has no
// type for (f64, 4 bits, single bits) have rows of their own next to the handlers.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_MATRIX_MATRIXFORMS_H
#define KILN_RUNTIME_DEVICE_EMULATOR_MATRIX_MATRIXFORMS_H

#include "compiler/target/MatrixUnits.h"

#include <span>
#include <string>

namespace kiln::emulator {

/// One instruction: all its N, all its types.
struct MatrixForm {
  std::string modifiers; ///< "sync aligned m16n8k8 row col"
  std::string types;     ///< "f32.f16.f16.f32"
  unsigned minSm = 0;    ///< the first architecture that has it
  bool archSpecific = false;
};

std::span<const MatrixForm> matrixForms(MatrixUnit unit);

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_MATRIX_MATRIXFORMS_H
