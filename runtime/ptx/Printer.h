//===- Printer.h - Ast to PTX text ----------------------------------------===//
//
// parse(print(m)) gives a module equal to m but for lines, and but for what no node keeps (debug sections, pragmas
// without effect).  Numbers are printed by their bits, so nothing is lost in decimal.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_PTX_PRINTER_H
#define KILN_RUNTIME_PTX_PRINTER_H

#include "runtime/ptx/Ast.h"

#include <string>

namespace kiln::ptx {

std::string print(const Module &m);

/// One operand or instruction as a line of a message shows it, without the ';'.
std::string print(const Operand &o);
std::string print(const Instruction &i);

} // namespace kiln::ptx

#endif // KILN_RUNTIME_PTX_PRINTER_H
