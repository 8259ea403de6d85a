// RUN: kiln-opt %s --kiln-lower-tiles --split-input-file | FileCheck %s

#tile = #tile_gpu.blocked<sizePerThread=[1,16], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#row = #tile_gpu.slice<dim=1, parent=blocked<sizePerThread=[1,16], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>>
#others = #tile_gpu.slice<dim=1, parent=blocked<sizePerThread=[1,16], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[1,0]>>
#elsewhere = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[4,8], warpsPerCTA=[1,4], order=[1,0]>

module attributes {tile_gpu.target = "sm_80"} {
// One row a thread: its lanes are asked once, and the arm is taken by the warps that need it.
// CHECK-LABEL: @rows
// CHECK: %[[LARGE:.*]] = arith.cmpf ogt
// CHECK: %[[ANY:.*]] = nvvm.vote.sync any %{{.*}}, %[[LARGE]] -> i1
// CHECK: scf.if %[[ANY]]
// CHECK-COUNT-16: arith.mulf
  func.func @rows(%r: tensor<32xf32, #row>, %x: tensor<32x64xf32, #tile>) -> tensor<32x64xf32, #tile> attributes {tile_gpu.test} {
    %c = arith.constant dense<1.0> : tensor<32xf32, #row>
    %m = arith.cmpf ogt, %r, %c : tensor<32xf32, #row>
    %some = tile.any_row %m : tensor<32xi1, #row>
    %y = scf.if %some -> (tensor<32x64xf32, #tile>) {
      %z = arith.mulf %x, %x : tensor<32x64xf32, #tile>
      scf.yield %z : tensor<32x64xf32, #tile>
    } else {
      scf.yield %x : tensor<32x64xf32, #tile>
    }
    return %y : tensor<32x64xf32, #tile>
  }

// Each warp has all rows, four a thread: one question for them.
// CHECK-LABEL: @registers
// CHECK-COUNT-3: arith.ori
// CHECK-NOT: arith.ori
// CHECK: nvvm.vote.sync any
// CHECK-NOT: nvvm.vote
  func.func @registers(%r: tensor<32xf32, #others>, %x: tensor<32x64xf32, #elsewhere>) -> tensor<32x64xf32, #elsewhere> attributes {tile_gpu.test} {
    %c = arith.constant dense<1.0> : tensor<32xf32, #others>
    %m = arith.cmpf ogt, %r, %c : tensor<32xf32, #others>
    %some = tile.any_row %m : tensor<32xi1, #others>
    %y = scf.if %some -> (tensor<32x64xf32, #elsewhere>) {
      %z = arith.mulf %x, %x : tensor<32x64xf32, #elsewhere>
      scf.yield %z : tensor<32x64xf32, #elsewhere>
    } else {
      scf.yield %x : tensor<32x64xf32, #elsewhere>
    }
    return %y : tensor<32x64xf32, #elsewhere>
  }

// A warp has rows of the result that others have of the mask: the arm is always taken.
// CHECK-LABEL: @other_rows
// CHECK-NOT: nvvm.vote
// CHECK: %[[TRUE:.*]] = arith.constant true
// CHECK-NOT: nvvm.vote
// CHECK: scf.if %[[TRUE]]
  func.func @other_rows(%r: tensor<32xf32, #row>, %x: tensor<32x64xf32, #elsewhere>) -> tensor<32x64xf32, #elsewhere> attributes {tile_gpu.test} {
    %c = arith.constant dense<1.0> : tensor<32xf32, #row>
    %m = arith.cmpf ogt, %r, %c : tensor<32xf32, #row>
    %some = tile.any_row %m : tensor<32xi1, #row>
    %y = scf.if %some -> (tensor<32x64xf32, #elsewhere>) {
      %z = arith.mulf %x, %x : tensor<32x64xf32, #elsewhere>
      scf.yield %z : tensor<32x64xf32, #elsewhere>
    } else {
      scf.yield %x : tensor<32x64xf32, #elsewhere>
    }
    return %y : tensor<32x64xf32, #elsewhere>
  }

// So it is where the arm touches memory, which warps may share.
// CHECK-LABEL: @effects
// CHECK-NOT: nvvm.vote
// CHECK: %[[TRUE:.*]] = arith.constant true
// CHECK-NOT: nvvm.vote
// CHECK: scf.if %[[TRUE]]
  func.func @effects(%r: tensor<32xf32, #row>, %x: tensor<32x64xf32, #tile>, %p: !tile.ptr<f32>, %f: f32) -> tensor<32x64xf32, #tile> attributes {tile_gpu.test} {
    %c = arith.constant dense<1.0> : tensor<32xf32, #row>
    %m = arith.cmpf ogt, %r, %c : tensor<32xf32, #row>
    %some = tile.any_row %m : tensor<32xi1, #row>
    %y = scf.if %some -> (tensor<32x64xf32, #tile>) {
      tile.store %p, %f : !tile.ptr<f32>
      %z = arith.mulf %x, %x : tensor<32x64xf32, #tile>
      scf.yield %z : tensor<32x64xf32, #tile>
    } else {
      scf.yield %x : tensor<32x64xf32, #tile>
    }
    return %y : tensor<32x64xf32, #tile>
  }

// A scalar belongs to no row.
// CHECK-LABEL: @scalars
// CHECK-NOT: nvvm.vote
// CHECK: %[[TRUE:.*]] = arith.constant true
// CHECK-NOT: nvvm.vote
// CHECK: scf.if %[[TRUE]]
  func.func @scalars(%r: tensor<32xf32, #row>, %x: tensor<32x64xf32, #tile>, %f: f32) -> f32 attributes {tile_gpu.test} {
    %c = arith.constant dense<1.0> : tensor<32xf32, #row>
    %m = arith.cmpf ogt, %r, %c : tensor<32xf32, #row>
    %some = tile.any_row %m : tensor<32xi1, #row>
    %y = scf.if %some -> (f32) {
      %z = arith.mulf %f, %f : f32
      scf.yield %z : f32
    } else {
      scf.yield %f : f32
    }
    return %y : f32
  }

// Nobody knows what an answer outside of a condition is for.
// CHECK-LABEL: @elsewhere
// CHECK-NOT: nvvm.vote
// CHECK: return %{{.*}} : i1
  func.func @elsewhere(%r: tensor<32xf32, #row>, %x: tensor<32x64xf32, #tile>) -> i1 attributes {tile_gpu.test} {
    %c = arith.constant dense<1.0> : tensor<32xf32, #row>
    %m = arith.cmpf ogt, %r, %c : tensor<32xf32, #row>
    %some = tile.any_row %m : tensor<32xi1, #row>
    return %some : i1
  }

// Rows of several columns: a warp asks for all that it has of its rows.
// CHECK-LABEL: @columns
// CHECK-COUNT-15: arith.ori
// CHECK: nvvm.vote.sync any
// CHECK-NOT: nvvm.vote
// CHECK: scf.if
  func.func @columns(%r: tensor<32x64xf32, #tile>, %x: tensor<32x64xf32, #tile>) -> tensor<32x64xf32, #tile> attributes {tile_gpu.test} {
    %m = arith.cmpf uno, %r, %r : tensor<32x64xf32, #tile>
    %some = tile.any_row %m : tensor<32x64xi1, #tile>
    %y = scf.if %some -> (tensor<32x64xf32, #tile>) {
      %z = arith.mulf %x, %x : tensor<32x64xf32, #tile>
      scf.yield %z : tensor<32x64xf32, #tile>
    } else {
      scf.yield %x : tensor<32x64xf32, #tile>
    }
    return %y : tensor<32x64xf32, #tile>
  }

// Columns of its rows are in other warps: the arm is always taken.
// CHECK-LABEL: @other_columns
// CHECK-NOT: nvvm.vote
// CHECK: %[[TRUE:.*]] = arith.constant true
// CHECK: scf.if %[[TRUE]]
  func.func @other_columns(%r: tensor<32x64xf32, #elsewhere>, %x: tensor<32x64xf32, #elsewhere>) -> tensor<32x64xf32, #elsewhere> attributes {tile_gpu.test} {
    %m = arith.cmpf uno, %r, %r : tensor<32x64xf32, #elsewhere>
    %some = tile.any_row %m : tensor<32x64xi1, #elsewhere>
    %y = scf.if %some -> (tensor<32x64xf32, #elsewhere>) {
      %z = arith.mulf %x, %x : tensor<32x64xf32, #elsewhere>
      scf.yield %z : tensor<32x64xf32, #elsewhere>
    } else {
      scf.yield %x : tensor<32x64xf32, #elsewhere>
    }
    return %y : tensor<32x64xf32, #elsewhere>
  }
}

