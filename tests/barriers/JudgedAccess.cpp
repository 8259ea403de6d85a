#include "tests/barriers/JudgedAccess.h"

#include "compiler/layout/LocalAccess.h"

#include <bit>

namespace kiln::test {

using namespace mlir;

JudgedAccess judged(Operation *op, std::int64_t slot) {
  JudgedAccess out;
  Type tile;
  Value buffer;
  bool copy = false;
  if (auto store = dyn_cast<tile_gpu::LocalStoreOp>(op)) {
    tile = store.getValue().getType();
    buffer = store.getBuffer();
    out.write = true;
  } else if (auto load = dyn_cast<tile_gpu::LocalLoadOp>(op)) {
    tile = load.getType();
    buffer = load.getBuffer();
  } else {
    auto view = cast<tile_gpu::AsyncCopyViewOp>(op);
    tile = view.tile();
    buffer = view.getBuffer();
    out.write = copy = true;
  }
  if (auto view = buffer.getDefiningOp<tile_gpu::LocalSubviewOp>())
    buffer = view.getBuffer();
  auto alloc = buffer.getDefiningOp<tile_gpu::LocalAllocOp>();
  const auto layout = tile_gpu::layoutOf(tile);
  const auto shared = cast<tile_gpu::BufferType>(alloc.getType()).lowered();
  const std::uint64_t align = shared->alignment(), stride = (shared->bytes() + align - 1) / align * align;
  const std::uint64_t base = *alloc.getOffset() + static_cast<std::uint64_t>(slot) * stride;
  const unsigned bytes = tile_gpu::planBits(tile) / 8;
  const auto plan =
      layout::planLocalAccess(layout->core(), shared->core(), bytes * 8, **tile_gpu::targetOf(op), out.write);
  const bool matrix = !copy && isMatrix(plan->access.form);
  const unsigned registers = layout->core().size(layout::InDim::Register),
                 warps = layout->core().size(layout::InDim::Warp);
  const auto free = layout->core().freeMasks();
  for (unsigned warp = 0; warp < warps; ++warp)
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned r = 0; r < layout->registers(); ++r) {
        if (out.write && ((r % registers & free[0]) || (lane & free[1]) || (warp & free[2])))
          continue;
        const layout::Coords at = layout->coords(r, lane, warp, 0);
        const std::uint64_t first = base + shared->byteOffset(at);
        for (unsigned b = 0; b < bytes; ++b) {
          Threads &t = out.bytes[first + b];
          t.warps |= 1u << warp;
          t.lanes |= matrix ? ~0u : 1u << lane;
        }
      }
  return out;
}

int need(const JudgedAccess &a, const JudgedAccess &b) {
  int worst = 0;
  if (!a.write && !b.write)
    return 0;
  for (const auto &[byte, x] : a.bytes)
    if (auto it = b.bytes.find(byte); it != b.bytes.end()) {
      const Threads &y = it->second;
      if (std::popcount(x.warps | y.warps) > 1)
        return 2;
      if (std::popcount(x.lanes | y.lanes) > 1)
        worst = 1;
    }
  return worst;
}

bool overlap(const JudgedAccess &a, const JudgedAccess &b) {
  for (const auto &[byte, threads] : a.bytes)
    if (b.bytes.contains(byte))
      return true;
  return false;
}

} // namespace kiln::test
