// RUN: kiln-opt %s --kiln-lower-pipelines -split-input-file -verify-diagnostics

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.tma<swizzle=128>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x64xbf16, #sh>>
func.func @copy_by_threads(%v: !tile.view<64x64xbf16>, %i: i32) attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  %p = tile_gpu.pipeline bulk : !p2
  %a, %b = tile_gpu.acquire %p : !p2
  // expected-error @+1 {{takes an acquired slot of a `bulk` pipeline: only tile_gpu.tensor_copy fills those}}
  tile_gpu.async_copy_view %v[%i, %i], %b by #row : !tile.view<64x64xbf16>, i32, !tile_gpu.buffer<64x64xbf16, #sh>
  %c = tile_gpu.commit %a : !p2
  tile_gpu.drain %c : !p2
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.tma<swizzle=128>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x64xbf16, #sh>>
func.func @store_by_threads(%x: tensor<64x64xbf16, #row>) attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  %p = tile_gpu.pipeline bulk : !p2
  %a, %b = tile_gpu.acquire %p : !p2
  // expected-error @+1 {{takes an acquired slot of a `bulk` pipeline: only tile_gpu.tensor_copy fills those}}
  tile_gpu.local_store %x, %b : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #sh>
  %c = tile_gpu.commit %a : !p2
  tile_gpu.drain %c : !p2
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x64xbf16, #sh>>
func.func @not_bulk(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  %p = tile_gpu.pipeline : !p2
  %a, %b = tile_gpu.acquire %p : !p2
  // expected-error @+1 {{copies into a slot of a pipeline that is not `bulk`}}
  tile_gpu.tensor_copy %map[%n, %n] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  %c = tile_gpu.commit %a : !p2
  tile_gpu.drain %c : !p2
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x64xbf16, #sh>>
func.func @counts_elsewhere(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  %full = tile_gpu.local_alloc : !tile_gpu.mbarriers<2>
  %p = tile_gpu.pipeline bulk : !p2
  %a, %b = tile_gpu.acquire %p : !p2
  tile_gpu.elected {
    // expected-error @+1 {{counts to an mbarrier of its own, not to that of its slot}}
    tile_gpu.tensor_copy %map[%n, %n] to %b dims [1, 0] counts %full[%n] : !tile_gpu.buffer<64x64xbf16, #sh>, !tile_gpu.mbarriers<2>
  }
  %c = tile_gpu.commit %a : !p2
  tile_gpu.drain %c : !p2
  return
}

// -----

// As of any pipeline: which slot is free is known here.
#sh = #tile_gpu.tma<swizzle=128>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x64xbf16, #sh>>
func.func @full() attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  %p = tile_gpu.pipeline bulk holding 1 : !p2
  %a, %b = tile_gpu.acquire %p : !p2
  %c = tile_gpu.commit %a : !p2
  // expected-error @+1 {{finds no free slot: of 2, 0 acquired, 1 committed, 1 waited for}}
  %d, %e = tile_gpu.acquire %c : !p2
  tile_gpu.drain %d : !p2
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x64xbf16, #sh>>
func.func @acquired() attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  %p = tile_gpu.pipeline bulk : !p2
  %a, %b = tile_gpu.acquire %p : !p2
  // expected-error @+1 {{ends a pipeline of which a slot was acquired and not committed}}
  tile_gpu.drain %a : !p2
  return
}

// -----

// A state of a bulk pipeline is no other's, though their types are the same.
#sh = #tile_gpu.tma<swizzle=128>
!p2 = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x64xbf16, #sh>>
func.func @mixed(%k: i1) attributes {tile_gpu.test, tile.num_warps = 4 : i32} {
  %p = tile_gpu.pipeline bulk : !p2
  %q = tile_gpu.pipeline : !p2
  %r, %s = scf.if %k -> (!p2, !p2) {
    scf.yield %p, %q : !p2, !p2
  } else {
    // expected-error @+1 {{this side of a conditional ends with a pipeline in another state than the other side: another pipeline}}
    scf.yield %q, %p : !p2, !p2
  }
  tile_gpu.drain %r : !p2
  tile_gpu.drain %s : !p2
  return
}
