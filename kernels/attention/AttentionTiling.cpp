#include "kernels/attention/AttentionTiling.h"

#include <algorithm>
#include <bit>
#include <span>

namespace kiln::kernels {
namespace {

/// For tiles of up to `widest` columns.
struct Tiles {
  int widest, blockM, blockN, warps;
  unsigned programs = 0; ///< that a multiprocessor is to hold, for which registers are limited; 0: as many as fit

  int rowsOfWarp() const { return blockM / warps; }
};

/// Good ones first.  32 rows a warp read half as much of k and v from shared memory as 16 do; twice as many keys wait
/// half as often.
constexpr Tiles choices[] = {{128, 128, 64, 4}, {128, 128, 128, 8}, {128, 128, 64, 8}, {192, 128, 64, 8},
                             {256, 64, 32, 4},  {256, 128, 32, 8},  {256, 64, 16, 4}};

/// Where warpgroups multiply and the copies lie as they read them.  Two warps for each scheduler; 128 keys where shared
/// memory and registers hold them.
constexpr Tiles warpgroupChoices[] = {{64, 64, 128, 4, 3}, {80, 128, 64, 4},   {96, 64, 128, 4},  {128, 128, 128, 8},
                                      {128, 64, 64, 4},    {192, 128, 128, 8}, {192, 128, 64, 8}, {256, 128, 64, 8}};

/// For at most 64 queries, and where programs of 64 rows find an SM each.
constexpr Tiles lowChoices[] = {
    {128, 64, 128, 4}, {128, 64, 64, 4}, {192, 64, 32, 4}, {256, 64, 32, 4}, {256, 64, 16, 4}};

/// Whether a thread has the registers for 32 rows: not where heads are wide, where the tiles of keys and values have
/// different slabs with addresses of their own, or where tiles go through registers instead of being copied; distances
/// of slopes and capped scores leave less, a bias and random bits too little, and of the caller's functions nobody
/// knows.
bool hasRoom(const AttentionConfig &c, bool copied) {
  const int wide = std::max(c.dim, c.dimV);
  const bool narrow = wide <= 64 || (c.dim == c.dimV && (wide <= 96 || wide == 128));
  const bool slabs = !std::has_single_bit(static_cast<unsigned>(wide));
  return narrow && copied && c.bias == BiasType::None && !c.dropout && !c.hooks.functions.given() &&
         !(c.alibi && (wide <= 32 || wide == 80 || wide == 128)) && !(c.softcap && slabs);
}

/// Registers of a thread so that a multiprocessor holds as many programs as the tiles ask for: where heads are narrow,
/// the twelve warps of three hide more of each other's latencies than the eight of two (an H100, D = 64, 8k: 393 to 430
/// TFLOP/s, causal 365 to 406).  0, no limit: windows, slopes, packed keys and values of 8 bits, which threads turn,
/// would spill in the loop, and so may functions.
int registersFor(const Tiles &t, const AttentionConfig &c, const Target &device, DType element) {
  if (!t.programs || c.hooks.functions.given() || c.hooks.hasLists() || c.left || c.alibi || c.bias != BiasType::None ||
      c.dropout || c.packedK || element == DType::F8E4M3)
    return 0;
  constexpr unsigned unit = 8;
  return static_cast<int>(device.registersPerSm / (t.programs * 32 * static_cast<unsigned>(t.warps)) / unit * unit);
}

/// Shared memory of a block.
std::int64_t bytesOf(const Tiles &t, const AttentionConfig &c, bool copied, DType element) {
  const int stages = copied ? c.stages : 1;
  return static_cast<std::int64_t>(dtypeBytes(element)) * (t.blockM * c.dim + stages * t.blockN * (c.dim + c.dimV));
}

} // namespace

void chooseTiles(AttentionConfig &c, const AttentionExtent &extent, const Target &code, const Target &device,
                 std::int64_t multiprocessors) {
  const int wide = std::max(c.dim, c.dimV);
  const auto programs = [&](int rows) { return (extent.queries + rows - 1) / rows * extent.heads; };
  const bool low = extent.queries <= 64 || programs(64) <= multiprocessors;
  // A block that has its SM for itself needs 8 warps.
  const bool few = programs(128) <= multiprocessors;
  // A few microseconds less do not pay for code twice as long, which takes half as long again to compile.
  const bool brief = low && wide > 64 && extent.keys <= 1024;
  const bool copied = extent.aligned && code.has(Capability::CpAsync);
  const auto shared = std::min<std::int64_t>(code.sharedOptIn, device.sharedOptIn);
  // The first and the last block of keys are loaded outside of the loop: with few blocks that costs more than it gives.
  // Four blocks of 128 keys are enough where every row sees them all (an H200, D = 128, 512 keys: 361 to 400 TFLOP/s).
  const bool fewKeys = wide <= 128 && extent.keys < 1024;
  // Instructions of 16 columns gain something at 80 and 112.
  const auto wideEnough = [](int x) { return x >= 32 && (x % 32 == 0 || (x > 64 && x <= 112)); };
  const bool warpgroups = copied && code.has(Capability::Wgmma) && wideEnough(c.dim) && wideEnough(c.dimV) &&
                          !(fewKeys && (wide <= 96 || extent.keys < 512));
  const std::span<const Tiles> all = low          ? std::span<const Tiles>(lowChoices)
                                     : warpgroups ? std::span<const Tiles>(warpgroupChoices)
                                                  : std::span<const Tiles>(choices);
  const Tiles *chosen = nullptr;
  for (const Tiles &t : all) {
    if (wide > t.widest || (t.rowsOfWarp() > 16 && (few || !hasRoom(c, copied))) ||
        (t.blockN > 64 && (brief || (warpgroups && fewKeys && (c.left || c.right)) || extent.keys <= 64 || !copied)))
      continue;
    const std::int64_t bytes = bytesOf(t, c, copied, extent.element);
    if (bytes > shared)
      continue;
    if (!chosen)
      chosen = &t;
    // Two warps for each scheduler: one computes powers while the other multiplies.
    constexpr unsigned enough = 8;
    const auto warps = static_cast<unsigned>(t.warps);
    if (low ||
        warps * residentBlocks(device, warps * 32, static_cast<std::uint64_t>(bytes), device.registersPerThread) >=
            enough) {
      chosen = &t;
      break;
    }
  }
  // What does not fit is refused by the compiler, with the bytes.
  const Tiles &t = chosen ? *chosen : all.back();
  c.blockM = t.blockM, c.blockN = t.blockN, c.warps = t.warps;
  c.maxRegisters = registersFor(t, c, device, extent.element);
  divideBlocks(c);
}

bool takesSeveralTiles(const AttentionConfig &c, const AttentionExtent &extent, const Target &code,
                       std::int64_t multiprocessors) {
  const bool large = c.warps == 8 && c.blockM == 128 && c.blockN == 128 && std::max(c.dim, c.dimV) > 96 &&
                     std::max(c.dim, c.dimV) <= 128;
  const bool tables = c.packedQ || c.packedK || c.usedQ || c.usedK;
  // Of masked rows every program would have tiles of the same lengths (docs/lab/2026-11.md).
  const std::int64_t tiles = (extent.queries + c.blockM - 1) / c.blockM * extent.heads;
  return code.has(Capability::Tma) && code.has(Capability::Wgmma) && extent.aligned && large && !tables && !c.left &&
         !c.right && !c.hooks.hasLists() && !c.hooks.functions.given() && extent.element != DType::F8E4M3 &&
         extent.keys <= 1024 && tiles > multiprocessors;
}

std::int64_t residentPrograms(const AttentionConfig &c, DType element, const Target &device,
                              std::int64_t multiprocessors) {
  const auto bytes = static_cast<std::uint64_t>(
      bytesOf({std::max(c.dim, c.dimV), c.blockM, c.blockN, c.warps}, c, /*copied=*/true, element));
  const unsigned registers = c.maxRegisters ? static_cast<unsigned>(c.maxRegisters) : device.registersPerThread;
  return multiprocessors *
         std::max<std::int64_t>(1, residentBlocks(device, static_cast<unsigned>(c.warps) * 32, bytes, registers));
}

} // namespace kiln::kernels
