// RUN: kiln-opt %s --kiln-pipeline-loops --kiln-rotate-products --kiln-resident-operands --kiln-lower-pipelines --canonicalize --cse --split-input-file | FileCheck %s

// Stores and an atomic operation through other arguments, one of them in a conditional: different arguments are
// different memory, so copies may pass them.  An operation that releases comes after what was read before it, as ever.
// CHECK-LABEL: @stores
// CHECK: tile_gpu.async_copy_view
// CHECK: scf.for
// CHECK: tile_gpu.async_wait
// CHECK-NEXT: tile_gpu.barrier
// CHECK: scf.if
// CHECK: tile_gpu.async_copy_view
// CHECK: tile_gpu.async_commit
// CHECK-NOT: load_view
// CHECK: %[[X:.*]] = tile_gpu.local_load
// CHECK: tile.store_view %{{.*}}[%{{.*}}], %[[X]]
// CHECK: scf.if
// CHECK: tile.store_view
// CHECK: tile.atomic_rmw add release gpu
// CHECK: }
// CHECK: tile_gpu.async_wait all
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @stores(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f16>, %c: !tile.ptr<i32>, %n: i32,
                    %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    %w = tile.make_view %o, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.store_view %w[%i, %c0], %y : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #column>
      %odd = arith.cmpi eq, %i, %s : i32
      scf.if %odd {
        tile.store_view %w[%c0, %i], %y : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #column>
      }
      %old = tile.atomic_rmw add release gpu %c, %c1 : !tile.ptr<i32>
    }
    return
  }
}

// -----

// Of two loads one reads what the loop writes: it stays; the other one is staged.
// CHECK-LABEL: @one_of_two
// CHECK: tile_gpu.local_alloc : !tile_gpu.buffer<"q": [2] x 64x32xf16
// CHECK-NOT: tile_gpu.local_alloc
// CHECK: scf.for
// CHECK: tile.load_view
// CHECK-NOT: tile.load_view
// CHECK: tile.store_view
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @one_of_two(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32, tile.name = "p"},
                        %q: !tile.ptr<f16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32,
                        %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    %w = tile.make_view %q, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %z = arith.addf %x, %y : tensor<64x32xf16, #row>
      %c = tile_gpu.convert_layout %z : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.store_view %v[%i, %c0], %c : !tile.view<64x32xf16>, i32, tensor<64x32xf16, #column>
    }
    return
  }
}

// -----

// Elementwise work: each vector is copied in runs of 16 bytes by few threads, whatever the layout in which it is read.
// CHECK: #[[RUNS:blocked[0-9]*]] = #tile_gpu.blocked<sizePerThread=[8], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
// CHECK-LABEL: @vectors
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<[3] x 64xf16
// CHECK: scf.for
// CHECK: tile_gpu.async_wait
// CHECK: tile_gpu.async_copy %{{.*}}, %{{.*}} : tensor<64x!tile.ptr<f16>, #[[RUNS]]>
// CHECK-NOT: tile.load
// CHECK: %[[X:.*]] = tile_gpu.local_load %{{.*}} to tensor<64xf16, #slice>
// CHECK: arith.addf %{{.*}}, %[[X]]
#own = #tile_gpu.slice<dim=1, parent=blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @vectors(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32)
      attributes {tile.kernel, tile.num_stages = 3 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf16, #own>
    %range = tile.range 0 to 64 : tensor<64xi32, #own>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf16, #own>) : i32 {
      %far = arith.muli %i, %c64 : i32
      %at = tile.addptr %p, %far : !tile.ptr<f16>, i32
      %base = tile.splat %at : !tile.ptr<f16> to tensor<64x!tile.ptr<f16>, #own>
      %q = tile.addptr %base, %range : tensor<64x!tile.ptr<f16>, #own>, tensor<64xi32, #own>
      %x = tile.load %q : tensor<64x!tile.ptr<f16>, #own>
      %more = arith.addf %acc, %x : tensor<64xf16, #own>
      scf.yield %more : tensor<64xf16, #own>
    }
    tile.print "sum" %sum : tensor<64xf16, #own>
    return
  }
}

// -----

// A product whose operands are read a round ahead, and a tile for elementwise work after it: its slot is free from the
// round's barrier on, so it is read before.
// CHECK-LABEL: @scaled
// CHECK: scf.for
// CHECK: %[[D0:.*]] = tile.dot
// CHECK: %[[S:.*]] = tile_gpu.local_load %{{.*}} to tensor<64x64xf32, #mma>
// CHECK: tile_gpu.async_wait
// CHECK-NEXT: tile_gpu.barrier
// CHECK: %[[D1:.*]] = tile.dot
// CHECK: arith.mulf %[[D1]], %[[S]]
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#wide = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
#x = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#y = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @scaled(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %g: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32,
                    %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    %w = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<32x64xf16>, i32
    %u = tile.make_view %g, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xf32>, i32
    %sum = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %a = tile.load_view %v[%c0, %i] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %b = tile.load_view %w[%i, %c0] : !tile.view<32x64xf16>, i32 -> tensor<32x64xf16, #wide>
      %f = tile.load_view %u[%i, %c0] : !tile.view<64x64xf32>, i32 -> tensor<64x64xf32, #mma>
      %x = tile_gpu.convert_layout %a : tensor<64x32xf16, #row> to tensor<64x32xf16, #x>
      %y = tile_gpu.convert_layout %b : tensor<32x64xf16, #wide> to tensor<32x64xf16, #y>
      %d = tile.dot %x, %y, %acc : tensor<64x32xf16, #x>, tensor<32x64xf16, #y> to tensor<64x64xf32, #mma>
      %e = arith.mulf %d, %f : tensor<64x64xf32, #mma>
      scf.yield %e : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// Indices that addresses follow from are read ahead with these, not staged.
// CHECK-LABEL: @gathered
// CHECK: tile_gpu.local_alloc : !tile_gpu.buffer<"table":
// CHECK-NOT: tile_gpu.local_alloc
// CHECK: scf.for
// CHECK: scf.if
// CHECK: tile.load %{{.*}} : tensor<64x!tile.ptr<i32>
// CHECK: tile_gpu.async_copy
// CHECK: }
#own = #tile_gpu.blocked<sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @gathered(%t: !tile.ptr<f32> {tile.divisibility = 16 : i32, tile.name = "table"},
                      %p: !tile.ptr<i32> {tile.divisibility = 16 : i32, tile.name = "index"}, %n: i32)
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32, #own>
    %range = tile.range 0 to 64 : tensor<64xi32, #own>
    %rows = tile.splat %t : !tile.ptr<f32> to tensor<64x!tile.ptr<f32>, #own>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf32, #own>) : i32 {
      %far = arith.muli %i, %c64 : i32
      %at = tile.addptr %p, %far : !tile.ptr<i32>, i32
      %base = tile.splat %at : !tile.ptr<i32> to tensor<64x!tile.ptr<i32>, #own>
      %q = tile.addptr %base, %range : tensor<64x!tile.ptr<i32>, #own>, tensor<64xi32, #own>
      %index = tile.load %q : tensor<64x!tile.ptr<i32>, #own>
      %r = tile.addptr %rows, %index : tensor<64x!tile.ptr<f32>, #own>, tensor<64xi32, #own>
      %x = tile.load %r : tensor<64x!tile.ptr<f32>, #own>
      %more = arith.addf %acc, %x : tensor<64xf32, #own>
      scf.yield %more : tensor<64xf32, #own>
    }
    tile.print "sum" %sum : tensor<64xf32, #own>
    return
  }
}
