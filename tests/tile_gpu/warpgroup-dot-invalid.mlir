// RUN: kiln-opt %s --split-input-file --verify-diagnostics

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#rows = #tile_gpu.tma<swizzle=128>
#warp = #tile_gpu.mma<version=2, warpsPerCTA=[4,1]>
func.func @layout(%c: tensor<64x64xf32, #warp>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xf16, #rows>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xf16, #rows>
  // expected-error @+1 {{a tile of rank 2 in an mma layout of version 3}}
  %0 = tile_gpu.warpgroup_dot %a, %b, %c : !tile_gpu.buffer<64x64xf16, #rows>, !tile_gpu.buffer<64x64xf16, #rows>, tensor<64x64xf32, #warp>
  return
}

// -----

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#rows = #tile_gpu.tma<swizzle=128>
#half = #tile_gpu.tma<swizzle=64>
func.func @extents(%c: tensor<64x64xf32, #acc>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf16, #half>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xf16, #rows>
  // expected-error @+1 {{the extents differ}}
  %0 = tile_gpu.warpgroup_dot %a, %b, %c : !tile_gpu.buffer<64x32xf16, #half>, !tile_gpu.buffer<64x64xf16, #rows>, tensor<64x64xf32, #acc>
  return
}

// -----

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#rows = #tile_gpu.tma<swizzle=128>
func.func @types(%c: tensor<64x64xf32, #acc>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xf16, #rows>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #rows>
  // expected-error @+1 {{multiplies 'f16' by 'bf16'}}
  %0 = tile_gpu.warpgroup_dot %a, %b, %c : !tile_gpu.buffer<64x64xf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, tensor<64x64xf32, #acc>
  return
}

// -----

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#rows = #tile_gpu.tma<swizzle=128>
#half = #tile_gpu.tma<swizzle=64>
func.func @bytes(%c: tensor<64x64xf32, #acc>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xi8, #half>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xi8, #half>
  // expected-error @+1 {{multiplies 'i8' by 'i8'}}
  %0 = tile_gpu.warpgroup_dot %a, %b, %c : !tile_gpu.buffer<64x64xi8, #half>, !tile_gpu.buffer<64x64xi8, #half>, tensor<64x64xf32, #acc>
  return
}

// -----

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#rows = #tile_gpu.tma<swizzle=128>
#plain = #tile_gpu.swizzled<vec=1, perPhase=1, maxPhase=1>
func.func @no_swizzle(%c: tensor<64x64xf32, #acc>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xf16, #plain>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xf16, #rows>
  // expected-error @+1 {{it needs a tma layout with a swizzle}}
  %0 = tile_gpu.warpgroup_dot %a, %b, %c : !tile_gpu.buffer<64x64xf16, #plain>, !tile_gpu.buffer<64x64xf16, #rows>, tensor<64x64xf32, #acc>
  return
}

// -----

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#rows = #tile_gpu.tma<swizzle=128>
func.func @tf32_k_apart(%c: tensor<64x64xf32, #acc>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x32xf32, #rows>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<32x64xf32, #rows>
  // expected-error @+1 {{lie with K contiguous}}
  %0 = tile_gpu.warpgroup_dot %a, %b, %c : !tile_gpu.buffer<64x32xf32, #rows>, !tile_gpu.buffer<32x64xf32, #rows>, tensor<64x64xf32, #acc>
  return
}

// -----

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#rows = #tile_gpu.tma<swizzle=128>
#narrow = #tile_gpu.mma<version=3, warpsPerCTA=[4,4], instrN=32>
func.func @groups(%c: tensor<64x128xf32, #narrow>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xf16, #rows>
  %b = tile_gpu.local_alloc : !tile_gpu.buffer<64x128xf16, #rows>
  // expected-error @+1 {{has them in groups of 64}}
  %0 = tile_gpu.warpgroup_dot %a, %b, %c : !tile_gpu.buffer<64x64xf16, #rows>, !tile_gpu.buffer<64x128xf16, #rows>, tensor<64x128xf32, #narrow>
  return
}

// -----

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#rows = #tile_gpu.tma<swizzle=128>
func.func @several(%c: tensor<64x64xf32, #acc>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<[2] x 64x64xf16, #rows>
  // expected-error @+1 {{take a tile_gpu.local_subview}}
  %0 = tile_gpu.warpgroup_dot %a, %a, %c : !tile_gpu.buffer<[2] x 64x64xf16, #rows>, !tile_gpu.buffer<[2] x 64x64xf16, #rows>, tensor<64x64xf32, #acc>
  return
}

