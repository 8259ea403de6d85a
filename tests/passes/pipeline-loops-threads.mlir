// RUN: kiln-opt %s --kiln-pipeline-loops --split-input-file | FileCheck %s

// Threads read both tiles of a loop's only product: the copy engine fetches them all the same, in the widest swizzle,
// which is as cheap to read.  The slot is given back once it was read: nothing is in flight on it.
// CHECK-LABEL: @threads
// CHECK: tile_gpu.pipeline bulk : !tile_gpu.pipeline<3, !tile_gpu.buffer<"p": 64x64xbf16, #[[T:tma[0-9]*]]>, !tile_gpu.buffer<"q": 64x64xbf16, #[[T]]>>
// CHECK: tile_gpu.tensor_copy
// CHECK: scf.for
// CHECK: %[[W:.*]], %[[NOW:.*]]:2 = tile_gpu.wait
// CHECK: tile_gpu.tensor_copy
// CHECK: tile_gpu.tensor_copy
// CHECK: %[[A:.*]] = tile_gpu.local_load %[[NOW]]#0 {tile_gpu.read_by_threads} : !tile_gpu.buffer<"p": 64x64xbf16, #[[T]]> to tensor<64x64xbf16, #dot
// CHECK: %[[B:.*]] = tile_gpu.local_load %[[NOW]]#1 {tile_gpu.read_by_threads} : !tile_gpu.buffer<"q": 64x64xbf16, #[[T]]> to tensor<64x64xbf16, #dot
// CHECK-NEXT: tile_gpu.release {{.*}}tile_gpu.read_by_threads
// CHECK-NEXT: tile.dot %[[A]], %[[B]]
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
#left = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#right = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_120a"} {
  func.func @threads(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "p"}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"},
                     %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 3 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %a = tile_gpu.convert_layout %x : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #left>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %b = tile_gpu.convert_layout %y : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #right>
      %d = tile.dot %a, %b, %acc : tensor<64x64xbf16, #left>, tensor<64x64xbf16, #right> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// Two products have no registers for that: the threads copy.
// CHECK-LABEL: @two
// CHECK: tile_gpu.pipeline :
// CHECK-NOT: tile_gpu.tensor_copy
// CHECK: tile_gpu.drain
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
#left = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#right = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_120a"} {
  func.func @two(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "p"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32},
                 %a: tensor<64x64xbf16, #left>) attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sums:2 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %more = %zero) -> (tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>) : i32 {
      %y = tile.load_view %v[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %b = tile_gpu.convert_layout %y : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #right>
      %d = tile.dot %a, %b, %acc : tensor<64x64xbf16, #left>, tensor<64x64xbf16, #right> to tensor<64x64xf32, #mma>
      %e = tile.dot %a, %b, %more : tensor<64x64xbf16, #left>, tensor<64x64xbf16, #right> to tensor<64x64xf32, #mma>
      scf.yield %d, %e : tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sums#0 : tensor<64x64xf32, #mma>
    tile.print "more" %sums#1 : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// What the threads would copy through pointers, and no product multiplies, does not keep tiles from the copy engine: it
// is loaded where it is used.
// CHECK-LABEL: @bias
// CHECK: tile_gpu.pipeline bulk : !tile_gpu.pipeline<3, !tile_gpu.buffer<"p": 64x64xbf16, #[[T:tma[0-9]*]]>, !tile_gpu.buffer<"q": 64x64xbf16, #[[T]]>>
// CHECK-NOT: tile_gpu.async_copy
// CHECK: scf.for
// CHECK: %[[BIAS:.*]] = tile.load %{{.*}} : tensor<64x!tile.ptr<f32>, #{{[a-z0-9]+}}>
// CHECK: tile_gpu.convert_layout %[[BIAS]]
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
#left = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#right = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#across = #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
#columns = #tile_gpu.slice<dim=0, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
module attributes {tile_gpu.target = "sm_120a"} {
  func.func @bias(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "p"}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"},
                  %r: !tile.ptr<f32> {tile.divisibility = 16 : i32, tile.name = "r"},
                  %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 3 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %range = tile.range 0 to 64 : tensor<64xi32, #across>
    %base = tile.splat %r : !tile.ptr<f32> to tensor<64x!tile.ptr<f32>, #across>
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %a = tile_gpu.convert_layout %x : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #left>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %b = tile_gpu.convert_layout %y : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #right>
      %d = tile.dot %a, %b, %acc : tensor<64x64xbf16, #left>, tensor<64x64xbf16, #right> to tensor<64x64xf32, #mma>
      %first = tile.splat %i : i32 to tensor<64xi32, #across>
      %j = arith.addi %first, %range : tensor<64xi32, #across>
      %at = tile.addptr %base, %j : tensor<64x!tile.ptr<f32>, #across>, tensor<64xi32, #across>
      %z = tile.load %at : tensor<64x!tile.ptr<f32>, #across>
      %k = tile_gpu.convert_layout %z : tensor<64xf32, #across> to tensor<64xf32, #columns>
      %l = tile.expand_dims %k {axis = 0 : i32} : tensor<64xf32, #columns> to tensor<1x64xf32, #mma>
      %m = tile.broadcast %l : tensor<1x64xf32, #mma> to tensor<64x64xf32, #mma>
      %e = arith.addf %d, %m : tensor<64x64xf32, #mma>
      scf.yield %e : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}
