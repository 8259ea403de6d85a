// RUN: not kiln-opt %s 2>&1 | FileCheck %s --implicit-check-not="see current operation"
// RUN: not kiln-opt %s --mlir-print-op-on-diagnostic 2>&1 | FileCheck %s --check-prefixes=CHECK,OPERATION

// An error is one line with its place; the operation, which may be the whole module, is printed if it is asked for.
// CHECK: quiet-diagnostics-invalid.mlir:[[# @LINE + 3]]:8: error: {{.*}}its region does not end with tile.yield
// OPERATION: note: see current operation:
func.func @reduce(%x: tensor<64xf32>) {
  %m = tile.reduce(%x) {axis = 0 : i32} : tensor<64xf32> to f32 {
  ^bb0(%p: f32, %q: f32):
    %y = arith.maximumf %p, %q : f32
  }
  return
}
