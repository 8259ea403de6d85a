// RUN: kiln-opt %s | kiln-opt | FileCheck %s

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#rows = #tile_gpu.tma<swizzle=0, order=[1,0]>

// CHECK-LABEL: @sums
func.func @sums(%b: !tile_gpu.buffer<4x512xf32, #rows>, %p: tensor<4x512x!tile.ptr<f32>, #runs>, %m: tensor<4x512xi1, #runs>) {
  // CHECK: tile_gpu.bulk_add %{{.*}}, %{{.*}} : !tile_gpu.buffer<4x512xf32, #tma>, tensor<4x512x!tile.ptr<f32>, #linear>
  tile_gpu.bulk_add %b, %p : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
  // CHECK: tile_gpu.bulk_wait read{{$}}
  tile_gpu.bulk_wait read
  // CHECK: tile_gpu.bulk_add %{{.*}}, %{{.*}} mask %{{.*}} : !tile_gpu.buffer<4x512xf32, #tma>, tensor<4x512x!tile.ptr<f32>, #linear>
  tile_gpu.bulk_add %b, %p mask %m : !tile_gpu.buffer<4x512xf32, #rows>, tensor<4x512x!tile.ptr<f32>, #runs>
  // CHECK: tile_gpu.bulk_wait{{$}}
  tile_gpu.bulk_wait
  return
}
