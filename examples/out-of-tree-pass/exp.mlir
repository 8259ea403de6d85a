// out[i] = x[i] / (1 + exp(-x[i])): two operations that have an approximation.
func.func @silu(%x: !tile.ptr<f32> {tile.name = "x"}, %out: !tile.ptr<f32> {tile.name = "out"})
    attributes {tile.kernel} {
  %i = tile.range 0 to 512 : tensor<512xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<512x!tile.ptr<f32>>
  %from = tile.addptr %xs, %i : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %value = tile.load %from : tensor<512x!tile.ptr<f32>>

  %negative = arith.negf %value : tensor<512xf32>
  %power = math.exp %negative : tensor<512xf32>
  %one = arith.constant dense<1.0> : tensor<512xf32>
  %sum = arith.addf %one, %power : tensor<512xf32>
  %result = arith.divf %value, %sum : tensor<512xf32>

  %outs = tile.splat %out : !tile.ptr<f32> to tensor<512x!tile.ptr<f32>>
  %to = tile.addptr %outs, %i : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  tile.store %to, %result : tensor<512x!tile.ptr<f32>>
  return
}
