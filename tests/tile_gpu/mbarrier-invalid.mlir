// RUN: kiln-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{0 mbarriers: 1 to 1024}}
func.func @none(%b: !tile_gpu.mbarriers<0>)

// -----

// expected-error @+1 {{1025 mbarriers: 1 to 1024}}
func.func @many(%b: !tile_gpu.mbarriers<1025>)

// -----

func.func @init_by_all(%b: !tile_gpu.mbarriers<2>) {
  // expected-error @+1 {{is what one thread does: put it into a tile_gpu.elected}}
  tile_gpu.mbarrier_init %b arrivals 8 : !tile_gpu.mbarriers<2>
  return
}

// -----

func.func @invalidate_by_all(%b: !tile_gpu.mbarriers<2>) {
  // expected-error @+1 {{is what one thread does: put it into a tile_gpu.elected}}
  tile_gpu.mbarrier_invalidate %b : !tile_gpu.mbarriers<2>
  return
}

// -----

func.func @no_arrivals(%b: !tile_gpu.mbarriers<2>) {
  tile_gpu.elected {
    // expected-error @+1 {{of 0 arrivals: 1 to 1024}}
    tile_gpu.mbarrier_init %b arrivals 0 : !tile_gpu.mbarriers<2>
  }
  return
}

// -----

func.func @many_arrivals(%b: !tile_gpu.mbarriers<2>) {
  tile_gpu.elected {
    // expected-error @+1 {{of 2000 arrivals: 1 to 1024}}
    tile_gpu.mbarrier_init %b arrivals 2000 : !tile_gpu.mbarriers<2>
  }
  return
}

// -----

func.func @negative_arrivals(%b: !tile_gpu.mbarriers<2>) {
  tile_gpu.elected {
    // expected-error @+1 {{of -1 arrivals: 1 to 1024}}
    tile_gpu.mbarrier_init %b arrivals -1 : !tile_gpu.mbarriers<2>
  }
  return
}

// -----

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @load(%b: !tile_gpu.buffer<64x32xf16, #sh>) {
  tile_gpu.elected {
    // expected-error @+1 {{in a tile_gpu.elected: one thread arrives, waits, counts and copies by tensor maps there}}
    %x = tile_gpu.local_load %b : !tile_gpu.buffer<64x32xf16, #sh> to tensor<64x32xf16, #row>
  }
  return
}

// -----

func.func @store(%p: !tile.ptr<f32>, %x: f32) {
  tile_gpu.elected {
    // expected-error @+1 {{in a tile_gpu.elected: one thread arrives, waits, counts and copies by tensor maps there}}
    tile.store %p, %x : !tile.ptr<f32>
  }
  return
}

// -----

func.func @loop(%b: !tile_gpu.mbarriers<2>, %s: i32, %c: i32) {
  tile_gpu.elected {
    // expected-error @+1 {{in a tile_gpu.elected: one thread arrives, waits, counts and copies by tensor maps there}}
    scf.for %i = %s to %c step %c : i32 {
      tile_gpu.mbarrier_arrive %b[%s] phase %s : !tile_gpu.mbarriers<2>
    }
  }
  return
}

// -----

func.func @nested(%b: !tile_gpu.mbarriers<2>) {
  tile_gpu.elected {
    // expected-error @+1 {{in a tile_gpu.elected: one thread arrives, waits, counts and copies by tensor maps there}}
    tile_gpu.elected {
      tile_gpu.mbarrier_invalidate %b : !tile_gpu.mbarriers<2>
    }
  }
  return
}

// -----

func.func @arguments() {
  // expected-error @+1 {{has a block with arguments: it takes values from outside as they are}}
  tile_gpu.elected {
  ^bb0(%s: i32):
    %t = arith.addi %s, %s : i32
  }
  return
}

// -----

func.func @empty() {
  // expected-error @+1 {{region with 1 blocks}}
  "tile_gpu.elected"() ({}) : () -> ()
  return
}

// -----

