// RUN: kiln-opt %s --kiln-accelerate-dot --split-input-file | FileCheck %s

// One product: the warps share it as a square.
// CHECK: #[[MMA:.*]] = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
// CHECK-LABEL: func.func @square
module attributes {tile_gpu.target = "sm_80"} {
  func.func @square(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %c: tensor<64x64xf32>) {
    // CHECK: convert_layout %{{.*}} : tensor<64x32xf16> to tensor<64x32xf16, #{{.*}}>
    // CHECK: convert_layout %{{.*}} : tensor<32x64xf16> to tensor<32x64xf16, #{{.*}}>
    // CHECK: convert_layout %{{.*}} : tensor<64x64xf32> to tensor<64x64xf32, #[[MMA]]>
    // CHECK: tile.dot {{.*}} to tensor<64x64xf32, #[[MMA]]>
    // CHECK: convert_layout %{{.*}} : tensor<64x64xf32, #[[MMA]]> to tensor<64x64xf32>
    %0 = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x64xf16> to tensor<64x64xf32>
    tile.print "d" %0 : tensor<64x64xf32>
    return
  }
}

// -----

// A chain: warps along M, so that the rows of the first product stay where the second wants them.
// CHECK: #[[MMA:.*]] = #tile_gpu.mma<version=2, warpsPerCTA=[4,1], instrN=16>
// CHECK-LABEL: func.func @chain
module attributes {tile_gpu.target = "sm_90"} {
  func.func @chain(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>, %c: tensor<64x64xf32>, %v: tensor<64x32xbf16>,
                   %o: tensor<64x32xf32>) {
    // CHECK: tile.dot {{.*}} to tensor<64x64xf32, #[[MMA]]>
    // CHECK: tile.dot {{.*}} to tensor<64x32xf32, #[[MMA]]>
    %0 = tile.dot %a, %b, %c : tensor<64x32xbf16>, tensor<32x64xbf16> to tensor<64x64xf32>
    %1 = arith.truncf %0 : tensor<64x64xf32> to tensor<64x64xbf16>
    %2 = tile.dot %1, %v, %o : tensor<64x64xbf16>, tensor<64x32xbf16> to tensor<64x32xf32>
    tile.print "d" %2 : tensor<64x32xf32>
    return
  }
}

// -----

// A chain through a conditional, and one that closes over the rounds of a loop.
// CHECK: #[[MMA:.*]] = #tile_gpu.mma<version=2, warpsPerCTA=[4,1], instrN=16>
// CHECK-LABEL: func.func @chain_through_if
// CHECK: tile.dot {{.*}} to tensor<64x64xf32, #[[MMA]]>
// CHECK: tile.dot {{.*}} to tensor<64x32xf32, #[[MMA]]>
// CHECK-LABEL: func.func @chain_through_for
// CHECK: tile.dot {{.*}} to tensor<64x64xf32, #[[MMA]]>
module attributes {tile_gpu.target = "sm_90"} {
  func.func @chain_through_if(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>, %c: tensor<64x64xf32>,
                              %v: tensor<64x32xbf16>, %o: tensor<64x32xf32>, %when: i1) {
    %0 = tile.dot %a, %b, %c : tensor<64x32xbf16>, tensor<32x64xbf16> to tensor<64x64xf32>
    %1 = scf.if %when -> (tensor<64x64xf32>) {
      %3 = arith.addf %0, %c : tensor<64x64xf32>
      scf.yield %3 : tensor<64x64xf32>
    } else {
      scf.yield %0 : tensor<64x64xf32>
    }
    %2 = arith.truncf %1 : tensor<64x64xf32> to tensor<64x64xbf16>
    %4 = tile.dot %2, %v, %o : tensor<64x64xbf16>, tensor<64x32xbf16> to tensor<64x32xf32>
    tile.print "d" %4 : tensor<64x32xf32>
    return
  }
  func.func @chain_through_for(%x: tensor<64x64xbf16>, %b: tensor<64x64xbf16>, %c: tensor<64x64xf32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %0 = scf.for %i = %zero to %n step %one iter_args(%state = %x) -> (tensor<64x64xbf16>) : i32 {
      %1 = tile.dot %state, %b, %c : tensor<64x64xbf16>, tensor<64x64xbf16> to tensor<64x64xf32>
      %2 = arith.truncf %1 : tensor<64x64xf32> to tensor<64x64xbf16>
      scf.yield %2 : tensor<64x64xbf16>
    }
    tile.print "d" %0 : tensor<64x64xbf16>
    return
  }
}

