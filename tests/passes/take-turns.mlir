// RUN: kiln-opt %s --kiln-take-turns | FileCheck %s

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[8,1], instrN=64>
#few = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#rows = #tile_gpu.tma<swizzle=128>
!left = !tile_gpu.buffer<128x64xbf16, #rows>
!right = !tile_gpu.buffer<64x64xbf16, #rows>
!pending = !tile_gpu.pending<tensor<128x64xf32, #acc>>
!pending_few = !tile_gpu.pending<tensor<128x64xf32, #few>>

module attributes {tile_gpu.target = "sm_90a"} {

// Two products begin together: that is what a turn is for, and what follows from them is computed without one.
// CHECK-LABEL: @together
// CHECK: tile_gpu.turns_begin
// CHECK-NEXT: scf.for
// CHECK-NEXT: tile_gpu.warpgroup_begin
// CHECK-NEXT: tile_gpu.warpgroup_begin
// CHECK-NEXT: tile_gpu.turn_take
// CHECK-NEXT: tile_gpu.warpgroup_dot
// CHECK-NEXT: tile_gpu.warpgroup_dot
// CHECK-NEXT: tile_gpu.turn_pass
// CHECK-NEXT: tile_gpu.warpgroup_wait
// CHECK-NEXT: math.exp2
// CHECK-NEXT: tile_gpu.warpgroup_wait
// CHECK-NEXT: }
// CHECK-NEXT: tile_gpu.turns_end
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @together(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %q = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %e = tile_gpu.warpgroup_dot %a, %b, %q : !left, !right, !pending
    %x = tile_gpu.warpgroup_wait %d leave 1 : tensor<128x64xf32, #acc>
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
    %y = tile_gpu.warpgroup_wait %e : tensor<128x64xf32, #acc>
  }
  return
}

// The turn lasts from the first of three products to the last, and over what stands between them.
// CHECK-LABEL: @between
// CHECK: tile_gpu.turns_begin
// CHECK-NEXT: scf.for
// CHECK: tile_gpu.turn_take
// CHECK-NEXT: tile_gpu.warpgroup_dot
// CHECK-NEXT: tile_gpu.warpgroup_begin
// CHECK-NEXT: tile_gpu.warpgroup_dot
// CHECK-NEXT: math.exp2
// CHECK-NEXT: tile_gpu.warpgroup_dot
// CHECK-NEXT: tile_gpu.turn_pass
// CHECK-NEXT: tile_gpu.warpgroup_wait
// CHECK-NOT: tile_gpu.turn_
// CHECK: }
// CHECK-NEXT: tile_gpu.turns_end
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @between(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %q = tile_gpu.warpgroup_begin %c : !pending
    %e = tile_gpu.warpgroup_dot %a, %b, %q : !left, !right, !pending
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
    %g = tile_gpu.warpgroup_dot %a, %b, %e : !left, !right, !pending
    %x = tile_gpu.warpgroup_wait %d leave 2 : tensor<128x64xf32, #acc>
    %y = tile_gpu.warpgroup_wait %g : tensor<128x64xf32, #acc>
  }
  return
}

// One warpgroup has nobody to take turns with.
// CHECK-LABEL: @one_group
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @one_group(%c: tensor<128x64xf32, #few>, %row: tensor<128x1xf32, #few>, %n: i32) attributes {tile_gpu.test, tile.num_warps = 4 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending_few
    %q = tile_gpu.warpgroup_begin %c : !pending_few
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending_few
    %e = tile_gpu.warpgroup_dot %a, %b, %q : !left, !right, !pending_few
    %x = tile_gpu.warpgroup_wait %d leave 1 : tensor<128x64xf32, #few>
    %f = math.exp2 %row : tensor<128x1xf32, #few>
    %y = tile_gpu.warpgroup_wait %e : tensor<128x64xf32, #few>
  }
  return
}

// The products do not take twice as long as the powers: 512 cycles, and 512.
// CHECK-LABEL: @powers
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @powers(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %q = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %e = tile_gpu.warpgroup_dot %a, %b, %q : !left, !right, !pending
    %x = tile_gpu.warpgroup_wait %d leave 1 : tensor<128x64xf32, #acc>
    %f = math.exp2 %c : tensor<128x64xf32, #acc>
    %y = tile_gpu.warpgroup_wait %e : tensor<128x64xf32, #acc>
  }
  return
}

// They take longer: 512 cycles, and 128.
// CHECK-LABEL: @over_twice
// CHECK: tile_gpu.turns_begin
// CHECK: tile_gpu.turn_take
// CHECK: tile_gpu.turn_pass
// CHECK: tile_gpu.turns_end
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @over_twice(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32, %quarter: tensor<128x16xf32, #acc>) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %q = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %e = tile_gpu.warpgroup_dot %a, %b, %q : !left, !right, !pending
    %x = tile_gpu.warpgroup_wait %d leave 1 : tensor<128x64xf32, #acc>
    %f = math.exp2 %quarter : tensor<128x16xf32, #acc>
    %y = tile_gpu.warpgroup_wait %e : tensor<128x64xf32, #acc>
  }
  return
}

