// RUN: kiln-opt %s --kiln-carry-pipelines | FileCheck %s

// Pipelines that stay as they are.
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, s1 * 64), strides = () -> (128), box = [64, 64], swizzle = "128B">
#tma = #tile_gpu.tma<swizzle=128>
!pipe = !tile_gpu.pipeline<2, !tile_gpu.buffer<64x64xbf16, #tma>>

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
}
