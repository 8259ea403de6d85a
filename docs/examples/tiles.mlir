// A kernel at stage llvm that has a tensor map: each block copies a tile of 8 rows and 16 columns of x, the first one
// from (first, first) on, into shared memory with one instruction, and writes it to its place in out, whose rows have
// 16 columns a block.  What lies outside of x reads as zero.  `first` is a multiple of 4: 16 bytes.
module {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<128 x f32>
  llvm.mlir.global internal @full() {addr_space = 3 : i32, alignment = 8 : i64} : i64

  llvm.func @tiles(%x: !llvm.ptr<1> {tile.name = "x", tile.element = f32},
                   %out: !llvm.ptr<1> {tile.name = "out", tile.element = f32}, %rows: i32 {tile.name = "rows"},
                   %columns: i32 {tile.name = "columns"}, %row_stride: i64 {tile.name = "row_stride"},
                   %first: i32 {tile.name = "first"},
                   %map: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant,
                     tile_gpu.tensor_map = #tile_gpu.tensor_map<element = "f32", address = 0,
                       extents = ()[s0, s1, s2, s3] -> (s3, s2), strides = ()[s0, s1, s2, s3, s4] -> (s4 * 4),
                       box = [16, 8]>})
      attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %four = llvm.mlir.constant(4 : i32) : i32
    %eight = llvm.mlir.constant(8 : i32) : i32
    %fifteen = llvm.mlir.constant(15 : i32) : i32
    %sixteen = llvm.mlir.constant(16 : i32) : i32
    %bytes = llvm.mlir.constant(512 : i32) : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %full = llvm.mlir.addressof @full : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bx = nvvm.read.ptx.sreg.ctaid.x : i32
    %by = nvvm.read.ptx.sreg.ctaid.y : i32
    %blocks = nvvm.read.ptx.sreg.nctaid.x : i32
    %tx = llvm.mul %bx, %sixteen : i32
    %ty = llvm.mul %by, %eight : i32
    %is_first = llvm.icmp "eq" %t, %zero : i32
    llvm.cond_br %is_first, ^init, ^ready
  ^init:
    nvvm.mbarrier.init %full, %one : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    llvm.br ^ready
  ^ready:
    nvvm.barrier
    llvm.cond_br %is_first, ^copy, ^wait
  ^copy:
    %cx = llvm.add %tx, %first : i32
    %cy = llvm.add %ty, %first : i32
    nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32
    %shared = llvm.addrspacecast %tile : !llvm.ptr<3> to !llvm.ptr<7>
    nvvm.cp.async.bulk.tensor.shared.cluster.global %shared, %map, %full, box[%cx, %cy] : !llvm.ptr<7>, !llvm.ptr
    llvm.br ^wait
  ^wait:
    %done = nvvm.mbarrier.try_wait %full, %zero : !llvm.ptr<3>, i32 -> i1
    llvm.cond_br %done, ^write, ^wait
  ^write:
    %from = llvm.getelementptr %tile[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %value = llvm.load %from : !llvm.ptr<3> -> f32
    %column = llvm.and %t, %fifteen : i32
    %row = llvm.lshr %t, %four : i32
    %y = llvm.add %ty, %row : i32
    %pitch = llvm.mul %blocks, %sixteen : i32
    %start = llvm.mul %y, %pitch : i32
    %along = llvm.add %tx, %column : i32
    %at = llvm.add %start, %along : i32
    %to = llvm.getelementptr %out[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %value, %to : f32, !llvm.ptr<1>
    llvm.return
  }
}