// Twice as long is enough: 512 cycles, and 256.
// CHECK-LABEL: @just_twice
// CHECK: tile_gpu.turns_begin
// CHECK: tile_gpu.turns_end
// CHECK: return
func.func @just_twice(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32, %half: tensor<128x32xf32, #acc>) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %q = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %e = tile_gpu.warpgroup_dot %a, %b, %q : !left, !right, !pending
    %x = tile_gpu.warpgroup_wait %d leave 1 : tensor<128x64xf32, #acc>
    %f = math.exp2 %half : tensor<128x32xf32, #acc>
    %y = tile_gpu.warpgroup_wait %e : tensor<128x64xf32, #acc>
  }
  return
}

// All warps meet in each round: whoever has the turn would wait for the others, who wait for it.
// CHECK-LABEL: @barrier
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @barrier(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %q = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %e = tile_gpu.warpgroup_dot %a, %b, %q : !left, !right, !pending
    %x = tile_gpu.warpgroup_wait %d leave 1 : tensor<128x64xf32, #acc>
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
    %y = tile_gpu.warpgroup_wait %e : tensor<128x64xf32, #acc>
    tile_gpu.barrier
  }
  return
}

// Nor in a loop inside of it.
// CHECK-LABEL: @inner_barrier
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @inner_barrier(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %q = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %e = tile_gpu.warpgroup_dot %a, %b, %q : !left, !right, !pending
    %x = tile_gpu.warpgroup_wait %d leave 1 : tensor<128x64xf32, #acc>
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
    %y = tile_gpu.warpgroup_wait %e : tensor<128x64xf32, #acc>
    scf.for %j = %c0 to %n step %c1 : i32 {
      tile_gpu.barrier
    }
  }
  return
}

// One product in flight.
// CHECK-LABEL: @one_product
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @one_product(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
    %x = tile_gpu.warpgroup_wait %d : tensor<128x64xf32, #acc>
  }
  return
}

// One of the two is over at once.
// CHECK-LABEL: @at_once
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @at_once(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %x = tile_gpu.warpgroup_wait %d : tensor<128x64xf32, #acc>
    %e = tile_gpu.warpgroup_dot %a, %b, %c : !left, !right, tensor<128x64xf32, #acc>
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
  }
  return
}

// The first is waited for before the second begins.
// CHECK-LABEL: @one_by_one
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @one_by_one(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %x = tile_gpu.warpgroup_wait %d : tensor<128x64xf32, #acc>
    %q = tile_gpu.warpgroup_begin %c : !pending
    %e = tile_gpu.warpgroup_dot %a, %b, %q : !left, !right, !pending
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
    %y = tile_gpu.warpgroup_wait %e : tensor<128x64xf32, #acc>
  }
  return
}

// What may wait stands between the two.
// CHECK-LABEL: @conditional
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @conditional(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32, %which: i1) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %q = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    scf.if %which {
      tile_gpu.warp_barrier
    }
    %e = tile_gpu.warpgroup_dot %a, %b, %q : !left, !right, !pending
    %x = tile_gpu.warpgroup_wait %d leave 1 : tensor<128x64xf32, #acc>
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
    %y = tile_gpu.warpgroup_wait %e : tensor<128x64xf32, #acc>
  }
  return
}

// A loop without stages.
// CHECK-LABEL: @no_stages
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @no_stages(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p = tile_gpu.warpgroup_begin %c : !pending
    %q = tile_gpu.warpgroup_begin %c : !pending
    %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
    %e = tile_gpu.warpgroup_dot %a, %b, %q : !left, !right, !pending
    %x = tile_gpu.warpgroup_wait %d leave 1 : tensor<128x64xf32, #acc>
    %f = math.exp2 %row : tensor<128x1xf32, #acc>
    %y = tile_gpu.warpgroup_wait %e : tensor<128x64xf32, #acc>
  }
  return
}

// A loop inside of another one.
// CHECK-LABEL: @inside
// CHECK-NOT: tile_gpu.turn
// CHECK: return
func.func @inside(%c: tensor<128x64xf32, #acc>, %row: tensor<128x1xf32, #acc>, %n: i32) attributes {tile_gpu.test, tile.num_warps = 8 : i32, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile_gpu.local_alloc : !left
  %b = tile_gpu.local_alloc : !right
  scf.for %j = %c0 to %n step %c1 : i32 {
    scf.for %i = %c0 to %n step %c1 : i32 {
      %p = tile_gpu.warpgroup_begin %c : !pending
      %q = tile_gpu.warpgroup_begin %c : !pending
      %d = tile_gpu.warpgroup_dot %a, %b, %p : !left, !right, !pending
      %e = tile_gpu.warpgroup_dot %a, %b, %q : !left, !right, !pending
      %x = tile_gpu.warpgroup_wait %d leave 1 : tensor<128x64xf32, #acc>
      %f = math.exp2 %row : tensor<128x1xf32, #acc>
      %y = tile_gpu.warpgroup_wait %e : tensor<128x64xf32, #acc>
    }
  }
  return
}
}
