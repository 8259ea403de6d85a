//===- Kernels.h - The kernels that the emulator's benchmark runs ---------===//
//
// PTX as compilers write it: no immediate tricks, generic pointers converted first, guarded tails.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_BENCH_KERNELS_H
#define KILN_RUNTIME_DEVICE_EMULATOR_BENCH_KERNELS_H

#include <string>

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

/// out[r, i] = in[r, (i + 512) % 1024] * 0.5 + 1: one block of 256 threads for 16 rows of 1024 floats, which come by
/// cp.async through a ring of three stages.  Parameters in, out.
inline constexpr char pipeline[] = R"(
.version 8.7
.target sm_90a
.address_size 64
.visible .entry pipeline(.param .u64 in, .param .u64 out) {
  .reg .b32 %r<24>; .reg .b64 %rd<12>; .reg .f32 %f<16>; .reg .pred %p<4>;
  .shared .align 16 .b8 ring[12288];
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  shl.b32 %r3, %r2, 14;
  mad.lo.s32 %r3, %r1, 4, %r3;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd1, %rd1, %rd3;
  add.s64 %rd2, %rd2, %rd3;
  mov.u32 %r4, ring;
  shl.b32 %r5, %r1, 4;
  add.u32 %r6, %r4, %r5;
  xor.b32 %r7, %r5, 2048;
  add.u32 %r7, %r4, %r7;
  cp.async.cg.shared.global [%r6], [%rd1], 16;
  cp.async.commit_group;
  cp.async.cg.shared.global [%r6+4096], [%rd1+4096], 16;
  cp.async.commit_group;
  mov.u32 %r8, 0;
  mov.u32 %r9, 0;
  mov.u32 %r10, 8192;
LOOP:
  cp.async.wait_group 1;
  bar.sync 0;
  setp.ge.u32 %p1, %r8, 14;
  add.u32 %r11, %r6, %r10;
  @!%p1 cp.async.cg.shared.global [%r11], [%rd1+8192], 16;
  cp.async.commit_group;
  add.u32 %r12, %r7, %r9;
  ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r12];
  fma.rn.f32 %f5, %f1, 0f3F000000, 0f3F800000;
  fma.rn.f32 %f6, %f2, 0f3F000000, 0f3F800000;
  fma.rn.f32 %f7, %f3, 0f3F000000, 0f3F800000;
  fma.rn.f32 %f8, %f4, 0f3F000000, 0f3F800000;
  st.global.v4.f32 [%rd2], {%f5, %f6, %f7, %f8};
  add.s64 %rd1, %rd1, 4096;
  add.s64 %rd2, %rd2, 4096;
  mov.u32 %r13, %r9;
  add.u32 %r9, %r9, 4096;
  setp.eq.u32 %p2, %r9, 12288;
  selp.b32 %r9, 0, %r9, %p2;
  mov.u32 %r10, %r13;
  add.u32 %r8, %r8, 1;
  setp.lt.u32 %p3, %r8, 16;
  @%p3 bra LOOP;
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

/// Extents of the matrix product.
inline constexpr unsigned matmulSize = 256;

/// d = a b of square f16 matrices, b stored by columns, d f32 by rows: a warp a tile of 32 x 32, fragments straight
/// from global memory, eight mma.sync a step of 16 along k.  Parameters a, b, d; grid (matmulSize / 32)^2 blocks of 32.
inline std::string matmul() {
  const auto number = [](unsigned v) { return std::to_string(v); };
  const unsigned row = matmulSize * 2; // bytes of a line of a or b
  std::string s = R"(
.version 8.7
.target sm_90a
.address_size 64
.visible .entry matmul(.param .u64 a, .param .u64 b, .param .u64 d) {
  .reg .b32 %r<8>; .reg .b64 %rd<12>; .reg .b32 %a<8>; .reg .b32 %b<8>; .reg .f32 %c<32>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [d];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  cvta.to.global.u64 %rd3, %rd3;
  mov.u32 %r1, %tid.x;
  shr.u32 %r2, %r1, 2;
  and.b32 %r3, %r1, 3;
  mov.u32 %r4, %ctaid.y;
  mov.u32 %r5, %ctaid.x;
  shl.b32 %r4, %r4, 5;
  shl.b32 %r5, %r5, 5;
  add.s32 %r6, %r4, %r2;
  add.s32 %r7, %r5, %r2;
)";
  s += "  mul.wide.u32 %rd4, %r6, " + number(row) + ";\n  mul.wide.u32 %rd5, %r7, " + number(row) + ";\n";
  s += R"(  mul.wide.u32 %rd6, %r3, 4;
  add.s64 %rd4, %rd4, %rd6;
  add.s64 %rd5, %rd5, %rd6;
  add.s64 %rd1, %rd1, %rd4;
  add.s64 %rd2, %rd2, %rd5;
)";
  s += "  mul.wide.u32 %rd7, %r6, " + number(matmulSize * 4) + ";\n";
  s += R"(  shl.b32 %r7, %r3, 1;
  add.s32 %r7, %r7, %r5;
  mul.wide.u32 %rd8, %r7, 4;
  add.s64 %rd3, %rd3, %rd7;
  add.s64 %rd3, %rd3, %rd8;
  mov.u32 %r7, 0;
)";
  for (unsigned i = 0; i < 32; ++i)
    s += "  mov.f32 %c" + number(i) + ", 0f00000000;\n";
  s += "LOOP:\n";
  for (unsigned i = 0; i < 8; ++i) // rows 0, 8, 16, 24 of each half of k
    s += "  ld.global.b32 %a" + number(i) + ", [%rd1+" + number(i / 4 * 16 * row + i % 2 * 8 * row + i / 2 % 2 * 16) +
         "];\n";
  for (unsigned i = 0; i < 8; ++i)
    s += "  ld.global.b32 %b" + number(i) + ", [%rd2+" + number(i / 2 * 8 * row + i % 2 * 16) + "];\n";
  const auto vector = [&](const char *name, unsigned first, unsigned count) {
    std::string v = "{";
    for (unsigned i = 0; i < count; ++i)
      v += (i ? ", " : "") + std::string(name) + number(first + i);
    return v + "}";
  };
  for (unsigned i = 0; i < 2; ++i)
    for (unsigned j = 0; j < 4; ++j) {
      const std::string c = vector("%c", (i * 4 + j) * 4, 4);
      s += "  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + c + ", " + vector("%a", i * 4, 4) + ", " +
           vector("%b", j * 2, 2) + ", " + c + ";\n";
    }
  s += "  add.s64 %rd1, %rd1, 32;\n  add.s64 %rd2, %rd2, 32;\n  add.s32 %r7, %r7, 16;\n  setp.lt.u32 %p1, %r7, " +
       number(matmulSize) + ";\n  @%p1 bra LOOP;\n";
  for (unsigned i = 0; i < 2; ++i)
    for (unsigned j = 0; j < 4; ++j)
      for (unsigned half = 0; half < 2; ++half)
        s += "  st.global.v2.f32 [%rd3+" + number((i * 16 + half * 8) * matmulSize * 4 + j * 32) + "], " +
             vector("%c", (i * 4 + j) * 4 + half * 2, 2) + ";\n";
  return s + "  ret;\n}";
}

} // namespace kiln::bench

#endif // KILN_RUNTIME_DEVICE_EMULATOR_BENCH_KERNELS_H
