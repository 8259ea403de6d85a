// RUN: kiln-opt %s --kiln-expand-shared --split-input-file | FileCheck %s

// A tile that is loaded once, for products before a loop and in it: the copy engine puts it where they read it, from
// where the load was, and all wait before the first product.
// CHECK-LABEL: @fetched
// CHECK-SAME: %[[M:[a-z0-9]*]]: !tile_gpu.tensor_map {
// CHECK: tile_gpu.local_store
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #[[TMA:.*]]>
// CHECK-NEXT: %[[FULL:.*]] = tile_gpu.local_alloc {alone} : !tile_gpu.mbarriers<1>
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_init %[[FULL]] arrivals 1
// CHECK-NEXT: tile_gpu.tensor_copy %[[M]][%c0_i32, %c0_i32] to %[[B]] dims [1, 0] counts %[[FULL]][%[[ZERO]]]
// CHECK-NEXT: tile_gpu.mbarrier_arrive %[[FULL]][%[[ZERO]]] phase %[[ZERO]] :
// CHECK-NEXT: }
// CHECK-NOT: tile.load_view
// CHECK: arith.constant 17
// CHECK-NOT: local_store %{{.*}}, %[[B]]
// CHECK: tile_gpu.mbarrier_wait %[[FULL]][%[[ZERO]]] phase %[[ZERO]] ready %[[B]]
// CHECK: tile_gpu.warpgroup_dot %[[B]]
// CHECK: scf.for
// CHECK-NOT: tile_gpu.mbarrier_wait
// CHECK: tile_gpu.warpgroup_dot %[[B]]
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @fetched(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %view[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %between = arith.constant 17 : i32
    tile.print "between" %between : i32
    %first = tile.dot %q, %x, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%o = %first) -> (tensor<64x64xf32, #acc>) : i32 {
      %d = tile.dot %q, %x, %o : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
      %g = arith.mulf %d, %d : tensor<64x64xf32, #acc>
      scf.yield %g : tensor<64x64xf32, #acc>
    }
    tile.print "sums" %sums : tensor<64x64xf32, #acc>
    return
  }
}

// -----

// Products of the loop alone: the wait stands before it.
// CHECK-LABEL: @before_loop
// CHECK-SAME: %[[M:[a-z0-9]*]]: !tile_gpu.tensor_map {
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #[[TMA:.*]]>
// CHECK-NEXT: %[[FULL:.*]] = tile_gpu.local_alloc {alone} : !tile_gpu.mbarriers<1>
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_init %[[FULL]] arrivals 1
// CHECK-NEXT: tile_gpu.tensor_copy %[[M]][%c0_i32, %c0_i32] to %[[B]] dims [1, 0] counts %[[FULL]][%[[ZERO]]]
// CHECK-NEXT: tile_gpu.mbarrier_arrive %[[FULL]][%[[ZERO]]] phase %[[ZERO]] :
// CHECK-NEXT: }
// CHECK: tile_gpu.mbarrier_wait %[[FULL]]
// CHECK: scf.for
// CHECK-NOT: tile_gpu.mbarrier_wait
// CHECK: tile_gpu.warpgroup_dot %[[B]]
// CHECK-NOT: tile_gpu.mbarrier_wait
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @before_loop(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %view[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
      %d = tile.dot %q, %x, %o : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
      %g = arith.mulf %d, %d : tensor<64x64xf32, #acc>
      scf.yield %g : tensor<64x64xf32, #acc>
    }
    tile.print "sums" %sums : tensor<64x64xf32, #acc>
    return
  }
}

// -----

// Products in a conditional: what is begun there is waited for there, so the copy is made in it, too.
// CHECK-LABEL: @conditional
// CHECK-SAME: %[[M:[a-z0-9]*]]: !tile_gpu.tensor_map {
// CHECK-NOT: tile_gpu.tensor_copy
// CHECK: scf.if
// CHECK-NEXT: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<64x64xbf16, #[[TMA:.*]]>
// CHECK-NEXT: %[[FULL:.*]] = tile_gpu.local_alloc {alone} : !tile_gpu.mbarriers<1>
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT: tile_gpu.elected {
// CHECK-NEXT: tile_gpu.mbarrier_init %[[FULL]] arrivals 1
// CHECK-NEXT: tile_gpu.tensor_copy %[[M]][%c0_i32, %c0_i32] to %[[B]] dims [1, 0] counts %[[FULL]][%[[ZERO]]]
// CHECK-NEXT: tile_gpu.mbarrier_arrive %[[FULL]][%[[ZERO]]] phase %[[ZERO]] :
// CHECK-NEXT: }
// CHECK: tile_gpu.mbarrier_wait %[[FULL]]
// CHECK: scf.for
// CHECK: tile_gpu.warpgroup_dot %[[B]]
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @conditional(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %view[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %some = arith.cmpi sgt, %n, %c0 : i32
    scf.if %some {
      %sums = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
        %d = tile.dot %q, %x, %o : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
        %g = arith.mulf %d, %d : tensor<64x64xf32, #acc>
        scf.yield %g : tensor<64x64xf32, #acc>
      }
      tile.print "sums" %sums : tensor<64x64xf32, #acc>
    }
    return
  }
}

// -----

