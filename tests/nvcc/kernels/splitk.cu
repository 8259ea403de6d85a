// C = A B with k split over blocks: each writes its part of the product, the last of a tile to arrive adds them up in
// a fixed order.  f16, 32 x 32 tiles, four warps of 16 x 16; m, n multiples of 32, k of 32 per block.
#include "Async.cuh"
#include "Matrix.cuh"
#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(128)
    splitK(const half *a, const half *b, float *c, float *parts, unsigned *tickets, int m, int n, int k) {
  __shared__ alignas(16) half sa[32][40], sb[32][40];
  __shared__ unsigned ticket;
  int row = blockIdx.y * 32, col = blockIdx.x * 32, t = threadIdx.x;
  int warp = t / 32, lane = t % 32, wm = warp / 2 * 16, wn = warp % 2 * 16;
  int length = k / gridDim.z, first = blockIdx.z * length;
  float acc[2][4] = {};
#pragma unroll 1
  for (int k0 = first; k0 < first + length; k0 += 32) {
    int r = t / 4, x = t % 4 * 8;
    copyAsync<16>(sharedAddress(&sa[r][x]), a + (row + r) * k + k0 + x);
    copyAsync<16>(sharedAddress(&sb[r][x]), b + (k0 + r) * n + col + x);
    commitCopies();
    waitForCopies<0>();
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 32; kk += 16) {
      uint32_t fa[4], fb[4];
      loadMatrices(fa, sharedAddress(&sa[wm + lane % 16][kk + lane / 16 * 8]));
      loadMatricesTransposed(fb, sharedAddress(&sb[kk + lane % 16][wn + lane / 16 * 8]));
      multiplyF16(acc[0], fa, fb[0], fb[1]);
      multiplyF16(acc[1], fa, fb[2], fb[3]);
    }
    __syncthreads();
  }
  float *mine = parts + blockIdx.z * m * n;
#pragma unroll
  for (int j = 0; j < 2; j++)
#pragma unroll
    for (int h = 0; h < 2; h++)
      *reinterpret_cast<float2 *>(&mine[(row + wm + h * 8 + lane / 4) * n + col + wn + j * 8 + lane % 4 * 2]) =
          make_float2(acc[j][h * 2], acc[j][h * 2 + 1]);
  __syncthreads();
  if (t == 0) {
    __threadfence(); // after the barrier: covers what the whole block wrote
    ticket = atomicAdd(tickets + blockIdx.y * gridDim.x + blockIdx.x, 1u);
    __threadfence();
  }
  __syncthreads();
  if (ticket != gridDim.z - 1)
    return;
#pragma unroll 1
  for (int i = t; i < 32 * 32; i += 128) {
    float sum = 0;
#pragma unroll 1
    for (int z = 0; z < gridDim.z; z++)
      sum += parts[(z * m + row + i / 32) * n + col + i % 32];
    c[(row + i / 32) * n + col + i % 32] = sum;
  }
}
