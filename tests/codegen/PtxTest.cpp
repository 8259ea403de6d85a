#include "CodegenHarness.h"
#include "compiler/codegen/Assembler.h"
#include "kiln/Device.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

std::size_t count(std::string_view text, std::string_view piece) {
  std::size_t n = 0;
  for (std::size_t at = text.find(piece); at != std::string_view::npos; at = text.find(piece, at + piece.size()))
    ++n;
  return n;
}

/// Runs `ptx`'s kernel `add` on the emulator of `target` and compares with the host's sums, bit for bit.
void runAdd(std::string_view target, const std::string &ptx, std::uint32_t n) {
  SCOPED_TRACE(std::string(target) + ", n = " + std::to_string(n));
  Result<std::unique_ptr<Device>> device = openDevice("emulator:" + std::string(target));
  ASSERT_TRUE(device.ok()) << device.status().toString();
  std::mt19937 random(n);
  std::uniform_real_distribution<float> values(-100, 100);
  constexpr std::uint32_t guard = 64; // elements after the end, which must stay poisoned
  std::vector<float> x(n), y(n), out(n + guard), poison(n + guard, -12345.5f);
  for (std::uint32_t i = 0; i < n; ++i)
    x[i] = values(random), y[i] = values(random);
  auto upload = [&](const std::vector<float> &data, const char *label) {
    auto buffer = (*device)->allocate(data.size() * 4, label);
    EXPECT_TRUE(buffer.ok() && (*buffer)->copyFromHost(0, std::as_bytes(std::span(data))).ok());
    return std::move(*buffer);
  };
  auto bx = upload(x, "x"), by = upload(y, "y"), bo = upload(poison, "out");
  auto module = (*device)->loadPtx(ptx);
  ASSERT_TRUE(module.ok()) << module.status().toString();
  auto kernel = (*module)->kernel("add");
  ASSERT_TRUE(kernel.ok()) << kernel.status().toString();
  struct {
    std::uint64_t x, y, out;
    std::uint32_t n;
  } arguments = {bx->address(), by->address(), bo->address(), n};
  LaunchConfig launch;
  launch.grid = {(n + 127) / 128, 1, 1};
  launch.block = {128, 1, 1};
  std::span<const std::byte> bytes = std::as_bytes(std::span(&arguments, 1)).first((*kernel)->info().parameterBytes);
  Status ran = (*kernel)->launch(launch, bytes);
  ASSERT_TRUE(ran.ok()) << ran.toString();
  for (const Finding &finding : (*device)->takeFindings())
    EXPECT_TRUE(finding.note) << finding.toString();
  ASSERT_TRUE(bo->copyToHost(0, std::as_writable_bytes(std::span(out))).ok());
  for (std::uint32_t i = 0; i < n; ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(x[i] + y[i])) << "element " << i;
  for (std::uint32_t i = n; i < n + guard; ++i)
    ASSERT_EQ(out[i], poison[i]) << "element " << i << " of " << n;
}

class EveryTarget : public testing::TestWithParam<std::string_view> {};

} // namespace

TEST_P(EveryTarget, AddRunsOnTheEmulator) {
  Emitted made = emit(sample("add.mlir"), GetParam());
  ASSERT_TRUE(made.ok) << made.text();
  EXPECT_NE(made.ptx.find(".target " + std::string(GetParam()) + "\n"), std::string::npos) << made.ptx.substr(0, 200);
  EXPECT_NE(made.ptx.find(".version " + made.isaText + "\n"), std::string::npos);
  const unsigned isa = (*findTarget(GetParam()))->ptxIsa;
  EXPECT_EQ(made.isaText, std::to_string(isa / 10) + "." + std::to_string(isa % 10))
      << "add needs no more than the target";
  for (std::uint32_t n : {1u, 31u, 1000u, 4097u})
    runAdd(GetParam(), made.ptx, n);
}

