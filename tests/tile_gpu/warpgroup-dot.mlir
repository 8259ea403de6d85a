// RUN: kiln-opt %s | kiln-opt | FileCheck %s

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#rows = #tile_gpu.tma<swizzle=128>
#columns = #tile_gpu.tma<swizzle=128, order=[0,1]>
#third = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=32>
#half = #tile_gpu.tma<swizzle=64>
#dot = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=3, warpsPerCTA=[4,1], instrN=64>>

// 16-bit operands lie either way.
// CHECK-LABEL: @either_way
// CHECK: tile_gpu.warpgroup_dot %{{.*}}, %{{.*}}, %{{.*}} {fromZero} : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.buffer<64x64xbf16, #tma>, tensor<64x64xf32, #mma>
// CHECK: tile_gpu.warpgroup_dot
func.func @either_way(%c: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #rows>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #columns>
  %0 = tile_gpu.warpgroup_dot %a, %a, %c {fromZero} : !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, tensor<64x64xf32, #acc>
  %1 = tile_gpu.warpgroup_dot %b, %b, %0 : !tile_gpu.buffer<64x64xbf16, #columns>, !tile_gpu.buffer<64x64xbf16, #columns>, tensor<64x64xf32, #acc>
  return %1 : tensor<64x64xf32, #acc>
}

// tf32 with K innermost in both.
// CHECK-LABEL: @tf32
// CHECK: tile_gpu.warpgroup_dot
func.func @tf32(%c: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #rows>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<32x64xf32, #columns>
  %0 = tile_gpu.warpgroup_dot %a, %b, %c : !tile_gpu.buffer<64x32xf32, #rows>, !tile_gpu.buffer<32x64xf32, #columns>, tensor<64x64xf32, #acc>
  return %0 : tensor<64x64xf32, #acc>
}

// Two products in flight on one accumulator: a wait may leave the last.
// CHECK-LABEL: @in_flight
// CHECK: %[[P:.*]] = tile_gpu.warpgroup_begin %{{.*}} : !tile_gpu.pending<tensor<64x64xf32, #mma>>
// CHECK: %[[Q:.*]] = tile_gpu.warpgroup_dot %{{.*}}, %{{.*}}, %[[P]] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.pending<tensor<64x64xf32, #mma>>
// CHECK: %[[R:.*]] = tile_gpu.warpgroup_wait %[[Q]] leave 1 : !tile_gpu.pending<tensor<64x64xf32, #mma>>
// CHECK: tile_gpu.warpgroup_wait %[[R]] : tensor<64x64xf32, #mma>
func.func @in_flight(%c: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #rows>
  %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<64x64xf32, #acc>>
  %q = tile_gpu.warpgroup_dot %a, %a, %p : !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<64x64xf32, #acc>>
  %r = tile_gpu.warpgroup_wait %q leave 1 : !tile_gpu.pending<tensor<64x64xf32, #acc>>
  %d = tile_gpu.warpgroup_wait %r : tensor<64x64xf32, #acc>
  return %d : tensor<64x64xf32, #acc>
}

// The left tile stays in registers; a wait that leaves the other product gives the first one's sums.
// CHECK-LABEL: @from_registers
// CHECK: %[[Q:.*]] = tile_gpu.warpgroup_dot %{{.*}} : tensor<64x64xbf16, #{{.*}}>, !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.pending
// CHECK: %[[R:.*]] = tile_gpu.warpgroup_dot
// CHECK: tile_gpu.warpgroup_wait %[[Q]] keeping %{{.*}} : tensor<64x64xbf16, #{{.*}}> leave 1 : tensor<64x64xf32, #mma>
func.func @from_registers(%x: tensor<64x64xbf16, #dot>, %y: tensor<64x64xbf16, #acc>, %c: tensor<64x64xf32, #acc>) -> (tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #rows>
  %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<64x64xf32, #acc>>
  %q = tile_gpu.warpgroup_dot %x, %a, %p : tensor<64x64xbf16, #dot>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<64x64xf32, #acc>>
  %o = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<64x64xf32, #acc>>
  %r = tile_gpu.warpgroup_dot %y, %a, %o : tensor<64x64xbf16, #acc>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<64x64xf32, #acc>>
  %d = tile_gpu.warpgroup_wait %q keeping %x : tensor<64x64xbf16, #dot> leave 1 : tensor<64x64xf32, #acc>
  %e = tile_gpu.warpgroup_wait %r keeping %y : tensor<64x64xbf16, #acc> : tensor<64x64xf32, #acc>
  return %d, %e : tensor<64x64xf32, #acc>, tensor<64x64xf32, #acc>
}

// Tiles of m * 2^k: instructions read from one of their repetitions.
// CHECK-LABEL: @repetitions
// CHECK: tile_gpu.warpgroup_dot
func.func @repetitions(%c: tensor<64x96xf32, #third>) -> tensor<64x96xf32, #third> {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x96xbf16, #half>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<96x96xbf16, #half>
  %0 = tile_gpu.warpgroup_dot %a, %b, %c : !tile_gpu.buffer<64x96xbf16, #half>, !tile_gpu.buffer<96x96xbf16, #half>, tensor<64x96xf32, #third>
  return %0 : tensor<64x96xf32, #third>
}
