#include "runtime/device/cuda/PtxSummary.h"
#include "tests/runtime/FakeCudaFixture.h"

namespace kiln::test {
namespace {

using FakeCudaModuleTest = FakeCudaTest;

TEST_F(FakeCudaModuleTest, ThePtxReachesTheDriverTerminated) {
  open();
  const std::string padded = std::string(ptx) + "garbage behind the view";
  auto m = device->loadPtx(std::string_view(padded).substr(0, std::strlen(ptx)), "add.ptx");
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(fake->image, ptx);
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
