// RUN: kiln-opt %s --split-input-file --verify-diagnostics --kiln-verify-stage=stage=tile

// An operation that no row of the table of numbers has.
func.func @tan(%x: f32) attributes {tile.kernel} {
  // expected-error @+1 {{math.tan is not in the table of numbers (docs/numbers.md lists what is); write it with operations that are}}
  %y = math.tan %x : f32
  return
}

// -----

// A type that the operation has no row for.
func.func @add_fp8(%x: f32) attributes {tile.kernel} {
  %0 = tile.splat %x : f32 to tensor<128xf32>
  %1 = arith.truncf %0 : tensor<128xf32> to tensor<128xf8E4M3FN>
  // expected-error @+1 {{arith.addf of f8E4M3FN is not in the table of numbers: it exists for f16, bf16, f32, f64; convert the operands with arith.extf or arith.truncf}}
  %2 = arith.addf %1, %1 : tensor<128xf8E4M3FN>
  return
}

// -----

func.func @compare_fp8(%x: f16) attributes {tile.kernel} {
  %0 = arith.truncf %x : f16 to f8E5M2
  // expected-error @+1 {{arith.cmpf of f8E5M2 is not in the table of numbers}}
  %1 = arith.cmpf olt, %0, %0 : f8E5M2
  return
}

// -----

func.func @wide(%x: i64) attributes {tile.kernel} {
  // expected-error @+1 {{arith.extsi of i128 is not in the table of numbers: integers have at most 64 bits}}
  %0 = arith.extsi %x : i64 to i128
  return
}

// -----

// Another rounding than the table's.
func.func @rounding(%x: f32) attributes {tile.kernel} {
  // expected-error @+1 {{arith.truncf toward_zero is not in the table of numbers: it rounds to nearest even only}}
  %0 = arith.truncf %x toward_zero : f32 to f16
  return
}

// -----

// In the combine function of a reduction too.
func.func @combine(%x: f32) attributes {tile.kernel} {
  %0 = tile.splat %x : f32 to tensor<128xf32>
  %1 = tile.reduce(%0) {axis = 0 : i32} : tensor<128xf32> to f32 {
  ^bb0(%a: f32, %b: f32):
    // expected-error @+1 {{math.atan2 is not in the table of numbers}}
    %c = math.atan2 %a, %b : f32
    tile.yield %c : f32
  }
  return
}