#rows = #tile_gpu.tma<swizzle=128>
func.func @wait_for_several(%b: !tile_gpu.mbarriers<2>, %x: !tile_gpu.buffer<64x64xbf16, #rows>,
                            %k: !tile_gpu.buffer<[3] x 64x64xbf16, #rows>, %s: i32) {
  // expected-error @+1 {{names all of '!tile_gpu.buffer<[3] x 64x64xbf16}}
  tile_gpu.mbarrier_wait %b[%s] phase %s ready %x, %k : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x64xbf16, #rows>, !tile_gpu.buffer<[3] x 64x64xbf16, #rows>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=2, maxPhase=4>
func.func @wait_for_tensor_memory(%b: !tile_gpu.mbarriers<2>, %x: !tile_gpu.buffer<64x32xf32, #sh, tensor>, %s: i32) {
  // expected-error @+1 {{must be variadic of A tile in shared memory}}
  tile_gpu.mbarrier_wait %b[%s] phase %s ready %x : !tile_gpu.mbarriers<2>, !tile_gpu.buffer<64x32xf32, #sh, tensor>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
func.func @no_recipe(%b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map) {
  // expected-error @+1 {{copies by a map that is no argument of its kernel with a recipe}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
// The argument of another block, of which the function's attributes say nothing.
func.func @another_block(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  cf.br ^next(%n, %n, %n, %map, %map : i32, i32, i32, !tile_gpu.tensor_map, !tile_gpu.tensor_map)
^next(%i: i32, %j: i32, %k: i32, %other: !tile_gpu.tensor_map, %last: !tile_gpu.tensor_map):
  // expected-error @+1 {{copies by a map that is no argument of its kernel with a recipe}}
  tile_gpu.tensor_copy %last[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @half_a_barrier(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %full: !tile_gpu.mbarriers<2>, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  tile_gpu.elected {
    // expected-error @+1 {{counts to an mbarrier: both which and of which}}
    "tile_gpu.tensor_copy"(%map, %n, %n, %b, %full) <{dims = array<i32: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 1, 1, 0>}>
      : (!tile_gpu.tensor_map, i32, i32, !tile_gpu.buffer<64x64xbf16, #sh>, !tile_gpu.mbarriers<2>) -> ()
  }
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @number_alone(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  tile_gpu.elected {
    // expected-error @+1 {{counts to an mbarrier: both which and of which}}
    "tile_gpu.tensor_copy"(%map, %n, %n, %b, %n) <{dims = array<i32: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 1, 0, 1>}>
      : (!tile_gpu.tensor_map, i32, i32, !tile_gpu.buffer<64x64xbf16, #sh>, i32) -> ()
  }
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @counts_to_a_buffer(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  tile_gpu.elected {
    // expected-error @+1 {{operand #4 must be Barriers in shared memory}}
    "tile_gpu.tensor_copy"(%map, %n, %n, %b, %b, %n) <{dims = array<i32: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 1, 1, 1>}>
      : (!tile_gpu.tensor_map, i32, i32, !tile_gpu.buffer<64x64xbf16, #sh>, !tile_gpu.buffer<64x64xbf16, #sh>, i32) -> ()
  }
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @counts_by_all(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %full: !tile_gpu.mbarriers<2>, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{is what one thread does: put it into a tile_gpu.elected}}
  tile_gpu.tensor_copy %map[%n, %n] to %b dims [1, 0] counts %full[%n] : !tile_gpu.buffer<64x64xbf16, #sh>, !tile_gpu.mbarriers<2>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @counts_to_none(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  tile_gpu.elected {
    // expected-error @+1 {{in a tile_gpu.elected: say which mbarrier it `counts` to}}
    tile_gpu.tensor_copy %map[%n, %n] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  }
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @several(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<[3] x 64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{needs one buffer of the 3: take a tile_gpu.local_subview}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<[3] x 64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @coordinates(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{gives 1 coordinates in a tensor of rank 2}}
  tile_gpu.tensor_copy %map[%i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @no_coordinates(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{gives 0 coordinates in a tensor of rank 2}}
  tile_gpu.tensor_copy %map[] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.swizzled<vec=8, perPhase=1, maxPhase=8>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @layout(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{it needs a tma layout}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @element(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x32xf32, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{copies elements of bf16 into '!tile_gpu.buffer<64x32xf32}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x32xf32, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [32, 64], swizzle = "64B">
func.func @swizzle(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{copies by a map of swizzle 64B into '!tile_gpu.buffer<64x64xbf16}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B_atom_32B">
func.func @swizzle_atom(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{copies by a map of swizzle 128B_atom_32B into '!tile_gpu.buffer<64x64xbf16}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=32>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1, s1), strides = ()[s0, s1] -> (s1 * 2, s1 * 2), box = [16, 64, 1], swizzle = "32B", interleave = "16B">
func.func @interleaved(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x16xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{copies by a map of swizzle 32B into '!tile_gpu.buffer<64x16xbf16}}
  tile_gpu.tensor_copy %map[%i, %i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x16xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], elementStrides = [1, 2], swizzle = "128B">
func.func @every_other(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{copies by a map with elementStrides}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1, s1), strides = ()[s0, s1] -> (s1 * 2, s1 * 2), box = [64, 64, 2], swizzle = "128B">
func.func @rank_3(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<2x64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{it fills buffers of one or two dimensions}}
  tile_gpu.tensor_copy %map[%i, %i, %i] to %b dims [2, 1, 0] : !tile_gpu.buffer<2x64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @few_dims(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{says of 1 dimensions of a buffer of 2 which of the tensor's they are}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @rank_1(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{says of 2 dimensions of a buffer of 1 which of the tensor's they are}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @dim_too_large(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{dims: 2 is no dimension of a tensor of rank 2, or is named twice}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [2, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @dim_negative(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{dims: -1 is no dimension of a tensor of rank 2, or is named twice}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [-1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1, s1), strides = ()[s0, s1] -> (s1 * 2, s1 * 2), box = [64, 64, 1], swizzle = "128B">
func.func @dim_twice(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{dims: 1 is no dimension of a tensor of rank 3, or is named twice}}
  tile_gpu.tensor_copy %map[%i, %i, %i] to %b dims [1, 1] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @inner(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{copies rows of the tensor into columns of '!tile_gpu.buffer<64x64xbf16}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [0, 1] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128, order=[0,1]>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
func.func @inner_by_order(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{the contiguous dimension of the tensor is the buffer's innermost}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 48], swizzle = "128B">
func.func @box_remains(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{fills '!tile_gpu.buffer<64x64xbf16, #tile_gpu.tma<swizzle=128>>' by boxes of 48 along dimension 0: boxes of 8 rows, or of all}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 4], swizzle = "128B">
func.func @box_of_4_rows(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{by boxes of 4 along dimension 0: boxes of 8 rows, or of all}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [32, 64], swizzle = "128B">
func.func @box_narrow(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{by boxes of 32 along dimension 1: a box is as wide as the swizzle, without one as the buffer}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=0>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [32, 64]>
func.func @box_without_swizzle(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{by boxes of 32 along dimension 1: a box is as wide as the swizzle, without one as the buffer}}
  tile_gpu.tensor_copy %map[%i, %i] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}

// -----

#sh = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1, s1), strides = ()[s0, s1] -> (s1 * 2, s1 * 2), box = [64, 2, 64], swizzle = "128B">
func.func @box_elsewhere(%x: !tile.ptr<bf16>, %n: i32, %b: !tile_gpu.buffer<64x64xbf16, #sh>, %i: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map}) {
  // expected-error @+1 {{copies boxes of 2 along dimension 1 of the tensor, which the buffer does not have}}
  tile_gpu.tensor_copy %map[%i, %i, %i] to %b dims [2, 0] : !tile_gpu.buffer<64x64xbf16, #sh>
  return
}
