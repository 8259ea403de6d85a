// RUN: kiln-opt %s --kiln-assign-layouts --kiln-optimize-layouts | FileCheck %s

// y[j, i] = x[i, j]: rows are read and written along their contiguous dimensions, and one conversion lies between; index
// arithmetic and masks are computed in both layouts.
module attributes {tile_gpu.target = "sm_80"} {
  // CHECK-LABEL: func.func @transpose
  // CHECK: %[[V:.*]] = tile.load {{.*}} : tensor<64x64x!tile.ptr<f32>, #[[$R:.*]]>
  // CHECK: %[[W:.*]] = tile_gpu.convert_layout %[[V]] : tensor<64x64xf32, #[[$R]]> to tensor<64x64xf32, #[[$C:.*]]>
  // CHECK-NOT: convert_layout
  // CHECK: tile.store {{.*}}, %[[W]] {{.*}} : tensor<64x64x!tile.ptr<f32>, #[[$C]]>
  func.func @transpose(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %m: i32 {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}, %sx: i32 {tile.divisibility = 16 : i32}, %sy: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_warps = 4 : i32} {
    %pi = tile.program_id x
    %pj = tile.program_id y
    %c64 = arith.constant 64 : i32
    %i0 = arith.muli %pi, %c64 : i32
    %j0 = arith.muli %pj, %c64 : i32
    %r = tile.range 0 to 64 : tensor<64xi32>
    %i0s = tile.splat %i0 : i32 to tensor<64xi32>
    %j0s = tile.splat %j0 : i32 to tensor<64xi32>
    %i = arith.addi %i0s, %r : tensor<64xi32>
    %j = arith.addi %j0s, %r : tensor<64xi32>
    %sxs = tile.splat %sx : i32 to tensor<64xi32>
    %sys = tile.splat %sy : i32 to tensor<64xi32>
    %isx = arith.muli %i, %sxs : tensor<64xi32>
    %jsy = arith.muli %j, %sys : tensor<64xi32>
    %ie = tile.expand_dims %i {axis = 1 : i32} : tensor<64xi32> to tensor<64x1xi32>
    %ib = tile.broadcast %ie : tensor<64x1xi32> to tensor<64x64xi32>
    %je = tile.expand_dims %j {axis = 0 : i32} : tensor<64xi32> to tensor<1x64xi32>
    %jb = tile.broadcast %je : tensor<1x64xi32> to tensor<64x64xi32>
    %isxe = tile.expand_dims %isx {axis = 1 : i32} : tensor<64xi32> to tensor<64x1xi32>
    %isxb = tile.broadcast %isxe : tensor<64x1xi32> to tensor<64x64xi32>
    %jsye = tile.expand_dims %jsy {axis = 0 : i32} : tensor<64xi32> to tensor<1x64xi32>
    %jsyb = tile.broadcast %jsye : tensor<1x64xi32> to tensor<64x64xi32>
    %ms = tile.splat %m : i32 to tensor<64x64xi32>
    %ns = tile.splat %n : i32 to tensor<64x64xi32>
    %oki = arith.cmpi slt, %ib, %ms : tensor<64x64xi32>
    %okj = arith.cmpi slt, %jb, %ns : tensor<64x64xi32>
    %ok = arith.andi %oki, %okj : tensor<64x64xi1>
    %xo = arith.addi %isxb, %jb : tensor<64x64xi32>
    %xs = tile.splat %x : !tile.ptr<f32> to tensor<64x64x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %xo : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
    %v = tile.load %xp mask %ok : tensor<64x64x!tile.ptr<f32>>
    %yo = arith.addi %jsyb, %ib : tensor<64x64xi32>
    %ys = tile.splat %y : !tile.ptr<f32> to tensor<64x64x!tile.ptr<f32>>
    %yp = tile.addptr %ys, %yo : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
    tile.store %yp, %v mask %ok : tensor<64x64x!tile.ptr<f32>>
    return
  }
}
