// wgmma on f16 and bf16 tiles in shared memory: every swizzle, every order of the operands, both accumulators, signs.
// Only sm_90a, optimised.
#include "Warpgroup.cuh"
#include <cuda_fp16.h>

#define KILN_KERNEL(NAME, TYPES, SWIZZLE, ACROSS_A, ACROSS_B, SIGN_A, SIGN_B)                                         \
  extern "C" __global__ void __launch_bounds__(128)                                                                   \
      NAME(const __grid_constant__ TensorMap mapA, const __grid_constant__ TensorMap mapB, float *c, int m, int n,    \
           int k) {                                                                                                   \
    float acc[32] = {};                                                                                                    \
    product<float, 32, SWIZZLE, ACROSS_A, ACROSS_B>(                                                                  \
        acc, &mapA, &mapB, 2, k,                                                                                      \
        [](float(&d)[32], const uint64_t(&a)[4], const uint64_t(&b)[4], unsigned accumulate) {                        \
          KILN_SS16(TYPES, KILN_OUT32(KILN_F32, d), a, b, accumulate, "n"(SIGN_A), "n"(SIGN_B), "n"(ACROSS_A),     \
                    "n"(ACROSS_B));                                                                                   \
        });                                                                                                           \
    storeAccumulators(acc, c, m, n);                                                                                  \
  }
KILN_KERNEL(wgmmaBf16Swizzle128, "m64n64k16.f32.bf16.bf16", 128, 0, 0, 1, 1)
KILN_KERNEL(wgmmaF16Swizzle64, "m64n64k16.f32.f16.f16", 64, 0, 0, -1, 1)
KILN_KERNEL(wgmmaBf16Swizzle32, "m64n64k16.f32.bf16.bf16", 32, 0, 0, 1, -1)
KILN_KERNEL(wgmmaF16Plain, "m64n64k16.f32.f16.f16", 0, 0, 0, 1, 1)
KILN_KERNEL(wgmmaBf16AcrossB128, "m64n64k16.f32.bf16.bf16", 128, 0, 1, 1, 1)
KILN_KERNEL(wgmmaF16AcrossB64, "m64n64k16.f32.f16.f16", 64, 0, 1, 1, 1)
KILN_KERNEL(wgmmaBf16AcrossBoth32, "m64n64k16.f32.bf16.bf16", 32, 1, 1, 1, 1)
KILN_KERNEL(wgmmaF16AcrossBothPlain, "m64n64k16.f32.f16.f16", 0, 1, 1, 1, 1)

// f16 accumulators, two a register.
extern "C" __global__ void __launch_bounds__(128)
    wgmmaF16Half(const __grid_constant__ TensorMap mapA, const __grid_constant__ TensorMap mapB, half *c, int m, int n,
                 int k) {
  uint32_t acc[16] = {};
  product<uint32_t, 16, 128, true, false>(
      acc, &mapA, &mapB, 2, k,
      [](uint32_t(&d)[16], const uint64_t(&a)[4], const uint64_t(&b)[4], unsigned accumulate) {
        KILN_SS16_HALF("m64n64k16.f16.f16.f16", KILN_OUT16(KILN_B32, d, 0), a, b, accumulate, "n"(1), "n"(1), "n"(1),
                       "n"(0));
      });
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 16; i++) {
    int r = blockIdx.y * 64 + warp * 16 + i % 2 * 8 + lane / 4, x = blockIdx.x * 64 + i / 2 * 8 + lane % 4 * 2;
    if (r < m && x < n)
      *reinterpret_cast<uint32_t *>(c + r * n + x) = acc[i];
  }
}
