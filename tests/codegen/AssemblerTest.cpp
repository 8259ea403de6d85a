#include "compiler/codegen/Assembler.h"
#include "compiler/codegen/CubinReader.h"
#include "compiler/codegen/RegisterLimit.h"
#include "compiler/target/Target.h"
#include "support/Text.h"
#include "tests/support/OldPtxas.h"
#include "tests/support/TestTier.h"

#include <atomic>
#include <filesystem>
#include <gtest/gtest.h>
#include <thread>

using namespace kiln;
using namespace kiln::test;

/// For the address sanitizer: nvJitLink keeps a few kilobytes of its own.
extern "C" const char *__lsan_default_suppressions() {
  return "leak:libnvJitLink\n";
}

namespace {

/// Writes s[tid] round a barrier; `extra` goes before the end.
std::string kernel(std::string_view version, std::string_view target, std::string_view extra = {}) {
  return ".version " + std::string(version) + "\n.target " + std::string(target) +
         "\n.address_size 64\n.visible .entry turn(.param .u64 p) {\n.reg .b64 %rd<3>; .reg .b32 %r<8>;\n"
         ".shared .align 4 .b8 s[512];\nld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, s;\nshl.b32 %r3, "
         "%r1, 2;\n"
         "add.u32 %r2, %r2, %r3;\nst.shared.u32 [%r2], %r1;\nbar.sync 0;\nld.shared.u32 %r4, [%r2];\nst.global.u32 "
         "[%rd1], %r4;\n" +
         std::string(extra) + "ret;\n}\n";
}

/// Loads 100 numbers and needs the first and the last together: more than the 24 registers that it may have.
std::string spilling() {
  std::string loads, sums;
  for (int i = 0; i < 100; ++i) {
    loads += format("ld.volatile.global.u32 %%a%d, [%%rd1+%d];\n", i, 4 * i);
    sums += format("mad.lo.u32 %%r1, %%r1, %%a%d, %%a%d;\n", i, 99 - i);
  }
  return ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry many(.param .u64 p)\n.maxntid 128\n.maxnreg "
         "24\n{\n.reg .b64 %rd<2>; .reg .b32 %r<2>, %a<100>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n" +
         loads + sums + "st.global.u32 [%rd1], %r1;\nret;\n}\n";
}

/// The same for blocks of so many threads, and as many registers as they may have.
std::string spillingBlock(unsigned threads) {
  std::string text = spilling();
  text.replace(text.find(".maxntid 128\n.maxnreg 24"), 24, format(".reqntid %u", threads));
  return text;
}

/// Runs the test once for each kind of assembler.
class EachAssembler : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    AssemblerSearch search;
    search.temporaryDirectory = folder.path();
    (GetParam() == std::string_view("ptxas") ? search.nvJitLink : search.ptxas) = "none";
    Result<std::shared_ptr<const Assembler>> found = findAssembler(search);
    if (!found.ok())
      GTEST_SKIP() << found.status().toString();
    assembler = *found;
    ASSERT_EQ(assembler->name(), GetParam());
  }
  TemporaryDirectory folder;
  std::shared_ptr<const Assembler> assembler;
};

} // namespace

TEST_P(EachAssembler, CubinAndResources) {
  Result<AssembledModule> made = assembler->assemble(kernel("7.0", "sm_80"), "sm_80");
  ASSERT_TRUE(made.ok()) << made.status().toString();
  ASSERT_GT(made->cubin.size(), 64u);
  EXPECT_EQ(std::string(reinterpret_cast<const char *>(made->cubin.data()) + 1, 3), "ELF");
  ASSERT_EQ(made->resources.kernels.size(), 1u);
  const KernelResources &turn = made->resources.kernels[0];
  EXPECT_EQ(turn.name, "turn");
  EXPECT_GE(turn.registers, 6u);
  EXPECT_LE(turn.registers, 32u);
  EXPECT_EQ(turn.sharedBytes, 512u);
  EXPECT_EQ(turn.stackBytes, 0u);
  EXPECT_EQ(turn.barriers, 1u);
  EXPECT_EQ(turn.spillStoreBytes, 0u);
  EXPECT_EQ(turn.spillLoadBytes, 0u);
  EXPECT_TRUE(made->warnings.empty());
}

