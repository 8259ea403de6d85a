// RUN: kiln-opt %s --kiln-lower-tiles --canonicalize --cse | FileCheck %s

#sums = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=32>
#rows = #tile_gpu.tma<swizzle=64>
#left = #tile_gpu.dot<op=0, kWidth=4, parent=mma<version=3, warpsPerCTA=[4,1], instrN=32>>
#columns = #tile_gpu.tma<swizzle=32, order=[0,1]>

module attributes {tile_gpu.target = "sm_90a"} {

// The left operand of the next round's product is carried in words, which are put together where its numbers are
// computed.
// CHECK-LABEL: @operand
// CHECK: scf.for {{.*}} -> (f32, {{.*}}, i32, i32, i32, i32, i32, i32, i32, i32)
// CHECK: wgmma.mma_async
// CHECK: arith.truncf
// CHECK-NEXT: arith.truncf
// CHECK-NOT: arith.truncf
// CHECK: %[[W:.*]] = llvm.inline_asm {{.*}} "", "=r,0" %{{.*}} : (i32) -> i32
// CHECK: arith.truncf
// CHECK: scf.yield {{.*}} %[[W]],
  func.func @operand(%p: tensor<64x32xbf16, #sums>, %c: tensor<64x32xf32, #sums>, %n: i32) -> tensor<64x32xf32, #sums> attributes {tile_gpu.test, tile_gpu.shared_bytes = 2048 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<32x32xbf16, #rows>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c, %x = %p) -> (tensor<64x32xf32, #sums>, tensor<64x32xbf16, #sums>) : i32 {
      %d = tile_gpu.warpgroup_dot %x, %a, %s : tensor<64x32xbf16, #sums>, !tile_gpu.buffer<32x32xbf16, #rows>, tensor<64x32xf32, #sums>
      %y = arith.truncf %d : tensor<64x32xf32, #sums> to tensor<64x32xbf16, #sums>
      scf.yield %d, %y : tensor<64x32xf32, #sums>, tensor<64x32xbf16, #sums>
    }
    return %r#0 : tensor<64x32xf32, #sums>
  }

// Four of 8 bits.
// CHECK-LABEL: @eighths
// CHECK: scf.for {{.*}} -> (f32, {{.*}}, i32, i32, i32, i32)
// CHECK: wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e5m2
// CHECK: scf.yield
  func.func @eighths(%p: tensor<64x32xf8E4M3FN, #left>, %c: tensor<64x32xf32, #sums>, %n: i32) -> tensor<64x32xf32, #sums> attributes {tile_gpu.test, tile_gpu.shared_bytes = 1024 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<32x32xf8E5M2, #columns>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c, %x = %p) -> (tensor<64x32xf32, #sums>, tensor<64x32xf8E4M3FN, #left>) : i32 {
      %d = tile_gpu.warpgroup_dot %x, %a, %s : tensor<64x32xf8E4M3FN, #left>, !tile_gpu.buffer<32x32xf8E5M2, #columns>, tensor<64x32xf32, #sums>
      %z = tile_gpu.convert_layout %d : tensor<64x32xf32, #sums> to tensor<64x32xf32, #left>
      %y = arith.truncf %z : tensor<64x32xf32, #left> to tensor<64x32xf8E4M3FN, #left>
      scf.yield %d, %y : tensor<64x32xf32, #sums>, tensor<64x32xf8E4M3FN, #left>
    }
    return %r#0 : tensor<64x32xf32, #sums>
  }

// A round looks at each number: they stay apart.
// CHECK-LABEL: @numbers
// CHECK: scf.for
// CHECK-NOT: llvm.inline_asm {{.*}} "", "=r,0"
// CHECK: scf.yield
  func.func @numbers(%p: tensor<64x32xbf16, #sums>, %n: i32) -> tensor<64x32xbf16, #sums> attributes {tile_gpu.test} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %p) -> (tensor<64x32xbf16, #sums>) : i32 {
      %y = arith.addf %x, %x : tensor<64x32xbf16, #sums>
      scf.yield %y : tensor<64x32xbf16, #sums>
    }
    return %r : tensor<64x32xbf16, #sums>
  }
}
