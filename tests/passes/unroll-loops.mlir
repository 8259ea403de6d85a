// RUN: kiln-opt %s --kiln-unroll-loops | FileCheck %s
// RUN: kiln-opt %s --kiln-unroll-loops --canonicalize | FileCheck %s --check-prefix=CANONICAL

// Ten rounds, four at once: two of four copies, and two.  The loop keeps its stages, the rest is not pipelined.
// CHECK-LABEL: func.func @known
// CHECK: %[[A:.*]] = scf.for %{{.*}} = %c0_i32{{.*}} to %c8_i32{{.*}} step %c4_i32{{.*}} iter_args
// CHECK-COUNT-4: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: } {tile.num_stages = 3 : i32}
// CHECK: %[[B:.*]] = scf.for %{{.*}} = %c8_i32{{.*}} to %c10_i32{{.*}} step %c1_i32{{.*}} iter_args(%{{.*}} = %[[A]])
// CHECK-COUNT-1: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: } {tile.num_stages = 1 : i32}
// CHECK: return %[[B]]
func.func @known(%x: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c10 = arith.constant 10 : i32
  %r = scf.for %i = %c0 to %c10 step %c1 iter_args(%y = %x) -> f32 : i32 {
    %z = arith.mulf %y, %x : f32
    scf.yield %z : f32
  } {tile.num_stages = 3 : i32, tile.unroll = 4 : i32}
  return %r : f32
}

// As many rounds as copies, one more, fewer, none: straight code; a step; 64 bits to their ends.
// CHECK-LABEL: func.func @straight
// CHECK-NOT: scf.for
// CHECK-COUNT-4: tile.print "a"
// CHECK-NOT: tile.print "a"
// CHECK-COUNT-4: tile.print "b"
// CHECK-NOT: scf.for
// CHECK: tile.print "b"
// CHECK-NOT: "none"
// CHECK: scf.for %{{.*}} = %{{.*}} to %c10_i32{{.*}} step
// CHECK-NEXT: tile.print "few"
// CHECK-NOT: scf.for
// CHECK-COUNT-2: tile.print "wide"
// CHECK: return
func.func @straight() {
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant 3 : i32
  %c10 = arith.constant 10 : i32
  %c12 = arith.constant 12 : i32
  %c13 = arith.constant 13 : i32
  %c4 = arith.constant 4 : i32
  scf.for %i = %c0 to %c10 step %c3 : i32 {
    tile.print "a" %i : i32
  } {tile.unroll = 4 : i32}
  scf.for %i = %c0 to %c13 step %c3 : i32 {
    tile.print "b" %i : i32
  } {tile.unroll = 4 : i32}
  scf.for %i = %c10 to %c0 step %c3 : i32 {
    tile.print "none" %i : i32
  } {tile.unroll = 4 : i32}
  scf.for %i = %c4 to %c10 step %c3 : i32 {
    tile.print "few" %i : i32
  } {tile.unroll = 4 : i32}
  %least = arith.constant -9223372036854775808 : i64
  %most = arith.constant 9223372036854775807 : i64
  scf.for %i = %least to %most step %most : i64 {
    tile.print "wide" %i : i64
  } {tile.unroll = 3 : i32}
  return
}

// Bounds that the launch decides: the end of the first loop does not wrap round; the second starts where it ends.
// CHECK-LABEL: func.func @unknown
// CHECK-SAME: (%[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %[[STEP:.*]]: i64
// CHECK: %[[SPAN:.*]] = arith.muli %[[STEP]], %c3_i64
// CHECK: %[[LEAST:.*]] = arith.addi %[[SPAN]], %c-9223372036854775808_i64
// CHECK: %[[MAX:.*]] = arith.maxsi %[[END]], %[[LEAST]]
// CHECK: %[[BOUND:.*]] = arith.subi %[[MAX]], %[[SPAN]]
// CHECK: %[[FEW:.*]] = arith.cmpi sle, %[[STEP]], %c2305843009213693951_i64
// CHECK: %[[LAST:.*]] = arith.select %[[FEW]], %[[BOUND]], %c-9223372036854775808_i64
// CHECK: %[[BY:.*]] = arith.muli %[[STEP]], %c4_i64
// CHECK: %[[WHOLE:.*]]:2 = scf.for %[[I:.*]] = %[[BEGIN]] to %[[LAST]] step %[[BY]] iter_args(%[[Y:.*]] = %{{.*}}, %{{.*}} = %[[BEGIN]])
// CHECK-COUNT-4: arith.mulf
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %[[BY]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
// CHECK: scf.for %{{.*}} = %[[WHOLE]]#1 to %[[END]] step %[[STEP]] iter_args(%{{.*}} = %[[WHOLE]]#0)
// CHECK-COUNT-1: arith.mulf
func.func @unknown(%begin: i64, %end: i64, %step: i64, %x: f32) -> f32 {
  %r = scf.for %i = %begin to %end step %step iter_args(%y = %x) -> f32 : i64 {
    %z = arith.mulf %y, %x : f32
    scf.yield %z : f32
  } {tile.unroll = 4 : i32}
  return %r : f32
}

// Inner loops first: 2 x 3 copies; a loop of one copy is left alone.
// CHECK-LABEL: func.func @nested
// CANONICAL-LABEL: func.func @nested
// CANONICAL: scf.for
// CANONICAL-COUNT-6: tile.print "inner"
// CANONICAL: scf.for
// CANONICAL-COUNT-3: tile.print "inner"
// CANONICAL: scf.for
// CANONICAL-NEXT: tile.print "alone"
// CANONICAL-NOT: tile.unroll
func.func @nested(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %c3 step %c1 : i32 {
      tile.print "inner" %i, %j : i32, i32
    } {tile.unroll = 3 : i32}
  } {tile.unroll = 2 : i32}
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile.print "alone" %i : i32
  } {tile.unroll = 1 : i32}
  return
}