// -----

// A chain through a scan.
// CHECK: #[[MMA:.*]] = #tile_gpu.mma<version=2, warpsPerCTA=[4,1], instrN=16>
// CHECK-LABEL: func.func @chain_through_scan
// CHECK: tile.dot {{.*}} to tensor<64x64xf32, #[[MMA]]>
// CHECK: tile.dot {{.*}} to tensor<64x32xf32, #[[MMA]]>
module attributes {tile_gpu.target = "sm_90"} {
  func.func @chain_through_scan(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>, %c: tensor<64x64xf32>,
                                %v: tensor<64x32xbf16>, %o: tensor<64x32xf32>) {
    %0 = tile.dot %a, %b, %c : tensor<64x32xbf16>, tensor<32x64xbf16> to tensor<64x64xf32>
    %1 = tile.scan(%0) {axis = 1 : i32} : tensor<64x64xf32> {
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      tile.yield %s : f32
    }
    %2 = arith.truncf %1 : tensor<64x64xf32> to tensor<64x64xbf16>
    %4 = tile.dot %2, %v, %o : tensor<64x64xbf16>, tensor<64x32xbf16> to tensor<64x32xf32>
    tile.print "d" %4 : tensor<64x32xf32>
    return
  }
}

// -----

// Sums that a loop carries are no chain: a square share of the tile reads least.
// CHECK: #[[MMA:.*]] = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
// CHECK-LABEL: func.func @sums
// CHECK: tile.dot {{.*}} to tensor<64x64xf32, #[[MMA]]>
module attributes {tile_gpu.target = "sm_90"} {
  func.func @sums(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>, %c: tensor<64x64xf32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %0 = scf.for %i = %zero to %n step %one iter_args(%sum = %c) -> (tensor<64x64xf32>) : i32 {
      %1 = tile.dot %a, %b, %sum : tensor<64x32xbf16>, tensor<32x64xbf16> to tensor<64x64xf32>
      scf.yield %1 : tensor<64x64xf32>
    }
    tile.print "d" %0 : tensor<64x64xf32>
    return
  }
}

// -----

// No matrix instruction takes bf16 here: multiply-adds.
// CHECK-LABEL: func.func @turing
// CHECK: tile.dot {{.*}} to tensor<64x64xf32, #blocked>
module attributes {tile_gpu.target = "sm_75"} {
  func.func @turing(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>, %c: tensor<64x64xf32>) {
    %0 = tile.dot %a, %b, %c : tensor<64x32xbf16>, tensor<32x64xbf16> to tensor<64x64xf32>
    tile.print "d" %0 : tensor<64x64xf32>
    return
  }
}

// -----

// 8-bit floats where no instruction takes them: f16 holds every value of theirs.
// CHECK-LABEL: func.func @float8
// CHECK-COUNT-2: arith.extf {{.*}} to tensor<{{.*}}xf16>
// CHECK: tile.dot {{.*}} tensor<64x32xf16, #dot>, tensor<32x64xf16, #dot1> to tensor<64x64xf32, #mma>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @float8(%a: tensor<64x32xf8E4M3FN>, %b: tensor<32x64xf8E5M2>, %c: tensor<64x64xf32>)
      {
    %0 = tile.dot %a, %b, %c : tensor<64x32xf8E4M3FN>, tensor<32x64xf8E5M2> to tensor<64x64xf32>
    tile.print "d" %0 : tensor<64x64xf32>
    return
  }
}

// -----

