// RUN: kiln-opt %s --kiln-pipeline-loops --kiln-rotate-products --kiln-resident-operands --kiln-lower-pipelines --canonicalize --cse --split-input-file | FileCheck %s

// Two operands, three slots each, one group a round.  Both are read as the product wants them, their first part along K
// a round ahead: before the last part of the product.  The last round reads ahead like the others, so the slot
// after the last of few rounds holds zeros.
// CHECK-LABEL: @product
// CHECK: %[[A:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<[3] x 64x32xf16, #[[SA:swizzled[0-9]*]]>
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<[3] x 32x64xf16, #[[SB:swizzled[0-9]*]]>
// CHECK: %[[SOME:.*]] = arith.cmpi sgt
// CHECK: %[[MORE:.*]] = arith.andi %[[SOME]], %{{.*}}
// CHECK: %[[MOST:.*]] = arith.andi %[[SOME]], %{{.*}}
// CHECK: %[[N0:.*]] = arith.extui %[[SOME]]
// CHECK: %[[N1:.*]] = arith.extui %[[MORE]]
// CHECK: %[[N01:.*]] = arith.addi %[[N0]], %[[N1]]
// CHECK: %[[N2:.*]] = arith.extui %[[MOST]]
// CHECK: %[[ROUNDS:.*]] = arith.addi %[[N01]], %[[N2]]
// CHECK: %[[FEW:.*]] = arith.xori %[[MOST]]
// CHECK: scf.if %[[FEW]] {
// CHECK-NEXT: %[[EA:.*]] = tile_gpu.local_subview %[[A]][%[[ROUNDS]]]
// CHECK-NEXT: tile_gpu.local_store %{{.*}}, %[[EA]]
// CHECK-NEXT: %[[EB:.*]] = tile_gpu.local_subview %[[B]][%[[ROUNDS]]]
// CHECK-NEXT: tile_gpu.local_store %{{.*}}, %[[EB]]
// CHECK-NEXT: }
// CHECK-NEXT: scf.if %[[SOME]]
// CHECK: async_copy_view %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} by #[[ROW:blocked[0-9]*]]
// CHECK: async_copy_view
// CHECK: }
// CHECK: %[[T0:.*]] = tile_gpu.async_commit
// CHECK: scf.if %[[MORE]]
// CHECK: %[[T1:.*]] = tile_gpu.async_commit
// CHECK: %[[FA:.*]] = tile_gpu.local_subview %[[A]][%c0_i32]
// CHECK: %[[FB:.*]] = tile_gpu.local_subview %[[B]][%c0_i32]
// CHECK: tile_gpu.async_wait %[[T0]] ready %[[FA]], %[[FB]]
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: %[[LA:.*]] = tile_gpu.local_load %[[FA]] {{.*}} to tensor<64x32xf16, #[[DA:dot[0-9]*]]>
// CHECK-NEXT: %[[LB:.*]] = tile_gpu.local_load %[[FB]] {{.*}} to tensor<32x64xf16, #[[DB:dot[0-9]*]]>
// CHECK-NEXT: %[[IA:.*]] = tile_gpu.part %[[LA]] [0 of 2] along 1 : tensor<64x32xf16, #[[DA]]> to tensor<64x16xf16, #[[DA]]>
// CHECK-NEXT: %[[IB:.*]] = tile_gpu.part %[[LB]] [0 of 2] along 0 : tensor<32x64xf16, #[[DB]]> to tensor<16x64xf16, #[[DB]]>
// CHECK-NEXT: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[READ:.*]] = %c0_i32, %[[WRITE:.*]] = %c2_i32, %[[U1:.*]] = %[[T1]], %[[PA:.*]] = %[[IA]], %[[PB:.*]] = %[[IB]])
// CHECK: %[[RA:.*]] = tile_gpu.local_subview %[[A]][%[[READ]]]
// CHECK: %[[RB:.*]] = tile_gpu.local_subview %[[B]][%[[READ]]]
// CHECK: %[[NEXT:.*]] = arith.select %{{.*}}, %c0_i32
// CHECK: scf.if
// CHECK: tile_gpu.local_subview %[[A]][%[[WRITE]]]
// CHECK: tile_gpu.local_subview %[[B]][%[[WRITE]]]
// CHECK: %[[T2:.*]] = tile_gpu.async_commit
// CHECK-NOT: load_view
// CHECK-NOT: convert_layout
// CHECK: %[[WA:.*]] = tile_gpu.local_load %[[RA]]
// CHECK: %[[WB:.*]] = tile_gpu.local_load %[[RB]]
// CHECK: %[[D0:.*]] = tile.dot %[[PA]], %[[PB]], %[[ACC]]
// CHECK: %[[QA:.*]] = tile_gpu.part %[[WA]] [1 of 2] along 1
// CHECK: %[[QB:.*]] = tile_gpu.part %[[WB]] [1 of 2] along 0
// CHECK: %[[NA:.*]] = tile_gpu.local_subview %[[A]][%[[NEXT]]]
// CHECK: %[[NB:.*]] = tile_gpu.local_subview %[[B]][%[[NEXT]]]
// CHECK: tile_gpu.async_wait %[[U1]] ready %[[NA]], %[[NB]]
// CHECK-NEXT: tile_gpu.barrier
// CHECK-NEXT: %[[VA:.*]] = tile_gpu.local_load %[[NA]]
// CHECK-NEXT: %[[VB:.*]] = tile_gpu.local_load %[[NB]]
// CHECK-NEXT: %[[GA:.*]] = tile_gpu.part %[[VA]] [0 of 2] along 1
// CHECK-NEXT: %[[GB:.*]] = tile_gpu.part %[[VB]] [0 of 2] along 0
// CHECK-NEXT: %[[D1:.*]] = tile.dot %[[QA]], %[[QB]], %[[D0]]
// CHECK-NEXT: scf.yield %[[D1]], %[[NEXT]], %{{.*}}, %[[T2]], %[[GA]], %[[GB]]
// CHECK: }
// CHECK-NEXT: tile_gpu.async_wait all
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#wide = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
#x = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#y = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @product(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 3 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    %w = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<32x64xf16>, i32
    %sum = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %a = tile.load_view %v[%c0, %i] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %b = tile.load_view %w[%i, %c0] : !tile.view<32x64xf16>, i32 -> tensor<32x64xf16, #wide>
      %x = tile_gpu.convert_layout %a : tensor<64x32xf16, #row> to tensor<64x32xf16, #x>
      %y = tile_gpu.convert_layout %b : tensor<32x64xf16, #wide> to tensor<32x64xf16, #y>
      %d = tile.dot %x, %y, %acc : tensor<64x32xf16, #x>, tensor<32x64xf16, #y> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// Two stages: the group that a round waits for is its own.  Of four parts the second and third are read where they are used.
