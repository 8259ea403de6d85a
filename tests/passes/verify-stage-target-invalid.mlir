// RUN: kiln-opt %s --split-input-file --verify-diagnostics --kiln-verify-stage=stage=tile_gpu

// expected-error @+2 {{the module names no target}}
// expected-note @+1 {{give it tile_gpu.target}}
module {
}

// -----

// expected-error @+2 {{sm_81}}
// expected-note @+1 {{}}
module attributes {tile_gpu.target = "sm_81"} {
}

// -----

#two = #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], cta=<ctas=[2], split=[2]>>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @cluster() attributes {tile.kernel, tile.num_warps = 4 : i32} {
    // expected-error @+2 {{tile.range: a tile spread over the blocks of a cluster needs the capability 'clusters', which sm_80 lacks}}
    // expected-note @+1 {{targets that have it: sm_90}}
    %x = tile.range 0 to 256 : tensor<256xi32, #two>
    return
  }
}

// -----

module attributes {tile_gpu.target = "sm_75"} {
  func.func @copies() attributes {tile.kernel, tile.num_warps = 4 : i32} {
    // expected-error @+2 {{tile_gpu.async_commit needs the capability 'cp.async', which sm_75 lacks}}
    // expected-note @+1 {{targets that have it: sm_80}}
    %t = tile_gpu.async_commit
    return
  }
}

// -----

#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#rows = #tile_gpu.tma<swizzle=128>
module attributes {tile_gpu.target = "sm_100a"} {
  func.func @warpgroups() attributes {tile.kernel, tile.num_warps = 4 : i32} {
    %c = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %a = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xf16, #rows>
    // expected-error @+2 {{tile_gpu.warpgroup_dot needs the capability 'wgmma', which sm_100a lacks}}
    // expected-note @+1 {{targets that have it: sm_90a}}
    %d = tile_gpu.warpgroup_dot %a, %a, %c {fromZero} : !tile_gpu.buffer<64x64xf16, #rows>, !tile_gpu.buffer<64x64xf16, #rows>, tensor<64x64xf32, #acc>
    return
  }
}

// -----

module attributes {tile_gpu.target = "sm_80"} {
  // expected-error @+2 {{kernel 'pairs' asks for clusters of 2 x 1 x 1 blocks, sm_80 has none: it lacks the capability 'clusters'}}
  // expected-note @+1 {{leave the cluster out; targets that have it: sm_90, sm_90a}}
  func.func @pairs() attributes {tile.kernel, tile.cluster = array<i32: 2>} {
    return
  }
}

// -----

module attributes {tile_gpu.target = "sm_89"} {
  // expected-error @+2 {{argument 1 of kernel 'mapped' is a tensor map, sm_89 has none: it lacks the capability 'tma'}}
  // expected-note @+1 {{load without tensor maps; targets that have it: sm_90, sm_90a}}
  func.func @mapped(%x: !tile.ptr<f32>, %map: !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<
      element = "f32", address = 0, extents = () -> (64), strides = () -> (), box = [64]>}) attributes {tile.kernel} {
    return
  }
}

// -----

module attributes {tile_gpu.target = "sm_90a"} {
  // expected-error @+1 {{argument 1 of type '!tile_gpu.tensor_map' has no recipe: only kernels have such arguments, each with tile_gpu.tensor_map}}
  func.func @bare(%x: !tile.ptr<f32>, %map: !tile_gpu.tensor_map) attributes {tile.kernel} {
    return
  }
}

// -----

module attributes {tile_gpu.target = "sm_80"} {
  func.func @elected(%s: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
    %b = tile_gpu.local_alloc : !tile_gpu.mbarriers<1>
    // expected-error @+2 {{tile_gpu.elected needs the capability 'tma', which sm_80 lacks}}
    // expected-note @+1 {{targets that have it: sm_90}}
    tile_gpu.elected {
      tile_gpu.mbarrier_arrive %b[%s] phase %s : !tile_gpu.mbarriers<1>
    }
    return
  }
}
