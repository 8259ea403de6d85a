// Attention over sequences of different lengths, packed without gaps: q, k, v, out are [total][64] bf16, sequence
// s has rows starts[s] .. starts[s+1].  A block has 64 rows of one sequence (blockIdx.y), four warps of 16 rows; keys
// in tiles of 32.  out = softmax(q k^T * scale) v.  The epilogue copies the tile through shared memory to global rows.
#include "Async.cuh"
#include "Matrix.cuh"
#include <cuda_bf16.h>

constexpr int depth = 64, tileQ = 64, tileK = 32, pitch = depth + 8;

__device__ __forceinline__ void fill(__nv_bfloat16 (*to)[pitch], const __nv_bfloat16 *from, int rows, int first,
                                     int end) {
#pragma unroll 1
  for (int i = threadIdx.x; i < rows * 8; i += 128) {
    int r = i / 8, x = i % 8 * 8;
    bool inside = first + r < end;
    copyAsync<16>(sharedAddress(&to[r][x]), inside ? from + (first + r) * depth + x : from, inside ? 16 : 0);
  }
}

__device__ __forceinline__ uint32_t packed(float low, float high) {
  __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<uint32_t *>(&pair);
}

extern "C" __global__ void __launch_bounds__(128)
    varlenAttention(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, __nv_bfloat16 *out,
                    const int *starts, float scaleLog2) {
  __shared__ alignas(16) __nv_bfloat16 sq[tileQ][pitch], sk[2][tileK][pitch], sv[2][tileK][pitch];
  int begin = starts[blockIdx.y], end = starts[blockIdx.y + 1], first = begin + blockIdx.x * tileQ;
  if (first >= end)
    return;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  fill(sq, q, tileQ, first, end);
  fill(sk[0], k, tileK, begin, end);
  fill(sv[0], v, tileK, begin, end);
  commitCopies();
  float o[8][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  uint32_t fq[4][4];
#pragma unroll 1
  for (int k0 = begin, stage = 0; k0 < end; k0 += tileK, stage ^= 1) {
    waitForCopies<0>();
    __syncthreads();
    if (k0 == begin)
#pragma unroll
      for (int i = 0; i < 4; i++)
        loadMatrices(fq[i], sharedAddress(&sq[warp * 16 + lane % 16][i * 16 + lane / 16 * 8]));
    if (k0 + tileK < end) {
      fill(sk[stage ^ 1], k, tileK, k0 + tileK, end);
      fill(sv[stage ^ 1], v, tileK, k0 + tileK, end);
      commitCopies();
    }
    float s[4][4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 2; j++) {
        uint32_t fk[4];
        loadMatrices(fk, sharedAddress(&sk[stage][j * 16 + lane / 16 * 8 + lane % 8][i * 16 + lane / 8 % 2 * 8]));
        multiplyBf16(s[j * 2], fq[i], fk[0], fk[1]);
        multiplyBf16(s[j * 2 + 1], fq[i], fk[2], fk[3]);
      }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float top = largest[h];
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          float &x = s[j][h * 2 + e];
          x = k0 + j * 8 + t * 2 + e < end ? x * scaleLog2 : -INFINITY;
          top = fmaxf(top, x);
        }
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
      float rescale = exp2f(largest[h] - top);
      largest[h] = top;
      sum[h] *= rescale;
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          float &x = s[j][h * 2 + e];
          x = exp2f(x - top);
          sum[h] += x;
        }
#pragma unroll
      for (int j = 0; j < 8; j++) {
        o[j][h * 2] *= rescale;
        o[j][h * 2 + 1] *= rescale;
      }
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t fp[4] = {packed(s[i * 2][0], s[i * 2][1]), packed(s[i * 2][2], s[i * 2][3]),
                        packed(s[i * 2 + 1][0], s[i * 2 + 1][1]), packed(s[i * 2 + 1][2], s[i * 2 + 1][3])};
#pragma unroll
      for (int j = 0; j < 4; j++) {
        uint32_t fv[4];
        loadMatricesTransposed(fv, sharedAddress(&sv[stage][i * 16 + lane % 16][j * 16 + lane / 16 * 8]));
        multiplyBf16(o[j * 2], fp, fv[0], fv[1]);
        multiplyBf16(o[j * 2 + 1], fp, fv[2], fv[3]);
      }
    }
  }
  __syncwarp(); // sq becomes the output tile, each warp's rows for themselves
#pragma unroll
  for (int h = 0; h < 2; h++) {
    sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
    sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
#pragma unroll
    for (int j = 0; j < 8; j++)
      *reinterpret_cast<uint32_t *>(&sq[warp * 16 + h * 8 + g][j * 8 + t * 2]) =
          packed(o[j][h * 2] / sum[h], o[j][h * 2 + 1] / sum[h]);
  }
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < tileQ * 8; i += 128) {
    int r = i / 8, x = i % 8 * 8;
    if (first + r < end)
      *reinterpret_cast<uint4 *>(out + (first + r) * depth + x) = *reinterpret_cast<uint4 *>(&sq[r][x]);
  }
}
