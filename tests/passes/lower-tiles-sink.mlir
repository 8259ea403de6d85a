// RUN: kiln-opt %s --kiln-lower-tiles | FileCheck %s

// Reads of shared memory stand before their first use, not where the tile was read; what a barrier keeps apart stays
// apart.
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[1,1], instrN=16>
#x = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[1,1], instrN=16>>
#y = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[1,1], instrN=16>>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
module attributes {tile_gpu.target = "sm_80"} {
  // CHECK-LABEL: @steps
  // CHECK: nvvm.ldmatrix
  // CHECK: nvvm.ldmatrix
  // CHECK-NOT: nvvm.ldmatrix
  // CHECK: nvvm.mma.sync
  // CHECK: nvvm.ldmatrix
  // CHECK: nvvm.mma.sync
  func.func @steps() attributes {tile.kernel, tile.num_warps = 1 : i32, tile_gpu.shared_bytes = 3072 : i32} {
    %zero = arith.constant dense<0.0> : tensor<16x8xf32, #mma>
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<16x32xf16, #sh>
    %b = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<32x8xf16, #tile_gpu.swizzled<vec=8, perPhase=8, maxPhase=1>>
    %x = tile_gpu.local_load %a : !tile_gpu.buffer<16x32xf16, #sh> to tensor<16x32xf16, #x>
    %y = tile_gpu.local_load %b : !tile_gpu.buffer<32x8xf16, #tile_gpu.swizzled<vec=8, perPhase=8, maxPhase=1>> to tensor<32x8xf16, #y>
    %d = tile.dot %x, %y, %zero : tensor<16x32xf16, #x>, tensor<32x8xf16, #y> to tensor<16x8xf32, #mma>
    tile.print "d" %d : tensor<16x8xf32, #mma>
    return
  }

  // CHECK-LABEL: @barrier
  // CHECK: nvvm.ldmatrix
  // CHECK: nvvm.ldmatrix
  // CHECK: nvvm.barrier0
  // CHECK-NOT: nvvm.ldmatrix
  // CHECK: nvvm.mma.sync
  func.func @barrier() attributes {tile.kernel, tile.num_warps = 1 : i32, tile_gpu.shared_bytes = 3072 : i32} {
    %zero = arith.constant dense<0.0> : tensor<16x8xf32, #mma>
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<16x32xf16, #sh>
    %b = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<32x8xf16, #tile_gpu.swizzled<vec=8, perPhase=8, maxPhase=1>>
    %x = tile_gpu.local_load %a : !tile_gpu.buffer<16x32xf16, #sh> to tensor<16x32xf16, #x>
    %y = tile_gpu.local_load %b : !tile_gpu.buffer<32x8xf16, #tile_gpu.swizzled<vec=8, perPhase=8, maxPhase=1>> to tensor<32x8xf16, #y>
    tile_gpu.barrier
    %d = tile.dot %x, %y, %zero : tensor<16x32xf16, #x>, tensor<32x8xf16, #y> to tensor<16x8xf32, #mma>
    tile.print "d" %d : tensor<16x8xf32, #mma>
    return
  }

  // Of tiles that are read whole the second half of K is used: what the first half needs is not read.
  // CHECK-LABEL: @half
  // CHECK: nvvm.ldmatrix {{.*}}num = 4
  // CHECK-NOT: nvvm.ldmatrix
  // CHECK: nvvm.barrier0
  // CHECK: nvvm.ldmatrix {{.*}}num = 4
  // CHECK-NOT: nvvm.ldmatrix
  // CHECK: nvvm.mma.sync
  // CHECK-NOT: nvvm.mma.sync
  // CHECK: return
  func.func @half() attributes {tile.kernel, tile.num_warps = 1 : i32, tile_gpu.shared_bytes = 3072 : i32} {
    %zero = arith.constant dense<0.0> : tensor<16x8xf32, #mma>
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<16x32xf16, #sh>
    %b = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<32x8xf16, #tile_gpu.swizzled<vec=8, perPhase=8, maxPhase=1>>
    %x = tile_gpu.local_load %a : !tile_gpu.buffer<16x32xf16, #sh> to tensor<16x32xf16, #x>
    %u = tile_gpu.part %x [1 of 2] along 1 : tensor<16x32xf16, #x> to tensor<16x16xf16, #x>
    tile_gpu.barrier
    %y = tile_gpu.local_load %b : !tile_gpu.buffer<32x8xf16, #tile_gpu.swizzled<vec=8, perPhase=8, maxPhase=1>> to tensor<32x8xf16, #y>
    %v = tile_gpu.part %y [1 of 2] along 0 : tensor<32x8xf16, #y> to tensor<16x8xf16, #y>
    %d = tile.dot %u, %v, %zero : tensor<16x16xf16, #x>, tensor<16x8xf16, #y> to tensor<16x8xf32, #mma>
    tile.print "d" %d : tensor<16x8xf32, #mma>
    return
  }
}
