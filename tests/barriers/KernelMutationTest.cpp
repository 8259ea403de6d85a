// Each barrier of matmul, of attention and of a chunk kernel (a loop that stores) is changed, as it stands in the
// kernel that runs.  The emulator, which shares nothing with the proof, must report every mutant that verify-barriers
// rejects (loops run so many rounds that every counter-example is executed) and none that it accepts; insert-barriers
// must mend every rejected one.
#include "tests/barriers/BarrierMutants.h"

#include "compiler/language/Language.h"
#include "kernels/attention/Attention.h"
#include "kernels/dplr/Dplr.h"
#include "kernels/matmul/Matmul.h"
#include "tests/lowering/LoweringHarness.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>
#include <map>

#include <cmath>

namespace kiln::test {
namespace {

using namespace mlir;
using kernels::AttentionConfig;
using kernels::MatmulConfig;
using language::ElementType;

constexpr const char *targets[] = {"sm_75", "sm_80", "sm_90a", "sm_120a"};

/// A call's arguments, given the addresses of the inputs and of the output.
using Arguments = std::function<std::vector<Argument>(const std::vector<const Buffer *> &, const Buffer &)>;

/// A kernel, and a call of it.
struct Subject {
  std::string name;
  language::Kernel kernel;
  SpecializeFacts facts;
  Dim3 grid;
  std::vector<std::size_t> inputs; ///< elements of each, f16 and random
  std::size_t output;              ///< elements, f32
  Arguments arguments;
  std::vector<Arguments> moreArguments = {}; ///< of other calls, of the same or fewer elements
  bool pipelined = true;                     ///< has loops whose loads are staged
  /// The proof takes some reads for more than they are: a gather's for every byte, those of the only warpgroup for
  /// reads that other warps may still be in.
  bool coarse = false;
};

/// `aligned`: strides allow copies of 16 bytes.
using Role = language::TensorPart::Role;

/// Dense, aligned tensors: all pointers, and (`aligned`) the strides of those that are there but the last.
std::vector<std::string> divisibleFacts(const language::Kernel &kernel, bool aligned) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < kernel.arguments().size(); ++i)
    if (const auto &part = kernel.arguments()[i].part)
      if (part->role == Role::Pointer ||
          (aligned && part->role == Role::Stride && part->dim + 1 < part->rank && !part->optional))
        out.push_back(std::to_string(i) + "=16");
  return out;
}
/// The strides of the last dimensions.
std::vector<std::string> unitFacts(const language::Kernel &kernel) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < kernel.arguments().size(); ++i)
    if (const auto &part = kernel.arguments()[i].part; part && part->role == Role::Stride && !part->optional)
      if (part->dim + 1 == part->rank)
        out.push_back(std::to_string(i) + "=1");
  return out;
}

struct Whole {
  Argument address;
  std::vector<std::int64_t> extents, strides;
};
/// In the kernel's order; tensors that are not given are not there.
std::vector<Argument> argumentsOf(const language::Kernel &kernel, const std::map<std::string, Whole> &tensors,
                                  const std::map<std::string, Argument> &numbers) {
  std::vector<Argument> out;
  for (const auto &a : kernel.arguments()) {
    if (!a.part) {
      out.push_back(numbers.at(a.name));
      continue;
    }
    const auto found = tensors.find(a.part->tensor);
    const auto d = static_cast<std::size_t>(a.part->dim);
    if (found == tensors.end())
      out.push_back(std::int64_t(0));
    else if (a.part->role == Role::Pointer)
      out.push_back(found->second.address);
    else
      out.push_back(a.part->role == Role::Extent ? found->second.extents[d] : found->second.strides[d]);
  }
  return out;
}

Subject matmulOf(const char *target, bool aligned) {
  const std::int64_t M = 128, N = 128, K = 96;
  MatmulConfig c;
  Subject s{"matmul", kernels::matmul(ElementType::F16, ElementType::F32, c), {target, "matmul", {}, {}}, {}, {}, 0,
            {}};
  s.facts.divisible = divisibleFacts(s.kernel, aligned);
  s.facts.equals = unitFacts(s.kernel);
  s.inputs = {std::size_t(M * K), std::size_t(K * N)};
  s.output = std::size_t(M * N);
  s.arguments = [=, kernel = s.kernel](const std::vector<const Buffer *> &in, const Buffer &out) {
    return argumentsOf(kernel,
                       {{"a", {*in[0], {1, M, K}, {M * K, K, 1}}},
                        {"b", {*in[1], {1, K, N}, {K * N, N, 1}}},
                        {"out", {out, {1, M, N}, {M * N, N, 1}}}},
                       {{"scale", 1.0f}, {"splits", std::int64_t(1)}});
  };
  return s;
}