/// A loop, which each level makes something else of.
TEST_P(EachAssembler, EveryLevel) {
  constexpr std::string_view loop = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry turn(.param .u64 p, .param .u32 n) {
.reg .b64 %rd<2>; .reg .f32 %f<3>; .reg .b32 %r<2>; .reg .pred %q;
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
mov.b32 %f1, 0f00000000;
again:
ld.global.f32 %f2, [%rd1];
fma.rn.f32 %f1, %f1, %f2, %f2;
add.u64 %rd1, %rd1, 4;
sub.u32 %r1, %r1, 1;
setp.ne.u32 %q, %r1, 0;
@%q bra again;
st.global.f32 [%rd1], %f1;
ret;
}
)";
  std::vector<std::vector<std::byte>> cubins;
  for (const unsigned level : {0u, 1u, 2u, 3u}) {
    Result<AssembledModule> made = assembler->assemble(loop, "sm_80", {.optimisation = level});
    ASSERT_TRUE(made.ok()) << level << ": " << made.status().toString();
    EXPECT_TRUE(made->resources.find("turn")) << level;
    cubins.push_back(made->cubin);
  }
  EXPECT_NE(cubins[0], cubins[1]);
  EXPECT_NE(cubins[1], cubins[2]);
  EXPECT_NE(cubins[1], cubins[3]);
}

TEST_P(EachAssembler, TheCubinStatesTheSameResources) {
  // 32 words of local memory indexed at run time: a stack frame.
  std::string text = kernel("7.0", "sm_80");
  text.insert(text.find(".shared"), ".local .align 4 .b8 l[128]; .reg .b64 %q<4>;\n");
  text.insert(text.find("ret;"),
              "mov.u64 %q1, l;\ncvt.u64.u32 %q2, %r3;\nadd.u64 %q2, %q1, %q2;\nst.local.u32 [%q2], %r4;\n"
              "ld.local.u32 %r5, [%q1+8];\nst.global.u32 [%rd1], %r5;\n");
  for (const char *arch : {"sm_80", "sm_90", "sm_120"}) {
    Result<AssembledModule> made = assembler->assemble(text, arch);
    ASSERT_TRUE(made.ok()) << made.status().toString();
    Result<std::vector<KernelResources>> stated = resourcesFromCubin(made->cubin);
    ASSERT_TRUE(stated.ok()) << stated.status().toString();
    ASSERT_EQ(stated->size(), 1u);
    const KernelResources &logged = made->resources.kernels.at(0);
    EXPECT_EQ(stated->at(0).name, logged.name);
    EXPECT_EQ(stated->at(0).registers, logged.registers) << arch;
    EXPECT_EQ(stated->at(0).stackBytes, logged.stackBytes) << arch;
    EXPECT_EQ(logged.stackBytes, 128u);
    EXPECT_EQ(stated->at(0).sharedBytes, logged.sharedBytes) << arch;
    EXPECT_FALSE(stated->at(0).spillStoreBytes.has_value());
  }
  // Damaged cubins are read safely.
  Result<AssembledModule> made = assembler->assemble(text, "sm_80");
  for (std::size_t size = 0; size < made->cubin.size(); size += 7)
    (void)resourcesFromCubin(std::span(made->cubin).first(size)).ok();
  for (std::size_t i = 0; i < made->cubin.size(); ++i) {
    std::vector<std::byte> damaged = made->cubin;
    damaged[i] ^= std::byte(0xff);
    (void)resourcesFromCubin(damaged).ok();
  }
}

TEST_P(EachAssembler, CodeTargetAndAssemblyArchAreTwoThings) {
  const std::string text = kernel("7.0", "sm_80");
  for (const char *arch : {"sm_80", "sm_86", "sm_90", "sm_90a", "sm_100a", "sm_120"}) {
    Result<AssembledModule> made = assembler->assemble(text, arch);
    EXPECT_TRUE(made.ok()) << arch << ": " << made.status().toString();
  }
  Result<AssembledModule> older = assembler->assemble(text, "sm_75");
  ASSERT_FALSE(older.ok());
  EXPECT_EQ(older.status().code(), StatusCode::CompileError) << older.status().toString();
}

TEST_P(EachAssembler, UnknownArch) {
  Result<AssembledModule> made = assembler->assemble(kernel("7.0", "sm_80"), "sm_42");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::Unsupported) << made.status().toString();
  EXPECT_NE(made.status().message().find("sm_42"), std::string::npos);
  made = assembler->assemble(kernel("7.0", "sm_80"), "sm_80 -G");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::InvalidArgument);
}

