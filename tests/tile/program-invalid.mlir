// RUN: kiln-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{kernel 'k' returns values: kernels write to memory instead}}
func.func @k() -> i32 attributes {tile.kernel} {
  %0 = arith.constant 0 : i32
  return %0 : i32
}

// -----

// expected-error @+1 {{kernel 'k': 'mask' has the type 'i1': arguments are !tile.ptr, i8 to i64 and floating-point numbers}}
func.func @k(%m: i1 {tile.name = "mask"}) attributes {tile.kernel} {
  return
}

// -----

// expected-error @+1 {{argument 0 has the type 'tensor<4xf32>'}}
func.func @k(%m: tensor<4xf32>) attributes {tile.kernel} {
  return
}

// -----

// expected-error @+1 {{tile.num_warps is 33 : i32: a block has 1 to 32 warps}}
func.func @k() attributes {tile.kernel, tile.num_warps = 33 : i32} {
  return
}

// -----

// expected-error @+1 {{"tile.kernel" takes no value}}
func.func @k() attributes {tile.kernel = 1 : i32} {
  return
}

// -----

// expected-error @+1 {{tile.max_registers is 16 : i32: a thread has 24 to 255 registers}}
func.func @k() attributes {tile.kernel, tile.max_registers = 16 : i32} {
  return
}

// -----

// expected-error @+1 {{tile.num_stages is 0 : i32: a pipeline has 1 to 8 stages}}
func.func @k() attributes {tile.kernel, tile.num_stages = 0 : i32} {
  return
}

// -----

func.func @k(%n: i32) {
  %c = arith.constant 1 : i32
  // expected-error @+1 {{tile.num_stages is 9 : i32: a pipeline has 1 to 8 stages}}
  scf.for %i = %c to %n step %c : i32 {
  } {tile.num_stages = 9 : i32}
  return
}

// -----

func.func @k(%c: i1) {
  // expected-error @+1 {{tile.num_stages is for func.func and scf.for, not for scf.if}}
  scf.if %c {
  } {tile.num_stages = 2 : i32}
  return
}

// -----

// expected-error @+1 {{tile.max_registers is 256 : i32: a thread has 24 to 255 registers}}
func.func @k() attributes {tile.kernel, tile.max_registers = 256 : i32} {
  return
}

// -----

// expected-error @+1 {{tile.assembler_level is 4 : i32: assemblers have levels 0 to 3, i32}}
func.func @k() attributes {tile.kernel, tile.assembler_level = 4 : i32} {
  return
}

// -----

// expected-error @+1 {{tile.assembler_level is 1 : ui32: assemblers have levels 0 to 3, i32}}
func.func @k() attributes {tile.kernel, tile.assembler_level = 1 : ui32} {
  return
}

// -----

// expected-error @+1 {{tile.cluster is array<i32: 3>: of a func.func, the blocks of a cluster along x, y and z, powers of two, as in array<i32: 2, 1, 1>}}
func.func @k() attributes {tile.kernel, tile.cluster = array<i32: 3>} {
  return
}

// -----

// expected-error @+1 {{tile.cluster is array<i32: 2, 1, 1, 1>: of a func.func}}
func.func @k() attributes {tile.kernel, tile.cluster = array<i32: 2, 1, 1, 1>} {
  return
}

// -----

// expected-error @+1 {{tile.cluster is array<i32: 0>: of a func.func}}
func.func @k() attributes {tile.kernel, tile.cluster = array<i32: 0>} {
  return
}

// -----

// expected-error @+1 {{tile.cluster is 2 : i32: of a func.func}}
func.func @k() attributes {tile.kernel, tile.cluster = 2 : i32} {
  return
}

// -----

// expected-error @+1 {{tile.cluster is array<i32: 4, 2, 2>, 16 blocks: a cluster has at most 8; make an extent smaller}}
func.func @k() attributes {tile.kernel, tile.cluster = array<i32: 4, 2, 2>} {
  return
}

// -----

// expected-error @+1 {{tile.num_stages is 2 : ui32: a pipeline has 1 to 8 stages}}
func.func @k() attributes {tile.kernel, tile.num_stages = 2 : ui32} {
  return
}

// -----

// expected-error @+1 {{tile.max_registers is 64 : si32: a thread has 24 to 255 registers}}
func.func @k() attributes {tile.kernel, tile.max_registers = 64 : si32} {
  return
}

// -----

// expected-error @+1 {{tile.num_warps is 4 : ui32: a block has 1 to 32 warps}}
func.func @k() attributes {tile.kernel, tile.num_warps = 4 : ui32} {
  return
}

// -----

// expected-error @+1 {{unknown attribute "tile.warps": operations may have tile.kernel, tile.num_warps, tile.num_stages, tile.max_registers, tile.copy_warps, tile.assembler_level, tile.unroll, tile.cluster and tile.slice}}
func.func @k() attributes {tile.warps = 4 : i32} {
  return
}

// -----

// expected-error @+1 {{argument 0: tile.divisibility is a positive integer, of a pointer or an integer argument}}
func.func @k(%x: !tile.ptr<f32> {tile.divisibility = 0 : i32}) {
  return
}

// -----

// expected-error @+1 {{argument 0: tile.divisibility is a positive integer, of a pointer or an integer argument}}
func.func @k(%x: f32 {tile.divisibility = 16 : i32}) {
  return
}

// -----

// expected-error @+1 {{'n': tile.noalias is a unit attribute of a pointer}}
func.func @k(%n: i32 {tile.name = "n", tile.noalias}) {
  return
}

// -----

// expected-error @+1 {{'n': tile.specialize is "often": "none", "divisibility" (of a pointer, an i32 or an i64), "stride" (an i32 or an i64) or "value" (of an integer)}}
func.func @k(%n: i32 {tile.name = "n", tile.specialize = "often"}) {
  return
}

// -----

// expected-error @+1 {{argument 0: tile.specialize is "stride"}}
func.func @k(%x: !tile.ptr<f32> {tile.specialize = "stride"}) {
  return
}

// -----

// expected-error @+1 {{argument 0: tile.specialize is "value"}}
func.func @k(%x: f32 {tile.specialize = "value"}) {
  return
}

// -----

// expected-error @+1 {{argument 0: tile.element is the type of the elements that an i32 or i64 counts, which is specialised by divisibility or as a stride (tile.specialize)}}
func.func @k(%n: i32 {tile.element = f32}) {
  return
}

// -----

// expected-error @+1 {{argument 0: tile.element is the type}}
func.func @k(%n: i64 {tile.element = 4 : i32, tile.specialize = "stride"}) {
  return
}

// -----

// expected-error @+1 {{argument 0: tile.element is the type}}
func.func @k(%x: !tile.ptr<f32> {tile.element = f32, tile.specialize = "divisibility"}) {
  return
}

// -----

// expected-error @+1 {{argument 0: unknown attribute "tile.align": arguments may have tile.name, tile.noalias, tile.divisibility, tile.equals, tile.specialize and tile.element}}
func.func @k(%n: i32 {tile.align = 4 : i32}) {
  return
}

// -----

func.func @k() {
  // expected-error @+1 {{expected string or keyword containing one of the following enum values for attribute 'axis' [x, y, z]}}
  %0 = tile.program_id w
  return
}

// -----

// expected-error @+1 {{a pointer to 'i7': the types are i1, i8, i16, i32, i64, f16, bf16, f32, f64, f8E4M3FN and f8E5M2}}
func.func @k(%x: !tile.ptr<i7>) {
  return
}

