// RUN: kiln-opt %s --kiln-pipeline-loops --split-input-file | FileCheck %s

// A product's operands are tiles of host views: the copy engine fetches both, by maps that the launcher makes of the
// arguments.  One pipeline of four slots, one held for the product in flight, copies two rounds ahead after the product.
// A tile of 128 columns is two boxes of as many bytes as the swizzle.
// CHECK-LABEL: @matmul
// CHECK-SAME: %[[N:[a-z0-9]*]]: i32, %{{[a-z0-9]*}}: i32 {tile.divisibility = 16 : i32},
// CHECK-SAME: %[[MA:[a-z0-9]*]]: !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1, s2] -> (s2, s2), strides = ()[s0, s1, s2, s3] -> (s3 * 2), box = [64, 64], swizzle = "128B", promotion = "128B">}
// CHECK-SAME: %[[MB:[a-z0-9]*]]: !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "bf16", address = 1, extents = ()[s0, s1, s2] -> (s2 + 128, s2 * 3), strides = ()[s0, s1, s2, s3] -> ((s3 + 8) * 2), box = [64, 64], swizzle = "128B", promotion = "128B">}
// CHECK-SAME: attributes
// CHECK: %[[P:.*]] = tile_gpu.pipeline bulk holding 1 : !tile_gpu.pipeline<4, !tile_gpu.buffer<"p": 64x64xbf16, #[[TA:tma[0-9]*]]>, !tile_gpu.buffer<"q": 64x128xbf16, #[[TA]]>>
// CHECK: %[[A0:.*]], %[[B0:.*]]:2 = tile_gpu.acquire %[[P]]
// CHECK: scf.if
// CHECK: tile_gpu.tensor_copy %[[MA]][%c0_i32, %c0_i32] to %[[B0]]#0 dims [1, 0] : !tile_gpu.buffer<"p": 64x64xbf16, #[[TA]]>
// CHECK-NEXT: tile_gpu.tensor_copy %[[MB]][%c0_i32, %c0_i32] to %[[B0]]#1 dims [1, 0] : !tile_gpu.buffer<"q": 64x128xbf16, #[[TA]]>
// CHECK: }
// CHECK: %[[C0:.*]] = tile_gpu.commit %[[A0]]
// CHECK: %[[A1:.*]], %{{.*}}:2 = tile_gpu.acquire %[[C0]]
// CHECK: %[[C1:.*]] = tile_gpu.commit %[[A1]]
// CHECK: %[[LOOP:.*]]:2 = scf.for %[[I:.*]] = %c0_i32 to %[[N]] step %c64_i32 iter_args(%[[ACC:.*]] = %{{.*}}, %[[S:.*]] = %[[C1]])
// CHECK: %[[W:.*]], %[[NOW:.*]]:2 = tile_gpu.wait %[[S]]
// CHECK: %[[LATER:.*]] = arith.addi %[[I]], %c128_i32
// CHECK-NOT: tile_gpu.acquire
// CHECK: %[[OP:.*]] = tile_gpu.local_load %[[NOW]]#0
// CHECK: %[[OQ:.*]] = tile_gpu.local_load %[[NOW]]#1
// CHECK: %[[D:.*]] = tile.dot %[[OP]], %[[OQ]], %[[ACC]] {tile_gpu.overlapped_product}
// CHECK-NEXT: %[[A:.*]], %[[THERE:.*]]:2 = tile_gpu.acquire %[[W]]
// CHECK-NEXT: scf.if
// CHECK: tile_gpu.tensor_copy %[[MA]][%[[LATER]], %c0_i32] to %[[THERE]]#0 dims [1, 0] :
// CHECK-NEXT: tile_gpu.tensor_copy %[[MB]][%c0_i32, %[[LATER]]] to %[[THERE]]#1 dims [1, 0] :
// CHECK: }
// CHECK-NEXT: %[[C:.*]] = tile_gpu.commit %[[A]]
// The slot of the round before is given back at the end: its product is over then.
// CHECK: %[[R:.*]] = tile_gpu.release %[[C]]
// CHECK-NEXT: scf.yield %[[D]], %[[R]]
// CHECK: }
// CHECK: %[[LAST:.*]] = tile_gpu.release %[[LOOP]]#1
// CHECK-NOT: tile_gpu.release
// CHECK: tile_gpu.drain %[[LAST]]
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=128>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#wide = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @matmul(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "p"}, %q: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"},
                    %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %c8 = arith.constant 8 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %rows = arith.muli %n, %c3 : i32
    %columns = arith.addi %n, %c128 : i32
    %stride = arith.addi %s, %c8 : i32
    %w = tile.make_view %q, extents [%rows, %columns], strides [%stride, %c1] : !tile.view<64x128xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32, #mma>) : i32 {
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %w[%i, %c0] : !tile.view<64x128xbf16>, i32 -> tensor<64x128xbf16, #wide>
      %d = tile.dot %x, %y, %acc : tensor<64x64xbf16, #row>, tensor<64x128xbf16, #wide> to tensor<64x128xf32, #mma>
      scf.yield %d : tensor<64x128xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x128xf32, #mma>
    return
  }
}