// f32 as it is, and K too short for an instruction: multiply-adds; tf32 goes to the matrix unit.
// CHECK-LABEL: func.func @f32
// CHECK: tile.dot {{.*}} to tensor<64x64xf32, #blocked>
// CHECK: tile.dot {{.*}} precision tf32 {{.*}} to tensor<64x64xf32, #mma>
// CHECK: tile.dot {{.*}} to tensor<64x64xf32, #blocked>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @f32(%a: tensor<64x32xf32>, %b: tensor<32x64xf32>, %c: tensor<64x64xf32>, %s: tensor<64x4xf16>,
                 %t: tensor<4x64xf16>) {
    %0 = tile.dot %a, %b, %c : tensor<64x32xf32>, tensor<32x64xf32> to tensor<64x64xf32>
    %1 = tile.dot %a, %b, %c precision tf32 : tensor<64x32xf32>, tensor<32x64xf32> to tensor<64x64xf32>
    %2 = tile.dot %s, %t, %c : tensor<64x4xf16>, tensor<4x64xf16> to tensor<64x64xf32>
    tile.print "0" %0 : tensor<64x64xf32>
    tile.print "1" %1 : tensor<64x64xf32>
    tile.print "2" %2 : tensor<64x64xf32>
    return
  }
}

// -----

// No registers hold a thread's rows and columns with all of K: a loop over parts of it, read from shared memory.
// CHECK-LABEL: func.func @parts
// CHECK-SAME: (%[[A:.*]]: tensor<64x64xf64>, %[[C:.*]]: tensor<64x64xf64>)
// CHECK: scf.for %[[K:.*]] = %c0_i32 to %c64_i32 step %c4_i32 iter_args(%[[SUM:.*]] = %[[C]]) -> (tensor<64x64xf64>)
// CHECK: %[[X:.*]] = tile.gather %[[A]][%{{.*}}] {axis = 1 : i32} : tensor<64x64xf64>, tensor<64x4xi32>
// CHECK: %[[Y:.*]] = tile.gather %[[A]][%{{.*}}] {axis = 0 : i32} : tensor<64x64xf64>, tensor<4x64xi32>
// CHECK-DAG: %[[XC:.*]] = tile_gpu.convert_layout %[[X]]
// CHECK-DAG: %[[YC:.*]] = tile_gpu.convert_layout %[[Y]]
// CHECK: tile.dot %[[XC]], %[[YC]], %{{.*}} to tensor<64x64xf64, #blocked>
// CHECK: scf.yield
module attributes {tile_gpu.target = "sm_80"} {
  func.func @parts(%a: tensor<64x64xf64>, %c: tensor<64x64xf64>) {
    %d = tile.dot %a, %a, %c : tensor<64x64xf64>, tensor<64x64xf64> to tensor<64x64xf64>
    tile.print "d" %d : tensor<64x64xf64>
    return
  }
}

// -----

// Computed operands of tf32 products are rounded first, once for both products, and no instruction rounds them again.
// CHECK-LABEL: func.func @rounded_once
// CHECK-COUNT-2: math.absf
// CHECK-NOT: math.absf
// CHECK: tile.dot {{.*}} precision tf32 {{.*}}tile_gpu.rounded_operands
// CHECK: tile.dot {{.*}} precision tf32 {{.*}}tile_gpu.rounded_operands
module attributes {tile_gpu.target = "sm_80"} {
  func.func @rounded_once(%x: f32, %y: f32, %c: tensor<64x64xf32>) {
    %a = tile.splat %x : f32 to tensor<64x32xf32>
    %b = tile.splat %y : f32 to tensor<32x64xf32>
    %0 = tile.dot %a, %b, %c precision tf32 : tensor<64x32xf32>, tensor<32x64xf32> to tensor<64x64xf32>
    %1 = tile.dot %a, %b, %0 precision tf32 : tensor<64x32xf32>, tensor<32x64xf32> to tensor<64x64xf32>
    tile.print "1" %1 : tensor<64x64xf32>
    return
  }
}

// -----

// Loaded operands are not: they may be staged in shared memory.
// CHECK-LABEL: func.func @loaded
// CHECK-NOT: math.absf
// CHECK-NOT: rounded_operands
module attributes {tile_gpu.target = "sm_80"} {
  func.func @loaded(%p: tensor<64x32x!tile.ptr<f32>>, %q: tensor<32x64x!tile.ptr<f32>>, %c: tensor<64x64xf32>) {
    %a = tile.load %p : tensor<64x32x!tile.ptr<f32>>
    %b = tile.load %q : tensor<32x64x!tile.ptr<f32>>
    %0 = tile.dot %a, %b, %c precision tf32 : tensor<64x32xf32>, tensor<32x64xf32> to tensor<64x64xf32>
    tile.print "0" %0 : tensor<64x64xf32>
    return
  }
}