TEST_P(EveryTarget, KernelsAssemble) {
  Result<std::shared_ptr<const Assembler>> assembler = findAssembler();
  if (!assembler.ok())
    GTEST_SKIP() << assembler.status().toString();
  for (const char *name : {"add", "mirror"})
    for (bool lineInfo : {false, true}) {
      EmitOptions options;
      options.lineInfo = lineInfo;
      Emitted made = emit(sample(std::string(name) + ".mlir"), GetParam(), options);
      ASSERT_TRUE(made.ok) << made.text();
      Result<AssembledModule> cubin = (*assembler)->assemble(made.ptx, GetParam(), {.lineInfo = lineInfo});
      if (!cubin.ok() && cubin.status().code() == StatusCode::Unsupported)
        GTEST_SKIP() << cubin.status().toString();
      ASSERT_TRUE(cubin.ok()) << cubin.status().toString() << "\n" << made.ptx;
      EXPECT_TRUE(cubin->warnings.empty()) << cubin->warnings.front();
      const KernelResources *kernel = cubin->resources.find(name);
      ASSERT_TRUE(kernel);
      EXPECT_GT(kernel->registers, 4u);
      EXPECT_EQ(kernel->stackBytes, 0u);
      EXPECT_EQ(kernel->spillStoreBytes, 0u);
      EXPECT_EQ(kernel->sharedBytes >= 512, name == std::string_view("mirror"));
    }
}

INSTANTIATE_TEST_SUITE_P(Ptx, EveryTarget, testing::ValuesIn([] {
                           std::vector<std::string_view> names;
                           for (const Target &target : allTargets())
                             names.push_back(target.name);
                           return names;
                         }()),
                         [](const auto &info) { return std::string(info.param); });

TEST(Ptx, UnknownTargetNamesThoseThatExist) {
  Emitted made = emit(sample("add.mlir"), "sm_42");
  EXPECT_FALSE(made.ok);
  for (const Target &target : allTargets())
    EXPECT_NE(made.contained.message().find(target.name), std::string::npos) << made.contained.toString();
}

TEST(Ptx, ForeignOperationIsADiagnostic) {
  Emitted made = emit("module {\nllvm.func @k() attributes {nvvm.kernel} {\n"
                      "\"builtin.unrealized_conversion_cast\"() : () -> i32\nllvm.return\n}\n}\n",
                      "sm_80");
  EXPECT_TRUE(made.contained.ok()) << made.contained.toString();
  EXPECT_FALSE(made.ok);
  EXPECT_FALSE(made.diagnostics.empty());
}

TEST(Ptx, LlvmIrBeforeAndAfterO3OnRequest) {
  EmitOptions keep;
  keep.keepLlvmIr = true;
  Emitted with = emit(sample("mirror.mlir"), "sm_90a", keep), without = emit(sample("mirror.mlir"), "sm_90a");
  ASSERT_TRUE(with.ok && without.ok) << with.text();
  EXPECT_EQ(with.ptx, without.ptx);
  EXPECT_TRUE(without.llvmBeforeO3.empty() && without.llvmAfterO3.empty());
  for (const std::string *text : {&with.llvmBeforeO3, &with.llvmAfterO3}) {
    EXPECT_NE(text->find("target triple = \"nvptx64-nvidia-cuda\""), std::string::npos);
    EXPECT_NE(text->find("ptx_kernel void @mirror"), std::string::npos);
    EXPECT_NE(text->find("p3:32:32"), std::string::npos) << "the data layout of short shared pointers";
  }
  EXPECT_NE(with.llvmBeforeO3, with.llvmAfterO3);
}

TEST(Ptx, SharedAddressesAre32Bit) {
  Emitted made = emit(sample("mirror.mlir"), "sm_80");
  ASSERT_TRUE(made.ok) << made.text();
  EXPECT_NE(made.ptx.find("st.shared.b32 \t[%r"), std::string::npos) << made.ptx;
  EXPECT_EQ(made.ptx.find("cvta"), std::string::npos) << made.ptx;
}

