// RUN: kiln-opt %s --kiln-lower-tiles --split-input-file --verify-diagnostics

#rows = #tile_gpu.tma<swizzle=128>
#map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (s1, s1), strides = ()[s0, s1] -> (s1 * 2), box = [64, 64], swizzle = "128B">
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_slot(%x: !tile.ptr<bf16>, %n: i32, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #map})
      attributes {tile.kernel, tile.num_warps = 4 : i32, tile_gpu.shared_bytes = 8192 : i32} {
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<64x64xbf16, #rows>
    // expected-error @+2 {{counts to no mbarrier: copies into slots of pipelines get theirs by lower-pipelines}}
    // expected-error @+1 {{failed to legalize operation 'tile_gpu.tensor_copy'}}
    tile_gpu.tensor_copy %map[%n, %n] to %b dims [1, 0] : !tile_gpu.buffer<64x64xbf16, #rows>
    return
  }
}