// -----

// Tiles of 64 rows by whole warpgroups, where the target has wgmma: operands in any layout, they are read from shared
// memory.  f32 as tf32 if K is innermost in both.
// CHECK: #[[MMA:.*]] = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
// CHECK-LABEL: func.func @warpgroup
// CHECK: tile.dot {{.*}} : tensor<64x32xbf16>, tensor<32x64xbf16> to tensor<64x64xf32, #[[MMA]]>
// CHECK-LABEL: func.func @warpgroup_tf32
// CHECK: tile.dot {{.*}} precision tf32 {tile_gpu.rounded_operands} : tensor<64x32xf32>, tensor<32x64xf32> to tensor<64x64xf32, #[[MMA]]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @warpgroup(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>, %c: tensor<64x64xf32>) {
    %0 = tile.dot %a, %b, %c : tensor<64x32xbf16>, tensor<32x64xbf16> to tensor<64x64xf32>
    tile.print "d" %0 : tensor<64x64xf32>
    return
  }
  func.func @warpgroup_tf32(%a: tensor<64x32xf32>, %b: tensor<64x32xf32>, %c: tensor<64x64xf32>) {
    %t = tile.transpose %b [1, 0] : tensor<64x32xf32> to tensor<32x64xf32>
    %0 = tile.dot %a, %t, %c precision tf32 : tensor<64x32xf32>, tensor<32x64xf32> to tensor<64x64xf32>
    tile.print "d" %0 : tensor<64x64xf32>
    return
  }
}

// -----

// Two warpgroups share the columns.
// CHECK: #[[MMA:.*]] = #tile_gpu.mma<version=3, warpsPerCTA=[4,2], instrN=32>
// CHECK-LABEL: func.func @two
// CHECK: tile.dot {{.*}} to tensor<64x64xf32, #[[MMA]]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @two(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %c: tensor<64x64xf32>)
      attributes {tile.num_warps = 8 : i32} {
    %0 = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x64xf16> to tensor<64x64xf32>
    tile.print "d" %0 : tensor<64x64xf32>
    return
  }
}

// -----

// By mma.sync all the same: tf32 with K apart, loops whose loads are staged, few rows, tiles that take more than an
// eighth of a thread's registers.
// CHECK-NOT: version=3
// CHECK-LABEL: func.func @k_apart
// CHECK-LABEL: func.func @staged
// CHECK-LABEL: func.func @few_rows
// CHECK-LABEL: func.func @large
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @k_apart(%a: tensor<64x32xf32>, %b: tensor<32x64xf32>, %c: tensor<64x64xf32>) {
    %0 = tile.dot %a, %b, %c precision tf32 : tensor<64x32xf32>, tensor<32x64xf32> to tensor<64x64xf32>
    tile.print "d" %0 : tensor<64x64xf32>
    return
  }
  func.func @staged(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>, %c: tensor<64x64xf32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %0 = scf.for %i = %zero to %n step %one iter_args(%sum = %c) -> (tensor<64x64xf32>) : i32 {
      %1 = tile.dot %a, %b, %sum : tensor<64x32xbf16>, tensor<32x64xbf16> to tensor<64x64xf32>
      scf.yield %1 : tensor<64x64xf32>
    } {tile.num_stages = 2 : i32}
    tile.print "d" %0 : tensor<64x64xf32>
    return
  }
  func.func @few_rows(%a: tensor<32x32xf16>, %b: tensor<32x64xf16>, %c: tensor<32x64xf32>) {
    %0 = tile.dot %a, %b, %c : tensor<32x32xf16>, tensor<32x64xf16> to tensor<32x64xf32>
    tile.print "d" %0 : tensor<32x64xf32>
    return
  }
  func.func @large(%a: tensor<128x32xf16>, %b: tensor<32x128xf16>, %c: tensor<128x128xf32>) {
    %0 = tile.dot %a, %b, %c : tensor<128x32xf16>, tensor<32x128xf16> to tensor<128x128xf32>
    tile.print "d" %0 : tensor<128x128xf32>
    return
  }
}

