#include "compiler/codegen/AssemblerLog.h"
#include "compiler/codegen/AssemblerKinds.h"
#include "compiler/codegen/CubinReader.h"

#include <gtest/gtest.h>

using namespace kiln;

// As ptxas 13.0 and nvJitLink 13.0 print them.
TEST(AssemblerLog, Resources) {
  const char *log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'big' for 'sm_80'\n"
      "ptxas info    : Function properties for big\n"
      "    1024 bytes stack frame, 96 bytes spill stores, 128 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 3 barriers, 1024 bytes cumulative stack size, 64 bytes smem, 360 bytes "
      "cmem[0]\n"
      "ptxas info    : Compile time = 2.956 ms\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
      "ptxas info    : Function properties for k\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, 360 bytes cmem[0]\n"
      "ptxas info    : Function properties for helper\n"
      "    16 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
      "info    : Function properties for 'k':\n"
      "info    : used 99 registers, used 1 barriers, 0 stack, 64 bytes smem, 360 bytes cmem[0], 0 bytes lmem\n";
  std::vector<KernelResources> kernels = resourcesFromLog(log);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "big");
  EXPECT_EQ(kernels[0].registers, 255u);
  EXPECT_EQ(kernels[0].barriers, 3u);
  EXPECT_EQ(kernels[0].sharedBytes, 64u);
  EXPECT_EQ(kernels[0].stackBytes, 1024u);
  EXPECT_EQ(kernels[0].spillStoreBytes, 96u);
  EXPECT_EQ(kernels[0].spillLoadBytes, 128u);
  EXPECT_EQ(kernels[1].name, "k");
  EXPECT_EQ(kernels[1].registers, 8u);
  EXPECT_EQ(kernels[1].barriers, 0u);
  EXPECT_EQ(kernels[1].spillStoreBytes, 0u);
}

TEST(AssemblerLog, ErrorsNameThePtxLine) {
  const char *link = "ptxas application ptx input, line 6; error   : Illegal operand type to instruction 'ld'\n"
                     "ptxas application ptx input, line 7; error   : Unknown modifier '.x'\n"
                     "ptxas fatal   : Ptx assembly aborted due to errors\n"
                     "ERROR NVJITLINK_ERROR_PTX_COMPILE: JIT the PTX (file.ptx)\n";
  EXPECT_EQ(errorsFromLog(link, "k.ptx"),
            "k.ptx:6: Illegal operand type to instruction 'ld'\nk.ptx:7: Unknown modifier '.x'");
  EXPECT_EQ(errorsFromLog("ptxas fatal   : SM version specified by .target is higher than default SM version assumed\n",
                          "k.ptx"),
            "k.ptx: SM version specified by .target is higher than default SM version assumed");
  EXPECT_EQ(errorsFromLog("ptxas error   : Entry function 'k' uses too much shared data (0x40000 bytes, 0xc000 max)\n",
                          "k.ptx"),
            "k.ptx: Entry function 'k' uses too much shared data (0x40000 bytes, 0xc000 max)");
  EXPECT_EQ(errorsFromLog("something else", "k.ptx"), "k.ptx: something else");
}

TEST(AssemblerLog, WarningsAndNumberedNotes) {
  const char *log = "ptxas info    : 0 bytes gmem\n"
                    "ptxas warning : Unresolved extern variable 'x' in whole program compilation\n"
                    "ptxas k.ptx, line 12; warning : Instruction 'shfl' without '.sync' is deprecated\n"
                    "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized\n"
                    "ptxas info    : Used 8 registers, 360 bytes cmem[0]\n";
  EXPECT_EQ(warningsFromLog(log, "k.ptx"),
            (std::vector<std::string>{
                "k.ptx: Unresolved extern variable 'x' in whole program compilation",
                "k.ptx:12: Instruction 'shfl' without '.sync' is deprecated",
                "k.ptx: (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized"}));
}

TEST(AssemblerLog, AnyTextIsSafe) {
  for (const char *text :
       {"", "\n", "ptxas", "ptxas , line ; error", "ptxas info : Compiling entry function '", " registers\n",
        "ptxas info : Compiling entry function 'k' for\nptxas info : Function properties for k\n registers"}) {
    (void)resourcesFromLog(text);
    (void)errorsFromLog(text, "f");
    (void)warningsFromLog(text, "f");
  }
}

TEST(CubinReader, RefusesWhatIsNoElf) {
  EXPECT_FALSE(resourcesFromCubin({}).ok());
  const std::string text = "\x7f"
                           "ELF and then nothing";
  EXPECT_FALSE(resourcesFromCubin(std::as_bytes(std::span(text))).ok());
}

TEST(Assembler, ArchIsCheckedBeforeItReachesACommandLine) {
  for (const char *good : {"sm_75", "sm_90a", "sm_100f", "sm_121"})
    EXPECT_TRUE(checkAssemblyArch(good).ok()) << good;
  for (const char *bad : {"", "sm_", "sm_a", "90", "sm_90 ", "sm_90;ls", "sm_90aa", "compute_90", "sm_123456"})
    EXPECT_FALSE(checkAssemblyArch(bad).ok()) << bad;
}
