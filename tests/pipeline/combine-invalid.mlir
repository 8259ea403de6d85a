// RUN: kiln-opt %s --split-input-file --verify-diagnostics

// Regions without their terminator, as a half-written file has them.
func.func @reduce(%x: tensor<64xf32>) {
  // expected-error @+1 {{its region does not end with tile.yield}}
  %m = tile.reduce(%x) {axis = 0 : i32} : tensor<64xf32> to f32 {
  ^bb0(%p: f32, %q: f32):
    %y = arith.maximumf %p, %q : f32
  }
  return
}

// -----

func.func @scan(%x: tensor<64xf32>) {
  // expected-error @+1 {{its region does not end with tile.yield}}
  %m = tile.scan(%x) {axis = 0 : i32} : tensor<64xf32> {
  ^bb0(%p: f32, %q: f32):
    %y = arith.addf %p, %q : f32
  }
  return
}
