// y[block * 128 + t] = the sum over k < n of x[(block + k) * 128 + 127 - t], through shared memory.
module {
  llvm.mlir.global internal @buffer() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<128 x f32>
  llvm.func @mirror(%x: !llvm.ptr<1> {llvm.noalias, llvm.align = 16 : i64}, %y: !llvm.ptr<1> {llvm.noalias, llvm.align = 16 : i64},
                    %n: i32)
      attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %block = nvvm.read.ptx.sreg.ctaid.x : i32
    %size = llvm.mlir.constant(128 : i32) : i32
    %last = llvm.mlir.constant(127 : i32) : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %base = llvm.mul %block, %size : i32
    %i = llvm.add %base, %tid : i32 loc(unknown)
    %shared = llvm.mlir.addressof @buffer : !llvm.ptr<3>
    llvm.br ^head(%c0, %zero : i32, f32)
  ^head(%k: i32, %sum: f32):
    %more = llvm.icmp "slt" %k, %n : i32
    llvm.cond_br %more, ^body, ^end
  ^body:
    %step = llvm.mul %k, %size : i32 loc(unknown)
    %at = llvm.add %i, %step : i32 loc(unknown)
    %at64 = llvm.sext %at : i32 to i64
    %px = llvm.getelementptr %x[%at64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %v = llvm.load %px : !llvm.ptr<1> -> f32 loc(fused["read x", fused<"pass">["kernel.cc":41:3, "kernel.cc":99:1]])
    %own = llvm.getelementptr %shared[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %v, %own : f32, !llvm.ptr<3> loc("put"("kernel.cc":42:7))
    nvvm.barrier
    %mirrored = llvm.sub %last, %tid : i32
    %other = llvm.getelementptr %shared[%mirrored] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %w = llvm.load %other : !llvm.ptr<3> -> f32 loc(callsite("inner"("kernel.cc":43:1) at "kernel.cc":90:1))
    llvm.inline_asm has_side_effects asm_dialect = att "bar.sync 0;", "~{memory}" : () -> () loc(unknown)
    %next = llvm.fadd %sum, %w : f32 loc("kernel.cc":0:0)
    %k2 = llvm.add %k, %c1 : i32
    llvm.br ^head(%k2, %next : i32, f32)
  ^end:
    %i64 = llvm.sext %i : i32 to i64
    %py = llvm.getelementptr %y[%i64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    llvm.store %sum, %py : f32, !llvm.ptr<1>
    llvm.return
  }
}
