// RUN: kiln-opt %s --kiln-assign-layouts --kiln-optimize-layouts | FileCheck %s --implicit-check-not=convert_layout

// Four rows of 256 a program: row statistics live in slices, no conversion.
module attributes {tile_gpu.target = "sm_80"} {
  // CHECK-LABEL: func.func @softmax_rows
  func.func @softmax_rows(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %m: i32, %n: i32 {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_warps = 4 : i32} {
    %pid = tile.program_id x
    %r0 = arith.constant 4 : i32
    %first = arith.muli %pid, %r0 : i32
    %ri = tile.range 0 to 4 : tensor<4xi32>
    %firsts = tile.splat %first : i32 to tensor<4xi32>
    %rows = arith.addi %firsts, %ri : tensor<4xi32>
    %ms = tile.splat %m : i32 to tensor<4xi32>
    %rowok = arith.cmpi slt, %rows, %ms : tensor<4xi32>
    %ok4 = tile.expand_dims %rowok {axis = 1 : i32} : tensor<4xi1> to tensor<4x1xi1>
    %okr = tile.broadcast %ok4 : tensor<4x1xi1> to tensor<4x256xi1>
    %strides = tile.splat %stride : i32 to tensor<4xi32>
    %rowo = arith.muli %rows, %strides : tensor<4xi32>
    %rowo2 = tile.expand_dims %rowo {axis = 1 : i32} : tensor<4xi32> to tensor<4x1xi32>
    %rowob = tile.broadcast %rowo2 : tensor<4x1xi32> to tensor<4x256xi32>
    %cols = tile.range 0 to 256 : tensor<256xi32>
    %cols2 = tile.expand_dims %cols {axis = 0 : i32} : tensor<256xi32> to tensor<1x256xi32>
    %colsb = tile.broadcast %cols2 : tensor<1x256xi32> to tensor<4x256xi32>
    %o = arith.addi %rowob, %colsb : tensor<4x256xi32>
    %ns = tile.splat %n : i32 to tensor<4x256xi32>
    %colok = arith.cmpi slt, %colsb, %ns : tensor<4x256xi32>
    %ok = arith.andi %okr, %colok : tensor<4x256xi1>
    %xs = tile.splat %x : !tile.ptr<f32> to tensor<4x256x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %o : tensor<4x256x!tile.ptr<f32>>, tensor<4x256xi32>
    %low = arith.constant dense<0xFF800000> : tensor<4x256xf32>
    // CHECK: tile.load {{.*}} : tensor<4x256x!tile.ptr<f32>, #blocked>
    %v = tile.load %xp mask %ok other %low : tensor<4x256x!tile.ptr<f32>>
    %max = tile.reduce(%v) {axis = 1 : i32} : tensor<4x256xf32> to tensor<4xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maximumf %a, %b : f32
      tile.yield %c : f32
    }
    %max2 = tile.expand_dims %max {axis = 1 : i32} : tensor<4xf32> to tensor<4x1xf32>
    %maxs = tile.broadcast %max2 : tensor<4x1xf32> to tensor<4x256xf32>
    %d = arith.subf %v, %maxs : tensor<4x256xf32>
    %e = math.exp %d : tensor<4x256xf32>
    %sum = tile.reduce(%e) {axis = 1 : i32} : tensor<4x256xf32> to tensor<4xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %sum2 = tile.expand_dims %sum {axis = 1 : i32} : tensor<4xf32> to tensor<4x1xf32>
    %sums = tile.broadcast %sum2 : tensor<4x1xf32> to tensor<4x256xf32>
    %q = arith.divf %e, %sums : tensor<4x256xf32>
    %ys = tile.splat %y : !tile.ptr<f32> to tensor<4x256x!tile.ptr<f32>>
    %yp = tile.addptr %ys, %o : tensor<4x256x!tile.ptr<f32>>, tensor<4x256xi32>
    tile.store %yp, %q mask %ok : tensor<4x256x!tile.ptr<f32>>
    return
  }
}
