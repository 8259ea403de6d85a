// RUN: kiln-opt %s --kiln-assign-layouts --kiln-optimize-layouts | FileCheck %s --implicit-check-not=convert_layout

// One row of 1024 a program: no conversion.
module attributes {tile_gpu.target = "sm_80"} {
  // CHECK-LABEL: func.func @softmax
  func.func @softmax(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}, %stride: i64 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_warps = 4 : i32} {
    %row = tile.program_id x
    %row64 = arith.extsi %row : i32 to i64
    %start = arith.muli %row64, %stride : i64
    %xrow = tile.addptr %x, %start : !tile.ptr<f32>, i64
    %yrow = tile.addptr %y, %start : !tile.ptr<f32>, i64
    %o = tile.range 0 to 1024 : tensor<1024xi32>
    %ns = tile.splat %n : i32 to tensor<1024xi32>
    %m = arith.cmpi slt, %o, %ns : tensor<1024xi32>
    %xs = tile.splat %xrow : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %o : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    %low = arith.constant dense<0xFF800000> : tensor<1024xf32>
    // CHECK: tile.load {{.*}}, #blocked>
    %v = tile.load %xp mask %m other %low : tensor<1024x!tile.ptr<f32>>
    %max = tile.reduce(%v) {axis = 0 : i32} : tensor<1024xf32> to f32 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maximumf %a, %b : f32
      tile.yield %c : f32
    }
    %maxs = tile.splat %max : f32 to tensor<1024xf32>
    %d = arith.subf %v, %maxs : tensor<1024xf32>
    %e = math.exp %d : tensor<1024xf32>
    %sum = tile.reduce(%e) {axis = 0 : i32} : tensor<1024xf32> to f32 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %sums = tile.splat %sum : f32 to tensor<1024xf32>
    %q = arith.divf %e, %sums : tensor<1024xf32>
    %ys = tile.splat %yrow : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
    %yp = tile.addptr %ys, %o : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    tile.store %yp, %q mask %m : tensor<1024x!tile.ptr<f32>>
    return
  }
}
