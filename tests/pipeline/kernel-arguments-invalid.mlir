// RUN: kiln-opt %s --split-input-file --verify-diagnostics

// LLVM ends the process when a kernel has such a parameter.
// expected-error @+1 {{kernel 'k': argument 0 has the type 'f80': arguments are !tile.ptr, i8 to i64 and floating-point numbers of 8 to 64 bits}}
func.func @k(%x: f80) attributes {tile.kernel} {
  return
}

// -----

// expected-error @+1 {{argument 1 has the type 'i24'}}
func.func @k(%x: i32, %y: i24) attributes {tile.kernel} {
  return
}

// -----

// expected-error @+1 {{argument 0 has the type 'i128'}}
func.func @k(%x: i128) attributes {tile.kernel} {
  return
}

// -----

// expected-error @+1 {{argument 0 has the type 'ui8'}}
func.func @k(%x: ui8) attributes {tile.kernel} {
  return
}

// -----

// expected-error @+1 {{argument 0 has the type 'tf32'}}
func.func @k(%x: tf32) attributes {tile.kernel} {
  return
}
