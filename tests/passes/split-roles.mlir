// RUN: kiln-opt %s --kiln-split-roles | FileCheck %s

#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[8,1], order=[1,0]>
#plain = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
#flag = #tile_gpu.blocked<sizePerThread=[8], threadsPerWarp=[32], warpsPerCTA=[8], order=[0]>

module attributes {tile_gpu.target = "sm_90a"} {

// The loop of the warps that copy carries what they need, and not the tiles; conditionals and values computed before come
// along.  The others keep everything but what one thread does alone.
// CHECK-LABEL: @ring
// CHECK: tile_gpu.roles copies registers 24 {
// CHECK: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_init
// CHECK: tile_gpu.barrier
// CHECK: %[[FOR:.*]]:2 = scf.for %{{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}) -> (i32, i32)
// CHECK: %[[EVEN:.*]] = arith.cmpi eq
// CHECK-NEXT: scf.if %[[EVEN]] {
// CHECK: tile_gpu.elected {
// CHECK: tile_gpu.tensor_copy
// CHECK-NOT: local_load
// CHECK: scf.yield %{{.*}}, %{{.*}} : i32, i32
// CHECK: tile_gpu.barrier
// CHECK-NOT: local_store
// CHECK: } computes registers 240 {
// CHECK-NOT: tile_gpu.elected
// CHECK: tile_gpu.barrier
// CHECK: scf.for {{.*}} -> (i32, i32, tensor<64x64xbf16
// CHECK: tile_gpu.mbarrier_wait
// CHECK: tile_gpu.local_load
// CHECK: tile_gpu.mbarrier_arrive
// CHECK: tile_gpu.barrier
// CHECK: tile_gpu.local_store
// CHECK: return
func.func @ring(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %v0 = arith.constant dense<0.0> : tensor<64x64xbf16, #row>
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<2>
  %o = tile_gpu.local_alloc {offset = 32768 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
  tile_gpu.elected {
    tile_gpu.mbarrier_init %full arrivals 1 : !tile_gpu.mbarriers<2>
  }
  tile_gpu.barrier
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0, %p = %c0, %v = %v0) -> (i32, i32, tensor<64x64xbf16, #row>) : i32 {
    %as = tile_gpu.local_subview %a[%s] : !tile_gpu.buffer<[2] x 64x64xbf16, #tma>
    %even = arith.cmpi eq, %s, %c0 : i32
    scf.if %even {
      tile_gpu.elected {
        tile_gpu.tensor_copy %map[%c0, %i] to %as dims [1, 0] counts %full[%s] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<2>
        tile_gpu.mbarrier_arrive %full[%s] phase %p : !tile_gpu.mbarriers<2>
      }
    }
    tile_gpu.mbarrier_wait %full[%s] phase %p ready %as : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #tma>
    %l = tile_gpu.local_load %as : !tile_gpu.buffer<64x64xbf16, #tma> to tensor<64x64xbf16, #row>
    tile_gpu.mbarrier_arrive %full[%s] phase %p : !tile_gpu.mbarriers<2>
    %sum = arith.addf %v, %l : tensor<64x64xbf16, #row>
    %s1 = arith.addi %s, %c1 : i32
    %s2 = arith.cmpi eq, %s1, %c2 : i32
    %s3 = arith.select %s2, %c0, %s1 : i32
    %s4 = arith.extui %s2 : i1 to i32
    %p1 = arith.xori %p, %s4 : i32
    scf.yield %s3, %p1, %sum : i32, i32, tensor<64x64xbf16, #row>
  }
  tile_gpu.barrier
  tile_gpu.local_store %r#2, %o : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #tma>
  return
}

// No warps that copy: as it is.
// CHECK-LABEL: @one
// CHECK-NEXT: tile_gpu.barrier
func.func @one() attributes {tile.kernel, tile.num_warps = 8 : i32} {
  tile_gpu.barrier
  return
}

// One warp has no registers to give away.
// CHECK-LABEL: @warp
// CHECK-NEXT: tile_gpu.roles copies {
func.func @warp() attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 1 : i32} {
  tile_gpu.barrier
  return
}

// Its author has said how many registers there are.
// CHECK-LABEL: @limited
// CHECK: tile_gpu.roles copies {
func.func @limited() attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32, tile.max_registers = 128 : i32} {
  tile_gpu.barrier
  return
}

// Three warpgroups that compute.
// CHECK-LABEL: @three
// CHECK-NEXT: tile_gpu.roles copies registers 32 {
// CHECK: computes registers 160 {
func.func @three() attributes {tile.kernel, tile.num_warps = 12 : i32, tile.copy_warps = 4 : i32} {
  tile_gpu.barrier
  return
}

// Both are delayed where they come by, and nobody comes by more for it.
// CHECK-LABEL: @delays
// CHECK: tile_gpu.roles copies
// CHECK: tile_gpu.delay 0
// CHECK-NOT: tile_gpu.delay
// CHECK: } computes
// CHECK: tile_gpu.delay 0
// CHECK: tile_gpu.delay 1
func.func @delays() attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32} {
  %v = arith.constant dense<true> : tensor<256xi1, #flag>
  tile_gpu.delay 0 seed 1
  tile_gpu.barrier
  %any = tile.any_row %v : tensor<256xi1, #flag>
  scf.if %any {
    tile_gpu.delay 1 seed 1
  }
  return
}
// A number that all read between two barriers of the block: warps that copy read it too; what wrote it stays with the
// others.
// CHECK-LABEL: @number
// CHECK: tile_gpu.roles
// CHECK: tile_gpu.barrier
// CHECK-NEXT: %[[N:.*]] = tile_gpu.local_scalar
// CHECK-NEXT: tile_gpu.barrier
// CHECK: tile_gpu.elected {
// CHECK: tile_gpu.tensor_copy %{{.*}}[%{{.*}}, %[[N]]]
// CHECK: } computes
// CHECK: tile_gpu.local_store
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: tile_gpu.local_scalar
// CHECK-NEXT: tile_gpu.barrier
// CHECK: return
func.func @number(%x: !tile.ptr<bf16>, %rows: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
    attributes {tile.kernel, tile.num_warps = 8 : i32, tile.copy_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %one = arith.constant dense<1> : tensor<1xi32, #flag>
  %full = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.mbarriers<1>
  %b = tile_gpu.local_alloc {offset = 16 : i32} : !tile_gpu.buffer<1xi32, #plain>
  %a = tile_gpu.local_alloc {offset = 1024 : i32} : !tile_gpu.buffer<64x64xbf16, #tma>
  tile_gpu.local_store %one, %b : tensor<1xi32, #flag>, !tile_gpu.buffer<1xi32, #plain>
  tile_gpu.barrier
  %n = tile_gpu.local_scalar %b : !tile_gpu.buffer<1xi32, #plain> to i32
  tile_gpu.barrier
  tile_gpu.elected {
    tile_gpu.tensor_copy %map[%c0, %n] to %a dims [1, 0] counts %full[%c0] : !tile_gpu.buffer<64x64xbf16, #tma>, !tile_gpu.mbarriers<1>
  }
  return
}

}
