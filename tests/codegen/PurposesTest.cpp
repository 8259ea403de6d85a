// What lowering made an instruction for reaches the passes after O3.
#include "CodegenHarness.h"

#include <gtest/gtest.h>

using namespace kiln::test;

namespace {

std::string product(const std::string &purpose) {
  const std::string multiply =
      "nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%c, %c, %c, %c] {layoutA = #nvvm.mma_layout<row>, "
      "layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = "
      "#nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>" +
      purpose + "} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>\n";
  // Twice the same, which O3 makes one.
  return kernelWith("%a = llvm.load %out : !llvm.ptr<1> -> i32\n%c = llvm.mlir.constant(0.0 : f32) : f32\n%d = " +
                    multiply + "%f = " + multiply +
                    "%e = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>\n"
                    "%g = llvm.extractvalue %f[1] : !llvm.struct<(f32, f32, f32, f32)>\n"
                    "%h = llvm.fadd %e, %g : f32\nllvm.store %h, %out : f32, !llvm.ptr<1>");
}

EmitOptions keepIr() {
  EmitOptions options;
  options.keepLlvmIr = true;
  return options;
}

int callsWith(const std::string &text, const std::string &what) {
  int count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

} // namespace

TEST(Purposes, CallsKeepThemThroughO3) {
  const Emitted made = emit(product(", tile_gpu.purpose = \"product\""), "sm_80", keepIr());
  ASSERT_TRUE(made.ok) << made.text();
  EXPECT_EQ(callsWith(made.llvmBeforeO3, "call { float, float, float, float } @llvm.nvvm.mma"), 2);
  EXPECT_EQ(callsWith(made.llvmAfterO3, "call { float, float, float, float } @llvm.nvvm.mma"), 1);
  EXPECT_EQ(callsWith(made.llvmAfterO3, "\"kiln-purpose\"=\"product\""), 1);
}

TEST(Purposes, NoneIsMadeUp) {
  const Emitted made = emit(product(""), "sm_80", keepIr());
  ASSERT_TRUE(made.ok) << made.text();
  EXPECT_EQ(callsWith(made.llvmAfterO3, "kiln-purpose"), 0);
}

TEST(Purposes, WhatIsNoWordIsRefused) {
  const Emitted made = emit(product(", tile_gpu.purpose = 3 : i32"), "sm_80");
  EXPECT_FALSE(made.ok);
  EXPECT_NE(made.text().find("'tile_gpu.purpose' is 3 : i32, not a string"), std::string::npos) << made.text();
}
