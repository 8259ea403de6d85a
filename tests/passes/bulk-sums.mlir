// RUN: kiln-opt %s -split-input-file --kiln-bulk-sums | FileCheck %s

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#line = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>
#row = #tile_gpu.slice<dim=0, parent=linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>>

// Both sums have the one buffer; the kernel ends when the engine has.
// CHECK-LABEL: @loop
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<4x512xf32, #tma>
// CHECK-NOT: local_alloc
// CHECK: scf.for
// CHECK: %[[P:.*]] = tile.addptr
// CHECK: tile_gpu.bulk_wait read
// CHECK-NEXT: tile_gpu.local_store %{{.*}}, %[[B]]
// CHECK-NEXT: tile_gpu.bulk_add %[[B]], %[[P]] mask
// CHECK-NEXT: tile_gpu.bulk_wait read
// CHECK-NEXT: tile_gpu.local_store %{{.*}}, %[[B]]
// CHECK-NEXT: tile_gpu.bulk_add %[[B]], %[[P]] : 
// CHECK-NEXT: }
// Where nothing comes round there is nothing to do meanwhile.
// CHECK-NEXT: tile.atomic_rmw
// CHECK-NEXT: tile_gpu.bulk_wait{{$}}
// CHECK-NEXT: return
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @loop(%a: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: tensor<4x512xf32, #runs>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %j = tile.range 0 to 512 : tensor<512xi32, #row>
    %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<512xi32, #row> to tensor<1x512xi32, #line>
    %j2 = tile.broadcast %j1 : tensor<1x512xi32, #line> to tensor<4x512xi32, #runs>
    %j3 = arith.extsi %j2 : tensor<4x512xi32, #runs> to tensor<4x512xi64, #runs>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %j3 : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %few = arith.cmpi slt, %i, %c4 : i32
      %m = tile.splat %few : i1 to tensor<4x512xi1, #runs>
      %l = arith.muli %i, %c4 : i32
      %at = tile.splat %l : i32 to tensor<4x512xi32, #runs>
      %q = tile.addptr %p, %at : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi32, #runs>
      %old = tile.atomic_rmw add relaxed gpu %q, %x mask %m : tensor<4x512x!tile.ptr<f32>, #runs>
      %old2 = tile.atomic_rmw add relaxed gpu %q, %x : tensor<4x512x!tile.ptr<f32>, #runs>
    }
    %old3 = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
    return
  }
}

// -----

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>

// Old values, another order, another scope, other numbers; a target without the engine.
// CHECK-LABEL: @others
// CHECK-NOT: bulk_add
// CHECK-LABEL: @without
// CHECK-NOT: bulk_add
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @others(%p: tensor<4x512x!tile.ptr<f32>, #runs>, %k: tensor<4x512x!tile.ptr<i32>, #runs>, %x: tensor<4x512xf32, #runs>, %y: tensor<4x512xi32, #runs>, %n: i32) -> tensor<4x512xf32, #runs> attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%z = %x) -> (tensor<4x512xf32, #runs>) : i32 {
      %old = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
      %a = tile.atomic_rmw add release gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
      %b = tile.atomic_rmw add relaxed sys %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
      %c = tile.atomic_rmw add relaxed gpu %k, %y : tensor<4x512x!tile.ptr<i32>, #runs>
      scf.yield %old : tensor<4x512xf32, #runs>
    }
    return %r : tensor<4x512xf32, #runs>
  }
}

// -----

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @without(%p: tensor<4x512x!tile.ptr<f32>, #runs>, %x: tensor<4x512xf32, #runs>, %n: i32) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %old = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
    }
    return
  }
}

// -----

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#line = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>
#row = #tile_gpu.slice<dim=0, parent=linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>>

