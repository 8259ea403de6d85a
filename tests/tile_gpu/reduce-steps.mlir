// RUN: kiln-opt %s | kiln-opt | FileCheck %s

#v = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#p = #tile_gpu.linear<lane=[[0],[0],[0],[0],[0]], warp=[[1],[2]], shape=[4]>
#q = #tile_gpu.linear<register=[[1],[2]], lane=[[0],[0],[0],[0],[0]], warp=[[0],[0]], shape=[4]>
#sh = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>

// CHECK-LABEL: @steps
// CHECK: tile_gpu.reduce_partial(%{{.*}}) {axis = 0 : i32} : tensor<512xf32, #blocked> to tensor<4xf32, #[[P:linear[0-9]*]]> {
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
// CHECK: tile_gpu.yield %{{.*}} : f32
// CHECK: %{{.*}}:2 = tile_gpu.scan_partial(%{{.*}}) {axis = 0 : i32, reverse} : tensor<512xf32, #blocked> to tensor<512xf32, #blocked>, tensor<4xf32, #[[P]]> {
// CHECK: tile_gpu.scan_apply(%{{.*}}#0, %{{.*}}) {axis = 0 : i32, reverse} : tensor<512xf32, #blocked>, tensor<4xf32, #{{.*}}> to tensor<512xf32, #blocked> {
// CHECK: tile_gpu.scan_before(%{{.*}}) {reverse} : tensor<4xf32, #{{.*}}> to tensor<4xf32, #{{.*}}> {
// CHECK: tile_gpu.scan_apply(%{{.*}}#0, %{{.*}}#1) {axis = 0 : i32, before} :
func.func @steps(%x: tensor<512xf32, #v>, %t: tensor<4xf32, #q>) {
  %r = tile_gpu.reduce_partial(%x) {axis = 0 : i32} : tensor<512xf32, #v> to tensor<4xf32, #p> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile_gpu.yield %c : f32
  }
  %s:2 = tile_gpu.scan_partial(%x) {axis = 0 : i32, reverse} : tensor<512xf32, #v> to tensor<512xf32, #v>, tensor<4xf32, #p> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile_gpu.yield %c : f32
  }
  %u = tile_gpu.scan_apply(%s#0, %t) {axis = 0 : i32, reverse} : tensor<512xf32, #v>, tensor<4xf32, #q> to tensor<512xf32, #v> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile_gpu.yield %c : f32
  }
  %before = tile_gpu.scan_before(%t) {reverse} : tensor<4xf32, #q> to tensor<4xf32, #q> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile_gpu.yield %c : f32
  }
  %w = tile_gpu.scan_apply(%s#0, %s#1) {axis = 0 : i32, before} : tensor<512xf32, #v>, tensor<4xf32, #p> to tensor<512xf32, #v> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile_gpu.yield %c : f32
  }
  return
}

// CHECK-LABEL: @gather
// CHECK: tile_gpu.gather_shared %{{.*}}[%{{.*}}] {axis = 0 : i32} : <512xf32, #swizzled>, tensor<128xi32, #blocked> to tensor<128xf32, #blocked>
func.func @gather(%i: tensor<128xi32, #v>) {
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<512xf32, #sh>
  %g = tile_gpu.gather_shared %b[%i] {axis = 0 : i32} : !tile_gpu.buffer<512xf32, #sh>, tensor<128xi32, #v> to tensor<128xf32, #v>
  return
}