// CHECK-LABEL: @four_parts
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[READ:.*]] = %c0_i32, %[[WRITE:.*]] = %c1_i32, %[[PA:.*]] = %{{.*}}, %[[PB:.*]] = %{{.*}})
// CHECK: %[[T:.*]] = tile_gpu.async_commit
// CHECK: %[[A:.*]] = tile_gpu.local_load
// CHECK: %[[B:.*]] = tile_gpu.local_load
// CHECK: %[[D0:.*]] = tile.dot %[[PA]], %[[PB]], %[[ACC]]
// CHECK: %[[A1:.*]] = tile_gpu.part %[[A]] [1 of 4] along 1
// CHECK: %[[B1:.*]] = tile_gpu.part %[[B]] [1 of 4] along 0
// CHECK: %[[D1:.*]] = tile.dot %[[A1]], %[[B1]], %[[D0]]
// CHECK: %[[A2:.*]] = tile_gpu.part %[[A]] [2 of 4] along 1
// CHECK: %[[B2:.*]] = tile_gpu.part %[[B]] [2 of 4] along 0
// CHECK: %[[D2:.*]] = tile.dot %[[A2]], %[[B2]], %[[D1]]
// CHECK: %[[A3:.*]] = tile_gpu.part %[[A]] [3 of 4] along 1
// CHECK: %[[B3:.*]] = tile_gpu.part %[[B]] [3 of 4] along 0
// CHECK: tile_gpu.async_wait %[[T]]
// CHECK-NEXT: tile_gpu.barrier
// CHECK: %[[NA:.*]] = tile_gpu.part %{{.*}} [0 of 4] along 1
// CHECK: %[[NB:.*]] = tile_gpu.part %{{.*}} [0 of 4] along 0
// CHECK: %[[D3:.*]] = tile.dot %[[A3]], %[[B3]], %[[D2]]
// CHECK: scf.yield %[[D3]], %{{.*}}, %{{.*}}, %[[NA]], %[[NB]]
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#wide = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
#x = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#y = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @four_parts(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xf16>, i32
    %w = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xf16>, i32
    %sum = scf.for %i = %c0 to %n step %step iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %a = tile.load_view %v[%c0, %i] : !tile.view<64x64xf16>, i32 -> tensor<64x64xf16, #row>
      %b = tile.load_view %w[%i, %c0] : !tile.view<64x64xf16>, i32 -> tensor<64x64xf16, #wide>
      %x = tile_gpu.convert_layout %a : tensor<64x64xf16, #row> to tensor<64x64xf16, #x>
      %y = tile_gpu.convert_layout %b : tensor<64x64xf16, #wide> to tensor<64x64xf16, #y>
      %d = tile.dot %x, %y, %acc : tensor<64x64xf16, #x>, tensor<64x64xf16, #y> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// Two products: both operands are staged, and no part is read ahead.
