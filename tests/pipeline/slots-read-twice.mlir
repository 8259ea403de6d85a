// RUN: kiln-opt %s --split-input-file --kiln-stage-tile=target=sm_90a --kiln-stage-tile-gpu | FileCheck %s

// Slots of pipelines that threads read next to a product of warpgroups, and loads next to a loop that something after it
// reads, too.

// The threads give the slot back once they have read it: the product's operand is stored for it.
// CHECK-LABEL: @both
// CHECK: scf.for
// CHECK: tile_gpu.local_load
// CHECK: tile_gpu.local_store
// CHECK: tile_gpu.warpgroup_dot
// CHECK: scf.yield
module {
  func.func @both(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "p"}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"},
                     %o: !tile.ptr<f32> {tile.divisibility = 16 : i32, tile.name = "o"}, %o2: !tile.ptr<f32> {tile.divisibility = 16 : i32, tile.name = "o2"},
                     %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 3 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %zr = arith.constant dense<0.0> : tensor<64xf32>
    %v = tile.make_view %p, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %c64], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %x = tile.load_view %v[%c0, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16>
    %sum:2 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %m = %zero) -> (tensor<64x64xf32>, tensor<64x64xf32>) : i32 {
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16>
      %t = tile.transpose %y [1, 0] : tensor<64x64xbf16> to tensor<64x64xbf16>
      %f = arith.extf %t : tensor<64x64xbf16> to tensor<64x64xf32>
      %m2 = arith.addf %m, %f : tensor<64x64xf32>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16>, tensor<64x64xbf16> to tensor<64x64xf32>
      scf.yield %d, %m2 : tensor<64x64xf32>, tensor<64x64xf32>
    }
    %ov = tile.make_view %o, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<64x64xf32>, i32
    tile.store_view %ov[%c0, %c0], %sum#0 : !tile.view<64x64xf32>, i32, tensor<64x64xf32>
    %ow = tile.make_view %o2, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<64x64xf32>, i32
    tile.store_view %ow[%c0, %c0], %sum#1 : !tile.view<64x64xf32>, i32, tensor<64x64xf32>
    return
  }
}

// -----

// CHECK-LABEL: @stored
// CHECK: scf.for
// CHECK: tile_gpu.warpgroup_dot
// CHECK: scf.yield
module {
  func.func @stored(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "p"}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"},
                     %o: !tile.ptr<f32> {tile.divisibility = 16 : i32, tile.name = "o"}, %o2: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "o2"},
                     %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 3 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %v = tile.make_view %p, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %c64], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %ow = tile.make_view %o2, extents [%c64, %n], strides [%c1, %c64] : !tile.view<64x64xbf16, unit = 0>, i32
    %x = tile.load_view %v[%c0, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16>
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16>
      %t = tile.transpose %y [1, 0] : tensor<64x64xbf16> to tensor<64x64xbf16>
      tile.store_view %ow[%c0, %i], %t : !tile.view<64x64xbf16, unit = 0>, i32, tensor<64x64xbf16>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16>, tensor<64x64xbf16> to tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %ov = tile.make_view %o, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<64x64xf32>, i32
    tile.store_view %ov[%c0, %c0], %sum : !tile.view<64x64xf32>, i32, tensor<64x64xf32>
    return
  }
}

// -----

// A tile that is read after the loop does not flow through the loop's slots.
// CHECK-LABEL: @later
// CHECK: tile.load_view
// CHECK: scf.for
// CHECK: tile_gpu.warpgroup_dot
// CHECK: scf.yield
module {
  func.func @later(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "p"}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"},
                     %o: !tile.ptr<f32> {tile.divisibility = 16 : i32, tile.name = "o"}, %o2: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "o2"},
                     %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 3 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %v = tile.make_view %p, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<64x64xbf16>, i32
    %w = tile.make_view %q, extents [%n, %c64], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %ow = tile.make_view %o2, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<64x64xbf16>, i32
    %x = tile.load_view %v[%c0, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16>
    %first = tile.load_view %w[%c0, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16>
    %sum = scf.for %i = %c64 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16>, tensor<64x64xbf16> to tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    tile.store_view %ow[%c0, %c0], %first : !tile.view<64x64xbf16>, i32, tensor<64x64xbf16>
    %ov = tile.make_view %o, extents [%c64, %c64], strides [%c64, %c1] : !tile.view<64x64xf32>, i32
    tile.store_view %ov[%c0, %c0], %sum : !tile.view<64x64xf32>, i32, tensor<64x64xf32>
    return
  }
}
