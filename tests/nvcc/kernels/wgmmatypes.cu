// wgmma on tf32, fp8 and 8-bit integer tiles in shared memory.  C[m][n] = A[m][k] B[n][k].
// Only sm_90a.
#include "Warpgroup.cuh"

#define KILN_FLOATS(NAME, TYPES, SWIZZLE, BYTES)                                                                      \
  extern "C" __global__ void __launch_bounds__(128)                                                                   \
      NAME(const __grid_constant__ TensorMap mapA, const __grid_constant__ TensorMap mapB, float *c, int m, int n,    \
           int k) {                                                                                                   \
    float acc[32] = {};                                                                                                    \
    product<float, 32, SWIZZLE, false, false>(                                                                        \
        acc, &mapA, &mapB, BYTES, k,                                                                                  \
        [](float(&d)[32], const uint64_t(&a)[4], const uint64_t(&b)[4], unsigned accumulate) {                        \
          KILN_SSFLOAT(TYPES, KILN_OUT32(KILN_F32, d), a, b, accumulate, "n"(1), "n"(1));                          \
        });                                                                                                           \
    storeAccumulators(acc, c, m, n);                                                                                  \
  }
KILN_FLOATS(wgmmaTf32, "m64n64k8.f32.tf32.tf32", 128, 4)
KILN_FLOATS(wgmmaE4m3, "m64n64k32.f32.e4m3.e4m3", 64, 1)
KILN_FLOATS(wgmmaE5m2, "m64n64k32.f32.e5m2.e5m2", 128, 1)
KILN_FLOATS(wgmmaE4m3E5m2, "m64n64k32.f32.e4m3.e5m2", 32, 1)

#define KILN_INTEGERS(NAME, TYPES, SWIZZLE)                                                                           \
  extern "C" __global__ void __launch_bounds__(128)                                                                   \
      NAME(const __grid_constant__ TensorMap mapA, const __grid_constant__ TensorMap mapB, int *c, int m, int n,      \
           int k) {                                                                                                   \
    int acc[32] = {};                                                                                                      \
    product<int, 32, SWIZZLE, false, false>(                                                                          \
        acc, &mapA, &mapB, 1, k,                                                                                      \
        [](int(&d)[32], const uint64_t(&a)[4], const uint64_t(&b)[4], unsigned accumulate) {                          \
          KILN_SSINT(TYPES, KILN_OUT32(KILN_B32, d), a, b, accumulate);                                            \
        });                                                                                                           \
    storeAccumulators(acc, c, m, n);                                                                                  \
  }
KILN_INTEGERS(wgmmaS8, "m64n64k32.s32.s8.s8", 128)
KILN_INTEGERS(wgmmaU8S8, "m64n64k32.s32.u8.s8", 0)
