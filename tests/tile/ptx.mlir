// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --mlir-print-op-generic | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --canonicalize --cse --loop-invariant-code-motion | FileCheck %s --check-prefix=MOVED

// CHECK-LABEL: func.func @forms
func.func @forms(%x: tensor<8xf32>, %n: i32, %h: tensor<8xf16>) -> (tensor<8xf32>, tensor<8xi16>, i64) {
  // CHECK: tile.inline_ptx "fma.rn.f32 $0, $1, $1, $1;"(%{{.*}}) : (tensor<8xf32>) -> tensor<8xf32>
  %a = tile.inline_ptx "fma.rn.f32 $0, $1, $1, $1;"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: %{{.*}}:2 = tile.inline_ptx "{ .reg .b16 %t; not.b16 %t, $2; mov.b16 $0, %t; mov.b32 $1, {%t, %t}; }"(%{{.*}}) : (tensor<8xf16>) -> (tensor<8xi16>, tensor<8xi32>)
  %b:2 = tile.inline_ptx "{ .reg .b16 %t; not.b16 %t, $2; mov.b16 $0, %t; mov.b32 $1, {%t, %t}; }"(%h) : (tensor<8xf16>) -> (tensor<8xi16>, tensor<8xi32>)
  // CHECK: tile.inline_ptx effects "mov.u64 $0, %clock64;"() : () -> i64
  %c = tile.inline_ptx effects "mov.u64 $0, %clock64;"() : () -> i64
  // CHECK: tile.inline_ptx effects "nanosleep.u32 $0; // $$\0A ;"(%{{.*}}) : (i32) -> ()
  tile.inline_ptx effects "nanosleep.u32 $0; // $$\0A ;"(%n) : (i32) -> ()
  return %a, %b#0, %c : tensor<8xf32>, tensor<8xi16>, i64
}

// What is without effects is merged, dropped, and taken out of loops; the rest stays.
// MOVED-LABEL: func.func @moved
// MOVED: "neg.f32
// MOVED-NOT: "neg.f32
// MOVED: scf.for
// MOVED: effects "mov.u32
// MOVED: effects "mov.u32
// MOVED-NOT: "abs.f32
func.func @moved(%x: f32, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x) -> f32 : i32 {
    %a = tile.inline_ptx "neg.f32 $0, $1;"(%x) : (f32) -> f32
    %b = tile.inline_ptx "neg.f32 $0, $1;"(%x) : (f32) -> f32
    %dead = tile.inline_ptx "abs.f32 $0, $1;"(%x) : (f32) -> f32
    %t = tile.inline_ptx effects "mov.u32 $0, %clock;"() : () -> i32
    %u = tile.inline_ptx effects "mov.u32 $0, %clock;"() : () -> i32
    %ab = arith.addf %a, %b : f32
    %next = arith.addf %sum, %ab : f32
    scf.yield %next : f32
  }
  return %r : f32
}
