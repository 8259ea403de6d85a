#include <cuda_fp16.h>
// Scalar and packed half arithmetic; every result is stored as bits.
extern "C" __global__ void halfScalar(const __half *a, const __half *b, const __half *c, __half *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  __half x = a[i], y = b[i], z = c[i];
  __half *o = out + i * 8;
  o[0] = __hadd_rn(x, y);
  o[1] = __hsub_rn(x, y);
  o[2] = __hmul_rn(x, y);
  o[3] = __hfma(x, y, z);
  o[4] = __hmax(x, y);
  o[5] = __hmin(x, y);
  o[6] = __hneg(__habs(x));
  o[7] = __hgt(x, y) ? __hadd_sat(x, y) : __hfma_relu(x, y, z);
}

extern "C" __global__ void halfPacked(const __half2 *a, const __half2 *b, const __half2 *c, __half2 *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  __half2 x = a[i], y = b[i], z = c[i];
  __half2 *o = out + i * 6;
  o[0] = __hadd2_rn(x, y);
  o[1] = __hmul2_rn(x, y);
  o[2] = __hfma2(x, y, z);
  o[3] = __hmax2(x, y);
  o[4] = __lows2half2(x, y);
  o[5] = __hlt2(x, y);
}

extern "C" __global__ void halfConvert(const float *in, const __half *h, __half *narrow, float *wide, int *whole, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  narrow[i * 3] = __float2half_rn(in[i]);
  narrow[i * 3 + 1] = __float2half_rz(in[i]);
  narrow[i * 3 + 2] = __double2half((double)in[i] * 1.5);
  wide[i] = __half2float(h[i]);
  whole[i] = __half2int_rn(h[i]);
}

// Dot product with a float accumulator: the shape of real half code.
extern "C" __global__ void halfDot(const __half2 *a, const __half2 *b, float *out, int n) {
  float acc = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) {
    float2 x = __half22float2(a[i]), y = __half22float2(b[i]);
    acc += x.x * y.x + x.y * y.y;
  }
  for (int d = 16; d; d >>= 1)
    acc += __shfl_down_sync(0xffffffffu, acc, d);
  if (threadIdx.x == 0)
    *out = acc;
}