// -----

#warp = #tile_gpu.mma<version=2, warpsPerCTA=[4,1]>
// expected-error @+1 {{they are a tile in an mma layout of version 3}}
func.func @pending_layout(%p: !tile_gpu.pending<tensor<64x64xf32, #warp>>) {
  return
}

// -----

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#narrow = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=32>
func.func @begins_another(%c: tensor<64x64xf32, #acc>) { // expected-note {{prior use here}}
  // expected-error @+1 {{expects different type than prior uses}}
  %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<64x64xf32, #narrow>>
  return
}

// -----

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
func.func @leaves_many(%p: !tile_gpu.pending<tensor<64x64xf32, #acc>>) {
  // expected-error @+1 {{leaves 8 products in flight: 0 to 7}}
  %q = tile_gpu.warpgroup_wait %p leave 8 : !tile_gpu.pending<tensor<64x64xf32, #acc>>
  return
}

// -----

// Sums that a product may still add to are no tile.
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
func.func @tile_in_flight(%p: !tile_gpu.pending<tensor<64x64xf32, #acc>>) {
  // expected-error @+1 {{leaves 1 products in flight, 0 of which begin after those of its sums}}
  %q = tile_gpu.warpgroup_wait %p leave 1 : tensor<64x64xf32, #acc>
  return
}

// -----

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
func.func @used_twice(%c: tensor<64x64xf32, #acc>) {
  %p = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<64x64xf32, #acc>>
  // expected-error @+1 {{takes pending sums that 2 operations use}}
  %d = tile_gpu.warpgroup_wait %p : tensor<64x64xf32, #acc>
  %e = tile_gpu.warpgroup_wait %p : tensor<64x64xf32, #acc>
  return
}

// -----

// The product of one arm does not come before the wait of the other.
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#rows = #tile_gpu.tma<swizzle=128>
func.func @begun_elsewhere(%c: tensor<64x64xf32, #acc>, %p: !tile_gpu.pending<tensor<64x64xf32, #acc>>, %which: i1) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #rows>
  %x = tile_gpu.warpgroup_begin %c : !tile_gpu.pending<tensor<64x64xf32, #acc>>
  %q = tile_gpu.warpgroup_dot %a, %a, %x : !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<64x64xf32, #acc>>
  scf.if %which {
    %r = tile_gpu.warpgroup_dot %a, %a, %p : !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.pending<tensor<64x64xf32, #acc>>
    %s = tile_gpu.warpgroup_wait %r : tensor<64x64xf32, #acc>
  } else {
    // expected-error @+1 {{leaves 1 products in flight, 0 of which begin after those of its sums}}
    %t = tile_gpu.warpgroup_wait %q leave 1 : tensor<64x64xf32, #acc>
  }
  return
}

// -----

// Of registers it reads an operand of its result.
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#rows = #tile_gpu.tma<swizzle=128>
func.func @other_registers(%c: tensor<64x64xf32, #acc>, %x: tensor<64x64xbf16, #row>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #rows>
  // expected-error @+1 {{elements of 16 or 8 bits in the layout of operand 0}}
  %q = tile_gpu.warpgroup_dot %x, %a, %c : tensor<64x64xbf16, #row>, !tile_gpu.buffer<64x64xbf16, #rows>, tensor<64x64xf32, #acc>
  return
}

// -----

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#columns = #tile_gpu.tma<swizzle=128, order=[0,1]>
func.func @wide_registers(%c: tensor<64x64xf32, #acc>, %x: tensor<64x32xf32, #acc>) {
  %a = tile_gpu.local_alloc : !tile_gpu.buffer<32x64xf32, #columns>
  // expected-error @+1 {{elements of 16 or 8 bits in the layout of operand 0}}
  %q = tile_gpu.warpgroup_dot %x, %a, %c : tensor<64x32xf32, #acc>, !tile_gpu.buffer<32x64xf32, #columns>, tensor<64x64xf32, #acc>
  return
}

// -----

// No pending sums have a type without their layout.
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
// expected-note @+1 {{prior use here}}
func.func @waits_for_no_layout(%p: !tile_gpu.pending<tensor<64x64xf32, #acc>>) {
  // expected-error @+1 {{use of value '%p' expects different type than prior uses}}
  %q = tile_gpu.warpgroup_wait %p : tensor<64x64xf32>
  return
}
