// RUN: kiln-opt %s --kiln-assign-layouts | FileCheck %s --implicit-check-not=convert_layout

// One layout for an elementwise kernel: four neighbours a thread, 16 bytes, and no conversion.
// CHECK: #[[$L:.*]] = #tile_gpu.blocked<sizePerThread=[4], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
// CHECK-NOT: #tile_gpu.blocked
// CHECK-LABEL: func.func @add
module attributes {tile_gpu.target = "sm_80"} {
  func.func @add(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32},
                 %o: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_warps = 4 : i32} {
    %pid = tile.program_id x
    %c = arith.constant 1024 : i32
    %start = arith.muli %pid, %c : i32
    %s = tile.splat %start : i32 to tensor<1024xi32>
    %r = tile.range 0 to 1024 : tensor<1024xi32>
    %off = arith.addi %s, %r : tensor<1024xi32>
    %ns = tile.splat %n : i32 to tensor<1024xi32>
    %m = arith.cmpi slt, %off, %ns : tensor<1024xi32>
    %xs = tile.splat %x : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %off : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // CHECK: tile.load {{.*}} : tensor<1024x!tile.ptr<f32>, #[[$L]]>
    %a = tile.load %xp mask %m : tensor<1024x!tile.ptr<f32>>
    %ys = tile.splat %y : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
    %yp = tile.addptr %ys, %off : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // CHECK: tile.load {{.*}} : tensor<1024x!tile.ptr<f32>, #[[$L]]>
    %b = tile.load %yp mask %m : tensor<1024x!tile.ptr<f32>>
    // CHECK: arith.addf {{.*}} : tensor<1024xf32, #[[$L]]>
    %z = arith.addf %a, %b : tensor<1024xf32>
    %os = tile.splat %o : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
    %op = tile.addptr %os, %off : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // CHECK: tile.store {{.*}} : tensor<1024x!tile.ptr<f32>, #[[$L]]>
    tile.store %op, %z mask %m : tensor<1024x!tile.ptr<f32>>
    return
  }
}