Subject attentionOf(const char *target, bool aligned, int warps) {
  // An odd number of rounds without a mask: the last one reads the slot that the next loop's first copy writes.
  const std::int64_t S = 256, keys = S + 64, D = 64;
  AttentionConfig c;
  c.dim = c.dimV = static_cast<int>(D);
  c.right = true; // a loop without a mask, and one with
  c.lse = true;
  c.warps = warps;
  Subject s{"attention", kernels::attention(ElementType::F16, c), {target, "attention", {}, {}}, {}, {}, 0, {}};
  s.facts.divisible = divisibleFacts(s.kernel, aligned);
  s.facts.equals = unitFacts(s.kernel);
  s.grid = {2};
  s.inputs = {std::size_t(S * D), std::size_t(keys * D), std::size_t(keys * D)};
  s.output = std::size_t(S * D); // o, of f16, in the first half; then lse
  const auto withKeys = [=, kernel = s.kernel](std::int64_t keys) {
    return [=](const std::vector<const Buffer *> &in, const Buffer &out) {
      return argumentsOf(kernel,
                         {{"q", {*in[0], {1, S, 1, 1, D}, {S * D, D, D, D, 1}}},
                          {"k", {*in[1], {1, keys, 1, D}, {keys * D, D, D, 1}}},
                          {"v", {*in[2], {1, keys, 1, D}, {keys * D, D, D, 1}}},
                          {"o", {out, {1, S, 1, 1, D}, {S * D, D, D, D, 1}}},
                          {"lse", {std::uint64_t(out.address() + 2 * S * D), {1, 1, S}, {S, S, 1}}}},
                         {{"queries", static_cast<std::int32_t>(S)},
                          {"window_left", std::int32_t(-1)},
                          {"window_right", std::int32_t(0)},
                          {"scale", 1 / std::sqrt(static_cast<float>(D))},
                          {"cap", 0.0f}});
    };
  };
  s.arguments = withKeys(keys);
  // An even number, and few keys: the result's scratch lies where the last round of all reads.
  s.moreArguments = {withKeys(S), withKeys(S - 64), withKeys(128)};
  return s;
}

Subject attentionOf16Rows(const char *target, bool aligned) {
  return attentionOf(target, aligned, 8);
}
Subject attentionOf32Rows(const char *target, bool aligned) {
  return attentionOf(target, aligned, 4);
}

/// Linear attention by chunks: o = q S + tril(q k^T) v, S += k^T v; a round stores its o.  v is only added up: one copy
/// for a product and one for elementwise work.
Subject chunksOf(const char *target, bool aligned) {
  namespace kl = language;
  constexpr int C = 32, D = 32;
  const std::int64_t tokens = 150; // the fifth chunk ends outside
  Subject s{"chunks",
            kl::kernel("chunks", {.warps = 4, .stages = 2},
                       [&](kl::Arg<kl::Pointer<kl::f16>, "q"> q, kl::Arg<kl::Pointer<kl::f16>, "k"> k,
                           kl::Arg<kl::Pointer<kl::f16>, "v"> v, kl::Arg<kl::Pointer<kl::f32>, "o"> o,
                           kl::Arg<kl::i64, "row_stride"> stride, kl::Arg<kl::i32, "tokens"> rows) {
                         const auto view = [&](const auto &p) {
                           return kl::makeView(p, {rows, D}, {stride, 1}, {C, D});
                         };
                         const auto Q = view(q), K = view(k), V = view(v);
                         const auto O = view(o);
                         const auto i = kl::expandDims(kl::range(0, C), 1), j = kl::expandDims(kl::range(0, C), 0);
                         (void)kl::loop(kl::over(0, rows, C), kl::zeros<kl::f32>({D, D}), [&](auto t, auto S) {
                           const auto qt = kl::loadView(Q, {t, 0}), kt = kl::loadView(K, {t, 0});
                           const auto vt = kl::loadView(V, {t, 0});
                           auto A = kl::dot(qt, kl::transpose(kt), kl::zeros<kl::f32>({C, C}));
                           A = kl::select(i >= j, A, 0.0f);
                           auto out = kl::dot(qt, kl::cast<kl::f16>(S), kl::cast<kl::f32>(vt));
                           out = kl::dot(kl::cast<kl::f16>(A), vt, out);
                           kl::storeView(O, {t, 0}, out);
                           return kl::dot(kl::transpose(kt), vt, S);
                         });
                       }),
            {target, "chunks", {"0=16", "1=16", "2=16", "3=16"}, {}},
            {},
            {},
            0,
            {}};
  if (aligned)
    s.facts.divisible.push_back("4=16");
  s.inputs.assign(3, std::size_t(tokens * D));
  s.output = std::size_t(tokens * D);
  s.arguments = [=](const std::vector<const Buffer *> &in, const Buffer &out) -> std::vector<Argument> {
    return {*in[0], *in[1], *in[2], out, std::int64_t(D), static_cast<std::int32_t>(tokens)};
  };
  return s;
}

