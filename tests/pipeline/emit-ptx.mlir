// RUN: kiln-opt %s --kiln-stage-tile=target=sm_80 | kiln-opt --kiln-stage-tile-gpu | kiln-opt --kiln-stage-lowering | kiln-opt --emit-ptx | FileCheck %s
// RUN: kiln-opt %s --kiln-stage-tile=target=sm_80 --kiln-stage-tile-gpu --kiln-stage-lowering --emit-ptx --line-info | FileCheck %s --check-prefixes=CHECK,LINES

// CHECK: .target sm_80
// CHECK: .visible .entry fill(
// LINES: .loc 1 [[@LINE+8]]
// CHECK: st.global
// CHECK: ret;
// CHECK-NOT: module
func.func @fill(%out: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %one = arith.constant dense<1.0> : tensor<128xf32>
  %i = tile.range 0 to 128 : tensor<128xi32>
  %base = tile.splat %out : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>>
  %to = tile.addptr %base, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  tile.store %to, %one : tensor<128x!tile.ptr<f32>>
  return
}
