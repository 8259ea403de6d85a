#include <cuda_bf16.h>
// bfloat16: scalar and packed; add and multiply are instructions on sm_90 and fma forms on sm_80.
extern "C" __global__ void bfloatScalar(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const __nv_bfloat16 *c,
                                        __nv_bfloat16 *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  __nv_bfloat16 x = a[i], y = b[i], z = c[i];
  __nv_bfloat16 *o = out + i * 6;
  o[0] = __hadd_rn(x, y);
  o[1] = __hmul_rn(x, y);
  o[2] = __hfma(x, y, z);
  o[3] = __hmax(x, y);
  o[4] = __hmin_nan(x, y);
  o[5] = __hneg(__habs(x));
}

extern "C" __global__ void bfloatPacked(const __nv_bfloat162 *a, const __nv_bfloat162 *b, const __nv_bfloat162 *c,
                                        __nv_bfloat162 *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  out[i * 3] = __hfma2(a[i], b[i], c[i]);
  out[i * 3 + 1] = __hmax2(a[i], b[i]);
  out[i * 3 + 2] = __hadd2_rn(a[i], b[i]);
}

extern "C" __global__ void bfloatConvert(const float *in, const __nv_bfloat16 *h, __nv_bfloat16 *narrow, float *wide,
                                         int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  narrow[i * 2] = __float2bfloat16_rn(in[i]);
  narrow[i * 2 + 1] = __float2bfloat16_rz(in[i]);
  wide[i] = __bfloat162float(h[i]);
}
