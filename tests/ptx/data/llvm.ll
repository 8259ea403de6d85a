; What LLVM's own back end writes: masks for addresses in packed structs, aliases, byval and grid_constant parameters,
; cluster attributes, jump tables, indirect and variadic calls, partially used vector loads, alloca, inlined positions.
target triple = "nvptx64-nvidia-cuda"

%packed = type <{ i8, ptr, i16, ptr addrspace(1) }>

@smem = external addrspace(3) global [0 x i8], align 1024
@scratch = internal addrspace(3) global [3 x [5 x float]] undef, align 128
@data = addrspace(1) global [4 x i32] [i32 1, i32 -2, i32 3, i32 4], align 16
@record = addrspace(1) global %packed <{ i8 7, ptr addrspacecast (ptr addrspace(1) getelementptr (i8, ptr addrspace(1) @data, i64 8) to ptr), i16 -3, ptr addrspace(1) @data }>
@pointers = addrspace(1) global [2 x ptr] [ptr addrspacecast (ptr addrspace(1) @data to ptr), ptr @helper]
@floats = addrspace(4) constant [4 x float] [float 1.0, float 0x7FF0000000000000, float -0.0, float 0.25], align 4
@doubles = addrspace(4) constant [2 x double] [double 0.1, double -2.5]
@halves = addrspace(4) constant <4 x half> <half 1.0, half 2.0, half -1.0, half 0.5>
@weakling = weak addrspace(1) global i64 5
@shared_name = common addrspace(1) global i32 0

@helper_alias = alias i32 (i32), ptr @helper

define i32 @helper(i32 %x) noinline {
  %y = mul i32 %x, 3
  ret i32 %y
}
declare void @variadic(i32, ...)
declare void @stop() noreturn
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)

define ptx_kernel void @kernel(ptr byval([128 x i8]) align 64 "nvvm.grid_constant" %map, ptr addrspace(1) noalias readonly align 16 %x, ptr addrspace(1) align 16 %y, i32 %n, half %h, i1 %flag) #0 !dbg !10 {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !dbg !13
  %p = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %tid, !dbg !15
  %v = load <4 x float>, ptr addrspace(1) %p, align 16, !dbg !15
  %v0 = extractelement <4 x float> %v, i32 0, !dbg !13
  %v2 = extractelement <4 x float> %v, i32 2, !dbg !13
  %sum = fadd float %v0, %v2, !dbg !13
  store float %sum, ptr addrspace(3) @smem, align 4
  %stack = alloca i32, i32 %n, align 8
  store volatile i32 %tid, ptr %stack
  switch i32 %n, label %other [
    i32 0, label %a
    i32 1, label %b
    i32 2, label %c
    i32 3, label %d
    i32 4, label %e
  ]
a:
  store i32 1, ptr addrspace(1) %y
  br label %done
b:
  store i32 22, ptr addrspace(1) %y, !nontemporal !20
  br label %done
c:
  %q = load i32, ptr %stack
  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %q, i32 1, i32 31)
  store i32 %r, ptr addrspace(1) %y
  br label %done
d:
  %f = load ptr, ptr addrspace(1) getelementptr ([2 x ptr], ptr addrspace(1) @pointers, i32 0, i32 1)
  %i = call i32 %f(i32 %n)
  %old = atomicrmw add ptr addrspace(1) %y, i32 %i syncscope("device") seq_cst
  br label %done
e:
  call void (i32, ...) @variadic(i32 5, i64 7, double 2.0)
  call void asm sideeffect "{ .reg .pred p; setp.ne.b32 p, $0, 0; @p bar.sync 1, 64; }", "r"(i32 %n)
  br label %done
other:
  %m = load i32, ptr %map
  %t = icmp sgt i32 %m, 4
  br i1 %t, label %dead, label %done
dead:
  call void @stop()
  unreachable
done:
  ret void
}

attributes #0 = { "nvvm.reqntid"="128,1,1" "nvvm.minctasm"="2" "nvvm.cluster_dim"="2,1,1" "nvvm.maxnreg"="64" }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "hand", isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "kernel.py", directory: "source")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!9 = !DISubroutineType(types: !{})
!10 = distinct !DISubprogram(name: "kernel", file: !1, line: 10, type: !9, scopeLine: 10, spFlags: DISPFlagDefinition, unit: !0)
!11 = distinct !DISubprogram(name: "load", file: !1, line: 3, type: !9, scopeLine: 3, spFlags: DISPFlagDefinition, unit: !0)
!13 = !DILocation(line: 12, column: 4, scope: !10)
!15 = !DILocation(line: 5, column: 7, scope: !11, inlinedAt: !13)
!20 = !{i32 1}
