// RUN: kiln-opt %s --kiln-stage-tile=target=sm_80 | FileCheck %s

// A kernel is what the launcher looks for: it is public, and stays.
// CHECK-NOT: private
// CHECK: func.func @k(
func.func private @k(%out: !tile.ptr<i32>) attributes {tile.kernel} {
  %c = arith.constant 7 : i32
  tile.store %out, %c : !tile.ptr<i32>
  return
}