// -----

// 48 of K are not for warpgroups; mma.sync's result lies as wgmma's would, so that the sum's two products take one unit.
// With columns that lie otherwise each takes its own.
// CHECK-NOT: version=3, warpsPerCTA=[4,1]
// CHECK: #[[SYNC:.*]] = #tile_gpu.mma<version=2, warpsPerCTA=[4,1], instrN=16>
// CHECK-NOT: version=3, warpsPerCTA=[4,1]
// CHECK: #[[OWN:.*]] = #tile_gpu.mma<version=3, warpsPerCTA=[4,2], instrN=16>
// CHECK-LABEL: func.func @alike
// CHECK-COUNT-2: tile.dot {{.*}} to tensor<64x32xf32, #[[SYNC]]>
// CHECK-LABEL: func.func @apart
// CHECK: tile.dot {{.*}} to tensor<64x32xf32, #[[OWN]]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @alike(%a: tensor<64x64xbf16>, %b: tensor<64x32xbf16>, %c: tensor<64x48xbf16>, %d: tensor<48x32xbf16>,
                   %e: tensor<64x32xf32>) {
    %0 = tile.dot %a, %b, %e : tensor<64x64xbf16>, tensor<64x32xbf16> to tensor<64x32xf32>
    %1 = tile.dot %c, %d, %0 : tensor<64x48xbf16>, tensor<48x32xbf16> to tensor<64x32xf32>
    tile.print "d" %1 : tensor<64x32xf32>
    return
  }
  func.func @apart(%a: tensor<64x64xbf16>, %b: tensor<64x32xbf16>, %c: tensor<64x48xbf16>, %d: tensor<48x32xbf16>,
                   %e: tensor<64x32xf32>) attributes {tile.num_warps = 8 : i32} {
    %0 = tile.dot %a, %b, %e : tensor<64x64xbf16>, tensor<64x32xbf16> to tensor<64x32xf32>
    %1 = tile.dot %c, %d, %0 : tensor<64x48xbf16>, tensor<48x32xbf16> to tensor<64x32xf32>
    tile.print "d" %1 : tensor<64x32xf32>
    return
  }
}

// -----

// The same of a product that comes out of another: its rows should stay in one warp, which is how wgmma's lie. Shared as a
// square it lies otherwise, and each takes its own unit.
// CHECK-DAG: #[[OWN:.*]] = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
// CHECK-DAG: #[[SYNC:.*]] = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
// CHECK-LABEL: func.func @chained
// CHECK: tile.dot {{.*}} to tensor<64x64xf32, #[[OWN]]>
// CHECK: tile.dot {{.*}} to tensor<64x64xf32, #[[SYNC]]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @chained(%a: tensor<64x64xbf16>, %b: tensor<64x64xbf16>, %d: tensor<64x64xf32>, %e: tensor<64x64xf32>) {
    %0 = tile.dot %a, %b, %e : tensor<64x64xbf16>, tensor<64x64xbf16> to tensor<64x64xf32>
    %1 = tile.dot %0, %d, %e precision tf32 : tensor<64x64xf32>, tensor<64x64xf32> to tensor<64x64xf32>
    tile.print "d" %1 : tensor<64x64xf32>
    return
  }
}

// -----

