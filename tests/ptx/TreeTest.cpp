// What the parser's nodes hold.
#include "Constructs.h"
#include "PtxTesting.h"

#include "runtime/ptx/Printer.h"

#include <algorithm>
#include <bit>
#include <gtest/gtest.h>

namespace kiln::ptx::test {
namespace {

std::unique_ptr<Module> body(std::string_view text) {
  return accepted(moduleWith("", text));
}

/// The instructions of `text` as they print.
std::vector<std::string> printed(std::string_view text) {
  std::vector<std::string> out;
  if (auto m = body(text)) {
    for (const Instruction *i : instructions(m->functions[0]))
      out.push_back(print(*i));
    out.pop_back(); // the ret of moduleWith
  }
  return out;
}

TEST(Types, Table) {
  EXPECT_EQ(typeFromName("f32"), Type::F32);
  EXPECT_EQ(typeFromName("bf16x2"), Type::BF16x2);
  EXPECT_EQ(typeFromName("none"), Type::None);
  EXPECT_EQ(typeFromName(""), Type::None);
  EXPECT_EQ(typeFromName("F32"), Type::None);
  EXPECT_EQ(typeName(Type::E4M3x2), "e4m3x2");
  EXPECT_EQ(typeBytes(Type::Pred), 1u);
  EXPECT_EQ(typeBytes(Type::B128), 16u);
  EXPECT_EQ(typeKind(Type::S16), TypeKind::Signed);
  EXPECT_EQ(typeKind(Type::F16x2), TypeKind::Packed);
  EXPECT_EQ(spaceName(Space::Reg), "reg");
  EXPECT_EQ(spaceName(Space::Shared), "shared");
  EXPECT_EQ(spaceName(Space::Generic), "generic");
}

// The values that ptxas 13.0 gave for `.global .u64 a[] = {EXPRESSION};`, read back from the object file.
TEST(Constants, IntegersAsInPtxas) {
  const struct {
    const char *text;
    std::uint64_t value;
  } rows[] = {
      {"1+2*3", 7},
      {"-1", ~0ull},
      {"18446744073709551615", ~0ull},
      {"7-3-2", 2},
      {"-7/2", static_cast<std::uint64_t>(-3)},
      {"1<<3+1", 16},
      {"-8>>1", static_cast<std::uint64_t>(-4)},
      {"0xFFFFFFFFFFFFFFFF>>1", 0x7fffffffffffffff},
      {"(.u64)-8>>1", 0x7ffffffffffffffc},
      {"0U-8>>1", 0x7ffffffffffffffc},
      {"5>3", 1},
      {"-1 < 1U", 0},
      {"-1 < 0xFFFFFFFFFFFFFFFF", 0},
      {"~5", static_cast<std::uint64_t>(-6)},
      {"!5", 0},
      {"!0", 1},
      {"5&6|8^3", 15},
      {"1?2:3", 2},
      {"0?2:1?4:5", 4},
      {"5==5", 1},
      {"5!=5", 0},
      {"1&&0||1", 1},
      {"0xFFFFFFFF+1", 0x100000000},
      {"1<<64", 1},
      {"1<<65", 2},
      {"1<<-1", 0x8000000000000000},
      {"-1>>70", ~0ull},
      {"0b1010", 10},
      {"0777", 511},
      {"0U", 0},
      {"100U", 100},
      {"9223372036854775807+1", 0x8000000000000000},
      {"9223372036854775808/2", 0x4000000000000000},
      {"-9223372036854775808/2", 0x4000000000000000},
      {"-9223372036854775807/2", 0xc000000000000001},
      {"-6/4U", 0x3ffffffffffffffe},
      {"2 <= 1U", 0},
      {"-1 >> 1U", ~0ull},
      {"0x10U>>2", 4},
      {"-1*2U/2", 0x7fffffffffffffff},
      {"3 > 2 > 1", 0},
      {"1 ? -1 : 1U", ~0ull},
      {"(.s64)0xFFFFFFFFFFFFFFFF/2", 0},
      {"0xFFFFFFFFFFFFFFFE/2", 0x7fffffffffffffff},
      {"1.0<2.0", 1},
      {"2.5>1.5", 1},
      {"1.0==1.0", 1},
  };
  for (const auto &row : rows) {
    auto m = accepted(moduleWith(std::string(".global .u64 a[] = {") + row.text + "};",
                                 std::string("mov.b64 %rd1, ") + row.text + ";"));
    ASSERT_TRUE(m) << row.text;
    ASSERT_EQ(m->variables[0].init.size(), 1u);
    EXPECT_EQ(m->variables[0].init[0].bits, row.value) << row.text;
    const Operand &o = instructions(m->functions[0])[0]->operands[1];
    EXPECT_EQ(o.kind, Operand::Kind::Integer) << row.text;
    EXPECT_EQ(o.bits, row.value) << row.text;
  }
}

TEST(Constants, Floats) {
  const struct {
    const char *text;
    unsigned floatBits;
    std::uint64_t bits;
  } rows[] = {
      {"0f3F800000", 32, 0x3f800000},
      {"0FfFc00001", 32, 0xffc00001},
      {"0d3FF0000000000000", 64, 0x3ff0000000000000},
      {"-0D3FF0000000000000", 64, 0xbff0000000000000},
      {"1.5", 64, std::bit_cast<std::uint64_t>(1.5)},
      {"-0.1", 64, std::bit_cast<std::uint64_t>(-0.1)},
      {".5e-3", 64, std::bit_cast<std::uint64_t>(.5e-3)},
      {"1.", 64, std::bit_cast<std::uint64_t>(1.0)},
      {"1E+5", 64, std::bit_cast<std::uint64_t>(1e5)},
      {"2.0*3.0-1.0/4.0", 64, std::bit_cast<std::uint64_t>(5.75)},
      {"1 ? 1.5 : 2.5", 64, std::bit_cast<std::uint64_t>(1.5)},
  };
  for (const auto &row : rows) {
    auto m = body(std::string("mov.f64 %fd1, ") + row.text + ";");
    ASSERT_TRUE(m) << row.text;
    const Operand &o = instructions(m->functions[0])[0]->operands[1];
    EXPECT_EQ(o.kind, Operand::Kind::Float) << row.text;
    EXPECT_EQ(o.floatBits, row.floatBits) << row.text;
    EXPECT_EQ(o.bits, row.bits) << row.text;
  }
}

TEST(Variables, Qualifiers) {
  auto m = accepted(moduleWith(".visible .global .align 16 .b8 a[100]; .extern .shared .align 1024 .b8 s[];\n"
                               ".weak .const .v2 .f32 c[3]; .common .global .u32 d, e[2][3];\n"
                               ".global .attribute(.managed) .b64 f;",
                               ".reg .pred p, q<3>; .reg .v4 .b32 v; .local .align 8 .b8 depot[16];"));
  ASSERT_TRUE(m);
  const auto &v = m->variables;
  ASSERT_EQ(v.size(), 6u);
  EXPECT_TRUE(v[0].visible && !v[0].external && v[0].isArray);
  EXPECT_EQ(v[0].align, 16u);
  EXPECT_EQ(v[0].space, Space::Global);
  EXPECT_EQ(v[0].extents, std::vector<std::uint64_t>{100});
  EXPECT_TRUE(v[1].external);
  EXPECT_EQ(v[1].space, Space::Shared);
  EXPECT_EQ(v[1].extents, std::vector<std::uint64_t>{0});
  EXPECT_TRUE(v[2].weak);
  EXPECT_EQ(v[2].vector, 2);
  EXPECT_EQ(v[2].type, Type::F32);
  EXPECT_TRUE(v[3].common && v[4].common && !v[3].isArray);
  EXPECT_EQ(v[4].extents, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(v[4].line, 5u);
  EXPECT_TRUE(v[5].managed);

  std::vector<const Variable *> local;
  for (const Statement &s : m->functions[0].body.statements)
    if (const auto *x = std::get_if<Variable>(&s.node))
      local.push_back(x);
  ASSERT_EQ(local.size(), 9u); // 5 of moduleWith
  EXPECT_EQ(local[0]->name, "%r");
  EXPECT_EQ(local[0]->rangeCount, 10u);
  EXPECT_EQ(local[5]->type, Type::Pred);
  EXPECT_EQ(local[5]->rangeCount, 0u);
  EXPECT_EQ(local[6]->name, "q");
  EXPECT_EQ(local[6]->rangeCount, 3u);
  EXPECT_EQ(local[7]->vector, 4);
  EXPECT_EQ(local[8]->space, Space::Local);
  EXPECT_EQ(local[8]->align, 8u);
}

TEST(Variables, Initialisers) {
  using Init = Variable::Init;
  auto m = accepted(moduleWith(".global .b32 a[][2][3] = {{{1, 2}, {3}}, {{-1}}};\n"
                               ".global .v2 .f32 b[2] = {{1.5}, {0f3F800000, 2.0}};\n"
                               ".global .u64 p[4] = {a, a+8, generic(a)+16, generic(a+24)};\n"
                               ".global .u8 q[3] = {0xFF(a), 0xFF00(a+4), 0xFF000000(generic(b)+4)};\n"
                               ".global .f64 z = 2.5;",
                               ""));
  ASSERT_TRUE(m);
  const auto &v = m->variables;
  auto bits = [](const Variable &x) {
    std::vector<std::uint64_t> out;
    for (const Init &i : x.init)
      out.push_back(i.bits);
    return out;
  };
  EXPECT_EQ(v[0].extents, (std::vector<std::uint64_t>{2, 2, 3}));
  // Rows are completed with zeros; the last one need not be.
  EXPECT_EQ(bits(v[0]), (std::vector<std::uint64_t>{1, 2, 0, 3, 0, 0, ~0ull}));
  EXPECT_EQ(v[1].init.size(), 4u);
  EXPECT_EQ(v[1].init[1].kind, Init::Kind::Float); // the zero that completes {1.5}
  EXPECT_EQ(v[1].init[1].bits, 0u);
  EXPECT_EQ(v[1].init[2].floatBits, 32);
  EXPECT_EQ(v[1].init[3].floatBits, 64);
  EXPECT_EQ(bits(v[2]), (std::vector<std::uint64_t>{0, 8, 16, 24}));
  EXPECT_FALSE(v[2].init[1].generic);
  EXPECT_TRUE(v[2].init[2].generic);
  EXPECT_EQ(v[2].init[3].symbol, "a");
  EXPECT_EQ(v[2].init[3].byteMask, 0u);
  EXPECT_EQ(v[3].init[0].byteMask, 0xffu);
  EXPECT_EQ(v[3].init[1].byteMask, 0xff00u);
  EXPECT_EQ(v[3].init[1].bits, 4u);
  EXPECT_EQ(v[3].init[2].symbol, "b");
  EXPECT_TRUE(v[3].init[2].generic);
  EXPECT_EQ(v[4].init[0].kind, Init::Kind::Float);
}

TEST(Functions, Headers) {
  auto m = accepted(".version 9.0 .target sm_90a\n"
                    ".extern .func (.param .b32 r) callee(.param .align 8 .b8 z[16], .param .b64 p);\n"
                    ".weak .func stop() .noreturn;\n"
                    ".visible .entry k(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr b,\n"
                    "  .param .align 64 .b8 map[128])\n"
                    ".reqntid 32, 2 .maxntid 64 .minnctapersm 2 .maxnreg 40 .explicitcluster\n"
                    ".reqnctapercluster 2, 1, 1 { ret; }\n"
                    ".entry j .maxclusterrank 8 .blocksareclusters { ret; }\n"
                    ".alias again, stop;\n.file 3 \"a b.cu\", 1, 2");
  ASSERT_TRUE(m);
  const auto &f = m->functions;
  ASSERT_EQ(f.size(), 4u);
  EXPECT_TRUE(f[0].external && !f[0].hasBody && !f[0].isEntry);
  EXPECT_EQ(f[0].returns.size(), 1u);
  EXPECT_EQ(f[0].parameters[0].extents[0], 16u);
  EXPECT_EQ(f[0].parameters[0].align, 8u);
  EXPECT_TRUE(f[1].weak && f[1].noreturn);
  EXPECT_TRUE(f[2].visible && f[2].isEntry && f[2].hasBody && f[2].explicitCluster);
  EXPECT_EQ(f[2].line, 4u);
  EXPECT_TRUE(f[2].parameters[0].isPointer && f[2].parameters[1].isPointer && !f[2].parameters[2].isPointer);
  EXPECT_EQ(f[2].parameters[0].pointerSpace, Space::Global);
  EXPECT_EQ(f[2].parameters[0].pointerAlign, 16u);
  EXPECT_EQ(f[2].parameters[0].align, 0u); // of what it points at, not of the parameter
  EXPECT_EQ(f[2].parameters[1].pointerSpace, Space::Generic);
  EXPECT_EQ(f[2].parameters[2].align, 64u);
  EXPECT_EQ(std::to_array(f[2].reqntid), (std::array<std::uint32_t, 3>{32, 2, 1}));
  EXPECT_EQ(std::to_array(f[2].maxntid), (std::array<std::uint32_t, 3>{64, 1, 1}));
  EXPECT_EQ(std::to_array(f[2].reqnctapercluster), (std::array<std::uint32_t, 3>{2, 1, 1}));
  EXPECT_EQ(f[2].minnctapersm, 2u);
  EXPECT_EQ(f[2].maxnreg, 40u);
  EXPECT_EQ(f[3].maxclusterrank, 8u);
  EXPECT_TRUE(f[3].blocksAreClusters);
  EXPECT_EQ(f[3].reqntid[0], 0u);
  ASSERT_EQ(m->aliases.size(), 1u);
  EXPECT_EQ(m->aliases[0].second, "stop");
  EXPECT_EQ(m->filePath(3), "a b.cu");
  EXPECT_EQ(m->filePath(1), "");
}

TEST(Statements, LocationsAndMasks) {
  auto m = body("add.u32 %r1, %r1, 1;\n.loc 1 10 5\n.loc 2 20 6, function_name $L_name+4, inlined_at 1 3 4\n"
                "add.u32 %r1, %r1, 2;\n{ .loc 1 11 1\nadd.u32 %r1, %r1, 3; }\nadd.u32 %r1, %r1, 4;\n"
                ".pragma \"used_bytes_mask 0xF0F\"; .reg .b32 other;\nld.shared.b32 %r1, [%r2];\n"
                ".pragma \"nounroll\", \"used_bytes_mask 7\"; ld.shared.b32 %r1, [%r2]; ld.shared.b32 %r1, [%r2];");
  ASSERT_TRUE(m);
  const Function &f = m->functions[0];
  ASSERT_EQ(f.locations.size(), 3u);
  EXPECT_EQ(f.locations[1].file, 2u);
  EXPECT_EQ(f.locations[1].line, 20u);
  EXPECT_EQ(f.locations[1].column, 6u);
  const auto i = instructions(f);
  ASSERT_EQ(i.size(), 8u);
  EXPECT_EQ(i[0]->location, -1);
  EXPECT_EQ(i[1]->location, 1);
  EXPECT_EQ(i[2]->location, 2);
  EXPECT_EQ(i[3]->location, 2);
  EXPECT_EQ(i[0]->line, 7u);
  EXPECT_EQ(i[1]->line, 10u);
  EXPECT_EQ(i[3]->usedBytesMask, std::nullopt);
  EXPECT_EQ(i[4]->usedBytesMask, 0xf0fu);
  EXPECT_EQ(i[5]->usedBytesMask, 7u);
  EXPECT_EQ(i[6]->usedBytesMask, std::nullopt);
}

TEST(Statements, ScopesLabelsAndTargets) {
  auto m = body("L1: L2:\n{ .reg .b32 %r1; { } }\nT: .branchtargets L1, L2;\nC: .calltargets f, g;\n"
                "P: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 4 .b8 _[12]) .noreturn;");
  ASSERT_TRUE(m);
  const auto &s = m->functions[0].body.statements;
  ASSERT_EQ(s.size(), 5u + 6u + 1u);
  EXPECT_EQ(std::get<Label>(s[5].node).name, "L1");
  EXPECT_EQ(std::get<Label>(s[6].node).line, 7u);
  const Scope &outer = *std::get<std::unique_ptr<Scope>>(s[7].node);
  ASSERT_EQ(outer.statements.size(), 2u);
  EXPECT_TRUE(std::get<std::unique_ptr<Scope>>(outer.statements[1].node)->statements.empty());
  const auto &t = std::get<TargetList>(s[8].node), &c = std::get<TargetList>(s[9].node),
             &p = std::get<TargetList>(s[10].node);
  EXPECT_EQ(t.kind, TargetList::Kind::Branch);
  EXPECT_EQ(t.label, "T");
  EXPECT_EQ(t.names, (std::vector<std::string_view>{"L1", "L2"}));
  EXPECT_EQ(t.line, 9u);
  EXPECT_EQ(c.kind, TargetList::Kind::Call);
  EXPECT_EQ(p.kind, TargetList::Kind::Prototype);
  EXPECT_EQ(p.returns.size(), 1u);
  EXPECT_EQ(p.parameters[1].extents[0], 12u);
  EXPECT_EQ(p.parameters[1].name, "_");
}

TEST(Operands, Kinds) {
  auto m = accepted(moduleOfCalls("@!%p1 call.uni (%r1, _), h, (%r2, 5, 1.5), P;\n"
                                  "shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;\nelect.sync _|%p2, -1;\n"
                                  "ld.global.v4.b32 { %r1, _, %r2, %r3 }, [ %rd1 + -8 ];\nst.shared.b32 [16], {%r1};\n"
                                  "cp.async.bulk.tensor [%r1], [%rd1, {%r2, 7}], [%r3+8], %rd2;\n"
                                  "setp.ne.and.b32 %p1|_, %r1, 0, !%p2;\nmov.b32 %r1, %tid.x;\nmov.b32 %r1, s+12;\n"
                                  "vadd4.u32 %r1, -%r2.b3210, WARP_SZ;\ntex.2d [t, s, {%f1, %f2}];\nret;"));
  ASSERT_TRUE(m);
  using K = Operand::Kind;
  const auto i = instructions(m->functions.back());
  auto kinds = [](const std::vector<Operand> &list) {
    std::vector<K> out;
    for (const Operand &o : list)
      out.push_back(o.kind);
    return out;
  };
  EXPECT_EQ(i[0]->guard, "%p1");
  EXPECT_TRUE(i[0]->guardNegated);
  EXPECT_EQ(i[0]->opcode, "call.uni");
  EXPECT_EQ(kinds(i[0]->operands), (std::vector<K>{K::List, K::Register, K::List, K::Register}));
  EXPECT_EQ(kinds(i[0]->operands[0].elements), (std::vector<K>{K::Register, K::Sink}));
  EXPECT_EQ(kinds(i[0]->operands[2].elements), (std::vector<K>{K::Register, K::Integer, K::Float}));
  EXPECT_EQ(i[1]->operands[0].text, "%r1");
  ASSERT_TRUE(i[1]->operands[0].second);
  EXPECT_EQ(i[1]->operands[0].second->text, "%p1");
  EXPECT_EQ(i[1]->operands[4].bits, ~0ull);
  EXPECT_EQ(i[2]->operands[0].kind, K::Sink);
  EXPECT_EQ(i[2]->operands[0].second->text, "%p2");
  EXPECT_EQ(kinds(i[3]->operands), (std::vector<K>{K::Vector, K::Address}));
  EXPECT_EQ(kinds(i[3]->operands[0].elements), (std::vector<K>{K::Register, K::Sink, K::Register, K::Register}));
  EXPECT_EQ(i[3]->operands[1].text, "%rd1");
  EXPECT_EQ(i[3]->operands[1].bits, static_cast<std::uint64_t>(-8));
  EXPECT_EQ(i[4]->operands[0].text, "");
  EXPECT_EQ(i[4]->operands[0].bits, 16u);
  EXPECT_EQ(i[4]->operands[1].elements.size(), 1u);
  EXPECT_EQ(i[5]->operands[1].text, "%rd1");
  ASSERT_EQ(kinds(i[5]->operands[1].elements), std::vector<K>{K::Vector});
  EXPECT_EQ(kinds(i[5]->operands[1].elements[0].elements), (std::vector<K>{K::Register, K::Integer}));
  EXPECT_EQ(i[5]->operands[2].bits, 8u);
  EXPECT_EQ(i[6]->operands[0].second->kind, K::Sink);
  EXPECT_TRUE(i[6]->operands[3].negated);
  EXPECT_EQ(i[6]->operands[3].text, "%p2");
  EXPECT_EQ(i[7]->operands[1].text, "%tid.x");
  EXPECT_EQ(i[8]->operands[1].text, "s");
  EXPECT_EQ(i[8]->operands[1].bits, 12u);
  EXPECT_TRUE(i[9]->operands[1].negated);
  EXPECT_EQ(i[9]->operands[1].text, "%r2.b3210");
  EXPECT_EQ(i[9]->operands[2].kind, K::Integer);
  EXPECT_EQ(i[9]->operands[2].bits, 32u);
  EXPECT_EQ(i[10]->operands[0].elements.size(), 2u);
}

TEST(Operands, SpacedModifiersAreJoinedInPlace) {
  const std::string text =
      moduleWith("", "ld .shared\n\t.v2 /* why */ .b32 {%r1, %r2}, [%r3];\nmov.u32 %r1, %tid\n .x;\n"
                     "add.u32 %r1, %r1, 1;");
  auto m = accepted(text);
  ASSERT_TRUE(m);
  const auto i = instructions(m->functions[0]);
  EXPECT_EQ(i[0]->opcode, "ld.shared.v2.b32");
  EXPECT_EQ(i[0]->line, 7u);
  EXPECT_EQ(i[0]->operands[1].text, "%r3");
  EXPECT_EQ(i[1]->operands[1].text, "%tid.x");
  EXPECT_EQ(i[2]->line, 11u);
  EXPECT_EQ(m->text.size(), text.size());
  EXPECT_EQ(std::ranges::count(m->text, '\n'), std::ranges::count(text, '\n'));
  EXPECT_EQ(m->text.find("add.u32 %r1, %r1, 1;"), text.find("add.u32 %r1, %r1, 1;"));
}

TEST(Printing, Instructions) {
  EXPECT_EQ(printed("@!%p1 setp.lt.f32 %p1|_, %f1, 0f3F800000; ld.shared.v2.b32 {%r1,_}, [%r2+ -4];"
                    "mov.f64 %fd1, -1.0; mov.b64 %rd1, 18446744073709551615; bar.sync 0; exit; call (_), f, (1);"),
            (std::vector<std::string>{"@!%p1 setp.lt.f32 %p1|_, %f1, 0f3F800000", "ld.shared.v2.b32 {%r1, _}, [%r2+-4]",
                                      "mov.f64 %fd1, 0dBFF0000000000000", "mov.b64 %rd1, -1", "bar.sync 0", "exit",
                                      "call (_), f, (1)"}));
}

} // namespace
} // namespace kiln::ptx::test
