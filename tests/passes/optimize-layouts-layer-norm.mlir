// RUN: kiln-opt %s --kiln-assign-layouts --kiln-optimize-layouts | FileCheck %s --implicit-check-not=convert_layout

// Four rows of 256 a program, weight and bias of 256: they are loaded in the slice in which they are used, so that no
// conversion is left.
// CHECK: #[[$S:.*]] = #tile_gpu.slice<dim=0, parent=blocked<sizePerThread=[1,4]
module attributes {tile_gpu.target = "sm_80"} {
  // CHECK-LABEL: func.func @layer_norm
  func.func @layer_norm(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %w: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %b: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %invn: f32, %eps: f32)
      attributes {tile.kernel, tile.num_warps = 4 : i32} {
    %pid = tile.program_id x
    %r0 = arith.constant 4 : i32
    %first = arith.muli %pid, %r0 : i32
    %ri = tile.range 0 to 4 : tensor<4xi32>
    %firsts = tile.splat %first : i32 to tensor<4xi32>
    %rows = arith.addi %firsts, %ri : tensor<4xi32>
    %strides = tile.splat %stride : i32 to tensor<4xi32>
    %rowo = arith.muli %rows, %strides : tensor<4xi32>
    %rowo2 = tile.expand_dims %rowo {axis = 1 : i32} : tensor<4xi32> to tensor<4x1xi32>
    %rowob = tile.broadcast %rowo2 : tensor<4x1xi32> to tensor<4x256xi32>
    %cols = tile.range 0 to 256 : tensor<256xi32>
    %ns = tile.splat %n : i32 to tensor<256xi32>
    %colok = arith.cmpi slt, %cols, %ns : tensor<256xi32>
    %cols2 = tile.expand_dims %cols {axis = 0 : i32} : tensor<256xi32> to tensor<1x256xi32>
    %colsb = tile.broadcast %cols2 : tensor<1x256xi32> to tensor<4x256xi32>
    %colok2 = tile.expand_dims %colok {axis = 0 : i32} : tensor<256xi1> to tensor<1x256xi1>
    %ok = tile.broadcast %colok2 : tensor<1x256xi1> to tensor<4x256xi1>
    %o = arith.addi %rowob, %colsb : tensor<4x256xi32>
    %xs = tile.splat %x : !tile.ptr<f32> to tensor<4x256x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %o : tensor<4x256x!tile.ptr<f32>>, tensor<4x256xi32>
    %v = tile.load %xp mask %ok : tensor<4x256x!tile.ptr<f32>>
    %sum = tile.reduce(%v) {axis = 1 : i32} : tensor<4x256xf32> to tensor<4xf32> {
    ^bb0(%a: f32, %bb: f32):
      %c = arith.addf %a, %bb : f32
      tile.yield %c : f32
    }
    %invs = tile.splat %invn : f32 to tensor<4xf32>
    %mean = arith.mulf %sum, %invs : tensor<4xf32>
    %mean2 = tile.expand_dims %mean {axis = 1 : i32} : tensor<4xf32> to tensor<4x1xf32>
    %means = tile.broadcast %mean2 : tensor<4x1xf32> to tensor<4x256xf32>
    %d0 = arith.subf %v, %means : tensor<4x256xf32>
    %zero = arith.constant dense<0.0> : tensor<4x256xf32>
    %d = arith.select %ok, %d0, %zero : tensor<4x256xi1>, tensor<4x256xf32>
    %dd = arith.mulf %d, %d : tensor<4x256xf32>
    %var0 = tile.reduce(%dd) {axis = 1 : i32} : tensor<4x256xf32> to tensor<4xf32> {
    ^bb0(%a: f32, %bb: f32):
      %c = arith.addf %a, %bb : f32
      tile.yield %c : f32
    }
    %var = arith.mulf %var0, %invs : tensor<4xf32>
    %epss = tile.splat %eps : f32 to tensor<4xf32>
    %vare = arith.addf %var, %epss : tensor<4xf32>
    %rstd = math.rsqrt %vare : tensor<4xf32>
    %rstd2 = tile.expand_dims %rstd {axis = 1 : i32} : tensor<4xf32> to tensor<4x1xf32>
    %rstds = tile.broadcast %rstd2 : tensor<4x1xf32> to tensor<4x256xf32>
    %norm = arith.mulf %d, %rstds : tensor<4x256xf32>
    // CHECK-COUNT-2: tile.load {{.*}} : tensor<256x!tile.ptr<f32>, #[[$S]]>
    %ws = tile.splat %w : !tile.ptr<f32> to tensor<256x!tile.ptr<f32>>
    %wp = tile.addptr %ws, %cols : tensor<256x!tile.ptr<f32>>, tensor<256xi32>
    %wv = tile.load %wp mask %colok : tensor<256x!tile.ptr<f32>>
    %w2 = tile.expand_dims %wv {axis = 0 : i32} : tensor<256xf32> to tensor<1x256xf32>
    %wb = tile.broadcast %w2 : tensor<1x256xf32> to tensor<4x256xf32>
    %bs = tile.splat %b : !tile.ptr<f32> to tensor<256x!tile.ptr<f32>>
    %bp = tile.addptr %bs, %cols : tensor<256x!tile.ptr<f32>>, tensor<256xi32>
    %bv = tile.load %bp mask %colok : tensor<256x!tile.ptr<f32>>
    %b2 = tile.expand_dims %bv {axis = 0 : i32} : tensor<256xf32> to tensor<1x256xf32>
    %bbc = tile.broadcast %b2 : tensor<1x256xf32> to tensor<4x256xf32>
    %scaled = arith.mulf %norm, %wb : tensor<4x256xf32>
    %res = arith.addf %scaled, %bbc : tensor<4x256xf32>
    %ys = tile.splat %y : !tile.ptr<f32> to tensor<4x256x!tile.ptr<f32>>
    %yp = tile.addptr %ys, %o : tensor<4x256x!tile.ptr<f32>>, tensor<4x256xi32>
    tile.store %yp, %res mask %ok : tensor<4x256x!tile.ptr<f32>>
    return
  }
}
