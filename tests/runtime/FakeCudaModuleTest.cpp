#include "runtime/device/cuda/PtxSummary.h"
#include "tests/runtime/FakeCudaFixture.h"

namespace kiln::test {
namespace {

using FakeCudaModuleTest = FakeCudaTest;

TEST_F(FakeCudaModuleTest, ThePtxReachesTheDriverTerminated) {
  open();
  const std::string padded = std::string(ptx) + "garbage after the view";
  auto m = device->loadPtx(std::string_view(padded).substr(0, std::strlen(ptx)), "add.ptx");
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(fake->image, ptx);
}

TEST_F(FakeCudaModuleTest, ALoadDoesNotDisturbCapturesOfOtherThreads) {
  open();
  ASSERT_TRUE(device->loadPtx(ptx, "add.ptx").ok());
  EXPECT_EQ(fake->modeAtLoad, 2); // relaxed
  EXPECT_EQ(fake->captureMode, 0);
  fake->failures["cuModuleLoadDataEx"] = 218;
  EXPECT_FALSE(device->loadPtx(ptx, "add.ptx").ok());
  EXPECT_EQ(fake->captureMode, 0);
  fake->failures = {{"cuThreadExchangeStreamCaptureMode", 1}};
  EXPECT_TRUE(device->loadPtx(ptx, "add.ptx").ok());
  EXPECT_EQ(fake->modeAtLoad, 0);
}

TEST_F(FakeCudaModuleTest, ACompilersLogIsPartOfTheFailure) {
  open();
  fake->failures["cuModuleLoadDataEx"] = 218;
  fake->ptxLog = "ptxas add.ptx, line 5; error : Unknown symbol 'r9'\n";
  const Status s = device->loadPtx(ptx, "add.ptx").status();
  EXPECT_EQ(s.code(), StatusCode::CompileError);
  EXPECT_EQ(s.exitCode(), 3);
  EXPECT_NE(s.message().find("'add.ptx'"), std::string::npos) << s.message();
  EXPECT_NE(s.message().find("CUDA_ERROR_INVALID_PTX (as the driver explains it)\nptxas add.ptx, line 5; error"),
            std::string::npos)
      << s.message();
}

TEST_F(FakeCudaModuleTest, AnEndlessLogIsCut) {
  open();
  fake->failures["cuModuleLoadDataEx"] = 218;
  fake->ptxLog = std::string(100000, 'e');
  EXPECT_LT(device->loadPtx(ptx, "add.ptx").status().message().size(), 9000u);
}

TEST_F(FakeCudaModuleTest, ANewerPtxVersionHasARemedy) {
  open();
  fake->failures["cuModuleLoadDataEx"] = 222;
  const Status s = device->loadPtx(ptx, "add.ptx").status();
  EXPECT_EQ(s.code(), StatusCode::CompileError);
  EXPECT_NE(s.remedy().find("newer driver"), std::string::npos);
}

TEST_F(FakeCudaModuleTest, ImagesThatAreNone) {
  open();
  EXPECT_EQ(device->loadPtx(std::string_view("a\0b", 3), "x.ptx").status().code(), StatusCode::CompileError);
  EXPECT_EQ(device->loadCubin(std::as_bytes(std::span("no"))).status().code(), StatusCode::CompileError);
  EXPECT_EQ(fake->image, "");
}

TEST_F(FakeCudaModuleTest, ACubinHasTheDriversSignature) {
  open();
  std::string image(128, '\0');
  image.replace(0, 4,
                "\x7f"
                "ELF");
  auto m = device->loadCubin(std::as_bytes(std::span(image.data(), image.size())));
  ASSERT_TRUE(m.ok()) << m.status().toString();
  EXPECT_EQ((*m)->kernelNames(), std::vector<std::string>{"add"});
  auto k = (*m)->kernel("add");
  ASSERT_TRUE(k.ok());
  const KernelInfo &info = (*k)->info();
  ASSERT_EQ(info.parameters.size(), 3u);
  EXPECT_EQ(info.parameters[0].type, "b64");
  EXPECT_EQ(info.parameters[2].offset, 16u);
  EXPECT_EQ(info.parameterBytes, 20u);
  EXPECT_EQ(info.staticSharedBytes, 1024u);
  EXPECT_EQ(info.registersPerThread, 40u);
}

TEST_F(FakeCudaModuleTest, ThePtxGivesNamesAndTypes) {
  load();
  const KernelInfo &info = kernel->info();
  ASSERT_EQ(info.parameters.size(), 3u);
  EXPECT_EQ(info.parameters[0].type, "u64");
  EXPECT_EQ(info.parameters[0].name, "x");
  EXPECT_EQ(info.parameters[2].type, "u32");
  EXPECT_EQ(info.parameters[2].name, "n");
  EXPECT_EQ(module->kernelNames(), std::vector<std::string>{"add"});
}

TEST_F(FakeCudaModuleTest, OffsetsAreNatural) {
  const auto s = cuda::summarisePtx(".version 8.0\n.target sm_90a\n.address_size 64\n"
                                    ".visible .entry k(.param .u8 a, .param .align 16 .b8 b[20], .param .f32 c,\n"
                                    "  .param .u64 .ptr .global .align 64 d) .reqntid 64, 2, 1 { ret; }\n",
                                    "k.ptx");
  EXPECT_EQ(s.target, "sm_90a");
  ASSERT_EQ(s.entries.size(), 1u);
  const KernelInfo &k = s.entries[0];
  ASSERT_EQ(k.parameters.size(), 4u);
  EXPECT_EQ(k.parameters[1].offset, 16u);
  EXPECT_EQ(k.parameters[1].size, 20u);
  EXPECT_EQ(k.parameters[1].type, "b8[20]");
  EXPECT_EQ(k.parameters[2].offset, 36u);
  EXPECT_EQ(k.parameters[3].offset, 40u); // .align of a .ptr is that of the memory it points to
  EXPECT_TRUE(k.parameters[3].isPointer);
  EXPECT_EQ(k.parameterBytes, 48u);
  EXPECT_EQ(k.requiredBlock, (Dim3{64, 2, 1}));
}

TEST_F(FakeCudaModuleTest, PtxOfAnotherArchitectureNeverReachesTheDriver) {
  open();
  const Status s =
      device->loadPtx(".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry add() { ret; }\n", "b.ptx")
          .status();
  EXPECT_EQ(s.code(), StatusCode::CompileError);
  EXPECT_EQ(s.message(), "'b.ptx' is for sm_100a, which runs on that architecture alone; this GPU is sm_90");
  EXPECT_EQ(fake->image, "");
}

TEST_F(FakeCudaModuleTest, WhatOurParserDoesNotKnowTheDriverDecides) {
  open();
  const std::string odd = ".version 99.0\n.target sm_80\n.address_size 64\n.novel directive;\n";
  auto m = device->loadPtx(odd, "odd.ptx");
  ASSERT_TRUE(m.ok()) << m.status().toString();
  EXPECT_EQ(fake->image, odd);
  auto k = (*m)->kernel("add");
  ASSERT_TRUE(k.ok());
  EXPECT_EQ((*k)->info().parameters[0].type, "b64");
}

TEST_F(FakeCudaModuleTest, ARequiredBlockIsRequired) {
  fake->parameters.clear();
  open();
  auto m = device->loadPtx(
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry add() .reqntid 64 { ret; }\n", "a.ptx");
  ASSERT_TRUE(m.ok());
  auto k = (*m)->kernel("add");
  ASSERT_TRUE(k.ok());
  EXPECT_NE((*k)->launch({{1, 1, 1}, {32, 1, 1}, {0, 0, 0}, 0, nullptr}, {})
                .message()
                .find("required block (.reqntid) (64, 1, 1)"),
            std::string::npos);
  EXPECT_TRUE((*k)->launch({{1, 1, 1}, {64, 1, 1}, {0, 0, 0}, 0, nullptr}, {}).ok());
}

TEST_F(FakeCudaModuleTest, AMissingKernelListsWhatThereIs) {
  load();
  const Status s = module->kernel("ad").status();
  EXPECT_EQ(s.code(), StatusCode::NotFound);
  EXPECT_EQ(s.toString(), "'add.ptx' has no kernel 'ad'; its kernels: add (did you mean add?)");
  EXPECT_FALSE(module->kernel(std::string_view("add\0x", 5)).ok());
  EXPECT_EQ(*module->kernel("add"), kernel);
}

TEST_F(FakeCudaModuleTest, LookupFailures) {
  load();
  auto again = device->loadPtx(ptx, "add.ptx");
  ASSERT_TRUE(again.ok());
  for (const char *function : {"cuModuleGetFunction", "cuFuncGetAttribute"}) {
    fake->failures = {{function, 1}};
    EXPECT_NE((*again)->kernel("add").status().message().find(function), std::string::npos);
  }
  fake->failures.clear();
}

TEST(PtxTargetTest, WhichGpuRunsWhichTarget) {
  const auto runs = [](const char *target, unsigned sm) { return cuda::checkPtxTarget(target, sm, "x.ptx").ok(); };
  EXPECT_TRUE(runs("sm_80", 90));
  EXPECT_TRUE(runs("sm_90", 90));
  EXPECT_FALSE(runs("sm_100", 90));
  EXPECT_TRUE(runs("sm_90a", 90));
  EXPECT_FALSE(runs("sm_90a", 100));
  EXPECT_FALSE(runs("sm_90a", 80));
  EXPECT_TRUE(runs("sm_100f", 103));
  EXPECT_FALSE(runs("sm_100f", 120));
  EXPECT_TRUE(runs("", 90));
  EXPECT_TRUE(runs("compute_90", 90)); // the driver's to decide
  const Status s = cuda::checkPtxTarget("sm_100", 90, "x.ptx");
  EXPECT_EQ(s.message(), "'x.ptx' is for sm_100, which needs that architecture or a newer one; this GPU is sm_90");
  EXPECT_EQ(s.exitCode(), 3);
}

} // namespace
} // namespace kiln::test
