// Dumps the squares of x as a tile: a print of the bits of its elements, after words that say what it is.
func.func @squares(%x: !tile.ptr<f32> {tile.name = "x"}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
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
  %bits = arith.bitcast %square : tensor<128xf32> to tensor<128xi32>
  tile.print "kiln.tile square f32 128 " %bits : tensor<128xi32>
  return
}
