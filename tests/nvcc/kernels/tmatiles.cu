// Tensor copies with every swizzle: tiles come in by loads, two in flight, go to `plain` by ordinary stores, and, each
// element x as 2 x + 1, to a second tensor by tensor stores and onto a third by tensor reductions (add).
// Only sm_90a.
#include "Tensor.cuh"
#include <cuda_fp16.h>

constexpr int tileRows = 16;

template <typename T, int Swizzle>
__device__ __forceinline__ void tiles(const TensorMap *in, const TensorMap *out, const TensorMap *sum, T *plain,
                                      int width, int height) {
  constexpr int rowBytes = Swizzle ? Swizzle : 48, tileWidth = rowBytes / sizeof(T), bytes = tileRows * rowBytes;
  __shared__ alignas(1024) unsigned char stage[2][tileRows * 128];
  __shared__ alignas(8) uint64_t full[2];
  int x0 = blockIdx.x * tileWidth, count = (height + tileRows - 1) / tileRows;
  auto load = [&](int i) {
    arriveExpecting(sharedAddress(&full[i % 2]), bytes);
    loadTile(sharedAddress(stage[i % 2]), in, x0, i * tileRows, sharedAddress(&full[i % 2]));
  };
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; s++)
      initBarrier(sharedAddress(&full[s]), 1);
    fenceBarrierInit();
    for (int i = 0; i < 2 && i < count; i++)
      load(i);
  }
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < count; i++) {
    waitParity(sharedAddress(&full[i % 2]), i / 2 & 1);
#pragma unroll 1
    for (int e = threadIdx.x; e < tileRows * tileWidth; e += 64) {
      T *place = reinterpret_cast<T *>(stage[i % 2] + swizzled<Swizzle>(e * sizeof(T)));
      int x = x0 + e % tileWidth, y = i * tileRows + e / tileWidth;
      T value = *place;
      if (x < width && y < height)
        plain[y * width + x] = value;
      *place = value + value + T(1);
    }
    fenceAsyncProxy();
    __syncthreads();
    if (threadIdx.x == 0) {
      storeTile(out, x0, i * tileRows, sharedAddress(stage[i % 2]));
      addTile(sum, x0, i * tileRows, sharedAddress(stage[i % 2]));
      commitBulk();
      waitForBulkReads<0>();
      if (i + 2 < count)
        load(i + 2);
    }
  }
  if (threadIdx.x == 0)
    waitForBulk<0>();
}

#define KILN_KERNEL(NAME, T, SWIZZLE)                                                                                 \
  extern "C" __global__ void __launch_bounds__(64)                                                                    \
      NAME(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out,                               \
           const __grid_constant__ TensorMap sum, T *plain, int width, int height) {                                  \
    tiles<T, SWIZZLE>(&in, &out, &sum, plain, width, height);                                                         \
  }
KILN_KERNEL(tmaNone, float, 0)
KILN_KERNEL(tma32, half, 32)
KILN_KERNEL(tma64, float, 64)
KILN_KERNEL(tma128, int, 128)
#undef KILN_KERNEL

// Every reduction of integers, one output tensor each; maps[0] is the input's.  The maps lie in global memory.
extern "C" __global__ void __launch_bounds__(32) tmaReductions(const TensorMap *maps) {
  __shared__ alignas(128) int tile[8][32];
  __shared__ alignas(8) uint64_t full;
  uint32_t barrier = sharedAddress(&full), data = sharedAddress(tile);
  if (threadIdx.x != 0)
    return;
  int x = blockIdx.x * 32, y = blockIdx.y * 8;
  initBarrier(barrier, 1);
  fenceBarrierInit();
  arriveExpecting(barrier, sizeof(tile));
  loadTile(data, maps, x, y, barrier);
  waitParity(barrier, 0);
  addTile(maps + 1, x, y, data);
  minTile(maps + 2, x, y, data);
  maxTile(maps + 3, x, y, data);
  commitBulk();
  andTile(maps + 4, x, y, data);
  orTile(maps + 5, x, y, data);
  xorTile(maps + 6, x, y, data);
  commitBulk();
  waitForBulk<0>();
}

// Boxes of one, three and five dimensions, at coordinates that start before and end after the tensor.
template <int Rank> __device__ __forceinline__ void box(const TensorMap *map, int *out, int count, const int *at) {
  // Not a dynamic array: for debug builds ptxas gives these an alignment of 16 bytes, whatever they are declared with,
  // and a GPU faults.
  __shared__ alignas(128) int data[192];
  __shared__ alignas(8) uint64_t full;
  uint32_t barrier = sharedAddress(&full), to = sharedAddress(data);
  if (threadIdx.x == 0) {
    initBarrier(barrier, 1);
    fenceBarrierInit();
    arriveExpecting(barrier, count * 4);
    if constexpr (Rank == 1)
      asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], "
                   "[%3];" ::"r"(to),
                   "l"(map), "r"(at[0]), "r"(barrier)
                   : "memory");
    else if constexpr (Rank == 3)
      asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                   "[%1, {%2, %3, %4}], [%5];" ::"r"(to),
                   "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(barrier)
                   : "memory");
    else
      asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                   "[%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
                   "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]), "r"(barrier)
                   : "memory");
  }
  __syncthreads();
  waitParity(barrier, 0);
#pragma unroll 1
  for (int i = threadIdx.x; i < count; i += 32)
    out[i] = data[i];
}
extern "C" __global__ void __launch_bounds__(32)
    tmaBox1(const __grid_constant__ TensorMap map, int *out, int count, const int *at) {
  box<1>(&map, out, count, at);
}
extern "C" __global__ void __launch_bounds__(32)
    tmaBox3(const __grid_constant__ TensorMap map, int *out, int count, const int *at) {
  box<3>(&map, out, count, at);
}
extern "C" __global__ void __launch_bounds__(32)
    tmaBox5(const __grid_constant__ TensorMap map, int *out, int count, const int *at) {
  box<5>(&map, out, count, at);
}
