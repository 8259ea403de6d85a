//===- Kernels.h - The kernels that the emulator's benchmark runs ---------===//
//
// PTX as compilers write it: no immediate tricks, generic pointers converted first, guarded tails.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_BENCH_KERNELS_H
#define KILN_RUNTIME_DEVICE_EMULATOR_BENCH_KERNELS_H

namespace kiln::bench {

/// out[i] = a[i] * scale + b[i], four steps of a small polynomial, one element a thread.  Parameters a, b, out, n,
/// scale.
inline constexpr char elementwise[] = R"(
.version 8.7
.target sm_90a
.address_size 64
.visible .entry elementwise(.param .u64 a, .param .u64 b, .param .u64 out, .param .u32 n, .param .f32 scale) {
  .reg .b32 %r<8>; .reg .b64 %rd<12>; .reg .f32 %f<16>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [out];
  ld.param.u32 %r1, [n];
  ld.param.f32 %f1, [scale];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd4, %rd1;
  cvta.to.global.u64 %rd5, %rd2;
  cvta.to.global.u64 %rd6, %rd3;
  mul.wide.u32 %rd7, %r5, 4;
  add.s64 %rd8, %rd4, %rd7;
  add.s64 %rd9, %rd5, %rd7;
  add.s64 %rd10, %rd6, %rd7;
  ld.global.f32 %f2, [%rd8];
  ld.global.f32 %f3, [%rd9];
  fma.rn.f32 %f4, %f2, %f1, %f3;
  fma.rn.f32 %f5, %f4, 0f3D2AAAAB, 0f3E2AAAAB;
  fma.rn.f32 %f6, %f5, %f4, 0f3F000000;
  fma.rn.f32 %f7, %f6, %f4, 0f3F800000;
  mul.f32 %f8, %f7, %f4;
  max.f32 %f9, %f8, %f2;
  st.global.f32 [%rd10], %f9;
DONE:
  ret;
})";