TEST_P(EachAssembler, ErrorsNameTheLineOfThePtx) {
  Result<AssembledModule> made =
      assembler->assemble(kernel("7.0", "sm_80", "add.u32 %r1, %nope, 1;\n"), "sm_80", {}, "kernel.ptx");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::CompileError);
  EXPECT_NE(made.status().message().find("kernel.ptx:16: "), std::string::npos) << made.status().toString();
  EXPECT_NE(made.status().message().find("%nope"), std::string::npos) << made.status().toString();
  EXPECT_EQ(made.status().message().find(folder.path()), std::string::npos) << made.status().toString();
  for (const char *text : {"", "hello", ".version 99.9\n.target sm_80\n"}) {
    made = assembler->assemble(text, "sm_80");
    EXPECT_FALSE(made.ok()) << text;
    EXPECT_FALSE(made.status().message().empty());
  }
}

TEST_P(EachAssembler, EqualCubinsFromFourThreadsAtOnce) {
  const std::string text = kernel("7.0", "sm_80");
  Result<AssembledModule> first = assembler->assemble(text, "sm_90a");
  ASSERT_TRUE(first.ok()) << first.status().toString();
  std::atomic<int> next = 0, different = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      while (next++ < pick(12, 60)) {
        Result<AssembledModule> made = assembler->assemble(text, "sm_90a");
        different += !made.ok() || made->cubin != first->cubin;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(different, 0);
}

TEST_P(EachAssembler, LeavesNoFiles) {
  (void)assembler->assemble(kernel("7.0", "sm_80"), "sm_80").ok();
  (void)assembler->assemble("nonsense", "sm_80").ok();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_P(EachAssembler, IdentityForCacheKeys) {
  EXPECT_GE(assembler->version(), (AssemblerVersion{12, 0}));
  EXPECT_TRUE(assembler->identity().starts_with(GetParam())) << assembler->identity();
  EXPECT_GT(assembler->identity().size(), 25u) << "the build is part of it: " << assembler->identity();
  if (assembler->path().find('/') != std::string::npos)
    EXPECT_EQ(assembler->identity().find(assembler->path()), std::string::npos)
        << "equal libraries in two places are equal";
  EXPECT_EQ(assembler->hasDefect(AssemblerDefect::RegisterSourcedWgmma),
            assembler->version() < (AssemblerVersion{13, 3}));
}

INSTANTIATE_TEST_SUITE_P(Assembler, EachAssembler, testing::Values("nvJitLink", "ptxas"),
                         [](const auto &info) { return std::string(info.param); });

TEST(Assembler, DefectTable) {
  EXPECT_TRUE(versionHasDefect({12, 4}, AssemblerDefect::RegisterSourcedWgmma));
  EXPECT_TRUE(versionHasDefect({13, 0}, AssemblerDefect::RegisterSourcedWgmma));
  EXPECT_FALSE(versionHasDefect({13, 3}, AssemblerDefect::RegisterSourcedWgmma));
  EXPECT_FALSE(versionHasDefect({14, 0}, AssemblerDefect::RegisterSourcedWgmma));
}

/// Registers that go from warps to others: nvJitLink would ignore it.
TEST(Assembler, WhatNvJitLinkDoesNotServeGoesToPtxas) {
  std::vector<std::string> notes;
  const auto all = listAssemblers({}, notes);
  if (all.size() < 2)
    GTEST_SKIP() << "there are not both assemblers: " << join(notes, "; ");
  const Result<std::shared_ptr<const Assembler>> found = findAssembler();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)->identity(), all[0]->identity() + "; " + all[1]->identity());
  EXPECT_EQ((*found)->files(), (std::vector<std::string>{all[0]->path(), all[1]->path()}));
  const std::string plain = kernel("8.0", "sm_90a");
  std::string moves = plain;
  moves.insert(moves.find(") {") + 2, "\n.reqntid 384\n.minnctapersm 1\n");
  moves.insert(moves.find("ret;"), "setmaxnreg.dec.sync.aligned.u32 24;\n");
  for (const auto &[text, name] : {std::pair(plain, "nvJitLink"), std::pair(moves, "ptxas")}) {
    EXPECT_TRUE((*found)->serves(text));
    const Result<AssembledModule> made = (*found)->assemble(text, "sm_90a");
    ASSERT_TRUE(made.ok()) << made.status().toString();
    EXPECT_EQ(made->assembler, name);
    EXPECT_TRUE(made->warnings.empty()) << made->warnings.front();
  }
  EXPECT_FALSE(all[0]->serves(moves));
  EXPECT_TRUE(all[1]->serves(moves));
  const Result<AssembledModule> ignored = all[0]->assemble(moves, "sm_90a");
  ASSERT_TRUE(ignored.ok()) << ignored.status().toString();
  EXPECT_FALSE(ignored->warnings.empty());
}

