// RUN: kiln-opt %s -verify-diagnostics --kiln-carry-pipelines | FileCheck %s

// Pipelines that stay as they are.
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
!pipe = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x64xbf16, #tma>>
!three = !tile_gpu.pipeline<3, !tile_gpu.buffer<64x64xbf16, #tma>>
!large = !tile_gpu.pipeline<2, !tile_gpu.buffer<256x128xbf16, #tma>>

module attributes {tile_gpu.target = "sm_90a"} {

// No loop over programs: it begins at another dimension's.
// CHECK-LABEL: @other_axis
// CHECK: scf.for {{.*}} : i32 {
// CHECK-NEXT: tile_gpu.pipeline bulk
func.func @other_axis(%n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %first = tile.program_id y
  %step = tile.num_programs x
  scf.for %t = %first to %n step %step : i32 {
    %p = tile_gpu.pipeline bulk : !pipe
    tile_gpu.drain %p : !pipe
  }
  return
}

// Not by the copy engine.
// CHECK-LABEL: @threads
// CHECK: scf.for {{.*}} : i32 {
// CHECK-NEXT: tile_gpu.pipeline :
func.func @threads(%n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %first = tile.program_id x
  %step = tile.num_programs x
  scf.for %t = %first to %n step %step : i32 {
    %p = tile_gpu.pipeline : !pipe
    tile_gpu.drain %p : !pipe
  }
  return
}

// It does not end in every round's own block.
// CHECK-LABEL: @inside
// CHECK: scf.for {{.*}} : i32 {
// CHECK-NEXT: scf.if
// CHECK-NEXT: tile_gpu.pipeline bulk
func.func @inside(%n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %first = tile.program_id x
  %step = tile.num_programs x
  %c = arith.constant true
  scf.for %t = %first to %n step %step : i32 {
    scf.if %c {
      %p = tile_gpu.pipeline bulk : !pipe
      tile_gpu.drain %p : !pipe
    }
  }
  return
}

// Two of three slots: 36 states in which a round may begin.
// CHECK-LABEL: @many_states
// CHECK: scf.for {{.*}} : i32 {
// CHECK-NEXT: tile_gpu.pipeline bulk
// CHECK: tile_gpu.pipeline bulk
func.func @many_states(%n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %first = tile.program_id x
  %step = tile.num_programs x
  scf.for %t = %first to %n step %step : i32 {
    %p = tile_gpu.pipeline bulk : !three
    tile_gpu.drain %p : !three
    // expected-remark @+1 {{begins anew with each program: with more slots the proof does not follow it through two loops}}
    %q = tile_gpu.pipeline bulk : !three
    tile_gpu.drain %q : !three
  }
  return
}

// Next to each other they do not fit.
// CHECK-LABEL: @many_bytes
// CHECK: scf.for {{.*}} : i32 {
// CHECK-NEXT: tile_gpu.pipeline bulk
// CHECK: tile_gpu.pipeline bulk
func.func @many_bytes(%n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %first = tile.program_id x
  %step = tile.num_programs x
  scf.for %t = %first to %n step %step : i32 {
    %p = tile_gpu.pipeline bulk : !large
    tile_gpu.drain %p : !large
    // expected-remark @+1 {{begins anew with each program: all pipelines of the loop do not fit into shared memory next to each other}}
    %q = tile_gpu.pipeline bulk : !large
    tile_gpu.drain %q : !large
  }
  return
}

// A slot has a number.
// CHECK-LABEL: @numbered
// CHECK: scf.for {{.*}} : i32 {
// CHECK-NEXT: tile_gpu.pipeline bulk
func.func @numbered(%n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %first = tile.program_id x
  %step = tile.num_programs x
  scf.for %t = %first to %n step %step : i32 {
    %p = tile_gpu.pipeline bulk : !pipe
    %s = tile_gpu.slots %p at %c0 : !pipe
    tile_gpu.drain %p : !pipe
  }
  return
}

// What lower-pipelines refuses: released without a wait, ended twice.
// CHECK-LABEL: @wrong
// CHECK: scf.for {{.*}} : i32 {
// CHECK-NEXT: tile_gpu.pipeline bulk
// CHECK: tile_gpu.pipeline bulk
func.func @wrong(%n: i32) attributes {tile.kernel, tile.num_warps = 8 : i32} {
  %first = tile.program_id x
  %step = tile.num_programs x
  scf.for %t = %first to %n step %step : i32 {
    %p = tile_gpu.pipeline bulk : !pipe
    %q = tile_gpu.release %p : !pipe
    tile_gpu.drain %q : !pipe
    %r = tile_gpu.pipeline bulk : !pipe
    tile_gpu.drain %r : !pipe
    tile_gpu.drain %r : !pipe
  }
  return
}
}
