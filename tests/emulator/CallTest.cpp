// Device functions: parameters, results, frames, recursion, indirect calls, and what the device runtime provides.
#include "tests/emulator/PtxHarness.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

std::vector<std::uint32_t> results(const std::string &outside, const std::string &body,
                                   std::string *failure = nullptr) {
  Emulator gpu;
  auto &out = gpu.upload(std::vector<std::uint32_t>(32, 0xABABABAB), "out");
  const Launched r = gpu.run(kernelText(".param .u64 out", std::string(threadIndex) + body + R"(
    ld.param.u64 %rd63, [out]; add.s64 %rd63, %rd63, %rd60; st.global.u32 [%rd63], %r1;)",
                                        "sm_90a", outside),
                             {1}, {32}, {out});
  if (failure)
    *failure = r.text();
  else
    EXPECT_TRUE(r.clean()) << r.text();
  return gpu.download<std::uint32_t>(out);
}

const std::string addFunction = R"(
.func (.param .b32 result) addmul(.param .b32 a, .param .b64 b) {
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u32 %r1, [a]; ld.param.u64 %rd1, [b]; cvt.u32.u64 %r2, %rd1; mad.lo.u32 %r3, %r1, %r2, 1; st.param.b32 [result], %r3; ret;
})";

const std::string factorial = R"(
.func (.param .b32 result) factorial(.param .b32 n) {
  .reg .b32 %r<8>; .reg .pred %p<2>; .local .align 4 .b8 frame[8]; .reg .b64 %rd<4>;
  ld.param.u32 %r1, [n]; st.local.u32 [frame], %r1; mov.u64 %rd1, frame; cvta.local.u64 %rd1, %rd1;
  setp.le.u32 %p1, %r1, 1; @%p1 bra BASE;
  sub.u32 %r2, %r1, 1;
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r2; call.uni (q), factorial, (p); ld.param.b32 %r3, [q]; }
  ld.u32 %r4, [%rd1]; mul.lo.u32 %r5, %r3, %r4; xor.b32 %r6, %r4, %r1; add.u32 %r5, %r5, %r6; st.param.b32 [result], %r5; ret;
BASE: mov.u32 %r7, 1; st.param.b32 [result], %r7; ret;
})";

} // namespace

TEST(Calls, ArgumentsAndResult) {
  const auto got = results(addFunction, R"(
    mov.u32 %r2, %tid.x; cvt.u64.u32 %rd2, %r2; mov.u32 %r10, 77;
    { .param .b32 p0; .param .b64 p1; .param .b32 ret0; st.param.b32 [p0], %r2; st.param.b64 [p1], %rd2; call.uni (ret0), addmul, (p0, p1); ld.param.b32 %r1, [ret0]; }
    add.u32 %r1, %r1, %r10;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], l * l + 1 + 77);
}

TEST(Calls, DivergentCallersMeetInsideAndReturnToTheirOwnPlace) {
  const auto got = results(addFunction, R"(
    mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 1; mov.u64 %rd2, 3; @%p1 bra ODD;
    { .param .b32 p0; .param .b64 p1; .param .b32 ret0; st.param.b32 [p0], %r2; st.param.b64 [p1], %rd2; call (ret0), addmul, (p0, p1); ld.param.b32 %r1, [ret0]; }
    add.u32 %r1, %r1, 1000; bra JOIN;
  ODD: mov.u64 %rd2, 5;
    { .param .b32 p0; .param .b64 p1; .param .b32 ret0; st.param.b32 [p0], %r2; st.param.b64 [p1], %rd2; call (ret0), addmul, (p0, p1); ld.param.b32 %r1, [ret0]; }
    add.u32 %r1, %r1, 2000;
  JOIN: shfl.sync.idx.b32 %r4, %r1, 0, 31, -1; add.u32 %r1, %r1, %r4;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], (l % 2 ? l * 5 + 2001 : l * 3 + 1001) + 1001) << l;
}

TEST(Calls, RecursionKeepsRegistersAndFramesOfEachDepth) {
  const auto got = results(factorial, R"(
    mov.u32 %r2, %tid.x; and.b32 %r2, %r2, 7;
    { .param .b32 p; .param .b32 q; st.param.b32 [p], %r2; call.uni (q), factorial, (p); ld.param.b32 %r1, [q]; })");
  const unsigned expected[] = {1, 1, 2, 6, 24, 120, 720, 5040};
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], expected[l % 8]) << l;
}

