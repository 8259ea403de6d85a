// C[m][n] = A[m][k] B[n][k] in bf16: four stages in 96 KiB of dynamic shared memory, rows of 128 bytes whose 16-byte
// chunks are permuted by exclusive or, ldmatrix without transposition.  128 x 64 tiles, eight warps of 32 x 32.
// k is a multiple of 64; ends in m and n.
#include "Async.cuh"
#include "Matrix.cuh"
#include <cuda_bf16.h>

constexpr int tileM = 128, tileN = 64, tileK = 64, stages = 4, stageBytes = (tileM + tileN) * tileK * 2;

/// Of the chunk (8 elements) `c` of row `r` of a tile.
__device__ __forceinline__ uint32_t chunkOffset(int r, int c) { return r * 128 + ((c ^ (r & 7)) << 4); }

__device__ __forceinline__ void fill(uint32_t base, const __nv_bfloat16 *from, int first, int rows, int limit, int k0,
                                     int k) {
#pragma unroll 1
  for (int i = threadIdx.x; i < rows * 8; i += 256) {
    int r = i / 8, c = i % 8;
    bool inside = first + r < limit;
    copyAsync<16>(base + chunkOffset(r, c), inside ? from + (first + r) * k + k0 + c * 8 : from, inside ? 16 : 0);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    mmaBf16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *c, int m, int n, int k) {
  extern __shared__ __align__(128) unsigned char memory[];
  uint32_t base = sharedAddress(memory);
  int row = blockIdx.y * tileM, col = blockIdx.x * tileN;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
  float acc[2][4][4] = {};
  int steps = k / tileK;
  auto load = [&](int step) {
    uint32_t stage = base + step % stages * stageBytes;
    fill(stage, a, row, tileM, m, step * tileK, k);
    fill(stage + tileM * 128, b, col, tileN, n, step * tileK, k);
  };
#pragma unroll 1
  for (int s = 0; s < stages - 1; s++) {
    if (s < steps)
      load(s);
    commitCopies();
  }
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    waitForCopies<stages - 2>();
    __syncthreads();
    if (step + stages - 1 < steps)
      load(step + stages - 1);
    commitCopies();
    uint32_t stageA = base + step % stages * stageBytes, stageB = stageA + tileM * 128;
#pragma unroll
    for (int kk = 0; kk < tileK / 8; kk += 2) {
      uint32_t fa[2][4], fb[2][4];
#pragma unroll
      for (int i = 0; i < 2; i++)
        loadMatrices(fa[i], stageA + chunkOffset(wm + i * 16 + lane % 16, kk + lane / 16));
#pragma unroll
      for (int j = 0; j < 2; j++)
        loadMatrices(fb[j], stageB + chunkOffset(wn + j * 16 + lane / 16 * 8 + lane % 8, kk + lane / 8 % 2));
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          multiplyBf16(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
    }
  }
  // Through shared memory to whole rows of 16-byte stores.
  __syncthreads();
  __nv_bfloat16(*out)[tileN + 8] = reinterpret_cast<__nv_bfloat16(*)[tileN + 8]>(memory);
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int h = 0; h < 2; h++)
        *reinterpret_cast<__nv_bfloat162 *>(&out[wm + i * 16 + h * 8 + lane / 4][wn + j * 8 + lane % 4 * 2]) =
            __floats2bfloat162_rn(acc[i][j][h * 2], acc[i][j][h * 2 + 1]);
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < tileM * tileN / 8; i += 256) {
    int r = i / (tileN / 8), x = i % (tileN / 8) * 8;
    if (row + r < m && col + x < n)
      *reinterpret_cast<uint4 *>(c + (row + r) * n + col + x) = *reinterpret_cast<uint4 *>(&out[r][x]);
  }
}