/// A part of a program for which no register is left may be wrong (RegisterLimit.h).
TEST(Assembler, WhatRanOutOfRegistersInAPartOfAProgramGoesToPtxas) {
  std::vector<std::string> notes;
  const auto all = listAssemblers({}, notes);
  if (all.size() < 2)
    GTEST_SKIP() << "there are not both assemblers: " << join(notes, "; ");
  ASSERT_TRUE(all[0]->makesParts());
  ASSERT_FALSE(all[1]->makesParts());
  const std::string text = spilling();
  for (const auto &assembler : all) {
    const Result<AssembledModule> made = assembler->assemble(text, "sm_80");
    ASSERT_TRUE(made.ok()) << made.status().toString();
    const KernelResources *many = made->resources.find("many");
    ASSERT_TRUE(many);
    EXPECT_GT(many->spillStoreBytes.value_or(0), 0u);
    EXPECT_EQ(made->isTrusted(), !assembler->makesParts());
  }
  const Result<std::shared_ptr<const Assembler>> found = findAssembler();
  ASSERT_TRUE(found.ok());
  Result<AssembledModule> made = (*found)->assemble(text, "sm_80");
  ASSERT_TRUE(made.ok()) << made.status().toString();
  EXPECT_EQ(made->assembler, "ptxas");
  EXPECT_TRUE(made->isTrusted());
  // Large ones take ptxas as long as nvJitLink.
  const std::string plain = kernel("7.0", "sm_80");
  EXPECT_EQ((*found)->assemble(plain, "sm_80")->assembler, "nvJitLink");
  EXPECT_EQ((*found)->assemble(plain + "//" + std::string(1 << 16, 'x') + "\n", "sm_80")->assembler, "ptxas");
}

/// A link that fails is passed over; where all do, the error is the first one's.
TEST(Assembler, AnAssemblerThatDoesNotKnowTheArchIsPassedOver) {
  std::vector<std::string> notes;
  if (listAssemblers({}, notes).size() < 2)
    GTEST_SKIP() << "there are not both assemblers: " << join(notes, "; ");
  TemporaryDirectory folder;
  const std::string old = folder.path() + "/ptxas";
  writeOldPtxas(old, "Value 'sm_80' is not defined for option 'gpu-name'");
  AssemblerSearch search;
  search.ptxas = old;
  const Result<std::shared_ptr<const Assembler>> found = findAssembler(search);
  ASSERT_TRUE(found.ok()) << found.status().toString();
  const std::string large = kernel("7.0", "sm_80") + "//" + std::string(1 << 16, 'x') + "\n";
  Result<AssembledModule> made = (*found)->assemble(large, "sm_80");
  ASSERT_TRUE(made.ok()) << made.status().toString();
  EXPECT_EQ(made->assembler, "nvJitLink");
  made = (*found)->assemble(spilling(), "sm_80");
  ASSERT_TRUE(made.ok()) << made.status().toString();
  EXPECT_FALSE(made->isTrusted());
  EXPECT_NE(made->doubt.find("had no register left"), std::string::npos) << made->doubt;
  EXPECT_NE(made->doubt.find("does not know the arch"), std::string::npos) << made->doubt; // why it is not ptxas's
  for (const bool isLarge : {false, true}) {
    made = (*found)->assemble("nonsense" + std::string(isLarge ? 1 << 16 : 0, ' '), "sm_80");
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().message().find("does not know the arch") != std::string::npos, isLarge)
        << made.status().message();
  }
}

TEST(RegisterLimit, WhatAThreadCanHave) {
  EXPECT_EQ(registerLimit(""), 255u);
  EXPECT_EQ(registerLimit(".entry k()\n.reqntid 256\n{"), 255u);
  EXPECT_EQ(registerLimit(".reqntid 512"), 128u);
  EXPECT_EQ(registerLimit(".maxntid 32, 4, 4\n{"), 128u);
  EXPECT_EQ(registerLimit(".maxntid 384\n.minnctapersm 1\n"), 168u);
  EXPECT_EQ(registerLimit(".reqntid 128\n.minnctapersm 3\n"), 168u);
  EXPECT_EQ(registerLimit(".maxnreg 40"), 40u);
  EXPECT_EQ(registerLimit(".reqntid\n 288"), 168u); // as of 12 warps: three for each quarter
  EXPECT_EQ(registerLimit(".reqntid 544"), 96u);
  EXPECT_EQ(registerLimit(".reqntid 128 {} .reqntid 1024"), 64u); // of two kernels the less
  EXPECT_EQ(registerLimit(".maxnreg 100 {} .maxnreg 24"), 24u);
  for (const char *text : {".reqntid", ".reqntid x", ".reqntid 0", ".maxntid ,", ".minnctapersm 4294967295 .maxntid 7",
                           ".maxntid 4294967295, 4294967295, 4294967295", ".maxnreg 99999999999"})
    EXPECT_LE(registerLimit(text), 255u) << text;
}