TEST(Calls, EndlessRecursionIsFound) {
  std::string text;
  results(R"(.func forever() { call.uni forever; ret; })", "mov.u32 %r1, 1; call.uni forever;", &text);
  EXPECT_NE(text.find("call.depth"), std::string::npos) << text;
  EXPECT_NE(text.find("more than 512 deep: 'forever'"), std::string::npos) << text;
}

TEST(Calls, IndirectThroughATable) {
  const std::string outside = R"(
    .func (.param .b32 r) one(.param .b32 a) { .reg .b32 %r<3>; ld.param.u32 %r1, [a]; add.u32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }
    .func (.param .b32 r) two(.param .b32 a) { .reg .b32 %r<3>; ld.param.u32 %r1, [a]; mul.lo.u32 %r1, %r1, 2; st.param.b32 [r], %r1; ret; }
    .func (.param .b32 r) three(.param .b32 a) { .reg .b32 %r<3>; ld.param.u32 %r1, [a]; neg.s32 %r1, %r1; st.param.b32 [r], %r1; ret; }
    .global .align 8 .u64 table[2] = {one, two};)";
  const auto got = results(outside, R"(
    mov.u32 %r2, %tid.x; rem.u32 %r3, %r2, 3; mul.wide.u32 %rd2, %r3, 8; mov.u64 %rd3, table; add.u64 %rd3, %rd3, %rd2;
    setp.eq.u32 %p1, %r3, 2; mov.u64 %rd4, three; @!%p1 ld.global.u64 %rd4, [%rd3];
    { .param .b32 p; .param .b32 q; st.param.b32 [p], %r2; PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (q), %rd4, (p), PROTO; ld.param.b32 %r1, [q]; })");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], l % 3 == 0 ? l + 1 : l % 3 == 1 ? 2 * l : 0u - l) << l;
}

TEST(Calls, IndirectToNoFunctionIsFound) {
  std::string text;
  results(addFunction, "mov.u64 %rd4, 12345; PROTO: .callprototype _ (); call %rd4, (), PROTO; mov.u32 %r1, 1;", &text);
  EXPECT_NE(text.find("call.target"), std::string::npos) << text;
}

TEST(Calls, RegisterParameters) {
  const auto got = results(R"(.func (.reg .b32 r) plus(.reg .b32 a, .reg .b32 b) { add.u32 r, a, b; ret; })",
                           "mov.u32 %r2, %tid.x; call (%r1), plus, (%r2, 5);");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], l + 5);
}

TEST(Calls, StructuresByValueAndPointersToFrames) {
  const auto got = results(R"(
    .func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 s[16]) {
      .reg .b64 %rd<4>; ld.param.u64 %rd1, [s]; ld.param.u64 %rd2, [s+8]; st.param.u64 [r], %rd2; st.param.u64 [r+8], %rd1; ret; }
    .func bump(.param .b64 p) { .reg .b64 %rd<2>; .reg .b32 %r<3>; ld.param.u64 %rd1, [p]; ld.u32 %r1, [%rd1]; add.u32 %r1, %r1, 100; st.u32 [%rd1], %r1; ret; })",
                           R"(
    .local .align 8 .b8 mine[8]; mov.u32 %r2, %tid.x; cvt.u64.u32 %rd2, %r2; mov.u64 %rd3, 7; mov.u64 %rd10, mine; cvta.local.u64 %rd11, %rd10;
    { .param .align 8 .b8 a[16]; .param .align 8 .b8 b[16]; st.param.u64 [a], %rd2; st.param.u64 [a+8], %rd3; call (b), swap, (a); ld.param.u64 %rd4, [b]; ld.param.u64 %rd5, [b+8]; }
    st.local.u64 [mine], %rd5;
    { .param .b64 p; st.param.b64 [p], %rd11; call bump, (p); }
    ld.local.u32 %r3, [mine]; cvt.u32.u64 %r4, %rd4; mad.lo.u32 %r1, %r3, 10, %r4;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], (l + 100) * 10 + 7);
}