// CHECK-LABEL: @two_products
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[READ:.*]] = %c0_i32, %[[WRITE:.*]] = %c1_i32, %[[U:.*]] = %{{.*}})
// CHECK: tile_gpu.async_wait %[[U]]
// CHECK: tile_gpu.async_commit
// CHECK-NOT: tile_gpu.part
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#wide = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
#x = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#y = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @two_products(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    %w = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<32x64xf16>, i32
    %sum = scf.for %i = %c0 to %n step %step iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %a = tile.load_view %v[%c0, %i] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %b = tile.load_view %w[%i, %c0] : !tile.view<32x64xf16>, i32 -> tensor<32x64xf16, #wide>
      %x = tile_gpu.convert_layout %a : tensor<64x32xf16, #row> to tensor<64x32xf16, #x>
      %y = tile_gpu.convert_layout %b : tensor<32x64xf16, #wide> to tensor<32x64xf16, #y>
      %d = tile.dot %x, %y, %acc : tensor<64x32xf16, #x>, tensor<32x64xf16, #y> to tensor<64x64xf32, #mma>
      %e = tile.dot %x, %y, %d : tensor<64x32xf16, #x>, tensor<32x64xf16, #y> to tensor<64x64xf32, #mma>
      scf.yield %e : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// Bytes that lie across take all registers that there are.
// CHECK-LABEL: @bytes
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[READ:.*]] = %c0_i32, %[[WRITE:.*]] = %c1_i32, %[[U:.*]] = %{{.*}})
// CHECK: tile_gpu.async_wait %[[U]]
// CHECK: tile_gpu.async_commit
// CHECK-NOT: tile_gpu.part
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#wide = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[2,2], instrN=16>
#x = #tile_gpu.dot<op=0, kWidth=4, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
#y = #tile_gpu.dot<op=1, kWidth=4, parent=mma<version=2, warpsPerCTA=[2,2], instrN=16>>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @bytes(%p: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = arith.constant 64 : i32
    %zero = arith.constant dense<0> : tensor<64x64xi32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xi8>, i32
    %w = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x64xi8>, i32
    %sum = scf.for %i = %c0 to %n step %step iter_args(%acc = %zero) -> (tensor<64x64xi32, #mma>) : i32 {
      %a = tile.load_view %v[%c0, %i] : !tile.view<64x64xi8>, i32 -> tensor<64x64xi8, #row>
      %b = tile.load_view %w[%i, %c0] : !tile.view<64x64xi8>, i32 -> tensor<64x64xi8, #wide>
      %x = tile_gpu.convert_layout %a : tensor<64x64xi8, #row> to tensor<64x64xi8, #x>
      %y = tile_gpu.convert_layout %b : tensor<64x64xi8, #wide> to tensor<64x64xi8, #y>
      %d = tile.dot %x, %y, %acc : tensor<64x64xi8, #x>, tensor<64x64xi8, #y> to tensor<64x64xi32, #mma>
      scf.yield %d : tensor<64x64xi32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xi32, #mma>
    return
  }
}

// -----

