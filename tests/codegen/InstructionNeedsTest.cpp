#include "compiler/codegen/InstructionNeeds.h"
#include "CodegenHarness.h"
#include "compiler/codegen/Containment.h"
#include "compiler/target/MatrixUnits.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

std::string mma(std::string_view type) {
  return kernelWith(
      "%a = llvm.mlir.constant(0 : i32) : i32\n%c = llvm.mlir.constant(0.0 : f32) : f32\n"
      "%d = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%c, %c, %c, %c] {layoutA = #nvvm.mma_layout<row>, "
      "layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<" +
      std::string(type) + ">, multiplicandBPtxType = #nvvm.mma_type<" + std::string(type) +
      ">, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>\n"
      "%e = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>\n"
      "llvm.store %e, %out : f32, !llvm.ptr<1>");
}

const std::string fp8Mma = kernelWith(
    "%a = llvm.mlir.constant(0 : i32) : i32\n%c = llvm.mlir.constant(0.0 : f32) : f32\n"
    "%d = llvm.call_intrinsic \"llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32\"(%a, %a, %a, %a, %a, %a, %c, %c, %c, "
    "%c) : "
    "(i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>\n"
    "%e = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>\nllvm.store %e, %out : f32, !llvm.ptr<1>");

const std::string tanhKernel =
    kernelWith("%a = llvm.load %out : !llvm.ptr<1> -> f32\n"
               "%t = llvm.intr.tanh(%a) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32\n"
               "llvm.store %t, %out : f32, !llvm.ptr<1>");

} // namespace

// LLVM would end the process here.
TEST(InstructionNeeds, MissingCapabilityIsADiagnosticWithALine) {
  const bool before = processIsSuspect();
  Emitted made = emit(mma("bf16"), "sm_75");
  EXPECT_TRUE(made.contained.ok()) << made.contained.toString();
  EXPECT_FALSE(made.ok);
  ASSERT_EQ(made.diagnostics.size(), 1u) << made.text();
  EXPECT_EQ(made.diagnostics[0],
            "sample.mlir:5: 'llvm.nvvm.mma.m16n8k16.row.col.bf16' needs bf16 mma, which sm_75 lacks");
  EXPECT_EQ(processIsSuspect(), before) << "nothing crashed";
  EXPECT_TRUE(emit(mma("bf16"), "sm_80").ok);
}

// What LLVM has predicates for needs what the table of matrix units says.
TEST(InstructionNeeds, MatrixInstructionsNeedWhatTheirTableSays) {
  for (const MatrixInstruction &i : matrixInstructions())
    for (const std::string &types : i.types()) {
      const bool ofWarp = i.unit == MatrixUnit::MmaSync;
      const std::string name = (ofWarp ? "mma.sync.aligned." : "wgmma.mma_async.sync.aligned.") + i.shape(i.leastN) +
                               (ofWarp ? ".row.col." : ".") + types;
      const InstructionNeed *need = findNeed(name);
      ASSERT_NE(need, nullptr) << name;
      EXPECT_EQ(need->capability, i.needs) << name;
      if (i.use == MatrixUse::Lowered)
        EXPECT_EQ(need->isa, 0u) << name << ": no more than the capability's PTX ISA";
    }
}

TEST(InstructionNeeds, ReduxIsGated) {
  const std::string text =
      kernelWith("%m = llvm.mlir.constant(-1 : i32) : i32\n%v = llvm.load %out : !llvm.ptr<1> -> i32\n"
                 "%s = nvvm.redux.sync add %v, %m : i32 -> i32\nllvm.store %s, %out : i32, !llvm.ptr<1>");
  EXPECT_NE(emit(text, "sm_75").text().find("needs redux.sync, which sm_75 lacks"), std::string::npos);
  EXPECT_TRUE(emit(text, "sm_80").ok);
}

TEST(InstructionNeeds, InlineAssemblyIsLookedInto) {
  const std::string text = kernelWith("llvm.inline_asm has_side_effects asm_dialect = att \"{ .reg .pred p; @p "
                                      "setmaxnreg.inc.sync.aligned.u32 64; }\", \"\" : () -> ()");
  Emitted made = emit(text, "sm_90");
  EXPECT_FALSE(made.ok);
  EXPECT_NE(made.text().find("needs setmaxnreg, which sm_90 lacks"), std::string::npos) << made.text();
  EXPECT_TRUE(emit(text, "sm_90a").ok);
}

TEST(InstructionNeeds, PtxIsaIsTheLowestThatServes) {
  EXPECT_EQ(emit(mma("bf16"), "sm_80").isaText, "7.0");
  EXPECT_EQ(emit(fp8Mma, "sm_89").isaText, "8.4");
  EXPECT_EQ(emit(fp8Mma, "sm_120").isaText, "8.7");
  EXPECT_EQ(emit(tanhKernel, "sm_75").isaText, "7.0");
  EXPECT_EQ(emit(tanhKernel, "sm_86").isaText, "7.1");
  EmitOptions options;
  options.uses = {Capability::Wide256};
  EXPECT_EQ(emit(sample("add.mlir"), "sm_100", options).isaText, "8.8");
  options.uses = {};
  options.minimumIsa = 83;
  EXPECT_EQ(emit(sample("add.mlir"), "sm_80", options).isaText, "8.3");
}

TEST(InstructionNeeds, UsedCapabilityThatTheTargetLacks) {
  EmitOptions options;
  options.uses = {Capability::Tma};
  Emitted made = emit(sample("add.mlir"), "sm_89", options);
  EXPECT_FALSE(made.ok);
  EXPECT_NE(made.text().find("the kernel uses tma, which sm_89 lacks"), std::string::npos) << made.text();
}

// What no row names reaches instruction selection, whose fatal error comes back as a status.
TEST(InstructionNeeds, UnlistedNeedIsContained) {
  Emitted made = emit(kernelWith("llvm.call_intrinsic \"llvm.nvvm.fence.sc.cluster\"() : () -> ()"), "sm_80");
  EXPECT_FALSE(made.ok);
  EXPECT_EQ(made.contained.code(), StatusCode::Internal);
  EXPECT_NE(made.contained.message().find("Cannot select"), std::string::npos) << made.contained.toString();
  EXPECT_TRUE(emit(sample("add.mlir"), "sm_80").ok);
}

// There is no libdevice: the diagnostic comes before the back end gives up.
TEST(InstructionNeeds, MathWithoutAnImplementationIsNamed) {
  Emitted made = emit(kernelWith("%v = llvm.load %out : !llvm.ptr<1> -> f32\n%s = llvm.intr.exp(%v) : (f32) -> f32\n"
                                 "llvm.store %s, %out : f32, !llvm.ptr<1>"),
                      "sm_80");
  EXPECT_FALSE(made.ok);
  EXPECT_NE(made.text().find("no libcall available for fexp"), std::string::npos) << made.text();
}

TEST(InstructionNeeds, LongestPrefixDecides) {
  EXPECT_EQ(findNeed("llvm.nvvm.cp.async.ca.shared.global.16")->capability, Capability::CpAsync);
  EXPECT_EQ(findNeed("llvm.nvvm.cp.async.bulk.commit.group")->capability, Capability::Tma);
  EXPECT_EQ(findNeed("llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.2d")->isa, 86u);
  EXPECT_EQ(findNeed("llvm.nvvm.read.ptx.sreg.tid.x"), nullptr);
}
