//===- MutantsTest.cpp - What a mutant's text looks like ----------------------===//
#include "tests/mutants/Mutants.h"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

std::string module(std::string_view body) {
  return ".file 1 \"/a/k.cu\"\n.visible .entry k(\n)\n{\n.loc 1 7 3\n" + std::string(body) + "ret;\n}\n";
}

/// The body's lines of every mutant of a kind, joined by '|', in order.
std::vector<std::string> mutants(std::string_view body, std::string_view kind) {
  const std::string text = module(body);
  std::vector<std::string> out;
  for (const Mutant &m : mutantsOf(text)) {
    if (m.kind != kind)
      continue;
    EXPECT_EQ(m.entry, "k");
    EXPECT_EQ(m.location, "k.cu:7");
    EXPECT_EQ(m.number, out.size() + 1);
    std::string changed = edited(text, m.change);
    const auto start = changed.find("7 3\n") + 4;
    changed = changed.substr(start, changed.find("ret;") - start);
    std::string joined;
    for (char c : changed)
      if (c != '\n')
        joined += c;
      else if (!joined.empty() && joined.back() != '|')
        joined += '|';
    out.push_back(joined);
  }
  return out;
}
using List = std::vector<std::string>;

TEST(Mutants, DropAndMoveABarrier) {
  constexpr const char *body =
      "st.shared.b32 [%r1], %r2;\nadd.s32 %r3, %r3, 1;\nbar.sync 0;\nld.shared.b32 %r4, [%r5];\n";
  EXPECT_EQ(mutants(body, "drop-barrier"),
            (List{"st.shared.b32 [%r1], %r2;|add.s32 %r3, %r3, 1;|ld.shared.b32 %r4, [%r5];|"}));
  EXPECT_EQ(mutants(body, "move-barrier"),
            (List{"st.shared.b32 [%r1], %r2;|add.s32 %r3, %r3, 1;|ld.shared.b32 %r4, [%r5];|bar.sync 0;|",
                  "bar.sync 0;|st.shared.b32 [%r1], %r2;|add.s32 %r3, %r3, 1;|ld.shared.b32 %r4, [%r5];|"}));
}

TEST(Mutants, AMoveStaysInStraightLineCodeAndPassesWholeBlocks) {
  EXPECT_EQ(mutants("L1:\nbar.sync 0;\n@%p1 bra L1;\nld.shared.b32 %r4, [%r5];\n", "move-barrier"), List{});
  EXPECT_EQ(
      mutants("fence.proxy.async;\n{\n.reg .pred p;\nmbarrier.try_wait.parity.b64 p, [%r1], %r2;\n}\n", "move-fence"),
      (List{"{|.reg .pred p;|mbarrier.try_wait.parity.b64 p, [%r1], %r2;|}|fence.proxy.async;|"}));
  // A register barrier number may not be known before: only down.
  EXPECT_EQ(mutants("st.shared.b32 [%r1], %r2;\nbar.sync %r9;\nst.shared.b32 [%r1], %r2;\n", "move-barrier").size(),
            1u);
}

TEST(Mutants, Waits) {
  EXPECT_EQ(mutants("cp.async.wait_group 1;\n", "weaken-wait"), (List{"cp.async.wait_group 2;|"}));
  EXPECT_EQ(mutants("cp.async.bulk.wait_group 0;\n", "weaken-wait"),
            (List{"cp.async.bulk.wait_group 1;|", "cp.async.bulk.wait_group.read 0;|"}));
  constexpr const char *wait = "{\n.reg .pred p;\nwaiting:\nmbarrier.try_wait.parity.b64 p, [%r1], %r2;\n@p bra done;\n"
                               "bra waiting;\ndone:\n}\nld.shared.b32 %r4, [%r5];\n";
  EXPECT_EQ(mutants(wait, "drop-wait"), (List{"{|.reg .pred p;|waiting:|setp.eq.u32 p, 0, 0;|@p bra done;|bra "
                                              "waiting;|done:|}|ld.shared.b32 %r4, [%r5];|"}));
  EXPECT_EQ(mutants(wait, "move-wait"),
            (List{"ld.shared.b32 %r4, [%r5];|{|.reg .pred p;|waiting:|mbarrier.try_wait.parity.b64 p, [%r1], "
                  "%r2;|@p bra done;|bra waiting;|done:|}|"}));
  EXPECT_EQ(mutants("mbarrier.try_wait.parity.b64 p, [%r1], 1;\n", "flip-parity"),
            (List{"mbarrier.try_wait.parity.b64 p, [%r1], 0;|"}));
  EXPECT_EQ(mutants("mbarrier.try_wait.parity.b64 p, [%r1], %r2;\n", "flip-parity"),
            (List{"{ .reg .b32 %kilnMutant; xor.b32 %kilnMutant, %r2, 1; mbarrier.try_wait.parity.b64 p, [%r1], "
                  "%kilnMutant; }|"}));
  EXPECT_EQ(mutants(wait, "drop-guard"), List{}); // the branches of the wait are no guards
}

