// RUN: kiln-opt %s --split-input-file --kiln-verify-stage=stage=tile | FileCheck %s

// Every rule of stage tile, kept: operations of the list, loops on i32 and i64, extents m * 2^k.
// CHECK-LABEL: func.func @tile
module {
  func.func @tile(%p: !tile.ptr<f32>, %n: i32, %k: i64) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %d0 = arith.constant 0 : i64
    %d1 = arith.constant 1 : i64
    %zero = arith.constant dense<0.0> : tensor<96xf32>
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<96xf32>) : i32 {
      %e = math.exp %a : tensor<96xf32>
      scf.yield %e : tensor<96xf32>
    }
    scf.for %i = %d0 to %k step %d1 : i64 {
      %c = arith.cmpi slt, %i, %k : i64
      scf.if %c {
        tile.print "i = " %i : i64
      }
    }
    %u = ub.poison : tensor<96xi32>
    %o = tile.range 0 to 96 : tensor<96xi32>
    %ps = tile.splat %p : !tile.ptr<f32> to tensor<96x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %o : tensor<96x!tile.ptr<f32>>, tensor<96xi32>
    tile.store %pp, %s : tensor<96x!tile.ptr<f32>>
    return
  }
}

// -----

// A block need not have a power of two of warps: only tiles ask for one.
// CHECK-LABEL: func.func @three_warpgroups
// CHECK-SAME: tile.num_warps = 12 : i32
module {
  func.func @three_warpgroups(%p: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.num_warps = 12 : i32} {
    tile.store %p, %n : !tile.ptr<i32>
    return
  }
}