// -----

// What a warp has in flight it waits for by itself.
// CHECK-LABEL: @waits
// CHECK: nvvm.vote.sync any
// CHECK: scf.if
// CHECK-COUNT-2: wgmma.wait_group.sync.aligned 0;
#sums = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#of = #tile_gpu.slice<dim=1, parent=mma<version=3, warpsPerCTA=[4,1], instrN=64>>
#rows = #tile_gpu.tma<swizzle=128>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @waits(%r: tensor<64xf32, #of>, %c: tensor<64x64xf32, #sums>) -> tensor<64x64xf32, #sums> attributes {tile_gpu.test, tile_gpu.shared_bytes = 8192 : i32} {
    %a = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x64xbf16, #rows>
    %m = arith.cmpf uno, %r, %r : tensor<64xf32, #of>
    %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<64x64xf32, #sums>>
    %q = tile_gpu.warpgroup_dot %a, %a, %p : !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<64x64xf32, #sums>>
    %some = tile.any_row %m : tensor<64xi1, #of>
    %y = scf.if %some -> (tensor<64x64xf32, #sums>) {
      %d = tile_gpu.warpgroup_wait %q : tensor<64x64xf32, #sums>
      %z = arith.mulf %d, %d : tensor<64x64xf32, #sums>
      scf.yield %z : tensor<64x64xf32, #sums>
    } else {
      %d = tile_gpu.warpgroup_wait %q : tensor<64x64xf32, #sums>
      scf.yield %d : tensor<64x64xf32, #sums>
    }
    return %y : tensor<64x64xf32, #sums>
  }
}
