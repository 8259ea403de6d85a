#include "kernels/attention_decode/AttentionDecodeTiling.h"

#include "kernels/support/Grid.h"

#include <algorithm>
#include <bit>
#include <span>

namespace kiln::kernels {
namespace {

/// For up to so many rows and columns.
struct Tiles {
  int rows, widest, blockM, blockN, warps;
  bool isAlone = false; ///< on a multiprocessor; else two programs are to share it: one copies while the other waits
};
constexpr int any = 1 << 29;

/// 16 rows a warp where there are 64 or more; fewer are shared out by keys and columns.  None spills registers on sm_80
/// and sm_90 (tests/kernels/AssembleTest.cpp).
constexpr Tiles choices[] = {
    {16, 128, 16, 64, 4}, {32, 128, 32, 32, 4}, {64, 128, 64, 64, 4}, {any, 128, 128, 64, 8}, {any, 256, 64, 32, 4}};
/// Where warpgroups multiply.  One program of two of them keeps a multiprocessor's copies going by itself, with twice
/// the keys waits half as often, and has enough in flight with two steps (an H200, 16 tokens of 8 heads over 8k
/// keys: 4.06 TB/s, with three 3.32).
constexpr Tiles warpgroupChoices[] = {{16, 128, 16, 64, 4}, {16, 256, 16, 32, 4},          {32, 128, 32, 64, 4},
                                      {64, 128, 64, 64, 4}, {any, 128, 128, 128, 8, true}, {any, 256, 64, 32, 8}};

std::int64_t bytesOfStage(const AttentionDecodeConfig &c, DType element) {
  return static_cast<std::int64_t>(dtypeBytes(element)) * c.blockN * (c.dim + c.dimV);
}
std::int64_t bytesOfQueries(const AttentionDecodeConfig &c, DType element) {
  return static_cast<std::int64_t>(dtypeBytes(element)) * c.blockM * c.dim;
}

/// Besides keys and values: q, which goes through shared memory once more if columns side by side are rotated, and new
/// rows that are.
std::int64_t bytesOfRows(const AttentionDecodeConfig &c, DType element) {
  const std::int64_t queries = bytesOfQueries(c, element);
  return c.rotary == 0 ? queries
                       : queries + (c.pairs == RotaryPairs::Neighbours ? queries : 0) +
                             2 * static_cast<std::int64_t>(c.blockNew) * c.dim;
}

} // namespace

void chooseDecodeTiles(AttentionDecodeConfig &c, const DecodeExtent &extent, const Target &code, const Target &device) {
  const int wide = std::max(c.dim, c.dimV);
  const std::span<const Tiles> all =
      code.has(Capability::Wgmma) ? std::span<const Tiles>(warpgroupChoices) : std::span<const Tiles>(choices);
  const auto chosen =
      std::ranges::find_if(all, [&](const Tiles &t) { return extent.rows <= t.rows && wide <= t.widest; });
  c.blockM = chosen->blockM, c.blockN = chosen->blockN, c.warps = chosen->warps;
  if (extent.newTokens > 0)
    c.blockNew = static_cast<int>(std::clamp<std::uint64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent.newTokens)),
                                                            16, static_cast<std::uint64_t>(c.blockN)));
  const std::int64_t most = std::min(code.sharedOptIn, device.sharedOptIn);
  const int least = code.has(Capability::CpAsync) ? 2 : 1; // steps in flight
  while (c.blockM > 16 && bytesOfRows(c, extent.element) + least * bytesOfStage(c, extent.element) > most)
    c.blockM /= 2;
  const std::int64_t room = std::min<std::int64_t>(most, device.sharedPerSm / 2 - device.sharedReserved);
  c.stages = least == 1 || chosen->isAlone
                 ? least
                 : static_cast<int>(std::clamp<std::int64_t>(
                       (room - bytesOfQueries(c, extent.element)) / bytesOfStage(c, extent.element), least, 4));
}

bool copiesWholeBlocks(const AttentionDecodeConfig &c, const Target &code) {
  return code.has(Capability::Tma) && code.has(Capability::Wgmma) && c.warps >= 8 && c.blockM >= 16 * c.warps &&
         c.place == CachePlace::Rows && !c.leftPad;
}

std::int64_t chooseSplits(const AttentionDecodeConfig &c, DType element, std::int64_t programs, std::int64_t keys,
                          const Target &device, std::int64_t multiprocessors) {
  // What beginning and ending a program costs, and the second launch, in blocks of keys.
  constexpr std::int64_t ofProgram = 2, ofCombine = 2;
  const std::int64_t shared = bytesOfQueries(c, element) + c.stages * bytesOfStage(c, element);
  const std::int64_t resident =
      residentBlocks(device, static_cast<unsigned>(c.warps) * 32, static_cast<std::uint64_t>(shared), 128);
  const std::int64_t slots = std::max<std::int64_t>(1, multiprocessors) * std::max<std::int64_t>(1, resident);
  const std::int64_t blocks = std::max<std::int64_t>(1, ceilDiv(keys, c.blockN));
  const auto costOf = [&](std::int64_t splits) {
    return ceilDiv(programs * splits, slots) * (ceilDiv(blocks, splits) + ofProgram) + (splits > 1 ? ofCombine : 0);
  };
  std::int64_t best = 1;
  for (std::int64_t n = 2; n <= std::min<std::int64_t>(blocks, SplitCombineConfig::mostSplits); ++n)
    if (costOf(n) < costOf(best))
      best = n;
  return best;
}

void chooseCombineTiles(SplitCombineConfig &c, std::int64_t splits, std::int64_t rows) {
  constexpr int elements = 2048; // of a step: 16 a thread
  const int most = std::max(1, elements / static_cast<int>(std::bit_ceil(static_cast<unsigned>(c.dimV))));
  c.splits = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(splits)));
  c.step = std::min(c.splits, most);
  c.rows = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(most / c.step),
                                                    std::bit_ceil(static_cast<std::uint64_t>(rows))));
}

} // namespace kiln::kernels
