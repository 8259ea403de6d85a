// C[m][n] = A[m][k] B[n][k] in tf32: m16n8k8 and m16n8k4, 4-byte cp.async so that any m, n, k works, two buffers.
// 32 x 32 tiles, four warps of 16 x 16.
#include "Async.cuh"

constexpr int tileM = 32, tileN = 32, tileK = 16, pitch = tileK + 4;

__device__ __forceinline__ uint32_t toTf32(float x) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

__device__ __forceinline__ void fill(float (*to)[pitch], const float *from, int first, int limit, int k0, int k) {
#pragma unroll 1
  for (int i = threadIdx.x; i < 32 * tileK; i += 128) {
    int r = i / tileK, x = i % tileK;
    bool inside = first + r < limit && k0 + x < k;
    copyAsync<4>(sharedAddress(&to[r][x]), inside ? from + (first + r) * k + k0 + x : from, inside ? 4 : 0);
  }
}

template <int Depth>
__device__ __forceinline__ void multiply(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float sa[2][tileM][pitch], sb[2][tileN][pitch];
  int row = blockIdx.y * tileM, col = blockIdx.x * tileN;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, wm = warp / 2 * 16, wn = warp % 2 * 16;
  int g = lane / 4, t = lane % 4;
  float acc[2][4] = {};
  fill(sa[0], a, row, m, 0, k);
  fill(sb[0], b, col, n, 0, k);
  commitCopies();
#pragma unroll 1
  for (int k0 = 0, stage = 0; k0 < k; k0 += tileK, stage ^= 1) {
    waitForCopies<0>();
    __syncthreads();
    if (k0 + tileK < k) {
      fill(sa[stage ^ 1], a, row, m, k0 + tileK, k);
      fill(sb[stage ^ 1], b, col, n, k0 + tileK, k);
      commitCopies();
    }
#pragma unroll
    for (int kk = 0; kk < tileK; kk += Depth) {
      uint32_t fa[4];
      fa[0] = toTf32(sa[stage][wm + g][kk + t]);
      fa[1] = toTf32(sa[stage][wm + g + 8][kk + t]);
      if constexpr (Depth == 8) {
        fa[2] = toTf32(sa[stage][wm + g][kk + t + 4]);
        fa[3] = toTf32(sa[stage][wm + g + 8][kk + t + 4]);
      }
#pragma unroll
      for (int j = 0; j < 2; j++) {
        uint32_t b0 = toTf32(sb[stage][wn + j * 8 + g][kk + t]);
        if constexpr (Depth == 8) {
          uint32_t b1 = toTf32(sb[stage][wn + j * 8 + g][kk + t + 4]);
          asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                       "{%8, %9}, {%0, %1, %2, %3};"
                       : "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
                       : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(b0), "r"(b1));
        } else
          asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
                       "{%0, %1, %2, %3};"
                       : "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
                       : "r"(fa[0]), "r"(fa[1]), "r"(b0));
      }
    }
  }
  for (int j = 0; j < 2; j++)
    for (int e = 0; e < 4; e++) {
      int r = row + wm + g + e / 2 * 8, x = col + wn + j * 8 + t * 2 + e % 2;
      if (r < m && x < n)
        c[r * n + x] = acc[j][e];
    }
}

extern "C" __global__ void __launch_bounds__(128)
    mmaTf32(const float *a, const float *b, float *c, int m, int n, int k) {
  multiply<8>(a, b, c, m, n, k);
}
extern "C" __global__ void __launch_bounds__(128)
    mmaTf32K4(const float *a, const float *b, float *c, int m, int n, int k) {
  multiply<4>(a, b, c, m, n, k);
}
