// Kernels of every width of a head exist on every target, for calls of more sequences and heads than multiprocessors:
// compiled, not run.
#include "kernels/dplr/DplrBackwardOperation.h"
#include "kernels/dplr/DplrOperation.h"
#include "runtime/jit/bench/NullDevice.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

namespace kiln::kernels {
namespace {

class DplrWidths : public testing::TestWithParam<const char *> {};

TEST_P(DplrWidths, CompileForManyHeads) {
  NullDevice device;
  device.about.target = *findTarget(GetParam());
  JitOptions options;
  options.knobs.compiler = KILN_BINARY_DIR "/bin/libkiln-compiler.so";
  options.diskCache = false;
  auto jit = Jit::create(device, options);
  ASSERT_TRUE(jit.ok()) << jit.status().toString();
  constexpr std::int64_t heads = 256;
  // Widths that divide tiles by 2^k and by 3 2^k; in the default tier the widest, of one operation a target.
  const std::string_view target = GetParam();
  const bool full = test::isFullTier(), deltaRule = target == "sm_80" || target == "sm_120a";
  const std::vector<std::int64_t> widths =
      full ? std::vector<std::int64_t>{16, 40, 64, 96, 128, 192, 256} : std::vector<std::int64_t>{256};
  for (const std::int64_t width : widths) {
    SCOPED_TRACE(width);
    const NullBuffer in(static_cast<std::size_t>(2 * heads * width)),
        gates(static_cast<std::size_t>(4 * heads * width));
    std::vector<std::unique_ptr<NullBuffer>> out;
    const std::initializer_list<std::int64_t> whole{1, 1, heads, width}, ofHeads{1, 1, heads};
    const auto made = [&](DType type, std::initializer_list<std::int64_t> shape) {
      out.push_back(std::make_unique<NullBuffer>(gates.size()));
      return *Tensor::dense(device, *out.back(), type, shape);
    };
    const auto result = [&](DType type) { return made(type, whole); };
    const Tensor x = *Tensor::dense(device, in, DType::BF16, whole),
                 g = *Tensor::dense(device, gates, DType::F32, whole);
    const Tensor ofHead = *Tensor::dense(device, gates, DType::F32, ofHeads);
    if (full || deltaRule) {
      const DeltaRuleOperation delta(**jit);
      const Status ofDelta =
          delta.prepare({.q = x, .k = x, .v = x, .beta = ofHead, .g = ofHead, .o = result(DType::BF16)});
      EXPECT_TRUE(ofDelta.ok()) << ofDelta.toString();
      const DeltaRuleBackwardOperation deltaBackward(**jit);
      const Status ofDeltaBack = deltaBackward.prepare({.q = x,
                                                        .k = x,
                                                        .v = x,
                                                        .beta = ofHead,
                                                        .g = ofHead,
                                                        .dO = x,
                                                        .dq = result(DType::BF16),
                                                        .dk = result(DType::BF16),
                                                        .dv = result(DType::BF16),
                                                        .dBeta = made(DType::F32, ofHeads),
                                                        .dg = made(DType::F32, ofHeads)});
      EXPECT_TRUE(ofDeltaBack.ok()) << ofDeltaBack.toString();
    }
    if (full || !deltaRule) {
      const Rwkv7Operation forward(**jit);
      const Status there = forward.prepare({.r = x, .w = g, .k = x, .v = x, .a = x, .b = x, .o = result(DType::BF16)});
      EXPECT_TRUE(there.ok()) << there.toString();
      const Rwkv7BackwardOperation backward(**jit);
      const Status back = backward.prepare({.q = x,
                                            .k = x,
                                            .v = x,
                                            .a = x,
                                            .b = x,
                                            .g = g,
                                            .dO = x,
                                            .dq = result(DType::BF16),
                                            .dk = result(DType::BF16),
                                            .dv = result(DType::BF16),
                                            .da = result(DType::BF16),
                                            .db = result(DType::BF16),
                                            .dg = result(DType::F32)});
      EXPECT_TRUE(back.ok()) << back.toString();
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Targets, DplrWidths, testing::Values("sm_75", "sm_80", "sm_90a", "sm_120a"),
                         [](const auto &target) { return std::string(target.param); });

} // namespace
} // namespace kiln::kernels