/// Two products, the second of the first and of a tile that both read: by warpgroups where the target has them.  Two of
/// them: one alone has read its operands when any of its warps goes on, which the proof does not know.
Subject warpgroupsOf(const char *target, bool aligned) {
  namespace kl = language;
  constexpr int D = 64;
  Subject s{"warpgroups",
            kl::kernel("warpgroups", {.warps = 8},
                       [&](kl::Arg<kl::Pointer<kl::f16>, "a"> a, kl::Arg<kl::Pointer<kl::f16>, "b"> b,
                           kl::Arg<kl::Pointer<kl::f16>, "c"> c, kl::Arg<kl::Pointer<kl::f32>, "o"> o,
                           kl::Arg<kl::i64, "row_stride"> stride, kl::Arg<kl::i32, "rows"> rows) {
                         const auto view = [&](const auto &p) {
                           return kl::makeView(p, {rows, D}, {stride, 1}, {D, D});
                         };
                         const auto A = kl::loadView(view(a), {0, 0}), B = kl::loadView(view(b), {0, 0}),
                                    C = kl::loadView(view(c), {0, 0});
                         const auto X = kl::cast<kl::f16>(kl::dot(A, kl::transpose(B), kl::cast<kl::f32>(C)));
                         kl::storeView(view(o), {0, 0}, kl::dot(kl::transpose(X), B, kl::zeros<kl::f32>({D, D})));
                       }),
            {target, "warpgroups", {"0=16", "1=16", "2=16", "3=16"}, {}},
            {},
            {},
            0,
            {}};
  s.pipelined = false;
  if (aligned)
    s.facts.divisible.push_back("4=16");
  s.inputs.assign(3, std::size_t(D * D));
  s.output = std::size_t(D * D);
  s.arguments = [=](const std::vector<const Buffer *> &in, const Buffer &out) -> std::vector<Argument> {
    return {*in[0], *in[1], *in[2], out, std::int64_t(D), std::int32_t(D)};
  };
  return s;
}

