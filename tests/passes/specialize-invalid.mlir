// RUN: kiln-opt %s -split-input-file -verify-diagnostics "--kiln-specialize=divisible=0=16"

// expected-error @+1 {{divisible '0=16': 'x' is a 'f32', and divisors are positive}}
func.func @k(%x: f32 {tile.name = "x"}) attributes {tile.kernel} {
  return
}

// -----

// expected-error @+1 {{divisible '0=16': kernel 'k' has 0 arguments}}
func.func @k() attributes {tile.kernel} {
  return
}

// -----

// expected-error @+1 {{divisible '0=16': argument 0 is a multiple of 2147483647, and of both only from 34359738352 on}}
func.func @k(%n: i32 {tile.divisibility = 2147483647 : i32}) attributes {tile.kernel} {
  return
}

// -----

// expected-error @+1 {{the program has no kernel}}
module {
  func.func @k() {
    return
  }
}
