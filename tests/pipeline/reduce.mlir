// REQUIRES: mlir-tools
// RUN: kiln-reduce %s --reduction-tree="traversal-mode=0 test=%S/Inputs/has-load.sh" | FileCheck %s

// What does not matter to the test goes.
// CHECK-NOT: @other
// CHECK: func.func @k
// CHECK: tile.load
// CHECK-NOT: @other
func.func @other(%x: i32) -> i32 {
  %y = arith.addi %x, %x : i32
  return %y : i32
}
func.func @k(%x: !tile.ptr<f32>) attributes {tile.kernel} {
  %v = tile.load %x : !tile.ptr<f32>
  tile.store %x, %v : !tile.ptr<f32>
  return
}
func.func @other2() {
  return
}
