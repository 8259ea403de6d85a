// C[m][n] = A[m][k] B[k][n], 16 x 16 tiles through shared memory, any sizes.
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float as[16][16], bs[16][17];
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float acc = 0.0f;
  for (int k0 = 0; k0 < k; k0 += 16) {
    as[threadIdx.y][threadIdx.x] = row < m && k0 + threadIdx.x < k ? a[row * k + k0 + threadIdx.x] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = col < n && k0 + threadIdx.y < k ? b[(k0 + threadIdx.y) * n + col] : 0.0f;
    __syncthreads();
#pragma unroll 4
    for (int j = 0; j < 16; j++)
      acc += as[threadIdx.y][j] * bs[j][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n)
    c[row * n + col] = acc;
}