TEST(Mutants, Mbarriers) {
  EXPECT_EQ(mutants("mbarrier.arrive.expect_tx.b64 _, [%r1], 64;\n", "change-expect"),
            (List{"mbarrier.arrive.expect_tx.b64 _, [%r1], 80;|", "mbarrier.arrive.expect_tx.b64 _, [%r1], 48;|"}));
  EXPECT_EQ(mutants("mbarrier.arrive.b64 _, [%r1+8];\n", "shift-stage"), (List{"mbarrier.arrive.b64 _, [%r1+16];|"}));
  EXPECT_EQ(mutants("mbarrier.arrive.b64 _, [%r1];\n", "drop-arrive"), List{""});
}

TEST(Mutants, Stores) {
  EXPECT_EQ(mutants("st.global.v2.f32 [%rd1+-8], {%f1, %f2};\n", "shift-store"),
            (List{"st.global.v2.f32 [%rd1+0], {%f1, %f2};|", "st.global.v2.f32 [%rd1+-16], {%f1, %f2};|"}));
  EXPECT_EQ(mutants("@%p1 st.global.f32 [%rd1], %f1;\n", "widen-store"),
            (List{"@%p1 st.global.v2.f32 [%rd1], {%f1, %f1};|"}));
  EXPECT_EQ(mutants("st.shared.v4.b32 [%r1], {%r2, %r3, %r4, %r5};\n", "widen-store"), List{});
  EXPECT_EQ(
      mutants("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r3];\n", "shift-store"),
      (List{"{ .reg .b32 %kilnMutant; add.s32 %kilnMutant, %r1, 1; "
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%kilnMutant, %r2}], [%r3]; }|"}));
  EXPECT_EQ(mutants("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 64;\n", "widen-store"),
            (List{"cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 80;|"}));
}

TEST(Mutants, Stages) {
  EXPECT_EQ(mutants("and.b32 %r1, %r2, 24;\n", "shift-stage"),
            (List{"{ .reg .b32 %kilnMutant; add.s32 %kilnMutant, %r2, 8; and.b32 %r1, %kilnMutant, 24; }|"}));
  EXPECT_EQ(mutants("and.b32 %r1, %r2, 31;\n", "shift-stage"), List{});
  EXPECT_EQ(mutants("xor.b32 %r1, %r1, 1;\n", "shift-stage"), (List{"mov.b32 %r1, %r1;|"}));
  EXPECT_EQ(mutants("mad.lo.s32 %r1, %r2, 5120, %r3;\n", "shift-stage"),
            (List{"mad.lo.s32 %r1, %r2, 5120, %r3; add.s32 %r1, %r1, 5120;|"}));
}

TEST(Mutants, Guards) {
  EXPECT_EQ(mutants("@%p1 bra L2;\nst.global.b32 [%rd1], %r1;\nL2:\n@%p2 bra L2;\n", "drop-guard"),
            (List{"st.global.b32 [%rd1], %r1;|L2:|@%p2 bra L2;|"}));
  EXPECT_EQ(mutants("@%p1 bra L2;\nadd.s32 %r1, %r1, 1;\nL2:\n", "drop-guard"), List{}); // nothing is accessed
  EXPECT_EQ(mutants("@!%p1 st.global.b32 [%rd1], %r1;\n", "drop-guard"), (List{"st.global.b32 [%rd1], %r1;|"}));
  EXPECT_EQ(mutants("selp.b32 %r1, 16, 0, %p1;\n", "drop-guard"), (List{"mov.b32 %r1, 16;|"}));
}

TEST(Mutants, ATrapStandsWhereTheMutantDiffers) {
  const std::string text = module("@%p1 st.global.b32 [%rd1], %r1;\nbar.sync 0;\n");
  for (const Mutant &m : mutantsOf(text)) {
    const std::string trapped = edited(text, m.trap);
    if (m.kind == "drop-guard")
      EXPECT_NE(trapped.find("@!%p1 trap;"), std::string::npos);
    else if (m.kind.ends_with("-barrier"))
      EXPECT_NE(trapped.find("\ntrap;"), std::string::npos);
    else
      EXPECT_NE(trapped.find("@%p1 trap;"), std::string::npos) << m.kind;
  }
}

} // namespace
} // namespace kiln::test
