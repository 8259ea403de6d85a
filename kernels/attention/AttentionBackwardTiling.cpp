#include "kernels/attention/AttentionBackwardTiling.h"

#include "kernels/attention/AttentionTiling.h"
#include "kernels/attention/QuerySums.h"
#include "kernels/attention/SumOrder.h"

#include <algorithm>
#include <span>

namespace kiln::kernels {
namespace {

/// Options that leave a thread the registers for a tile.  Mask: lists of blocks and a mask function, which is asked in
/// a branch; sums in an order, whose counters' addresses take registers.
enum class With : std::uint8_t { DropoutToo, All, Mask, Causal, None };

/// For heads of up to `widest` columns.
struct Tiles {
  int widest, blockM, blockN, warps;
  With options = With::DropoutToo;
  bool warpgroups = false; ///< for code that multiplies by wgmma what the copy engine brought
};

/// Good ones first.  Sums of dk and dv take a register for each 32 of blockN (D + Dv) / warps.
constexpr Tiles ofKeys[] = {{64, 64, 128, 8, With::Mask, true},
                            {128, 64, 128, 8, With::Mask, true},
                            {256, 64, 64, 8, With::All, true},
                            {64, 64, 64, 4, With::None},
                            {64, 32, 64, 4, With::All},
                            {64, 32, 64, 8},
                            {128, 64, 64, 8, With::Causal},
                            {128, 32, 64, 8, With::All},
                            {128, 32, 32, 8},
                            {192, 32, 64, 8},
                            {192, 32, 32, 8},
                            {192, 16, 32, 8},
                            {256, 32, 64, 8},
                            {256, 32, 32, 8},
                            {256, 16, 32, 8}};
/// In one pass; where none fits, there are two: at 256 columns they are faster (H200).
constexpr Tiles ofPass[] = {{64, 128, 128, 8, With::Causal, true}, {64, 64, 128, 8, With::All, true},
                            {128, 64, 128, 8, With::Mask, true},   {128, 32, 128, 8, With::All, true},
                            {64, 64, 128, 8, With::Causal},        {128, 64, 128, 8, With::Causal}};
constexpr Tiles ofQueries[] = {{64, 128, 64, 8, With::All, true},
                               {128, 128, 64, 8, With::All, true},
                               {256, 64, 64, 8, With::All, true},
                               {64, 64, 64, 4},
                               {128, 64, 64, 4, With::Causal},
                               {128, 64, 32, 4},
                               {192, 64, 32, 8},
                               {192, 32, 32, 8},
                               {256, 64, 32, 8},
                               {256, 32, 32, 8},
                               {256, 32, 16, 4}};
constexpr Tiles ofBias[] = {{64, 64, 64, 4},  {128, 64, 64, 8}, {128, 32, 32, 4},
                            {256, 32, 64, 8}, {256, 32, 32, 4}, {256, 16, 32, 4}};

/// Columns of a tile for `columns`.  Two warpgroups share the columns of 64 rows, whole 16 each: products of other
/// widths would be left to mma.sync, and what both read copied.  In rows of whole 128 bytes, narrower ones are slower
/// than the columns that they save are worth (H200: 224 columns in a tile of 256 take 13 % less time).
int widthOf(const Tiles &t, int columns) {
  return t.warpgroups && t.widest > 128 ? (columns + 63) / 64 * 64 : columns;
}

/// Of shared memory, if all tiles of the loop and of the program lie there, and what threads exchange.
std::int64_t bytesOf(AttentionBackwardLaunch launch, const Tiles &t, const AttentionBackwardConfig &c) {
  constexpr std::int64_t element = 2, number = 4;
  const std::int64_t columns = widthOf(t, c.dim) + widthOf(t, c.dimV), pairs = std::int64_t(t.blockM) * t.blockN;
  return launch == AttentionBackwardLaunch::Keys
             ? element * ((t.blockN + c.stages * t.blockM) * columns + 2 * pairs) + 2 * number * c.stages * t.blockM
             : element * ((t.blockM + c.stages * t.blockN) * columns + pairs);
}

/// For the stages of `c`.
const Tiles *firstThatFits(std::span<const Tiles> all, AttentionBackwardLaunch launch, const AttentionBackwardConfig &c,
                           const Target &code, const Target &device) {
  const bool copied = c.stages > 1;
  const bool some = !copied || c.left || c.softcap || c.alibi || c.bias != BiasType::None || c.packedQ || c.packedK ||
                    c.usedQ || c.usedK || c.hooks.functions.hasScore();
  const bool isMasked = c.hooks.functions.hasMask() || c.hooks.hasLists();
  const With given = c.dropout               ? (some || isMasked || c.right ? With::DropoutToo : With::All)
                     : some                  ? With::All
                     : isMasked || c.ordered ? With::Mask
                     : c.right               ? With::Causal
                                             : With::None;
  const bool warpgroups = copied && !c.dropout && code.has(Capability::Wgmma) && code.has(Capability::Tma);
  // Smaller than they are here, tiles are none for warpgroups.
  const auto divides = [&](const Tiles &t) {
    return !c.hooks.hasLists() || (c.hooks.blockRows % t.blockM == 0 && c.hooks.blockKeys % t.blockN == 0);
  };
  const auto shared = std::min<std::int64_t>(code.sharedOptIn, device.sharedOptIn);
  for (const Tiles &t : all)
    if (std::max(c.dim, c.dimV) <= t.widest && given >= t.options && (!t.warpgroups || (warpgroups && divides(t))) &&
        bytesOf(launch, t, c) <= shared)
      return &t;
  return nullptr;
}

} // namespace

bool takesOnePass(AttentionBackwardConfig call, bool aligned, const Target &code, const Target &device) {
  if (call.ordered && !SumOrder::isKnown(call.hooks))
    return false;
  // Only sums that lie in the order of lanes are added fast enough by atomics of one number.
  if (!code.has(Capability::VectorAtomics) && !QuerySums::isOrdered(call.dim))
    return false;
  call.stages = aligned && code.has(Capability::CpAsync) ? 2 : 1;
  return firstThatFits(ofPass, AttentionBackwardLaunch::Keys, call, code, device) != nullptr;
}

void chooseBackwardTiles(AttentionBackwardLaunch launch, AttentionBackwardConfig &c, bool aligned, const Target &code,
                         const Target &device) {
  const int wide = std::max(c.dim, c.dimV);
  if (launch != AttentionBackwardLaunch::Keys && launch != AttentionBackwardLaunch::Queries &&
      launch != AttentionBackwardLaunch::Bias) {
    const bool isRows = launch == AttentionBackwardLaunch::Rows || launch == AttentionBackwardLaunch::Sums;
    c.blockM = !isRows ? 256 : wide <= 128 ? 64 : 32;
    c.warps = 4;
    return;
  }
  c.stages = aligned && code.has(Capability::CpAsync) ? 2 : 1;
  const std::span<const Tiles> all = c.onePass                                    ? std::span<const Tiles>(ofPass)
                                     : launch == AttentionBackwardLaunch::Keys    ? std::span<const Tiles>(ofKeys)
                                     : launch == AttentionBackwardLaunch::Queries ? std::span<const Tiles>(ofQueries)
                                                                                  : std::span<const Tiles>(ofBias);
  const Tiles *const chosen = firstThatFits(all, launch, c, code, device);
  // What does not fit is refused by the compiler, with the bytes.
  const Tiles &t = chosen ? *chosen : all.back();
  c.blockM = t.blockM, c.blockN = t.blockN, c.warps = t.warps;
  c.dim = widthOf(t, c.dim), c.dimV = widthOf(t, c.dimV);
  divideBlocks(c);
}

} // namespace kiln::kernels
