// RUN: split-file %s %t
// RUN: not kiln-opt %t/index.mlir 2>&1 | FileCheck %s --check-prefix=INDEX
// RUN: not kiln-opt %t/index.mlir --emit-ptx 2>&1 | FileCheck %s --check-prefix=INDEX
// RUN: not kiln-opt - < %t/index.mlir 2>&1 | FileCheck %s --check-prefix=STDIN

// Text that ends MLIR's parser by a signal is refused before it is parsed, from a file and from standard input.
// INDEX: index.mlir:2:17: error: an array attribute's elements must be integers or floating-point numbers (write
// STDIN: <stdin>:2:17: error: an array attribute's elements

//--- index.mlir
// Its width is asked for, and index has none.
#widths = array<index: 1>
