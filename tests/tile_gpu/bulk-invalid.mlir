// RUN: kiln-opt %s -split-input-file -verify-diagnostics

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
func.func @shape(%b: !tile_gpu.buffer<2x512xf32, #rows>, %p: tensor<4x512x!tile.ptr<f32>, #runs>) {
  // expected-error @+1 {{shapes and element types must be equal}}
  tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<2x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
  return
}

// -----

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
func.func @element(%b: !tile_gpu.buffer<4x512xi32, #rows>, %p: tensor<4x512x!tile.ptr<f32>, #runs>) {
  // expected-error @+1 {{shapes and element types must be equal}}
  tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xi32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
  return
}

// -----

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
func.func @kind(%b: !tile_gpu.buffer<4x512xi32, #rows>, %p: tensor<4x512x!tile.ptr<i32>, #runs>) {
  // expected-error @+1 {{adds elements of 'i32': of f32}}
  tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xi32, #rows>, tensor<4x512x!tile.ptr<i32>, #runs>
  return
}

// -----

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
func.func @slots(%b: !tile_gpu.buffer<[2] x 4x512xf32, #rows>, %p: tensor<4x512x!tile.ptr<f32>, #runs>) {
  // expected-error @+1 {{needs one buffer of the 2: take a tile_gpu.local_subview}}
  tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<[2] x 4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
  return
}

// -----

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
func.func @layout(%b: !tile_gpu.buffer<4x512xf32, #rows>, %p: tensor<4x512x!tile.ptr<f32>>) {
  // expected-error @+1 {{needs a layout on 'tensor<4x512x!tile.ptr<f32>>'}}
  tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>>
  return
}

// -----

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#sh = #tile_gpu.swizzled<vec=4, perPhase=1, maxPhase=1>
func.func @proxy(%b: !tile_gpu.buffer<4x512xf32, #sh>, %p: tensor<4x512x!tile.ptr<f32>, #runs>) {
  // expected-error @+1 {{it needs a tma layout}}
  tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #sh>, tensor<4x512x!tile.ptr<f32>, #runs>
  return
}

// -----

#apart = #tile_gpu.linear<register=[[0,1],[1,0],[2,0],[0,128]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,2],[0,256]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>
func.func @short(%b: !tile_gpu.buffer<4x512xf32, #rows>, %p: tensor<4x512x!tile.ptr<f32>, #apart>) {
  // expected-error @+1 {{adds runs of 8 bytes: a warp has so many together}}
  tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #apart>
  return
}
