//===- FakeCompiler.h - A libkiln-compiler without a compiler -------------===//
//
// kiln-jit-fake-compiler.so answers with PTX that the program text brings along.  A program is lines of "key value":
//
//   argument NAME TYPE   one of the kernel, in order       warps N     of a block (4)
//   fail STATUS TEXT     refuse with this status           sleep MS    before answering
//   guard JSON           a guard that nobody asked for     bytes N     claim N bytes of shared memory
//   field NAME = JSON    of the metadata, added or replaced
//   mapped NAME = JSON   the same, as if passes made tensor maps: not where the request wants none
//   entry NAME           the entry (the kernel's name)     metadata T  this instead of the metadata
//   once FILE            the failure only while FILE is not there, which it makes
//   ptx                  everything after this line
//
// Each compile appends a line, the request's options, to the file named by KILN_TEST_COMPILE_LOG.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_JIT_FAKECOMPILER_H
#define KILN_TESTS_JIT_FAKECOMPILER_H

namespace kiln::test {

/// out[i] = x[i] + y[i], i < n, with blocks of 128; arguments x, y, out: ptr<f32>, n: i32.
inline constexpr const char *addPtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 out, .param .u32 n)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  .reg .f32 %f<4>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u64 %rd3, [out];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p, %r5, %r1;
  @%p bra DONE;
  mul.wide.s32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  add.rn.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
DONE:
  ret;
}
)";

} // namespace kiln::test

#endif // KILN_TESTS_JIT_FAKECOMPILER_H
