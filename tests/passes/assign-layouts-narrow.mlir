// RUN: kiln-opt %s -split-input-file -verify-diagnostics --kiln-assign-layouts

// Nothing is known of the length, so the mask may cut anywhere: one remark for both accesses.
func.func @length(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32, tile.name = "x"}, %n: i32 {tile.name = "n"}) attributes {tile.kernel} {
  %r = tile.range 0 to 1024 : tensor<1024xi32>
  %ns = tile.splat %n : i32 to tensor<1024xi32>
  %mask = arith.cmpi slt, %r, %ns : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
  %p = tile.addptr %xs, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  // expected-remark @+1 {{this access moves 4 bytes at a time, where it could move 16 (and 1 more of this kernel): too little is known of 'n'; say that it is a stride, specialise by its divisibility, or assume it}}
  %a = tile.load %p mask %mask : tensor<1024x!tile.ptr<f32>>
  tile.store %p, %a mask %mask : tensor<1024x!tile.ptr<f32>>
  return
}

// -----

// The same with an assumption: nothing to say.
func.func @assumed(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32, tile.name = "x"}, %n: i32 {tile.name = "n"}) attributes {tile.kernel} {
  %zero = arith.constant 0 : i32
  %four = arith.constant 4 : i32
  %rest = arith.remsi %n, %four : i32
  %whole = arith.cmpi eq, %rest, %zero : i32
  tile.assume %whole
  %r = tile.range 0 to 1024 : tensor<1024xi32>
  %ns = tile.splat %n : i32 to tensor<1024xi32>
  %mask = arith.cmpi slt, %r, %ns : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
  %p = tile.addptr %xs, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %a = tile.load %p mask %mask : tensor<1024x!tile.ptr<f32>>
  tile.store %p, %a mask %mask : tensor<1024x!tile.ptr<f32>>
  return
}

// -----

// Two that are needed, and one that is not.  What is stored is no reason.
func.func @rows(%x: !tile.ptr<f16> {tile.name = "x"}, %y: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i64 {tile.name = "row_stride"}, %n: i64 {tile.name = "n"}, %k: i32 {tile.name = "k"}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i64
  %rows = arith.extsi %k : i32 to i64
  %from = tile.make_view %x, extents [%rows, %c64], strides [%stride, %c1] : !tile.view<32x64xf16>, i64
  // expected-remark @+1 {{this access moves 2 bytes at a time, where it could move 16: too little is known of 'x' and 'row_stride'}}
  %t = tile.load_view %from[%c0, %c0] : !tile.view<32x64xf16>, i64 -> tensor<32x64xf16>
  %to = tile.make_view %y, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<32x64xf16>, i64
  tile.store_view %to[%c0, %c0], %t : !tile.view<32x64xf16>, i64, tensor<32x64xf16>
  return
}

// -----

// One element a thread, a gather, a volatile access: no fact would help.
func.func @narrow_anyway(%x: !tile.ptr<f32>, %at: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %n: i32) attributes {tile.kernel} {
  %r = tile.range 0 to 128 : tensor<128xi32>
  %ns = tile.splat %n : i32 to tensor<128xi32>
  %i = arith.addi %r, %ns : tensor<128xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>>
  %p = tile.addptr %xs, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %a = tile.load %p : tensor<128x!tile.ptr<f32>>
  tile.store %p, %a : tensor<128x!tile.ptr<f32>>
  %r2 = tile.range 0 to 1024 : tensor<1024xi32>
  %ats = tile.splat %at : !tile.ptr<i32> to tensor<1024x!tile.ptr<i32>>
  %q = tile.addptr %ats, %r2 : tensor<1024x!tile.ptr<i32>>, tensor<1024xi32>
  %j = tile.load %q : tensor<1024x!tile.ptr<i32>>
  %xs2 = tile.splat %x : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
  %p2 = tile.addptr %xs2, %j : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %b = tile.load %p2 : tensor<1024x!tile.ptr<f32>>
  tile.store %p2, %b cache volatile : tensor<1024x!tile.ptr<f32>>
  return
}

// -----

// A pointer that is not aligned: the launch decides.
func.func @pointer(%x: !tile.ptr<f32> {tile.name = "x"}) attributes {tile.kernel} {
  %r = tile.range 0 to 1024 : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
  %p = tile.addptr %xs, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %a = tile.load %p : tensor<1024x!tile.ptr<f32>>
  tile.store %p, %a : tensor<1024x!tile.ptr<f32>>
  return
}
