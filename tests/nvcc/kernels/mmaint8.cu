// D[m][n] = A[m][k] B[n][k] + C[m][n], 8-bit integers: m16n8k32 of every signedness, wrapping and saturating.
// 64 x 64 tiles, four warps of 32 x 32, four stages of 64 bytes of k.  m, n multiples of 64, k of 64.
#include "Async.cuh"
#include "Matrix.cuh"

constexpr int tile = 64, stages = 4, pitch = tile + 16;

template <bool SignedA, bool SignedB, bool Saturate>
__device__ __forceinline__ void multiplyInt8(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#define KILN_MMA(SUFFIX)                                                                                              \
  asm volatile("mma.sync.aligned.m16n8k32.row.col" SUFFIX " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "           \
               "{%0, %1, %2, %3};"                                                                                    \
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if constexpr (Saturate)
    KILN_MMA(".satfinite.s32.s8.s8.s32");
  else if constexpr (SignedA && SignedB)
    KILN_MMA(".s32.s8.s8.s32");
  else if constexpr (SignedA)
    KILN_MMA(".s32.s8.u8.s32");
  else if constexpr (SignedB)
    KILN_MMA(".s32.u8.s8.s32");
  else
    KILN_MMA(".s32.u8.u8.s32");
#undef KILN_MMA
}

template <bool SignedA, bool SignedB, bool Saturate>
__device__ __forceinline__ void product(const unsigned char *a, const unsigned char *b, const int *c, int *d, int n,
                                        int k) {
  __shared__ alignas(16) unsigned char sa[stages][tile][pitch], sb[stages][tile][pitch];
  int row = blockIdx.y * tile, col = blockIdx.x * tile;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
  int steps = k / tile;
  auto load = [&](int step) {
    if (step < steps)
#pragma unroll 1
      for (int i = threadIdx.x; i < tile * tile / 16; i += 128) {
        int r = i / 4, x = i % 4 * 16;
        copyAsync<16>(sharedAddress(&sa[step % stages][r][x]), a + (row + r) * k + step * tile + x);
        copyAsync<16>(sharedAddress(&sb[step % stages][r][x]), b + (col + r) * k + step * tile + x);
      }
    commitCopies();
  };
  int acc[2][4][4];
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        acc[i][j][e] = c[(row + wm + i * 16 + e / 2 * 8 + lane / 4) * n + col + wn + j * 8 + lane % 4 * 2 + e % 2];
#pragma unroll 1
  for (int s = 0; s < stages - 1; s++)
    load(s);
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    waitForCopies<stages - 2>();
    __syncthreads();
    load(step + stages - 1);
    int s = step % stages;
#pragma unroll
    for (int kk = 0; kk < tile; kk += 32) {
      uint32_t fa[2][4], fb[2][4];
#pragma unroll
      for (int i = 0; i < 2; i++)
        loadMatrices(fa[i], sharedAddress(&sa[s][wm + i * 16 + lane % 16][kk + lane / 16 * 16]));
#pragma unroll
      for (int j = 0; j < 2; j++)
        loadMatrices(fb[j], sharedAddress(&sb[s][wn + j * 16 + lane / 16 * 8 + lane % 8][kk + lane / 8 % 2 * 16]));
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          multiplyInt8<SignedA, SignedB, Saturate>(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
    }
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int h = 0; h < 2; h++)
        *reinterpret_cast<int2 *>(
            &d[(row + wm + i * 16 + h * 8 + lane / 4) * n + col + wn + j * 8 + lane % 4 * 2]) =
            make_int2(acc[i][j][h * 2], acc[i][j][h * 2 + 1]);
}

#define KILN_KERNEL(NAME, SIGNED_A, SIGNED_B, SATURATE)                                                               \
  extern "C" __global__ void __launch_bounds__(128)                                                                   \
      NAME(const unsigned char *a, const unsigned char *b, const int *c, int *d, int n, int k) {                      \
    product<SIGNED_A, SIGNED_B, SATURATE>(a, b, c, d, n, k);                                                          \
  }
KILN_KERNEL(mmaS8S8, true, true, false)
KILN_KERNEL(mmaS8U8, true, false, false)
KILN_KERNEL(mmaU8S8, false, true, false)
KILN_KERNEL(mmaU8U8, false, false, false)
KILN_KERNEL(mmaS8Saturating, true, true, true)