TEST(Calls, StackAllocation) {
  const auto got = results("", R"(
    mov.u32 %r2, %tid.x; add.u32 %r3, %r2, 1; mul.wide.u32 %rd2, %r3, 4; stacksave.u64 %rd8; alloca.u64 %rd3, %rd2; mov.u32 %r4, 0;
  FILL: mul.wide.u32 %rd4, %r4, 4; add.u64 %rd5, %rd3, %rd4; st.local.u32 [%rd5], %r4; add.u32 %r4, %r4, 1; setp.le.u32 %p1, %r4, %r2; @%p1 bra FILL;
    mov.u32 %r1, 0; mov.u32 %r4, 0;
  SUM: mul.wide.u32 %rd4, %r4, 4; add.u64 %rd5, %rd3, %rd4; ld.local.u32 %r5, [%rd5]; add.u32 %r1, %r1, %r5; add.u32 %r4, %r4, 1; setp.le.u32 %p1, %r4, %r2; @%p1 bra SUM;
    stackrestore.u64 %rd8;)");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], l * (l + 1) / 2);
}

TEST(Calls, PrintfWritesToStandardOutput) {
  testing::internal::CaptureStdout();
  results(R"(.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
    .global .align 1 .b8 text[40] = {118,61,37,100,32,120,61,37,46,50,102,32,115,61,37,115,10,0};
    .global .align 1 .b8 word[4] = {111,107,33,0};)",
          R"(.local .align 8 .b8 args[24]; mov.u32 %r2, %tid.x; mov.u32 %r1, 0; setp.gt.u32 %p1, %r2, 1; @%p1 bra DONE;
    neg.s32 %r3, %r2; st.local.u32 [args], %r3; mov.f64 %fd1, 0d3FF8000000000000; st.local.f64 [args+8], %fd1;
    mov.u64 %rd2, word; cvta.global.u64 %rd2, %rd2; st.local.u64 [args+16], %rd2;
    mov.u64 %rd3, text; cvta.global.u64 %rd3, %rd3; mov.u64 %rd4, args; cvta.local.u64 %rd4, %rd4;
    { .param .b64 p0; .param .b64 p1; .param .b32 q; st.param.b64 [p0], %rd3; st.param.b64 [p1], %rd4; call.uni (q), vprintf, (p0, p1); ld.param.b32 %r1, [q]; }
  DONE: )");
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "v=0 x=1.50 s=ok!\nv=-1 x=1.50 s=ok!\n");
}

TEST(Calls, AssertionsNameTheirText) {
  std::string text;
  results(
      R"(.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 fn, .param .b64 c);
    .global .align 1 .b8 message[6] = {110,32,62,32,48,0}; .global .align 1 .b8 file[5] = {97,46,99,117,0}; .global .align 1 .b8 fn[2] = {107,0};)",
      R"(mov.u32 %r1, %tid.x; mov.u64 %rd2, message; cvta.global.u64 %rd2, %rd2; mov.u64 %rd3, file; cvta.global.u64 %rd3, %rd3; mov.u64 %rd4, fn; cvta.global.u64 %rd4, %rd4;
    mov.u32 %r2, 12; mov.u64 %rd5, 1;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %rd2; st.param.b64 [b], %rd3; st.param.b32 [c], %r2; st.param.b64 [d], %rd4; st.param.b64 [e], %rd5;
      call.uni __assertfail, (a, b, c, d, e); })",
      &text);
  EXPECT_NE(text.find("a.cu:12: k: assertion 'n > 0' failed"), std::string::npos) << text;
}

TEST(Calls, DeviceHeap) {
  const auto got =
      results(R"(.extern .func (.param .b64 r) malloc (.param .b64 n); .extern .func free (.param .b64 p);)", R"(
    mov.u32 %r2, %tid.x; mov.u64 %rd2, 64;
    { .param .b64 a; .param .b64 b; st.param.b64 [a], %rd2; call.uni (b), malloc, (a); ld.param.b64 %rd3, [b]; }
    st.u32 [%rd3+60], %r2; ld.u32 %r1, [%rd3+60];
    { .param .b64 a; st.param.b64 [a], %rd3; call.uni free, (a); })");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], l);
}

TEST(Calls, UnreachableFunctionsMayHoldAnything) {
  const auto got = results(".func never() { tcgen05.alloc.nonsense; ret; }", "mov.u32 %r1, 3;");
  EXPECT_EQ(got[0], 3u);
}

TEST(Calls, ExitInsideAFunction) {
  const auto got = results(".func leave(.param .b32 n) { .reg .b32 %r<2>; .reg .pred %p<2>; ld.param.u32 %r1, [n]; "
                           "setp.lt.u32 %p1, %r1, 4; @%p1 exit; ret; }",
                           "mov.u32 %r1, %tid.x; { .param .b32 p; st.param.b32 [p], %r1; call leave, (p); }");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(got[l], l < 4 ? 0xABABABABu : l);
}