/// A chunk of DPLR as a map of the state, and the gradients of one: straight code with tens of barriers.
Subject chunkOfDplr(const char *target, bool gradients) {
  constexpr std::int64_t C = 64, K = 64, rows = C * K;
  kernels::DplrConfig c;
  c.chunk = C, c.dim = c.dimV = K;
  c.gates = ElementType::F16;
  c.bounded = true; // one of the two ways
  Subject s{gradients ? "dplr_grads" : "dplr_maps",
            gradients ? kernels::dplrGrads(ElementType::F16, c) : kernels::dplrMaps(ElementType::F16, c),
            {target, gradients ? "dplr_grads" : "dplr_maps", {}, {}},
            {},
            {},
            0,
            {}};
  s.pipelined = false, s.coarse = true;
  s.facts.divisible = divisibleFacts(s.kernel, true);
  s.facts.equals = unitFacts(s.kernel);
  const std::vector<const char *> inputs{"q", "k", "v", "a", "b", "g", "do", "h", "dh", "y", "written"};
  s.inputs.assign(inputs.size(), std::size_t(rows));
  s.output = std::size_t(4 * rows); // each result has rows halves of f16, or decay
  s.arguments = [=, kernel = s.kernel](const std::vector<const Buffer *> &in, const Buffer &out) {
    std::map<std::string, Whole> tensors;
    const auto put = [&](const char *name, const Argument &address, bool bySlot) {
      tensors.emplace(name, bySlot ? Whole{address, {1, 1, C, K}, {rows, rows, K, 1}}
                                   : Whole{address, {1, C, 1, K}, {rows, K, K, 1}});
    };
    for (std::size_t i = 0; i < inputs.size(); ++i)
      put(inputs[i], *in[i], i >= 7);
    std::int64_t at = 0;
    for (const char *name : {"f", "rt", "qh", "oht", "dq", "dk", "da", "db", "dg"})
      put(name, std::uint64_t(out.address() + 2 * rows * (at++ % 6)), *name != 'd');
    tensors.emplace("decay", Whole{std::uint64_t(out.address() + 2 * rows * 6), {1, 1, K}, {K, K, 1}});
    return argumentsOf(kernel, tensors, {{"sequences", std::int32_t(1)}, {"scale", 1.0f}});
  };
  return s;
}
Subject mapsOfDplr(const char *target, bool) {
  return chunkOfDplr(target, false);
}
Subject gradientsOfDplr(const char *target, bool) {
  return chunkOfDplr(target, true);
}

struct Run {
  std::string finding;
  std::vector<std::uint32_t> bits;
};

/// Lowers and runs what stands in `module`.
Run run(const Subject &s, const char *target, ModuleOp module, const Arguments &arguments) {
  Run out;
  const LoweredKernel lower = lowered(BarrierHarness::text(module), target);
  if (!lower.ok) {
    ADD_FAILURE() << "does not lower: " << lower.errors;
    return out;
  }
  Emulator gpu(target);
  std::mt19937_64 random(3);
  std::vector<const Buffer *> inputs;
  for (const std::size_t n : s.inputs) {
    std::vector<std::uint16_t> halves(n); // of magnitude 0.5 to 1
    for (std::uint16_t &h : halves)
      h = static_cast<std::uint16_t>(0x3800 | (random() & 0x83ff));
    inputs.push_back(&gpu.upload(halves));
  }
  Buffer &output = gpu.allocate(4 * s.output);
  (void)output.poison(std::byte(0xCD));
  const Launched launched = gpu.run(lower.ptx, s.grid, {static_cast<std::uint32_t>(s.kernel.warps()) * 32},
                                    arguments(inputs, output), lower.sharedBytes, s.name);
  if (!launched.clean())
    out.finding = launched.text();
  out.bits = gpu.download<std::uint32_t>(output);
  return out;
}

struct Tally {
  unsigned mutants = 0, harmful = 0, unseen = 0;
};

