// Products with the fragments of mma.h, which nvcc lowers to wmma.*: f16 with f32 accumulators, bf16, tf32, 8-bit.
// C[m][n] = A[m][k] B[k][n], multiples of 32 in m and n, of the fragment's k in k.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// Four warps, a 32 x 32 tile through shared memory, B by columns in memory ([n][k]).
extern "C" __global__ void __launch_bounds__(128)
    wmmaHalf(const half *a, const half *b, float *c, int n, int k, float alpha) {
  __shared__ alignas(32) half sa[32][48], sb[32][48];
  __shared__ alignas(32) float sc[32][40];
  int row = blockIdx.y * 32, col = blockIdx.x * 32, warp = threadIdx.x / 32, wm = warp / 2 * 16, wn = warp % 2 * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
  wmma::fill_fragment(acc, 0.0f);
#pragma unroll 1
  for (int k0 = 0; k0 < k; k0 += 32) {
    int r = threadIdx.x / 4, x = threadIdx.x % 4 * 8;
    *reinterpret_cast<uint4 *>(&sa[r][x]) = *reinterpret_cast<const uint4 *>(a + (row + r) * k + k0 + x);
    *reinterpret_cast<uint4 *>(&sb[r][x]) = *reinterpret_cast<const uint4 *>(b + (col + r) * k + k0 + x);
    __syncthreads();
    for (int kk = 0; kk < 32; kk += 16) {
      wmma::load_matrix_sync(fa, &sa[wm][kk], 48);
      wmma::load_matrix_sync(fb, &sb[wn][kk], 48);
      wmma::mma_sync(acc, fa, fb, acc);
    }
    __syncthreads();
  }
  for (int i = 0; i < acc.num_elements; i++)
    acc.x[i] *= alpha;
  wmma::store_matrix_sync(&sc[wm][wn], acc, 40, wmma::mem_row_major);
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < 32 * 32; i += 128)
    c[(row + i / 32) * n + col + i % 32] = sc[i / 32][i % 32];
}

// One warp a 32 x 8 tile, straight from global memory, both by rows; starts with C.
extern "C" __global__ void __launch_bounds__(32)
    wmmaBfloat(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int k) {
  int row = blockIdx.y * 32, col = blockIdx.x * 8;
  wmma::fragment<wmma::matrix_a, 32, 8, 16, __nv_bfloat16, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, __nv_bfloat16, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 32, 8, 16, float> acc;
  wmma::load_matrix_sync(acc, c + row * n + col, n, wmma::mem_row_major);
#pragma unroll 1
  for (int k0 = 0; k0 < k; k0 += 16) {
    wmma::load_matrix_sync(fa, a + row * k + k0, k);
    wmma::load_matrix_sync(fb, b + k0 * n + col, n);
    wmma::mma_sync(acc, fa, fb, acc);
  }
  wmma::store_matrix_sync(c + row * n + col, acc, n, wmma::mem_row_major);
}

// A by columns in memory ([k][m]); C by columns too ([n][m]).
extern "C" __global__ void __launch_bounds__(32)
    wmmaTf32(const float *a, const float *b, float *c, int m, int n, int k) {
  int row = blockIdx.y * 16, col = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::col_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> acc;
  wmma::fill_fragment(acc, 0.0f);
#pragma unroll 1
  for (int k0 = 0; k0 < k; k0 += 8) {
    wmma::load_matrix_sync(fa, a + k0 * m + row, m);
    wmma::load_matrix_sync(fb, b + k0 * n + col, n);
    for (int i = 0; i < fa.num_elements; i++)
      fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
    for (int i = 0; i < fb.num_elements; i++)
      fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
    wmma::mma_sync(acc, fa, fb, acc);
  }
  wmma::store_matrix_sync(c + col * m + row, acc, m, wmma::mem_col_major);
}

// 8-bit: A signed by rows, B by columns ([n][k]).
extern "C" __global__ void __launch_bounds__(32)
    wmmaBytes(const signed char *a, const signed char *b, int *c, int n, int k) {
  int row = blockIdx.y * 8, col = blockIdx.x * 32;
  wmma::fragment<wmma::matrix_a, 8, 32, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 8, 32, 16, int> acc;
  wmma::fill_fragment(acc, 0);
#pragma unroll 1
  for (int k0 = 0; k0 < k; k0 += 16) {
    wmma::load_matrix_sync(fa, a + row * k + k0, k);
    wmma::load_matrix_sync(fb, b + col * k + k0, k);
    wmma::mma_sync(acc, fa, fb, acc);
  }
  wmma::store_matrix_sync(c + row * n + col, acc, n, wmma::mem_row_major);
}
