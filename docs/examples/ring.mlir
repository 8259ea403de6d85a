// out = the sum of n tiles of 64 rows and 32 columns of x: a pipeline of three slots, written by hand.  The copies of
// two later tiles are in flight while one is added.
#row = #tile_gpu.blocked<sizePerThread=[1,4], threadsPerWarp=[4,8], warpsPerCTA=[4,1], order=[1,0]>
#sh = #tile_gpu.swizzled<vec=4, perPhase=1, maxPhase=1>
!ring = !tile_gpu.pipeline<3, !tile_gpu.buffer<"x": 64x32xf32, #sh>>
func.func @ring(%x: !tile.ptr<f32> {tile.name = "x"}, %out: !tile.ptr<f32> {tile.name = "out"},
                %n: i32 {tile.name = "n"}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32, #row>
  %rows = arith.muli %n, %c64 : i32
  %v = tile.make_view %x, extents [%rows, %c32], strides [%c32, %c1] : !tile.view<64x32xf32>, i32
  %to = tile.make_view %out, extents [%c64, %c32], strides [%c32, %c1] : !tile.view<64x32xf32>, i32

  // Tiles 0 and 1.  Rows after the last are zeros: tiles that do not exist need no condition.
  %free = tile_gpu.pipeline : !ring
  %p0, %s0 = tile_gpu.acquire %free : !ring
  tile_gpu.async_copy_view %v[%c0, %c0], %s0 by #row : !tile.view<64x32xf32>, i32, !tile_gpu.buffer<"x": 64x32xf32, #sh>
  %p1 = tile_gpu.commit %p0 : !ring
  %p2, %s1 = tile_gpu.acquire %p1 : !ring
  tile_gpu.async_copy_view %v[%c64, %c0], %s1 by #row : !tile.view<64x32xf32>, i32, !tile_gpu.buffer<"x": 64x32xf32, #sh>
  %p3 = tile_gpu.commit %p2 : !ring

  %sum, %last = scf.for %t = %c0 to %n step %c1 iter_args(%acc = %zero, %p = %p3) -> (tensor<64x32xf32, #row>, !ring) : i32 {
    %a, %now = tile_gpu.wait %p : !ring
    %b, %later = tile_gpu.acquire %a : !ring
    %ahead = arith.addi %t, %c2 : i32
    %first = arith.muli %ahead, %c64 : i32
    tile_gpu.async_copy_view %v[%first, %c0], %later by #row : !tile.view<64x32xf32>, i32, !tile_gpu.buffer<"x": 64x32xf32, #sh>
    %c = tile_gpu.commit %b : !ring
    %tile = tile_gpu.local_load %now : !tile_gpu.buffer<"x": 64x32xf32, #sh> to tensor<64x32xf32, #row>
    %d = tile_gpu.release %c : !ring
    %next = arith.addf %acc, %tile : tensor<64x32xf32, #row>
    scf.yield %next, %d : tensor<64x32xf32, #row>, !ring
  }
  tile_gpu.drain %last : !ring
  tile.store_view %to[%c0, %c0], %sum : !tile.view<64x32xf32>, i32, tensor<64x32xf32, #row>
  return
}
