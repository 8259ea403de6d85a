// RUN: kiln-opt %s --kiln-expand-shared | FileCheck %s

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>

module attributes {tile_gpu.target = "sm_90a"} {

// A tile and its transpose: stored once, where it is computed, and seen both ways.  The sum starts from zero.
// CHECK-LABEL: @once
// CHECK: %[[X:.*]] = arith.addf
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xf16, #tma>
// CHECK: tile_gpu.local_store %[[X]], %[[B]]
// CHECK: %[[T:.*]] = tile_gpu.local_transpose %[[B]] [1, 0]
// CHECK: tile_gpu.warpgroup_dot %[[T]], %[[B]], %{{.*}} {fromZero}
// CHECK: tile_gpu.warpgroup_dot %[[B]], %[[T]], %{{.*}} :
// CHECK-NOT: local_store
// CHECK: return
func.func @once(%y: tensor<64x64xf16, #row>) -> tensor<64x64xf32, #acc> {
  %x = arith.addf %y, %y : tensor<64x64xf16, #row>
  %t = tile.transpose %x [1, 0] : tensor<64x64xf16, #row> to tensor<64x64xf16, #turned>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %a = tile.dot %t, %x, %zero : tensor<64x64xf16, #turned>, tensor<64x64xf16, #row> to tensor<64x64xf32, #acc>
  %b = tile.dot %x, %t, %a : tensor<64x64xf16, #row>, tensor<64x64xf16, #turned> to tensor<64x64xf32, #acc>
  return %b : tensor<64x64xf32, #acc>
}

// A tile in the result's layout is the left operand as it is, and is kept until the product is done.  In a loop with stages
// what the first product gives is needed at once, what the second gives in the arms: the waits stand there, the first one
// leaves the second product in flight.
// CHECK-LABEL: @late
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[P:.*]] = %{{.*}})
// CHECK: %[[S:.*]] = tile_gpu.warpgroup_dot %{{.*}} : !tile_gpu.buffer<64x64xf16, #tma>, !tile_gpu.buffer<64x64xf16, #tma>, !tile_gpu.pending
// CHECK: %[[O:.*]] = tile_gpu.warpgroup_dot %[[P]], %{{.*}} : tensor<64x64xf16, #[[ACC:mma[0-9]*]]>, !tile_gpu.buffer<64x64xf16, #tma>, !tile_gpu.pending
// CHECK: %[[X:.*]] = tile_gpu.warpgroup_wait %[[S]] leave 1 : tensor<64x64xf32
// CHECK: math.exp2 %[[X]]
// CHECK: scf.if
// CHECK-NEXT: %[[A:.*]] = tile_gpu.warpgroup_wait %[[O]] keeping %[[P]] : tensor<64x64xf16, #[[ACC]]> : tensor<64x64xf32
// CHECK: arith.mulf %[[A]]
// CHECK: } else {
// CHECK-NEXT: %[[B:.*]] = tile_gpu.warpgroup_wait %[[O]] keeping %[[P]] : tensor<64x64xf16, #[[ACC]]> : tensor<64x64xf32
// CHECK-NEXT: scf.yield %[[B]]
func.func @late(%p: tensor<64x64xf16, #acc>, %x: tensor<64x64xf16, #row>, %o: tensor<64x64xf32, #acc>, %which: i1, %n: i32) -> tensor<64x64xf32, #acc> attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %z:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sums = %o, %left = %p) -> (tensor<64x64xf32, #acc>, tensor<64x64xf16, #acc>) : i32 {
    %s = tile.dot %x, %x, %zero : tensor<64x64xf16, #row>, tensor<64x64xf16, #row> to tensor<64x64xf32, #acc>
    %d = tile.dot %left, %x, %sums : tensor<64x64xf16, #acc>, tensor<64x64xf16, #row> to tensor<64x64xf32, #acc>
    %e = math.exp2 %s : tensor<64x64xf32, #acc>
    %f = arith.truncf %e : tensor<64x64xf32, #acc> to tensor<64x64xf16, #acc>
    %r = scf.if %which -> (tensor<64x64xf32, #acc>) {
      %m = arith.mulf %d, %d : tensor<64x64xf32, #acc>
      scf.yield %m : tensor<64x64xf32, #acc>
    } else {
      scf.yield %d : tensor<64x64xf32, #acc>
    }
    scf.yield %r, %f : tensor<64x64xf32, #acc>, tensor<64x64xf16, #acc>
  }
  return %z#0 : tensor<64x64xf32, #acc>
}

