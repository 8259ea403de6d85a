// wgmma with A in registers, loaded from global memory; B in shared memory.  C[m][n] = A[m][k] B[n][k]; k in whole
// stages of 128 bytes, m in whole tiles.
// Only sm_90a, optimised.
#include "Warpgroup.cuh"

/// The fragments of all types are alike in bytes: register i of a step of 32 bytes holds the word at row lane / 4 + 8
/// (i % 2), byte 4 (lane % 4) + 16 (i / 2).
__device__ __forceinline__ void loadA(uint32_t (&to)[16], const unsigned char *a, int rowBytes, int step) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 16; i++) {
    int row = blockIdx.y * 64 + warp * 16 + i % 2 * 8 + lane / 4;
    to[i] = *reinterpret_cast<const uint32_t *>(a + row * rowBytes + step * 128 + i / 4 * 32 + i / 2 % 2 * 16 +
                                                lane % 4 * 4);
  }
}

template <typename T, typename Multiply>
__device__ __forceinline__ void productFromRegisters(const unsigned char *a, const TensorMap *mapB, T *c, int m, int n,
                                                     int rowBytes, int elementBytes, Multiply multiply) {
  __shared__ alignas(1024) unsigned char stage[2][64 * 128];
  __shared__ alignas(8) uint64_t full[2];
  int steps = rowBytes / 128;
  auto load = [&](int step) {
    uint32_t barrier = sharedAddress(&full[step % 2]);
    arriveExpecting(barrier, 64 * 128);
    loadTile(sharedAddress(stage[step % 2]), mapB, step * 128 / elementBytes, blockIdx.x * 64, barrier);
  };
  if (threadIdx.x == 0) {
    initBarrier(sharedAddress(&full[0]), 1);
    initBarrier(sharedAddress(&full[1]), 1);
    fenceBarrierInit();
    for (int i = 0; i < 2 && i < steps; i++)
      load(i);
  }
  __syncthreads();
  T acc[32] = {};
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    uint32_t fa[16];
    loadA(fa, a, rowBytes, step);
    uint64_t b[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      b[i] = Tile<128>::alongK(sharedAddress(stage[step % 2]), i);
    waitParity(sharedAddress(&full[step % 2]), step / 2 & 1);
    multiply(acc, fa, b, step != 0);
    __syncthreads();
    if (threadIdx.x == 0 && step + 2 < steps)
      load(step + 2);
  }
  storeAccumulators(acc, c, m, n);
}

#define KILN_KERNEL(NAME, T, BYTES, CALL)                                                                             \
  extern "C" __global__ void __launch_bounds__(128)                                                                   \
      NAME(const unsigned char *a, const __grid_constant__ TensorMap mapB, T *c, int m, int n, int k) {               \
    productFromRegisters(                                                                                             \
        a, &mapB, c, m, n, k * BYTES, BYTES,                                                                          \
        [](T(&d)[32], const uint32_t(&a)[16], const uint64_t(&b)[4], unsigned accumulate) { CALL; });                 \
  }
KILN_KERNEL(registersF16, float, 2,
            KILN_RS16("m64n64k16.f32.f16.f16", KILN_OUT32(KILN_F32, d), a, b, accumulate, "n"(1), "n"(1), "n"(0)))
KILN_KERNEL(registersBf16, float, 2,
            KILN_RS16("m64n64k16.f32.bf16.bf16", KILN_OUT32(KILN_F32, d), a, b, accumulate, "n"(-1), "n"(-1), "n"(0)))
KILN_KERNEL(registersTf32, float, 4,
            KILN_RSFLOAT("m64n64k8.f32.tf32.tf32", KILN_OUT32(KILN_F32, d), a, b, accumulate, "n"(1), "n"(1)))
KILN_KERNEL(registersE5m2, float, 1,
            KILN_RSFLOAT("m64n64k32.f32.e5m2.e5m2", KILN_OUT32(KILN_F32, d), a, b, accumulate, "n"(1), "n"(1)))
KILN_KERNEL(registersS8, int, 1, KILN_RSINT("m64n64k32.s32.s8.s8", KILN_OUT32(KILN_B32, d), a, b, accumulate))
