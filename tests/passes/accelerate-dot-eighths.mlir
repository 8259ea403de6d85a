// RUN: kiln-opt %s --kiln-accelerate-dot | FileCheck %s

// A product of 8-bit floats that follows from another product has K in the order in which accumulators hold it, in both
// operands: nothing moves between threads for the left one.  The right one has no K along its rows, so threads turn it on
// its way: in a layout that ldmatrix brings, transposed in pairs, and that stmatrix takes.
// CHECK-DAG: #[[SCORES:.*]] = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=64>
// CHECK-DAG: #[[SUMS:.*]] = #tile_gpu.mma<version=3, warpsPerCTA=[4,1], instrN=32>
// CHECK-DAG: #[[TURNING:.*]] = #tile_gpu.linear<register={{.*}}[1,0],[2,0],[0,1],[16,0]], lane={{.*}}[4,0],[8,0],[0,2],[0,4],[0,8]], warp={{.*}}[0,16],[32,0]]>
// CHECK-DAG: #[[LEFT:.*]] = #tile_gpu.dot<op=0, kWidth=4, parent=mma<version=3, warpsPerCTA=[4,1], instrN=32>>
// CHECK-LABEL: @chained
// CHECK: tile.dot %{{.*}} : tensor<64x32xf8E4M3FN>, tensor<32x64xf8E4M3FN> to tensor<64x64xf32, #[[SCORES]]>
// CHECK: %[[P:.*]] = arith.truncf
// CHECK: %[[V:.*]] = tile.load_view
// CHECK: %[[P5:.*]] = tile.reshape %[[P]] : tensor<64x64xf8E4M3FN> to tensor<64x4x2x4x2xf8E4M3FN>
// CHECK: %[[PT:.*]] = tile.transpose %[[P5]] [0, 1, 3, 2, 4]
// CHECK: %[[PK:.*]] = tile.reshape %[[PT]] : tensor<64x4x4x2x2xf8E4M3FN> to tensor<64x64xf8E4M3FN>
// CHECK: %[[V5:.*]] = tile.reshape %[[V]] : tensor<64x32xf8E4M3FN> to tensor<4x2x4x2x32xf8E4M3FN>
// CHECK: %[[VT:.*]] = tile.transpose %[[V5]] [0, 2, 1, 3, 4]
// CHECK: %[[VK:.*]] = tile.reshape %[[VT]] : tensor<4x4x2x2x32xf8E4M3FN> to tensor<64x32xf8E4M3FN>
// CHECK: %[[A:.*]] = tile_gpu.convert_layout %[[PK]] : tensor<64x64xf8E4M3FN> to tensor<64x64xf8E4M3FN, #[[LEFT]]>
// CHECK: %[[B:.*]] = tile_gpu.convert_layout %[[VK]] : tensor<64x32xf8E4M3FN> to tensor<64x32xf8E4M3FN, #[[TURNING]]>
// CHECK: tile.dot %[[A]], %[[B]], %{{.*}} to tensor<64x32xf32, #[[SUMS]]>
!keys = !tile.view<64x32xf8E4M3FN>
module attributes {tile_gpu.target = "sm_90a"} {
  func.func @chained(%q: tensor<64x32xf8E4M3FN>, %kp: !tile.ptr<f8E4M3FN> {tile.divisibility = 16 : i32}, %vp: !tile.ptr<f8E4M3FN> {tile.divisibility = 16 : i32},
                     %n: i32, %stride: i32 {tile.divisibility = 16 : i32}) attributes {tile_gpu.test, tile.num_stages = 2 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %start = arith.constant dense<0.0> : tensor<64x32xf32>
    %k = tile.make_view %kp, extents [%n, %c32], strides [%stride, %c1] : !keys, i32
    %v = tile.make_view %vp, extents [%n, %c32], strides [%stride, %c1] : !keys, i32
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%o = %start) -> (tensor<64x32xf32>) : i32 {
      %x = tile.load_view %k[%i, %c0] : !keys, i32 -> tensor<64x32xf8E4M3FN>
      %t = tile.transpose %x [1, 0] : tensor<64x32xf8E4M3FN> to tensor<32x64xf8E4M3FN>
      %s = tile.dot %q, %t, %none : tensor<64x32xf8E4M3FN>, tensor<32x64xf8E4M3FN> to tensor<64x64xf32>
      %e = math.exp2 %s : tensor<64x64xf32>
      %p = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xf8E4M3FN>
      %y = tile.load_view %v[%i, %c0] : !keys, i32 -> tensor<64x32xf8E4M3FN>
      %d = tile.dot %p, %y, %o : tensor<64x64xf8E4M3FN>, tensor<64x32xf8E4M3FN> to tensor<64x32xf32>
      scf.yield %d : tensor<64x32xf32>
    }
    tile.print "sum" %r : tensor<64x32xf32>
    return
  }

// What comes from memory stays in its order: threads would have to exchange it.
// CHECK-LABEL: @plain
// CHECK-NOT: tile.reshape
// CHECK: return
  func.func @plain(%p: tensor<64x64xf8E4M3FN>, %q: tensor<64x32xf8E5M2>) -> tensor<64x32xf32> attributes {tile_gpu.test} {
    %zero = arith.constant dense<0.0> : tensor<64x32xf32>
    %d = tile.dot %p, %q, %zero : tensor<64x64xf8E4M3FN>, tensor<64x32xf8E5M2> to tensor<64x32xf32>
    return %d : tensor<64x32xf32>
  }
}
