// RUN: kiln-opt %s --kiln-verify-stage=stage=tile | FileCheck %s

// CHECK-LABEL: func.func @table
func.func @table(%x: f32, %n: i32) attributes {tile.kernel} {
  %0 = tile.splat %x : f32 to tensor<128xf32>
  // CHECK: math.exp
  %1 = math.exp %0 : tensor<128xf32>
  %2 = arith.truncf %1 : tensor<128xf32> to tensor<128xbf16>
  // CHECK: math.erf
  %3 = math.erf %2 : tensor<128xbf16>
  // CHECK: arith.divsi
  %4 = arith.divsi %n, %n : i32
  // CHECK: math.ctpop
  %5 = math.ctpop %4 : i32
  return
}
