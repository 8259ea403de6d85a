// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --canonicalize --cse | FileCheck %s

// Output, checks and facts stay, although nothing uses them.
// CHECK-LABEL: func.func @checks
func.func @checks(%c: i1, %m: tensor<8xi1>, %x: tensor<8xf32>, %n: i32, %j: tensor<8xi64>) {
  // CHECK: tile.assume %{{.*}}
  tile.assume %c
  // CHECK: tile.multiple_of %{{.*}}, 16 : i32
  %k = tile.multiple_of %n, 16 : i32
  // CHECK: tile.max_contiguous %{{.*}}, 4 {axis = 0 : i32} : tensor<8xi64>
  %i = tile.max_contiguous %j, 4 {axis = 0 : i32} : tensor<8xi64>
  // CHECK: tile.multiple_of %{{.*}}, 4 : tensor<8xi64>
  %h = tile.multiple_of %i, 4 : tensor<8xi64>
  tile.print "facts" %h, %k : tensor<8xi64>, i32
  // CHECK: tile.assert %{{.*}}, "index out of range" : tensor<8xi1>
  tile.assert %m, "index out of range" : tensor<8xi1>
  // CHECK: tile.print "x = " %{{.*}}, %{{.*}} : tensor<8xf32>, i32
  tile.print "x = " %x, %n : tensor<8xf32>, i32
  // CHECK: tile.print "part" %{{.*}} : tensor<8xf32> {tile.slice = array<i64: 2, 5>}
  tile.print "part" %x : tensor<8xf32> {tile.slice = array<i64: 2, 5>}
  // CHECK: tile.print "here"
  tile.print "here"
  return
}