// A transposed operand: shared memory is read so that the transpose costs nothing.
// CHECK-LABEL: @transposed
// The buffers are named for the arguments that they hold.
// CHECK: tile_gpu.local_alloc : !tile_gpu.buffer<"q": [2] x
// CHECK: %[[L:.*]] = tile_gpu.local_load %{{.*}} : !tile_gpu.buffer<"q": {{.*}} to tensor<64x32xf16, #[[LINEAR:.*]]>
// CHECK-NEXT: tile.transpose %[[L]] [1, 0] : tensor<64x32xf16, #[[LINEAR]]> to tensor<32x64xf16, #{{dot.*}}>
// CHECK-NOT: convert_layout
// CHECK: return
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[4,8], warpsPerCTA=[1,4], order=[0,1]>
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[4,1], instrN=16>
#x = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1], instrN=16>>
#y = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1], instrN=16>>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @transposed(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32, tile.name = "q"}, %q: tensor<64x32xf16, #x>, %n: i32,
                        %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %a = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %t = tile.transpose %a [1, 0] : tensor<64x32xf16, #row> to tensor<32x64xf16, #column>
      %y = tile_gpu.convert_layout %t : tensor<32x64xf16, #column> to tensor<32x64xf16, #y>
      %d = tile.dot %q, %y, %acc : tensor<64x32xf16, #x>, tensor<32x64xf16, #y> to tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tile.print "sum" %sum : tensor<64x64xf32, #mma>
    return
  }
}

// -----

// Pointers that the loop carries run ahead; the index of a later round is read only if that round exists.
// CHECK-LABEL: @carried
// CHECK: scf.for {{.*}} iter_args(%[[NOW:.*]] = %{{.*}}, %{{.*}} = %c0_i32, %{{.*}} = %c1_i32, %{{.*}} = %{{.*}}, %[[AHEAD:.*]] = %[[NEXT:.*]])
// CHECK: scf.if
// CHECK: tile.load %{{.*}} : !tile.ptr<i32>
// CHECK: %[[OFF:.*]] = tile.addptr %[[AHEAD]]
// CHECK: tile_gpu.async_copy %[[OFF]], %{{.*}}
// CHECK: }
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
#across = #tile_gpu.slice<dim=0, parent=blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @carried(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %t: !tile.ptr<i32>, %n: i32)
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %by = arith.constant dense<2048> : tensor<64x32xi32, #row>
    %range = tile.range 0 to 32 : tensor<32xi32, #across>
    %one = tile.expand_dims %range {axis = 0 : i32} : tensor<32xi32, #across> to tensor<1x32xi32, #row>
    %all = tile.broadcast %one : tensor<1x32xi32, #row> to tensor<64x32xi32, #row>
    %base = tile.splat %p : !tile.ptr<f16> to tensor<64x32x!tile.ptr<f16>, #row>
    %start = tile.addptr %base, %all : tensor<64x32x!tile.ptr<f16>, #row>, tensor<64x32xi32, #row>
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%at = %start) -> (tensor<64x32x!tile.ptr<f16>, #row>) : i32 {
      %q = tile.addptr %t, %i : !tile.ptr<i32>, i32
      %index = tile.load %q : !tile.ptr<i32>
      %moved = arith.muli %index, %c8 : i32
      %splat = tile.splat %moved : i32 to tensor<64x32xi32, #row>
      %there = tile.addptr %at, %splat : tensor<64x32x!tile.ptr<f16>, #row>, tensor<64x32xi32, #row>
      %x = tile.load %there : tensor<64x32x!tile.ptr<f16>, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "y" %y : tensor<64x32xf16, #column>
      %next = tile.addptr %at, %by : tensor<64x32x!tile.ptr<f16>, #row>, tensor<64x32xi32, #row>
      scf.yield %next : tensor<64x32x!tile.ptr<f16>, #row>
    }
    return
  }
}

// -----

