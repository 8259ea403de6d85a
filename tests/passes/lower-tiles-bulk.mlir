// RUN: kiln-opt %s --kiln-lower-tiles --canonicalize --cse --split-input-file | FileCheck %s

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#line = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>
#row = #tile_gpu.slice<dim=0, parent=linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>

// A warp's stores are fenced before they are told of; its first lane begins the one run of 2 KiB, if it is not masked.
// CHECK-LABEL: @run
// CHECK: llvm.store {{.*}} vector<4xi32>
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT: nvvm.bar.warp.sync
// CHECK: scf.if
// CHECK: llvm.inline_asm {{.*}}"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], 2048;"
// CHECK-NOT: cp.reduce
// CHECK: nvvm.cp.async.bulk.commit.group
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK: nvvm.cp.async.bulk.wait_group 0{{$}}
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @run(%a: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: tensor<4x512xf32, #runs>) attributes {tile.num_warps = 4 : i32, tile_gpu.shared_bytes = 8192 : i32} {
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    %j = tile.range 0 to 512 : tensor<512xi32, #row>
    %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<512xi32, #row> to tensor<1x512xi32, #line>
    %j2 = tile.broadcast %j1 : tensor<1x512xi32, #line> to tensor<4x512xi32, #runs>
    %j3 = arith.extsi %j2 : tensor<4x512xi32, #runs> to tensor<4x512xi64, #runs>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %j3 : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    tile_gpu.local_store %x, %b : tensor<4x512xf32, #runs>, !tile_gpu.buffer<4x512xf32, #rows>
    tile_gpu.warp_barrier
    tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
    tile_gpu.bulk_wait read
    tile_gpu.bulk_wait
    return
  }
}

// -----

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#line = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>
#row = #tile_gpu.slice<dim=0, parent=linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>

// A sum of 32 bits is a multiple of 64: runs of 256 bytes, two of a lane and register begin at lanes 0 and 16.
// CHECK-LABEL: @aligned
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK: %[[IN:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
// CHECK-COUNT-4: llvm.inline_asm {{.*}}"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], 256;"
// CHECK-NOT: cp.reduce
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @aligned(%a: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: tensor<4x512xf32, #runs>, %first: i32 {tile.divisibility = 64 : i32}) attributes {tile.num_warps = 4 : i32, tile_gpu.shared_bytes = 8192 : i32} {
    %b = tile_gpu.local_alloc {offset = 0 : i32} : !tile_gpu.buffer<4x512xf32, #rows>
    %j = tile.range 0 to 512 : tensor<512xi32, #row>
    %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<512xi32, #row> to tensor<1x512xi32, #line>
    %j2 = tile.broadcast %j1 : tensor<1x512xi32, #line> to tensor<4x512xi32, #runs>
    %f = tile.splat %first : i32 to tensor<4x512xi32, #runs>
    %at = arith.addi %f, %j2 : tensor<4x512xi32, #runs>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %at : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi32, #runs>
    tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
    tile_gpu.bulk_wait
    return
  }
}
