// Bulk copies without tensors: chunks come in, are changed in place, go out, and are added onto a third array; two
// stages.  n is a multiple of 4.
// Only sm_90a.
#include "Async.cuh"

constexpr int chunk = 512;

extern "C" __global__ void __launch_bounds__(128)
    bulkScale(const int *in, int *out, int *total, int *largest, int n) {
  __shared__ alignas(128) int data[2][chunk];
  __shared__ alignas(8) uint64_t full[2];
  int t = threadIdx.x, count = (n + chunk - 1) / chunk, step = gridDim.x;
  auto bytesOf = [&](int c) { return min(chunk, n - c * chunk) * 4; };
  auto load = [&](int c, int s) {
    // In two parts: what is expected may come in any number of pieces.
    expectBytes(sharedAddress(&full[s]), bytesOf(c) - 16);
    arriveExpecting(sharedAddress(&full[s]), 16);
    bulkLoad(sharedAddress(data[s]), in + c * chunk, 16, sharedAddress(&full[s]));
    if (bytesOf(c) > 16)
      bulkLoad(sharedAddress(data[s] + 4), in + c * chunk + 4, bytesOf(c) - 16, sharedAddress(&full[s]));
  };
  if (t == 0) {
    initBarrier(sharedAddress(&full[0]), 1);
    initBarrier(sharedAddress(&full[1]), 1);
    fenceBarrierInit();
    for (int i = 0; i < 2; i++)
      if (blockIdx.x + i * step < count)
        load(blockIdx.x + i * step, i);
  }
  __syncthreads();
#pragma unroll 1
  for (int c = blockIdx.x, i = 0; c < count; c += step, i++) {
    int s = i % 2;
    waitParity(sharedAddress(&full[s]), i / 2 & 1);
#pragma unroll 1
    for (int x = t; x < bytesOf(c) / 4; x += 128)
      data[s][x] = 3 * data[s][x] + c;
    fenceAsyncProxy();
    __syncthreads();
    if (t == 0) {
      bulkStore(out + c * chunk, sharedAddress(data[s]), bytesOf(c));
      asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" ::"l"(
                       __cvta_generic_to_global(total)),
                   "r"(sharedAddress(data[s])), "r"(bytesOf(c))
                   : "memory");
      asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%0], [%1], %2;" ::"l"(
                       __cvta_generic_to_global(largest)),
                   "r"(sharedAddress(data[s])), "r"(bytesOf(c))
                   : "memory");
      commitBulk();
      if (c + 2 * step < count) {
        waitForBulkReads<0>();
        load(c + 2 * step, s);
      }
    }
  }
  if (t == 0)
    waitForBulk<0>();
}

// A result of an earlier bulk store is read back by the thread that waited for it.
extern "C" __global__ void __launch_bounds__(32) bulkReadBack(int *out, int *copy) {
  __shared__ alignas(128) int data[32];
  data[threadIdx.x] = threadIdx.x * threadIdx.x;
  fenceAsyncProxy();
  __syncwarp();
  if (threadIdx.x == 0) {
    bulkStore(out, sharedAddress(data), sizeof(data));
    commitBulk();
    waitForBulk<0>();
#pragma unroll 1
    for (int i = 0; i < 32; i++)
      copy[i] = out[31 - i];
  }
}
