// RUN: kiln-opt %s --kiln-optimize-layouts | FileCheck %s

// What each warp needs whole, and one number of each thread makes: with a barrier of all warps it is exchanged, and
// between products of warpgroups that could take turns each warp makes all of it.

#row = #tile_gpu.blocked<sizePerThread=[1,1], threadsPerWarp=[1,32], warpsPerCTA=[2,4], order=[1,0]>
#a = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[2,16], warpsPerCTA=[8,1], order=[1,0]>
#b = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[16,2], warpsPerCTA=[1,8], order=[0,1]>
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[8,1], instrN=128>

// CHECK-DAG: #[[ROW:.*]] = #tile_gpu.blocked<sizePerThread=[1,1], threadsPerWarp=[1,32], warpsPerCTA=[2,4], order=[1,0]>
// CHECK-DAG: #[[EVERY:.*]] = #tile_gpu.blocked<sizePerThread=[1,1], threadsPerWarp=[1,32], warpsPerCTA=[8,1], order=[1,0]>

module attributes {tile_gpu.target = "sm_90a"} {

// CHECK-LABEL: @turns
// CHECK: scf.for
// CHECK: %[[L:.*]] = tile.load {{.*}}#[[EVERY]]>
// CHECK: convert_layout %[[L]] : tensor<1x128xi32, #[[EVERY]]> to tensor<1x128xi32, #mma>
func.func @turns(%p: !tile.ptr<i32>, %q: tensor<128x128xf16, #a>, %k: tensor<128x128xf16, #b>, %length: i64, %n: i32) -> tensor<128x128xf32, #mma> attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
  %none = arith.constant dense<0> : tensor<128x128xi32, #mma>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x128xf32, #mma>) : i32 {
    %s = tile.dot %q, %k, %zero : tensor<128x128xf16, #a>, tensor<128x128xf16, #b> to tensor<128x128xf32, #mma>
    %j = tile.range 0 to 128 : tensor<128xi32, #tile_gpu.slice<dim=0, parent=blocked<sizePerThread=[1,1], threadsPerWarp=[1,32], warpsPerCTA=[2,4], order=[1,0]>>>
    %columns = tile.expand_dims %j {axis = 0 : i32} : tensor<128xi32, #tile_gpu.slice<dim=0, parent=blocked<sizePerThread=[1,1], threadsPerWarp=[1,32], warpsPerCTA=[2,4], order=[1,0]>>> to tensor<1x128xi32, #row>
    %wide = arith.extsi %columns : tensor<1x128xi32, #row> to tensor<1x128xi64, #row>
    %end = tile.splat %length : i64 to tensor<1x128xi64, #row>
    %inside = arith.cmpi slt, %wide, %end : tensor<1x128xi64, #row>
    %base = tile.splat %p : !tile.ptr<i32> to tensor<1x128x!tile.ptr<i32>, #row>
    %at = tile.addptr %base, %wide : tensor<1x128x!tile.ptr<i32>, #row>, tensor<1x128xi64, #row>
    %d = tile.load %at mask %inside : tensor<1x128x!tile.ptr<i32>, #row>
    %m = tile_gpu.convert_layout %d : tensor<1x128xi32, #row> to tensor<1x128xi32, #mma>
    %all = tile.broadcast %m : tensor<1x128xi32, #mma> to tensor<128x128xi32, #mma>
    %sees = arith.cmpi ne, %all, %none : tensor<128x128xi32, #mma>
    %z = arith.select %sees, %s, %zero : tensor<128x128xi1, #mma>, tensor<128x128xf32, #mma>
    %t = tile.dot %q, %k, %sum : tensor<128x128xf16, #a>, tensor<128x128xf16, #b> to tensor<128x128xf32, #mma>
    %next = arith.addf %t, %z : tensor<128x128xf32, #mma>
    scf.yield %next : tensor<128x128xf32, #mma>
  }
  return %r : tensor<128x128xf32, #mma>
}

// One product a round: nobody takes turns.
// CHECK-LABEL: @one_product
// CHECK: scf.for
// CHECK: %[[L:.*]] = tile.load {{.*}}#[[ROW]]>
// CHECK: convert_layout %[[L]] : tensor<1x128xi32, #[[ROW]]> to tensor<1x128xi32, #mma>
// CHECK: return
func.func @one_product(%p: !tile.ptr<i32>, %q: tensor<128x128xf16, #a>, %k: tensor<128x128xf16, #b>, %length: i64, %n: i32) -> tensor<128x128xf32, #mma> attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
  %none = arith.constant dense<0> : tensor<128x128xi32, #mma>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x128xf32, #mma>) : i32 {
    %j = tile.range 0 to 128 : tensor<128xi32, #tile_gpu.slice<dim=0, parent=blocked<sizePerThread=[1,1], threadsPerWarp=[1,32], warpsPerCTA=[2,4], order=[1,0]>>>
    %columns = tile.expand_dims %j {axis = 0 : i32} : tensor<128xi32, #tile_gpu.slice<dim=0, parent=blocked<sizePerThread=[1,1], threadsPerWarp=[1,32], warpsPerCTA=[2,4], order=[1,0]>>> to tensor<1x128xi32, #row>
    %wide = arith.extsi %columns : tensor<1x128xi32, #row> to tensor<1x128xi64, #row>
    %end = tile.splat %length : i64 to tensor<1x128xi64, #row>
    %inside = arith.cmpi slt, %wide, %end : tensor<1x128xi64, #row>
    %base = tile.splat %p : !tile.ptr<i32> to tensor<1x128x!tile.ptr<i32>, #row>
    %at = tile.addptr %base, %wide : tensor<1x128x!tile.ptr<i32>, #row>, tensor<1x128xi64, #row>
    %d = tile.load %at mask %inside : tensor<1x128x!tile.ptr<i32>, #row>
    %m = tile_gpu.convert_layout %d : tensor<1x128xi32, #row> to tensor<1x128xi32, #mma>
    %all = tile.broadcast %m : tensor<1x128xi32, #mma> to tensor<128x128xi32, #mma>
    %sees = arith.cmpi ne, %all, %none : tensor<128x128xi32, #mma>
    %z = arith.select %sees, %sum, %zero : tensor<128x128xi1, #mma>, tensor<128x128xf32, #mma>
    %t = tile.dot %q, %k, %z : tensor<128x128xf16, #a>, tensor<128x128xf16, #b> to tensor<128x128xf32, #mma>
    scf.yield %t : tensor<128x128xf32, #mma>
  }
  return %r : tensor<128x128xf32, #mma>
}

}