TEST(Ptx, CountsBarriersAndSharedObjectsBeforeO3) {
  Emitted made = emit(sample("mirror.mlir"), "sm_80");
  ASSERT_TRUE(made.ok) << made.text();
  EXPECT_EQ(made.counts, (LlvmCounts{.blockBarriers = 2, .warpBarriers = 0, .clusterBarriers = 0, .sharedObjects = 1}));
  made = emit(sample("add.mlir"), "sm_80");
  EXPECT_EQ(made.counts, LlvmCounts{});
  made = emit(
      kernelWith("%m = llvm.mlir.constant(-1 : i32) : i32\n%i = llvm.mlir.constant(1 : i32) : i32\n"
                 "%t = llvm.mlir.constant(64 : i32) : i32\nnvvm.bar.warp.sync %m : i32\n"
                 "nvvm.barrier id = %i number_of_threads = %t\nnvvm.barrier.arrive id = %i number_of_threads = %t\n"
                 "nvvm.cluster.arrive {aligned}\nnvvm.cluster.wait {aligned}"),
      "sm_90");
  ASSERT_TRUE(made.ok) << made.text();
  EXPECT_EQ(made.counts, (LlvmCounts{.blockBarriers = 2, .warpBarriers = 1, .clusterBarriers = 2, .sharedObjects = 0}));
}

// O3 threads the second branch through the barrier unless the assembly is convergent: then two barriers stand in arms
// that different lanes take.
TEST(Ptx, InlineAssemblyBarrierIsNotDuplicated) {
  const std::string text = kernelWith(R"(
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %c7 = llvm.mlir.constant(7 : i32) : i32
    %low = llvm.icmp "slt" %tid, %c16 : i32
    llvm.cond_br %low, ^one, ^two
  ^one:
    llvm.store volatile %c7, %out : i32, !llvm.ptr<1>
    llvm.br ^two
  ^two:
    llvm.inline_asm has_side_effects asm_dialect = att "bar.sync 0;", "~{memory}" : () -> ()
    llvm.cond_br %low, ^three, ^four
  ^three:
    llvm.store volatile %c16, %out : i32, !llvm.ptr<1>
    llvm.br ^four
  ^four:)");
  EmitOptions keep;
  keep.keepLlvmIr = true;
  Emitted made = emit(text, "sm_80", keep);
  ASSERT_TRUE(made.ok) << made.text();
  EXPECT_EQ(count(made.ptx, "bar.sync"), 1u) << made.ptx;
  EXPECT_NE(made.llvmBeforeO3.find("convergent nounwind"), std::string::npos) << made.llvmBeforeO3;
}

// Translation alone drops the predicate silently; the NVVM-to-LLVM step makes it part of the instruction.
TEST(Ptx, PredicateOperandsSurvive) {
  Emitted made = emit("module {\nllvm.mlir.global internal @bar() {addr_space = 3 : i32, alignment = 8 : i64} : i64\n"
                      "llvm.func @k(%p: i1) attributes {nvvm.kernel} {\n%b = llvm.mlir.addressof @bar : !llvm.ptr<3>\n"
                      "%n = llvm.mlir.constant(1 : i32) : i32\n"
                      "nvvm.mbarrier.init %b, %n, predicate = %p : !llvm.ptr<3>, i32, i1\nllvm.return\n}\n}\n",
                      "sm_80");
  ASSERT_TRUE(made.ok) << made.text();
  const std::size_t at = made.ptx.find("mbarrier.init");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(
      made.ptx[made.ptx.rfind('\n', at) + 1 + made.ptx.substr(made.ptx.rfind('\n', at) + 1).find_first_not_of("\t ")],
      '@')
      << made.ptx;
}

TEST(Ptx, MultiplyAndAddFuseWhereBothAllowIt) {
  auto body = [](const char *flags) {
    const std::string f = flags;
    return kernelWith(
        "%a = llvm.load volatile %out : !llvm.ptr<1> -> f32\n%b = llvm.load volatile %out : !llvm.ptr<1> -> f32\n"
        "%m = llvm.fmul %a, %b " +
        f + ": f32\n%s = llvm.fadd %m, %a " + f +
        ": f32\n"
        "llvm.store %s, %out : f32, !llvm.ptr<1>");
  };
  Emitted fused = emit(body("{fastmathFlags = #llvm.fastmath<contract>} "), "sm_80"), plain = emit(body(""), "sm_80");
  ASSERT_TRUE(fused.ok && plain.ok) << fused.text() << plain.text();
  EXPECT_EQ(count(fused.ptx, "fma.rn.f32"), 1u);
  EXPECT_EQ(count(plain.ptx, "fma.rn.f32"), 0u);
  EXPECT_EQ(count(plain.ptx, "mul.rn.f32"), 1u);
}