/// Of the mutants every `stride`-th in the default tier; in full all of them, every sixth of what takes long.
void check(BarrierHarness &harness, const Subject &s, const char *target, bool aligned, unsigned &turn, Tally &tally,
           unsigned stride = 9) {
  SCOPED_TRACE(s.name + " on " + target + (aligned ? "" : ", not aligned"));
  ASSERT_TRUE(s.kernel.ok()) << s.kernel.status().toString();
  auto module = harness.parse(s.kernel.text());
  ASSERT_TRUE(module && harness.stage(*module, s.facts)) << harness.errors;
  const bool copies = BarrierHarness::text(*module).find("async_copy") != std::string::npos;
  EXPECT_EQ(copies, s.pipelined && aligned && (*findTarget(target))->has(Capability::CpAsync))
      << "loops are pipelined where copies can be";
  const Run right = run(s, target, *module, s.arguments);
  ASSERT_EQ(right.finding, "");
  const std::size_t barriers = BarrierHarness::barriers(*module).size();
  if (copies) // else operands may go straight to their fragments
    EXPECT_GT(barriers, 0u);
  // Programs have numbers from 0 on: the arm is not taken.
  const Condition never = [](OpBuilder &b, func::FuncOp f) -> Value {
    Value number = tile::ProgramIdOp::create(b, f.getLoc(), tile::Axis::X);
    Value zero = arith::ConstantOp::create(b, f.getLoc(), b.getI32IntegerAttr(0));
    return arith::CmpIOp::create(b, f.getLoc(), arith::CmpIPredicate::slt, number, zero);
  };
  forEachBarrierMutant(*module, never, [&](BarrierMutant &mutant) {
    if (turn++ % pick(stride, stride > 9 ? 6u : 1u) || testing::Test::HasFatalFailure())
      return;
    ++tally.mutants;
    const bool accepted = harness.verifies(*mutant.module);
    const bool missing = harness.insertAdds(*mutant.module);
    tally.harmful += !accepted;
    const std::string where =
        "barrier " + std::to_string(mutant.barrier) + " of " + std::to_string(barriers) + " " + mutant.what;
    if (!accepted)
      EXPECT_TRUE(missing) << "insert-barriers would leave it so: " << where;
    if (mutant.mustHarm)
      EXPECT_FALSE(accepted) << "a barrier without a use: " << where;
    Run ran = run(s, target, *mutant.module, s.arguments);
    // What is proved harmful may take another number of rounds to show.
    for (const Arguments &more : s.moreArguments)
      if (!accepted && ran.finding.empty())
        ran.finding = run(s, target, *mutant.module, more).finding;
    // The proof does not know that the condition of a round's copies and the end of the loop are one: it sees copies in
    // flight after the last round, where no run has any.
    if (!accepted && ran.finding.empty() && (s.coarse || mutant.what == "moved before the last wait")) {
      ++tally.unseen;
      return;
    }
    EXPECT_EQ(ran.finding.empty(), accepted) << where << "\n" << ran.finding;
    if (accepted)
      EXPECT_EQ(ran.bits, right.bits) << where;
  });
}

class KernelBarrierMutations : public testing::TestWithParam<std::size_t> {};

TEST_P(KernelBarrierMutations, TheProofAndTheEmulatorAgree) {
  BarrierHarness harness;
  unsigned turn = static_cast<unsigned>(GetParam()) * 5; // the sample of each target is another one
  for (const auto make : {matmulOf, attentionOf16Rows, attentionOf32Rows, chunksOf, warpgroupsOf}) {
    Tally tally;
    const char *target = targets[GetParam()];
    for (const bool aligned : {true, false}) // with copies, where there are any; without
      if (aligned || isFullTier() || GetParam() == 0)
        check(harness, make(target, aligned), target, aligned, turn, tally);
    const Subject subject = make(target, true);
    std::printf("  %s, %u warps: %u mutants, %u harmful, %u of them in no run\n", subject.name.c_str(),
                static_cast<unsigned>(subject.kernel.warps()), tally.mutants, tally.harmful, tally.unseen);
    EXPECT_GT(tally.mutants, tally.unseen);
  }
}

/// Where a chunk's products are of warps, and where they are of warpgroups.
TEST_P(KernelBarrierMutations, TheyAgreeOnChunksOfDplr) {
  const char *target = targets[GetParam()];
  if (std::string_view(target) != "sm_80" && std::string_view(target) != "sm_90a")
    GTEST_SKIP() << "sm_80 and sm_90a stand for all";
  BarrierHarness harness;
  for (const auto make : {mapsOfDplr, gradientsOfDplr}) {
    unsigned turn = static_cast<unsigned>(GetParam());
    Tally tally;
    const Subject subject = make(target, true);
    check(harness, subject, target, true, turn, tally, 24);
    std::printf("  %s, %u warps: %u mutants, %u harmful, %u of them in no run\n", subject.name.c_str(),
                static_cast<unsigned>(subject.kernel.warps()), tally.mutants, tally.harmful, tally.unseen);
    // Before products of a block's only warpgroup, and of gathers, the proof is coarser: 9 of 34 of all mutants of maps
    // on sm_90a (3 of 8 of the sample).
    const unsigned least = std::string_view(target) == "sm_90a" ? 2 : 4;
    EXPECT_GE(tally.harmful, least * tally.unseen) << "the proof is coarser than this test knows";
    EXPECT_GT(tally.harmful, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, KernelBarrierMutations, testing::Range<std::size_t>(0, std::size(targets)),
                         [](const auto &info) { return std::string(targets[info.param]); });

} // namespace
} // namespace kiln::test
