// C[m][n] = A[m][k] B[k][n] in f16: mma.sync, ldmatrix (B transposed on the way), three stages of cp.async.
// 64 x 64 tiles, four warps of 32 x 32.  k and n are multiples of 8; ends of tiles are zero-filled.
#include "Async.cuh"
#include "Matrix.cuh"
#include <cuda_fp16.h>

constexpr int tileM = 64, tileN = 64, tileK = 32, stages = 3, pitchA = tileK + 8, pitchB = tileN + 8;

struct Shared {
  alignas(16) half a[stages][tileM][pitchA];
  alignas(16) half b[stages][tileK][pitchB];
};

__device__ __forceinline__ void fill(Shared &shared, int stage, const half *a, const half *b, int row, int col, int k0,
                                     int m, int n, int k) {
#pragma unroll 1
  for (int i = threadIdx.x; i < tileM * tileK / 8; i += 128) {
    int r = i / (tileK / 8), c = i % (tileK / 8) * 8;
    bool inside = row + r < m && k0 + c < k;
    copyAsync<16>(sharedAddress(&shared.a[stage][r][c]), inside ? a + (row + r) * k + k0 + c : a, inside ? 16 : 0);
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < tileK * tileN / 8; i += 128) {
    int r = i / (tileN / 8), c = i % (tileN / 8) * 8;
    bool inside = k0 + r < k && col + c < n;
    copyAsync<16>(sharedAddress(&shared.b[stage][r][c]), inside ? b + (k0 + r) * n + col + c : b, inside ? 16 : 0);
  }
}

extern "C" __global__ void __launch_bounds__(128)
    mmaF16(const half *a, const half *b, float *c, int m, int n, int k) {
  __shared__ Shared shared;
  int row = blockIdx.y * tileM, col = blockIdx.x * tileN;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
  float acc[2][4][4] = {};
  int steps = (k + tileK - 1) / tileK;
#pragma unroll 1
  for (int s = 0; s < stages - 1; s++) {
    if (s < steps)
      fill(shared, s, a, b, row, col, s * tileK, m, n, k);
    commitCopies();
  }
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    waitForCopies<stages - 2>();
    __syncthreads();
    int next = step + stages - 1;
    if (next < steps)
      fill(shared, next % stages, a, b, row, col, next * tileK, m, n, k);
    commitCopies();
    int stage = step % stages;
#pragma unroll
    for (int kk = 0; kk < tileK; kk += 16) {
      uint32_t fa[2][4], fb[2][4];
#pragma unroll
      for (int i = 0; i < 2; i++)
        loadMatrices(fa[i], sharedAddress(&shared.a[stage][wm + i * 16 + lane % 16][kk + lane / 16 * 8]));
#pragma unroll
      for (int j = 0; j < 2; j++)
        loadMatricesTransposed(fb[j], sharedAddress(&shared.b[stage][kk + lane % 16][wn + j * 16 + lane / 16 * 8]));
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          multiplyF16(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
    }
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int r = row + wm + i * 16 + h * 8 + lane / 4, x = col + wn + j * 8 + lane % 4 * 2;
        if (r < m && x < n)
          *reinterpret_cast<float2 *>(c + r * n + x) = make_float2(acc[i][j][h * 2], acc[i][j][h * 2 + 1]);
      }
}

// The same product with f16 accumulators: one warp a 16 x 16 tile, two buffers, fragments from plain loads.
extern "C" __global__ void __launch_bounds__(32)
    mmaF16Half(const half *a, const half *b, half *c, int m, int n, int k) {
  __shared__ alignas(16) half sa[2][16][24], sb[2][16][24];
  int row = blockIdx.y * 16, col = blockIdx.x * 16, lane = threadIdx.x;
  auto fill = [&](int stage, int k0) {
    int r = lane / 2, x = lane % 2 * 8;
    bool inA = row + r < m && k0 + x < k, inB = k0 + r < k && col + x < n;
    copyAsync<16>(sharedAddress(&sa[stage][r][x]), inA ? a + (row + r) * k + k0 + x : a, inA ? 16 : 0);
    copyAsync<16>(sharedAddress(&sb[stage][r][x]), inB ? b + (k0 + r) * n + col + x : b, inB ? 16 : 0);
    commitCopies();
  };
  uint32_t acc[2][2] = {};
  fill(0, 0);
#pragma unroll 1
  for (int k0 = 0, stage = 0; k0 < k; k0 += 16, stage ^= 1) {
    if (k0 + 16 < k) {
      fill(stage ^ 1, k0 + 16);
      waitForCopies<1>();
    } else
      waitForCopies<0>();
    __syncwarp();
    uint32_t fa[4];
    for (int i = 0; i < 4; i++)
      fa[i] = *reinterpret_cast<uint32_t *>(&sa[stage][i % 2 * 8 + lane / 4][i / 2 * 8 + lane % 4 * 2]);
    uint32_t fb[4];
    loadMatricesTransposed(fb, sharedAddress(&sb[stage][lane % 16][lane / 16 * 8]));
    for (int j = 0; j < 2; j++)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                   : "+r"(acc[j][0]), "+r"(acc[j][1])
                   : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[j * 2]), "r"(fb[j * 2 + 1]));
    __syncwarp();
  }
  for (int j = 0; j < 2; j++)
    for (int h = 0; h < 2; h++) {
      int r = row + h * 8 + lane / 4, x = col + j * 8 + lane % 4 * 2;
      if (r < m && x < n)
        *reinterpret_cast<uint32_t *>(c + r * n + x) = acc[j][h];
    }
}
