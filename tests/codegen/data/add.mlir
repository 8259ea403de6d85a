// out[i] = x[i] + y[i] for i < n, one element a thread.
module {
  llvm.func @add(%x: !llvm.ptr<1> {llvm.noalias, llvm.align = 16 : i64}, %y: !llvm.ptr<1> {llvm.noalias, llvm.align = 16 : i64},
                 %out: !llvm.ptr<1> {llvm.noalias, llvm.align = 16 : i64}, %n: i32)
      attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %block = nvvm.read.ptx.sreg.ctaid.x : i32
    %size = llvm.mlir.constant(128 : i32) : i32
    %base = llvm.mul %block, %size : i32
    %i = llvm.add %base, %tid : i32
    %inside = llvm.icmp "slt" %i, %n : i32
    llvm.cond_br %inside, ^body, ^done
  ^body:
    %i64 = llvm.sext %i : i32 to i64
    %px = llvm.getelementptr %x[%i64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %py = llvm.getelementptr %y[%i64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %po = llvm.getelementptr %out[%i64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %a = llvm.load %px : !llvm.ptr<1> -> f32
    %b = llvm.load %py : !llvm.ptr<1> -> f32
    %sum = llvm.fadd %a, %b : f32
    llvm.store %sum, %po : f32, !llvm.ptr<1>
    llvm.br ^done
  ^done:
    llvm.return
  }
}
