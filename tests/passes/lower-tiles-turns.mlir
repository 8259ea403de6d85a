// RUN: kiln-opt %s --kiln-lower-tiles --canonicalize --cse | FileCheck %s
// RUN: kiln-opt %s --kiln-stage-lowering --emit-ptx | FileCheck %s --check-prefix=PTX

// A warpgroup waits for its turn at barrier 1 + its number, where the one before arrives: 256 threads, of both.  The
// last one arrives for the first turn of the first, and what it passes on at the end the first one takes.
// CHECK-LABEL: @three
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK: %[[WARP:.*]] = arith.shrui %[[TID]], %c5_i32
// CHECK: %[[GROUP:.*]] = arith.shrui %[[WARP]], %c2_i32
// CHECK-NEXT: %[[LAST:.*]] = arith.cmpi eq, %[[GROUP]], %c2_i32
// CHECK-NEXT: scf.if %[[LAST]] {
// CHECK-NEXT: nvvm.barrier.arrive id = %c1_i32 number_of_threads = %c256_i32
// CHECK-NEXT: }
// CHECK: scf.for
// CHECK: %[[OWN:.*]] = arith.addi %[[GROUP]], %c1_i32
// CHECK: llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.count"(%[[OWN]], %c256_i32)
// CHECK: %[[OVER:.*]] = arith.cmpi eq, %[[OWN]], %c3_i32
// CHECK: %[[NEXT:.*]] = arith.select %[[OVER]], %c0_i32, %[[OWN]]
// CHECK: %[[ITS:.*]] = arith.addi %[[NEXT]], %c1_i32
// CHECK: nvvm.barrier.arrive id = %[[ITS]] number_of_threads = %c256_i32
// CHECK-NEXT: }
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[GROUP]], %c0_i32
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.count"(%c1_i32, %c256_i32)
// CHECK-NEXT: }
// PTX: .entry three(
// PTX: bar.arrive 1, 256;
// PTX: bar.sync %{{r[0-9]*}}, 256;
// PTX: bar.arrive %{{r[0-9]*}}, 256;
// PTX: bar.sync 1, 256;
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @three(%n: i32) attributes {tile.kernel, tile.num_warps = 12 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    tile_gpu.turns_begin
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile_gpu.turn_take
      tile_gpu.turn_pass
    }
    tile_gpu.turns_end
    return
  }
}