// -----

// Two loads of one view share a map.  Two slots are too few for a product in flight: none is held, and copies are made
// before the product.
// CHECK-LABEL: @same_view
// CHECK-SAME: !tile_gpu.tensor_map {{{[^{}]*}}}) attributes
// CHECK: tile_gpu.pipeline bulk : !tile_gpu.pipeline<2,
// CHECK: scf.for
// CHECK: tile_gpu.wait
// CHECK: tile_gpu.acquire
// CHECK: tile_gpu.tensor_copy %[[M:.*]][%{{.*}}, %c0_i32] to
// CHECK-NEXT: tile_gpu.tensor_copy %[[M]][%{{.*}}, %c64_i32] to
// CHECK: tile_gpu.commit
// CHECK: tile.dot
// CHECK-NOT: overlapped_product
// CHECK: tile_gpu.release
// CHECK-NEXT: scf.yield
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @same_view(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %x = tile.load_view %v[%c0, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %y = tile.load_view %v[%c64, %i] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %t = tile.transpose %y [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
      %d = tile.dot %x, %t, %acc : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// The tiles of two products have pipelines of their own.  The first gives its slot back when its product's sums are
// looked at, and is refilled where a round begins; the second is refilled after that, and gives its slot back at the
// round's end.
// CHECK-LABEL: @attention
// CHECK-SAME: %[[MK:[a-z0-9]*]]: !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "bf16", address = 1,
// CHECK-SAME: %[[MV:[a-z0-9]*]]: !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "bf16", address = 2,
// CHECK: %[[K:.*]] = tile_gpu.pipeline bulk : !tile_gpu.pipeline<2, !tile_gpu.buffer<"k": 64x64xbf16,
// CHECK: %[[V:.*]] = tile_gpu.pipeline bulk : !tile_gpu.pipeline<2, !tile_gpu.buffer<"v": 64x64xbf16,
// CHECK: %[[KA0:.*]], %[[KB0:.*]] = tile_gpu.acquire %[[K]]
// CHECK: tile_gpu.tensor_copy %[[MK]][%c0_i32, %c0_i32] to %[[KB0]]
// CHECK: %[[K0:.*]] = tile_gpu.commit %[[KA0]]
// CHECK: %[[VA0:.*]], %[[VB0:.*]] = tile_gpu.acquire %[[V]]
// CHECK: tile_gpu.tensor_copy %[[MV]][%c0_i32, %c0_i32] to %[[VB0]]
// CHECK: %[[V0:.*]] = tile_gpu.commit %[[VA0]]
// CHECK: %[[LOOP:.*]]:3 = scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[KS:.*]] = %[[K0]], %[[VS:.*]] = %[[V0]])
// CHECK: %[[KW:.*]], %[[KNOW:.*]] = tile_gpu.wait %[[KS]]
// CHECK-NEXT: %[[VW:.*]], %[[VNOW:.*]] = tile_gpu.wait %[[VS]]
// CHECK: %[[LATER:.*]] = arith.addi %[[I]], %c64_i32
// CHECK: %[[KA:.*]], %[[KB:.*]] = tile_gpu.acquire %[[KW]]
// CHECK: tile_gpu.tensor_copy %[[MK]][%c0_i32, %[[LATER]]] to %[[KB]] dims [1, 0]
// CHECK: %[[KC:.*]] = tile_gpu.commit %[[KA]]
// CHECK-NEXT: %[[KT:.*]] = tile_gpu.local_load %[[KNOW]]
// CHECK: %[[S:.*]] = tile.dot
// CHECK-NEXT: %[[E:.*]] = math.exp2 %[[S]]
// CHECK-NEXT: %[[KR:.*]] = tile_gpu.release %[[KC]]
// CHECK-NEXT: %[[VA:.*]], %[[VB:.*]] = tile_gpu.acquire %[[VW]]
// CHECK-NEXT: scf.if
// CHECK: tile_gpu.tensor_copy %[[MV]][%c0_i32, %[[LATER]]] to %[[VB]] dims [1, 0]
// CHECK: %[[VC:.*]] = tile_gpu.commit %[[VA]]
// CHECK: tile_gpu.local_load %[[VNOW]]
// CHECK: %[[O:.*]] = tile.dot
// CHECK-NEXT: %[[VR:.*]] = tile_gpu.release %[[VC]]
// CHECK-NEXT: scf.yield %[[O]], %[[KR]], %[[VR]]
// CHECK: }
// CHECK-NEXT: tile_gpu.drain %[[LOOP]]#1
// CHECK-NEXT: tile_gpu.drain %[[LOOP]]#2
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @attention(%qp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "q"}, %kp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "k"}, %vp: !tile.ptr<bf16> {tile.divisibility = 16 : i32, tile.name = "v"},
                       %n: i32, %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %qv = tile.make_view %qp, extents [%n, %c64], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %q = tile.load_view %qv[%c0, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
    %kv = tile.make_view %kp, extents [%n, %c64], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %vv = tile.make_view %vp, extents [%n, %c64], strides [%s, %c1] : !tile.view<64x64xbf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %k = tile.load_view %kv[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %v = tile.load_view %vv[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
      %t = tile.transpose %k [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
      %x = tile.dot %q, %t, %zero : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
      %e = math.exp2 %x : tensor<64x64xf32, #mma>
      %w = arith.truncf %e : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
      %d = tile.dot %w, %v, %acc : tensor<64x64xbf16, #mma>, tensor<64x64xbf16, #row> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// Slices of a tensor, at one coordinate before the loop and one in it: a map of the whole tensor, whose contiguous
// dimension comes first and the others from the last to the first.  A coordinate of 64 bits becomes one of 32 that is
// outside of any tensor if it was.
// CHECK-LABEL: @slices
// CHECK-SAME: %[[BATCH:[a-z0-9]*]]: i64, %[[M:[a-z0-9]*]]: !tile_gpu.tensor_map {tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "bf16", address = 0, extents = ()[s0, s1] -> (64, 8, s1, 2), strides = ()[s0, s1, s2] -> (128, s2 * 2, (s1 * s2) * 2), box = [64, 1, 64, 1], swizzle = "128B", promotion = "128B">}
// CHECK: scf.for %[[HEAD:.*]] = %c0_i32
// CHECK: scf.for
// CHECK: tile_gpu.tensor_copy %[[M]][%c0_i32, %[[HEAD]], %c0_i32, %{{.*}}] to %{{.*}}#0 dims [2, 0]
// CHECK: %[[LEAST:.*]] = arith.constant -2147483648 : i64
// CHECK-NEXT: %[[ABOVE:.*]] = arith.maxsi %[[BATCH]], %[[LEAST]]
// CHECK-NEXT: %[[MOST:.*]] = arith.constant 2147483647 : i64
// CHECK-NEXT: %[[BELOW:.*]] = arith.minsi %[[ABOVE]], %[[MOST]]
// CHECK-NEXT: %[[WORD:.*]] = arith.trunci %[[BELOW]] : i64 to i32
// CHECK-NEXT: tile_gpu.tensor_copy %[[M]][%c0_i32, %[[HEAD]], %[[I:.*]], %[[WORD]]] to %{{.*}}#1 dims [2, 0] : !tile_gpu.buffer<64x64xbf16
#mma = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#turned = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @slices(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32}, %batch: i64)
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c8 = arith.constant 8 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %far = arith.muli %n, %s : i32
    %all = tile.make_view %p, extents [%c2, %n, %c8, %c64], strides [%far, %s, %c64, %c1] : !tile.view<1x64x1x64xbf16>, i32
    %one = tile.slice_view %all[%batch] {dims = array<i32: 0>} : !tile.view<1x64x1x64xbf16>, i64 -> !tile.view<64x1x64xbf16>
    scf.for %h = %c0 to %c8 step %c1 : i32 {
      %v = tile.slice_view %one[%h] {dims = array<i32: 1>} : !tile.view<64x1x64xbf16>, i32 -> !tile.view<64x64xbf16>
      %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
        %x = tile.load_view %v[%c0, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
        %y = tile.load_view %v[%i, %c0] : !tile.view<64x64xbf16>, i32 -> tensor<64x64xbf16, #row>
        %t = tile.transpose %y [1, 0] : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #turned>
        %d = tile.dot %x, %t, %acc : tensor<64x64xbf16, #row>, tensor<64x64xbf16, #turned> to tensor<64x64xf32, #mma>
        scf.yield %d : tensor<64x64xf32, #mma>
      }
      tile.print "sum" %sum : tensor<64x64xf32, #mma>
    } {tile.num_stages = 1 : i32}
    return
  }
}
