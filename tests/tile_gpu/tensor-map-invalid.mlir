// RUN: kiln-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{tensor map: element type 'f31' does not exist (there are u8, u16}}
#map = #tile_gpu.tensor_map<element = "f31", address = 0, extents = () -> (16), strides = () -> (), box = [16]>

// -----

// expected-error @+1 {{tensor map: swizzle '96B' does not exist (there are none, 32B, 64B, 128B}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = () -> (16), strides = () -> (), box = [16], swizzle = "96B">

// -----

// expected-error @+1 {{tensor map: extents and strides are maps of 1 dimensions}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = (d0) -> (d0), strides = () -> (), box = [16]>

// -----

// expected-error @+1 {{tensor map: 0 strides for 2 extents (the first dimension has none, each other one)}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = () -> (16, 16), strides = () -> (), box = [16, 1]>

// -----

// expected-error @+1 {{tensor map: box has 1 numbers for 2 extents}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = () -> (16, 16), strides = () -> (64), box = [16]>

// -----

// expected-error @+1 {{tensor map: elementStrides has 1 numbers for 2 extents}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = () -> (16, 16), strides = () -> (64), box = [16, 1], elementStrides = [1]>

// -----

// expected-error @+1 {{tensor map: rank 6 is not in 1..5}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = () -> (8, 8, 8, 8, 8, 8), strides = () -> (32, 32, 32, 32, 32), box = [8, 1, 1, 1, 1, 1]>

// -----

// expected-error @+1 {{tensor map: box[1] = 257 is not in 1..256}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = () -> (16, 512), strides = () -> (64), box = [16, 257]>

// -----

// expected-error @+1 {{tensor map: box[0] = 0 is not in 1..256}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = () -> (16), strides = () -> (), box = [-3]>

// -----

// expected-error @+1 {{tensor map: box[0] = 64 elements of 4 bytes is 256 bytes, more than the 128 of swizzle 128B}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = () -> (64), strides = () -> (), box = [64], swizzle = "128B">

// -----

// expected-error @+1 {{tensor map: box[0] = 3 elements of 4 bytes is 12 bytes, not a multiple of 16}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = () -> (64), strides = () -> (), box = [3]>

// -----

// expected-error @+1 {{tensor map: elementStrides[0] = 9 is not in 1..8}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = () -> (64), strides = () -> (), box = [16], elementStrides = [9]>

// -----

// expected-error @+1 {{tensor map: fill nan with elements of type u32}}
#map = #tile_gpu.tensor_map<element = "u32", address = 0, extents = () -> (64), strides = () -> (), box = [16], fill = "nan">

// -----

// expected-error @+1 {{tensor map: rank 1 with an interleaved layout; it needs 3 to 5}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = () -> (64), strides = () -> (), box = [16], interleave = "16B">

// -----

#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = ()[s0, s1] -> (s1), strides = () -> (), box = [16]>
// expected-error @+1 {{argument 2: tile_gpu.tensor_map takes its address from argument 0 of type 'i64': it must be a pointer that a caller passes}}
func.func @k(%x: i64, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) attributes {tile.kernel} {
  return
}

// -----

#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = ()[s0, s1] -> (s1), strides = () -> (), box = [16]>
// expected-error @+1 {{argument 2: tile_gpu.tensor_map takes an extent or a stride from argument 1 of type 'f32': it must be an integer}}
func.func @k(%x: !tile.ptr<f32>, %n: f32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) attributes {tile.kernel} {
  return
}

// -----

#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = ()[s0, s1] -> (s1), strides = () -> (), box = [16]>
// expected-error @+1 {{argument 1: tile_gpu.tensor_map takes an extent or a stride from argument 1 of type '!tile_gpu.tensor_map': it must be an integer}}
func.func @k(%x: !tile.ptr<f32>, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) attributes {tile.kernel} {
  return
}

// -----

#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = ()[s0, s1] -> (s1), strides = () -> (), box = [16]>
// expected-error @+1 {{argument 0: tile_gpu.tensor_map takes its address from argument 0 of type '!tile_gpu.tensor_map': it must be a pointer}}
func.func @k(%map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) attributes {tile.kernel} {
  return
}

// -----

#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = ()[s0, s1] -> (s1), strides = () -> (), box = [16]>
// expected-error @+1 {{argument 2: tile_gpu.tensor_map belongs to an argument of type !tile_gpu.tensor_map, not 'i32'}}
func.func @k(%x: !tile.ptr<f32>, %n: i32, %map: i32 {tile_gpu.tensor_map = #map}) attributes {tile.kernel} {
  return
}

// -----

#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = ()[s0, s1] -> (s1), strides = () -> (), box = [16]>
// expected-error @+1 {{tile_gpu.tensor_map is #tile_gpu.tensor_map<..>, of an argument of a function}}
func.func @k(%x: !tile.ptr<f32>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = 3 : i32}) attributes {tile.kernel} {
  return
}

// -----

#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = ()[s0, s1] -> (s1), strides = () -> (), box = [16]>
// expected-error @+1 {{argument 0: unknown attribute "tile_gpu.map": arguments may have tile_gpu.tensor_map}}
func.func @k(%x: !tile.ptr<f32> {tile_gpu.map = 3 : i32}) attributes {tile.kernel} {
  return
}

// -----

#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = ()[s0, s1] -> (s1), strides = () -> (), box = [16]>
// expected-error @+1 {{kernel 'k': argument 3 comes after one that the launcher makes, of type '!tile_gpu.tensor_map': those come last}}
func.func @k(%x: !tile.ptr<f32>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}, %last: i32) attributes {tile.kernel} {
  return
}

// -----

#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = ()[s0, s1, s2, s3, s4, s5] -> (s5), strides = () -> (), box = [16]>
// expected-error @+1 {{argument 1: tile_gpu.tensor_map takes an extent or a stride from argument 5: the function has 2}}
func.func @k(%x: !tile.ptr<f32>, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) attributes {tile.kernel} {
  return
}

// -----

// expected-error @+1 {{tensor map: an extent or a stride is an expression 17 deep, at most 16 are computed}}
#map = #tile_gpu.tensor_map<element = "f32", address = 0, extents = ()[s0, s1] -> (((((((((((((((((s1) floordiv 2 + s1)) floordiv 2 + s1)) floordiv 2 + s1)) floordiv 2 + s1)) floordiv 2 + s1)) floordiv 2 + s1)) floordiv 2 + s1)) floordiv 2 + s1)), strides = () -> (), box = [16]>

// -----

// A longer name is none of a tensor map.
// expected-error @+1 {{not a layout: L00: layout text, column 1: found 'tensor_maps', expected an encoding}}
#map = #tile_gpu.tensor_maps<element = "f32", address = 0, extents = () -> (16), strides = () -> (), box = [16]>