/// The assembler's own limit, of kernels that would take more.
TEST_P(EachAssembler, HasTheRegisterLimit) {
  for (const unsigned threads : {544u, 672u, 800u, 928u, 1024u}) {
    const std::string text = spillingBlock(threads);
    const Result<AssembledModule> made = assembler->assemble(text, "sm_80");
    ASSERT_TRUE(made.ok()) << made.status().toString();
    const KernelResources *many = made->resources.find("many");
    ASSERT_TRUE(many);
    EXPECT_LE(many->registers, registerLimit(text)) << threads;
    EXPECT_TRUE(ranOutOfRegisters(text, made->resources)) << threads << ": " << many->registers;
  }
}

TEST(RegisterLimit, SpillsOrTheLastRegisters) {
  const auto report = [](std::uint32_t registers, std::optional<std::uint32_t> spilled, std::uint32_t stack) {
    KernelResources k;
    k.name = "k", k.registers = registers;
    k.spillStoreBytes = k.spillLoadBytes = spilled, k.stackBytes = stack;
    return ResourceReport{{k}};
  };
  EXPECT_FALSE(ranOutOfRegisters(".reqntid 512", report(120, 0, 0)));
  EXPECT_FALSE(ranOutOfRegisters(".reqntid 512", report(120, 0, 64))); // an array of its own
  EXPECT_TRUE(ranOutOfRegisters(".reqntid 512", report(120, 4, 8)));
  EXPECT_TRUE(ranOutOfRegisters(".reqntid 512", report(128, 0, 0)));
  EXPECT_TRUE(ranOutOfRegisters(".reqntid 512", report(121, 0, 0)));
  EXPECT_TRUE(ranOutOfRegisters(".reqntid 512", report(0, 0, 0))); // not told
  EXPECT_TRUE(ranOutOfRegisters(".reqntid 512", {}));
  EXPECT_TRUE(ranOutOfRegisters("", report(254, 0, 0)));
  EXPECT_TRUE(ranOutOfRegisters("", report(100, std::nullopt, 8))); // the log says nothing of spills
  EXPECT_FALSE(ranOutOfRegisters("", report(100, std::nullopt, 0)));
}

TEST(Assembler, NoneIsAClearMessage) {
  AssemblerSearch nothing;
  nothing.nvJitLink = "/no/such/libnvJitLink.so";
  nothing.ptxas = "/no/such/ptxas";
  Result<std::shared_ptr<const Assembler>> found = findAssembler(nothing);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), StatusCode::NotFound);
  EXPECT_NE(found.status().message().find("/no/such/libnvJitLink.so"), std::string::npos) << found.status().toString();
  EXPECT_NE(found.status().message().find("/no/such/ptxas"), std::string::npos);
  EXPECT_FALSE(found.status().remedy().empty());
  nothing.nvJitLink = KILN_BINARY_DIR "/tests/kiln-codegen-test-child"; // no library
  nothing.ptxas = "/bin/true";                                          // a program that is no ptxas
  EXPECT_FALSE(findAssembler(nothing).ok());
  std::vector<std::string> notes;
  EXPECT_TRUE(listAssemblers(nothing, notes).empty());
  EXPECT_EQ(notes.size(), 2u);
}

TEST(Assembler, UnwritableFolderIsAnError) {
  AssemblerSearch search;
  search.nvJitLink = "none";
  search.temporaryDirectory = "/no/such/folder";
  Result<std::shared_ptr<const Assembler>> found = findAssembler(search);
  if (!found.ok())
    GTEST_SKIP() << found.status().toString();
  Result<AssembledModule> made = (*found)->assemble(kernel("7.0", "sm_80"), "sm_80");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::IoError);
  EXPECT_NE(made.status().message().find("/no/such/folder"), std::string::npos);
}
