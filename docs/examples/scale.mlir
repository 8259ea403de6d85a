// out[i] = x[i] * factor: a kernel of the tile dialect, written by hand.
func.func @scale(%x: !tile.ptr<f32> {tile.name = "x"}, %out: !tile.ptr<f32> {tile.name = "out"},
                 %factor: f32 {tile.name = "factor"}, %n: i32 {tile.name = "n"})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  // Each program works on 512 elements.
  %program = tile.program_id x
  %block = arith.constant 512 : i32
  %first = arith.muli %program, %block : i32
  %range = tile.range 0 to 512 : tensor<512xi32>
  %start = tile.splat %first : i32 to tensor<512xi32>
  %i = arith.addi %start, %range : tensor<512xi32>
  %end = tile.splat %n : i32 to tensor<512xi32>
  %mask = arith.cmpi slt, %i, %end : tensor<512xi32>

  %xs = tile.splat %x : !tile.ptr<f32> to tensor<512x!tile.ptr<f32>>
  %from = tile.addptr %xs, %i : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %value = tile.load %from mask %mask : tensor<512x!tile.ptr<f32>>
  %factors = tile.splat %factor : f32 to tensor<512xf32>
  %scaled = arith.mulf %value, %factors : tensor<512xf32>
  %outs = tile.splat %out : !tile.ptr<f32> to tensor<512x!tile.ptr<f32>>
  %to = tile.addptr %outs, %i : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  tile.store %to, %scaled mask %mask : tensor<512x!tile.ptr<f32>>
  return
}