// Not where memory is written before the conditional: the tile was loaded before.
// CHECK-LABEL: @conditional_writes
// CHECK: %[[Q:.*]] = tile.load_view
// CHECK-NOT: tile_gpu.tensor_copy
// CHECK: tile_gpu.local_store %[[Q]]
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @conditional_writes(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32}, %op: !tile.ptr<bf16>)
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %out = tile.make_view %op, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %view[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    tile.store_view %out[%c0, %c0], %x : !view, i32, tensor<64x64xbf16, #row>
    %some = arith.cmpi sgt, %n, %c0 : i32
    scf.if %some {
      %sums = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
        %d = tile.dot %q, %x, %o : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
        %g = arith.mulf %d, %d : tensor<64x64xf32, #acc>
        scf.yield %g : tensor<64x64xf32, #acc>
      }
      tile.print "sums" %sums : tensor<64x64xf32, #acc>
    }
    return
  }
}

// -----

// Where the copy stays in the load's place, another argument's tensor may be written before the wait.
// CHECK-LABEL: @written_after
// CHECK-SAME: %[[M:[a-z0-9]*]]: !tile_gpu.tensor_map {
// CHECK: tile_gpu.tensor_copy
// CHECK: tile.store_view
// CHECK: tile_gpu.mbarrier_wait
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @written_after(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32}, %op: !tile.ptr<bf16>)
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %out = tile.make_view %op, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %view[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    tile.store_view %out[%c0, %c0], %x : !view, i32, tensor<64x64xbf16, #row>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
      %d = tile.dot %q, %x, %o : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
      %g = arith.mulf %d, %d : tensor<64x64xf32, #acc>
      scf.yield %g : tensor<64x64xf32, #acc>
    }
    tile.print "sums" %sums : tensor<64x64xf32, #acc>
    return
  }
}

// -----

// A tensor map does not know a narrowed view's bounds.
// CHECK-LABEL: @narrowed
// CHECK: %[[Q:.*]] = tile.load_view
// CHECK-NOT: tile_gpu.tensor_copy
// CHECK: tile_gpu.local_store %[[Q]]
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @narrowed(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %narrow = tile.narrow_view %view [%c64, %n] {dim = 0 : i32} : !view, i32
    %q = tile.load_view %narrow[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
      %d = tile.dot %q, %x, %o : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
      %g = arith.mulf %d, %d : tensor<64x64xf32, #acc>
      scf.yield %g : tensor<64x64xf32, #acc>
    }
    tile.print "sums" %sums : tensor<64x64xf32, #acc>
    return
  }
}

// -----

// The tile is looked at by something else, too.
// CHECK-LABEL: @printed
// CHECK: %[[Q:.*]] = tile.load_view
// CHECK-NOT: tile_gpu.tensor_copy
// CHECK: tile_gpu.local_store %[[Q]]
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @printed(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %view[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
      %d = tile.dot %q, %x, %o : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
      %g = arith.mulf %d, %d : tensor<64x64xf32, #acc>
      scf.yield %g : tensor<64x64xf32, #acc>
    }
    tile.print "sums" %sums : tensor<64x64xf32, #acc>
    tile.print "q" %q : tensor<64x64xbf16, #row>
    return
  }
}

// -----

// No loop of the kernel has stages.
// CHECK-LABEL: @no_stages
// CHECK: %[[Q:.*]] = tile.load_view
// CHECK-NOT: tile_gpu.tensor_copy
// CHECK: tile_gpu.local_store %[[Q]]
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_stages(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %view[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
      %d = tile.dot %q, %x, %o : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
      %g = arith.mulf %d, %d : tensor<64x64xf32, #acc>
      scf.yield %g : tensor<64x64xf32, #acc>
    }
    tile.print "sums" %sums : tensor<64x64xf32, #acc>
    return
  }
}

// -----

// The launcher can make no maps.
// CHECK-LABEL: @no_maps
// CHECK: %[[Q:.*]] = tile.load_view
// CHECK-NOT: tile_gpu.tensor_copy
// CHECK: tile_gpu.local_store %[[Q]]
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @no_maps(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32, tile_gpu.no_tensor_maps} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %view[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
      %d = tile.dot %q, %x, %o : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
      %g = arith.mulf %d, %d : tensor<64x64xf32, #acc>
      scf.yield %g : tensor<64x64xf32, #acc>
    }
    tile.print "sums" %sums : tensor<64x64xf32, #acc>
    return
  }
}

// -----

// The rows are not known to begin at multiples of 16 bytes.
// CHECK-LABEL: @unaligned
// CHECK: %[[Q:.*]] = tile.load_view
// CHECK-NOT: tile_gpu.tensor_copy
// CHECK: tile_gpu.local_store %[[Q]]
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @unaligned(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32, %s: i32)
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %q = tile.load_view %view[%c0, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
      %d = tile.dot %q, %x, %o : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
      %g = arith.mulf %d, %d : tensor<64x64xf32, #acc>
      scf.yield %g : tensor<64x64xf32, #acc>
    }
    tile.print "sums" %sums : tensor<64x64xf32, #acc>
    return
  }
}

// -----

// Loaded in every round: there is no pipeline for it.
// CHECK-LABEL: @in_loop
// CHECK: %[[Q:.*]] = tile.load_view
// CHECK-NOT: tile_gpu.tensor_copy
// CHECK: tile_gpu.local_store %[[Q]]
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#acc = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
!view = !tile.view<64x64xbf16>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @in_loop(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %x = arith.constant dense<1.0> : tensor<64x64xbf16, #row>
    %view = tile.make_view %p, extents [%n, %c64], strides [%s, %c1] : !view, i32
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> (tensor<64x64xf32, #acc>) : i32 {
      %y = tile.load_view %view[%i, %c0] : !view, i32 -> tensor<64x64xbf16, #row>
      %d = tile.dot %y, %x, %o : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #acc>
      scf.yield %d : tensor<64x64xf32, #acc>
    }
    tile.print "sums" %sums : tensor<64x64xf32, #acc>
    return
  }
}
