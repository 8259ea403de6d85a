// RUN: kiln-opt %s -split-input-file -verify-diagnostics --kiln-bulk-sums

// A sum of 32 bits may wrap on the way.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#line = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>
#row = #tile_gpu.slice<dim=0, parent=linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @wraps(%a: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: tensor<4x512xf32, #runs>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %j = tile.range 0 to 512 : tensor<512xi32, #row>
    %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<512xi32, #row> to tensor<1x512xi32, #line>
    %j2 = tile.broadcast %j1 : tensor<1x512xi32, #line> to tensor<4x512xi32, #runs>
    %f = tile.splat %n : i32 to tensor<4x512xi32, #runs>
    %j3 = arith.addi %f, %j2 : tensor<4x512xi32, #runs>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %j3 : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi32, #runs>
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-remark @+1 {{the threads add this, not the copy engine: what a warp has of the tile lies together in memory for less than 512 bytes}}
      %old = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
    }
    return
  }
}

// -----

// Rows end within a run.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#line = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>
#row = #tile_gpu.slice<dim=0, parent=linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @masked(%a: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: tensor<4x512xf32, #runs>, %n: i32, %m: tensor<4x512xi1, #runs>) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %j = tile.range 0 to 512 : tensor<512xi32, #row>
    %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<512xi32, #row> to tensor<1x512xi32, #line>
    %j2 = tile.broadcast %j1 : tensor<1x512xi32, #line> to tensor<4x512xi32, #runs>
    %j3 = arith.extsi %j2 : tensor<4x512xi32, #runs> to tensor<4x512xi64, #runs>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %j3 : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-remark @+1 {{for less than 512 bytes}}
      %old = tile.atomic_rmw add relaxed gpu %p, %x mask %m : tensor<4x512x!tile.ptr<f32>, #runs>
    }
    return
  }
}

// -----

// What the kernel reads is to be what it has added.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#line = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>
#row = #tile_gpu.slice<dim=0, parent=linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @read(%a: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: tensor<4x512xf32, #runs>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %j = tile.range 0 to 512 : tensor<512xi32, #row>
    %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<512xi32, #row> to tensor<1x512xi32, #line>
    %j2 = tile.broadcast %j1 : tensor<1x512xi32, #line> to tensor<4x512xi32, #runs>
    %j3 = arith.extsi %j2 : tensor<4x512xi32, #runs> to tensor<4x512xi64, #runs>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %j3 : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-remark @+1 {{the threads add this, not the copy engine: }}
      %old = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
      // expected-note @+1 {{this may access the same memory}}
      %y = tile.load %p : tensor<4x512x!tile.ptr<f32>, #runs>
    }
    return
  }
}

// -----

// No room.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#line = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>
#row = #tile_gpu.slice<dim=0, parent=linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @full(%a: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: tensor<4x512xf32, #runs>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %j = tile.range 0 to 512 : tensor<512xi32, #row>
    %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<512xi32, #row> to tensor<1x512xi32, #line>
    %j2 = tile.broadcast %j1 : tensor<1x512xi32, #line> to tensor<4x512xi32, #runs>
    %j3 = arith.extsi %j2 : tensor<4x512xi32, #runs> to tensor<4x512xi64, #runs>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %j3 : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<[27] x 4x512xf32, #tile_gpu.tma<swizzle=0>>
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-remark @+1 {{with a buffer of 8192 bytes the kernel would need 229376 of shared memory, and 217920 are left to it}}
      %old = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
      %z = tile_gpu.local_subview %b[%c0] : !tile_gpu.buffer<[27] x 4x512xf32, #tile_gpu.tma<swizzle=0>>
      tile_gpu.local_store %x, %z : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #tile_gpu.tma<swizzle=0>>
    }
    return
  }
}

// -----

// Three blocks would become two.
#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#line = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>
#row = #tile_gpu.slice<dim=0, parent=linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @blocks(%a: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: tensor<4x512xf32, #runs>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %j = tile.range 0 to 512 : tensor<512xi32, #row>
    %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<512xi32, #row> to tensor<1x512xi32, #line>
    %j2 = tile.broadcast %j1 : tensor<1x512xi32, #line> to tensor<4x512xi32, #runs>
    %j3 = arith.extsi %j2 : tensor<4x512xi32, #runs> to tensor<4x512xi64, #runs>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %j3 : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    %b = tile_gpu.local_alloc : !tile_gpu.buffer<[9] x 4x512xf32, #tile_gpu.tma<swizzle=0>>
    scf.for %i = %c0 to %n step %c1 : i32 {
      // expected-remark @+1 {{with a buffer of 8192 bytes a multiprocessor would have fewer than 3 blocks}}
      %old = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
      %z = tile_gpu.local_subview %b[%c0] : !tile_gpu.buffer<[9] x 4x512xf32, #tile_gpu.tma<swizzle=0>>
      tile_gpu.local_store %x, %z : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #tile_gpu.tma<swizzle=0>>
    }
    return
  }
}

// -----

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
// expected-error @+2 {{the module names no target}}
// expected-note @+1 {{give it tile_gpu.target}}
func.func @nameless(%p: tensor<4x512x!tile.ptr<f32>, #runs>, %x: tensor<4x512xf32, #runs>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %old = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
  }
  return
}
