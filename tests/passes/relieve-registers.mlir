// RUN: kiln-opt %s --kiln-expand-shared --kiln-relieve-registers | FileCheck %s

#row = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[1,1], order=[1,0]>
#mma = #tile_gpu.mma<version=2, warpsPerCTA=[1,1], instrN=16>
#x = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[1,1], instrN=16>>
#y = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[1,1], instrN=16>>
#cols = #tile_gpu.slice<dim=0, parent=mma<version=2, warpsPerCTA=[1,1], instrN=16>>
#row4 = #tile_gpu.blocked<sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#mma4 = #tile_gpu.mma<version=2, warpsPerCTA=[4,1], instrN=16>
#x4 = #tile_gpu.dot<op=0, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1], instrN=16>>
#y4 = #tile_gpu.dot<op=1, kWidth=2, parent=mma<version=2, warpsPerCTA=[4,1], instrN=16>>

module attributes {tile_gpu.target = "sm_80"} {

// Two results of 128 registers, and operands of 64: each product reads its own.
// CHECK-LABEL: @read_late
// CHECK: tile_gpu.exchange_store %arg0
// CHECK: tile_gpu.exchange_store %arg1
// CHECK-NOT: exchange_store
// CHECK: %[[A:.*]] = tile_gpu.exchange_load
// CHECK-NEXT: %[[B:.*]] = tile_gpu.exchange_load
// CHECK-NEXT: tile.dot %[[A]], %[[B]], %arg2
// CHECK-NEXT: %[[C:.*]] = tile_gpu.exchange_load
// CHECK-NEXT: %[[D:.*]] = tile_gpu.exchange_load
// CHECK-NEXT: tile.dot %[[C]], %[[D]], %arg3
func.func @read_late(%a: tensor<64x64xbf16, #row>, %b: tensor<64x64xbf16, #row>, %c: tensor<64x64xf32, #mma>,
                     %d: tensor<64x64xf32, #mma>) -> (tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>)
    attributes {tile.num_warps = 1 : i32} {
  %x = tile_gpu.convert_layout %a : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #x>
  %y = tile_gpu.convert_layout %b : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #y>
  %0 = tile.dot %x, %y, %c : tensor<64x64xbf16, #x>, tensor<64x64xbf16, #y> to tensor<64x64xf32, #mma>
  %1 = tile.dot %x, %y, %d : tensor<64x64xbf16, #x>, tensor<64x64xbf16, #y> to tensor<64x64xf32, #mma>
  return %0, %1 : tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>
}

// What the second product needs is computed and stored before the first: %arg2 is f32 and would wait in 128 registers.
// CHECK-LABEL: @store_early
// CHECK: arith.truncf %arg2
// CHECK: tile_gpu.exchange_store
// CHECK: tile_gpu.exchange_load
// CHECK: tile.dot
// CHECK-NOT: exchange_store
// CHECK: tile_gpu.exchange_load
// CHECK-NEXT: tile_gpu.exchange_load
// CHECK-NEXT: tile.dot
func.func @store_early(%a: tensor<64x64xbf16, #row>, %b: tensor<64x64xbf16, #row>, %e: tensor<64x64xf32, #row>,
                       %c: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> attributes {tile.num_warps = 1 : i32} {
  %x = tile_gpu.convert_layout %a : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #x>
  %y = tile_gpu.convert_layout %b : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #y>
  %0 = tile.dot %x, %y, %c : tensor<64x64xbf16, #x>, tensor<64x64xbf16, #y> to tensor<64x64xf32, #mma>
  %f = arith.truncf %e : tensor<64x64xf32, #row> to tensor<64x64xbf16, #row>
  %z = tile_gpu.convert_layout %f : tensor<64x64xbf16, #row> to tensor<64x64xbf16, #y>
  %1 = tile.dot %x, %z, %0 : tensor<64x64xbf16, #x>, tensor<64x64xbf16, #y> to tensor<64x64xf32, #mma>
  return %1 : tensor<64x64xf32, #mma>
}

// Of four warps everything fits, and stays as it is.
// CHECK-LABEL: @fits
// CHECK: exchange_store %arg0
// CHECK: exchange_load
// CHECK: exchange_store %arg1
// CHECK: exchange_load
// CHECK-NOT: exchange_load
// CHECK: return
func.func @fits(%a: tensor<64x64xbf16, #row4>, %b: tensor<64x64xbf16, #row4>, %c: tensor<64x64xf32, #mma4>,
                %d: tensor<64x64xf32, #mma4>) -> (tensor<64x64xf32, #mma4>, tensor<64x64xf32, #mma4>)
    attributes {tile.num_warps = 4 : i32} {
  %x = tile_gpu.convert_layout %a : tensor<64x64xbf16, #row4> to tensor<64x64xbf16, #x4>
  %y = tile_gpu.convert_layout %b : tensor<64x64xbf16, #row4> to tensor<64x64xbf16, #y4>
  %0 = tile.dot %x, %y, %c : tensor<64x64xbf16, #x4>, tensor<64x64xbf16, #y4> to tensor<64x64xf32, #mma4>
  %1 = tile.dot %x, %y, %d : tensor<64x64xbf16, #x4>, tensor<64x64xbf16, #y4> to tensor<64x64xf32, #mma4>
  return %0, %1 : tensor<64x64xf32, #mma4>, tensor<64x64xf32, #mma4>
}

// Two results of 128 registers: positions that only the arms look at are computed in each of them, a tile of loaded
// numbers is not.
// CHECK-LABEL: @in_arms
// CHECK: %[[KEPT:.*]] = arith.addi %arg3, %arg3
// CHECK-NOT: tile.range
// CHECK: tile.dot
// CHECK: scf.if
// CHECK: %[[R:.*]] = tile.range
// CHECK: arith.cmpi slt, %{{.*}}, %[[KEPT]]
// CHECK: } else {
// CHECK: tile.dot
// CHECK: scf.if
// CHECK: tile.range
// CHECK: arith.cmpi slt, %{{.*}}, %[[KEPT]]
func.func @in_arms(%x: tensor<64x64xbf16, #x>, %y: tensor<64x64xbf16, #y>, %c: tensor<64x64xf32, #mma>, %n: tensor<64xi32, #cols>,
                   %d: tensor<64x64xf32, #mma>, %cut: i1, %first: i32) -> (tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>)
    attributes {tile.num_warps = 1 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
  %r = tile.range 0 to 64 : tensor<64xi32, #cols>
  %f = tile.splat %first : i32 to tensor<64xi32, #cols>
  %i = arith.addi %f, %r : tensor<64xi32, #cols>
  %e = arith.addi %n, %n : tensor<64xi32, #cols>
  %0 = tile.dot %x, %y, %c : tensor<64x64xbf16, #x>, tensor<64x64xbf16, #y> to tensor<64x64xf32, #mma>
  %1 = scf.if %cut -> (tensor<64x64xf32, #mma>) {
    %m = arith.cmpi slt, %i, %e : tensor<64xi32, #cols>
    %w = tile.expand_dims %m {axis = 0 : i32} : tensor<64xi1, #cols> to tensor<1x64xi1, #mma>
    %b = tile.broadcast %w : tensor<1x64xi1, #mma> to tensor<64x64xi1, #mma>
    %s = arith.select %b, %0, %zero : tensor<64x64xi1, #mma>, tensor<64x64xf32, #mma>
    scf.yield %s : tensor<64x64xf32, #mma>
  } else {
    scf.yield %0 : tensor<64x64xf32, #mma>
  }
  %2 = tile.dot %x, %y, %d : tensor<64x64xbf16, #x>, tensor<64x64xbf16, #y> to tensor<64x64xf32, #mma>
  %3 = scf.if %cut -> (tensor<64x64xf32, #mma>) {
    %m = arith.cmpi slt, %i, %e : tensor<64xi32, #cols>
    %w = tile.expand_dims %m {axis = 0 : i32} : tensor<64xi1, #cols> to tensor<1x64xi1, #mma>
    %b = tile.broadcast %w : tensor<1x64xi1, #mma> to tensor<64x64xi1, #mma>
    %s = arith.select %b, %2, %zero : tensor<64x64xi1, #mma>, tensor<64x64xf32, #mma>
    scf.yield %s : tensor<64x64xf32, #mma>
  } else {
    scf.yield %2 : tensor<64x64xf32, #mma>
  }
  return %1, %3 : tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>
}
}
