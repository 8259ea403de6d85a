// RUN: kiln-opt %s -split-input-file --kiln-insert-barriers --kiln-verify-barriers | FileCheck %s

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>

// The lane that begins to add comes after the others' stores, and they store again after it has waited.
// CHECK-LABEL: @rounds
// CHECK: scf.for
// CHECK-NEXT: tile_gpu.bulk_wait read
// CHECK-NEXT: tile_gpu.warp_barrier
// CHECK-NEXT: tile_gpu.local_store
// CHECK-NEXT: tile_gpu.warp_barrier
// CHECK-NEXT: tile_gpu.bulk_add
// CHECK-NEXT: }
// CHECK-NEXT: tile_gpu.bulk_wait{{$}}
// CHECK-NEXT: return
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @rounds(%x: tensor<4x512xf32, #runs>, %p: tensor<4x512x!tile.ptr<f32>, #runs>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile_gpu.bulk_wait read
      tile_gpu.local_store %x, %b : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #rows>
      tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
    }
    tile_gpu.bulk_wait
    return
  }
}

// -----

#wide = #tile_gpu.linear<register=[[0,1],[0,2],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,128],[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>

// The thread that copies comes to a barrier after everybody's wait.
// CHECK-LABEL: @counted
// CHECK: scf.for
// CHECK-NEXT: tile_gpu.bulk_wait{{$}}
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.count
// CHECK-NEXT: }
// CHECK: tile_gpu.bulk_add
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @counted(%x: tensor<4x512xf32, #wide>, %a: !tile.ptr<f32>, %o: tensor<4x512xi64, #wide>, %count: !tile.ptr<i32>, %is: i1, %n: i32) attributes {tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #wide>
    %p = tile.addptr %s, %o : tensor<4x512x!tile.ptr<f32>, #wide>, tensor<4x512xi64, #wide>
    scf.for %i = %c0 to %n step %c1 : i32 {
      tile_gpu.bulk_wait
      tile_gpu.elected {
        tile_gpu.count %count if %is for %a : !tile.ptr<i32>, !tile.ptr<f32>
      }
      tile_gpu.bulk_wait read
      tile_gpu.local_store %x, %b : tensor<4x512xf32, #wide>, !tile_gpu.buffer<4x512xf32, #rows>
      tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #wide>
    }
    tile_gpu.bulk_wait
    return
  }
}