// The thread that copies counts, when the sums are in memory: one wait for it, as early as it may be.
// CHECK-LABEL: @counted
// CHECK-SAME: %[[A:.*]]: !tile.ptr<f32> {
// CHECK: scf.for
// CHECK-NEXT: tile_gpu.bulk_wait{{$}}
// CHECK-NEXT: arith.cmpi
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.count %{{.*}} if %{{.*}} await %{{.*}} of %{{.*}} for %[[A]] : <i32>, !tile.ptr<f32>
// CHECK-NEXT: }
// CHECK-NEXT: tile_gpu.bulk_wait read
// CHECK: tile_gpu.bulk_add
// CHECK-NEXT: }
// CHECK-NEXT: tile_gpu.bulk_wait{{$}}
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.count
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @counted(%a: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: tensor<4x512xf32, #runs>, %count: !tile.ptr<i32>, %n: i32, %is: i1) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %j = tile.range 0 to 512 : tensor<512xi32, #row>
    %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<512xi32, #row> to tensor<1x512xi32, #line>
    %j2 = tile.broadcast %j1 : tensor<1x512xi32, #line> to tensor<4x512xi32, #runs>
    %j3 = arith.extsi %j2 : tensor<4x512xi32, #runs> to tensor<4x512xi64, #runs>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %j3 : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %later = arith.cmpi sgt, %i, %c0 : i32
      tile_gpu.count %count if %later await %i of %count for %p : !tile.ptr<i32>, tensor<4x512x!tile.ptr<f32>, #runs>, !tile.ptr<i32>
      %old = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
    }
    tile_gpu.count %count if %is for %p : !tile.ptr<i32>, tensor<4x512x!tile.ptr<f32>, #runs>
    return
  }
}

// -----

#runs = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[1,0],[2,0]], shape=[4,512]>
#line = #tile_gpu.linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>
#row = #tile_gpu.slice<dim=0, parent=linear<register=[[0,1],[0,2],[0,128],[0,256]], lane=[[0,4],[0,8],[0,16],[0,32],[0,64]], warp=[[0,0],[0,0]], shape=[1,512]>>

// Of two arguments nobody knows which one it is about; and warps that copy could not tell what another thread was told.
// The first thread counts.
// CHECK-LABEL: @several_arguments
// CHECK: tile_gpu.bulk_wait{{$}}
// CHECK-NOT: elected
// CHECK: tile_gpu.count
// CHECK: tile_gpu.bulk_add
// CHECK-LABEL: @from_memory
// CHECK: tile_gpu.bulk_wait{{$}}
// CHECK-NOT: elected
// CHECK: tile_gpu.count
// CHECK: tile_gpu.bulk_add
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @several_arguments(%a: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %other: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: tensor<4x512xf32, #runs>, %count: !tile.ptr<i32>, %n: i32, %is: i1) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %j = tile.range 0 to 512 : tensor<512xi32, #row>
    %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<512xi32, #row> to tensor<1x512xi32, #line>
    %j2 = tile.broadcast %j1 : tensor<1x512xi32, #line> to tensor<4x512xi32, #runs>
    %j3 = arith.extsi %j2 : tensor<4x512xi32, #runs> to tensor<4x512xi64, #runs>
    %either = arith.select %is, %a, %other : !tile.ptr<f32>
    %s = tile.splat %either : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %j3 : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %later = arith.cmpi sgt, %i, %c0 : i32
      tile_gpu.count %count if %later await %i of %count for %p : !tile.ptr<i32>, tensor<4x512x!tile.ptr<f32>, #runs>, !tile.ptr<i32>
      %old = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
    }
    return
  }
  func.func @from_memory(%a: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: tensor<4x512xf32, #runs>, %count: !tile.ptr<i32>, %n: i32, %is: i1) attributes {tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %j = tile.range 0 to 512 : tensor<512xi32, #row>
    %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<512xi32, #row> to tensor<1x512xi32, #line>
    %j2 = tile.broadcast %j1 : tensor<1x512xi32, #line> to tensor<4x512xi32, #runs>
    %j3 = arith.extsi %j2 : tensor<4x512xi32, #runs> to tensor<4x512xi64, #runs>
    %s = tile.splat %a : !tile.ptr<f32> to tensor<4x512x!tile.ptr<f32>, #runs>
    %p = tile.addptr %s, %j3 : tensor<4x512x!tile.ptr<f32>, #runs>, tensor<4x512xi64, #runs>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %old1 = tile.atomic_rmw add relaxed gpu %count, %c1 : !tile.ptr<i32>
      %later = arith.cmpi sgt, %i, %c0 : i32
      tile_gpu.count %count if %later await %old1 of %count for %p : !tile.ptr<i32>, tensor<4x512x!tile.ptr<f32>, #runs>, !tile.ptr<i32>
      %old = tile.atomic_rmw add relaxed gpu %p, %x : tensor<4x512x!tile.ptr<f32>, #runs>
    }
    return
  }
}