// A right tile that a loop carries for its product and one after the loop: rounds store the next one's in the other of two
// buffers.
// CHECK-LABEL: @inTurn
// CHECK: %[[BOTH:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<[2] x 64x64xf16, #[[COLUMNS:tma[0-9]*]]>
// CHECK: %[[FIRST:.*]] = tile_gpu.local_subview %[[BOTH]][%c0_i32{{.*}}]
// CHECK: tile_gpu.local_store %{{.*}}, %[[FIRST]]
// CHECK: %[[LOOP:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[N:.*]] = %c0_i32{{.*}})
// CHECK: %[[NOW:.*]] = tile_gpu.local_subview %[[BOTH]][%[[N]]]
// CHECK: tile_gpu.warpgroup_dot %{{.*}}, %[[NOW]]
// CHECK: %[[NEXT:.*]] = arith.addf %{{.*}} : tensor<64x64xf16
// CHECK: %[[UP:.*]] = arith.addi %[[N]]
// CHECK: %[[OTHER:.*]] = arith.select %{{.*}}, %{{.*}}, %[[UP]]
// CHECK: %[[THERE:.*]] = tile_gpu.local_subview %[[BOTH]][%[[OTHER]]]
// CHECK: tile_gpu.local_store %[[NEXT]], %[[THERE]]
// CHECK: scf.yield {{.*}}, %[[OTHER]]
// CHECK: %[[LAST:.*]] = tile_gpu.local_subview %[[BOTH]][%[[LOOP]]#2]
// CHECK: tile_gpu.warpgroup_dot %{{.*}}, %[[LAST]]
func.func @inTurn(%p: tensor<64x64xf16, #acc>, %x: tensor<64x64xf16, #row>, %n: i32) -> tensor<64x64xf32, #acc> attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero, %y = %x) -> (tensor<64x64xf32, #acc>, tensor<64x64xf16, #row>) : i32 {
    %d = tile.dot %p, %y, %o : tensor<64x64xf16, #acc>, tensor<64x64xf16, #row> to tensor<64x64xf32, #acc>
    %z = arith.addf %x, %x : tensor<64x64xf16, #row>
    scf.yield %d, %z : tensor<64x64xf32, #acc>, tensor<64x64xf16, #row>
  }
  %e = tile.dot %p, %r#1, %r#0 : tensor<64x64xf16, #acc>, tensor<64x64xf16, #row> to tensor<64x64xf32, #acc>
  return %e : tensor<64x64xf32, #acc>
}

// A tile from outside of a loop with stages is stored once.
// CHECK-LABEL: @outside
// CHECK: tile_gpu.local_store
// CHECK: scf.for
// CHECK: tile_gpu.local_store
// CHECK-NOT: tile_gpu.local_store
// CHECK: scf.yield
func.func @outside(%q: tensor<64x64xf16, #row>, %x: tensor<64x64xf16, #row>, %n: i32) -> tensor<64x64xf32, #acc> attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero, %y = %x) -> (tensor<64x64xf32, #acc>, tensor<64x64xf16, #row>) : i32 {
    %d = tile.dot %q, %y, %o : tensor<64x64xf16, #row>, tensor<64x64xf16, #row> to tensor<64x64xf32, #acc>
    %z = arith.addf %y, %y : tensor<64x64xf16, #row>
    scf.yield %d, %z : tensor<64x64xf32, #acc>, tensor<64x64xf16, #row>
  }
  return %r#0 : tensor<64x64xf32, #acc>
}
}
