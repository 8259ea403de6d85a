// RUN: kiln-opt %s --canonicalize | FileCheck %s

// What one thread does next to each other becomes one, past what only computes; a conditional for it alone goes inside.
// CHECK-LABEL: @ring
// CHECK: arith.addi
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_wait
// CHECK-NEXT: scf.if
// CHECK-NEXT: tile_gpu.mbarrier_arrive %{{.*}}[%c1_i32]
// CHECK-NEXT: }
// CHECK-NEXT: tile_gpu.mbarrier_arrive
// CHECK-NEXT: }
// CHECK-NEXT: tile.print
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_arrive
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @ring(%b: !tile_gpu.mbarriers<2>, %n: i32, %p: i32, %k: i1) attributes {tile.num_warps = 4 : i32} {
  %c1 = arith.constant 1 : i32
  tile_gpu.elected {
    tile_gpu.mbarrier_wait %b[%n] phase %p : !tile_gpu.mbarriers<2>
  }
  %m = arith.addi %n, %n : i32
  scf.if %k {
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %b[%c1] phase %p : !tile_gpu.mbarriers<2>
    }
  }
  tile_gpu.elected {
    tile_gpu.mbarrier_arrive %b[%m] phase %p : !tile_gpu.mbarriers<2>
  }
  tile.print "m" %m : i32
  tile_gpu.elected {
    tile_gpu.mbarrier_arrive %b[%n] phase %p : !tile_gpu.mbarriers<2>
  }
  return
}

// Not a conditional that has more in it, nor one with two arms.
// CHECK-LABEL: @kept
// CHECK: scf.if
// CHECK-NEXT: tile.print
// CHECK-NEXT: tile_gpu.elected
// CHECK: scf.if
// CHECK-NEXT: tile_gpu.elected
// CHECK: else
func.func @kept(%b: !tile_gpu.mbarriers<2>, %n: i32, %p: i32, %k: i1, %l: i1) attributes {tile.num_warps = 4 : i32} {
  scf.if %k {
    tile.print "n" %n : i32
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %b[%n] phase %p : !tile_gpu.mbarriers<2>
    }
  }
  scf.if %l {
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %b[%n] phase %p : !tile_gpu.mbarriers<2>
    }
  } else {
    tile.print "n" %n : i32
  }
  return
}