// Both tiles are loads of a loop with stages: wgmma reads them where they are copied.  Rows that are aligned to an
// element only cannot be copied: mma.sync.
// CHECK-DAG: #[[GROUPS:.*]] = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=128>
// CHECK-LABEL: func.func @staged_loads
// CHECK: tile.dot {{.*}} to tensor<64x128xf32, #[[GROUPS]]>
// CHECK-LABEL: func.func @staged_loads_unaligned
// CHECK-NOT: tensor<64x128xf32, #[[GROUPS]]>
// CHECK: return
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @staged_loads(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32},
                          %c: tensor<64x128xf32>) attributes {tile.num_stages = 3 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x128xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %c) -> (tensor<64x128xf32>) : i32 {
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x128xbf16>, i32 -> tensor<64x128xbf16>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16>, tensor<64x128xbf16> to tensor<64x128xf32>
      scf.yield %d : tensor<64x128xf32>
    }
    tile.print "sum" %sum : tensor<64x128xf32>
    return
  }
  func.func @staged_loads_unaligned(%p: !tile.ptr<bf16>, %n: i32, %s: i32, %c: tensor<64x128xf32>) attributes {tile.num_stages = 3 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x128xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %c) -> (tensor<64x128xf32>) : i32 {
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x128xbf16>, i32 -> tensor<64x128xbf16>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16>, tensor<64x128xbf16> to tensor<64x128xf32>
      scf.yield %d : tensor<64x128xf32>
    }
    tile.print "sum" %sum : tensor<64x128xf32>
    return
  }
}

// -----

// The left tile of the first product comes from outside of the loop, that of the second is computed in it: it stays in
// registers, in the layout of an operand.  Twice as many columns take more than three quarters of the registers.
// CHECK-DAG: #[[SCORES:.*]] = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
// CHECK-DAG: #[[VALUES:.*]] = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=128>
// CHECK-DAG: #[[LEFT:.*]] = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=3, warpsPerCTA=[4,1], instrN=128>>
// CHECK-LABEL: func.func @chain
// CHECK: tile.dot {{.*}} to tensor<64x64xf32, #[[SCORES]]>
// CHECK: %[[P:.*]] = tile_gpu.convert_layout {{.*}} to tensor<64x64xbf16, #[[LEFT]]>
// CHECK: tile.dot %[[P]], {{.*}} to tensor<64x128xf32, #[[VALUES]]>
// CHECK-LABEL: func.func @too_many_sums
// CHECK-NOT: #[[VALUES]]>
// CHECK: return
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @chain(%q: tensor<64x128xbf16>, %p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32,
                   %s: i32 {tile.divisibility = 16 : i32}, %z: tensor<64x64xf32>, %c: tensor<64x128xf32>) attributes {tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x128xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %c) -> (tensor<64x128xf32>) : i32 {
      %x = tile.load_view %v[%i, %c0] : !tile.view<64x128xbf16>, i32 -> tensor<64x128xbf16>
      %t = tile.transpose %x [1, 0] : tensor<64x128xbf16> to tensor<128x64xbf16>
      %e = tile.dot %q, %t, %z : tensor<64x128xbf16>, tensor<128x64xbf16> to tensor<64x64xf32>
      %r = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xbf16>
      %y = tile.load_view %v[%i, %c64] : !tile.view<64x128xbf16>, i32 -> tensor<64x128xbf16>
      %d = tile.dot %r, %y, %acc : tensor<64x64xbf16>, tensor<64x128xbf16> to tensor<64x128xf32>
      scf.yield %d : tensor<64x128xf32>
    }
    tile.print "sum" %sum : tensor<64x128xf32>
    return
  }
  func.func @too_many_sums(%q: tensor<128x128xbf16>, %p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32,
                   %s: i32 {tile.divisibility = 16 : i32}, %z: tensor<128x128xf32>, %c: tensor<128x128xf32>) attributes {tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<128x128xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c128 iter_args(%acc = %c) -> (tensor<128x128xf32>) : i32 {
      %x = tile.load_view %v[%i, %c0] : !tile.view<128x128xbf16>, i32 -> tensor<128x128xbf16>
      %t = tile.transpose %x [1, 0] : tensor<128x128xbf16> to tensor<128x128xbf16>
      %e = tile.dot %q, %t, %z : tensor<128x128xbf16>, tensor<128x128xbf16> to tensor<128x128xf32>
      %r = arith.truncf %e : tensor<128x128xf32> to tensor<128x128xbf16>
      %y = tile.load_view %v[%i, %c128] : !tile.view<128x128xbf16>, i32 -> tensor<128x128xbf16>
      %d = tile.dot %r, %y, %acc : tensor<128x128xbf16>, tensor<128x128xbf16> to tensor<128x128xf32>
      scf.yield %d : tensor<128x128xf32>
    }
    tile.print "sum" %sum : tensor<128x128xf32>
    return
  }
}
