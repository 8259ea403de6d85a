// Tensor copies: one PTX instruction a function.  Maps are made by the host; kernels see 128 bytes.
#pragma once
#include "Async.cuh"

struct alignas(64) TensorMap {
  char bytes[128];
};

__device__ __forceinline__ void loadTile(uint32_t to, const TensorMap *map, int x, int y, uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
               "[%4];" ::"r"(to),
               "l"(map), "r"(x), "r"(y), "r"(barrier)
               : "memory");
}
/// Into the same place of every block of the cluster whose bit is set, completing the barrier at the same place.
__device__ __forceinline__ void loadTileMulticast(uint32_t to, const TensorMap *map, int x, int y, uint32_t barrier,
                                                  uint16_t ranks) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
               "[%1, {%2, %3}], [%4], %5;" ::"r"(to),
               "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(ranks)
               : "memory");
}
__device__ __forceinline__ void storeTile(const TensorMap *map, int x, int y, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y),
               "r"(from)
               : "memory");
}
#define KILN_REDUCE_TILE(NAME, OPERATION)                                                                             \
  __device__ __forceinline__ void NAME(const TensorMap *map, int x, int y, uint32_t from) {                           \
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." OPERATION                                       \
                 ".tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),                                                 \
                 "r"(x), "r"(y), "r"(from)                                                                            \
                 : "memory");                                                                                         \
  }
KILN_REDUCE_TILE(addTile, "add")
KILN_REDUCE_TILE(minTile, "min")
KILN_REDUCE_TILE(maxTile, "max")
KILN_REDUCE_TILE(andTile, "and")
KILN_REDUCE_TILE(orTile, "or")
KILN_REDUCE_TILE(xorTile, "xor")
#undef KILN_REDUCE_TILE

/// Where byte `offset` of a tile lies whose rows of `Swizzle` bytes the copy engine permuted.  The tile starts at a
/// multiple of 8 rows.
template <int Swizzle> __device__ __forceinline__ uint32_t swizzled(uint32_t offset) {
  if constexpr (Swizzle == 0)
    return offset;
  else
    return offset ^ ((offset >> 7 & (Swizzle / 16 - 1)) << 4);
}
