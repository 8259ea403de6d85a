// out[i] = 1 + x[i] / (x[i] * x[i]), by an author who did not think of 0.
func.func @inverse(%x: !tile.ptr<f32> {tile.name = "x"}, %out: !tile.ptr<f32> {tile.name = "out"})
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %program = tile.program_id x
  %block = arith.constant 128 : i32
  %first = arith.muli %program, %block : i32
  %range = tile.range 0 to 128 : tensor<128xi32>
  %start = tile.splat %first : i32 to tensor<128xi32>
  %i = arith.addi %start, %range : tensor<128xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>>
  %from = tile.addptr %xs, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %value = tile.load %from : tensor<128x!tile.ptr<f32>>

  %square = arith.mulf %value, %value : tensor<128xf32>
  %ratio = arith.divf %value, %square : tensor<128xf32>
  %one = arith.constant dense<1.0> : tensor<128xf32>
  %sum = arith.addf %ratio, %one : tensor<128xf32>

  %outs = tile.splat %out : !tile.ptr<f32> to tensor<128x!tile.ptr<f32>>
  %to = tile.addptr %outs, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  tile.store %to, %sum : tensor<128x!tile.ptr<f32>>
  return
}
