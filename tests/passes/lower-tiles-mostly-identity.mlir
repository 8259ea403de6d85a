// RUN: kiln-opt %s --kiln-lower-tiles | FileCheck %s

#tile = #tile_gpu.blocked<sizePerThread=[1,16], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#row = #tile_gpu.slice<dim=1, parent=blocked<sizePerThread=[1,16], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>>

module attributes {tile_gpu.target = "sm_80"} {
// One factor a thread for sixteen elements: nothing is multiplied where it is 1 in all lanes.
// CHECK-LABEL: @rows
// CHECK: %[[DIFFERS:.*]] = arith.cmpf une, %{{.*}}, %{{.*}} : f32
// CHECK: %[[ANY:.*]] = nvvm.vote.sync any %{{.*}}, %[[DIFFERS]] -> i1
// CHECK: scf.if %[[ANY]] -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
// CHECK-COUNT-16: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NOT: arith.mulf
// CHECK: return
  func.func @rows(%p: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%n, %c1] : !tile.view<32x64xf32>, i32
    %x = tile.load_view %v[%c0, %c0] : !tile.view<32x64xf32>, i32 -> tensor<32x64xf32, #tile>
    %i = tile.range 0 to 32 : tensor<32xi32, #row>
    %f = arith.sitofp %i : tensor<32xi32, #row> to tensor<32xf32, #row>
    %e = tile.expand_dims %f {axis = 1 : i32} : tensor<32xf32, #row> to tensor<32x1xf32, #tile>
    %b = tile.broadcast %e : tensor<32x1xf32, #tile> to tensor<32x64xf32, #tile>
    %y = arith.mulf %x, %b {tile.mostly_identity} : tensor<32x64xf32, #tile>
    tile.store_view %v[%c0, %c0], %y : !tile.view<32x64xf32>, i32, tensor<32x64xf32, #tile>
    return
  }

// A factor for each element: to ask takes as long as to multiply.
// CHECK-LABEL: @elements
// CHECK-NOT: nvvm.vote
// CHECK-COUNT-16: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NOT: mostly_identity
// CHECK: return
  func.func @elements(%p: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%n, %c1] : !tile.view<32x64xf32>, i32
    %x = tile.load_view %v[%c0, %c0] : !tile.view<32x64xf32>, i32 -> tensor<32x64xf32, #tile>
    %y = arith.mulf %x, %x {tile.mostly_identity} : tensor<32x64xf32, #tile>
    tile.store_view %v[%c0, %c0], %y : !tile.view<32x64xf32>, i32, tensor<32x64xf32, #tile>
    return
  }

// Of a difference the second operand is mostly 0.
// CHECK-LABEL: @bases
// CHECK: %[[DIFFERS:.*]] = arith.cmpf une, %{{.*}}, %{{.*}} : f32
// CHECK: %[[ANY:.*]] = nvvm.vote.sync any %{{.*}}, %[[DIFFERS]] -> i1
// CHECK: scf.if %[[ANY]]
// CHECK-COUNT-16: arith.subf %{{.*}}, %{{.*}} : f32
// CHECK-NOT: arith.subf
// CHECK: return
  func.func @bases(%p: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%n, %c1] : !tile.view<32x64xf32>, i32
    %x = tile.load_view %v[%c0, %c0] : !tile.view<32x64xf32>, i32 -> tensor<32x64xf32, #tile>
    %i = tile.range 0 to 32 : tensor<32xi32, #row>
    %f = arith.sitofp %i : tensor<32xi32, #row> to tensor<32xf32, #row>
    %e = tile.expand_dims %f {axis = 1 : i32} : tensor<32xf32, #row> to tensor<32x1xf32, #tile>
    %b = tile.broadcast %e : tensor<32x1xf32, #tile> to tensor<32x64xf32, #tile>
    %y = arith.subf %x, %b {tile.mostly_identity} : tensor<32x64xf32, #tile>
    tile.store_view %v[%c0, %c0], %y : !tile.view<32x64xf32>, i32, tensor<32x64xf32, #tile>
    return
  }
}
