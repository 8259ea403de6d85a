//===- Opcodes.cpp - The table: a row is a pattern of spellings ------------===//
//
// To add an opcode, add a row (Form.h says what the columns mean) and, if it has exact results, a function in one of
// the Oracle*.cpp.  Braces list alternatives.  Every form must assemble for sm_90.
//
//===----------------------------------------------------------------------===//
#include "tests/parity/Opcodes.h"

namespace kiln::parity {

namespace {

#define INT "{.u16,.s16,.u32,.s32,.u64,.s64}"
#define BITS "{.b16,.b32,.b64}"
#define NARROW "{.u8,.s8,.u16,.s16,.u32,.s32,.u64,.s64}"
#define ROUND "{.rn,.rz,.rm,.rp}"
#define ROUNDI "{.rni,.rzi,.rmi,.rpi}"
#define FTZ "{,.ftz}"
#define SAT "{,.sat}"
#define ORDERED "{.eq,.ne,.lt,.le,.gt,.ge}"
#define COMPARE "{.eq,.ne,.lt,.le,.gt,.ge,.equ,.neu,.ltu,.leu,.gtu,.geu,.num,.nan}"

// Runs OP with the mask of the lanes whose predicate %b is set, in those lanes only.
#define PARTIAL(outputs, inputs)                                                                                       \
  "mov.b32 %d, 0;\n vote.sync.ballot.b32 %t0, %b, 0xffffffff;\n @%b OP " outputs ", " inputs                           \
  "%t0;\n bar.warp.sync 0xffffffff;"

// Matrix products with so many words of A, of B; four or two of C and D.
#define MMA_42(c)                                                                                                      \
  "b32 b32 b32 b32 b32 b32 " c " " c " " c " " c " -> " c " " c " " c " " c,                                           \
      "OP {%d, %e, %g, %h}, {%a, %b, %c, %f}, {%x4, %x5}, {%x6, %x7, %x8, %x9};", {}, 32
#define MMA_21(c)                                                                                                      \
  "b32 b32 b32 " c " " c " " c " " c " -> " c " " c " " c " " c,                                                       \
      "OP {%d, %e, %g, %h}, {%a, %b}, {%c}, {%f, %x4, %x5, %x6};", {}, 32
#define MMA_11(c) "b32 b32 " c " " c " -> " c " " c, "OP {%d, %e}, {%a}, {%b}, {%c, %f};", {}, 32
#define MMA_42_HALF                                                                                                    \
  "b32 b32 b32 b32 b32 b32 f16x2 f16x2 -> f16x2 f16x2", "OP {%d, %e}, {%a, %b, %c, %f}, {%x4, %x5}, {%x6, %x7};", {}, 32
#define MMA_21_HALF "b32 b32 b32 f16x2 f16x2 -> f16x2 f16x2", "OP {%d, %e}, {%a, %b}, {%c}, {%f, %x4};", {}, 32

constexpr Tolerance ulp(double n) {
  return {Bound::Ulp, n};
}
constexpr Tolerance relative(double exponent) {
  return {Bound::Relative, exponent};
}
constexpr Tolerance absolute(double exponent) {
  return {Bound::Absolute, exponent};
}

constexpr Row rows[] = {
    // Integer arithmetic.
    {"{add,sub}" INT, "T T -> T"},
    {"{add,sub}.sat.s32", "T T -> T"},
    {"add{.u16x2,.s16x2}", "T T -> T"},
    {"add.cc{.u32,.s32,.u64,.s64} +addc", "T T T T -> T T", "OP %d, %a, %b;\n addcTYPE %e, %c, %f;"},
    {"sub.cc{.u32,.s32,.u64,.s64} +subc", "T T T T -> T T", "OP %d, %a, %b;\n subcTYPE %e, %c, %f;"},
    {"addc.cc.u32 chain", "T T T T -> T T T", "add.cc.u32 %d, %a, %b;\n addc.cc.u32 %e, %c, %f;\n addc.u32 %g, 0, 0;"},
    {"subc.cc.u32 chain", "T T T T -> T T T", "sub.cc.u32 %d, %a, %b;\n subc.cc.u32 %e, %c, %f;\n subc.u32 %g, 0, 0;"},
    {"mad{.lo,.hi}.cc{.u32,.s32,.u64,.s64} +addc", "T T T -> T T", "OP %d, %a, %b, %c;\n addcTYPE %e, 0, 0;"},
    {"madc{.lo,.hi}.cc{.u32,.s32,.u64,.s64} chain", "T T T T -> T T",
     "add.ccTYPE %e, %f, %f;\n OP %d, %a, %b, %c;\n addcTYPE %e, 0, 0;"},
    {"mul{.lo,.hi}" INT, "T T -> T"},
    {"mul.wide{.u16,.s16,.u32,.s32}", "T T -> X"},
    {"mad{.lo,.hi}" INT, "T T T -> T"},
    {"mad.wide{.u16,.s16,.u32,.s32}", "T T X -> X"},
    {"mad.hi.sat.s32", "T T T -> T"},
    {"mul24{.lo,.hi}{.u32,.s32}", "T T -> T"},
    {"mad24{.lo,.hi}{.u32,.s32}", "T T T -> T"},
    {"mad24.hi.sat.s32", "T T T -> T"},
    {"{div,rem}" INT, "T T -> T"},
    {"{min,max}" INT, "T T -> T"},
    {"{min,max}{.s16x2,.relu.s16x2,.relu.s32}", "T T -> T"},
    {"{min,max}.u16x2", "T T -> T"},
    {"{abs,neg}{.s16,.s32,.s64}", "T -> T"},
    {"sad" INT, "T T T -> T"},
    {"dp4a{.u32,.s32}{.u32,.s32}", "b32 b32 b32 -> b32"},
    {"dp2a{.lo,.hi}{.u32,.s32}{.u32,.s32}", "b32 b32 b32 -> b32"},
    {"vabsdiff4.u32.u32.u32{,.add}", "b32 b32 b32 -> b32"},

    // Logic, shifts, bit fields.
    {"{and,or,xor}{.b16,.b32,.b64,.pred}", "T T -> T"},
    {"not{.b16,.b32,.b64,.pred}", "T -> T"},
    {"cnot" BITS, "T -> T"},
    {"shl" BITS, "T amount -> T"},
    {"shr{.b16,.b32,.b64,.u16,.s16,.u32,.s32,.u64,.s64}", "T amount -> T"},
    {"shf{.l,.r}{.clamp,.wrap}.b32", "T T amount -> T"},
    {"bfe{.u32,.s32,.u64,.s64}", "T position position -> T"},
    {"bfi{.b32,.b64}", "T T position position -> T"},
    {"bmsk{.clamp,.wrap}.b32", "position position -> T"},
    {"szext{.clamp,.wrap}{.u32,.s32}", "T position -> T"},
    {"prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}", "b32 b32 selector -> b32"},
    {"lop3.b32 "
     "{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,"
     "38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63}",
     "T T T -> T T T T",
     "OP %d, %a, %b, %c, LUT;\n OP %e, %a, %b, %c, LUT+64;\n OP %g, %a, %b, %c, LUT+128;\n OP %h, %a, %b, %c, "
     "LUT+192;"},
    {"lop3{.and,.or}.b32 {0x80,0xE8,0x96,0xCA}", "b32 b32 b32 pred -> b32 pred", "OP %d|%e, %a, %b, %c, LUT, %f;"},
    {"{popc,clz}{.b32,.b64}", "T -> u32"},
    {"bfind{,.shiftamt}{.u32,.s32,.u64,.s64}", "T -> u32"},
    {"brev{.b32,.b64}", "T -> T"},
    {"fns.b32", "T base offset -> T"},
    {"mov.b64 pack", "b32 b32 -> b64", "mov.b64 %d, {%a, %b};"},
    {"mov.b64 unpack", "b64 -> b32 b32", "mov.b64 {%d, %e}, %a;"},
    {"mov.b32 pack", "b16 b16 -> b32", "mov.b32 %d, {%a, %b};"},
    {"mov.b32 unpack", "b32 -> b16 b16", "mov.b32 {%d, %e}, %a;"},
    {"mov.b64 quarters", "b64 -> b16 b16 b16 b16", "mov.b64 {%d, %e, %g, %h}, %a;"},

    // Comparison and selection.
    {"setp" ORDERED INT, "T T -> pred pred"},
    {"setp{.eq,.ne}" BITS, "T T -> pred pred"},
    {"setp{.lo,.ls,.hi,.hs}{.u16,.u32,.u64}", "T T -> pred pred"},
    {"setp{.lt,.eq}{.and,.or,.xor}{.s32,.u64}", "T T pred -> pred pred"},
    {"setp.ge{.and,.or,.xor}.u32 negated", "T T pred -> pred pred", "OP %d|%e, %a, %b, !%c;"},
    {"set" ORDERED "{.u32,.s32,.f32}{.s32,.u32,.u64,.s16}", "T T -> S"},
    {"set.le{.and,.or,.xor}{.u32,.f32}.s32", "T T pred -> S"},
    {"selp{.b16,.b32,.b64,.u16,.s16,.u32,.s32,.u64,.s64,.f32,.f64}", "T T pred -> T"},
    {"slct{.b16,.b32,.b64,.u16,.s16,.u32,.s32,.u64,.s64,.f32,.f64}.s32", "S S T -> S"},
    {"slct" FTZ "{.b16,.b32,.b64,.u16,.s16,.u32,.s32,.u64,.s64,.f32,.f64}.f32", "S S T -> S"},
    {"setp" COMPARE FTZ ".f32", "T T -> pred pred"},
    {"setp" COMPARE ".f64", "T T -> pred pred"},
    {"setp" COMPARE FTZ ".f16", "T T -> pred"},
    {"setp" COMPARE ".bf16", "T T -> pred"},
    {"setp{.lt,.neu}{.and,.or,.xor}{.f32,.f64}", "T T pred -> pred pred"},
    {"setp{.lt,.neu}{.and,.or,.xor}.f16", "T T pred -> pred"},
    {"setp" COMPARE "{.f16x2,.bf16x2}", "T T -> pred pred"},
    {"set" COMPARE FTZ "{.u32,.s32,.f32}.f32", "T T -> S"},
    {"set" COMPARE "{.u32,.s32,.f32}.f64", "T T -> S"},
    {"set" COMPARE FTZ "{.f16,.u16,.s16,.u32,.s32}.f16", "T T -> S"},
    {"set" COMPARE FTZ "{.f16x2,.u32,.s32}.f16x2", "T T -> S"},
    {"set" COMPARE "{.bf16,.u16,.s16,.u32,.s32}.bf16", "T T -> S"},
    {"set" COMPARE "{.bf16x2,.u32,.s32}.bf16x2", "T T -> S"},

    // IEEE arithmetic.
    {"{add,sub,mul}" ROUND FTZ SAT ".f32", "T T -> T"},
    {"{fma,mad}" ROUND FTZ SAT ".f32", "T T T -> T"},
    {"{add,sub,mul,div}" ROUND ".f64", "T T -> T"},
    {"{fma,mad}" ROUND ".f64", "T T T -> T"},
    {"div" ROUND FTZ ".f32", "T T -> T"},
    {"{rcp,sqrt}" ROUND FTZ ".f32", "T -> T"},
    {"{rcp,sqrt}" ROUND ".f64", "T -> T"},
    {"{add,sub,mul}.rn" FTZ SAT "{.f16,.f16x2}", "T T -> T"},
    {"{add,sub,mul}.rn{.bf16,.bf16x2}", "T T -> T"},
    {"fma.rn" FTZ "{,.sat,.relu}{.f16,.f16x2}", "T T T -> T"},
    {"fma.rn{,.relu}{.bf16,.bf16x2}", "T T T -> T"},
    {"fma.rn.oob{,.relu}{.f16,.f16x2,.bf16,.bf16x2}", "T T T -> T"},
    {"{min,max}" FTZ "{,.NaN}{,.xorsign.abs}{.f32,.f16,.f16x2}", "T T -> T"},
    {"{min,max}{,.NaN}{,.xorsign.abs}{.bf16,.bf16x2}", "T T -> T"},
    {"{min,max}.f64", "T T -> T"},
    {"{abs,neg}" FTZ "{.f32,.f16,.f16x2}", "T -> T"},
    {"{abs,neg}{.f64,.bf16,.bf16x2}", "T -> T"},
    {"copysign{.f32,.f64}", "T T -> T"},
    {"testp{.finite,.infinite,.number,.notanumber,.normal,.subnormal}{.f32,.f64}", "T -> pred"},

    // Approximations.
    {"rcp.approx" FTZ ".f32", "T -> T", nullptr, ulp(1)},
    {"rsqrt.approx" FTZ ".f32", "T -> T", nullptr, relative(-22.9)},
    {"sqrt.approx" FTZ ".f32", "T -> T", nullptr, relative(-23)},
    {"ex2.approx" FTZ ".f32", "T -> T", nullptr, relative(-22)},
    {"lg2.approx" FTZ ".f32", "T -> T", nullptr, {Bound::Log2, -22}},
    {"{sin,cos}.approx" FTZ ".f32", "angle -> T", nullptr, {Bound::SinCos, 0}},
    {"tanh.approx.f32", "T -> T", nullptr, relative(-11)},
    {"div.approx" FTZ ".f32", "T T -> T", nullptr, ulp(2)},
    {"div.full" FTZ ".f32", "T T -> T", nullptr, ulp(2)},
    {"{rcp,rsqrt}.approx.ftz.f64", "T -> T", nullptr, relative(-20)},
    {"tanh.approx{.f16,.f16x2}", "T -> T", nullptr, absolute(-10.987)},
    {"tanh.approx{.bf16,.bf16x2}", "T -> T", nullptr, relative(-8)},
    {"ex2.approx{.f16,.f16x2}", "T -> T", nullptr, relative(-9.9)},
    {"ex2.approx.ftz{.bf16,.bf16x2}", "T -> T", nullptr, relative(-7)},

    // Conversions.
    {"cvt" NARROW NARROW, "T -> D"},
    {"cvt.sat.u8{.s8,.u16,.s16,.u32,.s32,.u64,.s64}", "T -> D"},
    {"cvt.sat.s8{.u8,.u16,.s16,.u32,.s32,.u64,.s64}", "T -> D"},
    {"cvt.sat{.u16.s8,.u16.u32,.u16.s32,.u16.u64,.u16.s64,.s16.u32,.s16.s32,.s16.u64,.s16.s64}", "T -> D"},
    {"cvt.sat{.u16.s16,.s16.u16,.u32.s8,.u32.s16,.u32.s32,.s32.u32,.u64.s8,.u64.s16,.u64.s32,.u64.s64,.s64.u64}",
     "T -> D"},
    {"cvt.sat{.u32,.s32}{.u64,.s64}", "T -> D"},
    {"cvt" ROUNDI FTZ SAT NARROW ".f32", "T -> D"},
    {"cvt" ROUNDI SAT NARROW "{.f64,.f16}", "T -> D"},
    {"cvt" ROUNDI "{.u32,.s32,.u64,.s64}.bf16", "T -> D"},
    {"cvt" ROUND SAT "{.f16,.f32,.f64}" NARROW, "T -> S"},
    {"cvt" ROUND ".bf16" INT, "T -> S"},
    {"cvt" ROUND FTZ SAT ".f32.f64", "T -> S"},
    {"cvt" FTZ SAT ".f64.f32", "T -> S"},
    {"cvt{.rn,.rz,.rm,.rp}" FTZ SAT ".f16.f32", "T -> S"},
    {"cvt{.rn,.rz,.rm,.rp}" SAT ".f16.f64", "T -> S"},
    {"cvt" FTZ SAT ".f32.f16", "T -> S"},
    {"cvt" SAT ".f64.f16", "T -> S"},
    {"cvt" FTZ ".f32.bf16", "T -> S"},
    {"cvt.f64.bf16", "T -> S"},
    {"cvt.rn{.satfinite,.satfinite.relu,.relu}{.f16,.bf16}.f32", "T -> S"},
    {"cvt.rz{.bf16,.satfinite.bf16,.satfinite.relu.bf16,.relu.bf16,.satfinite.f16,.satfinite.relu.f16,.relu.f16}.f32",
     "T -> S"},
    {"cvt{.rn,.rm,.rp}.bf16.f32", "T -> S"},
    {"cvt" ROUND ".bf16.f64", "T -> S"},
    {"cvt" ROUND "{.bf16.f16,.f16.bf16}", "T -> S"},
    {"cvt{.rn,.rz}{,.relu,.satfinite,.satfinite.relu}{.f16x2,.bf16x2}.f32", "T T -> S"},
    {"cvt" ROUNDI FTZ SAT ".f32.f32", "T -> S"},
    {"cvt" ROUNDI SAT ".f64.f64", "T -> S"},
    {"cvt" ROUNDI SAT ".f16.f16", "T -> S"},
    {"cvt" ROUNDI ".bf16.bf16", "T -> S"},
    {"cvt.rna{,.satfinite}.tf32.f32", "T -> S"},
    {"cvt{.rn,.rz}{,.relu}.tf32.f32", "T -> S"},
    {"cvt.rn.satfinite{,.relu}{.e4m3x2,.e5m2x2}.f32", "T T -> S"},
    {"cvt.rn.satfinite{,.relu}{.e4m3x2,.e5m2x2}.f16x2", "T -> S"},
    {"cvt.rn{,.relu}.f16x2{.e4m3x2,.e5m2x2}", "T -> S"},
    {"cvt.pack.sat{.u16,.s16}.s32", "T T -> b32"},
    {"cvt.pack.sat{.u8,.s8}.s32.b32", "s32 s32 b32 -> b32"},

    // Warp and block.
    {"shfl.sync{.up,.down,.bfly,.idx}.b32",
     "b32 lane segment -> b32 pred",
     "OP %d|%e, %a, %b, %c, 0xffffffff;",
     {},
     32},
    {"vote.sync{.all,.any,.uni}.pred", "pred -> pred", "OP %d, %a, 0xffffffff;", {}, 32},
    {"vote.sync{.all,.any,.uni}.pred negated", "pred -> pred", "OP %d, !%a, 0xffffffff;", {}, 32},
    {"vote.sync.ballot.b32", "pred -> b32", "OP %d, %a, 0xffffffff;", {}, 32},
    {"vote.sync.ballot.b32 partial", "pred pred -> b32", PARTIAL("%d", "%a, "), {}, 32},
    {"match.any.sync.b32", "few -> b32", "OP %d, %a, 0xffffffff;", {}, 32},
    {"match.any.sync.b64", "b64 few -> b32", "shl.b64 %a, %a, %b;\n OP %d, %a, 0xffffffff;", {}, 32},
    {"match.any.sync.b32 partial", "few pred -> b32", PARTIAL("%d", "%a, "), {}, 32},
    {"match.all.sync.b32", "few -> b32 pred", "OP %d|%e, %a, 0xffffffff;", {}, 32},
    {"match.all.sync.b64", "few -> b32 pred", "cvt.u64.u32 %l0, %a;\n OP %d|%e, %l0, 0xffffffff;", {}, 32},
    {"redux.sync{.add,.min,.max}{.u32,.s32}", "T -> T", "OP %d, %a, 0xffffffff;", {}, 32},
    {"redux.sync{.and,.or,.xor}.b32", "T -> T", "OP %d, %a, 0xffffffff;", {}, 32},
    {"redux.sync{.add,.min,.max}{.u32,.s32} partial", "T pred -> T", PARTIAL("%d", "%a, "), {}, 32},
    {"redux.sync{.and,.or,.xor}.b32 partial", "T pred -> T", PARTIAL("%d", "%a, "), {}, 32},
    {"elect.sync", "pred -> b32 pred", "OP %d|%e, 0xffffffff;", {}, 32},
    {"elect.sync partial",
     "pred pred -> b32 pred",
     "mov.b32 %d, 0;\n setp.ne.b32 %e, 0, 0;\n vote.sync.ballot.b32 %t0, %b, 0xffffffff;\n @%b OP %d|%e, %t0;\n "
     "bar.warp.sync 0xffffffff;",
     {},
     32},
    {"activemask.b32 converged",
     "pred -> b32",
     "mov.b32 %t0, 1;\n @%a bra TAKEN;\n mov.b32 %t0, 2;\nTAKEN:\n bar.warp.sync 0xffffffff;\n activemask.b32 %d;",
     {},
     32},
    {"bar.red.popc.u32", "pred -> u32", "OP %d, 0, %a;", {}, 128},
    {"bar.red.popc.u32 counted", "pred -> u32", "OP %d, 3, 128, !%a;", {}, 128},
    {"bar.red{.and,.or}.pred", "pred -> pred", "OP %d, 0, %a;", {}, 128},
    {"barrier.red.popc.u32", "pred -> u32", "OP %d, 1, 128, %a;", {}, 128},
    {"barrier.red{.and,.or}.pred", "pred -> pred", "OP %d, 2, 128, !%a;", {}, 128},

    // Matrix products: the words of A, B and C of a warp.
    {"movmatrix.sync.aligned.m8n8.trans.b16", "b32 -> b32", nullptr, {}, 32},
    {"mma.sync.aligned.m16n8k16.row.col{.f32.f16.f16.f32,.f32.bf16.bf16.f32}", MMA_42("f32")},
    {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", MMA_42_HALF},
    {"mma.sync.aligned.m16n8k8.row.col{.f32.f16.f16.f32,.f32.bf16.bf16.f32}", MMA_21("f32")},
    {"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", MMA_21_HALF},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", MMA_42("f32")},
    {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", MMA_21("f32")},
    {"mma.sync.aligned.m16n8k32.row.col.f32{.e4m3,.e5m2}{.e4m3,.e5m2}.f32", MMA_42("f32")},
    {"mma.sync.aligned.m16n8k32.row.col.f16{.e4m3,.e5m2}{.e4m3,.e5m2}.f16", MMA_42_HALF},
    {"mma.sync.aligned.m16n8k16.row.col.f32{.e4m3,.e5m2}{.e4m3,.e5m2}.f32", MMA_21("f32")},
    {"mma.sync.aligned.m16n8k16.row.col.f16{.e4m3,.e5m2}{.e4m3,.e5m2}.f16", MMA_21_HALF},
    {"mma.sync.aligned.m16n8k32.row.col{,.satfinite}.s32{.s8,.u8}{.s8,.u8}.s32", MMA_42("s32")},
    {"mma.sync.aligned.m16n8k16.row.col{,.satfinite}.s32{.s8,.u8}{.s8,.u8}.s32", MMA_21("s32")},
    {"mma.sync.aligned.m8n8k16.row.col{,.satfinite}.s32{.s8,.u8}{.s8,.u8}.s32", MMA_11("s32")},
    {"mma.sync.aligned.m16n8k64.row.col{,.satfinite}.s32{.s4,.u4}{.s4,.u4}.s32", MMA_42("s32")},
    {"mma.sync.aligned.m16n8k32.row.col{,.satfinite}.s32{.s4,.u4}{.s4,.u4}.s32", MMA_21("s32")},
    {"mma.sync.aligned.m8n8k32.row.col{,.satfinite}.s32{.s4,.u4}{.s4,.u4}.s32", MMA_11("s32")},
    {"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32{.and,.xor}.popc", MMA_42("s32")},
    {"mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32{.and,.xor}.popc", MMA_21("s32")},
    {"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32{.and,.xor}.popc", MMA_11("s32")},
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
     "f64 f64 f64 f64 -> f64 f64",
     "OP {%d, %e}, {%a}, {%b}, {%c, %f};",
     {},
     32},
    {"mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64",
     "f64 f64 f64 f64 f64 f64 f64 -> f64 f64 f64 f64",
     "OP {%d, %e, %g, %h}, {%a, %b}, {%c}, {%f, %x4, %x5, %x6};",
     {},
     32},
    {"mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64",
     "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 -> f64 f64 f64 f64",
     "OP {%d, %e, %g, %h}, {%a, %b, %c, %f}, {%x4, %x5}, {%x6, %x7, %x8, %x9};",
     {},
     32},
    {"mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
     "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 -> f64 f64 f64 f64",
     "OP {%d, %e, %g, %h}, {%a, %b, %c, %f, %x4, %x5, %x6, %x7}, {%x8, %x9, %x10, %x11}, {%x12, %x13, %x14, %x15};",
     {},
     32},

    // Atomics: the first output is the old value, the last the cell afterwards.  With several threads a cell only the
    // final value is compared; floats then use a sum that is exact in any order.
    {"atom{.global,.shared}.add{.u32,.s32,.u64,.f32,.f64}", "T T -> T T", "OP %d, [%m], %b;", {}, 1, 1},
    {"atom{.global,.shared}.add.noftz{.f16,.f16x2,.bf16,.bf16x2}", "T T -> T T", "OP %d, [%m], %b;", {}, 1, 1},
    {"atom{.global,.shared}{.min,.max}{.u32,.s32,.u64,.s64}", "T T -> T T", "OP %d, [%m], %b;", {}, 1, 1},
    {"atom{.global,.shared}{.and,.or,.xor,.exch}{.b32,.b64}", "T T -> T T", "OP %d, [%m], %b;", {}, 1, 1},
    {"atom{.global,.shared}{.inc,.dec}.u32", "T T -> T T", "OP %d, [%m], %b;", {}, 1, 1},
    {"atom{.global,.shared}.cas{.b16,.b32,.b64}", "T T T -> T T", "OP %d, [%m], %b, %c;", {}, 1, 1},
    {"red{.global,.shared}.add{.u32,.s32,.u64,.f32,.f64}", "T T -> T", "OP [%m], %b;", {}, 1, 1},
    {"red{.global,.shared}.add.noftz{.f16,.f16x2,.bf16,.bf16x2}", "T T -> T", "OP [%m], %b;", {}, 1, 1},
    {"red{.global,.shared}{.min,.max}{.u32,.s32,.u64,.s64}", "T T -> T", "OP [%m], %b;", {}, 1, 1},
    {"red{.global,.shared}{.and,.or,.xor}{.b32,.b64}", "T T -> T", "OP [%m], %b;", {}, 1, 1},
    {"red{.global,.shared}{.inc,.dec}.u32", "T T -> T", "OP [%m], %b;", {}, 1, 1},
    {"red{.global,.shared}.add{.u32,.s32,.u64} contended", "T T -> T", "OP [%m], %b;", {}, 32, 8},
    {"red{.global,.shared}{.min,.max}{.u32,.s32,.u64,.s64} contended", "T T -> T", "OP [%m], %b;", {}, 32, 8},
    {"red{.global,.shared}{.and,.or,.xor}{.b32,.b64} contended", "T T -> T", "OP [%m], %b;", {}, 32, 8},
    {"atom{.global,.shared}.add.u32 contended", "T T -> T", "OP %t0, [%m], %b;", {}, 32, 8},
};

} // namespace

std::span<const Row> opcodeTable() {
  return rows;
}

} // namespace kiln::parity
