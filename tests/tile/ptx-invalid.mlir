// RUN: kiln-opt %s -split-input-file -verify-diagnostics

func.func @f(%x: f32) -> f32 {
  // expected-error @+1 {{'tile.inline_ptx' op $2 names nothing: there are 1 result and 1 operand (placeholders go from $0 to $1, results first)}}
  %r = tile.inline_ptx "add.f32 $0, $1, $2;"(%x) : (f32) -> f32
  return %r : f32
}

// -----

func.func @f(%x: f32, %y: f32) -> f32 {
  // expected-error @+1 {{operand 1 is in the signature and not in the text: $2 is missing}}
  %r = tile.inline_ptx "add.f32 $0, $1, $1;"(%x, %y) : (f32, f32) -> f32
  return %r : f32
}

// -----

func.func @f(%x: f32) -> f32 {
  // expected-error @+1 {{result 0 is in the signature and not in the text: $0 is missing}}
  %r = tile.inline_ptx effects "st.global.f32 [0], $1;"(%x) : (f32) -> f32
  return %r : f32
}

// -----

func.func @f(%x: f32) -> f32 {
  // expected-error @+1 {{'$L' is no placeholder (write $0, $1, .. for the results and then the operands, and $$ for a dollar sign)}}
  %r = tile.inline_ptx "bra $L; $L: mov.f32 $0, $1;"(%x) : (f32) -> f32
  return %r : f32
}

// -----

func.func @f(%x: f32) -> f32 {
  // expected-error @+1 {{the text ends in '1' (end each statement with ';')}}
  %r = tile.inline_ptx "mov.f32 $0, $1"(%x) : (f32) -> f32
  return %r : f32
}

// -----

func.func @f() {
  // expected-error @+1 {{the text is empty (write PTX statements)}}
  tile.inline_ptx effects "  "() : () -> ()
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error @+1 {{has neither results nor effects: nothing would come of it (write `effects`)}}
  tile.inline_ptx "mov.f32 $0, $0;"(%x) : (f32) -> ()
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{'bar.sync' is not for inline PTX (leave barriers to the compiler, which counts them)}}
  tile.inline_ptx effects "bar.sync 0;"() : () -> ()
  return
}

// -----

func.func @f(%x: i32) {
  // expected-error @+1 {{'exit' is not for inline PTX (a kernel ends at its end: compute a condition instead)}}
  tile.inline_ptx effects "{ .reg .pred %p; setp.eq.s32 %p, $0, 0; @%p exit; }"(%x) : (i32) -> ()
  return
}

// -----

func.func @f(%x: i8) -> i8 {
  // expected-error @+1 {{operand #0 must be variadic of f16, bf16, f32, f64, i16, i32, i64 or tile of them, but got 'i8'}}
  %r = tile.inline_ptx "mov.b16 $0, $1;"(%x) : (i8) -> i8
  return %r : i8
}

// -----

func.func @f(%x: tensor<8xf32>) -> f32 {
  // expected-error @+1 {{if an operand is non-scalar, then there must be at least one non-scalar result}}
  %r = tile.inline_ptx "mov.b32 $0, $1;"(%x) : (tensor<8xf32>) -> f32
  return %r : f32
}