// The first operand stays the same in every round, and 128 registers of sums and 64 of a product leave no room for
// its 64: it waits in shared memory, stored as it was before its conversion.
// CHECK-LABEL: @resident
// CHECK: %[[Q:.*]] = tile.load_view
// CHECK: %[[B:.*]] = tile_gpu.local_alloc : !tile_gpu.buffer<128x128xbf16, #{{.*}}>
// CHECK: tile_gpu.local_store %[[Q]], %[[B]]
// CHECK: scf.for
// CHECK: tile_gpu.barrier
// CHECK: %[[A:.*]] = tile_gpu.local_load %[[B]] : {{.*}} to tensor<128x128xbf16, #[[X:dot[0-9]*]]>
// CHECK-NEXT: tile.dot %[[A]]
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[2,16], warpsPerCTA=[4,1], order=[1,0]>
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[4,1], instrN=16>
#x = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1], instrN=16>>
#y = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1], instrN=16>>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @resident(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %n: i32, %s: i32 {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32, #mma>
    %none = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<128x128xbf16>, i32
    %w = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<128x64xbf16>, i32
    %u = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x128xbf16>, i32
    %q = tile.load_view %v[%c0, %c0] : !tile.view<128x128xbf16>, i32 -> tensor<128x128xbf16, #row>
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %none) -> (tensor<128x128xf32, #mma>) : i32 {
      %a = tile.load_view %w[%c0, %i] : !tile.view<128x64xbf16>, i32 -> tensor<128x64xbf16, #row>
      %b = tile.load_view %u[%i, %c0] : !tile.view<64x128xbf16>, i32 -> tensor<64x128xbf16, #row>
      %x = tile_gpu.convert_layout %q : tensor<128x128xbf16, #row> to tensor<128x128xbf16, #x>
      %y = tile_gpu.convert_layout %a : tensor<128x64xbf16, #row> to tensor<128x64xbf16, #y>
      %d = tile.dot %x, %y, %zero : tensor<128x128xbf16, #x>, tensor<128x64xbf16, #y> to tensor<128x64xf32, #mma>
      %e = arith.truncf %d : tensor<128x64xf32, #mma> to tensor<128x64xbf16, #mma>
      %f = tile_gpu.convert_layout %e : tensor<128x64xbf16, #mma> to tensor<128x64xbf16, #x>
      %g = tile_gpu.convert_layout %b : tensor<64x128xbf16, #row> to tensor<64x128xbf16, #y>
      %h = tile.dot %f, %g, %acc : tensor<128x64xbf16, #x>, tensor<64x128xbf16, #y> to tensor<128x128xf32, #mma>
      scf.yield %h : tensor<128x128xf32, #mma>
    }
    tile.print "sum" %sum : tensor<128x128xf32, #mma>
    return
  }
}

// -----

// A loop's own stages count for that loop alone: the kernel's are those of the loops next to it and inside it.
// CHECK-LABEL: @own
// CHECK: local_alloc : !tile_gpu.buffer<"q": [2] x 64x32xf16
// CHECK: scf.for
// CHECK: print "kernel's"
// CHECK: local_alloc : !tile_gpu.buffer<"q": [4] x 64x32xf16
// CHECK: scf.for
// CHECK: print "four"
// CHECK-NOT: local_alloc
// CHECK: scf.for
// CHECK: tile.load_view
// CHECK: print "one"
// CHECK: scf.for
// CHECK: local_alloc : !tile_gpu.buffer<"q": [2] x 64x32xf16
// CHECK: scf.for
// CHECK: print "inner"
// CHECK: {tile.num_stages = 3 : i32}
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @own(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32,
                 %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    scf.for %i = %c0 to %n step %c64 : i32 {
      %a = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %a : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "kernel's" %y : tensor<64x32xf16, #column>
    }
    scf.for %i = %c0 to %n step %c64 : i32 {
      %a = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %a : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "four" %y : tensor<64x32xf16, #column>
    } {tile.num_stages = 4 : i32}
    scf.for %i = %c0 to %n step %c64 : i32 {
      %a = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %a : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "one" %y : tensor<64x32xf16, #column>
    } {tile.num_stages = 1 : i32}
    scf.for %j = %c0 to %n step %c64 : i32 {
      scf.for %i = %c0 to %j step %c64 : i32 {
        %a = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
        %y = tile_gpu.convert_layout %a : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
        tile.print "inner" %y : tensor<64x32xf16, #column>
      }
    } {tile.num_stages = 3 : i32}
    return
  }
}

// -----

// What is to stay has no slots, and the others have theirs.
// CHECK-LABEL: @unstaged
// CHECK: local_alloc : !tile_gpu.buffer<"q": [2] x 64x32xf16
// CHECK-NOT: local_alloc
// CHECK: scf.for
// CHECK: tile.load_view %{{.*}} {unstaged}
// CHECK: print "stays"
#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>
#column = #tile_gpu.blocked<sizePerThread=[8,1], threadsPerWarp=[8,4], warpsPerCTA=[1,4], order=[0,1]>
module attributes {tile_gpu.target = "sm_80"} {
  func.func @unstaged(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32, tile.name = "q"}, %n: i32,
                      %s: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %v = tile.make_view %p, extents [%n, %n], strides [%s, %c1] : !tile.view<64x32xf16>, i32
    scf.for %i = %c0 to %n step %c64 : i32 {
      %a = tile.load_view %v[%i, %c0] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %b = tile.load_view %v[%i, %c64] {unstaged} : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16, #row>
      %x = arith.addf %a, %b : tensor<64x32xf16, #row>
      %y = tile_gpu.convert_layout %x : tensor<64x32xf16, #row> to tensor<64x32xf16, #column>
      tile.print "stays" %y : tensor<64x32xf16, #column>
    }
    return
  }
}
