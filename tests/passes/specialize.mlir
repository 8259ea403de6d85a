// RUN: kiln-opt %s "--kiln-specialize=kernel=k divisible=0=16,1=8,2=8 equals=3=1" | FileCheck %s --implicit-check-not=no_tensor_maps
// RUN: kiln-opt %s "--kiln-specialize=kernel=k no-tensor-maps" | FileCheck %s --check-prefix=NOMAPS
// RUN: kiln-opt %s "--kiln-stage-tile=target=sm_90a kernel=k no-tensor-maps" | FileCheck %s --check-prefix=NOMAPS

// NOMAPS: func.func @k(
// NOMAPS-SAME: attributes {{{.*}}tile_gpu.no_tensor_maps

// Facts of the launcher; what the author states holds too.  How arguments are specialised stays written.
// CHECK: func.func @k(%{{.*}}: !tile.ptr<bf16> {tile.divisibility = 16 : i32},
// CHECK-SAME: %{{.*}}: i64 {tile.divisibility = 8 : i32, tile.element = bf16, tile.name = "row_stride", tile.specialize = "stride"},
// CHECK-SAME: %{{.*}}: i64 {tile.divisibility = 48 : i32},
// CHECK-SAME: %{{.*}}: i64 {tile.equals = 1 : i64, tile.name = "column_stride"})
// CHECK: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK: strides [%{{.*}}, %[[ONE]]]
func.func @k(%x: !tile.ptr<bf16>, %row: i64 {tile.name = "row_stride", tile.specialize = "stride", tile.element = bf16},
             %n: i64 {tile.divisibility = 48 : i32}, %column: i64 {tile.name = "column_stride"}) attributes {tile.kernel} {
  %v = tile.make_view %x, extents [%n, %n], strides [%row, %column] : !tile.view<32x64xbf16, unit = none>, i64
  %c0 = arith.constant 0 : i64
  %t = tile.load_view %v[%c0, %c0] : !tile.view<32x64xbf16, unit = none>, i64 -> tensor<32x64xbf16>
  tile.print "t" %t : tensor<32x64xbf16>
  return
}

// CHECK-NOT: @other
func.func @other() attributes {tile.kernel} {
  return
}