/// One block of 256 threads a row of 1024 floats: maximum and sum by warp shuffles and shared memory, exp2.
/// Parameters in, out.
inline constexpr char softmax[] = R"(
.version 8.7
.target sm_90a
.address_size 64
.visible .entry softmax(.param .u64 in, .param .u64 out) {
  .reg .b32 %r<16>; .reg .b64 %rd<12>; .reg .f32 %f<64>; .reg .pred %p<4>;
  .shared .align 16 .b8 partial[64];
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  shl.b32 %r3, %r1, 10;
  shl.b32 %r4, %r2, 2;
  add.s32 %r5, %r3, %r4;
  mul.wide.s32 %rd5, %r5, 4;
  add.s64 %rd6, %rd3, %rd5;
  add.s64 %rd7, %rd4, %rd5;
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd6];
  max.f32 %f5, %f1, %f2;
  max.f32 %f6, %f3, %f4;
  max.f32 %f7, %f5, %f6;
  mov.b32 %r6, %f7;
  shfl.sync.bfly.b32 %r7, %r6, 16, 31, -1;
  mov.b32 %f8, %r7;
  max.f32 %f9, %f7, %f8;
  mov.b32 %r6, %f9;
  shfl.sync.bfly.b32 %r7, %r6, 8, 31, -1;
  mov.b32 %f8, %r7;
  max.f32 %f9, %f9, %f8;
  mov.b32 %r6, %f9;
  shfl.sync.bfly.b32 %r7, %r6, 4, 31, -1;
  mov.b32 %f8, %r7;
  max.f32 %f9, %f9, %f8;
  mov.b32 %r6, %f9;
  shfl.sync.bfly.b32 %r7, %r6, 2, 31, -1;
  mov.b32 %f8, %r7;
  max.f32 %f9, %f9, %f8;
  mov.b32 %r6, %f9;
  shfl.sync.bfly.b32 %r7, %r6, 1, 31, -1;
  mov.b32 %f8, %r7;
  max.f32 %f9, %f9, %f8;
  and.b32 %r8, %r2, 31;
  shr.u32 %r9, %r2, 5;
  setp.eq.s32 %p1, %r8, 0;
  shl.b32 %r10, %r9, 2;
  mov.u32 %r11, partial;
  add.s32 %r12, %r11, %r10;
  @%p1 st.shared.f32 [%r12], %f9;
  bar.sync 0;
  ld.shared.v4.f32 {%f10, %f11, %f12, %f13}, [partial];
  ld.shared.v4.f32 {%f14, %f15, %f16, %f17}, [partial+16];
  max.f32 %f18, %f10, %f11;
  max.f32 %f19, %f12, %f13;
  max.f32 %f20, %f14, %f15;
  max.f32 %f21, %f16, %f17;
  max.f32 %f22, %f18, %f19;
  max.f32 %f23, %f20, %f21;
  max.f32 %f24, %f22, %f23;
  sub.f32 %f25, %f1, %f24;
  sub.f32 %f26, %f2, %f24;
  sub.f32 %f27, %f3, %f24;
  sub.f32 %f28, %f4, %f24;
  mul.f32 %f29, %f25, 0f3FB8AA3B;
  mul.f32 %f30, %f26, 0f3FB8AA3B;
  mul.f32 %f31, %f27, 0f3FB8AA3B;
  mul.f32 %f32, %f28, 0f3FB8AA3B;
  ex2.approx.ftz.f32 %f33, %f29;
  ex2.approx.ftz.f32 %f34, %f30;
  ex2.approx.ftz.f32 %f35, %f31;
  ex2.approx.ftz.f32 %f36, %f32;
  add.f32 %f37, %f33, %f34;
  add.f32 %f38, %f35, %f36;
  add.f32 %f39, %f37, %f38;
  mov.b32 %r6, %f39;
  shfl.sync.bfly.b32 %r7, %r6, 16, 31, -1;
  mov.b32 %f8, %r7;
  add.f32 %f39, %f39, %f8;
  mov.b32 %r6, %f39;
  shfl.sync.bfly.b32 %r7, %r6, 8, 31, -1;
  mov.b32 %f8, %r7;
  add.f32 %f39, %f39, %f8;
  mov.b32 %r6, %f39;
  shfl.sync.bfly.b32 %r7, %r6, 4, 31, -1;
  mov.b32 %f8, %r7;
  add.f32 %f39, %f39, %f8;
  mov.b32 %r6, %f39;
  shfl.sync.bfly.b32 %r7, %r6, 2, 31, -1;
  mov.b32 %f8, %r7;
  add.f32 %f39, %f39, %f8;
  mov.b32 %r6, %f39;
  shfl.sync.bfly.b32 %r7, %r6, 1, 31, -1;
  mov.b32 %f8, %r7;
  add.f32 %f39, %f39, %f8;
  bar.sync 0;
  @%p1 st.shared.f32 [%r12], %f39;
  bar.sync 0;
  ld.shared.v4.f32 {%f40, %f41, %f42, %f43}, [partial];
  ld.shared.v4.f32 {%f44, %f45, %f46, %f47}, [partial+16];
  add.f32 %f48, %f40, %f41;
  add.f32 %f49, %f42, %f43;
  add.f32 %f50, %f44, %f45;
  add.f32 %f51, %f46, %f47;
  add.f32 %f52, %f48, %f49;
  add.f32 %f53, %f50, %f51;
  add.f32 %f54, %f52, %f53;
  rcp.approx.ftz.f32 %f55, %f54;
  mul.f32 %f56, %f33, %f55;
  mul.f32 %f57, %f34, %f55;
  mul.f32 %f58, %f35, %f55;
  mul.f32 %f59, %f36, %f55;
  st.global.v4.f32 [%rd7], {%f56, %f57, %f58, %f59};
  ret;
})";

} // namespace kiln::bench

#endif // KILN_RUNTIME_DEVICE_EMULATOR_BENCH_KERNELS_H
