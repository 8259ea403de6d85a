// RUN: kiln-opt %s --kiln-unroll-loops -split-input-file -verify-diagnostics

func.func @index(%n: index) {
  // expected-error @+1 {{the loop runs on 'index': use i32 or i64}}
  scf.for %i = %n to %n step %n {
  } {tile.unroll = 2 : i32}
  return
}

// -----

func.func @unsigned(%n: i32) {
  // expected-error @+1 {{tile.unroll of a loop that compares unsigned: loops run on signed numbers}}
  scf.for unsigned %i = %n to %n step %n : i32 {
  } {tile.unroll = 2 : i32}
  return
}

// -----

func.func @none(%n: i32) {
  // expected-error @+1 {{tile.unroll is 0 : i32: a loop's body is repeated 1 to 64 times}}
  scf.for %i = %n to %n step %n : i32 {
  } {tile.unroll = 0 : i32}
  return
}

// -----

func.func @many(%n: i32) {
  // expected-error @+1 {{tile.unroll is 65 : i32: a loop's body is repeated 1 to 64 times}}
  scf.for %i = %n to %n step %n : i32 {
  } {tile.unroll = 65 : i32}
  return
}

// -----

// expected-error @+1 {{tile.unroll is for scf.for, not for func.func}}
func.func @kernel() attributes {tile.unroll = 2 : i32} {
  return
}
